// The map of a prefix: the utilization of each cell (docs/map.md), on a canvas and as a table, and the occupied parts of IPv6 space.
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { get, query, type Page, type Resource } from "../api"
import { useData } from "../data"
import { hrefOf, title } from "../links"
import { place, setQuery, go } from "../router"
import { address, amount, parseSpan, size, span, type Span } from "../space"
import { Empty, Loading, Trouble } from "./basics"
import {
  areSingle,
  cellsOf,
  coloured,
  networksOf,
  colours,
  maxColoured,
  palette,
  places,
  useColours,
  type By,
  type Cell,
  type Colouring,
  type MapAnswer,
} from "./mapcells"
import { Occupied } from "./occupied"
import { number } from "../words"

/** The visible part of a map: the zoom factor, and the column and row of its first cell. */
interface View {
  zoom: number
  x: number
  y: number
}

const zooms = [1, 2, 4, 8, 16]

/** The cells of a block or a network. The URL holds the selection, the part, the order and the zoom. */
export function SpaceMap({
  collection,
  r,
  onPick,
}: {
  collection: "blocks" | "networks"
  r: Resource
  onPick?: (s: Span) => void
}) {
  const q = place.value.query,
    v6 = parseSpan(r.range)!.v6,
    as = q.get("as") ?? (v6 ? "occupied" : "cells")
  return (
    <div class="map">
      {v6 && (
        <div class="tools">
          <label class="inline">
            Show{" "}
            <select
              value={as}
              onChange={e => setQuery({ as: e.currentTarget.value, prefix: null, cell: null, view: null })}
            >
              <option value="occupied">occupied parts</option>
              <option value="cells">equal cells</option>
              <option value="table">cells as a table</option>
            </select>
          </label>
        </div>
      )}
      {as === "occupied" ? (
        <Occupied collection={collection} r={r} onPick={onPick} />
      ) : (
        <Cells collection={collection} r={r} onPick={onPick} />
      )}
    </div>
  )
}

