// Names of values in forms, warnings about weak algorithms, and generated secrets.
import { useState } from "preact/hooks"
import type { Resource } from "../api"
import { shown } from "../operations"
import type { FieldSchema } from "../schema"
import { Button, choice } from "./basics"
import { toast } from "../notice"
import { fieldName } from "../words"

const names: Record<string, string> = {
  PORTOLAN_SERVICE_POINT: "Portolan service point",
  OTHER_DNS_SERVER: "Other DNS server (not managed)",
}

/** The displayed name of a value that a field can have. Values of types and profiles stay as they are. */
export function choiceName(value: string, field: string) {
  if (names[value]) return names[value]
  if (field === "recordType" || field === "profile") return value
  return isWeak(value) ? value + " (weak)" : choice(value)
}

/** Formats a value of a field for a list of changes: enumerated values, times and the members of objects by their displayed names. */
export function fieldText(field: FieldSchema | undefined, v: unknown): string {
  if (v === null || v === undefined || v === "") return "—"
  if (Array.isArray(v)) return v.length ? v.map(x => fieldText(field?.i ?? field, x)).join(", ") : "—"
  if (typeof v === "string") {
    if (field?.e && !field.x) return choiceName(v, field.n)
    return field?.k === "time" && !isNaN(Date.parse(v)) ? new Date(v).toLocaleString("sv") : v
  }
  if (typeof v === "object" && !(v as Resource).id) {
    const members = Object.entries(v)
      .filter(([, x]) => x !== null)
      .map(([n, x]) => {
        const member = field?.m?.find(m => m.n === n)
        return `${member ? (member.t ?? fieldName(n)) : n} ${fieldText(member, x)}`
      })
    return members.join(", ") || "—"
  }
  return shown(v)
}

/** Reports whether a value is an algorithm that must not be used for signatures any more (RFC 8624, RFC 9905). */
export function isWeak(value: unknown) {
  return typeof value === "string" && /^(RSAMD5|RSASHA1|RSASHA1NSEC3SHA1|SHA1)$/.test(value)
}

/** Returns a new secret for a webhook: whsec_ and 32 random bytes in base64. */
export function newSecret() {
  return "whsec_" + btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))
}

/** The secret of a webhook. A generated one is visible until the form is closed, so that the user can copy it. */
export function SecretInput({
  attributes,
  value,
  set,
}: {
  attributes: any
  value: string | null | undefined
  set: (v: string | null) => void
}) {
  const [made, setMade] = useState("")
  return (
    <>
      <input
        {...attributes}
        type={made && made === value ? "text" : "password"}
        class="mono"
        autocomplete="new-password"
        spellcheck={false}
        value={value ?? ""}
        onInput={e => set(e.currentTarget.value || null)}
      />
      <div class="buttons">
        <Button
          onClick={() => {
            const secret = newSecret()
            setMade(secret)
            set(secret)
          }}
        >
          Generate
        </Button>
        {made && made === value && (
          <Button icon="copy" onClick={() => void navigator.clipboard?.writeText(made).then(() => toast("Copied."))}>
            Copy
          </Button>
        )}
      </div>
      {made && made === value && (
        <p class="muted small">Copy the secret now. It is not shown again after you create the webhook.</p>
      )}
    </>
  )
}
