package snmpwalk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"portolan/internal/base/space"
)

// The objects that are read: SNMPv2-MIB, IF-MIB (RFC 2863), IP-MIB (RFC 4293), BRIDGE-MIB (RFC 4188) and Q-BRIDGE-MIB (RFC 4363).
const (
	sysDescription = ".1.3.6.1.2.1.1.1.0"
	sysName        = ".1.3.6.1.2.1.1.5.0"
	sysLocation    = ".1.3.6.1.2.1.1.6.0"
	ipForwarding   = ".1.3.6.1.2.1.4.1.0"

	ifDescription = ".1.3.6.1.2.1.2.2.1.2"
	ifSpeed       = ".1.3.6.1.2.1.2.2.1.5"
	ifHardware    = ".1.3.6.1.2.1.2.2.1.6"
	ifState       = ".1.3.6.1.2.1.2.2.1.8"
	ifName        = ".1.3.6.1.2.1.31.1.1.1.1"
	ifHighSpeed   = ".1.3.6.1.2.1.31.1.1.1.15"
	ifAlias       = ".1.3.6.1.2.1.31.1.1.1.18"

	mediaHardware    = ".1.3.6.1.2.1.4.22.1.2"
	mediaType        = ".1.3.6.1.2.1.4.22.1.4"
	physicalHardware = ".1.3.6.1.2.1.4.35.1.4"
	physicalType     = ".1.3.6.1.2.1.4.35.1.6"

	bridgePort    = ".1.3.6.1.2.1.17.1.4.1.2"
	bridgeTable   = ".1.3.6.1.2.1.17.4.3.1.2"
	bridgeStatus  = ".1.3.6.1.2.1.17.4.3.1.3"
	vlanFilter    = ".1.3.6.1.2.1.17.7.1.4.2.1.3"
	vlanTable     = ".1.3.6.1.2.1.17.7.1.2.2.1.2"
	vlanStatus    = ".1.3.6.1.2.1.17.7.1.2.2.1.3"
	invalidType   = 2
	learnedStatus = 3
	stateUp       = 1
	isForwarding  = 1
)

// maxText is the maximum length of a text of a device, in characters.
const maxText = 255

// Device is the data that was read from a device.
type Device struct {
	Name, Description, Location string
	// IsRouter reports that the device forwards packets.
	IsRouter bool
	// Interfaces are the interfaces by their number.
	Interfaces map[int]Interface
	// Neighbours are the rows of the tables of ARP and of IPv6 neighbours.
	Neighbours []Neighbour
	// Stations are the learned addresses of the forwarding table.
	Stations []Station
	// Devices are the management addresses of the devices at the ports, as LLDP and CDP report them.
	Devices []netip.Addr
	// Problems are the tables that were read in part, with the reason.
	Problems []string
}

// Interface is an interface of a device.
type Interface struct {
	Name, Description, Alias, MAC string
	// Speed is the speed in bits per second; 0 if the device does not state it.
	Speed int64
	IsUp  bool
}

// Neighbour is an address with the hardware address of its host.
type Neighbour struct {
	Address   netip.Addr
	MAC       string
	Interface int
}

// Station is a hardware address that a switch has learned.
type Station struct {
	MAC       string
	Interface int
	// VLAN is the number of the VLAN; 0 if the switch does not state it.
	VLAN int
}

// Read reads a device. It returns an error if the device does not answer, and a device with Problems if some tables could not be read.
func Read(ctx context.Context, t Target) (*Device, error) {
	s, err := connect(ctx, &t)
	if err != nil {
		return nil, err
	}
	defer s.close()
	d := &Device{Interfaces: map[int]Interface{}}
	for oid, to := range map[string]*string{sysName: &d.Name, sysDescription: &d.Description, sysLocation: &d.Location} {
		value, err := s.get(oid)
		if err != nil {
			return nil, err
		}
		*to = textOf(value)
	}
	if value, err := s.get(ipForwarding); err == nil {
		d.IsRouter = numberOf(value) == isForwarding
	}
	for _, part := range []struct {
		name string
		read func(*session) error
	}{{"interfaces", d.readInterfaces}, {"neighbours", d.readNeighbours}, {"forwarding table", d.readStations},
		{"neighbouring devices", func(s *session) error { return d.readDevices(s, &t) }},
		{"forwarding tables of the VLANs", func(s *session) error { return d.readVLANs(s, &t) }}} {
		if err := part.read(s); err != nil {
			if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, ctx.Err()
			}
			d.Problems = append(d.Problems, fmt.Sprintf("%s: %v", part.name, err))
		}
	}
	return d, nil
}

