// Leases of DHCP clients: a list that is read again every few seconds, with search and actions, and the history of addresses and clients.
import { useState } from "preact/hooks"
import { get, literal, query, type Page, type Resource } from "../api"
import { useData, useRows, type Rows, useEvery } from "../data"
import { To } from "../links"
import { useMay } from "../rights"
import { setQuery, place } from "../router"
import { leaseFilter } from "../leasefilter"
import { parseAddress } from "../space"
import type { DHCPv4Lease, DHCPv6Lease, LeaseSpan } from "../types"
import { Button, Dialog, Empty, Field, Loading, State, Trouble, When, words } from "./basics"
import { faultOf } from "./form"
import { Grid } from "./grid"
import { Preview } from "./preview"
import { FilterForm, SaveRows } from "./tools"
import { counted } from "../words"
import { type Wanted } from "../staged"

/** The time between two reads of leases, in milliseconds. Leases are not in the change feed. */
const leaseInterval = 4000

type Lease = DHCPv4Lease | DHCPv6Lease

/** Returns the delegated prefix of a lease, or its address. */
export const leased = (x: Lease | LeaseSpan) => ("prefix" in x && x.prefix) || x.address!

/** Returns the port of the client, as its relay agent reports it. */
const portOf = (x: Lease) => ("circuitId" in x ? x.circuitId : x.interfaceId)

/** A client that an address can be reserved for. */
export interface Client {
  macAddress: string
  hostName?: string | null
}

/** The type of the data of a client that is dragged. */
const dragged = "application/x-portolan-client"

/** The attributes of a row whose client can be dragged to a free address. */
export function dragOf(c: Client) {
  if (!c.macAddress) return {}
  return {
    draggable: true,
    onDragStart: (e: DragEvent) => {
      e.dataTransfer?.setData(dragged, JSON.stringify({ macAddress: c.macAddress, hostName: c.hostName }))
      e.dataTransfer?.setData("text/plain", c.macAddress)
    },
  }
}

/** Reports whether a client is dragged. */
export const isClientDragged = (e: DragEvent) => !!e.dataTransfer?.types.includes(dragged)

/** Returns the client that is dropped. */
export function droppedClient(e: DragEvent): Client | null {
  try {
    return JSON.parse(e.dataTransfer!.getData(dragged)) as Client
  } catch {
    return null // something else was dropped
  }
}

/** The search field of leases and of the history. */
function Search({
  hint,
  table,
  parameters,
  children,
  rows,
}: {
  hint: string
  table: string
  parameters: string[]
  children?: any
  rows: Rows<any>
}) {
  return (
    <div class="tools">
      <FilterForm
        table={table}
        parameter="q"
        parameters={parameters}
        label="Search leases"
        placeholder={hint}
        of={text => text.trim()}
      />
      {children}
      <span class="grow" />
      <SaveRows rows={rows} />
    </div>
  )
}

const leaseStates = ["DHCP_ALLOCATED", "DHCP_LEASED", "DHCP_FREE", "DHCP_ABANDONED"]

/**
 * The leases of a network or of a configuration. at is the path of the list, and within a filter that always applies. reserve is called for
 * a client that another address is reserved for.
 */
