// Package outbound says where the manager connects to for what is stored in it: webhooks, authenticators. Whoever may store a URL or the
// name of a host cannot have the manager ask where it must not. What the command line says, such as mail servers, is the operator's
// affair.
package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// never are the addresses that nothing stored leads to, whatever is allowed: those of one link, where machines in clouds are told their
// secrets (RFC 3927, RFC 4291 section 2.5.6), and those that are no host's.
var never = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("ff00::/8"), netip.MustParsePrefix("::/128"),
	// Where clouds tell machines their secrets, elsewhere than on the link.
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32")}

// translated are addresses of IPv6 that lead to ones of IPv4, which are their last 32 bits (RFC 6052 section 2.1).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// allowed is where connections go; nil: anywhere. It is one of the process, set once before it connects to anything.
var allowed atomic.Pointer[[]netip.Prefix]

// Allow lets connections go to some prefixes alone; none lets them go anywhere.
func Allow(prefixes []netip.Prefix) {
	if len(prefixes) == 0 {
		allowed.Store(nil)
		return
	}
	allowed.Store(&prefixes)
}

// Parse reads prefixes, and addresses, which are prefixes of one.
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

// ErrDenied is a connection that is not made.
var ErrDenied = errors.New("the manager does not connect there (--outbound)")

// Check refuses an address that no connection goes to.
func Check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if translated.Contains(a) {
		all := a.As16()
		if err := Check(netip.AddrFrom4([4]byte(all[12:]))); err != nil {
			return err
		}
	}
	for _, p := range never {
		if p.Contains(a) {
			return fmt.Errorf("%s: %w", a, ErrDenied)
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
	return fmt.Errorf("%s: %w", a, ErrDenied)
}

// Dialer makes connections, and looks at each address that a name has led to before.
func Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%s: %w", address, ErrDenied)
		}
		return Check(at.Addr())
	}}
}
