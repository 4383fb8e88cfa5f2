// The overview: full networks, alarms, the fleet, and the latest changes.
import { get, type Resource } from "../api"
import { useData } from "../data"
import { To } from "../links"
import { Waiting } from "../parts/approvals"
import { Empty, Head, Loading, State, Trouble, Use, When } from "../parts/basics"
import { configuration, configurations, session } from "../session"
import { usedOf } from "../space"
import { AlarmLine, type Alarm } from "../parts/alarm"
import { stateOf } from "../fleet"
import { LastChanges } from "./changes"
import { useFleet } from "./fleet"
import { useLast } from "./generic"

export function Overview() {
  const c = configuration.value,
    name = configurations.value.find(x => x.id === c)?.name
  return (
    <>
      <Head title={name ?? "Portolan"} kind={name ? "Configuration" : undefined} />
      {c === null && session.value?.administrator ? (
        <Empty title="No configurations yet.">
          A configuration contains address space, views, zones and servers.{" "}
          <a href="/ui/configurations">Create the first configuration.</a>
        </Empty>
      ) : (
        <div class="cards wide-cards">
          <Waiting />
          {c === null ? (
            <>
              <Networks />
              <Zones />
            </>
          ) : (
            <Fullest c={c} />
          )}
          <Alarms />
          <Points />
          <section class="card">
            <h2>
              <a href="/ui/transactions">Latest changes</a>
            </h2>
            <LastChanges path="transactions" />
          </section>
        </div>
      )}
    </>
  )
}

interface Full {
  id: number
  type: string
  name: string
  range: string
  used: number
  size: number
}

function Fullest({ c }: { c: number }) {
  const path = `configurations/${c}/fullestNetworks`
  const { data, problem, reload } = useData<{ data: Full[] }>(
    path,
    s => get(path, { signal: s, headers: { Accept: "application/json" } }),
    ["networks", "addresses"],
  )
  return (
    <section class="card">
      <h2>
        <a href="/ui/space">Fullest networks</a>
      </h2>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : data.data.length === 0 ? (
        <p class="muted">
          No IPv4 addresses in use yet. <a href="/ui/space">Create a network</a>.
        </p>
      ) : (
        <table class="small-table">
          <tbody>
            {data.data.slice(0, 8).map(n => (
              <tr key={n.id}>
                <td>
                  <To r={n as never} mono />
                </td>
                <td class="muted cut">{n.name}</td>
                <td>
                  <Use part={n.used} of={n.size} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** The maximum number of networks that are read to find the fullest. */
const mostLooked = 200

/** The fullest visible networks, for users without access to a whole configuration. */
function Networks() {
  const { data, problem, reload } = useLast("networks", { limit: mostLooked, orderBy: "range" }, [
    "networks",
    "addresses",
  ])
  const share = (r: Resource) => {
    const u = r.usage ? usedOf(r) : null
    return u && u.all ? u.used / u.all : 0
  }
  const list = [...(data?.data ?? [])].sort((a, b) => share(b) - share(a)).slice(0, 8)
  return (
    <section class="card">
      <h2>
        <a href="/ui/space">Your networks</a>
      </h2>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : !list.length ? (
        <p class="muted">No networks visible to you.</p>
      ) : (
        <table class="small-table">
          <tbody>
            {list.map(n => (
              <tr key={n.id}>
                <td>
                  <To r={n} mono />
                </td>
                <td class="muted cut">{n.name}</td>
                <td>{n.usage && <Use part={usedOf(n).used} of={usedOf(n).all} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

function Zones() {
  const { data, problem, reload } = useLast(
    "zones",
    { limit: 8, orderBy: "absoluteName", fields: "id,type,absoluteName,view" },
    ["zones"],
  )
  return (
    <section class="card">
      <h2>
        <a href="/ui/names">Your zones</a>
      </h2>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : !data.data.length ? (
        <p class="muted">No zones visible to you.</p>
      ) : (
        <table class="small-table">
          <tbody>
            {data.data.map(z => (
              <tr key={z.id}>
                <td>
                  <To r={z} mono />
                </td>
                <td class="muted cut">{z.view?.name}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** The alarms of the manager with their remedies. Users without access to the status see events instead. */
function Alarms() {
  const { data, problem, reload } = useData<{ alarms: Alarm[] | null }>(
    "status",
    s => get("status", { signal: s, quiet: true }),
    ["events"],
  )
  if (problem?.status === 403) return <Warnings />
  return (
    <section class="card">
      <h2>
        <a href="/ui/events">Alarms</a>
      </h2>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : !data.alarms?.length ? (
        <p class="muted">No alarms.</p>
      ) : (
        <ul class="plain-list">
          {data.alarms.slice(0, 8).map(a => (
            <AlarmLine key={a.what} a={a} />
          ))}
        </ul>
      )}
    </section>
  )
}

function Warnings() {
  const { data, problem, reload } = useLast(
    "events",
    { filter: "eventType:in('WARNING','ERROR','FAILED')", orderBy: "desc(id)", limit: 8 },
    ["events"],
  )
  return (
    <section class="card">
      <h2>
        <a href="/ui/events">Alarms</a>
      </h2>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : data.data.length === 0 ? (
        <p class="muted">No alarms visible to you.</p>
      ) : (
        <ul class="plain-list">
          {data.data.map(e => (
            <li key={e.id}>
              <State of={e.eventType} /> <a href={"/ui/events/" + e.id}>{e.message}</a>{" "}
              <span class="muted">
                <When at={e.dateTime} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Points() {
  const { data, problem } = useFleet(1500)
  const states = new Map<string, number>()
  for (const p of data ?? []) {
    const s = stateOf(p)
    states.set(s, (states.get(s) ?? 0) + 1)
  }
  return (
    <section class="card">
      <h2>
        <a href="/ui/fleet">Fleet</a>
      </h2>
      {problem ? (
        <p class="muted">{problem.message}</p>
      ) : !data ? (
        <Loading />
      ) : data.length === 0 ? (
        <p class="muted">
          No service points yet. <a href="/ui/fleet">Enrol the first one</a>.
        </p>
      ) : (
        <ul class="plain-list counts">
          {[...states].sort().map(([s, n]) => (
            <li key={s}>
              <a href={"/ui/fleet?status=" + s}>
                <b class="num">{n}</b> <State of={s} />
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
