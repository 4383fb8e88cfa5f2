// The change history: the user, the time and the changed fields of each transaction, and Undo.
import { useEffect, useMemo, useState } from "preact/hooks"
import { dryRun, get, query, type Operation, type Page, type Problem, type Resource, type Tried } from "../api"
import { problemOf, useData, useResource, useRows } from "../data"
import { Button, Dialog, Empty, Head, Loading, Trouble, When } from "../parts/basics"
import { Grid } from "../parts/grid"
import { shown } from "../operations"
import { Effect, Operations } from "../parts/preview"
import { latest, undoable } from "../parts/latest"
import { FilterForm, SaveRows } from "../parts/tools"
import { go, place, setQuery } from "../router"
import { session } from "../session"
import { change } from "../work"
import { filterOf } from "../filter"
import { fieldText } from "../parts/choices"
import { useSchema } from "../schema"
import { counted, number, fieldName } from "../words"

export function Changes() {
  return (
    <>
      <Head title="Changes" />
      <History path="transactions" filtered />
    </>
  )
}

/** The periods of a history: the key, the name and the begin. */
const periods: [key: string, name: string, begin: (now: Date) => Date][] = [
  ["hour", "last hour", now => new Date(now.getTime() - 3600e3)],
  ["today", "today", now => new Date(now.getFullYear(), now.getMonth(), now.getDate())],
  ["yesterday", "since yesterday", now => new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1)],
  ["week", "last 7 days", now => new Date(now.getTime() - 7 * 86400e3)],
  ["month", "last 30 days", now => new Date(now.getTime() - 30 * 86400e3)],
]

/** Returns the filter of the period in the URL; undefined for all time. */
function periodFilter(q: URLSearchParams): string | undefined {
  const time = (d: Date) => `'${d.toISOString().slice(0, 19)}Z'`,
    parsed = (name: string) => {
      const d = new Date(q.get(name) ?? "")
      return isNaN(d.getTime()) ? null : d
    }
  const key = q.get("period"),
    known = periods.find(([k]) => k === key)
  if (known) return `creationDateTime:ge(${time(known[2](new Date()))})`
  const from = key === "own" ? parsed("from") : null,
    to = key === "own" ? parsed("to") : null
  return (
    [from && `creationDateTime:ge(${time(from)})`, to && `creationDateTime:le(${time(to)})`]
      .filter(Boolean)
      .join(" and ") || undefined
  )
}

/** The control of the period. */
function Period() {
  const q = place.value.query,
    key = q.get("period") ?? ""
  return (
    <>
      <label class="inline">
        Period{" "}
        <select value={key} onChange={e => setQuery({ period: e.currentTarget.value || null, from: null, to: null })}>
          <option value="">all time</option>
          {periods.map(([k, name]) => (
            <option key={k} value={k}>
              {name}
            </option>
          ))}
          <option value="own">from … to …</option>
        </select>
      </label>
      {key === "own" &&
        ["from", "to"].map(name => (
          <label key={name} class="inline">
            {name}{" "}
            <input
              type="datetime-local"
              value={q.get(name) ?? ""}
              onChange={e => setQuery({ [name]: e.currentTarget.value || null })}
            />
          </label>
        ))}
    </>
  )
}

/** Collections whose resources contain others: their history includes the changes of the content. */
const containers = ["blocks", "networks", "ranges", "views", "zones", "servers"]

/** The changes of a transaction, as far as they are read. A transaction never changes. */
const seen = new Map<number, Page<Operation>>()

/** The largest number of transactions that are kept in memory. */
const maxSeen = 2000

/** The visible rows that wait for their changes, with the functions that show them. */
const waiting = new Map<number, { t: Resource; show: (p: Page<Operation>) => void }>()
let asking: ReturnType<typeof setTimeout> | undefined

/** Keeps the changes of a transaction and shows them. */
function keep(id: number, p: Page<Operation>, show: (p: Page<Operation>) => void) {
  if (seen.size >= maxSeen) seen.clear()
  seen.set(id, p)
  show(p)
}

