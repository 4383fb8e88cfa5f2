// Creating, changing and deleting any resource.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { call, get, literal, pathOf, query, type Answer, type Page, type Problem, type Resource } from "../api"
import { problemOf, useData } from "../data"
import { kind, title } from "../links"
import { useSchema, type CollectionSchema } from "../schema"
import { configuration } from "../session"
import { address, parseSpan, size, span } from "../space"
import { Dialog, Field, Loading, Trouble } from "./basics"
import { bodyOf, FieldInput, formFields, type Values } from "./form"
import { Preview } from "./preview"
import { useDefinitions } from "./userfields"

/** The codes of a range that is in another block than the one where it is created. */
const misplaced = ["IpRangeOverlapsSiblings", "IpRangeOutsideParent"]

/** Offers the smallest block that contains a refused range, to create the resource there. */
function OtherBlock({
  problem,
  path,
  range,
  take,
}: {
  problem: Problem | undefined
  path: string
  range: string | undefined
  take: (path: string) => void
}) {
  const [, above, what] = /^((?:configurations|blocks)\/\d+)\/(blocks|networks)$/.exec(path) ?? []
  const s = what && range && problem && misplaced.includes(problem.code) ? parseSpan(range) : null
  const found = useData<Resource | null>(s ? `block for ${span(s)}` : null, async signal => {
    const list = (
      await get<Page>(
        "blocks" +
          query({
            filter: `range:contains(${literal(address(s!.low, s!.v6))})`,
            limit: 200,
            fields: "id,type,range,name,configuration",
          }),
        { signal, quiet: true },
      )
    ).data
      .map(r => ({ r, s: parseSpan(r.range)! }))
      .filter(x => !configuration.value || x.r.configuration?.id === configuration.value)
      .filter(x => x.s.low <= s!.low && x.s.high >= s!.high && size(x.s) > size(s!))
    return list.sort((a, b) => (size(a.s) < size(b.s) ? -1 : 1))[0]?.r ?? null
  })
  const block = found.data
  if (!block || "blocks/" + block.id === above) return null
  return (
    <p>
      <button type="button" class="small" onClick={() => take(`blocks/${block.id}/${what}`)}>
        Create it in {block.range}
        {block.name ? ` (${block.name})` : ""}
      </button>
    </p>
  )
}

/** Reports whether a value is missing, or a list of entries without a value. */
function isEmpty(v: any): boolean {
  if (Array.isArray(v)) return v.every(x => isEmpty(x) || (typeof x === "object" && Object.values(x).every(isEmpty)))
  return v === undefined || v === null || v === ""
}

/** The button that shows all fields of a form, or only the usual ones again. count is undefined for a form that always shows all. */
function MoreFields(p: { all: boolean; set: (all: boolean) => void; count?: number; short: number }) {
  if (!p.count || (!p.all && p.count <= p.short)) return null
  return (
    <p>
      <button type="button" class="small" onClick={() => p.set(!p.all)}>
        {p.all ? "Fewer fields" : `All ${p.count} fields`}
      </button>
    </p>
  )
}

/**
 * Creates a resource in a collection. values are the initial values, and fallback the values of fields that stay empty. only lists the fields
 * to show; without it, all fields are shown.
 */
