// The form for the configuration of an application, built from its JSON schema, and the dialog that deploys an application.
import { useState } from "preact/hooks"
import { call, get, type Problem } from "../api"
import { problemOf, useData } from "../data"
import { fieldOf, withoutEmpty, type JSONSchema } from "../jsonform"
import type { FieldSchema } from "../schema"
import { Button, Dialog, Field, Loading, Trouble } from "./basics"
import { FieldInput, type Values } from "./form"
import { toast } from "../notice"

/** An application that a service point can run, with the schema and the default of its configuration. */
export interface Kind {
  name: string
  version: string
  deployed: number
  schema: JSONSchema
  configuration: Values | null
  reason?: string
}

const names: Record<string, string> = {
  "dns-authoritative-service": "DNS server",
  "dns-resolver-service": "DNS resolver",
  "dhcp-service": "DHCP server",
  "tftp-service": "TFTP server",
  "http-probe-service": "Probes",
}

/** The displayed name of an application. */
export function applicationName(name: string) {
  return names[name] ? `${names[name]} (${name})` : name
}

/** Returns a problem whose fields are members of the configuration. */
export function ofConfiguration(problem: Problem | undefined): Problem | undefined {
  if (!problem?.fields) return problem
  return {
    ...problem,
    message: problem.message.replaceAll("configuration.", ""),
    fields: problem.fields.map(f => f.replace(/^configuration\./, "")),
  }
}

/** The fields of a configuration: the important ones first, and all others on request. The user can also edit it as JSON. */
export function ConfigurationForm({
  schema,
  value,
  set,
  problem,
}: {
  schema: JSONSchema
  value: Values
  set: (v: Values) => void
  problem?: Problem
}) {
  const fields = (fieldOf("configuration", schema).m ?? []).sort(
      (a, b) => Number(!schema.required?.includes(a.n)) - Number(!schema.required?.includes(b.n)),
    ),
    [text, setText] = useState<string | null>(null),
    [wrong, setWrong] = useState(false),
    faults = ofConfiguration(problem)
  const first = fields.filter(f => important.includes(f.n)),
    rest = fields.filter(f => !first.includes(f))
  if (text !== null)
    return (
      <Field label="Configuration as JSON" wrong={wrong ? "This is not valid JSON." : undefined}>
        {(id, d) => (
          <>
            <textarea
              id={id}
              aria-describedby={d}
              class="mono"
              rows={Math.min(16, text.split("\n").length + 1)}
              value={text}
              onInput={e => {
                setText(e.currentTarget.value)
                try {
                  set(JSON.parse(e.currentTarget.value))
                  setWrong(false)
                } catch {
                  setWrong(true)
                }
              }}
            />
            <button type="button" class="small" disabled={wrong} onClick={() => setText(null)}>
              Edit as a form
            </button>
          </>
        )}
      </Field>
    )
  const input = (f: FieldSchema) => (
    <FieldInput key={f.n} field={f} value={value[f.n]} problem={faults} set={v => set({ ...value, [f.n]: v })} />
  )
  return (
    <div class="appform">
      <div class="fields">{first.map(input)}</div>
      {rest.length > 0 && (
        <details>
          <summary>{rest.length} more settings</summary>
          <div class="fields">{rest.map(input)}</div>
        </details>
      )}
      <p>
        <button type="button" class="small" onClick={() => setText(JSON.stringify(withoutEmpty(value), null, 1))}>
          Edit as JSON
        </button>
      </p>
    </div>
  )
}

/** The members that most users set. */
const important = ["listen", "upstreams", "targets", "allow", "interfaces"]

/** Returns an error about a configuration without its code and the word configuration. */
function plain(reason: string) {
  return reason
    .replace(/^[A-Z]\w+: /, "")
    .replaceAll("configuration.", "")
    .replace(/\.$/, "")
}

/** Reads the applications that a service point can run. */
export function useKinds(path: string) {
  return useData<{ data: Kind[] }>(path + "/applicationKinds", signal => get(path + "/applicationKinds", { signal }))
}

/** Deploys an application. A second application of a kind must be confirmed. only is the application to deploy. */
export function DeployApplication({
  path,
  point,
  only,
  close,
  done,
}: {
  path: string
  point: string
  only?: string
  close: () => void
  done: () => void
}) {
  const kinds = useKinds(path),
    [name, setName] = useState(only ?? "dns-resolver-service"),
    [values, setValues] = useState<Record<string, Values>>({}),
    [second, setSecond] = useState(false),
    [busy, setBusy] = useState(false),
    [problem, setProblem] = useState<Problem>()
  const kind = kinds.data?.data.find(k => k.name === name)
  if (!kind)
    return (
      <Dialog title="Deploy an application" close={close}>
        {kinds.problem ? <Trouble problem={kinds.problem} retry={kinds.reload} /> : <Loading />}
      </Dialog>
    )
  const value = values[name] ?? kind.configuration ?? {}
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      await call("POST", path + "/applications", { name, configuration: withoutEmpty(value) })
      toast(`Deployment of ${name} started.`)
      close()
      done()
    } catch (e) {
      setProblem(problemOf(e))
      setBusy(false)
    }
  }
  return (
    <Dialog title={`Deploy an application to ${point}`} close={close} wide>
      <form onSubmit={e => void submit(e)}>
        {problem && <Trouble problem={problem} />}
        {!only && (
          <Field label="Application">
            {id => (
              <select
                id={id}
                value={name}
                onChange={e => {
                  setName(e.currentTarget.value)
                  setProblem(undefined)
                  setSecond(false)
                }}
              >
                {kinds.data!.data.map(k => (
                  <option key={k.name} value={k.name}>
                    {applicationName(k.name)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        {kind.deployed > 0 && (
          <div class="box warn">
            <label class="inline">
              <input type="checkbox" checked={second} onChange={e => setSecond(e.currentTarget.checked)} />
              {point} already runs {kind.name}. Deploy a second one.
            </label>
          </div>
        )}
        {kind.reason && !values[name] && <p class="muted small">Complete the default: {plain(kind.reason)}.</p>}
        <ConfigurationForm
          key={name}
          schema={kind.schema}
          value={value}
          set={v => setValues(s => ({ ...s, [name]: v }))}
          problem={problem}
        />
        <div class="buttons">
          <button class="primary" type="submit" disabled={busy || (kind.deployed > 0 && !second)}>
            Deploy
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}
