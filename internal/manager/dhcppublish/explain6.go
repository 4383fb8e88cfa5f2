package dhcppublish

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
)

// Limits of a DUID, in octets (RFC 9915 section 11.1), and the highest code of an option that an explanation asks for.
const (
	minDUID     = 3
	maxDUID     = 130
	maxExplain6 = 255
)

// decide6 returns the answer to a SOLICIT.
func (q Question) decide6(network *store.Resource) (answerer, error) {
	facts, err := q.facts6(network)
	return func(e *Explanation, c *dhcpdata.Content, leases *reportedLeases, now int64) int64 {
		d := dhcpdata.Decide6(c, facts, leases, now)
		if d.Reply != 0 {
			reply := "ADVERTISE"
			if d.Reply == dhcpmsg.Reply6 {
				reply = "REPLY"
			}
			e.Reply = &reply
		}
		e.addReason(d.Reason)
		for _, one := range d.Changes {
			if one.Action != dhcpdata.ActRelease {
				e.addAddress(one.Address, one.Valid, one.Pool, one.Reservation)
				if one.PrefixLength > 0 {
					length := int64(one.PrefixLength)
					e.PrefixLength = &length
				}
			}
		}
		for _, o := range d.Options {
			e.Options = append(e.Options, ExplainedOption{int(o.Code), o.Name, hex.EncodeToString(o.Value), placeOf(o.From)})
		}
		e.addSteps(d.Steps)
		leases.pair.addTo(e, d.DUID)
		return d.Network
	}, err
}

// facts6 returns the message of the question: a SOLICIT for an address or a prefix, through a relay.
func (q Question) facts6(network *store.Resource) (*dhcpdata.Facts6, error) {
	relay := dhcpmsg.Relay6{Link: q.relayIn(network)}
	duid, err := q.duid6(&relay)
	if err != nil {
		return nil, err
	}
	for _, one := range []struct {
		name, text string
		code       uint16
		head       []byte
	}{{"circuitId", q.CircuitID, dhcpmsg.OptInterfaceID6, nil},
		{"remoteId", q.RemoteID, dhcpmsg.OptRemoteID6, make([]byte, 4)}} { // a remote id begins with an enterprise number (RFC 4649)
		if one.text == "" {
			continue
		}
		data, err := dhcp.ReadValue(one.text)
		if err != nil || len(data) == 0 || len(data) > maxQuestion {
			return nil, problem.Query(one.name, "must be a text or octets such as 0x0A0B, at most %d octets", maxQuestion)
		}
		relay.Options = append(relay.Options, dhcpmsg.Option6{Code: one.code, Data: append(one.head, data...)})
	}
	if q.VendorClass != "" {
		return nil, problem.Query("vendorClassIdentifier", "has no effect in DHCPv6")
	}
	if q.Options != "" {
		return nil, problem.Query("options", "have no effect in DHCPv6")
	}
	association := binary.BigEndian.AppendUint32(nil, q.IAID)
	association = append(association, make([]byte, 8)...)
	kind := dhcpmsg.OptIANA6
	switch {
	case q.Prefix:
		if kind = dhcpmsg.OptIAPD6; q.Requested.IsValid() {
			wish := append(make([]byte, 8), byte(q.RequestedLength))
			association = dhcpmsg.AppendOption6(association, dhcpmsg.OptIAPrefix6, append(wish, q.Requested.AsSlice()...))
		}
	case q.Requested.IsValid():
		association = dhcpmsg.AppendOption6(association, dhcpmsg.OptIAAddress6, append(q.Requested.AsSlice(), make([]byte, 8)...))
	}
	var codes []byte
	for code := uint16(1); code <= maxExplain6; code++ { // every option that is set, so that the explanation lists it
		if !dhcpdata.IsFixed(code, true) {
			codes = binary.BigEndian.AppendUint16(codes, code)
		}
	}
	m := &dhcpmsg.Message6{Type: dhcpmsg.Solicit6, Relays: []dhcpmsg.Relay6{relay}, Options: dhcpmsg.Options6{
		{Code: dhcpmsg.OptClientID6, Data: duid}, {Code: kind, Data: association}, {Code: dhcpmsg.OptRequest6, Data: codes}}}
	return &dhcpdata.Facts6{Message: m, Explain: true}, nil
}

// duid6 returns the DUID of the client: the given one, or one of the hardware address (DUID-LL). With both, the relay names the hardware
// address (RFC 6939).
func (q Question) duid6(relay *dhcpmsg.Relay6) ([]byte, error) {
	const ethernet = 1
	var mac []byte
	if q.MACAddress != "" {
		parsed, err := space.ParseHardware(q.MACAddress)
		if err != nil {
			return nil, problem.Query("macAddress", "%v", err)
		}
		mac = parsed
		relay.Options = append(relay.Options, dhcpmsg.Option6{Code: dhcpmsg.OptLinkLayer6,
			Data: append(binary.BigEndian.AppendUint16(nil, ethernet), mac...)})
	}
	if q.ClientIdentifier == "" {
		if mac == nil {
			return nil, problem.Query("clientIdentifier", "the DUID or the hardware address of the client is required")
		}
		const linkLayer = 3
		return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, linkLayer), ethernet), mac...), nil
	}
	digits := strings.NewReplacer(":", "", "-", "").Replace(strings.TrimPrefix(q.ClientIdentifier, "0x"))
	duid, err := hex.DecodeString(digits)
	if err != nil || len(duid) < minDUID || len(duid) > maxDUID {
		return nil, problem.Query("clientIdentifier", "must be a DUID in hexadecimal digits, with %d to %d octets", minDUID, maxDUID)
	}
	return duid, nil
}
