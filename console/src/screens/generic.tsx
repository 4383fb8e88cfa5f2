// Generic pages for every collection and resource of the API, built from the schema.
import { useState } from "preact/hooks"
import { get, type Resource } from "../api"
import { inProgress, useData, useEvery, useResource, useRows } from "../data"
import { Icon } from "../icons"
import { collectionName, hrefOf, kind, subtitle, title, To } from "../links"
import { Button, choice, Empty, Field, Head, Loading, State, Tabs, Trouble, When, words } from "../parts/basics"
import { AccessOf } from "../parts/access"
import { Figures } from "../parts/chart"
import { Create, Delete, Edit } from "../parts/edit"
import { RefInput } from "../parts/form"
import { PointLink } from "../parts/interfaces"
import { AskServer } from "../parts/dig"
import { Grant, mayGrant } from "../parts/grant"
import { Grid, type Column } from "../parts/grid"
import { defaultPolicy } from "../parts/dnssec"
import { Options } from "../parts/options"
import { Partners } from "../parts/partner"
import { NewPolicy } from "../parts/policy"
import { shown } from "../operations"
import { Preview } from "../parts/preview"
import { selectable, SelectionBar, useSelection } from "../parts/selection"
import { FilterForm, SaveRows } from "../parts/tools"
import { useColumns, UserFacts } from "../parts/userfields"
import { useMay, type May } from "../rights"
import { go, place, setQuery } from "../router"
import { session } from "../session"
import { useSchema, type CollectionSchema, type FieldSchema, type Schema } from "../schema"
import { filterOf } from "../filter"
import { Leases, Spans } from "../parts/leases"
import { History } from "./changes"
import { Signing } from "./signing"
import { counted, number, fieldName } from "../words"

/** Groups of collections for the All objects page. Collections outside of these groups come last. */
const groups: [string, RegExp][] = [
  [
    "Address space",
    /^(configurations|blocks|networks|ranges|addresses|ipGroups|templates|templateItems|reconciliationPolicies|devices|deviceTypes|deviceSubtypes|macAddresses|macPools|leases|clientIdentifiers)$/,
  ],
  ["Names", /^(views|zones|resourceRecords|namingPolic|signing|responsePolic|policyItems|zoneTemplates|dns)/],
  [
    "Servers and roles",
    /^(servers|serverGroups|interfaces|deployment|schedules|clientClasses|subclasses|vendorProfiles|zoneGroups|zoneDeclarations|accessControlLists|realms|servicePrincipals|keyDistribution|tftp|trust|patch)/,
  ],
  ["Users and access", /^(users|groups|sessions|accessRights|authenticators|workflowRequests)$/],
  ["History", /^(transactions|events|imports|splits|merges|moves|templateApplications)$/],
]