export function Leases({ at, within, reserve }: { at: string; within?: string; reserve?: (client: Client) => void }) {
  const search = place.value.query.get("q") ?? "",
    state = place.value.query.get("state") ?? ""
  const filter = [within, leaseFilter(search), state && `state:${literal(state)}`].filter(Boolean).join(" and ")
  const rows = useRows<Lease>(at, { filter: filter || undefined, orderBy: "address" }, ["leaseActions"])
  useEvery(leaseInterval, rows.reload)
  const [opened, setOpened] = useState<Lease | null>(null)
  return (
    <>
      <Search
        table="leases"
        parameters={["q", "state"]}
        rows={rows}
        hint="address, prefix, MAC address, host name or client identifier"
      >
        <select aria-label="State" value={state} onChange={e => setQuery({ state: e.currentTarget.value || null })}>
          <option value="">All states</option>
          {leaseStates.map(s => (
            <option key={s} value={s}>
              {words(s)}
            </option>
          ))}
        </select>
        <span class="muted" aria-live="polite">
          {rows.total !== undefined && counted(rows.total, "leases")}
        </span>
      </Search>
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what="the leases" />
      ) : (
        <Grid
          label="Leases"
          scrolls
          count={rows.total}
          at={rows.at}
          id={r => r.id}
          open={setOpened}
          attributes={r => (reserve ? dragOf(r as Client) : {})}
          empty={
            <Empty title={filter && (search || state) ? "No leases match." : "No leases yet."}>
              {!(search || state) && "Deploy DHCP to a server whose service point runs the application dhcp-service."}
            </Empty>
          }
          columns={[
            {
              key: "address",
              title: "Address or prefix",
              width: "minmax(8rem,13rem)",
              narrow: "6.6rem",
              cell: r => (
                <button class="plain link mono" tabIndex={-1} onClick={() => setOpened(r)}>
                  {leased(r)}
                </button>
              ),
            },
            { key: "state", title: "State", width: "9.5rem", minor: true, cell: r => <State of={r.state} /> },
            {
              key: "client",
              title: "Client",
              width: "11rem",
              narrow: "10.4rem",
              cell: r => <span class="mono cut">{r.macAddress || r.clientIdentifier}</span>,
            },
            {
              key: "host",
              title: "Host name",
              narrow: "minmax(0,1fr)",
              cell: r => <span class="cut">{r.hostName}</span>,
            },
            ...(at === "leases"
              ? [
                  {
                    key: "network",
                    title: "Network",
                    width: "11rem",
                    minor: true,
                    cell: (r: Lease) => <To r={r.network} mono />,
                  },
                ]
              : []),
            {
              key: "port",
              title: "Port",
              width: "8rem",
              minor: true,
              cell: r => <span class="cut">{portOf(r)}</span>,
            },
            {
              key: "connection",
              title: "Server",
              width: "9rem",
              minor: true,
              cell: r => (r.serverConnectionStatus ? <State of={r.serverConnectionStatus} /> : null),
            },
            { key: "began", title: "Granted", width: "9rem", minor: true, cell: r => <When at={r.leaseDateTime} /> },
            {
              key: "ends",
              title: "Expires",
              width: "9.5rem",
              minor: true,
              cell: r => (r.leaseExpirationDateTime ? <When at={r.leaseExpirationDateTime} /> : null),
            },
          ]}
        />
      )}
      {opened && (
        <LeaseWindow
          lease={opened}
          close={() => setOpened(null)}
          done={rows.reload}
          reserve={
            reserve &&
            (client => {
              setOpened(null)
              reserve(client)
            })
          }
        />
      )}
    </>
  )
}

/** The actions on a lease: the name of the button, the action of the API, the states that allow it, and its effect. */
const leaseActions: [label: string, action: string, states: string[], effect: string][] = [
  [
    "Reserve this address",
    "RESERVE",
    ["DHCP_ALLOCATED"],
    "The address is reserved for this client. The client keeps it.",
  ],
  [
    "End lease",
    "END_LEASE",
    ["DHCP_ALLOCATED", "DHCP_LEASED"],
    "The server ends the lease. The client gets a NAK at its next renewal and asks for an address again.",
  ],
  [
    "Clear address",
    "CLEAR_ADDRESS",
    ["DHCP_ABANDONED"],
    "The server releases the address and can offer it to clients again.",
  ],
]

