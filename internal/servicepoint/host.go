package servicepoint

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/checkin"
)

// host reads the state of the operating system. The paths are those of Linux; on other systems the files are missing and the gateways
// unknown.
type host struct {
	route4, route6, resolv string
}

func thisHost() host {
	return host{route4: "/proc/net/route", route6: "/proc/net/ipv6_route", resolv: "/etc/resolv.conf"}
}

// route is a default route.
type route struct {
	via      netip.Addr
	device   string
	priority int64
}

// gateway4 returns the IPv4 default route with the lowest metric.
func (h host) gateway4() (route, bool) {
	return bestRoute(h.route4, func(cells []string) (r route, ok bool) {
		// Columns: Iface Destination Gateway Flags RefCnt Use Metric Mask; numbers in hex, host byte order.
		if len(cells) < 8 || cells[1] != "00000000" || cells[7] != "00000000" {
			return r, false
		}
		gateway, err := strconv.ParseUint(cells[2], 16, 32)
		metric, err2 := strconv.ParseInt(cells[6], 10, 64)
		if err != nil || err2 != nil || gateway == 0 {
			return r, false
		}
		var four [4]byte
		binary.NativeEndian.PutUint32(four[:], uint32(gateway))
		return route{netip.AddrFrom4(four), cells[0], metric}, true
	})
}

// gateway6 returns the IPv6 default route with the lowest metric.
func (h host) gateway6() (route, bool) {
	return bestRoute(h.route6, func(cells []string) (r route, ok bool) {
		// Columns: destination length source length next-hop metric refcount use flags device; all in hex.
		if len(cells) < 10 || strings.Trim(cells[0], "0") != "" || cells[1] != "00" {
			return r, false
		}
		next, err := hex.DecodeString(cells[4])
		metric, err2 := strconv.ParseInt(cells[5], 16, 64)
		if err != nil || err2 != nil || len(next) != 16 || strings.Trim(cells[4], "0") == "" {
			return r, false
		}
		return route{netip.AddrFrom16([16]byte(next)), cells[9], metric}, true
	})
}

func bestRoute(path string, parse func(cells []string) (route, bool)) (best route, found bool) {
	f, err := os.Open(path)
	if err != nil {
		return best, false
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if r, ok := parse(strings.Fields(lines.Text())); ok && (!found || r.priority < best.priority) {
			best, found = r, true
		}
	}
	return best, found
}

// resolvers returns the DNS servers in the system's configuration.
func (h host) resolvers() []string {
	config, err := dns.ClientConfigFromFile(h.resolv)
	if err != nil {
		return []string{}
	}
	return append([]string{}, config.Servers...)
}

// searchDomains returns the DNS search domains in the system's configuration.
func (h host) searchDomains() []string {
	config, err := dns.ClientConfigFromFile(h.resolv)
	if err != nil {
		return nil
	}
	return config.Search
}

// linkAddress is an address of an interface.
type linkAddress struct {
	device   string
	prefix   netip.Prefix
	loopback bool
	running  bool
}

// addresses returns the addresses of the interfaces except link-local ones, in the system's order, and the number of interfaces other
// than loopback.
func addresses() (all []linkAddress, links int, err error) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, 0, err
	}
	for _, d := range devices {
		if d.Flags&net.FlagLoopback == 0 {
			links++
		}
		addrs, err := d.Addrs()
		if err != nil {
			continue // the interface disappeared meanwhile
		}
		for _, a := range addrs {
			ip, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			addr, ok := netip.AddrFromSlice(ip.IP)
			if !ok || addr.IsLinkLocalUnicast() {
				continue
			}
			ones, _ := ip.Mask.Size()
			all = append(all, linkAddress{d.Name, netip.PrefixFrom(addr.Unmap(), ones), d.Flags&net.FlagLoopback != 0,
				d.Flags&net.FlagUp != 0 && d.Flags&net.FlagRunning != 0})
		}
	}
	return all, links, nil
}

// primary returns the main address of a family: one on the interface of the default route, else the first that is not loopback, else the
// first.
func primary(all []linkAddress, v4 bool, device string) (best linkAddress, ok bool) {
	rank := -1
	for _, a := range all {
		if a.prefix.Addr().Is4() != v4 {
			continue
		}
		r := 0
		switch {
		case device != "" && a.device == device:
			r = 2
		case !a.loopback:
			r = 1
		}
		if r > rank {
			best, rank = a, r
		}
	}
	return best, rank >= 0
}

// hasIPv4 reports whether an interface other than loopback has an IPv4 address. It returns true if the addresses cannot be read.
func (h host) hasIPv4() bool {
	all, _, err := addresses()
	return err != nil || slices.ContainsFunc(all, func(a linkAddress) bool { return !a.loopback && a.prefix.Addr().Is4() })
}

// node returns the description of this machine.
func (h host) node(id string) (checkin.Node, error) {
	name, err := os.Hostname()
	if err != nil {
		return checkin.Node{}, err
	}
	n := checkin.Node{ID: id, Name: name, Hostname: name}
	all, _, err := addresses()
	if err != nil {
		return n, err
	}
	route4, ok4 := h.gateway4()
	route6, ok6 := h.gateway6()
	if ok4 {
		n.IPv4GatewayAddress = route4.via.String()
	}
	if ok6 {
		n.IPv6GatewayAddress = route6.via.String()
	}
	n.IPv4CIDRAddress, n.IPv6CIDRAddress, n.Addresses = reportedAddresses(all, route4.device, route6.device)
	return n, nil
}

// reportedAddresses returns the main addresses of a node as prefixes, empty for a missing family, and all reported addresses. The main
// addresses have type PRIMARY, the others ALIAS. device4 and device6 are the interfaces of the default routes, or empty.
func reportedAddresses(all []linkAddress, device4, device6 string) (cidr4, cidr6 string, shown []checkin.NodeAddress) {
	first4, has4 := primary(all, true, device4)
	first6, has6 := primary(all, false, device6)
	// Loopback counts only if the machine has no other address, and then only for IPv4.
	has6 = has6 && !first6.loopback
	has4 = has4 && (!first4.loopback || !has6)
	if has4 {
		cidr4 = first4.prefix.String()
	}
	if has6 {
		cidr6 = first6.prefix.String()
	}
	shown = []checkin.NodeAddress{}
	for _, a := range all {
		kind := checkin.Alias
		switch {
		case has4 && a == first4, has6 && a == first6:
			kind = checkin.Primary
		case a.loopback:
			continue
		}
		shown = append(shown, checkin.NodeAddress{Type: kind, IPAddress: a.prefix.Addr().String()})
	}
	return cidr4, cidr6, shown
}

// platform returns the hypervisor if the firmware names it, else the operating system.
func platform() string {
	vendor, err := os.ReadFile("/sys/class/dmi/id/sys_vendor")
	if err != nil {
		return runtime.GOOS
	}
	text := strings.ToLower(string(vendor))
	for _, known := range []string{"vmware", "qemu", "xen", "microsoft", "google", "amazon"} {
		if strings.Contains(text, known) {
			return known
		}
	}
	return runtime.GOOS
}
