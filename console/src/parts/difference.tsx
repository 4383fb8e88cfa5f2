// The fields that a change sets, as a table: the label, the value before, and the value after.
import type { Resource } from "../api"
import { useSchema } from "../schema"
import { isEqual, shown } from "../operations"
import { useNames } from "./preview"
import { fieldText } from "./choices"
import { fieldName } from "../words"

/** A changed field with its values. */
export interface FieldUpdate {
  name: string
  value?: unknown
  previousValue?: unknown
}

/** Fields that follow from the place of a new resource. */
const implied = ["up", "configuration", "type", "id", "resourceType"]

/** Returns the fields to show. Those of a new resource that are empty or false are omitted. */
export function changedFields(all: FieldUpdate[], creates: boolean): FieldUpdate[] {
  const first = (f: FieldUpdate) =>
    ["range", "address", "absoluteName"].includes(f.name) ? 0 : f.name === "name" ? 1 : 2
  return all
    .filter(
      f =>
        !implied.includes(f.name) &&
        (creates
          ? shown(f.value) !== "—" && f.value !== false && !/Inherited$/.test(f.name)
          : shown(f.value) !== shown(f.previousValue)),
    )
    .sort((a, b) => first(a) - first(b))
}

/** Reports whether the current value of a field is another one than before the change. */
function isOutdated(f: FieldUpdate, now?: Resource): boolean {
  return !!now && Object.hasOwn(now, f.name) && !isEqual(now[f.name], f.previousValue)
}

/**
 * The changed fields of a resource of a type. now is the current resource, if the change is not applied yet. A field with another value than
 * at the time of the request is marked.
 */
export function Difference({
  type,
  all,
  creates,
  decided,
  now,
}: {
  type: string
  all: FieldUpdate[]
  creates: boolean
  decided?: boolean
  now?: Resource
}) {
  const schema = useSchema(),
    fields = changedFields(all, creates),
    names = useNames([{ fieldUpdates: fields } as never])
  const label = (n: string) => schema?.types[type]?.f.find(f => f.n === n)?.t ?? fieldName(n)
  const text = (n: string, v: unknown) => {
    const f = schema?.types[type]?.f.find(x => x.n === n)
    const id = (v as Resource | null)?.id
    return (id && names.get(id)) || fieldText(f, v)
  }
  if (!fields.length) return <p class="muted">No field changes.</p>
  return (
    <table class="small-table field-changes" aria-label="Changes, field by field">
      <thead>
        <tr>
          <th>Field</th>
          {!creates && <th>{decided ? "Before" : "Now"}</th>}
          <th>{creates ? "Value" : "Requested"}</th>
        </tr>
      </thead>
      <tbody>
        {fields.map(f => (
          <tr key={f.name}>
            <td class="muted">{label(f.name)}</td>
            {!creates && (
              <td>
                <del>{text(f.name, isOutdated(f, now) ? now![f.name] : f.previousValue)}</del>
                {isOutdated(f, now) && (
                  <div class="bad-text small">changed since the request, was {text(f.name, f.previousValue)}</div>
                )}
              </td>
            )}
            <td>
              <ins>{text(f.name, f.value)}</ins>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