function Cells({
  collection,
  r,
  onPick,
}: {
  collection: "blocks" | "networks"
  r: Resource
  onPick?: (s: Span) => void
}) {
  const q = place.value.query,
    hilbert = q.get("order") === "hilbert",
    asTable = q.get("as") === "table",
    part = q.get("prefix"),
    cells = Number(q.get("cells") ?? "") || (collection === "blocks" ? 1024 : 256)
  const path = `${collection}/${r.id}/map` + query({ cells, prefix: part ?? undefined })
  const { data, problem, reload } = useData<MapAnswer>(path, s => get(path, { signal: s }), [
    "blocks",
    "networks",
    "addresses",
    "ranges",
  ])
  const inside = useData<Span[]>(
    data && collection === "blocks" && areSingle(data) ? "networks of " + path : null,
    s => networksOf(r, data!, s),
    ["networks"],
  )
  const list = useMemo(
    () => (data ? cellsOf(data, collection === "networks" ? [parseSpan(r.range)!] : (inside.data ?? [])) : []),
    [data, inside.data],
  )
  const by = (q.get("by") ?? "use") as By
  const colouring = useData<Colouring>(
    data && by !== "use" ? `${by} ${path}` : null,
    s => coloured(collection, r, by, data!, s),
    ["networks", "addresses", "tags"],
  )
  const chosen = Number(q.get("cell") ?? -1),
    choose = (i: number) => setQuery({ cell: i < 0 ? null : String(i) })
  const show = (to: Span | null) =>
    go(
      place.value.path.length
        ? location.pathname +
            query({ ...Object.fromEntries(q), cell: undefined, view: undefined, prefix: to ? span(to) : undefined })
        : location.pathname,
    )
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the map" />
  const whole = parseSpan(data.prefix)!,
    step = size(whole) / BigInt(data.cells)
  const spanOf = (i: number): Span => ({
    v6: whole.v6,
    low: whole.low + BigInt(i) * step,
    high: whole.low + BigInt(i + 1) * step - 1n,
  })
  return (
    <>
      <div class="tools">
        <label class="inline">
          Cells{" "}
          <select value={cells} onChange={e => setQuery({ cells: e.currentTarget.value, cell: null, view: null })}>
            {[256, 1024, 4096, 16384, 65536].map(n => (
              <option key={n} value={n}>
                {number(n)}
              </option>
            ))}
          </select>
        </label>
        <label class="inline">
          Colours{" "}
          <select
            value={by}
            onChange={e => setQuery({ by: e.currentTarget.value === "use" ? null : e.currentTarget.value })}
          >
            <option value="use">utilization</option>
            {(collection === "networks" || size(whole) <= 65536n) && <option value="state">state</option>}
            <option value="location">location</option>
            <option value="tag">tag</option>
          </select>
        </label>
        <label class="inline">
          <input
            type="checkbox"
            checked={hilbert}
            onChange={e => setQuery({ order: e.currentTarget.checked ? "hilbert" : null })}
          />
          Hilbert curve
        </label>
        <label class="inline">
          <input
            type="checkbox"
            checked={asTable}
            onChange={e => setQuery({ as: e.currentTarget.checked ? "table" : whole.v6 ? "cells" : null })}
          />
          As a table
        </label>
        <span class="muted">
          each cell is {span(spanOf(0)).replace(/^.*(\/\d+)$/, "a $1")},{" "}
          {step === 1n ? "one address" : amount(step) + " addresses"}
        </span>
      </div>
      {part && (
        <p class="tools">
          <button class="small" onClick={() => show(null)}>
            All of {r.range}
          </button>{" "}
          <button class="small" onClick={() => show(wider(whole, parseSpan(r.range)!))}>
            Parent range
          </button>
          {[-1n, 1n].map(d => {
            const to = { v6: whole.v6, low: whole.low + d * size(whole), high: whole.high + d * size(whole) },
              all = parseSpan(r.range)!
            return (
              <button
                key={String(d)}
                class="small"
                disabled={to.low > all.high || to.high < all.low}
                onClick={() => show(to)}
              >
                {d < 0n ? "Previous range" : "Next range"}
              </button>
            )
          })}{" "}
          <strong class="mono">{data.prefix}</strong>
        </p>
      )}
      {by === "use" ? (
        <Legend collection={collection} />
      ) : colouring.problem ? (
        <Trouble problem={colouring.problem} retry={colouring.reload} />
      ) : !colouring.data ? (
        <Loading what="the contents" />
      ) : (
        <Groups c={colouring.data} />
      )}
      <div class="map-body">
        {asTable ? (
          <MapTable data={data} list={list} spanOf={spanOf} />
        ) : (
          <Canvas
            data={data}
            list={list}
            colouring={by === "use" ? undefined : colouring.data}
            hilbert={hilbert}
            chosen={chosen}
            choose={choose}
            open={step > 1n ? i => show(spanOf(i)) : undefined}
            spanOf={spanOf}
            label={"Map of " + data.prefix}
          />
        )}
        {!asTable && chosen >= 0 && list[chosen]?.kind >= 0 && (
          <CellCard
            collection={collection}
            r={r}
            s={spanOf(chosen)}
            cell={list[chosen]}
            kinds={data.kinds}
            levels={data.levels}
            onPick={onPick}
            open={step > 1n ? () => show(spanOf(chosen)) : undefined}
          />
        )}
      </div>
    </>
  )
}

/** Returns the prefix that is 16 times as large, limited to the whole range; null if the prefix is already the whole range. */
function wider(s: Span, all: Span): Span | null {
  const n = size(s) * 16n,
    low = (s.low / n) * n
  return low <= all.low && low + n - 1n >= all.high ? null : { v6: s.v6, low, high: low + n - 1n }
}