/**
 * Reads the changes of the waiting rows: one request for the transactions of a single resource, and one for each of the others, which can have
 * any number of changes. A row without its changes stays as it is.
 */
async function askChanges() {
  const rows = [...waiting.values()],
    single = rows.filter(r => /^(ADD|UPDATE)_/.test(String(r.t.operation)))
  waiting.clear()
  const alone = async (list: typeof rows) => {
    for (const { t, show } of list)
      await get<Page<Operation>>(`transactions/${t.id}/operations` + query({ limit: 2, total: true }), {
        quiet: true,
      }).then(
        p => keep(t.id, p, show),
        () => {},
      )
  }
  const together = async () => {
    if (single.length < 2) return alone(single)
    const path =
      "transactions" +
      query({
        filter: `id:in(${single.map(r => r.t.id).join(",")})`,
        fields: "id,embed(operations)",
        limit: single.length,
      })
    const page = await get<Page>(path, { quiet: true }).catch(() => null)
    if (!page) return alone(single) // such as too many changes for one answer
    const found = new Map(page.data.map(t => [t.id, (t._embedded?.operations ?? []) as Operation[]]))
    for (const { t, show } of single) {
      const all = found.get(t.id)
      if (all) keep(t.id, { data: all.slice(0, 2), count: Math.min(all.length, 2), totalCount: all.length }, show)
    }
  }
  await Promise.all([together(), alone(rows.filter(r => !single.includes(r)))])
}

/** A short form of the changed fields of a transaction, loaded when the row is shown for a moment. */
function ChangedFields({ t }: { t: Resource }) {
  const [page, setPage] = useState(seen.get(t.id)),
    schema = useSchema()
  useEffect(() => {
    const known = seen.get(t.id)
    setPage(known)
    if (known || !t.changedResources) return
    waiting.set(t.id, { t, show: setPage })
    clearTimeout(asking)
    asking = setTimeout(() => void askChanges(), 150)
    return () => {
      waiting.delete(t.id)
    }
  }, [t.id])
  if (!page) return null
  const total = page.totalCount ?? page.count
  const text = (o: Operation, name: string, v: unknown) =>
    fieldText(
      schema?.types[o.resourceType]?.f.find(f => f.n === name),
      v,
    )
  return (
    <span class="cut small muted">
      {page.data.map((o, i) => {
        const fields = (o.fieldUpdates ?? []).filter(
          f =>
            !["up", "configuration", "type", "_inheritedFields"].includes(f.name) &&
            shown(f.value) !== shown(f.previousValue),
        )
        return (
          <span key={i}>
            {i ? "; " : ""}
            {total > 1 && <span class="mono">{o.name} </span>}
            {o.operationType === "CHANGE"
              ? fields.slice(0, 3).map((f, k) => (
                  <span key={f.name}>
                    {k ? ", " : ""}
                    {fieldName(f.name)} <del>{text(o, f.name, f.previousValue)}</del> →{" "}
                    <ins>{text(o, f.name, f.value)}</ins>
                  </span>
                ))
              : o.operationType === "DELETE"
                ? "deleted"
                : "new"}
            {o.operationType === "CHANGE" && fields.length > 3 ? ` and ${fields.length - 3} more` : ""}
          </span>
        )
      })}
      {total > page.data.length && `; ${number(total - page.data.length)} more resources`}
    </span>
  )
}

