// What a user may see and do: the places of its rights, the pages, and one resource.
import { useState } from "preact/hooks"
import { get, query, type Ref, type Resource } from "../api"
import { useData } from "../data"
import { Icon } from "../icons"
import { collectionName, hrefOf, kind, title } from "../links"
import { denied, useAccess, type PlaceAccess, type UserAccess } from "../rights"
import { Field, Loading, Trouble, words } from "./basics"
import { RefInput } from "./form"
import { accessLevels } from "./grant"

/** Returns an access level as words: "Change: read and change". */
const levelText = (level: string) => accessLevels.find(([v]) => v === level)?.[1] ?? level

/** Returns the deployments that rights allow as words. */
function deploys(p: PlaceAccess): string {
  const list = [
    p.deploymentsAllowed && "servers",
    p.quickDeploymentsAllowed && "zones",
    p.selectiveDeploymentsAllowed && "records",
  ].filter(Boolean)
  return list.length ? list.join(", ") : "none"
}

const approval: Record<string, string> = {
  NONE: "not required",
  RECOMMEND: "required",
  APPROVE: "approves others",
}

/** The pages with their names, by the first part of the path. */
const pages: [page: string, name: string][] = [
  ["space", "Space"],
  ["find", "Find space"],
  ["vlans", "VLANs"],
  ["names", "Names"],
  ["servers", "Servers"],
  ["dhcp", "DHCP"],
  ["discovery", "Discovery"],
  ["fleet", "Fleet"],
  ["transactions", "Changes"],
  ["workflowRequests", "Approvals"],
  ["bulk", "Bulk and CSV"],
  ["events", "Events"],
  ["access", "Users and rights"],
]

/** What one user may see and do. */
export function AccessOf({ user }: { user: number }) {
  const { data: a, problem, reload } = useAccess(user)
  if (!a) return problem ? <Trouble problem={problem} retry={reload} /> : <Loading what="the access" />
  return (
    <div class="access">
      <p>
        {a.administrator ? (
          <>
            <Icon name="users" /> An administrator sees and changes everything. Access rights do not apply.
          </>
        ) : !a.places.length ? (
          "Neither the user nor its groups have access rights: the user sees only its own account."
        ) : a.everything ? (
          "The user sees everything."
        ) : (
          "The user sees the places listed here."
        )}
      </p>
      {a.places.length > 0 && <Places list={a.places} />}
      <OneResource user={user} />
      <div class="cards">
        <section class="card">
          <h2>Pages</h2>
          <ul class="plain-list">
            {pages.map(([page, name]) => {
              const why = denied(page, a, false)
              return (
                <li key={page}>
                  <Icon name={why ? "x" : "check"} size={14} /> {name}
                  {why && <span class="muted small"> · {why}</span>}
                </li>
              )
            })}
          </ul>
        </section>
        <section class="card">
          <h2>Privileges</h2>
          <dl class="facts">
            <div>
              <dt>Access rights</dt>
              <dd>{a.administrator ? "administrator" : words(a.securityPrivilege || "NO_ACCESS")}</dd>
            </div>
            <div>
              <dt>History</dt>
              <dd>{words(a.historyPrivilege || "HIDE").toLowerCase()}</dd>
            </div>
            <div>
              <dt>Fleet</dt>
              <dd>
                {a.fleet === "ALL"
                  ? "all service points"
                  : a.fleet === "NONE"
                    ? "none"
                    : a.fleetRights
                        .map(
                          r =>
                            Object.entries(r.labels)
                              .map(([n, v]) => (v ? `${n}=${v}` : n))
                              .join(" ") + `: ${levelText(r.accessLevel).toLowerCase()}`,
                        )
                        .join("; ")}
              </dd>
            </div>
          </dl>
        </section>
      </div>
      <Collections a={a} />
    </div>
  )
}

