package dhcppublish_test

import (
	"net/netip"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// TestExplanationSkipsEndedLease checks that the explanation offers the address of a lease that an operator has ended to no client until
// the end of the lease, as the server does, and then again.
func TestExplanationSkipsEndedLease(t *testing.T) {
	p := startAlone(t).dhcpServer()
	m := p.manager
	const first = "10.0.0.50"
	m.ID("/api/v2/networks/"+p.network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.50-10.0.0.51"}`)
	p.deploys()
	source := m.SourceOf(p.point)
	now := m.Store.Now()
	lease := dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr(first), Start: now.Unix(),
		Expires: now.Add(time.Hour).Unix(), MAC: "00005e0053f0"}
	offered := func(mac string) string {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+p.network+"&macAddress="+mac, "")
		return r.Text("address")
	}
	source.Event(dhcplease.Begin, now, lease)
	source.Event(dhcplease.End, now, lease)
	for _, mac := range []string{"00:00:5e:00:53:f0", "00:00:5e:00:53:f1"} {
		if got := offered(mac); got == first || got == "" {
			t.Errorf("the client %s is offered %q while the server holds the address", mac, got)
		}
	}
	lease.Expires = now.Unix()
	source.Event(dhcplease.Expire, now, lease)
	if got := offered("00:00:5e:00:53:f0"); got != first {
		t.Errorf("the former client is offered %q, want %s", got, first)
	}
}
