package dnspublish

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/wire/zonedata"
)

// frame describes what the plan contributes to the content of a zone: its SOA, its name servers, delegations and keys. The rest of the
// content are the records of the zone, whose changes are queued by name. If the frame of a zone equals the one that it was deployed with,
// and none of its names are queued, its content is unchanged.
type frame struct {
	// whole is a hash of the settings that affect any name of the zone; 0 means that the frame is not known.
	whole uint64
	// names are hashes of the contributions, by absolute name in lower case.
	names map[string]uint64
}

// frameVersion is part of each frame. It must change together with the rules that compile a zone from its records and its plan, so that
// zones are examined as a whole after an update of the manager: the first change of the structure of a configuration after a start of the
// manager examines all zones.
const frameVersion = 1

// framed reports whether the content of a zone is its frame and its records by name. ENUM zones contain the records of other zones.
func (p *plan) framed(z *plannedZone) bool {
	return z.row.Type == "Zone" || z.row.Type == "InternalRootZone" || p.isPolicy(z)
}

// frameOf returns the frame of a zone. That of a zone whose content does not have one is not known.
func (p *plan) frameOf(z *plannedZone, now time.Time) (f frame, err error) {
	if !p.framed(z) {
		return f, nil
	}
	f.names = map[string]uint64{}
	all, err := p.checksFor(z)
	if err != nil {
		return f, err
	}
	live, err := liveOf(p.tx)
	if err != nil {
		return f, err
	}
	whole := []any{frameVersion, z.row.Type, z.row.ID, live[z.view] != 0, all}
	if x := p.policies[z.row.ID]; x != nil {
		whole = append(whole, x.IsLocal(), x.ResponsePolicy.ID, x.OverridePolicyType, x.RedirectTarget)
		if r := p.responses[x.ResponsePolicy.ID]; r != nil {
			whole = append(whole, r.PolicyType, r.RedirectTarget, r.TTL != nil)
			if r.TTL != nil {
				whole = append(whole, *r.TTL)
			}
		}
	}
	f.whole = hashOf(0, whole...)
	apex, served := z.fqdn(), p.served(z, 0)
	f.add(apex, served.SOA.String())
	f.addServers(apex, apex, p.nameServers(z))
	for _, child := range p.childrenOf(z) {
		name, err := dns.FQDN(child.Key)
		if err != nil {
			return f, err
		}
		f.add(name, child.ID)
		f.addServers(apex, name, served.Servers(child))
	}
	for _, name := range slices.Sorted(maps.Keys(served.Below)) {
		f.addServers(apex, name, served.Below[name])
	}
	keys, err := p.keyRecords(z, served.SOA.Hdr.Ttl, now)
	if err != nil {
		return f, notSigned(z, err)
	}
	for _, e := range keys {
		rr, err := e.Record().RR()
		if err != nil {
			return f, err
		}
		f.add(wire.CanonicalName(rr.Header().Name), []byte(e.Record()))
	}
	return f, nil
}

// framedNames returns the names that the plan contributes to.
func (p *plan) framedNames(z *plannedZone) (names, error) {
	if known := p.framedBy[z]; known != nil {
		return known, nil
	}
	f, err := p.frameOf(z, p.api.Store.Now())
	if err != nil {
		return nil, err
	}
	return p.keepFramed(z, f)
}

// keepFramed keeps the names of the frame of a zone for framedNames, and returns them.
func (p *plan) keepFramed(z *plannedZone, f frame) (names, error) {
	all := names{}
	for name := range f.names {
		if err := all.add(name); err != nil {
			return nil, err
		}
	}
	if p.framedBy == nil {
		p.framedBy = map[*plannedZone]names{}
	}
	p.framedBy[z] = all
	return all, nil
}

// childrenOf returns the zones that a zone delegates.
func (p *plan) childrenOf(z *plannedZone) []*store.Resource {
	switch {
	case z.row.ID == 0 || p.isPolicy(z):
		return nil
	case z.row.Type == "InternalRootZone":
		return p.children[z.row.Parent]
	}
	return p.children[z.row.ID]
}

// hashOf continues a hash with parts.
func hashOf(before uint64, parts ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %+v", before, parts) // never fails
	return max(h.Sum64(), 1)
}

// add adds a contribution to a name.
func (f *frame) add(name string, parts ...any) { f.names[name] = hashOf(f.names[name], parts...) }

// addServers adds the name servers of a zone, which is the zone apex or one that it delegates.
func (f *frame) addServers(apex, zone string, servers []dns.NameServer) {
	for _, server := range servers {
		f.add(zone, server.Name, server.TTL)
		if wire.IsSubDomain(apex, server.Name) {
			f.add(server.Name, server.Addresses, server.TTL)
		}
	}
}

// changedNames returns the names whose contributions differ. whole reports that any name may differ.
func (f frame) changedNames(before frame) (changed []string, whole bool) {
	if f.whole == 0 || f.whole != before.whole {
		return nil, true
	}
	for name, hash := range f.names {
		if before.names[name] != hash {
			changed = append(changed, name)
		}
	}
	for name := range before.names {
		if f.names[name] == 0 {
			changed = append(changed, name)
		}
	}
	return changed, false
}

// maxNameText is the maximum length of a name as text: each of its 255 octets may be escaped.
const maxNameText = 4 * 255

// equal reports whether two frames are equal.
func (f frame) equal(other frame) bool {
	return f.whole == other.whole && maps.Equal(f.names, other.names)
}

// encode returns a frame as bytes: the hash, then for each name its length, the name and its hash.
func (f frame) encode() []byte {
	data := binary.BigEndian.AppendUint64(nil, f.whole)
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		data = append(binary.AppendUvarint(data, uint64(len(name))), name...)
		data = binary.BigEndian.AppendUint64(data, f.names[name])
	}
	return data
}

