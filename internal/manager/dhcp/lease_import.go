package dhcp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/base/leasefile"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/wire/dhcpdata"
)

// LeaseImport imports leases of another DHCP server in a transaction. The leases are listed at once. The servers of their networks receive
// them with the content of the network, and confirm them.
type LeaseImport struct {
	w   *leaseWriter
	now time.Time
	// changed is called once for each of networks, which have imported leases.
	changed  func(tx *store.Tx, configuration, network int64) error
	networks map[int64]bool
	// near are the networks of earlier leases, by a prefix of their addresses.
	near   map[netip.Prefix]int64
	ranges map[int64][]importRange
}

// importRange is a DHCP range with the parts that it does not lease.
type importRange struct {
	space.Range
	excluded []space.Range
	// delegated is the length of the prefixes that the range delegates; 0 for a range of addresses.
	delegated int
}

// NewLeaseImport returns an import into a configuration. changed queues the changed networks for their servers.
func NewLeaseImport(tx *store.Tx, a *resource.API, configuration int64,
	changed func(tx *store.Tx, configuration, network int64) error) *LeaseImport {
	w := newLeaseWriter(tx, a, &store.Resource{Configuration: configuration})
	w.deployed = func(*store.Tx, int64, int64) (bool, error) { return true, nil }
	return &LeaseImport{w: w, now: tx.Now(), changed: changed, networks: map[int64]bool{}, near: map[netip.Prefix]int64{},
		ranges: map[int64][]importRange{}}
}

// Close stores what the imported leases have in common. It must be called after the last Add.
func (i *LeaseImport) Close() error {
	for id := range i.networks {
		if err := i.changed(i.w.tx, i.w.configuration, id); err != nil {
			return err
		}
	}
	return errors.Join(i.w.pages.write(), i.w.counts.write())
}

// refuseLease returns the problem of a lease that cannot be imported.
func refuseLease(format string, args ...any) error {
	return problem.Conflict("LeaseNotImported", format, args...)
}

// Add imports a lease. It returns a problem for a lease that the servers could not continue, and then writes nothing.
func (i *LeaseImport) Add(l leasefile.Lease) (changes, created bool, err error) {
	switch {
	case l.Wrong != nil:
		return false, false, problem.BadRequest("InvalidFileDataValue", "%v", l.Wrong)
	case l.State == leasefile.Inactive || !l.Expires.IsZero() && !l.Expires.After(i.now):
		return false, false, nil
	case l.State == leasefile.Temporary:
		return false, false, refuseLease("%s is a temporary address: clients choose those themselves (RFC 8981)", l.Address)
	case l.Start.After(i.now): // the clock of the other server is ahead
		l.Start = i.now
	}
	network, err := i.networkOf(l.Address)
	if err != nil {
		return false, false, err
	}
	if network == 0 {
		return false, false, refuseLease("%s is in no network: import the configuration of the other server first", l.Address)
	}
	reservation, err := i.place(network, l)
	if err != nil {
		return false, false, err
	}
	old, err := i.w.read(l.Address)
	if err != nil {
		return false, false, err
	}
	c := i.changeOf(l, network, reservation)
	if known, err := i.isKnown(old, c); err != nil || known {
		return false, false, err
	}
	active := old.state == stateAllocated || old.state == stateLeased || old.state == stateAbandoned
	return true, !active, i.write(old, c, l)
}

// networkOf returns the network that contains an address; 0 if none does.
func (i *LeaseImport) networkOf(a netip.Addr) (int64, error) {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	near, err := a.Prefix(bits)
	if err != nil {
		return 0, err
	}
	id, err := i.w.networkOf(i.near[near], a)
	i.near[near] = id
	return id, err
}

// changeOf returns the change of the lease of an address that an entry of a file describes.
func (i *LeaseImport) changeOf(l leasefile.Lease, network, reservation int64) leaseChange {
	c := leaseChange{state: stateAllocated, start: l.Start.Truncate(time.Second), end: endOf(infinite), network: network, address: l.Address,
		prefix: l.PrefixLength, mac: hardwareText(hex.EncodeToString(l.Hardware)), hostName: cleaned(l.HostName),
		clientID: strings.ToUpper(hex.EncodeToString(l.ClientID)), circuit: shownText(hex.EncodeToString(l.CircuitID)),
		remote: shownText(hex.EncodeToString(l.RemoteID)), vendor: shownText(hex.EncodeToString(l.VendorClass))}
	if c.start.Unix() < 0 {
		c.start = time.Unix(0, 0)
	}
	c.began = c.start
	if !l.Expires.IsZero() {
		c.end = l.Expires.Truncate(time.Second)
	}
	if l.Address.Is6() {
		c.clientID, c.iaid = strings.ToUpper(hex.EncodeToString(l.DUID)), strconv.FormatUint(uint64(l.IAID), 10)
	}
	switch {
	case l.State == leasefile.Abandoned:
		c.state, c.reason, c.mac, c.clientID, c.iaid = stateAbandoned, "DECLINED", "", "", ""
	case reservation != 0:
		c.state = stateLeased
	}
	return c
}