function Canvas({
  data,
  list,
  colouring,
  hilbert,
  chosen,
  choose,
  open,
  spanOf,
  label,
}: {
  data: MapAnswer
  list: Cell[]
  colouring?: Colouring
  hilbert: boolean
  chosen: number
  choose: (i: number) => void
  open?: (i: number) => void
  spanOf: (i: number) => Span
  label: string
}) {
  const ref = useRef<HTMLCanvasElement>(null),
    box = useRef<HTMLDivElement>(null),
    drag = useRef<{ x: number; y: number; from: View; moved: boolean } | null>(null),
    [hover, setHover] = useState(-1),
    [width, setWidth] = useState(0)
  const p = useMemo(() => places(list.length, hilbert), [list.length, hilbert])
  const stored = place.value.query.get("view")?.split(",").map(Number) ?? [],
    [dragged, setDragged] = useState<View | null>(null)
  const most = zooms.filter(z => p.side / z >= 8 && p.height / z >= 8).pop() ?? 1
  /** Returns the view moved inside the map. */
  const bounded = (v: View): View => {
    const zoom = Math.max(1, Math.min(most, v.zoom || 1)),
      at = (n: number, all: number) => Math.max(0, Math.min(all - all / zoom, n || 0))
    return { zoom, x: at(v.x, p.side), y: at(v.y, p.height) }
  }
  const view = bounded(dragged ?? { zoom: stored[0], x: stored[1], y: stored[2] }),
    wide = p.side / view.zoom,
    high = p.height / view.zoom
  const look = (v: View) => {
    const b = bounded(v)
    setQuery({ view: b.zoom === 1 ? null : [b.zoom, Math.round(b.x), Math.round(b.y)].join(",") })
  }
  /** Zooms in or out. The cell at the given position, by default the middle, stays in place. */
  const zoom = (by: number, fx = 0.5, fy = 0.5) => {
    const z = Math.max(1, Math.min(most, view.zoom * by))
    look({ zoom: z, x: view.x + fx * (wide - p.side / z), y: view.y + fy * (high - p.height / z) })
  }
  useEffect(() => {
    const look = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0))
    look.observe(box.current!)
    return () => look.disconnect()
  }, [])
  const scale = Math.max(1, Math.min(Math.floor((width || 800) / p.side), Math.floor(720 / p.height), 32))
  const theme = useColours()
  /** The image of all cells, one pixel each. */
  const small = useMemo(() => {
    if (!box.current) return null
    const colour = colours(box.current),
      image = new ImageData(p.side, p.height),
      small = document.createElement("canvas")
    for (let i = 0; i < list.length; i++) {
      const { kind, level, edge } = list[i],
        base = kind < 0 || edge ? colour.beyond : colour.kinds[Math.min(kind, 3)],
        share = kind <= 0 && level === 0 ? 0 : level / (data.levels - 1)
      const group = colouring ? colouring.of[i] : -2,
        own = group >= 0 ? palette[group % palette.length] : null
      for (let k = 0; k < 3; k++)
        image.data[4 * p.at[i] + k] = own
          ? own[k]
          : group === -1
            ? base[k]
            : Math.round(base[k] + (colour.full[k] - base[k]) * share)
      image.data[4 * p.at[i] + 3] = 255
    }
    small.width = p.side
    small.height = p.height
    small.getContext("2d")!.putImageData(image, 0, 0)
    return { small, line: colour.line }
  }, [list, colouring, p, theme, width > 0])
  useEffect(() => {
    if (!small) return
    const canvas = ref.current!,
      c = canvas.getContext("2d")!,
      cell = scale * view.zoom
    canvas.width = p.side * scale
    canvas.height = p.height * scale
    c.imageSmoothingEnabled = false
    c.drawImage(small.small, view.x, view.y, wide, high, 0, 0, canvas.width, canvas.height)
    canvas.dataset.drawn = String(list.length)
    if (cell >= 6) {
      c.fillStyle = `rgb(${small.line.slice(0, 3).join(" ")})`
      for (let x = Math.ceil(view.x); x < view.x + wide; x++)
        c.fillRect(Math.round((x - view.x) * cell), 0, 1, canvas.height)
      for (let y = Math.ceil(view.y); y < view.y + high; y++)
        c.fillRect(0, Math.round((y - view.y) * cell), canvas.width, 1)
    }
  }, [small, scale, view.x, view.y, view.zoom])
  /** Returns the position of the pointer on the canvas, 0 to 1. */
  const at = (e: MouseEvent) => {
    const b = ref.current!.getBoundingClientRect()
    return { x: (e.clientX - b.left) / b.width, y: (e.clientY - b.top) / b.height }
  }
  const cellAt = (e: MouseEvent) => {
    const { x: fx, y: fy } = at(e),
      x = Math.floor(view.x + fx * wide),
      y = Math.floor(view.y + fy * high)
    return fx >= 0 && fy >= 0 && fx < 1 && fy < 1 ? p.of[y * p.side + x] : -1
  }
  const down = (e: PointerEvent) => {
    if (e.button === 0) {
      drag.current = { ...at(e), from: view, moved: false }
    }
  }
  const over = (e: PointerEvent) => {
    const d = drag.current,
      now = at(e)
    if (!d || view.zoom === 1) {
      setHover(cellAt(e))
      return
    }
    if (!d.moved && Math.abs(now.x - d.x) + Math.abs(now.y - d.y) < 0.01) return
    if (!d.moved) ref.current!.setPointerCapture(e.pointerId)
    d.moved = true
    setDragged({ ...d.from, x: d.from.x - (now.x - d.x) * wide, y: d.from.y - (now.y - d.y) * high })
  }
  const up = (e: PointerEvent) => {
    const d = drag.current
    drag.current = null
    if (d?.moved) {
      look(view)
      setDragged(null)
    } else if (d) choose(cellAt(e))
  }
  const keys = (e: KeyboardEvent) => {
    const cell = chosen < 0 ? 0 : p.at[chosen],
      x = cell % p.side,
      y = Math.floor(cell / p.side)
    if (e.key === "+" || e.key === "=" || e.key === "-") {
      e.preventDefault()
      const fx = (x + 0.5 - view.x) / wide,
        fy = (y + 0.5 - view.y) / high,
        seen = chosen >= 0 && fx >= 0 && fx < 1 && fy >= 0 && fy < 1
      zoom(e.key === "-" ? 0.5 : 2, seen ? fx : 0.5, seen ? fy : 0.5)
      return
    }
    if (e.key === "Enter" && open && chosen >= 0) {
      e.preventDefault()
      open(chosen)
      return
    }
    const [nx, ny] =
      (
        {
          ArrowRight: [x + 1, y],
          ArrowLeft: [x - 1, y],
          ArrowDown: [x, y + 1],
          ArrowUp: [x, y - 1],
          Home: [0, 0],
          End: [p.side - 1, p.height - 1],
        } as Record<string, number[]>
      )[e.key] ?? []
    if (nx === undefined) return
    e.preventDefault()
    if (nx < 0 || ny < 0 || nx >= p.side || ny >= p.height) return
    choose(p.of[ny * p.side + nx])
    const keep = (n: number, from: number, seen: number) => (n < from ? n : n >= from + seen ? n + 1 - seen : from)
    if (view.zoom > 1) look({ zoom: view.zoom, x: keep(nx, view.x, wide), y: keep(ny, view.y, high) })
  }
  const mark = chosen >= 0 ? p.at[chosen] : -1,
    shown = hover >= 0 ? hover : chosen,
    cell = scale * view.zoom,
    mx = ((mark % p.side) - view.x) * cell,
    my = (Math.floor(mark / p.side) - view.y) * cell
  return (
    <div ref={box}>
      <div class="tools">
        {most > 1 && (
          <>
            <button class="small" disabled={view.zoom >= most} onClick={() => zoom(2)}>
              Zoom in
            </button>
            <button class="small" disabled={view.zoom === 1} onClick={() => zoom(0.5)}>
              Zoom out
            </button>
            <span class="muted small">
              {view.zoom > 1 ? `${view.zoom} times enlarged; drag to move` : "keys + and -"}
            </span>
          </>
        )}
      </div>
      <div class="canvas-box" style={{ width: p.side * scale + "px" }}>
        <canvas
          ref={ref}
          class={view.zoom > 1 ? "drags" : ""}
          tabIndex={0}
          role="application"
          aria-label={
            label +
            ". Arrow keys move from cell to cell, plus and minus zoom. The text below describes the selected cell."
          }
          onPointerDown={down}
          onPointerMove={over}
          onPointerUp={up}
          onPointerCancel={() => {
            drag.current = null
            setDragged(null)
          }}
          onPointerLeave={() => setHover(-1)}
          onDblClick={e => {
            const i = cellAt(e)
            if (i >= 0) open?.(i)
          }}
          onKeyDown={keys}
        />
        {mark >= 0 && mx > -cell && my > -cell && mx < p.side * scale && my < p.height * scale && (
          <div
            class="mark"
            style={{
              left: mx + "px",
              top: my + "px",
              width: Math.max(cell, 4) + "px",
              height: Math.max(cell, 4) + "px",
            }}
          />
        )}
      </div>
      <p class="cell-line" aria-live="polite">
        {shown >= 0 && list[shown] ? (
          <>
            <span class="mono">{span(spanOf(shown))}</span> · {says(list[shown], data.kinds, data.levels)}
          </>
        ) : (
          <span class="muted">Point at a cell, or use the arrow keys.</span>
        )}
      </p>
    </div>
  )
}

