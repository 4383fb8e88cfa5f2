// What stands around every screen: where one can go, search, what is staged, and whether what is shown is live.
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { calls, get, query, type Call, type Page } from "./api"
import { useData } from "./data"
import { Icon } from "./icons"
import { state } from "./live"
import { Button, Dialog, toast } from "./parts/basics"
import { Search, searching } from "./parts/search"
import { go, mayLeave, place } from "./router"
import { chooseConfiguration, configuration, configurations, leave, session } from "./session"
import { stagedCount } from "./staged"

/** Where one can go: path, word, icon, the key behind g. */
const places: [to: string, word: string, icon: string, key: string][] = [
  ["/", "Overview", "layout-dashboard", "o"],
  ["/ui/space", "Space", "list-tree", "s"],
  ["/ui/find", "Find space", "locate-fixed", "p"],
  ["/ui/names", "Names", "globe", "n"],
  ["/ui/servers", "Servers", "server", "v"],
  ["/ui/dhcp", "DHCP", "radio", "d"],
  ["/ui/fleet", "Fleet", "boxes", "f"],
  ["/ui/transactions", "Changes", "history", "h"],
  ["/ui/workflowRequests", "Approvals", "circle-check", "w"],
  ["/ui/staged", "Change list", "list-checks", "c"],
  ["/ui/bulk", "Bulk and CSV", "file-spreadsheet", "b"],
  ["/ui/events", "Events", "bell", "e"],
  ["/ui/all", "Everything else", "settings", "a"],
]

/** Which of the places a path belongs to. */
const belongs: Record<string, string> = {
  blocks: "/ui/space",
  networks: "/ui/space",
  addresses: "/ui/space",
  configurations: "/ui/space",
  map: "/ui/space",
  zones: "/ui/names",
  views: "/ui/names",
  resourceRecords: "/ui/names",
  deployments: "/ui/servers",
  ranges: "/ui/dhcp",
  leases: "/ui/dhcp",
  macPools: "/ui/dhcp",
  clientClasses: "/ui/dhcp",
}

const helping = signal(false),
  curling = signal(false),
  menu = signal(false)

/** How many requests wait for an approval that the user sees: their own, and those that they may approve. */
function usePending(): number {
  const path = "workflowRequests" + query({ filter: "state:'PENDING'", limit: 1, total: true, fields: "id" })
  return (
    useData<Page>(session.value ? path : null, s => get<Page>(path, { signal: s, quiet: true }), ["workflowRequests"])
      .data?.totalCount ?? 0
  )
}

