// The preview dialog: a form, the dry run of its change, and buttons that apply the change or add it to the change list.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { dryRun, get, query, type Operation, type Problem, type Resource, type Tried } from "../api"
import { problemOf, useData } from "../data"
import { Icon } from "../icons"
import { kind, title } from "../links"
import { isEqual, nameOf, operationIcons, partsOf, readable } from "../operations"
import { useSchema } from "../schema"
import { single, stage, subjectOf, type Wanted } from "../staged"
import { sendEach, tryEach, type Part } from "../separate"
import { change } from "../work"
import { fieldText } from "./choices"
import { Button, Dialog, Trouble, useSettled } from "./basics"
import { fieldName, counted, number } from "../words"
import { toast } from "../notice"

/**
 * A dialog with a form. wanted is the change that the form describes, or null while a value is missing. After each pause in typing, the
 * dialog runs the change as a dry run and shows the result. The buttons are disabled until then.
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
  /** Shows no errors before the user has typed something. */
  waits?: boolean
  /** Called after the change was added to the change list. */
  staged?: () => void
  /** Loads the resource again after another user has changed it. */
  stale?: () => void
}) {
  const [overrides, setOverrides] = useState<Record<string, string>>({})
  if (wanted && Object.keys(overrides).length)
    wanted =
      wanted.path === "batch" // which refuses the headers of single changes
        ? {
            ...wanted,
            body: {
              changes: wanted.body.changes.map((p: Part) => ({ ...p, headers: { ...p.headers, ...overrides } })),
            },
          }
        : { ...wanted, headers: { ...wanted.headers, ...overrides } }
  const key = wanted ? JSON.stringify(wanted) : null,
    settled = useSettled(key, 250)
  const [result, setResult] = useState<{ key: string; tried?: Tried; problem?: Problem }>(),
    [failed, setFailed] = useState<{ key: string | null; problem: Problem }>()
  const [busy, setBusy] = useState(false),
    [initial] = useState(key),
    [turn, setTurn] = useState(0)
  useEffect(() => {
    if (!settled) return
    const abort = new AbortController()
    const w: Wanted = JSON.parse(settled)
    const tryOne = async (p: Part) =>
      withOwn(p, await dryRun(p.method, p.path, p.body, p.headers, abort.signal), abort.signal)
    tryOne(w)
      .catch(e => {
        if (w.path !== "batch") throw e
        return tryEach(w.body.changes, e, w.together, tryOne)
      })
      .then(
        tried => abort.signal.aborted || setResult({ key: settled, tried }),
        e => {
          if (!abort.signal.aborted) setResult({ key: settled, problem: problemOf(e) })
        },
      )
    return () => abort.abort()
  }, [settled, turn])
  const fresh = key !== null && result?.key === key ? result : undefined
  const refusal = failed && failed.key === key ? failed.problem : fresh?.problem,
    problem = refusal && wanted ? named(refusal, wanted) : refusal
  const apply = async () => {
    if (!wanted || !fresh?.tried || busy) return
    setBusy(true)
    try {
      if (fresh.tried.separate) {
        await sendEach(wanted.body.changes, labelsOf(wanted))
        close()
        done?.({})
        return
      }
      const r = await change(
        made =>
          made &&
          !Array.isArray(made) &&
          wanted.method === "POST" &&
          made.type &&
          made.type !== "LeaseAction" &&
          (made.range || made.address)
            ? `Created ${kind(made.type)} ${made.range ?? made.address}${made.name ? ` (${made.name})` : ""}.`
            : wanted.says,
        wanted.method,
        wanted.path,
        wanted.body,
        { headers: wanted.headers, irreversible: fresh.tried.irreversible },
      )
      close()
      done?.(r.body)
    } catch (e) {
      setFailed({ key, problem: problemOf(e) })
      setBusy(false)
    }
  }
  const quiet = waits && key === initial,
    offer = Object.keys(offers).find(h => problem?.message.includes(h) && !overrides[h])
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
                  <strong>Another user has changed it</strong> since you opened this window. Your change was not
                  applied.
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
                      Load the current values and keep my input
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
                    setOverrides(a => ({ ...a, [offer]: "true" }))
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
            <>
              <Effect tried={fresh.tried} />
              {fresh.tried.irreversible && !fresh.tried.approval && <p class="muted">You cannot undo this.</p>}
            </>
          ) : (
            <p class="muted small">
              {wanted ? "Loading preview …" : "Preview: changes appear here before you apply them."}
            </p>
          )}
        </div>
        <div class="buttons">
          <span class="outcome small" aria-hidden="true">
            {problem && !quiet ? (
              <span class="bad-text">Cannot apply: see above.</span>
            ) : fresh?.tried ? (
              outcome(fresh.tried)
            ) : (
              ""
            )}
          </span>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy || !fresh?.tried || !!problem}>
            {busy ? "Working …" : fresh?.tried?.approval ? "Request approval" : danger ? "Delete now" : "Apply now"}
          </button>
          {!fresh?.tried?.approval && (
            <Button
              icon="list-checks"
              disabled={busy || !fresh?.tried || !!problem}
              onClick={() => {
                stage(...single(wanted!))
                close()
                staged?.()
                toast("Added to the change list. It is not applied yet.")
              }}
            >
              Add to change list
            </Button>
          )}
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Adds the field changes of the resource to a dry run, for users without the history privilege. */
async function withOwn(w: Part, tried: Tried, signal: AbortSignal): Promise<Tried> {
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

/** Returns the names of the resources that the changes of a batch apply to. */
const labelsOf = (w: Wanted): string[] => w.labels ?? single(w as never).map(subjectOf)

/** Returns a problem that names the resources of a batch instead of the positions of its changes. */
function named(problem: Problem, w: Wanted): Problem {
  if (w.path !== "batch") return problem
  const labels = labelsOf(w)
  return { ...problem, message: problem.message.replace(/changes\[(\d+)\]/g, (text, i) => labels[i] ?? text) }
}

/** Button labels for headers that override a refusal. */
const offers: Record<string, string> = {
  "x-bcn-link-to-external-host": "Link to it as an external host",
  "x-bcn-no-gateway": "Create it without a gateway",
  "x-bcn-allow-multi-label-zonenames": "Use this name with several labels",
}

/** Returns a short summary, which stays visible next to the buttons. */
function outcome(tried: Tried) {
  return (
    partsOf(tried)
      .map(([n, what]) => number(n) + " " + what)
      .join(", ") || "no changes"
  )
}

/** The result of a dry run. */
export function Effect({ tried }: { tried: Tried }) {
  const about = tried.atLeast ? "At least " : tried.estimate ? "About " : ""
  const parts = partsOf(tried)
  return (
    <div>
      <p>
        {parts.length ? (
          <>
            {about}
            {parts.map(([n, what], i) => (
              <span key={what}>
                {i ? ", " : ""}
                <strong class={what === "deleted" ? "bad-text" : ""}>
                  {i ? number(n) : counted(n, "resources")}
                  {i ? " " : " will be "}
                  {what === "new" ? "created" : what}
                </strong>
              </span>
            ))}
            .
          </>
        ) : (
          "No changes."
        )}
      </p>
      <StaticInRange r={tried.resource} />
      {tried.approval && (
        <p class="box">
          <Icon name="users" />{" "}
          {!tried.separate
            ? "This change needs an approval before it is applied."
            : tried.separate.requests < tried.separate.of
              ? `${number(tried.separate.requests)} of ${counted(tried.separate.of, "changes")} need an approval before they are applied. Each is a request of its own.`
              : `${counted(tried.separate.of, "changes")} need an approval before they are applied. Each is a request of its own.`}
        </p>
      )}
      <Operations list={readable(tried.operations ?? [])} total={parts.reduce((sum, [n]) => sum + n, 0)} />
    </div>
  )
}

/** A warning about static addresses in a new DHCP range. */
function StaticInRange({ r }: { r: Resource | undefined }) {
  const n = /DHCPRange$/.test(r?.type ?? "") && !r!.splitAroundStaticAddresses ? (r!.utilization?.assigned ?? 0) : 0
  if (!n) return null
  return (
    <p class="box warn">
      <Icon name="circle-alert" /> {counted(n, "static addresses")} in this range {n === 1 ? "is" : "are"} assigned. The
      DHCP server does not lease {n === 1 ? "it" : "them"}. To exclude {n === 1 ? "it" : "them"} from the range, set
      “Split around static addresses” to yes.
    </p>
  )
}

/** Fields that are not shown for new resources. */
const hiddenFields = ["up", "configuration", "type"]

/** The maximum number of resources whose names are looked up. */
const maxNamed = 12

/** Returns the names of the resources that the changes refer to, by id. Resources without a known name are omitted. */
export function useNames(list: Operation[]): Map<number, string> {
  const ids = new Set<number>()
  const note = (v: any) => {
    if (Array.isArray(v)) v.forEach(note)
    else if (v && typeof v === "object" && v.id && !v.name && !v.range && !v.address) ids.add(v.id)
  }
  for (const o of list)
    for (const f of o.fieldUpdates ?? [])
      if (f.name === "up" && o.operationType === "CHANGE")
        for (const v of [f.value, f.previousValue]) note(typeof v === "number" ? { id: v } : v)
      else if (!hiddenFields.includes(f.name)) {
        note(f.value)
        note(f.previousValue)
      }
  const wanted = [...ids].slice(0, maxNamed)
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
  const all = new Map(data ?? [])
  for (const o of list) if (o.name) all.set(o.resourceId, o.name)
  return all
}

/** Changes of resources, field by field. */
export function Operations({ list, total }: { list: Operation[]; total?: number }) {
  const names = useNames(list),
    schema = useSchema()
  const named = (v: any): any =>
    Array.isArray(v)
      ? v.map(named)
      : v && typeof v === "object" && names.has(v.id)
        ? { ...v, name: names.get(v.id) }
        : v
  // The parent is a number or a reference.
  const of = (f: { name: string }, v: any) => (f.name === "up" && typeof v === "number" ? named({ id: v }) : named(v))
  const text = (o: Operation, f: { name: string }, v: any) =>
    fieldText(
      schema?.types[o.resourceType]?.f.find(x => x.n === f.name),
      of(f, v),
    )
  if (!list.length) return null
  return (
    <ul class="operations" tabIndex={0} aria-label="Changes, field by field">
      {list.map((o, i) => {
        const [icon, word] = operationIcons[o.operationType] ?? ["pencil", "changed"]
        const fields = (o.fieldUpdates ?? []).filter(
          f =>
            !isEqual(f.value, f.previousValue) &&
            !(word === "new" && (hiddenFields.includes(f.name) || typeof f.value === "boolean")),
        )
        return (
          <li key={i}>
            <Icon name={icon} size={14} />
            <div>
              <span>
                <strong>{kind(o.resourceType)}</strong> <span class="mono">{nameOf(o)}</span>{" "}
                <span class="muted">{word}</span>
              </span>
              {word !== "deleted" && (
                <span class="updates">
                  {fields.slice(0, 8).map(f => (
                    <span key={f.name}>
                      <span class="muted">{fieldName(f.name)}</span>{" "}
                      {word === "changed" && (
                        <>
                          <del>{text(o, f, f.previousValue)}</del> →{" "}
                        </>
                      )}
                      <ins>{text(o, f, f.value)}</ins>
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
