package dhcppublish

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"portolan/internal/base/plural"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/ipam"
	"portolan/internal/wire/dhcpdata"
)

// sharedNetwork is the service option with the name of a shared network of IPv6 networks, which have no sharedNetworkTag.
const sharedNetwork = "shared-network"

// ofObjects are the service options of DHCPv6 that are parts of networks and ranges, with the level that they are set at.
var ofObjects = map[string]dhcpdata.Level{ipam.DelegatedLengthOption: dhcpdata.AtRange, sharedNetwork: dhcpdata.AtNetwork}

// isOfObject reports whether a service option is a part of a network or range.
func (c *compiler) isOfObject(name string) bool { return c.v6 && ofObjects[name] != "" }

// ownService reads a service option of DHCPv6 that is set at one object. It reports whether the option exists and has a valid value.
func (c *compiler) ownService(name string, at level, into any) (bool, error) {
	if !c.v6 {
		return false, nil
	}
	all, err := c.merged(at)
	if err != nil {
		return false, err
	}
	described, _ := dhcpdata.FindService(name, true)
	for _, one := range all {
		if one.kind != "DHCPv6ServiceOption" || one.name != name {
			continue
		}
		if wrong := described.CheckValue(one.value); wrong == nil { // otherwise addService refuses it
			return true, json.Unmarshal(one.value, into)
		}
	}
	return false, nil
}

// delegate makes a range a pool of prefixes if it has a delegated length.
func (c *compiler) delegate(at level, p *dhcpdata.Pool) error {
	set, err := c.ownService(ipam.DelegatedLengthOption, at, &p.DelegatedLength)
	if err != nil || !c.v6 {
		return err
	}
	if err := c.checkLeasedLengths(at.row, p); err != nil || !set {
		return err
	}
	for _, one := range c.options[at.row.ID] {
		if one.name == ipam.DelegatedLengthOption && one.rank > 0 {
			c.fail("service option %s of range %s has a serverScope: remove it, all servers of a range delegate prefixes of one length",
				one.name, c.label(at.row))
		}
	}
	if ipam.CountPrefixes(p.Whole.First, p.Whole.Last, p.DelegatedLength).Sign() == 0 {
		c.fail("range %s contains no whole prefix of the length %d, which it delegates", c.label(at.row), p.DelegatedLength)
	}
	return nil
}

// checkLeasedLengths refuses another delegated length of a range than the deployed one while clients have leases of that: the server would
// give a client the prefix that contains, or is a part of, the prefix of another one.
func (c *compiler) checkLeasedLengths(row *store.Resource, p *dhcpdata.Pool) error {
	if c.before == nil {
		return nil
	}
	if had := c.before[dhcpdata.NetworkUnit(row.Parent)]; had != nil {
		for _, r := range had.Records {
			if r[0] != 'P' {
				continue
			}
			x, err := dhcpdata.Decode(r)
			if err != nil {
				return err
			}
			if one, is := x.(dhcpdata.Pool); is && one.ID == p.ID && one.DelegatedLength == p.DelegatedLength {
				return nil
			}
		}
	}
	others, err := dhcp.CountOtherLengths(c.tx, c.configuration, p.Whole.First, p.Whole.Last, p.DelegatedLength)
	if err != nil || others == 0 {
		return err
	}
	kind := "addresses"
	if p.DelegatedLength > 0 {
		kind = fmt.Sprintf("prefixes of the length %d", p.DelegatedLength)
	}
	c.fail("range %s is one of %s, and has %s of others: end them, wait for their end, or use another range", c.label(row), kind,
		plural.Count(others, "lease"))
	return nil
}

// share puts an IPv6 network into the shared network that its service option names.
func (c *compiler) share(at level, n *servedNetwork, x *dhcpdata.Network) error {
	set, err := c.ownService(sharedNetwork, at, &x.SharedName)
	if err != nil || !set {
		return err
	}
	x.Shared = sharedID(x.SharedName)
	n.shared = x.Shared
	return nil
}

// sharedID returns the id of a shared network of IPv6. It differs from all ids of resources, which identify those of IPv4.
func sharedID(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	const ofNames = 1 << 62
	return int64(h.Sum64()>>2) | ofNames //nolint:gosec // 62 bits
}
