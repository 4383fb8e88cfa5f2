// Explains what a DHCP client would get: the address, the options with the object that each is set at, and the rules in order.
import { useState } from "preact/hooks"
import { get, query, type Problem } from "../api"
import { problemOf } from "../data"
import { optionText, optionText6 } from "../dhcpoption"
import { Field, Loading, Trouble } from "./basics"
import { faultOf } from "./form"

interface Place {
  level: string
  id: number
  name: string
}
interface Explanation {
  server: { id: number; name: string }
  reply: string | null
  reason: string | null
  address: string | null
  prefixLength: number | null
  range: number | null
  reservation: number | null
  leaseTime: number | null
  classes: string[]
  options: { code: number; name: string; value: string; from: Place }[]
  steps: { rule: string; result: string; from: Place }[]
}

/** The collections of the levels of an explanation. */
const levels: Record<string, string> = {
  configuration: "configurations",
  serverGroup: "serverGroups",
  server: "servers",
  block: "blocks",
  network: "networks",
  range: "ranges",
  macPool: "macPools",
  class: "clientClasses",
  subclass: "subclasses",
  macAddress: "macAddresses",
  address: "addresses",
}

/** A link to the object that a value comes from. */
function From({ p }: { p: Place }) {
  if (!p.level) return null
  const words = p.level.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/^mac /i, "MAC ")
  if (!p.id || !levels[p.level]) return <span class="muted">{words}</span>
  return (
    <a href={`/ui/${levels[p.level]}/${p.id}`}>
      {words} {p.name || p.id}
    </a>
  )
}

/** The fields of the form: the parameter of the API, the label and the placeholder. */
const inputs4: [name: string, label: string, placeholder: string][] = [
  ["macAddress", "MAC address *", "00:00:5e:00:53:01"],
  ["clientIdentifier", "Client identifier", "text, or 0x0A0B"],
  ["relay", "Relay agent (giaddr)", "first address of the network"],
  ["circuitId", "Circuit ID of the relay agent", "eth0/1"],
  ["remoteId", "Remote ID of the relay agent", ""],
  ["vendorClassIdentifier", "Vendor class", "PXEClient"],
  ["options", "Other options", "93:0x0007, 77:iPXE"],
  ["requested", "Requested address", ""],
]
const inputs6: typeof inputs4 = [
  ["macAddress", "MAC address", "00:00:5e:00:53:01"],
  ["clientIdentifier", "DUID", "0003000100005e005301"],
  ["iaid", "IAID", "1"],
  ["relay", "Link address of the relay agent", "first address of the network"],
  ["circuitId", "Interface ID of the relay agent", "eth0/1"],
  ["remoteId", "Remote ID of the relay agent", ""],
]
const requestedAddress: (typeof inputs4)[number] = ["requested", "Requested address", "2001:db8::100"],
  requestedPrefix: (typeof inputs4)[number] = ["requested", "Requested prefix", "::/56, or 2001:db8:100::/56"]

