package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/naming"
	"portolan/internal/base/snmpwalk"
	"portolan/internal/base/space"
	"portolan/internal/manager/outbound"
	"portolan/internal/manager/snmp"
)

// Limits of a scan: the devices that are read and the names that are looked up at the same time, and the time for each.
const (
	concurrentDevices = 8
	concurrentNames   = 16
	deviceTime        = 5 * time.Minute
	nameTime          = 3 * time.Second
	snmpPort          = 161
)

// The methods that see an address.
const (
	seenByPing      = "PING"
	seenByNeighbour = "NEIGHBOR"
)

// pacer limits the rate of packets: it allows one packet in each interval.
type pacer struct {
	interval time.Duration
	mu       sync.Mutex
	next     time.Time
}

// newPacer returns a pacer for a number of packets in a second.
func newPacer(perSecond int64) *pacer {
	return &pacer{interval: time.Second / time.Duration(max(1, perSecond))}
}

// wait waits until the next packet may be sent.
func (p *pacer) wait(ctx context.Context) error {
	p.mu.Lock()
	at := time.Now()
	if p.next.After(at) {
		at = p.next
	}
	p.next = at.Add(p.interval)
	p.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// foundDevice is a device that answered.
type foundDevice struct {
	address netip.Addr
	*snmpwalk.Device
}

// name returns the name of the device; its address if it has none.
func (d *foundDevice) name() string {
	if d.Name != "" {
		return d.Name
	}
	return d.address.String()
}

// targetOf returns access data without an address. secrets are the passphrases by their paths.
func targetOf(x *snmp.Settings, secrets map[string]string) *snmpwalk.Target {
	t := &snmpwalk.Target{Version: x.Version, Communities: x.Communities, Usernames: x.Usernames, Context: x.Context,
		IsAuthenticated: x.SecurityLevel == "AUTH_NOPRIV" || x.SecurityLevel == "AUTH_PRIV", IsEncrypted: x.SecurityLevel == "AUTH_PRIV",
		AuthenticationProtocol: x.AuthenticationProtocol, AuthenticationPassphrase: secrets["snmp.authenticationPassphrase"],
		PrivacyProtocol: x.PrivacyProtocol, PrivacyPassphrase: secrets["snmp.privacyPassphrase"]}
	port := uint16(snmpPort)
	if x.Port != nil {
		port = uint16(*x.Port) //nolint:gosec // at most 65535
	}
	t.Address = netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	return t
}

// readDevices reads the devices of the policy, and the neighbouring devices in its boundaries. A listed device that does not answer is a
// message; the run is then partial. It returns an error if no device answers.
func (s *Sweeper) readDevices(ctx context.Context, w *sweep) error {
	w.target.WithDevices, w.target.ByVLAN = len(w.common.NeighborBoundaries) > 0, w.common.VLANTablesEnabled
	var round []netip.Addr
	for _, text := range w.common.SeedRouterAddresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		round = append(round, a.Unmap())
	}
	f := follower{known: map[netip.Addr]bool{}, remaining: int(w.common.NeighborLimit)}
	var err error
	if f.bounds, err = parseRanges(w.common.NeighborBoundaries); err != nil {
		return err
	}
	for isListed := true; len(round) > 0; isListed = false {
		found := w.readRound(ctx, round, isListed)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, d := range found {
			if isListed || !w.hasDevice(d) {
				w.devices = append(w.devices, d)
			}
		}
		round = f.next(round, found)
	}
	if f.isLimited {
		w.messages = append(w.messages, fmt.Sprintf("more than %d neighbouring devices: the others were not read", w.common.NeighborLimit))
	}
	slices.SortFunc(w.devices, func(a, b *foundDevice) int { return a.address.Compare(b.address) })
	slices.Sort(w.messages)
	if len(w.devices) == 0 {
		return fmt.Errorf("no device responded: %s", strings.Join(w.messages[:min(len(w.messages), 3)], "; "))
	}
	w.addNeighbours()
	return nil
}

// readRound reads devices and returns those that answered, by address. A neighbouring device that does not answer is a message only: many
// neighbours, such as telephones, have no SNMP.
func (w *sweep) readRound(ctx context.Context, round []netip.Addr, isListed bool) (found []*foundDevice) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, concurrentDevices)
	for _, a := range round {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			d, err := readDevice(ctx, *w.target, a, w.pace)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && isListed:
				w.fail(fmt.Sprintf("%s: %v", a, err))
			case err != nil:
				w.addMessage(fmt.Sprintf("%s, a neighbouring device: %v", a, err))
			default:
				for _, p := range d.Problems {
					w.fail(fmt.Sprintf("%s: %s", a, p))
				}
				found = append(found, &foundDevice{a, d})
			}
		})
	}
	wg.Wait()
	slices.SortFunc(found, func(a, b *foundDevice) int { return a.address.Compare(b.address) })
	return found
}

// hasDevice reports whether a device was read at another of its addresses.
func (w *sweep) hasDevice(d *foundDevice) bool {
	return d.Name != "" && slices.ContainsFunc(w.devices, func(x *foundDevice) bool {
		return x.Name == d.Name && x.Description == d.Description && x.Location == d.Location
	})
}

