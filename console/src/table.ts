// Spreadsheet rows: parsing, and the API request for each row.
import { literal, query, get, type Page, type Problem } from "./api"
import type { Schema } from "./schema"
import { parseSpan } from "./space"

/** Parses CSV or cells copied from a spreadsheet: commas, semicolons or tabs, quotes where needed. Empty rows are skipped. */
export function parseTable(text: string): string[][] {
  const head = text.split("\n", 1)[0],
    separator = ["\t", ";", ","].find(s => head.includes(s)) ?? ","
  const rows: string[][] = []
  let row: string[] = [],
    cell = "",
    quoted = false
  const end = () => {
    row.push(cell.replace(/\r$/, ""))
    if (row.some(c => c.trim())) rows.push(row)
    row = []
    cell = ""
  }
  for (let i = 0; i < text.length; i++) {
    const ch = text[i]
    if (quoted) {
      if (ch !== '"') cell += ch
      else if (text[i + 1] === '"') {
        cell += ch
        i++
      } else quoted = false
    } else if (ch === '"' && cell === "") quoted = true
    else if (ch === separator) {
      row.push(cell)
      cell = ""
    } else if (ch === "\n") end()
    else cell += ch
  }
  end()
  return rows
}

/** The maximum number of entries of a list in a row. */
const maxEntries = 100

/**
 * Returns the request body of a row. Dots in a column name nested members, and numbers in brackets name entries of lists. An empty cell sets
 * nothing, and null clears a value. The field decides whether a cell is a number, a boolean or text.
 */
export function bodyOf(
  schema: Schema | undefined,
  names: string[],
  cells: string[],
  type?: string,
): Record<string, any> {
  const body: Record<string, any> = Object.create(null)
  if (type) body.type = type
  const given = (cells[names.indexOf("type")] ?? "").trim() || type,
    fields = given && schema && Object.hasOwn(schema.types, given) ? schema.types[given].f : []
  names.forEach((name, i) => {
    const text = (cells[i] ?? "").trim().replace(/^'(?=[=+\-@'])/, ""),
      parts = name.replace(/\[(\d+)\]/g, ".$1").split(".")
    if (!name || text === "" || parts.some(p => p in Object.prototype || (/^\d+$/.test(p) && Number(p) >= maxEntries)))
      return
    const kind = fields.find(f => f.n === parts[0])?.k
    const value =
      text === "null"
        ? null
        : parts.length === 1 && kind === "yes" && /^(true|false)$/i.test(text)
          ? text.toLowerCase() === "true"
          : (parts.length === 1 ? kind === "number" : parts[parts.length - 1] === "id") && /^\d+$/.test(text)
            ? Number(text)
            : text
    let at: any = body
    parts.forEach((p, k) => {
      if (k === parts.length - 1) at[p] = value
      else at = at[p] ??= /^\d+$/.test(parts[k + 1]) ? [] : Object.create(null)
    })
  })
  return body
}

/** Replaces location codes by locations, and returns a fault for each unknown code. */
export async function located(bodies: Record<string, any>[]): Promise<Fault[]> {
  const codes = [...new Set(bodies.map(b => b.location).filter(l => typeof l === "string"))],
    known = new Map<string, number>()
  for (let i = 0; i < codes.length; i += 100) {
    const found = await get<Page>(
      "locations" +
        query({
          filter: `code:in(${codes
            .slice(i, i + 100)
            .map(literal)
            .join(",")})`,
          limit: 1000,
          fields: "id,code",
        }),
      { quiet: true },
    )
    for (const l of found.data) known.set(l.code, l.id)
  }
  return bodies.flatMap((b, row) => {
    if (typeof b.location !== "string") return []
    const id = known.get(b.location)
    if (id) b.location = { id }
    return id ? [] : [{ row, field: "location", says: `No location has the code ${b.location}.` }]
  })
}

