package transfer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
)

// Refused is the rejection of an update message, with the response code (RFC 2136 section 2.2).
type Refused struct {
	Code int
	Why  string
}

func (r *Refused) Error() string { return r.Why }

func newRefusal(code int, why string) error { return &Refused{code, why} }

// Update applies an update message to a zone (RFC 2136 section 3). Its prerequisites must hold, and either all of its changes are applied
// or none. New records are marked as dynamic. apex contains the records at the apex as served. SOA, NS and key records come from options,
// roles and signing policies: prerequisites can refer to them, changes do not affect them. Update reports whether anything changed. The
// error for a rejected message is a *Refused or a problem.
func Update(c *resource.Change, zone *store.Resource, m *wire.Msg, apex []wire.RR) (changed bool, err error) {
	u, err := newUpdater(c, zone)
	if err != nil {
		return false, err
	}
	u.importer.dynamic = true
	for _, rr := range apex {
		if kind := rr.Header().Rrtype; isApexType(kind) || slices.Contains(keyTypes, kind) {
			u.served = append(u.served, rr)
		}
	}
	if n := len(m.Answer) + len(m.Ns); n > maxChanges {
		return false, newRefusal(wire.RcodeRefused, fmt.Sprintf("%d prerequisites and changes are more than %d", n, maxChanges))
	}
	for _, rr := range slices.Concat(m.Answer, m.Ns) { // like BIND, check the classes before the prerequisites
		if class := rr.Header().Class; class != wire.ClassINET && class != wire.ClassANY && class != wire.ClassNONE {
			return false, newRefusal(wire.RcodeFormatError,
				rr.Header().Name+" has the class "+wire.Class(class).String()+": use IN, ANY or NONE")
		}
	}
	if err := u.checkPrerequisites(m.Answer); err != nil {
		return false, err
	}
	if err := u.prescan(m.Ns); err != nil {
		return false, err
	}
	for _, rr := range m.Ns {
		if err := u.applyChange(rr); err != nil {
			return false, err
		}
	}
	if changed, err = u.writeAll(); err != nil {
		return false, err
	}
	if len(u.importer.done.Skipped) > 0 {
		return false, newRefusal(wire.RcodeRefused, u.importer.done.Skipped[0])
	}
	return changed, u.markAssigned()
}

// maxChanges is the maximum number of prerequisites and changes in a message, maxChangesPerName the maximum of changes to one name.
const (
	maxChanges        = 5000
	maxChangesPerName = 200
)

// keyTypes are the record types for zone signing. Updates must not change them, because this would allow a client to sign for the zone.
var keyTypes = []uint16{wire.TypeDNSKEY, wire.TypeCDS, wire.TypeCDNSKEY, wire.TypeNSEC3PARAM, wire.TypeRRSIG, wire.TypeNSEC, wire.TypeNSEC3}

// updater applies changes to the records of a zone.
type updater struct {
	c        *resource.Change
	zone     *store.Resource
	apex     string
	importer *zoneImport
	// names contains the names that were loaded, order their order.
	names map[string]*updatedName
	order []string
	// dataCache caches dataOf, because comparisons of many records are expensive.
	dataCache map[wire.RR]string
	// served contains the records at the apex that are not stored as resources.
	served []wire.RR
	// convertsToHosts converts generic address records to hosts if a network for the address was created later.
	convertsToHosts bool
}

func newUpdater(c *resource.Change, zone *store.Resource) (*updater, error) {
	view, err := c.Tx.Get(dns.ViewOf(zone))
	if err != nil {
		return nil, err
	}
	apex, err := dns.FQDN(zone.Key)
	if err != nil {
		return nil, err
	}
	return &updater{c: c, zone: zone, apex: wire.CanonicalName(apex), names: map[string]*updatedName{}, dataCache: map[wire.RR]string{},
		importer: &zoneImport{c: c, view: view, zone: zone, done: &ImportedZone{}, releasesAddresses: true}}, nil
}

// cachedData returns dataOf(rr) from a cache.
func (u *updater) cachedData(rr wire.RR) string {
	text, known := u.dataCache[rr]
	if !known {
		text = dataOf(rr)
		u.dataCache[rr] = text
	}
	return text
}

// updatedName is a name with its resources, their current records, and the wanted records.
type updatedName struct {
	name   string
	rows   []updatedRow
	wanted []wire.RR
	// derived contains records that are not stored at this name and remain: PTR records of hosts, and the served records of the apex.
	derived []wire.RR
	// changes is the number of changes in the message for this name.
	changes int
}

