// Changes of a batch that need an approval. The API turns single changes into requests, not batches, so each change is sent by itself.
import { call, Refusal, type Tried } from "./api"
import { problemOf } from "./data"
import { changedHere } from "./live"
import { counted } from "./words"
import { toast } from "./notice"
import { type Wanted } from "./staged"

/** A change of a batch. */
export type Part = Omit<Wanted, "says" | "together">

/** The maximum number of changes that are sent one by one: a user has at most as many pending requests. */
const maxSeparate = 100

/** Reports whether a change refers to an earlier one, so that they cannot be sent one by one. */
const hasReferences = (list: Part[]) => /\$\d+["/]/.test(JSON.stringify(list))

/**
 * Runs each change of a refused batch as a dry run. Throws the refusal of the batch unless the changes can be requested one by one, and that
 * of a change if one is refused for another reason. together is the reason why the changes cannot be separated.
 */
export async function tryEach(
  list: Part[],
  refusal: unknown,
  together: string | undefined,
  one: (p: Part) => Promise<Tried>,
): Promise<Tried> {
  const problem = problemOf(refusal)
  if (problem.code !== "AccessDenied" || hasReferences(list)) throw refusal
  const all: Tried = { dryRun: true, created: 0, changed: 0, deleted: 0, operations: [] }
  let requests = 0
  for (const p of list.slice(0, maxSeparate)) {
    const t = await one(p)
    all.created += t.created
    all.changed += t.changed
    all.deleted += t.deleted
    all.estimate ||= t.estimate
    all.atLeast ||= t.atLeast
    all.operations!.push(...(t.operations ?? []))
    if (t.approval) requests++
  }
  if (!requests) throw refusal
  if (together) throw new Refusal({ ...problem, message: together })
  if (list.length > maxSeparate)
    throw new Refusal({
      ...problem,
      message: `These changes need an approval. Select at most ${maxSeparate} rows: each change becomes a request.`,
    })
  return { ...all, approval: true, separate: { requests, of: list.length } }
}

/**
 * Sends the changes one by one until one fails, and shows how many were sent for approval and applied, and which one failed. labels are the
 * names of their resources.
 */
export async function sendEach(list: Part[], labels: string[]): Promise<void> {
  let requested = 0,
    applied = 0,
    refused = ""
  const comment = {}
  for (const [i, p] of list.entries())
    try {
      const r = await call(p.method, p.path, p.body, { headers: p.headers, comment })
      if (r.status === 202) requested++
      else applied++
    } catch (e) {
      if (!requested && !applied) throw e
      const rest = list.length - i - 1
      refused = ` ${labels[i]} failed: ${problemOf(e).message}` + (rest ? ` ${counted(rest, "changes")} not sent.` : "")
      break
    }
  changedHere("batch")
  changedHere("workflowRequests")
  toast(
    (requested ? `Sent ${counted(requested, "changes")} for approval.` : "") +
      (applied ? ` Applied ${counted(applied, "changes")}.` : "") +
      refused,
    { bad: !!refused },
  )
}
