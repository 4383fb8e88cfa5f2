// The screens. The overview is in the initial bundle; all others load when the first of them is shown.
import { signal } from "@preact/signals"
import { place } from "../router"
import { onUndo } from "../parts/latest"
import { Overview } from "./overview"

onUndo(() => import("./more").then(m => m.Undo))

const more = signal<typeof import("./more") | undefined>(undefined)

/** Loads the other screens. If the manager no longer has the file, it runs another version, and the page is reloaded once. */
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

/** The screen of the current place. */
export function Screen() {
  if (place.value.path.length === 0) return <Overview />
  const all = more.value
  return all ? <all.Screen /> : <Placeholder />
}

/** The API documentation, which needs no sign-in. */
export function Docs() {
  const all = more.value
  return all ? <all.APIDocs /> : <Placeholder />
}

/** The placeholder of a loading screen. A load error is stored and thrown while rendering, so that the error boundary handles it. */
function Placeholder() {
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
