// The API client: every request of the console to the manager.
import { signal } from "@preact/signals"

/** A reference to another resource. */
export interface Ref {
  id: number
  type: string
  name: string | null
  range?: string | null
  address?: string | null
  absoluteName?: string | null
  _links?: Links
}

export type Links = Record<string, { href: string }>

/** A resource with the fields of its type. */
export interface Resource extends Ref {
  [field: string]: any
}

/** A page of a list. */
export interface Page<T = Resource> {
  count: number
  totalCount?: number
  data: T[]
  _links?: Links
}

/** The error body of a refused request. */
export interface Problem {
  status: number
  reason?: string
  code: string
  message: string
  fields?: string[]
}

export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message)
  }
}

/** A response: body, entity tag, the ignored parts of the request, and the number of the transaction that an undo needs. */
export interface Answer<T> {
  body: T
  status: number
  etag: string | null
  ignored: string | null
  transaction: number | null
}

/** A request as "Show as curl" lists it. */
export interface Call {
  page?: string
  method: string
  path: string
  body?: string
  type?: string
  headers: Record<string, string>
}

/** The last requests, the newest first, without secrets. */
export const calls = signal<Call[]>([])
const maxCalls = 30

/** The number of sign-ins of this page. */
let signIns = 0
export const currentSignIn = () => signIns
export const countSignIn = () => void signIns++

/** Ends the session of the page. */
let ended: () => void = () => {}

/**
 * Handles the answer 401 to a request that was sent at a number of sign-ins. It ends the session of the page, unless the page has signed in
 * since: a change of the own password ends the session, and the page signs in again.
 */
export function signedOut(of: number) {
  if (of === signIns) ended()
}
export function onSignedOut(fn: () => void) {
  ended = fn
}

/** The base of the address API. */
export const base = "/api/v2/"

/** Returns the URL of a path. Paths of the address API omit its base; all other paths begin with a slash. */
export function url(path: string) {
  return path.startsWith("/") ? path : base + path
}

/** The signals of requests that pages send on their own after a change. These requests do not extend the session. */
export const unattended = new WeakSet<AbortSignal>()

/** Matches the names of secret members of a body. */
export const isSecret = (name: string) =>
  /password|secret|privatekey|servicekey|passphrase|signincode|communit(y|ies)|keystore|pkcs12|^token$/i.test(name)

/** Returns a body without its secrets. */
function without(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), (name, value) =>
      isSecret(name) && value && typeof value !== "boolean" ? "…" : value,
    )
  } catch {
    return body
  }
}

export interface Options {
  headers?: Record<string, string>
  type?: string
  quiet?: boolean
  signal?: AbortSignal
  /** The comment of several changes: set by the first one for which the user enters it. */
  comment?: { text?: string }
  /** The dry run has shown that the change cannot be undone. */
  irreversible?: boolean
}

/** The header with the comment of a change. */
export const commentHeader = "x-bcn-change-control-comment"

/** Asks the user for the comment of a change; null if the user does not enter one. */
let askComment: () => Promise<string | null> = async () => null
export function onMissingComment(fn: () => Promise<string | null>) {
  askComment = fn
}

/**
 * Sends a request and throws a Refusal when the manager refuses it. A body is sent as JSON unless it is a string or a form. If comments are
 * mandatory, a change without one is sent again with the comment that the user enters.
 */
export async function call<T = any>(method: string, path: string, body?: unknown, o: Options = {}): Promise<Answer<T>> {
  if (o.comment?.text) o = { ...o, headers: { ...o.headers, [commentHeader]: o.comment.text } }
  try {
    return await send<T>(method, path, body, o)
  } catch (e) {
    if (!(e instanceof Refusal) || e.problem.code !== "MissingMandatoryChangeControlComment") throw e
    const comment = await askComment()
    if (!comment) throw e
    if (o.comment) o.comment.text = comment
    return send<T>(method, path, body, { ...o, headers: { ...o.headers, [commentHeader]: comment } })
  }
}

