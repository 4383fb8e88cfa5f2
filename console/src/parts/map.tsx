// The map of a prefix: how full each of its cells is (docs/map.md), on a canvas, and as a table.
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { get, query, type Page, type Resource } from "../api"
import { useData } from "../data"
import { hrefOf, title } from "../links"
import { place, setQuery, go } from "../router"
import { address, amount, parseSpan, size, span, type Span } from "../space"
import { Empty, Loading, number, Trouble, words } from "./basics"

interface MapAnswer { range: string; prefix: string; cells: number; cellLength: number; levels: number; kinds: string[]; map: string }

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/** One cell: what lies there (-1 beyond the range), and how full it is, 0 to 15. */
export interface Cell { kind: number; level: number }

export function cellsOf(m: MapAnswer): Cell[] {
  return Array.from(m.map, ch => {
    const n = alphabet.indexOf(ch)
    return n < 0 ? { kind: -1, level: 0 } : { kind: Math.floor(n / m.levels), level: n % m.levels }
  })
}

/** What cells are coloured by, beside how full they are: the state of addresses, or the location of what is there. */
type By = "use" | "state" | "location"

/** How many resources are looked at for the colours. */
const mostColoured = 10_000

/** The groups of a colouring, and the group of each cell; -1 where none is. */
interface Colouring { groups: { name: string; n: number }[]; of: Int16Array; whole: boolean }

/** Colours that people who see few colours tell apart, too (Okabe and Ito), the other ones again behind them. */
const palette = [[0, 114, 178], [230, 159, 0], [0, 158, 115], [213, 94, 0], [204, 121, 167], [86, 180, 233], [240, 228, 66], [120, 120, 120]]

/** Reads what lies in the cells, and groups it. */
async function coloured(collection: "blocks" | "networks", r: Resource, by: By, m: MapAnswer, signal: AbortSignal): Promise<Colouring> {
  const path = collection === "networks" ? `networks/${r.id}/addresses` + query({ limit: mostColoured, fields: "id,address,state,location" })
    : "networks" + query({ filter: `configuration.id:${r.configuration?.id} and range:within('${m.prefix}')`, limit: mostColoured, fields: "id,range,location" })
  const page = await get<Page>(path, { signal, headers: { Accept: "application/json" } })
  const whole = parseSpan(m.prefix)!, step = size(whole) / BigInt(m.cells), of = new Int16Array(m.cells).fill(-1), groups: Colouring["groups"] = [], index = new Map<string, number>()
  for (const x of page.data) {
    const s = parseSpan(x.address ?? x.range), name = by === "state" ? words(x.state ?? "") : x.location?.name ?? "no location"
    if (!s) continue
    let g = index.get(name)
    if (g === undefined) { index.set(name, g = groups.length); groups.push({ name, n: 0 }) }
    groups[g].n++
    const from = Number((s.low - whole.low) / step), to = Number((s.high - whole.low) / step)
    for (let i = Math.max(0, from); i <= to && i < m.cells; i++) of[i] = g
  }
  return { groups, of, whole: page.count < mostColoured }
}

/** Where a cell is drawn: row by row, or along a Hilbert curve, which keeps neighbours together. */
function places(cells: number, hilbert: boolean): { side: number; height: number; at: Int32Array; of: Int32Array } {
  const side = 2 ** Math.ceil(Math.log2(cells) / 2), height = cells / side
  const at = new Int32Array(cells), of = new Int32Array(cells)
  for (let i = 0; i < cells; i++) {
    let x = i % side, y = Math.floor(i / side)
    if (hilbert) {
      const square = Math.min(side, height), wide = Math.floor(i / (square * square))
      let t = i % (square * square)
      x = y = 0
      for (let s = 1; s < square; s *= 2) {
        const rx = 1 & t >> 1, ry = 1 & (t ^ rx)
        if (!ry) { if (rx) { x = s - 1 - x; y = s - 1 - y }; [x, y] = [y, x] }
        x += s * rx
        y += s * ry
        t >>= 2
      }
      x += wide * square
    }
    at[i] = y * side + x
    of[y * side + x] = i
  }
  return { side, height, at, of }
}

/** Another value each time that the colours of the page become others. */
function useColours(): string {
  const dark = matchMedia("(prefers-color-scheme: dark)"), read = () => (document.documentElement.dataset.theme ?? "") + dark.matches
  const [colours, set] = useState(read)
  useEffect(() => {
    const look = () => set(read()), theme = new MutationObserver(look)
    dark.addEventListener("change", look)
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] })
    return () => { dark.removeEventListener("change", look); theme.disconnect() }
  }, [])
  return colours
}

