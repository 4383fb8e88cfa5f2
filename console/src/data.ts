// Data of the pages. A page reads it on demand, keeps it while it is shown, and reads it again after a change.
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { get, query, Refusal, unattended, type Page, type Problem, type Resource } from "./api"
import { onChanges } from "./live"
import { place } from "./router"

/** Called with the configuration of the resource that a page shows. */
let follow = (_configuration: number) => {}
export function onPage(fn: (configuration: number) => void) {
  follow = fn
}

export interface Loaded<T> {
  data?: T
  problem?: Problem
  loading: boolean
  reload: () => void
}

/** Returns a thrown value as a problem. */
export function problemOf(e: unknown): Problem {
  return e instanceof Refusal ? e.problem : { status: 0, code: "Fault", message: String((e as Error)?.message ?? e) }
}

/**
 * Reads the data of a key, and reads it again when one of these collections changes. The previous data stays until the new data arrives.
 * A key of null reads nothing.
 */
export function useData<T>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<T>,
  collections: string[] = [],
): Loaded<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; problem?: Problem; loading: boolean }>({
    key: null,
    loading: key !== null,
  })
  const [turn, setTurn] = useState(0)
  const reload = useCallback(() => setTurn(n => n + 1), [])
  useEffect(() => {
    if (key === null) return
    const abort = new AbortController()
    if (turn > 0) unattended.add(abort.signal)
    setState(s => ({
      ...s,
      data: s.key === key ? s.data : undefined,
      problem: s.key === key ? s.problem : undefined,
      key,
      loading: true,
    }))
    read(abort.signal).then(
      data => abort.signal.aborted || setState({ key, data, loading: false }),
      e =>
        abort.signal.aborted ||
        setState(s => ({ key, data: s.key === key ? s.data : undefined, problem: problemOf(e), loading: false })),
    )
    return () => abort.abort()
  }, [key, turn])
  const watched = collections.join(",")
  useEffect(() => (key === null || !watched ? undefined : onChanges(watched.split(","), reload)), [key, watched])
  const current = state.key === key
  return {
    data: current ? state.data : undefined,
    problem: current ? state.problem : undefined,
    loading: key !== null && (!current || state.loading),
    reload,
  }
}

/** One resource, by its path below the API. */
export function useResource<T = Resource>(path: string | null, collections?: string[]): Loaded<T> {
  const loaded = useData<T>(path, s => get<T>(path!, { signal: s }), collections ?? (path ? [path.split("/")[0]] : []))
  const of = (loaded.data as any)?.configuration?.id,
    page = path === place.value.path.slice(0, 2).join("/")
  useEffect(() => {
    if (of && page) follow(of)
  }, [of, page])
  return loaded
}

/** A list that reads its rows by pages, as they scroll into view. */
export interface Rows<T> {
  /** The number of rows; undefined until it is known. */
  total?: number
  /** Returns the row at an index; undefined until it is loaded. */
  at: (i: number) => T | undefined
  problem?: Problem
  reload: () => void
  /** The path and the parameters of the list. */
  path: string | null
  parameters: Record<string, string | undefined>
  /** Loads the first rows, up to a number. */
  load: (count: number) => Promise<void>
  /** Reads count rows from an index on, without drawing them. */
  read: (from: number, count: number) => Promise<T[]>
}

const pageSize = 200

/** The number of rows in a page that is read for a selection. */
const readSize = 1000

