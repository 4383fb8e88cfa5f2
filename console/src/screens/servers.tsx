// Servers, their deployments and the progress of each.
import { useState } from "preact/hooks"
import { get, query, type Page, type Problem, type Resource } from "../api"
import { problemOf, useData, useRows } from "../data"
import { filterOf } from "../filter"
import { Icon } from "../icons"
import { To } from "../links"
import { Button, Dialog, Empty, Field, Head, Loading, State, Tabs, Trouble } from "../parts/basics"
import { NoConfiguration } from "../parts/configuration"
import { choiceName } from "../parts/choices"
import { Create, Delete, Edit } from "../parts/edit"
import { Grid } from "../parts/grid"
import { selectable, SelectableList, useSelection } from "../parts/selection"
import { FilterForm } from "../parts/tools"
import { go, place, setQuery } from "../router"
import { configuration, configurations, session } from "../session"
import { PointLink } from "../parts/interfaces"
import { useMay } from "../rights"
import { change } from "../work"
import { Nowhere, Table, Value } from "./generic"
import { useSchema } from "../schema"
import { Deployed } from "./names"
import { useColumns } from "../parts/userfields"
import { fieldName } from "../words"

const tabs: [key: string, label: string][] = [
  ["", "Servers"],
  ["deployments", "Deployments"],
  ["deploymentRoles", "Roles"],
  ["deploymentOptions", "Options"],
  ["schedules", "Schedules"],
]

