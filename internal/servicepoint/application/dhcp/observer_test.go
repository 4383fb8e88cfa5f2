package dhcp

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestObservations checks that refused clients and other servers are records for the manager, beside those about leases, and that each is
// sent once.
func TestObservations(t *testing.T) {
	t.Parallel()
	u := units(t, option("deny-unknown-mac-addresses", true))
	s, address := start(t, t.TempDir(), u)
	c := dial(t, address, 1)
	for range 2 {
		c.ask(dhcpv4.MessageTypeDiscover, dhcpv4.WithOption(dhcpv4.OptHostName("lamp")))
	}
	c.ask(dhcpv4.MessageTypeDiscover, dhcpv4.WithGatewayIP(net.IPv4(192, 0, 2, 1)))
	for range 2 {
		c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 0, 66))),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(10, 0, 2, 1))))
	}
	dial(t, address, 9).lease()
	var o dhcplease.Observation
	leases := 0
	var last int64
	for deadline := time.Now().Add(time.Minute); len(o.Refused) < 2 || leases == 0; {
		for _, r := range s.Records(t.Context()) {
			last = r.Number
			if r.Kind == dhcplease.Stream {
				leases++
				continue
			}
			var one dhcplease.Observation
			if err := json.Unmarshal(r.Data, &one); err != nil || one.Check() != nil {
				t.Fatalf("%s: %v", r.Data, err)
			}
			o.Refused, o.Counts, o.Others = append(o.Refused, one.Refused...), append(o.Counts, one.Counts...), append(o.Others, one.Others...)
		}
		s.Acknowledge(last)
		if time.Now().After(deadline) {
			t.Fatalf("the observations are %+v", o)
		}
	}
	got := map[string]dhcplease.Refused{}
	for _, r := range o.Refused {
		got[r.Reason] = r
	}
	if r := got["unknown-client"]; r.Count != 2 || r.Message != "DISCOVER" ||
		r.HostName != "lamp" || r.MAC != "020000000001" || r.Network != 7 {
		t.Errorf("the client is %+v", r)
	}
	if r := got["no-network"]; r.Count != 1 || r.Network != 0 || r.Relay != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the client in no network is %+v", r)
	}
	if len(o.Others) != 1 || o.Others[0].Address != netip.MustParseAddr("10.0.0.66") || o.Others[0].Network != 7 {
		t.Errorf("the other servers are %+v", o.Others)
	}
	if all := s.engine.observer.takeObservations(time.Now().Add(time.Hour)); len(all) > 0 {
		t.Errorf("observed again: %+v", all)
	}
}

// TestObserverIsBounded checks that a flood keeps the last clients, and all numbers.
func TestObserverIsBounded(t *testing.T) {
	o := newObserver(slog.New(slog.DiscardHandler))
	const networks, clients = 80, 300
	for n := range int64(networks) {
		for c := range int64(clients) {
			o.refuse(dhcplease.Refused{Network: n + 1, Reason: "no-range", MAC: fmt.Sprintf("%012x", c), Last: c})
		}
	}
	if o.total > maxClients {
		t.Errorf("%d clients", o.total)
	}
	shown, messages := 0, int64(0)
	for _, one := range o.takeObservations(time.Now()) {
		if err := one.Check(); err != nil {
			t.Error(err)
		}
		shown += len(one.Refused)
		for _, r := range one.Refused {
			if r.Network == 1 && r.Last < clients-maxNetworkClients {
				t.Errorf("client %s is not one of the last", r.MAC)
			}
		}
		for _, c := range one.Counts {
			messages += c.Count
		}
	}
	if messages != networks*clients || shown > maxClients || shown < maxNetworkClients {
		t.Errorf("%d messages, %d clients", messages, shown)
	}
}

// TestObservedOffers checks that the OFFER of another server is observed once, and that of the server itself and messages of clients are
// not.
func TestObservedOffers(t *testing.T) {
	s, _ := start(t, t.TempDir(), units(t))
	s.interfaces.of = func(int) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16")} }
	reply := func(kind dhcpv4.MessageType, from net.IP) []byte {
		m, err := dhcpv4.New(dhcpv4.WithMessageType(kind), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(from)))
		if err != nil {
			t.Fatal(err)
		}
		m.OpCode = dhcpv4.OpcodeBootReply
		return m.ToBytes()
	}
	mac := []byte{2, 0, 0, 0, 0, 66}
	for _, packet := range [][]byte{nil, {2}, reply(dhcpv4.MessageTypeNak, net.IPv4(10, 0, 0, 66)),
		reply(dhcpv4.MessageTypeOffer, net.IPv4(10, 0, 0, 1)),
		reply(dhcpv4.MessageTypeOffer, net.IPv4(10, 0, 0, 66)), reply(dhcpv4.MessageTypeAck, net.IPv4(10, 0, 0, 66))} {
		s.observeReply(netip.MustParseAddr("10.0.0.99"), mac, packet, 1)
	}
	all := s.engine.observer.takeObservations(time.Now())
	if len(all) != 1 || len(all[0].Others) != 1 || all[0].Others[0].Address != netip.MustParseAddr("10.0.0.66") ||
		all[0].Others[0].MAC != "020000000042" || all[0].Others[0].Network != 7 {
		t.Errorf("heard: %+v", all)
	}
}

// TestConfiguredServersAreNotReported checks that the servers of the configuration are not reported as strangers: the partner of a pair by
// its address and its DUID, and those that the content lists. Any other server is.
func TestConfiguredServersAreNotReported(t *testing.T) {
	pair := dhcpdata.Pair{ID: 3, Primary: true, Partner: 3, PartnerName: "two", Endpoint: netip.MustParseAddrPort("10.0.0.3:647"), MCLT: 60,
		Split: 128}
	u := units(t)
	u[dhcpdata.ServerUnit] = unit(t, dhcpdata.ServerUnit, dhcpdata.Server{ID: 1, Name: "buoy", Configuration: 2,
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}, Others: []int64{4},
		OtherAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, DUID: dhcpdata.DUIDOf(2, 1)}, pair)
	e := engineOn(t, &disk{}, u, nil)
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	a := newAsker(t, e)
	for _, last := range []byte{2, 3, 4, 66} {
		a.ask(dhcpdata.Request, last, func(f *dhcpdata.Facts) {
			f.Options[54], f.Options[50] = []byte{10, 0, 0, last}, []byte{10, 0, 1, 1}
		})
	}
	for _, id := range []int64{3, 4, 99} {
		m := &dhcpmsg.Message6{Type: dhcpmsg.Request6, Options: dhcpmsg.Options6{{Code: dhcpmsg.OptServerID6, Data: dhcpdata.DUIDOf(2, id)}}}
		e.observe6(&request6{facts: dhcpdata.Facts6{Message: m}}, &dhcpdata.Decision6{Network: 40}, string(dhcpdata.OtherServer))
	}
	var seen []string
	for _, o := range e.observer.takeObservations(time.Now()) {
		for _, s := range o.Others {
			seen = append(seen, s.Address.String()+s.DUID)
		}
	}
	if want := []string{"10.0.0.66", "invalid IP" + dhcpdata.DUIDOf(2, 99).String()}; !slices.Equal(seen, want) {
		t.Errorf("the strangers are %v, not %v", seen, want)
	}
}
