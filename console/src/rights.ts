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
