package convert

import (
	"fmt"
	"strconv"
)

// limitLease adds the default lease time that is in effect in a block with lease times of its own, if it exceeds the limits: dhcpd limits
// the time of a lease by max-lease-time and min-lease-time, and a deployment refuses a default outside of them.
func (at *dhcpdScope) limitLease() {
	if !at.own.has(true, defaultLease) && !at.own.has(true, maximumLease) && !at.own.has(true, minimumLease) {
		return
	}
	standard, there := at.seconds(defaultLease)
	if !there {
		standard = defaultOfDhcpd
	}
	limited := standard
	if most, there := at.seconds(maximumLease); there {
		limited = min(limited, most)
	}
	if least, there := at.seconds(minimumLease); there {
		limited = max(limited, least)
	}
	if limited != standard {
		at.own.put(setting{"", true, defaultLease, limited})
	}
}

// seconds returns a lease time of the block, or of the closest enclosing one that has it.
func (at *dhcpdScope) seconds(name string) (int, bool) {
	for ; at != nil; at = at.above {
		if n, err := strconv.Atoi(fmt.Sprint(at.own.get(true, name))); err == nil {
			return n, true
		}
	}
	return 0, false
}
