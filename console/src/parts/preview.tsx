// A change that is seen before it is made: a form, what the manager says would come of it, and then now, or on the change list.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { dryRun, get, query, type Operation, type Problem, type Resource, type Tried } from "../api"
import { problemOf, useData } from "../data"
import { Icon } from "../icons"
import { kind, title } from "../links"
import { single, stage, type Staged } from "../staged"
import { change } from "../work"
import { Button, Dialog, number, Trouble, toast, useSettled } from "./basics"

export interface Wanted {
  method: Staged["method"]
  path: string
  body?: any
  headers?: Record<string, string>
  says: string
}

/**
 * A window with a form. wanted is the change that it stands for now; null as long as something is missing. After each pause in typing it is tried, and
 * what would come of it is shown; nothing is kept until a button is pressed, and none can be before that.
 */
export function Preview({
  title,
  wanted,
  children,
  close,
  done,
  danger,
  waits,
  stale,
  staged,
}: {
  title: string
  wanted: Wanted | null
  children?: (problem: Problem | undefined) => ComponentChildren
  close: () => void
  done?: (body: any) => void
  danger?: boolean
  /** Nothing is said of what is wrong before something was typed. */
  waits?: boolean
  /** Called when the change was put on the change list. */
  staged?: () => void
  /** Reads again what somebody else has changed since the window was opened. */
  stale?: () => void
}) {
  const [agreed, setAgreed] = useState<Record<string, string>>({})
  if (wanted && Object.keys(agreed).length) wanted = { ...wanted, headers: { ...wanted.headers, ...agreed } }
  const key = wanted ? JSON.stringify(wanted) : null,
    settled = useSettled(key, 250)
  const [came, setCame] = useState<{ key: string; tried?: Tried; problem?: Problem }>(),
    [failed, setFailed] = useState<{ key: string | null; problem: Problem }>()
  const [busy, setBusy] = useState(false),
    [begun] = useState(key),
    [turn, setTurn] = useState(0)
  useEffect(() => {
    if (!settled) return
    const abort = new AbortController()
    const w: Wanted = JSON.parse(settled)
    dryRun(w.method, w.path, w.body, w.headers, abort.signal)
      .then(tried => withOwn(w, tried, abort.signal))
      .then(
        tried => abort.signal.aborted || setCame({ key: settled, tried }),
        e => {
          if (!abort.signal.aborted) setCame({ key: settled, problem: problemOf(e) })
        },
      )
    return () => abort.abort()
  }, [settled, turn])
  const fresh = key !== null && came?.key === key ? came : undefined
  const problem = failed && failed.key === key ? failed.problem : fresh?.problem
  const apply = async () => {
    if (!wanted || !fresh?.tried || busy) return
    setBusy(true)
    try {
      const r = await change(
        made =>
          made && !Array.isArray(made) && wanted.method === "POST" && made.type && (made.range || made.address)
            ? `${kind(made.type)} ${made.range ?? made.address}${made.name ? " " + made.name : ""} is made.`
            : wanted.says,
        wanted.method,
        wanted.path,
        wanted.body,
        { headers: wanted.headers },
      )
      close()
      done?.(r.body)
    } catch (e) {
      setFailed({ key, problem: problemOf(e) })
      setBusy(false)
    }
  }
  const quiet = waits && key === begun,
    offer = Object.keys(offers).find(h => problem?.message.includes(h) && !agreed[h])
  return (
    <Dialog title={title} close={close} wide>
      <form
        onSubmit={e => {
          e.preventDefault()
          void apply()
        }}
      >
        {children?.(quiet ? undefined : problem)}
        <div class="preview" aria-live="polite">
          {problem?.code === "PreconditionFailed" ? (
            <div class="box bad" role="alert">
              <Icon name="circle-alert" />
              <div>
                <p>
                  <strong>Somebody else has changed it</strong> since this window was opened. Yours is not made.
                </p>
                {stale && (
                  <p>
                    <button
                      type="button"
                      class="small"
                      onClick={() => {
                        setFailed(undefined)
                        stale()
                      }}
                    >
                      Show what it is now, and keep what I typed
                    </button>
                  </p>
                )}
              </div>
            </div>
          ) : problem && !quiet && offer ? (
            <>
              <Trouble problem={problem} />
              <p>
                <button
                  type="button"
                  class="small"
                  onClick={() => {
                    setFailed(undefined)
                    setAgreed(a => ({ ...a, [offer]: "true" }))
                  }}
                >
                  {offers[offer]}
                </button>
              </p>
            </>
          ) : problem && !quiet ? (
            <Trouble
              problem={problem}
              retry={
                problem.status === 0 || problem.status >= 500
                  ? () => {
                      setFailed(undefined)
                      setTurn(n => n + 1)
                    }
                  : undefined
              }
            />
          ) : fresh?.tried ? (
            <Effect tried={fresh.tried} />
          ) : (
            <p class="muted small">
              {wanted ? "Trying …" : "What would come of it is shown here before anything is made."}
            </p>
          )}
        </div>
        <div class="buttons">
          <span class="outcome small" aria-hidden="true">
            {problem && !quiet ? (
              <span class="bad-text">Refused: see above.</span>
            ) : fresh?.tried ? (
              outcome(fresh.tried)
            ) : wanted ? (
              "Trying …"
            ) : (
              ""
            )}
          </span>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy || !fresh?.tried || !!problem}>
            {busy ? "Working …" : fresh?.tried?.approval ? "Request approval" : danger ? "Delete now" : "Apply now"}
          </button>
          <Button
            icon="list-checks"
            disabled={busy || !fresh?.tried || !!problem}
            onClick={() => {
              stage(...single(wanted!))
              close()
              staged?.()
              toast("It is on the change list, and not made yet.")
            }}
          >
            Add to change list
          </Button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}

