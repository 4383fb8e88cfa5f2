// Preferences of the signed-in user, stored at the manager so that they follow the user to other browsers.
import { computed, effect, signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { call, get } from "./api"
import { problemOf } from "./data"
import { session } from "./session"
import { toast } from "./notice"

/** The preferences of the user by name; undefined until they are loaded. */
const stored = signal<Record<string, any> | undefined>(undefined)
const user = computed(() => session.value?.user.id)
let reading = false

/** Loads the preferences of the user, unless they are loaded. Without a manager that answers, they last until the page is loaded again. */
async function load() {
  if (stored.value || reading) return
  reading = true
  try {
    const list = (await get<{ data: { name: string; value: any }[] }>("preferences", { quiet: true })).data
    stored.value = Object.fromEntries(list.map(p => [p.name, p.value]))
  } catch {
    stored.value = {}
  } finally {
    reading = false
  }
}

effect(() => {
  if (user.value === undefined) stored.value = undefined
})

/** Stores a preference; null deletes it. The page shows the new value at once. Returns whether the manager has stored it. */
export async function setPreference(name: string, value: Record<string, any> | null) {
  const { [name]: before, ...others } = stored.peek() ?? {}
  stored.value = value ? { ...others, [name]: value } : others
  try {
    if (value) await call("PUT", "preferences/" + name, { value }, { quiet: true })
    else await call("DELETE", "preferences/" + name, undefined, { quiet: true })
    return true
  } catch (e) {
    const { [name]: _, ...rest } = stored.peek() ?? {}
    stored.value = before ? { ...rest, [name]: before } : rest
    toast("The setting was not stored: " + problemOf(e).message, { bad: true })
    return false
  }
}

/** Returns a preference of the user: undefined until it is loaded, null if it does not exist. */
export function usePreference<T = Record<string, any>>(name: string): T | null | undefined {
  useEffect(() => void load(), [user.value])
  return stored.value && (stored.value[name] ?? null)
}
