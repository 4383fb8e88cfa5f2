// Conversion between records and lines of text: NAME TTL TYPE DATA, as in zone files, with names relative to the zone.
import type { Resource } from "./api"
import { Wanted } from "./staged"

/** Returns a name as record data: fully qualified, with a trailing dot. */
const target = (x: any) => (x ? (x.absoluteName ?? x.name ?? "") + "." : ".")

/** Returns the data of a record, one entry for each record on the wire. */
export function dataOf(r: Resource): { type: string; data: string }[] {
  switch (r.type) {
    case "HostRecord":
      return ((r._embedded?.addresses ?? []) as Resource[]).map(a => ({
        type: a.address!.includes(":") ? "AAAA" : "A",
        data: a.address!,
      }))
    case "AliasRecord":
      return [{ type: "CNAME", data: target(r.linkedRecord) }]
    case "MXRecord":
      return [{ type: "MX", data: `${r.priority ?? 0} ${target(r.linkedRecord)}` }]
    case "SRVRecord":
      return [{ type: "SRV", data: `${r.priority ?? 0} ${r.weight ?? 0} ${r.port ?? 0} ${target(r.linkedRecord)}` }]
    case "TXTRecord":
      return [{ type: "TXT", data: JSON.stringify(r.text ?? "") }]
    case "HINFORecord":
      return [{ type: "HINFO", data: `${JSON.stringify(r.cpu ?? "")} ${JSON.stringify(r.os ?? "")}` }]
    case "NAPTRRecord":
      return [
        {
          type: "NAPTR",
          data: [
            r.order ?? 0,
            r.preference ?? 0,
            JSON.stringify(r.flags ?? ""),
            JSON.stringify(r.service ?? ""),
            JSON.stringify(r.regularExpression ?? ""),
            r.replacement || ".",
          ].join(" "),
        },
      ]
    case "URIRecord":
      return [{ type: "URI", data: `${r.priority ?? 0} ${r.weight ?? 0} ${JSON.stringify(r.target ?? "")}` }]
    case "HTTPSRecord":
    case "SVCBRecord":
      return [
        {
          type: r.type.slice(0, -6),
          data: `${r.priority ?? 0} ${target(r.linkedRecord)}${r.serviceParameters ? " " + JSON.stringify(r.serviceParameters) : ""}`,
        },
      ]
    case "GenericRecord":
      return [{ type: r.recordType, data: r.rdata }]
  }
  return []
}

export interface Line {
  name: string
  ttl: string
  type: string
  data: string
}

/** Returns a line as text. Quoted text stays unchanged. */
export function lineText(l: Line) {
  return `${l.name} ${l.ttl} ${l.type} ${l.data}`
}

/** Returns the lines of a zone's records. */
export function linesOf(records: Resource[]): { line: Line; r: Resource }[] {
  return records.flatMap(r =>
    dataOf(r).map(d => ({
      r,
      line: { name: r.name || "@", ttl: r.ttl === null || r.ttl === undefined ? "-" : String(r.ttl), ...d },
    })),
  )
}

/** Parses a line. A returned string is the error. */
export function parseLine(text: string): Line | string {
  const m = /^(\S+)\s+(?:(-|\d+)\s+)?(?:IN\s+)?(?:(\d+)\s+)?([A-Za-z][A-Za-z0-9]*)\s+(\S.*)$/i.exec(text.trim())
  return m && m[4].toUpperCase() !== "IN"
    ? { name: m[1], ttl: m[2] ?? m[3] ?? "-", type: m[4].toUpperCase(), data: m[5].trim() }
    : "a line must be NAME TTL TYPE DATA, where TTL is optional or -"
}

/** The types that a line can have, in addition to the generic record types of the schema. */
const lineTypes = ["A", "AAAA", "CNAME", "MX", "SRV", "TXT"]

/** Types whose data does not fit a line. Users edit them on their own pages. */
const ownPageTypes = ["NAPTR", "HINFO", "URI", "HTTPS", "SVCB"]

/** Returns the fields of the record in a line, without its name. A returned string is the error. */
function fieldsOf(type: string, data: string): { type: string; fields: any } | string {
  const named = (t: string) => ({ absoluteName: t.replace(/\.$/, "") }),
    words = data.split(/\s+/)
  switch (type) {
    case "CNAME":
      return { type: "AliasRecord", fields: { linkedRecord: named(data) } }
    case "MX":
      return words.length === 2
        ? { type: "MXRecord", fields: { priority: Number(words[0]), linkedRecord: named(words[1]) } }
        : "MX data must be PRIORITY NAME"
    case "SRV":
      return words.length === 4
        ? {
            type: "SRVRecord",
            fields: {
              priority: Number(words[0]),
              weight: Number(words[1]),
              port: Number(words[2]),
              linkedRecord: named(words[3]),
            },
          }
        : "SRV data must be PRIORITY WEIGHT PORT NAME"
    case "TXT":
      if (!data.startsWith('"')) return { type: "TXTRecord", fields: { text: data } }
      try {
        return { type: "TXTRecord", fields: { text: JSON.parse(data) } }
      } catch {
        return 'the quotes in the text do not match; write " inside a text as \\"'
      }
  }
  if (ownPageTypes.includes(type)) return `create and change ${type} records on their own pages`
  return { type: "GenericRecord", fields: { recordType: type, rdata: data } }
}

