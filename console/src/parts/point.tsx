// Dialogs for a service point of the fleet: its settings, applications, nodes and keys.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { call, get, type Problem } from "../api"
import { problemOf } from "../data"
import type { Application, Point } from "../fleet"
import { withoutEmpty } from "../jsonform"
import { ConfigurationForm, useKinds } from "./appform"
import { Button, Dialog, Field, Loading, Trouble } from "./basics"
import type { Values } from "./form"
import { toast } from "../notice"

/** A dialog that sends its request when the user presses its button. It shows the error of a refused request. */
function Ask({
  title,
  word,
  danger,
  wide,
  send,
  close,
  children,
}: {
  title: string
  word: string
  danger?: boolean
  wide?: boolean
  send: () => Promise<unknown>
  close: () => void
  children: (problem: Problem | undefined) => ComponentChildren
}) {
  const [problem, setProblem] = useState<Problem>(),
    [busy, setBusy] = useState(false)
  const submit = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      await send()
    } catch (e) {
      setProblem(problemOf(e))
    }
    setBusy(false)
  }
  return (
    <Dialog title={title} close={close} wide={wide}>
      <form onSubmit={submit}>
        {problem && <Trouble problem={problem} />}
        {children(problem)}
        <div class="buttons">
          <button class={danger ? "danger" : "primary"} type="submit" disabled={busy}>
            {busy ? "Working …" : word}
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Parses typed labels, one per line: site=North Pier. */
function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split("\n")
      .map(l => l.trim())
      .filter(Boolean)
      .map(l => {
        const [k, ...rest] = l.split("=")
        return [k.trim(), rest.join("=")]
      }),
  )
}