function says(c: Cell, kinds: string[], levels: number) {
  if (c.kind < 0) return "outside the range"
  if (c.edge) return "network or broadcast address, not for hosts"
  const full =
    c.level === 0
      ? "nothing in use"
      : c.level === levels - 1
        ? "full"
        : `about ${Math.round((100 * c.level) / (levels - 1))} % in use`
  const what =
    (
      {
        free: "free",
        block: "in a block, not in a network",
        network: "in a network",
        networks: "several networks",
        range: "in a DHCP range",
      } as Record<string, string>
    )[kinds[c.kind]] ?? kinds[c.kind]
  return c.kind === 0 ? (c.level === 0 ? what : c.level === levels - 1 ? "in use" : full) : `${what}, ${full}`
}

/** The legend of the groups. */
function Groups({ c }: { c: Colouring }) {
  const sorted = c.groups.map((g, i) => ({ ...g, i })).sort((a, b) => b.n - a.n)
  return (
    <p class="legend" aria-label="Legend">
      {sorted.slice(0, 24).map(g => (
        <span key={g.i}>
          <i
            class="swatch"
            style={{ background: `rgb(${palette[g.i % palette.length].join(" ")})` }}
            aria-hidden="true"
          />
          {g.name} <span class="muted num">{number(g.n)}</span>
        </span>
      ))}
      {sorted.length === 0 && <span class="muted">This part is empty.</span>}
      {sorted.length > 24 && <span class="muted">and {sorted.length - 24} more</span>}
      {!c.whole && <span class="muted">of the first {number(maxColoured)}</span>}
    </p>
  )
}

