// DHCP: ranges with utilization and thresholds, reservations, leases, and client options.
import { useData, useRows, useEvery } from "../data"
import { filterOf } from "../filter"
import { get, query, type Page, type Resource } from "../api"
import { hrefOf, To } from "../links"
import { Empty, Head, Loading, State, Tabs, Trouble } from "../parts/basics"
import { NoConfiguration } from "../parts/configuration"
import { Grid, ListGrid, type Column } from "../parts/grid"
import { Leases, Spans } from "../parts/leases"
import { Forecast, RangeBar, type Utilization } from "../parts/ranges"
import { Refused } from "../parts/refused"
import { selectable, SelectableList, useSelection } from "../parts/selection"
import { FilterForm } from "../parts/tools"
import { useMay } from "../rights"
import { go, place, setQuery } from "../router"
import { useSchema } from "../schema"
import { configuration, configurations } from "../session"
import { amount, parseSpan, size } from "../space"
import type { IPv4Address, IPv4DHCPRange } from "../types"
import { Table, Value } from "./generic"
import { UseOf } from "./space"
import { useColumns } from "../parts/userfields"
import { fieldName } from "../words"

const tabs: [key: string, label: string][] = [
  ["", "Ranges"],
  ["reservations", "Reservations"],
  ["leases", "Leases"],
  ["history", "Lease history"],
  ["refused", "Refused clients"],
  ["marks", "Utilization thresholds"],
  ["clientClasses", "Client classes"],
  ["macPools", "MAC pools"],
  ["deploymentOptions", "Options"],
]

export function DHCP() {
  const c = configuration.value,
    asked = place.value.query.get("tab") ?? "",
    tab = tabs.some(([key]) => key === asked) ? asked : "", // Tabs names an unknown tab
    schema = useSchema()
  if (c === null)
    return (
      <>
        <Head title="DHCP" />
        <NoConfiguration />
      </>
    )
  return (
    <>
      <Head title="DHCP" kind={configurations.value.find(x => x.id === c)?.name ?? ""} />
      <Tabs
        tabs={tabs}
        chosen={asked}
        choose={k => setQuery({ tab: k, filter: null, orderBy: null, q: null, state: null, at: null })}
      />
      {tab === "" ? (
        <Ranges c={c} />
      ) : tab === "reservations" ? (
        <Reservations c={c} />
      ) : tab === "leases" ? (
        <Leases key="leases" at="leases" within={"configuration.id:" + c} />
      ) : tab === "history" ? (
        <Spans key="history" at="leaseSpans" within={"configuration.id:" + c} />
      ) : tab === "refused" ? (
        <Refused at="" within={"configuration.id:" + c} />
      ) : tab === "marks" ? (
        <Marks c={c} />
      ) : schema?.collections[tab] ? (
        <Table key={tab} path={tab} collection={tab} c={schema.collections[tab]} within={"configuration.id:" + c} />
      ) : schema ? (
        <Ranges c={c} />
      ) : (
        <Loading />
      )}
    </>
  )
}

/** The utilization of a range. */
const utilization = (r: IPv4DHCPRange) => r.utilization as unknown as Utilization

