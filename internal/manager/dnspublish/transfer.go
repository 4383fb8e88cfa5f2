package dnspublish

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/wire/zonedata"
)

// transfer returns the new content of a zone and its SOA from a source. It uses an incremental transfer if the source offers one that fits
// the deployed content, else a full transfer.
func (c *Copier) transfer(ctx context.Context, z *copiedZone, at source, before copiedNow) (*publication, *wire.SOA, error) {
	var records []wire.RR
	if z.sourceKnown && before.soa != nil {
		changes, err := transfer.CopyChanges(ctx, at.String(), z.name, at.key, before.soa)
		if err == nil && changes.Whole == nil {
			var p *publication
			if p, err = c.publishChanges(ctx, z, before, changes); err == nil {
				return p, changes.SOA, nil
			}
		}
		if err == nil {
			records = changes.Whole
		} else {
			c.log.Debug("incremental transfer failed, copying whole zone", "zone", z.name, "reason", err)
		}
	}
	if records == nil {
		var err error
		if records, err = transfer.CopyZone(ctx, at.String(), z.name, at.key); err != nil {
			return nil, nil, err
		}
	}
	after, err := entriesOfRecords(inZone(records, z.name))
	if err != nil {
		return nil, nil, err
	}
	after = inOrder(after)
	soa := soaIn(after)
	if soa == nil {
		return nil, nil, fmt.Errorf("%s returned the zone without its SOA", at)
	}
	if err := checkLoadable(after); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	p, err := c.publishWhole(ctx, z, before, after, soa.Serial)
	return p, soa, err
}

// publishWhole returns the publication of all records of a zone, which must be sorted.
func (c *Copier) publishWhole(ctx context.Context, z *copiedZone, before copiedNow, after []zonedata.Entry, serial uint32) (*publication,
	error) {
	p := z.publication(before, serial)
	p.after = after
	var entries []zonedata.Entry
	if before.isDeployed {
		if err := c.api.Store.View(ctx, func(tx *store.Tx) (err error) {
			entries, err = readParts(tx, z.id)
			return err
		}); err != nil {
			return nil, err
		}
	}
	p.removed, p.added = zonedata.Diff(entries, after)
	return p, p.count()
}

// publication returns a publication of a zone without changes.
func (z *copiedZone) publication(before copiedNow, serial uint32) *publication {
	return &publication{zone: &plannedZone{id: z.id, row: &store.Resource{Configuration: z.configuration}}, before: before.deployedZone,
		existed: before.isDeployed, serial: serial}
}

// errOtherwise reports an incremental transfer that does not fit the deployed content.
var errOtherwise = errors.New("the records to delete are not in the deployed zone")

// publishChanges returns the publication of an incremental transfer.
func (c *Copier) publishChanges(ctx context.Context, z *copiedZone, before copiedNow, changes *transfer.ZoneChanges) (*publication, error) {
	net, all, owners := map[string]int{}, map[string]zonedata.Entry{}, names{}
	step := func(records []wire.RR, by int) error {
		entries, err := entriesOfRecords(inZone(records, z.name))
		for _, e := range entries {
			net[string(e.Record())] += by
			all[string(e.Record())], owners[string(e.Key())] = e, true
		}
		return err
	}
	for _, one := range changes.Steps {
		by := -1
		if one.Added {
			by = 1
		}
		if err := step(one.Records, by); err != nil {
			return nil, err
		}
	}
	if err := step([]wire.RR{before.soa}, -1); err != nil {
		return nil, err
	}
	if err := step([]wire.RR{changes.SOA}, 1); err != nil {
		return nil, err
	}
	var now []zonedata.Entry
	if err := c.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		now, err = deployedOf(tx, z.id, owners)
		return err
	}); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, e := range now {
		there[string(e.Record())] = true
	}
	p := z.publication(before, changes.SOA.Serial)
	for record, n := range net {
		switch e := all[record]; {
		case n == 0:
		case n == -1 && there[record]:
			p.removed = append(p.removed, e)
		case n == 1 && !there[record]:
			p.added = append(p.added, e)
		default:
			return nil, errOtherwise
		}
	}
	slices.SortFunc(p.removed, zonedata.Entry.Compare)
	slices.SortFunc(p.added, zonedata.Entry.Compare)
	after := slices.DeleteFunc(now, func(e zonedata.Entry) bool { return net[string(e.Record())] < 0 })
	if err := checkLoadable(inOrder(append(after, p.added...))); err != nil {
		return nil, err
	}
	return p, p.count()
}

// checkLoadable returns an error for sorted records of some names that name servers do not load, or should not.
func checkLoadable(entries []zonedata.Entry) error {
	if n := iterationsIn(entries); n > zonedata.MaxIterations {
		return fmt.Errorf("its NSEC3PARAM has %d iterations, more than %d", n, zonedata.MaxIterations)
	}
	return checkAliases(entries)
}

// checkAliases returns an error for a name with an alias and other data (RFC 1034 section 3.6.2), except the data of DNSSEC. No name server
// loads such a zone.
func checkAliases(entries []zonedata.Entry) error {
	for from := 0; from < len(entries); {
		to, aliases, others := from, 0, 0
		for ; to < len(entries) && string(entries[to].Key()) == string(entries[from].Key()); to++ {
			switch entries[to].Record().Type() {
			case wire.TypeCNAME:
				aliases++
			case wire.TypeRRSIG, wire.TypeNSEC:
			default:
				others++
			}
		}
		if aliases > 1 || aliases == 1 && others > 0 {
			name, _, err := wire.UnpackDomainName(entries[from].Record().Owner(), 0)
			return errors.Join(fmt.Errorf("%s has a CNAME together with other records", name), err)
		}
		from = to
	}
	return nil
}

// inZone returns the records of a transfer that belong to the zone, with a single SOA.
func inZone(records []wire.RR, name string) (all []wire.RR) {
	seen := false
	for _, rr := range records {
		h := rr.Header()
		soa := h.Rrtype == wire.TypeSOA
		if h.Class != wire.ClassINET || dns.IsMeta(h.Rrtype) || !wire.IsSubDomain(name, wire.CanonicalName(rr.Header().Name)) || soa && seen {
			continue
		}
		seen = seen || soa
		all = append(all, rr)
	}
	return all
}

// soaIn returns the SOA among records; nil if there is none.
func soaIn(entries []zonedata.Entry) *wire.SOA {
	for _, e := range entries {
		if rr, err := e.Record().RR(); err == nil {
			if soa, ok := rr.(*wire.SOA); ok {
				return soa
			}
		}
	}
	return nil
}

// iterationsIn returns the number of additional hash iterations of a zone that is signed with NSEC3 (RFC 5155 section 3.1.3).
func iterationsIn(entries []zonedata.Entry) (n int) {
	for _, e := range entries {
		if e.Record().Type() == wire.TypeNSEC3PARAM || e.Record().Type() == wire.TypeNSEC3 {
			if data := e.Record().Data(); len(data) >= 4 {
				n = max(n, int(binary.BigEndian.Uint16(data[2:])))
			}
		}
	}
	return n
}
