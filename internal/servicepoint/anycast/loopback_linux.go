package anycast

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"portolan/internal/wire/checkin"

	"github.com/vishvananda/netlink"
)

// IsAssigned reports whether the loopback interface has an address.
func IsAssigned(addr netip.Addr) (yes bool, err error) {
	err = onLoopback(addr, func(link netlink.Link, a *netlink.Addr) error {
		all, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		for _, one := range all {
			yes = yes || one.Equal(*a)
		}
		return err
	})
	return yes, err
}

// Assign adds an address to the loopback interface; an existing one is not an error. It requires CAP_NET_ADMIN.
func Assign(addr netip.Addr) error {
	err := onLoopback(addr, netlink.AddrAdd)
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// Unassign removes an address from the loopback interface; a missing one is not an error.
func Unassign(addr netip.Addr) error {
	err := onLoopback(addr, netlink.AddrDel)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func onLoopback(addr netip.Addr, do func(netlink.Link, *netlink.Addr) error) error {
	link, err := netlink.LinkByName(checkin.AnycastInterface)
	if err != nil {
		return fmt.Errorf("find %s: %w", checkin.AnycastInterface, err)
	}
	a, err := netlink.ParseAddr(netip.PrefixFrom(addr, addr.BitLen()).String())
	if err != nil {
		return err
	}
	if addr.Is6() { // no duplicate address detection, because the address is only on loopback
		a.Flags = syscall.IFA_F_NODAD
	}
	return do(link, a)
}
