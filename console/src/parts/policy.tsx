// The form of a new reconciliation policy: what it scans, how, and how often.
import { useState } from "preact/hooks"
import type { Problem, Ref, Resource } from "../api"
import { Field } from "./basics"
import { bodyOf, faultOf, RefInput } from "./form"
import { Preview } from "./preview"

const methods: [value: string, text: string][] = [
  ["SNMP_PINGSWEEP", "Read routers and switches, and ping addresses"],
  ["SNMP", "Read routers and switches (SNMP)"],
  ["PINGSWEEP", "Ping addresses"],
]

const intervals: [value: string, text: string][] = [
  ["", "once"],
  ["PT15M", "every 15 minutes"],
  ["PT1H", "every hour"],
  ["PT6H", "every 6 hours"],
  ["P1D", "every day"],
  ["P7D", "every week"],
]

const ages: [value: string, text: string][] = [
  ["", "only by a user"],
  ["PT0S", "at once"],
  ["P1D", "after a day"],
  ["P7D", "after 7 days"],
  ["P30D", "after 30 days"],
]

const levels: [value: string, text: string][] = [
  ["AUTH_PRIV", "authentication and encryption"],
  ["AUTH_NOPRIV", "authentication"],
  ["NOAUTH_NOPRIV", "none"],
]

/** Returns the parts of a list in a text, separated by commas, spaces or lines. */
const listOf = (text: string | undefined) => (text ?? "").split(/[\s,]+/).filter(Boolean)

/** Returns a list of equal choices for select boxes. */
const same = (...all: string[]): [string, string][] => all.map(x => [x, x])

