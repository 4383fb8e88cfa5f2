package dhcp

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// BenchmarkExchange measures a four-way exchange of the engine without sockets: two decisions, a write to the journal, and two replies.
func BenchmarkExchange(b *testing.B) {
	s := newService(b.TempDir(), slog.New(slog.DiscardHandler))
	b.Cleanup(func() { _ = s.Close() })
	deliver(b, s.engineTake, units(b, noPing))
	template, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr([]byte{2, 0, 0, 0, 0, 1}),
		dhcpv4.WithGatewayIP([]byte{10, 0, 0, 1}), dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter,
			dhcpv4.OptionDomainNameServer, dhcpv4.OptionDomainName))
	if err != nil {
		b.Fatal(err)
	}
	packet := template.ToBytes()
	done := make(chan struct{}, 1)
	var client atomic.Uint32
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		binary.BigEndian.PutUint32(packet[30:], client.Add(1)%50_000)
		var offered netip.Addr
		exchange(b, s.engine, packet, nil, func(d *dhcpdata.Decision) { offered = d.Address; done <- struct{}{} })
		<-done
		exchange(b, s.engine, packet, offered.AsSlice(), func(*dhcpdata.Decision) { done <- struct{}{} })
		<-done
	}
}

func (s *service) engineTake(text []byte) error { return s.engine.takeContent(bytes.NewReader(text)) }

// exchange passes a message to the engine; with an address it is a REQUEST.
func exchange(b *testing.B, e *engine, packet, address []byte, done func(*dhcpdata.Decision)) {
	b.Helper()
	m, err := dhcpmsg.Parse(packet)
	if err != nil {
		b.Fatal(err)
	}
	f := dhcpdata.Facts{Type: m.Type, HardwareType: 1, Hardware: m.Hardware, Options: m.Options, Relay: m.Relay, Packet: packet}
	if address != nil {
		f.Type = dhcpdata.Request
		f.Options[50], f.Options[54] = address, []byte{127, 0, 0, 1}
	}
	e.handle(&request{message: m, packet: packet, facts: f, reply: func(d *dhcpdata.Decision, _ []byte) { done(d) }})
}
