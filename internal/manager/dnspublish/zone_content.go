package dnspublish

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// Default values of a start of authority, in seconds.
const (
	soaRefresh = 3600
	soaRetry   = 600
	soaExpire  = 2592000
	soaMinimum = 3600
)

// ServedZone returns the data of a zone as its servers serve it, by their roles and options, with the last deployed serial number. A zone
// without servers has a single name server with the name of the zone, or those in its NS records, and the start of authority that is set
// for it.
func ServedZone(tx *store.Tx, api *resource.API, zone *store.Resource) (*naming.Zone, error) {
	p, err := newPlan(tx, api, zone.Configuration)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.zones, func(z *plannedZone) bool {
		return z.row.ID == zone.ID && z.row.Key == zone.Key && len(z.serversOf(assigned.answers)) > 0
	})
	if i < 0 {
		return p.unservedData(zone)
	}
	deployed, _, err := readDeployed(tx, p.zones[i].id)
	if err != nil {
		return nil, err
	}
	return dns.ZoneData(tx, api, p.zones[i].row, p.served(p.zones[i], uint32(deployed.serial))) //nolint:gosec // of 32 bits
}

// unservedData returns the data of a zone without servers, with the start of authority that is set for it.
func (p *plan) unservedData(zone *store.Resource) (*naming.Zone, error) {
	z := &plannedZone{row: zone}
	for id := zone.ID; id != 0 && id != p.configuration; { // empty for a reverse zone that was not created by a user
		head, err := p.tx.Head(id)
		if err != nil {
			return nil, err
		}
		z.chain, id = append(z.chain, id), head.Parent
	}
	served := dns.Served{}
	if parts := p.soaParts(z); len(parts) == len(serverconfig.SOAParts) {
		served.SOA = p.authority(z)
		if n, err := strconv.ParseUint(string(parts[3]), 10, 32); err == nil { // otherwise it is derived from the zone
			served.SOA.Serial = uint32(n)
		}
	}
	return dns.ZoneData(p.tx, p.api, zone, served)
}

// served returns the start of authority, with the given serial number, and the name servers of a zone.
func (p *plan) served(z *plannedZone, serial uint32) dns.Served {
	soa := p.authority(z)
	soa.Serial = serial
	served := dns.Served{SOA: soa, Servers: func(row *store.Resource) []dns.NameServer {
		if of := p.byID[zoneID(z.view, row.Key)]; of != nil {
			return p.nameServers(of)
		}
		return nil
	}}
	if z.row.ID == 0 {
		served.Below = p.reverseBelow(z)
	}
	return served
}

// content returns the sorted records of a zone with a serial number.
func (p *plan) content(z *plannedZone, serial uint32) ([]zonedata.Entry, error) {
	served := p.served(z, serial)
	packed, err := p.packZone(z)
	if err != nil {
		return nil, err
	}
	others, err := dns.PackedZoneData(p.tx, p.api, z.row, served, packed.add)
	if err != nil {
		return nil, err
	}
	for _, set := range others.Sets {
		for _, rr := range set.Data {
			if err := packed.add(rr); err != nil {
				return nil, err
			}
		}
	}
	all, err := packed.sortEntries()
	if err != nil {
		return nil, err
	}
	keys, err := p.keyRecords(z, served.SOA.Hdr.Ttl, p.api.Store.Now())
	if err != nil {
		return nil, notSigned(z, err)
	}
	if len(keys) == 0 {
		return all, nil
	}
	return inOrder(append(all, keys...)), nil
}

