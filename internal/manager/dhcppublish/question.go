package dhcppublish

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
)

// Question is a message of a client, for an explanation.
type Question struct {
	// Network is the id of the network of the client; 0 stands for the network that contains Relay.
	Network int64
	// Relay is the address of the relay agent: giaddr, or the link address of DHCPv6. If it is invalid, it is the first address of the
	// network.
	Relay netip.Addr
	// MACAddress and ClientIdentifier identify the client. In DHCPv6, ClientIdentifier is the DUID, and IAID the number of the identity
	// association.
	MACAddress, ClientIdentifier string
	IAID                         uint32
	// CircuitID, RemoteID and VendorClass are texts, or octets such as 0x0A0B.
	CircuitID, RemoteID, VendorClass string
	// Options are other options that the client sends in DHCPv4, as CODE:VALUE separated by commas. A value is a text, or octets such as
	// 0x0A0B; a text with a comma is written as octets.
	Options string
	// Requested is the address that the client requests; it may be invalid.
	Requested netip.Addr
	// Prefix asks for a delegated prefix instead of an address. RequestedLength is the length of the prefix that the client requests, and
	// Requested its first address; 0 if it requests none.
	Prefix          bool
	RequestedLength int
	// Planned asks about the current settings, not about the deployed ones.
	Planned bool
}

// network returns the network of the question, with its span: the one that it names, or the one that contains its relay.
func (q Question) network(tx *store.Tx, a *resource.API, caller resource.Caller) (*store.Resource, error) {
	if q.Network == 0 {
		return q.networkOfRelay(tx, a, caller)
	}
	network, err := a.Visible(tx, q.Network, caller)
	if err != nil {
		return nil, err
	}
	if network.Type != "IPv4Network" && network.Type != "IPv6Network" {
		return nil, problem.Query("network", "must be the id of an IPv4Network or IPv6Network, not of %s %d", network.Type, network.ID)
	}
	row, err := tx.Get(q.Network) // a shown row has no span
	if err != nil {
		return nil, err
	}
	return row.Clone(), nil
}

// networkOfRelay returns the network that contains the relay: the only one that the caller sees in all configurations.
func (q Question) networkOfRelay(tx *store.Tx, a *resource.API, caller resource.Caller) (found *store.Resource, err error) {
	if !q.Relay.IsValid() {
		return nil, problem.Query("network", "the id of the network, or relay, is required")
	}
	var configurations []int64
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection("configurations")}, func(r *store.Resource) error {
		configurations = append(configurations, r.ID)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, c := range configurations {
		network, err := tx.Holding(c, "networks", q.Relay)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		network = network.Clone()
		if _, err := a.Visible(tx, network.ID, caller); problem.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if found != nil {
			return nil, problem.Query("network", "is required: networks %d and %d of different configurations contain the relay %s", found.ID,
				network.ID, q.Relay)
		}
		found = network
	}
	if found == nil {
		return nil, problem.Query("relay", "no network that you can see contains %s", q.Relay)
	}
	return found, nil
}

// relayIn returns the address of the relay agent: the given one, or the first one of the network.
func (q Question) relayIn(network *store.Resource) netip.Addr {
	first := store.KeyAddr(network.Low).Next()
	switch {
	case q.Relay.IsValid():
		return q.Relay
	case first.Compare(store.KeyAddr(network.High)) > 0:
		return store.KeyAddr(network.Low)
	}
	return first
}

// maxQuestion is the maximum number of octets of a text of a question.
const maxQuestion = 255

// facts returns the message of the question: a DISCOVER through a relay.
func (q Question) facts(network *store.Resource) (*dhcpdata.Facts, error) {
	f := &dhcpdata.Facts{Type: dhcpdata.Discover, HardwareType: 1, Options: map[uint8][]byte{}, Explain: true, Relay: q.relayIn(network)}
	mac, err := space.ParseHardware(q.MACAddress)
	if err != nil {
		return nil, problem.Query("macAddress", "%v", err)
	}
	f.Hardware = mac
	var relay []byte
	for _, one := range []struct {
		name, text string
		set        func(data []byte)
	}{{"clientIdentifier", q.ClientIdentifier, func(data []byte) { f.Options[61] = data }},
		{"vendorClassIdentifier", q.VendorClass, func(data []byte) { f.Options[60] = data }},
		{"circuitId", q.CircuitID, func(data []byte) { relay = append(append(relay, 1, byte(len(data))), data...) }},
		{"remoteId", q.RemoteID, func(data []byte) { relay = append(append(relay, 2, byte(len(data))), data...) }}} {
		if one.text == "" {
			continue
		}
		data, err := dhcp.ReadValue(one.text)
		if err != nil || len(data) == 0 || len(data) > maxQuestion {
			return nil, problem.Query(one.name, "must be a text or octets such as 0x0A0B, at most %d octets",
				maxQuestion)
		}
		one.set(data)
	}
	if relay != nil {
		f.Options[82] = relay
	}
	if err := q.addOptions(f); err != nil {
		return nil, err
	}
	if q.Requested.Is4() {
		f.Options[50] = q.Requested.AsSlice()
	}
	var codes []byte
	for code := 1; code < 255; code++ { // every option that is set, so that the explanation lists it
		if !slices.Contains([]int{50, 51, 53, 54, 57, 58, 59, 61, 82, 108}, code) {
			codes = append(codes, byte(code))
		}
	}
	f.Options[55] = codes
	f.Options[57] = []byte{0xff, 0xff}
	return f, nil
}

// ownParameter are the options that other parameters of a question set, or that belong to the message itself.
var ownParameter = []int{50, 51, 53, 54, 55, 57, 58, 59, 60, 61, 82}

// addOptions adds the other options of a client to its message.
func (q Question) addOptions(f *dhcpdata.Facts) error {
	if q.Options == "" {
		return nil
	}
	for one := range strings.SplitSeq(q.Options, ",") {
		text, value, there := strings.Cut(strings.TrimSpace(one), ":")
		code, err := strconv.Atoi(text)
		if err != nil || !there || code < 1 || code > maxCode {
			return problem.Query("options", "must be entries CODE:VALUE separated by commas, such as 93:0x0007,77:iPXE, with codes from 1 to %d, "+
				"not %q", maxCode, one)
		}
		if slices.Contains(ownParameter, code) {
			return problem.Query("options", "option %d has a parameter of its own, or belongs to the message", code)
		}
		data, err := dhcp.ReadValue(value)
		if err != nil || len(data) > maxQuestion {
			return problem.Query("options", "the value of option %d must be a text or octets such as 0x0A0B, at most %d octets", code, maxQuestion)
		}
		if _, twice := f.Options[uint8(code)]; twice { //nolint:gosec // at most maxCode
			return problem.Query("options", "option %d is given twice", code)
		}
		f.Options[uint8(code)] = data //nolint:gosec // at most maxCode
	}
	return nil
}
