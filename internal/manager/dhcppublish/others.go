package dhcppublish

import (
	"net/netip"
	"slices"

	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
)

// maxOthers is the maximum number of other servers in the content of a server. The manager knows all of them.
const maxOthers = 1000

// addOthers adds the other servers with DHCP roles, so that the server does not report them as strangers: their ids, the addresses of the
// interfaces in the roles, and the addresses of the service option server-identifier.
func (c *compiler) addOthers(x *dhcpdata.Server) error {
	addresses := map[netip.Addr]bool{}
	ids := map[int64]bool{}
	for _, roles := range c.roles {
		for _, role := range roles {
			for _, i := range role.RoleInterfaces {
				at := c.interfaces[i.ID]
				if at.server == c.server.ID || at.server == 0 {
					continue
				}
				ids[at.server] = true
				addresses[at.v4] = true
			}
		}
	}
	identifiers, err := dhcp.ServerIdentifiers(c.tx, c.configuration)
	if err != nil {
		return err
	}
	for _, a := range identifiers {
		addresses[a] = true
	}
	for a := range addresses {
		if a.Is4() && !slices.Contains(x.Addresses, a) {
			x.OtherAddresses = append(x.OtherAddresses, a)
		}
	}
	slices.SortFunc(x.OtherAddresses, netip.Addr.Compare)
	x.Others = sortedKeys(ids)
	x.Others, x.OtherAddresses = x.Others[:min(len(x.Others), maxOthers)], x.OtherAddresses[:min(len(x.OtherAddresses), maxOthers)]
	return nil
}