// updatedRow is a resource with its records.
type updatedRow struct {
	row *store.Resource
	rrs []wire.RR
}

// loadName returns the current and the wanted records of a name. It loads the name at the first call.
func (u *updater) loadName(name string) (*updatedName, error) {
	name = wire.CanonicalName(name)
	if n := u.names[name]; n != nil {
		return n, nil
	}
	if !wire.IsSubDomain(u.apex, name) {
		return nil, newRefusal(wire.RcodeNotZone, name+" is not in the zone")
	}
	n := &updatedName{name: name}
	rows, err := u.c.Tx.ResourcesByKey(u.zone.Configuration, naming.Key(naming.Clean(name)))
	if err != nil {
		return nil, err
	}
	z := &dns.ZoneReader{Tx: u.c.Tx, API: u.c.API, Addresses: map[int64][]netip.Addr{}, Targets: map[int64]string{}}
	for _, r := range rows {
		if r.Collection != "resourceRecords" || r.Parent != u.zone.ID {
			continue
		}
		if err := z.Links(r); err != nil {
			return nil, err
		}
		rrs, err := z.RecordsOf(r)
		if err != nil {
			return nil, err
		}
		n.rows = append(n.rows, updatedRow{r, rrs})
		n.wanted = append(n.wanted, rrs...)
	}
	if addr, is := naming.ReverseAddress(name, u.zone.Key); is {
		z.Records = nil
		if err := z.ReverseBetween(u.zone, addr, addr); err != nil {
			return nil, err
		}
		n.derived = z.Records
	}
	if name == u.apex {
		n.derived = append(n.derived, u.served...)
	}
	u.names[name] = n
	u.order = append(u.order, name)
	return n, nil
}

// hasType reports whether a name has records of a type. ANY matches any type.
func (n *updatedName) hasType(kind uint16) bool {
	return slices.ContainsFunc(n.records(), func(rr wire.RR) bool { return kind == wire.TypeANY || rr.Header().Rrtype == kind })
}

// records returns the wanted records of a name, including derived ones.
func (n *updatedName) records() []wire.RR { return slices.Concat(n.wanted, n.derived) }

// checkPrerequisites checks the prerequisites of a message (RFC 2136 section 3.2).
func (u *updater) checkPrerequisites(all []wire.RR) error {
	var sets []wire.RR
	for _, rr := range all {
		h := rr.Header()
		if h.Ttl != 0 {
			return newRefusal(wire.RcodeFormatError, "a prerequisite has a TTL")
		}
		n, err := u.loadName(h.Name)
		if err != nil {
			return err
		}
		is := n.hasType(h.Rrtype)
		whole := h.Rdlength == 0
		switch {
		case h.Class == wire.ClassANY && whole && !is && h.Rrtype == wire.TypeANY:
			return newRefusal(wire.RcodeNameError, n.name+" does not exist")
		case h.Class == wire.ClassANY && whole && !is:
			return newRefusal(wire.RcodeNXRrset, n.name+" has no "+wire.Type(h.Rrtype).String())
		case h.Class == wire.ClassNONE && whole && is && h.Rrtype == wire.TypeANY:
			return newRefusal(wire.RcodeYXDomain, n.name+" exists")
		case h.Class == wire.ClassNONE && whole && is:
			return newRefusal(wire.RcodeYXRrset, n.name+" has a "+wire.Type(h.Rrtype).String())
		case (h.Class == wire.ClassANY || h.Class == wire.ClassNONE) && whole:
		case h.Class == wire.ClassINET && lacksData(h):
			return newRefusal(wire.RcodeFormatError, "a prerequisite of the class IN has no data")
		case h.Class == wire.ClassINET:
			sets = append(sets, rr)
		default:
			return newRefusal(wire.RcodeFormatError, "a prerequisite of the class ANY or NONE has data")
		}
	}
	checked := map[string]bool{}
	for _, rr := range sets { // each RRset must equal the existing one
		n, err := u.loadName(rr.Header().Name)
		if err != nil {
			return err
		}
		set := n.name + wire.Type(rr.Header().Rrtype).String()
		if checked[set] {
			continue
		}
		checked[set] = true
		same := func(list []wire.RR) (of []string) {
			for _, one := range list {
				if one.Header().Rrtype == rr.Header().Rrtype && wire.CanonicalName(one.Header().Name) == n.name {
					of = append(of, u.cachedData(one))
				}
			}
			slices.Sort(of)
			return slices.Compact(of)
		}
		if !slices.Equal(same(sets), same(n.records())) {
			return newRefusal(wire.RcodeNXRrset, n.name+" has another "+wire.Type(rr.Header().Rrtype).String())
		}
	}
	return nil
}

