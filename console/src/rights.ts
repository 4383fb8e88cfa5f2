// What the user may do with what a page shows: what is no use to press is not shown. The manager decides all the same (docs/rights.md).
import { get } from "./api"
import { useData } from "./data"
import { session } from "./session"

export interface May {
  change: boolean
  add: boolean
  remove: boolean
}

/** What an administrator may. */
export const anything: May = { change: true, add: true, remove: true }

const levels = ["HIDE", "VIEW", "CHANGE", "ADD", "FULL"]

/** What may be done with a resource, by its path, and below it; everything as long as that is not known. */
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