/** The form of a network. In DHCPv6, a client can also ask for a delegated prefix. */
export function Explain({ network, v6, mac }: { network: number; v6?: boolean; mac?: string }) {
  const [values, setValues] = useState<Record<string, string>>({ macAddress: mac ?? "" }),
    [prefix, setPrefix] = useState(false),
    [planned, setPlanned] = useState(false),
    [busy, setBusy] = useState(false),
    [problem, setProblem] = useState<Problem>(),
    [answer, setAnswer] = useState<Explanation>()
  /** Selects a prefix or an address to request. The reply to the other request is removed. */
  const choose = (toPrefix: boolean) => {
    setPrefix(toPrefix)
    setAnswer(undefined)
    setValues(v => ({ ...v, requested: "" }))
  }
  const inputs = v6 ? [...inputs6, prefix ? requestedPrefix : requestedAddress] : inputs4
  const ask = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    setProblem(undefined)
    try {
      setAnswer(
        await get<Explanation>(
          "dhcpExplanation" +
            query({
              network,
              ...Object.fromEntries(inputs.map(([name]) => [name, values[name]?.trim() || undefined])),
              prefix: prefix || undefined,
              planned: planned || undefined,
            }),
        ),
      )
    } catch (x) {
      setAnswer(undefined)
      setProblem(problemOf(x))
    }
    setBusy(false)
  }
  const inField = inputs.some(([name]) => faultOf(problem, name) ?? (problem?.message.startsWith(name + ":") && name))
  return (
    <div class="explain">
      <form onSubmit={ask}>
        <p class="muted">
          Enter a client to see its address and options, the object that each comes from, and the rules.
        </p>
        <div class="fields">
          {inputs.map(([name, label, placeholder]) => (
            <Field
              key={name}
              label={label}
              wrong={
                faultOf(problem, name) ??
                (problem?.message.startsWith(name + ":") ? problem.message.slice(name.length + 2) : undefined)
              }
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  spellcheck={false}
                  placeholder={placeholder}
                  value={values[name] ?? ""}
                  onInput={e => setValues({ ...values, [name]: e.currentTarget.value })}
                />
              )}
            </Field>
          ))}
          {v6 && (
            <Field label="Client requests">
              {id => (
                <select id={id} value={String(prefix)} onChange={e => choose(e.currentTarget.value === "true")}>
                  <option value="false">an address</option>
                  <option value="true">a delegated prefix</option>
                </select>
              )}
            </Field>
          )}
          <Field label="Settings">
            {id => (
              <select id={id} value={String(planned)} onChange={e => setPlanned(e.currentTarget.value === "true")}>
                <option value="false">deployed</option>
                <option value="true">current, not deployed yet</option>
              </select>
            )}
          </Field>
        </div>
        <p>
          <button
            type="submit"
            class="primary"
            disabled={busy || !(values.macAddress || (v6 && values.clientIdentifier))}
          >
            Explain
          </button>
        </p>
      </form>
      {busy && !answer && <Loading />}
      {problem && !inField && <Trouble problem={problem} />}
      {answer && (
        <div aria-live="polite">
          <p class={"box" + (answer.reply ? "" : " bad")}>
            {answer.reply ? (
              <span>
                Server <a href={"/ui/servers/" + answer.server.id}>{answer.server.name}</a>{" "}
                {answer.address ? (
                  <>
                    {answer.prefixLength === null ? "offers" : "delegates"}{" "}
                    <strong class="mono">
                      {answer.address}
                      {answer.prefixLength !== null && "/" + answer.prefixLength}
                    </strong>{" "}
                    for {answer.leaseTime} s
                    {answer.reservation ? (
                      <>
                        , the <a href={"/ui/addresses/" + answer.reservation}>reservation</a> of the client
                      </>
                    ) : answer.range ? (
                      <>
                        {" "}
                        from a <a href={"/ui/ranges/" + answer.range}>range</a>
                      </>
                    ) : null}
                    .
                  </>
                ) : (
                  <>
                    answers without {prefix ? "a prefix" : "an address"}: {answer.reason}.
                  </>
                )}
              </span>
            ) : (
              <span>
                Server <a href={"/ui/servers/" + answer.server.id}>{answer.server.name}</a> does not answer:{" "}
                <strong>{answer.reason}</strong>.
              </span>
            )}
          </p>
          {answer.classes.length > 0 && <p>Classes: {answer.classes.join(", ")}</p>}
          {answer.options.length > 0 && (
            <div class="scrolls" tabIndex={0} role="region" aria-label="Options">
              <table class="plain-table">
                <thead>
                  <tr>
                    <th scope="col" class="nowrap">
                      Code
                    </th>
                    <th scope="col">Option</th>
                    <th scope="col">Value</th>
                    <th scope="col">Set at</th>
                  </tr>
                </thead>
                <tbody>
                  {answer.options.map(o => (
                    <tr key={o.code}>
                      <td class="num">{o.code}</td>
                      <td>{o.name}</td>
                      <td class="mono" title={"0x" + o.value}>
                        {v6 ? optionText6(o.code, o.value) : optionText(o.code, o.value)}
                      </td>
                      <td>
                        <From p={o.from} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          <h2>Rules in order</h2>
          <ol class="steps">
            {answer.steps.map((s, i) => (
              <li key={i}>
                <strong>{s.rule}</strong>: {s.result} {s.from.id ? <From p={s.from} /> : null}
              </li>
            ))}
          </ol>
        </div>
      )}
    </div>
  )
}
