// The state of the manager: alarms, database, backups, fleet and certificates.
import { Fragment, type ComponentChildren } from "preact"
import { get } from "../api"
import { usePolled } from "../data"
import { AlarmLine, type Alarm } from "../parts/alarm"
import { Head, Loading, State, Trouble, When } from "../parts/basics"
import { number } from "../words"

interface Status {
  version: string
  go: string
  host: string
  address: string
  since: string
  freeBytes: number | null
  database: Record<string, unknown>
  backups: { schedules: number; last?: string | null; due?: string | null }
  fleet: { statuses: Record<string, number>; connected: number; away: number; brokenApplications: number }
  history: { due: number; unsigned: number; textsDue: number }
  certificates: { name: string; notAfter: string; renewed: boolean; servicePoint?: string }[]
  masterKey: boolean
  alarms: Alarm[]
}

export function StatusPage() {
  const {
    data: s,
    problem,
    reload,
  } = usePolled<Status>("status", signal => get("status", { signal, quiet: true }), 5000)
  return (
    <>
      <Head title="Status" kind={s && `Portolan ${s.version}`} />
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !s ? (
        <Loading what="the status" />
      ) : (
        <div class="cards wide-cards">
          <section class="card">
            <h2>Alarms</h2>
            {s.alarms.length === 0 ? (
              <p class="muted">No alarms.</p>
            ) : (
              <ul class="plain-list">
                {s.alarms.map(a => (
                  <AlarmLine key={a.what} a={a} />
                ))}
              </ul>
            )}
          </section>
          <section class="card">
            <h2>Manager</h2>
            <Facts
              list={[
                ["Host", s.host],
                ["Address", <Breaking key="address" url={s.address} />],
                ["Started", <When at={s.since} />],
                ["Free disk space", s.freeBytes === null ? "unknown" : bytes(s.freeBytes)],
                ["Secrets", s.masterKey ? "sealed by a master key" : "keys are stored next to the data"],
              ]}
            />
          </section>
          <section class="card">
            <h2>Database</h2>
            <Facts
              list={Object.entries(s.database)
                .filter(([, v]) => v !== null && typeof v !== "object")
                .map(([n, v]) => [
                  title(n),
                  /bytes$/i.test(n) ? (
                    bytes(Number(v))
                  ) : n === "condition" ? (
                    <State of={String(v)} />
                  ) : typeof v === "number" ? (
                    number(v)
                  ) : (
                    String(v)
                  ),
                ])}
            />
          </section>
          <section class="card">
            <h2>
              <a href="/ui/backups">Backups</a>
            </h2>
            <Facts
              list={[
                ["Schedules", number(s.backups.schedules)],
                ["Last backup", <When at={s.backups.last} />],
              ]}
            />
          </section>
          <section class="card">
            <h2>
              <a href="/ui/fleet">Fleet</a>
            </h2>
            <Facts
              list={[
                ["Connected", number(s.fleet.connected)],
                ["Not connected", number(s.fleet.away)],
                ...states(s.fleet).map(([n, v]): [ComponentChildren, string] => [<State of={n} />, number(v)]),
              ]}
            />
          </section>
          <section class="card">
            <h2>Certificates</h2>
            <Facts
              list={s.certificates.map(c => [
                c.servicePoint ? <a href={"/ui/fleet/" + c.servicePoint}>{c.name}</a> : c.name,
                <>
                  {new Date(c.notAfter).toLocaleDateString("sv")} {c.renewed && <span class="muted">· renewed</span>}
                  {new Date(c.notAfter) < new Date() && <State of="EXPIRED" />}
                </>,
              ])}
            />
          </section>
        </div>
      )}
    </>
  )
}

/** The service points by state. A healthy one with a broken application counts as such. */
function states(f: Status["fleet"]): [string, number][] {
  const all: Record<string, number> = { ...f.statuses, APPLICATION_UNHEALTHY: f.brokenApplications }
  if (all.HEALTHY) all.HEALTHY -= f.brokenApplications
  return Object.entries(all).filter(([, n]) => n > 0)
}

function Facts({ list }: { list: [ComponentChildren, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {list.map(([name, value], i) => (
        <div key={i}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function title(name: string) {
  return name
    .replace(/^bytes$/, "size")
    .replace(/Bytes$/, " size")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .replace(/^./, c => c.toUpperCase())
}

/** Formats a number of bytes. */
export function bytes(n: number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"]
  let i = 0
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024
    i++
  }
  return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`
}

/** A URL that breaks before its host and its port first. */
function Breaking({ url }: { url: string }) {
  return (
    <>
      {url.split(/(?<=\/\/)|(?=:\d+$)/).map((part, i) => (
        <Fragment key={i}>
          {i > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  )
}
