// The filters of the search fields of leases and of their history.
import { literal } from "./api"
import { address as addressText, parseAddress, parseSpan, span } from "./space"

export const hardware = /^([\da-f]{2}[:-]){5}[\da-f]{2}$|^([\da-f]{4}\.){2}[\da-f]{4}$|^[\da-f]{12}$/i

/**
 * Returns the filter for a search text: an address, the beginning of one, a prefix, a hardware address, a client identifier or a host name.
 * An IPv6 address or prefix also finds the delegated prefix that contains it.
 */
export function leaseFilter(text: string): string | undefined {
  const t = text.trim()
  if (!t) return undefined
  if (hardware.test(t)) return `macAddress:${literal(t)}`
  if (parseAddress(t))
    return t.includes(":") ? `(address:${literal(t)} or prefix:contains(${literal(t)}))` : `address:${literal(t)}`
  const part = /^(\d{1,3}\.){1,3}$/.test(t) ? t + "0.0.0.0".slice((t.split(".").length - 1) * 2) : null
  const s = parseSpan(part ? `${part}/${(t.split(".").length - 1) * 8}` : t)
  if (s) {
    const inside = `address:ge(${literal(addressText(s.low, s.v6))}) and address:le(${literal(addressText(s.high, s.v6))})`
    return s.v6 && t.includes("/") ? `((${inside}) or prefix:contains(${literal(span(s))}))` : inside
  }
  if (/^0x[\da-f]+$/i.test(t)) return `clientIdentifier:${literal(t.slice(2).toUpperCase())}`
  if (/^[\da-f]{14,}$/i.test(t)) return `clientIdentifier:${literal(t.toUpperCase())}`
  return `hostName:startsWith(${literal(t)})`
}
