// The latest changes of a resource, as a short list.
import { signal } from "@preact/signals"
import type { ComponentType } from "preact"
import { useState } from "preact/hooks"
import { get, query, type Page, type Resource } from "../api"
import { useData } from "../data"
import { session } from "../session"
import { Loading, When } from "./basics"

/** Newest first. Managers on one PostgreSQL number transactions independently, so these are sorted by time. Other paths use the index on id. */
export const latest = (what: string) => (what.endsWith("transactions") ? "desc(creationDateTime)" : "desc(id)")

/** A dialog that undoes a change. */
type UndoDialog = ComponentType<{ t: Resource; close: () => void; done: () => void }>

/** The dialog that undoes a change, after its first use, and the function that loads it. */
const undo = signal<UndoDialog | undefined>(undefined)
let loadUndo: () => Promise<UndoDialog> = () => Promise.reject(new Error("no dialog is registered"))

/** Registers the function that loads the dialog that undoes a change: it is part of a screen, which parts do not import. */
export const onUndo = (load: () => Promise<UndoDialog>) => void (loadUndo = load)

/** Reports whether a transaction can be undone. A request for an approval is withdrawn or denied instead (docs/workflow.md). */
export function undoable(t: Resource): boolean {
  return !session.value?.readOnly && !!t.changedResources && !String(t.operation ?? "").startsWith("REQUEST_")
}

/** A short list of the latest changes of a resource. */
export function LastChanges({ path }: { path: string }) {
  const url = path + query({ orderBy: latest(path), limit: 8 })
  const { data, problem, reload } = useData<Page>(url, s => get(url, { signal: s, quiet: true }), ["transactions"]),
    [undoing, setUndoing] = useState<Resource | null>(null)
  if (!data)
    return problem ? (
      <p class="muted">
        {problem.status === 403 ? "You do not have permission to view the history." : problem.message}
      </p>
    ) : (
      <Loading />
    )
  if (!data.data.length)
    return <p class="muted">{session.value?.administrator ? "No changes yet." : "No changes visible to you."}</p>
  const Undo = undo.value
  return (
    <>
      <ul class="plain-list history">
        {data.data.map(t => (
          <li key={t.id}>
            <When at={t.creationDateTime} />
            <span>
              <a href={"/ui/transactions/" + t.id}>{t.description}</a>{" "}
              <span class="muted">{t.principal ?? "the manager"}</span>
            </span>
            {!t.revertingTransaction && undoable(t) && (
              <button
                class="small"
                aria-label={"Undo: " + t.description}
                onClick={() => {
                  setUndoing(t)
                  void loadUndo().then(dialog => (undo.value = dialog))
                }}
              >
                Undo
              </button>
            )}
          </li>
        ))}
      </ul>
      {undoing && Undo && <Undo t={undoing} close={() => setUndoing(null)} done={reload} />}
    </>
  )
}