// entriesOf returns the records of a zone in wire format, sorted.
func entriesOf(zone *naming.Zone) (all []zonedata.Entry, err error) {
	for _, set := range zone.Sets {
		entries, err := entriesOfRecords(set.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return inOrder(all), nil
}

// inOrder sorts records and removes duplicates.
func inOrder(all []zonedata.Entry) []zonedata.Entry {
	slices.SortFunc(all, zonedata.Entry.Compare)
	return slices.CompactFunc(all, func(a, b zonedata.Entry) bool { return a.Compare(b) == 0 })
}

// reverseBelow returns the name servers of the planned zones directly below one that was not created by a user, by name.
func (p *plan) reverseBelow(z *plannedZone) map[string][]dns.NameServer {
	if p.nearest == nil {
		p.nearest = map[*plannedZone][]*plannedZone{}
		for _, one := range p.zones {
			if above := p.nearestAbove(one); above != nil {
				p.nearest[above] = append(p.nearest[above], one)
			}
		}
	}
	found := map[string][]dns.NameServer{}
	for _, below := range p.nearest[z] {
		found[below.fqdn()] = p.nameServers(below)
	}
	return found
}

// nearestAbove returns the planned zone of the view with the longest name above a zone; nil if there is none.
func (p *plan) nearestAbove(z *plannedZone) *plannedZone {
	for at := z.fqdn(); at != "."; {
		next, end := wire.NextLabel(at, 0)
		if at = at[next:]; end {
			at = "."
		}
		if found := p.byName[z.view][at]; found != nil {
			return found
		}
	}
	return nil
}

// nameServers returns the name servers for the NS records of a zone, without hidden ones. If no server of the configuration answers for the
// zone, they are the servers that it is forwarded to.
func (p *plan) nameServers(z *plannedZone) (all []dns.NameServer) {
	for _, server := range z.serversOf(func(a assigned) bool {
		return a.kind == serverconfig.RolePrimary || a.kind == serverconfig.RoleSecondary
	}) {
		all = p.nameServer(all, z.roles[server].iface, z.roles[server].ttl)
	}
	if len(z.serversOf(assigned.answers)) > 0 {
		return all
	}
	for _, server := range z.serversOf(func(a assigned) bool {
		return (a.kind == serverconfig.RoleForwarding || a.kind == serverconfig.RoleStub) && a.owner != z.view
	}) {
		for _, target := range z.roles[server].targets {
			some := p.nameServer(all, target, z.roles[server].ttl)
			if at := p.interfaces[target]; len(some) == len(all) && !isHostName(at.name) { // no host name is set for it
				some = append(some, dns.NameServer{Name: fmt.Sprintf("target%d.%s", target, z.fqdn()), Addresses: at.addresses, TTL: dns.DefaultTTL})
			}
			all = some
		}
	}
	return all
}

// nameServer adds an interface, if its name is a host name that is not in the list yet.
func (p *plan) nameServer(all []dns.NameServer, iface int64, ttl *int64) []dns.NameServer {
	at := p.interfaces[iface]
	name, err := naming.ASCII(naming.Clean(at.name))
	if err != nil || !isHostName(at.name) {
		return all
	}
	one := dns.NameServer{Name: wire.CanonicalName(name), Addresses: at.addresses, TTL: dns.DefaultTTL}
	if ttl != nil {
		one.TTL = uint32(*ttl) //nolint:gosec // within its bounds
	}
	if slices.ContainsFunc(all, func(o dns.NameServer) bool { return o.Name == one.Name }) {
		return all
	}
	return append(all, one)
}

// authority returns the start of authority of a zone, by the option in effect for its primary server. The owner, and the parts that the
// option does not set, follow from the zone.
func (p *plan) authority(z *plannedZone) *wire.SOA {
	soa := &wire.SOA{Hdr: wire.RR_Header{Ttl: dns.DefaultTTL}, Refresh: soaRefresh, Retry: soaRetry, Expire: soaExpire, Minttl: soaMinimum}
	parts := p.soaParts(z)
	number := func(i int, into *uint32) {
		if n, err := strconv.ParseUint(string(parts[i]), 10, 32); err == nil {
			*into = uint32(n)
		}
	}
	if len(parts) == len(serverconfig.SOAParts) {
		number(0, &soa.Hdr.Ttl)
		number(4, &soa.Refresh)
		number(5, &soa.Retry)
		number(6, &soa.Expire)
		number(7, &soa.Minttl)
		var name, mail string
		if json.Unmarshal(parts[1], &name) == nil && name != "" {
			soa.Ns = wire.CanonicalName(name)
		}
		if json.Unmarshal(parts[2], &mail) == nil && mail != "" {
			soa.Mbox = mailbox(mail)
		}
	}
	if servers := p.nameServers(z); soa.Ns == "" && len(servers) > 0 {
		soa.Ns = servers[0].Name
		for _, id := range z.serversOf(func(a assigned) bool { return a.kind == serverconfig.RolePrimary }) {
			if name, err := naming.ASCII(naming.Clean(p.interfaces[z.roles[id].iface].name)); err == nil && isHostName(name) {
				soa.Ns = wire.CanonicalName(name)
				break
			}
		}
	}
	return soa
}

// soaParts returns the parts of the option StartOfAuthority in effect for a zone; nil if there is none.
func (p *plan) soaParts(z *plannedZone) (parts []json.RawMessage) {
	server := int64(0)
	if writers := z.serversOf(assigned.writes); len(writers) > 0 {
		server = writers[0]
	}
	if value := p.lookUp(z.chain, server, "start-of-authority"); value == nil || json.Unmarshal(value, &parts) != nil {
		return nil
	}
	return parts
}

// mailbox returns a mail address as a domain name (RFC 1035 section 8).
func mailbox(address string) string {
	local, domain, ok := strings.Cut(address, "@")
	if !ok {
		return wire.CanonicalName(address)
	}
	return strings.ReplaceAll(local, ".", `\.`) + "." + wire.CanonicalName(domain)
}

// nextSerial returns the serial number after one that was served. By default it is the time in Unix seconds, so that it increases even
// after the restore of an older backup. By option it is the date as YYYYMMDDnn, or starts from a set number. It never decreases (RFC 1982).
func (p *plan) nextSerial(z *plannedZone, before uint32, served bool, now time.Time) uint32 {
	next := uint32(now.Unix()) //nolint:gosec // it wraps around
	if parts := p.soaParts(z); len(parts) == len(serverconfig.SOAParts) {
		switch text := string(parts[3]); {
		case text == `"date"`:
			n, err := strconv.ParseUint(now.UTC().Format("20060102")+"00", 10, 32)
			if err == nil {
				next = uint32(n)
			}
		case text != "null" && text != `"auto"`:
			if n, err := strconv.ParseUint(text, 10, 32); err == nil {
				next = uint32(n)
			}
		}
	}
	if served && int32(next-before) <= 0 { //nolint:gosec // as RFC 1982 compares
		return before + 1
	}
	if next == 0 {
		return 1
	}
	return next
}
