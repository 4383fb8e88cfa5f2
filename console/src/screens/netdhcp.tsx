// DHCP of a network: ranges as bars, leases, refused clients, history and explanations.
import { useState } from "preact/hooks"
import type { Resource } from "../api"
import { Tabs } from "../parts/basics"
import { Explain } from "../parts/explain"
import { type Client, Leases, Reserve, Spans } from "../parts/leases"
import { RangeBars } from "../parts/ranges"
import { Refused } from "../parts/refused"
import type { May } from "../rights"
import { place, setQuery } from "../router"

/** drop is an address that a client was dropped on. dropped is called when its dialog closes. */
export function NetworkDHCP({
  r,
  may,
  drop,
  dropped,
}: {
  r: Resource
  may: May
  drop: { client: Client; at: string } | null
  dropped: () => void
}) {
  const part = place.value.query.get("part") ?? "",
    [reserving, setReserving] = useState<Client | null>(null),
    v4 = r.type === "IPv4Network",
    base = "networks/" + r.id
  const reserve = may.add && v4 ? setReserving : undefined
  return (
    <>
      <RangeBars network={r.id} />
      <Tabs
        tabs={[
          ["", "Leases"],
          ["refused", "Refused clients"],
          ["history", "Lease history"],
          ["explain", "Explain"],
        ]}
        chosen={part}
        choose={k => setQuery({ part: k || null, q: null, state: null, at: null })}
      />
      {part === "refused" ? (
        <Refused at={base} reserve={reserve} />
      ) : part === "history" ? (
        <Spans key="history" at={base + "/leaseSpans"} />
      ) : part === "explain" ? (
        <Explain network={r.id} v6={!v4} mac={place.value.query.get("mac") ?? undefined} />
      ) : (
        <>
          {reserve && (
            <p class="muted small">
              Drag a client to a free address above to reserve it, or open the lease and select Reserve another address.
            </p>
          )}
          <Leases key="leases" at={base + "/leases"} reserve={reserve} />
        </>
      )}
      {reserving && (
        <Reserve network={r} client={reserving} close={() => setReserving(null)} done={() => setReserving(null)} />
      )}
      {drop && <Reserve network={r} client={drop.client} at={drop.at} close={dropped} done={dropped} />}
    </>
  )
}
