package dhcpmsg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// packet returns a DISCOVER with raw options after the message type.
func packet(options ...byte) []byte {
	p := make([]byte, headerSize)
	p[0], p[1], p[2] = 1, 1, 6
	copy(p[hardwareAt:], []byte{2, 0, 0, 0, 0, 1})
	p = binary.BigEndian.AppendUint32(p, cookie)
	return append(append(p, 53, 1, 1), options...)
}

// change returns a packet with changed octets.
func change(p []byte, at int, octets ...byte) []byte {
	copy(p[at:], octets)
	return p
}

// TestParse checks malformed messages and their reasons, and unusual ones that are valid.
func TestParse(t *testing.T) {
	long := bytes.Repeat([]byte{0}, 1000)
	for name, one := range map[string]struct {
		packet []byte
		want   error
	}{
		"plain":                         {packet(255), nil},
		"short":                         {packet(255)[:235], ErrShort},
		"empty":                         {nil, ErrShort},
		"op 2":                          {change(packet(255), 0, 2), ErrOperation},
		"hlen 0":                        {change(packet(255), 2, 0), nil},
		"hlen 16":                       {change(packet(255), 2, 16), nil},
		"hlen 255":                      {change(packet(255), 2, 255), ErrHardware},
		"hops 16":                       {change(packet(255), 3, 16), nil},
		"hops 17":                       {change(packet(255), 3, 17), ErrHops},
		"hops 255":                      {change(packet(255), 3, 255), ErrHops},
		"no cookie":                     {change(packet(255), headerSize, 0, 0, 0, 0), nil},
		"another cookie":                {change(packet(255), headerSize, 0), ErrCookie},
		"the end in the cookie":         {packet(255)[:headerSize+3], nil},
		"no END":                        {packet(), ErrNoEnd},
		"END then octets":               {packet(255, 1, 2, 3), nil},
		"1,000 PADs":                    {packet(append(long, 255)...), nil},
		"an option over the end":        {packet(12, 9, 'a'), ErrTruncated},
		"an option without its length":  {packet(12), ErrTruncated},
		"two message types":             {packet(53, 1, 3, 255), ErrType},
		"an empty message type":         {change(packet(255), optionsAt+1, 0), ErrTruncated},
		"message type 0":                {change(packet(255), optionsAt+2, 0), ErrType},
		"overload to itself":            {change(packet(52, 1, 1, 255), fileAt, 52, 1, 1, 255), nil},
		"overload without END":          {packet(52, 1, 3, 255), nil},
		"a truncated overloaded option": {change(packet(52, 1, 2, 255), snameAt+snameSize-1, 12), ErrTruncated},
		"overload 0 and 255":            {packet(52, 2, 0, 255, 255), nil},
		"64 kB":                         {append(packet(255), make([]byte, 64<<10)...), nil},
	} {
		m, err := Parse(one.packet)
		if !errors.Is(err, one.want) || (err == nil) != (m != nil) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
	}
	m, err := Parse(change(packet(12, 2, 'a', 'b', 52, 1, 3, 12, 1, 'c', 255), fileAt, 12, 1, 'd', 255))
	if err != nil || string(m.Options[12]) != "abcd" {
		t.Errorf("joined parts are %q %v", m.Options[12], err)
	}
	parts := packet()
	for i := range 12 {
		parts = append(parts, 82, 1, byte('a'+i))
	}
	if m, err = Parse(append(parts, 255)); err != nil || string(m.Options[82]) != "abcdefghijkl" {
		t.Errorf("12 parts are %q %v", m.Options[82], err)
	}
	if m, err = Parse(change(packet(255), headerSize, 0, 0, 0, 0)); err != nil || m.Options != nil || m.Type != 0 {
		t.Errorf("BOOTP without options is %+v %v", m, err)
	}
}

// reply returns a reply to a DISCOVER with options of the given sizes, from code 100.
func reply(t *testing.T, sizes ...int) *Reply {
	t.Helper()
	m, err := Parse(packet(82, 3, 1, 1, 'a', 255))
	if err != nil {
		t.Fatal(err)
	}
	r := &Reply{To: m, Type: 2, Yours: netip.MustParseAddr("10.0.0.9"), Options: []Option{{54, []byte{10, 0, 0, 1}}, {82, []byte{1, 1, 'a'}}}}
	for i, size := range sizes {
		r.Options = append(r.Options, Option{uint8(100 + i), bytes.Repeat([]byte{byte(i)}, size)})
	}
	return r
}