/** Reads the rows of a collection or subcollection in the requested order. Each page is read once, when it scrolls into view. */
export function useRows<T = Resource>(
  path: string | null,
  parameters: Record<string, string | undefined>,
  collections: string[],
): Rows<T> {
  const key = path === null ? null : path + query(parameters)
  const [, setDrawn] = useState(0)
  const held = useRef<{
    key: string | null
    total?: number
    problem?: Problem
    pages: Map<number, T[] | "coming">
    abort: AbortController
  }>({ key: null, pages: new Map(), abort: new AbortController() })
  const begin = (keep: boolean) => {
    held.current.abort.abort()
    const before = held.current
    held.current = { key, total: keep ? before.total : undefined, pages: new Map(), abort: new AbortController() }
    if (keep) for (const [n, page] of before.pages) if (page !== "coming") stale.current.set(n, page as T[])
    if (!keep) stale.current.clear()
  }
  const stale = useRef(new Map<number, T[]>())
  if (held.current.key !== key) begin(false)
  const load = (n: number) => {
    const h = held.current
    if (h.key === null || h.pages.has(n)) return
    h.pages.set(n, "coming")
    get<Page<T>>(
      path! +
        query({
          ...parameters,
          limit: pageSize,
          offset: n * pageSize || undefined,
          total: n === 0 || h.total === undefined ? true : undefined,
        }),
      { signal: h.abort.signal, quiet: n > 0 },
    ).then(
      page => {
        h.pages.set(n, page.data)
        stale.current.delete(n)
        if (page.totalCount !== undefined) h.total = page.totalCount
        if (h === held.current) setDrawn(x => x + 1)
      },
      e => {
        if (h.abort.signal.aborted) return
        h.problem = problemOf(e)
        if (h === held.current) setDrawn(x => x + 1)
      },
    )
  }
  const reload = useCallback(() => {
    begin(true)
    unattended.add(held.current.abort.signal)
    load(0)
    setDrawn(x => x + 1)
  }, [key])
  useEffect(() => {
    const own = held.current.abort
    load(0)
    return () => own.abort()
  }, [key])
  useEffect(() => () => held.current.abort.abort(), [])
  useEffect(() => (key === null ? undefined : onChanges(collections, reload)), [key, reload])
  return {
    total: held.current.total,
    problem: held.current.problem,
    reload,
    path,
    parameters,
    load: async count => {
      const h = held.current
      for (let n = 0; n * pageSize < count; n++)
        if (!Array.isArray(h.pages.get(n)))
          h.pages.set(
            n,
            (
              await get<Page<T>>(path! + query({ ...parameters, limit: pageSize, offset: n * pageSize || undefined }), {
                signal: h.abort.signal,
                quiet: true,
              })
            ).data,
          )
      setDrawn(x => x + 1)
    },
    read: async (from, count) => {
      const list: T[] = []
      while (list.length < count) {
        const limit = Math.min(readSize, count - list.length),
          page = await get<Page<T>>(path! + query({ ...parameters, limit, offset: from + list.length || undefined }), {
            quiet: true,
          })
        list.push(...page.data)
        if (page.data.length < limit) break
      }
      return list
    },
    at: i => {
      const n = Math.floor(i / pageSize),
        page = held.current.pages.get(n)
      if (page === undefined) queueMicrotask(() => load(n))
      return (page === undefined || page === "coming" ? stale.current.get(n) : (page as T[]))?.[i - n * pageSize]
    },
  }
}

/** Calls fn regularly while the page is visible. */
export function useEvery(ms: number, fn: () => void) {
  useEffect(() => {
    const t = setInterval(() => {
      if (!document.hidden) fn()
    }, ms)
    return () => clearInterval(t)
  }, [ms, fn])
}

/** Reports whether a deployment or another operation has not ended. */
export function inProgress(state: unknown): boolean {
  return ["PENDING", "QUEUED", "RUNNING"].includes(String(state))
}

/** Polls while the page is visible. The change feed does not report states of the fleet. */
export function usePolled<T>(
  key: string,
  read: (signal: AbortSignal) => Promise<T>,
  every: number,
): { data?: T; problem?: Problem; reload: () => void } {
  const [state, setState] = useState<{ key: string; data?: T; problem?: Problem }>({ key }),
    now = useRef(() => {})
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined,
      abort = new AbortController(),
      asked = false
    const ask = () => {
      clearTimeout(timer)
      abort.abort()
      const own = (abort = new AbortController())
      if (asked) unattended.add(own.signal)
      asked = true
      read(own.signal)
        .then(
          data => setState({ key, data }),
          e => {
            if (!own.signal.aborted)
              setState(s => ({ key, data: s.key === key ? s.data : undefined, problem: problemOf(e) }))
          },
        )
        .finally(() => {
          if (!own.signal.aborted) timer = setTimeout(again, every)
        })
    }
    const again = () => {
      if (document.hidden) timer = setTimeout(again, every)
      else ask()
    }
    now.current = ask
    ask()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [key])
  return { ...(state.key === key ? { data: state.data, problem: state.problem } : {}), reload: () => now.current() }
}

/** Reads the latest entries for the overview. */
export function useLast(path: string, parameters: Record<string, string | number>, collections: string[]) {
  return useData<Page>(path + query(parameters), s => get<Page>(path + query(parameters), { signal: s }), collections)
}
