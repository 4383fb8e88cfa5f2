// The entry point of the console: the session, and the screen for each URL.
import "./styles.css"
import "uplot.css"
import { Component, render, type ComponentChildren } from "preact"
import type { Problem } from "./api"
import { problemOf } from "./data"
import { Frame } from "./frame"
import { Trouble, Toasts } from "./parts/basics"
import { Comment } from "./parts/comment"
import { place, startRouter } from "./router"
import { Docs, readScreens, Screen } from "./screens"
import { SignIn } from "./screens/signin"
import { begin, session } from "./session"
import { watchStaged } from "./staged"
import { useState, useEffect } from "preact/hooks"

/** An error boundary: after an error in one screen, the navigation and all other screens stay usable. */
class Fence extends Component<{ children: ComponentChildren }, { problem?: Problem }> {
  static getDerivedStateFromError(e: unknown) {
    return { problem: problemOf(e) }
  }
  render() {
    return this.state.problem ? (
      <Trouble problem={this.state.problem} retry={() => this.setState({ problem: undefined })} />
    ) : (
      this.props.children
    )
  }
}

function App() {
  const [problem, setProblem] = useState<Problem>()
  const start = () => {
    setProblem(undefined)
    begin().catch(e => setProblem(problemOf(e)))
  }
  useEffect(start, [])
  if (problem)
    return (
      <main id="main" class="alone">
        <Trouble problem={problem} retry={start} />
      </main>
    )
  if (session.value === undefined)
    return (
      <main id="main" class="alone" aria-busy="true">
        <h1 class="hidden">Portolan</h1>
      </main>
    )
  if (session.value === null)
    return place.value.path[0] === "docs" ? (
      <main id="main" class="docs">
        <Docs />
      </main>
    ) : (
      <SignIn />
    )
  return (
    <>
      <Frame>
        <Fence key={place.value.path.join("/")}>
          <Screen />
        </Fence>
      </Frame>
      <Comment />
      <Toasts />
    </>
  )
}

startRouter()
// The other screens load on the first user input, or at once where the URL is one of them.
if (place.value.path.length)
  readScreens().catch(() => {
    /* the screen shows the error */
  })
else
  for (const sign of ["pointermove", "keydown", "touchstart"])
    addEventListener(
      sign,
      () => {
        readScreens().catch(() => {
          /* the screen shows the error when it is opened */
        })
      },
      { once: true, passive: true },
    )
watchStaged()
render(<App />, document.getElementById("app")!)
