package dhcp_test

import (
	"net/netip"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/dhcptest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/dhcplease"
)

// TestLeasesOfMovedNetwork checks that reports of the former server of a network complete the history and do not change the lease of the
// new server: neither an end, nor a renewal, nor a lease, nor an order. A renewal does not set an end at an address without a lease.
func TestLeasesOfMovedNetwork(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	_, one := m.LeaseServer(configuration, "dhcp1")
	other, two := m.LeaseServer(configuration, "dhcp2")
	if err := dhcptest.Deploy(t.Context(), m.Store, apitest.Number(t, other), apitest.Number(t, network)); err != nil {
		t.Fatal(err)
	}
	start := m.Store.Now().Truncate(time.Second).Add(-2 * time.Hour)
	hour := func(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }
	a := netip.MustParseAddr("10.0.0.20")
	old := dhcplease.Lease{Network: apitest.Number(t, network), Address: a, Start: start.Unix(), Expires: hour(1).Unix(),
		MAC: "00005e005301"}
	half := start.Add(30 * time.Minute)
	next := old
	next.Start, next.Expires, next.MAC = half.Unix(), hour(24).Unix(), "00005e005302"
	is := func(what, state, mac, server, end string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.20'"), "")
		if r.Text("data.0.state") != state || r.Text("data.0.macAddress") != mac || r.Text("data.0.server.name") != server ||
			r.Text("data.0.leaseExpirationDateTime") != end {
			t.Errorf("after %s: %s", what, r.Body)
		}
	}
	spans := func(what string, want ...string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/leaseSpans?orderBy=asc(startDateTime)&"+apitest.Filter("address:'10.0.0.20'"), "")
		for i, reason := range want {
			if got := r.Text("data." + string(rune('0'+i)) + ".endReason"); got != reason {
				t.Errorf("after %s, the span %d ended by %q, want %q: %s", what, i, got, reason, r.Body)
			}
		}
		if r.Count() != len(want) {
			t.Errorf("after %s: %s", what, r.Body)
		}
	}
	text := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	renewal := func(expires time.Time) dhcplease.Record {
		return dhcplease.Record{At: start.UnixMilli(), Renewals: &dhcplease.Renewals{Network: old.Network,
			Packed: dhcplease.Pack([]dhcplease.Renewal{{Address: a, Expires: expires.Unix()}, {Address: a.Next(), Expires: expires.Unix()}})}}
	}
	one.Event(dhcplease.Begin, start, old)
	two.Event(dhcplease.Begin, half, next)
	held := func(what string) {
		t.Helper()
		is(what, "DHCP_ALLOCATED", "00-00-5E-00-53-02", "dhcp2", text(hour(24)))
	}
	held("the lease of the new server")
	one.Event(dhcplease.Expire, hour(1), old)
	held("the end of the former lease")
	spans("the end of the former lease", "REPLACED", "")
	one.Send(renewal(hour(48)))
	held("a renewal by the former server")
	late := old
	late.Start, late.MAC, late.Expires = start.Add(10*time.Minute).Unix(), "00005e005303", hour(72).Unix()
	one.Event(dhcplease.Begin, start.Add(10*time.Minute), late)
	held("a late lease of the former server")
	one.Event(dhcplease.Release, start.Add(15*time.Minute), late)
	held("its end")
	spans("the late end", "REPLACED", "RELEASED", "")
	late.Start = hour(1).Unix()
	one.Event(dhcplease.Begin, hour(1), late)
	held("a newer lease of a server that does not have the network")
	order := m.Want(201, "POST", "/api/v2/networks/"+network+"/leaseActions", `{"address":"10.0.0.20","action":"END_LEASE"}`).Text("id")
	for _, from := range []struct {
		*leasetest.Source
		state string
	}{{one, "PENDING"}, {two, "DONE"}} {
		l := next
		l.MAC = map[string]string{"PENDING": late.MAC, "DONE": next.MAC}[from.state]
		from.Send(dhcplease.Record{At: hour(1).UnixMilli(), Event: &dhcplease.Event{Kind: dhcplease.End, Lease: l,
			Order: apitest.Number(t, order)}})
		if r := m.Want(200, "GET", "/api/v2/leaseActions/"+order, ""); r.Text("state") != from.state {
			t.Errorf("the action is %s", r.Body)
		}
	}
	until := time.Unix(next.Expires, 0).UTC().Format(time.RFC3339) // the server holds the address until then
	is("the action", "DHCP_FREE", "00-00-5E-00-53-02", "dhcp2", until)
	spans("the action", "REPLACED", "RELEASED", "ENDED")
	two.Send(renewal(hour(48)))
	is("a renewal without a lease", "DHCP_FREE", "00-00-5E-00-53-02", "dhcp2", until)
	// The same client gets the address from the new server: the end that the former server reports is of its own lease.
	one.Event(dhcplease.Begin, hour(1), old)
	again := old
	again.Start, again.Expires = hour(2).Unix(), hour(24).Unix()
	two.Event(dhcplease.Begin, hour(2), again)
	one.Event(dhcplease.Expire, hour(2), old)
	is("the end of the same client's former lease", "DHCP_ALLOCATED", "00-00-5E-00-53-01", "dhcp2", text(hour(24)))
	two.Send(renewal(hour(48)))
	is("a renewal", "DHCP_ALLOCATED", "00-00-5E-00-53-01", "dhcp2", text(hour(48)))
}
