// Who is signed in. The token is in a cookie that no script sees.
import { signal } from "@preact/signals"
import { call, get, onSignedOut, query, Refusal, type Page, type Ref, type Resource } from "./api"
import { startLive, stopLive } from "./live"

export interface Session { id: number; user: Ref; administrator: boolean; readOnly: boolean }

/** undefined: not known yet; null: nobody. */
export const session = signal<Session | null | undefined>(undefined)

/** Why a sign-in by a link or at a provider came to nothing: the code of the problem, or "link". */
export const refused = signal<string | null>(null)

/** The configurations that the user sees, and the one that the space and the names are shown of. */
export const configurations = signal<Resource[]>([])
export const configuration = signal<number | null>(null)

const remembered = "portolan-configuration"

export function chooseConfiguration(id: number) {
  configuration.value = id
  localStorage.setItem(remembered, String(id))
}

export async function readConfigurations() {
  configurations.value = (await get<Page>("configurations" + query({ limit: 1000, fields: "id,type,name,description" }), { quiet: true })).data
  const known = configurations.value.map(c => c.id), before = Number(localStorage.getItem(remembered))
  configuration.value = known.includes(before) ? before : known[0] ?? null
}

/** Finds out who is signed in, by the cookie or by the code of a link. */
export async function begin() {
  onSignedOut(() => { session.value = null; stopLive() })
  const said = new URLSearchParams(location.hash.slice(1)), code = said.get("sign-in")
  refused.value = said.get("refused")
  if (code || refused.value) history.replaceState(history.state, "", location.pathname + location.search)
  if (code) {
    try {
      return await enter({ signInCode: code })
    } catch (e) {
      if (!(e instanceof Refusal)) throw e
      refused.value = "link"
    }
  }
  try {
    await entered(await get("sessions/current", { quiet: true }))
  } catch (e) {
    if (e instanceof Refusal && (e.problem.status === 401 || e.problem.status === 404)) session.value = null
    else throw e
  }
}

/** Signs in. */
export async function enter(credentials: { username: string; password: string } | { signInCode: string }) {
  const r = await call<Resource>("POST", "sessions", credentials, { headers: { "x-portolan-session": "cookie" }, quiet: true })
  await entered(r.body)
}

async function entered(s: Resource) {
  const [user] = await Promise.all([get("users/" + s.user.id + query({ fields: "id,name,type,securityPrivilege" }), { quiet: true }), readConfigurations()])
  refused.value = null
  session.value = { id: s.id, user: s.user, administrator: user.securityPrivilege === "ADMINISTRATOR", readOnly: !!s.readOnly }
  startLive()
}

/** Signs out: the session ends wherever it is used. */
export async function leave() {
  try { await call("PATCH", "sessions/current", { state: "LOGGED_OUT" }, { quiet: true }) } finally { session.value = null; stopLive() }
}
