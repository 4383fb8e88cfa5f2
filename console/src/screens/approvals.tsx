// Approvals: the requested changes that wait for a decision, and the decided ones (docs/workflow.md).
import { useState } from "preact/hooks"
import { get, query, type Page } from "../api"
import { useData, useResource } from "../data"
import { Request, requests, summary, usePolling } from "../parts/approvals"
import { Button, Empty, Head, Loading, Tabs, Trouble } from "../parts/basics"
import { Delete } from "../parts/edit"
import { go, place, setQuery } from "../router"

/** The number of requests that are shown at first, and added by "Show more". */
const step = 20

export function Approvals() {
  const decided = place.value.query.get("state") === "decided",
    [most, setMost] = useState(step)
  const path =
    "workflowRequests" +
    query({
      filter: decided ? "state:in('APPROVED','DENIED')" : "state:'PENDING'",
      orderBy: decided ? "desc(modificationDateTime)" : "desc(id)",
      limit: most,
      total: true,
    })
  const { data, problem, reload } = useData<Page>(path, s => get<Page>(path, { signal: s }), ["workflowRequests"])
  usePolling(reload)
  const total = data?.totalCount ?? 0
  return (
    <>
      <Head title="Approvals" kind={data && requests(total)} />
      <Tabs
        tabs={[
          ["", "Pending"],
          ["decided", "Decided"],
        ]}
        chosen={decided ? "decided" : ""}
        choose={k => {
          setMost(step)
          setQuery({ state: k || null })
        }}
      />
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading what="the requests" />
      ) : !data.data.length ? (
        <Empty title={decided ? "No decided requests yet." : "No requests are waiting for approval."}>
          {!decided &&
            "Requests appear here if the changes of a user need an approval, or if the configuration requires two people for a type (four eyes)."}
        </Empty>
      ) : (
        <ul class="requests">
          {data.data.map(r => (
            <li key={r.id} class="card">
              <h2>
                <a href={"/ui/workflowRequests/" + r.id}>{summary(r)}</a>
              </h2>
              <Request r={r} done={reload} />
            </li>
          ))}
        </ul>
      )}
      {total > most && <Button onClick={() => setMost(most + step)}>Show more</Button>}
    </>
  )
}

/** The page of one request. */
export function RequestPage({ id }: { id: string }) {
  const { data: r, problem, reload } = useResource("workflowRequests/" + id)
  const [deleting, setDeleting] = useState(false)
  const crumbs = <a href="/ui/workflowRequests">Approvals</a>
  if (!r)
    return problem ? (
      <>
        <Head title={"Request " + id} crumbs={crumbs} />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading what="the request" />
    )
  return (
    <>
      <Head title={summary(r)} kind={"Request " + id} crumbs={crumbs}>
        {r.state !== "PENDING" && (
          <Button icon="trash-2" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        )}
      </Head>
      <section class="card">
        <Request r={r} done={reload} />
      </section>
      {deleting && <Delete r={r} close={() => setDeleting(false)} done={() => go("/ui/workflowRequests")} />}
    </>
  )
}