/** The colours of a theme, from the style sheet, as red, green and blue. */
function colours(at: Element) {
  const probe = document.createElement("i"), c = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!
  at.append(probe)
  const read = (name: string) => {
    probe.style.color = `var(${name})`
    c.fillStyle = getComputedStyle(probe).color
    c.fillRect(0, 0, 1, 1)
    return [...c.getImageData(0, 0, 1, 1).data]
  }
  const all = { beyond: read("--map-beyond"), kinds: ["--map-free", "--map-block", "--map-net", "--map-nets"].map(read), full: read("--map-full"), line: read("--surface") }
  probe.remove()
  return all
}

/** The cells of a block or a network. What is chosen, the order and the zoom stand in the URL. */
export function SpaceMap({ collection, r, onPick }: { collection: "blocks" | "networks"; r: Resource; onPick?: (s: Span) => void }) {
  const q = place.value.query, hilbert = q.get("order") === "hilbert", asTable = q.get("as") === "table", cells = Number(q.get("cells") ?? "") || (collection === "blocks" ? 1024 : 256)
  const path = `${collection}/${r.id}/map` + query({ cells })
  const { data, problem, reload } = useData<MapAnswer>(path, s => get(path, { signal: s }), ["blocks", "networks", "addresses", "ranges"])
  const list = useMemo(() => data ? cellsOf(data) : [], [data])
  const by = (q.get("by") ?? "use") as By
  const colouring = useData<Colouring>(data && by !== "use" ? `${by} ${path}` : null, s => coloured(collection, r, by, data!, s), ["networks", "addresses"])
  const chosen = Number(q.get("cell") ?? -1), choose = (i: number) => setQuery({ cell: i < 0 ? null : String(i) })
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the map" />
  const spanOf = (i: number): Span => {
    const whole = parseSpan(data.prefix)!, step = size(whole) / BigInt(data.cells)
    return { v6: whole.v6, low: whole.low + BigInt(i) * step, high: whole.low + BigInt(i + 1) * step - 1n }
  }
  return <div class="map">
    <div class="tools">
      <label class="inline">Cells <select value={cells} onChange={e => setQuery({ cells: e.currentTarget.value, cell: null })}>{[256, 1024, 4096, 16384, 65536].map(n => <option key={n} value={n}>{number(n)}</option>)}</select></label>
      <label class="inline">Colours <select value={by} onChange={e => setQuery({ by: e.currentTarget.value === "use" ? null : e.currentTarget.value })}><option value="use">how full</option>{collection === "networks" && <option value="state">state</option>}<option value="location">location</option></select></label>
      <label class="inline"><input type="checkbox" checked={hilbert} onChange={e => setQuery({ order: e.currentTarget.checked ? "hilbert" : null })} />Hilbert curve</label>
      <label class="inline"><input type="checkbox" checked={asTable} onChange={e => setQuery({ as: e.currentTarget.checked ? "table" : null })} />As a table</label>
      <span class="muted">each cell is {span(spanOf(0)).replace(/^.*(\/\d+)$/, "a $1")}, {size(spanOf(0)) === 1n ? "one address" : amount(size(spanOf(0))) + " addresses"}</span>
    </div>
    {by === "use" ? <Legend collection={collection} /> : colouring.problem ? <Trouble problem={colouring.problem} retry={colouring.reload} /> : !colouring.data ? <Loading what="what lies there" /> : <Groups c={colouring.data} />}
    <div class="map-body">{asTable ? <MapTable data={data} list={list} spanOf={spanOf} /> : <Canvas data={data} list={list} colouring={by === "use" ? undefined : colouring.data} hilbert={hilbert} chosen={chosen} choose={choose} spanOf={spanOf} label={"Map of " + r.range} />}
    {!asTable && chosen >= 0 && list[chosen]?.kind >= 0 && <CellCard collection={collection} r={r} s={spanOf(chosen)} cell={list[chosen]} kinds={data.kinds} levels={data.levels} onPick={onPick} />}</div>
  </div>
}