export function Frame({ children }: { children: ComponentChildren }) {
  useKeys()
  useTheme()
  const here = place.value.path.length ? (belongs[place.value.path[0]] ?? "/ui/" + place.value.path[0]) : "/"
  const main = places.slice(0, 4),
    pending = usePending()
  useEffect(() => {
    menu.value = false
  }, [place.value])
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={e => {
          e.preventDefault()
          document.getElementById("main")?.focus()
        }}
      >
        To the page
      </a>
      <header class="top">
        <a class="brand" href="/" aria-label="Portolan, overview">
          <img src="/ui/assets/icon.svg" width="22" height="22" alt="" />
          <span>Portolan</span>
        </a>
        <button
          class="searchbox"
          aria-label="Search"
          onClick={() => {
            searching.value = true
          }}
        >
          <Icon name="search" />
          <span>Search</span>
          <kbd>/</kbd>
        </button>
        <span class="grow" />
        {configurations.value.length > 0 && (
          <label class="configuration">
            <span class="hidden">Configuration</span>
            <select
              value={configuration.value ?? ""}
              onChange={e => {
                if (!mayLeave()) {
                  e.currentTarget.value = String(configuration.value)
                  return
                }
                chooseConfiguration(Number(e.currentTarget.value))
              }}
            >
              {configurations.value.map(c => (
                <option key={c.id} value={c.id}>
                  {c.name}
                </option>
              ))}
            </select>
          </label>
        )}
        <a class="staged" href="/ui/staged" aria-label={`Change list, ${stagedCount.value} staged`}>
          <Icon name="list-checks" />
          {stagedCount.value > 0 && <b>{stagedCount.value}</b>}
        </a>
        <Live />
        <button
          class="plain wide-only"
          title="Show this page's requests as curl"
          aria-label="Show as curl"
          onClick={() => {
            curling.value = true
          }}
        >
          <Icon name="terminal" />
        </button>
        <button
          class="plain wide-only"
          title="Keys"
          aria-label="Keys"
          onClick={() => {
            helping.value = true
          }}
        >
          <Icon name="keyboard" />
        </button>
        <Account />
      </header>
      <nav class="side" aria-label="Parts of Portolan">
        {places.map(([to, word, icon]) => (
          <a key={to} href={to} aria-current={here === to ? "page" : undefined}>
            <Icon name={icon} size={17} />
            <span>{word}</span>
            {to === "/ui/workflowRequests" && pending > 0 && (
              <b class="count" aria-label={pending + " pending"}>
                {pending}
              </b>
            )}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <nav class="bottom" aria-label="Main parts">
        {main.map(([to, word, icon]) => (
          <a key={to} href={to} aria-current={here === to ? "page" : undefined}>
            <Icon name={icon} size={20} />
            <span>{word}</span>
          </a>
        ))}
        <button
          aria-expanded={menu.value}
          onClick={() => {
            menu.value = !menu.value
          }}
        >
          <Icon name="menu" size={20} />
          <span>More</span>
        </button>
      </nav>
      {menu.value && (
        <Dialog
          title="More"
          close={() => {
            menu.value = false
          }}
        >
          <nav class="more" aria-label="All parts">
            {places.slice(4).map(([to, word, icon]) => (
              <a
                key={to}
                href={to}
                onClick={() => {
                  menu.value = false
                }}
              >
                <Icon name={icon} size={18} />
                {word}
              </a>
            ))}
            <button
              onClick={() => {
                menu.value = false
                curling.value = true
              }}
            >
              <Icon name="terminal" size={18} />
              Show as curl
            </button>
          </nav>
        </Dialog>
      )}
      {searching.value && <Search />}
      {helping.value && <Keys />}
      {curling.value && <Curl />}
    </div>
  )
}

/** Whether what is shown is live. */
function Live() {
  const [icon, word, says] = {
    live: ["circle-dot", "live", "Changes are shown as they are made."],
    starting: ["loader", "connecting", "Connecting to the change feed."],
    stale: ["triangle-alert", "stale", "The connection was lost: what is shown may be old."],
    off: ["circle-slash", "not live", "You may not follow all changes: pages are read when they are opened."],
  }[state.value]
  return (
    <span class={"live " + state.value} title={says} role="status">
      <Icon name={icon} size={14} />
      <span>{word}</span>
    </span>
  )
}

/** The theme: as the system has it, light, or dark. */
const theme = signal(localStorage.getItem("portolan-theme") ?? "system")
function useTheme() {
  useEffect(() => {
    document.documentElement.dataset.theme = theme.value
    localStorage.setItem("portolan-theme", theme.value)
  }, [theme.value])
}

function Account() {
  const [open, setOpen] = useState(false)
  return (
    <>
      <button class="plain account" aria-label={"Account of " + session.value?.user.name} onClick={() => setOpen(true)}>
        <Icon name="users" />
        <span class="wide-only">{session.value?.user.name}</span>
      </button>
      {open && (
        <Dialog title={session.value?.user.name ?? ""} close={() => setOpen(false)}>
          <p class="muted">
            {session.value?.administrator ? "Administrator." : "You see and change what your access rights allow."}
            {session.value?.readOnly ? " This session only reads." : ""}
          </p>
          <fieldset class="choice">
            <legend>Colours</legend>
            {[
              ["system", "As the system", "settings"],
              ["light", "Light", "sun"],
              ["dark", "Dark", "moon"],
            ].map(([value, word, icon]) => (
              <label key={value}>
                <input
                  type="radio"
                  name="theme"
                  value={value}
                  checked={theme.value === value}
                  onChange={() => {
                    theme.value = value
                  }}
                />
                <Icon name={icon} />
                {word}
              </label>
            ))}
          </fieldset>
          <div class="buttons">
            <a class="button" href={"/ui/users/" + session.value?.user.id} onClick={() => setOpen(false)}>
              My user and sessions
            </a>
            <a class="button" href="/ui/tokens" onClick={() => setOpen(false)}>
              My tokens
            </a>
            <Button
              icon="log-out"
              onClick={() => {
                if (
                  mayLeave() &&
                  (!stagedCount.value || confirm("What is on the change list is not made, and goes. Sign out?"))
                )
                  void leave()
              }}
            >
              Sign out, in all tabs
            </Button>
          </div>
        </Dialog>
      )}
    </>
  )
}

/** One-letter keys, outside of fields. */
function useKeys() {
  useEffect(() => {
    let g = 0
    const fn = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
        e.preventDefault()
        searching.value = true
        return
      }
      const t = e.target as HTMLElement
      if (e.ctrlKey || e.metaKey || e.altKey || t.closest("input,textarea,select,dialog,[contenteditable]")) return
      if (Date.now() - g < 1500) {
        g = 0
        const to = places.find(p => p[3] === e.key)
        if (to) {
          e.preventDefault()
          go(to[0])
          return
        }
      }
      if (e.key === "g") g = Date.now()
      else if (e.key === "/") {
        e.preventDefault()
        setTimeout(() => {
          searching.value = true
        })
      } // when the key is done with: it is no part of the search
      else if (e.key === "?") helping.value = true
    }
    addEventListener("keydown", fn)
    return () => removeEventListener("keydown", fn)
  }, [])
}

