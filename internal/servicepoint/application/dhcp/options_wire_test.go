package dhcp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestEveryOptionOnTheWire checks that each client option that a deployment accepts reaches a client that requests it, with the octets of
// the content. Another library reads the replies. The values have 3 to 300 octets, so that long ones are split (RFC 3396).
func TestEveryOptionOnTheWire(t *testing.T) {
	t.Parallel()
	value := func(code int) []byte {
		size := 3 + code%40
		if code == 223 {
			size = 300
		}
		return bytes.Repeat([]byte{byte(code)}, size)
	}
	from := dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 7}
	items := []dhcpdata.Item{noPing}
	var codes []byte
	for code := 1; code < 255; code++ {
		// The gateway is the option 3 without a value; 58 and 59 are times, 108 and 116 change the answer, 118 selects the network.
		switch {
		case dhcpdata.IsFixed(uint16(code), false), code == 3, code == 58, code == 59, code == 108, code == 116,
			code == 118: //nolint:gosec // of 8 bits
			continue
		}
		codes = append(codes, byte(code))
		items = append(items, dhcpdata.Option{Code: uint16(code), Name: "x", Value: value(code), From: from})
	}
	if len(codes) < 200 {
		t.Fatalf("%d options are not fixed", len(codes))
	}
	s, address := start(t, t.TempDir(), units(t, items...))
	for i := 0; i < len(codes); i += 10 {
		asked := codes[i:min(i+10, len(codes))]
		list := make([]dhcpv4.OptionCode, len(asked))
		for j, code := range asked {
			list[j] = dhcpv4.GenericOptionCode(code)
		}
		m := dial(t, address, byte(i)).ask(dhcpv4.MessageTypeDiscover, // a client has a rate limit
			dhcpv4.WithRequestedOptions(list...), dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(1500)))
		if m == nil {
			t.Fatalf("no answer with the options %v", asked)
		}
		for _, code := range asked {
			if got := m.Options.Get(dhcpv4.GenericOptionCode(code)); !bytes.Equal(got, value(int(code))) {
				t.Errorf("option %d is %x", code, got)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestEveryOption6OnTheWire is TestEveryOptionOnTheWire for DHCPv6. It reads the replies itself, because the library refuses values that
// its types do not allow.
func TestEveryOption6OnTheWire(t *testing.T) {
	t.Parallel()
	from := dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 40}
	var items []dhcpdata.Item
	var codes []uint16
	value := func(code uint16) []byte { return binary.BigEndian.AppendUint32([]byte{1}, uint32(code)) }
	for code := uint16(1); code < 150; code++ {
		if dhcpdata.IsFixed(code, true) || code == dhcpmsg.OptSolMaxRT6 || code == dhcpmsg.OptInfMaxRT6 { // numbers
			continue
		}
		codes = append(codes, code)
		items = append(items, dhcpdata.Option{V6: true, Code: code, Name: "x", Value: value(code), From: from})
	}
	if len(codes) < 100 {
		t.Fatalf("%d options are not fixed", len(codes))
	}
	s, at := start6(t, t.TempDir(), units6(t, items...))
	conn := dial6(t, at, 1).conn
	for i := 0; i < len(codes); i += 20 {
		asked := codes[i:min(i+20, len(codes))]
		var list []byte
		for _, code := range asked {
			list = binary.BigEndian.AppendUint16(list, code)
		}
		option := func(to []byte, code uint16, value []byte) []byte {
			to = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(to, code), uint16(len(value))) //nolint:gosec // small
			return append(to, value...)
		}
		inner := option([]byte{dhcpmsg.InformationRequest6, 0, 0, byte(i)}, dhcpmsg.OptRequest6, list)
		relayed := append([]byte{dhcpmsg.RelayForward6, 0}, netip.MustParseAddr("2001:db8:1::1").AsSlice()...)
		relayed = append(relayed, netip.MustParseAddr("fe80::1").AsSlice()...)
		if _, err := conn.Write(option(relayed, dhcpmsg.OptRelayMessage6, inner)); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 4000)
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatalf("no answer with the options %v: %v", asked, err)
		}
		const head, relayHead, messageHead = 4, 34, 4
		got := map[uint16][]byte{}
		for rest := buffer[relayHead+head+messageHead : n]; len(rest) >= head; {
			end := head + int(binary.BigEndian.Uint16(rest[2:]))
			got[binary.BigEndian.Uint16(rest)] = rest[head:end]
			rest = rest[end:]
		}
		for _, code := range asked {
			if !bytes.Equal(got[code], value(code)) {
				t.Errorf("option %d is %x", code, got[code])
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
