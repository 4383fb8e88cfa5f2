package dhcp

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"portolan/internal/wire/dhcpdata"
)

// prober is a network whose machines answer probes when the test tells it.
type prober struct {
	asked   atomic.Int64
	answers chan bool
}

func (p *prober) probe(netip.Addr, uint32) (net.HardwareAddr, bool) {
	p.asked.Add(1)
	return net.HardwareAddr{2, 0, 0, 0, 0, 99}, <-p.answers
}

// TestRepeatedDiscover checks that a second DISCOVER gets no offer while the address is probed, and both one at the end.
func TestRepeatedDiscover(t *testing.T) {
	p := &prober{answers: make(chan bool)}
	e := engineOn(t, &disk{}, units(t), p.probe)
	a := newAsker(t, e)
	a.ask(dhcpdata.Discover, 1)
	waitFor(t, func() bool { return p.asked.Load() == 1 })
	a.ask(dhcpdata.Discover, 1)
	a.none()
	p.answers <- false
	a.want(dhcpdata.Offer, "10.0.1.0")
	a.ask(dhcpdata.Discover, 1)
	a.want(dhcpdata.Offer, "10.0.1.0")
	if n := p.asked.Load(); n != 1 {
		t.Errorf("%d probes", n)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestLateProbe checks that the answer of a client that has leased its address meanwhile does not abandon it.
func TestLateProbe(t *testing.T) {
	p := &prober{answers: make(chan bool)}
	e := engineOn(t, &disk{}, units(t), p.probe)
	a := newAsker(t, e)
	a.ask(dhcpdata.Discover, 1)
	waitFor(t, func() bool { return p.asked.Load() == 1 })
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	p.answers <- true // the client itself
	if err := e.close(); err != nil {
		t.Error(err)
	}
	a.none()
	if l, _ := e.stateOf("10.0.1.0"); l.State != dhcpdata.Leased {
		t.Errorf("the leased address is in the state %d", l.State)
	}
}

// TestBOOTPKeepsStaticAddresses checks that a client of BOOTP, which cannot have a static address of a range, leaves it to others.
func TestBOOTPKeepsStaticAddresses(t *testing.T) {
	one := []dhcpdata.Interval{{First: netip.MustParseAddr("10.0.1.0"), Last: netip.MustParseAddr("10.0.1.0")}}
	u := units(t)
	u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16")},
		dhcpdata.Pool{ID: 8, Ranges: one, Probed: one}, noPing, option("dynamic-bootp", true))
	p := &prober{answers: make(chan bool, 1)}
	e := engineOn(t, &disk{}, u, p.probe)
	a := newAsker(t, e)
	a.ask(0, 1)
	a.none()
	p.answers <- false
	a.ask(dhcpdata.Discover, 2)
	a.want(dhcpdata.Offer, "10.0.1.0")
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestStaticProbe checks that a static address of a range is probed before each offer to a client that does not hold it, and is not leased
// without an offer.
func TestStaticProbe(t *testing.T) {
	one := []dhcpdata.Interval{{First: netip.MustParseAddr("10.0.1.0"), Last: netip.MustParseAddr("10.0.1.0")}}
	u := units(t)
	u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16")},
		dhcpdata.Pool{ID: 8, Ranges: one, Probed: one}, noPing)
	p := &prober{answers: make(chan bool, 10)}
	e := engineOn(t, &disk{}, u, p.probe)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 5, selects("10.0.1.0")) // without an offer
	a.want(dhcpdata.Nak, "invalid IP")
	for i, n := range []byte{1, 2, 1} { // client 1 returns, after client 2
		p.answers <- false
		a.ask(dhcpdata.Discover, n)
		a.want(dhcpdata.Offer, "10.0.1.0")
		if n := p.asked.Load(); n != int64(i+1) {
			t.Errorf("%d probes for offer %d", n, i+1)
		}
		a.ask(dhcpdata.Request, n, selects("10.0.1.0"))
		a.want(dhcpdata.Ack, "10.0.1.0")
		a.ask(dhcpdata.Discover, n) // the client that holds it would answer
		a.want(dhcpdata.Offer, "10.0.1.0")
		a.ask(dhcpdata.Release, n, renews("10.0.1.0"), func(f *dhcpdata.Facts) {
			f.Interface = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16")}
		})
		a.ask(dhcpdata.Request, n, selects("10.0.1.0")) // the former holder
		a.want(dhcpdata.Nak, "invalid IP")
	}
	for range maxProbed { // the abandoned address is probed again, because no other one is free
		p.answers <- true
	}
	a.ask(dhcpdata.Discover, 1)
	waitFor(t, func() bool {
		l, _ := e.stateOf("10.0.1.0")
		return p.asked.Load() == 6 && l.State == dhcpdata.Abandoned
	})
	if err := e.close(); err != nil {
		t.Error(err)
	}
	a.none()
}

// TestDeclinedReservation checks that a client that declines its reserved address gets another one. If no other is free, it gets the
// reserved one after a probe.
func TestDeclinedReservation(t *testing.T) {
	p := &prober{answers: make(chan bool, 10)}
	e := engineOn(t, &disk{}, units(t, noPing), p.probe)
	a := newAsker(t, e)
	lease := func(address string) {
		t.Helper()
		a.ask(dhcpdata.Discover, 9)
		a.want(dhcpdata.Offer, address)
		a.ask(dhcpdata.Request, 9, selects(address))
		a.want(dhcpdata.Ack, address)
	}
	decline := func() {
		a.ask(dhcpdata.Decline, 9, func(f *dhcpdata.Facts) { f.Options[50] = netip.MustParseAddr("10.0.0.20").AsSlice() })
	}
	lease("10.0.0.20")
	decline()
	a.ask(dhcpdata.Request, 9, selects("10.0.0.20"))
	a.want(dhcpdata.Nak, "invalid IP")
	lease("10.0.1.0")
	u := units(t)
	u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16")},
		dhcpdata.Reservation{ID: 9, Address: netip.MustParseAddr("10.0.0.20"), MAC: dhcpdata.Hex{2, 0, 0, 0, 0, 9}})
	take(t, e, u)
	p.answers <- false
	lease("10.0.0.20")
	if n := p.asked.Load(); n != 1 {
		t.Errorf("%d probes", n)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