// lacksData reports whether a record has no data although its type requires data.
func lacksData(h *wire.RR_Header) bool {
	_, known := wire.TypeToRR[h.Rrtype]
	return h.Rdlength == 0 && known && h.Rrtype != wire.TypeANY && h.Rrtype != wire.TypeAPL && h.Rrtype != wire.TypeNULL
}

// dataOf returns the type and the data of a record in a comparable form: names are compared without regard to case.
func dataOf(rr wire.RR) string {
	one := wire.Copy(rr)
	one.Header().Ttl, one.Header().Class, one.Header().Name = 0, wire.ClassINET, "."
	return sameRecord(one)
}

// prescan rejects invalid changes before any change is applied (RFC 2136 section 3.4.1).
func (u *updater) prescan(all []wire.RR) error {
	for _, rr := range all {
		h := rr.Header()
		n, err := u.loadName(h.Name)
		if err != nil {
			return err
		}
		if n.changes++; n.changes > maxChangesPerName {
			return newRefusal(wire.RcodeRefused, fmt.Sprintf("%s has more than %d changes", n.name, maxChangesPerName))
		}
		if n.changes == 1 {
			if err := u.checkOwner(n.name); err != nil {
				return err
			}
		}
		if n.name == u.apex && slices.Contains(keyTypes, h.Rrtype) {
			return newRefusal(wire.RcodeRefused, "updates cannot change the signing of the zone")
		}
		meta := dns.IsMeta(h.Rrtype) && h.Rrtype != wire.TypeANY
		switch {
		case meta || h.Class == wire.ClassINET && (h.Rrtype == wire.TypeANY || h.Rdlength == 0):
			return newRefusal(wire.RcodeFormatError, "updates do not support this record type")
		case h.Class == wire.ClassANY && (h.Ttl != 0 || h.Rdlength != 0), h.Class == wire.ClassNONE && (h.Ttl != 0 || h.Rrtype == wire.TypeANY),
			h.Class == wire.ClassNONE && lacksData(h):
			return newRefusal(wire.RcodeFormatError, "a deletion has a TTL, or has data where it must not, or none where it must")
		}
	}
	return nil
}

// checkOwner rejects a name at or below the apex of a zone below. The records of such a name, and the delegation, depend on that zone.
func (u *updater) checkOwner(name string) error {
	for at := name; at != u.apex; _, at, _ = naming.Cut(at) {
		zones, err := dns.FindByName(u.c.Tx, u.zone.Configuration, u.importer.view.ID, "zones", naming.Clean(at))
		if err != nil {
			return err
		}
		for _, z := range zones {
			if z.Type == "Zone" && z.ID != u.zone.ID {
				return newRefusal(wire.RcodeRefused, name+" is in the zone "+z.Key)
			}
		}
	}
	return nil
}

// applyChange applies one change of the message to the wanted records (RFC 2136 section 3.4.2).
func (u *updater) applyChange(rr wire.RR) error {
	h := rr.Header()
	n, err := u.loadName(h.Name)
	if err != nil {
		return err
	}
	stays := func(kind uint16) bool { return n.name == u.apex && isApexType(kind) }
	switch {
	case stays(h.Rrtype):
		return nil
	case h.Class == wire.ClassANY:
		n.wanted = slices.DeleteFunc(n.wanted, func(one wire.RR) bool {
			return (h.Rrtype == wire.TypeANY || one.Header().Rrtype == h.Rrtype) && !stays(one.Header().Rrtype)
		})
	case h.Class == wire.ClassNONE:
		n.wanted = slices.DeleteFunc(n.wanted, func(one wire.RR) bool { return u.cachedData(one) == u.cachedData(rr) })
	default:
		u.addRecord(n, rr)
	}
	return nil
}

// isApexType reports whether records of a type are derived from roles and options at the apex of a zone.
func isApexType(kind uint16) bool { return kind == wire.TypeSOA || kind == wire.TypeNS }

