// Bulk: rows from a file or a paste, their columns, each fault at its cell, and all of them in one change.
import { useMemo, useState } from "preact/hooks"
import { call, dryRun, type Problem } from "../api"
import { problemOf } from "../data"
import { Button, Empty, Field, Head, number, toast, Trouble } from "../parts/basics"
import { useSchema } from "../schema"
import { configuration } from "../session"
import { undo } from "../work"

/** Reads CSV, or what a spreadsheet copies: commas, semicolons or tabs, quotes where needed. */
export function parseTable(text: string): string[][] {
  const head = text.split("\n", 1)[0], separator = ["\t", ";", ","].find(s => head.includes(s)) ?? ","
  const rows: string[][] = []
  let row: string[] = [], cell = "", quoted = false
  for (let i = 0; i < text.length; i++) {
    const ch = text[i]
    if (quoted) {
      if (ch !== "\"") cell += ch
      else if (text[i + 1] === "\"") { cell += ch; i++ } else quoted = false
    } else if (ch === "\"" && cell === "") quoted = true
    else if (ch === separator) { row.push(cell); cell = "" } else if (ch === "\n") { row.push(cell.replace(/\r$/, "")); if (row.some(c => c.trim())) rows.push(row); row = []; cell = "" } else cell += ch
  }
  row.push(cell)
  if (row.some(c => c.trim())) rows.push(row)
  return rows
}

/** A body from a row: columns with dots are members of members, numbers in brackets entries of lists. */
function bodyOf(names: string[], cells: string[]): any {
  const body: any = {}
  names.forEach((name, i) => {
    const text = (cells[i] ?? "").trim()
    if (!name || text === "") return
    const value = text === "null" ? null : text === "true" || text === "TRUE" ? true : text === "false" || text === "FALSE" ? false : text
    const parts = name.replace(/\[(\d+)\]/g, ".$1").split(".")
    let at = body
    parts.forEach((p, k) => {
      if (k === parts.length - 1) at[p] = /(^|\.)(ttl|priority|weight|port|id|number)$/i.test(name) && /^\d+$/.test(text) ? Number(text) : value
      else at = at[p] ??= /^\d+$/.test(parts[k + 1]) ? [] : {}
    })
  })
  return body
}

interface Fault { row: number; field?: string; says: string }

/** Faults of a batch by their rows and fields: "changes[3]: range: ..." */
function faultsOf(p: Problem): Fault[] {
  const list = p.message.split(/; (?=changes\[\d+\])/).map((m): Fault | null => {
    const found = /^changes\[(\d+)\](?::|\.\S*:)?\s*(.*)$/s.exec(m)
    if (!found) return null
    const named = /^([A-Za-z][\w.[\]]*): /.exec(found[2])
    return { row: Number(found[1]), field: named?.[1], says: named ? found[2].slice(named[0].length) : found[2] }
  }).filter((f): f is Fault => !!f)
  for (const f of p.fields ?? []) {
    const m = /^changes\[(\d+)\]\.(.+)$/.exec(f), at = m && list.find(x => x.row === Number(m[1]))
    if (m && at && !at.field) at.field = m[2]
  }
  return list
}

const atOnce = 10_000, shownRows = 200

