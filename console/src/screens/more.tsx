// The screen for each path except the overview. All of them are in one file, which is loaded on first use (index.tsx).
import { Empty, Head } from "../parts/basics"
import { useDenied } from "../rights"
import { place } from "../router"
import { session } from "../session"
import { UsersAndRights } from "./access"
import { APIDocs } from "./apidocs"
import { Approvals, RequestPage } from "./approvals"
import { Bulk } from "./bulk"
import { Changes, Transaction, Undo } from "./changes"
import { DHCP } from "./dhcp"
import { Discovery } from "./discovery"
import { Find } from "./find"
import { Fleet, ServicePoint } from "./fleet"
import { CollectionPage, Everything, Nowhere, ResourcePage } from "./generic"
import { Names, ZonePage } from "./names"
import { AddressPage, NetworkPage } from "./network"
import { Backups } from "./backups"
import { Servers } from "./servers"
import { Setup } from "./setup"
import { BlockPage, Space } from "./space"
import { StagedChanges } from "./staged"
import { StatusPage } from "./status"
import { Tokens } from "./tokens"
import { VLANs } from "./vlans"

export { APIDocs, Undo }

/** Shown instead of a page that the user cannot use. */
function NoAccess({ why }: { why: string }) {
  return (
    <>
      <Head title="No access" />
      <Empty title="You do not have permission to view this page.">
        {why} <a href={`/ui/users/${session.value?.user.id}/access`}>Your access</a>
      </Empty>
    </>
  )
}

export function Screen() {
  const [first, id, below] = place.value.path,
    why = useDenied()(first)
  if (why && id === undefined) return <NoAccess why={why} />
  if (id === undefined)
    switch (first) {
      case "space":
        return <Space />
      case "find":
        return <Find />
      case "names":
        return <Names />
      case "discovery":
        return <Discovery />
      case "vlans":
        return <VLANs />
      case "servers":
        return <Servers />
      case "dhcp":
        return <DHCP />
      case "fleet":
        return <Fleet />
      case "setup":
        return <Setup />
      case "status":
        return <StatusPage />
      case "backups":
        return <Backups />
      case "transactions":
        return <Changes />
      case "workflowRequests":
        return <Approvals />
      case "staged":
        return <StagedChanges />
      case "bulk":
        return <Bulk />
      case "access":
        return <UsersAndRights />
      case "tokens":
        return <Tokens />
      case "docs":
        return <APIDocs />
      case "all":
        return <Everything />
      default:
        return <CollectionPage key={first} name={first} />
    }
  if (first === "fleet") return <ServicePoint key={id} id={id} />
  if (!/^\d+$/.test(id)) return <Nowhere />
  if (first === "networks") return <NetworkPage key={id} id={id} below={below} />
  if (first === "blocks") return <BlockPage key={id} id={id} below={below} />
  if (first === "zones") return <ZonePage key={id} id={id} below={below} />
  if (!below)
    switch (first) {
      case "addresses":
        return <AddressPage key={id} id={id} />
      case "workflowRequests":
        return <RequestPage key={id} id={id} />
      case "transactions":
        return <Transaction key={id} id={id} />
    }
  return <ResourcePage key={first + id} collection={first} id={id} below={below === "fields" ? undefined : below} />
}
