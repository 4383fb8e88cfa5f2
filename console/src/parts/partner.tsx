// The failover partner of a DHCP server, where the server has one.
import { get, type Resource } from "../api"
import { fieldName } from "./form"
import { useData } from "../data"
import { To } from "../links"
import { State, Trouble, When } from "./basics"

/** Returns a value of the partner for display. */
function show(name: string, value: any) {
  if (value && typeof value === "object" && "id" in value) return <To r={value as Resource} />
  if (/DateTime$/.test(name)) return <When at={value as string} />
  if (/state/i.test(name) && typeof value === "string") return <State of={value} />
  return typeof value === "boolean"
    ? value
      ? "yes"
      : "no"
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value)
}

/** The state of the failover pair of a server. Nothing is shown for a server without a partner. */
export function Partner({ r }: { r: Resource }) {
  const link = r._links?.dhcpPartner?.href
  const { data, problem } = useData<Record<string, any>>(link ?? null, s => get(link!, { signal: s, quiet: true }))
  if (!link) return null
  if (problem) return problem.status === 404 ? null : <Trouble problem={problem} />
  if (!data) return null
  const members = Object.entries(data).filter(
    ([name, value]) => !["_links", "id", "type"].includes(name) && value !== null && value !== "",
  )
  return (
    <section class="card">
      <h2>DHCP failover</h2>
      <dl class="facts">
        {members.map(([name, value]) => (
          <div key={name}>
            <dt>{fieldName(name)}</dt>
            <dd>{show(name, value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
