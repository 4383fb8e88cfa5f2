// The overview: cards that each user chooses, also for a screen on a wall.
import type { ComponentChildren, JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { get, query, type Page, type Resource } from "../api"
import { useData, useEvery, useLast } from "../data"
import { useFigures, valueText, type Metric } from "../figures"
import { Icon } from "../icons"
import { To } from "../links"
import { Waiting } from "../parts/approvals"
import { Button, Dialog, Empty, Head, Loading, State, Trouble, Use, When } from "../parts/basics"
import { Chart } from "../parts/chart"
import { setPreference, usePreference } from "../preferences"
import { place, setQuery } from "../router"
import { configuration, configurations, session } from "../session"
import { parseSpan, size, usedOf } from "../space"
import { AlarmLine, type Alarm } from "../parts/alarm"
import { stateOf, useFleet } from "../fleet"
import { LastChanges } from "../parts/latest"
import { counted, number } from "../words"

/** The cards of the overview, in their order without a choice: key, title, and the card. */
const cards: [key: string, title: string, card: (o: { c: number | null }) => JSX.Element | null][] = [
  ["approvals", "Waiting for approval", Waiting],
  ["fullest", "Fullest networks", ({ c }) => (c === null ? <Networks /> : <Fullest c={c} />)],
  ["zones", "Your zones", ({ c }) => (c === null ? <Zones /> : null)],
  ["alarms", "Alarms", Alarms],
  ["filling", "Networks that fill fastest", Filling],
  ["sites", "Space by block", ({ c }) => (c === null ? null : <Sites c={c} />)],
  ["fleet", "Fleet", Points],
  ["queries", "DNS answers", () => <FigureCard metric="queries" title="DNS answers" period="day" />],
  ["dns", "DNS health", Names],
  ["dhcp", "DHCP messages", () => <FigureCard metric="dhcpReceived" title="DHCP messages" period="day" />],
  ["perDay", "Changes per day", () => <FigureCard metric="changes" title="Changes per day" period="month" perDay />],
  ["requests", "API requests", () => <FigureCard metric="requests" title="API requests" period="day" />],
  ["backup", "Backups", Backups],
  ["changes", "Latest changes", Latest],
]

/** The preference with the chosen cards. */
const preference = "overview"

export function Overview() {
  const c = configuration.value,
    name = configurations.value.find(x => x.id === c)?.name,
    chosen = usePreference<{ cards: string[] }>(preference),
    [choosing, setChoosing] = useState(false),
    keys = (chosen?.cards ?? cards.map(x => x[0])).filter(k => cards.some(x => x[0] === k))
  const wall = place.value.query.get("wall") === "1"
  useEffect(() => {
    document.documentElement.toggleAttribute("data-wall", wall)
    return () => document.documentElement.removeAttribute("data-wall")
  }, [wall])
  return (
    <>
      <Head title={name ?? "Portolan"} kind={name ? "Configuration" : undefined}>
        <Button icon="settings" onClick={() => setChoosing(true)}>
          Cards
        </Button>
        <Button icon="layout-dashboard" onClick={() => setQuery({ wall: wall ? null : "1" })}>
          {wall ? "Leave wall screen" : "Wall screen"}
        </Button>
      </Head>
      {c === null && session.value?.administrator ? (
        <Empty title="No configurations yet.">
          A configuration contains address space, views, zones and servers.{" "}
          <a href="/ui/configurations">Create the first configuration.</a>
        </Empty>
      ) : chosen === undefined ? (
        <Loading />
      ) : (
        <div class="overview">
          {keys.map(k => {
            const Card = cards.find(x => x[0] === k)![2]
            return <Card key={k + c} c={c} />
          })}
        </div>
      )}
      {choosing && <Choose keys={keys} close={() => setChoosing(false)} />}
    </>
  )
}

/** A dialog that selects the cards and their order. */
function Choose({ keys, close }: { keys: string[]; close: () => void }) {
  const [list, setList] = useState([...keys, ...cards.map(x => x[0]).filter(k => !keys.includes(k))]),
    [shown, setShown] = useState(new Set(keys))
  const move = (i: number, by: number) =>
    setList(before => {
      const next = [...before]
      next.splice(i + by, 0, ...next.splice(i, 1))
      return next
    })
  return (
    <Dialog title="Cards of the overview" close={close}>
      <ul class="plain-list card-choice">
        {list.map((k, i) => {
          const title = cards.find(x => x[0] === k)![1]
          return (
            <li key={k}>
              <label>
                <input
                  type="checkbox"
                  checked={shown.has(k)}
                  onChange={e => {
                    const on = e.currentTarget.checked
                    setShown(before => {
                      const next = new Set(before)
                      if (on) next.add(k)
                      else next.delete(k)
                      return next
                    })
                  }}
                />{" "}
                {title}
              </label>
              <span class="grow" />
              <button class="plain" disabled={i === 0} aria-label={`Move ${title} up`} onClick={() => move(i, -1)}>
                <Icon name="arrow-up" />
              </button>
              <button
                class="plain"
                disabled={i === list.length - 1}
                aria-label={`Move ${title} down`}
                onClick={() => move(i, 1)}
              >
                <Icon name="arrow-down" />
              </button>
            </li>
          )
        })}
      </ul>
      <div class="buttons">
        <Button
          onClick={() => {
            void setPreference(preference, null)
            close()
          }}
        >
          Default
        </Button>
        <Button
          primary
          onClick={() => {
            void setPreference(preference, { cards: list.filter(k => shown.has(k)) })
            close()
          }}
        >
          Save
        </Button>
      </div>
    </Dialog>
  )
}

/** A card with a heading that links to a page. */
function Card({ title, href, children }: { title: string; href?: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{href ? <a href={href}>{title}</a> : title}</h2>
      {children}
    </section>
  )
}

/** The latest changes. */
function Latest() {
  return (
    <Card title="Latest changes" href="/ui/transactions">
      <LastChanges path="transactions" />
    </Card>
  )
}

/** A chart of a metric of the manager. Users without access to it see no card. */
function FigureCard({
  metric,
  title,
  period,
  perDay,
}: {
  metric: string
  title: string
  period: string
  perDay?: boolean
}) {
  const { data, problem } = useFigures("manager", period, [metric], perDay ? 86_400 : undefined)
  if (problem && problem.status !== 0) return null
  const found = data?.metrics[0]
  const shown: Metric | undefined =
    found && perDay
      ? {
          ...found,
          unit: "count",
          lines: found.lines.map(l => ({
            ...l,
            mean: l.mean.map(v => Math.round(v * 86_400)),
            max: l.mean.map(v => v * 86_400),
          })),
        }
      : found
  return (
    <Card title={title}>
      {!data ? (
        <Loading />
      ) : !shown ? (
        <p class="muted">No figures in this period yet.</p>
      ) : (
        <Chart
          metric={shown}
          step={data.step}
          from={data.from}
          to={data.to}
          height={150}
          bars={perDay}
          heading={false}
        />
      )}
    </Card>
  )
}

interface Forecast {
  id: number
  type: string
  name: string
  collection: string
  range: string
  utilization: number
  perDay: number
  fullInDays: number | null
}

/** The time between two reads of the forecast, in milliseconds. */
const forecastInterval = 600_000

/** The networks that are full first, if they grow as in the last four weeks. */
function Filling() {
  const { data, problem, reload } = useData<{ filling: Forecast[] }>("spaceForecast", s =>
    get("spaceForecast", { signal: s, quiet: true }),
  )
  useEvery(forecastInterval, reload)
  if (problem?.status === 503) return null
  return (
    <Card title="Networks that fill fastest">
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : !data.filling.length ? (
        <p class="muted">At the current growth, no network is full within a year.</p>
      ) : (
        <table class="small-table">
          <tbody>
            {data.filling.slice(0, 8).map(n => (
              <tr key={n.id}>
                <td class="mono">
                  <a href={`/ui/${n.collection}/${n.id}/figures`}>{n.range}</a>
                </td>
                <td class="muted cut">{n.name}</td>
                <td>
                  <Use part={n.utilization} of={1} label={`grows by ${(100 * n.perDay).toFixed(2)} % a day`} />
                </td>
                <td class="num nowrap">
                  {n.fullInDays! < 1 ? "full today" : `in ${counted(Math.round(n.fullInDays!), "days")}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}

/** The blocks directly below the top, or those in the only one of them. */
function Sites({ c }: { c: number }) {
  const { data, problem, reload } = useData<Resource[]>(
    `sites ${c}`,
    async s => {
      const read = async (path: string) =>
        (
          await get<Page>(path + query({ limit: 50, orderBy: "range", filter: "type:'IPv4Block'" }), {
            signal: s,
            quiet: true,
          })
        ).data
      const top = await read(`configurations/${c}/blocks`)
      const below = top.length === 1 ? await read(`blocks/${top[0].id}/blocks`) : []
      return below.length ? below : top
    },
    ["blocks", "networks", "addresses"],
  )
  return (
    <Card title="Space by block" href="/ui/space">
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : !data.length ? (
        <p class="muted">No IPv4 blocks yet.</p>
      ) : (
        <table class="small-table">
          <tbody>
            {data.slice(0, 12).map(b => (
              <tr key={b.id}>
                <td class="mono">
                  <To r={b} mono />
                </td>
                <td class="muted cut">{b.name}</td>
                <td>
                  <Use
                    part={b.usagePercentage?.networkAllocation.addresses ?? 0}
                    of={Number(size(parseSpan(b.range)!))}
                    label={number(b.usagePercentage?.networkAllocation.addresses ?? 0) + " addresses in networks"}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}

/** The parts of the status of the manager that cards show. */
interface Status {
  alarms: Alarm[] | null
  fleet: { applications: Record<string, Record<string, number>> }
  backups: {
    last: string | null
    lastBytes: number
    due: string | null
    schedules: number
    files: number
    uploadFault?: string
  }
}

function useStatus() {
  const loaded = useData<Status>("status", s => get("status", { signal: s, quiet: true }), ["events"])
  useEvery(15_000, loaded.reload)
  return loaded
}

/** The DNS applications by status, and the part of their answers that are errors. */
function Names() {
  const { data, problem } = useStatus(),
    { data: figures } = useFigures("manager", "day", ["queries"])
  if (problem?.status === 403) return null
  const lines = figures?.metrics[0]?.lines ?? [],
    now = (name?: string) =>
      lines.filter(l => !name || l.name === name).reduce((sum, l) => sum + (l.mean.at(-1) ?? 0), 0),
    names = Object.keys(data?.fleet.applications ?? {}).filter(n => n.startsWith("dns-"))
  return (
    <Card title="DNS health" href="/ui/fleet">
      {problem ? (
        <Trouble problem={problem} />
      ) : !data ? (
        <Loading />
      ) : (
        <>
          {!names.length && <p class="muted">No name servers or resolvers yet.</p>}
          <ul class="plain-list counts">
            {names.sort().flatMap(n =>
              Object.entries(data.fleet.applications[n]).map(([status, count]) => (
                <li key={n + status}>
                  <b class="num">{count}</b> {n.replace(/^dns-|-service$/g, "")} <State of={status} />
                </li>
              )),
            )}
          </ul>
          {lines.length > 0 && (
            <p class="muted">
              {valueText(now(), "perSecond")} answers, of which{" "}
              {valueText(now("SERVFAIL") / Math.max(now(), 1e-9), "ratio")} are SERVFAIL
            </p>
          )}
        </>
      )}
    </Card>
  )
}

/** The last backup and the next one. */
function Backups() {
  const { data, problem } = useStatus()
  if (problem?.status === 403) return null
  const b = data?.backups
  return (
    <Card title="Backups">
      {problem ? (
        <Trouble problem={problem} />
      ) : !b ? (
        <Loading />
      ) : (
        <ul class="plain-list">
          <li>
            Last backup: <b>{b.last ? <When at={b.last} /> : "none"}</b>
            {b.last && <span class="muted"> {valueText(b.lastBytes, "bytes")}</span>}
          </li>
          <li class="muted">{b.schedules ? counted(b.schedules, "schedules") : "No backups are configured."}</li>
          {b.uploadFault && (
            <li>
              <State of="FAILED" /> {b.uploadFault}
            </li>
          )}
        </ul>
      )}
    </Card>
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
const maxLooked = 200

/** The fullest visible networks, for users without access to a whole configuration. */
function Networks() {
  const { data, problem, reload } = useLast("networks", { limit: maxLooked, orderBy: "range" }, [
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

/** The number of alarms on the overview. */
const maxAlarms = 8

/** The alarms of the manager with their remedies. Users without access to the status see events instead. */
function Alarms() {
  const { data, problem, reload } = useStatus()
  if (problem?.status === 403) return <Warnings />
  return (
    <section class="card">
      <h2>
        <a href="/ui/status">Alarms</a>
      </h2>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading />
      ) : !data.alarms?.length ? (
        <p class="muted">No alarms.</p>
      ) : (
        <ul class="plain-list">
          {data.alarms.slice(0, maxAlarms).map(a => (
            <AlarmLine key={a.what} a={a} />
          ))}
          {data.alarms.length > maxAlarms && (
            <li>
              <a href="/ui/status">and {number(data.alarms.length - maxAlarms)} more</a>
            </li>
          )}
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
  if (problem?.status === 403) return null // the user does not see the fleet
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
