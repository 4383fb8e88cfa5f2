// How a zone, or the reverse zones of a block or a network, are signed: their keys, which of them sign, and what comes next for each.
import { useEffect, useState } from "preact/hooks"
import { get } from "../api"
import { useData } from "../data"
import { Button, Empty, Loading, State, Trouble, When } from "../parts/basics"
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
  FOLLOWED: "another key is made to follow it",
  ENDS: "its time ends, and none follows by itself: it goes on",
  TAKES_OVER: "it takes over",
  REPLACED: "the key that follows takes over",
  REMOVED: "it is removed",
}
const states: Record<string, string> = {
  GENERATED: "made, and not deployed yet",
  PUBLISHED: "deployed, and not known everywhere yet",
  READY: "known everywhere, and waits for its turn",
  ACTIVE: "signs the zone",
  RETIRED: "another key has taken over, and somebody may still need it",
}

/** The keys of what a path of the API names: a zone, a block or a network. */
export function Signing({ of, may }: { of: string; may: May }) {
  const path = of + "/signing"
  const { data, problem, reload } = useData<Answer>(path, signal => get(path, { signal }), [
    "zones",
    "signingKeys",
    "signingPolicies",
    "deployments",
  ])
  const [asked, setAsked] = useState<{ key: Key; body: object; says: string } | null>(null)
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload()
    }, 10000)
    return () => clearInterval(timer)
  }, [path])
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the keys" />
  if (!data.signed || !data.zones.length)
    return (
      <Empty title={of.startsWith("zones/") ? "The zone is not signed." : "No reverse zone of it is signed."}>
        {of.startsWith("zones/")
          ? "It is once it has a signing policy: choose one with Change."
          : "It is once it has a policy for its reverse zone."}
      </Empty>
    )
  return (
    <>
      <p class="summary muted">
        Signed by the policy {data.policy ?? "that you do not see"}. Keys{" "}
        {data.automatic
          ? "follow each other by themselves"
          : "are not followed by others: keyAutoRegenerationEnabled of the configuration is false"}
        .
      </p>
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
              ? "The zone above is deployed from here, and its DS records come and go by themselves."
              : "The zone above is elsewhere: its DS records are put there by people, or by whoever reads its CDS records."}
          </p>
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
                      {k.signs && k.state !== "ACTIVE" && "; its signatures are served"}
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
                    <dt>Its time ends</dt>
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
                      <dd>withdrawn: kept out of the zone above</dd>
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
                            says: "Another key is made now, and takes over when everybody can know it.",
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
                              says: "The DS record of this key is in the zone above.",
                            })
                          }
                        >
                          The DS record is there
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
