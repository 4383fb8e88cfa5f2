package dhcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
)

// TestDatagram checks that a datagram with its headers is read as it was written, and that lengths and checksums that do not fit are found.
func TestDatagram(t *testing.T) {
	from, to := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.1.7")
	whole := func(payload string) []byte { return buildDatagram(from, to, []byte(payload)) }
	change := func(p []byte, at int, octet byte) []byte { p[at] ^= octet; return p }
	for name, one := range map[string]struct {
		packet []byte
		want   error
	}{
		"even":                 {whole("message!"), nil},
		"odd":                  {whole("message"), nil},
		"empty":                {whole(""), nil},
		"octets after the end": {append(whole("message"), 0, 0, 0), nil},
		"no header":            {whole("message")[:19], errDatagram},
		"truncated":            {whole("message")[:30], errDatagram},
		"version 6":            {change(whole("message"), 0, 0x20), errDatagram},
		"header of 8 octets":   {change(whole("message"), 0, 0x07), errDatagram},
		"length of UDP":        {change(whole("message"), 24, 0xff), errDatagram},
		"length of UDP of 0":   {change(whole("message"), 25, 15), errDatagram},
		"header changed":       {change(whole("message"), 12, 1), errChecksum},
		"payload changed":      {change(whole("message"), 30, 1), errChecksum},
		"port changed":         {change(whole("message"), 21, 1), errChecksum},
	} {
		source, _, payload, err := datagram(one.packet, true)
		if !errors.Is(err, one.want) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
		if err == nil && (source != netip.AddrPortFrom(from, serverPort) || len(payload) > 8) {
			t.Errorf("%s: %s %q", name, source, payload)
		}
	}
	broken := change(whole("message"), 30, 1)
	if _, _, _, err := datagram(broken, false); err != nil {
		t.Errorf("a checksum that the sender left to the hardware: %v", err)
	}
	binary.BigEndian.PutUint16(broken[26:], 0)
	if _, _, _, err := datagram(broken, true); err != nil {
		t.Errorf("without a checksum of UDP: %v", err)
	}
}

// FuzzDatagram checks that arbitrary packets do not panic, and that an accepted one is read as it was written.
func FuzzDatagram(f *testing.F) {
	from, to := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("255.255.255.255")
	f.Add(buildDatagram(from, to, []byte("message")), true)
	f.Add(buildDatagram(from, to, nil), false)
	f.Fuzz(func(t *testing.T, packet []byte, complete bool) {
		source, _, payload, err := datagram(packet, complete)
		if err != nil {
			return
		}
		_, _, again, err := datagram(buildDatagram(source.Addr(), to, payload), true)
		if err != nil || string(again) != string(payload) {
			t.Errorf("%x becomes %x: %v", payload, again, err)
		}
	})
}
