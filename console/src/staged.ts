// The change list: staged changes that the manager previews and applies as one transaction (docs/batch.md). The browser keeps one list per
// user, shared by all tabs, until the user applies it, clears it, or signs out. A change with a secret stays in its own page only.
import { computed, signal } from "@preact/signals"
import { call, commentHeader, dryRun, isSecret, type Tried } from "./api"
import { changedHere } from "./live"

export interface Staged {
  key: number
  method: "POST" | "PATCH" | "DELETE"
  path: string
  body?: any
  headers?: Record<string, string>
  says: string
}

export const staged = signal<Staged[]>([])
export const stagedCount = computed(() => staged.value.length)

/** The id of the list's user; 0 while no user is signed in. */
let owner = 0
/** Whether the browser storage is full. The list then lives only as long as this page. */
export const full = signal(false)
const prefix = "portolan-staged-",
  place = () => prefix + owner

/** Reports whether a body contains a secret. */
export function hasSecret(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.entries(value).some(
      ([name, v]) => (isSecret(name) && v !== null && v !== "" && typeof v !== "boolean") || hasSecret(v),
    )
  )
}

/** Returns the stored list of a user, merged with the changes that only this page has, in the order of their keys. */
function kept(): Staged[] {
  if (full.value) return staged.value
  let list: unknown
  try {
    list = JSON.parse(localStorage.getItem(place()) ?? "[]")
  } catch {
    list = []
  }
  const whole = (Array.isArray(list) ? list : []).filter(
    (s): s is Staged =>
      typeof s?.key === "number" &&
      typeof s.path === "string" &&
      typeof s.says === "string" &&
      ["POST", "PATCH", "DELETE"].includes(s.method),
  )
  return [...whole, ...staged.value.filter(s => hasSecret(s.body))].sort((a, b) => a.key - b.key)
}

/** Replaces the list, here and in the other tabs. */
export function setStaged(list: Staged[]) {
  staged.value = list
  const others = list.filter(s => !hasSecret(s.body))
  try {
    if (others.length) localStorage.setItem(place(), JSON.stringify(others))
    else localStorage.removeItem(place())
    full.value = false
  } catch {
    full.value = true
  }
}

/** Adds changes to the list. */
export function stage(...changes: Omit<Staged, "key">[]) {
  const list = kept()
  for (const change of changes) {
    const at = change.method === "PATCH" ? list.findIndex(s => s.method === "PATCH" && s.path === change.path) : -1
    if (at >= 0) list[at] = { ...list[at], body: merged(list[at].body, change.body) }
    else list.push({ key: Math.max(Date.now(), (list.at(-1)?.key ?? 0) + 1), ...change })
  }
  setStaged(list)
}

const verbs: Record<string, string> = { POST: "Created", PATCH: "Changed", DELETE: "Deleted" }

/** Returns what a change applies to: its message without the verb. */
export const subjectOf = (s: Pick<Staged, "says">) =>
  s.says.replace(/^(Created|Changed|Deleted) /, "").replace(/\.$/, "")

/** Returns the single changes of a batch or of a list to create. */
export function single(change: Omit<Staged, "key">): Omit<Staged, "key">[] {
  const all: Omit<Staged, "key" | "says">[] =
    change.path === "batch"
      ? change.body.changes
      : Array.isArray(change.body)
        ? change.body.map((body: any) => ({ ...change, body }))
        : []
  return all.length
    ? all.map(c => ({
        ...c,
        ...(change.headers || c.headers ? { headers: { ...change.headers, ...c.headers } } : {}),
        says: `${verbs[c.method]} ${c.body?.range ?? c.body?.address ?? c.body?.name ?? c.path}.`,
      }))
    : [change]
}

/** Merges two changes of the same resource. User-defined fields merge one by one; all other fields are replaced. */
function merged(before: any, after: any) {
  const own =
    before.userDefinedFields && after.userDefinedFields
      ? { userDefinedFields: { ...before.userDefinedFields, ...after.userDefinedFields } }
      : {}
  return { ...before, ...after, ...own }
}

/** Matches @KEY in a path, which stands for the id of the resource that the staged change KEY creates. */
const below = /@(\d+)/

