// JSON schemas of applications as form fields.
import type { FieldSchema } from "./schema"

export interface JSONSchema {
  type?: string
  description?: string
  enum?: string[]
  properties?: Record<string, JSONSchema>
  required?: string[]
  items?: JSONSchema
  anyOf?: JSONSchema[]
}

/** Members with several lines of text. */
const long = /^(certificate|key)$/

/** The order of members: identifying ones first. */
const order = ["name", "address", "port", "url", "hostname"]
const rank = (name: string) => (order.indexOf(name) + order.length + 1) % (order.length + 1)

/** Returns a member of a JSON schema as a form field. */
export function fieldOf(name: string, s: JSONSchema): FieldSchema {
  if (s.anyOf) return { ...fieldOf(name, s.anyOf.find(x => x.type !== "null") ?? {}), d: s.description }
  const base = { n: name, d: s.description }
  if (s.enum) return { ...base, k: "text", e: s.enum }
  switch (s.type) {
    case "string":
      return { ...base, k: "text", l: long.test(name) || undefined }
    case "integer":
    case "number":
      return { ...base, k: "number" }
    case "boolean":
      return { ...base, k: "yes" }
    case "array":
      return { ...base, k: "list", i: fieldOf(name, s.items ?? {}) }
  }
  return {
    ...base,
    k: "object",
    m:
      s.properties &&
      Object.entries(s.properties)
        .map(([n, member]) => fieldOf(n, member))
        .sort((a, b) => rank(a.n) - rank(b.n)),
  }
}

/** Returns a configuration without the members that the user left empty. */
export function withoutEmpty(value: any): any {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (value === null || typeof value !== "object") return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, v]) => v !== null && v !== undefined)
      .map(([n, v]) => [n, withoutEmpty(v)]),
  )
}
