// Requests for approval: their number, the overview card, and one request with its fields and decision.
import { useEffect, useState } from "preact/hooks"
import { commentHeader, get, query, type Page, type Problem, type Resource } from "../api"
import { problemOf, useData } from "../data"
import { Icon } from "../icons"
import { kind, title, To } from "../links"
import { state } from "../live"
import { session } from "../session"
import { change } from "../work"
import { Button, State, Trouble, When } from "./basics"
import { Difference, type FieldUpdate } from "./difference"
import { counted } from "../words"

/** How often the pending requests are read for users who cannot follow the change feed, in milliseconds. */
const pollInterval = 15_000

/** Reads data again from time to time, and when the window gets the focus, for users who cannot follow the change feed. */
export function usePolling(reload: () => void) {
  useEffect(() => {
    if (state.value !== "off") return
    const timer = setInterval(() => {
      if (!document.hidden) reload()
    }, pollInterval)
    addEventListener("focus", reload)
    return () => {
      clearInterval(timer)
      removeEventListener("focus", reload)
    }
  }, [state.value, reload])
}

/** The pending requests that the user sees: their own, and those that they may approve. n is the number of requests to read. */
function usePendingPage(n: number) {
  const path = "workflowRequests" + query({ filter: "state:'PENDING'", orderBy: "desc(id)", limit: n, total: true })
  const { data, reload } = useData<Page>(
    session.value ? path : null,
    s => get<Page>(path, { signal: s, quiet: true }),
    ["workflowRequests"],
  )
  usePolling(reload)
  return data
}

/** The number of pending requests. */
export function usePending(): number {
  return usePendingPage(1)?.totalCount ?? 0
}

/** The number of requests on the overview. */
const maxListed = 6

/** The overview card of pending requests; absent without any. */
export function Waiting() {
  const page = usePendingPage(maxListed)
  if (!page?.totalCount) return null
  return (
    <section class="card waiting">
      <h2>
        <a href="/ui/workflowRequests">Waiting for approval</a> <b class="count">{page.totalCount}</b>
      </h2>
      <ul class="plain-list">
        {page.data.map(r => (
          <li key={r.id}>
            <a href={"/ui/workflowRequests/" + r.id}>{summary(r)}</a>{" "}
            <span class="muted">
              {isOwn(r) ? "your request" : r.principal} · <When at={r.creationDateTime} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Returns what a request asks for: "Add network …". The description names the applied change: "Added network …". */
export function summary(r: Resource): string {
  return String(r.description ?? "Request " + r.id)
    .replace(/^Added /, "Add ")
    .replace(/^Changed /, "Change ")
    .replace(/^Deleted /, "Delete ")
}

/** Reports whether the signed-in user asked for the change. */
function isOwn(r: Resource): boolean {
  return !!r.creator?.id && r.creator.id === session.value?.user.id
}

/** One request: the requester, the fields before and after, and the decision. */
export function Request({ r, done }: { r: Resource; done: () => void }) {
  const creates = /^(ADD|ASSIGN)/.test(r.requestType),
    deletes = String(r.requestType).startsWith("DELETE")
  const name = r.resource && !creates ? title(r.resource) : ""
  const pending = r.state === "PENDING",
    path = pending && !creates && !deletes ? r.resource?._links?.self?.href.replace(/^\/api\/v2\//, "") : undefined
  const now = useData<Resource>(
    path ?? null,
    s => get(path!, { signal: s, quiet: true }),
    path ? [path.split("/")[0]] : [],
  )
  return (
    <>
      <p class="muted">
        <State of={r.state} /> Requested by <strong>{r.principal ?? "a token"}</strong>,{" "}
        <When at={r.creationDateTime} />
        {r.resource && (
          <>
            {" · "}
            {creates && r.state === "PENDING" ? "in " : ""}
            {kind(r.resource.type)} <To r={r.resource} />
          </>
        )}
      </p>
      {r.comment && <blockquote>{r.comment}</blockquote>}
      {deletes ? (
        <p class="box bad">
          <Icon name="trash-2" />
          <span>
            This deletes {kind(r.resourceType)} <strong>{name}</strong> and everything in it: {r.description}
          </span>
        </p>
      ) : (
        <Difference
          type={r.resourceType}
          all={(r.fieldUpdates ?? []) as FieldUpdate[]}
          creates={creates}
          decided={!pending}
          now={now.data}
        />
      )}
      {r.dependentRequest && r.state === "PENDING" && (
        <p class="muted">
          Approve <a href={"/ui/workflowRequests/" + r.dependentRequest.id}>request {r.dependentRequest.id}</a> first.
        </p>
      )}
      {r.state === "PENDING" ? (
        <Decide r={r} done={done} />
      ) : (
        <p class="muted">
          {r.state === "APPROVED" ? "Approved" : "Denied"} by {r.decider ?? "the manager"},{" "}
          <When at={r.modificationDateTime} />
          {r.decisionComment ? `: ${r.decisionComment}` : "."}
        </p>
      )}
    </>
  )
}

/** The buttons of a pending request: Approve and Deny with a comment, or Withdraw for the requester. */
function Decide({ r, done }: { r: Resource; done: () => void }) {
  const [comment, setComment] = useState(""),
    [problem, setProblem] = useState<Problem>(),
    [busy, setBusy] = useState(false)
  const path = "workflowRequests/" + r.id
  const send = async (says: string, method: string, body?: unknown) => {
    setBusy(true)
    setProblem(undefined)
    try {
      await change(says, method, path, body, comment ? { headers: { [commentHeader]: comment } } : {})
      done()
    } catch (e) {
      setProblem(problemOf(e))
    }
    setBusy(false)
  }
  if (isOwn(r))
    return (
      <>
        {problem && <Trouble problem={problem} />}
        <div class="buttons start">
          <Button icon="x" disabled={busy} onClick={() => void send("Request withdrawn.", "DELETE")}>
            Withdraw
          </Button>
          <span class="muted">You cannot approve your own request.</span>
        </div>
      </>
    )
  return (
    <>
      <label for={"comment-" + r.id}>Comment (optional)</label>
      <input
        id={"comment-" + r.id}
        class="wide"
        value={comment}
        autocomplete="off"
        onInput={e => setComment(e.currentTarget.value)}
      />
      {problem && <Trouble problem={problem} />}
      <div class="buttons start">
        <Button
          primary
          icon="check"
          disabled={busy}
          onClick={() => void send("Approved and applied.", "PATCH", { state: "APPROVED" })}
        >
          Approve
        </Button>
        <Button icon="x" disabled={busy} onClick={() => void send("Denied.", "PATCH", { state: "DENIED" })}>
          Deny
        </Button>
      </div>
    </>
  )
}

/** Returns the number of requests as a heading: "1 request". */
export function requests(n: number) {
  return counted(n, "requests")
}
