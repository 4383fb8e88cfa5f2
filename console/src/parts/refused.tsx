// Clients that a DHCP server refused, with the reason.
import { get, query, type Page } from "../api"
import { useData, useRows, useEvery } from "../data"
import { To } from "../links"
import type { RefusedClient, RefusedCount } from "../types"
import { Empty, Loading, Trouble, When } from "./basics"
import { Grid } from "./grid"
import { type Client, dragOf } from "./leases"
import { SaveRows } from "./tools"
import { counted, number } from "../words"

const interval = 5000

/** The numbers of refused messages of the last days by reason, and the last refused clients. at is the path of the resource above. */
export function Refused({ at, within, reserve }: { at: string; within?: string; reserve?: (c: Client) => void }) {
  const prefix = at ? at + "/" : ""
  const path = prefix + "refusedCounts" + query({ filter: within, limit: 1000, orderBy: "desc(id)" })
  const counts = useData<Page<RefusedCount>>(path, s => get(path, { signal: s }))
  const rows = useRows<RefusedClient>(prefix + "refusedClients", { filter: within, orderBy: "desc(lastDateTime)" }, [])
  useEvery(interval, counts.reload)
  useEvery(interval, rows.reload)
  const sums = new Map<string, { n: number; text: string }>()
  for (const c of counts.data?.data ?? []) {
    const had = sums.get(c.reason!)
    sums.set(c.reason!, { n: (had?.n ?? 0) + (c.count ?? 0), text: c.explanation ?? "" })
  }
  const problem = rows.problem ?? counts.problem
  if (problem) return <Trouble problem={problem} retry={rows.reload} />
  if (rows.total === undefined) return <Loading what="the refused clients" />
  const list = [...sums].sort((a, b) => b[1].n - a[1].n),
    most = list[0]?.[1].n ?? 1
  return (
    <>
      {list.length > 0 && (
        <section aria-label="Refused messages of the last seven days by reason">
          <p class="muted small">Refused messages of the last seven days</p>
          <ul class="reasons">
            {list.map(([reason, { n, text }]) => (
              <li key={reason}>
                <span class="mono">{reason}</span>
                <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="bar-part" width={Math.max(1, (100 * n) / most)} height="8" rx="1" />
                </svg>
                <span class="num right">{number(n)}</span>
                <span class="muted small">{text}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <div class="tools">
        <span class="muted">{counted(rows.total, "clients")}</span>
        <span class="grow" />
        <SaveRows rows={rows} />
      </div>
      <Grid
        label="Refused clients"
        count={rows.total}
        at={rows.at}
        id={r => r.id}
        open={reserve && (r => r.macAddress && reserve(r as Client))}
        attributes={r => (reserve ? dragOf(r as Client) : {})}
        empty={<Empty title="No refused clients.">Clients that get no address are listed here for seven days.</Empty>}
        columns={[
          { key: "last", title: "Last", width: "8.5rem", narrow: "5.5rem", cell: r => <When at={r.lastDateTime} /> },
          {
            key: "client",
            title: "Client",
            width: "11rem",
            narrow: "minmax(0,1fr)",
            cell: r => <span class="mono cut">{r.macAddress || r.clientIdentifier}</span>,
          },
          { key: "host", title: "Host name", minor: true, cell: r => <span class="cut">{r.hostName}</span> },
          {
            key: "reason",
            title: "Reason",
            width: "minmax(10rem,1.5fr)",
            narrow: "minmax(0,1fr)",
            cell: r => (
              <span class="cut" title={r.explanation ?? ""}>
                {r.reason}
              </span>
            ),
          },
          { key: "message", title: "Message", width: "7rem", minor: true, cell: r => r.messageType },
          {
            key: "count",
            title: "Count",
            width: "5rem",
            narrow: "3rem",
            number: true,
            cell: r => number(r.count ?? 0),
          },
          ...(at.startsWith("networks/")
            ? []
            : [
                {
                  key: "network",
                  title: "Network",
                  width: "10rem",
                  minor: true,
                  cell: (r: RefusedClient) =>
                    r.network ? <To r={r.network} mono /> : <span class="muted">not served</span>,
                },
              ]),
          {
            key: "port",
            title: "Port or relay",
            width: "9rem",
            minor: true,
            cell: r => <span class="cut">{r.circuitId || r.relayAddress}</span>,
          },
          ...(reserve
            ? [
                {
                  key: "act",
                  title: "",
                  width: "6rem",
                  minor: true,
                  cell: (r: RefusedClient) =>
                    r.macAddress ? (
                      <button
                        class="small"
                        tabIndex={-1}
                        aria-label={"Reserve an address for " + r.macAddress}
                        onClick={() => reserve(r as Client)}
                      >
                        Reserve
                      </button>
                    ) : null,
                },
              ]
            : []),
        ]}
      />
    </>
  )
}
