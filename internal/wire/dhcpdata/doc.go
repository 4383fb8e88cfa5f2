// Package dhcpdata defines the content of a DHCP server: networks, pools, reservations, classes, MAC pools, options and pairs. A manager
// compiles it, and a service point serves it. The package also contains the decision on a message of a client: the service point, the
// validation of deployments and the explanation at the manager use the same function. All functions are pure: they use only their
// arguments.
//
// Content consists of units, such as a network with its pools and reservations. A unit is a set of records. Its hash does not depend on
// their order, so a change of one reservation costs one record.
package dhcpdata

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the content kind of the stream (content.Envelope).
const Kind = "dhcp"

// ServerUnit is the id of the unit with the settings that apply to all networks.
const ServerUnit = "server"

// Prefixes of the ids of units.
const (
	networkPrefix = "network/"
	classPrefix   = "class/"
	macPoolPrefix = "macpool/"
)

// NetworkUnit returns the id of the unit of a network. The number is the id of the network's resource, so it never changes.
func NetworkUnit(id int64) string { return networkPrefix + strconv.FormatInt(id, 10) }

// ClassUnit returns the id of the unit of a client class.
func ClassUnit(id int64) string { return classPrefix + strconv.FormatInt(id, 10) }

// MACPoolUnit returns the id of the unit of a MAC pool. The number 0 is the unit of the MAC addresses in no pool.
func MACPoolUnit(id int64) string { return macPoolPrefix + strconv.FormatInt(id, 10) }

// IsMACPoolUnit reports whether a unit is that of a MAC pool.
func IsMACPoolUnit(unit string) bool { return strings.HasPrefix(unit, macPoolPrefix) }

// parseUnit returns the prefix and the number of a unit's id.
func parseUnit(id string) (prefix string, number int64, err error) {
	if id == ServerUnit {
		return ServerUnit, 0, nil
	}
	for _, prefix := range []string{networkPrefix, classPrefix, macPoolPrefix} {
		text, ok := strings.CutPrefix(id, prefix)
		if !ok {
			continue
		}
		number, err = strconv.ParseInt(text, 10, 64)
		if err == nil && number >= 0 && strconv.FormatInt(number, 10) == text {
			return prefix, number, nil
		}
	}
	return "", 0, fmt.Errorf("%q is not the id of a unit", id)
}
