package dnspublish

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// publication is a new content of a zone, as a change of the deployed one.
type publication struct {
	zone           *plannedZone
	before         deployedZone
	existed        bool
	serial         uint32
	hash           string
	complete       int64
	removed, added []zonedata.Entry
	// after are all records of the new content, where they were computed; records is their number.
	after   []zonedata.Entry
	records int64
	// empty reports that it is the placeholder of a zone that was not copied yet.
	empty bool
	// rebases reports that changes of the zone that were deployed meanwhile stay (rebase). Otherwise they make the publication fail.
	rebases bool
	// rebased reports that there were such changes.
	rebased bool
}

// publication returns the new content of a zone, or nil if it equals the deployed content. wanted selects the records to update; all other
// records stay as they are deployed. A nil wanted selects all records.
func (p *plan) publication(z *plannedZone, wanted func(zonedata.Entry) bool, now time.Time) (*publication, error) {
	c := &publication{zone: z}
	var err error
	copied := p.isForeign(z)
	if c.before, c.existed, err = readDeployed(p.tx, z.id); err != nil {
		return nil, err
	}
	if c.complete = c.before.complete; wanted == nil { // a transaction that ends now may have started earlier
		c.complete = now.Add(-time.Minute).UnixMilli()
	}
	c.serial = uint32(c.before.serial) //nolint:gosec // of 32 bits
	if !c.existed {                    // continue after the stored serial, if there is one
		c.serial = p.nextSerial(z, c.serial, c.serial != 0, now)
	}
	if copied && c.existed { // the content comes from its primary servers
		return nil, nil
	}
	if copied {
		return c, c.placeholder()
	}
	if c.after, err = p.content(z, c.serial); err != nil {
		return nil, err
	}
	if !c.existed {
		c.added = c.after
		return c, c.count()
	}
	if wanted != nil {
		before, err := readParts(p.tx, z.id)
		if err != nil {
			return nil, err
		}
		c.after = updateSelected(before, c.after, wanted)
		c.removed, c.added = zonedata.Diff(before, c.after)
	} else {
		d := zonedata.Differ{After: c.after}
		if err := eachDeployed(p.tx, z.id, d.AddEarlier); err != nil {
			return nil, err
		}
		c.removed, c.added = d.End()
	}
	if len(c.removed)+len(c.added) == 0 {
		return nil, nil
	}
	c.setSerial(p.nextSerial(z, c.serial, true, now))
	return c, c.count()
}

// setSerial sets another serial number. The SOA record is the first one of a zone.
func (c *publication) setSerial(serial uint32) {
	is := func(all []zonedata.Entry) bool { return len(all) > 0 && all[0].Record().Type() == wire.TypeSOA }
	if !is(c.after) {
		return
	}
	before := c.after[0]
	c.serial = serial
	c.after[0] = zonedata.NewEntry(withSerial(before.Record(), serial))
	if is(c.added) {
		c.added = append([]zonedata.Entry{c.after[0]}, c.added[1:]...) // not in place: it may be part of after
		return
	}
	c.removed, c.added = append([]zonedata.Entry{before}, c.removed...), append([]zonedata.Entry{c.after[0]}, c.added...)
}

// placeholder sets the content of a zone that was not copied yet: only an SOA. Servers do not answer with it.
func (c *publication) placeholder() (err error) {
	name := c.zone.fqdn()
	c.serial, c.empty = 0, true
	c.after, err = entriesOfRecords([]wire.RR{&wire.SOA{Hdr: wire.RR_Header{Name: name, Rrtype: wire.TypeSOA, Class: wire.ClassINET}, Ns: ".",
		Mbox: ".", Refresh: soaRetry, Retry: soaRetry, Expire: soaExpire}})
	c.added = c.after
	if err == nil {
		err = c.count()
	}
	return err
}

// count computes the hash and the number of records.
func (c *publication) count() (err error) {
	var h zonedata.Hash
	if c.existed {
		if h, err = zonedata.ParseHash(c.before.hash); err != nil {
			return err
		}
	}
	for _, e := range c.removed {
		h.Remove(e.Record())
	}
	for _, e := range c.added {
		h.Add(e.Record())
	}
	c.hash, c.records = h.String(), c.before.records+int64(len(c.added)-len(c.removed))
	return nil
}

