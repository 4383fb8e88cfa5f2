package fleet

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Limits of anycast: neighbors of a service point, addresses of an application, and the length of a password in bytes (RFC 2385, section
// 4.5). The intervals are in seconds.
const (
	maxNeighbors       = 16
	maxAnycast         = 16
	maxPassword        = 80
	defaultKeepAlive   = 3
	defaultHold        = 9
	minHold            = 3 // RFC 4271, section 4.2
	maxHold            = 65535
	maxHops            = 255
	fieldAnycast       = "anycast"
	fieldAnycastOfApps = "anycastAddresses"
)

// checkAnycast returns an error if anycast settings cannot work. Otherwise it completes them with default intervals, and with the passwords
// from before for neighbors that have none.
func checkAnycast(a, before *checkin.AnycastService) error {
	bad := func(field, format string, args ...any) error {
		return problem.Invalid(fieldAnycast+"."+field, format, args...)
	}
	switch protocol := strings.ToUpper(a.Protocol); {
	case protocol == "OSPF", protocol == "RIP":
		return bad("protocol", "%s is NOT_CONFIGURED: %s", protocol, checkin.NoOSPF)
	case protocol != checkin.BGP:
		return bad("protocol", "%q is not %s", a.Protocol, checkin.BGP)
	case a.AutonomousSystemNumber == 0:
		return bad("autonomousSystemNumber", "must be 1 to 4294967295")
	}
	a.Protocol = checkin.BGP
	if id, err := netip.ParseAddr(a.RouterID); a.RouterID != "" && (err != nil || !id.Is4() || id.IsUnspecified()) {
		return bad("routerId", "must be an IPv4 address, not %q", a.RouterID)
	}
	if a.HoldTimeInterval == 0 {
		a.HoldTimeInterval = max(defaultHold, min(3*a.KeepAliveInterval, maxHold))
	}
	if a.KeepAliveInterval == 0 {
		a.KeepAliveInterval = min(defaultKeepAlive, a.HoldTimeInterval/3)
	}
	switch {
	case a.HoldTimeInterval < minHold || a.HoldTimeInterval > maxHold:
		return bad("holdTimeInterval", "must be %d to %d seconds", minHold, maxHold)
	case a.KeepAliveInterval < 1 || a.KeepAliveInterval >= a.HoldTimeInterval:
		return bad("keepAliveInterval", "must be 1 second or more, and less than holdTimeInterval")
	case len(a.Neighbors) == 0 || len(a.Neighbors) > maxNeighbors:
		return bad("neighbors", "must have 1 to %d entries", maxNeighbors)
	}
	seen := map[netip.Addr]bool{}
	for i := range a.Neighbors {
		n := &a.Neighbors[i]
		at := fmt.Sprintf("neighbors[%d].", i)
		addr, err := netip.ParseAddr(n.Address)
		switch {
		case err != nil || addr.Zone() != "" || addr.IsMulticast() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.Is4In6():
			return bad(at+"address", "%q is not the address of a router", n.Address)
		case seen[addr]:
			return bad(at+"address", "%s is listed twice", addr)
		case n.AutonomousSystemNumber == 0:
			return bad(at+"autonomousSystemNumber", "must be 1 to 4294967295")
		case n.Port < 0 || n.Port > 65535:
			return bad(at+"port", "must be 1 to 65535")
		case n.HopLimit < 0 || n.HopLimit > maxHops:
			return bad(at+"hopLimit", "must be 1 to %d", maxHops)
		case n.HopLimit > 1 && n.AutonomousSystemNumber == a.AutonomousSystemNumber:
			return bad(at+"hopLimit", "is only supported for neighbors in another autonomous system")
		case len(n.Password()) > maxPassword || strings.ContainsRune(n.Password(), 0):
			return bad(at+"authenticationPassword", "has more than %d bytes, or a NUL", maxPassword)
		}
		seen[addr], n.Address, n.AuthenticationPasswordIsSet = true, addr.String(), false
		if n.AuthenticationPassword == nil && before != nil {
			if was := slices.IndexFunc(before.Neighbors, func(b checkin.BGPNeighbor) bool { return b.Address == n.Address }); was >= 0 {
				n.AuthenticationPassword = before.Neighbors[was].AuthenticationPassword
			}
		}
	}
	return nil
}

// shownAnycast returns a copy of the settings without the passwords.
func shownAnycast(a *checkin.AnycastService) *checkin.AnycastService {
	if a == nil {
		return nil
	}
	shown := *a
	shown.Neighbors = slices.Clone(a.Neighbors)
	for i := range shown.Neighbors {
		n := &shown.Neighbors[i]
		n.AuthenticationPasswordIsSet, n.AuthenticationPassword = n.Password() != "", nil
	}
	return &shown
}

// readAnycast decodes the settings from the database; nil if there are none.
func readAnycast(text string) (a *checkin.AnycastService, err error) {
	if text == "" {
		return nil, nil
	}
	return a, json.Unmarshal([]byte(text), &a)
}

func anycastOf(tx *store.Tx, servicePoint string) (*checkin.AnycastService, error) {
	var text string
	err := tx.QueryRow("SELECT anycast FROM service_point WHERE id = ?", servicePoint).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = UnknownProblem(servicePoint)
	}
	if err != nil {
		return nil, err
	}
	return readAnycast(text)
}

