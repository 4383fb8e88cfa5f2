// Backups of the database: schedules, a backup now, downloads, and the rehearsal of a restore.
import { useState } from "preact/hooks"
import { call, get, query, url, type Page, type Problem, type Resource } from "../api"
import { problemOf, useData, usePolled } from "../data"
import { Icon } from "../icons"
import { Button, Dialog, Empty, Field, Head, Loading, State, Trouble, When } from "../parts/basics"
import { Delete, Edit } from "../parts/edit"
import { session } from "../session"
import { change } from "../work"
import { bytes } from "./status"
import { number } from "../words"
import { toast } from "../notice"

interface Rehearsal {
  state: string
  backup?: number
  name?: string
  rows: number
  message?: string
  completionDateTime: string | null
}

/** The intervals of a new schedule. */
const intervals: [value: string, label: string][] = [
  ["PT1H", "every hour"],
  ["PT6H", "every 6 hours"],
  ["P1D", "every day"],
  ["P7D", "every week"],
]

export function Backups() {
  const database = useData<Page>("databases", s => get("databases?limit=1", { signal: s, quiet: true }), ["databases"])
  const id = database.data?.data[0]?.id
  return (
    <>
      <Head title="Backups" />
      {!session.value?.administrator ? (
        <Empty title="Only administrators can manage backups." />
      ) : database.problem ? (
        <Trouble problem={database.problem} retry={database.reload} />
      ) : !id ? (
        <Loading what="the backups" />
      ) : (
        <Of database={"databases/" + id} />
      )}
    </>
  )
}

