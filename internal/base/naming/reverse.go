package naming

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Suffixes of reverse names (RFC 1035 section 3.5, RFC 3596 section 2.5).
const (
	reverse4 = "in-addr.arpa"
	reverse6 = "ip6.arpa"
)

// ReverseRange returns the addresses of a reverse zone; ok is false for other zones. The name of a classless zone (RFC 2317) starts with a
// label such as 0-63 or 0/26.
func ReverseRange(zone string) (low, high netip.Addr, ok bool) {
	name := strings.ToLower(Clean(zone))
	if rest, found := cutZone(name, reverse4); found {
		return reverseRange4(rest)
	}
	rest, found := cutZone(name, reverse6)
	if !found {
		return low, high, false
	}
	return reverseRange6(rest)
}

// cutZone removes a suffix of whole labels from a name.
func cutZone(name, suffix string) (rest string, ok bool) {
	if name == suffix {
		return "", true
	}
	return strings.CutSuffix(name, "."+suffix)
}

func reverseRange4(rest string) (low, high netip.Addr, ok bool) {
	from, to := [4]byte{}, [4]byte{255, 255, 255, 255}
	labels := []string{}
	if rest != "" {
		labels = strings.Split(rest, ".")
		slices.Reverse(labels)
	}
	if len(labels) > 4 {
		return low, high, false
	}
	for i, label := range labels {
		n, err := strconv.ParseUint(label, 10, 8)
		if err == nil && strconv.FormatUint(n, 10) == label {
			from[i], to[i] = byte(n), byte(n)
			continue
		}
		first, last, classless := partOfOctet(label)
		if !classless || i != len(labels)-1 || i != 3 {
			return low, high, false
		}
		from[i], to[i] = first, last
	}
	return netip.AddrFrom4(from), netip.AddrFrom4(to), true
}

// partOfOctet parses a label such as 0-63 or 0/26 and returns the first and last number.
func partOfOctet(label string) (first, last byte, ok bool) {
	for _, mark := range []string{"-", "/"} {
		a, b, found := strings.Cut(label, mark)
		if !found {
			continue
		}
		from, err := strconv.ParseUint(a, 10, 8)
		if err != nil {
			return 0, 0, false
		}
		to, err := strconv.ParseUint(b, 10, 8)
		if err != nil {
			return 0, 0, false
		}
		if mark == "/" && to > 24 && to <= 32 {
			to = from + 1<<(32-to) - 1
		}
		return byte(from), byte(to), from <= to && to <= 255
	}
	return 0, 0, false
}

func reverseRange6(rest string) (low, high netip.Addr, ok bool) {
	var digits []string
	if rest != "" {
		digits = strings.Split(rest, ".")
		slices.Reverse(digits)
	}
	if len(digits) > 32 {
		return low, high, false
	}
	text := strings.Join(digits, "")
	if len(text) != len(digits) {
		return low, high, false
	}
	var from, to [16]byte
	if _, err := hex.Decode(from[:], []byte(text+strings.Repeat("0", 32-len(text)))); err != nil {
		return low, high, false
	}
	if _, err := hex.Decode(to[:], []byte(text+strings.Repeat("f", 32-len(text)))); err != nil {
		return low, high, false
	}
	return netip.AddrFrom16(from), netip.AddrFrom16(to), true
}

// ReverseName returns the name of an address in a reverse zone, relative to the zone.
func ReverseName(a netip.Addr, zone string) (string, error) {
	name := strings.ToLower(Clean(zone))
	if rest, ok := cutZone(name, reverse4); ok && a.Is4() {
		octets := a.As4()
		have := 0
		if rest != "" {
			have = strings.Count(rest, ".") + 1
			if _, _, classless := partOfOctet(strings.SplitN(rest, ".", 2)[0]); classless {
				have = 3
			}
		}
		labels := []string{}
		for i := 3; i >= have; i-- {
			labels = append(labels, strconv.Itoa(int(octets[i])))
		}
		return strings.Join(labels, "."), nil
	}
	if rest, ok := cutZone(name, reverse6); ok && a.Is6() {
		sixteen := a.As16()
		text := hex.EncodeToString(sixteen[:])
		have := 0
		if rest != "" {
			have = strings.Count(rest, ".") + 1
		}
		labels := strings.Split(text[have:], "")
		slices.Reverse(labels)
		return strings.Join(labels, "."), nil
	}
	return "", fmt.Errorf("%s has no name in %s", a, zone)
}

// ReverseZones returns the names of the reverse zones that together cover a range of addresses. Zones are cut at octets, for IPv6 at
// digits. A part of a last octet becomes a classless zone, named by its first and last number (RFC 2317). It returns nil if there would be
// more than limit zones.
func ReverseZones(low, high netip.Addr, limit int) (names []string) {
	unit := 4
	if low.Is4() {
		unit = 8
	}
	for at := low; at.IsValid() && !high.Less(at); {
		bits := 0
		last := at
		for ; bits <= at.BitLen(); bits += unit { // the largest that starts here and ends within the range
			p := netip.PrefixFrom(at, bits).Masked()
			if p.Addr() == at {
				if last = lastOf(p); !high.Less(last) {
					break
				}
			}
		}
		if at.Is4() && bits == at.BitLen() { // less than an octet: up to its end, or the end of the range
			last = lastOf(netip.PrefixFrom(at, 24).Masked())
			if high.Less(last) {
				last = high
			}
		}
		if names = append(names, reverseZone(at, last, bits)); len(names) > limit {
			return nil
		}
		at = last.Next()
	}
	return names
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(raw); i++ {
		raw[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

func reverseZone(first, last netip.Addr, bits int) string {
	if first.Is4() && bits == 32 {
		octets, end := first.As4(), last.As4()
		return fmt.Sprintf("%d-%d.%d.%d.%d.%s", octets[3], end[3], octets[2], octets[1], octets[0], reverse4)
	}
	labels := []string{}
	suffix := reverse6
	if first.Is4() {
		suffix = reverse4
		octets := first.As4()
		for i := range bits / 8 {
			labels = append(labels, strconv.Itoa(int(octets[i])))
		}
	} else {
		sixteen := first.As16()
		for i := range bits / 4 {
			labels = append(labels, string(hex.EncodeToString(sixteen[:])[i]))
		}
	}
	slices.Reverse(labels)
	return strings.Join(append(labels, suffix), ".")
}

// ReverseAddress returns the address of a reverse name, which must be the name that ReverseName returns, followed by the zone.
func ReverseAddress(name, zone string) (a netip.Addr, ok bool) {
	low, high, ok := ReverseRange(name)
	if !ok { // in a classless zone (RFC 2317)
		label, rest, _ := strings.Cut(strings.ToLower(Clean(name)), ".")
		first, last, is := ReverseRange(rest)
		if n, err := strconv.ParseUint(label, 10, 8); err == nil && is && first.Is4() && strconv.FormatUint(n, 10) == label {
			octets := first.As4()
			octets[3] = byte(n)
			low = netip.AddrFrom4(octets)
			high, ok = low, !low.Less(first) && !last.Less(low)
		}
	}
	if !ok || low != high {
		return a, false
	}
	relative, err := ReverseName(low, zone)
	return low, err == nil && Key(Join(relative, zone)) == Key(Clean(name))
}
