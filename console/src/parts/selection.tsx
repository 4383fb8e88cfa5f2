// The selected rows of a table, and the changes of all of them: one preview and one transaction, or one request for
// approval each.
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { get, pathOf, query, type Page, type Resource } from "../api"
import { problemOf, useData, type Rows } from "../data"
import { collectionName, title } from "../links"
import { namesOf } from "../pattern"
import type { May } from "../rights"
import { useSchema, type CollectionSchema, type FieldSchema } from "../schema"
import { address, compare, parseAddress, parseSpan, type Span } from "../space"
import { saveText } from "../table"
import { Button, Field, Loading, Trouble } from "./basics"
import type { Selectable } from "./grid"
import { bodyOf, FieldInput, formFields, RefInput, type Values } from "./form"
import { Preview } from "./preview"
import { csvText, SaveRows } from "./tools"
import { counted, number, fieldName } from "../words"
import { toast } from "../notice"
import { type Wanted } from "../staged"

/** The largest number of resources in one change (docs/batch.md). */
const maxSelected = 10_000

/** The selected rows of a table. */
export interface Selection {
  rows: Map<number, Resource>
  /** Selects or clears rows. */
  set: (list: Resource[], on: boolean) => void
  clear: () => void
  /** Selects all rows of the table, also those that are not loaded. */
  all: () => void
  /** Selects the rows between two indexes, also those that are not loaded. */
  range: (from: number, to: number) => void
}

/** Returns the selection of a table. Another list or filter clears it, so that a change never applies to rows that are not shown. */
export function useSelection(rows: Rows<Resource>): Selection {
  const [chosen, setChosen] = useState<Map<number, Resource>>(new Map()),
    clear = () => setChosen(new Map())
  const key = (rows.path ?? "") + query({ ...rows.parameters, orderBy: undefined }),
    shown = useRef(key)
  shown.current = key
  useEffect(clear, [key])
  const set = (list: Resource[], on: boolean) =>
    setChosen(before => {
      const next = new Map(before)
      for (const r of list)
        if (!on) next.delete(r.id)
        else if (next.size < maxSelected || next.has(r.id)) next.set(r.id, r)
      return next
    })
  const read = (from: number, count: number) =>
    rows.read(from, Math.min(count, maxSelected)).then(
      list => shown.current === key && set(list, true), // not those of an earlier filter
      e => toast(problemOf(e).message, { bad: true }),
    )
  return {
    rows: chosen,
    set,
    clear,
    all: () => {
      if ((rows.total ?? 0) > maxSelected)
        toast(`Only the first ${number(maxSelected)} rows are selected, the maximum for one change.`, {
          bad: true,
        })
      void read(0, rows.total ?? 0)
    },
    range: (from, to) => void read(Math.min(from, to), Math.abs(to - from) + 1),
  }
}

/** Returns the selection as a table takes it. */
export const selectable = (s: Selection): Selectable<Resource> => ({
  has: r => s.rows.has(r.id),
  size: s.rows.size,
  label: title,
  set: s.set,
  all: s.all,
  clear: s.clear,
  range: s.range,
})

/** What the selected rows can be used for. */
type Act = "edit" | "tag" | "untag" | "move" | "delete"

/** The collections whose resources move: to another address, or to another zone. */
const movable = ["addresses", "networks", "blocks", "zones", "resourceRecords"]

/** The region above a table with the number of selected rows, the actions for them, and a button that clears the selection. */
export function SelectionRegion({
  selection: s,
  total,
  children,
}: {
  selection: Selection
  total: number
  children: ComponentChildren
}) {
  return (
    <div class="tools selection" role="region" aria-label="Selected rows">
      <strong aria-live="polite">{counted(s.rows.size, "rows")} selected</strong>
      {s.rows.size < total && (
        <button type="button" class="small" onClick={s.all}>
          Select all {number(total)}
        </button>
      )}
      <span class="grow" />
      {children}
      <Button icon="x" onClick={s.clear}>
        Clear selection
      </Button>
    </div>
  )
}

