// Find space: free space for a number of networks or blocks of one size in a block, ranked by the least fragmentation.
import { useEffect, useRef, useState } from "preact/hooks"
import { get, type Resource } from "../api"
import { useData, useResource } from "../data"
import { To } from "../links"
import { Button, Empty, Field, Head, Loading, Trouble } from "../parts/basics"
import { RefInput, faultOf } from "../parts/form"
import { Preview } from "../parts/preview"
import { namesOf } from "../pattern"
import { useMay } from "../rights"
import { go, place, setQuery } from "../router"
import { configuration } from "../session"
import {
  address,
  amount,
  compare,
  gaps,
  parseSpan,
  prefixes,
  prefixLength,
  scattered,
  size,
  span,
  type Span,
} from "../space"
import { childrenOf } from "./space"
import { number } from "../words"

/** A placement of the wanted networks or blocks in one or several gaps. free is the size of these gaps, and leaves the space that remains free. */
interface Option {
  take: { block: Resource; s: Span }[]
  free: bigint
  gap: Span
  leaves: Span[]
}

/** What is created in the free space. */
type What = "networks" | "blocks"

/** The maximum number of blocks that are searched. */
const most = 300

/** Finds gaps in a block and the blocks below it. */
async function look(
  root: Resource,
  count: number,
  length: number,
  signal: AbortSignal,
): Promise<{ options: Option[]; whole: boolean }> {
  const options: Option[] = [],
    open: { block: Resource; gap: Span }[] = [],
    queue = [root]
  let searched = 0,
    whole = true
  for (let block = queue.shift(); block && searched < most; block = queue.shift(), searched++) {
    const s = parseSpan(block.range)!
    const children = await childrenOf("blocks/" + block.id, 1000, signal)
    if (children.more) whole = false
    queue.push(
      ...children.list.filter(
        c => c.type === block!.type && size(parseSpan(c.range)!) >= 1n << BigInt((s.v6 ? 128 : 32) - length),
      ),
    )
    const covered = children.until === undefined ? s : { ...s, high: children.until }
    for (const gap of gaps(
      covered,
      children.list.map(c => parseSpan(c.range)!).filter(c => c.low <= covered.high),
    )) {
      const o = fit(block, gap, count, length)
      if (o) options.push(o)
      open.push({ block, gap })
    }
  }
  if (queue.length) whole = false
  // The best option fragments least: it leaves the fewest addresses in the gaps that it uses.
  const left = (o: Option) => o.leaves.reduce((n, s) => n + size(s), 0n)
  options.sort((a, b) => (left(a) < left(b) ? -1 : left(a) > left(b) ? 1 : compare(a.gap, b.gap)))
  const best = options.slice(0, 12),
    scattered = count > 1 ? scatter(open, count, length) : null
  return { options: scattered ? [...best.slice(0, 11), scattered] : best, whole }
}

/** Places count adjacent prefixes of a length in the smallest sufficient piece of a gap. */
function fit(block: Resource, gap: Span, count: number, length: number): Option | null {
  const each = 1n << BigInt((gap.v6 ? 128 : 32) - length)
  let at = ((gap.low + each - 1n) / each) * each
  const pieces = prefixes(gap)
    .filter(p => size(p) >= each * BigInt(count))
    .sort((a, b) => (size(a) < size(b) ? -1 : 1))
  if (pieces.length) at = pieces[0].low
  if (at + each * BigInt(count) - 1n > gap.high) return null
  const take = Array.from({ length: count }, (_, i) => ({
    v6: gap.v6,
    low: at + each * BigInt(i),
    high: at + each * BigInt(i + 1) - 1n,
  }))
  return { take: take.map(s => ({ block, s })), gap, free: size(gap), leaves: gaps(gap, take).flatMap(prefixes) }
}

/** Places count prefixes of a length in several gaps; null if one gap holds all, or if they do not fit. */
function scatter(open: { block: Resource; gap: Span }[], count: number, length: number): Option | null {
  const take = scattered(
      open.map(o => o.gap),
      count,
      length,
    ),
    used = [...new Set(take?.map(t => t.gap))]
  if (!take || used.length < 2) return null
  return {
    take: take.map(t => ({ block: open[t.gap].block, s: t.s })),
    gap: open[used[0]].gap,
    free: used.reduce((n, g) => n + size(open[g].gap), 0n),
    leaves: used.flatMap(g =>
      gaps(
        open[g].gap,
        take.filter(t => t.gap === g).map(t => t.s),
      ).flatMap(prefixes),
    ),
  }
}