// decodeFrame reverses encode. Damaged data is a frame that is not known, so that the zone is examined as a whole.
func decodeFrame(data []byte) (f frame) {
	if len(data) < 8 {
		return f
	}
	f.whole, f.names, data = binary.BigEndian.Uint64(data), map[string]uint64{}, data[8:]
	for len(data) > 0 {
		length, n := binary.Uvarint(data)
		if n <= 0 || length > maxNameText || len(data) < n+int(length)+8 { //nolint:gosec // bounded above
			return frame{}
		}
		end := n + int(length) //nolint:gosec // bounded above
		f.names[string(data[n:end])] = binary.BigEndian.Uint64(data[end:])
		data = data[end+8:]
	}
	return f
}

// readFrames returns the frames that the zones of a configuration were deployed with, by zone.
func readFrames(tx *store.Tx, configuration int64) (map[string]frame, error) {
	frames := map[string]frame{}
	err := tx.Each(func(scan func(...any) error) error {
		var id string
		var data []byte
		if err := scan(&id, &data); err != nil {
			return err
		}
		frames[id] = decodeFrame(data)
		return nil
	}, "SELECT f.zone, f.data FROM dns_frame f JOIN dns_zone z ON z.zone = f.zone WHERE z.configuration = ?", configuration)
	return frames, err
}

// readFrame returns the frame that a zone was deployed with.
func readFrame(tx *store.Tx, zone string) (frame, error) {
	var data []byte
	err := tx.QueryRow("SELECT data FROM dns_frame WHERE zone = ?", zone).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return frame{}, nil
	}
	return decodeFrame(data), err
}

// write stores the frame that a zone is deployed with.
func (f frame) write(tx *store.Tx, zone string) error {
	if f.whole == 0 {
		return tx.Write("DELETE FROM dns_frame WHERE zone = ?", zone)
	}
	return tx.Write("INSERT INTO dns_frame (zone, data) VALUES (?, ?) ON CONFLICT (zone) DO UPDATE SET data = excluded.data", zone,
		f.encode())
}

// framePublication returns the changes of some names of a zone, including its delegations, name servers and keys. owners are absolute
// names in lower case.
func (p *plan) framePublication(z *plannedZone, deployed deployedZone, owners map[string]bool, now time.Time) (*publication, error) {
	before, err := p.deployedAt(z, owners)
	if err != nil {
		return nil, err
	}
	for _, e := range before { // the addresses of former name servers change together with the delegation
		if e.Record().Type() != wire.TypeNS {
			continue
		}
		rr, err := e.Record().RR()
		if err != nil {
			return nil, err
		}
		if ns, ok := rr.(*wire.NS); ok && wire.IsSubDomain(z.fqdn(), wire.CanonicalName(ns.Ns)) {
			owners[wire.CanonicalName(ns.Ns)] = true
		}
	}
	served := p.served(z, uint32(deployed.serial)) //nolint:gosec // of 32 bits
	sets, err := dns.PartData(p.tx, p.api, z.row, served, p.childrenOf(z), owners)
	if err != nil {
		return nil, err
	}
	after, err := entriesOf(&naming.Zone{Sets: sets})
	if err != nil {
		return nil, err
	}
	keys, err := p.keyRecords(z, served.SOA.Hdr.Ttl, now)
	if err != nil {
		return nil, notSigned(z, err)
	}
	for _, e := range keys {
		rr, err := e.Record().RR()
		if err != nil {
			return nil, err
		}
		if owners[wire.CanonicalName(rr.Header().Name)] {
			after = append(after, e)
		}
	}
	if before, err = p.deployedAt(z, owners); err != nil {
		return nil, err
	}
	return p.changeOf(z, deployed, before, inOrder(after), now)
}

// deployedAt returns the deployed records of some names of a zone, sorted.
func (p *plan) deployedAt(z *plannedZone, owners map[string]bool) ([]zonedata.Entry, error) {
	all := names{}
	for name := range owners {
		if err := all.add(name); err != nil {
			return nil, err
		}
	}
	return p.deployedOf(z.id, all)
}

// changeOf returns the publication that replaces some deployed records of a zone, or nil if they are equal. The SOA stays, with a new
// serial number, unless after contains another one.
func (p *plan) changeOf(z *plannedZone, deployed deployedZone, before, after []zonedata.Entry, now time.Time) (*publication, error) {
	isSOA := func(e zonedata.Entry) bool { return e.Record().Type() == wire.TypeSOA }
	soa, err := p.soaOf(z)
	if err != nil {
		return nil, err
	}
	next := soa
	if i := slices.IndexFunc(after, isSOA); i >= 0 {
		next = after[i]
	}
	c := &publication{zone: z, before: deployed, existed: true, complete: deployed.complete}
	c.removed, c.added = zonedata.Diff(slices.DeleteFunc(before, isSOA), slices.DeleteFunc(after, isSOA))
	serial := uint32(deployed.serial) //nolint:gosec // of 32 bits
	if len(c.removed)+len(c.added) == 0 && bytes.Equal(withSerial(next.Record(), serial), withSerial(soa.Record(), serial)) {
		return nil, nil
	}
	c.serial = p.nextSerial(z, serial, true, now)
	next = zonedata.NewEntry(withSerial(next.Record(), c.serial))
	c.removed, c.added = append(c.removed, soa), append(c.added, next)
	slices.SortFunc(c.removed, zonedata.Entry.Compare)
	slices.SortFunc(c.added, zonedata.Entry.Compare)
	return c, c.count()
}