// AnycastChange replaces the anycast settings of a service point; nil Settings delete them.
type AnycastChange struct{ Settings *checkin.AnycastService }

// configureAnycast changes the anycast settings of a service point. It returns an error if an anycast address of an application would no
// longer be advertised.
func configureAnycast(tx *store.Tx, id string, c AnycastChange) error {
	before, err := anycastOf(tx, id)
	if err != nil {
		return err
	}
	text := ""
	if c.Settings != nil {
		settings := *c.Settings // a copy, as the transaction may be repeated
		settings.Neighbors = slices.Clone(settings.Neighbors)
		if err := checkAnycast(&settings, before); err != nil {
			return err
		}
		kept, err := json.Marshal(settings)
		if err != nil {
			return err
		}
		text, c.Settings = string(kept), &settings
	}
	all, err := applicationsOf(tx, id)
	if err != nil {
		return err
	}
	for _, d := range all {
		for _, address := range d.anycast {
			if d.Status != checkin.Deleted && isNeighbor(c.Settings, address) {
				return problem.Invalid(fieldAnycast+".neighbors", "%s is an anycast address of application %s (%s)", address, d.Name, d.ID)
			}
			if d.Status != checkin.Deleted && !isAdvertised(c.Settings, address) {
				return problem.Conflict("AnycastInUse", fieldAnycast+": application %s (%s) uses %s, which would no longer be advertised to a neighbor",
					d.Name, d.ID, address)
			}
		}
	}
	return tx.Write("UPDATE service_point SET anycast = ? WHERE id = ?", text, id)
}

// isAdvertised reports whether an address is advertised to a neighbor. A session over one address family advertises only addresses of that
// family.
func isAdvertised(a *checkin.AnycastService, address string) bool {
	addr, err := netip.ParseAddr(address)
	return err == nil && a != nil && slices.ContainsFunc(a.Neighbors, func(n checkin.BGPNeighbor) bool {
		neighbor, err := netip.ParseAddr(n.Address)
		return err == nil && neighbor.Is4() == addr.Is4()
	})
}

// isNeighbor reports whether an address is the address of a neighbor.
func isNeighbor(a *checkin.AnycastService, address string) bool {
	return a != nil && slices.ContainsFunc(a.Neighbors, func(n checkin.BGPNeighbor) bool { return n.Address == address })
}

// isNodeAddress reports whether an address is an own address of a node, as opposed to an anycast address.
func isNodeAddress(nodes []checkin.Node, address string) bool {
	return slices.ContainsFunc(nodes, func(n checkin.Node) bool {
		return slices.ContainsFunc(n.Addresses, func(a checkin.NodeAddress) bool { return a.Type != checkin.Anycast && a.IPAddress == address })
	})
}

// listensAt reports whether an application listens at an address, by the addresses and ports that it claims.
func listensAt(claims []string, address string) bool {
	addr, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(claims, func(text string) bool {
		at, err := netip.ParseAddrPort(text)
		return err == nil && (at.Addr() == addr || at.Addr().IsUnspecified() && (at.Addr().Is6() || addr.Is4()))
	})
}

