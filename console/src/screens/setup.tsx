// The guided setup of a DNS server: service point, application, zone, server and role, deployment, and an answered query. The URL holds the
// choices, and each step shows the current state of its resources, so that the setup can be left and continued.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { call, get, literal, query, type Page, type Problem, type Resource } from "../api"
import { problemOf, useData, usePolled } from "../data"
import { stateOf, type Point } from "../fleet"
import { Icon } from "../icons"
import { To } from "../links"
import { DeployApplication } from "../parts/appform"
import { Button, Empty, Field, Head, Loading, State, Trouble } from "../parts/basics"
import { AskServer } from "../parts/dig"
import { AgentCommand, type Key } from "../parts/point"
import { place, setQuery } from "../router"
import { configuration, configurations, session } from "../session"
import { change } from "../work"
import { useFleet } from "../fleet"

const application = "dns-authoritative-service"

export function Setup() {
  const c = configuration.value,
    q = place.value.query,
    point = q.get("point"),
    zone = q.get("zone"),
    server = q.get("server")
  const fleet = useFleet(1500),
    chosen = fleet.data?.find(p => p.id === point)
  const app = chosen?.applications.find(a => a.name === application)
  const z = useData<Resource>(zone && "zones/" + zone, s => get("zones/" + zone, { signal: s }), ["zones"])
  const serverPath = `configurations/${c}/servers` + query({ filter: `servicePoint:${literal(point ?? "")}`, limit: 1 })
  const own = useData<Page>(c && point ? serverPath : null, s => get(serverPath, { signal: s, quiet: true }), [
    "servers",
    "deploymentRoles",
  ])
  const of = own.data?.data[0],
    linked = of && (!server || String(of.id) === server) ? of : undefined
  const roles = useData<Page>(
    zone && linked ? `roles ${zone} ${linked.id}` : null,
    s => get(`zones/${zone}/deploymentRoles?limit=100&fields=embed(interfaces)`, { signal: s, quiet: true }),
    ["deploymentRoles", "servers"],
  )
  const [deployment, setDeployment] = useState<Resource>(),
    [answeredFor, setAnsweredFor] = useState("")
  const asked = `${linked?.id}/${z.data?.id}`,
    answered = answeredFor === asked
  if (c === null || !session.value?.administrator)
    return (
      <>
        <Head title="Set up a DNS server" />
        <Empty title="You cannot set up a DNS server.">
          {c === null ? (
            <>
              Servers and zones belong to a configuration. <a href="/ui/configurations">Create a configuration</a>{" "}
              first.
            </>
          ) : (
            "Only administrators can create service points and servers."
          )}
        </Empty>
      </>
    )
  const ready = [
    !!chosen && chosen.connectionStatus === "CONNECTED",
    app?.status === "HEALTHY",
    !!z.data,
    !!linked && (roles.data?.data.length ?? 0) > 0,
    deployment?.state?.startsWith("COMPLETED") ?? false,
    answered,
  ]
  const first = ready.indexOf(false),
    open = (i: number) => i <= (first < 0 ? 5 : first)
  return (
    <>
      <Head title="Set up a DNS server" kind={configurations.value.find(x => x.id === c)?.name ?? undefined} />
      <p class="muted">
        Six steps from a machine to an answered query. You can leave this page and continue later: its URL keeps your
        choices.
      </p>
      <ol class="setup">
        <Step n={1} title="Service point" done={ready[0]} says={chosen?.name ?? ""}>
          <ChoosePoint chosen={chosen} points={fleet.data} problem={fleet.problem} reload={fleet.reload} />
        </Step>
        <Step n={2} title="DNS server application" done={ready[1]} shut={!open(1)} says={app?.status ?? ""}>
          {chosen && <Application p={chosen} reload={fleet.reload} />}
        </Step>
        <Step n={3} title="Zone" done={ready[2]} shut={!open(2)} says={z.data?.absoluteName ?? ""}>
          <ChooseZone c={c} zone={z.data} problem={z.problem} />
        </Step>
        <Step n={4} title="Server and role" done={ready[3]} shut={!open(3)} says={linked?.name ?? ""}>
          {chosen && z.data && (
            <ServerAndRole
              c={c}
              p={chosen}
              z={z.data}
              server={linked}
              roles={roles.data?.data}
              done={() => {
                own.reload()
                roles.reload()
              }}
            />
          )}
        </Step>
        <Step n={5} title="Deployment" done={ready[4]} shut={!open(4)} says={deployment?.state ?? ""}>
          {linked && <Deployment server={linked} seen={setDeployment} />}
        </Step>
        <Step n={6} title="Test query" done={ready[5]} shut={!open(5) && !answered}>
          {linked && z.data && (
            <>
              <p class="muted">The manager asks {linked.name} and shows the reply.</p>
              <AskServer
                server={linked.id}
                name={z.data.absoluteName ?? ""}
                key={asked}
                answered={l => setAnsweredFor(l.status === "NOERROR" && l.answers.length > 0 ? asked : "")}
              />
              {answered && (
                <p class="summary">
                  <Icon name="circle-check" class="run" /> {linked.name} answers for {z.data.absoluteName}.{" "}
                  <a href={"/ui/zones/" + z.data.id}>Open the zone</a>, or <a href="/ui/servers">all servers</a>.
                </p>
              )}
            </>
          )}
        </Step>
      </ol>
    </>
  )
}

