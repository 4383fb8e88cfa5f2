// The session of the signed-in user. The token is in a cookie that scripts cannot read.
import { batch, effect, signal } from "@preact/signals"
import { call, calls, get, onSignedOut, query, Refusal, countSignIn, type Page, type Ref, type Resource } from "./api"
import { onChanges, startLive, stopLive } from "./live"
import { onPage, problemOf } from "./data"
import { go, guardLeaving, place, setQuery } from "./router"
import { ownedBy } from "./staged"
import { toast, toasts } from "./notice"

export interface Session {
  id: number
  user: Ref
  administrator: boolean
  readOnly: boolean
  /** The security privilege of the user, such as ADD_ACCESS_RIGHTS. */
  privilege: string
}

/** undefined: not known yet; null: not signed in. */
export const session = signal<Session | null | undefined>(undefined)

/** Why a sign-in by link or at a provider failed: the code of the problem, or "link". */
export const refused = signal<string | null>(null)

/** The configurations that the user sees, and the selected one. */
export const configurations = signal<Resource[]>([])
export const configuration = signal<number | null>(null)

const remembered = "portolan-configuration"

function choose(id: number) {
  configuration.value = id
  localStorage.setItem(remembered, String(id))
}

/** The pages of a single configuration. If several exist, the URL names it, so that Back and shared URLs show the same data. */
const ofOne = [undefined, "space", "find", "vlans", "names", "servers", "dhcp", "discovery", "bulk"]
const isOfOne = () => place.value.path.length < 2 && ofOne.includes(place.value.path[0])

/** Selects another configuration. Stays on the current page without its query, or opens the address space. */
export function chooseConfiguration(id: number) {
  const u = new URL(isOfOne() ? location.pathname : "/ui/space", location.origin)
  u.searchParams.set("configuration", String(id))
  go(u.pathname + u.search)
  choose(id)
}

onPage(id => {
  if (configurations.peek().some(c => c.id === id)) choose(id)
})

effect(() => {
  const all = configurations.value,
    said = Number(place.value.query.get("configuration"))
  if (all.length < 2 || !isOfOne()) return
  if (all.some(c => c.id === said)) choose(said)
  else if (configuration.peek()) setQuery({ configuration: String(configuration.peek()) })
})

export async function readConfigurations() {
  const all = (
    await get<Page>("configurations" + query({ limit: 1000, fields: "id,type,name,description" }), { quiet: true })
  ).data
  const there = (id: number | null) => all.some(c => c.id === id),
    said = isOfOne() ? Number(place.value.query.get("configuration")) : 0
  if (said && !there(said))
    toast(`Configuration ${said} does not exist or is not visible to you. Another configuration is shown.`, {
      bad: true,
    })
  const before =
    [said, configuration.peek(), Number(localStorage.getItem(remembered))].find(there) ?? all[0]?.id ?? null
  batch(() => {
    configuration.value = before
    configurations.value = all
  })
}

/** Loads the session from the cookie or from the code of a link. */
export async function begin() {
  onSignedOut(end)
  onChanges(["configurations"], () => {
    // A list that was not read stays as it was: the end of the session shows the sign-in form, and the next change reads it again.
    if (session.value) readConfigurations().catch(() => {})
  })
  const said = new URLSearchParams(location.hash.slice(1)),
    code = said.get("sign-in")
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
    if (resets(e)) return
    if (e instanceof Refusal && (e.problem.status === 401 || e.problem.status === 404)) session.value = null
    else throw e
  }
}

/** Signs in. */
export async function enter(credentials: { username: string; password: string } | { signInCode: string }) {
  const r = await call<Resource>("POST", "sessions", credentials, {
    headers: { "x-portolan-session": "cookie" },
    quiet: true,
  })
  countSignIn()
  try {
    await entered(r.body)
  } catch (e) {
    if (!resets(e)) throw e
  }
}

/** The id of a user who must set a new password first. */
export const mustReset = signal<number | null>(null)

/** Functions to call when the session ends. */
const endings: (() => void)[] = []

/** Calls a function at the end of each session. */
export const onSessionEnd = (run: () => void) => void endings.push(run)

/** Clears the data of the user, so that the next user does not see it. The change list stays for its user. */
function end() {
  session.value = null
  calls.value = []
  toasts.value = []
  stopLive()
  for (const run of endings) run()
}

/** Sets a required new password, then signs in with it. */
export async function resetPassword(password: string) {
  const user = mustReset.value
  const name = (await call("PATCH", "users/" + user, { password }, { quiet: true })).body.name
  mustReset.value = null
  await enter({ username: name, password })
}

/** Records that a new password is required, if a refusal reports it. */
function resets(e: unknown): boolean {
  if (!(e instanceof Refusal) || e.problem.code !== "PasswordResetRequired") return false
  mustReset.value = Number(/users\/(\d+)/.exec(e.problem.message)?.[1]) || null
  if (mustReset.value) session.value = null
  return mustReset.value !== null
}

async function entered(s: Resource) {
  const [user] = await Promise.all([
    get("users/" + s.user.id + query({ fields: "id,name,type,securityPrivilege" }), { quiet: true }),
    readConfigurations(),
  ])
  refused.value = null
  ownedBy(s.user.id)
  session.value = {
    id: s.id,
    user: s.user,
    administrator: user.securityPrivilege === "ADMINISTRATOR",
    readOnly: !!s.readOnly,
    privilege: String(user.securityPrivilege ?? "NO_ACCESS"),
  }
  startLive()
  tabs?.postMessage(s.user.id)
}

/** Announces the signed-in user to the other tabs. They share the cookie, and would otherwise act as a different user than they show. */
const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("portolan-user")
tabs?.addEventListener("message", e => {
  if (session.value && session.value.user.id !== e.data) {
    guardLeaving(null)
    ownedBy(0, true)
    location.assign("/")
  }
})

/** Signs out. The session ends in all tabs. */
export async function leave() {
  let to = ""
  try {
    to = (await get<{ to: string }>("/sign-out", { quiet: true })).to // the sign-out page of the identity provider
  } catch {
    /* sign out of the console only */
  }
  try {
    await call("PATCH", "sessions/current", { state: "LOGGED_OUT" }, { quiet: true })
  } catch (e) {
    if (!(e instanceof Refusal) || (e.problem.status !== 401 && e.problem.status !== 403)) {
      // the cookie still exists
      toast("You are still signed in: " + problemOf(e).message, { bad: true })
      return
    }
  }
  ownedBy(0)
  mustReset.value = null
  end()
  if (/^https?:/.test(to)) location.assign(to)
}
