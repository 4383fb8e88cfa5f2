package dhcp

import (
	"net/netip"
	"reflect"
	"testing"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"
)

// TestPacked checks that leases are the same after they were packed: those with all members, and those whose client is the hardware
// address, the client identifier, or neither.
func TestPacked(t *testing.T) {
	named := sampleLease("10.0.0.9")
	named.names = &dhcpdata.Names{Host: "pc.example.com", Forward: true, Reverse: "9.0.0.10.in-addr.arpa", TTL: 600,
		Guard: dhcpdata.GuardStandard, IDs: []dhcpdata.Hex{{1, 2}, {3}}, AnyGuard: true, Partner: true, Source: netip.MustParseAddr("10.0.0.2")}
	named.pair = &pairing{mine: 1, want: 2, promise: 3, theirs: 4, owner: dhcppair.Secondary, epoch: 5, agreed: true,
		versions: [2]uint32{6, 7}}
	hardware, id := sampleLease("10.0.0.9"), sampleLease("10.0.0.9")
	hardware.holder.client, hardware.counted = "h\x01"+hardware.holder.hardware, nil
	id.holder.client, id.ended = "cme", false
	id.names = &dhcpdata.Names{}
	infinite := &lease{address: netip.MustParseAddr("2001:db8::1"), state: dhcpdata.Abandoned, start: 900, renewed: 5,
		expires: dhcpdata.InfiniteTime, holder: &holder{}}
	table := newTable(func() int64 { return 0 })
	for _, l := range []*lease{named, hardware, id, infinite, sampleLease("2001:db8::9")} {
		table.set(l.address, l)
		if got := table.lease(l.address); !reflect.DeepEqual(got, l) {
			t.Errorf("%+v %+v becomes %+v %+v", l, l.holder, got, got.holder)
		}
	}
	if table.slots.used != 3 {
		t.Errorf("%d addresses", table.slots.used)
	}
}
