// Discovery: the findings of reconciliation policies to accept or reject, the observed addresses, and the policies with their runs.
import { useState } from "preact/hooks"
import { call, get, literal, query, type Page, type Resource } from "../api"
import { problemOf, useData, useRows, useEvery } from "../data"
import { To } from "../links"
import { Button, choice, Empty, Field, Head, Loading, State, Tabs, Trouble, When } from "../parts/basics"
import { NoConfiguration } from "../parts/configuration"
import { Grid } from "../parts/grid"
import { NewPolicy } from "../parts/policy"
import { Preview } from "../parts/preview"
import { selectable, SelectionRegion, useSelection } from "../parts/selection"
import { SaveRows } from "../parts/tools"
import { go, place, setQuery } from "../router"
import { useMay } from "../rights"
import { configuration } from "../session"
import { parseAddress, parseSpan } from "../space"
import { hardware } from "../leasefilter"
import { counted, number } from "../words"
import { toast } from "../notice"

const interval = 5000

/** The kinds of findings, with their labels. */
const kinds: Record<string, string> = {
  UNKNOWN_ADDRESS: "Seen, not assigned",
  NOT_SEEN: "Assigned, not seen",
  MAC_ADDRESS_DIFFERS: "MAC address differs",
  HOST_NAME_DIFFERS: "Host name differs",
  UNKNOWN_NETWORK: "Outside all networks",
}

const tabs: [string, string][] = [
  ["findings", "Findings"],
  ["observations", "Seen addresses"],
  ["policies", "Policies"],
]

export function Discovery() {
  const shown = place.value.query.get("tab") ?? "findings",
    c = configuration.value
  return (
    <>
      <Head title="Discovery" />
      {c === null ? (
        <NoConfiguration />
      ) : (
        <>
          <Tabs tabs={tabs} chosen={shown} choose={tab => setQuery({ tab, filter: null, kind: null, state: null })} />
          {shown === "observations" ? (
            <Observations key={c} c={c} />
          ) : shown === "policies" ? (
            <Policies key={c} c={c} />
          ) : (
            <Findings key={c} c={c} />
          )}
        </>
      )}
    </>
  )
}

