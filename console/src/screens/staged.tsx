// The change list page: the staged changes, the preview of each and of all, and Apply as one transaction.
import { useEffect, useState } from "preact/hooks"
import { isSecret, type Problem, type Tried } from "../api"
import { problemOf, useData } from "../data"
import { Icon } from "../icons"
import { Button, Dialog, Empty, Field, Head, Loading, Trouble } from "../parts/basics"
import { shown } from "../operations"
import { Effect } from "../parts/preview"
import {
  applyStaged,
  full,
  hasSecret,
  needs,
  setStaged,
  stage,
  staged,
  subjectOf,
  tryStaged,
  unstage,
  type Staged,
} from "../staged"
import { undo } from "../work"
import { toast } from "../notice"
import { fieldName } from "../words"

export function StagedChanges() {
  const list = staged.value,
    key = list.length ? "staged " + JSON.stringify(list) : null
  const all = useData<Tried>(key, () => tryStaged(list), ["transactions"])
  const [comment, setComment] = useState(""),
    [problem, setProblem] = useState<Problem>(),
    [busy, setBusy] = useState(false),
    [one, setOne] = useState<Staged | null>(null),
    [filled, setFilled] = useState<Staged | null>(null)
  const apply = async () => {
    setBusy(true)
    try {
      const now = await tryStaged(list),
        sum = (t: Tried | undefined) => t && [t.created, t.changed, t.deleted].join()
      if (sum(now) !== sum(all.data)) {
        all.reload()
        throw new Error("The preview is out of date. Check the new preview and apply again.")
      }
      const n = await applyStaged(list, comment)
      setProblem(undefined)
      setComment("")
      toast("All changes applied.", { action: { label: "Undo", run: () => void undo(n) } })
    } catch (e) {
      setProblem(problemOf(e))
      if (staged.value !== list) toast(problemOf(e).message, { bad: true }) // the previewed list is no longer shown
    }
    setBusy(false)
  }
  useEffect(() => setProblem(undefined), [key])
  const p = problem ?? all.problem
  const faulty = (i: number) => p?.message.includes(`changes[${i}]`)
  return (
    <>
      <Head title="Change list" kind="not applied yet">
        <Button
          disabled={!list.length}
          icon="trash-2"
          onClick={() => {
            setStaged([])
            toast("Cleared the change list.", { action: { label: "Restore", run: () => setStaged(list) } })
          }}
        >
          Clear the list
        </Button>
      </Head>
      {full.value && (
        <p class="box bad" role="alert">
          The browser storage is full. The list is lost when you close this page.
        </p>
      )}
      {list.length === 0 ? (
        <Empty title="The change list is empty.">
          Press “Add to change list” in any edit window. All changes are previewed together and applied as one
          transaction.
        </Empty>
      ) : (
        <>
          <ol class="staged-list">
            {list.map((s, i) => (
              <li key={s.key} class={faulty(i) ? "faulty" : ""}>
                <Icon name={s.method === "DELETE" ? "trash-2" : s.method === "POST" ? "plus" : "pencil"} />
                <div>
                  <strong>{subjectOf(s)}</strong>{" "}
                  <code class="muted">
                    {s.method} {s.path}
                  </code>
                  {s.body && (
                    <p class="updates">
                      {Object.entries(s.body)
                        .filter(([n]) => n !== "type")
                        .map(([n, v]) => (
                          <span key={n}>
                            <span class="muted">{fieldName(n)}</span> <ins>{shown(masked(n, v))}</ins>
                          </span>
                        ))}
                    </p>
                  )}
                  {hasSecret(s.body) && (
                    <p class="muted">
                      This change contains a secret, which the browser does not store. It is lost when you close or
                      reload this page.
                    </p>
                  )}
                </div>
                <span class="grow" />
                {s.method === "POST" && /(^|\/)blocks$/.test(s.path) && (
                  <button class="small" onClick={() => setFilled(s)}>
                    Add a resource in it
                  </button>
                )}
                <button class="small" onClick={() => setOne(s)}>
                  Preview
                </button>
                <button
                  class="plain"
                  aria-label={"Remove from the list: " + subjectOf(s)}
                  onClick={() => unstage(s.key)}
                >
                  <Icon name="x" />
                </button>
              </li>
            ))}
          </ol>
          <section class="card">
            <h2>Preview of all changes</h2>
            <div aria-live="polite">
              {p ? (
                <>
                  <Trouble
                    problem={p}
                    retry={() => {
                      setProblem(undefined)
                      all.reload()
                    }}
                  />
                  {p.code === "PreconditionFailed" && (
                    <p>
                      Another user has changed a resource on this list.{" "}
                      <button
                        class="small"
                        onClick={() =>
                          setStaged(
                            list.map(({ headers, ...s }, i) =>
                              faulty(i) ? s : { ...s, ...(headers ? { headers } : {}) },
                            ),
                          )
                        }
                      >
                        Overwrite their changes
                      </button>
                    </p>
                  )}
                </>
              ) : all.data ? (
                <Effect tried={all.data} />
              ) : (
                <Loading />
              )}
            </div>
            <label>
              Comment for the history
              <input value={comment} maxLength={2000} onInput={e => setComment(e.currentTarget.value)} />
            </label>
            <div class="buttons">
              <Button primary icon="check" disabled={busy || !!p || !all.data} onClick={() => void apply()}>
                Apply {list.length === 1 ? "change" : "all " + list.length}
              </Button>
            </div>
          </section>
        </>
      )}
      {one && <Alone s={one} close={() => setOne(null)} />}
      {filled && <Inside block={filled} close={() => setFilled(null)} />}
    </>
  )
}

