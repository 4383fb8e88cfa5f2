// The import of lease files of ISC dhcpd and Kea.
import { useState } from "preact/hooks"
import type { Problem } from "../api"
import { problemOf } from "../data"
import { changedHere } from "../live"
import { configuration } from "../session"
import { importFile } from "../sheet"
import { Button, Field, Trouble } from "./basics"
import { number } from "../words"
import { toast } from "../notice"

const shownLines = 200

interface Tried {
  key: string
  lines: string[]
  created: number
  updated: number
  unchanged: number
  refused: number
  problem?: Problem
}

/** Imports the leases of another DHCP server, so that its clients keep their addresses. */
export function LeaseFile() {
  const [files, setFiles] = useState<File[]>([]),
    [busy, setBusy] = useState(false),
    [tried, setTried] = useState<Tried>()
  const key = JSON.stringify([configuration.value, files.map(f => [f.name, f.size, f.lastModified])]),
    current = tried?.key === key ? tried : undefined
  const attempt = async (mode: "DRY_RUN" | "ROW_BY_ROW") => {
    setBusy(true)
    try {
      // The oldest part of a lease file comes first: a later entry of an address replaces an earlier one.
      const parts = [...files].sort((a, b) => age(b.name) - age(a.name)).flatMap(f => [f, "\n"])
      const { result: r, log } = await importFile(new Blob(parts, { type: "text/plain" }), "leases.txt", {
        contentType: "text/plain",
        resourceType: "DHCPv4Lease",
        into: "configurations/" + configuration.value,
        mode,
      })
      const problem =
        r.state === "FAILED"
          ? { status: 400, code: "Refused", message: r.message ?? "The file was refused." }
          : undefined
      const lines = log.split("\n").filter(Boolean)
      setTried({
        key,
        lines,
        problem,
        created: r.created,
        updated: r.updated,
        unchanged: r.unchanged,
        refused: r.refused,
      })
      if (mode === "ROW_BY_ROW" && !problem) {
        changedHere("batch")
        toast(`${number(r.created)} leases imported, ${number(r.updated)} updated.`)
      }
    } catch (e) {
      setTried({ key, lines: [], created: 0, updated: 0, unchanged: 0, refused: 0, problem: problemOf(e) })
    }
    setBusy(false)
  }
  return (
    <section aria-labelledby="lease-file">
      <h2 id="lease-file">DHCP leases</h2>
      <p class="muted">
        Import the lease files of ISC dhcpd (<code>dhcpd.leases</code>) or Kea (<code>kea-leases4.csv</code> with its
        parts), so that each client keeps its address. Import the configuration first, and repeat the import after the
        old server has stopped. Only administrators can import leases.
      </p>
      <Field label="Lease files of one server">
        {id => (
          <input
            id={id}
            type="file"
            multiple
            accept=".leases,.csv,.txt,.1,.2,.completed"
            onClick={e => (e.currentTarget.value = "")} // a corrected file has the same name
            onChange={e => setFiles([...(e.currentTarget.files ?? [])])}
          />
        )}
      </Field>
      <div class="tools">
        <Button disabled={busy || !files.length || !configuration.value} onClick={() => void attempt("DRY_RUN")}>
          {busy ? "Loading preview …" : "Preview leases"}
        </Button>
        <Button primary disabled={busy || !current || !!current.problem} onClick={() => void attempt("ROW_BY_ROW")}>
          Import leases
        </Button>
        <span aria-live="polite">
          {current && !current.problem && (
            <>
              {number(current.created)} new, {number(current.updated)} changed, {number(current.unchanged)} unchanged or
              not active{current.refused > 0 && <span class="bad-text">, {number(current.refused)} refused</span>}.
            </>
          )}
        </span>
      </div>
      {current?.problem && <Trouble problem={current.problem} />}
      {!!current?.lines.length && (
        <ul class="causes mono small">
          {current.lines.slice(0, shownLines).map(line => (
            <li key={line}>{line.replace(/: LeaseNotImported:|: InvalidFileDataValue:/, ":")}</li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** Orders the parts of a lease file of Kea: the file before the last cleanup, its input, and the current file. */
const age = (name: string) => [".1", ".completed", ".output", ".2"].findIndex(end => name.endsWith(end)) + 1
