package dhcp

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
)

// TestEachBadInput6 sends each malformed or unusual message of DHCPv6 over a socket. It has no reply and is counted by its reason, or it
// has the right reply.
func TestEachBadInput6(t *testing.T) {
	s, at := start6(t, t.TempDir(), units6(t))
	s.limiter.set(Rate{PerClient: maxRate}) // most rows are of one client
	server := s.engine.content.Load().compiled.ServerDUID()
	type options = dhcpmsg.Options6
	with := func(code uint16, data ...byte) dhcpmsg.Option6 { return dhcpmsg.Option6{Code: code, Data: data} }
	number := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	ia := func(code uint16, n int, inner ...byte) dhcpmsg.Option6 {
		head := append(number(n), make([]byte, 8)...)
		if code == dhcpmsg.OptIATA6 {
			head = number(n)
		}
		return with(code, append(head, inner...)...)
	}
	address := func(text string, preferred, valid int) []byte {
		data := append(append([]byte(net.ParseIP(text).To16()), number(preferred)...), number(valid)...)
		return dhcpmsg.AppendOption6(nil, dhcpmsg.OptIAAddress6, data)
	}
	prefix := func(text string, length byte, preferred, valid int) []byte {
		data := append(append(number(preferred), number(valid)...), length)
		return dhcpmsg.AppendOption6(nil, dhcpmsg.OptIAPrefix6, append(data, net.ParseIP(text).To16()...))
	}
	var manyIAs options
	for n := range 200 {
		manyIAs = append(manyIAs, ia(dhcpmsg.OptIANA6, n))
	}
	na, free := ia(dhcpmsg.OptIANA6, 1), "2001:db8:1::1:5"
	duid := func(n int) options { return options{with(dhcpmsg.OptClientID6, bytes.Repeat([]byte{9}, n)...), na} }
	// wrap puts a message into n relay messages. The outermost one has the hop count and the options.
	wrap := func(message []byte, n int, hops byte, link string, more ...dhcpmsg.Option6) []byte {
		for i := range n {
			head := append([]byte{dhcpmsg.RelayForward6, byte(i)}, net.ParseIP(link).To16()...)
			head = append(head, net.ParseIP("fe80::1").To16()...)
			message = dhcpmsg.AppendOption6(head, dhcpmsg.OptRelayMessage6, message)
		}
		if message[1] = hops; n == 0 {
			return message
		}
		for _, o := range more {
			message = dhcpmsg.AppendOption6(message, o.Code, o.Data)
		}
		return message
	}
	type row struct {
		name    string
		kind    uint8
		options options
		// change changes the message before it is sent; without it, it is relayed by a relay of network 40.
		change func(message []byte) []byte
		// want is the type of the reply, or the reason for none.
		want string
	}
	cid := with(dhcpmsg.OptClientID6, 0, 3, 0, 1, 2, 7, 0, 0, 0, 1)
	sid := dhcpmsg.Option6{Code: dhcpmsg.OptServerID6, Data: server}
	relay := func(n int, hops byte, link string, more ...dhcpmsg.Option6) func([]byte) []byte {
		return func(m []byte) []byte { return wrap(m, n, hops, link, more...) }
	}
	const link = "2001:db8:1::1"
	for _, one := range []row{
		{"8 relays", dhcpmsg.Solicit6, options{cid, na}, relay(8, 7, link), "ADVERTISE"},
		{"9 relays", dhcpmsg.Solicit6, options{cid, na}, relay(9, 8, link), "relay-depth"},
		{"40 relays", dhcpmsg.Solicit6, options{cid, na}, relay(40, 39, link), "relay-depth"},
		{"a hop count of 255", dhcpmsg.Solicit6, options{cid, na}, relay(1, 255, link), "relay-depth"},
		{"a hop count that lies", dhcpmsg.Solicit6, options{cid, na}, relay(1, 30, link), "ADVERTISE"},
		{"a relay without a message", dhcpmsg.Solicit6, nil, func([]byte) []byte { return append([]byte{12, 0}, make([]byte, 32)...) },
			"no-relayed-message"},
		{"a relayed message that contains its own end", dhcpmsg.Solicit6, options{cid, na}, func(m []byte) []byte {
			m = wrap(m, 1, 0, link)
			return append(m, m[34:60]...)
		}, "truncated-option"},
		{"two relayed messages", dhcpmsg.Solicit6, options{cid, na}, func(m []byte) []byte {
			return dhcpmsg.AppendOption6(wrap(m, 1, 0, link), dhcpmsg.OptRelayMessage6, m)
		}, "option-twice"},
		{"an unspecified link address", dhcpmsg.Solicit6, options{cid, na}, relay(1, 0, "::"), "no-network"},
		{"an unspecified link address behind one", dhcpmsg.Solicit6, options{cid, na}, func(m []byte) []byte {
			return wrap(wrap(m, 1, 0, "::"), 1, 1, link)
		}, "ADVERTISE"},
		{"a link that is not served", dhcpmsg.Solicit6, options{cid, na}, relay(1, 0, "2001:db8:99::1"), "no-network"},
		{"a truncated remote id", dhcpmsg.Solicit6, options{cid, na}, relay(1, 0, link, with(dhcpmsg.OptRemoteID6, 0, 0)), "ADVERTISE"},
		{"an empty subscriber id", dhcpmsg.Solicit6, options{cid, na}, relay(1, 0, link, with(dhcpmsg.OptSubscriberID6)), "ADVERTISE"},
		{"a truncated link-layer address", dhcpmsg.Solicit6, options{cid, na}, relay(1, 0, link, with(dhcpmsg.OptLinkLayer6, 0)), "ADVERTISE"},
		{"a link-layer address of 100 octets", dhcpmsg.Solicit6, options{cid, na},
			relay(1, 0, link, with(dhcpmsg.OptLinkLayer6, make([]byte, 102)...)), "ADVERTISE"},
		{"no octets", dhcpmsg.Solicit6, nil, func([]byte) []byte { return nil }, "short"},
		{"three octets", dhcpmsg.Solicit6, nil, func([]byte) []byte { return []byte{1, 2, 3} }, "short"},
		{"an option over the end", dhcpmsg.Solicit6, options{cid, na}, func(m []byte) []byte { return m[:len(m)-1] }, "truncated-option"},
		{"DUID of 0 octets", dhcpmsg.Solicit6, duid(0), nil, "client-duid"},
		{"DUID of 1 octet", dhcpmsg.Solicit6, duid(1), nil, "client-duid"},
		{"DUID of 129 octets", dhcpmsg.Solicit6, duid(129), nil, "ADVERTISE"},
		{"DUID of 130 octets", dhcpmsg.Solicit6, duid(130), nil, "ADVERTISE"},
		{"DUID of 131 octets", dhcpmsg.Solicit6, duid(131), nil, "client-duid"},
		{"DUID of 1,000 octets", dhcpmsg.Solicit6, duid(1000), nil, "client-duid"},
		{"DUID of type 5", dhcpmsg.Solicit6, options{with(1, 0, 5, 1, 2, 3), na}, nil, "ADVERTISE"},
		{"two client ids", dhcpmsg.Solicit6, options{cid, cid, na}, nil, "option-twice"},
		{"two server ids", dhcpmsg.Request6, options{cid, sid, sid, na}, nil, "option-twice"},
		{"no client id", dhcpmsg.Solicit6, options{na}, nil, "bad-message"},
		{"a server id in SOLICIT", dhcpmsg.Solicit6, options{cid, sid, na}, nil, "bad-message"},
		{"REQUEST without a server id", dhcpmsg.Request6, options{cid, na}, nil, "bad-message"},
		{"REQUEST for another server", dhcpmsg.Request6, options{cid, with(2, 0, 3, 0, 1, 2, 3, 4, 5, 6, 7), na}, nil, "other-server"},
		{"an IA in an IA", dhcpmsg.Solicit6, options{cid, ia(3, 1, dhcpmsg.AppendOption6(nil, 3, make([]byte, 12))...)}, nil, "bad-message"},
		{"an IAID twice", dhcpmsg.Solicit6, options{cid, na, na}, nil, "bad-message"},
		{"200 IAs", dhcpmsg.Solicit6, append(options{cid}, manyIAs...), nil, "bad-message"},
		{"no IA", dhcpmsg.Solicit6, options{cid}, nil, "ADVERTISE"},
		{"an IA of 5 octets", dhcpmsg.Solicit6, options{cid, with(3, 0, 0, 0, 1, 0)}, nil, "bad-message"},
		{"a temporary address", dhcpmsg.Solicit6, options{cid, ia(dhcpmsg.OptIATA6, 1)}, nil, "ADVERTISE"},
		{"an address without an IA", dhcpmsg.Solicit6, options{cid, with(5, make([]byte, 24)...)}, nil, "bad-message"},
		{"an address of 23 octets", dhcpmsg.Solicit6, options{cid, ia(3, 1, dhcpmsg.AppendOption6(nil, 5, make([]byte, 23))...)}, nil,
			"bad-message"},
		{"a multicast address", dhcpmsg.Solicit6, options{cid, ia(3, 1, address("ff02::1", 0, 0)...)}, nil, "ADVERTISE"},
		{"a prefix of length 0", dhcpmsg.Solicit6, options{cid, ia(dhcpmsg.OptIAPD6, 1, prefix("::", 0, 0, 0)...)}, nil, "ADVERTISE"},
		{"a prefix of length 129", dhcpmsg.Solicit6, options{cid, ia(dhcpmsg.OptIAPD6, 1, prefix("::", 129, 0, 0)...)}, nil, "bad-message"},
		{"preferred longer than valid", dhcpmsg.Solicit6, options{cid, ia(3, 1, address(free, 900, 10)...)}, nil, "ADVERTISE"},
		{"lifetimes without an end", dhcpmsg.Solicit6, options{cid, ia(3, 1, address(free, -1, -1)...)}, nil, "ADVERTISE"},
		{"an odd option request", dhcpmsg.Solicit6, options{cid, na, with(dhcpmsg.OptRequest6, 0, 23, 0)}, nil, "bad-message"},
		{"an empty option request", dhcpmsg.Solicit6, options{cid, na, with(dhcpmsg.OptRequest6)}, nil, "ADVERTISE"},
		{"rapid commit in REQUEST", dhcpmsg.Request6, options{cid, sid, na, with(dhcpmsg.OptRapidCommit6)}, nil, "REPLY"},
		{"CONFIRM without addresses", dhcpmsg.Confirm6, options{cid, na}, nil, "bad-message"},
		{"CONFIRM without an IA", dhcpmsg.Confirm6, options{cid}, nil, "bad-message"},
		{"CONFIRM of another link", dhcpmsg.Confirm6, options{cid, ia(3, 1, address("2001:db8:7::1", 0, 0)...)}, nil, "REPLY"},
		{"INFORMATION-REQUEST with an IA", dhcpmsg.InformationRequest6, options{cid, na}, nil, "bad-message"},
		{"INFORMATION-REQUEST without a client", dhcpmsg.InformationRequest6, nil, nil, "REPLY"},
		{"RENEW without an IA", dhcpmsg.Renew6, options{cid, sid}, nil, "not-leased"},
		{"RELEASE of a free address", dhcpmsg.Release6, options{cid, sid, ia(3, 9, address(free, 0, 0)...)}, nil, "REPLY"},
		{"DECLINE of a free address", dhcpmsg.Decline6, options{cid, sid, ia(3, 9, address(free, 0, 0)...)}, nil, "REPLY"},
		{"ADVERTISE", dhcpmsg.Advertise6, options{cid, na}, nil, "message-type"},
		{"REPLY", dhcpmsg.Reply6, options{cid, na}, nil, "message-type"},
		{"RECONFIGURE", dhcpmsg.Reconfigure6, options{cid, na}, nil, "message-type"},
		{"RELAY-REPL", dhcpmsg.RelayReply6, options{cid, na}, nil, "message-type"},
		{"type 0", 0, options{cid, na}, nil, "message-type"},
		{"type 255", 255, options{cid, na}, nil, "message-type"},
		{"a name of 255 labels", dhcpmsg.Solicit6, options{cid, na, with(dhcpmsg.OptFQDN6, bytes.Repeat([]byte{1, 'a'}, 255)...)}, nil,
			"ADVERTISE"},
		{"an empty name", dhcpmsg.Solicit6, options{cid, na, with(dhcpmsg.OptFQDN6)}, nil, "ADVERTISE"},
		{"1,100 options", dhcpmsg.Solicit6, options{cid, na}, func(m []byte) []byte {
			return append(m, bytes.Repeat([]byte{200, 0, 0, 0}, 1100)...)
		}, "too-many-options"},
		{"60 kB of one option", dhcpmsg.Solicit6, options{cid, na, with(200, make([]byte, 60_000)...)}, nil, "ADVERTISE"},
	} {
		message := []byte{one.kind, 1, 2, 3}
		for _, o := range one.options {
			message = dhcpmsg.AppendOption6(message, o.Code, o.Data)
		}
		if one.change == nil {
			one.change = relay(1, 0, link)
		}
		message = one.change(message)
		conn, err := new(net.Dialer).DialContext(t.Context(), "udp6", at.String())
		if err != nil {
			t.Fatal(err)
		}
		before := refusals(s, one.want)
		if _, err := conn.Write(message); err != nil {
			t.Fatalf("%s: %v", one.name, err)
		}
		got := ""
		waitFor(t, func() bool {
			if refusals(s, one.want) > before {
				got = one.want
				return true
			}
			if err := conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			buffer := make([]byte, 64<<10)
			if n, err := conn.Read(buffer); err == nil {
				got = innerName(buffer[:n])
			}
			return got != ""
		})
		if got != one.want {
			t.Errorf("%s: %s, want %s", one.name, got, one.want)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if address, _ := dial6(t, at, 3).lease(); address == "" {
		t.Error("a good client after the bad ones has no lease")
	}
}

// innerName returns the name of the type of the message inside of replies to relays.
func innerName(packet []byte) string {
	for len(packet) > 34 && packet[0] == dhcpmsg.RelayReply6 {
		options, err := dhcpmsg.ParseOptions6(packet[34:])
		if err != nil {
			return err.Error()
		}
		packet, _ = options.Find(dhcpmsg.OptRelayMessage6)
	}
	if len(packet) == 0 {
		return "no message"
	}
	return messageName6(packet[0])
}