// isKnown reports whether the manager knows a lease already. It returns a problem if the address has a newer lease of another client.
func (i *LeaseImport) isKnown(old storedLease, c leaseChange) (bool, error) {
	lasts := old.state == stateAllocated || old.state == stateLeased
	if !old.there || !lasts && old.state != stateAbandoned {
		return false, nil
	}
	end, err := i.w.pages.end(c.address)
	if err != nil {
		return false, err
	}
	if end.IsZero() {
		end = endOf(infinite)
	}
	same := old.mac == c.mac && old.clientID == c.clientID
	switch {
	case !lasts:
		return c.state == stateAbandoned && !end.Before(c.end), nil
	case same && lasts && c.lasts(): // its server may have renewed it for a shorter time since
		return !end.Before(c.end) || old.server != 0 && !c.start.After(old.start), nil
	case old.server != 0 && c.state == stateAbandoned, old.server == 0 && c.start.Before(old.start):
		return true, nil
	case old.server != 0 && !c.start.After(old.start):
		by, err := i.w.tx.Get(old.server)
		if err != nil && !store.IsNotFound(err) {
			return false, err
		}
		name := ""
		if err == nil {
			name = by.Name
		}
		return false, refuseLease("%s belongs to %s since %s, by server %s, and the lease in the file is older", c.address,
			clientText(old.mac, old.clientID), old.start.UTC().Format(time.RFC3339), name)
	}
	return false, nil
}

// clientText returns the identifiers of a client for a message.
func clientText(mac, clientID string) string {
	switch {
	case mac != "" && clientID != "":
		return mac + " (" + clientID + ")"
	case mac != "":
		return mac
	}
	return "client " + clientID
}

// write stores the lease and the order to its servers.
func (i *LeaseImport) write(old storedLease, c leaseChange, l leasefile.Lease) error {
	if old.there && c.start.Before(old.start) { // it continues a lease that this manager knows
		c.start, c.began = old.start, old.start
	}
	if err := i.w.change(c); err != nil {
		return err
	}
	i.w.abandoned = nil // an event for each would tell nothing new
	id, err := i.w.tx.NewID()
	if err != nil {
		return err
	}
	order := dhcpdata.Order{ID: id, Address: l.Address, Action: dhcpdata.RestoreLease, Lease: &dhcpdata.RestoredLease{
		PrefixLength: l.PrefixLength, Start: max(0, l.Start.Unix()), Expires: dhcpdata.InfiniteTime}}
	x := order.Lease
	if !l.Expires.IsZero() {
		x.Expires = l.Expires.Unix()
	}
	if x.Abandoned = l.State == leasefile.Abandoned; !x.Abandoned {
		x.HardwareType, x.Hardware, x.ClientID, x.DUID, x.IAID = l.HardwareType, l.Hardware, l.ClientID, l.DUID, l.IAID
		x.HostName, x.CircuitID, x.RemoteID, x.VendorClass = cutText(c.hostName), cut(l.CircuitID), cut(l.RemoteID), cut(l.VendorClass)
	}
	data, err := json.Marshal(order)
	if err != nil {
		return err
	}
	key := store.AddrKey(l.Address)
	if err := i.w.tx.Write("INSERT INTO dhcp_lease_import (id, configuration, low, data) VALUES (?, ?, ?, ?)"+
		" ON CONFLICT (configuration, low) DO UPDATE SET id = excluded.id, data = excluded.data", id, i.w.configuration, key,
		string(data)); err != nil {
		return err
	}
	i.networks[c.network] = true
	return nil
}

// maxImported is the maximum number of octets of an identifier in an order.
const maxImported = 120

func cut(b []byte) []byte { return b[:min(len(b), maxImported)] }