// follower selects the neighbouring devices to read: those in the boundaries, each once, up to a limit.
type follower struct {
	bounds    []space.Range
	known     map[netip.Addr]bool
	remaining int
	// isLimited reports that neighbours were left out because of the limit.
	isLimited bool
}

// next returns the neighbours of the devices of a round that were not read yet.
func (f *follower) next(round []netip.Addr, found []*foundDevice) (neighbours []netip.Addr) {
	for _, a := range round {
		f.known[a] = true
	}
	for _, d := range found {
		for _, a := range d.Devices {
			if f.known[a] || !contains(f.bounds, a) {
				continue
			}
			if f.remaining == 0 {
				f.isLimited = true
				continue
			}
			f.remaining--
			f.known[a] = true
			neighbours = append(neighbours, a)
		}
	}
	return neighbours
}

// fail records a problem of the scan. The run is partial: addresses that it did not see may exist.
func (w *sweep) fail(message string) {
	w.isPartial = true
	w.addMessage(message)
}

// addMessage adds a message, up to maxMessages.
func (w *sweep) addMessage(message string) {
	if len(w.messages) < maxMessages {
		w.messages = append(w.messages, message)
	}
}

// readDevice reads one device.
func readDevice(ctx context.Context, t snmpwalk.Target, a netip.Addr, pace *pacer) (*snmpwalk.Device, error) {
	if err := outbound.Check(a); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, deviceTime)
	defer cancel()
	t.Address, t.Pace = netip.AddrPortFrom(a, t.Address.Port()), pace.wait
	return snmpwalk.Read(ctx, t)
}

// addNeighbours adds the neighbours of the devices to the seen addresses, with the switch ports of their hardware addresses.
func (w *sweep) addNeighbours() {
	ports := w.switchPorts()
	for _, d := range w.devices {
		for _, n := range d.Neighbours {
			if !w.covers(n.Address) {
				continue
			}
			x := w.recordMethod(n.Address, seenByNeighbour)
			if x.MACAddress != "" && x.MACAddress != n.MAC {
				w.messages = append(w.messages, fmt.Sprintf("%s has %s on %s and %s on %s", n.Address, x.MACAddress, x.Router, n.MAC, d.name()))
				continue
			}
			x.MACAddress, x.Router, x.RouterPort = n.MAC, d.name(), d.PortName(n.Interface)
			if p, ok := ports[n.MAC]; ok {
				x.Switch, x.SwitchPort = p.device.name(), p.device.PortName(p.port)
				if p.vlan != 0 {
					vlan := int64(p.vlan)
					x.VLAN = &vlan
				}
			}
		}
	}
}

// switchPort is a port that has learned a hardware address.
type switchPort struct {
	device     *foundDevice
	port, vlan int
}

// switchPorts returns the port of each hardware address. Ports between switches learn it too: the port with the fewest addresses is that of
// the host.
func (w *sweep) switchPorts() map[string]switchPort {
	type place struct {
		device *foundDevice
		port   int
	}
	learned := map[place]int{}
	for _, d := range w.devices {
		for _, s := range d.Stations {
			learned[place{d, s.Interface}]++
		}
	}
	all := map[string]switchPort{}
	for _, d := range w.devices {
		for _, s := range d.Stations {
			was, there := all[s.MAC]
			if !there || learned[place{d, s.Interface}] < learned[place{was.device, was.port}] {
				all[s.MAC] = switchPort{d, s.Interface, s.VLAN}
			}
		}
	}
	return all
}

// lookUpNames looks up the names of the seen addresses, if the policy has DNS servers. A server that does not answer is a message.
func (s *Sweeper) lookUpNames(ctx context.Context, w *sweep) error {
	if w.common.SkipFQDNEnabled || len(w.common.DNSServers) == 0 {
		return nil
	}
	dialer := outbound.Dialer()
	var servers []string
	for _, text := range w.common.DNSServers {
		at, err := serverAddress(text)
		if err != nil {
			return err
		}
		servers = append(servers, at.String())
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	failures, slots := 0, make(chan struct{}, concurrentNames)
	for a, x := range w.seen {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var failure error
			for _, server := range servers {
				if failure = w.pace.wait(ctx); failure != nil {
					return
				}
				var name string
				if name, failure = lookUpName(ctx, dialer, server, a); failure == nil {
					x.HostName = name
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if failures++; failures == 1 {
				w.messages = append(w.messages, fmt.Sprintf("the name of %s could not be looked up: %v", a, failure))
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// lookUpName returns the name of the PTR record of an address; empty if there is none, or one that is no host name.
func lookUpName(ctx context.Context, dialer *net.Dialer, server string, a netip.Addr) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, server)
	}}
	names, err := resolver.LookupAddr(ctx, a.String())
	var answer *net.DNSError
	if err != nil {
		if errors.As(err, &answer) && answer.IsNotFound {
			return "", nil
		}
		return "", err
	}
	slices.Sort(names)
	for _, name := range names {
		if name = naming.Clean(name); naming.Check(name, naming.HostName) == nil {
			return name, nil
		}
	}
	return "", nil
}