/** A new reconciliation policy. on is the network, block or configuration, where it is known. */
export function NewPolicy({ on, close, done }: { on?: Resource; close: () => void; done?: (r: any) => void }) {
  const [at, setAt] = useState<Ref | null>(on ?? null),
    [v, setV] = useState<Record<string, string>>({
      name: "",
      method: "PINGSWEEP",
      frequency: "P1D",
      version: "v2c",
      level: "AUTH_PRIV",
      authentication: "SHA",
      privacy: "AES128",
      packets: "200",
      days: "7",
      unknown: "",
      vlans: "",
    }),
    [start] = useState(() => new Date(Date.now() + 60_000).toISOString())
  const v6 = !!at?.type?.startsWith("IPv6"),
    method = v6 ? "SNMP" : v.method,
    snmp = method !== "PINGSWEEP",
    whole = at?.type === "Configuration"
  const text = (name: string, more: any = {}) => ({
    value: v[name] ?? "",
    onInput: (e: any) => {
      const value = e.currentTarget.value
      setV(v => ({ ...v, [name]: value }))
    },
    autocomplete: "off",
    spellcheck: false,
    ...more,
  })
  const pick = (name: string, label: string, list: [string, string][], problem: Problem | undefined, field: string) => (
    <Field label={label} wrong={faultOf(problem, field)}>
      {id => (
        <select
          id={id}
          value={v[name]}
          onChange={e => {
            const value = e.currentTarget.value
            setV(v => ({ ...v, [name]: value }))
          }}
        >
          {list.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
  const type = v6 ? "IPv6ReconciliationPolicy" : "IPv4ReconciliationPolicy",
    authenticated = v.level !== "NOAUTH_NOPRIV"
  const access =
    v.version === "v3"
      ? {
          version: "v3",
          usernames: listOf(v.users),
          securityLevel: v.level,
          ...(authenticated
            ? { authenticationProtocol: v.authentication, authenticationPassphrase: v.authenticationPassphrase || null }
            : {}),
          ...(v.level === "AUTH_PRIV"
            ? { privacyProtocol: v.privacy, privacyPassphrase: v.privacyPassphrase || null }
            : {}),
        }
      : { version: v.version, communities: listOf(v.communities) }
  const below = at?.id
    ? (whole ? "configurations/" : at.type?.endsWith("Network") ? "networks/" : "blocks/") + at.id
    : ""
  return (
    <Preview
      title="New reconciliation policy"
      close={close}
      done={done}
      waits
      wanted={
        below
          ? {
              method: "POST",
              path: below + "/reconciliationPolicies",
              body: bodyOf(
                {
                  type,
                  name: v.name || null,
                  enabled: true,
                  discoveryMethod: method,
                  startDateTime: start,
                  ...(v.frequency ? { frequency: v.frequency } : {}),
                  packetsPerSecond: Number(v.packets) || 200,
                  notSeenDays: Number(v.days),
                  dnsServers: listOf(v.names),
                  ...(v6 ? {} : { unknownAcceptanceAge: v.unknown || null }),
                  ...(whole ? { networkBoundaries: listOf(v.bounds) } : {}),
                  ...(snmp
                    ? {
                        seedRouterAddresses: listOf(v.devices),
                        neighborBoundaries: listOf(v.neighbours),
                        vlanTablesEnabled: v.vlans === "yes",
                        snmp: access,
                      }
                    : {}),
                },
                type,
              ),
              says: `Created the reconciliation policy ${v.name}.`,
            }
          : null
      }
    >
      {problem => (
        <div class="fields">
          <Field label="Scan *" hint="A network, a block or a configuration.">
            {(id, d) => (
              <RefInput
                attributes={{ id, "aria-describedby": d, disabled: !!on }}
                value={at}
                types={["IPv4Network", "IPv4Block", "IPv6Network", "IPv6Block", "Configuration"]}
                set={setAt}
              />
            )}
          </Field>
          <Field label="Name">{id => <input id={id} {...text("name")} />}</Field>
          {whole && (
            <Field label="Prefixes *" hint="Such as 10.0.0.0/16." wrong={faultOf(problem, "networkBoundaries")}>
              {(id, d) => <input id={id} class="mono" aria-describedby={d} {...text("bounds")} />}
            </Field>
          )}
          {!v6 && pick("method", "Method", methods, problem, "discoveryMethod")}
          {pick("frequency", "Runs", intervals, problem, "frequency")}
          {snmp && (
            <>
              <Field
                label="Routers and switches *"
                hint="Their addresses, one per line."
                wrong={faultOf(problem, "seedRouterAddresses")}
              >
                {(id, d) => <textarea id={id} class="mono" rows={2} aria-describedby={d} {...text("devices")} />}
              </Field>
              <Field
                label="Follow neighbours in"
                hint="Also reads neighbouring devices (LLDP, CDP) with an address in these prefixes, at most 100. They receive the SNMP credentials. Empty: no neighbours."
                wrong={faultOf(problem, "neighborBoundaries")}
              >
                {(id, d) => <input id={id} class="mono" aria-describedby={d} {...text("neighbours")} />}
              </Field>
              {pick("version", "SNMP version", same("v2c", "v3", "v1"), problem, "snmp.version")}
              {v.version !== "v3" ? (
                <Field label="Communities *" hint="Tried in their order." wrong={faultOf(problem, "snmp.communities")}>
                  {(id, d) => <input id={id} aria-describedby={d} {...text("communities")} />}
                </Field>
              ) : (
                <>
                  <Field label="Users *" hint="Tried in their order." wrong={faultOf(problem, "snmp.usernames")}>
                    {(id, d) => <input id={id} aria-describedby={d} {...text("users")} />}
                  </Field>
                  {pick("level", "Security", levels, problem, "snmp.securityLevel")}
                  {authenticated && (
                    <>
                      {pick(
                        "authentication",
                        "Authentication",
                        same("SHA", "MD5"),
                        problem,
                        "snmp.authenticationProtocol",
                      )}
                      <Field label="Authentication passphrase">
                        {id => (
                          <input
                            id={id}
                            {...text("authenticationPassphrase", { type: "password", autocomplete: "new-password" })}
                          />
                        )}
                      </Field>
                    </>
                  )}
                  {v.level === "AUTH_PRIV" && (
                    <>
                      {pick("privacy", "Encryption", same("AES128", "DES"), problem, "snmp.privacyProtocol")}
                      <Field label="Encryption passphrase">
                        {id => (
                          <input
                            id={id}
                            {...text("privacyPassphrase", { type: "password", autocomplete: "new-password" })}
                          />
                        )}
                      </Field>
                    </>
                  )}
                </>
              )}
              {pick(
                "vlans",
                "Forwarding tables",
                [
                  ["", "one table of the switch"],
                  ["yes", "one table per VLAN (public@20, context vlan-20)"],
                ],
                problem,
                "vlanTablesEnabled",
              )}
            </>
          )}
          <Field
            label="DNS servers"
            hint="For the names of the addresses. Empty: names are not looked up."
            wrong={faultOf(problem, "dnsServers")}
          >
            {(id, d) => <input id={id} class="mono" aria-describedby={d} {...text("names")} />}
          </Field>
          <Field label="Packets per second" wrong={faultOf(problem, "packetsPerSecond")}>
            {id => <input id={id} {...text("packets", { type: "number", min: 1, max: 10000 })} />}
          </Field>
          <Field label="Not seen after (days)" wrong={faultOf(problem, "notSeenDays")}>
            {id => <input id={id} {...text("days", { type: "number", min: 0, max: 3650 })} />}
          </Field>
          {!v6 && pick("unknown", "Unknown addresses are assigned", ages, problem, "unknownAcceptanceAge")}
        </div>
      )}
    </Preview>
  )
}
