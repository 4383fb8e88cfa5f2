// The router: each state of the console has a URL.
import { computed, signal } from "@preact/signals"

export interface Place {
  path: string[]
  query: URLSearchParams
}

/** Decodes a part of a path; returns it unchanged if it is not valid. */
function decoded(text: string) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const now = signal(location.pathname + location.search)

/** The current place. The overview has the path [], the API documentation ["docs"], and all others are below /ui. */
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

/** Called before the user leaves a page; false cancels the navigation. */
let guard: (() => boolean) | null = null
export function guardLeaving(fn: (() => boolean) | null) {
  guard = fn
}

/** Reports whether unsaved input may be discarded. */
export function mayLeave(): boolean {
  if (guard && !guard()) return false
  guard = null
  return true
}

/** Scroll positions by the entry of the browser's history. */
const scrolled = new Map<number, number>()
let entry: number = history.state?.entry ?? 0
let entries = entry
const scroller = () => document.getElementById("main")

/** Returns the last scroll position of the current page; 0 on the first visit. */
export function restored(): number {
  return scrolled.get(entry) ?? (history.state?.entry === entry ? history.state?.scroll : 0) ?? 0
}

/** Reports once whether the user came to this page from another page of the console. */
export function arrived(): boolean {
  const was = went
  went = false
  return was
}
let went = false

/** Navigates to a URL. replace keeps the entry of the browser's history, for another state of the same page. */
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

/** Changes parts of the query and keeps the history entry. */
export function setQuery(changes: Record<string, string | null>) {
  const u = new URL(now.value, location.origin)
  for (const [name, value] of Object.entries(changes))
    value === null || value === "" ? u.searchParams.delete(name) : u.searchParams.set(name, value)
  go(u.pathname + u.search, !("tab" in changes)) // a tab gets its own history entry, so that Back returns to the previous tab
}

/** Handles the browser's buttons and the links of the console. */
export function startRouter() {
  history.scrollRestoration = "manual"
  // A reloaded page restores its scroll position. Not all browsers keep data that is stored while a page unloads.
  let timer: ReturnType<typeof setTimeout> | undefined
  addEventListener(
    "scroll",
    e => {
      if (e.target !== scroller()) return
      clearTimeout(timer)
      timer = setTimeout(() => history.replaceState({ entry, scroll: scroller()?.scrollTop ?? 0 }, ""), 200)
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