/** The findings of a configuration. */
function Findings({ c }: { c: number }) {
  const state = place.value.query.get("state") ?? "OPEN",
    kind = place.value.query.get("kind") ?? ""
  const filter = `configuration.id:${c} and state:'${state}'` + (kind ? ` and kind:'${kind}'` : "")
  const rows = useRows<Resource>("reconciliationFindings", { filter }, ["addresses"])
  const selection = useSelection(rows),
    [decision, setDecision] = useState<{ state: string; list: Resource[] } | null>(null)
  useEvery(interval, rows.reload)
  if (rows.problem) return <Trouble problem={rows.problem} retry={rows.reload} />
  if (rows.total === undefined) return <Loading what="the findings" />
  const list = [...selection.rows.values()]
  return (
    <>
      <div class="tools">
        <Field label="Kind">
          {id => (
            <select id={id} value={kind} onChange={e => setQuery({ kind: e.currentTarget.value || null })}>
              <option value="">All</option>
              {Object.entries(kinds).map(([k, text]) => (
                <option key={k} value={k}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="State">
          {id => (
            <select id={id} value={state} onChange={e => setQuery({ state: e.currentTarget.value })}>
              {["OPEN", "ACCEPTED", "REJECTED"].map(s => (
                <option key={s} value={s}>
                  {choice(s)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <span class="muted">{counted(rows.total, "findings")}</span>
        <span class="grow" />
        <SaveRows rows={rows} />
      </div>
      {list.length > 0 && (
        <SelectionRegion selection={selection} total={rows.total}>
          {state !== "ACCEPTED" && (
            <Button icon="check" primary onClick={() => setDecision({ state: "ACCEPTED", list })}>
              Accept
            </Button>
          )}
          {state === "OPEN" ? (
            <Button icon="x" onClick={() => setDecision({ state: "REJECTED", list })}>
              Reject
            </Button>
          ) : (
            <Button onClick={() => setDecision({ state: "OPEN", list })}>Open again</Button>
          )}
        </SelectionRegion>
      )}
      <Grid
        label="Findings"
        count={rows.total}
        at={rows.at}
        id={r => r.id}
        select={selectable(selection)}
        onKey={(e, r) => {
          const chosen = e.key === "a" ? "ACCEPTED" : e.key === "r" ? "REJECTED" : ""
          if (r && chosen && !e.ctrlKey && !e.metaKey) {
            e.preventDefault()
            setDecision({ state: chosen, list: list.length ? list : [r] })
          }
        }}
        empty={
          <Empty title="No findings.">
            A run of a reconciliation policy lists the differences between the network and the database here.
          </Empty>
        }
        columns={[
          {
            key: "address",
            title: "Address",
            width: "minmax(8rem,1fr)",
            narrow: "6.6rem",
            cell: r => <span class="mono cut">{r.address}</span>,
          },
          {
            key: "kind",
            title: "Difference",
            width: "11rem",
            narrow: "minmax(0,1fr)",
            cell: r => <span class="cut">{kinds[r.kind] ?? r.kind}</span>,
          },
          {
            key: "change",
            title: "If accepted",
            width: "minmax(14rem,3fr)",
            narrow: "minmax(0,1.5fr)",
            cell: r => (
              <span class="cut" title={r.change}>
                <ChangeOf r={r} />
              </span>
            ),
          },
          {
            key: "place",
            title: "Port",
            minor: true,
            width: "minmax(10rem,1fr)",
            cell: r => <span class="muted cut">{r.place}</span>,
          },
          {
            key: "network",
            title: "Network",
            minor: true,
            width: "9rem",
            cell: r => r.network && <To r={r.network} mono />,
          },
          { key: "since", title: "Since", width: "8rem", minor: true, cell: r => <When at={r.sinceDateTime} /> },
        ]}
      />
      {decision && (
        <Preview
          title={`${decision.state === "ACCEPTED" ? "Accept" : decision.state === "REJECTED" ? "Reject" : "Open"} ${counted(decision.list.length, "findings")}`}
          wanted={
            decision.list.length === 1
              ? {
                  method: "PATCH",
                  path: "reconciliationFindings/" + decision.list[0].id,
                  body: { state: decision.state },
                  says: saysOf(decision.state, 1),
                }
              : {
                  method: "POST",
                  path: "batch",
                  body: {
                    changes: decision.list.map(r => ({
                      method: "PATCH",
                      path: "reconciliationFindings/" + r.id,
                      body: { state: decision.state },
                    })),
                  },
                  says: saysOf(decision.state, decision.list.length),
                }
          }
          close={() => setDecision(null)}
          done={() => {
            selection.clear()
            rows.reload()
          }}
        >
          {() => (
            <ul class="plain">
              {decision.list.slice(0, maxShown).map(r => (
                <li key={r.id}>
                  <span class="mono">{r.address}</span>: {decision.state === "ACCEPTED" ? r.change : kinds[r.kind]}
                </li>
              ))}
              {decision.list.length > maxShown && <li>and {number(decision.list.length - maxShown)} more</li>}
            </ul>
          )}
        </Preview>
      )}
    </>
  )
}

/** The change that an acceptance applies, with the present and the new value. */
function ChangeOf({ r }: { r: Resource }) {
  switch (r.kind) {
    case "UNKNOWN_ADDRESS":
      return (
        <>
          Assign as static
          {r.seenMacAddress ? (
            <>
              {" "}
              for <span class="mono">{r.seenMacAddress}</span>
            </>
          ) : (
            ""
          )}
        </>
      )
    case "NOT_SEEN":
      return <>Release</>
    case "MAC_ADDRESS_DIFFERS":
      return (
        <span class="mono">
          {r.storedMacAddress} → {r.seenMacAddress}
        </span>
      )
    case "HOST_NAME_DIFFERS":
      return (
        <>
          Add <span class="mono">{r.seenHostName}</span> <span class="muted">to {r.storedHostNames?.join(", ")}</span>
        </>
      )
    case "UNKNOWN_NETWORK":
      return <span class="muted">Create its network first</span>
  }
  return <>{r.change}</>
}

/** The number of findings that the preview lists. */
const maxShown = 8

function saysOf(state: string, n: number) {
  const word = state === "ACCEPTED" ? "Accepted" : state === "REJECTED" ? "Rejected" : "Opened"
  return `${word} ${counted(n, "findings")}.`
}

/** Returns the filter for a search text. Each of its fields has an index. */
function observationFilter(text: string) {
  const value = literal(text)
  if (!text) return ""
  if (parseAddress(text)) return `address:${value}`
  if (text.includes("/") && parseSpan(text)) return `address:within(${value})`
  if (hardware.test(text)) return `macAddress:${value}`
  return `(hostName:startsWith(${value}) or switch:startsWith(${value}))`
}

/** The observed addresses of a configuration. */
function Observations({ c }: { c: number }) {
  const text = place.value.query.get("filter") ?? "",
    order = place.value.query.get("orderBy") ?? "desc(lastSeenDateTime)"
  const filter = [`configuration.id:${c}`, observationFilter(text.trim())].filter(Boolean).join(" and ")
  const rows = useRows<Resource>("observations", { filter, orderBy: order }, [])
  useEvery(interval, rows.reload)
  return (
    <>
      <div class="tools">
        <Field
          label="Search"
          hint="An address, a prefix, a MAC address, or the beginning of a host name or of the name of a switch."
        >
          {(id, d) => (
            <input
              id={id}
              type="search"
              aria-describedby={d}
              value={text}
              onChange={e => setQuery({ filter: e.currentTarget.value || null })}
            />
          )}
        </Field>
        {rows.total !== undefined && <span class="muted">{counted(rows.total, "addresses")}</span>}
        <span class="grow" />
        <SaveRows rows={rows} />
      </div>
      {rows.problem ? (
        <Trouble problem={rows.problem} retry={rows.reload} />
      ) : rows.total === undefined ? (
        <Loading what="the addresses" />
      ) : (
        <Grid
          label="Seen addresses"
          count={rows.total}
          at={rows.at}
          id={r => r.id}
          order={order}
          reorder={o => setQuery({ orderBy: o })}
          empty={<Empty title={text ? "No seen addresses match." : "No addresses seen yet."} />}
          columns={[
            {
              key: "last",
              title: "Last seen",
              width: "8.5rem",
              narrow: "6.4rem",
              sort: "lastSeenDateTime",
              cell: r => <When at={r.lastSeenDateTime} />,
            },
            {
              key: "address",
              title: "Address",
              width: "minmax(8rem,1fr)",
              sort: "address",
              cell: r => <span class="mono">{r.address}</span>,
            },
            {
              key: "mac",
              title: "MAC address",
              width: "10.5rem",
              narrow: "minmax(0,1fr)",
              cell: r => <span class="mono cut">{r.macAddress}</span>,
            },
            {
              key: "name",
              title: "Host name",
              width: "minmax(8rem,1.5fr)",
              minor: true,
              cell: r => <span class="cut">{r.hostName}</span>,
            },
            {
              key: "port",
              title: "Switch and port",
              width: "minmax(9rem,1.5fr)",
              minor: true,
              cell: r => (
                <span class="cut">
                  {r.switch} {r.switchPort}
                  {r.vlan ? `, VLAN ${r.vlan}` : ""}
                </span>
              ),
            },
            {
              key: "network",
              title: "Network",
              width: "9rem",
              minor: true,
              cell: r => r.network && <To r={r.network} mono />,
            },
            {
              key: "first",
              title: "First seen",
              width: "10rem",
              minor: true,
              cell: r => <When at={r.firstSeenDateTime} />,
            },
          ]}
        />
      )}
    </>
  )
}

/** The policies of a configuration, with their last runs. */
function Policies({ c }: { c: number }) {
  const rows = useRows<Resource>("reconciliationPolicies", { filter: `configuration.id:${c}` }, [
    "reconciliationPolicies",
  ])
  const may = useMay("configurations/" + c),
    [creating, setCreating] = useState(false)
  useEvery(interval, rows.reload)
  if (rows.problem) return <Trouble problem={rows.problem} retry={rows.reload} />
  if (rows.total === undefined) return <Loading what="the policies" />
  return (
    <>
      <div class="tools">
        <span class="muted">{counted(rows.total, "policies")}</span>
        <span class="grow" />
        <SaveRows rows={rows} />
        {may.add && (
          <Button icon="plus" primary onClick={() => setCreating(true)}>
            New policy
          </Button>
        )}
      </div>
      <Grid
        label="Policies"
        count={rows.total}
        at={rows.at}
        id={r => r.id}
        open={r => go("/ui/reconciliationPolicies/" + r.id)}
        empty={
          <Empty title="No policies yet.">
            A policy scans a network, a block or a configuration. Only a manager that was started with --sweep runs
            policies.
          </Empty>
        }
        columns={[
          {
            key: "name",
            title: "Policy",
            width: "minmax(9rem,1.5fr)",
            cell: r => <a href={"/ui/reconciliationPolicies/" + r.id}>{r.name || "Policy " + r.id}</a>,
          },
          { key: "method", title: "Method", width: "9rem", minor: true, cell: r => choice(r.discoveryMethod) },
          { key: "enabled", title: "Enabled", width: "5rem", minor: true, cell: r => (r.enabled ? "Yes" : "No") },
          { key: "next", title: "Next run", width: "8.5rem", minor: true, cell: r => <When at={r.nextDateTime} /> },
          {
            key: "last",
            title: "Last run",
            width: "minmax(12rem,2fr)",
            narrow: "minmax(0,1fr)",
            cell: r => <LastRun policy={r} />,
          },
        ]}
      />
      {creating && <NewPolicy close={() => setCreating(false)} done={rows.reload} />}
    </>
  )
}

/** The last run of a policy, and the button for another one. */
function LastRun({ policy }: { policy: Resource }) {
  const path = `reconciliationPolicies/${policy.id}/reconciliationRuns` + query({ orderBy: "desc(id)", limit: 1 })
  const { data, problem, loading, reload } = useData<Page>(path, s => get<Page>(path, { signal: s, quiet: true }))
  useEvery(interval, reload)
  const last = data?.data[0]
  const run = () =>
    call("POST", `reconciliationPolicies/${policy.id}/reconciliationRuns`, {}).then(reload, e =>
      toast(problemOf(e).message, { bad: true }),
    )
  return (
    <span class="line">
      {last ? (
        <>
          <State of={last.state} />{" "}
          <span class="muted" title={last.messages?.join("\n")}>
            {last.state === "QUEUED"
              ? ""
              : `${counted(last.seen, "addresses")} seen, ${counted(last.findings, "findings")} open`}
          </span>
        </>
      ) : (
        <span class="muted">{problem ? problem.message : loading ? "…" : "No runs yet"}</span>
      )}{" "}
      {policy.enabled && last?.state !== "QUEUED" && (
        <button type="button" class="small" onClick={() => void run()}>
          Run now
        </button>
      )}
    </span>
  )
}
