package dhcp

import (
	"net/netip"
	"testing"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"
)

// TestPairConflictNames checks that the primary of a pair names both clients of an address that both servers had leased: the later start
// keeps it.
func TestPairConflictNames(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	agree(t, one, two)
	a := netip.MustParseAddr(pairClient(one, clientOf(dhcppair.Primary, 1)).lease())
	agree(t, one, two)
	e := one.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	p, now := e.pairs[2], e.clock.now()
	own := e.table.lease(a)
	mac := holderText(own).MAC
	for i, c := range []struct {
		age          int64
		keeps, loses string
	}{{0, mac, "0200000000f1"}, {-100, "0200000000f2", mac}} {
		started := *own
		started.start = now + c.age
		e.table.set(a, &started)
		theirs := *own
		theirs.holder = &holder{client: "h" + string([]byte{1, 2, 0, 0, 0, 0, byte(0xf1 + i)}), hardwareType: 1,
			hardware: string([]byte{2, 0, 0, 0, 0, byte(0xf1 + i)})}
		theirs.pair, theirs.names, theirs.unstored = nil, nil, false
		r := p.Record(a)
		x, err := p.machine.Receive(dhcppair.Message{Sequence: 1 << 40, Bindings: []dhcppair.Binding{{Address: a,
			Client: []byte(theirs.holder.client), State: dhcppair.Leased, Expires: 60, Active: 60, Horizon: 60, Owner: r.Owner, Epoch: r.Epoch,
			Versions: [2]uint32{0, r.Versions[1] + 1}, Data: theirs.append(nil)}}}, p, now)
		if err != nil {
			t.Fatal(err)
		}
		p.follow(x)
		want := dhcplease.Contested{Address: a, Keeps: dhcplease.Holder{MAC: c.keeps}, Loses: dhcplease.Holder{MAC: c.loses}}
		if len(p.contested) != i+1 || p.contested[i] != want || p.conflicts != int64(i+1) {
			t.Errorf("the contested addresses are %+v, without %+v", p.contested, want)
		}
		if got := e.table.lease(a); got.state != dhcpdata.Leased || holderText(got).MAC != c.keeps {
			t.Errorf("%s has the address, not %s", holderText(got).MAC, c.keeps)
		}
	}
	if s := p.state(now); len(s.Contested) != 2 {
		t.Errorf("the report has %d contested addresses", len(s.Contested))
	}
	p.report(now)
	if len(p.contested) != 0 {
		t.Error("the next report repeats the contested addresses")
	}
}
