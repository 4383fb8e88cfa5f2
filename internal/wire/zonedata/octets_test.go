package zonedata

import (
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

// TestUnparsableData checks that data that the DNS library cannot parse is returned as octets.
func TestUnparsableData(t *testing.T) {
	record := Record("\x01u\x07example\x00\x00\x65\x00\x01\x00\x00\x00\x3c\x00\x01\x00")
	rr, err := record.RR()
	unknown, is := rr.(*dns.RFC3597)
	if err != nil || !is || unknown.Rdata != "00" || unknown.Hdr.Name != "u.example." || unknown.Hdr.Rrtype != 101 || unknown.Hdr.Ttl != 60 {
		t.Errorf("it is %v: %v", rr, err)
	}
}