// TestReplySizes checks that a reply never exceeds the maximum, that options go to file and sname if needed, and that option 82 is last.
func TestReplySizes(t *testing.T) {
	for name, one := range map[string]struct {
		reply   *Reply
		limit   int
		dropped string
		used    []byte
	}{
		"small":                  {reply(t, 10), 548, "[]", nil},
		"split":                  {reply(t, 260), 548, "[]", nil},
		"overload file":          {reply(t, 250, 100), 548, "[]", []byte{1}},
		"overload file and name": {reply(t, 250, 120, 50), 548, "[]", []byte{3}},
		"too much":               {reply(t, 250, 120, 50, 70), 548, "[103]", []byte{3}},
		"a larger client":        {reply(t, 250, 120, 50, 70), 1472, "[]", nil},
		"empty option":           {reply(t, 0), 548, "[]", nil},
	} {
		p, dropped := one.reply.Append(nil, one.limit)
		if len(p) > one.limit || len(p) < minReply || fmt.Sprintf("%d", dropped) != one.dropped {
			t.Errorf("%s: %d octets, dropped %v", name, len(p), dropped)
		}
		got, err := dhcpv4.FromBytes(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(got.Options[overload], one.used) {
			t.Errorf("%s: option 52 is %x, want %x", name, got.Options[overload], one.used)
		}
		if end := bytes.LastIndex(p, []byte{82, 3, 1, 1, 'a', 255}); end < 0 {
			t.Errorf("%s: option 82 is not last", name)
		}
		// A client that knows overloading gets every option that was not dropped.
		m, err := Parse(change(p, 0, 1))
		if err != nil {
			t.Fatal(name, err)
		}
		for _, o := range one.reply.Options {
			if !slices.Contains(dropped, o.Code) && !bytes.Equal(m.Options[o.Code], o.Value) {
				t.Errorf("%s: option %d is %x", name, o.Code, m.Options[o.Code])
			}
		}
	}
	r := reply(t, 250, 120)
	r.File, r.ServerName = "boot", "host"
	if p, dropped := r.Append(nil, 548); len(p) > 548 || len(dropped) != 1 {
		t.Errorf("%d octets, dropped %v", len(p), dropped)
	}
}

// TestReplyHeader checks the fields that a reply copies and sets.
func TestReplyHeader(t *testing.T) {
	r := reply(t)
	r.To.Transaction, r.To.Relay, r.Broadcast, r.File = 77, netip.MustParseAddr("10.0.0.254"), true, "a.efi"
	r.Server = netip.MustParseAddr("10.0.0.5")
	p, _ := r.Append([]byte("before"), 548)
	m, err := dhcpv4.FromBytes(p[len("before"):])
	if err != nil {
		t.Fatal(err)
	}
	if m.OpCode != dhcpv4.OpcodeBootReply || binary.BigEndian.Uint32(m.TransactionID[:]) != 77 || !m.IsBroadcast() ||
		m.ClientHWAddr.String() != "02:00:00:00:00:01" || !m.YourIPAddr.Equal(net.IPv4(10, 0, 0, 9)) || m.BootFileName != "a.efi" ||
		!m.GatewayIPAddr.Equal(net.IPv4(10, 0, 0, 254)) || !m.ServerIPAddr.Equal(net.IPv4(10, 0, 0, 5)) ||
		m.MessageType() != dhcpv4.MessageTypeOffer {
		t.Errorf("%s", m.Summary())
	}
}

// TestMaxSize checks the limits of option 57.
func TestMaxSize(t *testing.T) {
	for value, want := range map[string]int{"": 548, "\x00\x00": 548, "\x02\x40": 548, "\x05\x00": 1252, "\xff\xff": 1472, "\x05": 548} {
		if got := MaxSize([]byte(value)); got != want {
			t.Errorf("%x: %d, want %d", value, got, want)
		}
	}
}

// FuzzParse checks that arbitrary packets do not panic, and that messages without overloading are read as another library reads them.
func FuzzParse(f *testing.F) {
	f.Add(packet(12, 1, 'a', 12, 1, 'b', 255))
	f.Add(packet(52, 1, 3, 255))
	f.Fuzz(func(t *testing.T, p []byte) {
		m, err := Parse(p)
		if err != nil || m.Options == nil || m.Options[overload] != nil {
			return
		}
		other, err := dhcpv4.FromBytes(p)
		if err != nil {
			t.Fatalf("another library reports %v", err)
		}
		if len(other.Options) != len(m.Options) {
			t.Fatalf("%d options, and %d by another library", len(m.Options), len(other.Options))
		}
		for code, value := range m.Options {
			if !bytes.Equal(other.Options[code], value) {
				t.Errorf("option %d is %x, and %x by another library", code, value, other.Options[code])
			}
		}
		r := &Reply{To: m, Type: 5}
		for code, value := range m.Options {
			r.Options = append(r.Options, Option{code, value})
		}
		if out, _ := r.Append(nil, 548); len(out) > 548+len(m.Options[relayOption])*2 {
			t.Errorf("the reply has %d octets", len(out))
		}
	})
}