export function Everything() {
  const schema = useSchema()
  if (!schema) return <Loading what="the schema" />
  const names = Object.keys(schema.collections)
    .filter(c => schema.collections[c].m?.includes("G"))
    .sort()
  const placed = new Set<string>()
  const sections = groups.map(([heading, of]): [string, string[]] => [
    heading,
    names.filter(n => of.test(n) && !placed.has(n) && placed.add(n)),
  ])
  sections.push(["Manager", names.filter(n => !placed.has(n))])
  return (
    <>
      <Head title="All objects">
        <a class="button" href="/api/docs">
          API documentation
        </a>
      </Head>
      <p class="muted">All collections of the API.</p>
      <div class="cards">
        {sections.map(([heading, list]) => (
          <section key={heading} class="card">
            <h2>{heading}</h2>
            <ul class="plain-list">
              {heading === "Users and access" && (
                <li>
                  <a href="/ui/tokens">Tokens</a>
                </li>
              )}
              {heading === "Manager" && (
                <li>
                  <a href="/ui/backups">Backups</a>
                </li>
              )}
              {list.map(n => (
                <li key={n}>
                  <a href={"/ui/" + n}>{collectionName(n)}</a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </>
  )
}

/** Matches collections in which only administrators create resources. */
const people = groups[3][1]

/** Returns a collection's name for the middle of a sentence: "access rights", "MAC pools". */
function nounOf(collection: string) {
  return collectionName(collection).replace(/^[A-Z](?=[a-z])/, c => c.toLowerCase())
}

/** Returns the collections whose resources contain those of a collection, where they are created. */
function parentsOf(schema: Schema, name: string): string[] {
  return Object.keys(schema.collections)
    .filter(
      c =>
        schema.collections[c].b?.[name]?.m?.includes("P") &&
        Object.keys(schema.collections[c].b![name].n ?? {}).length > 0,
    )
    .sort()
}

/** The value of a field in a table or on a page. */
export function Value({ field, value, r }: { field: FieldSchema; value: any; r: Resource }) {
  if (field.n === "resource" && r.type === "AccessRight" && !value) return <strong>everything</strong>
  if (value === null || value === undefined) return <span class="muted">—</span>
  if (field.n === "servicePoint" && typeof value === "string") return <PointLink id={value} />
  switch (field.k) {
    case "ref":
      return <To r={value} />
    case "time":
      return <When at={value} />
    case "yes":
      return <span>{value ? "yes" : "no"}</span>
    case "number":
      return (
        <span class="num">{field.n === "id" ? value : typeof value === "number" ? number(value) : String(value)}</span>
      )
    case "list":
      return Array.isArray(value) ? (
        <span>
          {value.map((v, i) => (
            <span key={i}>
              {i ? ", " : ""}
              {v && typeof v === "object" && v.id && v.type ? <To r={v} /> : shown(v)}
            </span>
          ))}
        </span>
      ) : (
        <span>{shown(value)}</span>
      )
    case "object":
      return value.id && value.type ? <To r={value} /> : <Members of={value} />
  }
  if (field.e) return <State of={value} />
  if (r.type === "WorkflowRequest" && field.n === "operation") return <span>{words(value)}</span>
  if (["range", "address", "absoluteName"].includes(field.n))
    return <span class="mono">{r.id && field.n !== "absoluteName" ? <a href={hrefOf(r)}>{value}</a> : value}</span>
  return <span>{String(value)}</span>
}

/** The members of an object that have a value, with their names. */
function Members({ of }: { of: Record<string, unknown> }) {
  const list = Object.entries(of).filter(([name, v]) => v !== null && v !== undefined && name !== "_links")
  return (
    <span>
      {list.map(([name, v], i) => (
        <span key={name}>
          {i ? ", " : ""}
          <span class="muted">
            {/^[A-Z]/.test(name) ? choice(name) : fieldName(name).replace(/^[A-Z](?![A-Z])/, c => c.toLowerCase())}
          </span>{" "}
          {typeof v === "object" && !Array.isArray(v) ? (
            <>
              (<Members of={v as Record<string, unknown>} />)
            </>
          ) : typeof v === "number" ? (
            number(v)
          ) : (
            shown(v)
          )}
        </span>
      ))}
    </span>
  )
}

/** Returns the columns for these types: the name first, then the most informative fields. */
function columnsOf(schema: Schema, types: string[]): Column<Resource>[] {
  const fields = new Map<string, FieldSchema>()
  for (const t of types) for (const f of schema.types[t]?.f ?? []) if (!fields.has(f.n)) fields.set(f.n, f)
  const list: Column<Resource>[] = []
  const add = (n: string, width?: string, minor?: boolean) => {
    const f = fields.get(n)
    if (f && !f.w && !list.some(c => c.key === n))
      list.push({
        key: n,
        title: fieldName(n),
        width,
        minor,
        narrow: f.e ? "6.4rem" : undefined,
        number: f.k === "number" && n !== "id",
        cell: r => <Value field={f} value={r[n]} r={r} />,
      })
  }
  if (["range", "address", "absoluteName"].some(n => fields.has(n)))
    for (const n of ["range", "address", "absoluteName"]) add(n, "minmax(11rem,1.4fr)")
  if (fields.has("message"))
    list.push({
      key: "message",
      title: "Message",
      width: "minmax(16rem,4fr)",
      cell: r => <a href={hrefOf(r)}>{r.message ?? kind(r.type) + " " + r.id}</a>,
    })
  else if (fields.has("name"))
    list.push({
      key: "name",
      title: "Name",
      width: "minmax(9rem,1.4fr)",
      sort: "name",
      cell: r =>
        r.name || title(r).endsWith(" " + r.id) ? (
          <a href={hrefOf(r)}>{r.name ?? kind(r.type) + " " + r.id}</a>
        ) : (
          <span class="muted">—</span>
        ),
    })
  if (types.includes("VLAN"))
    list.unshift({ key: "number", title: "Number", width: "5rem", sort: "number", cell: r => r.number })
  if (types.length > 1) list.push({ key: "type", title: "Type", width: "minmax(8rem,1fr)", cell: r => kind(r.type) })
  for (const n of [
    "userScope",
    "defaultAccessLevel",
    "resource",
    "eventType",
    "state",
    "status",
    "roleType",
    "description",
    "value",
    "creationDateTime",
    "dateTime",
    "loginDateTime",
    "operation",
    "user",
    "username",
    "email",
    "configuration",
    "view",
    "location",
    "code",
  ]) {
    if (list.length < 6) add(n, n === "description" ? "minmax(12rem,3fr)" : undefined, list.length > 2)
  }
  for (const f of fields.values())
    if (list.length < 4 && !["type", "userDefinedFields"].includes(f.n)) add(f.n, undefined, list.length > 2)
  return list
}

/** The table of a collection. The URL holds its filter and order. */
export function Table({
  path,
  collection,
  c,
  heading,
  within,
}: {
  path: string
  collection: string
  c: CollectionSchema
  heading?: string
  within?: string
}) {
  const schema = useSchema(),
    q = place.value.query
  const filter = q.get("filter") ?? "",
    order = q.get("orderBy") ?? ""
  const [creating, setCreating] = useState(false),
    [taking, setTaking] = useState<Resource | null>(null),
    [editing, setEditing] = useState<Resource | null>(null),
    [deleting, setDeleting] = useState<Resource | null>(null)
  const whole = [within, filter && (within ? `(${filter})` : filter)].filter(Boolean).join(" and ")
  const rows = useRows(
    path,
    { filter: whole || undefined, orderBy: order || (collection === "events" ? "desc(id)" : undefined) },
    [collection],
  )
  const { columns, chooser } = useColumns(
    collection,
    schema,
    c.t ?? [],
    schema ? columnsOf(schema, c.t ?? []) : [],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  const selection = useSelection(rows)
  const can = c.m?.includes("P") && Object.keys(c.n ?? {}).length > 0
  // Existing resources are linked to the parent resource and unlinked from it: tags, members of groups, zones.
  const joins = path.includes("/") && c.m?.includes("P") && !can,
    below = path.includes("/"),
    may = useMay(below ? path.split("/").slice(0, 2).join("/") : null)
  const grants = collection === "accessRights" && mayGrant()
  const policies = path !== collection && collection === "reconciliationPolicies" && can
  const makes = can && !grants && (below ? may.add : session.value?.administrator || !people.test(path)),
    above = !below && !can && schema ? parentsOf(schema, collection) : []
  if (!schema) return <Loading what="the schema" />
  // A change of several rows uses the methods of their own collection.
  const all = schema.collections[collection],
    selects = !joins && !!all && (all.o?.includes("A") || all.o?.includes("D"))
  return (
    <>
      <div class="tools">
        <FilterForm
          table={collection}
          placeholder="name, or name:startsWith('crane') and id:gt(100)"
          of={text =>
            filterOf(
              text,
              collection === "events" ? "message" : "name",
              collection === "addresses"
                ? "address"
                : ["blocks", "networks", "ranges"].includes(collection)
                  ? "range"
                  : undefined,
            )
          }
        />
        <span class="muted">
          {rows.total !== undefined && (heading ? counted(rows.total, nounOf(collection)) : number(rows.total))}
        </span>
        <span class="grow" />
        {chooser}
        <SaveRows rows={rows} />
        {(makes || grants) && (
          <Button icon="plus" primary onClick={() => setCreating(true)}>
            New
          </Button>
        )}
        {joins && may.change && (
          <Button icon="plus" primary onClick={() => setCreating(true)}>
            Add
          </Button>
        )}
      </div>
      {selects && <SelectionBar selection={selection} rows={rows} collection={collection} c={all} may={may} />}
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading />
      ) : (
        <Grid
          select={selects ? selectable(selection) : undefined}
          label={heading ?? collectionName(collection)}
          columns={
            joins && may.change && c.o?.includes("D")
              ? [
                  ...columns,
                  {
                    key: "off",
                    title: "",
                    width: "3rem",
                    cell: r => (
                      <button
                        class="plain"
                        tabIndex={-1}
                        aria-label={"Remove: " + title(r)}
                        onClick={() => setTaking(r)}
                      >
                        <Icon name="x" size={14} />
                      </button>
                    ),
                  },
                ]
              : columns
          }
          count={rows.total}
          at={rows.at}
          id={r => r.id}
          open={r => go(hrefOf(r))}
          onKey={(e, r) => {
            if (r && c.o?.includes("A") && e.key === "e") {
              e.preventDefault()
              setEditing(r)
            } else if (r && !joins && c.o?.includes("D") && e.key === "Delete") {
              e.preventDefault()
              setDeleting(r)
            }
          }}
          order={order}
          reorder={o => setQuery({ orderBy: o })}
          empty={<Empty title={filter ? "No rows match the filter." : `No ${nounOf(collection)} yet.`} />}
          scrolls
        />
      )}
      {above.length > 0 && (
        <p class="muted small">
          Create it from one of these:{" "}
          {above.map((a, i) => (
            <span key={a}>
              {i ? ", " : ""}
              <a href={"/ui/" + a}>{collectionName(a).toLowerCase()}</a>
            </span>
          ))}
          .
        </p>
      )}
      {editing && <Edit r={editing} close={() => setEditing(null)} done={rows.reload} />}
      {deleting && <Delete r={deleting} close={() => setDeleting(null)} done={rows.reload} />}
      {creating && joins && <Join path={path} types={c.t ?? []} close={() => setCreating(false)} done={rows.reload} />}
      {taking && (
        <Preview
          title={"Remove " + title(taking)}
          danger
          close={() => setTaking(null)}
          done={rows.reload}
          wanted={{ method: "DELETE", path: `${path}/${taking.id}`, says: `Removed ${title(taking)}.` }}
        >
          {() => (
            <p>
              This removes {kind(taking.type)} <strong>{title(taking)}</strong> from this list only. The resource itself
              stays.
            </p>
          )}
        </Preview>
      )}
      {creating && grants && <GrantHere path={path} close={() => setCreating(false)} done={rows.reload} />}
      {creating && policies && <PolicyHere path={path} close={() => setCreating(false)} done={rows.reload} />}
      {creating && can && !grants && !policies && (
        <Create
          path={path}
          makes={c}
          values={path === "signingPolicies" ? { ...defaultPolicy, name: undefined, type: undefined } : undefined}
          close={() => setCreating(false)}
          done={r => {
            rows.reload()
            if (r?.id && r._links) go(hrefOf(r))
          }}
        />
      )}
    </>
  )
}

/** A new access right: of the user or group, or at the resource, that the path names. */
function GrantHere({ path, close, done }: { path: string; close: () => void; done: () => void }) {
  const above = path.includes("/") ? path.split("/").slice(0, 2).join("/") : null,
    { data } = useResource(above)
  if (above && !data) return null
  const subject = data && ["User", "UserGroup"].includes(data.type) ? data : undefined
  return <Grant subject={subject} on={subject ? undefined : data} close={close} done={done} />
}

/** A new reconciliation policy of the resource that the path names. */
function PolicyHere({ path, close, done }: { path: string; close: () => void; done: () => void }) {
  const { data } = useResource(path.split("/").slice(0, 2).join("/"))
  return data ? <NewPolicy on={data} close={close} done={done} /> : null
}

/** Links an existing resource to the parent resource. */
function Join({ path, types, close, done }: { path: string; types: string[]; close: () => void; done: () => void }) {
  const [ref, setRef] = useState<Resource | null>(null)
  return (
    <Preview
      title={"Add to " + collectionName(path.split("/").pop()!).toLowerCase()}
      close={close}
      done={done}
      wanted={ref?.id ? { method: "POST", path, body: { id: ref.id }, says: `Added ${title(ref)}.` } : null}
    >
      {() => (
        <Field label="Resource" hint="Select an existing resource. Its other links remain.">
          {(id, d) => <RefInput attributes={{ id, "aria-describedby": d }} value={ref} types={types} set={setRef} />}
        </Field>
      )}
    </Preview>
  )
}

export function CollectionPage({ name }: { name: string }) {
  const schema = useSchema()
  if (!schema) return <Loading what="the schema" />
  const c = schema.collections[name]
  if (!c) return <Nowhere />
  return (
    <>
      <Head title={collectionName(name)} />
      <Table path={name} collection={name} c={c} heading={collectionName(name)} />
    </>
  )
}

export function Nowhere() {
  return (
    <>
      <Head title="Page not found" />
      <Empty title="This page does not exist.">
        <a href="/">Go to the overview</a>
      </Empty>
    </>
  )
}

/** The fields of a resource with their descriptions. */
export function Fields({ r, without = [] }: { r: Resource; without?: string[] }) {
  const schema = useSchema()
  if (!schema) return <Loading what="the schema" />
  const fields = (schema.types[r.type]?.f ?? []).filter(
    f => !f.w && !["id", "type", "name", "userDefinedFields", ...without].includes(f.n),
  )
  const set = fields.filter(f => r[f.n] !== null && r[f.n] !== undefined && !(Array.isArray(r[f.n]) && !r[f.n].length)),
    unset = fields.filter(f => !set.includes(f))
  const inherited: string[] = r._inheritedFields ?? []
  return (
    <>
      <dl class="facts">
        {set.map(f => (
          <div key={f.n}>
            <dt title={f.d}>{fieldName(f.n)}</dt>
            <dd>
              <Value field={f} value={r[f.n]} r={r} />
              {inherited.includes(f.n) && <span class="muted small"> · inherited</span>}
            </dd>
          </div>
        ))}
        {!without.includes("userDefinedFields") && <UserFacts r={r} />}
      </dl>
      {unset.length > 0 && (
        <details>
          <summary>{counted(unset.length, "fields")} without a value</summary>
          <p class="muted">{unset.map(f => fieldName(f.n)).join(" · ")}</p>
        </details>
      )}
    </>
  )
}

/** Returns the parents of a resource, from its links and references. */
export function useCrumbs(r: Resource | undefined) {
  const up = r?._links?.up?.href
  return useData<Resource[]>(r && up ? "crumbs " + r.id + up : null, async signal => {
    const list: Resource[] = []
    let next: string | undefined = up
    for (let n = 0; next && n < 12; n++) {
      const above: Resource = await get(next, { signal, quiet: true }).catch(() => undefined as any)
      if (!above?.id || above.type === "AddressManager" || above.id === 1) break
      list.unshift(above)
      next = above._links?.up?.href
    }
    return list
  }).data
}

export function Crumbs({ r }: { r: Resource }) {
  const list = useCrumbs(r)
  return (
    <>
      {(list ?? []).map((x, i) => (
        <span key={x.id}>
          {i > 0 && <Icon name="chevron-right" size={13} />} <To r={x} />
          {subtitle(x) && <span class="crumb-name">{subtitle(x)}</span>}
        </span>
      ))}
    </>
  )
}

/** A subcollection of a resource, or its history. */
export function Below({ r, collection, what, may }: { r: Resource; collection: string; what: string; may: May }) {
  const c = useSchema()?.collections[collection],
    path = `${collection}/${r.id}`
  if (what === "transactions") return <History path={path + "/transactions"} />
  if (what === "figures" && withFigures.includes(collection)) return <Figures object={path} />
  if (what === "leaseSpans") return <Spans key="leaseSpans" at={path + "/leaseSpans"} />
  if (what === "leases") return <Leases key="leases" at={path + "/leases"} />
  if (what === "signing" && "reverseZoneSigned" in r) return <Signing of={path} may={may} />
  if (!c) return <Loading what="the schema" />
  const table = c.b?.[what] && (
    <Table key={what} path={path + "/" + what} collection={what} c={c.b[what]} heading={collectionName(what)} />
  )
  if (what === "deploymentOptions" && withDHCP.includes(collection))
    return (
      <>
        <Options r={r} path={path} may={may} />
        <details>
          <summary>All deployment options of this object</summary>
          {table}
        </details>
      </>
    )
  return table ? table : <Nowhere />
}

/** The lists of a resource that have no tab of their own: links to all of them, and the chosen one. */
export function Further({
  r,
  collection,
  below,
  without = [],
  may,
}: {
  r: Resource
  collection: string
  below: string
  without?: string[]
  may: May
}) {
  const c = useSchema()?.collections[collection],
    lists = Object.keys(c?.b ?? {})
      .filter(n => c!.b![n].m?.includes("G") && !without.includes(n) && n !== "transactions")
      .map((n): [string, string] => [n, collectionName(n)])
      .concat(without.includes("transactions") ? [] : [["transactions", "History"]])
      .sort((a, b) => a[1].localeCompare(b[1]))
  return (
    <>
      <nav class="further" aria-label="More lists">
        {lists.map(([n, label]) => (
          <a key={n} href={`/ui/${collection}/${r.id}/${n}`} aria-current={n === below ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <Below r={r} collection={collection} what={below} may={may} />
    </>
  )
}

/** The collections whose DHCP options are shown with their inheritance. */
const withDHCP = ["configurations", "blocks", "networks", "ranges", "addresses"]

/** Subcollections that have a tab although answers have no link to them. */
const featured: Record<string, string> = { vlanGroups: "vlans", vlans: "networks" }

/** The collections with figures over time that have no page of their own. */
const withFigures = ["servers", "blocks", "ranges"]

/** The page of any resource: its fields and subcollections. */
export function ResourcePage({ collection, id, below }: { collection: string; id: string; below?: string }) {
  const schema = useSchema()
  const { data: r, problem, reload } = useResource(`${collection}/${id}`)
  useEvery(1000, () => {
    if (collection !== "workflowRequests" && inProgress(r?.state)) reload() // the change feed does not report the progress of operations
  })
  const [editing, setEditing] = useState(false),
    [deleting, setDeleting] = useState(false),
    may = useMay(r?._links?.effectiveRights || r?._links?.accessRights ? `${collection}/${id}` : null)
  if (!r || !schema)
    return problem ? (
      <>
        <Head title={collectionName(collection)} />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading />
    )
  const c = schema.collections[collection]
  const all = Object.keys(c?.b ?? {})
      .filter(n => c!.b![n].m?.includes("G") && n !== "transactions")
      .sort(),
    subs = all.filter(n => r._links?.[n] || featured[collection] === n),
    others = all.filter(n => !subs.includes(n))
  const base = `/ui/${collection}/${id}`
  const tabs: [string, string][] = [
    ["", "Fields"],
    ...subs.map((n): [string, string] => [n, collectionName(n)]),
    ...(withFigures.includes(collection) ? [["figures", "Figures"] as [string, string]] : []),
    ...(r.type === "User" ? [["access", "Access"] as [string, string]] : []),
    ...(r.reverseZoneSigned ? [["signing", "Keys"] as [string, string]] : []),
    ...(r._links?.transactions ? [["transactions", "History"] as [string, string]] : []),
  ]
  return (
    <>
      <Head title={title(r)} kind={kind(r.type) + (subtitle(r) ? " · " + subtitle(r) : "")} crumbs={<Crumbs r={r} />}>
        {c?.o?.includes("A") && may.change && (
          <Button icon="pencil" onClick={() => setEditing(true)}>
            Change
          </Button>
        )}
        {c?.o?.includes("D") && may.remove && (
          <Button icon="trash-2" onClick={() => setDeleting(true)}>
            Delete
          </Button>
        )}
      </Head>
      <Tabs tabs={tabs} chosen={below ?? ""} choose={k => go(k ? base + "/" + k : base)} />
      {collection === "servers" && !below && schema.collections.servers?.b?.dhcpPartners && <Partners r={r} />}
      {others.length > 0 && (
        <p class="muted small">
          Also:{" "}
          {others.map((n, i) => (
            <span key={n}>
              {i ? ", " : ""}
              {below === n ? <strong>{nounOf(n)}</strong> : <a href={base + "/" + n}>{nounOf(n)}</a>}
            </span>
          ))}
          .
        </p>
      )}
      {!below ? (
        <>
          <Fields r={r} />
          {collection === "servers" && r.servicePoint && (
            <section class="card">
              <h2>Ask this server</h2>
              <AskServer server={r.id} />
            </section>
          )}
        </>
      ) : below === "access" && r.type === "User" ? (
        <AccessOf user={r.id} />
      ) : (
        <Below r={r} collection={collection} what={below} may={may} />
      )}
      {editing && <Edit r={r} close={() => setEditing(false)} done={reload} />}
      {deleting && (
        <Delete
          r={r}
          close={() => setDeleting(false)}
          done={() =>
            go(
              r._links?.up && !r._links.up.href.endsWith("/1")
                ? "/ui/" + r._links.up.href.replace(/^\/api\/v2\//, "")
                : "/ui/" + collection,
            )
          }
        />
      )}
    </>
  )
}
