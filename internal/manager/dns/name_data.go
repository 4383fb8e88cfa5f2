package dns

import (
	"fmt"
	"net/netip"

	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"

	"github.com/miekg/dns"
)

// NameData gives the records of some names of a zone, by the keys of their resources, as ZoneData has them; of a reverse zone also those
// that lead back from some addresses. What the zone has of the zones below it, and of who serves it, is not among them.
func NameData(tx *store.Tx, api *resource.API, zone *store.Resource, keys []string, addresses []netip.Addr) ([]dns.RR, error) {
	z := &zoneReader{tx: tx, api: api, addresses: map[int64][]netip.Addr{}, targets: map[int64]string{}}
	for _, key := range keys {
		rows, err := tx.ByKey(zone.Configuration, key)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Collection != "resourceRecords" || r.Parent != zone.ID || zone.ID == 0 {
				continue
			}
			if err := z.links(r); err != nil {
				return nil, err
			}
			rrs, err := z.recordsOf(r)
			if err != nil {
				return nil, fmt.Errorf("%s %d, %s: %w", r.Type, r.ID, r.Key, err)
			}
			z.records = append(z.records, rrs...)
		}
	}
	if zone.Type == "ResponsePolicyZone" && zone.ID != 0 {
		var names []string
		for _, key := range keys {
			if name, in := naming.Relative(key, zone.Key); in {
				names = append(names, name)
			}
		}
		if err := z.responses(zone, names); err != nil {
			return nil, err
		}
	}
	if low, high, ok := naming.ReverseRange(zone.Key); ok {
		for _, a := range addresses {
			if a.BitLen() != low.BitLen() || a.Less(low) || high.Less(a) {
				continue
			}
			if err := z.reverseBetween(zone, a, a); err != nil {
				return nil, err
			}
		}
	}
	return z.records, nil
}

// links reads what a record refers to.
func (z *zoneReader) links(r *store.Resource) error {
	return z.tx.Each(func(scan func(...any) error) error {
		var field, key string
		var low []byte
		if err := scan(&field, &low, &key); err != nil {
			return err
		}
		if field == "addresses" {
			z.addresses[r.ID] = append(z.addresses[r.ID], store.KeyAddr(low))
		} else {
			z.targets[r.ID] = key
		}
		return nil
	}, "SELECT f.field, t.low, coalesce(t.key, '') FROM reference f JOIN resource t ON t.id = f.target WHERE f.source = ?"+
		" AND f.field IN ('addresses', 'linkedRecord') ORDER BY t.low", r.ID)
}