// column reads a column whose index is one number.
func column(s *session, oid string, set func(index int, value any)) error {
	return s.walk(oid, func(index []uint32, value any) {
		if len(index) == 1 {
			set(int(index[0]), value)
		}
	})
}

// readInterfaces reads the interfaces.
func (d *Device) readInterfaces(s *session) error {
	var errs []error
	for oid, set := range map[string]func(i *Interface, value any){
		ifDescription: func(i *Interface, value any) { i.Description = textOf(value) },
		ifHardware:    func(i *Interface, value any) { i.MAC = hardwareOf(value) },
		ifState:       func(i *Interface, value any) { i.IsUp = numberOf(value) == stateUp },
		ifName:        func(i *Interface, value any) { i.Name = textOf(value) },
		ifAlias:       func(i *Interface, value any) { i.Alias = textOf(value) },
		ifSpeed: func(i *Interface, value any) {
			if i.Speed == 0 {
				i.Speed = numberOf(value)
			}
		},
		ifHighSpeed: func(i *Interface, value any) {
			if n := numberOf(value); n > 0 {
				i.Speed = n * 1_000_000
			}
		},
	} {
		errs = append(errs, column(s, oid, func(index int, value any) {
			one := d.Interfaces[index]
			set(&one, value)
			d.Interfaces[index] = one
		}))
	}
	return errors.Join(errs...)
}

// PortName returns the name of an interface: its name, or its description.
func (d *Device) PortName(index int) string {
	i := d.Interfaces[index]
	switch {
	case i.Name != "":
		return i.Name
	case i.Description != "" || index == 0:
		return i.Description
	}
	return fmt.Sprintf("interface %d", index)
}

// readNeighbours reads the neighbours of both tables. An address in both has the values of the newer table.
func (d *Device) readNeighbours(s *session) error {
	all := map[netip.Addr]Neighbour{}
	var errs []error
	for _, table := range []struct {
		hardware, kind string
		address        func(index []uint32) (netip.Addr, bool)
	}{{mediaHardware, mediaType, mediaAddress}, {physicalHardware, physicalType, physicalAddress}} {
		invalid := map[netip.Addr]bool{}
		errs = append(errs, s.walk(table.kind, func(index []uint32, value any) {
			if a, ok := table.address(index); ok && numberOf(value) == invalidType {
				invalid[a] = true
			}
		}), s.walk(table.hardware, func(index []uint32, value any) {
			a, ok := table.address(index)
			if mac := hardwareOf(value); ok && mac != "" && !invalid[a] && isHost(a) {
				all[a] = Neighbour{Address: a, MAC: mac, Interface: int(index[0])}
			}
		}))
	}
	d.Neighbours = slices.SortedFunc(maps.Values(all), func(a, b Neighbour) int { return a.Address.Compare(b.Address) })
	return errors.Join(errs...)
}

