// What changes, as it changes: one stream of the change feed for all tabs of a browser (docs/changes.md). The tab that holds the lock follows, and
// tells the others.
import { signal } from "@preact/signals"
import { base, signedOut } from "./api"

/** live: the stream is there; stale: it was lost, and what is shown may be old; off: this user may not follow the changes. */
export const state = signal<"live" | "stale" | "off" | "starting">("starting")

/** What is sent from tab to tab: which collections have something new (empty: any may have), or how the stream is. */
type Message = { collections: string[] } | { state: typeof state.value } | { who: true }

interface Listener {
  collections: string[]
  fn: () => void
  gather: number
  due?: ReturnType<typeof setTimeout>
}
const listeners = new Set<Listener>()

/** How long changes are gathered before pages read again, in milliseconds. */
const soon = 150

/** Calls fn soon after something of these collections has changed; what it returns ends that. */
export function onChanges(collections: string[], fn: () => void, gather = soon): () => void {
  const one: Listener = { collections, fn, gather }
  listeners.add(one)
  return () => {
    clearTimeout(one.due)
    listeners.delete(one)
  }
}

function tell(collections: string[]) {
  for (const one of listeners) {
    if (collections.length && !one.collections.some(c => collections.includes(c))) continue
    one.due ??= setTimeout(() => {
      one.due = undefined
      one.fn()
    }, one.gather)
  }
}

/** Says that this tab has changed something, by its path: who may not follow the feed sees the own changes at once. */
export function changedHere(path: string) {
  tell(
    path === "batch" || path === "transactions"
      ? []
      : path
          .split("/")
          .filter(s => /^[a-z]/i.test(s))
          .concat("transactions"),
  )
}

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("portolan")
let stop: (() => void) | null = null

function take(m: Message) {
  if ("collections" in m) tell(m.collections)
  else if ("state" in m) {
    if (state.value === "stale" && m.state === "live") tell([]) // nobody told what came meanwhile
    state.value = m.state
  }
}

function publish(m: Message) {
  channel?.postMessage(m)
  take(m)
}

/** After so much silence the manager is asked whether it is there, and has as long to answer, in milliseconds: what is lost shows within ten seconds. */
const pulse = 4000

/** Follows the feed until the signal ends. */
function follow(ended: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    let source: EventSource | null = null,
      told: string[] = [],
      heard = 0,
      failures = 0,
      later: ReturnType<typeof setTimeout> | undefined
    const alive = () => {
      heard = Date.now()
      if (state.value !== "live" && source?.readyState === EventSource.OPEN) publish({ state: "live" })
    }
    const lost = () => {
      source?.close()
      source = null
      if (state.value !== "stale") publish({ state: "stale" })
      clearTimeout(later)
      later = setTimeout(open, Math.min(8000, 500 * 2 ** failures++))
    }
    /** Why the feed was refused, which an EventSource does not tell. */
    const ask = async () => {
      const abort = new AbortController()
      try {
        const r = await fetch(base + "changes", { signal: AbortSignal.any([abort.signal, ended]) })
        abort.abort()
        if (r.status === 401) signedOut()
        else if (r.status === 403) publish({ state: "off" })
        else lost()
      } catch {
        if (!ended.aborted) lost()
      }
    }
    const open = () => {
      if (ended.aborted) return
      const s = (source = new EventSource(base + "changes"))
      let opened = false
      s.addEventListener("open", () => {
        opened = true
        failures = 0
        alive()
      })
      s.addEventListener("position", alive)
      s.addEventListener("change", e => {
        alive()
        const c = JSON.parse((e as MessageEvent).data).resourceCollection
        if (!told.includes(c)) told.push(c)
      })
      s.addEventListener("transaction", () => {
        alive()
        publish({ collections: [...told, "transactions"] })
        told = []
      })
      s.addEventListener("error", e => {
        s.close()
        if (s !== source) return
        source = null
        const status = e instanceof MessageEvent ? JSON.parse(e.data).status : 0
        if (status === 401) signedOut()
        else if (status === 403) publish({ state: "off" })
        else if (opened) lost()
        else void ask()
      })
    }
    const watch = setInterval(() => {
      if (!source || Date.now() - heard < pulse) return
      fetch("/healthz", { signal: AbortSignal.any([AbortSignal.timeout(pulse), ended]) })
        .then(r => {
          if (r.ok) heard = Date.now() - pulse / 2
          else throw r.status
        })
        .catch(() => {
          if (!ended.aborted) lost()
        })
    }, pulse / 4)
    open()
    ended.addEventListener("abort", () => {
      clearInterval(watch)
      clearTimeout(later)
      source?.close()
      resolve()
    })
  })
}

/** Begins to follow; one tab of the browser does. */
export function startLive() {
  stopLive()
  const abort = new AbortController(),
    ended = abort.signal
  stop = () => abort.abort()
  if (!navigator.locks || !channel) {
    void follow(ended)
    return
  }
  let leads = false
  channel.addEventListener(
    "message",
    e => {
      const m = e.data as Message
      if (!("who" in m)) take(m)
      else if (leads) channel.postMessage({ state: state.value })
    },
    { signal: ended },
  )
  channel.postMessage({ who: true })
  navigator.locks
    .request("portolan-live", { signal: ended }, () => {
      leads = true
      return follow(ended)
    })
    .catch(() => {})
}

export function stopLive() {
  stop?.()
  stop = null
  state.value = "starting"
}
