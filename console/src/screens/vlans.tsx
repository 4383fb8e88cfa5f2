// VLANs: the groups of a configuration, the VLANs of a group with their networks, and the next free number.
import { useState } from "preact/hooks"
import { get, query, type Page, type Resource } from "../api"
import { useData, useRows } from "../data"
import { filterOf } from "../filter"
import { hrefOf, To } from "../links"
import { Button, Empty, Field, Head, Loading, Trouble } from "../parts/basics"
import { NoConfiguration } from "../parts/configuration"
import { Create, Delete, Edit } from "../parts/edit"
import { Grid } from "../parts/grid"
import { selectable, SelectableList, useSelection } from "../parts/selection"
import { FilterForm } from "../parts/tools"
import { useMay, type May } from "../rights"
import { go, place, setQuery } from "../router"
import { useSchema } from "../schema"
import { configuration, configurations } from "../session"
import { useColumns } from "../parts/userfields"
import { Value } from "./generic"
import { counted, number, fieldName } from "../words"

interface FreeNumbers {
  next: number | null
  used: number
  free: number
  ranges: { first: number; last: number }[]
}

/** The maximum number of groups in the selection. */
const maxGroups = 1000

export function VLANs() {
  const c = configuration.value,
    schema = useSchema(),
    chosen = Number(place.value.query.get("group")) || null
  const path = c === null ? null : `configurations/${c}/vlanGroups` + query({ orderBy: "name", limit: maxGroups })
  const groups = useData<Page>(path, s => get<Page>(path!, { signal: s }), ["vlanGroups"])
  const list = groups.data?.data ?? [],
    group = list.find(g => g.id === chosen) ?? list[0]
  const may = useMay(group ? "vlanGroups/" + group.id : null),
    above = useMay(c === null ? null : "configurations/" + c)
  const [making, setMaking] = useState<"group" | "vlan" | null>(null),
    [editing, setEditing] = useState(false)
  if (c === null)
    return (
      <>
        <Head title="VLANs" />
        <NoConfiguration />
      </>
    )
  const makes =
    schema?.collections[making === "group" ? "configurations" : "vlanGroups"]?.b?.[
      making === "group" ? "vlanGroups" : "vlans"
    ]
  return (
    <>
      <Head title="VLANs" kind={configurations.value.find(x => x.id === c)?.name ?? ""}>
        {above.add && (
          <Button icon="plus" primary={!list.length} onClick={() => setMaking("group")}>
            New group
          </Button>
        )}
        {group && may.add && (
          <Button icon="plus" primary onClick={() => setMaking("vlan")}>
            New VLAN
          </Button>
        )}
      </Head>
      {groups.problem ? (
        <Trouble problem={groups.problem} retry={groups.reload} />
      ) : !groups.data ? (
        <Loading what="the groups" />
      ) : !group ? (
        <Empty title="No VLAN groups yet.">
          A group has unique numbers, such as the VLANs of a site. Create a group, then its VLANs.
        </Empty>
      ) : (
        <>
          <div class="tools group-tools">
            <Field label="Group">
              {id => (
                <select
                  id={id}
                  value={group.id}
                  onChange={e => setQuery({ group: e.currentTarget.value, filter: null, orderBy: null })}
                >
                  {list.map(g => (
                    <option key={g.id} value={g.id}>
                      {g.name}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Numbers group={group} />
            <span class="grow" />
            <a class="button" href={hrefOf(group) || "/ui/vlanGroups/" + group.id}>
              Group details
            </a>
            {may.change && (
              <Button icon="pencil" onClick={() => setEditing(true)}>
                Change group
              </Button>
            )}
          </div>
          <List key={group.id} group={group} may={may} />
        </>
      )}
      {editing && group && <Edit r={group} close={() => setEditing(false)} done={groups.reload} />}
      {making && makes && (
        <Create
          path={making === "group" ? `configurations/${c}/vlanGroups` : `vlanGroups/${group!.id}/vlans`}
          makes={makes}
          only={
            making === "group"
              ? ["name", "description", "firstNumber", "lastNumber", "location"]
              : ["name", "number", "description"]
          }
          title={making === "group" ? "New VLAN group" : `New VLAN in ${group!.name}`}
          close={() => setMaking(null)}
          done={r => {
            if (making === "group" && r?.id) setQuery({ group: String(r.id) })
            groups.reload()
          }}
        />
      )}
    </>
  )
}

/** The numbers of a group in use, and the free ones. */
function Numbers({ group }: { group: Resource }) {
  const path = `vlanGroups/${group.id}/freeNumbers`
  const { data, problem, reload } = useData<FreeNumbers>(path, s => get(path, { signal: s, quiet: true }), [
    "vlans",
    "vlanGroups",
  ])
  if (!data) return problem ? <Trouble problem={problem} retry={reload} /> : null
  const ranges = data.ranges.slice(0, 4).map(r => (r.first === r.last ? `${r.first}` : `${r.first}–${r.last}`))
  return (
    <p class="numbers">
      {data.next === null ? (
        <strong>No free number</strong>
      ) : (
        <>
          Next free number <strong class="num">{data.next}</strong>
        </>
      )}
      <span class="muted">
        {" "}
        · {number(data.used)} used, {number(data.free)} free
        {ranges.length > 0 && `: ${ranges.join(", ")}${data.ranges.length > ranges.length ? " …" : ""}`}
      </span>
    </p>
  )
}

/** The VLANs of a group, by number. */
function List({ group, may }: { group: Resource; may: May }) {
  const order = place.value.query.get("orderBy") ?? "asc(number)"
  const text = (place.value.query.get("filter") ?? "").trim(),
    filter = /^\d+$/.test(text) ? `number:${text}` : filterOf(text)
  const rows = useRows(`vlanGroups/${group.id}/vlans`, { orderBy: order, ...(filter ? { filter } : {}) }, ["vlans"]),
    selection = useSelection(rows),
    schema = useSchema()
  const [editing, setEditing] = useState<Resource | null>(null),
    [deleting, setDeleting] = useState<Resource | null>(null)
  const { columns, chooser } = useColumns(
    "VLANs",
    schema,
    ["VLAN"],
    [
      { key: "number", title: "Number", width: "6rem", narrow: "4rem", sort: "number", cell: r => r.number },
      {
        key: "name",
        title: "Name",
        width: "minmax(9rem,1.4fr)",
        sort: "name",
        cell: r => <a href={"/ui/vlans/" + r.id}>{r.name}</a>,
      },
      { key: "networks", title: "Networks", width: "minmax(10rem,2fr)", cell: r => <Networks id={r.id} /> },
      {
        key: "description",
        title: "Description",
        minor: true,
        width: "minmax(8rem,2fr)",
        cell: r => <span class="muted">{r.description}</span>,
      },
    ],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  return (
    <>
      <SelectableList
        rows={rows}
        noun="VLANs"
        filter={<FilterForm table="VLANs" parameters={["filter", "orderBy"]} placeholder="number, name or filter" />}
        chooser={chooser}
        selection={selection}
        collection="vlans"
        may={may}
      >
        {total => (
          <Grid
            label="VLANs"
            select={selectable(selection)}
            count={total}
            at={rows.at}
            id={r => r.id}
            open={r => go("/ui/vlans/" + r.id)}
            order={order}
            reorder={o => setQuery({ orderBy: o })}
            onKey={(e, r) => {
              if (r && may.change && e.key === "e") {
                e.preventDefault()
                setEditing(r)
              } else if (r && may.remove && e.key === "Delete") {
                e.preventDefault()
                setDeleting(r)
              }
            }}
            empty={
              <Empty title={text ? "No VLANs match." : "No VLANs yet."}>{!text && may.add && "Select New VLAN."}</Empty>
            }
            columns={columns}
          />
        )}
      </SelectableList>
      {editing && (
        <Edit r={editing} only={["name", "number", "description"]} close={() => setEditing(null)} done={rows.reload} />
      )}
      {deleting && <Delete r={deleting} close={() => setDeleting(null)} done={rows.reload} />}
    </>
  )
}

/** The maximum number of networks in a row. */
const maxNetworks = 3

/** The networks of a VLAN. */
function Networks({ id }: { id: number }) {
  const path =
    `vlans/${id}/networks` + query({ limit: maxNetworks, total: true, fields: "id,type,name,range", orderBy: "range" })
  const { data, problem } = useData<Page>(path, s => get<Page>(path, { signal: s, quiet: true }), ["networks"])
  if (!data) return <span class="muted">{problem ? problem.message : "…"}</span>
  if (!data.data.length) return <span class="muted">—</span>
  const more = (data.totalCount ?? 0) - data.data.length
  return (
    <span>
      {data.data.map((n, i) => (
        <span key={n.id}>
          {i ? ", " : ""}
          <To r={n} mono />
        </span>
      ))}
      {more > 0 && (
        <a href={`/ui/vlans/${id}/networks`} class="muted">
          {" "}
          and {counted(more, "networks")} more
        </a>
      )}
    </span>
  )
}
