// Windows for what is done with a service point of the fleet: its settings, its applications, its nodes and its keys.
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { call, get, type Problem } from "../api"
import { problemOf } from "../data"
import type { Application, Point } from "../fleet"
import { Button, Dialog, Field, Loading, toast, Trouble } from "./basics"

/** A window that asks, and sends when its button is pressed; a refusal stays in it. */
function Ask({
  title,
  word,
  danger,
  send,
  close,
  children,
}: {
  title: string
  word: string
  danger?: boolean
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
    <Dialog title={title} close={close}>
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

/** JSON that somebody has typed. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error("The configuration is not JSON.")
  }
}

/** Labels as they are typed, one a line: site=North Pier. */
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

/** Changes the settings of a service point: what is sent is what is another than before. */
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
        /* none is published, or they are not for this user to see */
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
      toast(name + " is changed.")
    }
    close()
    done()
  }
  return (
    <Ask title={"Change " + p.name} word="Change" send={send} close={close}>
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
            hint="One a line, such as site=oslo. Rollouts, and rights on the fleet, name service points by them."
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
          <Field label="Nodes" hint="How many machines it may have.">
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
            <Field label="Update to" hint={p.targetVersion ? `It is on its way to ${p.targetVersion}.` : undefined}>
              {(id, d) => (
                <select id={id} aria-describedby={d} value={version} onChange={e => setVersion(e.currentTarget.value)}>
                  <option value="">leave it as it is</option>
                  {p.targetVersion && <option value="none">call the update off</option>}
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

/** An application as it is read to be changed. */
interface Whole extends Application {
  configuration: unknown
  limits?: { memoryMiB?: number; cpuPercent?: number }
  anycastIPAddress: { ipAddress: string }[]
}

/** Changes an application: its configuration, its limits, and the anycast addresses that it has. */
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
  const [text, setText] = useState(""),
    [memory, setMemory] = useState(""),
    [processor, setProcessor] = useState(""),
    [anycast, setAnycast] = useState("")
  useEffect(() => {
    get<Whole>(at).then(
      w => {
        setWas(w)
        setText(JSON.stringify(w.configuration, null, 1))
        setMemory(w.limits?.memoryMiB ? String(w.limits.memoryMiB) : "")
        setProcessor(w.limits?.cpuPercent ? String(w.limits.cpuPercent) : "")
        setAnycast(w.anycastIPAddress.map(x => x.ipAddress).join(" "))
      },
      e => setProblem(problemOf(e)),
    )
  }, [])
  if (!was)
    return (
      <Dialog title={"Change " + a.name} close={close}>
        {problem ? <Trouble problem={problem} /> : <Loading />}
      </Dialog>
    )
  const send = async () => {
    const configuration = parsed(text),
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
      toast(a.name + " is told.")
    }
    close()
    done()
  }
  return (
    <Ask title={"Change " + a.name} word="Change" send={send} close={close}>
      {problem => (
        <>
          <Field
            label="Configuration"
            hint="As JSON; docs/operate.md says what each may have."
            wrong={problem?.fields?.some(f => f.startsWith("configuration")) ? problem.message : undefined}
          >
            {(id, d) => (
              <textarea
                id={id}
                aria-describedby={d}
                class="mono"
                rows={Math.min(16, text.split("\n").length + 1)}
                value={text}
                onInput={e => setText(e.currentTarget.value)}
              />
            )}
          </Field>
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
            <Field label="Processor, %" hint="Of one; empty: no bound.">
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
            <Field label="Anycast addresses" hint="Told to routers while it is healthy.">
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

/** Takes an application off a service point. */
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
      title={"Take off " + a.name}
      word="Take it off"
      danger
      close={close}
      send={async () => {
        await call("DELETE", `${path}/applications/${a.id}`)
        toast(a.name + " is being taken off.")
        close()
        done()
      }}
    >
      {() => <p>It ends, and its settings go with it. This cannot be taken back.</p>}
    </Ask>
  )
}

/** Takes a node away from a service point. */
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
      title={"Take away " + node}
      word="Take it away"
      danger
      close={close}
      send={async () => {
        await call("DELETE", `${path}/nodes/${encodeURIComponent(node)}`)
        toast(node + " is taken away.")
        close()
        done()
      }}
    >
      {() => <p>Its certificate is refused from now on, and the registration key is not good any more.</p>}
    </Ask>
  )
}

/** What is shown once of a service point that waits for a machine. */
export interface Key {
  fleetInstanceID: string
  registrationKey: string
  registrationEndpoint: string
}

/** The command that lets a machine be the service point of a key. */
export function AgentCommand({ made }: { made: Key }) {
  const command = `PORTOLAN_REGISTRATION_KEY=${made.registrationKey} portolan agent --registration-endpoint ${made.registrationEndpoint} --state /var/lib/portolan-agent`
  return (
    <div>
      On the machine at the edge: <pre class="command">{command}</pre>
      <Button icon="copy" onClick={() => navigator.clipboard?.writeText(command).then(() => toast("Copied."))}>
        Copy
      </Button>
      <p class="muted small">
        It pings its gateway and 9.9.9.9, looks up example.com, and shows its diagnostics at port 8083 of all its
        addresses. <code>--gateway off --ping-target off --http-target off --diagnostics-listen 127.0.0.1:8083</code>{" "}
        keep it from that.
      </p>
    </div>
  )
}

/** A new registration key: for another machine in the place of the one that there was (registrationKey), or beside it (nodes). */
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
    title = another ? "Another node of " + p.name : "A new key for " + p.name
  if (made)
    return (
      <Dialog title={title} close={close} wide>
        <p>The key is shown here once, and is good for one enrolment within seven days.</p>
        <AgentCommand made={made} />
        <div class="buttons">
          <Button onClick={close}>Close</Button>
        </div>
      </Dialog>
    )
  return (
    <Ask
      title={title}
      word={another ? "Make room for it" : "Make a new key"}
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
            ? "Another machine enrols as a node of it, and runs the same applications."
            : "Whatever is enrolled now is refused from then on: the machine has to enrol anew, or another one takes its place."}
        </p>
      )}
    </Ask>
  )
}
