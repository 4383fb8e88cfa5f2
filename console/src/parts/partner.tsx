// The failover partners of a DHCP server: state, contact and clocks, and the declaration that a partner does not run.
import { useState } from "preact/hooks"
import { get, type Page, type Resource } from "../api"
import { useData, useEvery } from "../data"
import { To } from "../links"
import { useMay } from "../rights"
import { Button, State, Trouble, When } from "./basics"
import { Preview } from "./preview"
import { number } from "../words"

/** The pairs of a server. Nothing is shown for a server without a partner. */
export function Partners({ r }: { r: Resource }) {
  const path = `servers/${r.id}/dhcpPartners`,
    may = useMay("servers/" + r.id)
  const { data, problem, reload } = useData<Page>(path, s => get(path, { signal: s, quiet: true }), [
    "dhcpPartnerActions",
  ])
  useEvery(5000, reload)
  const [down, setDown] = useState<Resource | null>(null)
  if (problem) return problem.status === 404 ? null : <Trouble problem={problem} retry={reload} />
  return (
    <>
      {data?.data.map(p => (
        <section class="card" key={p.id} aria-label="DHCP failover">
          <h2>
            DHCP failover with <To r={p.partner} />
          </h2>
          <dl class="facts">
            <div>
              <dt>State</dt>
              <dd>
                <State of={p.state} /> since <When at={p.stateDateTime} />
              </dd>
            </div>
            <div>
              <dt>Connection</dt>
              <dd>{p.connected ? "connected" : <span class="bad-text">not connected</span>}</dd>
            </div>
            <div>
              <dt>Last contact</dt>
              <dd>
                <When at={p.lastContactDateTime} />
              </dd>
            </div>
            <div>
              <dt>Last report</dt>
              <dd>
                <When at={p.reportDateTime} />
              </dd>
            </div>
            <div>
              <dt>Pending updates</dt>
              <dd>{number(p.pendingUpdates ?? 0)}</dd>
            </div>
            <div>
              <dt>Conflicts</dt>
              <dd>{number(p.conflicts ?? 0)}</dd>
            </div>
            <div>
              <dt>Clock difference</dt>
              <dd>{number(p.clockDifference ?? 0)} ms</dd>
            </div>
          </dl>
          {may.change && p.partner && (
            <div class="buttons">
              <Button onClick={() => setDown(p)}>Declare partner down</Button>
            </div>
          )}
        </section>
      ))}
      {down && <Declare r={r} partner={down.partner} close={() => setDown(null)} done={reload} />}
    </>
  )
}

/** Declares that the partner does not run. */
function Declare({ r, partner, close, done }: { r: Resource; partner: Resource; close: () => void; done: () => void }) {
  const [force, setForce] = useState(false)
  return (
    <Preview
      title={`Declare ${partner.name} down`}
      wanted={{
        method: "POST",
        path: `servers/${r.id}/dhcpPartnerActions`,
        body: {
          type: "DHCPPartnerAction",
          partner: { id: partner.id },
          action: "PARTNER_DOWN",
          ...(force ? { force } : {}),
        },
        says: `Declared ${partner.name} down.`,
      }}
      close={close}
      done={done}
    >
      {() => (
        <>
          <p>
            {r.name} then also leases the addresses of {partner.name}, after the maximum client lead time. Declare this
            only if {partner.name} does not run.
          </p>
          <label class="inline">
            <input type="checkbox" checked={force} onChange={e => setForce(e.currentTarget.checked)} /> Declare it
            although the partner still reports. Two clients may get the same address.
          </label>
        </>
      )}
    </Preview>
  )
}
