// Form fields of any type, built from the schema.
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { get, isSecret, literal, query, type Page, type Problem, type Ref, type Resource } from "../api"
import { problemOf } from "../data"
import { kind, subtitle, title } from "../links"
import { useSchema, type FieldSchema, type Schema, type TypeSchema } from "../schema"
import { Field } from "./basics"
import { choiceName, isWeak, SecretInput } from "./choices"
import { InterfacesInput, PointInput } from "./interfaces"
import { AnotherField, formField, useDefinitions } from "./userfields"
import { fieldName } from "../words"

export type Values = Record<string, any>

/** Returns the part of a problem that concerns a field. */
export function faultOf(problem: Problem | undefined, field: string): string | undefined {
  if (
    !problem?.fields?.some(
      f => f === field || f.startsWith(field + ".") || f.endsWith("." + field) || f.startsWith(field + "["),
    )
  )
    return undefined
  const own = problem.message.split("; ").find(m => m.startsWith(field + ":") || m.includes("." + field + ":"))
  return (own ?? problem.message).replace(new RegExp("^.*?" + field.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + ": "), "")
}

/** Returns the writable fields in form order: names first, then required fields, then all others. */
export function formFields(t: TypeSchema, creates: boolean, required: string[]): FieldSchema[] {
  const list = t.f.filter(
    f => !f.r && f.n !== "type" && f.n !== "id" && (creates || !f.w || f.k !== "list" || f.n === "addresses"),
  )
  const first = (f: FieldSchema) =>
    f.n === "range" || f.n === "address" ? 0 : f.n === "name" ? 1 : required.includes(f.n) ? 2 : 3
  return list
    .map((f, i) => ({ f, i }))
    .sort((a, b) => first(a.f) - first(b.f) || a.i - b.i)
    .map(x => x.f)
}

