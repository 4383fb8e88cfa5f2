// Addresses of the pages that show resources, and their displayed names.
import type { Ref, Resource } from "./api"

/** Returns the URL path of a resource's page, from the link of the resource, or else from its type. */
export function hrefOf(r: Ref): string {
  const self = r._links?.self?.href
  if (self) return "/ui/" + self.replace(/^\/api\/v2\//, "")
  const c = collectionOf(r.type)
  return c ? `/ui/${c}/${r.id}` : ""
}

const collections: [RegExp, string][] = [
  [/^IPv[46]Block$/, "blocks"],
  [/^IPv[46]Network$/, "networks"],
  [/^IPv[46]Address$/, "addresses"],
  [/Range$/, "ranges"],
  [/Record$/, "resourceRecords"],
  [/Zone$/, "zones"],
  [/^View$/, "views"],
  [/^Configuration$/, "configurations"],
  [/^Location$/, "locations"],
  [/^User$/, "users"],
  [/^MACAddress$/, "macAddresses"],
  [/^Transaction$/, "transactions"],
]

function collectionOf(type: string) {
  return collections.find(([t]) => t.test(type))?.[1]
}

/** Returns the displayed name of a resource. */
export function title(r: Ref | Resource): string {
  const x = r as any
  return x.range ?? x.address ?? x.absoluteName ?? x.name ?? kind(x.type) + " " + x.id
}

/** Returns the second name of a resource, or an empty string. */
export function subtitle(r: Ref | Resource): string {
  const t = title(r)
  return r.name && r.name !== t && !t.startsWith(r.name + ".") ? r.name : ""
}

/** Returns a type as words: IPv4Network as "IPv4 network". */
export function kind(type: string): string {
  return type
    .replace(
      /^(IPv[46]|VLAN|DHCPv[46]|DNSSEC|DNS|DHCP|MAC|TXT|MX|SRV|NAPTR|HINFO|HTTPS|SVCB|URI|TSIG|ACL|TFTP|LDAP|RADIUS|SAML|HSM|ENUM|SNMP|NTP|SSH|HA|IP)?(.*)$/,
      (_, mark, rest) =>
        (mark ? mark + " " : "") +
        rest
          .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
          .replace(/([a-z])([A-Z])/g, "$1 $2")
          .toLowerCase()
          .replace(/\b(dhcp|dns|sso|vpn)\b/g, (m: string) => m.toUpperCase()),
    )
    .trim()
    .replace(/^[a-z]/, c => c.toUpperCase())
}

/** Returns a collection's name as words: "deploymentRoles" as "Deployment roles". */
export function collectionName(name: string): string {
  const known: Record<string, string> = {
    dns64s: "DNS64",
    vlans: "VLANs",
    vlanGroups: "VLAN groups",
    macAddresses: "MAC addresses",
    macPools: "MAC pools",
    resourceRecords: "Records",
    ipGroups: "IP groups",
  }
  return (
    known[name] ??
    name
      .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .replace(/^./, c => c.toUpperCase())
      .replace(/\b(tsig|dhcp|dns|tftp|hsm|dnssec|acl)\b/gi, m => m.toUpperCase())
  )
}

/** A link to a resource, with its name. */
export function To({ r, mono }: { r: Ref | null | undefined; mono?: boolean }) {
  if (!r) return <span class="muted">none</span>
  const to = hrefOf(r),
    text = title(r)
  const cls = mono || (r as any).range || (r as any).address ? "mono" : ""
  return to ? (
    <a class={cls} href={to}>
      {text}
    </a>
  ) : (
    <span class={cls}>{text}</span>
  )
}
