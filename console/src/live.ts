// The change feed: one stream for all tabs of a browser (docs/changes.md). The tab that holds the lock reads the stream and forwards
// the changes to the other tabs.
import { signal } from "@preact/signals"
import { base, currentSignIn, signedOut } from "./api"

/** live: connected; stale: the connection is lost and pages may be out of date; off: this user may not follow the changes. */
export const state = signal<"live" | "stale" | "off" | "starting">("starting")

/** A message between tabs: the collections with changes (empty: any collection), or the state of the stream. */
type Message = { collections: string[] } | { state: typeof state.value } | { who: true }

interface Listener {
  collections: string[]
  fn: () => void
  delay: number
  timer?: ReturnType<typeof setTimeout>
}
const listeners = new Set<Listener>()

/** How long changes are collected before pages reload their data, in milliseconds. */
const soon = 150

/** Calls fn shortly after a change in one of these collections. The returned function unsubscribes. */
export function onChanges(collections: string[], fn: () => void, delay = soon): () => void {
  const one: Listener = { collections, fn, delay }
  listeners.add(one)
  return () => {
    clearTimeout(one.timer)
    listeners.delete(one)
  }
}

function notify(collections: string[]) {
  for (const one of listeners) {
    if (collections.length && !one.collections.some(c => collections.includes(c))) continue
    one.timer ??= setTimeout(() => {
      one.timer = undefined
      one.fn()
    }, one.delay)
  }
}

/** Announces a change that this tab made, by its path. Users who may not follow the feed see their own changes at once. */
export function changedHere(path: string) {
  notify(
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
  if ("collections" in m) notify(m.collections)
  else if ("state" in m) {
    if (state.value === "stale" && m.state === "live") notify([]) // changes during the outage were not received
    state.value = m.state
  }
}

function publish(m: Message) {
  channel?.postMessage(m)
  take(m)
}

/** The silence in milliseconds after which the manager is probed, and its time to answer. A lost connection shows within ten seconds. */
const maxSilence = 4000

/** Reads the feed until the signal aborts. */
function follow(ended: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    let source: EventSource | null = null,
      collected: string[] = [],
      lastSeen = 0,
      failures = 0,
      retry: ReturnType<typeof setTimeout> | undefined
    const alive = () => {
      lastSeen = Date.now()
      if (state.value !== "live" && source?.readyState === EventSource.OPEN) publish({ state: "live" })
    }
    const lost = () => {
      source?.close()
      source = null
      if (state.value !== "stale") publish({ state: "stale" })
      clearTimeout(retry)
      retry = setTimeout(open, Math.min(8000, 500 * 2 ** failures++))
    }
    /** Finds out why the feed was refused. An EventSource does not report it. */
    const ask = async () => {
      const abort = new AbortController(),
        of = currentSignIn()
      try {
        const r = await fetch(base + "changes", { signal: AbortSignal.any([abort.signal, ended]) })
        abort.abort()
        if (r.status === 401) signedOut(of)
        else if (r.status === 403) publish({ state: "off" })
        else lost()
      } catch {
        if (!ended.aborted) lost()
      }
    }
    const open = () => {
      if (ended.aborted) return
      const s = (source = new EventSource(base + "changes")),
        of = currentSignIn()
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
        if (!collected.includes(c)) collected.push(c)
      })
      s.addEventListener("transaction", () => {
        alive()
        publish({ collections: [...collected, "transactions"] })
        collected = []
      })
      s.addEventListener("error", e => {
        s.close()
        if (s !== source) return
        source = null
        const status = e instanceof MessageEvent ? JSON.parse(e.data).status : 0
        if (status === 401) signedOut(of)
        else if (status === 403) publish({ state: "off" })
        else if (opened) lost()
        else void ask()
      })
    }
    const watch = setInterval(() => {
      if (!source || Date.now() - lastSeen < maxSilence) return
      fetch("/healthz", { signal: AbortSignal.any([AbortSignal.timeout(maxSilence), ended]) })
        .then(r => {
          if (r.ok) lastSeen = Date.now() - maxSilence / 2
          else throw r.status
        })
        .catch(() => {
          if (!ended.aborted) lost()
        })
    }, maxSilence / 4)
    open()
    ended.addEventListener("abort", () => {
      clearInterval(watch)
      clearTimeout(retry)
      source?.close()
      resolve()
    })
  })
}

/** Starts to follow the changes. One tab of the browser reads the stream. */
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