function Legend({ collection }: { collection: string }) {
  const items: [string, string][] =
    collection === "blocks"
      ? [
          ["free", "free"],
          ["block", "in a block"],
          ["net", "a network"],
          ["nets", "several networks"],
          ["full", "full"],
        ]
      : [
          ["free", "free"],
          ["block", "DHCP range"],
          ["full", "in use"],
        ]
  return (
    <p class="legend" aria-label="Legend">
      {items.map(([c, word]) => (
        <span key={c}>
          <i class={"swatch " + c} aria-hidden="true" />
          {word}
        </span>
      ))}
      <span class="muted">darker: higher utilization</span>
    </p>
  )
}

/** The map as a table: runs of equal cells. */
function MapTable({ data, list, spanOf }: { data: MapAnswer; list: Cell[]; spanOf: (i: number) => Span }) {
  const runs: { s: Span; c: Cell; n: number }[] = []
  list.forEach((c, i) => {
    const last = runs[runs.length - 1]
    if (last && last.c.kind === c.kind && last.c.level === c.level && last.c.edge === c.edge) {
      last.s = { ...last.s, high: spanOf(i).high }
      last.n++
    } else runs.push({ s: spanOf(i), c, n: 1 })
  })
  const most = 500
  return (
    <>
      <table class="small-table">
        <thead>
          <tr>
            <th>From</th>
            <th>To</th>
            <th class="right">Addresses</th>
            <th>Contents</th>
          </tr>
        </thead>
        <tbody>
          {runs.slice(0, most).map((x, i) => (
            <tr key={i}>
              <td class="mono">{address(x.s.low, x.s.v6)}</td>
              <td class="mono">{address(x.s.high, x.s.v6)}</td>
              <td class="right num">{amount(size(x.s))}</td>
              <td>{says(x.c, data.kinds, data.levels)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {runs.length > most && (
        <p class="muted">
          The first {most} of {number(runs.length)} runs.
        </p>
      )}
    </>
  )
}

/** The contents of a cell. */
function CellCard({
  collection,
  r,
  s,
  cell,
  kinds,
  levels,
  onPick,
  open,
}: {
  collection: string
  r: Resource
  s: Span
  cell: Cell
  kinds: string[]
  levels: number
  onPick?: (s: Span) => void
  open?: () => void
}) {
  const within = `within('${span(s)}')`
  const path =
    collection === "blocks"
      ? "networks" +
        query({
          filter: `configuration.id:${r.configuration?.id} and (range:${within} or range:contains('${span(s)}'))`,
          limit: 20,
        })
      : `networks/${r.id}/addresses` + query({ filter: `address:${within}`, limit: 20 })
  const found = useData<Page>(path, a => get(path, { signal: a }), ["networks", "addresses"])
  return (
    <section class="card cell-card">
      <h2 class="mono">{span(s)}</h2>
      <p>{says(cell, kinds, levels)}</p>
      {found.problem ? (
        <Trouble problem={found.problem} />
      ) : !found.data ? (
        <Loading />
      ) : found.data.data.length === 0 ? (
        <Empty title={collection === "blocks" ? "No networks in this cell." : "No addresses in use in this cell."} />
      ) : (
        <ul class="plain-list">
          {found.data.data.map(x => (
            <li key={x.id}>
              <a class="mono" href={hrefOf(x)}>
                {title(x)}
              </a>{" "}
              {x.name}
            </li>
          ))}
          {found.data.count === 20 && <li class="muted">and more</li>}
        </ul>
      )}
      {onPick && cell.level === 0 && !cell.edge && <button onClick={() => onPick(s)}>Create here</button>}
      {open && (
        <button class="small" onClick={open}>
          Open this part
        </button>
      )}
      {collection === "blocks" && found.data?.data.length === 1 && (
        <button class="small" onClick={() => go(hrefOf(found.data!.data[0]) + "/map")}>
          Open its map
        </button>
      )}
    </section>
  )
}