export function Servers() {
  const c = configuration.value,
    asked = place.value.query.get("tab") ?? "",
    tab = tabs.some(([key]) => key === asked) ? asked : "", // Tabs names an unknown tab
    schema = useSchema(),
    [making, setMaking] = useState(false),
    [deploying, setDeploying] = useState<Resource | null>(null),
    [editing, setEditing] = useState<Resource | null>(null),
    [deleting, setDeleting] = useState<Resource | null>(null)
  const name = place.value.query.get("name") ?? ""
  const rows = useRows(
    c ? `configurations/${c}/servers` : null,
    { orderBy: "name", ...(name ? { filter: filterOf(name) } : {}) },
    ["servers", "deployments"],
  )
  const selection = useSelection(rows),
    may = useMay(c ? "configurations/" + c : null)
  const { columns, chooser } = useColumns(
    "servers",
    schema,
    ["Server"],
    [
      { key: "name", title: "Server", width: "minmax(10rem,2fr)", cell: s => <To r={s} /> },
      { key: "state", title: "State", width: "9rem", narrow: "5.5rem", cell: s => <State of={s.state} /> },
      {
        key: "point",
        title: "Service point",
        width: "minmax(10rem,2fr)",
        minor: true,
        cell: s => (s.servicePoint ? <PointLink id={s.servicePoint} /> : <span class="muted">none</span>),
      },
      {
        key: "profile",
        title: "Profile",
        minor: true,
        cell: s => <span class="muted cut">{choiceName(s.profile, "profile")}</span>,
      },
      {
        key: "deploy",
        title: "",
        width: "7.5rem",
        narrow: "4.5rem",
        cell: s =>
          may.change && (
            <button class="small" onClick={() => setDeploying(s)} aria-label={"Deploy to " + s.name}>
              Deploy
            </button>
          ),
      },
    ],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  if (c === null)
    return (
      <>
        <Head title="Servers" />
        <NoConfiguration />
      </>
    )
  return (
    <>
      <Head title="Servers" kind={configurations.value.find(x => x.id === c)?.name ?? ""}>
        {may.add && (
          <Button icon="plus" onClick={() => setMaking(true)}>
            New server
          </Button>
        )}
        {session.value?.administrator && (
          <a class="button primary" href="/ui/setup">
            <Icon name="rocket" />
            Set up a DNS server
          </a>
        )}
      </Head>
      <Tabs tabs={tabs} chosen={asked} choose={k => setQuery({ tab: k, filter: null, name: null, orderBy: null })} />
      {tab === "deployments" ? (
        <>
          {configurations.value.length > 1 && (
            <p class="muted">Across all configurations visible to you. The page of a server lists its own.</p>
          )}
          <Deployed path="deployments" />
        </>
      ) : tab && schema ? (
        schema.collections[tab] ? (
          <Table key={tab} path={tab} collection={tab} c={schema.collections[tab]} within={"configuration.id:" + c} />
        ) : (
          <Nowhere />
        )
      ) : (
        <SelectableList
          rows={rows}
          noun="servers"
          filter={
            <FilterForm
              table="servers"
              parameter="name"
              parameters={["name"]}
              label="Filter servers"
              placeholder="server name or filter"
            />
          }
          chooser={chooser}
          selection={selection}
          collection="servers"
          may={may}
        >
          {total => (
            <Grid
              select={selectable(selection)}
              label="Servers"
              count={total}
              at={rows.at}
              id={s => s.id}
              open={s => go("/ui/servers/" + s.id)}
              onKey={(e, s) => {
                if (s && may.change && e.key === "e") {
                  e.preventDefault()
                  setEditing(s)
                } else if (s && may.remove && e.key === "Delete") {
                  e.preventDefault()
                  setDeleting(s)
                }
              }}
              empty={
                name ? (
                  <Empty title="No servers match." />
                ) : (
                  <Empty title="No servers yet.">
                    A server is a service point of the fleet, or a BIND server that an agent manages.{" "}
                    {session.value?.administrator && <a href="/ui/setup">Set up the first DNS server</a>}
                  </Empty>
                )
              }
              columns={columns}
            />
          )}
        </SelectableList>
      )}
      {editing && <Edit r={editing} close={() => setEditing(null)} done={rows.reload} />}
      {deleting && <Delete r={deleting} close={() => setDeleting(null)} done={rows.reload} />}
      {making && (
        <Create
          path={`configurations/${c}/servers`}
          makes={schema?.collections.configurations?.b?.servers ?? { n: {} }}
          types={["Server"]}
          only={["name", "servicePoint", "profile"]}
          values={{ profile: "PORTOLAN_SERVICE_POINT", interfaces: [{}] }}
          close={() => setMaking(false)}
          done={rows.reload}
        />
      )}
      {deploying && <Deploy s={deploying} close={() => setDeploying(null)} />}
    </>
  )
}

/** The deployment types of each service. */
const typesOf: { [service: string]: string[] } = {
  DNS: ["FullDeployment", "DifferentialDeployment", "ValidationDeployment"],
  DHCPv4: ["FullDeployment", "ValidationDeployment"],
  DHCPv6: ["FullDeployment", "ValidationDeployment"],
  TFTP: ["FullDeployment"],
}

/** The labels of the deployment types. */
const typeNames: { [type: string]: string } = {
  FullDeployment: "full deployment",
  DifferentialDeployment: "changes only",
  ValidationDeployment: "check only",
}

function Deploy({ s, close }: { s: Resource; close: () => void }) {
  const [chosen, setChosen] = useState<string>(),
    [service, setService] = useState("DNS"),
    [problem, setProblem] = useState<Problem>()
  // A deployment of the changes requires an earlier full deployment.
  const path =
      `servers/${s.id}/deployments` +
      query({ filter: `type:'FullDeployment' and service:'${service}' and state:startsWith('COMPLETED')`, limit: 1 }),
    before = useData<Page>(path, signal => get(path, { signal, quiet: true }), ["deployments"])
  const deployed = (before.data?.data.length ?? 0) > 0,
    types = typesOf[service],
    type =
      chosen && types.includes(chosen)
        ? chosen
        : deployed && types.includes("DifferentialDeployment")
          ? "DifferentialDeployment"
          : "FullDeployment"
  const submit = async (e: Event) => {
    e.preventDefault()
    try {
      const r = await change("Deployment queued.", "POST", `servers/${s.id}/deployments`, { type, service })
      close()
      go(r.body?.id ? "/ui/deployments/" + r.body.id : "/ui/servers?tab=deployments")
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <Dialog title={"Deploy to " + s.name} close={close}>
      {before.loading && !before.data && !before.problem ? (
        <Loading what="the deployments" />
      ) : (
        <form onSubmit={e => void submit(e)}>
          {problem && <Trouble problem={problem} />}
          <Field label="Service">
            {id => (
              <select id={id} value={service} onChange={e => setService(e.currentTarget.value)}>
                {Object.keys(typesOf).map(one => (
                  <option key={one} value={one}>
                    {one}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field
            label="Deployment"
            hint={
              before.problem
                ? before.problem.message
                : deployed
                  ? undefined
                  : `${s.name} has never been deployed: the first deployment is a full one.`
            }
          >
            {(id, d) => (
              <select id={id} aria-describedby={d} value={type} onChange={e => setChosen(e.currentTarget.value)}>
                {types.map(one => (
                  <option key={one} value={one} disabled={one === "DifferentialDeployment" && !deployed}>
                    {typeNames[one]}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <div class="buttons">
            <button class="primary" type="submit">
              Deploy
            </button>
            <Button onClick={close}>Cancel</Button>
          </div>
        </form>
      )}
    </Dialog>
  )
}