// checkAnycastAddresses checks the anycast addresses of an application against those of the other applications, and returns them in stored
// form.
func (s *Service) checkAnycastAddresses(tx *store.Tx, d *deployed, others []deployed, addresses []string) ([]string, error) {
	bad := func(i int, format string, args ...any) error {
		return problem.Invalid(fmt.Sprintf("%s[%d]", fieldAnycastOfApps, i), format, args...)
	}
	settings, err := anycastOf(tx, d.servicePoint)
	if err != nil {
		return nil, err
	}
	nodes, err := nodesOf(tx, d.servicePoint)
	claims := s.claims(d.Name, d.Configuration)
	switch {
	case err != nil || len(addresses) == 0:
		return []string{}, err
	case len(addresses) > maxAnycast:
		return nil, problem.Invalid(fieldAnycastOfApps, "has more than %d addresses", maxAnycast)
	case settings == nil:
		return nil, problem.Invalid(fieldAnycastOfApps, "requires anycast settings of the service point, with neighbors")
	}
	kept := make([]string, 0, len(addresses))
	for i, text := range addresses {
		addr, err := netip.ParseAddr(text)
		if _, e := netip.ParsePrefix(text); e == nil {
			return nil, bad(i, "%q is a prefix; use an address without a length", text)
		}
		if err != nil || addr.Zone() != "" || addr.Is4In6() || !addr.IsGlobalUnicast() {
			return nil, bad(i, "%q cannot be an anycast address", text)
		}
		text = addr.String()
		switch {
		case isNeighbor(settings, text):
			return nil, bad(i, "%s is the address of a neighbor", text)
		case isNodeAddress(nodes, text):
			return nil, bad(i, "%s is an address of the machine itself", text)
		case !listensAt(claims, text):
			return nil, bad(i, "the application does not listen on %s: clients would get no response", text)
		}
		if slices.Contains(kept, text) {
			return nil, bad(i, "%s is listed twice", text)
		}
		if !isAdvertised(settings, text) {
			return nil, bad(i, "%s cannot be advertised: the service point has no neighbor of its address family", text)
		}
		for _, other := range others {
			if other.ID != d.ID && other.Status != checkin.Deleted && slices.Contains(other.anycast, text) {
				return nil, bad(i, "%s is already an address of application %s (%s)", text, other.Name, other.ID)
			}
		}
		kept = append(kept, text)
	}
	return kept, nil
}

// recordAnycastChange records which anycast addresses went up or down by a report that is not stored yet. r may be nil.
func (s *Service) recordAnycastChange(tx *store.Tx, servicePoint string, all []deployed, r *checkin.Report) error {
	if r == nil || !slices.ContainsFunc(all, func(d deployed) bool { return len(d.anycast) > 0 }) {
		return nil
	}
	old, err := nodesOf(tx, servicePoint)
	if err != nil {
		return err
	}
	words := map[bool]string{true: "up", false: "down"}
	for _, d := range all {
		before, after := anycastAddresses(d, old), anycastAddresses(d, r.Nodes)
		for i := range after {
			if before[i].IsUp == after[i].IsUp {
				continue
			}
			if err := s.recordChange(tx, servicePoint, fieldOf(d.Name, d.ID, fieldAnycast), words[before[i].IsUp], words[after[i].IsUp],
				after[i].IPAddress); err != nil {
				return err
			}
		}
	}
	return nil
}

// anycastAddresses returns the anycast addresses of an application. An address is up if one of the nodes reports it as up.
func anycastAddresses(d deployed, nodes []checkin.Node) []AnycastAddress {
	all := make([]AnycastAddress, len(d.anycast))
	for i, address := range d.anycast {
		all[i] = AnycastAddress{IPAddress: address, IsUseByAppID: d.ID}
		for _, n := range nodes {
			all[i].IsUp = all[i].IsUp || slices.ContainsFunc(n.Addresses, func(a checkin.NodeAddress) bool {
				return a.IPAddress == address && a.IsUp != nil && *a.IsUp && a.IsUseByAppID != nil && *a.IsUseByAppID == d.ID
			})
		}
	}
	return all
}
