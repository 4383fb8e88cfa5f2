// Signing in.
import { useState } from "preact/hooks"
import type { Problem } from "../api"
import { problemOf } from "../data"
import { Icon } from "../icons"
import { enter } from "../session"

export function SignIn() {
  const [name, setName] = useState(""), [password, setPassword] = useState(""), [problem, fail] = useState<Problem>(), [busy, work] = useState(false)
  const submit = async (e: Event) => {
    e.preventDefault()
    work(true)
    try { await enter({ username: name, password }) } catch (e) { fail(problemOf(e)); work(false) }
  }
  return <main id="main" class="alone">
    <form class="signin" onSubmit={submit}>
      <img src="/ui/assets/icon.svg" width="44" height="44" alt="" />
      <h1>Portolan</h1>
      <p class="muted">Addresses, names, and the boxes that answer for them.</p>
      {problem && <p class="fault" role="alert"><Icon name="circle-alert" /> {problem.status === 401 ? "The name or the password is wrong, or the account is locked or not meant for the console." : problem.message}</p>}
      <label>User name<input name="username" autocomplete="username" autofocus required value={name} onInput={e => setName(e.currentTarget.value)} /></label>
      <label>Password<input name="password" type="password" autocomplete="current-password" required value={password} onInput={e => setPassword(e.currentTarget.value)} /></label>
      <button class="primary" type="submit" disabled={busy}>{busy ? "Signing in …" : "Sign in"}</button>
    </form>
  </main>
}
