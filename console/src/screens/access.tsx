// Users and rights: users, groups, access rights, and what a user may see and do (docs/rights.md).
import { useState } from "preact/hooks"
import type { Resource } from "../api"
import { AccessOf } from "../parts/access"
import { Field, Head, Loading, Tabs } from "../parts/basics"
import { RefInput } from "../parts/form"
import { useResource } from "../data"
import { go, place } from "../router"
import { useSchema } from "../schema"
import { session } from "../session"
import { Table } from "./generic"

const tabs: [key: string, label: string][] = [
  ["", "Users"],
  ["groups", "Groups"],
  ["accessRights", "Access rights"],
  ["fleetRights", "Fleet rights"],
  ["check", "Access of a user"],
]

export function UsersAndRights() {
  const schema = useSchema(),
    tab = place.value.query.get("tab") ?? "",
    shown = tabs.filter(([key]) => key !== "fleetRights" || session.value?.administrator),
    name = shown.some(([key]) => key === tab) ? tab || "users" : "users"
  return (
    <>
      <Head title="Users and rights" />
      <Tabs tabs={shown} chosen={tab === name ? name : tab} choose={k => go("/ui/access" + (k ? "?tab=" + k : ""))} />
      {name === "check" ? (
        <Check />
      ) : !schema ? (
        <Loading what="the schema" />
      ) : (
        <Table key={name} path={name} collection={name} c={schema.collections[name]} />
      )}
    </>
  )
}

/** Chooses a user and shows its access. */
function Check() {
  const id = Number(place.value.query.get("user")) || null,
    { data: user } = useResource(id ? "users/" + id : null),
    [chosen, setChosen] = useState<Resource | null>(null)
  return (
    <>
      <section class="card one-resource">
        <Field label="User" hint="Search by name.">
          {(field, d) => (
            <RefInput
              attributes={{ id: field, "aria-describedby": d }}
              value={chosen ?? user}
              types={["User"]}
              set={r => {
                setChosen(r)
                if (r?.id) go(`/ui/access?tab=check&user=${r.id}`, true)
              }}
            />
          )}
        </Field>
      </section>
      {id && <AccessOf key={id} user={id} />}
    </>
  )
}
