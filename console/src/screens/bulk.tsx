// Bulk import: rows from a file or the clipboard, the mapping of columns, errors at their cells, and one change for all rows.
import { useEffect, useMemo, useState } from "preact/hooks"
import { call, dryRun, get, literal, query, type Page, type Problem } from "../api"
import { problemOf, useData } from "../data"
import { Button, Empty, Field, Head, Trouble } from "../parts/basics"
import { LeaseFile } from "../parts/leasefile"
import { useSchema } from "../schema"
import { guardLeaving } from "../router"
import { configuration } from "../session"
import { causesOf, faultyRows, fieldsOf, guessColumns, importSheet, kinds, likelyKind } from "../sheet"
import {
  badColumns,
  bodyOf,
  collectionFor,
  csvOf,
  faultsOf,
  isLogFull,
  located,
  makeable,
  parseTable,
  saveText,
  targetOf,
  typeFor,
  type Fault,
} from "../table"
import { changedHere } from "../live"
import { undo } from "../work"
import { counted, number } from "../words"
import { toast } from "../notice"

const maxRows = 10_000,
  shownRows = 200,
  maxFaults = 100,
  maxCauses = 20

/** The time for finding further faults after the first ones, in milliseconds. */
const patience = 10_000

interface One {
  method: string
  path: string
  body: Record<string, any>
}

interface Trial {
  faults: Fault[]
  problem?: Problem
  created?: number
  updated?: number
  /** Further errors may exist. */
  more?: boolean
  /** The dry run ended before its last row. */
  partly?: boolean
}

/**
 * Previews the creation of all rows. The manager stops a dry run when a refused row could affect the rows after it. The rows without a fault
 * are tried again until no new fault appears, so that the user sees all faults at once. A dry run of many rows may end before the last one.
 */
async function trial(list: One[]): Promise<Trial> {
  const faults = await located(list.map(one => one.body)),
    until = performance.now() + patience
  list.forEach((one, row) => {
    if (/^configurations\/\d+$/.test(one.path))
      faults.push({
        row,
        says: 'Choose where to import, or set the mode to "create or update".',
      })
  })
  let problem: Problem | undefined = faults.length
    ? { status: 400, code: "Nowhere", message: "Some rows have no import target." }
    : undefined
  for (;;) {
    const open = list.map((_, row) => row).filter(row => !faults.some(f => f.row === row))
    if (!open.length) return { faults, problem }
    try {
      const t = await dryRun("POST", "batch", { changes: open.map(row => list[row]) })
      return { faults, problem, created: t.created, partly: t.atLeast, more: t.atLeast }
    } catch (e) {
      const p = problemOf(e),
        found = faultsOf(p).map(f => ({ ...f, row: open[f.row] }))
      problem ??= p
      faults.push(...found)
      if (!found.length) return { faults, problem: p }
      if (faults.length >= maxFaults || performance.now() > until) return { faults, problem, more: true }
    }
  }
}

