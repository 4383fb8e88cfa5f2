// The change history: the user, the time and the changed fields of each transaction, and Undo.
import { useState } from "preact/hooks"
import { dryRun, get, query, type Operation, type Page, type Problem, type Resource, type Tried } from "../api"
import { problemOf, useData, useResource, useRows } from "../data"
import { Button, counted, Dialog, Empty, Head, Loading, number, Trouble, When } from "../parts/basics"
import { Grid } from "../parts/grid"
import { Effect, Operations } from "../parts/preview"
import { FilterForm, SaveRows } from "../parts/tools"
import { go, place } from "../router"
import { session } from "../session"
import { change } from "../work"
import { filterOf } from "../filter"

export function Changes() {
  return (
    <>
      <Head title="Changes" />
      <History path="transactions" filtered />
    </>
  )
}

/** Newest first. Managers on one PostgreSQL number transactions independently, so these are sorted by time. Other paths use the index on id. */
const latest = (what: string) => (what.endsWith("transactions") ? "desc(creationDateTime)" : "desc(id)")

/** The transactions of all resources, or of one resource. */
export function History({ path, filtered }: { path: string; filtered?: boolean }) {
  const filter = place.value.query.get("filter") ?? "",
    [undoing, setUndoing] = useState<Resource | null>(null)
  const rows = useRows(path, { orderBy: latest(path + filter), filter: filter || undefined }, ["transactions"])
  return (
    <>
      {filtered && (
        <div class="tools">
          <FilterForm
            table="changes"
            placeholder="description, or principal:'ada' and operation:startsWith('DELETE')"
            of={text => filterOf(text, "description")}
          />
          <span class="muted">{rows.total !== undefined && counted(rows.total, "transactions")}</span>
          <span class="grow" />
          <SaveRows rows={rows} />
        </div>
      )}
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
            <Empty title={session.value?.administrator ? "No changes yet." : "No changes visible to you."}>
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
                <>
                  <a href={"/ui/transactions/" + r.id}>{r.description}</a>
                  <span class="muted small narrow-only"> {r.principal ?? "the manager"}</span>
                </>
              ),
            },
            { key: "comment", title: "Comment", minor: true, cell: r => <span class="muted">{r.comment}</span> },
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

/** Reports whether a transaction can be undone. A request for an approval is withdrawn or denied instead (docs/workflow.md). */
function undoable(t: Resource): boolean {
  return !!t.changedResources && !String(t.operation ?? "").startsWith("REQUEST_")
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
        {!over && p?.code === "UndoConflict" && (
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
            : "This transaction changed no resource and cannot be undone. Reverse it by hand."}
        </p>
      )}
      {undoing && <Undo t={t} close={() => setUndoing(false)} done={reload} />}
    </>
  )
}

/** A short list of the latest changes of a resource. */
export function LastChanges({ path }: { path: string }) {
  const url = path + query({ orderBy: latest(path), limit: 8 })
  const { data, problem, reload } = useData<Page>(url, s => get(url, { signal: s, quiet: true }), ["transactions"]),
    [undoing, setUndoing] = useState<Resource | null>(null)
  if (!data)
    return problem ? (
      <p class="muted">
        {problem.status === 403 ? "You do not have permission to view the history." : problem.message}
      </p>
    ) : (
      <Loading />
    )
  if (!data.data.length)
    return <p class="muted">{session.value?.administrator ? "No changes yet." : "No changes visible to you."}</p>
  return (
    <>
      <ul class="plain-list history">
        {data.data.map(t => (
          <li key={t.id}>
            <When at={t.creationDateTime} />
            <span>
              <a href={"/ui/transactions/" + t.id}>{t.description}</a>{" "}
              <span class="muted">{t.principal ?? "the manager"}</span>
            </span>
            {!t.revertingTransaction && undoable(t) && (
              <button class="small" aria-label={"Undo: " + t.description} onClick={() => setUndoing(t)}>
                Undo
              </button>
            )}
          </li>
        ))}
      </ul>
      {undoing && <Undo t={undoing} close={() => setUndoing(null)} done={reload} />}
    </>
  )
}