/** Returns the columns that cannot be fields. */
export function badColumns(names: string[], known?: string[]): string[] {
  return names.filter(
    n =>
      (known && n !== "" && !n.startsWith("_") && !known.includes(n.split(/[.[]/)[0])) ||
      n
        .replace(/\[(\d+)\]/g, ".$1")
        .split(".")
        .some(p => p in Object.prototype || (/^\d+$/.test(p) && Number(p) >= maxEntries)),
  )
}

/** Returns the import target: a collection, or a resource with a collection per type. A range selects its network or block. */
export async function targetOf(text: string, configuration: number | null, signal: AbortSignal): Promise<string> {
  const path = text
    .trim()
    .replace(/^\/?(api\/v2|ui)\//, "")
    .replace(/[?#].*$/, "")
  if (!path) return configuration ? `configurations/${configuration}` : ""
  if (!parseSpan(path)) return path
  for (const collection of ["networks", "blocks"]) {
    const found = await get<Page>(
      collection +
        query({
          filter: `range:${literal(path)}` + (configuration ? ` and configuration.id:${configuration}` : ""),
          limit: 1,
          fields: "id",
        }),
      { signal, quiet: true },
    )
    if (found.data[0]) return `${collection}/${found.data[0].id}`
  }
  throw new Error("No network or block has the range " + path + ".")
}

/** Returns the collection for a type below a target, which may be a collection itself; empty if there is none. */
export function collectionFor(schema: Schema | undefined, target: string, type: string | undefined): string {
  const [collection, , below] = target.split("/")
  if (!schema || below || !target.includes("/")) return target
  const subs = Object.hasOwn(schema.collections, collection) ? (schema.collections[collection].b ?? {}) : {}
  const sub = Object.keys(subs).find(s => type && subs[s].n && Object.hasOwn(subs[s].n!, type))
  return sub ? `${target}/${sub}` : ""
}

/** Returns the types that can be created below a target. */
export function makeable(schema: Schema, target: string): string[] {
  const [collection, , below] = target.split("/"),
    c = Object.hasOwn(schema.collections, collection) ? schema.collections[collection] : undefined
  if (!c) return []
  if (below) return Object.keys(c.b?.[below]?.n ?? {})
  return target.includes("/") ? Object.values(c.b ?? {}).flatMap(s => Object.keys(s.n ?? {})) : Object.keys(c.n ?? {})
}

/** Returns the type of a row without a type column, from its addresses and ranges. */
export function typeFor(target: string, names: string[], cells: string[]): string | undefined {
  const cell = (name: string) => cells[names.indexOf(name)] ?? ""
  if (cell("address")) return cell("address").includes(":") ? "IPv6Address" : "IPv4Address"
  if (cell("range"))
    return (
      (cell("range").includes(":") ? "IPv6" : "IPv4") +
      (target.startsWith("networks/")
        ? "DHCPRange"
        : target.endsWith("/blocks") || target.startsWith("configurations/")
          ? "Block"
          : "Network")
    )
  return undefined
}

/** Returns rows as CSV (RFC 4180). */
export function csvOf(names: string[], rows: string[][]): string {
  const cell = (t: string) => (/[",\n\r]/.test(t) ? `"${t.replaceAll('"', '""')}"` : t)
  return [names, ...rows].map(r => names.map((_, i) => cell(r[i] ?? "")).join(",") + "\n").join("")
}

/** Parses the faults in the log of an import: "line 3: InvalidEnumValue: state: ..."; its first line names the columns. */
export function faultsOfLog(log: string): Fault[] {
  return log
    .split("\n")
    .map((l): Fault | null => {
      const m = /^line (\d+): (?:[A-Z]\w+: )?(?:([a-z][\w.[\]]*): )?(.*)$/.exec(l)
      if (/^line \d+: changed: /.test(l)) return null // not a fault
      const left = m && /^left as it is, because it cannot be changed: (\w+)/.exec(m[3])
      return m ? { row: Number(m[1]) - 2, field: m[2] ?? left?.[1], says: m[3] } : null
    })
    .filter((f): f is Fault => !!f && f.row >= 0)
}

/** Reports whether a log of an import has no lines for some of the faults, because it is full. */
export const isLogFull = (log: string) => /^the log has no room for more lines/m.test(log)

export interface Fault {
  row: number
  field?: string
  says: string
}

/** Parses the faults of a batch by row and field: "changes[3]: range: ..." */
export function faultsOf(p: Problem): Fault[] {
  const list = p.message
    .split(/; (?=changes\[\d+\])/)
    .map((m): Fault | null => {
      const found = /^changes\[(\d+)\](?::|\.\S*:)?\s*(.*)$/s.exec(m)
      if (!found) return null
      const named = /^([A-Za-z][\w.[\]]*): /.exec(found[2])
      return { row: Number(found[1]), field: named?.[1], says: named ? found[2].slice(named[0].length) : found[2] }
    })
    .filter((f): f is Fault => !!f)
  for (const f of p.fields ?? []) {
    const m = /^changes\[(\d+)\]\.(.+)$/.exec(f),
      at = m && list.find(x => x.row === Number(m[1]))
    if (m && at && !at.field) at.field = m[2]
  }
  return list
}

/** Saves a text as a file of the browser. */
export function saveText(name: string, text: string) {
  const a = document.createElement("a")
  a.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }))
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000)
}