/** Returns a value without its secrets. */
function masked(name: string, value: any): any {
  if (isSecret(name) && value !== null && typeof value !== "boolean") return "…"
  if (Array.isArray(value)) return value.map(v => masked("", v))
  return value && typeof value === "object"
    ? Object.fromEntries(Object.entries(value).map(([n, v]) => [n, masked(n, v)]))
    : value
}

/** Stages a resource inside of a staged block. The list shows the preview. */
function Inside({ block, close }: { block: Staged; close: () => void }) {
  const v = String(block.body?.type).slice(0, 4),
    [what, setWhat] = useState("Network"),
    [range, setRange] = useState(v === "IPv6" ? "/64" : "/24"),
    [name, setName] = useState("")
  const put = (e: Event) => {
    e.preventDefault()
    stage({
      method: "POST",
      path: `blocks/@${block.key}/${what.toLowerCase()}s`,
      body: { type: v + what, range, ...(name ? { name } : {}) },
      says: `Created ${v} ${what.toLowerCase()} ${range}${name ? ` (${name})` : ""}.`,
    })
    close()
  }
  return (
    <Dialog title={"In " + (block.body?.range ?? "the block")} close={close}>
      <form onSubmit={put}>
        <div class="fields">
          <Field label="Type">
            {id => (
              <select id={id} value={what} onChange={e => setWhat(e.currentTarget.value)}>
                <option value="Network">network</option>
                <option value="Block">block</option>
              </select>
            )}
          </Field>
          <Field label="Range" hint="CIDR (10.0.0.0/24), or a size such as /24 for the first free space.">
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                class="mono"
                required
                value={range}
                onInput={e => setRange(e.currentTarget.value.trim())}
              />
            )}
          </Field>
          <Field label="Name">
            {id => <input id={id} value={name} onInput={e => setName(e.currentTarget.value)} />}
          </Field>
        </div>
        <div class="buttons">
          <button class="primary" type="submit">
            Add to change list
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}

function Alone({ s, close }: { s: Staged; close: () => void }) {
  const tried = useData<Tried>("alone " + s.key, () => tryStaged([...needs(s), s]))
  return (
    <Dialog title={"Preview: " + subjectOf(s)} close={close} wide>
      {tried.problem ? <Trouble problem={tried.problem} /> : tried.data ? <Effect tried={tried.data} /> : <Loading />}
    </Dialog>
  )
}
