// Search over everything: an address, a prefix, a hardware address, a name, a part of one, an id (docs/search.md).
import { signal } from "@preact/signals"
import { useEffect, useRef, useState } from "preact/hooks"
import { get, query, type Problem, type Ref, type Resource } from "../api"
import { problemOf } from "../data"
import { Icon } from "../icons"
import { hrefOf, kind, subtitle, title } from "../links"
import { go, place, setQuery } from "../router"
import { Dialog, Trouble } from "./basics"

/** Whether the search is open. The URL holds its text, so that a reload or a pasted URL repeats the search. */
export const searching = signal(place.value.query.has("search"))

interface Point {
  id: string
  name: string
}
interface Hit {
  match: string
  path: Ref[]
  resource: Resource
}
interface Found {
  q: string
  data: Hit[]
  more: boolean
  complete: boolean
}

export function Search() {
  const [points, setPoints] = useState<{ q: string; list: Point[] }>({ q: "", list: [] })
  const [q, setQ] = useState(place.value.query.get("search") ?? ""),
    [found, setFound] = useState<Found>(),
    [problem, setProblem] = useState<Problem>(),
    [chosen, setChosen] = useState(0)
  const wanted = useRef("") // the text at which Enter was pressed before its results arrived
  useEffect(() => {
    const text = q.trim(),
      abort = new AbortController()
    // Browsers limit how often a URL may change. A closed search must not write its text into the URL of the page that it opened.
    const noted = setTimeout(() => searching.value && setQuery({ search: text }), 200)
    if (!text) {
      setFound(undefined)
      return () => clearTimeout(noted)
    }
    // Enter pressed before the results arrived opens the first result as soon as it is known.
    let hits: Hit[] | undefined, named: Point[] | undefined
    const settle = () => {
      if (wanted.current === text && hits && (hits.length || named)) open(hits[0] ?? named?.[0])
    }
    const points =
      text.length < 2
        ? Promise.resolve([])
        : get<{ data: Point[] }>("/user/api/v1/fleetInstances" + query({ nameContains: text, limit: 8 }), {
            signal: abort.signal,
            quiet: true,
          }).then(
            r => r.data,
            () => [],
          )
    void points.then(list => {
      if (!abort.signal.aborted) {
        setPoints({ q: text, list })
        named = list
        settle()
      }
    })
    get<Found>("search" + query({ q: text, limit: 30 }), { signal: abort.signal, quiet: true }).then(
      r => {
        setFound({ ...r, q: text })
        setProblem(undefined)
        setChosen(0)
        hits = r.data
        settle()
      },
      e => {
        if (!abort.signal.aborted) setProblem(problemOf(e))
      },
    )
    return () => {
      abort.abort()
      clearTimeout(noted)
    }
  }, [q])
  const close = () => {
    searching.value = false
    setQuery({ search: null })
  }
  const href = (h: Hit | Point) => ("resource" in h ? hrefOf(h.resource) : "/ui/fleet/" + encodeURIComponent(h.id))
  const open = (h: Hit | Point | undefined) => {
    if (h) {
      close()
      go(href(h))
    }
  }
  const all: (Hit | Point)[] = [...(found?.data ?? []), ...(points.q === q.trim() ? points.list : [])]
  const keys = (e: KeyboardEvent) => {
    const n = all.length
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault()
      const to = (chosen + (e.key === "ArrowDown" ? 1 : n - 1)) % Math.max(n, 1)
      setChosen(to)
      document.getElementById("hit-" + to)?.scrollIntoView({ block: "nearest" })
    } else if (e.key === "Enter") {
      e.preventDefault()
      const typed = (e.currentTarget as HTMLInputElement).value.trim() // the latest text, which may not be rendered yet
      if (found?.q === typed && all.length) open(all[chosen])
      else wanted.current = typed
    }
  }
  return (
    <Dialog title="Search" close={close} wide discards>
      <div class="search">
        <input
          type="text"
          role="combobox"
          aria-expanded={!!found}
          aria-controls="hits"
          aria-activedescendant={all.length ? "hit-" + chosen : undefined}
          aria-label="Search for"
          placeholder="10.1.2.3 · 10.0.0.0/16 · 00:00:5e:00:53:01 · crane-1 · name"
          spellcheck={false}
          autocomplete="off"
          value={q}
          onBeforeInput={e => {
            if ((e as InputEvent).data === "/" && !e.currentTarget.value)
              e.preventDefault() /* the key that opened the search */
          }}
          onInput={e => {
            wanted.current = ""
            setQ(e.currentTarget.value)
          }}
          onKeyDown={keys}
        />
        {problem && <Trouble problem={problem} />}
        <div id="hits" data-for={found?.q} role="listbox" aria-label="Search results">
          {found?.data.map((h, i) => (
            <a
              key={h.resource.id}
              id={"hit-" + i}
              role="option"
              aria-selected={i === chosen}
              tabIndex={-1}
              class={"hit" + (i === chosen ? " chosen" : "")}
              href={hrefOf(h.resource)}
              onClick={close}
              onMouseMove={() => setChosen(i)}
            >
              <span class="mono">{title(h.resource)}</span>
              <span>{subtitle(h.resource)}</span>
              <span class="kind">{kind(h.resource.type)}</span>
              <span class="muted path">{h.path.map(p => title(p)).join(" › ")}</span>
            </a>
          ))}
          {all.slice(found?.data.length ?? 0).map((h, k) => {
            const i = k + (found?.data.length ?? 0),
              p = h as Point
            return (
              <a
                key={p.id}
                id={"hit-" + i}
                role="option"
                aria-selected={i === chosen}
                tabIndex={-1}
                class={"hit" + (i === chosen ? " chosen" : "")}
                href={href(p)}
                onClick={close}
                onMouseMove={() => setChosen(i)}
              >
                <span class="mono">{p.name}</span>
                <span />
                <span class="kind">Service point</span>
              </a>
            )
          })}
        </div>
        {found && all.length === 0 && (
          <p class="muted" role="status">
            No results for “{found.q}”.
          </p>
        )}
        {found?.more && <p class="muted small">More results exist. Type more to narrow the search.</p>}
        {found && !found.complete && (
          <p class="muted small">
            <Icon name="triangle-alert" size={13} /> The search did not cover all texts.
          </p>
        )}
      </div>
    </Dialog>
  )
}
