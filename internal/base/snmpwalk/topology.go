package snmpwalk

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// The objects of neighbouring devices and of VLANs: LLDP-MIB (IEEE 802.1AB), CISCO-CDP-MIB and CISCO-VTP-MIB.
const (
	lldpManagement = ".1.0.8802.1.1.2.1.4.2.1.3"
	cdpAddressType = ".1.3.6.1.4.1.9.9.23.1.2.1.1.3"
	cdpAddress     = ".1.3.6.1.4.1.9.9.23.1.2.1.1.4"
	vtpVLANState   = ".1.3.6.1.4.1.9.9.46.1.3.1.1.2"
)

// Values of these objects: an operational VLAN, an address of IP, and the VLANs of Token Ring and FDDI, which have no forwarding table.
const (
	operationalVLAN = 1
	cdpTypeIP       = 1
	firstRingVLAN   = 1002
	lastRingVLAN    = 1005
	lastVLAN        = 4094
)

// maxDevices limits the neighbouring devices of a device, and maxFailedVLANs the forwarding tables in a row that do not answer.
const (
	maxDevices     = 4096
	maxFailedVLANs = 3
)

// readDevices reads the management addresses of the neighbouring devices.
func (d *Device) readDevices(s *session, t *Target) error {
	if !t.WithDevices {
		return nil
	}
	add := func(a netip.Addr, ok bool) {
		if ok && a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && len(d.Devices) < maxDevices && !slices.Contains(d.Devices, a) {
			d.Devices = append(d.Devices, a)
		}
	}
	isIP := map[string]bool{}
	err := errors.Join(s.walk(lldpManagement, func(index []uint32, _ any) {
		add(lldpAddress(index))
	}), s.walk(cdpAddressType, func(index []uint32, value any) {
		isIP[fmt.Sprint(index)] = numberOf(value) == cdpTypeIP
	}), s.walk(cdpAddress, func(index []uint32, value any) {
		if octets, ok := value.([]byte); ok && isIP[fmt.Sprint(index)] {
			a, ok := netip.AddrFromSlice(octets)
			add(a, ok)
		}
	}))
	slices.SortFunc(d.Devices, netip.Addr.Compare)
	return err
}

// lldpAddress returns the address of an index of lldpRemManAddrTable: the time, the local port, the number of the neighbour, the type and
// the length of the address, and the address.
func lldpAddress(index []uint32) (netip.Addr, bool) {
	const head = 5
	if len(index) < head || int(index[head-1]) != len(index)-head {
		return netip.Addr{}, false
	}
	return addressOf(index[head:])
}

// readVLANs reads the forwarding table of each VLAN of the device. Devices without a list of VLANs have a single table.
func (d *Device) readVLANs(s *session, t *Target) error {
	if !t.ByVLAN {
		return nil
	}
	var vlans []int
	if err := s.walk(vtpVLANState, func(index []uint32, value any) {
		if len(index) != 2 || numberOf(value) != operationalVLAN {
			return
		}
		if vlan := int(index[1]); vlan >= 1 && vlan <= lastVLAN && (vlan < firstRingVLAN || vlan > lastRingVLAN) {
			vlans = append(vlans, vlan)
		}
	}); err != nil {
		return err
	}
	failed := 0
	var failure error
	for _, vlan := range vlans {
		err := d.readVLAN(s, t, vlan)
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if err == nil {
			failed = 0
			continue
		}
		failure = cmp.Or(failure, fmt.Errorf("VLAN %d: %w", vlan, err))
		if failed++; failed == maxFailedVLANs {
			return fmt.Errorf("%w; the other VLANs were not read", failure)
		}
	}
	return failure
}

// vlanTarget returns the access data of the forwarding table of a VLAN: a context of version 3, or a community of the other versions.
func (t *Target) vlanTarget(credential string, vlan int) (one Target, own string) {
	one = *t
	if t.Version == V3 {
		one.Context = "vlan-" + strconv.Itoa(vlan)
		return one, credential
	}
	return one, credential + "@" + strconv.Itoa(vlan)
}

// readVLAN reads the forwarding table of one VLAN. It replaces rows of the same hardware addresses without a VLAN.
func (d *Device) readVLAN(s *session, t *Target, vlan int) error {
	one, credential := t.vlanTarget(s.credential, vlan)
	own, err := one.open(s.ctx, credential)
	if err != nil {
		return err
	}
	defer own.close()
	ports := map[int]int{}
	if err := column(own, bridgePort, func(port int, value any) { ports[port] = int(numberOf(value)) }); err != nil {
		return err
	}
	before := len(d.Stations)
	if err := d.readForwarding(own, bridgeTable, bridgeStatus, func(index []uint32) (int, []uint32) { return vlan, index },
		ports); err != nil {
		return err
	}
	found := map[string]bool{}
	for _, x := range d.Stations[before:] {
		found[x.MAC] = true
	}
	known := slices.DeleteFunc(slices.Clone(d.Stations[:before]), func(x Station) bool {
		return found[x.MAC] && (x.VLAN == 0 || x.VLAN == vlan)
	})
	d.Stations = append(known, d.Stations[before:]...)
	return nil
}
