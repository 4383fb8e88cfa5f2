// Short messages at the edge of the page.
import { signal } from "@preact/signals"

/** A message at the edge of the page. With an action it stays longer, so that the user can press it. */
export interface Toast {
  id: number
  text: string
  bad?: boolean
  action?: { label: string; run: () => void }
}
export const toasts = signal<Toast[]>([])
let toastNumber = 0
export function toast(text: string, o: { bad?: boolean; action?: Toast["action"] } = {}) {
  const one = { id: ++toastNumber, text, ...o }
  toasts.value = [...toasts.value.slice(-3), one]
  keepToasts()
}
export function dropToast(id: number) {
  toasts.value = toasts.value.filter(t => t.id !== id)
}

/** How long a message stays after the last key, in milliseconds: with an action, and without one. */
const actionStays = 15_000,
  textStays = 5_000

/** The timers of the messages. */
const toastTimers = new Map<number, ReturnType<typeof setTimeout>>()

/**
 * Starts the timers of all messages again. Each key does that, so that a keyboard user reaches the button of a message in any time. A
 * message does not end below the pointer or while it has the focus.
 */
function keepToasts() {
  for (const t of toastTimers.values()) clearTimeout(t)
  toastTimers.clear()
  const end = (id: number) => {
    if (document.querySelector(".toasts:hover, .toasts:focus-within")) keepToasts()
    else dropToast(id)
  }
  for (const t of toasts.value)
    if (!t.bad)
      toastTimers.set(
        t.id,
        setTimeout(() => end(t.id), t.action ? actionStays : textStays),
      )
}
addEventListener("keydown", keepToasts, { capture: true, passive: true })