/** Changes the settings of a service point. Only changed settings are sent. */
export function ChangePoint({ p, path, close, done }: { p: Point; path: string; close: () => void; done: () => void }) {
  const [name, setName] = useState(p.name),
    [description, setDescription] = useState(p.description ?? ""),
    [labels, setLabels] = useState(
      Object.entries(p.labels ?? {})
        .map(([k, v]) => `${k}=${v}`)
        .join("\n"),
    )
  const [nodes, setNodes] = useState(String(p.nodeCount ?? 1)),
    [version, setVersion] = useState(""),
    [versions, setVersions] = useState<string[]>([])
  useEffect(() => {
    get<{ data: { version: string }[] }>("/user/api/v1/releases", { quiet: true }).then(
      r => setVersions(r.data.map(x => x.version)),
      () => {
        /* no release is published, or the user may not see releases */
      },
    )
  }, [])
  const send = async () => {
    const wanted = labelsOf(labels),
      before = p.labels ?? {}
    const changed = Object.fromEntries(
      [...new Set([...Object.keys(before), ...Object.keys(wanted)])]
        .filter(k => before[k] !== wanted[k])
        .map(k => [k, wanted[k] ?? null]),
    )
    const body = {
      ...(name !== p.name ? { name } : {}),
      ...(description !== (p.description ?? "") ? { description: description || null } : {}),
      ...(Object.keys(changed).length ? { labels: changed } : {}),
      ...(Number(nodes) !== (p.nodeCount ?? 1) ? { nodeCount: Number(nodes) } : {}),
      ...(version ? { targetVersion: version === "none" ? null : version } : {}),
    }
    if (Object.keys(body).length) {
      await call("PATCH", path, body)
      toast(`Changed ${name}.`)
    }
    close()
    done()
  }
  return (
    <Ask title={"Change " + p.name} word="Save" send={send} close={close}>
      {() => (
        <div class="fields">
          <Field label="Name *">
            {id => (
              <input id={id} required maxLength={128} value={name} onInput={e => setName(e.currentTarget.value)} />
            )}
          </Field>
          <Field label="Description">
            {id => <input id={id} value={description} onInput={e => setDescription(e.currentTarget.value)} />}
          </Field>
          <Field
            label="Labels"
            hint="One per line, such as site=oslo. Rollouts and fleet rights select service points by label."
          >
            {(id, d) => (
              <textarea
                id={id}
                aria-describedby={d}
                class="mono"
                rows={Math.max(2, labels.split("\n").length)}
                value={labels}
                onInput={e => setLabels(e.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Nodes" hint="The maximum number of machines.">
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                type="number"
                min={1}
                max={8}
                value={nodes}
                onInput={e => setNodes(e.currentTarget.value)}
              />
            )}
          </Field>
          {(versions.length > 0 || p.targetVersion) && (
            <Field label="Update to" hint={p.targetVersion ? `Updating to ${p.targetVersion}.` : undefined}>
              {(id, d) => (
                <select id={id} aria-describedby={d} value={version} onChange={e => setVersion(e.currentTarget.value)}>
                  <option value="">no change</option>
                  {p.targetVersion && <option value="none">cancel the update</option>}
                  {versions
                    .filter(v => v !== p.version)
                    .map(v => (
                      <option key={v}>{v}</option>
                    ))}
                </select>
              )}
            </Field>
          )}
        </div>
      )}
    </Ask>
  )
}

/** The editable state of an application. */
interface Whole extends Application {
  configuration: unknown
  limits?: { memoryMiB?: number; cpuPercent?: number }
  anycastIPAddress: { ipAddress: string }[]
}

/** Changes an application: its configuration, limits and anycast addresses. */
export function ChangeApplication({
  a,
  path,
  close,
  done,
}: {
  a: Application
  path: string
  close: () => void
  done: () => void
}) {
  const at = `${path}/applications/${a.id}`,
    [was, setWas] = useState<Whole>(),
    [problem, setProblem] = useState<Problem>()
  const kinds = useKinds(path),
    kind = kinds.data?.data.find(k => k.name === a.name)
  const [value, setValue] = useState<Values>({}),
    [memory, setMemory] = useState(""),
    [processor, setProcessor] = useState(""),
    [anycast, setAnycast] = useState("")
  useEffect(() => {
    get<Whole>(at).then(
      w => {
        setWas(w)
        setValue(w.configuration as Values)
        setMemory(w.limits?.memoryMiB ? String(w.limits.memoryMiB) : "")
        setProcessor(w.limits?.cpuPercent ? String(w.limits.cpuPercent) : "")
        setAnycast(w.anycastIPAddress.map(x => x.ipAddress).join(" "))
      },
      e => setProblem(problemOf(e)),
    )
  }, [])
  if (!was || !kind)
    return (
      <Dialog title={"Change " + a.name} close={close}>
        {problem || kinds.problem ? <Trouble problem={(problem ?? kinds.problem)!} /> : <Loading />}
      </Dialog>
    )
  const send = async () => {
    const configuration = withoutEmpty(value),
      addresses = anycast.split(/[\s,]+/).filter(Boolean),
      same = addresses.join() === was.anycastIPAddress.map(x => x.ipAddress).join()
    const limits = {
      ...(memory ? { memoryMiB: Number(memory) } : {}),
      ...(processor ? { cpuPercent: Number(processor) } : {}),
    }
    const body = {
      ...(JSON.stringify(configuration) !== JSON.stringify(was.configuration) ? { configuration } : {}),
      ...(JSON.stringify(limits) !== JSON.stringify(was.limits ?? {}) ? { limits } : {}),
      ...(same ? {} : { anycastAddresses: addresses }),
    }
    if (Object.keys(body).length) {
      await call("PATCH", at, body)
      toast(`Changed ${a.name}.`)
    }
    close()
    done()
  }
  return (
    <Ask title={"Change " + a.name} word="Save" wide send={send} close={close}>
      {problem => (
        <>
          <ConfigurationForm schema={kind.schema} value={value} set={setValue} problem={problem} />
          <div class="fields">
            <Field label="Memory, MiB" hint="Empty: 512.">
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  type="number"
                  min={1}
                  value={memory}
                  onInput={e => setMemory(e.currentTarget.value)}
                />
              )}
            </Field>
            <Field label="Processor, %" hint="Percent of one core. Empty: no limit.">
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  type="number"
                  min={1}
                  value={processor}
                  onInput={e => setProcessor(e.currentTarget.value)}
                />
              )}
            </Field>
            <Field label="Anycast addresses" hint="Announced to routers while the application is healthy.">
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  value={anycast}
                  onInput={e => setAnycast(e.currentTarget.value)}
                />
              )}
            </Field>
          </div>
        </>
      )}
    </Ask>
  )
}

