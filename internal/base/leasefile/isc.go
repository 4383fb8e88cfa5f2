package leasefile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// iscReader reads a file of ISC dhcpd.
type iscReader struct {
	*reader
	scanner
	// bigEndian is the order of the octets of an IAID (authoring-byte-order).
	bigEndian bool
	// associations are the addresses of the last entry of each identity association. A later entry without one of them has removed it.
	associations map[string][]netip.Addr
}

// isc reads a file of ISC dhcpd. After an entry that cannot be read it continues at the next line that begins an entry.
func (r *reader) isc(file []byte) {
	x := &iscReader{reader: r, scanner: scanner{text: file, line: 1}, associations: map[string][]netip.Addr{}}
	for {
		one, err := x.statement()
		switch {
		case errors.Is(err, errEnd):
			return
		case err != nil:
			x.addDamaged(one, err)
			if !x.skipToEntry(one.line) {
				return
			}
			continue
		}
		x.entry(one)
	}
}

// addDamaged reports an entry that cannot be read.
func (x *iscReader) addDamaged(one statement, err error) {
	if !isEntry(one.word(0)) && !x.known { // not a lease file
		return
	}
	a, _ := netip.ParseAddr(one.word(1))
	x.addFault(max(one.line, 1), a, "%w", err)
}

// entry reads a statement outside of blocks.
func (x *iscReader) entry(one statement) {
	switch word := one.word(0); word {
	case "lease":
		l, err := lease4(one)
		x.addLease(one, l, err)
	case "ia-na", "ia-ta", "ia-pd", "ia_na", "ia_ta", "ia_pd":
		x.association(one, strings.TrimPrefix(strings.ReplaceAll(word, "_", "-"), "ia-"))
	case "authoring-byte-order":
		x.known, x.bigEndian = true, one.word(1) == "big-endian"
	case "server-duid":
		x.known = true
	}
}

// addLease adds a lease, or the reason why it cannot be read.
func (x *iscReader) addLease(one statement, l Lease, err error) {
	if err == nil {
		err = l.check()
	}
	if err != nil {
		x.addFault(one.line, l.Address, "%w", err)
		return
	}
	l.Line = one.line
	x.add(l)
}

// iscStates are the states of leases by their names. The other ones are not leases of clients.
var iscStates = map[string]State{"active": Active, "abandoned": Abandoned}

// lease4 reads an entry of DHCPv4.
func lease4(one statement) (l Lease, err error) {
	if l.Address, err = netip.ParseAddr(one.word(1)); err != nil || !l.Address.Is4() {
		return l, fmt.Errorf("%q is not an IPv4 address", one.word(1))
	}
	if !one.hasBlock {
		return l, errors.New("the entry has no block")
	}
	l.State, l.Status = Active, "active" // files of old versions have no state
	hasEnd := false
	for _, s := range one.block {
		switch s.word(0) {
		case "starts":
			l.Start, err = s.time()
		case "cltt":
			if at, wrong := s.time(); wrong == nil && at.After(l.Start) {
				l.Start = at
			}
		case "ends":
			l.Expires, err = s.time()
			hasEnd = true
		case "binding":
			l.state(s.word(2))
		case "abandoned":
			l.state("abandoned")
		case "hardware":
			l.HardwareType = hardwareTypes[s.word(1)]
			if number, ok := strings.CutPrefix(s.word(1), "unknown-"); ok {
				n, wrong := strconv.ParseUint(number, 10, 8)
				l.HardwareType, err = uint8(n), wrong //nolint:gosec // 8 bits
			}
			if l.HardwareType == 0 && err == nil {
				err = fmt.Errorf("the hardware type %s is unknown", s.word(1))
			}
			if err == nil {
				l.Hardware, err = octets(s.word(2))
			}
		case "uid":
			l.ClientID, err = s.data(1)
		case "client-hostname":
			l.HostName = s.word(1)
		case "set":
			if s.word(1) == "vendor-class-identifier" {
				l.VendorClass, err = s.data(len(s.words) - 1)
			}
		case "option":
			switch s.word(1) {
			case "agent.circuit-id":
				l.CircuitID, err = s.data(2)
			case "agent.remote-id":
				l.RemoteID, err = s.data(2)
			}
		}
		if err != nil {
			return l, fmt.Errorf("line %d: %w", s.line, err)
		}
	}
	if !hasEnd && l.State == Active {
		return l, errors.New("the lease has no end (ends)")
	}
	return l, nil
}

// state sets the state by its name.
func (l *Lease) state(name string) {
	l.Status = name
	found, known := iscStates[name]
	if l.State = found; !known {
		l.State = Inactive
	}
}

