// Views, zones, and the records of a zone, as a table and as text.
import { useEffect, useMemo, useState } from "preact/hooks"
import { call, get, query, type Page, type Problem, type Resource } from "../api"
import { inProgress, problemOf, useData, useEvery, useResource, useRows } from "../data"
import { Icon } from "../icons"
import { kind, To } from "../links"
import { Button, Dialog, Empty, Field, Head, Loading, State, Tabs, Trouble, When } from "../parts/basics"
import { Create, Delete, Edit } from "../parts/edit"
import { actions, Grid, RowActions } from "../parts/grid"
import { faultOf } from "../parts/form"
import { Preview } from "../parts/preview"
import { selectable, SelectionBar, useSelection } from "../parts/selection"
import { FilterForm, RowTools, SaveRows } from "../parts/tools"
import { useColumns } from "../parts/userfields"
import { dataOf, difference, lineText, linesOf, type Difference } from "../records"
import { useMay, type May } from "../rights"
import { filterOf } from "../filter"
import { go, guardLeaving, place, setQuery } from "../router"
import { useSchema } from "../schema"
import { configuration, configurations } from "../session"
import { change } from "../work"
import type { Zone } from "../types"
import { CollectionPage, Crumbs, Fields, Further, Value } from "./generic"
import { Signing } from "./signing"
import { counted, number, fieldName } from "../words"
import { toast } from "../notice"

