// An alarm of the manager, with links to the pages that show or correct it.
import { State } from "./basics"

export interface Alarm {
  severity: string
  what: string
  do: string
  command?: string
  links?: { name: string; path: string }[]
}

/** An alarm as an item of a list. Names in its sentence are links. The remedy follows: links, or a sentence. */
export function AlarmLine({ a }: { a: Alarm }) {
  const links = a.links ?? [],
    parts: (string | { name: string; path: string })[] = []
  let rest = a.what
  for (const l of links.filter(l => a.what.includes(l.name))) {
    const [before, ...after] = rest.split(l.name)
    if (!after.length) continue
    parts.push(before, l)
    rest = after.join(l.name)
  }
  parts.push(rest)
  const remedies = links.filter(l => !parts.includes(l))
  return (
    <li>
      <State of={a.severity} /> {parts.map(p => (typeof p === "string" ? p : <To key={p.path} l={p} />))}
      {remedies.length === 0 && <span class="muted"> {a.do}</span>}
      {remedies.map((l, i) => (
        <span key={l.path}>
          {i ? " · " : " "}
          <To l={l} />
        </span>
      ))}
    </li>
  )
}

function To({ l }: { l: { name: string; path: string } }) {
  return <a href={l.path}>{l.name}</a>
}
