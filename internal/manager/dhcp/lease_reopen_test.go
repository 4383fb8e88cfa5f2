package dhcp_test

import (
	"net/netip"
	"testing"
	"time"

	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/dhcptest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/dhcplease"
)

// newLostPair returns a plan with the server dhcp1, whose lease of 10.0.0.20 began two hours ago and ends in a time, and with its partner
// dhcp2, which has the network as well.
func newLostPair(t *testing.T, end time.Duration) (p lostPlan, l dhcplease.Lease, one, two *leasetest.Source) {
	t.Helper()
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	server, one := m.LeaseServer(configuration, "dhcp1")
	other, two := m.LeaseServer(configuration, "dhcp2")
	if err := dhcptest.Deploy(t.Context(), m.Store, apitest.Number(t, other), apitest.Number(t, network)); err != nil {
		t.Fatal(err)
	}
	now := m.Store.Now().Truncate(time.Second)
	l = dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.20"),
		Start:   now.Add(-2 * time.Hour).Unix(),
		Expires: now.Add(end).Unix(), MAC: "00005e005301", HostName: "host"}
	one.Event(dhcplease.Begin, time.Unix(l.Start, 0), l)
	return lostPlan{m, network, server, m.Want(200, "GET", "/api/v2/servers/"+server, "").Text("servicePoint")}, l, one, two
}

// renews reports the renewal of a lease.
func renews(s *leasetest.Source, at time.Time, l dhcplease.Lease, expires time.Time) {
	s.Send(dhcplease.Record{At: at.UnixMilli(), Renewals: &dhcplease.Renewals{Network: l.Network,
		Packed: dhcplease.Pack([]dhcplease.Renewal{{Address: l.Address, Expires: expires.Unix()}})}})
}

// TestRenewalContinuesEndedLease checks that the renewal of a partner continues a lease that ended at the other server, with its span. A
// renewal from before the end changes nothing.
func TestRenewalContinuesEndedLease(t *testing.T) {
	p, l, one, two := newLostPair(t, -time.Hour)
	end, later := time.Unix(l.Expires, 0), p.Store.Now().Truncate(time.Second).Add(time.Hour)
	one.Event(dhcplease.Expire, end, l)
	p.is("10.0.0.20", "DHCP_FREE", p.server, "CONNECTED", "EXPIRED")
	renews(two, end.Add(-time.Minute), l, later)
	p.is("10.0.0.20", "DHCP_FREE", p.server, "CONNECTED", "EXPIRED")
	renews(one, end.Add(time.Minute), l, later)
	p.is("10.0.0.20", "DHCP_FREE", p.server, "CONNECTED", "EXPIRED")
	renews(two, end.Add(time.Minute), l, later)
	r := p.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"data.0.state": "DHCP_ALLOCATED", "data.0.server.name": "dhcp2", "data.0.hostName": "host",
		"data.0.leaseExpirationDateTime": later.UTC().Format(time.RFC3339)})
	r = p.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("address:'10.0.0.20' and endDateTime:null"), "")
	r.Shows(t, map[string]string{"count": "1", "data.0.endReason": "",
		"data.0.startDateTime": time.Unix(l.Start, 0).UTC().Format(time.RFC3339)})
	p.Verify()
	two.Event(dhcplease.Release, later, l)
	r = p.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"count": "1", "data.0.endReason": "RELEASED"})
	p.Verify()
}

// TestReleasedLeaseStaysEnded checks that a late report of the partner does not continue a lease that its client has released: a digest of
// renewals, whose time is that of the report, and a change from before the release.
func TestReleasedLeaseStaysEnded(t *testing.T) {
	p, l, one, two := newLostPair(t, time.Hour)
	now := p.Store.Now().Truncate(time.Second)
	one.Event(dhcplease.Release, now.Add(-time.Minute), l)
	p.is("10.0.0.20", "DHCP_FREE", p.server, "CONNECTED", "RELEASED")
	renews(two, now, l, now.Add(2*time.Hour))
	p.is("10.0.0.20", "DHCP_FREE", p.server, "CONNECTED", "RELEASED")
	changed := l
	changed.HostName = "other"
	two.Event(dhcplease.Change, now.Add(-2*time.Minute), changed)
	p.is("10.0.0.20", "DHCP_FREE", p.server, "CONNECTED", "RELEASED")
	p.Verify()
	again := l
	again.Start, again.Expires = now.Unix(), now.Add(time.Hour).Unix()
	two.Event(dhcplease.Begin, now, again)
	r := p.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"data.0.state": "DHCP_ALLOCATED", "data.0.server.name": "dhcp2"})
	r = p.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"count": "2"})
	p.Verify()
}

// TestListContinuesEndedLease checks that a list of a server that still has an ended lease continues its span, and that the report of an
// earlier end corrects the span.
func TestListContinuesEndedLease(t *testing.T) {
	p, l, one, two := newLostPair(t, -time.Hour)
	end := time.Unix(l.Expires, 0)
	one.Event(dhcplease.Expire, end, l)
	renewed := l
	renewed.Expires = p.Store.Now().Add(time.Hour).Unix()
	two.Send(dhcplease.Record{At: p.Store.Now().UnixMilli(), Snapshot: &dhcplease.Snapshot{ID: 7, Last: true,
		Leases: []dhcplease.Lease{renewed}}})
	r := p.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"count": "1", "data.0.endReason": ""})
	two.Event(dhcplease.Expire, end, renewed)
	early := end.Add(-time.Minute).UTC()
	two.Event(dhcplease.Release, early, l)
	r = p.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"count": "1", "data.0.endReason": "RELEASED", "data.0.endDateTime": early.Format(time.RFC3339)})
	p.Verify()
}

// TestReleasedLeaseWaitsForRenewals checks that a lease of a deleted server ends when its order does: two minutes after its known end,
// because its last renewals may not be reported.
func TestReleasedLeaseWaitsForRenewals(t *testing.T) {
	p, l, _, _ := newLostPair(t, -time.Minute)
	p.Want(204, "DELETE", "/api/v2/servers/"+p.server, "")
	n, ended, err := dhcp.ReleaseLost(t.Context(), p.Address, p.Store.Update, dhcppublish.NetworkChanged)
	if err != nil || n != 1 || ended != 0 {
		t.Fatalf("%d leases are released, and %d expired: %v", n, ended, err)
	}
	if n, err := dhcp.EndExpired(t.Context(), p.Address, p.Store.Update); err != nil || n != 0 || p.orders() != 1 {
		t.Errorf("%d leases have ended, and %d orders are left: %v", n, p.orders(), err)
	}
	r := p.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.20'"), "")
	r.Shows(t, map[string]string{"data.0.state": "DHCP_ALLOCATED",
		"data.0.leaseExpirationDateTime": time.Unix(l.Expires, 0).Add(2 * time.Minute).UTC().Format(time.RFC3339)})
	p.Verify()
}
