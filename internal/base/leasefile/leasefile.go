// Package leasefile reads the lease files of other DHCP servers: dhcpd.leases and dhcpd6.leases of ISC dhcpd (dhcpd.leases(5)), and the
// memfiles of Kea (kea-leases4.csv, kea-leases6.csv, and their older parts such as kea-leases4.csv.2).
package leasefile

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// State is the state of a lease in a file.
type State uint8

// The states. An Abandoned address was declined, or answered a probe. An Inactive entry is not the lease of a client any more: it is free,
// expired, released or deleted.
const (
	Active State = iota
	Abandoned
	Inactive
	// Temporary is an address of an IA_TA, which clients choose themselves (RFC 8981).
	Temporary
)

// Lease is the last entry of an address in a file.
type Lease struct {
	// Line is the line at which the entry begins. It counts the lines of all files if several follow each other.
	Line    int
	Address netip.Addr
	// PrefixLength is the length of a delegated prefix; 0 for an address.
	PrefixLength int
	State        State
	// Status is the state in the words of the file, such as "backup".
	Status string
	// Start is the time of the last request of the client; the zero time if the file does not have it. Expires is the end of the lease; the
	// zero time for one without an end.
	Start, Expires time.Time
	// HardwareType, Hardware, ClientID, DUID and IAID identify the client.
	HardwareType uint8
	Hardware     []byte
	ClientID     []byte
	DUID         []byte
	IAID         uint32
	HostName     string
	// CircuitID and RemoteID are the sub-options of the relay. VendorClass is the vendor class of the client.
	CircuitID, RemoteID, VendorClass []byte
	// Wrong is the reason why the entry cannot be read; nil if it can. The entry before it counts, as for the server itself.
	Wrong error
}

// maxWrong is the maximum number of entries that cannot be read. A file with more is not a lease file.
const maxWrong = 10_000

// errNoLeases reports a file that is not a lease file.
var errNoLeases = errors.New("contains no leases: it must be dhcpd.leases of ISC dhcpd, or kea-leases4.csv or kea-leases6.csv of Kea")

// Read returns the last entry of each address, and the entries that cannot be read, in the order of their lines. Entries of a later line
// replace earlier ones: several files of a server may follow each other, the oldest one first.
func Read(file []byte) ([]Lease, error) {
	r := &reader{last: map[netip.Addr]int{}}
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimLeft(file, " \t\r\n"), []byte(keaHead)) {
		r.kea(file)
	} else {
		r.isc(file)
	}
	if !r.known {
		return nil, errNoLeases
	}
	if r.rejected > maxWrong {
		return nil, fmt.Errorf("more than %d entries cannot be read, the first one at line %d", maxWrong, r.firstRejected)
	}
	all := slices.DeleteFunc(r.all, func(l Lease) bool { return l.Line == 0 })
	slices.SortStableFunc(all, func(a, b Lease) int { return a.Line - b.Line })
	return all, nil
}

// reader collects the entries of a file.
type reader struct {
	all []Lease
	// last are the positions of the last entries of addresses in all.
	last map[netip.Addr]int
	// known is true after an entry or a head that only lease files have.
	known                   bool
	rejected, firstRejected int
}

// add adds an entry. It replaces the earlier entry of the address.
func (r *reader) add(l Lease) {
	r.known = true
	if l.Wrong != nil {
		if r.rejected++; r.firstRejected == 0 {
			r.firstRejected = l.Line
		}
		if r.rejected <= maxWrong {
			r.all = append(r.all, l)
		}
		return
	}
	if i, there := r.last[l.Address]; there {
		r.all[i] = l
		return
	}
	r.last[l.Address] = len(r.all)
	r.all = append(r.all, l)
}

// remove removes the entry of an address that the server has removed by a later entry.
func (r *reader) remove(a netip.Addr) {
	if i, there := r.last[a]; there {
		r.all[i] = Lease{}
		delete(r.last, a)
	}
}

// addFault adds an entry that cannot be read.
func (r *reader) addFault(line int, a netip.Addr, format string, args ...any) {
	r.add(Lease{Line: line, Address: a, Wrong: fmt.Errorf(format, args...)})
}

// check returns an error if an active lease has no client.
func (l *Lease) check() error {
	switch {
	case l.State != Active:
		return nil
	case l.Address.Is6() && len(l.DUID) == 0:
		return errors.New("the lease has no DUID")
	case l.Address.Is4() && len(l.Hardware) == 0 && len(l.ClientID) == 0:
		return errors.New("the lease has neither a hardware address nor a client identifier")
	case len(l.Hardware) > maxHardware:
		return fmt.Errorf("the hardware address has %d octets; the maximum is %d", len(l.Hardware), maxHardware)
	case len(l.ClientID) > maxIdentifier || len(l.DUID) > maxDUID:
		return errors.New("the identifier of the client is too long")
	}
	return nil
}

// Limits of identifiers in octets: chaddr (RFC 2131), an option (RFC 2132), and a DUID (RFC 8415 section 11.1).
const (
	maxHardware   = 16
	maxIdentifier = 255
	maxDUID       = 130
)
