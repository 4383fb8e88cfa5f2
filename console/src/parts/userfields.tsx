// User-defined fields: the definitions of a type, the display and input of values, and the columns of tables.
import { useMemo, useState } from "preact/hooks"
import { get, type Page, type Resource } from "../api"
import { useData } from "../data"
import { setPreference, usePreference } from "../preferences"
import { place, setQuery } from "../router"
import type { FieldSchema, Schema } from "../schema"
import type { Column } from "./grid"
import { settingsOf, type TableSettings } from "./tools"

/** The definition of a user-defined field. */
export interface Definition {
  name: string
  displayName: string
  dataType: string
  resourceTypes: string[]
  predefinedValues: string[] | null
}

const path = "userDefinedFieldDefinitions?limit=1000"

/** Returns the definitions for any of these types, by name. */
export function useDefinitions(types: string[]): Definition[] {
  const { data } = useData<Page>(types.length ? path : null, signal => get(path, { signal, quiet: true }), [
    "userDefinedFieldDefinitions",
  ])
  return useMemo(
    () => ((data?.data ?? []) as unknown as Definition[]).filter(d => d.resourceTypes.some(t => types.includes(t))),
    [data, types.join()],
  )
}

/** Returns a definition as a form field. */
export function formField(d: Definition): FieldSchema {
  return {
    n: d.name,
    k:
      d.dataType === "BOOLEAN"
        ? "yes"
        : d.dataType === "INTEGER" || d.dataType === "LONG"
          ? "number"
          : d.dataType === "DATE"
            ? "date"
            : "text",
    t: d.displayName || d.name,
    e: d.predefinedValues?.length ? d.predefinedValues : undefined,
  }
}

/** The value of a user-defined field. */
export function UserValue({ value, dataType }: { value: any; dataType?: string }) {
  if (value === null || value === undefined || value === "") return <span class="muted">—</span>
  const text = String(value)
  if (dataType === "URL" && /^https?:\/\//.test(text))
    return (
      <a href={text} rel="noreferrer noopener" target="_blank">
        {text}
      </a>
    )
  if (dataType === "EMAIL") return <a href={"mailto:" + text}>{text}</a>
  if (dataType === "BOOLEAN") return <span>{text === "true" ? "yes" : "no"}</span>
  return <span class={dataType === "INTEGER" || dataType === "LONG" ? "num" : ""}>{text}</span>
}

/** The values of a resource as facts, with the display names of defined fields. */
export function UserFacts({ r }: { r: Resource }) {
  const defined = useDefinitions([r.type]),
    values = Object.entries((r.userDefinedFields ?? {}) as Record<string, any>).filter(
      ([, v]) => v !== null && v !== "",
    )
  return (
    <>
      {values.map(([n, v]) => {
        const d = defined.find(x => x.name === n)
        return (
          <div key={n}>
            <dt title={n}>{d?.displayName || n}</dt>
            <dd>
              <UserValue value={v} dataType={d?.dataType} />
            </dd>
          </div>
        )
      })}
    </>
  )
}

/** An input that adds an undefined field, by its name. */
export function AnotherField({ add }: { add: (name: string) => void }) {
  const [name, setName] = useState(""),
    fits = /^[^\s.$]+$/.test(name)
  const take = () => {
    if (fits) {
      add(name)
      setName("")
    }
  }
  return (
    <div class="item">
      <input
        type="text"
        class="mono"
        aria-label="Name of another field"
        placeholder="field name"
        spellcheck={false}
        value={name}
        onInput={e => setName(e.currentTarget.value.trim())}
        onKeyDown={e => {
          if (e.key === "Enter") {
            e.preventDefault()
            take()
          }
        }}
      />{" "}
      <button type="button" class="small" disabled={!fits} onClick={take}>
        Add
      </button>
    </div>
  )
}

/** The query parameter with the columns of a table. The last selection is a preference of the user. */
const parameter = "columns"

/**
 * Returns the columns of a table: its own, and those that the user selected from the schema fields and user-defined fields. chooser is the
 * selection list; cell renders a value of a schema field.
 */
export function useColumns(
  table: string,
  schema: Schema | undefined,
  types: string[],
  own: Column<Resource>[],
  cell: (f: FieldSchema, r: Resource) => any,
  title: (name: string) => string,
) {
  const defined = useDefinitions(types),
    key = settingsOf(table),
    stored = usePreference<TableSettings>(key),
    chosen = place.value.query.get(parameter) ?? stored?.columns?.join(",")
  const more: Column<Resource>[] = [
    ...defined.map((d): Column<Resource> => ({
      key: "userDefinedFields." + d.name,
      title: d.displayName || d.name,
      width: "minmax(7rem,1fr)",
      minor: true,
      number: d.dataType === "INTEGER" || d.dataType === "LONG",
      cell: r => <UserValue value={r.userDefinedFields?.[d.name]} dataType={d.dataType} />,
    })),
  ]
  for (const t of types)
    for (const f of schema?.types[t]?.f ?? []) {
      if (
        f.w ||
        ["id", "userDefinedFields", "_inheritedFields"].includes(f.n) ||
        f.k === "object" ||
        own.some(c => c.key === f.n) ||
        more.some(c => c.key === f.n)
      )
        continue
      more.push({
        key: f.n,
        title: title(f.n),
        width: "minmax(7rem,1fr)",
        minor: true,
        number: f.k === "number",
        cell: r => cell(f, r),
      })
    }
  const choosable = [...own.filter(c => c.title), ...more],
    usual = own.filter(c => c.title).map(c => c.key)
  const shown = chosen?.split(",").filter(k => choosable.some(c => c.key === k)) ?? usual,
    keys = shown.length ? shown : usual
  const set = (list: string[]) => {
    const text = choosable
      .map(c => c.key)
      .filter(k => list.includes(k))
      .join(",")
    const same = text === usual.join(",")
    setQuery({ [parameter]: same ? null : text })
    const { columns: _, ...others } = stored ?? {}
    void setPreference(
      key,
      same ? (Object.keys(others).length ? others : null) : { ...others, columns: text.split(",") },
    )
  }
  const columns = [...choosable.filter(c => keys.includes(c.key)), ...own.filter(c => !c.title)]
  const chooser = (
    <details class="columns">
      <summary>Columns</summary>
      <fieldset>
        <legend class="muted small">Columns of this table. Narrow pages hide most of them.</legend>
        {choosable.map((c, i) => (
          <label key={c.key} class="inline">
            <input
              type="checkbox"
              checked={keys.includes(c.key)}
              disabled={i === 0}
              onChange={e => set(e.currentTarget.checked ? [...keys, c.key] : keys.filter(k => k !== c.key))}
            />
            {c.title}
          </label>
        ))}
        <button type="button" class="small" disabled={keys.join() === usual.join()} onClick={() => set(usual)}>
          Default columns
        </button>
      </fieldset>
    </details>
  )
  return { columns, chooser }
}
