package transfer

import (
	"net/netip"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/dns"
)

// writeHost changes the addresses of a host to the wanted ones and returns the other records. A host without addresses is deleted.
func (u *updater) writeHost(r updatedRow, wanted []wire.RR) (changed bool, rest []wire.RR, err error) {
	var keep, add []netip.Addr
	ttl := uint32(1<<31 - 1)
	for _, rr := range wanted {
		addr, is := addressOf(rr)
		there := is && slices.ContainsFunc(r.rrs, func(one wire.RR) bool { return u.cachedData(one) == u.cachedData(rr) })
		fits := false
		if is && !there {
			if fits, err = u.importer.isHostAddress(r.row.Key, addr); err != nil {
				return false, nil, err
			}
		}
		switch {
		case there:
			keep = append(keep, addr)
		case fits:
			add = append(add, addr)
		default:
			rest = append(rest, rr)
			continue
		}
		ttl = min(ttl, rr.Header().Ttl)
	}
	if len(keep)+len(add) == 0 {
		return true, rest, u.removeHost(r)
	}
	sameTTL := len(r.rrs) > 0 && r.rrs[0].Header().Ttl == ttl
	if len(add) == 0 && len(keep) == len(r.rrs) && sameTTL {
		return false, rest, nil
	}
	before, err := u.c.Tx.Links(r.row.ID, "addresses")
	if err != nil {
		return false, nil, err
	}
	given := []string{"addresses"}
	if !sameTTL {
		given = append(given, "ttl")
	}
	seconds := int64(ttl)
	if _, err := u.c.Following(given...).Change(r.row, func(o schema.Object) {
		host := o.(*dns.HostRecord)
		host.Addresses = schema.RefList{IsSet: true}
		for _, a := range append(keep, add...) {
			host.Addresses.Items = append(host.Addresses.Items, schema.RefItem{Text: map[string]string{"address": a.String()}})
		}
		if !sameTTL {
			host.TTL = &seconds
		}
	}); err != nil {
		return false, nil, err
	}
	return true, rest, u.releaseAddresses(before)
}

// removeHost deletes a host, and releases the addresses that were assigned for it.
func (u *updater) removeHost(r updatedRow) error {
	before, err := u.c.Tx.Links(r.row.ID, "addresses")
	if err != nil {
		return err
	}
	if err := u.remove(r.row); err != nil {
		return err
	}
	return u.releaseAddresses(before)
}

// addressOf returns the address of an A or AAAA record.
func addressOf(rr wire.RR) (addr netip.Addr, is bool) {
	switch x := rr.(type) {
	case *wire.A:
		return netip.AddrFromSlice(x.A.To4())
	case *wire.AAAA:
		return netip.AddrFromSlice(x.AAAA.To16())
	}
	return addr, false
}
