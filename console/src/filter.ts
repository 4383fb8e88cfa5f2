// Builds the filter of a list from the typed text.
import { literal } from "./api"

/** Returns an API filter. Plain words match a part of the field. */
export function filterOf(text: string, field = "name"): string {
  const t = text.trim()
  return !t || (/^[\w.( ]+:[\w(' ]*['(\d]/.test(t) && field !== "address") ? t : `${field}:contains(${literal(t)})`
}
