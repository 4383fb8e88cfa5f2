// Names, numbers and counts as users read them.

/** Labels of fields whose published names are not the words of the field. */
const labels: Record<string, string> = {
  up: "Parent",
  highWaterMark: "High utilization threshold, %",
  lowWaterMark: "Low utilization threshold, %",
}

/** Returns a field's name as words. */
export function fieldName(name: string) {
  if (Object.hasOwn(labels, name)) return labels[name]
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .replace(
      /\b(ttl|tls|http|https|dns|dhcp|mac|ip|id|ca|url|tsig|udp|tcp|duid|vlan|ha|hsm|mx|ns|srv|cname|snmp|ntp|vpn)\b/g,
      m => m.toUpperCase(),
    )
    .replace(/^./, c => c.toUpperCase())
}

/** Formats an integer with separated thousands. */
export function number(n: number | bigint) {
  return n.toLocaleString("en").replaceAll(",", "\u202f")
}

/** Formats a count with its noun, given in the plural. */
export function counted(n: number, many: string) {
  return (
    number(n) +
    " " +
    (n === 1
      ? many
          .replace(/ies$/, "y")
          .replace(/(ss|x|ch)es$/, "$1")
          .replace(/s$/, (s, at) => (many[at - 1] === "s" ? s : ""))
      : many)
  )
}