/** Returns the changes that one depends on, in order. */
export function needs(s: Staged, list: Staged[] = staged.value): Staged[] {
  const other = list.find(x => String(x.key) === below.exec(s.path)?.[1])
  return other ? [...needs(other, list), other] : []
}

/** Removes a change from the list, with the changes that depend on it. */
export function unstage(key: number) {
  const list = kept()
  setStaged(list.filter(s => s.key !== key && !needs(s, list).some(n => n.key === key)))
}

/** Returns the changes as the body of a batch. */
export function batchBody(list: Staged[] = staged.value) {
  const place = (path: string) => path.replace(below, (_, key) => "$" + list.findIndex(s => String(s.key) === key))
  return {
    changes: list.map(({ method, path, body, headers }) => ({
      method,
      path: place(path),
      ...(method === "DELETE" ? {} : { body }),
      ...(headers ? { headers } : {}),
    })),
  }
}

/** Previews changes with a dry run. */
export function tryStaged(list: Staged[] = staged.value): Promise<Tried> {
  return dryRun("POST", "batch", batchBody(list))
}

/** Runs fn in one tab at a time. */
function inOneTab<T>(fn: () => Promise<T>): Promise<T> {
  return navigator.locks ? (navigator.locks.request("portolan-staged", fn) as Promise<T>) : fn()
}

/** Returns a short hash of a text (cyrb53). As an idempotency key, it identifies a batch that is sent again after a lost response. */
function fingerprint(text: string): string {
  let a = 0xdeadbeef,
    b = 0x41c6ce57
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    a = Math.imul(a ^ c, 2654435761)
    b = Math.imul(b ^ c, 1597334677)
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36)
}

/**
 * Applies all changes of a previewed list, or none, and returns the number of the transaction. Changes that were staged meanwhile stay. A
 * list that another tab applied or changed is not applied again, and neither is a list whose response was lost.
 */
export function applyStaged(previewed: Staged[], comment: string): Promise<number> {
  return inOneTab(async () => {
    const texts = new Set(kept().map(s => JSON.stringify(s)))
    if (!previewed.every(s => texts.has(JSON.stringify(s)))) {
      staged.value = kept()
      throw new Error("The list was applied or changed in another tab. Check it again.")
    }
    const key = `console-${owner}-${previewed
      .map(s => s.key)
      .join("-")
      .slice(0, 120)}-${fingerprint(JSON.stringify([previewed, comment]))}`
    const r = await call<{ transaction: number }>("POST", "batch", batchBody(previewed), {
      headers: { "Idempotency-Key": key, ...(comment ? { [commentHeader]: comment } : {}) },
    })
    const made = new Set(previewed.map(s => JSON.stringify(s)))
    setStaged(kept().filter(s => !made.has(JSON.stringify(s))))
    changedHere("batch")
    return r.body.transaction
  })
}

/** Sets the signed-in user and deletes the lists of other users. 0 means signed out; the user's own list is then deleted unless here is set. */
export function ownedBy(user: number, here = false) {
  if (owner !== user) staged.value = []
  owner = user
  if (here) return // the other tab handles the stored list
  try {
    for (const name of Object.keys(localStorage))
      if (name.startsWith(prefix) && name !== place()) localStorage.removeItem(name)
  } catch {
    /* the browser storage is not available */
  }
  if (owner) staged.value = kept()
}

/** Follows changes of the list in other tabs. The browser asks before the user closes a page that alone holds a part of the list. */
export function watchStaged() {
  addEventListener("storage", e => {
    if (owner && (e.key === place() || e.key === null)) staged.value = kept()
  })
  addEventListener("beforeunload", e => {
    if (staged.value.some(s => full.value || hasSecret(s.body))) e.preventDefault()
  })
}

/** A change that a form describes. */
export interface Wanted {
  method: Staged["method"]
  path: string
  body?: any
  headers?: Record<string, string>
  says: string
  /** The names of the resources that the changes of the batch apply to. */
  labels?: string[]
  /** Why the changes of the batch cannot be requested one by one. */
  together?: string
}