function Keys() {
  const keys: [string, string][] = [
    ["/ or Ctrl K", "search"],
    ["?", "this list"],
    ...places.map(([, word, , key]): [string, string] => ["g " + key, word.toLowerCase()]),
    ["↑ ↓ Page Up Page Down Home End", "move in a table"],
    ["→ ←", "open and close a branch of the tree"],
    ["Enter", "open what is chosen"],
    ["e", "edit what is chosen"],
    ["n", "new, in what is chosen"],
    ["Del", "stage the deletion of what is chosen"],
    ["Esc", "close a window"],
  ]
  return (
    <Dialog
      title="Keys"
      close={() => {
        helping.value = false
      }}
      wide
    >
      <dl class="keys">
        {keys.map(([k, what]) => (
          <div key={k}>
            <dt>
              <kbd>{k}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

/** A request as curl words it; the token is the user's own to put in. */
export function asCurl(c: Call): string {
  const quoted = (t: string) => "'" + t.replaceAll("'", `'\\''`) + "'"
  const lines = ['curl -sg -H "Authorization: Bearer $TOKEN"']
  if (c.method !== "GET") lines.push("-X " + c.method)
  for (const [name, value] of Object.entries(c.headers)) lines.push("-H " + quoted(name + ": " + value))
  if (c.body !== undefined) lines.push("-H " + quoted("Content-Type: " + c.type), "--data-raw " + quoted(c.body))
  lines.push(quoted(location.origin + c.path))
  return lines.join(" ")
}

function Curl() {
  const copy = (text: string) =>
    navigator.clipboard?.writeText(text).then(
      () => toast("Copied."),
      () => toast("The browser does not let pages copy here: mark the text.", { bad: true }),
    )
  return (
    <Dialog
      title="What this page asked, as curl"
      close={() => {
        curling.value = false
      }}
      wide
    >
      <p class="muted">
        The last requests of the console, the newest first;{" "}
        <a
          href="/api/docs"
          onClick={() => {
            curling.value = false
          }}
        >
          all of the APIs
        </a>
        . The console has nothing but the API that you have: put a token of yours into TOKEN (
        <code>portolan token create</code>).
      </p>
      <ol class="curl">
        {calls.value
          .filter(c => c.page === location.pathname)
          .map((c, i) => (
            <li key={i}>
              <code>{asCurl(c)}</code>
              <button class="plain" aria-label="Copy" onClick={() => copy(asCurl(c))}>
                <Icon name="copy" />
              </button>
            </li>
          ))}
      </ol>
    </Dialog>
  )
}