// isHost reports whether an address can be that of a host in a managed network.
func isHost(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast() && !a.IsLoopback() &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// mediaAddress returns the address of an index of ipNetToMediaTable: the interface and an IPv4 address.
func mediaAddress(index []uint32) (netip.Addr, bool) {
	if len(index) != 5 {
		return netip.Addr{}, false
	}
	return addressOf(index[1:])
}

// physicalAddress returns the address of an index of ipNetToPhysicalTable: the interface, the type and length of the address, and the
// address. Types with a zone (3 and 4) end with its 4 octets.
func physicalAddress(index []uint32) (netip.Addr, bool) {
	const zone = 4
	if len(index) < 3 || int(index[2]) != len(index)-3 {
		return netip.Addr{}, false
	}
	octets := index[3:]
	switch kind := index[1]; {
	case kind == 1 || kind == 2:
	case (kind == 3 || kind == 4) && len(octets) > zone:
		octets = octets[:len(octets)-zone]
	default:
		return netip.Addr{}, false
	}
	return addressOf(octets)
}

// addressOf returns the address of 4 or 16 octets.
func addressOf(parts []uint32) (netip.Addr, bool) {
	octets, ok := octetsOf(parts)
	if !ok {
		return netip.Addr{}, false
	}
	a, ok := netip.AddrFromSlice(octets)
	return a.Unmap(), ok
}

// octetsOf converts parts of an index to octets.
func octetsOf(parts []uint32) (octets []byte, ok bool) {
	for _, p := range parts {
		if p > 255 {
			return nil, false
		}
		octets = append(octets, byte(p))
	}
	return octets, true
}

// readStations reads the forwarding table by VLAN, or without VLANs if the switch has no such table.
func (d *Device) readStations(s *session) error {
	ports, vlans := map[int]int{}, map[uint32]int{}
	errs := []error{column(s, bridgePort, func(port int, value any) { ports[port] = int(numberOf(value)) }),
		s.walk(vlanFilter, func(index []uint32, value any) {
			if len(index) == 2 && index[1] >= 1 && index[1] <= 4094 {
				vlans[uint32(numberOf(value))] = int(index[1]) //nolint:gosec // a wrong number matches no filter
			}
		})}
	err := d.readForwarding(s, vlanTable, vlanStatus, func(index []uint32) (vlan int, mac []uint32) {
		if len(index) != 7 {
			return 0, nil
		}
		if vlan = vlans[index[0]]; vlan == 0 && len(vlans) == 0 && index[0] <= 4094 {
			vlan = int(index[0]) // the number of the filtering database is that of the VLAN, unless the switch states otherwise
		}
		return vlan, index[1:]
	}, ports)
	errs = append(errs, err)
	if len(d.Stations) == 0 {
		errs = append(errs, d.readForwarding(s, bridgeTable, bridgeStatus, func(index []uint32) (int, []uint32) { return 0, index }, ports))
	}
	return errors.Join(errs...)
}

// readForwarding reads a forwarding table. place returns the VLAN and the hardware address of an index.
func (d *Device) readForwarding(s *session, table, status string, place func(index []uint32) (int, []uint32), ports map[int]int) error {
	foreign := map[string]bool{}
	key := func(index []uint32) string { return fmt.Sprint(index) }
	err := s.walk(status, func(index []uint32, value any) {
		if numberOf(value) != learnedStatus {
			foreign[key(index)] = true
		}
	})
	return errors.Join(err, s.walk(table, func(index []uint32, value any) {
		vlan, parts := place(index)
		octets, ok := octetsOf(parts)
		port := int(numberOf(value))
		if mac := hardwareOf(octets); ok && mac != "" && port != 0 && !foreign[key(index)] {
			d.Stations = append(d.Stations, Station{MAC: mac, Interface: ports[port], VLAN: vlan})
		}
	}))
}

// textOf returns a text without control characters, limited to maxText.
func textOf(value any) string {
	octets, ok := value.([]byte)
	if !ok {
		return ""
	}
	text := strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t':
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(octets), "")))
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText])
	}
	return text
}

// hardwareOf returns a hardware address of 6 octets in the form 00:00:5E:00:53:01; empty for other values, for zeros and for groups.
func hardwareOf(value any) string {
	const octetCount = 6
	octets, ok := value.([]byte)
	if !ok || len(octets) != octetCount || octets[0]&1 != 0 || !slices.ContainsFunc(octets, func(b byte) bool { return b != 0 }) {
		return ""
	}
	return space.FormatHardware(octets)
}

// numberOf returns a number; 0 for other values and for numbers that do not fit.
func numberOf(value any) int64 {
	switch n := value.(type) {
	case int:
		return int64(n)
	case uint:
		return int64(min(n, 1<<62))
	case uint32:
		return int64(n)
	case uint64:
		return int64(min(n, 1<<62))
	}
	return 0
}