/** Groups the networks of an option by block. */
function byBlock(o: Option): [Resource, Span[]][] {
  const all = new Map<number, [Resource, Span[]]>()
  for (const { block, s } of o.take) {
    const one = all.get(block.id)
    if (one) one[1].push(s)
    else all.set(block.id, [block, [s]])
  }
  return [...all.values()]
}

export function Find() {
  const q = place.value.query,
    inside = q.get("in"),
    what: What = q.get("what") === "blocks" ? "blocks" : "networks",
    count = Math.max(1, Math.min(256, Math.floor(Number(q.get("count"))) || 1)),
    [reserving, setReserving] = useState<Option | null>(null)
  const box = configuration.value,
    was = useRef(box)
  useEffect(() => {
    if (was.current !== box) {
      was.current = box
      setQuery({ in: null })
    }
  }, [box])
  const root = useResource(inside ? "blocks/" + inside : null),
    may = useMay(inside ? "blocks/" + inside : null)
  const s = parseSpan(root.data?.range),
    length = Math.max(1, Math.min(s?.v6 ? 128 : 32, Math.floor(Number(q.get("length"))) || (s?.v6 ? 64 : 26)))
  const key = root.data ? `find ${inside} ${count} ${length}` : null
  const found = useData(key, signal => look(root.data!, count, length, signal))
  const first = useData<Resource[]>(
    !inside && configuration.value ? "first blocks " + configuration.value : null,
    async signal => (await get<any>(`configurations/${configuration.value}/blocks?limit=100`, { signal })).data,
  )
  return (
    <>
      <Head title="Find space" />
      <div class="fields find-form">
        <Field label="Block">
          {id => (
            <RefInput
              attributes={{ id }}
              types={["IPv4Block", "IPv6Block"]}
              value={root.data ?? null}
              set={v => {
                if (!v || v.type.endsWith("Block")) setQuery({ in: v ? String(v.id) : null })
              }}
            />
          )}
        </Field>
        <Field label="Create">
          {id => (
            <select id={id} value={what} onChange={e => setQuery({ what: e.currentTarget.value })}>
              <option value="networks">networks</option>
              <option value="blocks">blocks</option>
            </select>
          )}
        </Field>
        <Field label={"Number of " + what}>
          {id => (
            <input
              id={id}
              type="number"
              min={1}
              max={256}
              value={count}
              onInput={e => setQuery({ count: e.currentTarget.value })}
            />
          )}
        </Field>
        <Field label="Prefix length">
          {id => (
            <select id={id} value={length} onChange={e => setQuery({ length: e.currentTarget.value })}>
              {Array.from({ length: s?.v6 ? 128 : 32 }, (_, i) => i + 1)
                .filter(n => !s || n >= (prefixLength(s) ?? 1))
                .map(n => (
                  <option key={n} value={n}>
                    /{n}
                  </option>
                ))}
            </select>
          )}
        </Field>
      </div>
      {root.data?.configuration && box !== null && root.data.configuration.id !== box && (
        <p class="box bad" role="status">
          {root.data.range} belongs to {root.data.configuration.name}, not to the selected configuration.
        </p>
      )}
      {!inside ? (
        <>
          {first.problem && <Trouble problem={first.problem} retry={first.reload} />}
          {first.data && first.data.length > 0 && (
            <p>
              Start with{" "}
              {first.data.map((b, i) => (
                <span key={b.id}>
                  {i ? ", " : ""}
                  <a href={"/ui/find?in=" + b.id} class="mono">
                    {b.range}
                  </a>
                </span>
              ))}
              .
            </p>
          )}
          <Empty title="Select a block." />
        </>
      ) : root.problem ? (
        <Trouble problem={root.problem} />
      ) : found.problem ? (
        <Trouble problem={found.problem} retry={found.reload} />
      ) : !found.data ? (
        <Loading what="the free space" />
      ) : found.data.options.length === 0 ? (
        <Empty
          title={`${count === 1 ? "No /" + length + " is" : "No " + count + " /" + length + " are"} free in ${root.data?.range}.`}
        >
          Try a longer prefix, fewer {what}, or another block.
        </Empty>
      ) : (
        <>
          <ol class="options">
            {found.data.options.map((o, i) => (
              <li key={i} class="card">
                <div>
                  {byBlock(o).map(([block, list]) => (
                    <div key={block.id}>
                      <strong class="mono">
                        {inRow(list) && list.length > 1
                          ? `${span(list[0])} … ${span(list[list.length - 1])}`
                          : list.slice(0, 6).map(span).join(", ") +
                            (list.length > 6 ? ` and ${list.length - 6} more` : "")}
                      </strong>{" "}
                      <span class="muted">in</span> <To r={block} mono /> {block.name}
                    </div>
                  ))}
                  <p class="muted">
                    {inRow(o.take.map(t => t.s)) ? (
                      <>
                        of {amount(o.free)} free from {address(o.gap.low, o.gap.v6)}
                      </>
                    ) : (
                      <>in several gaps, to keep larger gaps free</>
                    )}
                    ;{" "}
                    {o.leaves.length ? (
                      <>
                        leaves {o.leaves.slice(0, 6).map(span).join(", ")}
                        {o.leaves.length > 6 ? ` and ${o.leaves.length - 6} more` : ""}
                      </>
                    ) : (
                      "fills the gap"
                    )}
                  </p>
                </div>
                {may.add && (
                  <Button primary={i === 0} icon="check" onClick={() => setReserving(o)}>
                    Create
                  </Button>
                )}
              </li>
            ))}
          </ol>
          <p>
            <button class="small" onClick={found.reload}>
              Refresh
            </button>
          </p>
          {!found.data.whole && (
            <p class="muted small">
              The search is incomplete: it covers at most {number(most)} blocks and 1000 networks per block.
            </p>
          )}
        </>
      )}
      {reserving && <Reserve o={reserving} what={what} close={() => setReserving(null)} />}
    </>
  )
}

