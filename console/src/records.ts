// Records as lines of text, and back: NAME TTL TYPE DATA, as zone files have them, names relative to the zone.
import type { Resource } from "./api"
import type { Wanted } from "./parts/preview"

/** The data of a record, one entry for each record on the wire. */
export function dataOf(r: Resource): { type: string; data: string }[] {
  const target = (x: any) => x ? (x.absoluteName ?? x.name) + "." : "."
  switch (r.type) {
    case "HostRecord": return ((r._embedded?.addresses ?? []) as Resource[]).map(a => ({ type: a.address!.includes(":") ? "AAAA" : "A", data: a.address! }))
    case "AliasRecord": return [{ type: "CNAME", data: target(r.linkedRecord) }]
    case "MXRecord": return [{ type: "MX", data: `${r.priority ?? 0} ${target(r.linkedRecord)}` }]
    case "SRVRecord": return [{ type: "SRV", data: `${r.priority ?? 0} ${r.weight ?? 0} ${r.port ?? 0} ${target(r.linkedRecord)}` }]
    case "TXTRecord": return [{ type: "TXT", data: JSON.stringify(r.text ?? "") }]
    case "HINFORecord": return [{ type: "HINFO", data: `${JSON.stringify(r.cpu ?? "")} ${JSON.stringify(r.os ?? "")}` }]
    case "NAPTRRecord": return [{ type: "NAPTR", data: [r.order, r.preference, JSON.stringify(r.flags ?? ""), JSON.stringify(r.service ?? ""), JSON.stringify(r.regularExpression ?? r.regexp ?? ""), r.replacement || "."].join(" ") }]
    case "GenericRecord": return [{ type: r.recordType, data: r.rdata }]
    case "URIRecord": return [{ type: "URI", data: `${r.priority ?? 0} ${r.weight ?? 0} ${JSON.stringify(r.target ?? "")}` }]
    case "HTTPSRecord": case "SVCBRecord": return [{ type: r.type.replace("Record", ""), data: [r.priority, r.target || ".", r.parameters ?? r.params ?? ""].join(" ").trim() }]
  }
  return []
}

export interface Line { name: string; ttl: string; type: string; data: string }

/** A line as text. */
export function lineText(l: Line) { return `${l.name} ${l.ttl} ${l.type} ${l.data}`.replace(/ +/g, " ") }

/** The lines of a zone's records. */
export function linesOf(records: Resource[]): { line: Line; r: Resource }[] {
  return records.flatMap(r => dataOf(r).map(d => ({ r, line: { name: r.name || "@", ttl: r.ttl === null || r.ttl === undefined ? "-" : String(r.ttl), ...d } })))
}

/** Reads a line; a text says what is wrong with it. */
export function parseLine(text: string): Line | string {
  const m = /^(\S+)\s+(-|\d+)\s+([A-Za-z0-9]+)\s+(\S.*)$/.exec(text.trim())
  return m ? { name: m[1], ttl: m[2], type: m[3].toUpperCase(), data: m[4].trim() } : "A line is NAME TTL TYPE DATA; TTL may be -"
}

/** What the body of a new record is. */
function bodyOf(name: string, ttl: string, type: string, data: string[]): any | string {
  const head = { ...(name === "@" ? {} : { name }), ...(ttl === "-" ? {} : { ttl: Number(ttl) }) }
  const target = (t: string) => ({ absoluteName: t.replace(/\.$/, "") })
  const words = data[0].split(/\s+/)
  switch (type) {
    case "A": case "AAAA": return { type: "HostRecord", ...head, addresses: data.map(address => ({ address })) }
    case "CNAME": return { type: "AliasRecord", ...head, linkedRecord: target(data[0]) }
    case "MX": return words.length === 2 ? { type: "MXRecord", ...head, priority: Number(words[0]), linkedRecord: target(words[1]) } : "MX is PRIORITY NAME"
    case "SRV": return words.length === 4 ? { type: "SRVRecord", ...head, priority: Number(words[0]), weight: Number(words[1]), port: Number(words[2]), linkedRecord: target(words[3]) } : "SRV is PRIORITY WEIGHT PORT NAME"
    case "TXT": {
      const text = /^".*"$/.test(data[0]) ? (() => { try { return JSON.parse(data[0]) } catch { return data[0].slice(1, -1) } })() : data[0]
      return { type: "TXTRecord", ...head, text }
    }
  }
  return { type: "GenericRecord", ...head, recordType: type, rdata: data[0] }
}

export interface Difference { gone: string[]; come: string[]; changes: Omit<Wanted, "says">[]; faults: string[] }

/** What has to be changed so that a zone's records are what a text says. */
export function difference(zone: number, records: Resource[], text: string): Difference {
  const was = linesOf(records), texts = new Map(was.map(w => [lineText(w.line), w])), faults: string[] = [], wanted = new Map<string, Line>()
  text.split("\n").forEach((t, i) => {
    if (!t.trim() || t.trim().startsWith(";")) return
    const l = parseLine(t)
    if (typeof l === "string") faults.push(`line ${i + 1}: ${l}`)
    else wanted.set(lineText(l), l)
  })
  const gone = was.filter(w => !wanted.has(lineText(w.line))), come = [...wanted].filter(([t]) => !texts.has(t)).map(([, l]) => l)
  const changes: Difference["changes"] = [], touched = new Set<number>()
  const isHost = (l: Line) => l.type === "A" || l.type === "AAAA"
  // Hosts have all addresses of their name: one record for them all.
  const hosts = new Set([...gone.filter(g => g.r.type === "HostRecord").map(g => g.line.name), ...come.filter(isHost).map(l => l.name)])
  for (const name of hosts) {
    const now = [...wanted.values()].filter(l => isHost(l) && l.name === name), before = records.find(r => r.type === "HostRecord" && (r.name || "@") === name)
    if (before) touched.add(before.id)
    if (!now.length) changes.push({ method: "DELETE", path: "resourceRecords/" + before!.id })
    else if (before) changes.push({ method: "PATCH", path: "resourceRecords/" + before.id, body: { addresses: now.map(l => ({ address: l.data })), ttl: now[0].ttl === "-" ? null : Number(now[0].ttl) } })
    else changes.push({ method: "POST", path: `zones/${zone}/resourceRecords`, body: bodyOf(name, now[0].ttl, "A", now.map(l => l.data)) })
  }
  for (const g of gone) if (!touched.has(g.r.id) && g.r.type !== "HostRecord") {
    touched.add(g.r.id)
    changes.push({ method: "DELETE", path: "resourceRecords/" + g.r.id })
  }
  for (const l of come) if (!isHost(l)) {
    const body = bodyOf(l.name, l.ttl, l.type, [l.data])
    if (typeof body === "string") faults.push(`${lineText(l)}: ${body}`)
    else changes.push({ method: "POST", path: `zones/${zone}/resourceRecords`, body })
  }
  changes.sort((a, b) => Number(b.method === "DELETE") - Number(a.method === "DELETE"))
  return { gone: gone.map(g => lineText(g.line)), come: come.map(lineText), changes, faults }
}