function Of({ database }: { database: string }) {
  const [act, setAct] = useState<{ what: "new" } | { what: "edit" | "delete"; r: Resource } | null>(null),
    [problem, setProblem] = useState<Problem>()
  const schedules = useData<Page>(
    database + "/schedules",
    s => get(database + "/schedules?limit=100", { signal: s, quiet: true }),
    ["schedules", "databaseSchedules"],
  )
  const filesPath = database + "/backups" + query({ orderBy: "desc(id)", limit: 100 }),
    files = usePolled<Page>(filesPath, signal => get(filesPath, { signal, quiet: true }), 2000),
    rehearsal = usePolled<Rehearsal>(
      "rehearsal",
      signal => get<Rehearsal>("backupRehearsal", { signal, quiet: true }),
      1500,
    ),
    last = rehearsal.data
  const tried = async (work: () => Promise<unknown>) => {
    try {
      await work()
      setProblem(undefined)
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  const now = () =>
    tried(async () => {
      let schedule = schedules.data?.data[0]
      schedule ??= (
        await change<Resource>("Created schedule manual.", "POST", database + "/schedules", {
          type: "DatabaseBackupSchedule",
          name: "manual",
        })
      ).body
      await call("PATCH", `${database}/schedules/${schedule.id}`, { state: "QUEUED" })
      toast("Backup started.")
      schedules.reload()
      files.reload()
    })
  return (
    <div class="backups">
      <div class="buttons">
        <Button icon="plus" onClick={() => setAct({ what: "new" })}>
          New schedule
        </Button>
        <Button icon="hard-drive" primary onClick={() => void now()}>
          Back up now
        </Button>
      </div>
      {problem && <Trouble problem={problem} />}
      <h2>Schedules</h2>
      {schedules.problem ? (
        <Trouble problem={schedules.problem} retry={schedules.reload} />
      ) : !schedules.data ? (
        <Loading what="the schedules" />
      ) : schedules.data.data.length === 0 ? (
        <p class="muted">No schedules yet. Backups are made only on request.</p>
      ) : (
        <ul class="staged-list">
          {schedules.data.data.map(s => (
            <li key={s.id}>
              <div>
                <strong>{s.name}</strong>{" "}
                <span class="muted">
                  {s.interval ? (intervals.find(([v]) => v === s.interval)?.[1] ?? s.interval) : "on request"}
                  {s.nextDateTime && (
                    <>
                      , next <When at={s.nextDateTime} />
                    </>
                  )}
                  {`; keeps ${number(s.maxFileCount)} files`}
                  {s.remoteBackupsEnabled && `; uploads to ${s.remoteHost}`}
                </span>
              </div>
              <span class="grow" />
              <Button icon="pencil" onClick={() => setAct({ what: "edit", r: s })}>
                Change
              </Button>
              <Button
                icon="trash-2"
                aria-label={"Delete schedule " + s.name}
                onClick={() => setAct({ what: "delete", r: s })}
              />
            </li>
          ))}
        </ul>
      )}
      <h2>Backups</h2>
      {last && last.state !== "NONE" && (
        <p aria-live="polite">
          <State of={last.state} /> Rehearsal of {last.name}
          {last.state === "RUNNING" ? " …" : `: ${last.message}`}
        </p>
      )}
      {files.problem ? (
        <Trouble problem={files.problem} retry={files.reload} />
      ) : !files.data ? (
        <Loading what="the backups" />
      ) : files.data.data.length === 0 ? (
        <p class="muted">No backups yet.</p>
      ) : (
        <ul class="staged-list">
          {files.data.data.map(f => (
            <li key={f.id}>
              <div>
                <span class="mono">{f.name}</span>{" "}
                <span class="muted">
                  {bytes(f.size)}, <When at={f.modificationDateTime} />, on {f.host}
                </span>
              </div>
              <span class="grow" />
              <Button
                icon="download"
                onClick={() => void tried(() => download(`${database}/backups/${f.id}`, f.name!))}
              >
                Download
              </Button>
              <Button
                icon="check"
                disabled={last?.state === "RUNNING"}
                onClick={() =>
                  void tried(async () => {
                    await call("POST", "backupRehearsal", { backup: f.id })
                    rehearsal.reload()
                  })
                }
              >
                Rehearse
              </Button>
            </li>
          ))}
        </ul>
      )}
      <p class="muted small">
        A rehearsal restores the backup into a temporary database, checks the data, and deletes it. The database in use
        does not change.
      </p>
      {act?.what === "new" && (
        <NewSchedule path={database + "/schedules"} close={() => setAct(null)} done={schedules.reload} />
      )}
      {act?.what === "edit" && <Edit r={act.r} close={() => setAct(null)} done={schedules.reload} />}
      {act?.what === "delete" && <Delete r={act.r} close={() => setAct(null)} done={schedules.reload} />}
    </div>
  )
}

/** Saves a backup file. */
async function download(path: string, name: string) {
  const r = await fetch(url(path), { headers: { Accept: "application/octet-stream" }, credentials: "same-origin" })
  if (!r.ok) {
    const problem = await r.json().catch(() => null)
    throw new Error(problem?.message ?? r.statusText)
  }
  const link = document.createElement("a")
  link.href = URL.createObjectURL(await r.blob())
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/** Creates a schedule that starts now. */
function NewSchedule({ path, close, done }: { path: string; close: () => void; done: () => void }) {
  const [name, setName] = useState("daily"),
    [interval, setInterval_] = useState("P1D"),
    [keep, setKeep] = useState("7"),
    [at, setAt] = useState("02:00"),
    [problem, setProblem] = useState<Problem>()
  const submit = async (e: Event) => {
    e.preventDefault()
    const [hour, minute] = at.split(":").map(Number),
      start = new Date()
    start.setHours(hour, minute, 0, 0)
    if (start.getTime() < Date.now()) start.setDate(start.getDate() + 1)
    try {
      await change(`Created schedule ${name}.`, "POST", path, {
        type: "DatabaseBackupSchedule",
        name,
        interval,
        maxFileCount: Number(keep),
        startDateTime: start.toISOString(),
      })
      close()
      done()
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <Dialog title="New backup schedule" close={close}>
      <form onSubmit={e => void submit(e)}>
        {problem && <Trouble problem={problem} />}
        <div class="fields">
          <Field label="Name *" hint="Begins the names of the files, at most 10 characters.">
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                required
                maxLength={10}
                value={name}
                onInput={e => setName(e.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Interval">
            {id => (
              <select id={id} value={interval} onChange={e => setInterval_(e.currentTarget.value)}>
                {intervals.map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="First backup at *" hint="In your time zone.">
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                type="time"
                required
                value={at}
                onInput={e => setAt(e.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Files to keep *">
            {id => (
              <input
                id={id}
                type="number"
                min={2}
                max={20}
                required
                value={keep}
                onInput={e => setKeep(e.currentTarget.value)}
              />
            )}
          </Field>
        </div>
        <p class="muted small">
          <Icon name="upload" size={13} /> To upload the files to another machine (SFTP or S3), change the schedule
          afterwards.
        </p>
        <div class="buttons">
          <button class="primary" type="submit">
            Create
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}
