// Asks a name server through the manager and shows the answer in the format of dig.
import { useState } from "preact/hooks"
import { get, query, type Problem } from "../api"
import { problemOf } from "../data"
import { Icon } from "../icons"
import { Button, Trouble } from "./basics"

/** An answer of the manager's look-ups. */
export interface Lookup {
  name: string
  recordType: string
  server: string
  protocol: string
  status: string
  flags: string[]
  answers: string[]
  authority: string[]
  additional: string[]
  milliseconds: number
  reason?: string
}

/** Asks a server, or the name servers of the manager about a zone. */
export function lookUp(parameters: { server?: number; zone?: number | string; name?: string; recordType?: string }) {
  return get<Lookup>("dnsLookup" + query(parameters))
}

/** Returns an answer in the format of dig. */
export function digText(l: Lookup) {
  const section = (name: string, lines: string[]) =>
    lines.length ? `\n;; ${name} SECTION:\n${lines.join("\n")}\n` : ""
  return (
    `;; status: ${l.status}, flags: ${l.flags.join(" ")}; ANSWER: ${l.answers.length}, AUTHORITY: ${l.authority.length}, ADDITIONAL: ${l.additional.length}\n` +
    `\n;; QUESTION SECTION:\n;${l.name}\tIN\t${l.recordType}\n` +
    section("ANSWER", l.answers) +
    section("AUTHORITY", l.authority) +
    section("ADDITIONAL", l.additional) +
    `\n;; Query time: ${l.milliseconds} ms\n;; SERVER: ${l.server} (${l.protocol.toUpperCase()})`
  )
}

/** An answer, or the reason why there is none. */
export function Dig({ l }: { l: Lookup }) {
  if (l.reason)
    return (
      <div class="box bad" role="alert">
        <Icon name="circle-alert" />
        <p>
          <strong>No answer.</strong> {l.reason}
        </p>
      </div>
    )
  return (
    <>
      {l.status !== "NOERROR" && (
        <p class="bad-text">
          {l.status === "SERVFAIL"
            ? "The server answers, but does not serve this zone: deploy it to this server."
            : l.status === "REFUSED"
              ? "The server refuses the query: it has no role for a zone with this name, or an access rule excludes the manager."
              : l.status === "NXDOMAIN"
                ? "The name does not exist in the zone."
                : `The server answered ${l.status}.`}
        </p>
      )}
      <pre class="log" tabIndex={0} aria-label={`Answer of ${l.server}`}>
        {digText(l)}
      </pre>
    </>
  )
}

const types = ["SOA", "NS", "A", "AAAA", "CNAME", "MX", "TXT", "SRV", "PTR", "DNSKEY", "DS", "CAA"]

/** A form that asks a server for a name. answered is called with each answer. */
export function AskServer({
  server,
  name: begin = "",
  answered,
}: {
  server: number
  name?: string
  answered?: (l: Lookup) => void
}) {
  const [name, setName] = useState(begin),
    [type, setType] = useState("SOA"),
    [busy, setBusy] = useState(false),
    [answer, setAnswer] = useState<Lookup>(),
    [problem, setProblem] = useState<Problem>()
  const ask = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    try {
      const l = await lookUp({ server, name, recordType: type })
      setAnswer(l)
      setProblem(undefined)
      answered?.(l)
    } catch (e) {
      setProblem(problemOf(e))
      setAnswer(undefined)
    }
    setBusy(false)
  }
  return (
    <form onSubmit={e => void ask(e)}>
      <div class="tools">
        <input
          type="text"
          class="mono"
          aria-label="Name to look up"
          placeholder="www.example.net"
          spellcheck={false}
          value={name}
          onInput={e => setName(e.currentTarget.value)}
        />
        <select aria-label="Record type" value={type} onChange={e => setType(e.currentTarget.value)}>
          {types.map(t => (
            <option key={t}>{t}</option>
          ))}
        </select>
        <Button type="submit" primary icon="search" disabled={busy}>
          {busy ? "Asking …" : "Ask the server"}
        </Button>
      </div>
      {problem && <Trouble problem={problem} />}
      {answer && <Dig l={answer} />}
    </form>
  )
}
