// The change list: edits that are staged here, tried by the manager, and applied as one transaction (docs/batch.md).
import { computed, signal } from "@preact/signals"
import { call, dryRun, type Tried } from "./api"
import { changedHere } from "./live"

export interface Staged { key: number; method: "POST" | "PATCH" | "DELETE"; path: string; body?: any; headers?: Record<string, string>; says: string }

export const staged = signal<Staged[]>([])
export const stagedCount = computed(() => staged.value.length)
let keys = 0

/** Puts a change on the list. */
export function stage(change: Omit<Staged, "key">) {
  const key = ++keys
  const same = change.method === "PATCH" ? staged.value.find(s => s.method === "PATCH" && s.path === change.path) : undefined
  staged.value = same ? staged.value.map(s => s === same ? { ...same, body: { ...same.body, ...change.body } } : s) : [...staged.value, { key, ...change }]
}

export function unstage(key: number) { staged.value = staged.value.filter(s => s.key !== key) }

/** How the changes stand in a batch. */
export function batchBody(list: Staged[] = staged.value) {
  return { changes: list.map(({ method, path, body, headers }) => ({ method, path, ...(method === "DELETE" ? {} : { body }), ...(headers ? { headers } : {}) })) }
}

/** Tries all of them, or one. */
export function tryStaged(list: Staged[] = staged.value): Promise<Tried> { return dryRun("POST", "batch", batchBody(list)) }

/** Makes all of them, or none; gives the number of the transaction. */
export async function applyStaged(comment: string): Promise<number> {
  const r = await call<{ transaction: number }>("POST", "batch", batchBody(), { headers: comment ? { "x-bcn-change-control-comment": comment } : {} })
  staged.value = []
  changedHere("batch")
  return r.body.transaction
}

/** Whose list it is: nobody else finds it. */
let owner = 0

/** Says who has signed in: the list of somebody else is gone. */
export function ownedBy(user: number) {
  if (owner !== user) staged.value = []
  owner = user
}

/** The browser asks before the page goes with what is only staged. */
export function watchLeaving() {
  addEventListener("beforeunload", e => { if (staged.value.length) e.preventDefault() })
}
