package dhcp

import (
	"fmt"
	"net/netip"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// keepOrphans makes the leased addresses that a smaller DHCP range leaves outside addresses of their clients, in the state that the request
// names. Otherwise the clients would lose them at the next renewal. The source of the rule is D672.
func keepOrphans(c *resource.Change) error {
	parts, state := ipam.OrphanedBy(c)
	if len(parts) == 0 {
		return nil
	}
	network, err := c.Tx.Get(c.Row.Parent)
	if err != nil {
		return err
	}
	network = network.Clone()
	type leased struct {
		address netip.Addr
		storedLease
	}
	var all []leased
	for _, part := range parts {
		if err := c.Tx.Each(func(scan func(...any) error) error {
			var l leased
			var low []byte
			err := l.scan(scan, &low)
			l.address = store.KeyAddr(low)
			all = append(all, l)
			return err
		}, "SELECT "+leaseColumns+" FROM dhcp_lease WHERE configuration = ? AND parent = ? AND low >= ? AND low <= ? AND state = ? ORDER BY low",
			network.Configuration, network.ID, store.AddrKey(part.Low), store.AddrKey(part.High), stateAllocated); err != nil {
			return fmt.Errorf("read the leases outside of the range: %w", err)
		}
	}
	for _, l := range all {
		switch _, err := ipam.AddressAt(c.Tx, network.ID, l.address); {
		case err == nil: // it has a state already
			continue
		case !store.IsNotFound(err):
			return err
		}
		if _, err := createFor(c, network, l.address, l.storedLease, state); err != nil {
			return fmt.Errorf("keep the leased address %s: %w", l.address, err)
		}
	}
	return nil
}
