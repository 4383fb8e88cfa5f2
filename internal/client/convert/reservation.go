package convert

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"portolan/internal/base/space"
)

// router returns the first router of a subnet that is a host address in it. It uses own, or around if own is empty. It returns an empty
// text if no router matches, or if the router has a reservation: a gateway cannot be reserved, and the option names the router as well.
func (d *Document) router(p netip.Prefix, own, around []string) string {
	in := func(text string) bool {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || !p.Contains(a) || isEdge(p, a) {
			return false
		}
		if d.reserved[a] {
			d.leave("the gateway of %s: the router %s has a reservation, and is an option of the network", p, a)
		}
		return !d.reserved[a]
	}
	if len(own) == 0 {
		if i := slices.IndexFunc(around, in); i >= 0 {
			return strings.TrimSpace(around[i])
		}
		return ""
	}
	i := slices.IndexFunc(own, in)
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(own[i])
}

// isReserved reports whether a text is an address with a reservation.
func (d *Document) isReserved(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && d.reserved[a]
}

// keptDUID parses a DUID: hexadecimal digits (space.KeptDUID), optionally with the prefix 0x, or Kea's notation as a quoted text.
func keptDUID(text string) (string, error) {
	text = strings.TrimSpace(text)
	if n := len(text); n > 2 && text[0] == '\'' && text[n-1] == '\'' {
		text = hex.EncodeToString([]byte(text[1 : n-1]))
	}
	return space.KeptDUID(strings.TrimPrefix(text, "0x"))
}

// dhcpRange adds a DHCP range of a network, and returns it.
func (d *Document) dhcpRange(line int, low, high string, p netip.Prefix) (text string, err error) {
	from, err := netip.ParseAddr(low)
	to, e := netip.ParseAddr(high)
	if err != nil || e != nil || to.Less(from) || !p.Contains(from) || !p.Contains(to) {
		return "", fmt.Errorf("line %d: %s to %s is not a range of %v", line, low, high, p)
	}
	if isEdge(p, from) && from != to {
		d.leave("%v of a pool, which is not a host address of %v", from, p)
		from = from.Next()
	}
	if isEdge(p, to) && from != to {
		d.leave("%v of a pool, which is not a host address of %v", to, p)
		to = to.Prev()
	}
	text = from.String() + "-" + to.String()
	d.add(Resource{"type": family(from) + "DHCPRange", "range": text})
	return text, nil
}

// client identifies the client of a reservation: by its hardware address, by its DUID, or by its client identifier of IPv4.
type client struct {
	mac, duid, id string
}

// reservation adds an address that is reserved for a client. An address without a client is RESERVED.
func (d *Document) reservation(address string, of client, name string) (netip.Addr, error) {
	a, err := netip.ParseAddr(address)
	if err != nil && strings.ContainsFunc(address, unicode.IsLetter) && !strings.Contains(address, ":") {
		return a, fmt.Errorf("%s is a host name, which the server resolves", address)
	}
	if err != nil {
		return a, fmt.Errorf("%q is not an IP address", address)
	}
	if of.mac != "" && !hardware(of.mac) {
		return a, fmt.Errorf("%q is not a hardware address", of.mac)
	}
	r := Resource{"address": a.String(), "state": "DHCP_RESERVED", "macAddress": of.mac, "name": name}
	switch {
	case a.Is6() && of.duid != "" && of.mac == "":
		if of.duid, err = keptDUID(of.duid); err != nil {
			return a, err
		}
		r["reservedUsing"], r["clientIdentifier"] = "CLIENT_DUID", map[string]string{"duid": of.duid}
	case a.Is4() && of.id == "" && of.mac == "" && of.duid != "":
		// Clients with a DUID send it in their client identifier after the type 255 and an IAID (RFC 4361), which the source does not name.
		d.leave("DUIDs of clients of IPv4: their identifiers also have an IAID, which is not known; the addresses are %s", reserved)
		r["state"] = reserved
	case a.Is4() && of.id != "":
		r["clientIdentifier"] = of.id
	case of.mac == "":
		r["state"] = reserved
	}
	d.address(a, r)
	return a, nil
}