// cutText cuts a host name at its maximum length.
func cutText(text string) string {
	for len(text) > 2*maxImported {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// place returns the reservation of the address for the client of a lease; 0 if the address is in a DHCP range. It returns a problem if the
// servers could not lease the address to the client.
func (i *LeaseImport) place(network int64, l leasefile.Lease) (reservation int64, err error) {
	row, err := ipam.AddressAt(i.w.tx, network, l.Address)
	if err != nil && !store.IsNotFound(err) {
		return 0, err
	}
	if err == nil {
		return i.reserved(row.Clone(), l)
	}
	ranges, known := i.ranges[network]
	if !known {
		if ranges, err = i.rangesOf(network); err != nil {
			return 0, err
		}
		i.ranges[network] = ranges
	}
	last := l.Address
	if l.PrefixLength > 0 {
		last = space.FromPrefix(netip.PrefixFrom(l.Address, l.PrefixLength)).High
	}
	at := slices.IndexFunc(ranges, func(r importRange) bool { return r.Has(l.Address) && r.Has(last) })
	if at < 0 {
		return 0, refuseLease("%s is in no DHCP range of network %s (%d): extend a range, or reserve the address for its client", l.Address,
			i.networkName(network), network)
	}
	switch length := ranges[at].delegated; {
	case length == l.PrefixLength:
	case l.PrefixLength == 0:
		return 0, refuseLease("%s is in a DHCP range that delegates prefixes of the length %d, and leases no addresses: end the lease at the "+
			"other server", l.Address, length)
	default:
		return 0, refuseLease("%s/%d is in a DHCP range of network %s (%d) without delegated-prefix-length %d: set that option at a range of "+
			"its own, or end the lease at the other server", l.Address, l.PrefixLength, i.networkName(network), network, l.PrefixLength)
	}
	for _, one := range ranges[at].excluded {
		if one.Has(l.Address) {
			return 0, refuseLease("%s is excluded from its DHCP range (%s): change the exclusion, or end the lease at the other server",
				l.Address, one)
		}
	}
	return 0, nil
}

// networkName returns the range of a network for a message.
func (i *LeaseImport) networkName(id int64) string {
	row, err := i.w.tx.Get(id)
	if err != nil {
		return ""
	}
	return space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}.String()
}

// rangesOf returns the DHCP ranges of a network.
func (i *LeaseImport) rangesOf(network int64) (all []importRange, err error) {
	var rows []*store.Resource
	if err := i.w.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("ranges"), store.HasParent(network)}},
		func(r *store.Resource) error {
			rows = append(rows, r.Clone())
			return nil
		}); err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	lengths, err := ipam.DelegatedLengths(i.w.tx, ids)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		one := importRange{Range: space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}, delegated: lengths[row.ID]}
		o, err := i.w.api.Object(row)
		if err != nil {
			return nil, err
		}
		if x, ok := o.(*ipam.IPv4DHCPRange); ok {
			for _, text := range x.ExclusionRanges {
				if r, err := space.Parse(text); err == nil {
					one.excluded = append(one.excluded, r)
				}
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// reserved returns the id of a reserved address if it is reserved for the client of a lease. It returns a problem for another address.
func (i *LeaseImport) reserved(row *store.Resource, l leasefile.Lease) (int64, error) {
	o, err := i.w.api.Object(row)
	if err != nil {
		return 0, err
	}
	shown := fmt.Sprintf("address %d", row.ID)
	if row.Name != "" {
		shown += " (" + row.Name + ")"
	}
	if state := i.w.api.TypeNamed(row.Type).TextOf(o, "state"); state != "DHCP_RESERVED" {
		return 0, refuseLease("%s is in use as %s %s: end the lease at the other server, or change the address", l.Address, state, shown)
	}
	var clients []string
	for _, field := range []string{"macAddress", "clientIdentifier"} {
		text, octets, err := i.client(row.Ref(field))
		if err != nil {
			return 0, err
		}
		if text == "" {
			continue
		}
		if l.State == leasefile.Active && (bytes.Equal(octets, l.Hardware) || bytes.Equal(octets, l.ClientID) || bytes.Equal(octets, l.DUID)) {
			return row.ID, nil
		}
		clients = append(clients, text)
	}
	if l.State == leasefile.Abandoned {
		return 0, refuseLease("%s is abandoned in the file, and reserved for %s by %s: the reservation counts",
			l.Address, strings.Join(clients, ", "), shown)
	}
	id := l.ClientID
	if l.Address.Is6() {
		id = l.DUID
	}
	return 0, refuseLease("%s is reserved for %s by %s, and %s has a lease of it: end the lease at the other server, or change the "+
		"reservation", l.Address, strings.Join(clients, ", "), shown,
		clientText(hardwareText(hex.EncodeToString(l.Hardware)), strings.ToUpper(hex.EncodeToString(id))))
}

// client returns a client of a reservation, as text and as octets; empty for the id 0.
func (i *LeaseImport) client(id int64) (text string, octets []byte, err error) {
	if id == 0 {
		return "", nil, nil
	}
	row, err := i.w.tx.Get(id)
	if err != nil {
		return "", nil, err
	}
	o, err := i.w.api.Object(row.Clone())
	if err != nil {
		return "", nil, err
	}
	switch x := o.(type) {
	case *ipam.MACAddress:
		octets, err = space.ParseHardware(x.Address)
		return x.Address, octets, err
	case *ipam.DHCPUniqueIdentifier:
		octets, err = hex.DecodeString(x.DUID)
		return x.DUID, octets, err
	case *ipam.DHCPClientIdentifier:
		var uid struct {
			ClientIdentifier string `json:"clientIdentifier"`
		}
		if err := json.Unmarshal(x.UID, &uid); err != nil {
			return "", nil, err
		}
		octets, err = ReadValue(uid.ClientIdentifier)
		return uid.ClientIdentifier, octets, err
	}
	return "", nil, nil
}
