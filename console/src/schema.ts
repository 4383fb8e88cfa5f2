// The compact API schema (generate/schema.go) that the generic pages and forms are built from. It is loaded on first use.
import { useEffect, useState } from "preact/hooks"

/**
 * e lists the values of a field; with x, other values are allowed as well. i is the item of a list and m the members of an object. t is the
 * displayed name, where it differs from the field name as words.
 */
export interface FieldSchema {
  t?: string
  i?: FieldSchema
  m?: FieldSchema[]
  n: string
  k: "text" | "date" | "time" | "number" | "yes" | "ref" | "list" | "object"
  e?: string[]
  x?: boolean
  /** The text may have several lines. */
  l?: boolean
  d?: string
  r?: boolean
  w?: boolean
  0?: boolean
}
export interface TypeSchema {
  d: string
  f: FieldSchema[]
}
/** m and o are the methods of a list and of an item: G, P, U, A, D. n are the types that a POST creates, with their required fields. */
export interface CollectionSchema {
  m?: string
  o?: string
  t?: string[]
  n?: Record<string, string[]>
  b?: Record<string, CollectionSchema>
}
export interface Schema {
  collections: Record<string, CollectionSchema>
  types: Record<string, TypeSchema>
}

let known: Schema | undefined
let coming: Promise<Schema> | undefined

export function readSchema(): Promise<Schema> {
  coming ??= fetch("/ui/assets/schema.json")
    .then(r => {
      if (!r.ok) throw new Error("the console cannot load the API schema")
      return r.json()
    })
    .then(s => (known = s as Schema))
  coming.catch(() => {
    coming = undefined
  })
  return coming
}

export function useSchema(): Schema | undefined {
  const [schema, setSchema] = useState(known)
  useEffect(() => {
    if (schema) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = () => {
      readSchema().then(setSchema, () => {
        timer = setTimeout(ask, 2000)
      })
    } // until the manager answers
    ask()
    return () => clearTimeout(timer)
  }, [])
  return schema
}
