// Asks for the comment of a change where comments are mandatory.
import { signal } from "@preact/signals"
import { useState } from "preact/hooks"
import { onMissingComment } from "../api"
import { onSessionEnd } from "../session"
import { Button, Dialog, Field } from "./basics"

/** The changes that wait for a comment: the functions that take it. */
const waiting = signal<((comment: string | null) => void)[]>([])

onMissingComment(() => new Promise(take => (waiting.value = [...waiting.value, take])))

/** Gives a comment to all changes that wait for one. With null they are not applied, as after the end of the session of their user. */
function endComments(comment: string | null) {
  const all = waiting.value
  waiting.value = []
  for (const take of all) take(comment)
}

onSessionEnd(() => endComments(null))

/** The window that asks for a comment while a change waits for one. All changes that wait get the same comment. */
export function Comment() {
  return waiting.value.length ? <Asking /> : null
}

function Asking() {
  const [text, setText] = useState("")
  return (
    <Dialog title="Comment on the change" close={() => endComments(null)}>
      <form
        onSubmit={e => {
          e.preventDefault()
          endComments(text.trim())
        }}
      >
        <Field label="Comment" hint="Every change requires a comment. The history shows it.">
          {(id, d) => <input id={id} aria-describedby={d} value={text} onInput={e => setText(e.currentTarget.value)} />}
        </Field>
        <div class="buttons">
          <button type="submit" class="primary" disabled={!text.trim()}>
            Apply with this comment
          </button>
          <Button onClick={() => endComments(null)}>Back</Button>
        </div>
      </form>
    </Dialog>
  )
}
