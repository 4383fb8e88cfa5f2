// The occupied IPv6 space in order: the networks of a block with the gaps between them, or the parts of a network with addresses.
import { get, query, type Page, type Resource } from "../api"
import { useData } from "../data"
import { hrefOf, kind } from "../links"
import { address, amount, gaps, parseSpan, size, span, type Span } from "../space"
import { Empty, Loading, Trouble } from "./basics"
import { counted, number } from "../words"

/** The maximum number of networks or addresses that are read. */
const most = 1000

/** The number of addresses per tile of a network, as in a /120. */
const together = 256n

export function Occupied({
  collection,
  r,
  onPick,
}: {
  collection: "blocks" | "networks"
  r: Resource
  onPick?: (s: Span) => void
}) {
  return collection === "blocks" ? <OfBlock r={r} /> : <OfNetwork r={r} onPick={onPick} />
}

function OfBlock({ r }: { r: Resource }) {
  const { data, problem, reload } = useData<Resource[]>(
    "occupied " + r.id,
    async signal => {
      const read = async (what: string) =>
        (await get<Page>(`blocks/${r.id}/${what}` + query({ limit: most, orderBy: "range" }), { signal })).data
      return (await Promise.all([read("blocks"), read("networks")])).flat()
    },
    ["blocks", "networks"],
  )
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the occupied space" />
  const inside = data.map(x => ({ x, s: parseSpan(x.range)! })).sort((a, b) => (a.s.low < b.s.low ? -1 : 1))
  const all: { s: Span; x?: Resource }[] = [
    ...inside,
    ...gaps(
      parseSpan(r.range)!,
      inside.map(i => i.s),
    ).map(s => ({ s })),
  ].sort((a, b) => (a.s.low < b.s.low ? -1 : 1))
  return inside.length === 0 ? (
    <Empty title={`${r.range} is empty.`} />
  ) : (
    <>
      <p class="muted small">
        {number(inside.length)} {inside.length === 1 ? "block or network" : "blocks and networks"} and the free space
        between them, not to scale.{data.length >= most && ` Only the first ${number(most)} of each are shown.`}
      </p>
      <ul class="tiles">
        {all.map(({ s, x }) =>
          x ? (
            <li key={x.id} class={"tile " + (x.type.endsWith("Block") ? "block" : "net")}>
              <a class="mono" href={hrefOf(x) + (x.type.endsWith("Block") ? "/map" : "")}>
                {x.range}
              </a>{" "}
              <span class="cut">{x.name}</span> <span class="kind">{kind(x.type)}</span>
            </li>
          ) : (
            <li key={"free " + s.low} class="tile free">
              <span class="muted">{amount(size(s))} free</span>{" "}
              <span class="mono small muted cut">from {address(s.low, s.v6)}</span>
            </li>
          ),
        )}
      </ul>
    </>
  )
}

function OfNetwork({ r, onPick }: { r: Resource; onPick?: (s: Span) => void }) {
  const path = `networks/${r.id}/addresses` + query({ limit: most, orderBy: "address", total: true })
  const { data, problem, reload } = useData<Page>(path, signal => get(path, { signal }), ["addresses"])
  if (problem) return <Trouble problem={problem} retry={reload} />
  if (!data) return <Loading what="the occupied space" />
  const parts = new Map<bigint, Resource[]>()
  for (const x of data.data) {
    const at = parseSpan(x.address)!.low / together
    parts.set(at, [...(parts.get(at) ?? []), x])
  }
  return parts.size === 0 ? (
    <Empty title="No addresses in use.">
      {onPick && (
        <button
          onClick={() => onPick({ v6: true, low: parseSpan(r.range)!.low + 1n, high: parseSpan(r.range)!.low + 1n })}
        >
          Assign the first address
        </button>
      )}
    </Empty>
  ) : (
    <>
      <p class="muted small">
        {counted(data.totalCount ?? data.count, "addresses")} in {counted(parts.size, "parts")} of {String(together)};
        the space between them is free.
        {(data.totalCount ?? 0) > data.count && ` Only the first ${number(data.count)} are shown.`}
      </p>
      <ul class="tiles">
        {[...parts].map(([at, list]) => (
          <li key={String(at)} class="tile net wide">
            <strong class="mono">{span({ v6: true, low: at * together, high: at * together + together - 1n })}</strong>{" "}
            <span class="muted num">{number(list.length)}</span>
            <span class="dots">
              {list.slice(0, 64).map(x => (
                <a key={x.id} class="mono small" href={hrefOf(x)} title={x.name ?? ""}>
                  {address(parseSpan(x.address)!.low, true).replace(/^.*:/, ":")}
                </a>
              ))}
              {list.length > 64 && <span class="muted">and {number(list.length - 64)} more</span>}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}
