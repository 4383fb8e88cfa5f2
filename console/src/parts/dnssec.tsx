// Signs a zone with one button, and checks the DS records in the parent zone.
import { useState } from "preact/hooks"
import { get, literal, query, type Page, type Problem, type Resource } from "../api"
import { problemOf, useData } from "../data"
import { compareDS } from "../ds"
import { Icon } from "../icons"
import { change } from "../work"
import { Button, Dialog, Field, Loading, Trouble } from "./basics"
import { lookUp, type Lookup } from "./dig"
import { toast } from "../notice"

/** The default policy: ECDSA P-256 with SHA-256 (RFC 8624), NSEC, and keys that are replaced automatically. */
export const defaultPolicy = {
  type: "DNSSECSigningPolicy",
  name: "Default (ECDSA P-256)",
  keyProvider: "ADDRESS_MANAGER",
  signatureDigestAlgorithm: "SHA256",
  signatureValidityPeriod: "P14D",
  signatureResigningPeriod: "P7D",
  zoneSigningKeyAlgorithm: "ECDSAP256SHA256",
  zoneSigningKeyLength: 256,
  zoneSigningKeyValidityPeriod: "P90D",
  zoneSigningKeyOverlapPeriod: "P14D",
  zoneSigningKeyRolloverMethod: "PRE_PUBLISH",
  zoneSigningKeySigningPeriod: "P7D",
  keySigningKeyAlgorithm: "ECDSAP256SHA256",
  keySigningKeyLength: 256,
  keySigningKeyValidityPeriod: "P730D",
  keySigningKeyOverlapPeriod: "P60D",
  keySigningKeyRolloverMethod: "DOUBLE_SIGNING",
}

/** Signs a zone: with an existing policy, or with the default policy, which is created if it does not exist. */
export function SignZone({ zone, close, done }: { zone: string; close: () => void; done: () => void }) {
  const policies = useData<Page>(
      "signingPolicies",
      s => get("signingPolicies?limit=100&orderBy=name", { signal: s, quiet: true }),
      ["signingPolicies"],
    ),
    [policy, setPolicy] = useState(""),
    [busy, setBusy] = useState(false),
    [problem, setProblem] = useState<Problem>()
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      let id = Number(policy)
      if (!id) {
        const named = await get<Page>(
          "signingPolicies" + query({ filter: `name:${literal(defaultPolicy.name)}`, limit: 1 }),
          { quiet: true },
        )
        id =
          named.data[0]?.id ??
          (
            await change<Resource>(
              `Created signing policy ${defaultPolicy.name}.`,
              "POST",
              "signingPolicies",
              defaultPolicy,
            )
          ).body.id
      }
      await change("Signed the zone.", "PATCH", zone, { signed: true, signingPolicy: { id } })
      close()
      done()
    } catch (e) {
      setProblem(problemOf(e))
      setBusy(false)
    }
  }
  const others = (policies.data?.data ?? []).filter(p => p.name !== defaultPolicy.name)
  return (
    <Dialog title="Sign the zone" close={close}>
      {!policies.data && !policies.problem ? (
        <Loading what="the signing policies" />
      ) : (
        <form onSubmit={e => void submit(e)}>
          {problem && <Trouble problem={problem} />}
          <Field
            label="Signing policy"
            hint={
              policy
                ? undefined
                : "ECDSA P-256 with SHA-256, NSEC. Zone signing keys are replaced every 90 days, key signing keys every two years."
            }
          >
            {(id, d) => (
              <select id={id} aria-describedby={d} value={policy} onChange={e => setPolicy(e.currentTarget.value)}>
                <option value="">{defaultPolicy.name}</option>
                {others.map(p => (
                  <option key={p.id} value={p.id}>
                    {p.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <p class="muted">
            After you sign the zone: deploy it, then add the DS record to the parent zone. The page of the keys shows
            it.
          </p>
          <div class="buttons">
            <button class="primary" type="submit" disabled={busy}>
              Sign
            </button>
            <Button onClick={close}>Cancel</Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}

/** The DS record to copy, and a button that asks the parent zone for it. */
export function Delegation({ zone, records, parentHere }: { zone: string; records: string[]; parentHere: boolean }) {
  const [answer, setAnswer] = useState<Lookup>(),
    [busy, setBusy] = useState(false),
    [problem, setProblem] = useState<Problem>()
  const check = async () => {
    setBusy(true)
    try {
      setAnswer(await lookUp({ zone: zone.replace(/^zones\//, "") }))
      setProblem(undefined)
    } catch (e) {
      setProblem(problemOf(e))
    }
    setBusy(false)
  }
  const result = answer && !answer.reason ? compareDS(records, answer.answers) : undefined
  return (
    <section class="card delegation">
      <h2>DS record for the parent zone</h2>
      {records.length === 0 ? (
        <p class="muted">Deploy the zone. The DS record appears when its key is in use.</p>
      ) : (
        <>
          <pre class="command">{records.join("\n")}</pre>
          <div class="buttons">
            <Button
              icon="copy"
              onClick={() =>
                void navigator.clipboard?.writeText(records.join("\n")).then(
                  () => toast("Copied."),
                  () => toast("The browser blocks copying here. Select the text and copy it.", { bad: true }),
                )
              }
            >
              Copy
            </Button>
            <Button icon="search" disabled={busy} onClick={() => void check()}>
              {busy ? "Asking …" : "Check the parent zone"}
            </Button>
          </div>
          {parentHere && (
            <p class="muted small">The parent zone is managed here. Its DS records are updated automatically.</p>
          )}
        </>
      )}
      {problem && <Trouble problem={problem} />}
      {answer?.reason && <p class="bad-text">{answer.reason}</p>}
      {answer && result && (
        <div
          class={"box " + (result.state === "OK" ? "good" : result.state === "WARNING" ? "warn" : "bad")}
          role="status"
        >
          <Icon name={result.state === "OK" ? "circle-check" : "triangle-alert"} />
          <div>
            <p>{result.says}</p>
            <p class="muted small">
              {answer.server} answered {answer.status}
              {answer.answers.length > 0 && ": " + answer.answers.join("; ")}
            </p>
          </div>
        </div>
      )}
    </section>
  )
}