function Canvas({ data, list, colouring, hilbert, chosen, choose, spanOf, label }: { data: MapAnswer; list: Cell[]; colouring?: Colouring; hilbert: boolean; chosen: number; choose: (i: number) => void; spanOf: (i: number) => Span; label: string }) {
  const ref = useRef<HTMLCanvasElement>(null), box = useRef<HTMLDivElement>(null), [hover, point] = useState(-1), [width, widen] = useState(0)
  const p = useMemo(() => places(list.length, hilbert), [list.length, hilbert])
  useEffect(() => {
    const look = new ResizeObserver(() => widen(box.current?.clientWidth ?? 0))
    look.observe(box.current!)
    return () => look.disconnect()
  }, [])
  const scale = Math.max(1, Math.min(Math.floor((width || 800) / p.side), Math.floor(720 / p.height), 32))
  const theme = useColours()
  useEffect(() => {
    const canvas = ref.current!, c = canvas.getContext("2d")!, colour = colours(box.current!)
    const image = new ImageData(p.side, p.height)
    for (let i = 0; i < list.length; i++) {
      const { kind, level } = list[i], base = kind < 0 ? colour.beyond : colour.kinds[Math.min(kind, 3)], share = kind <= 0 && level === 0 ? 0 : level / (data.levels - 1)
      const group = colouring ? colouring.of[i] : -2, own = group >= 0 ? palette[group % palette.length] : null
      for (let k = 0; k < 3; k++) image.data[4 * p.at[i] + k] = own ? own[k] : group === -1 ? base[k] : Math.round(base[k] + (colour.full[k] - base[k]) * share)
      image.data[4 * p.at[i] + 3] = 255
    }
    const small = document.createElement("canvas")
    small.width = p.side
    small.height = p.height
    small.getContext("2d")!.putImageData(image, 0, 0)
    canvas.width = p.side * scale
    canvas.height = p.height * scale
    c.imageSmoothingEnabled = false
    c.drawImage(small, 0, 0, canvas.width, canvas.height)
    canvas.dataset.drawn = String(list.length)
    if (scale >= 6) {
      c.fillStyle = `rgb(${colour.line.slice(0, 3).join(" ")})`
      for (let x = 1; x < p.side; x++) c.fillRect(x * scale, 0, 1, canvas.height)
      for (let y = 1; y < p.height; y++) c.fillRect(0, y * scale, canvas.width, 1)
    }
  }, [list, colouring, p, scale, theme])
  const cellAt = (e: MouseEvent) => {
    const b = ref.current!.getBoundingClientRect(), x = Math.floor((e.clientX - b.left) / b.width * p.side), y = Math.floor((e.clientY - b.top) / b.height * p.height)
    return x >= 0 && y >= 0 && x < p.side && y < p.height ? p.of[y * p.side + x] : -1
  }
  const keys = (e: KeyboardEvent) => {
    const at = chosen < 0 ? 0 : p.at[chosen], x = at % p.side, y = Math.floor(at / p.side)
    const [nx, ny] = ({ ArrowRight: [x + 1, y], ArrowLeft: [x - 1, y], ArrowDown: [x, y + 1], ArrowUp: [x, y - 1], Home: [0, 0], End: [p.side - 1, p.height - 1] } as Record<string, number[]>)[e.key] ?? []
    if (nx === undefined) return
    e.preventDefault()
    if (nx >= 0 && ny >= 0 && nx < p.side && ny < p.height) choose(p.of[ny * p.side + nx])
  }
  const mark = chosen >= 0 ? p.at[chosen] : -1, shown = hover >= 0 ? hover : chosen
  return <div ref={box}>
    <div class="canvas-box" style={{ width: p.side * scale + "px" }}>
      <canvas ref={ref} tabIndex={0} role="application" aria-label={label + ". Arrows move from cell to cell; what is chosen is told below."} onMouseMove={e => point(cellAt(e))} onMouseLeave={() => point(-1)} onClick={e => choose(cellAt(e))} onKeyDown={keys} />
      {mark >= 0 && <div class="mark" style={{ left: (mark % p.side) * scale + "px", top: Math.floor(mark / p.side) * scale + "px", width: Math.max(scale, 4) + "px", height: Math.max(scale, 4) + "px" }} />}
    </div>
    <p class="cell-line" aria-live="polite">{shown >= 0 && list[shown] ? <><span class="mono">{span(spanOf(shown))}</span> · {says(list[shown], data.kinds, data.levels)}</> : <span class="muted">Point at a cell, or move with the arrows.</span>}</p>
  </div>
}

