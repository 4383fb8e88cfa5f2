// Spreadsheets of other programs: what their rows are, the fields of their columns, and the causes of errors.
import { call, get, type Page, type Resource } from "./api"
import type { Schema } from "./schema"
import { csvOf, faultsOfLog, type Fault } from "./table"

/** The kinds of rows, by type. The manager gives a row with an IPv6 address the IPv6 type. */
export const kinds: [type: string, label: string][] = [
  ["IPv4Address", "Addresses"],
  ["IPv4Network", "Networks"],
  ["IPv4Block", "Blocks"],
  ["IPv4DHCPRange", "DHCP ranges"],
  ["Zone", "Zones"],
  ["HostRecord", "Hosts in DNS"],
  ["AliasRecord", "Aliases in DNS"],
  ["MACAddress", "MAC addresses"],
  ["Device", "Devices"],
]

/** Returns the kind of rows that the header of a table suggests; empty if it has a column with the type. */
export function likelyKind(head: string[]): string {
  const plain = head.map(h => h.toLowerCase().replace(/[^a-z0-9]/g, ""))
  const has = (...names: string[]) => plain.some(p => names.includes(p))
  if (has("type", "id")) return ""
  if (has("ip", "ipaddress", "ipaddr", "ipv4address", "ipv6address", "address")) return "IPv4Address"
  if (has("network", "subnet", "prefix", "cidr")) return "IPv4Network"
  if (has("zone", "zonename", "domain")) return "Zone"
  return ""
}

/** Returns the fields that a column of a type can describe, members of objects included. */
export function fieldsOf(schema: Schema, type: string): string[] {
  const all = (schema.types[type]?.f ?? [])
    .filter(f => !f.r)
    .flatMap(f => {
      if (f.k === "object" || (f.k === "ref" && f.m)) return (f.m ?? []).filter(m => !m.r).map(m => `${f.n}.${m.n}`)
      if (f.k === "ref") return [`${f.n}.id`, `${f.n}.name`]
      return [f.n]
    })
  const also: Record<string, string[]> = {
    addresses: ["addresses[0].address"],
    macAddress: ["macAddress.address"],
    linkedRecord: ["linkedRecord.absoluteName"],
    range: ["netmask"],
  }
  for (const f of schema.types[type]?.f ?? []) if (Object.hasOwn(also, f.n)) all.push(...also[f.n])
  return [...new Set(all)].sort()
}

export interface SheetOptions {
  into?: string
  /** The type of the rows, and the fields of columns by header. */
  resourceType?: string
  columns?: Record<string, string>
  action?: string
  mode: "DRY_RUN" | "ALL_OR_NOTHING"
  comment?: string
}

export interface Sheet {
  result: Resource
  faults: Fault[]
  log: string
}

/** Imports a table, or tries it, and returns the import with the faults of its log. */
export async function importSheet(head: string[], data: string[][], options: SheetOptions): Promise<Sheet> {
  const file = new Blob([csvOf(head, data)], { type: "text/csv" })
  const { result, log } = await importFile(file, "pasted.csv", { contentType: "text/csv", ...options })
  // The log counts the lines of the file; users see the numbers of rows.
  const faults = faultsOfLog(log).map(f => ({
    ...f,
    says: f.says.replace(/\bline (\d+)\b/g, (_, line) => "row " + (Number(line) - 1)),
  }))
  return { result, faults, log }
}

/** Imports a file, or tries it, and returns the import with its log. */
export async function importFile(
  file: Blob,
  name: string,
  options: object,
): Promise<{ result: Resource; log: string }> {
  const form = new FormData()
  form.append("fileInfo", new Blob([JSON.stringify({ state: "QUEUED", ...options })], { type: "application/json" }))
  form.append("fileData", file, name)
  let result = (await call<Resource>("POST", "imports", form, { quiet: true })).body
  while (["PENDING", "QUEUED", "RUNNING"].includes(result.state)) {
    await new Promise(done => setTimeout(done, 100))
    result = await get("imports/" + result.id, { quiet: true })
  }
  const log = (await get<Page>(`imports/${result.id}/logs`, { quiet: true })).data.map(l => l.contents).join("")
  void call("DELETE", "imports/" + result.id, undefined, { quiet: true }).catch(() => {})
  return { result, log }
}

/** Returns the fields that the manager guesses for the columns of a table, by header. It tries the first row. */
export async function guessColumns(head: string[], data: string[][], type: string): Promise<Record<string, string>> {
  const { result } = await importSheet(head, data.slice(0, 1), { resourceType: type, mode: "DRY_RUN" })
  if (result.state === "FAILED") throw new Error(result.message)
  return result.columns ?? {}
}

/** A cause of errors, and its rows from 0. */
export interface Cause {
  says: string
  rows: number[]
}

/** Returns the cause of a fault. The cause of a repeated key or MAC address is the same for all its rows, and each row names its other row. */
function causeOf(says: string): string {
  if (/\brow \d+ is about the same\b/.test(says))
    return "an earlier row is about the same resource: remove one of the two"
  return says.replace(/\bhas the MAC address of row \d+/, "has the MAC address of another row")
}

/** Groups faults by their cause: their text without values. */
export function causesOf(faults: Fault[]): Cause[] {
  const by = new Map<string, Cause>()
  for (const f of faults) {
    const says = (f.field ? f.field + ": " : "") + f.says,
      key = causeOf(says).replace(/"[^"]*"|[0-9a-f:.]*[0-9][0-9a-f:./]*/gi, "…"),
      known = by.get(key)
    if (known) {
      known.rows.push(f.row)
      known.says = causeOf(known.says)
    } else by.set(key, { says, rows: [f.row] })
  }
  return [...by.values()].sort((a, b) => b.rows.length - a.rows.length)
}

/** Returns the rows with faults as CSV, with a column "error". */
export function faultyRows(head: string[], data: string[][], faults: Fault[]): string {
  const rows = [...new Set(faults.map(f => f.row))].sort((a, b) => a - b)
  const why = (row: number) =>
    faults
      .filter(f => f.row === row)
      .map(f => (f.field ? f.field + ": " : "") + f.says)
      .join("; ")
  return csvOf(
    [...head, "error"],
    rows.map(row => [...head.map((_, i) => data[row]?.[i] ?? ""), why(row)]),
  )
}
