package dhcppublish

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/dhcpdata"
)

// Defaults of a failover pair: the maximum client lead time and the override in seconds, and the share of the primary of 256.
const (
	defaultMCLT     = 3600
	defaultOverride = 3
	defaultSplit    = 128
	// failoverPort is the port at which the secondary of a pair accepts its primary.
	failoverPort = 647
)

// pairOptions are the service options of a failover pair. They are set at the primary server, its group or the configuration.
var pairOptions = []string{"load-balance-override", "load-balance-split", "max-response-delay", "max-unacked-updates", "mclt"}

// isPairOption reports whether a service option is one of a failover pair.
func isPairOption(name string) bool { return slices.Contains(pairOptions, name) }

// pairOf returns the id of the partner in a role; 0 if the role has no SECONDARY interface, or if the pair is invalid. It adds the pair to
// the unit of the server.
func (c *compiler) pairOf(role *serverconfig.DHCPDeploymentRole, row *store.Resource) (int64, error) {
	var first, second []roleInterface
	for _, i := range role.RoleInterfaces {
		if one := c.interfaces[i.ID]; i.Kind == serverconfig.RoleSecondary {
			second = append(second, one)
		} else {
			first = append(first, one)
		}
	}
	fault := func(format string, args ...any) (int64, error) {
		c.fail("the role of %s %s: "+format, append([]any{row.Type, c.label(row)}, args...)...)
		return 0, nil
	}
	if len(first) != 1 || len(second) != 1 || first[0].server == second[0].server {
		return fault("a failover pair has one PRIMARY and one SECONDARY interface, of two servers")
	}
	x := dhcpdata.Pair{Primary: first[0].server == c.server.ID}
	at := first[0]
	if x.Primary {
		at = second[0]
	}
	x.ID, x.Partner = at.server, at.server
	if had, known := c.pairs[x.ID]; known {
		if had.Primary != x.Primary {
			return fault("server %s is the primary of a pair with this partner in one role, and the secondary in another one", c.server.Name)
		}
		return x.ID, nil
	}
	partner, _, err := c.get(x.Partner)
	if err != nil {
		return 0, err
	}
	x.PartnerName = partner.Name
	address := at.v4
	if !address.IsValid() {
		address = at.v6
	}
	if !address.IsValid() {
		return fault("server %s has no address on its interface", partner.Name)
	}
	x.Endpoint = netip.AddrPortFrom(address, failoverPort)
	primary := c.server
	if !x.Primary {
		primary = partner
	}
	if err := c.readPairOptions(primary, &x); err != nil {
		return 0, err
	}
	if err := completePair(c.tx, c, &x); err != nil {
		return 0, err
	}
	c.pairs[x.ID] = x
	if c.whole {
		c.add(dhcpdata.ServerUnit, x)
	}
	return x.ID, nil
}

// readPairOptions reads the options of a pair, which are those of its primary server for DHCPv4.
func (c *compiler) readPairOptions(primary *store.Resource, x *dhcpdata.Pair) error {
	of, err := newCompiler(c.tx, c.api, primary, false)
	if err != nil {
		return err
	}
	places := store.Any{store.HasParent(c.configuration), store.HasParent(primary.ID)}
	if group := of.fields.ServerGroup.ID; group != 0 {
		places = append(places, store.HasParent(group))
	}
	if err := of.readOptions(places); err != nil {
		return err
	}
	for _, id := range []int64{c.configuration, of.fields.ServerGroup.ID} {
		if id != 0 {
			if _, _, err := of.get(id); err != nil {
				return err
			}
		}
	}
	all, err := of.merged(of.serverLevels()...)
	if err != nil {
		return err
	}
	x.MCLT, x.Override, x.Split = defaultMCLT, defaultOverride, defaultSplit
	for _, one := range all {
		if !isService(one.kind) || !isPairOption(one.name) {
			continue
		}
		described, _ := dhcpdata.FindService(one.name, false)
		var n uint32
		if err := described.CheckValue(one.value); err != nil {
			c.fail("option %s of %s %s: %v", one.name, one.row.Type, c.label(one.row), err)
			continue
		}
		if err := json.Unmarshal(one.value, &n); err != nil {
			return err
		}
		switch one.name {
		case "mclt":
			x.MCLT = n
		case "load-balance-split":
			x.Split = int(n)
		case "load-balance-override":
			x.Override = n
		case "max-response-delay":
			x.MaxResponseDelay = n
		case "max-unacked-updates":
			x.MaxUnackedUpdates = n
		}
	}
	return nil
}

