// The page of a network with its addresses and the free space between them, and the page of an address.
import { useMemo, useRef, useState } from "preact/hooks"
import { get, literal, query, type Page, type Resource } from "../api"
import { useData, useResource, useRows, useEvery } from "../data"
import { kind, To } from "../links"
import { Button, Empty, Head, Loading, State, Tabs, Trouble, Use } from "../parts/basics"
import { Assign } from "../parts/assign"
import { Figures } from "../parts/chart"
import { Delete, Edit } from "../parts/edit"
import { actions, Grid, RowActions } from "../parts/grid"
import { SpaceMap } from "../parts/map"
import { cellsOf } from "../parts/mapcells"
import { type Client, droppedClient, isClientDragged, SpanList } from "../parts/leases"
import { selectable, SelectionBar, useSelection } from "../parts/selection"
import { FilterForm, SaveRows } from "../parts/tools"
import { useColumns, UserFacts } from "../parts/userfields"
import { useMay, type May } from "../rights"
import { go, place } from "../router"
import { useSchema } from "../schema"
import { session } from "../session"
import { address, amount, parseAddress, parseSpan, size, span, usedOf, type Span } from "../space"
import type { DHCPv4Lease, IPv4Address, IPv4Network, IPv6Address, IPv6Network } from "../types"
import { LastChanges } from "../parts/latest"
import { filterOf } from "../filter"
import { Below, Crumbs, Fields, Further, Value } from "./generic"
import { NetworkDHCP } from "./netdhcp"
import { Doing, Menu } from "./space"
import { counted, number, fieldName } from "../words"
import { toast } from "../notice"

/** The tabs of a network page: key and label. */
const parts: [below: string, label: string][] = [
  ["map", "Map"],
  ["dhcp", "DHCP"],
  ["ranges", "Ranges"],
  ["figures", "Figures"],
  ["deploymentOptions", "Options"],
  ["deploymentRoles", "Roles"],
  ["signing", "Keys"],
  ["fields", "All fields"],
  ["transactions", "History"],
]
const ofNetwork = parts.map(([below]) => below)