export function Names() {
  const c = configuration.value,
    q = place.value.query,
    name = q.get("name") ?? "",
    schema = useSchema(),
    [making, setMaking] = useState<string | null>(null),
    [editing, setEditing] = useState<Resource | null>(null),
    [deleting, setDeleting] = useState<Resource | null>(null)
  const views = useData<Page>(
    c ? "views of " + c : null,
    s => get(`configurations/${c}/views?limit=1000`, { signal: s }),
    ["views"],
  )
  const list = views.data?.data ?? [],
    wanted = q.get("view") ?? "",
    view = !views.data || list.some(v => String(v.id) === wanted) ? wanted : "" // ignore a view of another configuration
  const filter = [`configuration.id:${c}`, view && `view.id:${view}`, name && `(${filterOf(name, "absoluteName")})`]
    .filter(Boolean)
    .join(" and ")
  const rows = useRows(c ? "zones" : null, { filter, orderBy: "absoluteName" }, ["zones", "views"])
  const selection = useSelection(rows)
  const into = view || (list[0] ? String(list[0].id) : ""),
    may = useMay(c ? "configurations/" + c : null),
    mayInto = useMay(into ? "views/" + into : null)
  const { columns, chooser } = useColumns(
    "zones of a view",
    schema,
    schema?.collections.zones?.t ?? [],
    [
      {
        key: "name",
        title: "Zone",
        width: "minmax(12rem,2fr)",
        cell: z => (
          <a class="mono" tabIndex={-1} href={"/ui/zones/" + z.id}>
            {z.absoluteName || "."}
          </a>
        ),
      },
      { key: "type", title: "Type", width: "9rem", minor: true, cell: z => kind(z.type) },
      { key: "view", title: "View", width: "9rem", narrow: "5rem", cell: z => z.view?.name },
      {
        key: "deployed",
        title: "Deployed",
        width: "7rem",
        minor: true,
        cell: z => (z.deploymentEnabled === false ? <span class="muted">no</span> : "yes"),
      },
      {
        key: "signed",
        title: "Signed",
        width: "6rem",
        narrow: "4rem",
        cell: z =>
          z.signed ? (
            <span class="chip good">
              <Icon name="check" size={13} />
              yes
            </span>
          ) : (
            <span class="muted">no</span>
          ),
      },
    ],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  if (c === null)
    return (
      <>
        <p class="muted">You have access to parts of this configuration. These are the zones visible to you.</p>
        <CollectionPage name="zones" />
      </>
    )
  return (
    <>
      <Head title="Names" kind={configurations.value.find(x => x.id === c)?.name ?? ""}>
        {may.add && (
          <Button icon="plus" onClick={() => setMaking("view")}>
            New view
          </Button>
        )}
        {mayInto.add && (
          <Button icon="plus" primary disabled={!list.length} onClick={() => setMaking("zone")}>
            New zone
          </Button>
        )}
      </Head>
      <div class="tools">
        <label class="inline">
          View{" "}
          <select value={view} onChange={e => setQuery({ view: e.currentTarget.value })}>
            <option value="">all {list.length}</option>
            {list.map(v => (
              <option key={v.id} value={v.id}>
                {v.name}
                {v.liveDeployment ? " (live)" : ""}
              </option>
            ))}
          </select>
        </label>
        {view && <a href={"/ui/views/" + view}>view details</a>}
        <FilterForm
          table="zones of a view"
          parameter="name"
          parameters={["name", "view"]}
          label="Filter zones"
          placeholder="zone name or filter"
        />
        <span class="muted">{rows.total !== undefined && counted(rows.total, "zones")}</span>
        <span class="grow" />
        {chooser}
        <SaveRows rows={rows} />
      </div>
      <SelectionBar selection={selection} rows={rows} collection="zones" c={schema?.collections.zones} may={mayInto} />
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what="the zones" />
      ) : (
        <Grid
          select={selectable(selection)}
          label="Zones"
          count={rows.total}
          at={rows.at}
          id={z => z.id}
          open={z => go("/ui/zones/" + z.id)}
          onKey={(e, z) => {
            if (z && mayInto.change && e.key === "e") {
              e.preventDefault()
              setEditing(z)
            } else if (z && mayInto.remove && e.key === "Delete") {
              e.preventDefault()
              setDeleting(z)
            }
          }}
          empty={
            <Empty
              title={name ? "No zones match." : mayInto.add || may.add ? "No zones yet." : "No zones visible to you."}
            >
              {!list.length && "A zone belongs to a view. A view is the DNS data for one group of clients."}
            </Empty>
          }
          columns={columns}
        />
      )}
      {editing && <Edit r={editing} close={() => setEditing(null)} done={rows.reload} />}
      {deleting && <Delete r={deleting} close={() => setDeleting(null)} done={rows.reload} />}
      {making === "view" && (
        <Create
          path={`configurations/${c}/views`}
          makes={{ n: { View: ["type", "name"] } }}
          only={["name", "liveDeployment"]}
          close={() => setMaking(null)}
          done={views.reload}
        />
      )}
      {making === "zone" && <NewZone views={list} view={into} close={() => setMaking(null)} done={rows.reload} />}
    </>
  )
}