export interface Difference {
  gone: string[]
  come: string[]
  changes: Omit<Wanted, "says">[]
  faults: string[]
}

const ttlOf = (l: Line) => (l.ttl === "-" ? null : Number(l.ttl))

/**
 * Returns the changes that turn these records into a text. Other records of the zone stay unchanged. Names in data without a trailing dot are
 * relative to origin. types are the generic record types.
 */
export function difference(zone: number, records: Resource[], text: string, origin = "", types?: string[]): Difference {
  const was = linesOf(records),
    texts = new Set(was.map(w => lineText(w.line))),
    faults: string[] = [],
    wanted = new Map<string, Line>()
  text.split("\n").forEach((t, i) => {
    if (!t.trim() || t.trim().startsWith(";")) return
    const l = parseLine(t)
    if (typeof l === "string") {
      faults.push(`line ${i + 1}: ${l}`)
      return
    }
    if (types && ![...lineTypes, ...ownPageTypes, ...types].includes(l.type) && !/^TYPE\d+$/.test(l.type)) {
      faults.push(`line ${i + 1}: ${l.type} is not a record type`)
      return
    }
    if (origin && ["CNAME", "MX", "SRV"].includes(l.type))
      l.data = l.data.replace(/(\S+)$/, n => (n.endsWith(".") ? n : n === "@" ? origin + "." : `${n}.${origin}.`))
    wanted.set(lineText(l), l)
  })
  const gone = was.filter(w => !wanted.has(lineText(w.line))),
    come = [...wanted].filter(([t]) => !texts.has(t)).map(([, l]) => l)
  const changes: Difference["changes"] = []
  const isHost = (l: Line) => l.type === "A" || l.type === "AAAA"
  // A host record holds all addresses of its name.
  for (const name of new Set([
    ...gone.filter(g => g.r.type === "HostRecord").map(g => g.line.name),
    ...come.filter(isHost).map(l => l.name),
  ])) {
    const now = [...wanted.values()].filter(l => isHost(l) && l.name === name),
      before = records.find(r => r.type === "HostRecord" && (r.name || "@") === name)
    if (new Set(now.map(l => l.ttl)).size > 1) faults.push(`${name}: all addresses of a host must have the same TTL`)
    if (!now.length) changes.push({ method: "DELETE", path: "resourceRecords/" + before!.id })
    else if (before)
      changes.push({
        method: "PATCH",
        path: "resourceRecords/" + before.id,
        body: { addresses: now.map(l => ({ address: l.data })), ttl: ttlOf(now[0]) },
      })
    else
      changes.push({
        method: "POST",
        path: `zones/${zone}/resourceRecords`,
        body: {
          type: "HostRecord",
          name,
          addresses: now.map(l => ({ address: l.data })),
          ...(ttlOf(now[0]) === null ? {} : { ttl: ttlOf(now[0]) }),
        },
      })
  }
  // A line that replaces one of the same name and type changes that record, which keeps its comment and its history.
  const left = gone.filter(g => g.r.type !== "HostRecord")
  for (const l of come) {
    if (isHost(l)) continue
    const f = fieldsOf(l.type, l.data)
    if (typeof f === "string") {
      faults.push(`${lineText(l)}: ${f}`)
      continue
    }
    const i = left.findIndex(g => g.line.name === l.name && g.line.type === l.type)
    if (i >= 0) {
      const { recordType: _, ...fields } = f.fields
      changes.push({ method: "PATCH", path: "resourceRecords/" + left[i].r.id, body: { ...fields, ttl: ttlOf(l) } })
      left.splice(i, 1)
    } else
      changes.push({
        method: "POST",
        path: `zones/${zone}/resourceRecords`,
        body: { type: f.type, name: l.name, ...f.fields, ...(ttlOf(l) === null ? {} : { ttl: ttlOf(l) }) },
      })
  }
  for (const g of left) changes.push({ method: "DELETE", path: "resourceRecords/" + g.r.id })
  const order = { DELETE: 0, PATCH: 1, POST: 2 }
  changes.sort((a, b) => order[a.method] - order[b.method])
  return { gone: gone.map(g => lineText(g.line)), come: come.map(lineText), changes, faults }
}