/** The transactions of all resources, or of one resource. Those of a container include its content. */
export function History({ path: own, filtered }: { path: string; filtered?: boolean }) {
  const q = place.value.query,
    typed = q.get("filter") ?? "",
    // computed once, so that the list stays the same
    period = useMemo(() => periodFilter(q), [q.get("period"), q.get("from"), q.get("to")]),
    contains = containers.includes(own.split("/")[0]) && own.endsWith("/transactions"),
    alone = q.get("content") === "0",
    path = contains && !alone ? own.replace(/transactions$/, "contentTransactions") : own
  const filter = [period && typed ? `(${typed})` : typed, period].filter(Boolean).join(" and ")
  const [undoing, setUndoing] = useState<Resource | null>(null)
  const rows = useRows(path, { orderBy: latest(own + filter), filter: filter || undefined }, ["transactions"])
  return (
    <>
      <div class="tools">
        {filtered && (
          <FilterForm
            table="changes"
            parameters={["filter", "period", "from", "to"]}
            placeholder="description, or principal:'ada' and operation:startsWith('DELETE')"
            of={text => filterOf(text, "description").replace(/\bprincipal:'the manager'/g, "principal:null")}
          />
        )}
        <Period />
        {contains && (
          <label class="inline">
            <input
              type="checkbox"
              checked={!alone}
              onChange={e => setQuery({ content: e.currentTarget.checked ? null : "0" })}
            />
            Include the content
          </label>
        )}
        <span class="muted">{rows.total !== undefined && counted(rows.total, "transactions")}</span>
        <span class="grow" />
        <SaveRows rows={rows} />
      </div>
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what="the history" />
      ) : (
        <Grid
          label="Changes"
          count={rows.total}
          at={rows.at}
          id={r => r.id}
          open={r => go("/ui/transactions/" + r.id)}
          empty={
            <Empty
              title={
                filter
                  ? "No changes match."
                  : session.value?.administrator
                    ? "No changes yet."
                    : "No changes visible to you."
              }
            >
              {!session.value?.administrator && "You need the history privilege to see other users' changes."}
            </Empty>
          }
          columns={[
            {
              key: "when",
              title: "Time",
              width: "9rem",
              narrow: "5.4rem",
              cell: r => <When at={r.creationDateTime} />,
            },
            {
              key: "who",
              title: "User",
              width: "minmax(6rem,10rem)",
              minor: true,
              cell: r => r.principal ?? <span class="muted">the manager</span>,
            },
            {
              key: "what",
              title: "Change",
              width: "minmax(14rem,3fr)",
              cell: r => (
                <span class="cut">
                  <a href={"/ui/transactions/" + r.id}>{r.description}</a>
                  <span class="muted small narrow-only"> {r.principal ?? "the manager"}</span>
                </span>
              ),
            },
            {
              key: "fields",
              title: "Fields",
              width: "minmax(10rem,2.4fr)",
              minor: true,
              cell: r => <ChangedFields t={r} />,
            },
            {
              key: "comment",
              title: "Comment",
              width: "minmax(4rem,1fr)",
              minor: true,
              cell: r => <span class="muted">{r.comment}</span>,
            },
            {
              key: "undo",
              title: "",
              width: "7rem",
              narrow: "4rem",
              cell: r =>
                r.revertingTransaction ? (
                  <span class="muted small">undone</span>
                ) : (
                  undoable(r) && (
                    <button class="small" aria-label={"Undo: " + r.description} onClick={() => setUndoing(r)}>
                      Undo
                    </button>
                  )
                ),
            },
          ]}
        />
      )}
      {undoing && <Undo t={undoing} close={() => setUndoing(null)} done={rows.reload} />}
    </>
  )
}