export function NetworkPage({ id, below = "" }: { id: string; below?: string }) {
  const {
    data: r,
    problem,
    reload,
  } = useResource<IPv4Network | (IPv6Network & { usage?: undefined; gateway?: undefined })>("networks/" + id, [
    "networks",
    "addresses",
    "ranges",
  ])
  const may = useMay("networks/" + id)
  const [act, setAct] = useState<string | null>(null),
    [assigning, setAssigning] = useState<{ s: Span; count: number } | null>(null),
    assign = (s: Span, count = 1) => setAssigning({ s, count }),
    [dropped, setDropped] = useState<{ client: Client; at: string } | null>(null)
  if (!r)
    return problem ? (
      <>
        <Head title="Network" />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading />
    )
  const s = parseSpan(r.range)!,
    up = r._links?.up?.href.replace(/^\/api\/v2\//, "") ?? "",
    { used, all } = usedOf(r),
    base = "/ui/networks/" + id
  const done = () => {
    setAct(null)
    reload()
    if (act === "delete") go("/" + up.replace(/^/, "ui/"))
  }
  return (
    <>
      <Head
        title={<span class="mono">{r.range}</span>}
        kind={kind(r.type) + (r.name ? " · " + r.name : "")}
        crumbs={<Crumbs r={r} />}
      >
        {may.change && (
          <Button icon="pencil" onClick={() => setAct("edit")}>
            Change
          </Button>
        )}
        {may.change && (
          <Button icon="ellipsis-vertical" onClick={() => setAct("menu")}>
            More
          </Button>
        )}
        {may.add && (
          <Button icon="plus" primary onClick={() => setAct("address")}>
            Assign address
          </Button>
        )}
      </Head>
      <p class="summary">
        {r.usage && (
          <>
            <Use part={used} of={all} />{" "}
            <span class="muted">
              {number(used)} of {number(all)} in use
            </span>{" "}
            ·{" "}
          </>
        )}
        {r.gateway && (
          <>
            gateway <span class="mono">{r.gateway}</span> ·{" "}
          </>
        )}
        {r.location && <>{r.location.name} · </>}
        {r.usage &&
          Object.entries(r.usage as Record<string, number>)
            .filter(([k, n]) => n && k !== "UNASSIGNED")
            .map(([k, n]) => (
              <span key={k} class="gap">
                <State of={k} /> {number(n)}{" "}
              </span>
            ))}
      </p>
      {size(s) <= 65536n && (below === "" || below === "ranges" || below === "dhcp") && (
        <Strip
          r={r}
          drop={below === "dhcp" && may.add && !s.v6 ? setDropped : undefined}
          pick={may.add ? assign : () => toast("You do not have permission to assign addresses here.", { bad: true })}
        />
      )}
      <Tabs
        tabs={[
          ["", "Addresses"],
          ...parts.filter(([k]) => k !== "signing" || ("reverseZoneSigned" in r && r.reverseZoneSigned)),
          ["tags", "More"],
        ]}
        chosen={below && !ofNetwork.includes(below) ? "tags" : below}
        choose={k => go(k ? base + "/" + k : base)}
      />
      {below === "map" ? (
        <SpaceMap collection="networks" r={r} onPick={may.add ? assign : undefined} />
      ) : below === "dhcp" ? (
        <NetworkDHCP r={r} may={may} drop={dropped} dropped={() => setDropped(null)} />
      ) : below === "figures" ? (
        <Figures object={"networks/" + id} />
      ) : below === "fields" ? (
        <Fields r={r} />
      ) : below && !ofNetwork.includes(below) ? (
        <Further r={r} collection="networks" below={below} without={[...ofNetwork, "addresses"]} may={may} />
      ) : below ? (
        <Below r={r} collection="networks" what={below} may={may} />
      ) : (
        <Addresses r={r} s={s} may={may} assign={assign} />
      )}
      {act === "menu" && <Menu r={r} close={() => setAct(null)} pick={a => setAct(a)} />}
      {act === "address" && <Assign r={r} count={1} close={() => setAct(null)} done={reload} />}
      {act && !["menu", "address"].includes(act) && (
        <Doing act={act} r={r} parent={up} close={() => setAct(null)} done={done} />
      )}
      {assigning && (
        <Assign r={r} s={assigning.s} count={assigning.count} close={() => setAssigning(null)} done={reload} />
      )}
    </>
  )
}

/**
 * A strip with the state of each address of a network. A drag over free addresses assigns them. drop is called for a client that is dragged
 * to a free address.
 */
function Strip({
  r,
  pick,
  drop,
}: {
  r: Resource
  pick: (s: Span, count: number) => void
  drop?: (d: { client: Client; at: string }) => void
}) {
  const s = parseSpan(r.range)!,
    n = Number(size(s)),
    cells = Math.max(256, Math.min(n, 1024))
  const path = `networks/${r.id}/map` + query({ cells })
  const { data } = useData<any>(path, a => get(path, { signal: a, quiet: true }), ["addresses", "ranges", "networks"])
  const list = useMemo(() => (data ? cellsOf(data, [s]).filter(c => c.kind >= 0) : []), [data])
  const leased = useLeased(drop ? r.id : null)
  const [from, setFrom] = useState(-1),
    [to, setTo] = useState(-1)
  const ref = useRef<SVGSVGElement>(null)
  if (!data) return <div class="strip" />
  const wide = Math.min(64, list.length),
    high = Math.ceil(list.length / wide)
  const at = (e: MouseEvent) => {
    const b = ref.current!.getBoundingClientRect(),
      x = Math.floor(((e.clientX - b.left) / b.width) * wide),
      y = Math.floor(((e.clientY - b.top) / b.height) * high)
    return Math.max(0, Math.min(list.length - 1, y * wide + x))
  }
  const gateway = (r as any).gateway ? parseAddress((r as any).gateway) : null,
    gate = gateway && BigInt(n) === BigInt(list.length) ? Number(gateway.n - s.low) : -1
  const each = BigInt(n) / BigInt(list.length),
    low = Math.min(from, to),
    top = Math.max(from, to)
  const spanOf = (a: number, b: number): Span => ({
    v6: s.v6,
    low: s.low + BigInt(a) * each,
    high: s.low + BigInt(b + 1) * each - 1n,
  })
  /** Handles a drag: assigns the first run of free addresses in it, or opens the address that was clicked. */
  const dragged = () => {
    const single = each === 1n,
      isFree = (i: number) => list[i].level === 0 && !list[i].edge
    let a = low
    while (a <= top && !isFree(a)) a++
    if (a > top) {
      if (single && low === top && list[low].level > 0)
        void get<Page>(
          `networks/${r.id}/addresses` + query({ filter: `address:${literal(address(s.low + BigInt(low), s.v6))}` }),
        ).then(p => {
          if (p.data[0]) go("/ui/addresses/" + p.data[0].id)
        })
      else toast("The selection has no free addresses.")
      return
    }
    let b = a
    while (b < top && isFree(b + 1)) b++
    pick(spanOf(a, b), low < top ? Number(size(spanOf(a, b))) : 1)
  }
  return (
    <figure class="strip">
      <svg
        ref={ref}
        viewBox={`0 0 ${wide * 10} ${high * 10}`}
        role="img"
        aria-label={`Used addresses of ${r.range}`}
        preserveAspectRatio="none"
        height={high * 12}
        style={{ touchAction: "pan-y" }}
        onPointerDown={e => {
          e.preventDefault()
          ref.current!.setPointerCapture(e.pointerId)
          setFrom(at(e))
          setTo(at(e))
        }}
        onPointerMove={e => {
          if (from >= 0 && e.buttons) setTo(at(e))
        }}
        onPointerUp={() => {
          if (from >= 0) dragged()
          setFrom(-1)
          setTo(-1)
        }}
        onPointerCancel={() => {
          setFrom(-1)
          setTo(-1)
        }}
        onDragOver={e => {
          if (!drop || each !== 1n || !isClientDragged(e)) return
          e.preventDefault()
          setFrom(at(e))
          setTo(at(e))
        }}
        onDragLeave={() => {
          setFrom(-1)
          setTo(-1)
        }}
        onDrop={e => {
          e.preventDefault()
          const client = droppedClient(e),
            i = at(e)
          setFrom(-1)
          setTo(-1)
          if (!drop || !client) return
          if (list[i].level > 0 || leased.has(address(s.low + BigInt(i), s.v6)) || list[i].edge)
            toast("This address is not free.", { bad: true })
          else drop({ client, at: address(s.low + BigInt(i), s.v6) })
        }}
      >
        {list.map((c, i) => (
          <rect
            key={i}
            x={(i % wide) * 10 + 0.6}
            y={Math.floor(i / wide) * 10 + 0.6}
            width="8.8"
            height="8.8"
            rx="1.4"
            class={
              "cell " +
              (c.edge
                ? "edge"
                : i === gate
                  ? "gate"
                  : c.level > 0
                    ? "taken"
                    : each === 1n && leased.has(address(s.low + BigInt(i), s.v6))
                      ? "leased"
                      : c.kind === 1
                        ? "pool"
                        : "open") +
              (from >= 0 && i >= low && i <= top ? " dragged" : "")
            }
          >
            <title>
              {(each === 1n ? address(s.low + BigInt(i), s.v6) : span(spanOf(i, i))) +
                (c.edge ? (i ? ", broadcast address" : ", network address") : "")}
            </title>
          </rect>
        ))}
      </svg>
      <figcaption class="muted small">
        <span class="legend">
          <span>
            <i class="swatch taken" aria-hidden="true" />
            in use
          </span>
          <span>
            <i class="swatch gate" aria-hidden="true" />
            gateway
          </span>
          {drop && (
            <span>
              <i class="swatch leased" aria-hidden="true" />
              leased
            </span>
          )}
          <span>
            <i class="swatch pool" aria-hidden="true" />
            DHCP range
          </span>
          <span>
            <i class="swatch open" aria-hidden="true" />
            free
          </span>
          {list[0]?.edge && (
            <span>
              <i class="swatch edge" aria-hidden="true" />
              network and broadcast
            </span>
          )}
        </span>{" "}
        <span class="screen-only">Drag over free addresses to assign them. Click a used address to open it.</span>
      </figcaption>
    </figure>
  )
}

/** The leased and abandoned addresses of a network, for its strip. */
function useLeased(network: number | null): Set<string> {
  const path =
    network === null
      ? null
      : `networks/${network}/leases` +
        query({ filter: "state:ne('DHCP_FREE')", fields: "address", limit: 1000, orderBy: "address" })
  const { data, reload } = useData<Page<DHCPv4Lease>>(path, a => get(path!, { signal: a, quiet: true }))
  useEvery(5000, reload)
  return useMemo(() => new Set(data?.data.map(l => l.address!)), [data])
}

const table = "addresses of a network"

/** The addresses in use. One cell per row sums up the free addresses after it. */
function Addresses({ r, s, may, assign }: { r: Resource; s: Span; may: May; assign: (s: Span) => void }) {
  const filter = place.value.query.get("filter") ?? "",
    [editing, setEditing] = useState<Resource | null>(null),
    [deleting, setDeleting] = useState<Resource | null>(null)
  const rows = useRows(`networks/${r.id}/addresses`, { orderBy: "address", filter: filter || undefined }, [
    "addresses",
    "macAddresses",
  ])
  const selection = useSelection(rows),
    schema = useSchema(),
    edge = s.v6 || size(s) <= 2n ? 0n : 1n
  const free = (a: bigint, b: bigint): Span | null => (a <= b ? { v6: s.v6, low: a, high: b } : null)
  const behind = (row: Resource, i: number): Span | null => {
    if (filter) return null
    const next = rows.at(i + 1),
      here = parseAddress(row.address!)!
    if (!next && i + 1 < (rows.total ?? 0)) return null
    return free(here.n + 1n, next ? parseAddress(next.address!)!.n - 1n : s.high - edge)
  }
  const first = rows.at(0),
    before = !filter && first ? free(s.low + edge, parseAddress(first.address!)!.n - 1n) : null
  const { columns, chooser } = useColumns(
    table,
    schema,
    [s.v6 ? "IPv6Address" : "IPv4Address"],
    [
      {
        key: "address",
        title: "Address",
        width: "minmax(8rem,14rem)",
        narrow: s.v6 ? "minmax(0,1.4fr)" : "6.2rem",
        cell: x => (
          <a class="mono" tabIndex={-1} href={"/ui/addresses/" + x.id}>
            {x.address}
          </a>
        ),
      },
      {
        key: "name",
        title: "Name",
        width: "minmax(8rem,2fr)",
        cell: x => (
          <span class="cut" title={x.name ?? undefined}>
            {x.name}
          </span>
        ),
      },
      { key: "state", title: "State", width: "9rem", minor: true, cell: x => <State of={x.state} /> },
      {
        key: "macAddress",
        title: "Hardware",
        width: "10rem",
        minor: true,
        cell: x =>
          x.macAddress ? <span class="mono">{(x.macAddress as any).address ?? x.macAddress.name}</span> : null,
      },
      { key: "location", title: "Location", minor: true, cell: x => x.location?.name },
      {
        key: "free",
        title: "Free after this",
        width: "8.5rem",
        minor: true,
        cell: (x, i) => {
          const f = behind(x, i)
          return f ? (
            !may.add ? (
              <span title={span(f)}>{amount(size(f))} free</span>
            ) : (
              <button
                class="small run"
                tabIndex={-1}
                title={span(f)}
                aria-label={`Assign from ${span(f)}`}
                onClick={() => assign(f)}
              >
                {amount(size(f))} free
              </button>
            )
          ) : null
        },
      },
      {
        ...actions,
        cell: x =>
          may.change && (
            <RowActions name={x.address ?? ""} change={() => setEditing(x)} remove={() => setDeleting(x)} />
          ),
      },
    ],
    (f, x) => <Value field={f} value={x[f.n]} r={x} />,
    fieldName,
  )
  return (
    <>
      <div class="tools">
        <FilterForm
          table={table}
          placeholder="name or address, or state:'RESERVED'"
          of={text => filterOf(text, "name", "address")}
        />
        <span class="muted">{rows.total !== undefined && counted(rows.total, "addresses")}</span>
        {before && may.add && (
          <button class="small" onClick={() => assign(before)}>
            {amount(size(before))} free before {first!.address}
          </button>
        )}
        <span class="grow" />
        {chooser}
        <SaveRows rows={rows} />
      </div>
      <SelectionBar
        selection={selection}
        rows={rows}
        collection="addresses"
        c={schema?.collections.addresses}
        may={may}
      />
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading />
      ) : (
        <Grid
          select={selectable(selection)}
          label={"Addresses of " + r.range}
          count={rows.total}
          at={rows.at}
          id={x => x.id}
          open={x => go("/ui/addresses/" + x.id)}
          onKey={(e, x) => {
            if (!x || !may.change) return
            if (e.key === "e") {
              e.preventDefault()
              setEditing(x)
            } else if (e.key === "Delete") {
              e.preventDefault()
              setDeleting(x)
            }
          }}
          empty={
            <Empty title={filter ? "No addresses match the filter." : "No addresses in use."}>
              {!filter && may.add && (
                <Button icon="plus" onClick={() => assign(free(s.low + edge, s.high - edge)!)}>
                  Assign the first address
                </Button>
              )}
            </Empty>
          }
          columns={columns}
        />
      )}
      {editing && (
        <Edit
          r={editing}
          only={["name", "state", "macAddress", "location"]}
          close={() => setEditing(null)}
          done={rows.reload}
        />
      )}
      {deleting && <Delete r={deleting} close={() => setDeleting(null)} done={rows.reload} />}
    </>
  )
}