/** A window with a lease, its actions and the history of its address. */
export function LeaseWindow({
  lease,
  close,
  done,
  reserve,
}: {
  lease: Lease
  close: () => void
  done: () => void
  reserve?: (client: Client) => void
}) {
  const network = lease.network as Resource | null,
    may = useMay(network ? "networks/" + network.id : null)
  const [act, setAct] = useState<(typeof leaseActions)[number] | null>(null)
  const client = lease.macAddress
    ? `macAddress:${literal(lease.macAddress)}`
    : lease.clientIdentifier && `clientIdentifier:${literal(lease.clientIdentifier)}`
  if (act && network)
    return (
      <Preview
        title={`${act[0]}: ${leased(lease)}`}
        wanted={{
          method: "POST",
          path: `networks/${network.id}/leaseActions`,
          body: { type: "LeaseAction", address: lease.address, action: act[1] },
          says:
            act[1] === "RESERVE"
              ? `Reserved ${lease.address} for ${lease.macAddress || lease.clientIdentifier}.`
              : `Requested: ${act[0].toLowerCase()} (${leased(lease)}).`,
        }}
        close={close}
        done={done}
      >
        {() => <p>{act[3]}</p>}
      </Preview>
    )
  const delegated = leased(lease) !== lease.address
  const facts: [string, any][] = [
    ["State", <State of={lease.state} />],
    ["Delegated prefix", delegated && <span class="mono">{leased(lease)}</span>],
    ["MAC address", lease.macAddress && <span class="mono">{lease.macAddress}</span>],
    ["Client identifier", lease.clientIdentifier && <span class="mono">{lease.clientIdentifier}</span>],
    ["Host name", lease.hostName],
    ["Network", network && <To r={network} mono />],
    ["IAID", "identityAssociationIdentifier" in lease && lease.identityAssociationIdentifier],
    ["Server", lease.server && <To r={lease.server} />],
    ["Connection of the server", lease.serverConnectionStatus && <State of={lease.serverConnectionStatus} />],
    ["Port", portOf(lease)],
    ["Remote ID of the relay agent", lease.remoteId],
    ["Vendor class", "vendorClassIdentifier" in lease && lease.vendorClassIdentifier],
    ["Granted", lease.leaseDateTime && <When at={lease.leaseDateTime} />],
    ["Expires", lease.leaseExpirationDateTime && <When at={lease.leaseExpirationDateTime} />],
  ]
  return (
    <Dialog title={`Lease of ${leased(lease)}`} close={close} wide>
      <dl class="facts">
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {may.add && (
        <div class="buttons">
          {leaseActions
            .filter(a => a[2].includes(lease.state ?? "") && !(delegated && a[1] === "RESERVE"))
            .map(a => (
              <Button key={a[1]} onClick={() => setAct(a)}>
                {a[0]}
              </Button>
            ))}
          {reserve && lease.macAddress && (
            <Button onClick={() => reserve({ macAddress: lease.macAddress!, hostName: lease.hostName })}>
              Reserve another address
            </Button>
          )}
        </div>
      )}
      <h3>History of this {delegated ? "prefix" : "address"}</h3>
      <SpanList
        at="leaseSpans"
        filter={`address:${literal(lease.address!)} and configuration.id:${(lease.configuration as Resource).id}`}
      />
      {client && (
        <>
          <h3>Addresses of this client</h3>
          <SpanList
            at="leaseSpans"
            filter={`${client} and configuration.id:${(lease.configuration as Resource).id}`}
            addresses
          />
        </>
      )}
    </Dialog>
  )
}

/** The last clients of an address or, if addresses is true, the last addresses of a client, as a short list. */
export function SpanList({ at, filter, addresses }: { at: string; filter?: string; addresses?: boolean }) {
  const path = at + query({ filter, orderBy: "desc(startDateTime)", limit: 20 })
  const { data, problem, reload } = useData<Page<LeaseSpan>>(path, s => get(path, { signal: s, quiet: true }))
  useEvery(leaseInterval, reload)
  if (problem) return <Trouble problem={problem} />
  if (!data) return <Loading />
  if (data.data.length === 0)
    return <p class="muted">No leases {addresses ? "of this client " : ""}in the retention period.</p>
  return (
    <ul class="plain-list spans">
      {data.data.map(x => (
        <li key={x.id}>
          <span class="mono">{addresses ? leased(x) : x.macAddress || x.clientIdentifier}</span> {x.hostName}
          <span class="muted small">
            {" "}
            <Period x={x} />
            {x.circuitId ? ` · port ${x.circuitId}` : ""}
          </span>
        </li>
      ))}
    </ul>
  )
}

const time = (at: string | null | undefined) => (at ? new Date(at).toLocaleString("sv").slice(0, 16) : "")

/** The time of a span, and the reason of its end. */
function Period({ x }: { x: LeaseSpan }) {
  return (
    <>
      {time(x.startDateTime)} – {x.endDateTime ? time(x.endDateTime) : "now"}
      {x.endReason ? ` (${words(x.endReason)})` : ""}
    </>
  )
}