export function Bulk() {
  const schema = useSchema(),
    c = configuration.value
  const [text, setText] = useState(""),
    [into, setInto] = useState(""),
    [mapping, setMapping] = useState<Record<number, string>>({}),
    [chosen, setChosen] = useState<string | null>(null),
    [columns, setColumns] = useState<Record<string, string>>({}),
    [guessed, setGuessed] = useState<{ of: string; columns?: Record<string, string>; problem?: Problem }>(),
    [tried, setTried] = useState<Trial & { key: string }>(),
    [busy, setBusy] = useState(false)
  const rows = useMemo(() => parseTable(text), [text]),
    head = rows[0] ?? [],
    data = rows.slice(1),
    heads = head.join("\t")
  useEffect(() => setMapping({}), [heads]) // new columns need a new mapping
  const target = useData<string>(`target ${into} ${c}`, signal => targetOf(into, c, signal))
  // The rows of another program: the manager guesses the fields of the columns, and each row finds its parent.
  const likelyOne = likelyKind(head),
    foreign =
      !!likelyOne &&
      !!schema &&
      (!!target.data?.startsWith("configurations/") ||
        badColumns(
          head,
          schema.types[likelyOne].f.map(f => f.n),
        ).length > 0),
    kind = chosen ?? (foreign ? likelyOne : ""),
    sheet = kind + "\n" + heads
  useEffect(() => {
    setColumns({})
    setGuessed(undefined)
    if (!kind || !data.length) return
    let late = false
    guessColumns(head, data, kind)
      .then(g => late || setGuessed({ of: sheet, columns: g }))
      .catch(e => late || setGuessed({ of: sheet, problem: problemOf(e) }))
    return () => {
      late = true
    }
  }, [sheet, !data.length])
  const guess = guessed?.of === sheet ? guessed : undefined,
    fieldOf = (h: string) => columns[h.trim()] ?? guess?.columns?.[h.trim()] ?? ""
  const names = head.map((h, i) => (kind ? fieldOf(h) : (mapping[i] ?? h.trim())))
  const types = useMemo(
    () =>
      new Set(
        data
          .map(r => r[names.indexOf("type")]?.trim() || (target.data && typeFor(target.data, names, r)))
          .filter(Boolean),
      ),
    [data, names.join(), target.data],
  )
  // Without a type column, the rows can have any type that the target can contain.
  const likely = useMemo(
    () => (types.size || !target.data || !schema ? [...types] : makeable(schema, target.data)),
    [types, schema, target.data],
  )
  const known = useMemo(
    () => [...new Set(likely.flatMap(t => schema?.types[t!]?.f.filter(f => !f.r).map(f => f.n) ?? []))].sort(),
    [likely, schema],
  )
  const [column, setColumn] = useState(""),
    [filling, setFilling] = useState("")
  const widen = () => {
    setText(
      csvOf(
        [...names, column],
        data.map(r => [...names.map((_, i) => r[i] ?? ""), filling]),
      ),
    )
    setColumn("")
    setFilling("")
  }
  // An exported collection has the columns of all its types. A name that none of the types has is not a valid column.
  const readable = useMemo(() => {
    if (!types.size || !schema) return undefined
    const relatives = Object.values(schema.collections)
      .map(c => c.t ?? [])
      .filter(t => t.some(n => types.has(n)))
      .flat()
    return ["id", "type", "view", ...new Set(relatives.flatMap(t => schema.types[t]?.f.map(f => f.n) ?? []))]
  }, [known, types, schema])
  const bad = kind ? [] : badColumns(names, readable)
  useEffect(() => {
    if (!text) return
    guardLeaving(() => confirm("The rows are not applied. Leave the page and discard them?"))
    return () => guardLeaving(null)
  }, [!text])
  const [wanted, setWanted] = useState<boolean | null>(null),
    changes = wanted ?? names.includes("id") // an exported table identifies its resources by id
  const key = JSON.stringify([text, names, target.data, changes, kind]),
    current = tried?.key === key ? tried : undefined
  /** Imports the rows: creates new resources and updates existing ones. keep false is a dry run. */
  const imported = async (keep: boolean) => {
    const comment = "console " + crypto.randomUUID()
    const {
      result: r,
      faults,
      log,
    } = await importSheet(kind ? head : names, data, {
      into: target.data,
      mode: keep ? "ALL_OR_NOTHING" : "DRY_RUN",
      comment,
      ...(kind && {
        resourceType: kind,
        columns: Object.fromEntries(head.map(h => [h.trim(), fieldOf(h)])),
        action: changes ? "CREATE_OR_UPDATE" : "CREATE",
      }),
    })
    const problem =
      r.refused || r.state === "FAILED"
        ? { status: 400, code: "Refused", message: r.message ?? (log || "Some rows were refused.") }
        : undefined
    if (problem || !keep) {
      setTried({ key, faults, problem, created: r.created, updated: r.updated, more: isLogFull(log) })
      return
    }
    const t = await get<Page>("transactions" + query({ filter: `comment:${literal(comment)}`, limit: 1 }), {
      quiet: true,
    })
    changedHere("batch")
    toast(
      `${number(r.created)} created, ${number(r.updated)} updated.`,
      t.data[0] ? { action: { label: "Undo", run: () => void undo(t.data[0].id) } } : {},
    )
    setText("")
    setTried(undefined)
  }
  const attempt = async (keep: boolean) => {
    setBusy(true)
    if (changes || kind) {
      try {
        await imported(keep)
      } catch (e) {
        setTried({ key, faults: [], problem: problemOf(e) })
      }
      setBusy(false)
      return
    }
    const list = data.map(cells => {
      const body = bodyOf(
        schema,
        names,
        cells,
        cells[names.indexOf("type")]?.trim() ? undefined : typeFor(target.data!, names, cells),
      )
      return { method: "POST", path: collectionFor(schema, target.data!, body.type) || target.data!, body }
    })
    try {
      if (keep) {
        const nowhere = await located(list.map(one => one.body))
        if (nowhere.length) throw new Error("Some locations no longer exist. Preview the rows again.")
        const r = await call<{ transaction: number }>("POST", "batch", { changes: list })
        changedHere("batch")
        toast(`${counted(data.length, "rows")} created.`, {
          action: { label: "Undo", run: () => void undo(r.body.transaction) },
        })
        setText("")
        setTried(undefined)
      } else setTried({ key, ...(await trial(list)) })
    } catch (e) {
      const p = problemOf(e)
      setTried({ key, faults: faultsOf(p), problem: p })
    }
    setBusy(false)
  }
  const drop = (e: DragEvent) => {
    e.preventDefault()
    const f = e.dataTransfer?.files[0]
    if (f) void f.text().then(setText)
  }
  const beyond = current?.faults.filter(f => f.row >= shownRows) ?? []
  return (
    <>
      <Head title="Bulk and CSV" />
      <p class="muted">
        Paste rows from a spreadsheet or another program, or drop a file. The first line names the columns. Either all
        rows are applied, or none. You can edit an exported CSV and import it again here. For more than{" "}
        {number(maxRows)} rows, use <code>portolan import file</code>.
      </p>
      <div class="fields">
        <Field
          label="Import into"
          wrong={target.problem?.message}
          hint={`The range of a network or block, or a path. Rows are imported into ${target.data || "—"}.`}
        >
          {(id, d) => (
            <input
              id={id}
              aria-describedby={d}
              class="mono"
              placeholder="10.0.1.0/24"
              value={into}
              onInput={e => setInto(e.currentTarget.value)}
            />
          )}
        </Field>
        <Field
          label="Row type"
          wrong={guess?.problem?.message}
          hint={
            kind
              ? "The headers select the columns; correct them below. The addresses and names select the network, block or zone of each row. Only administrators can import with a row type."
              : "The column type contains the type of each row, and the headers are field names of the API."
          }
        >
          {(id, d) => (
            <select id={id} aria-describedby={d} value={kind} onChange={e => setChosen(e.currentTarget.value)}>
              <option value="">As in the column type</option>
              {kinds.map(([type, label]) => (
                <option key={type} value={type}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Mode" hint={changes ? "Only administrators can update." : undefined}>
          {(id, d) => (
            <select
              id={id}
              aria-describedby={d}
              value={String(changes)}
              onChange={e => setWanted(e.currentTarget.value === "true")}
            >
              <option value="false">Create</option>
              <option value="true">Create or update</option>
            </select>
          )}
        </Field>
        <Field label="File">
          {id => (
            <input
              id={id}
              type="file"
              accept=".csv,.tsv,.txt,text/csv"
              onClick={e => (e.currentTarget.value = "")} // a corrected file has the same name
              onChange={e => {
                const f = e.currentTarget.files?.[0]
                if (f) void f.text().then(setText)
              }}
            />
          )}
        </Field>
      </div>
      <label class="hidden" for="rows">
        Rows
      </label>
      <textarea
        id="rows"
        class="mono"
        rows={8}
        spellcheck={false}
        placeholder={"name,address,state\ncrane-7,10.0.0.77,STATIC"}
        value={text}
        onInput={e => setText(e.currentTarget.value)}
        onDrop={drop}
        onDragOver={e => e.preventDefault()}
      />
      {data.length > maxRows && (
        <p class="fault">
          At most {number(maxRows)} rows at once. Use <code>portolan import file</code> for more.
        </p>
      )}
      {bad.length > 0 && <p class="fault">Unknown columns: {bad.join(", ")}.</p>}
      {rows.length === 0 ? (
        <Empty title="No rows yet." />
      ) : (
        <>
          <div class="tools">
            <Button
              disabled={
                busy ||
                !data.length ||
                data.length > maxRows ||
                bad.length > 0 ||
                !target.data ||
                !schema ||
                (!!kind && !guess?.columns)
              }
              onClick={() => void attempt(false)}
            >
              {busy ? "Loading preview …" : `Preview all ${number(data.length)} rows`}
            </Button>
            <Button primary disabled={busy || !current || !!current.problem} onClick={() => void attempt(true)}>
              Apply all
            </Button>
            <span aria-live="polite">
              {current &&
                (current.problem ? (
                  <span class="bad-text">
                    {current.faults.length
                      ? `${current.more ? "The first " : ""}${current.faults.length} errors. Nothing will be applied.`
                      : "Refused. Nothing will be applied."}
                  </span>
                ) : (
                  <span>
                    {current.partly ? "The first rows are valid" : "All rows are valid"}
                    {changes && !current.created && !current.updated ? (
                      ". Many of the resources already exist"
                    ) : (
                      <>
                        : {current.partly && "at least "}
                        {number(current.created ?? 0)} new
                        {current.updated ? `, ${number(current.updated)} changed` : ""}
                      </>
                    )}
                    {current.faults.length > 0 && <span class="bad-text">, with warnings next to the rows</span>}.
                    {current.partly && " The other rows are checked when you apply them."}
                  </span>
                ))}
            </span>
          </div>
          {current?.problem && !current.faults.length && <Trouble problem={current.problem} />}
          {!!current?.faults.length && (
            <div class="causes">
              <ul>
                {causesOf(current.faults)
                  .slice(0, maxCauses)
                  .map(cause => (
                    <li key={cause.says}>
                      <span class="bad-text">{cause.says}</span>{" "}
                      <span class="muted">
                        ({cause.rows.length === 1 ? "row" : `${number(cause.rows.length)} rows:`}{" "}
                        {cause.rows
                          .slice(0, 12)
                          .map(n => n + 1)
                          .join(", ")}
                        {cause.rows.length > 12 ? ", …" : ""})
                      </span>
                    </li>
                  ))}
              </ul>
              <Button onClick={() => saveText("faulty-rows.csv", faultyRows(head, data, current.faults))}>
                {current.problem ? "Download the rows with errors" : "Download the rows with warnings"}
              </Button>
            </div>
          )}
          <div class="sheet" tabIndex={0} role="region" aria-label="Rows">
            <table>
              <thead>
                <tr>
                  <th>#</th>
                  <th class="error">{current && !current.problem && current.faults.length ? "Warning" : "Error"}</th>
                  {head.map((h, i) => (
                    <th key={i}>
                      <label class="hidden" for={"col" + i}>
                        Field of column {i + 1}
                      </label>
                      {kind && schema ? (
                        <>
                          <div>{h}</div>
                          <select
                            id={"col" + i}
                            value={names[i]}
                            onChange={e => {
                              const to = e.currentTarget.value
                              setColumns(m => ({ ...m, [h.trim()]: to }))
                            }}
                          >
                            <option value="">(ignored)</option>
                            {[...new Set([...fieldsOf(schema, kind), names[i]])].filter(Boolean).map(f => (
                              <option key={f} value={f}>
                                {f}
                              </option>
                            ))}
                          </select>
                        </>
                      ) : (
                        <input
                          id={"col" + i}
                          class="mono"
                          list="known-fields"
                          value={names[i]}
                          onInput={e => {
                            const to = e.currentTarget.value
                            setMapping(m => ({ ...m, [i]: to }))
                          }}
                          title={h}
                        />
                      )}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {data.slice(0, shownRows).map((cells, n) => (
                  <Row
                    key={n}
                    n={n}
                    cells={cells}
                    names={names}
                    faults={current?.faults.filter(f => f.row === n) ?? []}
                  />
                ))}
                {beyond
                  .map(f => f.row)
                  .filter((n, i, all) => all.indexOf(n) === i)
                  .map(n => (
                    <Row key={n} n={n} cells={data[n]} names={names} faults={beyond.filter(f => f.row === n)} />
                  ))}
              </tbody>
            </table>
          </div>
          {data.length > shownRows && (
            <p class="muted">
              The first {shownRows} of {number(data.length)} rows are shown
              {beyond.length ? ", and all later rows with errors" : ""}.
            </p>
          )}
          <form
            class="tools"
            hidden={!!kind}
            onSubmit={e => {
              e.preventDefault()
              if (column && !names.includes(column)) widen()
            }}
          >
            <label class="inline">
              Add a column{" "}
              <input
                class="mono"
                list="known-fields"
                placeholder="state"
                value={column}
                onInput={e => setColumn(e.currentTarget.value.trim())}
              />
            </label>
            <label class="inline">
              with{" "}
              <input
                class="mono"
                placeholder="STATIC"
                value={filling}
                onInput={e => setFilling(e.currentTarget.value)}
              />
            </label>
            <button type="submit" disabled={!column || names.includes(column)}>
              Add to all rows
            </button>
          </form>
          <datalist id="known-fields">
            {known.map(n => (
              <option key={n} value={n} />
            ))}
          </datalist>
        </>
      )}
      <LeaseFile />
    </>
  )
}

/** A row with its faults at their cells. */
function Row({ n, cells, names, faults }: { n: number; cells: string[]; names: string[]; faults: Fault[] }) {
  const all = faults.map(f => (f.field ? f.field + ": " : "") + f.says).join("; ")
  return (
    <tr class={faults.length ? "faulty" : ""}>
      <td class="num muted">{n + 1}</td>
      <td class="error bad-text" title={all}>
        {all}
      </td>
      {names.map((name, i) => {
        const f = faults.find(
          f => f.field && (f.field === name || name.startsWith(f.field + ".") || f.field.startsWith(name + ".")),
        )
        return (
          <td key={i} class={f ? "faulty" : ""} title={f?.says}>
            {cells[i]}
          </td>
        )
      })}
    </tr>
  )
}