/** The undo dialog of a transaction: its preview, or the reason why it is not possible. */
export function Undo({ t, close, done }: { t: Resource; close: () => void; done: () => void }) {
  const body = { transactionType: "UNDO", transactionId: t.id },
    [over, setOver] = useState(false),
    headers = over ? { "x-bcn-force-undo": "true" } : undefined
  const tried = useData<Tried>(`undo ${t.id} ${over}`, () => dryRun("POST", "transactions", body, headers))
  const [problem, setProblem] = useState<Problem>()
  const apply = async () => {
    try {
      await change("Undone.", "POST", "transactions", body, { headers })
      close()
      done()
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  const p = problem ?? tried.problem
  return (
    <Dialog title="Undo this change?" close={close} wide>
      <p>
        <strong>{t.description}</strong>{" "}
        <span class="muted">
          by {t.principal ?? "the manager"}, <When at={t.creationDateTime} />
        </span>
      </p>
      <div class="preview" aria-live="polite">
        {p ? <Trouble problem={p} /> : tried.data ? <Effect tried={tried.data} /> : <Loading what="the preview" />}
      </div>
      <div class="buttons">
        <Button primary={!over} danger={over} icon="undo-2" disabled={!!p || !tried.data} onClick={() => void apply()}>
          {over ? "Undo despite later changes" : "Undo"}
        </Button>
        {!over && p?.code === "UndoConflict" && p.message.includes("changed afterwards") && (
          <Button
            onClick={() => {
              setProblem(undefined)
              setOver(true)
            }}
          >
            Preview undo despite later changes
          </Button>
        )}
        <Button onClick={close}>Cancel</Button>
      </div>
    </Dialog>
  )
}

export function Transaction({ id }: { id: string }) {
  const { data: t, problem, reload } = useResource("transactions/" + id)
  const [shownUp, setShownUp] = useState(100),
    [undoing, setUndoing] = useState(false)
  const path = `transactions/${id}/operations` + query({ limit: shownUp, total: true })
  const operations = useData<Page<Operation & Resource>>(t ? path : null, s => get(path, { signal: s }))
  if (!t)
    return problem ? (
      <>
        <Head title={"Transaction " + id} />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading />
    )
  return (
    <>
      <Head
        title={t.description ?? t.operation}
        kind={"Transaction " + t.id}
        crumbs={<a href="/ui/transactions">Changes</a>}
      >
        {t.revertingTransaction ? (
          <span class="muted">undone</span>
        ) : (
          undoable(t) && (
            <Button icon="undo-2" onClick={() => setUndoing(true)}>
              Undo
            </Button>
          )
        )}
      </Head>
      <dl class="facts">
        <div>
          <dt>User</dt>
          <dd>{t.principal ?? "the manager"}</dd>
        </div>
        <div>
          <dt>Time</dt>
          <dd>
            <When at={t.creationDateTime} />
          </dd>
        </div>
        {t.comment && (
          <div>
            <dt>Comment</dt>
            <dd>{t.comment}</dd>
          </div>
        )}
        {t.credential && (
          <div>
            <dt>By</dt>
            <dd>{t.credential}</dd>
          </div>
        )}
        {t.remoteAddress && (
          <div>
            <dt>From</dt>
            <dd class="mono">{t.remoteAddress}</dd>
          </div>
        )}
        {t.client && (
          <div>
            <dt>Client</dt>
            <dd>{t.client}</dd>
          </div>
        )}
        {t.undoes && (
          <div>
            <dt>Undoes</dt>
            <dd>
              <a href={"/ui/transactions/" + t.undoes}>transaction {t.undoes}</a>
            </dd>
          </div>
        )}
        {t.revertingTransaction && (
          <div>
            <dt>Undone by</dt>
            <dd>
              <a href={"/ui/transactions/" + t.revertingTransaction.id}>transaction {t.revertingTransaction.id}</a>
            </dd>
          </div>
        )}
      </dl>
      <h2>Changed fields</h2>
      {operations.problem ? (
        <Trouble problem={operations.problem} />
      ) : !operations.data ? (
        <Loading />
      ) : operations.data.data.length ? (
        <>
          <Operations list={operations.data.data} />
          {operations.data.totalCount! > operations.data.data.length && (
            <Button onClick={() => setShownUp(n => n + 400)}>Show more of {number(operations.data.totalCount!)}</Button>
          )}
        </>
      ) : (
        <p class="muted">
          {t.changedResources
            ? "You do not have access to these changes, or they are no longer stored."
            : "This transaction changed only the fleet or tokens. It cannot be undone: make the opposite change yourself."}
        </p>
      )}
      {undoing && <Undo t={t} close={() => setUndoing(false)} done={reload} />}
    </>
  )
}
