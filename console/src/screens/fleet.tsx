// The fleet: service points, their applications, enrolment and rollouts.
import { useState } from "preact/hooks"
import { call, get, type Problem, query, literal, type Page } from "../api"
import { problemOf, usePolled, useData } from "../data"
import { base, isBroken, stateOf, useFleet, type Application, type Point } from "../fleet"
import { session } from "../session"
import { Icon } from "../icons"
import { Button, Dialog, Empty, Field, Head, Loading, State, Trouble, When, words } from "../parts/basics"
import { DeployApplication } from "../parts/appform"
import { Figures } from "../parts/chart"
import { ListGrid } from "../parts/grid"
import { AgentCommand, ChangeApplication, ChangePoint, NewKey, RemoveNode, TakeOff } from "../parts/point"
import { FilterForm } from "../parts/tools"
import { go, place, setQuery } from "../router"
import { To } from "../links"
import { useFleetMay, useAccess } from "../rights"
import { counted, number } from "../words"
import { toast } from "../notice"

/** Returns the filter for a typed text: a label, such as site=oslo, or a part of the name. */
function fleetFilter(find: string): Record<string, string> {
  const [name, ...value] = find.split("=")
  return value.length ? { label: name + ":" + value.join("=") } : { nameContains: find }
}

export function Fleet() {
  const q = place.value.query,
    only = q.get("status") ?? "",
    [enrolling, setEnrolling] = useState(false)
  const find = q.get("find") ?? "",
    access = useAccess(session.value && !session.value.administrator ? session.value.user.id : null).data
  const { data, problem, reload } = useFleet(1500, fleetFilter(find))
  const counts = new Map<string, number>()
  for (const p of data ?? []) counts.set(stateOf(p), (counts.get(stateOf(p)) ?? 0) + 1)
  const trouble = q.get("trouble") ?? "",
    update = q.get("update") ?? ""
  const list = (data ?? []).filter(
    p =>
      (!only || stateOf(p) === only) &&
      (!update || p.updateStatus === update) &&
      (!trouble || p.applications.some(a => a.name === trouble && isBroken(a))),
  )
  return (
    <>
      <Head title="Fleet" kind={data ? counted(data.length, "service points") : undefined}>
        {(session.value?.administrator || access?.fleet === "ALL") && (
          <a class="button" href="/ui/fleet?rollouts=1">
            Rollouts
          </a>
        )}
        {session.value?.administrator && (
          <Button icon="plus" primary onClick={() => setEnrolling(true)}>
            New service point
          </Button>
        )}
      </Head>
      {q.get("rollouts") ? (
        <Rollouts />
      ) : (
        <>
          <div class="board" role="group" aria-label="By state">
            {[...counts].sort().map(([s, n]) => (
              <button key={s} aria-pressed={only === s} onClick={() => setQuery({ status: only === s ? null : s })}>
                <b class="num">{number(n)}</b>
                <State of={s} />
              </button>
            ))}
          </div>
          <div class="tools">
            <FilterForm
              table="service points"
              parameter="find"
              parameters={["find", "status", "trouble", "update"]}
              label="Filter by name or label"
              placeholder="name or label, such as site=oslo"
              of={text => text.trim()}
            />
            {(trouble || update) && (
              <>
                <span class="muted">{trouble ? trouble + " is not healthy" : words(update)}</span>
                <Button onClick={() => setQuery({ trouble: null, update: null })}>Show all</Button>
              </>
            )}
          </div>
          {problem && <Trouble problem={problem} retry={reload} />}
          {!data ? (
            !problem && <Loading />
          ) : data.length === 0 && find ? (
            <Empty title="No service points match." />
          ) : data.length === 0 ? (
            <Empty title="No service points yet.">
              A service point is an edge machine that probes its network and serves DNS and DHCP.{" "}
              {session.value?.administrator && (
                <Button icon="plus" onClick={() => setEnrolling(true)}>
                  New service point
                </Button>
              )}
            </Empty>
          ) : (
            <ListGrid
              label="Service points"
              scrolls
              save="service-points"
              list={list}
              id={p => p.id}
              open={p => go("/ui/fleet/" + p.id)}
              empty={<Empty title="No service points match." />}
              columns={[
                {
                  key: "name",
                  title: "Name",
                  width: "minmax(10rem,2fr)",
                  cell: p => (
                    <a tabIndex={-1} href={"/ui/fleet/" + encodeURIComponent(p.id)}>
                      {p.name}
                    </a>
                  ),
                },
                {
                  key: "state",
                  title: "State",
                  width: "13rem",
                  narrow: "10.6rem",
                  cell: p => <State of={stateOf(p)} />,
                },
                {
                  key: "seen",
                  title: "Last seen",
                  width: "8rem",
                  narrow: "4.4rem",
                  cell: p => <When at={p.lastSeen} />,
                },
                {
                  key: "version",
                  title: "Version",
                  width: "minmax(13rem,1.4fr)",
                  minor: true,
                  cell: p =>
                    p.updateStatus === "OK" ? (
                      <span title={p.version ?? undefined}>{p.version}</span>
                    ) : (
                      <span class="cut" title={p.version ?? undefined}>
                        <State of={p.updateStatus} /> {p.version}
                      </span>
                    ),
                },
                {
                  key: "applications",
                  title: "Applications",
                  width: "minmax(12rem,2fr)",
                  minor: true,
                  cell: p => (
                    <span class="cut">
                      {p.applications.map(a => a.name).join(", ") || <span class="muted">none</span>}
                    </span>
                  ),
                },
                {
                  key: "errors",
                  title: "Errors",
                  minor: true,
                  cell: p => (
                    <span class="cut bad-text">
                      {[
                        ...p.errorConditions,
                        ...(p.updateError ? [p.updateError] : []),
                        ...p.applications.flatMap(a => a.errorConditions),
                      ].join(" ")}
                    </span>
                  ),
                },
              ]}
            />
          )}
        </>
      )}
      {enrolling && <Enrol close={() => setEnrolling(false)} done={reload} />}
    </>
  )
}

