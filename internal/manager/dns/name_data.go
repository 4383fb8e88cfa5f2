package dns

import (
	"fmt"
	"net/netip"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// NameData returns the records of some names of a zone, given by resource keys, in the form of ZoneData. For a reverse zone it includes the
// PTR records of the given addresses. It does not include delegations and the name servers of the zone.
func NameData(tx *store.Tx, api *resource.API, zone *store.Resource, keys []string, addresses []netip.Addr) ([]dns.RR, error) {
	z := &ZoneReader{Tx: tx, API: api, Addresses: map[int64][]netip.Addr{}, Targets: map[int64]string{}}
	for _, key := range keys {
		rows, err := tx.ResourcesByKey(zone.Configuration, key)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Collection != "resourceRecords" || r.Parent != zone.ID || zone.ID == 0 {
				continue
			}
			if err := z.Links(r); err != nil {
				return nil, err
			}
			rrs, err := z.RecordsOf(r)
			if err != nil {
				return nil, fmt.Errorf("%s %d, %s: %w", r.Type, r.ID, r.Key, err)
			}
			z.Records = append(z.Records, rrs...)
		}
	}
	if zone.Type == "ResponsePolicyZone" && zone.ID != 0 {
		var names []string
		for _, key := range keys {
			if name, in := naming.Relative(key, zone.Key); in {
				names = append(names, name)
			}
		}
		if err := z.addResponses(zone, names); err != nil {
			return nil, err
		}
	}
	if low, high, ok := naming.ReverseRange(zone.Key); ok {
		for _, a := range addresses {
			if a.BitLen() != low.BitLen() || a.Less(low) || high.Less(a) {
				continue
			}
			if err := z.ReverseBetween(zone, a, a); err != nil {
				return nil, err
			}
		}
	}
	return z.Records, nil
}

// Links reads the addresses and the link target of a record.
func (z *ZoneReader) Links(r *store.Resource) error {
	return z.Tx.Each(func(scan func(...any) error) error {
		var field, key string
		var low []byte
		if err := scan(&field, &low, &key); err != nil {
			return err
		}
		if field == "addresses" {
			z.Addresses[r.ID] = append(z.Addresses[r.ID], store.KeyAddr(low))
		} else {
			z.Targets[r.ID] = key
		}
		return nil
	}, "SELECT f.field, t.low, coalesce(t.key, '') FROM reference f JOIN resource t ON t.id = f.target WHERE f.source = ?"+
		" AND f.field IN ('addresses', 'linkedRecord') ORDER BY t.low", r.ID)
}
