// The schema of the API, in short (generate/schema.go): what the generic pages and forms are made from. It is read when it is first needed.
import { useEffect, useState } from "preact/hooks"

/** e are the values that a field may have, or, with x, some of them. i is what a list has, m are the members of an object; t is what people call it, where that is not its name in words. */
export interface FieldSchema {
  t?: string
  i?: FieldSchema
  m?: FieldSchema[]
  n: string
  k: "text" | "date" | "time" | "number" | "yes" | "ref" | "list" | "object"
  e?: string[]
  x?: boolean
  d?: string
  r?: boolean
  w?: boolean
  0?: boolean
}
export interface TypeSchema {
  d: string
  f: FieldSchema[]
}
/** m and o are the methods of a list and of one: G, P, U, A, D. n are the types that a POST makes, with their required fields. */
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
      if (!r.ok) throw new Error("the console's schema cannot be read")
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
    } // as long as the manager is away
    ask()
    return () => clearTimeout(timer)
  }, [])
  return schema
}