function NewZone({
  views,
  view,
  close,
  done,
}: {
  views: Resource[]
  view: string
  close: () => void
  done: () => void
}) {
  const [name, setName] = useState(""),
    [at, setAt] = useState(view),
    [served, setServed] = useState(true)
  return (
    <Preview
      title="New zone"
      close={close}
      done={done}
      waits
      wanted={
        name
          ? {
              method: "POST",
              path: `views/${at}/zones`,
              body: { type: "Zone", absoluteName: name.replace(/\.$/, ""), deploymentEnabled: served },
              says: `Created zone ${name}.`,
            }
          : null
      }
    >
      {problem => (
        <div class="fields">
          <Field
            label="Name *"
            hint="Fully qualified, such as example.com or 1.0.10.in-addr.arpa."
            wrong={faultOf(problem, "absoluteName") ?? faultOf(problem, "name")}
          >
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                class="mono"
                value={name}
                onInput={e => setName(e.currentTarget.value.trim())}
              />
            )}
          </Field>
          <Field label="View">
            {id => (
              <select id={id} value={at} onChange={e => setAt(e.currentTarget.value)}>
                {views.map(v => (
                  <option key={v.id} value={v.id}>
                    {v.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Deploy this zone" hint="Servers with a role for the zone or its view serve it.">
            {(id, d) => (
              <select
                id={id}
                aria-describedby={d}
                value={String(served)}
                onChange={e => setServed(e.currentTarget.value === "true")}
              >
                <option value="true">yes</option>
                <option value="false">no</option>
              </select>
            )}
          </Field>
        </div>
      )}
    </Preview>
  )
}

/** The maximum number of records that are shown as text. */
const maxAsText = 5000

export function ZonePage({ id, below }: { id: string; below?: string }) {
  const { data: z, problem, reload } = useResource<Zone>("zones/" + id)
  const q = place.value.query,
    tab = q.get("tab") ?? "",
    [act, setAct] = useState<string | null>(null),
    may = useMay("zones/" + id)
  if (!z)
    return problem ? (
      <>
        <Head title="Zone" />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading />
    )
  const deploy = () =>
    change("Deployment queued.", "POST", `zones/${id}/deployments`, { type: "QuickDeployment" }).then(
      () => setQuery({ tab: "deployed" }),
      e => toast(problemOf(e).message, { bad: true, action: { label: "Show servers", run: () => go("/ui/servers") } }),
    )
  return (
    <>
      <Head title={<span class="mono">{z.absoluteName || "."}</span>} kind={kind(z.type)} crumbs={<Crumbs r={z} />}>
        {may.change && (
          <Button icon="rocket" onClick={() => void deploy()}>
            Deploy
          </Button>
        )}
        {may.change && (
          <Button icon="pencil" onClick={() => setAct("edit")}>
            Change
          </Button>
        )}
        {may.remove && (
          <Button icon="trash-2" onClick={() => setAct("delete")}>
            Delete
          </Button>
        )}
        {may.add && (
          <Button icon="plus" primary onClick={() => setAct("record")}>
            New record
          </Button>
        )}
      </Head>
      <Tabs
        tabs={[
          ["", "Records"],
          ["text", "As text"],
          ["zones", "Zones below"],
          ["checks", "Checks"],
          ["deployed", "Deployed"],
          ["signing", "DNSSEC"],
          ["fields", "All fields"],
          ["more", "More"],
        ]}
        chosen={below ? "more" : tab}
        choose={k =>
          k === "more"
            ? go(`/ui/zones/${id}/deploymentRoles`)
            : below
              ? go(`/ui/zones/${id}` + query({ tab: k }))
              : setQuery({ tab: k, filter: null })
        }
      />
      {below ? (
        <Further
          r={z}
          collection="zones"
          below={below}
          without={["resourceRecords", "zones", "deployments"]}
          may={may}
        />
      ) : tab === "text" ? (
        <AsText z={z} />
      ) : tab === "zones" ? (
        <Below z={z} />
      ) : tab === "checks" ? (
        <Checks z={z} />
      ) : tab === "deployed" ? (
        <>
          <Serving id={id} />
          <h2>Deployments</h2>
          <Deployed path={`zones/${id}/deployments`} />
        </>
      ) : tab === "signing" ? (
        <Signing of={"zones/" + id} may={may} />
      ) : tab === "fields" ? (
        <Fields r={z} />
      ) : (
        <Records z={z} may={may} />
      )}
      {act === "edit" && <Edit r={z} close={() => setAct(null)} done={reload} />}
      {act === "delete" && <Delete r={z} close={() => setAct(null)} done={() => go("/ui/names")} />}
      {act === "record" && <NewRecord z={z} close={() => setAct(null)} />}
    </>
  )
}

const shownFields: Record<string, string[]> = {
  HostRecord: ["name", "addresses", "ttl", "reverseRecord"],
  AliasRecord: ["name", "linkedRecord", "ttl"],
  MXRecord: ["name", "priority", "linkedRecord", "ttl"],
  SRVRecord: ["name", "priority", "weight", "port", "linkedRecord", "ttl"],
  TXTRecord: ["name", "text", "ttl"],
  GenericRecord: ["name", "recordType", "rdata", "ttl"],
}

/** Creates a record: hosts by address, other types by their fields. */
function NewRecord({ z, close }: { z: Resource; close: () => void }) {
  const schema = useSchema(),
    makes = schema?.collections.zones?.b?.resourceRecords
  const [what, setWhat] = useState("HostRecord"),
    [name, setName] = useState(""),
    [addresses, setAddresses] = useState(""),
    [back, setBack] = useState(true)
  if (!makes)
    return (
      <Dialog title="New record" close={close}>
        <Loading what="the schema" />
      </Dialog>
    )
  const types = (
    <Field label="Type">
      {id => (
        <select id={id} value={what} onChange={e => setWhat(e.currentTarget.value)}>
          {Object.keys(makes.n ?? {})
            .sort((a, b) => Number(b === "HostRecord") - Number(a === "HostRecord"))
            .map(n => (
              <option key={n} value={n}>
                {kind(n)}
              </option>
            ))}
        </select>
      )}
    </Field>
  )
  if (what !== "HostRecord")
    return (
      <Create
        key={what}
        head={types}
        values={name ? { name } : undefined}
        path={`zones/${z.id}/resourceRecords`}
        makes={makes}
        types={[what]}
        only={shownFields[what]}
        fallback={{ name: "@" }}
        close={close}
        title={"New " + kind(what)}
      />
    )
  const list = addresses.split(/[\s,]+/).filter(Boolean)
  return (
    <Preview
      title="New record"
      close={close}
      waits
      wanted={
        list.length
          ? {
              method: "POST",
              path: `zones/${z.id}/resourceRecords`,
              body: {
                type: "HostRecord",
                name: name || "@",
                addresses: list.map(address => ({ address })),
                reverseRecord: back,
              },
              says: `Created ${name || "@"}.${z.absoluteName}.`,
            }
          : null
      }
    >
      {problem => (
        <>
          {types}
          <div class="fields">
            <Field
              label="Name"
              wrong={faultOf(problem, "name") ?? faultOf(problem, "absoluteName")}
              hint={`Relative to ${z.absoluteName}. Empty or @: the zone itself.`}
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  value={name}
                  onInput={e => setName(e.currentTarget.value.trim())}
                />
              )}
            </Field>
            <Field
              label="Addresses *"
              hint="One or more IPv4 or IPv6 addresses. Free addresses are assigned."
              wrong={faultOf(problem, "addresses")}
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  value={addresses}
                  onInput={e => setAddresses(e.currentTarget.value)}
                />
              )}
            </Field>
            <Field label="Reverse record">
              {id => (
                <select id={id} value={String(back)} onChange={e => setBack(e.currentTarget.value === "true")}>
                  <option value="true">yes (PTR record)</option>
                  <option value="false">no</option>
                </select>
              )}
            </Field>
          </div>
        </>
      )}
    </Preview>
  )
}

