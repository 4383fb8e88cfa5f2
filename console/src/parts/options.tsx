// DHCP options of an object as a form that shows inheritance: each option in effect with the object that sets it, an override, and a reset.
import { useState } from "preact/hooks"
import { get, query, type Page, type Problem, type Resource } from "../api"
import { useData } from "../data"
import { To } from "../links"
import type { May } from "../rights"
import { Button, Empty, Field, Loading, Trouble } from "./basics"
import { faultOf } from "./form"
import { shown } from "../operations"
import { Preview } from "./preview"
import { type Wanted } from "../staged"

interface Definition extends Resource {
  displayName: string | null
  description: string | null
  valueFormat: any
}

/** An option in effect at an object. */
interface Option extends Resource {
  value: any
  resource: Resource | null
}

const isDHCP = (r: Resource) => r.type.startsWith("DHCP")

/** Reads the options in effect at an object, without those of DNS. */
async function optionsAt(path: string, signal: AbortSignal): Promise<Option[]> {
  const page = await get<Page<Option>>(path + "/effectiveDeploymentOptions" + query({ limit: 1000 }), { signal })
  return page.data.filter(isDHCP)
}

/** The definition of an option and its server scope identify it at an object. */
const keyOf = (o: Option) => `${o.type} ${o.definition?.id ?? o.id} ${o.serverScope?.id ?? ""}`

/** Reads the definitions of DHCP options of one family. */
function useOptionDefinitions(v6: boolean) {
  const path = "deploymentOptionDefinitions" + query({ limit: 1000, orderBy: "name" })
  return useData<Definition[]>(path, async s =>
    (await get<Page<Definition>>(path, { signal: s, quiet: true })).data.filter(
      d => d.type.startsWith(v6 ? "DHCPv6" : "DHCPv4") && /(Client|Service)OptionDefinition$/.test(d.type),
    ),
  )
}

/** The ways to enter a value. */
type Kind = "yes" | "number" | "text" | "lines" | "json"

function kindOf(format: any): Kind {
  if (typeof format === "string")
    return /boolean/.test(format) ? "yes" : /integer|number/.test(format) ? "number" : "text"
  if (Array.isArray(format) && format.length === 1 && typeof format[0] === "string") return "lines"
  return "json"
}

/** Returns the text of a value in a form. */
function textOf(value: any, kind: Kind): string {
  if (value === null || value === undefined) return ""
  if (kind === "lines" && Array.isArray(value)) return value.join("\n")
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value)
}

/** Returns the value of a text, or undefined while it is incomplete. */
function valueOf(text: string, kind: Kind, format: any): any {
  const t = text.trim()
  if (t === "") return undefined
  const integer = (x: string) => (/^-?\d+$/.test(x) ? Number(x) : x)
  switch (kind) {
    case "yes":
      return t === "true"
    case "number":
      return integer(t)
    case "lines":
      return t
        .split(/[\n,]/)
        .map(x => x.trim())
        .filter(Boolean)
        .map(x => (/integer/.test(format[0]) ? integer(x) : x))
    case "json":
      try {
        return JSON.parse(t)
      } catch {
        return undefined
      }
  }
  return t
}

