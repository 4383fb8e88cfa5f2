// Charts of figures over time, with a table of the same values.
import { useEffect, useRef, useState } from "preact/hooks"
import { columns, periods, summary, useFigures, valueText, type Metric } from "../figures"
import { Loading, Trouble, words } from "./basics"

/** The colours of lines, as properties of the style sheet. More lines begin again. */
const colours = ["accent", "good", "warn", "bad", "held", "lease"]

/** Answers the colour that an element has by a property of the style sheet, in the current theme. */
function colour(of: HTMLElement, property: string): string {
  const probe = document.createElement("span")
  probe.style.color = `var(--${property})`
  of.appendChild(probe)
  const found = getComputedStyle(probe).color
  probe.remove()
  return found
}

/** The name of a line of a metric. */
const lineName = (m: Metric, name: string) => words(name || m.title)

/** The canvas of a metric. uPlot is loaded with the first chart. */
function Canvas({
  metric,
  step,
  bars,
  height,
  from,
  to,
}: {
  metric: Metric
  step: number
  bars?: boolean
  height: number
  from: number
  to: number
}) {
  const ref = useRef<HTMLDivElement>(null)
  const [theme, setTheme] = useState(0)
  useEffect(() => {
    const changed = () => setTheme(n => n + 1)
    const seen = new MutationObserver(changed),
      dark = matchMedia("(prefers-color-scheme: dark)")
    seen.observe(document.documentElement, { attributeFilter: ["data-theme"] })
    dark.addEventListener("change", changed)
    return () => {
      seen.disconnect()
      dark.removeEventListener("change", changed)
    }
  }, [])
  useEffect(() => {
    const box = ref.current!
    let ended = false,
      drop = () => {}
    void import("uplot").then(({ default: Plot }) => {
      if (ended) return
      const ink = colour(box, "muted"),
        line = colour(box, "line")
      const axis = {
        stroke: ink,
        grid: { stroke: line, width: 1 },
        ticks: { stroke: line, width: 1 },
        font: "12px system-ui",
      }
      const plot = new Plot(
        {
          width: Math.max(200, box.clientWidth),
          height,
          legend: { show: false },
          hooks: { draw: [u => void (u.ctx.canvas.dataset.drawn = "")] },
          cursor: { drag: { x: false, y: false } },
          scales: {
            x: { range: () => [from, to] },
            y: { range: (_, _low, high) => [0, metric.unit === "ratio" ? 1 : high > 0 ? high * 1.1 : 1] },
          },
          axes: [
            {
              ...axis,
              values: "{HH}:{mm}",
              ...(to - from > 2 * 86_400 ? { values: "{D} {MMM}" } : {}),
              space: to - from > 2 * 86_400 ? Math.max(60, (box.clientWidth * 86_400) / (to - from)) : 60,
            },
            { ...axis, size: 64, values: (_, all) => all.map(v => valueText(v, metric.unit)) },
          ],
          series: [
            {},
            ...metric.lines.map((_, i) => {
              const stroke = colour(box, colours[i % colours.length])
              return {
                stroke,
                width: 1.5,
                points: { show: false },
                fill:
                  metric.lines.length === 1 || bars
                    ? stroke.replace("rgb(", "rgba(").replace(")", ", .18)")
                    : undefined,
                ...(bars ? { paths: Plot.paths.bars!({ size: [0.8, 40], align: 1 }) } : {}),
              }
            }),
          ],
        },
        columns(metric.lines, step) as never,
        box,
      )
      const sized = new ResizeObserver(() => plot.setSize({ width: Math.max(200, box.clientWidth), height }))
      sized.observe(box)
      drop = () => {
        sized.disconnect()
        plot.destroy()
      }
    })
    return () => {
      ended = true
      drop()
    }
  }, [metric, step, theme, bars, height])
  const spoken = metric.lines
    .map(l => {
      const s = summary(l)
      return (
        lineName(metric, l.name) +
        (s
          ? `: last ${valueText(s.last, metric.unit)}, mean ${valueText(s.mean, metric.unit)}, highest ${valueText(s.max, metric.unit)}`
          : "")
      )
    })
    .join("; ")
  return <div class="chart" ref={ref} role="img" aria-label={spoken} style={{ minHeight: height + "px" }} />
}

/** A chart of a metric with a legend. The same values are in a table that can be opened. */
export function Chart({
  metric,
  step,
  bars,
  height = 180,
  from,
  to,
  heading = true,
}: {
  metric: Metric
  step: number
  bars?: boolean
  height?: number
  from: string
  to: string
  heading?: boolean
}) {
  const [open, setOpen] = useState(false)
  return (
    <figure class="figure">
      {heading && (
        <figcaption>
          <b>{metric.title}</b> <span class="muted small">{metric.description}</span>
        </figcaption>
      )}
      <Canvas
        metric={metric}
        step={step}
        bars={bars}
        height={height}
        from={Date.parse(from) / 1000}
        to={Date.parse(to) / 1000}
      />
      <ul class="legend">
        {metric.lines.map((l, i) => {
          const s = summary(l)
          return (
            <li key={l.name}>
              <span class="dot" style={{ background: `var(--${colours[i % colours.length]})` }} />
              {lineName(metric, l.name)} {s && <b class="num">{valueText(s.last, metric.unit)}</b>}
              {s && metric.unit === "perSecond" && !bars && (
                <span class="muted"> · max {valueText(s.max, metric.unit)}</span>
              )}
            </li>
          )
        })}
      </ul>
      <details onToggle={e => setOpen(e.currentTarget.open)}>
        <summary>Table</summary>
        {open && <Values metric={metric} step={step} />}
      </details>
    </figure>
  )
}

/** The points of a metric as a table, the latest first. */
function Values({ metric, step }: { metric: Metric; step: number }) {
  const [at, ...values] = columns(metric.lines, step)
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={metric.title + " as a table"}>
      <table class="small-table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {metric.lines.map(l => (
              <th scope="col" class="num" key={l.name}>
                {lineName(metric, l.name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {at
            .map((t, i) => (
              <tr key={t}>
                <td>{new Date(t * 1000).toLocaleString("sv").slice(0, 16)}</td>
                {values.map((v, n) => (
                  <td class="num" key={n}>
                    {v[i] === undefined || v[i] === null ? "" : valueText(v[i]!, metric.unit)}
                  </td>
                ))}
              </tr>
            ))
            .reverse()}
        </tbody>
      </table>
    </div>
  )
}

/** The charts of an object, with the choice of a period. */
export function Figures({ object, metrics }: { object: string; metrics?: string[] }) {
  const [period, setPeriod] = useState("week")
  const { data, problem, reload } = useFigures(object, period, metrics)
  return (
    <section class="figures" aria-label="Figures over time">
      <label class="period">
        Period{" "}
        <select value={period} onChange={e => setPeriod(e.currentTarget.value)}>
          {periods.map(([key, label]) => (
            <option key={key} value={key}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !data ? (
        <Loading what="figures" />
      ) : !data.metrics.length ? (
        <p class="muted">
          No figures in this period yet. They are measured every minute, and for networks every five minutes.
        </p>
      ) : (
        data.metrics.map(m => <Chart key={m.name} metric={m} step={data.step} from={data.from} to={data.to} />)
      )}
    </section>
  )
}