/** What a trial changes of the one resource that it is about, for users without the history privilege: as they would see it. */
async function withOwn(w: Wanted, tried: Tried, signal: AbortSignal): Promise<Tried> {
  const after = tried.resource
  if (tried.operations?.length || !after?.type || w.path === "batch") return tried
  const before: any = w.method === "POST" ? {} : await get(w.path, { signal, quiet: true }).catch(() => null)
  if (!before) return tried
  const fieldUpdates = Object.keys(after)
    .filter(n => !n.startsWith("_") && n !== "id" && n !== "type")
    .map(name => ({ name, value: (after as any)[name], previousValue: before[name] ?? null }))
    .filter(f => JSON.stringify(f.value) !== JSON.stringify(f.previousValue))
  return {
    ...tried,
    operations: [
      {
        operationType: w.method === "POST" ? "ADD" : w.method === "DELETE" ? "DELETE" : "CHANGE",
        resourceId: after.id,
        resourceType: after.type,
        name: title(after),
        fieldUpdates,
      },
    ],
  }
}

/** What a refusal offers by a header, as a button says it. */
const offers: Record<string, string> = {
  "x-bcn-link-to-external-host": "Lead to it as a name of somebody else",
  "x-bcn-no-gateway": "Make it without a gateway",
}

/** How much is new, changed and deleted. */
function partsOf(tried: Tried) {
  return [
    [tried.created, "new"],
    [tried.changed, "changed"],
    [tried.deleted, "deleted"],
  ].filter(([n]) => n) as [number, string][]
}

/** The same in a word: it stays in sight, however long the form is. */
function outcome(tried: Tried) {
  return (
    partsOf(tried)
      .map(([n, what]) => number(n) + " " + what)
      .join(", ") || "nothing changes"
  )
}

/** What a dry run says. */
export function Effect({ tried }: { tried: Tried }) {
  const about = tried.atLeast ? "at least " : tried.estimate ? "about " : ""
  const parts = partsOf(tried)
  return (
    <div>
      <p>
        {parts.length ? (
          <>
            This makes {about}
            {parts.map(([n, what], i) => (
              <span key={what}>
                {i ? ", " : ""}
                <strong class={what === "deleted" ? "bad-text" : ""}>
                  {number(n)} {what}
                </strong>
              </span>
            ))}
            .
          </>
        ) : (
          "This changes nothing."
        )}
      </p>
      {tried.approval && (
        <p class="box">
          <Icon name="users" /> This change needs an approval. Nothing changes before.
        </p>
      )}
      <Operations list={tried.operations ?? []} total={tried.created + tried.changed + tried.deleted} />
    </div>
  )
}

