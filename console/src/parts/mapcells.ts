// The data of a map: cells, the position of each, and its colour.
import { useEffect, useState } from "preact/hooks"
import { get, query, type Page, type Resource } from "../api"
import { hosts, parseSpan, size, type Span } from "../space"
import { words } from "./basics"

/** The response of the manager (docs/map.md). */
export interface MapAnswer {
  range: string
  prefix: string
  cells: number
  cellLength: number
  levels: number
  kinds: string[]
  map: string
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/**
 * One cell: the kind of its contents (-1 outside of the range), and its utilization from 0 to 15. edge is the network or broadcast address of
 * an IPv4 network, which hosts cannot have.
 */
export interface Cell {
  kind: number
  level: number
  edge?: boolean
}

/** Reports whether each cell of a map is one IPv4 address. */
export function areSingle(m: MapAnswer) {
  const part = parseSpan(m.prefix)
  return !!part && !part.v6 && size(part) === BigInt(m.map.length)
}

/** Returns the cells of a map. networks are the ranges of the networks in it, for the addresses that hosts cannot have. */
export function cellsOf(m: MapAnswer, networks: Span[]): Cell[] {
  const list: Cell[] = Array.from(m.map, ch => {
    const n = alphabet.indexOf(ch)
    return n < 0 ? { kind: -1, level: 0 } : { kind: Math.floor(n / m.levels), level: n % m.levels }
  })
  if (!areSingle(m)) return list
  const { low } = parseSpan(m.prefix)!
  for (const network of networks) {
    const usable = hosts(network)
    for (const n of [network.low, network.high]) {
      const cell = list[Number(n - low)]
      if (cell && (n < usable.low || n > usable.high)) cell.edge = true
    }
  }
  return list
}

/** Reads the ranges of the networks that a map of single addresses shows: those inside of it, and the one that contains it. */
export async function networksOf(r: Resource, m: MapAnswer, signal: AbortSignal): Promise<Span[]> {
  const filter = `configuration.id:${r.configuration?.id} and (range:within('${m.prefix}') or range:contains('${m.prefix}'))`
  const page = await get<Page>("networks" + query({ filter, limit: maxColoured, fields: "id,range" }), {
    signal,
    headers: { Accept: "application/json" },
  })
  return page.data.flatMap(n => parseSpan(n.range) ?? [])
}

/** The criterion of the colours: utilization, address state, location or tag. */
export type By = "use" | "state" | "location" | "tag"

/** The maximum number of resources that are read for the colours. */
export const maxColoured = 10_000

/** The groups of a colouring, and the group of each cell; -1 for none. */
export interface Colouring {
  groups: { name: string; n: number }[]
  of: Int16Array
  whole: boolean
}

/** Colours that are safe for colour-blind users (Okabe and Ito), repeated when there are more groups. */
export const palette = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [213, 94, 0],
  [204, 121, 167],
  [86, 180, 233],
  [240, 228, 66],
  [120, 120, 120],
]

/** Reads the resources in the cells and groups them. */
export async function coloured(
  collection: "blocks" | "networks",
  r: Resource,
  by: By,
  m: MapAnswer,
  signal: AbortSignal,
): Promise<Colouring> {
  const tagged = by === "tag" ? ",embed(tags)" : "",
    filter = m.prefix !== m.range ? `address:within('${m.prefix}')` : undefined
  const path =
    collection === "networks"
      ? `networks/${r.id}/addresses` +
        query({ limit: maxColoured, fields: "id,address,state,location" + tagged, filter })
      : by === "state"
        ? "addresses" +
          query({
            filter: `configuration.id:${r.configuration?.id} and address:within('${m.prefix}')`,
            limit: maxColoured,
            fields: "id,address,state",
          })
        : "networks" +
          query({
            filter: `configuration.id:${r.configuration?.id} and range:within('${m.prefix}')`,
            limit: maxColoured,
            fields: "id,range,location" + tagged,
          })
  const page = await get<Page>(path, { signal, headers: { Accept: "application/json" } })
  const whole = parseSpan(m.prefix)!,
    step = size(whole) / BigInt(m.cells),
    of = new Int16Array(m.cells).fill(-1),
    groups: Colouring["groups"] = [],
    index = new Map<string, number>()
  for (const x of page.data) {
    const s = parseSpan(x.address ?? x.range),
      name =
        by === "state"
          ? words(x.state ?? "")
          : by === "tag"
            ? (x._embedded?.tags ?? [])
                .map((t: Resource) => t.name)
                .sort()
                .join(", ") || "no tag"
            : (x.location?.name ?? "no location")
    if (!s) continue
    let g = index.get(name)
    if (g === undefined) {
      index.set(name, (g = groups.length))
      groups.push({ name, n: 0 })
    }
    groups[g].n++
    const from = Number((s.low - whole.low) / step),
      to = Number((s.high - whole.low) / step)
    for (let i = Math.max(0, from); i <= to && i < m.cells; i++) of[i] = g
  }
  return { groups, of, whole: page.count < maxColoured }
}

/** Returns the positions of cells: row by row, or along a Hilbert curve, which keeps neighbours together. */
export function places(
  cells: number,
  hilbert: boolean,
): { side: number; height: number; at: Int32Array; of: Int32Array } {
  const side = 2 ** Math.ceil(Math.log2(cells) / 2),
    height = cells / side
  const at = new Int32Array(cells),
    of = new Int32Array(cells)
  for (let i = 0; i < cells; i++) {
    let x = i % side,
      y = Math.floor(i / side)
    if (hilbert) {
      const square = Math.min(side, height),
        wide = Math.floor(i / (square * square))
      let t = i % (square * square)
      x = y = 0
      for (let s = 1; s < square; s *= 2) {
        const rx = 1 & (t >> 1),
          ry = 1 & (t ^ rx)
        if (!ry) {
          if (rx) {
            x = s - 1 - x
            y = s - 1 - y
          }
          ;[x, y] = [y, x]
        }
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

/** Returns a new value whenever the colours of the page change. */
export function useColours(): string {
  const dark = matchMedia("(prefers-color-scheme: dark)"),
    read = () => (document.documentElement.dataset.theme ?? "") + dark.matches
  const [colours, setColours] = useState(read)
  useEffect(() => {
    const look = () => setColours(read()),
      theme = new MutationObserver(look)
    dark.addEventListener("change", look)
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] })
    return () => {
      dark.removeEventListener("change", look)
      theme.disconnect()
    }
  }, [])
  return colours
}

/** Returns the colours of the theme from the style sheet, as red, green and blue. */
export function colours(at: Element) {
  const probe = document.createElement("i"),
    c = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!
  at.append(probe)
  const read = (name: string) => {
    probe.style.color = `var(${name})`
    c.fillStyle = getComputedStyle(probe).color
    c.fillRect(0, 0, 1, 1)
    return [...c.getImageData(0, 0, 1, 1).data]
  }
  const all = {
    beyond: read("--map-beyond"),
    kinds: ["--map-free", "--map-block", "--map-net", "--map-nets"].map(read),
    full: read("--map-full"),
    line: read("--surface"),
  }
  probe.remove()
  return all
}
