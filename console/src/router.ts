// Where the user is: each state of the console has a URL.
import { computed, signal } from "@preact/signals"

export interface Place {
  path: string[]
  query: URLSearchParams
}

/** A part of a path; as it is where it cannot be read. */
function decoded(text: string) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const now = signal(location.pathname + location.search)

/** The place that is shown: the overview has the path [], the documentation of the APIs ["docs"], everything else lies below /ui. */
export const place = computed<Place>(() => {
  const u = new URL(now.value, location.origin)
  return {
    path: u.pathname
      .replace(/^\/api\/docs\/?$/, "/docs")
      .replace(/^\/ui(\/|$)/, "/")
      .split("/")
      .filter(Boolean)
      .map(decoded),
    query: u.searchParams,
  }
})

/** Asked before a page is left; false stays. */
let guard: (() => boolean) | null = null
export function guardLeaving(fn: (() => boolean) | null) {
  guard = fn
}

/** Asks whether what was typed may go. */
export function mayLeave(): boolean {
  if (guard && !guard()) return false
  guard = null
  return true
}

/** Where the page was scrolled to, by the entry of the browser's history. */
const scrolled = new Map<number, number>()
let entry: number = history.state?.entry ?? 0
let entries = entry
const scroller = () => document.getElementById("main")

/** Where the page that is shown was scrolled to when it was left; 0 where it was not seen before. */
export function restored(): number {
  return scrolled.get(entry) ?? (history.state?.entry === entry ? history.state?.scroll : 0) ?? 0
}

/** Says once whether this page was gone to from another one of the console. */
export function arrived(): boolean {
  const was = went
  went = false
  return was
}
let went = false

/** Goes somewhere; replace stays at the same entry of the browser's history, for what is only another state of the page. */
export function go(to: string, replace = false) {
  const before = now.value
  const next = new URL(to, location.origin),
    was = new URL(before, location.origin)
  if ((next.pathname !== was.pathname || next.searchParams.get("tab") !== was.searchParams.get("tab")) && !mayLeave())
    return
  if (replace) history.replaceState({ entry }, "", to)
  else {
    scrolled.set(entry, scroller()?.scrollTop ?? 0)
    entry = ++entries
    history.pushState({ entry }, "", to)
  }
  now.value = location.pathname + location.search
  if (!replace && before.split("?")[0] !== now.value.split("?")[0]) {
    went = true
    scroller()?.scrollTo(0, 0)
  }
}

/** Changes a part of the query, at the same entry. */
export function setQuery(changes: Record<string, string | null>) {
  const u = new URL(now.value, location.origin)
  for (const [name, value] of Object.entries(changes))
    value === null || value === "" ? u.searchParams.delete(name) : u.searchParams.set(name, value)
  go(u.pathname + u.search, !("tab" in changes)) // another tab is another place, which Back leaves
}

/** Follows the browser's buttons, and links of the console. */
export function startRouter() {
  history.scrollRestoration = "manual"
  // A page that is loaded again comes back to its place: what is noted as the page goes is not kept by all browsers.
  let due: ReturnType<typeof setTimeout> | undefined
  addEventListener(
    "scroll",
    e => {
      if (e.target !== scroller()) return
      clearTimeout(due)
      due = setTimeout(() => history.replaceState({ entry, scroll: scroller()?.scrollTop ?? 0 }, ""), 200)
    },
    { capture: true, passive: true },
  )
  addEventListener("beforeunload", e => {
    if (guard) e.preventDefault()
  })
  addEventListener("popstate", e => {
    if (location.pathname !== now.value.split("?")[0] && !mayLeave()) {
      history.pushState({ entry }, "", now.value)
      return
    }
    scrolled.set(entry, scroller()?.scrollTop ?? 0)
    entry = e.state?.entry ?? 0
    now.value = location.pathname + location.search
  })
  document.addEventListener("click", e => {
    const a = (e.target as Element).closest?.("a[href]") as HTMLAnchorElement | null
    if (
      !a ||
      e.defaultPrevented ||
      e.button !== 0 ||
      e.metaKey ||
      e.ctrlKey ||
      e.shiftKey ||
      e.altKey ||
      a.target ||
      a.origin !== location.origin
    )
      return
    if (a.pathname !== "/" && a.pathname !== "/ui" && a.pathname !== "/api/docs" && !a.pathname.startsWith("/ui/"))
      return
    if (a.hasAttribute("download")) return
    e.preventDefault()
    go(a.pathname + a.search)
  })
}