/** A value as a change shows it. */
export function shown(v: unknown): string {
  if (v === null || v === undefined || v === "") return "—"
  if (typeof v === "object") {
    const o = v as any
    if (Array.isArray(o)) return o.length ? o.map(shown).join(", ") : "—"
    if (o.id && Object.keys(o).length <= 6) return o.name ?? o.range ?? o.address ?? "#" + o.id
    return JSON.stringify(o)
  }
  return v === true ? "yes" : v === false ? "no" : String(v)
}

const marks: Record<string, [string, string]> = {
  ADD: ["plus", "new"],
  CREATE: ["plus", "new"],
  DELETE: ["trash-2", "deleted"],
}

/** Fields of something new that say nothing to who has just made it. */
const dull = ["up", "configuration", "type"]

/** What a changed resource is called. */
function called(o: Operation): string {
  return o.name ?? "#" + o.resourceId
}

/** How many resources are looked up, so that a change says what they are called. */
const mostNamed = 12

/** What the resources that changes lead to are called, by their numbers, as far as their names were found. */
function useNames(list: Operation[]): Map<number, string> {
  const ids = new Set<number>()
  const note = (v: any) => {
    if (Array.isArray(v)) v.forEach(note)
    else if (v && typeof v === "object" && v.id && !v.name && !v.range && !v.address) ids.add(v.id)
  }
  for (const o of list)
    for (const f of o.fieldUpdates ?? [])
      if (!dull.includes(f.name)) {
        note(f.value)
        note(f.previousValue)
      }
  const wanted = [...ids].slice(0, mostNamed)
  const { data } = useData<Map<number, string>>(
    wanted.length ? "names " + wanted.join() : null,
    async signal =>
      new Map(
        await Promise.all(
          wanted.map(async (id): Promise<[number, string]> => {
            const found = await get<{ data: { resource: Resource }[] }>("search" + query({ q: String(id), limit: 3 }), {
              signal,
              quiet: true,
            }).catch(() => ({ data: [] }))
            const r = found.data.find(h => h.resource.id === id)?.resource
            return [id, r ? title(r) : "#" + id]
          }),
        ),
      ),
  )
  return data ?? new Map()
}

/** Changes of resources, field by field. */
export function Operations({ list, total }: { list: Operation[]; total?: number }) {
  const names = useNames(list)
  const named = (v: any): any =>
    Array.isArray(v)
      ? v.map(named)
      : v && typeof v === "object" && names.has(v.id)
        ? { ...v, name: names.get(v.id) }
        : v
  if (!list.length) return null
  return (
    <ul class="operations" tabIndex={0} aria-label="Changes, field by field">
      {list.map((o, i) => {
        const [icon, word] = marks[o.operationType] ?? ["pencil", "changed"]
        const fields = (o.fieldUpdates ?? []).filter(
          f =>
            shown(f.value) !== shown(f.previousValue) &&
            !(word === "new" && (dull.includes(f.name) || typeof f.value === "boolean")),
        )
        return (
          <li key={i}>
            <Icon name={icon} size={14} />
            <div>
              <span>
                <strong>{kind(o.resourceType)}</strong> <span class="mono">{called(o)}</span>{" "}
                <span class="muted">{word}</span>
              </span>
              {word !== "deleted" && (
                <span class="updates">
                  {fields.slice(0, 8).map(f => (
                    <span key={f.name}>
                      <span class="muted">{f.name}</span>{" "}
                      {word === "changed" && (
                        <>
                          <del>{shown(named(f.previousValue))}</del> →{" "}
                        </>
                      )}
                      <ins>{shown(named(f.value))}</ins>
                    </span>
                  ))}
                </span>
              )}
            </div>
          </li>
        )
      })}
      {total !== undefined && total > list.length && <li class="muted">and {number(total - list.length)} more</li>}
    </ul>
  )
}
