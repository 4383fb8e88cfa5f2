// Sign-in by name and password, or at a provider (docs/sign-in.md).
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { get, type Problem } from "../api"
import { problemOf, useData } from "../data"
import { Icon } from "../icons"
import { enter, leave, mustReset, refused, resetPassword } from "../session"

const why: Record<string, string> = {
  link: "The link was already used or has expired. Sign in here, or request a new link.",
  InvalidAuthorizationCredentials:
    "Sign-in failed. You are not in a known group, the provider refused the sign-in, or it took too long.",
  CertificateRequired:
    "Your browser sent no certificate. Restart it and choose one when it asks. A proxy that terminates TLS can also drop the certificate; ask your administrator.",
  AuthenticatorUnavailable: "The identity provider does not answer. You cannot sign in with it until it answers again.",
}

/** The form for a required new password. */
function NewPassword() {
  const [password, setPassword] = useState(""),
    [again, setAgain] = useState(""),
    [problem, setProblem] = useState<Problem>(),
    [busy, setBusy] = useState(false)
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      await resetPassword(password)
    } catch (e) {
      setProblem(problemOf(e))
    }
    setBusy(false)
  }
  return (
    <main id="main" class="alone">
      <form class="signin" onSubmit={submit}>
        <h1>Set a new password</h1>
        <p class="muted">You must set a new password before you continue.</p>
        {problem && (
          <p class="fault" role="alert">
            <Icon name="circle-alert" /> {problem.message}
          </p>
        )}
        {again !== "" && again !== password && <p class="fault">The passwords do not match.</p>}
        <label>
          New password
          <input
            type="password"
            autocomplete="new-password"
            autofocus
            required
            value={password}
            onInput={e => setPassword(e.currentTarget.value)}
          />
        </label>
        <label>
          Repeat password
          <input
            type="password"
            autocomplete="new-password"
            required
            value={again}
            onInput={e => setAgain(e.currentTarget.value)}
          />
        </label>
        <button class="primary" type="submit" disabled={busy || !password || again !== password}>
          Save
        </button>
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
      </form>
    </main>
  )
}

export function SignIn() {
  return mustReset.value === null ? <Credentials /> : <NewPassword />
}

function Credentials() {
  const [name, setName] = useState(""),
    [password, setPassword] = useState(""),
    [problem, setProblem] = useState<Problem>(),
    [busy, setBusy] = useState(false)
  const providers = useData<{ data: { id: number; name: string }[] }>("providers", s =>
    get("/sign-in/providers", { signal: s, quiet: true }),
  )
  const first = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => first.current!.focus(), []) // before the first paint, so that no typed character is lost
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      await enter({ username: name, password })
    } catch (e) {
      setProblem(problemOf(e))
      setBusy(false)
    }
  }
  const says = problem
    ? problem.status === 401
      ? "The name or the password is wrong, or the account is locked or has no access to the console."
      : problem.message
    : refused.value &&
      (Object.hasOwn(why, refused.value)
        ? why[refused.value]
        : "Sign-in failed. The log of the manager contains the reason.")
  return (
    <main id="main" class="alone">
      <form class="signin" onSubmit={submit}>
        <img src="/ui/assets/icon.svg" width="44" height="44" alt="" />
        <h1>Portolan</h1>
        <p class="muted">IP address and DNS management.</p>
        {says && (
          <p class="fault" role="alert">
            <Icon name="circle-alert" /> {says}
          </p>
        )}
        <label>
          User name
          <input
            ref={first}
            name="username"
            autocomplete="username"
            required
            value={name}
            onInput={e => setName(e.currentTarget.value)}
          />
        </label>
        <label>
          Password
          <input
            name="password"
            type="password"
            autocomplete="current-password"
            required
            value={password}
            onInput={e => setPassword(e.currentTarget.value)}
          />
        </label>
        <button class="primary" type="submit" disabled={busy}>
          {busy ? "Signing in …" : "Sign in"}
        </button>
        {providers.data?.data.map(p => (
          <a key={p.id} class="button" href={"/sign-in/" + p.id}>
            Sign in with {p.name}
          </a>
        ))}
      </form>
    </main>
  )
}
