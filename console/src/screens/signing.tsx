// DNSSEC signing of a zone, or of the reverse zones of a block or a network: the keys, their states and next steps.
import { useEffect, useState } from "preact/hooks"
import { get } from "../api"
import { useData } from "../data"
import { Button, Empty, Loading, State, Trouble, When } from "../parts/basics"
import { isWeak } from "../parts/choices"
import { Delegation, SignZone } from "../parts/dnssec"
import { Icon } from "../icons"
import { Preview } from "../parts/preview"
import type { May } from "../rights"

interface Key {
  dsWithdrawn: boolean
  id: number
  type: string
  tag: number
  algorithm: string
  state: string
  signs: boolean
  dsRecord: string | null
  publishedDateTime: string | null
  expirationDateTime: string | null
  next: string
  nextDateTime: string | null
  waitsFor: string | null
}
interface Answer {
  signed: boolean
  policy?: string
  automatic: boolean
  zones: { zone: string; view: string | null; parentHere: boolean; keys: Key[] }[]
}

const next: Record<string, string> = {
  FOLLOWED: "a successor key is created",
  ENDS: "its lifetime ends; it stays in use, because no successor is created automatically",
  TAKES_OVER: "starts signing",
  REPLACED: "the successor key starts signing",
  REMOVED: "is removed",
}
const states: Record<string, string> = {
  GENERATED: "created, not deployed yet",
  PUBLISHED: "deployed, not yet in all caches",
  READY: "in all caches, waiting to sign",
  ACTIVE: "signs the zone",
  RETIRED: "replaced; caches may still need it",
}

/** The signing keys of a zone, a block or a network, by its API path. */
export function Signing({ of, may }: { of: string; may: May }) {
  const path = of + "/signing"
  const { data, problem, reload } = useData<Answer>(path, signal => get(path, { signal }), [
    "zones",
    "signingKeys",
    "signingPolicies",
    "deployments",
  ])
  const [asked, setAsked] = useState<{ key: Key; body: object; says: string } | null>(null)
  const [signs, setSigns] = useState(false),
    interval = data?.zones.some(z => z.keys.some(k => k.state === "GENERATED")) ? 2000 : 10_000
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload()
    }, interval)
    return () => clearInterval(timer)
  }, [path, interval])
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the keys" />
  if (!data.signed || !data.zones.length)
    return (
      <Empty title={of.startsWith("zones/") ? "The zone is not signed." : "No reverse zone is signed."}>
        {of.startsWith("zones/") ? (
          <>
            <p>DNSSEC signatures let resolvers detect forged answers.</p>
            {may.change && (
              <Button primary icon="check" onClick={() => setSigns(true)}>
                Sign this zone
              </Button>
            )}
            {signs && <SignZone zone={of} close={() => setSigns(false)} done={reload} />}
          </>
        ) : (
          "Choose a signing policy for the reverse zone to sign it."
        )}
      </Empty>
    )
  const weak = data.zones.flatMap(z => z.keys.filter(k => isWeak(k.algorithm)))
  return (
    <>
      <p class="summary muted">
        Signed by the policy {data.policy ?? "(not visible to you)"}. Keys{" "}
        {data.automatic
          ? "are replaced automatically"
          : "are not replaced automatically: keyAutoRegenerationEnabled of the configuration is false"}
        .
      </p>
      {weak.length > 0 && (
        <div class="box bad" role="alert">
          <Icon name="triangle-alert" />
          <p>
            <strong>Weak algorithm {weak[0].algorithm}.</strong> Validators may reject its signatures. Sign the zone
            with a policy that uses ECDSAP256SHA256.
          </p>
        </div>
      )}
      {data.zones.map(zone => (
        <section key={zone.zone + zone.view}>
          {!of.startsWith("zones/") && (
            <h2>
              <span class="mono">{zone.zone}</span>
              {zone.view && <span class="muted"> · {zone.view}</span>}
            </h2>
          )}
          <p class="summary muted">
            {zone.parentHere
              ? "The parent zone is managed here. Its DS records are updated automatically."
              : "The parent zone is managed elsewhere. Its operator adds the DS records by hand or from the CDS records of this zone."}
          </p>
          {of.startsWith("zones/") && (
            <Delegation
              zone={of}
              parentHere={zone.parentHere}
              records={zone.keys.flatMap(k => (k.dsRecord ? [k.dsRecord] : []))}
            />
          )}
          <div class="cards">
            {zone.keys.map(k => (
              <section class="card" key={k.id}>
                <h2>
                  <a href={"/ui/signingKeys/" + k.id}>
                    {k.type === "KeySigningKey" ? "Key signing key" : "Zone signing key"}{" "}
                    <span class="mono">{k.tag}</span>
                  </a>{" "}
                  <State of={k.state} />
                </h2>
                <dl class="facts">
                  <div>
                    <dt>State</dt>
                    <dd>
                      {states[k.state] ?? k.state}
                      {k.signs && k.state !== "ACTIVE" && "; its signatures are in use"}
                    </dd>
                  </div>
                  <div>
                    <dt>Algorithm</dt>
                    <dd class="mono">{k.algorithm}</dd>
                  </div>
                  <div>
                    <dt>Deployed since</dt>
                    <dd>
                      <When at={k.publishedDateTime} />
                    </dd>
                  </div>
                  <div>
                    <dt>Lifetime ends</dt>
                    <dd>
                      <When at={k.expirationDateTime} />
                    </dd>
                  </div>
                  <div>
                    <dt>Next</dt>
                    <dd>
                      {next[k.next] ?? k.next}
                      {k.waitsFor
                        ? `; ${k.waitsFor}`
                        : k.nextDateTime && (
                            <>
                              , from <When at={k.nextDateTime} /> on
                            </>
                          )}
                    </dd>
                  </div>
                  {k.dsRecord && (
                    <div>
                      <dt>DS record</dt>
                      <dd class="mono">{k.dsRecord}</dd>
                    </div>
                  )}
                  {k.dsWithdrawn && (
                    <div>
                      <dt>DS record</dt>
                      <dd>withdrawn: not in the parent zone</dd>
                    </div>
                  )}
                </dl>
                {may.change && (
                  <div class="buttons">
                    {k.state === "ACTIVE" && zone.keys.filter(o => o.type === k.type).length === 1 && (
                      <Button
                        icon="refresh-cw"
                        onClick={() =>
                          setAsked({
                            key: k,
                            body: { state: "REGENERATE" },
                            says: "Created a successor key. It starts signing when caches have had the time to fetch it.",
                          })
                        }
                      >
                        Roll over now
                      </Button>
                    )}
                    {k.type === "KeySigningKey" &&
                      k.next === "TAKES_OVER" &&
                      k.waitsFor &&
                      !zone.parentHere &&
                      k.publishedDateTime && (
                        <Button
                          icon="check"
                          onClick={() =>
                            setAsked({
                              key: k,
                              body: { dsConfirmed: true },
                              says: "Confirmed that the DS record of this key is in the parent zone.",
                            })
                          }
                        >
                          Confirm DS record
                        </Button>
                      )}
                  </div>
                )}
              </section>
            ))}
          </div>
        </section>
      ))}
      {asked && (
        <Preview
          title={`Key ${asked.key.tag}`}
          close={() => setAsked(null)}
          done={reload}
          wanted={{ method: "PATCH", path: "signingKeys/" + asked.key.id, body: asked.body, says: asked.says }}
        />
      )}
    </>
  )
}
