// The changes of a transaction or a dry run as the user reads them.
import type { Operation, Tried } from "./api"
import { kind } from "./links"
import { parseAddress } from "./space"

/** Formats a value for the list of changes. */
export function shown(v: unknown): string {
  if (v === null || v === undefined || v === "") return "—"
  if (typeof v === "object") {
    const o = v as any
    if (Array.isArray(o)) return o.length ? o.map(shown).join(", ") : "—"
    if (o.id && Object.keys(o).length <= 6)
      return o.name || o.range || o.address || (o.type ? kind(o.type) + " " : "#") + o.id
    return JSON.stringify(o)
  }
  return v === true ? "yes" : v === false ? "no" : String(v)
}

/** The icon and the word of each type of change. Other changes have none: they are "changed". */
export const operationIcons: Record<string, [string, string]> = {
  ADD: ["plus", "new"],
  CREATE: ["plus", "new"],
  DELETE: ["trash-2", "deleted"],
}

/** The types of operations. A preview leaves out the resource that stands for the operation itself. */
const actionTypes = /(Move|Split|Merge|TemplateApplication)$/

/**
 * Returns the changes for the user: without the resource of the operation, addresses in ascending order, and an address that is deleted and
 * created again as unchanged.
 */
export function readable(list: Operation[]): Operation[] {
  const key = (o: Operation) => o.resourceType + " " + nameOf(o),
    gone = new Set(list.filter(o => o.operationType === "DELETE").map(key)),
    made = new Set(list.filter(o => operationIcons[o.operationType]?.[1] === "new").map(key)),
    isSame = (o: Operation) => /Address$/.test(o.resourceType) && gone.has(key(o)) && made.has(key(o))
  const all = together(list.filter(o => !actionTypes.test(o.resourceType) && !isSame(o))),
    at = (o: Operation) => (/Address$/.test(o.resourceType) ? parseAddress(nameOf(o).split(" ")[0]) : null)
  const sorted = all
    .filter(o => at(o))
    .sort((a, b) => {
      const x = at(a)!,
        y = at(b)!
      return x.v6 !== y.v6 ? (x.v6 ? 1 : -1) : x.n < y.n ? -1 : x.n > y.n ? 1 : 0
    })
  return all.map(o => (at(o) ? sorted.shift()! : o))
}

/** Combines several changes of one resource. A field that has its old value again is left out. */
function together(list: Operation[]): Operation[] {
  const first = new Map<number, Operation>()
  for (const o of list) {
    const known = first.get(o.resourceId)
    if (!known) first.set(o.resourceId, { ...o, fieldUpdates: [...(o.fieldUpdates ?? [])] })
    else if (o.operationType === "DELETE") first.set(o.resourceId, o)
    else {
      const updates = known.fieldUpdates!
      for (const f of o.fieldUpdates ?? []) {
        const i = updates.findIndex(u => u.name === f.name)
        if (i < 0) updates.push(f)
        else updates[i] = { ...updates[i], value: f.value }
      }
      if (o.name) known.name = o.name
    }
  }
  return [...first.values()].filter(
    o =>
      o.operationType !== "CHANGE" ||
      !o.fieldUpdates?.length ||
      o.fieldUpdates.some(f => !isEqual(f.value, f.previousValue)),
  )
}

/**
 * Reports whether two values of a field are equal. References are equal if their ids are, whatever they show of the resource, and a missing
 * member is equal to null.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  return comparable(a) === comparable(b)
}

function comparable(value: unknown): string {
  return JSON.stringify(value ?? null, (_, v) => {
    if (v === null || typeof v !== "object" || Array.isArray(v)) return v
    if (v.id !== undefined) return v.id
    return Object.fromEntries(
      Object.entries(v)
        .filter(([, member]) => member !== null)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    )
  })
}

/** Returns the displayed name of a changed resource. */
export function nameOf(o: Operation): string {
  return o.name ?? "#" + o.resourceId
}

/**
 * Returns the numbers of new, changed and deleted resources that the user sees. A preview has the first operations only: without all of
 * them the numbers are those of the operations.
 */
export function partsOf(tried: Tried) {
  const listed = tried.operations ?? [],
    all = listed.length === tried.created + tried.changed + tried.deleted ? listed : [],
    seen = readable(all)
  const hidden = (is: (word: string | undefined) => boolean) => {
    const count = (list: Operation[]) => list.filter(o => is(operationIcons[o.operationType]?.[1])).length
    return count(all) - count(seen)
  }
  return [
    [tried.created - hidden(w => w === "new"), "new"],
    [tried.changed - hidden(w => w === undefined), "changed"],
    [tried.deleted - hidden(w => w === "deleted"), "deleted"],
  ].filter(([n]) => n) as [number, string][]
}