/** The page of an address: its names, hardware, network and latest changes. */
export function AddressPage({ id }: { id: string }) {
  const { data: r, problem, reload } = useResource<IPv4Address | IPv6Address>("addresses/" + id)
  const names = useData<Page>(
    r ? `addresses/${id}/resourceRecords` : null,
    s => get(`addresses/${id}/resourceRecords`, { signal: s }),
    ["resourceRecords"],
  )
  const up = r?._links?.up?.href
  const network = useData<Resource>(up ?? null, s => get(up!, { signal: s, quiet: true }), ["networks"])
  const [act, setAct] = useState<string | null>(null),
    may = useMay("addresses/" + id)
  if (!r)
    return problem ? (
      <>
        <Head title="Address" />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading />
    )
  return (
    <>
      <Head
        title={<span class="mono">{r.address}</span>}
        kind={kind(r.type) + (r.name ? " · " + r.name : "")}
        crumbs={<Crumbs r={r} />}
      >
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
      </Head>
      <div class="cards">
        <section class="card">
          <h2>Use</h2>
          <dl class="facts">
            <div>
              <dt>State</dt>
              <dd>
                <State of={r.state} />
              </dd>
            </div>
            <div>
              <dt>Name</dt>
              <dd>{r.name ?? <span class="muted">none</span>}</dd>
            </div>
            <div>
              <dt>Hardware</dt>
              <dd>{r.macAddress ? <To r={r.macAddress} mono /> : <span class="muted">none</span>}</dd>
            </div>
            <div>
              <dt>Device</dt>
              <dd>{r.device ? <To r={r.device} /> : <span class="muted">none</span>}</dd>
            </div>
            <div>
              <dt>Location</dt>
              <dd>{r.location ? <To r={r.location} /> : <span class="muted">none</span>}</dd>
            </div>
            <div>
              <dt>Network</dt>
              <dd>
                {network.data ? (
                  <>
                    <To r={network.data} mono /> {network.data.name}
                  </>
                ) : (
                  <span class="muted">—</span>
                )}
              </dd>
            </div>
            <UserFacts r={r} />
            {(network.data as any)?.gateway && (
              <div>
                <dt>Gateway</dt>
                <dd class="mono">{(network.data as any).gateway}</dd>
              </div>
            )}
          </dl>
        </section>
        <section class="card">
          <h2>Names</h2>
          {names.problem ? (
            <Trouble problem={names.problem} />
          ) : !names.data ? (
            <Loading />
          ) : names.data.data.length === 0 ? (
            <p class="muted">No DNS names{session.value?.administrator ? "" : " visible to you"} for this address.</p>
          ) : (
            <ul class="plain-list">
              {names.data.data.map(x => (
                <li key={x.id}>
                  <To r={x} mono /> <span class="kind">{kind(x.type)}</span>
                  {x.reverseRecord && <span class="muted small"> with reverse record</span>}
                </li>
              ))}
            </ul>
          )}
        </section>
        <section class="card">
          <h2>
            <a href={`/ui/dhcp?tab=history&q=${r.address}`}>DHCP clients</a>
          </h2>
          <SpanList at={`addresses/${id}/leaseSpans`} />
        </section>
        <section class="card">
          <h2>
            <a href={`/ui/addresses/${id}/transactions`}>History</a>
          </h2>
          <LastChanges path={`addresses/${id}/transactions`} />
        </section>
        <section class="card">
          <h2>
            <a href={`/ui/addresses/${id}/fields`}>All fields</a>
          </h2>
          <Fields
            r={r}
            without={["state", "macAddress", "device", "location", "address", "configuration", "userDefinedFields"]}
          />
        </section>
      </div>
      {act === "edit" && (
        <Edit
          r={r}
          only={["name", "state", "macAddress", "location", "device"]}
          close={() => setAct(null)}
          done={reload}
        />
      )}
      {act === "delete" && (
        <Delete
          r={r}
          close={() => setAct(null)}
          done={() => (up ? go("/ui/" + up.replace(/^\/api\/v2\//, "")) : history.back())}
        />
      )}
    </>
  )
}
