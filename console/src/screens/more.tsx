// The screen for each path except the overview. All of them are in one file, which is loaded on first use (index.tsx).
import { place } from "../router"
import { APIDocs } from "./apidocs"
import { Bulk } from "./bulk"
import { Changes, Transaction } from "./changes"
import { DHCP } from "./dhcp"
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

export { APIDocs }

export function Screen() {
  const [first, id, below] = place.value.path
  if (id === undefined)
    switch (first) {
      case "space":
        return <Space />
      case "find":
        return <Find />
      case "names":
        return <Names />
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
      case "staged":
        return <StagedChanges />
      case "bulk":
        return <Bulk />
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
      case "transactions":
        return <Transaction key={id} id={id} />
    }
  return <ResourcePage key={first + id} collection={first} id={id} below={below === "fields" ? undefined : below} />
}