/** Reports whether each span begins where the previous one ends. */
function inRow(list: Span[]) {
  return list.every((s, i) => i === 0 || s.low === list[i - 1].high + 1n)
}

/** Creates all networks or blocks of an option in one change. */
function Reserve({ o, what, close }: { o: Option; what: What; close: () => void }) {
  const [name, setName] = useState(""),
    [location, setLocation] = useState<Resource | null>(null),
    type = (o.gap.v6 ? "IPv6" : "IPv4") + (what === "blocks" ? "Block" : "Network"),
    names = namesOf(name, o.take.length),
    made = o.take.length === 1 ? span(o.take[0].s) : `${o.take.length} ${what}`
  const changes = o.take.map(({ block, s }, i) => ({
    method: "POST",
    path: `blocks/${block.id}/${what}`,
    body: {
      type,
      range: span(s),
      ...(names.names.length ? { name: names.names[i] } : {}),
      ...(location ? { location: { id: location.id } } : {}),
    },
  }))
  return (
    <Preview
      title={"Create " + made}
      close={close}
      done={() => go("/ui/blocks/" + o.take[0].block.id)}
      wanted={names.fault ? null : { method: "POST", path: "batch", body: { changes }, says: `Created ${made}.` }}
    >
      {problem => (
        <div class="fields">
          <Field
            label={o.take.length > 1 ? "Names" : "Name"}
            hint={
              o.take.length > 1
                ? `A pattern, such as site-[01-${String(o.take.length).padStart(2, "0")}], or a text that gets -1, -2 and so on.`
                : undefined
            }
            wrong={names.fault ?? faultOf(problem, "name")}
          >
            {(id, d) => (
              <input id={id} aria-describedby={d} value={name} onInput={e => setName(e.currentTarget.value)} />
            )}
          </Field>
          <Field label="Location">
            {id => <RefInput attributes={{ id }} value={location} types={["Location"]} set={setLocation} />}
          </Field>
        </div>
      )}
    </Preview>
  )
}
