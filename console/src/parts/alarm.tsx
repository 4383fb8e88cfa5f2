// An alarm of the manager, with links to the pages that show or correct it.
import { State } from "./basics"

export interface Alarm {
  severity: string
  what: string
  do: string
  links?: { name: string; path: string }[]
}

/** An alarm as an item of a list. The remedy of an alarm without links is a command. */
export function AlarmLine({ a }: { a: Alarm }) {
  return (
    <li>
      <State of={a.severity} /> {a.what}{" "}
      {a.links?.length ? (
        a.links.map((l, i) => (
          <span key={l.path}>
            {i > 0 && " · "}
            <a href={l.path}>{l.name}</a>
          </span>
        ))
      ) : (
        <span class="muted">{a.do}</span>
      )}
    </li>
  )
}
