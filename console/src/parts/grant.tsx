// The form of a new access right. The right covers one resource, or everything: an explicit choice, never an empty field.
import { useState } from "preact/hooks"
import type { Ref, Resource } from "../api"
import { Icon } from "../icons"
import { title } from "../links"
import { session } from "../session"
import { useSchema } from "../schema"
import { Dialog, Field, Loading } from "./basics"
import { bodyOf, faultOf, FieldInput, RefInput } from "./form"
import { Preview } from "./preview"

/** The access levels with their meaning. */
export const accessLevels: [value: string, text: string][] = [
  ["HIDE", "Hide: not visible at all"],
  ["VIEW", "View: read"],
  ["CHANGE", "Change: read and change"],
  ["ADD", "Add: also create"],
  ["FULL", "Full: also delete"],
]

/** The workflow levels with their meaning. */
export const workflowLevels: [value: string, text: string][] = [
  ["NONE", "Changes take effect at once"],
  ["RECOMMEND", "Changes need an approval"],
  ["APPROVE", "Changes take effect, and the user approves requests of others"],
]

/** Reports whether the signed-in user may create access rights. */
export function mayGrant(): boolean {
  const s = session.value
  return !!s && !s.readOnly && (s.administrator || ["ADD_ACCESS_RIGHTS", "DELETE_ACCESS_RIGHTS"].includes(s.privilege))
}

const deployments: [field: string, text: string][] = [
  ["deploymentsAllowed", "Deploy servers and schedules (full and differential)"],
  ["quickDeploymentsAllowed", "Deploy zones with their own changes (quick)"],
  ["selectiveDeploymentsAllowed", "Deploy single records (selective)"],
]

/** A new access right of a user or group (subject) at a resource (on), where these are known. */
export function Grant({
  subject,
  on,
  close,
  done,
}: {
  subject?: Resource
  on?: Resource
  close: () => void
  done?: () => void
}) {
  const schema = useSchema()
  const [who, setWho] = useState<Ref | null>(subject ?? null),
    [covers, setCovers] = useState<"" | "one" | "all">(on ? "one" : ""),
    [at, setAt] = useState<Ref | null>(on ?? null)
  const [level, setLevel] = useState(""),
    [workflow, setWorkflow] = useState("NONE"),
    [overrides, setOverrides] = useState<unknown>(null),
    [deploys, setDeploys] = useState<Record<string, boolean>>({})
  if (!schema)
    return (
      <Dialog title="New access right" close={close}>
        <Loading what="the schema" />
      </Dialog>
    )
  const field = schema.types.AccessRight?.f.find(f => f.n === "accessOverrides")
  const complete = who?.id && level && (covers === "all" || (covers === "one" && at?.id))
  const name = who ? title(who) : ""
  return (
    <Preview
      title="New access right"
      close={close}
      done={done}
      waits
      wanted={
        complete
          ? {
              method: "POST",
              path: "accessRights",
              body: bodyOf(
                {
                  userScope: { id: who.id, type: who.type },
                  ...(covers === "one" ? { resource: { id: at!.id, type: at!.type } } : {}),
                  defaultAccessLevel: level,
                  workflowLevel: workflow,
                  ...(Array.isArray(overrides) && overrides.length ? { accessOverrides: overrides } : {}),
                  ...deploys,
                },
                "AccessRight",
              ),
              says: `Created the access right of ${name}.`,
            }
          : null
      }
    >
      {problem => (
        <div class="fields">
          <Field label="User or group *" wrong={faultOf(problem, "userScope")}>
            {(id, d) => (
              <RefInput
                attributes={{ id, "aria-describedby": d, disabled: !!subject }}
                value={who}
                types={["User", "UserGroup"]}
                set={setWho}
              />
            )}
          </Field>
          <fieldset class="choice covers">
            <legend>The right covers *</legend>
            <label>
              <input type="radio" name="covers" checked={covers === "one"} onChange={() => setCovers("one")} />
              one resource and everything in it
            </label>
            {session.value?.administrator && (
              <label>
                <input type="radio" name="covers" checked={covers === "all"} onChange={() => setCovers("all")} />
                everything
              </label>
            )}
          </fieldset>
          {covers === "one" && (
            <Field
              label="Resource *"
              hint="A configuration, block, network, view, zone, server or any other resource."
              wrong={faultOf(problem, "resource")}
            >
              {(id, d) => (
                <RefInput
                  attributes={{ id, "aria-describedby": d, disabled: !!on }}
                  value={at}
                  types={[]}
                  set={setAt}
                />
              )}
            </Field>
          )}
          {covers === "all" && (
            <p class="box warn">
              <Icon name="triangle-alert" /> The right covers all configurations and all resources, also future ones.
            </p>
          )}
          <Field label="Access level *" wrong={faultOf(problem, "defaultAccessLevel")}>
            {id => (
              <select id={id} name="defaultAccessLevel" value={level} onChange={e => setLevel(e.currentTarget.value)}>
                <option value="">Choose …</option>
                {accessLevels.map(([value, text]) => (
                  <option key={value} value={value}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Approval" wrong={faultOf(problem, "workflowLevel")}>
            {id => (
              <select id={id} name="workflowLevel" value={workflow} onChange={e => setWorkflow(e.currentTarget.value)}>
                {workflowLevels.map(([value, text]) => (
                  <option key={value} value={value}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <fieldset class="choice covers">
            <legend>The user may also</legend>
            {deployments.map(([n, text]) => (
              <label key={n}>
                <input
                  type="checkbox"
                  checked={!!deploys[n]}
                  onChange={e => {
                    const checked = e.currentTarget.checked
                    setDeploys(d => ({ ...d, [n]: checked }))
                  }}
                />
                {text}
              </label>
            ))}
          </fieldset>
          {field && (
            <FieldInput
              field={{
                ...field,
                t: "Other levels for some types",
                d: "They replace the access level for these types.",
              }}
              value={overrides}
              set={setOverrides}
              problem={problem}
            />
          )}
        </div>
      )}
    </Preview>
  )
}
