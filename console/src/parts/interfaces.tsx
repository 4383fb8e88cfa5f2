// Inputs for the interfaces of a new server, for those of a role, and for the service point of a server.
import { signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { configuration } from "../session"
import { get, type Page } from "../api"
import { useData } from "../data"
import { choice } from "./basics"

/** The interface types of a role, by the kind of role (docs/dns.md). */
const kinds: Record<string, string[]> = {
  DNSDeploymentRole: ["SERVICE", "ZONE_TRANSFER", "TARGET"],
  DHCPDeploymentRole: ["PRIMARY", "SECONDARY"],
}

interface Entry {
  id?: number
  name?: string
  managementAddress?: string
  deploymentRoleInterfaceType?: string
}

/** The interfaces of a new server, by name and address, or of a role, selected from those of the servers. */
export function InterfacesInput({
  attributes,
  of,
  value,
  set,
}: {
  attributes: any
  of: string
  value: Entry[] | null | undefined
  set: (v: Entry[] | null) => void
}) {
  const role = of.endsWith("Role"),
    c = configuration.value,
    list = value ?? []
  const servers = useData<Page>(
    role && c ? "interfaces of " + c : null,
    signal => get(`configurations/${c}/servers?limit=200&fields=embed(interfaces)`, { signal, quiet: true }),
    ["servers", "interfaces"],
  )
  const choices = (servers.data?.data ?? []).flatMap(s =>
    ((s._embedded?.interfaces ?? []) as any[]).map(i => ({
      id: i.id as number,
      says: `${s.name} · ${[i.name, i.managementAddress ?? i.primaryAddress].filter(Boolean).join(" ")}`,
    })),
  )
  const change = (i: number, e: Partial<Entry>) => set(list.map((x, at) => (at === i ? { ...x, ...e } : x)))
  const name = (word: string, i: number) => `${word} of interface ${i + 1}`
  return (
    <div
      id={attributes.id}
      role="group"
      aria-label="Interfaces"
      aria-describedby={attributes["aria-describedby"]}
      class="items"
    >
      {list.map((x, i) => (
        <div key={i} class="item">
          {role ? (
            <>
              <select
                aria-label={name("Server", i)}
                value={x.id ? String(x.id) : ""}
                onChange={e => change(i, { id: Number(e.currentTarget.value) || undefined })}
              >
                <option value="">Choose …</option>
                {choices.map(o => (
                  <option key={o.id} value={String(o.id)}>
                    {o.says}
                  </option>
                ))}
              </select>
              {kinds[of] && (
                <select
                  aria-label={name("Part", i)}
                  value={x.deploymentRoleInterfaceType ?? kinds[of][0]}
                  onChange={e => change(i, { deploymentRoleInterfaceType: e.currentTarget.value })}
                >
                  {kinds[of].map(k => (
                    <option key={k} value={k}>
                      {choice(k)}
                    </option>
                  ))}
                </select>
              )}
            </>
          ) : (
            <div class="members">
              <label>
                {list.length > 1 ? name("Host name", i) : "Host name"}
                <input
                  class="mono"
                  placeholder="ns1.example.net"
                  value={x.name ?? ""}
                  onInput={e => change(i, { name: e.currentTarget.value })}
                />
              </label>
              <label>
                {list.length > 1 ? name("Address", i) : "Address"}
                <input
                  class="mono"
                  placeholder="10.0.0.53"
                  value={x.managementAddress ?? ""}
                  onInput={e => change(i, { managementAddress: e.currentTarget.value })}
                />
              </label>
            </div>
          )}
          <button
            type="button"
            class="small"
            onClick={() => set(list.length > 1 ? list.filter((_, at) => at !== i) : null)}
            aria-label={name("Remove", i)}
          >
            Remove
          </button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => set([...list, {}])}>
        {list.length ? "Add another" : "Add one"}
      </button>
      {role && servers.data && choices.length === 0 && (
        <p class="muted small">No server interfaces yet. Open a server under Servers and create an interface.</p>
      )}
    </div>
  )
}

/** Returns the service points of the fleet; undefined while they are loaded, or for a user who does not see them. */
export function usePoints() {
  return useData<{ data: { id: string; name: string }[] }>("points", signal =>
    get("/user/api/v1/fleetInstances", { signal, quiet: true }),
  ).data?.data
}

/** The names of service points by id, for links. One request reads them for all links of a page. */
const pointNames = signal<Record<string, string>>({})
const askedPoints = new Set<string>()
let readingPoints: Promise<void> | undefined

/** Reads the names of the service points if none of an earlier request is that of id. */
function namePoint(id: string) {
  if (pointNames.peek()[id] !== undefined || askedPoints.has(id)) return
  askedPoints.add(id)
  readingPoints ??= get<{ data: { id: string; name: string }[] }>("/user/api/v1/fleetInstances", { quiet: true })
    .then(list => {
      pointNames.value = Object.fromEntries(list.data.map(p => [p.id, p.name]))
    })
    .catch(() => {}) // the user may not see the fleet, and the link shows the id
    .finally(() => (readingPoints = undefined))
}

/** A link to a service point, with its name. */
export function PointLink({ id }: { id: string }) {
  useEffect(() => namePoint(id), [id])
  return <a href={"/ui/fleet/" + encodeURIComponent(id)}>{pointNames.value[id] ?? id}</a>
}

/** A service point of the fleet, by its name. */
export function PointInput({
  attributes,
  value,
  set,
}: {
  attributes: any
  value: string | null | undefined
  set: (v: string | null) => void
}) {
  const known = usePoints() ?? []
  return (
    <select {...attributes} value={value ?? ""} onChange={e => set(e.currentTarget.value || null)}>
      <option value="">—</option>
      {value && !known.some(p => p.id === value) && <option value={value}>{value}</option>}
      {known.map(p => (
        <option key={p.id} value={p.id}>
          {p.name}
        </option>
      ))}
    </select>
  )
}