const embed = "embed(addresses)"

function Records({ z, may }: { z: Resource; may: May }) {
  const q = place.value.query,
    schema = useSchema(),
    types = schema?.collections.resourceRecords?.t ?? [],
    only = q.get("type") ?? "",
    name = q.get("name") ?? "",
    [editing, setEditing] = useState<Resource | null>(null),
    [deleting, setDeleting] = useState<Resource | null>(null)
  const filter = [only && `type:'${only}'`, name && `(${filterOf(name)})`].filter(Boolean).join(" and ")
  const rows = useRows(
    `zones/${z.id}/resourceRecords`,
    { filter: filter || undefined, orderBy: "name", fields: embed },
    ["resourceRecords", "addresses"],
  )
  const selection = useSelection(rows)
  const { columns, chooser } = useColumns(
    "records of a zone",
    schema,
    types,
    [
      {
        key: "name",
        title: "Name",
        width: "minmax(10rem,2fr)",
        narrow: "minmax(0,1fr)",
        cell: r => (
          <a class="mono" tabIndex={-1} href={"/ui/resourceRecords/" + r.id}>
            {r.name || "@"}
          </a>
        ),
      },
      {
        key: "type",
        title: "Type",
        width: "8rem",
        narrow: "3.6rem",
        cell: r => (r.type === "GenericRecord" ? r.recordType : kind(r.type).replace(/ record$/, "")),
      },
      {
        key: "ttl",
        title: "TTL",
        width: "5rem",
        number: true,
        minor: true,
        cell: r => r.ttl ?? <span class="muted">zone</span>,
      },
      {
        key: "data",
        title: "Data",
        width: "minmax(12rem,3fr)",
        narrow: "minmax(0,1fr)",
        cell: r =>
          r.type === "HostRecord" ? (
            <span class="cut">
              {((r._embedded?.addresses ?? []) as Resource[]).map((a, i) => (
                <span key={a.id}>
                  {i ? ", " : ""}
                  <To r={a} mono />
                </span>
              ))}
            </span>
          ) : (
            <span class="mono cut">
              {dataOf(r)
                .map(d => d.data)
                .join(" · ")}
            </span>
          ),
      },
      {
        ...actions,
        cell: r =>
          may.change && <RowActions name={r.name || "@"} change={() => setEditing(r)} remove={() => setDeleting(r)} />,
      },
    ],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  return (
    <>
      <div class="tools">
        <label class="inline">
          Type{" "}
          <select value={only} onChange={e => setQuery({ type: e.currentTarget.value })}>
            <option value="">all</option>
            {types.map(t => (
              <option key={t} value={t}>
                {kind(t)}
              </option>
            ))}
          </select>
        </label>
        <FilterForm
          table="records of a zone"
          parameter="name"
          parameters={["name", "type"]}
          label="Filter records"
          placeholder="name or filter"
        />
        <span class="muted">{rows.total !== undefined && counted(rows.total, "records")}</span>
        <span class="grow" />
        {chooser}
        <SaveRows rows={rows} />
      </div>
      <SelectionBar
        selection={selection}
        rows={rows}
        collection="resourceRecords"
        c={schema?.collections.resourceRecords}
        may={may}
      />
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what="the records" />
      ) : (
        <Grid
          select={selectable(selection)}
          label={"Records of " + z.absoluteName}
          count={rows.total}
          at={rows.at}
          id={r => r.id}
          open={setEditing}
          onKey={(e, r) => {
            if (!r || !may.change) return
            if (e.key === "e") {
              e.preventDefault()
              setEditing(r)
            } else if (e.key === "Delete") {
              e.preventDefault()
              setDeleting(r)
            }
          }}
          empty={<Empty title={filter ? "No records match." : "No records yet."} />}
          columns={columns}
        />
      )}
      {editing && (
        <Edit r={editing} only={shownFields[editing.type]} close={() => setEditing(null)} done={rows.reload} />
      )}
      {deleting && <Delete r={deleting} close={() => setDeleting(null)} done={rows.reload} />}
    </>
  )
}