/** The options of an object. path is its path, and parent that of the object above. */
export function Options({ r, path, may }: { r: Resource; path: string; may: May }) {
  const up = r._links?.up?.href.replace(/^\/api\/v2\//, ""),
    v6 = r.type.startsWith("IPv6")
  const here = useData(path + "/options", s => optionsAt(path, s), ["deploymentOptions"])
  const above = useData(up ? up + "/options" : null, s => optionsAt(up!, s), ["deploymentOptions"])
  const definitions = useOptionDefinitions(v6)
  const [editing, setEditing] = useState<{ option?: Option; definition?: Definition } | null>(null),
    [resetting, setResetting] = useState<Option | null>(null),
    [typed, setTyped] = useState("")
  const problem = here.problem ?? definitions.problem
  if (problem) return <Trouble problem={problem} retry={here.reload} />
  if (!here.data || !definitions.data) return <Loading what="the options" />
  const byID = new Map(definitions.data.map(d => [d.id, d])),
    inherited = new Map((above.data ?? []).map(o => [keyOf(o), o]))
  const list = here.data
    .filter(o => (o.type.startsWith("DHCPv6") ? v6 : !v6))
    .filter(o => (o.name ?? "").includes(typed.trim()))
    .sort(
      (a, b) =>
        Number(b.resource?.id === r.id) - Number(a.resource?.id === r.id) || (a.name ?? "").localeCompare(b.name ?? ""),
    )
  return (
    <>
      <div class="tools">
        <input
          type="search"
          aria-label="Find an option"
          placeholder="name of an option"
          value={typed}
          onInput={e => setTyped(e.currentTarget.value)}
        />
        <span class="grow" />
        {may.add && (
          <Button icon="plus" onClick={() => setEditing({})}>
            Set option
          </Button>
        )}
      </div>
      {list.length === 0 ? (
        <Empty title={typed ? "No options match." : "No DHCP options yet."}>
          {!typed && "Options of blocks, the configuration and this object appear here."}
        </Empty>
      ) : (
        <div class="scrolls" tabIndex={0} role="region" aria-label="DHCP options in effect">
          <table class="plain-table option-table">
            <thead>
              <tr>
                <th scope="col">Option</th>
                <th scope="col">Value</th>
                <th scope="col">Set at</th>
                <th scope="col">
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map(o => {
                const own = o.resource?.id === r.id,
                  over = own ? inherited.get(keyOf(o)) : undefined,
                  definition = byID.get(o.definition?.id)
                return (
                  <tr key={o.id} class={own ? "own" : ""}>
                    <td title={definition?.description ?? ""}>
                      <a href={"/ui/deploymentOptions/" + o.id}>{o.name}</a>
                      {o.serverScope && <div class="muted small">for {o.serverScope.name}</div>}
                    </td>
                    <td class="mono">
                      {shown(o.value)}
                      {over && (
                        <div class="muted small">
                          instead of <del>{shown(over.value)}</del>
                        </div>
                      )}
                    </td>
                    <td>
                      {own ? (
                        <strong>set here</strong>
                      ) : (
                        <>
                          <To r={o.resource} /> <span class="muted small">inherited</span>
                        </>
                      )}
                      {over && (
                        <div class="muted small">
                          overrides <To r={over.resource} />
                        </div>
                      )}
                    </td>
                    <td class="acts">
                      {own && may.change && definition && (
                        <button class="small" onClick={() => setEditing({ option: o, definition })}>
                          Change
                        </button>
                      )}
                      {own && may.change && (
                        <button class="small" onClick={() => setResetting(o)}>
                          {over ? "Reset" : "Remove"}
                        </button>
                      )}
                      {!own && may.add && definition && !o.serverScope && (
                        <button class="small" onClick={() => setEditing({ definition, option: { ...o, id: 0 } })}>
                          Override
                        </button>
                      )}
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
      {editing && (
        <SetOption
          path={path}
          option={editing.option}
          chosen={editing.definition}
          definitions={definitions.data}
          close={() => setEditing(null)}
          done={here.reload}
        />
      )}
      {resetting && (
        <Preview
          title={`${inherited.has(keyOf(resetting)) ? "Reset" : "Remove"} ${resetting.name}`}
          danger
          wanted={{
            method: "DELETE",
            path: "deploymentOptions/" + resetting.id,
            says: `Removed the option ${resetting.name}.`,
          }}
          close={() => setResetting(null)}
          done={here.reload}
        >
          {() => {
            const over = inherited.get(keyOf(resetting))
            return over ? (
              <p>
                The value becomes <span class="mono">{shown(over.value)}</span>, inherited from <To r={over.resource} />
                .
              </p>
            ) : (
              <p>No object above sets this option. Clients no longer get it, or get its default.</p>
            )
          }}
        </Preview>
      )}
    </>
  )
}

/** Creates or changes an option. An option with the id 0 is the inherited one that is overridden. */
function SetOption({
  path,
  option,
  chosen,
  definitions,
  close,
  done,
}: {
  path: string
  option?: Option
  chosen?: Definition
  definitions: Definition[]
  close: () => void
  done: () => void
}) {
  const [chosenID, setChosenID] = useState(chosen?.id ?? 0),
    definition = definitions.find(d => d.id === chosenID),
    format = definition?.valueFormat,
    kind = kindOf(format)
  const [text, setText] = useState(textOf(option?.value, kindOf(chosen?.valueFormat)))
  const value = definition ? valueOf(text, kind, format) : undefined
  const wanted: Wanted | null =
    !definition || value === undefined
      ? null
      : option?.id
        ? {
            method: "PATCH",
            path: "deploymentOptions/" + option.id,
            body: { value },
            says: `Changed the option ${definition.name}.`,
          }
        : {
            method: "POST",
            path: path + "/deploymentOptions",
            body: { type: definition.type.replace(/Definition$/, ""), name: definition.name, value },
            says: `Set the option ${definition.name}.`,
          }
  const groups = [...new Set(definitions.map(d => (d.type.includes("Service") ? "Service options" : "Client options")))]
  return (
    <Preview
      title={option?.id ? `Change ${option.name}` : chosen ? `Override ${chosen.name}` : "Set an option"}
      wanted={wanted}
      close={close}
      done={done}
      waits
    >
      {(problem: Problem | undefined) => (
        <div class="fields">
          {!chosen && (
            <Field label="Option *" wrong={faultOf(problem, "name")} hint={definition?.description ?? undefined}>
              {(field, d) => (
                <select
                  id={field}
                  aria-describedby={d}
                  value={chosenID || ""}
                  onChange={e => {
                    setChosenID(Number(e.currentTarget.value))
                    setText("")
                  }}
                >
                  <option value="">Choose …</option>
                  {groups.map(g => (
                    <optgroup key={g} label={g}>
                      {definitions
                        .filter(d => d.type.includes("Service") === (g === "Service options"))
                        .map(d => (
                          <option key={d.id} value={d.id}>
                            {d.name}
                            {d.code ? ` (${d.code})` : ""}
                          </option>
                        ))}
                    </optgroup>
                  ))}
                </select>
              )}
            </Field>
          )}
          {definition && (
            <Field
              label="Value *"
              wrong={faultOf(problem, "value")}
              hint={[
                chosen?.description,
                kind === "lines" ? "One value per line." : kind === "json" ? "JSON." : "",
                `Format: ${typeof format === "string" ? format : JSON.stringify(format)}`,
              ]
                .filter(Boolean)
                .join(" ")}
            >
              {(field, d) =>
                kind === "yes" ? (
                  <select id={field} aria-describedby={d} value={text} onChange={e => setText(e.currentTarget.value)}>
                    <option value="">Choose …</option>
                    <option value="true">yes</option>
                    <option value="false">no</option>
                  </select>
                ) : kind === "lines" || kind === "json" ? (
                  <textarea
                    id={field}
                    aria-describedby={d}
                    class="mono"
                    rows={4}
                    spellcheck={false}
                    value={text}
                    onInput={e => setText(e.currentTarget.value)}
                  />
                ) : (
                  <input
                    id={field}
                    aria-describedby={d}
                    class="mono"
                    inputMode={kind === "number" ? "numeric" : undefined}
                    value={text}
                    onInput={e => setText(e.currentTarget.value)}
                  />
                )
              }
            </Field>
          )}
        </div>
      )}
    </Preview>
  )
}
