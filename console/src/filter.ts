// Builds the filter of a list from the typed text.
import { literal } from "./api"
import { parseAddress, parseSpan } from "./space"

/**
 * Returns an API filter. A text with a quote, or with a colon after its first word, is a filter whose errors the manager reports, unless it
 * is an address. By the field of space, a prefix selects what is in it, an address the ranges that contain it, and a MAC
 * address its addresses. Other texts match a part of the field.
 */
export function filterOf(text: string, field = "name", space?: "address" | "range"): string {
  const t = text.trim()
  if (!t) return t
  if (space && t.includes("/") && parseSpan(t)) return `${space}:within(${literal(t)})`
  if (space === "range" && parseAddress(t)) return `range:contains(${literal(t)})`
  if (/^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$|^[0-9a-f]{4}(\.[0-9a-f]{4}){2}$/i.test(t))
    return space === "address" ? `macAddress.address:${literal(t)}` : `${field}:contains(${literal(t)})`
  if (space === "address" && /^[\d.]+$/.test(t)) return `address:contains(${literal(t)})`
  if (/^[0-9a-f:]*:[0-9a-f:]*$/i.test(t) && !/^[a-z]+:$/i.test(t))
    return `${space === "address" ? "address" : field}:contains(${literal(t)})`
  return /^[(\s]*(not\s+)?[\w.]+:|['"]/.test(t) ? t : `${field}:contains(${literal(t)})`
}