/** Who had an address, or which addresses a client had, at any time or at one time. */
export function Spans({ at, within }: { at: string; within?: string }) {
  const search = place.value.query.get("q") ?? "",
    moment = place.value.query.get("at") ?? ""
  const when = moment ? new Date(moment) : null,
    valid = !when || !isNaN(when.getTime())
  const utc = when && valid ? when.toISOString().slice(0, 19) + "Z" : null
  const filter = [
    within,
    leaseFilter(search),
    utc && `startDateTime:le('${utc}') and (endDateTime:gt('${utc}') or endDateTime:null)`,
  ]
    .filter(Boolean)
    .join(" and ")
  const rows = useRows<LeaseSpan>(at, { filter: filter || undefined, orderBy: "desc(startDateTime)" }, [])
  useEvery(leaseInterval, rows.reload)
  return (
    <>
      <Search
        table="clients of addresses"
        parameters={["q", "at"]}
        rows={rows}
        hint="address, prefix, MAC address, host name or client identifier"
      >
        <label class="inline">
          at{" "}
          <input type="datetime-local" value={moment} onChange={e => setQuery({ at: e.currentTarget.value || null })} />
        </label>
        <span class="muted">{rows.total !== undefined && counted(rows.total, "entries")}</span>
      </Search>
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what="the history" />
      ) : (
        <Grid
          label="Clients that had an address"
          scrolls
          count={rows.total}
          at={rows.at}
          id={x => x.id}
          empty={<Empty title={search || moment ? "No entries match." : "No client has had an address yet."} />}
          columns={[
            {
              key: "address",
              title: "Address or prefix",
              width: "minmax(8rem,13rem)",
              narrow: "7rem",
              cell: x => <SearchLink of={leased(x)} title="Show only the clients of this address" />,
            },
            {
              key: "client",
              title: "Client",
              width: "11rem",
              narrow: "minmax(0,1fr)",
              cell: x => (
                <SearchLink
                  of={x.macAddress || x.clientIdentifier!}
                  q={x.macAddress || "0x" + x.clientIdentifier}
                  title="Show only the addresses of this client"
                />
              ),
            },
            { key: "host", title: "Host name", minor: true, cell: x => <span class="cut">{x.hostName}</span> },
            {
              key: "port",
              title: "Port",
              width: "8rem",
              minor: true,
              cell: x => <span class="cut">{x.circuitId}</span>,
            },
            { key: "from", title: "From", width: "9rem", narrow: "5.5rem", cell: x => <When at={x.startDateTime} /> },
            {
              key: "to",
              title: "To",
              width: "9rem",
              minor: true,
              cell: x => (x.endDateTime ? <When at={x.endDateTime} /> : "now"),
            },
            {
              key: "why",
              title: "End",
              width: "7rem",
              minor: true,
              cell: x => <span class="muted">{x.endReason ? words(x.endReason) : ""}</span>,
            },
          ]}
        />
      )}
    </>
  )
}

/** A link that searches the history for an address or a client. q is the search text, if it differs from the text of the link. */
function SearchLink({ of, q = of, title }: { of: string; q?: string; title: string }) {
  const search = new URLSearchParams(place.value.query)
  search.set("q", q)
  return (
    <a class="mono cut" href={"/ui/" + place.value.path.join("/") + "?" + search} title={title}>
      {of}
    </a>
  )
}

/** Reserves an address of a network for a client. It proposes the first free address. */
export function Reserve({
  network,
  client,
  at,
  close,
  done,
}: {
  network: Resource
  client: Client
  at?: string
  close: () => void
  done: () => void
}) {
  const path = `networks/${network.id}/addresses` + query({ filter: "state:'UNASSIGNED'", limit: 1 })
  const first = useData<Page>(at ? null : path, s => get(path, { signal: s, quiet: true }))
  const [typed, setTyped] = useState<string | null>(at ?? null),
    [mac, setMac] = useState(client.macAddress),
    [name, setName] = useState(client.hostName ?? "")
  const address = typed ?? first.data?.data[0]?.address ?? ""
  const wanted: Wanted | null =
    parseAddress(address) && mac
      ? {
          method: "POST",
          path: `networks/${network.id}/addresses`,
          body: {
            type: address.includes(":") ? "IPv6Address" : "IPv4Address",
            state: "DHCP_RESERVED",
            address,
            macAddress: { address: mac },
            ...(name ? { name } : {}),
          },
          says: `Reserved ${address} for ${mac}.`,
        }
      : null
  return (
    <Preview title={`Reserve an address in ${network.range}`} wanted={wanted} close={close} done={done}>
      {problem => (
        <div class="fields">
          <Field label="Address *" wrong={faultOf(problem, "address")} hint="The first free address, or another one.">
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                class="mono"
                value={address}
                onInput={e => setTyped(e.currentTarget.value.trim())}
              />
            )}
          </Field>
          <Field label="MAC address *" wrong={faultOf(problem, "macAddress")}>
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                class="mono"
                value={mac}
                onInput={e => setMac(e.currentTarget.value.trim())}
              />
            )}
          </Field>
          <Field label="Name" wrong={faultOf(problem, "name")}>
            {(id, d) => (
              <input id={id} aria-describedby={d} value={name} onInput={e => setName(e.currentTarget.value)} />
            )}
          </Field>
        </div>
      )}
    </Preview>
  )
}
