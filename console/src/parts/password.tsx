// Changes the password of the user who is signed in.
import { useState } from "preact/hooks"
import { call, type Problem } from "../api"
import { problemOf } from "../data"
import { enter, session } from "../session"
import { Button, Dialog, Field, Trouble } from "./basics"
import { toast } from "../notice"

export function Password({ close }: { close: () => void }) {
  const [one, setOne] = useState(""),
    [two, setTwo] = useState(""),
    [busy, setBusy] = useState(false),
    [problem, setProblem] = useState<Problem>()
  const user = session.value?.user,
    differ = two !== "" && one !== two
  const submit = async (e: Event) => {
    e.preventDefault()
    if (one !== two || !user) return
    setBusy(true)
    try {
      // The change ends all sessions, so the user signs in again with the new password.
      const name = (await call("PATCH", "users/" + user.id, { password: one }, { quiet: true })).body.name
      await enter({ username: name, password: one })
      toast("Changed your password. Your other sessions have ended.")
      close()
    } catch (e) {
      setProblem(problemOf(e))
      setBusy(false)
    }
  }
  const input = (label: string, value: string, set: (v: string) => void, hint?: string, wrong?: string) => (
    <Field label={label} hint={hint} wrong={wrong}>
      {(id, d) => (
        <input
          id={id}
          aria-describedby={d}
          type="password"
          autocomplete="new-password"
          required
          minLength={8}
          maxLength={256}
          value={value}
          onInput={e => set(e.currentTarget.value)}
        />
      )}
    </Field>
  )
  return (
    <Dialog title="Change password" close={close}>
      <form onSubmit={e => void submit(e)}>
        {problem && <Trouble problem={problem} />}
        <input
          class="hidden"
          type="text"
          autocomplete="username"
          tabIndex={-1}
          aria-hidden="true"
          readOnly
          value={user?.name ?? ""}
        />
        {input("New password *", one, setOne, "At least 8 characters.")}
        {input("New password again *", two, setTwo, undefined, differ ? "The passwords differ." : undefined)}
        <div class="buttons">
          <button class="primary" type="submit" disabled={busy || !one || one !== two}>
            Change password
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}
