package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// leaseTimes are the options that bound the time of a lease: dhcpd limits it by max-lease-time and min-lease-time, and a deployment
// refuses a default outside of them.
var leaseTimes = []string{defaultLease, maximumLease, minimumLease}

// limitLease adds the default lease time that is in effect in a block with lease times of its own, if it exceeds the limits.
func (at *dhcpdScope) limitLease() {
	if !slices.ContainsFunc(leaseTimes, func(name string) bool { return at.own.has(true, name) }) {
		return
	}
	at.standard, _ = at.own.seconds(defaultLease)
	standard, used := at.standardTime(), at.seconds(defaultLease, defaultOfDhcpd)
	limited := max(min(standard, at.seconds(maximumLease, standard)), at.seconds(minimumLease, 0))
	if limited != used {
		at.own.put(setting{"", true, defaultLease, limited})
	}
}

// seconds returns a lease time of a level, and whether it has one.
func (s *settings) seconds(name string) (int, bool) {
	n, err := strconv.Atoi(fmt.Sprint(s.get(true, name)))
	return n, err == nil
}

// seconds returns a lease time of the block, or of the closest enclosing one that has it, or else otherwise.
func (at *dhcpdScope) seconds(name string, otherwise int) int {
	for ; at != nil; at = at.above {
		if n, there := at.own.seconds(name); there {
			return n
		}
	}
	return otherwise
}

// standardTime returns the default lease time in the block as the file has it, before limits.
func (at *dhcpdScope) standardTime() int {
	for ; at != nil; at = at.above {
		if at.standard != 0 {
			return at.standard
		}
	}
	return defaultOfDhcpd
}

// limitedLevel is a host or a class with lease times, whose default depends on the networks of its clients.
type limitedLevel struct {
	row, in string
	own     *settings
	// standard is the default lease time of the level, before limits; 0 if it has none.
	standard int
	// address is the address of a host; the zero address for levels that apply to all networks. above encloses the level.
	address netip.Addr
	above   *dhcpdScope
}

// emitLimited adds the options of a host or a class. Those with lease times are added by finish, which knows all networks.
func (d *dhcpd) emitLimited(in string, own *settings, address netip.Addr, above *dhcpdScope) {
	own = &settings{slices.Clone(own.all)}
	one := limitedLevel{row: d.rowName, in: in, own: own, address: address, above: above}
	one.standard, _ = own.seconds(defaultLease)
	for at := above; at != nil && (at.kind == "group" || at.kind == "pool"); at = at.above { // limits of groups are not those of the host
		synthetic := func(s setting) bool { return s.service && s.name == defaultLease && s.row == "" }
		if slices.ContainsFunc(own.all, synthetic) {
			own.all = slices.DeleteFunc(own.all, synthetic)
			one.standard = 0
		}
		if one.standard == 0 && at.kind == "group" {
			one.standard = at.standard
		}
	}
	if one.standard == 0 && !own.has(true, maximumLease) && !own.has(true, minimumLease) {
		d.emit(in, own, address.Is6())
		return
	}
	d.limited = append(d.limited, one)
}

// blocksOf returns the blocks whose clients a level applies to.
func (d *dhcpd) blocksOf(one limitedLevel) (all []*dhcpdScope) {
	for _, at := range d.scopes {
		if !one.address.IsValid() || at.subnet.Contains(one.address) {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return []*dhcpdScope{one.above}
	}
	return all
}

// emitLevels adds the options of hosts and classes with lease times. A level without a default within its limits gets one.
func (d *dhcpd) emitLevels() {
	for _, one := range d.limited {
		d.rowName = one.row
		var values []int
		suits, highest := true, 0
		for _, at := range d.blocksOf(one) {
			standard, used := one.standard, one.standard
			if standard == 0 {
				standard, used = at.standardTime(), at.seconds(defaultLease, defaultOfDhcpd)
			}
			most, has := one.own.seconds(maximumLease)
			if !has {
				most = at.seconds(maximumLease, standard)
			}
			least, has := one.own.seconds(minimumLease)
			if !has {
				least = at.seconds(minimumLease, 0)
			}
			limited := max(min(standard, most), least)
			values, suits, highest = append(values, limited), suits && limited == used, max(highest, least)
		}
		value := max(slices.Min(values), highest)
		if slices.Min(values) != slices.Max(values) && !suits {
			d.leave("the default lease times of %s that differ by network: it is %d in all networks", one.in, value)
		}
		switch {
		case !suits:
			one.own.put(setting{"", true, defaultLease, value})
		case one.standard != 0:
			one.own.put(setting{one.row, true, defaultLease, one.standard})
		}
		d.emit(one.in, one.own, one.address.Is6())
	}
}
