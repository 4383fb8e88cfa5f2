// DHCP ranges as bars with their utilization and forecast.
import { get, query, type Page } from "../api"
import { useData, useEvery } from "../data"
import { To } from "../links"
import type { IPv4DHCPRange } from "../types"
import { Empty, Loading, Trouble } from "./basics"
import { number } from "../words"

/** The utilization of a DHCP range (internal/manager/ipam/utilization.go). */
export interface Utilization {
  addresses: number | null
  leased: number
  reserved: number
  abandoned: number
  assigned: number
  excluded: number
  free: number | null
  percent: number
  leasesPerHour: number | null
  trendHours: number | null
  fullDateTime: string | null
  fullInHours: number | null
}

/** The parts of a bar, in order: the member, the label and the class. */
const parts: [keyof Utilization, string, string][] = [
  ["leased", "leased", "lease-part"],
  ["reserved", "reserved", "held-part"],
  ["assigned", "static", "static-part"],
  ["abandoned", "abandoned", "bad-part"],
]

/** A range as a bar of its leased, reserved, static and abandoned addresses. */
export function RangeBar({ u, range }: { u: Utilization; range: string }) {
  const all = u.addresses ?? 0
  let x = 0
  const label = parts
    .filter(([key]) => u[key])
    .map(([key, name]) => `${number(u[key] as number)} ${name}`)
    .concat(u.free === null ? [] : [`${number(u.free)} free`])
    .join(", ")
  return (
    <svg class="range-bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${range}: ${label}`}>
      <title>{label}</title>
      <rect class="bar-all" width="100" height="10" rx="1" />
      {all > 0 &&
        parts.map(([key, , cls]) => {
          const width = (100 * (u[key] as number)) / all,
            at = x
          x += width
          return width > 0 ? <rect key={key} class={cls} x={at} width={Math.max(width, 0.4)} height="10" /> : null
        })}
    </svg>
  )
}

/** When a range is full, as text: "full in 5 hours". */
export function Forecast({ u }: { u: Utilization }) {
  if (u.free === 0) return <span class="bad-text">full</span>
  if (u.fullInHours === null)
    return (
      <span class="muted">
        {u.leasesPerHour === null
          ? "no forecast yet"
          : u.leasesPerHour > 0.05
            ? "not full within a year"
            : u.leasesPerHour < -0.05
              ? "use decreases"
              : "use is steady"}
      </span>
    )
  const hours = u.fullInHours,
    text = hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} days`
  const tip = `${u.leasesPerHour} leases an hour over the last ${u.trendHours} hours`
  return (
    <span class={hours < 24 ? "bad-text" : ""} title={tip}>
      full in {text}
    </span>
  )
}

/** The ranges of a network as bars, read again every few seconds. */
export function RangeBars({ network }: { network: number }) {
  const path = `networks/${network}/ranges` + query({ limit: 200, orderBy: "range" })
  const { data, problem, reload } = useData<Page<IPv4DHCPRange>>(path, s => get(path, { signal: s }), [
    "ranges",
    "addresses",
    "leaseActions",
  ])
  useEvery(5000, reload)
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the ranges" />
  if (data.data.length === 0) return <Empty title="No ranges yet.">Create one on the Ranges tab.</Empty>
  return (
    <>
      <ul class="range-bars">
        {data.data.map(r => {
          const u = r.utilization as unknown as Utilization
          return (
            <li key={r.id}>
              <span class="range-name">
                <To r={r} mono /> {r.name}
              </span>
              <RangeBar u={u} range={r.range!} />
              <span class="num right">{u.percent} %</span>
              <span class="small">
                <Forecast u={u} />
              </span>
            </li>
          )
        })}
      </ul>
      <p class="muted small legend">
        {parts.map(([key, name, cls]) => (
          <span key={key}>
            <i class={"swatch " + cls} aria-hidden="true" />
            {name}
          </span>
        ))}
        <span>
          <i class="swatch bar-rest" aria-hidden="true" />
          free
        </span>
      </p>
    </>
  )
}