/** The bar with the number of selected rows and their actions. It is empty without a selection. */
export function SelectionBar({
  selection: s,
  rows,
  collection,
  c,
  may,
}: {
  selection: Selection
  rows: Rows<Resource>
  collection: string
  c: CollectionSchema | undefined
  may: May
}) {
  const [act, setAct] = useState<Act | null>(null),
    list = [...s.rows.values()]
  useEffect(() => {
    if (!list.length) setAct(null)
  }, [!list.length])
  if (!list.length) return null
  const has = (sub: string) => (c?.b as unknown as string[] | undefined)?.includes?.(sub) ?? !!c?.b?.[sub]
  const close = () => setAct(null),
    done = () => {
      s.clear()
      rows.reload()
    }
  return (
    <>
      <SelectionRegion selection={s} total={rows.total ?? 0}>
        {may.change && c?.o?.includes("A") && (
          <Button icon="pencil" onClick={() => setAct("edit")}>
            Change
          </Button>
        )}
        {may.change && has("tags") && (
          <>
            <Button icon="tag" onClick={() => setAct("tag")}>
              Tag
            </Button>
            <Button onClick={() => setAct("untag")}>Remove tag</Button>
          </>
        )}
        {may.change && has("moves") && movable.includes(collection) && (
          <Button icon="move" onClick={() => setAct("move")}>
            Move
          </Button>
        )}
        <Button icon="download" onClick={() => void exported(rows, list)}>
          Export
        </Button>
        {may.remove && c?.o?.includes("D") && (
          <Button icon="trash-2" onClick={() => setAct("delete")}>
            Delete
          </Button>
        )}
      </SelectionRegion>
      {act === "edit" && <EditAll list={list} close={close} done={done} />}
      {act === "delete" && <DeleteAll list={list} close={close} done={done} />}
      {act === "move" && <MoveAll list={list} collection={collection} close={close} done={done} />}
      {(act === "tag" || act === "untag") && <TagAll list={list} add={act === "tag"} close={close} done={done} />}
    </>
  )
}

/**
 * A list whose rows can be selected: its filter, the number of rows, the choice of columns, the buttons that save and print it, and the
 * actions for selected rows. children returns the table of the loaded rows.
 */
export function SelectableList({
  rows,
  noun,
  filter,
  note = "",
  chooser,
  selection,
  collection,
  may,
  children,
}: {
  rows: Rows<Resource>
  noun: string
  filter: ComponentChildren
  note?: string
  chooser: ComponentChildren
  selection: Selection
  collection: string
  may: May
  children: (total: number) => ComponentChildren
}) {
  const schema = useSchema()
  return (
    <>
      <div class="tools">
        {filter}
        {rows.total !== undefined && (
          <span class="muted">
            {counted(rows.total, noun)}
            {note}
          </span>
        )}
        <span class="grow" />
        {chooser}
        <SaveRows rows={rows} />
      </div>
      <SelectionBar
        selection={selection}
        rows={rows}
        collection={collection}
        c={schema?.collections[collection]}
        may={may}
      />
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what={"the " + noun} />
      ) : (
        children(rows.total)
      )}
    </>
  )
}

/** Returns the change of all resources as one batch. */
function batchOf(
  changes: { method: string; path: string; body?: any }[],
  says: string,
  list?: Resource[],
): Wanted | null {
  return changes.length
    ? { method: "POST", path: "batch", body: { changes }, says, ...(list ? { labels: list.map(title) } : {}) }
    : null
}

/** The number of ids in the filter of one request. */
const idsPerRequest = 200

/** Returns the collection of a resource. */
const collectionOf = (r: Resource) => pathOf(r).split("/")[0]

/** Saves the selected rows as CSV: one file for each collection. */
async function exported(rows: Rows<Resource>, list: Resource[]) {
  try {
    for (const path of rows.path ? [rows.path] : new Set(list.map(collectionOf))) {
      const ids = list.filter(r => rows.path || collectionOf(r) === path).map(r => r.id)
      let text = ""
      for (let i = 0; i < ids.length; i += idsPerRequest) {
        const filter = `id:in(${ids.slice(i, i + idsPerRequest).join()})`,
          part = await csvText(path, { ...rows.parameters, filter })
        text += i ? part.slice(part.indexOf("\n") + 1) : part
      }
      saveText(path.replaceAll("/", "-") + "-selected.csv", text)
    }
  } catch (e) {
    toast(problemOf(e).message, { bad: true })
  }
}

/** Fields whose value is different for each resource. */
const ofOne = ["range", "address", "absoluteName", "userDefinedFields", "password", "macAddress"]