function says(c: Cell, kinds: string[], levels: number) {
  if (c.kind < 0) return "beyond the range"
  const full = c.level === 0 ? "nothing in use" : c.level === levels - 1 ? "full" : `about ${Math.round(100 * c.level / (levels - 1))} % in use`
  const what = ({ free: "free", block: "in a block, in no network", network: "in a network", networks: "several networks", range: "in a DHCP range" } as Record<string, string>)[kinds[c.kind]] ?? kinds[c.kind]
  return c.kind === 0 ? c.level === 0 ? what : c.level === levels - 1 ? "in use" : full : `${what}, ${full}`
}

/** What the colours of groups mean. */
function Groups({ c }: { c: Colouring }) {
  const sorted = c.groups.map((g, i) => ({ ...g, i })).sort((a, b) => b.n - a.n)
  return <p class="legend" aria-label="What the colours mean">{sorted.slice(0, 24).map(g => <span key={g.i}><i class="swatch" style={{ background: `rgb(${palette[g.i % palette.length].join(" ")})` }} aria-hidden="true" />{g.name} <span class="muted num">{number(g.n)}</span></span>)}
    {sorted.length === 0 && <span class="muted">Nothing lies there.</span>}{sorted.length > 24 && <span class="muted">and {sorted.length - 24} more</span>}{!c.whole && <span class="muted">of the first {number(mostColoured)}</span>}</p>
}

function Legend({ collection }: { collection: string }) {
  const items: [string, string][] = collection === "blocks" ? [["free", "free"], ["block", "in a block"], ["net", "a network"], ["nets", "several networks"], ["full", "full"]] : [["free", "free"], ["block", "DHCP range"], ["full", "in use"]]
  return <p class="legend" aria-label="What the colours mean">{items.map(([c, word]) => <span key={c}><i class={"swatch " + c} aria-hidden="true" />{word}</span>)}<span class="muted">the fuller, the stronger</span></p>
}

/** The map in words: runs of cells that are alike. */
function MapTable({ data, list, spanOf }: { data: MapAnswer; list: Cell[]; spanOf: (i: number) => Span }) {
  const runs: { s: Span; c: Cell; n: number }[] = []
  list.forEach((c, i) => {
    const last = runs[runs.length - 1]
    if (last && last.c.kind === c.kind && last.c.level === c.level) { last.s = { ...last.s, high: spanOf(i).high }; last.n++ } else runs.push({ s: spanOf(i), c, n: 1 })
  })
  const most = 500
  return <>
    <table class="small-table"><thead><tr><th>From</th><th>To</th><th class="right">Addresses</th><th>What is there</th></tr></thead>
      <tbody>{runs.slice(0, most).map((x, i) => <tr key={i}><td class="mono">{address(x.s.low, x.s.v6)}</td><td class="mono">{address(x.s.high, x.s.v6)}</td><td class="right num">{amount(size(x.s))}</td><td>{says(x.c, data.kinds, data.levels)}</td></tr>)}</tbody></table>
    {runs.length > most && <p class="muted">The first {most} of {number(runs.length)} runs.</p>}
  </>
}

/** What lies in a cell. */
function CellCard({ collection, r, s, cell, kinds, levels, onPick }: { collection: string; r: Resource; s: Span; cell: Cell; kinds: string[]; levels: number; onPick?: (s: Span) => void }) {
  const within = `within('${span(s)}')`
  const path = collection === "blocks" ? "networks" + query({ filter: `configuration.id:${r.configuration?.id} and (range:${within} or range:contains('${span(s)}'))`, limit: 20 }) : `networks/${r.id}/addresses` + query({ filter: `address:${within}`, limit: 20 })
  const found = useData<Page>(path, a => get(path, { signal: a }), ["networks", "addresses"])
  return <section class="card cell-card"><h2 class="mono">{span(s)}</h2>
    <p>{says(cell, kinds, levels)}</p>
    {found.problem ? <Trouble problem={found.problem} /> : !found.data ? <Loading /> : found.data.data.length === 0 ? <Empty title={collection === "blocks" ? "No network is there." : "No address is in use there."} /> :
      <ul class="plain-list">{found.data.data.map(x => <li key={x.id}><a class="mono" href={hrefOf(x)}>{title(x)}</a> {x.name}</li>)}{found.data.count === 20 && <li class="muted">and more</li>}</ul>}
    {onPick && cell.level === 0 && !(size(s) === 1n && !s.v6 && [parseSpan(r.range)!.low, parseSpan(r.range)!.high].includes(s.low)) && <button onClick={() => onPick(s)}>Use this</button>}
    {collection === "blocks" && found.data?.data.length === 1 && <button class="small" onClick={() => go(hrefOf(found.data!.data[0]) + "/map")}>Its map</button>}
  </section>
}
