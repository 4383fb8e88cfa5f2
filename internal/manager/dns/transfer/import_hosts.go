package transfer

import (
	"net/netip"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
)

// groupByName groups records by name, in the order of the first record of each name.
func groupByName(records []wire.RR) (all [][]wire.RR) {
	at := map[string]int{}
	for _, rr := range records {
		name := wire.CanonicalName(rr.Header().Name)
		if _, ok := at[name]; !ok {
			at[name] = len(all)
			all = append(all, nil)
		}
		all[at[name]] = append(all[at[name]], rr)
	}
	return all
}

// createHost creates a host record for the addresses of a name. A host has a single TTL. In an import, addresses of the other type with a
// different TTL become generic records; in an update, the host gets the lowest TTL.
func (i *zoneImport) createHost(records []wire.RR) error {
	label := cleanName(wire.CanonicalName(records[0].Header().Name))
	host := &dns.HostRecord{ReverseRecord: true}
	host.Type = "HostRecord"
	host.Addresses.IsSet = true
	kind, ttl := records[0].Header().Rrtype, records[0].Header().Ttl
	minTTL := map[uint16]uint32{} // lowest TTL by record type
	for _, rr := range records {
		h := rr.Header()
		if known, ok := minTTL[h.Rrtype]; !ok || h.Ttl < known {
			minTTL[h.Rrtype] = h.Ttl
		}
		if ttl = min(ttl, h.Ttl); !i.releasesAddresses {
			ttl = minTTL[kind]
		}
	}
	for _, rr := range records {
		if h := rr.Header(); !i.releasesAddresses && minTTL[h.Rrtype] != ttl {
			if err := i.createGeneric(rr); err != nil {
				return err
			}
			continue
		}
		addr, _ := addressOf(rr)
		fits, err := i.isHostAddress(label, addr)
		if err != nil {
			return err
		}
		if fits {
			host.Addresses.Items = append(host.Addresses.Items, schema.RefItem{Text: map[string]string{"address": addr.String()}})
			continue
		}
		if err := i.createGeneric(rr); err != nil {
			return err
		}
	}
	if len(host.Addresses.Items) == 0 {
		return nil
	}
	return i.create(records[0], host, ttl)
}

// isHostAddress reports whether an address can belong to a host with this name: it must be a host address of a network.
func (i *zoneImport) isHostAddress(name string, addr netip.Addr) (bool, error) {
	network, err := ipam.NetworkOf(i.c.Tx, i.zone.Configuration, addr)
	if store.IsNotFound(err) {
		return false, nil
	}
	if err != nil || !ipam.Usable(network).Has(addr) || naming.Check(name, naming.HostName) != nil {
		return false, err
	}
	if i.releasesAddresses {
		there, err := i.c.Tx.ListBelow(network.ID, "addresses", store.AddrKey(addr), store.AddrKey(addr))
		if err != nil {
			return false, err
		}
		if leased, err := i.isLeased(network.ID, addr); err != nil || leased && len(there) == 0 {
			return false, err
		}
		if len(there) == 0 {
			i.assigned = append(i.assigned, assignedAddress{network.ID, addr})
		}
	}
	return true, nil
}

// isLeased reports whether an update names an address of a DHCP range. A server leases it: it is not assigned, and stays in the range.
func (i *zoneImport) isLeased(network int64, addr netip.Addr) (bool, error) {
	if !i.dynamic {
		return false, nil
	}
	ranges, err := i.c.Tx.ListBelow(network, "ranges", store.AddrKey(addr), store.AddrKey(addr))
	return len(ranges) > 0, err
}

// sameRecord returns a text that is equal for equal records. Names are compared without regard to case (RFC 4343), texts are not.
func sameRecord(rr wire.RR) string {
	switch rr.(type) {
	case *wire.A, *wire.AAAA, *wire.CNAME, *wire.MX, *wire.NS, *wire.PTR, *wire.SOA, *wire.SRV, *wire.SVCB, *wire.HTTPS:
		return strings.ToLower(rr.String())
	}
	name := rr.Header().Name
	return wire.CanonicalName(name) + strings.TrimPrefix(rr.String(), name)
}