// hardwareTypes are the numbers of hardware types (RFC 1700) by their names in the file.
var hardwareTypes = map[string]uint8{"ethernet": 1, "token-ring": 6, "fddi": 8, "infiniband": 32}

// association reads an entry of DHCPv6: an identity association with its addresses or prefixes.
func (x *iscReader) association(one statement, kind string) {
	const iaidSize = 4
	if key := one.word(1); len(key) <= iaidSize {
		x.addFault(one.line, netip.Addr{}, "the identity association has no IAID and DUID")
		return
	}
	key := []byte(one.word(1))
	iaid := binary.LittleEndian.Uint32(key)
	if x.bigEndian {
		iaid = binary.BigEndian.Uint32(key)
	}
	start := time.Time{}
	var now []netip.Addr
	for _, s := range one.block {
		if s.word(0) == "cltt" {
			start, _ = s.time() // without it, the time of the request is unknown
		}
	}
	for _, s := range one.block {
		if s.word(0) != "iaaddr" && s.word(0) != "iaprefix" {
			continue
		}
		l := Lease{State: Active, Status: "active", Start: start, DUID: key[iaidSize:], IAID: iaid}
		err := l.read6(s)
		if kind == "ta" && l.State == Active {
			l.State = Temporary
		}
		if x.addLease(s, l, err); l.Address.IsValid() {
			now = append(now, l.Address)
		}
	}
	id := kind + string(key)
	for _, a := range x.associations[id] {
		if i, there := x.last[a]; there && !contains(now, a) && x.all[i].IAID == iaid && bytes.Equal(x.all[i].DUID, key[iaidSize:]) {
			x.remove(a)
		}
	}
	x.associations[id] = now
}

func contains(all []netip.Addr, a netip.Addr) bool {
	for _, one := range all {
		if one == a {
			return true
		}
	}
	return false
}

// read6 reads an address or a prefix of an identity association.
func (l *Lease) read6(s statement) (err error) {
	if s.word(0) == "iaprefix" {
		p, err := netip.ParsePrefix(s.word(1))
		if err != nil || p.Masked() != p || !p.Addr().Is6() {
			return fmt.Errorf("%q is not an IPv6 prefix", s.word(1))
		}
		l.Address, l.PrefixLength = p.Addr(), p.Bits()
	} else if l.Address, err = netip.ParseAddr(s.word(1)); err != nil || !l.Address.Is6() {
		l.Address = netip.Addr{}
		return fmt.Errorf("%q is not an IPv6 address", s.word(1))
	}
	hasEnd, infinite := false, false
	for _, one := range s.block {
		switch one.word(0) {
		case "binding":
			l.state(one.word(2))
		case "max-life":
			infinite = one.word(1) == strconv.FormatUint(infiniteLifetime, 10)
		case "ends":
			hasEnd = true
			if l.Expires, err = one.time(); err != nil {
				return fmt.Errorf("line %d: %w", one.line, err)
			}
		}
	}
	if infinite {
		l.Expires = time.Time{}
	}
	if !hasEnd && !infinite && l.State == Active {
		return errors.New("the lease has no end (ends)")
	}
	return nil
}

// time returns the time of a statement: a weekday, a date and a time in UTC, the seconds since 1970 after epoch, or never, which is the
// zero time.
func (s statement) time() (time.Time, error) {
	switch {
	case s.word(1) == "never":
		return time.Time{}, nil
	case s.word(1) == "epoch":
		n, err := strconv.ParseInt(s.word(2), 10, 62)
		if err != nil || n < 0 {
			return time.Time{}, fmt.Errorf("epoch: must be a number of seconds since 1970, not %q", s.word(2))
		}
		return time.Unix(n, 0), nil
	}
	at, err := time.Parse("2006/1/2 15:04:05", s.word(2)+" "+s.word(3))
	if err != nil || at.Unix() < 0 {
		return time.Time{}, fmt.Errorf("%q is not a time", strings.Join(s.words[1:], " "))
	}
	return at, nil
}

// data returns the octets of a word: a text, or hexadecimal digits.
func (s statement) data(i int) ([]byte, error) {
	if i < 0 || i >= len(s.words) {
		return nil, fmt.Errorf("the statement %s has no value", s.word(0))
	}
	if s.quoted[i] {
		return []byte(s.words[i]), nil
	}
	return octets(s.words[i])
}

// octets returns the octets of hexadecimal digits, such as 1:0:5e:0:53:1.
func octets(text string) (out []byte, err error) {
	for part := range strings.SplitSeq(text, ":") {
		if len(part) == 1 {
			part = "0" + part
		}
		if out, err = hex.AppendDecode(out, []byte(part)); err != nil || part == "" {
			return nil, fmt.Errorf("must be hexadecimal digits, such as 00:00:5e:00:53:01, not %q", text)
		}
	}
	return out, nil
}