export function Bulk() {
  const schema = useSchema(), c = configuration.value
  const [text, type] = useState(""), [into, go] = useState(""), [mapping, map] = useState<Record<number, string>>({}), [tried, show] = useState<{ text: string; faults: Fault[]; problem?: Problem; created?: number }>(), [busy, work] = useState(false)
  const rows = useMemo(() => parseTable(text), [text])
  const head = rows[0] ?? [], data = rows.slice(1), names = head.map((h, i) => mapping[i] ?? h.trim())
  const target = into.trim().replace(/^\/?(api\/v2|ui)\//, "") || (c ? `configurations/${c}` : "")
  const types = useMemo(() => new Set(data.map(r => r[names.indexOf("type")]?.trim()).filter(Boolean)), [data, names.join()])
  const known = useMemo(() => [...new Set([...types].flatMap(t => schema?.types[t!]?.f.filter(f => !f.r).map(f => f.n) ?? []))].sort(), [types, schema])
  const changes = () => data.map(cells => {
    const body = bodyOf(names, cells), sub = collectionFor(body.type)
    return { method: "POST", path: /\/(addresses|networks|blocks|zones|resourceRecords|ranges|macAddresses|servers|views|tags|devices)$/.test(target) ? target : `${target}/${sub}`, body }
  })
  const attempt = async (keep: boolean) => {
    work(true)
    const body = { changes: changes() }
    try {
      if (keep) {
        const r = await call<{ transaction: number }>("POST", "batch", body)
        toast(`${number(data.length)} rows are made.`, { action: { label: "Undo", run: () => void undo(r.body.transaction) } })
        type("")
        show(undefined)
      } else {
        const t = await dryRun("POST", "batch", body)
        show({ text, faults: [], created: t.created })
      }
    } catch (e) {
      const p = problemOf(e)
      show({ text, faults: faultsOf(p), problem: p })
    }
    work(false)
  }
  const current = tried?.text === text ? tried : undefined
  const drop = (e: DragEvent) => { e.preventDefault(); const f = e.dataTransfer?.files[0]; if (f) void f.text().then(type) }
  return <>
    <Head title="Bulk and CSV" />
    <p class="muted">Paste rows, or drop a file: the first line names the fields. Nothing is made before all rows can be. What a table's CSV button saves can be changed and comes in by <code>portolan import file</code>, which also updates, and takes millions.</p>
    <div class="fields">
      <Field label="Below" hint={`Where the rows go: ${target || "—"}`}>{(id, d) => <input id={id} aria-describedby={d} class="mono" placeholder={c ? `networks/ID or configurations/${c}` : ""} value={into} onInput={e => go(e.currentTarget.value)} />}</Field>
      <Field label="A file">{id => <input id={id} type="file" accept=".csv,.tsv,.txt,text/csv" onChange={e => { const f = e.currentTarget.files?.[0]; if (f) void f.text().then(type) }} />}</Field>
    </div>
    <label class="hidden" for="rows">Rows</label>
    <textarea id="rows" class="mono" rows={8} spellcheck={false} placeholder={"type,name,address,state\nIPv4Address,crane-7,10.0.0.77,STATIC"} value={text} onInput={e => type(e.currentTarget.value)} onDrop={drop} onDragOver={e => e.preventDefault()} />
    {data.length > atOnce && <p class="fault">At most {number(atOnce)} rows at once: take <code>portolan import file</code> for more.</p>}
    {rows.length === 0 ? <Empty title="No rows yet." /> : <>
      <div class="tools"><Button disabled={busy || !data.length || data.length > atOnce} onClick={() => void attempt(false)}>{busy ? "Trying …" : `Try all ${number(data.length)} rows`}</Button>
        <Button primary disabled={busy || !current || !!current.problem} onClick={() => void attempt(true)}>Apply all</Button>
        <span aria-live="polite">{current && (current.problem ? <span class="bad-text">{current.faults.length ? `${current.faults.length} faults: nothing is made.` : "Refused: nothing is made."}</span> : <span>All of it can be made: {number(current.created ?? 0)} new.</span>)}</span></div>
      {current?.problem && !current.faults.length && <Trouble problem={current.problem} />}
      <div class="sheet" tabIndex={0} role="region" aria-label="The rows"><table><thead><tr><th>#</th>{head.map((h, i) => <th key={i}><label class="hidden" for={"col" + i}>Field of column {i + 1}</label>
        <input id={"col" + i} class="mono" list="known-fields" value={names[i]} onInput={e => { const to = e.currentTarget.value; map(m => ({ ...m, [i]: to })); show(undefined) }} title={h} /></th>)}<th>Fault</th></tr></thead>
        <tbody>{data.slice(0, shownRows).map((cells, n) => {
          const faults = current?.faults.filter(f => f.row === n) ?? []
          return <tr key={n} class={faults.length ? "faulty" : ""}><td class="num muted">{n + 1}</td>{head.map((_, i) => { const f = faults.find(f => f.field && (f.field === names[i] || names[i].startsWith(f.field + ".") || f.field.startsWith(names[i] + "."))); return <td key={i} class={f ? "faulty" : ""} title={f?.says}>{cells[i]}</td> })}
            <td class="bad-text">{faults.map((f, k) => <span key={k}>{f.field ? f.field + ": " : ""}{f.says} </span>)}</td></tr>
        })}</tbody></table></div>
      {data.length > shownRows && <p class="muted">The first {shownRows} of {number(data.length)} rows are shown{current?.faults.some(f => f.row >= shownRows) && <>; faults in rows {current.faults.filter(f => f.row >= shownRows).slice(0, 20).map(f => f.row + 1).join(", ")}</>}.</p>}
      <datalist id="known-fields">{known.map(n => <option key={n} value={n} />)}</datalist>
    </>}
  </>
}

/** The subcollection that a type is made in. */
function collectionFor(type: string): string {
  if (/Block$/.test(type)) return "blocks"
  if (/Network$/.test(type)) return "networks"
  if (/Address$/.test(type) && type !== "MACAddress") return "addresses"
  if (/DHCPRange$/.test(type)) return "ranges"
  if (/Record$/.test(type)) return "resourceRecords"
  if (/Zone$/.test(type)) return "zones"
  return type ? type[0].toLowerCase() + type.slice(1) + "s" : ""
}
