// Package outbound limits the addresses that the manager connects to because of stored settings, such as webhooks and authenticators. A
// user who may store a URL or a host name must not reach forbidden addresses with the help of the manager. Addresses from the command line,
// such as mail servers, are not limited.
package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// denied are the addresses that stored settings can never reach, even if they are allowed. These are link-local addresses, at which cloud
// providers serve secrets to machines (RFC 3927, RFC 4291 section 2.5.6), and addresses that do not belong to a host.
var denied = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"), netip.MustParsePrefix("::/128"),
	// Addresses at which cloud providers serve secrets to machines, outside of the link-local ranges.
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32")}

// embeddings are prefixes of IPv6 addresses that contain an IPv4 address, with the positions of its 4 bytes. They are NAT64 (RFC 6052
// section 2.1), 6to4 (RFC 3056 section 2), IPv4-compatible (RFC 4291 section 2.5.5.1), SIIT (RFC 2765 section 2.1) and Teredo servers (RFC
// 4380 section 4).
var embeddings = []struct {
	prefix netip.Prefix
	at     [4]int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), [4]int{12, 13, 14, 15}}, {netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}},
	{netip.MustParsePrefix("::/96"), [4]int{12, 13, 14, 15}}, {netip.MustParsePrefix("::ffff:0:0:0/96"), [4]int{12, 13, 14, 15}},
	{netip.MustParsePrefix("2001::/32"), [4]int{4, 5, 6, 7}},
}

// localNAT64 is the prefix of NAT64 within a network (RFC 8215). Its addresses have the IPv4 address at one of the positions of RFC 6052
// section 2.2. For prefixes shorter than 96 bits,
// octet 8 and the octets after the address must be zero.
var localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")

// localPlaces are these positions, for prefixes of 48, 56, 64 and 96 bits.
var localPlaces = [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}}

// embedded returns the IPv4 addresses that an IPv6 address may lead to.
func embedded(a netip.Addr) (all []netip.Addr) {
	if !a.Is6() || a == netip.IPv6Loopback() || a == netip.IPv6Unspecified() {
		return nil
	}
	b := a.As16()
	take := func(at [4]int) { all = append(all, netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})) }
	for _, e := range embeddings {
		if e.prefix.Contains(a) {
			take(e.at)
		}
	}
	if !localNAT64.Contains(a) {
		return all
	}
	for _, at := range localPlaces {
		rest := b
		for i := range at {
			rest[at[i]] = 0
		}
		last := at[3] == 15
		if b[8] != 0 && !last || !last && !isZero(rest[at[0]:]) || b[at[0]]|b[at[1]]|b[at[2]]|b[at[3]] == 0 {
			continue
		}
		take(at)
	}
	return all
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// allowed has the prefixes of permitted connections; nil permits all. It is set once for the process, before the first connection.
var allowed atomic.Pointer[[]netip.Prefix]

// Allow restricts connections to some prefixes; without prefixes it allows all.
func Allow(prefixes []netip.Prefix) {
	if len(prefixes) == 0 {
		allowed.Store(nil)
		return
	}
	allowed.Store(&prefixes)
}

// Parse parses prefixes and single addresses.
func Parse(texts []string) (prefixes []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, e := netip.ParseAddr(text)
			if e != nil {
				return nil, fmt.Errorf("%q is neither a prefix nor an address", text)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		prefixes = append(prefixes, p.Masked())
	}
	return prefixes, nil
}

// ErrDenied reports a connection to an address that stored settings must not reach.
var ErrDenied = errors.New("connection not allowed")

// Check returns an error if connections to an address are not allowed.
func Check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	for _, inner := range embedded(a) {
		if err := Check(inner); err != nil {
			return err
		}
	}
	for _, p := range denied {
		if p.Contains(a) {
			return fmt.Errorf("%s: %w: stored settings can never reach link-local, multicast and cloud metadata addresses", a, ErrDenied)
		}
	}
	limits := allowed.Load()
	if limits == nil {
		return nil
	}
	for _, p := range *limits {
		if p.Contains(a) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w: add the address to --outbound of portolan serve", a, ErrDenied)
}

// Dialer returns a dialer that checks each address after a name was resolved.
func Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%s: %w", address, ErrDenied)
		}
		return Check(at.Addr())
	}}
}