/** The places with rights, each with the effective rights there. */
function Places({ list }: { list: PlaceAccess[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Places with access rights">
      <table class="small-table places">
        <thead>
          <tr>
            <th>Place</th>
            <th>Access level</th>
            <th>Exceptions</th>
            <th>Approval</th>
            <th>Deployments</th>
            <th>From</th>
          </tr>
        </thead>
        <tbody>
          {list.map((p, i) => (
            <tr key={i}>
              <td>
                {p.default ? (
                  <strong>Everything else</strong>
                ) : p.resource ? (
                  <>
                    {kind(p.resource.type)}{" "}
                    <a class="mono" href={hrefOf(p.resource as Ref) || `/ui/${p.resource.collection}/${p.resource.id}`}>
                      {p.resource.label || p.resource.name || "#" + p.resource.id}
                    </a>
                  </>
                ) : (
                  <span class="muted">a resource that is not visible to you</span>
                )}
              </td>
              <td>{levelText(p.accessLevel)}</td>
              <td>
                {p.accessOverrides.map(o => `${kind(o.resourceType)}: ${o.accessLevel.toLowerCase()}`).join(", ") ||
                  "—"}
              </td>
              <td>{approval[p.workflowLevel] ?? p.workflowLevel}</td>
              <td>{deploys(p)}</td>
              <td>
                {p.decidedBy?.accessRights.map((id, n) => (
                  <span key={id}>
                    {n ? ", " : ""}
                    <a href={"/ui/accessRights/" + id}>{id}</a>
                  </span>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The rights of the user on one chosen resource. */
function OneResource({ user }: { user: number }) {
  const [r, setR] = useState<Resource | null>(null)
  const path = r?.id ? `${hrefOf(r).replace("/ui/", "")}/effectiveRights` + query({ user }) : null
  const { data, problem } = useData<PlaceAccess & { administrator: boolean }>(path, s =>
    get(path!, { signal: s, quiet: true }),
  )
  return (
    <section class="card one-resource">
      <Field label="Check one resource" hint="An address, network, zone, server or any other resource.">
        {(id, d) => <RefInput attributes={{ id, "aria-describedby": d }} value={r} types={[]} set={setR} />}
      </Field>
      <div aria-live="polite">
        {r?.id &&
          (problem ? (
            problem.status === 404 ? (
              <p>Access rights do not apply to this resource.</p>
            ) : (
              <Trouble problem={problem} />
            )
          ) : data ? (
            <p>
              <strong>{title(r)}</strong>: {levelText(data.accessLevel)}; inside it{" "}
              {levelText(data.levelBelow).toLowerCase()}. Approval {approval[data.workflowLevel] ?? data.workflowLevel};
              deployments {deploys(data)}.{" "}
              {data.administrator
                ? "The user is an administrator."
                : data.decidedBy
                  ? "By access right " + data.decidedBy.accessRights.join(", ") + "."
                  : "No access right applies."}
            </p>
          ) : (
            <Loading what="the rights" />
          ))}
      </div>
    </section>
  )
}

/** Every collection and type with the access to it. */
function Collections({ a }: { a: UserAccess }) {
  const some = a.types.filter(t => t.highestLevel !== "HIDE")
  return (
    <details>
      <summary>All collections and types</summary>
      <div class="cards">
        <section class="card">
          <h2>Collections</h2>
          <table class="small-table">
            <thead>
              <tr>
                <th>Collection</th>
                <th>Visible</th>
                <th>Changes</th>
              </tr>
            </thead>
            <tbody>
              {a.collections
                .filter(c => c.visible !== "NONE")
                .map(c => (
                  <tr key={c.collection}>
                    <td>{collectionName(c.collection)}</td>
                    <td>{c.visible.toLowerCase()}</td>
                    <td>{c.changeable ? "yes" : "no"}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </section>
        <section class="card">
          <h2>Types</h2>
          <table class="small-table">
            <thead>
              <tr>
                <th>Type</th>
                <th>Default level</th>
                <th>Highest level</th>
              </tr>
            </thead>
            <tbody>
              {some.map(t => (
                <tr key={t.resourceType}>
                  <td>{kind(t.resourceType)}</td>
                  <td>{t.defaultLevel.toLowerCase()}</td>
                  <td>{t.highestLevel.toLowerCase()}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </div>
    </details>
  )
}