/** The zone as text, with an editor and a preview of the difference. */
function AsText({ z }: { z: Resource }) {
  const path =
    `zones/${z.id}/resourceRecords` + query({ limit: maxAsText, orderBy: "name", total: true, fields: embed })
  const found = useData<Page>(path, s => get(path, { signal: s }), ["resourceRecords"])
  const before = useMemo(
    () =>
      found.data
        ? linesOf(found.data.data)
            .map(l => lineText(l.line))
            .join("\n") + "\n"
        : "",
    [found.data],
  )
  // The base records stay fixed during an edit, so that the edit does not delete records that other users add meanwhile.
  const [edited, setEdited] = useState<{ text: string; base: Resource[] } | null>(null),
    [applying, setApplying] = useState<Difference["changes"] | null>(null),
    [problem, setProblem] = useState<Problem>()
  useEffect(() => {
    if (!edited) return
    guardLeaving(() => confirm("Your changes to the text are not applied. Leave the page and discard them?"))
    return () => guardLeaving(null)
  }, [!edited])
  const generic = useSchema()?.types.GenericRecord?.f.find(f => f.n === "recordType")?.e
  if (!found.data)
    return found.problem ? <Trouble problem={found.problem} retry={found.reload} /> : <Loading what="the records" />
  const text = edited?.text ?? null,
    type = (t: string | null) => setEdited(t === null ? null : { text: t, base: edited?.base ?? found.data!.data })
  const d = edited && difference(z.id, edited.base, edited.text, z.absoluteName ?? "", generic),
    moved = edited && edited.base !== found.data.data
  const whole = (found.data.totalCount ?? 0) <= maxAsText
  /** Checks that the changed records still equal the base of the text. The changes are conditional on these versions. */
  const prepare = async () => {
    setProblem(undefined)
    try {
      const changes = await Promise.all(
        d!.changes.map(async c => {
          if (c.method === "POST") return c
          const now = await call<Resource>("GET", c.path + query({ fields: embed }), undefined, { quiet: true }),
            was = edited!.base.find(r => r.id === now.body.id)
          const text = (r: Resource | undefined) =>
            r
              ? linesOf([r])
                  .map(l => lineText(l.line))
                  .sort()
                  .join("\n")
              : ""
          if (text(now.body) !== text(was))
            throw new Error(
              `Another user has changed ${now.body.absoluteName ?? now.body.name} to ${text(now.body).replaceAll("\n", ", ")}. Discard your changes and edit the current text.`,
            )
          return now.etag ? { ...c, headers: { "If-Match": now.etag } } : c
        }),
      )
      setApplying(changes)
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <>
      {!whole && (
        <p class="muted">
          The first {number(maxAsText)} of {number(found.data.totalCount!)} records, read-only.
        </p>
      )}
      <p class="muted small">
        Each line has the form NAME TTL TYPE DATA. Names without a trailing dot are relative to {z.absoluteName}, also
        in the data; @ is the zone itself. The TTL is optional; - stands for the TTL of the zone. Options and deployment
        roles define the SOA and NS records.
      </p>
      <label class="hidden" for="zone-text">
        Records as text
      </label>
      <textarea
        id="zone-text"
        class="mono zone-text"
        spellcheck={false}
        rows={Math.min(30, Math.max(8, before.split("\n").length + 1))}
        readOnly={!whole}
        value={text ?? before}
        onInput={e => type(e.currentTarget.value)}
      />
      {moved && (
        <p class="muted">
          <Icon name="triangle-alert" size={14} /> Another user changed the zone. Records that others added stay, and
          are not in this text.
        </p>
      )}
      {d && (
        <section class="card">
          <h2>Difference</h2>
          {d.faults.map(f => (
            <p key={f} class="fault">
              {f}
            </p>
          ))}
          <pre class="difference" tabIndex={0}>
            {d.gone.map(l => (
              <del key={l}>{"- " + l + "\n"}</del>
            ))}
            {d.come.map(l => (
              <ins key={l}>{"+ " + l + "\n"}</ins>
            ))}
            {!d.gone.length && !d.come.length && "No lines changed."}
          </pre>
          <div class="buttons">
            <Button primary disabled={!d.changes.length || d.faults.length > 0} onClick={() => void prepare()}>
              Preview
            </Button>
            <Button
              onClick={() => {
                type(null)
                setProblem(undefined)
              }}
            >
              Discard changes
            </Button>
          </div>
        </section>
      )}
      {problem && <Trouble problem={problem} />}
      {applying && d && (
        <Preview
          title={"Change " + z.absoluteName}
          close={() => setApplying(null)}
          done={() => type(null)}
          staged={() => type(null)}
          wanted={{ method: "POST", path: "batch", body: { changes: applying }, says: `Changed ${z.absoluteName}.` }}
        >
          {() => (
            <p>
              {counted(d.gone.length, "lines")} removed, {number(d.come.length)} added:{" "}
              {counted(d.changes.length, "changes")}. Either all are applied, or none.
            </p>
          )}
        </Preview>
      )}
    </>
  )
}

function Below({ z }: { z: Resource }) {
  const rows = useRows(`zones/${z.id}/zones`, { orderBy: "name" }, ["zones"])
  return rows.problem ? (
    <Trouble problem={rows.problem} />
  ) : rows.total === undefined ? (
    <Loading />
  ) : (
    <>
      <RowTools rows={rows} noun="zones" />
      <Grid
        label="Zones below"
        count={rows.total}
        at={rows.at}
        id={x => x.id}
        open={x => go("/ui/zones/" + x.id)}
        empty={<Empty title="No zones below this zone." />}
        columns={[
          {
            key: "name",
            title: "Zone",
            cell: x => (
              <a class="mono" href={"/ui/zones/" + x.id}>
                {x.absoluteName}
              </a>
            ),
          },
          { key: "type", title: "Type", cell: x => kind(x.type) },
        ]}
      />
    </>
  )
}

interface Finding {
  r: Resource
  says: string
}

/** Checks of a zone: hosts without reverse records, and records without a target. */
function Checks({ z }: { z: Resource }) {
  const key = "checks " + z.id
  const { data, problem, reload } = useData<{ list: Finding[]; looked: number; total: number }>(
    key,
    async signal => {
      const page = await get<Page>(`zones/${z.id}/resourceRecords` + query({ limit: maxAsText, total: true }), {
        signal,
      })
      const below = (
        await get<Page>(`zones/${z.id}/zones` + query({ limit: 1000, fields: "id,name,absoluteName" }), {
          signal,
          quiet: true,
        })
      ).data.map(x => x.name)
      const list: Finding[] = []
      for (const r of page.data) {
        const there = below.find(n => n && (r.name === n || r.name?.endsWith("." + n)))
        if (there)
          list.push({
            r,
            says: `is inside the subzone ${there}.${z.absoluteName}, so this zone does not serve it`,
          })
        if (r.type === "HostRecord" && !r.reverseRecord) list.push({ r, says: "has no reverse record (PTR)" })
        if (["AliasRecord", "MXRecord", "SRVRecord"].includes(r.type) && !r.linkedRecord)
          list.push({ r, says: "has no target" })
        if (["AliasRecord", "MXRecord", "SRVRecord"].includes(r.type) && r.linkedRecord?.type === "ExternalHostRecord")
          list.push({ r, says: "points to an external name, which is not checked" })
        if (r.type === "MXRecord" && r.linkedRecord?.type === "AliasRecord")
          list.push({ r, says: "has an alias as its mail server, which RFC 2181 section 10.3 forbids" })
      }
      return { list, looked: page.data.length, total: page.totalCount ?? page.data.length }
    },
    ["resourceRecords"],
  )
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the records" />
  return (
    <>
      {data.looked < data.total && (
        <p class="muted">
          Of the first {number(data.looked)} of {number(data.total)} records.
        </p>
      )}
      {data.list.length === 0 ? (
        <Empty title="No problems found." />
      ) : (
        <ul class="plain-list">
          {data.list.map(({ r, says }, i) => (
            <li key={i}>
              <Icon name="triangle-alert" size={14} /> <To r={r} mono /> <span class="kind">{kind(r.type)}</span> {says}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

interface ServingAnswer {
  serial: number | null
  records: number
  servers: { id: number; type: string; name: string; current: boolean; connected: boolean }[]
}

/** The roles of servers that answer queries for a zone. */
const answering = ["PRIMARY", "HIDDEN_PRIMARY", "SECONDARY", "STEALTH_SECONDARY"]

/** The servers that have a role for a zone, also an inherited one. */
function useRoleServers(id: string): Resource[] {
  const path =
    `zones/${id}/effectiveDeploymentRoles` + query({ limit: 100, fields: "id,type,name,roleType,embed(interfaces)" })
  const { data } = useData<Page>(path, s => get<Page>(path, { signal: s, quiet: true }), ["deploymentRoles", "servers"])
  const servers = new Map<number, Resource>()
  for (const r of data?.data ?? [])
    if (answering.includes(r.roleType))
      for (const i of (r._embedded?.interfaces ?? []) as Resource[]) if (i.server) servers.set(i.server.id, i.server)
  return [...servers.values()]
}

/** The deployed serial number, the servers that serve it, and those with a role that were never deployed. */
function Serving({ id }: { id: string }) {
  const path = `zones/${id}/serving`,
    withRole = useRoleServers(id)
  const { data, problem, reload } = useData<ServingAnswer>(path, signal => get(path, { signal }), [
    "deployments",
    "resourceRecords",
    "zones",
  ])
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload()
    }, 5000)
    return () => clearInterval(timer)
  }, [path])
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the servers" />
  const missing = withRole.filter(s => !data.servers.some(x => x.id === s.id))
  if (data.serial === null)
    return (
      <Empty title="This zone has never been deployed.">
        Turn on deployment of the zone (Change), give a server a deployment role for the zone or its view, then make a
        full deployment of that server. Live views deploy later changes at once.
      </Empty>
    )
  return (
    <section class="card">
      <h2>
        Serial <span class="num">{data.serial}</span>
      </h2>
      <p class="muted">{number(data.records)} records, including SOA and NS.</p>
      {data.servers.length === 0 && missing.length === 0 ? (
        <p class="muted">No servers serve this zone.</p>
      ) : (
        <ul class="plain-list">
          {missing.map(s => (
            <li key={s.id}>
              <State of="NOT_DEPLOYED" /> <To r={s} /> has a role for this zone and does not serve it. Open the server
              and run a full deployment.
            </li>
          ))}
          {data.servers.map(s => (
            <li key={s.id}>
              <State of={!s.connected ? "NOT_CONNECTED" : s.current ? "CURRENT" : "BEHIND"} /> <To r={s as never} />{" "}
              {!s.connected
                ? "is not connected and serves its last state"
                : s.current
                  ? "serves this serial"
                  : "has not confirmed this serial yet"}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** The deployments of a zone or a server, newest first. */
export function Deployed({ path }: { path: string }) {
  const rows = useRows(path, { orderBy: "desc(id)" }, ["deployments"])
  // The change feed does not report deployments: their progress is read every second, and new ones of other users every five.
  const ends = (rows.total ?? 0) > 0 && !inProgress(rows.at(0)?.state ?? "QUEUED")
  useEvery(ends ? 5000 : 1000, rows.reload)
  return rows.problem ? (
    <Trouble problem={rows.problem} />
  ) : rows.total === undefined ? (
    <Loading what="the deployments" />
  ) : (
    <>
      <RowTools rows={rows} noun="deployments" />
      <Grid
        label="Deployments"
        count={rows.total}
        at={rows.at}
        id={d => d.id}
        open={d => go("/ui/deployments/" + d.id)}
        empty={<Empty title="No separate deployments yet.">A live view deploys each change immediately.</Empty>}
        columns={[
          { key: "when", title: "When", width: "9rem", cell: d => <When at={d.creationDateTime} /> },
          {
            key: "type",
            title: "Type",
            width: "11rem",
            cell: d => <a href={"/ui/deployments/" + d.id}>{kind(d.type)}</a>,
          },
          {
            key: "state",
            title: "State",
            width: "14rem",
            cell: d => (
              <span>
                <State of={d.state} />{" "}
                {d.state === "RUNNING" && d.percentComplete !== null && (
                  <progress max={100} value={d.percentComplete} aria-label="Progress" />
                )}
              </span>
            ),
          },
          {
            key: "message",
            title: "Message",
            width: "minmax(12rem,3fr)",
            cell: d => (
              <span class="cut" title={d.message}>
                {d.message}
              </span>
            ),
          },
        ]}
      />
    </>
  )
}