async function send<T>(method: string, path: string, body: unknown, o: Options): Promise<Answer<T>> {
  const headers: Record<string, string> = { Accept: "application/hal+json, application/json", ...o.headers }
  let sent: string | undefined
  if (body !== undefined && !(body instanceof FormData)) {
    sent = typeof body === "string" ? body : JSON.stringify(body)
    headers["Content-Type"] = o.type ?? (method === "PATCH" ? "application/merge-patch+json" : "application/json")
  }
  if (o.signal && unattended.has(o.signal)) headers["x-portolan-unattended"] = "true"
  else if (!o.quiet)
    calls.value = [
      {
        page: location.pathname,
        method,
        path: url(path),
        body: sent && without(sent),
        type: headers["Content-Type"],
        headers: o.headers ?? {},
      },
      ...calls.value,
    ].slice(0, maxCalls)
  let r: Response
  const of = currentSignIn()
  try {
    r = await fetch(url(path), {
      method,
      headers,
      body: body instanceof FormData ? body : sent,
      credentials: "same-origin",
      signal: o.signal,
    })
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e
    throw new Refusal({
      status: 0,
      code: "NoAnswer",
      message: "The manager does not answer. Check that it is running and that the network reaches it.",
    })
  }
  const text = await r.text()
  let parsed: any = text
  if ((r.headers.get("Content-Type") ?? "").includes("json")) {
    try {
      parsed = JSON.parse(text)
    } catch {
      parsed = null
    }
  }
  if (!r.ok) {
    const p: Problem =
      parsed && typeof parsed === "object"
        ? { ...parsed, status: r.status }
        : { status: r.status, code: "NoAnswer", message: text || r.statusText }
    if (r.status === 401 && path !== "sessions") signedOut(of)
    throw new Refusal(p)
  }
  return {
    body: parsed as T,
    status: r.status,
    etag: r.headers.get("ETag"),
    ignored: r.headers.get("x-portolan-ignored"),
    transaction: Number(r.headers.get("x-portolan-transaction")) || null,
  }
}

export async function get<T = Resource>(path: string, o?: Options): Promise<T> {
  return (await call<T>("GET", path, undefined, o)).body
}

/** Returns a query string without undefined and empty values. */
export function query(parameters: Record<string, string | number | boolean | undefined | null>): string {
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== null && value !== "") q.set(name, String(value))
  const text = q.toString()
  return text ? "?" + text : ""
}

/** Returns a string as a literal of the filter grammar. */
export function literal(text: string) {
  return "'" + text.replace(/[\\']/g, "\\$&") + "'"
}

/** Returns the path of a resource below the base, from its link or its collection and id. */
export function pathOf(r: Ref): string {
  const href = r._links?.self?.href
  return href?.startsWith(base) ? href.slice(base.length) : ""
}

/** The result of a dry run. */
export interface Tried {
  dryRun: true
  created: number
  changed: number
  deleted: number
  estimate?: boolean
  atLeast?: boolean
  /** The change needs an approval: without a dry run it creates a workflow request. */
  approval?: boolean
  /** The change cannot be undone. */
  irreversible?: boolean
  /** The change is a batch whose changes must be sent one by one: of them, requests need an approval. */
  separate?: { requests: number; of: number }
  operations: Operation[] | null
  resource?: Resource
}

/** A change of one resource in a transaction. */
export interface Operation {
  operationType: string
  resourceId: number
  resourceType: string
  resourceCollection?: string
  name?: string
  fieldUpdates?: { name: string; value: unknown; previousValue: unknown }[]
}

/** Runs a change as a dry run. The manager keeps nothing. */
export async function dryRun(
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
  signal?: AbortSignal,
): Promise<Tried> {
  return (await call<Tried>(method, path, body, { headers: { ...headers, "x-portolan-dry-run": "true" }, signal })).body
}