// updateSelected returns the deployed records, with the wanted ones replaced by those of now. If a name would have an alias and other data,
// which is not allowed (RFC 1034 section 3.6.2), the whole name is replaced.
func updateSelected(before, after []zonedata.Entry, wanted func(zonedata.Entry) bool) []zonedata.Entry {
	all := replaceSelected(before, after, wanted)
	torn := map[string]bool{}
	for i := 0; i < len(all); {
		end, aliases, others := i, 0, 0
		for ; end < len(all) && bytes.Equal(all[end].Key(), all[i].Key()); end++ {
			if t := all[end].Record().Type(); t == wire.TypeCNAME {
				aliases++
			} else if !isKeyType(t) {
				others++
			}
		}
		if aliases > 1 || aliases > 0 && others > 0 {
			torn[string(all[i].Key())] = true
		}
		i = end
	}
	if len(torn) == 0 {
		return all
	}
	return replaceSelected(before, after, func(e zonedata.Entry) bool { return wanted(e) || torn[string(e.Key())] })
}

// replaceSelected returns the deployed records that are not wanted and the wanted records of after, sorted.
func replaceSelected(before, after []zonedata.Entry, wanted func(zonedata.Entry) bool) []zonedata.Entry {
	var all []zonedata.Entry
	for _, e := range before {
		if !wanted(e) {
			all = append(all, e)
		}
	}
	for _, e := range after {
		if wanted(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, zonedata.Entry.Compare)
	return all
}

// withSerial returns a copy of an SOA record with another serial number.
func withSerial(r zonedata.Record, serial uint32) zonedata.Record {
	r = slices.Clone(r)
	at := len(r) - 20
	r[at], r[at+1], r[at+2], r[at+3] = byte(serial>>24), byte(serial>>16), byte(serial>>8), byte(serial) //nolint:gosec // its bytes
	return r
}

// write stores the content as the change with a number.
func (c *publication) write(tx *store.Tx, configuration, number int64) error {
	if err := tx.Write("INSERT INTO dns_zone (zone, configuration, serial, hash, records, number, complete) VALUES (?, ?, ?, ?, ?, ?, ?)"+
		" ON CONFLICT (zone) DO UPDATE SET serial = excluded.serial, hash = excluded.hash, records = excluded.records,"+
		" number = excluded.number, complete = excluded.complete", c.zone.id, configuration, int64(c.serial), c.hash, c.records, number,
		c.complete); err != nil {
		return err
	}
	if !c.existed {
		return writePart(tx, c.zone.id, []byte{}, c.added)
	}
	if err := changeParts(tx, c.zone.id, c.removed, c.added); err != nil {
		return err
	}
	if int64(2*(len(c.removed)+len(c.added))) > c.records+partEntries { // sending the whole zone is shorter than the differences
		return tx.Write("DELETE FROM dns_difference WHERE zone = ?", c.zone.id)
	}
	return c.writeDifference(tx, number)
}

// writeDifference stores the difference with a number. The oldest difference of a zone is its base: it is empty and starts at no content,
// and its number is that of the content that the next difference starts at. A receiver with older content gets the whole zone.
func (c *publication) writeDifference(tx *store.Tx, number int64) error {
	const insert = "INSERT INTO dns_difference (zone, number, from_hash, to_hash, data) VALUES (?, ?, ?, ?, ?)"
	var kept, bases int
	if err := tx.QueryRow("SELECT count(*), count(CASE WHEN from_hash = '' THEN 1 END) FROM dns_difference WHERE zone = ?", c.zone.id).
		Scan(&kept, &bases); err != nil {
		return err
	}
	if bases == 0 { // those of earlier versions have none
		if err := tx.Write("DELETE FROM dns_difference WHERE zone = ?", c.zone.id); err != nil {
			return err
		}
		if err := tx.Write(insert, c.zone.id, c.before.number, "", c.before.hash, []byte{}); err != nil {
			return err
		}
	}
	if err := tx.Write(insert, c.zone.id, number, c.before.hash, c.hash, c.difference()); err != nil || kept <= maxDifferences {
		return err
	}
	var base int64
	if err := tx.QueryRow("SELECT number FROM dns_difference WHERE zone = ? ORDER BY number DESC LIMIT 1 OFFSET ?", c.zone.id,
		maxDifferences-maxDifferences/10).Scan(&base); err != nil {
		return err
	}
	if err := tx.Write("UPDATE dns_difference SET from_hash = '', data = ? WHERE zone = ? AND number = ?", []byte{}, c.zone.id,
		base); err != nil {
		return err
	}
	return tx.Write("DELETE FROM dns_difference WHERE zone = ? AND number < ?", c.zone.id, base)
}

// rebase returns the publication based on a later content of its zone: at the names that were deployed meanwhile, the later content stays.
// Those of deployments whose snapshot may be older than this one are queued to be examined again. It fails if the names are no longer
// stored.
func (c *publication) rebase(tx *store.Tx, now deployedZone, read readTime) (*publication, error) {
	apex, err := keyOf(c.zone.row.Key)
	if err != nil {
		return nil, err
	}
	later, again := map[string]bool{}, map[string]string{} // the keys of the names, and the names to be examined again
	newer := false                                         // the difference that is read comes from a later snapshot
	from, to := c.before.hash, c.before.hash
	note := func(r zonedata.Record) error {
		key := string(zonedata.Key(r.Owner()))
		if key == apex && r.Type() != wire.TypeSOA { // the SOA follows from the other records there
			return errConcurrentDeployment
		}
		if later[key] = true; newer {
			delete(again, key)
			return nil
		}
		name, _, err := wire.UnpackDomainName(r.Owner(), 0)
		again[key] = name
		return err
	}
	if err := tx.Each(func(scan func(...any) error) error {
		var number int64
		var before, after string
		var data []byte
		if err := scan(&number, &before, &after, &data); err != nil {
			return err
		}
		if before != to {
			return errConcurrentDeployment
		}
		to, newer = after, read.precedes(number, after)
		return readDifference(data, note, note)
	}, "SELECT number, from_hash, to_hash, data FROM dns_difference WHERE zone = ? AND number > ? ORDER BY number", c.zone.id,
		c.before.number); err != nil {
		return nil, err
	}
	if to == from || to != now.hash {
		return nil, errConcurrentDeployment
	}
	delete(later, apex)
	delete(again, apex)
	current, err := deployedOf(tx, c.zone.id, names{apex: true})
	if err != nil {
		return nil, err
	}
	isSOA := func(e zonedata.Entry) bool { return e.Record().Type() == wire.TypeSOA }
	soa, next := slices.IndexFunc(current, isSOA), slices.IndexFunc(c.added, isSOA)
	if soa < 0 || next < 0 {
		return nil, errConcurrentDeployment
	}
	r := *c
	if int32(r.serial-uint32(now.serial)) <= 0 { //nolint:gosec // as RFC 1982 compares
		r.serial = uint32(now.serial) + 1 //nolint:gosec // of 32 bits
	}
	authority := c.added[next]
	authority = zonedata.NewEntry(withSerial(authority.Record(), r.serial))
	stays := func(e zonedata.Entry) bool {
		return later[string(e.Key())] || isSOA(e)
	}
	r.removed = append(slices.DeleteFunc(slices.Clone(c.removed), stays), current[soa])
	r.added = append(slices.DeleteFunc(slices.Clone(c.added), stays), authority)
	slices.SortFunc(r.removed, zonedata.Entry.Compare)
	slices.SortFunc(r.added, zonedata.Entry.Compare)
	r.before, r.after = now, nil
	if err := r.queueNames(tx, again); err != nil {
		return nil, err
	}
	return &r, r.count()
}

// queueNames queues names of the zone to be examined again. Many of them do not delay single changes.
func (c *publication) queueNames(tx *store.Tx, again map[string]string) error {
	if len(again) == 0 {
		return nil
	}
	lane := laneLive
	if len(again) > maxLive {
		lane = laneBulk
	}
	number, err := requeueNumber(tx)
	if err != nil {
		return err
	}
	for _, name := range again {
		d := due{c.zone.row.Configuration, dueName, naming.Key(naming.Clean(name))}
		if a, ok := naming.ReverseAddress(name, c.zone.row.Key); ok {
			d.kind, d.name = dueAddress, a.String()
		}
		if err := d.queue(tx, number, lane); err != nil {
			return err
		}
	}
	tx.Touch(dueTopic)
	return nil
}

// maxDifferences is the maximum number of differences of a zone that are kept. At the limit a tenth of them is deleted.
const maxDifferences = 1000

// difference encodes the change: the length of the removed records, the removed records, then the added ones. The result is compressed.
func (c *publication) difference() []byte {
	var removed, added []byte
	for _, e := range c.removed {
		removed = zonedata.AppendRecord(removed, e.Record())
	}
	for _, e := range c.added {
		added = zonedata.AppendRecord(added, e.Record())
	}
	text := fmt.Appendf(nil, "%d\n", len(removed))
	return packer.EncodeAll(append(append(text, removed...), added...), nil)
}
