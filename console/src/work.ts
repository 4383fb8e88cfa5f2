// Making changes: each at once, with a message that can take it back.
import { call, type Answer, type Options } from "./api"
import { problemOf } from "./data"
import { changedHere } from "./live"
import { toast } from "./parts/basics"

/** Takes a transaction back; force goes over later changes of the same resources. */
export async function undo(transaction: number, force = false): Promise<boolean> {
  try {
    const r = await call(
      "POST",
      "transactions",
      { transactionType: "UNDO", transactionId: transaction },
      force ? { headers: { "x-bcn-force-undo": "true" } } : {},
    )
    changedHere("transactions")
    toast("Taken back.", r.transaction ? { action: { label: "Redo", run: () => void undo(r.transaction!) } } : {})
    return true
  } catch (e) {
    toast(problemOf(e).message, { bad: true })
    return false
  }
}

/** Makes a change and says so, with Undo. What is to be approved first is said, too. */
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
  if (r.status === 202) toast("This takes an approval: it was asked for, and is among the workflow requests.")
  else
    toast(
      typeof says === "string" ? says : says(r.body),
      r.transaction ? { action: { label: "Undo", run: () => void undo(r.transaction!) } } : {},
    )
  return r
}
