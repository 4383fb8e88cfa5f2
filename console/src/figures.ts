// Figures over time: what the manager answers, and how values are shown.
import { get, query } from "./api"
import { useData, useEvery } from "./data"

/** A line of a metric. at are Unix seconds. */
export interface Line {
  name: string
  at: number[]
  mean: number[]
  max: number[]
}
export interface Metric {
  name: string
  title: string
  description: string
  unit: string
  by: string
  lines: Line[]
}
export interface FigureData {
  object: string
  from: string
  to: string
  step: number
  metrics: Metric[]
}

/** The periods that can be chosen: key, label and length in seconds. */
export const periods: [key: string, label: string, seconds: number][] = [
  ["day", "24 hours", 86_400],
  ["week", "7 days", 7 * 86_400],
  ["month", "28 days", 28 * 86_400],
  ["year", "13 months", 396 * 86_400],
]

/** The time between two reads of figures, in milliseconds. They are measured once a minute. */
const figureInterval = 60_000

/** Reads the figures of an object over a period before now, and again every minute. */
export function useFigures(object: string, period: string, metrics?: string[], step?: number) {
  const seconds = periods.find(p => p[0] === period)![2]
  const loaded = useData<FigureData>(`figures ${object} ${period} ${metrics} ${step}`, s => {
    const to = new Date()
    const asked = query({
      object,
      metric: metrics?.join(","),
      from: new Date(to.getTime() - seconds * 1000).toISOString(),
      to: to.toISOString(),
      step,
    })
    return get<FigureData>("figures" + asked, { signal: s, quiet: true })
  })
  useEvery(figureInterval, loaded.reload)
  return loaded
}

/** A value with its unit. */
export function valueText(value: number, unit: string): string {
  if (unit === "ratio") return (100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0) + " %"
  if (unit === "bytes") {
    const i = value < 1 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10))
    return (value / 2 ** (10 * i)).toFixed(i ? 1 : 0) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][i]
  }
  const text =
    value === 0
      ? "0"
      : value < 0.01
        ? value.toPrecision(1)
        : value < 10
          ? String(+value.toFixed(2))
          : String(Math.round(value))
  return unit === "perSecond" ? text + "/s" : text
}

/** The last, mean and highest value of a line; null without points. */
export function summary(l: Line): { last: number; mean: number; max: number } | null {
  const n = l.mean.length
  return n ? { last: l.mean[n - 1], mean: l.mean.reduce((a, b) => a + b, 0) / n, max: Math.max(...l.max) } : null
}

/**
 * The lines of a metric as columns over common times. A value is undefined where only other lines have one. Between two points of a line
 * that are further apart than usual, a row of null breaks the line.
 */
export function columns(lines: Line[], step: number): [number[], ...(number | null | undefined)[][]] {
  const times = new Set<number>()
  const gaps: Set<number>[] = lines.map(l => {
    const gap = new Set<number>()
    l.at.forEach((t, i) => {
      times.add(t)
      if (i && t - l.at[i - 1] > Math.max(6 * step, 3600)) {
        gap.add(l.at[i - 1] + step)
        times.add(l.at[i - 1] + step)
      }
    })
    return gap
  })
  const at = [...times].sort((a, b) => a - b)
  return [
    at,
    ...lines.map((l, n) => {
      const values = new Map(l.at.map((t, i) => [t, l.mean[i]]))
      return at.map(t => (values.has(t) ? values.get(t) : gaps[n].has(t) ? null : undefined))
    }),
  ]
}