/** A step of the setup. It is shut until the steps before it are done. */
function Step({
  n,
  title,
  done,
  shut,
  says,
  children,
}: {
  n: number
  title: string
  done: boolean
  shut?: boolean
  says?: string
  children: ComponentChildren
}) {
  return (
    <li class={"card" + (shut ? " shut" : "")} aria-current={!done && !shut ? "step" : undefined}>
      <h2>
        <Icon name={done ? "circle-check" : "circle-dot"} class={done ? "run" : ""} /> {n}. {title}
        {says && <span class="muted small"> {/^[A-Z_]+$/.test(says) ? <State of={says} /> : says}</span>}
        {done && <span class="hidden"> (done)</span>}
      </h2>
      {shut ? <p class="muted small">Complete the previous step first.</p> : children}
    </li>
  )
}

/** Step 1: an existing service point, or a new one that enrols. */
function ChoosePoint({
  chosen,
  points,
  problem,
  reload,
}: {
  chosen?: Point
  points?: Point[]
  problem?: Problem
  reload: () => void
}) {
  const [name, setName] = useState(""),
    [made, setMade] = useState<Key>(),
    [refused, setRefused] = useState<Problem>()
  const create = async (e: Event) => {
    e.preventDefault()
    try {
      const key = (await call<Key>("POST", "/api/v1/fleetInstanceMinimumConfig", { name, description: null })).body
      setMade(key)
      setRefused(undefined)
      setQuery({ point: key.fleetInstanceID })
      reload()
    } catch (e) {
      setRefused(problemOf(e))
    }
  }
  if (problem && !points) return <Trouble problem={problem} retry={reload} />
  if (!points) return <Loading what="the service points" />
  return (
    <>
      <Field label="Service point" hint="The machine that serves DNS.">
        {(id, d) => (
          <select
            id={id}
            aria-describedby={d}
            value={chosen?.id ?? ""}
            onChange={e => setQuery({ point: e.currentTarget.value || null, server: null })}
          >
            <option value="">Enrol a new one</option>
            {points.map(p => (
              <option key={p.id} value={p.id}>
                {p.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {chosen && !made && (
        <p aria-live="polite">
          <State of={stateOf(chosen)} />{" "}
          {chosen.connectionStatus !== "CONNECTED" && (
            <span class="muted">
              It is not connected. Start its agent, or <a href={"/ui/fleet/" + chosen.id}>create a new key</a>.
            </span>
          )}
        </p>
      )}
      {!chosen && !made && (
        <form onSubmit={e => void create(e)}>
          {refused && <Trouble problem={refused} />}
          <Field label="Name of the new service point *">
            {id => (
              <input id={id} required maxLength={128} value={name} onInput={e => setName(e.currentTarget.value)} />
            )}
          </Field>
          <div class="buttons">
            <button class="primary" type="submit">
              Create
            </button>
          </div>
        </form>
      )}
      {made && (
        <>
          {chosen?.connectionStatus !== "CONNECTED" && (
            <>
              <p>The key is shown only once. It is valid for one enrolment within seven days.</p>
              <AgentCommand made={made} />
            </>
          )}
          <p aria-live="polite">
            {chosen?.connectionStatus === "CONNECTED" ? (
              <>
                Connected: <State of={stateOf(chosen)} />
              </>
            ) : (
              <>
                Waiting for its first check-in … <State of={chosen?.status ?? "WAITING_FOR_REGISTRATION"} />
              </>
            )}
          </p>
        </>
      )}
    </>
  )
}

/** Step 2: the name server application of the service point. */
function Application({ p, reload }: { p: Point; reload: () => void }) {
  const [deploying, setDeploying] = useState(false),
    app = p.applications.find(a => a.name === application)
  return (
    <>
      {app ? (
        <>
          <p aria-live="polite">
            {p.name} runs {application}: <State of={app.status} />
          </p>
          {app.errorConditions.map(e => (
            <p key={e} class="bad-text">
              {e}
            </p>
          ))}
          {app.status !== "HEALTHY" && app.errorConditions.length > 0 && (
            <p>
              <a href={"/ui/fleet/" + p.id}>Change its configuration, or read its log</a>
            </p>
          )}
        </>
      ) : (
        <>
          <p class="muted">The application answers queries at the addresses of the service point.</p>
          <Button primary icon="rocket" onClick={() => setDeploying(true)}>
            Deploy the DNS server
          </Button>
        </>
      )}
      {deploying && (
        <DeployApplication
          path={"/user/api/v1/fleetInstances/" + p.id}
          point={p.name}
          only={application}
          close={() => setDeploying(false)}
          done={reload}
        />
      )}
    </>
  )
}

/** Step 3: an existing zone, or a new one in a view. */
function ChooseZone({ c, zone, problem }: { c: number; zone?: Resource; problem?: Problem }) {
  const views = useData<Page>(
      `configurations/${c}/views?limit=100`,
      s => get(`configurations/${c}/views?limit=100`, { signal: s, quiet: true }),
      ["views"],
    ),
    path = "zones" + query({ filter: `configuration.id:${c} and type:'Zone'`, orderBy: "absoluteName", limit: 200 }),
    zones = useData<Page>(path, s => get(path, { signal: s, quiet: true }), ["zones"])
  const [name, setName] = useState(""),
    [view, setView] = useState(""),
    [refused, setRefused] = useState<Problem>()
  const create = async (e: Event) => {
    e.preventDefault()
    try {
      const at =
        view ||
        views.data?.data[0]?.id ||
        (await change("Created view default.", "POST", `configurations/${c}/views`, { name: "default" })).body.id
      const made = await change(`Created zone ${name}.`, "POST", `views/${at}/zones`, {
        type: "Zone",
        absoluteName: name,
        deploymentEnabled: true,
      })
      setRefused(undefined)
      setQuery({ zone: String(made.body.id) })
    } catch (e) {
      setRefused(problemOf(e))
    }
  }
  return (
    <>
      {(refused ?? problem) && <Trouble problem={(refused ?? problem)!} />}
      <Field label="Zone">
        {id => (
          <select id={id} value={zone?.id ?? ""} onChange={e => setQuery({ zone: e.currentTarget.value || null })}>
            <option value="">Create a new one</option>
            {(zones.data?.data ?? []).map(x => (
              <option key={x.id} value={x.id}>
                {x.absoluteName} {x.view?.name && `(${x.view.name})`}
              </option>
            ))}
          </select>
        )}
      </Field>
      {zone ? (
        zone.deploymentEnabled === false && (
          <p>
            <span class="muted">This zone is not deployed.</span>{" "}
            <Button
              onClick={() =>
                void change(`Enabled deployment of ${zone.absoluteName}.`, "PATCH", "zones/" + zone.id, {
                  deploymentEnabled: true,
                }).catch(e => setRefused(problemOf(e)))
              }
            >
              Enable deployment
            </Button>
          </p>
        )
      ) : place.value.query.get("zone") && !problem ? (
        <Loading what="the zone" />
      ) : (
        <form onSubmit={e => void create(e)}>
          <div class="fields">
            <Field label="Name of the new zone *" hint="Missing parent zones are created.">
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  required
                  placeholder="example.net"
                  value={name}
                  onInput={e => setName(e.currentTarget.value.trim())}
                />
              )}
            </Field>
            {(views.data?.data.length ?? 0) > 1 && (
              <Field label="View">
                {id => (
                  <select id={id} value={view} onChange={e => setView(e.currentTarget.value)}>
                    {views.data!.data.map(v => (
                      <option key={v.id} value={v.id}>
                        {v.name}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
            )}
          </div>
          <div class="buttons">
            <button class="primary" type="submit">
              Create
            </button>
          </div>
        </form>
      )}
    </>
  )
}

/** Step 4: the server of the service point, and its role for the zone. */
function ServerAndRole({
  c,
  p,
  z,
  server,
  roles,
  done,
}: {
  c: number
  p: Point
  z: Resource
  server?: Resource
  roles?: Resource[]
  done: () => void
}) {
  const addresses = p.nodes.flatMap(n => n.addresses.filter(a => a.type !== "ANYCAST").map(a => a.ipAddress))
  const [name, setName] = useState(p.name),
    [host, setHost] = useState(`${p.name.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-")}.${z.absoluteName}`),
    [address, setAddress] = useState(addresses[0] ?? ""),
    [role, setRole] = useState("PRIMARY"),
    [busy, setBusy] = useState(false),
    [problem, setProblem] = useState<Problem>()
  const create = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      const id =
        server?.id ??
        (
          await change(`Created server ${name}.`, "POST", `configurations/${c}/servers`, {
            type: "Server",
            name,
            profile: "PORTOLAN_SERVICE_POINT",
            servicePoint: p.id,
            interfaces: [{ type: "NetworkInterface", name: host, managementAddress: address }],
          })
        ).body.id
      const own = await get<Page>(`servers/${id}/interfaces?limit=1`, { quiet: true })
      await change(`Assigned the role to ${name}.`, "POST", `zones/${z.id}/deploymentRoles`, {
        type: "DNSDeploymentRole",
        roleType: role,
        interfaces: [{ id: own.data[0]?.id }],
      })
      setProblem(undefined)
    } catch (e) {
      setProblem(problemOf(e))
    }
    setBusy(false)
    done()
  }
  const mine = (roles ?? []).filter(r => r.roleType)
  if (server && mine.length > 0)
    return (
      <ul class="plain-list">
        {mine.map(r => (
          <li key={r.id}>
            <State of={r.roleType} /> <To r={server} /> <span class="muted">has a role for {z.absoluteName}</span>
          </li>
        ))}
      </ul>
    )
  return (
    <form onSubmit={e => void create(e)}>
      {problem && <Trouble problem={problem} />}
      {server && (
        <p>
          <To r={server} /> <span class="muted">is the server of {p.name}. It needs a role for the zone.</span>
        </p>
      )}
      <div class="fields">
        {!server && (
          <>
            <Field label="Server name *">
              {id => <input id={id} required value={name} onInput={e => setName(e.currentTarget.value)} />}
            </Field>
            <Field label="Host name *" hint="The name in the NS records of the zone.">
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  required
                  value={host}
                  onInput={e => setHost(e.currentTarget.value.trim())}
                />
              )}
            </Field>
            <Field label="Address *" hint="The address that clients send queries to.">
              {(id, d) => (
                <>
                  <input
                    id={id}
                    aria-describedby={d}
                    class="mono"
                    required
                    list={id + "-known"}
                    value={address}
                    onInput={e => setAddress(e.currentTarget.value.trim())}
                  />
                  <datalist id={id + "-known"}>
                    {addresses.map(a => (
                      <option key={a} value={a} />
                    ))}
                  </datalist>
                </>
              )}
            </Field>
          </>
        )}
        <Field label="Role" hint="A primary gets the zone from the manager. A secondary transfers it from its primary.">
          {(id, d) => (
            <select id={id} aria-describedby={d} value={role} onChange={e => setRole(e.currentTarget.value)}>
              <option value="PRIMARY">primary</option>
              <option value="SECONDARY">secondary</option>
            </select>
          )}
        </Field>
      </div>
      <div class="buttons">
        <button class="primary" type="submit" disabled={busy}>
          {server ? "Assign role" : "Create server and role"}
        </button>
      </div>
    </form>
  )
}

/** Step 5: the latest DNS deployment of the server, with its state. Deployments of DHCP do not count. */
function Deployment({ server, seen }: { server: Resource; seen: (d: Resource | undefined) => void }) {
  const path = `servers/${server.id}/deployments` + query({ filter: "service:'DNS'", orderBy: "desc(id)", limit: 1 }),
    { data, problem, reload } = usePolled<Page>(path, signal => get(path, { signal, quiet: true }), 1000),
    [refused, setRefused] = useState<Problem>(),
    last = data?.data[0],
    running = last && ["PENDING", "QUEUED", "RUNNING"].includes(last.state)
  useEffect(() => seen(last), [last?.id, last?.state])
  const deploy = async () => {
    try {
      await change("Deployment queued.", "POST", `servers/${server.id}/deployments`, {
        type: "FullDeployment",
        service: "DNS",
      })
      setRefused(undefined)
      reload()
    } catch (e) {
      setRefused(problemOf(e))
    }
  }
  return (
    <>
      {(refused ?? problem) && <Trouble problem={(refused ?? problem)!} />}
      {last && (
        <p aria-live="polite">
          <State of={last.state} /> {last.message}{" "}
          {running && <progress max={100} value={last.percentComplete ?? 0} aria-label="Progress" />}
        </p>
      )}
      <Button primary={!last || last.state === "FAILED"} icon="rocket" disabled={running} onClick={() => void deploy()}>
        {last ? "Deploy again" : "Deploy"}
      </Button>
    </>
  )
}
