// The tools of a table: the filter with the saved filters of the user, CSV and print.
import { options, render, type ComponentChildren } from "preact"
import { signal } from "@preact/signals"
import { useEffect, useRef, useState } from "preact/hooks"
import { call, query } from "../api"
import { problemOf, type Rows } from "../data"
import { Icon } from "../icons"
import { setPreference, usePreference } from "../preferences"
import { place, setQuery } from "../router"
import { csvOf, saveText } from "../table"
import { Button } from "./basics"
import { counted } from "../words"
import { toast } from "../notice"

/** The settings of a table that follow the user. */
export interface TableSettings {
  columns?: string[]
  filters?: { name: string; query: Record<string, string> }[]
}

/** Returns the name of the preference with the settings of a table. */
export const settingsOf = (table: string) => "table." + table.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 58)

/**
 * The filter of a table, as a parameter of the URL. of returns the parameter for a typed text. parameters are all parameters of the URL that
 * a saved filter stores.
 */
export function FilterForm({
  table,
  parameter = "filter",
  parameters = [parameter, "orderBy"],
  of = text => text,
  label = "Filter",
  placeholder,
  children,
}: {
  table: string
  parameter?: string
  parameters?: string[]
  of?: (text: string) => string
  label?: string
  placeholder: string
  children?: ComponentChildren
}) {
  const value = place.value.query.get(parameter) ?? "",
    [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  return (
    <>
      {children}
      <form
        class="filter"
        role="search"
        onSubmit={e => {
          e.preventDefault()
          setQuery({ [parameter]: of(typed) || null })
        }}
      >
        <input
          type="text"
          aria-label={label}
          class="mono"
          spellcheck={false}
          placeholder={placeholder}
          value={typed}
          onInput={e => setTyped(e.currentTarget.value)}
        />
        <button type="submit">Filter</button>
        {value && (
          <button type="button" onClick={() => setQuery({ [parameter]: null })}>
            Clear filter
          </button>
        )}
      </form>
      <SavedFilters table={table} parameters={parameters} />
    </>
  )
}

/** The filters of a table that the user has saved. */
function SavedFilters({ table, parameters }: { table: string; parameters: string[] }) {
  const key = settingsOf(table),
    stored = usePreference<TableSettings>(key),
    list = stored?.filters ?? [],
    box = useRef<HTMLDetailsElement>(null),
    [name, setName] = useState("")
  const q = place.value.query,
    current = Object.fromEntries(parameters.map(p => [p, q.get(p) ?? ""]).filter(([, v]) => v)) as Record<
      string,
      string
    >,
    filters = Object.keys(current).some(p => p !== "orderBy")
  const store = (filters: TableSettings["filters"]) => setPreference(key, { ...stored, filters })
  const save = async () => {
    const n = name.trim()
    if (!n || !filters) return
    setName("")
    const all = [...list.filter(f => f.name !== n), { name: n, query: current }]
    if (await store(all.sort((a, b) => a.name.localeCompare(b.name)))) toast(`Saved the filter “${n}”.`)
  }
  if (stored === undefined) return null
  return (
    <details class="columns saved-filters" ref={box}>
      <summary>Saved filters{list.length ? ` (${list.length})` : ""}</summary>
      <fieldset>
        <legend class="muted small">Saved filters of this table. They are available in all your browsers.</legend>
        {list.map(f => (
          <span key={f.name} class="saved">
            <button
              type="button"
              class="plain link"
              aria-current={JSON.stringify(f.query) === JSON.stringify(current) ? "true" : undefined}
              onClick={() => {
                setQuery(Object.fromEntries(parameters.map(p => [p, f.query[p] ?? null])))
                box.current!.open = false
              }}
            >
              {f.name}
            </button>
            <button
              type="button"
              class="plain"
              aria-label={"Delete the filter " + f.name}
              onClick={() => store(list.filter(x => x.name !== f.name))}
            >
              <Icon name="trash-2" size={14} />
            </button>
          </span>
        ))}
        {filters ? (
          <form
            class="saved"
            onSubmit={e => {
              e.preventDefault()
              save()
            }}
          >
            <input
              aria-label="Name of the filter"
              placeholder="name"
              maxLength={60}
              value={name}
              onInput={e => setName(e.currentTarget.value)}
            />
            <button type="submit" disabled={!name.trim()}>
              Save this filter
            </button>
          </form>
        ) : (
          !list.length && <span class="muted small">Filter the table to save its filter.</span>
        )}
      </fieldset>
    </details>
  )
}

/** The largest number of rows in a CSV file. */
const maxSaved = 100_000

/** Reads a list as CSV. */
export async function csvText(path: string, parameters: Record<string, string | undefined>): Promise<string> {
  const { fields: _, ...asked } = parameters
  const r = await call<string>("GET", path + query({ ...asked, limit: maxSaved }), undefined, {
    headers: { Accept: "text/csv" },
  })
  return r.body
}

/** Saves a list as CSV. */
async function saveCSV(path: string, parameters: Record<string, string | undefined>) {
  try {
    const text = await csvText(path, parameters)
    if (text.split("\n").length > maxSaved)
      toast(
        "The file contains only the first 100,000 rows. Narrow the list with a filter, or read all pages with the API.",
        { bad: true },
      )
    saveText(path.replaceAll("/", "-") + ".csv", text)
  } catch (e) {
    toast(problemOf(e).message, { bad: true })
  }
}

/** Is set while the page is printed. Tables then draw all loaded rows. */
export const printing = signal(false)

/** The largest number of rows that a table prints. */
export const maxPrinted = 5000

addEventListener("beforeprint", () => {
  // The browser prints when this returns, so the page is drawn at once.
  const before = options.debounceRendering
  options.debounceRendering = draw => draw()
  printing.value = true
  options.debounceRendering = before
})
addEventListener("afterprint", () => {
  printing.value = false
})

/** Loads the rows of a table and prints the page. */
async function print(rows: Rows<any>) {
  const n = Math.min(rows.total ?? 0, maxPrinted)
  try {
    await rows.load(n)
  } catch (e) {
    toast(problemOf(e).message, { bad: true })
    return
  }
  if ((rows.total ?? 0) > n)
    toast(`Only the first ${n} rows are printed. Narrow the list with a filter, or export it as CSV.`, { bad: true })
  window.print()
}

/** The line above a list: the number of rows, and the buttons that save and print them. */
export function RowTools({ rows, noun }: { rows: Rows<any>; noun: string }) {
  return (
    <div class="tools">
      <span class="muted">{rows.total !== undefined && counted(rows.total, noun)}</span>
      <span class="grow" />
      <SaveRows rows={rows} />
    </div>
  )
}

/** A column of a table that is saved: its title, and the displayed contents of a cell. */
interface SavedColumn<T> {
  title: string
  cell: (row: T, i: number) => ComponentChildren
}

/** Returns the displayed texts of a table as CSV, without the columns of buttons, which have no title. */
function shownCSV<T>(columns: SavedColumn<T>[], list: T[]): string {
  const titled = columns.filter(c => c.title),
    cell = document.createElement("div")
  const rows = list.map((row, i) =>
    titled.map(c => {
      render(c.cell(row, i), cell)
      const times = cell.querySelectorAll("time")
      for (const t of times) t.textContent = t.dateTime
      const text = cell.textContent.trim()
      render(null, cell)
      cell.replaceChildren()
      return text
    }),
  )
  return csvOf(
    titled.map(c => c.title),
    rows,
  )
}

/** The buttons that save and print a table whose rows are all loaded, such as one that is no list of the address API. */
export function SaveShown<T>({ name, columns, list }: { name: string; columns: SavedColumn<T>[]; list: T[] }) {
  return (
    <>
      <Button icon="download" onClick={() => saveText(name + ".csv", shownCSV(columns, list))}>
        CSV
      </Button>
      <button type="button" class="wide-only" onClick={() => window.print()}>
        Print
      </button>
    </>
  )
}

/** The buttons that save the rows of a table as CSV and print them. */
export function SaveRows({ rows }: { rows: Rows<any> }) {
  const { path, parameters } = rows
  if (path === null) return null
  return (
    <>
      <a
        class="button"
        download
        href={"/api/v2/" + path + query({ ...parameters, fields: undefined, limit: maxSaved })}
        onClick={e => {
          e.preventDefault()
          void saveCSV(path, parameters)
        }}
      >
        <Icon name="download" />
        CSV
      </a>
      <button type="button" class="wide-only" onClick={() => void print(rows)}>
        Print
      </button>
    </>
  )
}
