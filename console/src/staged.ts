// The change list: edits that are staged here, tried by the manager, and applied as one transaction (docs/batch.md). The browser keeps it, one for each
// user, in all tabs alike, until it is applied, emptied, or its user signs out. A change with a secret in it is kept by its own page alone.
import { computed, signal } from "@preact/signals"
import { call, dryRun, isSecret, type Tried } from "./api"
import { changedHere } from "./live"

export interface Staged { key: number; method: "POST" | "PATCH" | "DELETE"; path: string; body?: any; headers?: Record<string, string>; says: string }

export const staged = signal<Staged[]>([])
export const stagedCount = computed(() => staged.value.length)

/** Whose list it is, by number; 0 while nobody is signed in. full says that the browser had no room for it. */
let owner = 0, full = false
const prefix = "portolan-staged-", place = () => prefix + owner

/** Whether a secret stands anywhere in a body. */
export function hasSecret(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.entries(value).some(([name, v]) => isSecret(name) && v !== null && v !== "" || hasSecret(v))
}

/** What is kept for a user, with what this page alone has, in the order of their keys. */
function kept(): Staged[] {
  let list: unknown
  try { list = JSON.parse(localStorage.getItem(place()) ?? "[]") } catch { list = [] }
  const whole = (Array.isArray(list) ? list : []).filter((s): s is Staged => typeof s?.key === "number" && typeof s.path === "string" && typeof s.says === "string" &&
    ["POST", "PATCH", "DELETE"].includes(s.method))
  return [...whole, ...staged.value.filter(s => hasSecret(s.body))].sort((a, b) => a.key - b.key)
}

/** Puts another list in its place, here and in the other tabs. */
export function setStaged(list: Staged[]) {
  staged.value = list
  const others = list.filter(s => !hasSecret(s.body))
  try {
    if (others.length) localStorage.setItem(place(), JSON.stringify(others))
    else localStorage.removeItem(place())
    full = false
  } catch { full = true } // it lives as long as the page
}

/** Puts a change on the list. */
export function stage(change: Omit<Staged, "key">) {
  const list = kept(), key = Math.max(Date.now(), (list.at(-1)?.key ?? 0) + 1)
  const same = change.method === "PATCH" ? list.find(s => s.method === "PATCH" && s.path === change.path) : undefined
  setStaged(same ? list.map(s => s === same ? { ...same, body: { ...same.body, ...change.body } } : s) : [...list, { key, ...change }])
}

export function unstage(key: number) { setStaged(kept().filter(s => s.key !== key)) }

/** How the changes stand in a batch. */
export function batchBody(list: Staged[] = staged.value) {
  return { changes: list.map(({ method, path, body, headers }) => ({ method, path, ...(method === "DELETE" ? {} : { body }), ...(headers ? { headers } : {}) })) }
}

/** Tries all of them, or one. */
export function tryStaged(list: Staged[] = staged.value): Promise<Tried> { return dryRun("POST", "batch", batchBody(list)) }

/** Makes all of them, or none; gives the number of the transaction. */
export async function applyStaged(comment: string): Promise<number> {
  const r = await call<{ transaction: number }>("POST", "batch", batchBody(), { headers: comment ? { "x-bcn-change-control-comment": comment } : {} })
  setStaged([])
  changedHere("batch")
  return r.body.transaction
}

/** Says who has signed in: the lists of others are gone. 0 says that the user has signed out, whose list goes, too. */
export function ownedBy(user: number) {
  if (owner !== user) staged.value = []
  owner = user
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(prefix) && name !== place()) localStorage.removeItem(name)
  } catch { /* this browser keeps nothing */ }
  if (owner) staged.value = kept()
}

/** Follows what other tabs do to the list, and has the browser ask before a page goes that alone has something of it. */
export function watchStaged() {
  addEventListener("storage", e => { if (owner && (e.key === place() || e.key === null)) staged.value = kept() })
  addEventListener("beforeunload", e => { if (staged.value.some(s => full || hasSecret(s.body))) e.preventDefault() })
}
