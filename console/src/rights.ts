// The user's rights on the resource that a page shows. A page hides buttons that the user may not use; the manager enforces the rights
// on every request (docs/rights.md).
import { get } from "./api"
import { useData } from "./data"
import { session } from "./session"

export interface May {
  change: boolean
  add: boolean
  remove: boolean
}

/** The rights of an administrator. */
export const anything: May = { change: true, add: true, remove: true }

const levels = ["HIDE", "VIEW", "CHANGE", "ADD", "FULL"]

/** Returns the rights on the resource of a path and below it. All actions are allowed until the rights are loaded. */
export function useMay(path: string | null): May {
  const s = session.value
  const { data } = useData<{ accessLevel: string; levelBelow: string }>(
    path && s && !s.administrator && !s.readOnly ? path + "/effectiveRights" : null,
    signal => get(path + "/effectiveRights", { signal, quiet: true }),
    ["accessRights"],
  )
  if (s?.readOnly) return { change: false, add: false, remove: false }
  const at = (level: string | undefined, least: string) => !level || levels.indexOf(level) >= levels.indexOf(least)
  return {
    change: at(data?.accessLevel, "CHANGE"),
    add: at(data?.levelBelow, "ADD"),
    remove: at(data?.accessLevel, "FULL"),
  }
}

/** What a user may see and do (GET users/ID/access). */
export interface UserAccess {
  user: number
  administrator: boolean
  securityPrivilege: string
  historyPrivilege: string
  everything: boolean
  fleet: "ALL" | "SOME" | "NONE"
  fleetRights: { labels: Record<string, string>; accessLevel: string }[]
  collections: { collection: string; visible: "ALL" | "SOME" | "NONE"; changeable: boolean }[]
  types: { resourceType: string; defaultLevel: string; highestLevel: string }[]
  places: PlaceAccess[]
}

/** The effective rights at a resource, or by default. */
export interface PlaceAccess {
  resource: { id: number; collection: string; type: string; name: string; label: string } | null
  default: boolean
  accessLevel: string
  levelBelow: string
  accessOverrides: { resourceType: string; accessLevel: string }[]
  deploymentsAllowed: boolean
  quickDeploymentsAllowed: boolean
  selectiveDeploymentsAllowed: boolean
  workflowLevel: string
  decidedBy: { resource: number | null; accessRights: number[] } | null
}

/** The access of a user. */
export function useAccess(user: number | null) {
  const path = user === null ? null : `users/${user}/access`
  return useData<UserAccess>(path, signal => get(path!, { signal, quiet: true }), ["accessRights", "groups", "users"])
}

/**
 * Returns the rights of the user on a service point with these labels: those of administrators, or of rights on labels. All actions are
 * allowed until the rights are loaded.
 */
export function useFleetMay(labels: Record<string, string> | null | undefined): May {
  const s = session.value,
    a = useAccess(s && !s.administrator && !s.readOnly ? s.user.id : null).data
  if (s?.readOnly) return { change: false, add: false, remove: false }
  if (!a || a.administrator) return anything
  const levelsOf = a.fleetRights
    .filter(r => Object.entries(r.labels).every(([n, v]) => labels?.[n] !== undefined && (!v || labels[n] === v)))
    .map(r => r.accessLevel)
  const best = Math.max(-1, ...levelsOf.map(l => levels.indexOf(l))),
    has = (least: string) => best >= levels.indexOf(least)
  return { change: has("CHANGE"), add: has("ADD"), remove: has("FULL") }
}

/** The collections of each page in the navigation. A page is hidden if the user sees none of them. */
const collectionsOf: Record<string, string[]> = {
  space: ["blocks", "networks", "addresses"],
  find: ["blocks"],
  vlans: ["vlanGroups", "vlans"],
  names: ["views", "zones", "resourceRecords"],
  servers: ["servers", "serverGroups"],
  dhcp: ["ranges", "macPools", "clientClasses"],
  discovery: ["reconciliationPolicies", "addresses"],
  transactions: ["transactions"],
  events: ["events"],
}

/** The pages that change data: at least one of these collections must be changeable. */
const changing: Record<string, string[]> = {
  bulk: ["configurations", "blocks", "networks", "ranges", "addresses", "views", "zones", "resourceRecords", "devices"],
}

/** Returns why a user cannot use a page, given by the first part of its path below /ui; undefined if the user can. */
export function denied(page: string, a: UserAccess | undefined, readOnly: boolean): string | undefined {
  if (readOnly && (page === "bulk" || page === "staged")) return "This session is read-only."
  if (!a || a.administrator) return undefined
  const of = (name: string) => a.collections.find(c => c.collection === name)
  if (page === "fleet" && a.fleet === "NONE")
    return "The fleet requires access rights to everything, or rights on labels of service points."
  if (page === "access" && of("accessRights")?.visible === "NONE" && of("users")?.visible !== "ALL")
    return "Users and rights require the privilege to view access rights."
  if (collectionsOf[page]?.every(n => of(n)?.visible === "NONE"))
    return page === "transactions"
      ? "Changes require the history privilege."
      : page === "events"
        ? "Events require access rights to everything, or an administrative access right for events."
        : "Neither you nor your groups have an access right for this page."
  if (changing[page]?.every(n => !of(n)?.changeable)) return "None of your access rights allows changes."
  return undefined
}

/** Returns why the signed-in user cannot use a page; undefined while that is not known. */
export function useDenied(): (page: string) => string | undefined {
  const s = session.value,
    access = useAccess(s && !s.administrator ? s.user.id : null).data
  return page => denied(page, access, !!s?.readOnly)
}
