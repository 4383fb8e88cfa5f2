// The change list: edits that are staged here, tried by the manager, and applied as one transaction (docs/batch.md). The browser keeps it, one for each
// user, in all tabs alike, until it is applied, emptied, or its user signs out. A change with a secret in it is kept by its own page alone.
import { computed, signal } from "@preact/signals"
import { call, dryRun, isSecret, type Tried } from "./api"
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

/** Whose list it is, by number; 0 while nobody is signed in. */
let owner = 0
/** Says that the browser had no room for it: it lives as long as this page. */
export const full = signal(false)
const prefix = "portolan-staged-",
  place = () => prefix + owner

/** Whether a secret stands anywhere in a body. */
export function hasSecret(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.entries(value).some(
      ([name, v]) => (isSecret(name) && v !== null && v !== "" && typeof v !== "boolean") || hasSecret(v),
    )
  )
}

/** What is kept for a user, with what this page alone has, in the order of their keys. */
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

/** Puts another list in its place, here and in the other tabs. */
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

/** Puts changes on the list. */
export function stage(...changes: Omit<Staged, "key">[]) {
  const list = kept()
  for (const change of changes) {
    const at = change.method === "PATCH" ? list.findIndex(s => s.method === "PATCH" && s.path === change.path) : -1
    if (at >= 0) list[at] = { ...list[at], body: merged(list[at].body, change.body) }
    else list.push({ key: Math.max(Date.now(), (list.at(-1)?.key ?? 0) + 1), ...change })
  }
  setStaged(list)
}

const did: Record<string, string> = { POST: "made", PATCH: "changed", DELETE: "deleted" }

/** The single changes of one that has several: of a batch, or of a list that is made. */
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
        says: `${c.body?.range ?? c.body?.address ?? c.body?.name ?? c.path} is ${did[c.method]}.`,
      }))
    : [change]
}

/** A change behind another one of the same resource: user-defined fields are changed one by one, everything else as a whole. */
function merged(before: any, after: any) {
  const own =
    before.userDefinedFields && after.userDefinedFields
      ? { userDefinedFields: { ...before.userDefinedFields, ...after.userDefinedFields } }
      : {}
  return { ...before, ...after, ...own }
}

/** A change may lie below what another one of the list makes: in its path @ and the key of that stand for the number that it will have. */
const below = /@(\d+)/

/** The changes of a list that one needs, the first one first. */
export function needs(s: Staged, list: Staged[] = staged.value): Staged[] {
  const other = list.find(x => String(x.key) === below.exec(s.path)?.[1])
  return other ? [...needs(other, list), other] : []
}

/** Takes a change off the list, with those that need it. */
export function unstage(key: number) {
  const list = kept()
  setStaged(list.filter(s => s.key !== key && !needs(s, list).some(n => n.key === key)))
}

/** How the changes stand in a batch. */
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

/** Tries all of them, or one. */
export function tryStaged(list: Staged[] = staged.value): Promise<Tried> {
  return dryRun("POST", "batch", batchBody(list))
}

/** One tab at a time. */
function alone<T>(fn: () => Promise<T>): Promise<T> {
  return navigator.locks ? (navigator.locks.request("portolan-staged", fn) as Promise<T>) : fn()
}

/** A short name of a text, the same for the same text (cyrb53): what a lost answer was given to is told by it when it is sent again. */
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
 * Makes all of a list that was looked at, or none; gives the number of the transaction. What was staged meanwhile stays; a list that another tab has
 * applied or changed is not made again, nor what the answer of was lost.
 */
export function applyStaged(seen: Staged[], comment: string): Promise<number> {
  return alone(async () => {
    const texts = new Set(kept().map(s => JSON.stringify(s)))
    if (!seen.every(s => texts.has(JSON.stringify(s)))) {
      staged.value = kept()
      throw new Error("The list was applied, or changed, in another tab: look at it again.")
    }
    const key = `console-${owner}-${seen
      .map(s => s.key)
      .join("-")
      .slice(0, 120)}-${fingerprint(JSON.stringify([seen, comment]))}`
    const r = await call<{ transaction: number }>("POST", "batch", batchBody(seen), {
      headers: { "Idempotency-Key": key, ...(comment ? { "x-bcn-change-control-comment": comment } : {}) },
    })
    const made = new Set(seen.map(s => JSON.stringify(s)))
    setStaged(kept().filter(s => !made.has(JSON.stringify(s))))
    changedHere("batch")
    return r.body.transaction
  })
}

/** Says who has signed in: the lists of others are gone. 0 says that the user has signed out, whose list goes, too, but where that is said of this page alone. */
export function ownedBy(user: number, here = false) {
  if (owner !== user) staged.value = []
  owner = user
  if (here) return // what is kept is another tab's to look after
  try {
    for (const name of Object.keys(localStorage))
      if (name.startsWith(prefix) && name !== place()) localStorage.removeItem(name)
  } catch {
    /* this browser keeps nothing */
  }
  if (owner) staged.value = kept()
}

/** Follows what other tabs do to the list, and has the browser ask before a page goes that alone has something of it. */
export function watchStaged() {
  addEventListener("storage", e => {
    if (owner && (e.key === place() || e.key === null)) staged.value = kept()
  })
  addEventListener("beforeunload", e => {
    if (staged.value.some(s => full.value || hasSecret(s.body))) e.preventDefault()
  })
}
