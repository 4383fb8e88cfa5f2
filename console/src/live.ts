// What changes, as it changes: one stream of the change feed for all tabs of a browser (docs/changes.md). The tab that holds the lock follows, and
// tells the others.
import { signal } from "@preact/signals"
import { base } from "./api"

/** live: the stream is there; stale: it was lost, and what is shown may be old; off: this user may not follow the changes. */
export const state = signal<"live" | "stale" | "off" | "starting">("starting")

interface Told { collections: string[]; ids: number[]; at: number }
type Message = { told: Told } | { state: typeof state.value }

const listeners = new Set<{ collections: string[]; fn: () => void; due?: ReturnType<typeof setTimeout> }>()

/** Calls fn soon after something of these collections has changed; what it returns ends that. An empty list stands for all. */
export function onChanges(collections: string[], fn: () => void): () => void {
  const one = { collections, fn } as { collections: string[]; fn: () => void; due?: ReturnType<typeof setTimeout> }
  listeners.add(one)
  return () => { clearTimeout(one.due); listeners.delete(one) }
}

/** How long changes are gathered before pages read again, in milliseconds. */
const gather = 150

function tell(told: Told) {
  for (const one of listeners) {
    if (one.collections.length && !one.collections.some(c => told.collections.includes(c))) continue
    one.due ??= setTimeout(() => { one.due = undefined; one.fn() }, gather)
  }
}

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("portolan")
let stop: (() => void) | null = null

/** How long nothing may come before the stream counts as lost, in milliseconds; the manager sends something every quarter of a minute. */
const silence = 25_000

function publish(m: Message, own = true) {
  if (typeof m !== "object") return
  if (own) channel?.postMessage(m)
  if ("state" in m) {
    if (state.value === "stale" && m.state === "live") tell({ collections: [...listeners].flatMap(l => l.collections), ids: [], at: Date.now() })
    state.value = m.state
  } else tell(m.told)
}

/** Follows the feed until the promise's signal ends. */
function follow(ended: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    let source: EventSource | null = null, opened = false, refused = 0
    let told: Told = { collections: [], ids: [], at: 0 }
    let watch: ReturnType<typeof setTimeout> | undefined, later: ReturnType<typeof setTimeout> | undefined
    const alive = () => {
      clearTimeout(watch)
      watch = setTimeout(() => publish({ state: "stale" }), silence)
    }
    const open = () => {
      source = new EventSource(base + "changes")
      opened = false
      source.addEventListener("open", () => { opened = true; refused = 0; alive(); publish({ state: "live" }) })
      source.addEventListener("position", alive)
      source.addEventListener("change", e => {
        alive()
        const c = JSON.parse((e as MessageEvent).data)
        told.ids.push(c.resourceId)
        if (!told.collections.includes(c.resourceCollection)) told.collections.push(c.resourceCollection)
      })
      source.addEventListener("transaction", () => {
        alive()
        told.collections.push("transactions")
        publish({ told: { ...told, at: Date.now() } })
        told = { collections: [], ids: [], at: 0 }
      })
      source.addEventListener("error", () => {
        source?.close()
        if (!opened) refused++
        publish({ state: refused > 2 ? "off" : "stale" })
        if (refused <= 2 || state.value === "stale") later = setTimeout(open, Math.min(30_000, 1000 * 2 ** refused))
      })
    }
    open()
    ended.addEventListener("abort", () => { clearTimeout(watch); clearTimeout(later); source?.close(); resolve() })
  })
}

/** Begins to follow; one tab of the browser does. */
export function startLive() {
  stopLive()
  const abort = new AbortController()
  stop = () => abort.abort()
  channel?.addEventListener("message", e => publish(e.data as Message, false), { signal: abort.signal })
  if (navigator.locks && channel) {
    channel.addEventListener("message", e => { if (e.data === "who" && leads) channel.postMessage({ state: state.value }) }, { signal: abort.signal })
    let leads = false
    channel.postMessage("who")
    navigator.locks.request("portolan-live", { signal: abort.signal }, () => { leads = true; return follow(abort.signal) }).catch(() => {})
  } else void follow(abort.signal)
}

export function stopLive() { stop?.(); stop = null; state.value = "starting" }