/** Sets fields of all selected resources. */
function EditAll({ list, close, done }: { list: Resource[]; close: () => void; done: () => void }) {
  const schema = useSchema(),
    [values, setValues] = useState<Values>({}),
    [names, setNames] = useState("")
  if (!schema) return null
  const types = [...new Set(list.map(r => r.type))]
  // The fields that all types have in the same form.
  const fields = types
    .map(t => (schema.types[t] ? formFields(schema.types[t], false, []) : []))
    .reduce((all, own) => all.filter(f => own.some(o => o.n === f.n && o.k === f.k)))
    .filter(f => !ofOne.includes(f.n) && f.n !== "name")
  const named = types.every(t => schema.types[t]?.f.some(f => f.n === "name" && !f.r))
  const pattern = namesOf(names, list.length)
  const changes = pattern.fault
    ? []
    : list.map((r, i) => ({
        method: "PATCH",
        path: pathOf(r),
        body: bodyOf({ ...values, ...(pattern.names.length ? { name: pattern.names[i] } : {}) }),
      }))
  const chosen = fields.filter(f => f.n in values)
  return (
    <Preview
      title={`Change ${counted(list.length, "resources")}`}
      wanted={
        Object.keys(values).length || pattern.names.length
          ? batchOf(changes, `Changed ${counted(list.length, "resources")}.`, list)
          : null
      }
      close={close}
      done={done}
    >
      {problem => (
        <>
          <div class="fields">
            {named && (
              <Field
                label="Names"
                hint={`A pattern for the names in the order of the selection: rack7-srv-[01-${String(list.length).padStart(2, "0")}]. Empty: names stay.`}
                wrong={pattern.fault}
              >
                {(id, d) => (
                  <input id={id} aria-describedby={d} value={names} onInput={e => setNames(e.currentTarget.value)} />
                )}
              </Field>
            )}
            {chosen.map(f => (
              <div key={f.n} class="chosen-field">
                <FieldInput
                  field={f}
                  of={types[0]}
                  value={values[f.n]}
                  problem={problem}
                  set={v => setValues(s => ({ ...s, [f.n]: v }))}
                />
                <button
                  type="button"
                  class="small"
                  onClick={() => setValues(({ [f.n]: _, ...rest }) => rest)}
                  aria-label={`Leave unchanged: ${labelOf(f)}`}
                >
                  Leave unchanged
                </button>
              </div>
            ))}
            <Field label="Set a field" hint="Sets the same value in all selected resources.">
              {(id, d) => (
                <select
                  id={id}
                  aria-describedby={d}
                  value=""
                  onChange={e => {
                    const n = e.currentTarget.value
                    if (n) setValues(s => ({ ...s, [n]: null }))
                  }}
                >
                  <option value="">Choose …</option>
                  {fields
                    .filter(f => !(f.n in values))
                    .map(f => (
                      <option key={f.n} value={f.n}>
                        {labelOf(f)}
                      </option>
                    ))}
                </select>
              )}
            </Field>
          </div>
        </>
      )}
    </Preview>
  )
}

const labelOf = (f: FieldSchema) => f.t ?? fieldName(f.n)

/** Returns the resources with contained ones before those that contain them. */
function innerFirst(list: Resource[]): Resource[] {
  const labels = (r: Resource) => (r.absoluteName ?? "").split(".").length
  return [...list].sort((a, b) => {
    const x = parseSpan(a.range),
      y = parseSpan(b.range)
    return x && y ? Number(x.high - x.low - (y.high - y.low)) || compare(x, y) : labels(b) - labels(a)
  })
}

/** Deletes all selected resources. */
function DeleteAll({ list, close, done }: { list: Resource[]; close: () => void; done: () => void }) {
  return (
    <Preview
      title={`Delete ${counted(list.length, "resources")}`}
      danger
      wanted={batchOf(
        innerFirst(list).map(r => ({ method: "DELETE", path: pathOf(r) })),
        `Deleted ${counted(list.length, "resources")}.`,
        innerFirst(list),
      )}
      close={close}
      done={done}
    >
      {() => (
        <p>
          This deletes {kindsOf(list)} ({some(list)}) and everything listed below.
        </p>
      )}
    </Preview>
  )
}

/** Counts the resources of each collection. */
function kindsOf(list: Resource[]): string {
  const n = new Map<string, number>()
  for (const r of list) n.set(collectionOf(r), (n.get(collectionOf(r)) ?? 0) + 1)
  return [...n].map(([c, count]) => counted(count, collectionName(c).toLowerCase())).join(" and ")
}

/** Names the first resources. */
const some = (list: Resource[]) =>
  list
    .slice(0, 4)
    .map(r => title(r))
    .join(", ") + (list.length > 4 ? ` and ${number(list.length - 4)} more` : "")