/** Creates a service point: asks for a name, shows the key once, and waits for the first check-in. */
function Enrol({ close, done }: { close: () => void; done: () => void }) {
  const [name, setName] = useState(""),
    [description, setDescription] = useState(""),
    [problem, setProblem] = useState<Problem>(),
    [made, setMade] = useState<any>()
  const path = made ? base + "/" + made.fleetInstanceID : ""
  const at = usePolled<Point | null>(path, async signal => (path ? await get<Point>(path, { signal }) : null), 1000)
  const up = at.data && at.data.connectionStatus === "CONNECTED"
  const submit = async (e: Event) => {
    e.preventDefault()
    try {
      setMade(
        (await call("POST", "/api/v1/fleetInstanceMinimumConfig", { name, description: description || null })).body,
      )
      done()
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <Dialog title="New service point" close={close} wide>
      {!made ? (
        <form onSubmit={submit}>
          {problem && <Trouble problem={problem} />}
          <div class="fields">
            <Field label="Name *">
              {id => (
                <input id={id} required maxLength={128} value={name} onInput={e => setName(e.currentTarget.value)} />
              )}
            </Field>
            <Field label="Description">
              {id => <input id={id} value={description} onInput={e => setDescription(e.currentTarget.value)} />}
            </Field>
          </div>
          <div class="buttons">
            <button class="primary" type="submit">
              Create
            </button>
            <Button onClick={close}>Cancel</Button>
          </div>
        </form>
      ) : (
        <>
          <ol class="steps">
            <li class="done">
              <Icon name="circle-check" />{" "}
              <span>
                Created <strong>{name}</strong>. Its registration key is shown only once. It is valid for one enrolment
                within seven days.
              </span>
            </li>
            <li class={up ? "done" : ""}>
              <Icon name={up ? "circle-check" : "terminal"} /> <AgentCommand made={made} />
            </li>
            <li class={up ? "done green" : ""} aria-live="polite">
              <Icon name={up ? "circle-check" : "loader"} />{" "}
              {up ? (
                <span>
                  Connected: <State of={at.data!.status} />
                </span>
              ) : (
                <span>
                  Waiting for its first check-in … <State of={at.data?.status ?? "WAITING_FOR_REGISTRATION"} />
                </span>
              )}
            </li>
          </ol>
          <div class="buttons">
            {up && (
              <a class="button primary" href={"/ui/fleet/" + made.fleetInstanceID} onClick={close}>
                Open service point
              </a>
            )}
            <Button onClick={close}>Close</Button>
          </div>
        </>
      )}
    </Dialog>
  )
}

export function ServicePoint({ id }: { id: string }) {
  const path = base + "/" + encodeURIComponent(id)
  const { data: p, problem, reload } = usePolled<Point>(path, signal => get<Point>(path, { signal }), 1500)
  const events = usePolled<{ data: { at: number; field: string; before: string; after: string }[] }>(
    path + "/events",
    signal => get(path + "/events", { signal }),
    5000,
  )
  const [act, setAct] = useState<
      | { what: "change" | "deploy" | "delete" | "registrationKey" | "nodes" }
      | { what: "log" | "application" | "takeOff"; a: Application }
      | { what: "node"; node: string }
      | null
    >(null),
    close = () => setAct(null),
    may = useFleetMay(p?.labels)
  if (problem && !p)
    return (
      <>
        <Head title="Service point" crumbs={<a href="/ui/fleet">Fleet</a>} />
        <Trouble problem={problem} retry={reload} />
      </>
    )
  if (!p) return <Loading />
  return (
    <>
      <Head title={p.name} kind="Service point" crumbs={<a href="/ui/fleet">Fleet</a>}>
        {may.change && (
          <>
            <Button icon="pencil" onClick={() => setAct({ what: "change" })}>
              Change
            </Button>
          </>
        )}
        {may.remove && (
          <Button icon="refresh-cw" onClick={() => setAct({ what: "registrationKey" })}>
            New key
          </Button>
        )}
        {may.remove && (
          <Button icon="trash-2" onClick={() => setAct({ what: "delete" })}>
            Delete
          </Button>
        )}
        {may.change && (
          <Button icon="rocket" primary onClick={() => setAct({ what: "deploy" })}>
            Deploy application
          </Button>
        )}
      </Head>
      <div class="cards wide-cards">
        <section class="card">
          <h2>State</h2>
          <dl class="facts">
            <div>
              <dt>Status</dt>
              <dd>
                <State of={p.status} />
              </dd>
            </div>
            <div>
              <dt>Connection</dt>
              <dd>
                <State of={p.connectionStatus} />
              </dd>
            </div>
            <div>
              <dt>Last seen</dt>
              <dd>
                <When at={p.lastSeen} />
              </dd>
            </div>
            <div>
              <dt>Version</dt>
              <dd>{p.version ?? "—"}</dd>
            </div>
            <div>
              <dt>Update</dt>
              <dd>
                <State of={p.updateStatus} />
                {p.targetVersion && <> to {p.targetVersion}</>}
              </dd>
            </div>
            {p.pending && (
              <div>
                <dt>Desired state</dt>
                <dd>not delivered yet</dd>
              </div>
            )}
            {p.platform && (
              <div>
                <dt>Platform</dt>
                <dd>{p.platform}</dd>
              </div>
            )}
            {p.description && (
              <div>
                <dt>Description</dt>
                <dd>{p.description}</dd>
              </div>
            )}
            {p.labels && Object.keys(p.labels).length > 0 && (
              <div>
                <dt>Labels</dt>
                <dd>
                  {Object.entries(p.labels)
                    .map(([k, v]) => `${k}=${v}`)
                    .join(", ")}
                </dd>
              </div>
            )}
          </dl>
          {[...p.errorConditions, ...(p.updateError ? ["Update failed: " + p.updateError] : [])].map(e => (
            <p key={e} class="bad-text">
              <Icon name="circle-alert" size={14} /> {e}
            </p>
          ))}
        </section>
        <section class="card">
          <h2>
            Nodes{" "}
            {may.remove && (
              <button class="small" onClick={() => setAct({ what: "nodes" })}>
                Add node
              </button>
            )}
          </h2>
          {p.nodes.length === 0 ? (
            <p class="muted">No nodes enrolled yet.</p>
          ) : (
            p.nodes.map(n => (
              <div key={n.id}>
                <h3>
                  {n.name}{" "}
                  {p.nodes.length > 1 && may.remove && (
                    <button class="small" onClick={() => setAct({ what: "node", node: n.id })}>
                      Remove
                    </button>
                  )}
                </h3>
                <dl class="facts">
                  <div>
                    <dt>Host</dt>
                    <dd>{n.hostname}</dd>
                  </div>
                  {n.addresses.map(a => (
                    <div key={a.type + a.ipAddress}>
                      <dt>{a.type.toLowerCase()}</dt>
                      <dd class="mono">{a.ipAddress}</dd>
                    </div>
                  ))}
                  {[
                    ["Gateway", [n.ipv4GatewayAddress, n.ipv6GatewayAddress]],
                    ["DNS servers", n.dnsServers ?? []],
                  ].map(
                    ([word, list]) =>
                      (list as string[]).some(Boolean) && (
                        <div key={word as string}>
                          <dt>{word}</dt>
                          <dd class="mono">{(list as string[]).filter(Boolean).join(", ")}</dd>
                        </div>
                      ),
                  )}
                </dl>
                {n.diagnosticsUrl && (
                  <p class="muted small">
                    View probe results: <code>curl {n.diagnosticsUrl}</code>
                  </p>
                )}
              </div>
            ))
          )}
        </section>
        <section class="card">
          <h2>Applications</h2>
          {p.applications.length === 0 ? (
            <p class="muted">No applications yet.</p>
          ) : (
            <ul class="plain-list">
              {p.applications.map(a => (
                <li key={a.id}>
                  <State of={a.status} /> <strong>{a.name}</strong> <span class="muted">{a.version}</span>{" "}
                  <button class="small" onClick={() => setAct({ what: "log", a })}>
                    Log
                  </button>{" "}
                  {may.change && (
                    <>
                      <button class="small" onClick={() => setAct({ what: "application", a })}>
                        Change
                      </button>{" "}
                      <button class="small" onClick={() => setAct({ what: "takeOff", a })}>
                        Remove
                      </button>
                    </>
                  )}
                  {a.errorConditions.map(e => (
                    <p key={e} class="bad-text">
                      {e}
                    </p>
                  ))}
                </li>
              ))}
            </ul>
          )}
        </section>
        <section class="card">
          <h2>Figures</h2>
          <Figures object={"servicePoints/" + p.id} />
        </section>
        <section class="card">
          <h2>Timeline</h2>
          {events.problem ? (
            <p class="muted">{events.problem.message}</p>
          ) : !events.data ? (
            <Loading />
          ) : events.data.data.length === 0 ? (
            <p class="muted">No events yet.</p>
          ) : (
            <ul class="plain-list history">
              {events.data.data
                .slice(-30)
                .reverse()
                .map((e, i) => (
                  <li key={i}>
                    <When at={e.at} />
                    <span>
                      <span class="muted">{e.field.split("/").slice(0, 2).join(" ").replace("applications ", "")}</span>{" "}
                      {e.before && <>{words(e.before)} → </>}
                      <State of={e.after} />
                    </span>
                  </li>
                ))}
            </ul>
          )}
        </section>
      </div>
      {act?.what === "change" && <ChangePoint p={p} path={path} close={close} done={reload} />}
      {act?.what === "deploy" && <DeployApplication path={path} point={p.name} close={close} done={reload} />}
      {act?.what === "delete" && <DeletePoint p={p} path={path} close={close} />}
      {(act?.what === "registrationKey" || act?.what === "nodes") && (
        <NewKey p={p} path={path} what={act.what} close={close} done={reload} />
      )}
      {act?.what === "node" && <RemoveNode node={act.node} path={path} close={close} done={reload} />}
      {act?.what === "application" && <ChangeApplication a={act.a} path={path} close={close} done={reload} />}
      {act?.what === "takeOff" && <TakeOff a={act.a} path={path} close={close} done={reload} />}
      {act?.what === "log" && <Log path={`${path}/applications/${act.a.id}/log`} name={act.a.name} close={close} />}
    </>
  )
}

function Log({ path, name, close }: { path: string; name: string; close: () => void }) {
  const { data, problem } = usePolled<string>(
    path,
    async signal => (await call<string>("GET", path, undefined, { headers: { Accept: "text/plain" }, signal })).body,
    3000,
  )
  return (
    <Dialog title={"Log of " + name} close={close} wide>
      {problem ? (
        <Trouble problem={problem} />
      ) : data === undefined ? (
        <Loading />
      ) : (
        <pre class="log" tabIndex={0}>
          {data || "The log is empty."}
        </pre>
      )}
    </Dialog>
  )
}

function DeletePoint({ p, path, close }: { p: Point; path: string; close: () => void }) {
  const [problem, setProblem] = useState<Problem>()
  const of = "servers" + query({ filter: `servicePoint:${literal(p.id)}`, fields: "id,type,name", limit: 20 })
  const servers = useData<Page>(of, s => get<Page>(of, { signal: s, quiet: true }))
  const apply = async () => {
    try {
      await call("DELETE", path)
      toast(`Deleting ${p.name}.`)
      close()
      go("/ui/fleet")
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <Dialog title={"Delete " + p.name} close={close}>
      {problem && <Trouble problem={problem} />}
      <p>
        This stops {p.applications.length ? p.applications.map(a => a.name).join(", ") : "its applications"} and revokes
        its certificate. The machine must enrol again. You cannot undo it.
      </p>
      {servers.problem && <Trouble problem={servers.problem} />}
      {!!servers.data?.data.length && (
        <p class="box warn">
          <Icon name="circle-alert" /> These servers lose their service point, and their zones and networks are no
          longer served there:{" "}
          {servers.data.data.map((s, i) => (
            <span key={s.id}>
              {i ? ", " : ""}
              <To r={s} />
            </span>
          ))}
          .
        </p>
      )}
      <div class="buttons">
        <Button danger onClick={() => void apply()}>
          Delete now
        </Button>
        <Button onClick={close}>Cancel</Button>
      </div>
    </Dialog>
  )
}

/** The actions on a rollout, and the states that allow each. */
const actions: [action: string, word: string, from: string[]][] = [
  ["pause", "Pause", ["RUNNING"]],
  ["resume", "Resume", ["PAUSED", "HALTED", "DONE"]],
  ["takeBack", "Roll back", ["RUNNING", "PAUSED", "HALTED", "DONE"]],
]

interface Rollout {
  id: string
  version: string
  description?: string
  status: string
  reason?: string
  wave: number
  waveCount: number
  total: number
  counts: Record<string, number>
}

function Rollouts() {
  const { data, problem, reload } = usePolled<{ data: Rollout[] }>(
      "rollouts",
      signal => get<{ data: Rollout[] }>("/user/api/v1/rollouts", { signal }),
      2000,
    ),
    [starting, setStarting] = useState(false),
    [shown, setShown] = useState<string | null>(null)
  const act = async (id: string, action: string) => {
    try {
      await call("POST", `/user/api/v1/rollouts/${id}/${action}`)
      toast("Rollout updated.")
      reload()
    } catch (e) {
      toast(problemOf(e).message, { bad: true })
    }
  }
  const forget = async (r: Rollout) => {
    if (!confirm(`Delete the rollout of ${r.version}? Completed updates stay.`)) return
    try {
      await call("DELETE", "/user/api/v1/rollouts/" + r.id)
      reload()
    } catch (e) {
      toast(problemOf(e).message, { bad: true })
    }
  }
  return (
    <section>
      <div class="buttons">
        <a class="button" href="/ui/fleet">
          All service points
        </a>
        <Button icon="rocket" primary onClick={() => setStarting(true)}>
          New rollout
        </Button>
      </div>
      {problem ? (
        <Trouble problem={problem} />
      ) : !data ? (
        <Loading />
      ) : data.data.length === 0 ? (
        <Empty title="No rollouts yet.">A rollout updates service points in waves and stops if too many fail.</Empty>
      ) : (
        <ul class="plain-list">
          {data.data.map(r => (
            <li key={r.id} class="card">
              <strong>{r.version}</strong> <State of={r.status} /> {r.description}{" "}
              <span class="muted">
                wave {r.wave} of {r.waveCount}
                {r.reason && `: ${r.reason}`}
              </span>
              <p>
                <progress max={r.total || 1} value={r.counts.UPDATED ?? 0} aria-label="Progress" />{" "}
                <span class="muted">
                  {Object.entries(r.counts)
                    .filter(([, n]) => n > 0)
                    .map(([k, n]) => `${number(n)} ${words(k)}`)
                    .join(", ")}
                </span>
              </p>
              <div class="buttons">
                <Button onClick={() => setShown(shown === r.id ? null : r.id)}>
                  {shown === r.id ? "Hide service points" : "Show service points"}
                </Button>
                {actions
                  .filter(
                    ([a, , from]) =>
                      from.includes(r.status) && (a !== "resume" || r.status !== "DONE" || (r.counts.AWAY ?? 0) > 0),
                  )
                  .map(([a, word]) => (
                    <Button key={a} onClick={() => void act(r.id, a)}>
                      {word}
                    </Button>
                  ))}
                {["DONE", "TAKEN_BACK"].includes(r.status) && (
                  <Button icon="trash-2" onClick={() => void forget(r)}>
                    Delete
                  </Button>
                )}
              </div>
              {shown === r.id && <Members id={r.id} />}
            </li>
          ))}
        </ul>
      )}
      {starting && <StartRollout close={() => setStarting(false)} done={reload} />}
    </section>
  )
}

/** The service points of a rollout and their progress. */
function Members({ id }: { id: string }) {
  const path = `/user/api/v1/rollouts/${id}/members`
  const { data, problem } = usePolled<{ data: Record<string, any>[] }>(path, signal => get(path, { signal }), 2000)
  return problem ? (
    <Trouble problem={problem} />
  ) : !data ? (
    <Loading />
  ) : data.data.length === 0 ? (
    <p class="muted">No service points.</p>
  ) : (
    <ul class="plain-list">
      {data.data.slice(0, 200).map(m => (
        <li key={m.servicePoint}>
          <State of={m.state} />{" "}
          {m.name ? (
            <a href={"/ui/fleet/" + encodeURIComponent(m.servicePoint)}>{m.name}</a>
          ) : (
            <span class="muted">deleted service point</span>
          )}{" "}
          <span class="muted">
            wave {m.wave}
            {m.before && ", was " + m.before} {m.reason}
          </span>
        </li>
      ))}
      {data.data.length > 200 && <li class="muted">and {number(data.data.length - 200)} more</li>}
    </ul>
  )
}

/** Creates a rollout: version, service points, waves and stop condition. */
function StartRollout({ close, done }: { close: () => void; done: () => void }) {
  const releases = usePolled<{ data: { version: string }[] }>(
    "releases",
    signal => get("/user/api/v1/releases", { signal }),
    60_000,
  )
  const [v, setV] = useState<Record<string, string>>({ waves: "1, 5%, 25%", mostAway: "10%", mostFailed: "0" }),
    [problem, setProblem] = useState<Problem>()
  const amount = (text: string) => (/^\d+$/.test(text) ? Number(text) : text),
    versions = releases.data?.data.map(r => r.version) ?? []
  const text = (name: string, label: string, hint?: string) => (
    <Field
      label={label}
      hint={hint}
      wrong={problem?.fields?.some(f => f.startsWith(name)) ? problem.message : undefined}
    >
      {(id, d) => (
        <input
          id={id}
          aria-describedby={d}
          value={v[name] ?? ""}
          onInput={e => setV({ ...v, [name]: e.currentTarget.value })}
        />
      )}
    </Field>
  )
  const submit = async (e: Event) => {
    e.preventDefault()
    const labels = Object.fromEntries(
      (v.labels ?? "")
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(l => {
          const [k, ...rest] = l.split("=")
          return [k, rest.join("=")]
        }),
    )
    const window = /^(\d?\d:\d\d)\s*-\s*(\d?\d:\d\d)$/.exec((v.window ?? "").trim())
    if (v.window && !window) {
      setProblem({
        status: 400,
        code: "InvalidField",
        message: "The maintenance window must be a time range, such as 22:00-04:00.",
        fields: ["windows"],
      })
      return
    }
    const filter = {
      ...(v.name ? { name: v.name } : {}),
      ...(v.status ? { status: v.status } : {}),
      ...(Object.keys(labels).length ? { labels } : {}),
    }
    try {
      await call("POST", "/user/api/v1/rollouts", {
        version: v.version || versions[0],
        ...(v.description ? { description: v.description } : {}),
        ...(Object.keys(filter).length ? { filter } : {}),
        waves: v.waves
          .split(/[\s,]+/)
          .filter(Boolean)
          .map(amount),
        mostAway: amount(v.mostAway.trim()),
        mostFailed: amount(v.mostFailed.trim()),
        ...(window
          ? {
              windows: [{ from: window[1], to: window[2] }],
              timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
            }
          : {}),
      })
      toast("Rollout started.")
      close()
      done()
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <Dialog title="New rollout" close={close} wide>
      <form onSubmit={submit}>
        {problem && <Trouble problem={problem} />}
        <div class="fields">
          <Field
            label="Version *"
            hint={versions.length ? undefined : "No releases published. Publish one with: portolan release publish."}
          >
            {(id, d) =>
              versions.length ? (
                <select
                  id={id}
                  aria-describedby={d}
                  value={v.version ?? versions[0]}
                  onChange={e => setV({ ...v, version: e.currentTarget.value })}
                >
                  {versions.map(x => (
                    <option key={x}>{x}</option>
                  ))}
                </select>
              ) : (
                <input
                  id={id}
                  aria-describedby={d}
                  required
                  value={v.version ?? ""}
                  onInput={e => setV({ ...v, version: e.currentTarget.value })}
                />
              )
            }
          </Field>
          {text("description", "Description")}
          {text("labels", "Labels", "Such as site=north. Empty: all service points.")}
          {text("name", "Service point name")}
          {text(
            "waves",
            "Waves",
            "Cumulative target per wave, as numbers or percentages. A last wave updates the rest.",
          )}
          {text("mostAway", "Maximum unavailable")}
          {text("mostFailed", "Stop after more than N failures")}
          {text("window", "Maintenance window", "Such as 22:00-04:00, in your time zone. Empty: any time.")}
        </div>
        <div class="buttons">
          <button class="primary" type="submit">
            Start
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}
