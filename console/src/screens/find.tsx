// Finding space: so many networks of a size in a block, ranked by how little they break up.
import { useState } from "preact/hooks"
import { get, type Resource } from "../api"
import { useData, useResource } from "../data"
import { To } from "../links"
import { Button, Empty, Field, Head, Loading, number, Trouble } from "../parts/basics"
import { RefInput } from "../parts/form"
import { Preview } from "../parts/preview"
import { go, place, setQuery } from "../router"
import { configuration } from "../session"
import { address, amount, compare, gaps, parseSpan, prefixes, prefixLength, size, span, type Span } from "../space"
import { childrenOf } from "./space"

/** A gap in a block, and where in it the wanted networks would lie. */
interface Option { block: Resource; gap: Span; take: Span[]; leaves: Span[] }

/** How many blocks are looked into. */
const most = 300

/** Looks for gaps in a block and the blocks below it. */
async function look(root: Resource, count: number, length: number, signal: AbortSignal): Promise<{ options: Option[]; whole: boolean }> {
  const options: Option[] = [], queue = [root]
  let seen = 0, whole = true
  for (let block = queue.shift(); block && seen < most; block = queue.shift(), seen++) {
    const s = parseSpan(block.range)!
    const children = await childrenOf("blocks/" + block.id, 1000, signal)
    if (children.more) whole = false
    queue.push(...children.list.filter(c => c.type === block!.type && size(parseSpan(c.range)!) >= 1n << BigInt((s.v6 ? 128 : 32) - length)))
    if (!children.more) for (const gap of gaps(s, children.list.map(c => parseSpan(c.range)!))) {
      const o = fit(block, gap, count, length)
      if (o) options.push(o)
    }
  }
  if (queue.length) whole = false
  // The best breaks up least: the fewest addresses left in the pieces that it takes from.
  const left = (o: Option) => o.leaves.reduce((n, s) => n + size(s), 0n)
  options.sort((a, b) => left(a) < left(b) ? -1 : left(a) > left(b) ? 1 : compare(a.gap, b.gap))
  return { options: options.slice(0, 12), whole }
}

/** Where in a gap so many prefixes of a length lie together: in its smallest pieces that are large enough. */
function fit(block: Resource, gap: Span, count: number, length: number): Option | null {
  const each = 1n << BigInt((gap.v6 ? 128 : 32) - length)
  let at = (gap.low + each - 1n) / each * each
  const pieces = prefixes(gap).filter(p => size(p) >= each * BigInt(count)).sort((a, b) => size(a) < size(b) ? -1 : 1)
  if (pieces.length) at = pieces[0].low
  if (at + each * BigInt(count) - 1n > gap.high) return null
  const take = Array.from({ length: count }, (_, i) => ({ v6: gap.v6, low: at + each * BigInt(i), high: at + each * BigInt(i + 1) - 1n }))
  return { block, gap, take, leaves: gaps(gap, take).flatMap(prefixes) }
}

export function Find() {
  const q = place.value.query, inside = q.get("in"), count = Math.max(1, Math.min(256, Number(q.get("count")) || 1)), [reserving, reserve] = useState<Option | null>(null)
  const root = useResource(inside ? "blocks/" + inside : null)
  const s = parseSpan(root.data?.range), length = Number(q.get("length")) || (s?.v6 ? 64 : 26)
  const key = root.data ? `find ${inside} ${count} ${length}` : null
  const found = useData(key, signal => look(root.data!, count, length, signal))
  const first = useData<Resource[]>(!inside && configuration.value ? "first blocks " + configuration.value : null, async signal => (await get<any>(`configurations/${configuration.value}/blocks?limit=100`, { signal })).data)
  return <>
    <Head title="Find space" />
    <div class="fields find-form">
      <Field label="In the block">{id => <RefInput attributes={{ id }} value={root.data ?? null} set={v => { if (!v || v.type.endsWith("Block")) setQuery({ in: v ? String(v.id) : null }) }} />}</Field>
      <Field label="How many">{id => <input id={id} type="number" min={1} max={256} value={count} onInput={e => setQuery({ count: e.currentTarget.value })} />}</Field>
      <Field label="Of the size">{id => <select id={id} value={length} onChange={e => setQuery({ length: e.currentTarget.value })}>{Array.from({ length: s?.v6 ? 128 : 32 }, (_, i) => i + 1).filter(n => !s || n >= (prefixLength(s) ?? 1)).map(n => <option key={n} value={n}>/{n}</option>)}</select>}</Field>
    </div>
    {!inside ? <>{first.data && first.data.length > 0 && <p>Begin with {first.data.map((b, i) => <span key={b.id}>{i ? ", " : ""}<a href={"/ui/find?in=" + b.id} class="mono">{b.range}</a></span>)}.</p>}<Empty title="Which block shall it come from?" /></> :
      root.problem ? <Trouble problem={root.problem} /> : found.problem ? <Trouble problem={found.problem} retry={found.reload} /> : !found.data ? <Loading what="what is free" /> : found.data.options.length === 0
        ? <Empty title={`${count === 1 ? "No /" + length : "No " + count + " /" + length + " in a row"} are free in ${root.data?.range}.`}>Try a smaller size, fewer of them, or another block.</Empty> : <>
          <ol class="options">{found.data.options.map((o, i) => <li key={i} class="card">
            <div><strong class="mono">{span(o.take[0])}{o.take.length > 1 ? ` … ${span(o.take[o.take.length - 1])}` : ""}</strong> <span class="muted">in</span> <To r={o.block} mono /> {o.block.name}
              <p class="muted">of {amount(size(o.gap))} free from {address(o.gap.low, o.gap.v6)}; {o.leaves.length ? <>leaves {o.leaves.slice(0, 6).map(span).join(", ")}{o.leaves.length > 6 ? ` and ${o.leaves.length - 6} more` : ""}</> : "fills it"}</p></div>
            <span class="grow" /><Button primary={i === 0} icon="check" onClick={() => reserve(o)}>Take {o.take.length === 1 ? "it" : "these"}</Button></li>)}</ol>
          <p><button class="small" onClick={found.reload}>Look again</button></p>
          {!found.data.whole && <p class="muted small">Not all was looked at: at most {number(most)} blocks, and those with up to 1000 networks.</p>}
        </>}
    {reserving && <Reserve o={reserving} close={() => reserve(null)} />}
  </>
}

/** All of them in one change. */
function Reserve({ o, close }: { o: Option; close: () => void }) {
  const [name, call] = useState(""), v = o.gap.v6 ? "IPv6" : "IPv4"
  const changes = o.take.map((s, i) => ({ method: "POST", path: `blocks/${o.block.id}/networks`, body: { type: v + "Network", range: span(s), ...(name ? { name: o.take.length > 1 ? (name.includes("#") ? name.replace("#", String(i + 1)) : `${name} ${i + 1}`) : name } : {}) } }))
  return <Preview title={`Take ${o.take.length === 1 ? span(o.take[0]) : o.take.length + " networks"}`} close={close} unstaged done={() => go("/ui/blocks/" + o.block.id)}
    wanted={{ method: "POST", path: "batch", body: { changes }, says: `${o.take.length === 1 ? span(o.take[0]) + " is" : o.take.length + " networks are"} made.` }}>
    {() => <Field label="Name" hint={o.take.length > 1 ? "A # stands for the number of each." : undefined}>{(id, d) => <input id={id} aria-describedby={d} value={name} onInput={e => call(e.currentTarget.value)} />}</Field>}
  </Preview>
}