/** Adds a tag to all selected resources, or removes it from those that have it. */
function TagAll({ list, add, close, done }: { list: Resource[]; add: boolean; close: () => void; done: () => void }) {
  const [tag, setTag] = useState<Resource | null>(null)
  const having = useData<Set<number>>(tag ? `tagged ${tag.id}` : null, async signal => {
    const ids = new Set<number>()
    for (let offset = 0; ; offset += 1000) {
      const page = await get<Page>(
        `tags/${tag!.id}/taggedResources` + query({ limit: 1000, offset: offset || undefined, fields: "id,type" }),
        { signal, quiet: true },
      )
      for (const r of page.data) ids.add(r.id)
      if (page.data.length < 1000) return ids
    }
  })
  const left = tag && having.data ? list.filter(r => having.data!.has(r.id) !== add) : []
  const did = tag ? `${add ? "Added" : "Removed"} the tag ${title(tag)}: ${counted(left.length, "resources")}.` : ""
  return (
    <Preview
      title={(add ? "Tag " : "Remove a tag from ") + counted(list.length, "resources")}
      wanted={
        left.length
          ? batchOf(
              left.map(r =>
                add
                  ? { method: "POST", path: pathOf(r) + "/tags", body: { id: tag!.id } }
                  : { method: "DELETE", path: `${pathOf(r)}/tags/${tag!.id}` },
              ),
              did,
            )
          : null
      }
      close={close}
      done={done}
    >
      {() => (
        <>
          <Field label="Tag">{id => <RefInput attributes={{ id }} value={tag} types={["Tag"]} set={setTag} />}</Field>
          {tag && having.problem && <p class="bad-text">{having.problem.message}</p>}
          {tag && having.data && left.length < list.length && (
            <p class="muted">
              {left.length
                ? `${counted(list.length - left.length, "resources")} ${add ? "already have it" : "do not have it"}.`
                : add
                  ? "All selected resources already have this tag."
                  : "No selected resource has this tag."}
            </p>
          )}
          {tag && !having.data && !having.problem && <Loading />}
        </>
      )}
    </Preview>
  )
}

/** Returns the resources that no other one in the list contains: their content moves with them. */
function outermost(list: Resource[]): Resource[] {
  const all = list.map(r => ({ r, s: parseSpan(r.range) })).sort((a, b) => (a.s && b.s ? compare(a.s, b.s) : 0))
  let last: Span | null = null
  return all
    .filter(({ s }) => {
      if (s && last && s.v6 === last.v6 && s.high <= last.high) return false
      last = s
      return true
    })
    .map(x => x.r)
}

/** Moves all selected resources: address space to another first address at the same distances, names to another zone. */
function MoveAll({
  list,
  collection,
  close,
  done,
}: {
  list: Resource[]
  collection: string
  close: () => void
  done: () => void
}) {
  const names = collection === "zones" || collection === "resourceRecords",
    [to, setTo] = useState(""),
    [zone, setZone] = useState<Resource | null>(null)
  let changes: { method: string; path: string; body: any }[] = []
  if (names && zone)
    changes = list.map(r => ({
      method: "POST",
      path: pathOf(r) + "/moves",
      body: {
        type: "DNSMove",
        absoluteName: [r.name && r.name !== "@" ? r.name.split(".")[0] : "", zone.absoluteName]
          .filter(Boolean)
          .join("."),
      },
    }))
  const low = (r: Resource) => (r.address ? parseAddress(r.address)?.n : parseSpan(r.range)?.low) ?? 0n,
    ordered = names ? list : outermost([...list].sort((a, b) => (low(a) < low(b) ? -1 : 1))),
    first = parseAddress(to)
  if (!names && first && ordered.length) {
    const shift = first.n - low(ordered[0])
    changes = ordered.map(r => ({
      method: "POST",
      path: pathOf(r) + "/moves",
      body: { type: "IPMove", address: address(low(r) + shift, first.v6) },
    }))
    if (shift > 0n) changes.reverse() // a resource moves before its place is taken
  }
  return (
    <Preview
      title={`Move ${counted(list.length, "resources")}`}
      wanted={batchOf(changes, `Moved ${counted(list.length, "resources")}.`)}
      close={close}
      done={done}
    >
      {() => (
        <>
          <p class="muted">{some(ordered)}</p>
          {names ? (
            <Field label="New zone" hint="Each name keeps its first label.">
              {(id, d) => (
                <RefInput attributes={{ id, "aria-describedby": d }} value={zone} types={["Zone"]} set={setZone} />
              )}
            </Field>
          ) : (
            <Field
              label="New first address"
              hint={
                ordered[0]
                  ? `The new first address of ${title(ordered[0])}. The other resources keep their distance to it. Everything inside moves with them.`
                  : undefined
              }
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  placeholder={ordered[0] ? (ordered[0].address ?? ordered[0].range?.split(/[/-]/)[0]) : ""}
                  value={to}
                  onInput={e => setTo(e.currentTarget.value.trim())}
                />
              )}
            </Field>
          )}
        </>
      )}
    </Preview>
  )
}