/** Returns the description of a field as a hint: "is the record's name; null if it has none." becomes "The record's name." */
function hintOf(field: FieldSchema): string | undefined {
  if (field.n === "name" && /^the resource's name\b/.test(field.d?.replace(/^is /, "") ?? "")) return undefined
  return field.d
    ?.replace(/^(is|are) /, "")
    .replace(/[^.;]*\bx-bcn-[^.;]*[.;]?/g, "") // headers are for programs
    .trim()
    .replace(/\bnull\b/g, "empty")
    .replace(/; empty (if|where) it has none/, "")
    .replace(/^./, c => c.toUpperCase())
}

export function FieldInput({
  field,
  value,
  set,
  required,
  problem,
  of,
}: {
  field: FieldSchema
  value: any
  set: (v: any) => void
  required?: boolean
  problem?: Problem
  of?: string
}) {
  const label = (field.t ?? fieldName(field.n)) + (required ? " *" : "")
  const weak = isWeak(value)
    ? "This algorithm is weak: validators may reject it. Choose ECDSAP256SHA256 and SHA256."
    : undefined
  const inner = field.k === "object" && (field.m?.length || field.n === "userDefinedFields") // each member shows its own error
  return (
    <Field label={label} hint={hintOf(field)} wrong={inner ? undefined : (faultOf(problem, field.n) ?? weak)}>
      {(id, described) => {
        const common = { id, "aria-describedby": described, "aria-required": required, name: field.n }
        if (field.e && field.x)
          return (
            <>
              <input
                {...common}
                type="text"
                list={id + "-values"}
                autocomplete="off"
                spellcheck={false}
                value={value ?? ""}
                onInput={e => set(e.currentTarget.value || null)}
              />
              <datalist id={id + "-values"}>
                {field.e.map(v => (
                  <option key={v} value={v} />
                ))}
              </datalist>
            </>
          )
        if (field.e)
          return (
            <select {...common} value={value ?? ""} onChange={e => set(e.currentTarget.value || null)}>
              {(!required || !value) && <option value="">{required ? "Choose …" : "—"}</option>}
              {field.e.map(v => (
                <option key={v} value={v}>
                  {choiceName(v, field.n)}
                </option>
              ))}
            </select>
          )
        switch (field.k) {
          case "yes":
            return (
              <select
                {...common}
                value={value === undefined || value === null ? "" : String(value)}
                onChange={e => set(e.currentTarget.value === "" ? null : e.currentTarget.value === "true")}
              >
                <option value="">—</option>
                <option value="true">yes</option>
                <option value="false">no</option>
              </select>
            )
          case "date":
            return (
              <input {...common} type="date" value={value ?? ""} onInput={e => set(e.currentTarget.value || null)} />
            )
          case "number":
            return (
              <input
                {...common}
                type="text"
                inputMode="numeric"
                value={value ?? ""}
                onInput={e =>
                  set(
                    e.currentTarget.value === ""
                      ? null
                      : /^-?\d+$/.test(e.currentTarget.value) && Number.isSafeInteger(Number(e.currentTarget.value))
                        ? Number(e.currentTarget.value)
                        : e.currentTarget.value,
                  )
                }
              />
            )
          case "ref":
            return <RefInput attributes={common} value={value} set={set} field={field.n} named={namedBy[field.n]} />
          case "list":
            return field.n === "interfaces" && of ? (
              <InterfacesInput attributes={common} of={of} value={value} set={set} />
            ) : field.n === "addresses" ? (
              <AddressesInput attributes={common} value={value} set={set} />
            ) : (
              <ListInput attributes={common} field={field} value={value} set={set} problem={problem} />
            )
          case "object":
            return field.n === "userDefinedFields" && of ? (
              <UserDefined attributes={common} field={field} of={of} value={value} set={set} problem={problem} />
            ) : field.m?.length ? (
              <Members attributes={common} field={field} value={value} set={set} problem={problem} />
            ) : (
              <JSONInput attributes={common} value={value} set={set} />
            )
          default:
            return field.n === "servicePoint" ? (
              <PointInput attributes={common} value={value} set={set} />
            ) : field.l ? (
              <textarea
                {...common}
                class="mono"
                rows={4}
                spellcheck={false}
                value={value ?? ""}
                onInput={e => set(e.currentTarget.value === "" ? null : e.currentTarget.value)}
              />
            ) : of === "Webhook" && field.n === "secret" ? (
              <SecretInput attributes={common} value={value} set={set} />
            ) : (
              <input
                {...common}
                type={(isSecret(field.n) ? "password" : "text") as "text"}
                autocomplete={isSecret(field.n) ? "new-password" : "off"}
                spellcheck={false}
                value={value ?? ""}
                placeholder={field.k === "time" ? "2026-01-31T12:00:00Z" : undefined}
                onInput={e => set(e.currentTarget.value === "" ? null : e.currentTarget.value)}
              />
            )
        }
      }}
    </Field>
  )
}

/** The addresses of a host, separated by spaces or commas. */
function AddressesInput({ attributes, value, set }: { attributes: any; value: any; set: (v: any) => void }) {
  const [text, setText] = useState(((value ?? []) as any[]).map(a => a.address ?? "").join(", "))
  return (
    <input
      {...attributes}
      class="mono"
      spellcheck={false}
      autocomplete="off"
      value={text}
      placeholder="10.0.0.7, 2001:db8::7"
      onInput={e => {
        setText(e.currentTarget.value)
        set(
          e.currentTarget.value
            .split(/[\s,]+/)
            .filter(Boolean)
            .map(address => ({ address })),
        )
      }}
    />
  )
}

/** A list: strings and numbers one per line, all other items as separate inputs with a button to add one. */
function ListInput({
  attributes,
  field,
  value,
  set,
  problem,
}: {
  attributes: any
  field: FieldSchema
  value: any
  set: (v: any) => void
  problem?: Problem
}) {
  const item = field.i,
    list: any[] = Array.isArray(value) ? value : []
  if (!item || (item.k === "object" && !item.m?.length) || item.k === "list")
    return <JSONInput attributes={attributes} value={value} set={set} />
  if (item.k !== "ref" && item.k !== "object")
    return item.e && !item.x ? (
      <ChoicesInput attributes={attributes} field={field} values={item.e} list={list} set={set} />
    ) : (
      <LinesInput attributes={attributes} item={item} list={list} set={set} />
    )
  const change = (i: number, v: any) => set(list.map((x, at) => (at === i ? v : x)))
  return (
    <div
      id={attributes.id}
      role="group"
      aria-label={fieldName(field.n)}
      aria-describedby={attributes["aria-describedby"]}
      class="items"
    >
      {list.map((x, i) => (
        <div key={i} class="item">
          {item.k === "ref" ? (
            <RefInput
              attributes={{ id: `${attributes.id}-${i}`, "aria-label": `${fieldName(field.n)} ${i + 1}` }}
              value={x}
              field={field.n.replace(/s$/, "")}
              set={v => change(i, v)}
            />
          ) : (
            <Members
              attributes={{ id: `${attributes.id}-${i}` }}
              field={{ ...item, n: `${field.n} ${i + 1}` }}
              value={x}
              set={v => change(i, v ?? {})}
              problem={problem}
            />
          )}
          <button
            type="button"
            class="small"
            onClick={() => set(list.filter((_, at) => at !== i))}
            aria-label={`Remove ${fieldName(field.n)} ${i + 1}`}
          >
            Remove
          </button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => set([...list, item.k === "ref" ? null : {}])}>
        {list.length ? "Add another" : "Add one"}
      </button>
    </div>
  )
}

/** The values of a list that can be chosen, one checkbox each. */
function ChoicesInput({
  attributes,
  field,
  values,
  list,
  set,
}: {
  attributes: any
  field: FieldSchema
  values: string[]
  list: string[]
  set: (v: string[]) => void
}) {
  return (
    <span
      id={attributes.id}
      aria-describedby={attributes["aria-describedby"]}
      class="choices"
      role="group"
      aria-label={field.t ?? fieldName(field.n)}
    >
      {values.map(v => (
        <label key={v} class="inline">
          <input
            type="checkbox"
            checked={list.includes(v)}
            onChange={e => {
              const on = e.currentTarget.checked
              set(values.filter(x => (x === v ? on : list.includes(x)))) // in the order of the values
            }}
          />
          {choiceName(v, field.n)}
        </label>
      ))}
    </span>
  )
}

/** Strings or numbers, one per line. */
function LinesInput({
  attributes,
  item,
  list,
  set,
}: {
  attributes: any
  item: FieldSchema
  list: any[]
  set: (v: any) => void
}) {
  const [text, setText] = useState(list.join("\n"))
  const read = (line: string) =>
    item.k === "number" && /^-?\d+$/.test(line) ? Number(line) : item.k === "yes" ? line === "true" : line
  return (
    <textarea
      {...attributes}
      rows={Math.min(8, Math.max(2, text.split("\n").length))}
      spellcheck={false}
      class="mono"
      value={text}
      placeholder={item.e ? item.e.slice(0, 3).join(", ") + "; one per line" : "one per line"}
      onInput={e => {
        setText(e.currentTarget.value)
        set(
          e.currentTarget.value
            .split("\n")
            .map(l => l.trim())
            .filter(Boolean)
            .map(read),
        )
      }}
    />
  )
}

/** The members of an object. */
function Members({
  attributes,
  field,
  value,
  set,
  problem,
  children,
}: {
  attributes: any
  field: FieldSchema
  value: any
  set: (v: any) => void
  problem?: Problem
  children?: ComponentChildren
}) {
  const members = field.m!.filter(m => !m.r)
  return (
    <div
      id={attributes.id}
      role="group"
      aria-label={fieldName(field.n)}
      aria-describedby={attributes["aria-describedby"]}
      class="members"
    >
      {members.map(m => (
        <FieldInput
          key={m.n}
          field={m}
          value={value?.[m.n]}
          problem={problem}
          set={v => {
            const next = Object.fromEntries(
              Object.entries({ ...value, [m.n]: v }).filter(([n, x]) => x !== null || value?.[n] !== undefined),
            )
            set(Object.values(next).every(x => x === null || x === undefined) && !value ? null : next)
          }}
        />
      ))}
      {children}
    </div>
  )
}

/** The values of the user-defined fields: those of the type, those that the resource already has, and new ones. */
function UserDefined({
  attributes,
  field,
  of,
  value,
  set,
  problem,
}: {
  attributes: any
  field: FieldSchema
  of: string
  value: any
  set: (v: any) => void
  problem?: Problem
}) {
  const defined = useDefinitions([of]).map(formField)
  const others = Object.keys(value ?? {})
    .filter(n => !defined.some(d => d.n === n))
    .map((n): FieldSchema => ({
      n,
      k: typeof value[n] === "number" ? "number" : typeof value[n] === "boolean" ? "yes" : "text",
    }))
  return (
    <Members
      attributes={attributes}
      field={{ ...field, m: [...defined, ...others] }}
      value={value}
      set={set}
      problem={problem}
    >
      <AnotherField add={n => set({ ...value, [n]: value && Object.hasOwn(value, n) ? value[n] : "" })} />
    </Members>
  )
}

/** A JSON input for fields that the schema does not describe further. */
function JSONInput({ attributes, value, set }: { attributes: any; value: any; set: (v: any) => void }) {
  const [text, setText] = useState(value === undefined || value === null ? "" : JSON.stringify(value, null, 1)),
    [wrong, setWrong] = useState(false)
  return (
    <>
      <textarea
        {...attributes}
        rows={Math.min(8, Math.max(2, text.split("\n").length))}
        spellcheck={false}
        class="mono"
        value={text}
        placeholder="JSON"
        aria-invalid={wrong}
        onInput={e => {
          const t = e.currentTarget.value
          setText(t)
          if (!t.trim()) {
            setWrong(false)
            set(null)
            return
          }
          try {
            set(JSON.parse(t))
            setWrong(false)
          } catch {
            setWrong(true)
          }
        }}
      />
      {wrong && <p class="fault">This is not valid JSON.</p>}
    </>
  )
}

/** References that can also be given as text, by the named member. The resource may not exist yet, or users do not know its id. */
const namedBy: Record<string, string> = { macAddress: "address", linkedRecord: "absoluteName" }

/** Returns the possible types of a reference from its name: location is a Location, defaultView a View. Empty: any type. */
function typesOf(schema: Schema | undefined, field: string | undefined): string[] {
  if (!schema || !field) return []
  const f = field.toLowerCase(),
    names = Object.keys(schema.types),
    same = names.filter(t => t.toLowerCase() === f)
  return same.length ? same : names.filter(t => f.endsWith(t.toLowerCase()) || t.toLowerCase().endsWith(f))
}

/** Finds resources of the given types by name; without types, uses the search. */
async function found(
  schema: Schema | undefined,
  types: string[],
  text: string,
  signal: AbortSignal,
): Promise<Resource[]> {
  const collections =
    types.length && types.length < 20 && schema
      ? Object.keys(schema.collections).filter(
          c => schema.collections[c].m?.includes("G") && schema.collections[c].t?.some(t => types.includes(t)),
        )
      : []
  if (!collections.length)
    return (
      await get<{ data: { resource: Resource }[] }>("search" + query({ q: text, limit: 8 }), { signal, quiet: true })
    ).data.map(h => h.resource)
  const lists = await Promise.all(
    collections.map(c =>
      get<Page>(c + query({ filter: `name:contains(${literal(text)})`, limit: 8 }), { signal, quiet: true }).then(
        p => p.data,
        e => {
          if (problemOf(e).status === 403) return [] as Resource[]
          throw e
        },
      ),
    ),
  )
  const list = lists.flat().filter(r => types.includes(r.type))
  if (list.length) return list.slice(0, 12)
  const all = await get<{ data: { resource: Resource }[] }>("search" + query({ q: text, limit: 50 }), {
    signal,
    quiet: true,
  })
  return all.data
    .map(h => h.resource)
    .filter(r => types.includes(r.type))
    .slice(0, 8)
}

/** The time before a failed search is repeated, in milliseconds. */
const retryDelay = 1000

/** An input for a resource, found by search. With named, the text itself is accepted as that member. */
export function RefInput({
  attributes,
  value,
  set,
  field,
  named,
  types: given,
}: {
  attributes: any
  value: Ref | null | undefined
  set: (v: any) => void
  field?: string
  named?: string
  types?: string[]
}) {
  const schema = useSchema(),
    types = given ?? typesOf(schema, field)
  const [q, setQ] = useState<string | null>(null),
    [hits, setHits] = useState<Resource[]>([]),
    [chosen, setChosen] = useState(0),
    [nothing, setNothing] = useState(""),
    [hitsOf, setHitsOf] = useState(""),
    [unused, setUnused] = useState(""), // the text that the user left without a choice
    [turn, setTurn] = useState(0) // a failed search is repeated
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const text = q?.trim(),
      abort = new AbortController()
    setNothing("")
    if (!text) {
      setHits([])
      return
    }
    found(schema, types, text, abort.signal).then(
      list => {
        if (!abort.signal.aborted) {
          setHits(list)
          setHitsOf(text)
          setChosen(0)
          if (!list.length && !named) setNothing(text)
        }
      },
      () => {
        if (!abort.signal.aborted) setTimeout(() => abort.signal.aborted || setTurn(n => n + 1), retryDelay)
      },
    )
    return () => abort.abort()
  }, [q, !schema, turn])
  const take = (r: Resource | undefined) => {
    if (r) {
      set({ id: r.id, type: r.type, name: r.name, range: r.range, address: r.address, absoluteName: r.absoluteName })
      setQ(null)
      setHits([])
      setUnused("")
    }
  }
  const shown =
    q ??
    (value && !value.id
      ? String((value as any)[named ?? "name"] ?? "")
      : value
        ? value.name || value.range || value.address
          ? `${title(value)}`
          : "#" + value.id
        : "")
  const list = attributes.id + "-hits"
  return (
    <div class="reference" ref={box}>
      <input
        {...attributes}
        role="combobox"
        aria-expanded={hits.length > 0}
        aria-controls={list}
        autocomplete="off"
        spellcheck={false}
        placeholder="Search"
        value={shown}
        onInput={e => {
          const t = e.currentTarget.value
          setQ(t)
          setUnused("")
          if (!t) set(null)
          else if (named) set({ [named]: t.trim() })
        }}
        onBlur={() =>
          setTimeout(() => {
            if (box.current?.contains(document.activeElement)) return // the user has come back and may have typed
            if (q?.trim() && !named) setUnused(q.trim())
            setQ(null)
            setHits([])
          }, 150)
        }
        onKeyDown={e => {
          if (e.key === "Enter" && q?.trim() && !named) {
            e.preventDefault() // the form would be applied without the choice
            if (hits.length && hitsOf === q.trim()) take(hits[chosen])
            return
          }
          if (!hits.length) return
          if (e.key === "ArrowDown" || e.key === "ArrowUp") {
            e.preventDefault()
            setChosen((chosen + (e.key === "ArrowDown" ? 1 : hits.length - 1)) % hits.length)
          } else if (e.key === "Enter") {
            e.preventDefault()
            if (hitsOf === q?.trim()) take(hits[chosen])
          } else if (e.key === "Escape") {
            e.stopPropagation()
            e.preventDefault()
            setQ(null)
            setHits([])
          }
        }}
      />
      {(nothing || unused) && (
        <p class="muted small" role="status">
          {nothing ? `No results for “${nothing}”.` : `“${unused}” was not used: choose a result.`}
        </p>
      )}
      {hits.length > 0 && (
        <div id={list} role="listbox" class="hits" aria-label="Search results">
          {hits.map((r, i) => (
            <div
              key={r.id}
              role="option"
              aria-selected={i === chosen}
              class={"hit" + (i === chosen ? " chosen" : "")}
              onMouseDown={e => {
                e.preventDefault()
                take(r)
              }}
            >
              <span class="mono">{title(r)}</span> <span>{subtitle(r)}</span> <span class="kind">{kind(r.type)}</span>
            </div>
          ))}
        </div>
      )}
    </div>
  )
}

/** Returns a value for the API: references by id, also within lists and objects, and lists without empty entries. */
function sent(value: any): any {
  if (Array.isArray(value)) return value.filter(x => x !== null).map(sent)
  if (!value || typeof value !== "object") return value
  return "id" in value && "type" in value
    ? { id: value.id }
    : Object.fromEntries(Object.entries(value).map(([n, v]) => [n, sent(v)]))
}

/** Returns the request body with the values that were set. */
export function bodyOf(values: Values, type?: string): Values {
  const body: Values = type ? { type } : {}
  for (const [name, value] of Object.entries(values)) if (value !== undefined) body[name] = sent(value)
  return body
}