/** Removes an application from a service point. */
export function TakeOff({
  a,
  path,
  close,
  done,
}: {
  a: Application
  path: string
  close: () => void
  done: () => void
}) {
  return (
    <Ask
      title={"Remove " + a.name}
      word="Remove"
      danger
      close={close}
      send={async () => {
        await call("DELETE", `${path}/applications/${a.id}`)
        toast(`Removing ${a.name}.`)
        close()
        done()
      }}
    >
      {() => <p>This stops the application and deletes its settings. You cannot undo it.</p>}
    </Ask>
  )
}

/** Removes a node from a service point. */
export function RemoveNode({
  node,
  path,
  close,
  done,
}: {
  node: string
  path: string
  close: () => void
  done: () => void
}) {
  return (
    <Ask
      title={"Remove " + node}
      word="Remove"
      danger
      close={close}
      send={async () => {
        await call("DELETE", `${path}/nodes/${encodeURIComponent(node)}`)
        toast(`Removed ${node}.`)
        close()
        done()
      }}
    >
      {() => <p>This revokes the certificate of the node and its registration key.</p>}
    </Ask>
  )
}

/** The registration data of a service point, which is shown once. */
export interface Key {
  fleetInstanceID: string
  registrationKey: string
  registrationEndpoint: string
}

/** The command that enrols a machine with a registration key. */
export function AgentCommand({ made }: { made: Key }) {
  const command = `PORTOLAN_REGISTRATION_KEY=${made.registrationKey} portolan agent --registration-endpoint ${made.registrationEndpoint} --state /var/lib/portolan-agent`
  return (
    <div>
      Run this on the edge machine: <pre class="command">{command}</pre>
      <Button icon="copy" onClick={() => navigator.clipboard?.writeText(command).then(() => toast("Copied."))}>
        Copy
      </Button>
      <p class="muted small">
        The agent pings its gateway and 9.9.9.9, requests a page of example.com, and serves diagnostics on port 8083 of
        all its addresses. To turn the probes off and to limit diagnostics to the machine itself, add{" "}
        <code>--gateway off --ping-target off --http-target off --diagnostics-listen 127.0.0.1:8083</code>.
      </p>
    </div>
  )
}

/** Creates a registration key: for a machine that replaces the current one (registrationKey), or for an additional node (nodes). */
export function NewKey({
  p,
  path,
  what,
  close,
  done,
}: {
  p: Point
  path: string
  what: "registrationKey" | "nodes"
  close: () => void
  done: () => void
}) {
  const [made, setMade] = useState<Key>(),
    another = what === "nodes",
    title = another ? "Add a node to " + p.name : "New key for " + p.name
  if (made)
    return (
      <Dialog title={title} close={close} wide>
        <p>The key is shown only once. It is valid for one enrolment within seven days.</p>
        <AgentCommand made={made} />
        <div class="buttons">
          <Button onClick={close}>Close</Button>
        </div>
      </Dialog>
    )
  return (
    <Ask
      title={title}
      word="Create key"
      danger={!another}
      close={close}
      send={async () => {
        setMade((await call<Key>("POST", `${path}/${what}`)).body)
        done()
      }}
    >
      {() => (
        <p>
          {another
            ? "Creates a key to enrol another machine. It becomes a node of this service point and runs the same applications."
            : "Creates a new key. From then on the manager rejects the machine that is currently enrolled. Enrol it again with the new key, or enrol its replacement."}
        </p>
      )}
    </Ask>
  )
}
