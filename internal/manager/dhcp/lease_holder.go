package dhcp

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Holder is the client that has an address, or had it last.
type Holder struct {
	Network            int64
	Address            netip.Addr
	Hardware, ClientID []byte
	// IAID is the number of the identity association, and Prefix is true for a delegated prefix, in DHCPv6.
	IAID              uint32
	Prefix            bool
	Leased, Abandoned bool
	// Ended is true if an operator has ended the lease: the server does not lease the address to another client until Expires.
	Ended bool
	// Expires is the end of the lease, or of the time that the address is abandoned.
	Expires time.Time
}

// HolderAt returns the holder of an address, as servers have reported it; there is false if it was never leased.
func HolderAt(tx *store.Tx, configuration int64, a netip.Addr) (h Holder, there bool, err error) {
	w := &leaseWriter{tx: tx, configuration: configuration, pages: newPages(tx, configuration)}
	l, err := w.read(a)
	if err != nil || !l.there {
		return h, false, err
	}
	h = Holder{Network: l.parent, Address: a, IAID: l.iaid, Prefix: l.prefix > 0, Leased: l.state == stateAllocated || l.state == stateLeased,
		Abandoned: l.state == stateAbandoned}
	if mac, wrong := space.ParseHardware(l.mac); wrong == nil {
		h.Hardware = mac
	}
	if id, wrong := hex.DecodeString(l.clientID); wrong == nil {
		h.ClientID = id
	}
	h.Expires, err = w.pages.end(a)
	h.Ended = l.state == stateFree && h.Expires.After(tx.Now())
	return h, true, err
}

// HoldersIn returns the first leases from first to last in the order of their addresses, at most limit, with their addresses and states
// alone.
func HoldersIn(tx *store.Tx, configuration int64, first, last netip.Addr, limit int) (all []Holder, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var low []byte
		var state string
		if err := scan(&low, &state); err != nil {
			return err
		}
		all = append(all, Holder{Address: store.KeyAddr(low), Leased: state == stateAllocated || state == stateLeased,
			Abandoned: state == stateAbandoned})
		return nil
	}, "SELECT low, state FROM dhcp_lease WHERE configuration = ? AND low >= ? AND low <= ? ORDER BY low LIMIT ?", configuration,
		store.AddrKey(first), store.AddrKey(last), limit)
	return all, err
}

// CountOtherLengths returns the number of current IPv6 leases from first to last that are not of prefixes with a length; 0 is the length of
// addresses. Leases of reserved addresses do not count: a range never leases these. It reads all of them.
func CountOtherLengths(tx *store.Tx, configuration int64, first, last netip.Addr, length int) (n int, err error) {
	if length == 0 {
		length = first.BitLen()
	}
	err = tx.Each(func(scan func(...any) error) error {
		var low, high []byte
		if err := scan(&low, &high); err != nil {
			return err
		}
		if space.FromPrefix(netip.PrefixFrom(store.KeyAddr(low), length)) != (space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)}) {
			n++
		}
		return nil
	}, "SELECT low, high FROM dhcp_lease WHERE configuration = ? AND low >= ? AND low <= ? AND state = ?", configuration,
		store.AddrKey(first), store.AddrKey(last), stateAllocated)
	return n, err
}

// maxHeld is the maximum number of leases of a client that are read.
const maxHeld = 100

// HoldersOf returns the leases of a hardware address or, if it is nil, of a client identifier.
func HoldersOf(tx *store.Tx, configuration int64, hardware, clientID []byte) (all []Holder, err error) {
	field, text := "macAddress", space.FormatHardware(hardware)
	if hardware == nil {
		field, text = "clientIdentifier", strings.ToUpper(hex.EncodeToString(clientID))
	}
	var held []netip.Addr
	if err := tx.List(store.Query{From: leaseRows, Limit: maxHeld, Where: store.All{
		store.Compare{Field: configurationColumn, Op: "eq", Value: configuration},
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{field}, Indexed: true}, Op: "eq", Value: text}}},
		func(r *store.Resource) error {
			held = append(held, store.KeyAddr(r.Low))
			return nil
		}); err != nil {
		return nil, err
	}
	for _, a := range held {
		h, there, err := HolderAt(tx, configuration, a)
		if err != nil {
			return nil, err
		}
		if there {
			all = append(all, h)
		}
	}
	return all, nil
}

// Client returns the client that leases an address now, as an address names it: in IPv4 the hardware address or else the client identifier,
// in IPv6 the DUID or else the hardware address. Both are empty if the address has no lease.
func (*Leases) Client(tx *store.Tx, configuration int64, a netip.Addr) (hardware, identifier string, err error) {
	h, there, err := HolderAt(tx, configuration, a)
	if err != nil || !there || !h.Leased || h.Prefix {
		return "", "", err
	}
	if h.Hardware != nil {
		hardware = space.FormatHardware(h.Hardware)
	}
	if len(h.ClientID) > 0 {
		identifier = strings.ToUpper(hex.EncodeToString(h.ClientID))
	}
	switch {
	case a.Is6() && identifier != "":
		hardware = ""
	case hardware != "":
		identifier = ""
	case identifier != "":
		identifier = "0x" + identifier
	}
	return hardware, identifier, nil
}
