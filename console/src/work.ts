// Applying changes: each is sent at once, with a message that offers Undo.
import { call, type Answer, type Options } from "./api"
import { problemOf } from "./data"
import { changedHere } from "./live"
import { toast } from "./notice"

/** Undoes a transaction; force overrides later changes of the same resources. */
export async function undo(transaction: number, force = false): Promise<boolean> {
  try {
    const r = await call(
      "POST",
      "transactions",
      { transactionType: "UNDO", transactionId: transaction },
      force ? { headers: { "x-bcn-force-undo": "true" } } : {},
    )
    changedHere("transactions")
    toast("Undone.", r.transaction ? { action: { label: "Redo", run: () => void undo(r.transaction!) } } : {})
    return true
  } catch (e) {
    toast(problemOf(e).message, { bad: true })
    return false
  }
}

/** Applies a change and shows a message with Undo, or reports that the change was sent for approval. */
export async function change<T = any>(
  says: string | ((made: any) => string),
  method: string,
  path: string,
  body?: unknown,
  o?: Options,
): Promise<Answer<T>> {
  const r = await call<T>(method, path, body, o)
  changedHere(path)
  if (r.status === 202) changedHere("workflowRequests")
  if (r.status === 202) toast("Sent for approval. Its state is on the Approvals page.")
  else
    toast(
      typeof says === "string" ? says : says(r.body),
      r.transaction && !o?.irreversible ? { action: { label: "Undo", run: () => void undo(r.transaction!) } } : {},
    )
  return r
}