// addRecord adds a wanted record. An alias replaces another alias and cannot be combined with other records (RFC 2136 section 3.4.2.2).
func (u *updater) addRecord(n *updatedName, rr wire.RR) {
	alias := rr.Header().Rrtype == wire.TypeCNAME
	switch {
	case slices.ContainsFunc(n.derived, func(one wire.RR) bool { return u.cachedData(one) == u.cachedData(rr) }):
		return // the record exists already
	case alias && slices.ContainsFunc(n.records(), func(one wire.RR) bool { return one.Header().Rrtype != wire.TypeCNAME }),
		!alias && n.hasType(wire.TypeCNAME):
		return
	case alias:
		n.wanted = nil
	}
	n.wanted = append(slices.DeleteFunc(n.wanted, func(one wire.RR) bool { return u.cachedData(one) == u.cachedData(rr) }), rr)
}

// writeAll changes the resources of all names to the wanted records. It first deletes and changes existing resources, linking records
// before hosts. Then it creates new records in the order of their dependencies.
func (u *updater) writeAll() (changed bool, err error) {
	leads := func(name string) int {
		if slices.ContainsFunc(u.names[name].rows, func(r updatedRow) bool { return r.row.Type != "HostRecord" }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(u.order, func(a, b string) int { return leads(a) - leads(b) })
	var all []wire.RR
	for _, name := range u.order {
		n := u.names[name]
		is, left, err := u.writeName(n)
		if err != nil {
			return false, err
		}
		switch {
		case is && len(n.wanted) == 0:
			u.importer.done.Deleted++
		case is:
			u.importer.done.Changed++
		}
		changed, all = changed || is, append(all, left...)
	}
	if len(all) == 0 {
		return changed, nil
	}
	for job := range u.importer.jobs(u.apex, all) {
		if err := job(); err != nil {
			return false, err
		}
	}
	return changed || u.importer.done.Created > 0, nil
}

// writeName changes the existing resources of a name to the wanted records. It returns the records that must be created.
func (u *updater) writeName(n *updatedName) (changed bool, left []wire.RR, err error) {
	left = slices.Clone(n.wanted)
	take := func(rr wire.RR) (found wire.RR) {
		i := slices.IndexFunc(left, func(one wire.RR) bool { return u.cachedData(one) == u.cachedData(rr) })
		if i < 0 {
			return nil
		}
		found = left[i]
		left = slices.Delete(left, i, i+1)
		return found
	}
	for _, r := range n.rows {
		if r.row.Type == "HostRecord" {
			is, rest, err := u.writeHost(r, left)
			if err != nil {
				return false, nil, err
			}
			changed, left = changed || is, rest
			continue
		}
		if len(r.rrs) != 1 { // the resource has no DNS record
			continue
		}
		if addr, is := addressOf(r.rrs[0]); is && u.convertsToHosts {
			fits, err := u.importer.isHostAddress(r.row.Key, addr)
			if err != nil {
				return false, nil, err
			}
			if fits {
				changed = true
				if err := u.remove(r.row); err != nil {
					return false, nil, err
				}
				continue
			}
		}
		if kept := take(r.rrs[0]); kept == nil {
			err = u.remove(r.row)
			changed = true
		} else if kept.Header().Ttl != r.rrs[0].Header().Ttl {
			err = u.setTTL(r.row, kept.Header().Ttl)
			changed = true
		}
		if err != nil {
			return false, nil, err
		}
	}
	return changed, left, nil
}

// setTTL changes the TTL of a record.
func (u *updater) setTTL(row *store.Resource, ttl uint32) error {
	seconds := int64(min(ttl, 1<<31-1))
	_, err := u.c.Following("ttl").Change(row, func(o schema.Object) { o.(dns.ComparableRecord).CommonFields().TTL = &seconds })
	return err
}

// remove deletes a record. Links to it are redirected to an external host of the same name.
func (u *updater) remove(row *store.Resource) error {
	if err := u.importer.relink(row.ID, func() (schema.Ref, error) { return dns.ExternalHost(u.c, u.importer.view, row.Key) }); err != nil {
		return err
	}
	return u.c.Following().Delete(row)
}

// CodeOf returns the response code and the reason for an error of Update.
func CodeOf(err error) (code int, why string) {
	if r, ok := err.(*Refused); ok { //nolint:errorlint // this error is never wrapped
		return r.Code, r.Why
	}
	if p, ok := problem.As(err); ok && p.Status < 500 {
		return wire.RcodeRefused, strings.TrimSpace(p.Message)
	}
	return wire.RcodeServerFailure, err.Error()
}