export function Create({
  path: begins,
  makes,
  types,
  values: begin,
  fallback,
  head,
  only,
  close,
  done,
  title: heading,
}: {
  path: string
  makes: CollectionSchema
  types?: string[]
  values?: Values
  fallback?: Values
  head?: ComponentChildren
  only?: string[]
  close: () => void
  done?: (r: Resource) => void
  title?: string
}) {
  const schema = useSchema(),
    names = types ?? Object.keys(makes.n ?? {})
  const [type, setType] = useState(names[0]),
    [path, setPath] = useState(begins),
    [values, setValues] = useState<Values>(begin ?? {}),
    [all, setAll] = useState(!only),
    defined = useDefinitions([type])
  if (!schema)
    return (
      <Dialog title="New" close={close}>
        <Loading what="the schema" />
      </Dialog>
    )
  const t = schema.types[type],
    required = makes.n?.[type] ?? []
  if (!t)
    return (
      <Dialog title="New" close={close}>
        <p>You cannot create this here.</p>
      </Dialog>
    )
  const fields = formFields(t, true, required),
    short = all
      ? fields
      : fields.filter(
          f => only!.includes(f.n) || required.includes(f.n) || (f.n === "userDefinedFields" && defined.length > 0),
        )
  const missing = required.filter(n => n !== "type" && isEmpty(values[n]))
  const filled = Object.fromEntries(
    Object.entries({ ...fallback, ...values }).filter(
      ([n, v]) => v !== null && v !== "" && fields.some(f => f.n === n),
    ),
  )
  return (
    <Preview
      title={heading ?? "New " + kind(type)}
      close={close}
      done={done}
      waits
      wanted={
        missing.length
          ? null
          : {
              method: "POST",
              path,
              body: bodyOf(filled, type),
              says: `Created ${kind(type)} ${values.range ?? values.address ?? values.name ?? ""}.`.replace(" .", "."),
            }
      }
    >
      {problem => (
        <>
          {head}
          {names.length > 1 && (
            <Field label="Type">
              {id => (
                <select id={id} value={type} onChange={e => setType(e.currentTarget.value)}>
                  {names.map(n => (
                    <option key={n} value={n}>
                      {kind(n)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
          <div class="fields">
            {short.map(f => (
              <FieldInput
                key={type + f.n}
                field={f}
                of={type}
                value={values[f.n]}
                required={required.includes(f.n)}
                problem={problem}
                set={v => setValues(s => ({ ...s, [f.n]: v }))}
              />
            ))}
          </div>
          <OtherBlock problem={problem} path={path} range={values.range} take={setPath} />
          <MoreFields all={all} set={setAll} count={only && fields.length} short={short.length} />
        </>
      )}
    </Preview>
  )
}

/**
 * Changes a resource. Only changed fields are sent, conditional on the version that was loaded when the window opened, so that changes of
 * other users are not overwritten.
 */
export function Edit({ r, only, close, done }: { r: Resource; only?: string[]; close: () => void; done?: () => void }) {
  const schema = useSchema(),
    path = pathOf(r)
  const [opened, setOpened] = useState<Answer<Resource>>(),
    [problem, setProblem] = useState<Problem>()
  const [values, setValues] = useState<Values>({}),
    [all, setAll] = useState(!only),
    defined = useDefinitions([r.type])
  const read = () => {
    const host = r.type === "HostRecord" ? "?fields=embed(addresses)" : ""
    call<Resource>("GET", path + host).then(
      a => {
        setOpened({
          ...a,
          body: a.body._embedded?.addresses ? { ...a.body, addresses: a.body._embedded.addresses } : a.body,
        })
      },
      e => setProblem(problemOf(e)),
    )
  }
  useEffect(read, [])
  if (problem)
    return (
      <Dialog title={"Change " + title(r)} close={close}>
        <Trouble problem={problem} />
      </Dialog>
    )
  if (!schema || !opened)
    return (
      <Dialog title={"Change " + title(r)} close={close}>
        <Loading />
      </Dialog>
    )
  const t = schema.types[r.type],
    was = opened.body
  if (!t)
    return (
      <Dialog title="Change" close={close}>
        <p>You cannot change this here.</p>
      </Dialog>
    )
  const fields = formFields(t, false, []),
    short = all
      ? fields
      : fields.filter(f => only!.includes(f.n) || (f.n === "userDefinedFields" && defined.length > 0))
  const changed = Object.fromEntries(
    Object.entries(values)
      .filter(([n, v]) => JSON.stringify(v ?? null) !== JSON.stringify(was[n] ?? null))
      .map(([n, v]) => [n, n === "userDefinedFields" && v && was[n] ? members(was[n], v) : v]),
  )
  return (
    <Preview
      title={"Change " + title(r)}
      close={close}
      done={done}
      stale={read}
      wanted={
        Object.keys(changed).length
          ? {
              method: "PATCH",
              path,
              body: bodyOf(changed),
              says: `Changed ${title(r)}.`,
              ...(opened.etag ? { headers: { "If-Match": opened.etag } } : {}),
            }
          : null
      }
    >
      {problem => (
        <>
          <div class="fields">
            {short.map(f => (
              <FieldInput
                key={f.n}
                field={f}
                of={r.type}
                value={f.n in values ? values[f.n] : was[f.n]}
                problem={problem}
                set={v => setValues(s => ({ ...s, [f.n]: v }))}
              />
            ))}
          </div>
          <MoreFields all={all} set={setAll} count={only && fields.length} short={short.length} />
        </>
      )}
    </Preview>
  )
}

/** Returns the changed members, with null for removed ones. Unchanged members are omitted and keep their current values. */
function members(before: Values, after: Values): Values {
  return Object.fromEntries(
    [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter(n => JSON.stringify(before[n] ?? null) !== JSON.stringify(after[n] ?? null))
      .map(n => [n, after[n] ?? null]),
  )
}

/** Deletes a resource after a preview of everything that is deleted with it. */
export function Delete({ r, close, done }: { r: Resource; close: () => void; done?: () => void }) {
  return (
    <Preview
      title={"Delete " + title(r)}
      danger
      close={close}
      done={done}
      wanted={{ method: "DELETE", path: pathOf(r), says: `Deleted ${title(r)}.` }}
    >
      {() => (
        <p>
          This deletes {kind(r.type)} <strong>{title(r)}</strong> and everything listed below.
        </p>
      )}
    </Preview>
  )
}
