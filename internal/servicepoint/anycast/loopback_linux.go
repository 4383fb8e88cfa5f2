package anycast

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"portolan/internal/wire/checkin"

	"github.com/vishvananda/netlink"
)

// There reports whether the loopback interface has an address.
func There(addr netip.Addr) (yes bool, err error) {
	err = onLoopback(addr, func(link netlink.Link, a *netlink.Addr) error {
		all, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		for _, one := range all {
			yes = yes || one.Equal(*a)
		}
		return err
	})
	return yes, err
}

// Put puts an address on the loopback interface; one that is there stays. It takes CAP_NET_ADMIN.
func Put(addr netip.Addr) error {
	err := onLoopback(addr, netlink.AddrAdd)
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// Take takes an address off the loopback interface; one that is not there is no error.
func Take(addr netip.Addr) error {
	err := onLoopback(addr, netlink.AddrDel)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func onLoopback(addr netip.Addr, do func(netlink.Link, *netlink.Addr) error) error {
	link, err := netlink.LinkByName(checkin.AnycastInterface)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", checkin.AnycastInterface, err)
	}
	a, err := netlink.ParseAddr(netip.PrefixFrom(addr, addr.BitLen()).String())
	if err != nil {
		return err
	}
	if addr.Is6() { // nobody else on a link has it
		a.Flags = syscall.IFA_F_NODAD
	}
	return do(link, a)
}
