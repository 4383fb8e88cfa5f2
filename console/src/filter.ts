// The filter of a list, from what is typed.
import { literal } from "./api"

/** A filter as the API has it: plain words are a part of the name. */
export function filterOf(text: string, field = "name"): string {
  const t = text.trim()
  return !t || (/^[\w.( ]+:[\w(' ]*['(\d]/.test(t) && field !== "address") ? t : `${field}:contains(${literal(t)})`
}
