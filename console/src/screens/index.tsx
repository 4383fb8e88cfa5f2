// The screens: the overview is a part of what is loaded first, the others come when the first of them is shown.
import { signal } from "@preact/signals"
import { place } from "../router"
import { Overview } from "./overview"

const more = signal<typeof import("./more") | undefined>(undefined)

/** Reads the other screens. Where a manager answers, and has no such file, it is of another version than this page, which is read anew, once. */
export async function readScreens() {
  if (more.value) return
  try {
    more.value = await import("./more")
    sessionStorage.removeItem("portolan-anew")
  } catch (e) {
    const there = await fetch("/healthz").then(
      r => r.ok,
      () => false,
    )
    if (!there || sessionStorage.getItem("portolan-anew")) throw e
    sessionStorage.setItem("portolan-anew", "1")
    location.reload()
  }
}

/** The screen of the place that is shown. */
export function Screen() {
  if (place.value.path.length === 0) return <Overview />
  const all = more.value
  return all ? <all.Screen /> : <Coming />
}

/** The documentation of the APIs, which is shown to everybody. */
export function Docs() {
  const all = more.value
  return all ? <all.APIDocs /> : <Coming />
}

/** Stands where a screen will be. A throw here would be nobody's: the failure is thrown when it is drawn. */
function Coming() {
  const failed = failure.value
  if (failed) {
    failure.value = undefined
    throw failed
  }
  readScreens().catch(e => {
    failure.value = e
  })
  return (
    <h1 class="hidden" aria-busy="true">
      Portolan
    </h1>
  )
}
const failure = signal<unknown>(undefined)