// completePair sets the members of a pair that change without a deployment: the key and the port of the partner, and declarations.
func completePair(tx *store.Tx, c *compiler, x *dhcpdata.Pair) error {
	s, err := dhcp.PairStateOf(tx, c.api, c.server.ID, x.Partner)
	if err != nil {
		return err
	}
	if x.PartnerKey, err = hex.DecodeString(s.Key); err != nil {
		return err
	}
	if s.Port != 0 {
		x.Endpoint = netip.AddrPortFrom(x.Endpoint.Addr(), s.Port)
	}
	x.PartnerDown, x.Declaration, x.DeclaredDown = s.Declaration > 0, s.Declaration, s.Downed
	return nil
}

// checkPair compares the options of a network of a pair with the settings of the pair.
func (c *compiler) checkPair(n *servedNetwork, at string, all map[string]chosen) {
	x, paired := c.pairs[n.pair]
	if !paired {
		return
	}
	usual, is := serviceNumber(all, "default-lease-time")
	if !is {
		usual = 86400
	}
	if int64(x.MCLT) >= usual {
		c.warn("%s: the option mclt %d of the failover pair is not less than default-lease-time %d, so a server waits longer than a lease "+
			"before it uses the addresses of its partner", at, x.MCLT, usual)
	}
	for _, one := range all {
		if isService(one.kind) && one.name == "dynamic-bootp" && string(one.value) == "true" {
			c.fail("%s: BOOTP clients of a failover pair need reservations, because they know no end of a lease: remove the option "+
				"dynamic-bootp", at)
		}
	}
}

// keepPairs adds the pairs of the deployed networks of the other family to the unit of the server.
func (c *compiler) keepPairs(before, after dhcpdata.Units) error {
	used := map[int64]bool{}
	for id, one := range after {
		if _, is := dhcpdata.NetworkOf(id); !is {
			continue
		}
		x, err := networkItem(one)
		if err != nil {
			return err
		}
		used[x.Pair] = true
	}
	had := before[dhcpdata.ServerUnit]
	if had == nil {
		return nil
	}
	for _, r := range had.Records {
		item, err := dhcpdata.Decode(r)
		if err != nil {
			return err
		}
		x, is := item.(dhcpdata.Pair)
		if _, known := c.pairs[x.ID]; !is || known || !used[x.ID] {
			continue
		}
		if err := completePair(c.tx, c, &x); err != nil {
			return err
		}
		c.add(dhcpdata.ServerUnit, x)
	}
	return nil
}

// pairsChanged collects the servers whose content depends on a changed row: a declaration, or a key of a partner.
func (f *liveFollower) pairsChanged(before, after *store.Resource) {
	r := after
	if r == nil {
		r = before
	}
	switch r.Collection {
	case dhcp.PartnerActions:
	case dhcp.Partners:
		if before != nil && after != nil && textOf(before, "keyFingerprint") == textOf(after, "keyFingerprint") &&
			textOf(before, "port") == textOf(after, "port") {
			return
		}
	default:
		return
	}
	f.servers[r.Parent], f.servers[r.Ref("partner")] = true, true
}

// textOf returns a member of the body of a row as it is encoded.
func textOf(r *store.Resource, name string) (text string) {
	if err := store.Members(r.Body, func(member, raw []byte) error {
		if string(member) == name {
			text = string(raw)
		}
		return nil
	}); err != nil {
		return ""
	}
	return text
}

// samePair reports whether the items of a network name the pair of its deployed unit. Units of other kinds have no pair.
func samePair(had *dhcpdata.Unit, items []dhcpdata.Item) (bool, error) {
	if had == nil {
		return true, nil
	}
	if _, is := dhcpdata.NetworkOf(had.ID); !is {
		return true, nil
	}
	before, err := networkItem(had)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(items, func(item dhcpdata.Item) bool {
		x, is := item.(dhcpdata.Network)
		return is && x.Pair != before.Pair
	}), nil
}