function Ranges({ c }: { c: number }) {
  const text = (place.value.query.get("filter") ?? "").trim(),
    filter = [`configuration.id:${c}`, text && `(${filterOf(text, "name", "range")})`].filter(Boolean).join(" and ")
  const rows = useRows<Resource>("ranges", { filter, orderBy: "range" }, ["ranges"]),
    selection = useSelection(rows),
    may = useMay("configurations/" + c),
    schema = useSchema()
  useEvery(5000, rows.reload)
  const { columns, chooser } = useColumns(
    "DHCP ranges",
    schema,
    ["IPv4DHCPRange", "IPv6DHCPRange"],
    [
      {
        key: "range",
        title: "Range",
        width: "minmax(14rem,2fr)",
        narrow: "minmax(0,1fr)",
        cell: r => <To r={r} mono />,
      },
      { key: "name", title: "Name", minor: true, cell: r => r.name },
      {
        key: "size",
        title: "Addresses",
        width: "7rem",
        number: true,
        minor: true,
        cell: r => {
          const s = parseSpan(r.range)
          return s ? amount(size(s)) : null
        },
      },
      {
        key: "use",
        title: "Use",
        width: "minmax(9rem,1.4fr)",
        narrow: "6.5rem",
        cell: r => (
          <span class="range-cell">
            <RangeBar u={utilization(r)} range={r.range!} />
            <span class="num">{utilization(r).percent} %</span>
          </span>
        ),
      },
      { key: "full", title: "Forecast", width: "9rem", minor: true, cell: r => <Forecast u={utilization(r)} /> },
      {
        key: "marks",
        title: "Thresholds",
        width: "8rem",
        minor: true,
        cell: r =>
          r.lowWaterMark === null && r.highWaterMark === null ? (
            <span class="muted">none</span>
          ) : (
            `${r.lowWaterMark ?? 0}–${r.highWaterMark ?? 100} %`
          ),
      },
    ] satisfies Column<IPv4DHCPRange>[] as unknown as Column<Resource>[],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  return (
    <SelectableList
      rows={rows}
      noun="ranges"
      note=". Create a range on the Ranges tab of its network."
      filter={<FilterForm table="DHCP ranges" parameters={["filter"]} placeholder="name, address or prefix" />}
      chooser={chooser}
      selection={selection}
      collection="ranges"
      may={may}
    >
      {total => (
        <Grid
          label="DHCP ranges"
          select={selectable(selection)}
          count={total}
          at={rows.at}
          id={r => r.id}
          open={r => go("/ui/ranges/" + r.id)}
          empty={
            text ? (
              <Empty title="No ranges match." />
            ) : (
              <Empty title="No ranges yet.">Open a network and select its Ranges tab.</Empty>
            )
          }
          columns={columns}
        />
      )}
    </SelectableList>
  )
}

function Reservations({ c }: { c: number }) {
  const text = (place.value.query.get("filter") ?? "").trim(),
    filter = [`configuration.id:${c}`, "state:'DHCP_RESERVED'", text && `(${filterOf(text, "name", "address")})`]
      .filter(Boolean)
      .join(" and ")
  const rows = useRows<Resource>("addresses", { filter }, ["addresses"]),
    selection = useSelection(rows),
    may = useMay("configurations/" + c),
    schema = useSchema()
  const { columns, chooser } = useColumns(
    "reservations",
    schema,
    ["IPv4Address", "IPv6Address"],
    [
      { key: "address", title: "Address", width: "minmax(8rem,14rem)", cell: r => <To r={r} mono /> },
      { key: "name", title: "Name", cell: r => r.name },
      {
        key: "mac",
        title: "Hardware",
        width: "11rem",
        cell: r => (r.macAddress ? <To r={r.macAddress} mono /> : <span class="muted">none</span>),
      },
      { key: "state", title: "State", width: "10rem", minor: true, cell: r => <State of={r.state} /> },
    ] satisfies Column<IPv4Address>[] as unknown as Column<Resource>[],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  return (
    <SelectableList
      rows={rows}
      noun="reservations"
      filter={<FilterForm table="reservations" parameters={["filter"]} placeholder="name, address or MAC address" />}
      chooser={chooser}
      selection={selection}
      collection="addresses"
      may={may}
    >
      {total => (
        <Grid
          label="Reservations"
          select={selectable(selection)}
          count={total}
          at={rows.at}
          id={r => r.id}
          open={r => go("/ui/addresses/" + r.id)}
          empty={
            text ? (
              <Empty title="No reservations match." />
            ) : (
              <Empty title="No reservations yet.">
                Open a network, select Assign address, and choose the state DHCP reserved with the MAC address of the
                client.
              </Empty>
            )
          }
          columns={columns}
        />
      )}
    </SelectableList>
  )
}

/** The maximum number of blocks and of networks that are read. */
const maxRead = 1000

/** Blocks and networks with utilization thresholds, and their utilization. */
function Marks({ c }: { c: number }) {
  const filter = `configuration.id:${c} and (highWaterMark:ne(null) or lowWaterMark:ne(null))`
  const { data, problem, reload } = useData<Resource[]>(
    "marks " + c,
    async signal =>
      (
        await Promise.all(
          ["blocks", "networks"].map(what =>
            get<Page>(what + query({ limit: maxRead, filter, orderBy: "range" }), { signal }),
          ),
        )
      ).flatMap(p => p.data),
    ["blocks", "networks", "addresses"],
  )
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the blocks and networks" />
  return (
    <ListGrid
      label="Blocks and networks with utilization thresholds"
      save="thresholds"
      list={data}
      id={r => r.id}
      open={r => go(hrefOf(r))}
      empty={
        <Empty title="No utilization thresholds.">
          A threshold is a field of a block or a network, in percent. An event is recorded when the utilization passes
          it.
        </Empty>
      }
      columns={[
        {
          key: "range",
          title: "Range",
          width: "minmax(10rem,2fr)",
          narrow: "minmax(0,2fr)",
          cell: r => <To r={r} mono />,
        },
        { key: "name", title: "Name", narrow: "minmax(0,1fr)", cell: r => <span class="cut">{r.name}</span> },
        { key: "use", title: "Use", width: "9rem", narrow: "3rem", cell: r => <UseOf r={r} /> },
        {
          key: "low",
          title: "Low threshold",
          width: "7rem",
          narrow: "2.6rem",
          number: true,
          cell: r => r.lowWaterMark ?? "—",
        },
        {
          key: "high",
          title: "High threshold",
          width: "7rem",
          narrow: "2.6rem",
          number: true,
          cell: r => r.highWaterMark ?? "—",
        },
      ]}
    />
  )
}
