package dhcp_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/dhcplease"
)

// lostPlan is a server with one lease that lasts, at 10.0.0.20, and one that has expired, at 10.0.0.21.
type lostPlan struct {
	*leasetest.Manager
	network, server, point string
}

func newLostPlan(t *testing.T) lostPlan {
	t.Helper()
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	server, source := m.LeaseServer(configuration, "dhcp1")
	now := m.Store.Now().Truncate(time.Second)
	for i, end := range []time.Duration{time.Hour, -10 * time.Minute} {
		source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, network),
			Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}),
			Start:   now.Add(-time.Hour).Unix(), Expires: now.Add(end).Unix(), MAC: fmt.Sprintf("00005e0053%02x", i)})
	}
	return lostPlan{m, network, server, m.Want(200, "GET", "/api/v2/servers/"+server, "").Text("servicePoint")}
}

// is checks the state and the server of a lease, its connection, and the reason of the end of its span.
func (p lostPlan) is(address, state, server, connection, reason string) {
	p.T.Helper()
	r := p.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'"+address+"'"), "")
	spans := p.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("address:'"+address+"'"), "")
	if r.Text("data.0.state") != state || r.Text("data.0.server.id") != server || r.Text("data.0.serverConnectionStatus") != connection ||
		spans.Count() != 1 || spans.Text("data.0.endReason") != reason {
		p.T.Errorf("want %s %s %q %q: %s %s", address, state, connection, reason, r.Body, spans.Body)
	}
}

// endsLost runs the handling of leases of lost servers, and checks the numbers of released and ended leases.
func (p lostPlan) endsLost(released, ended int) {
	p.T.Helper()
	n, expired, err := dhcp.ReleaseLost(p.T.Context(), p.Address, p.Store.Update, dhcppublish.NetworkChanged)
	if err != nil || n != released || expired != ended {
		p.T.Errorf("%d leases are released, and %d expired: %v", n, expired, err)
	}
	p.Verify()
}

// orders returns the number of orders to restore leases.
func (p lostPlan) orders() (n int) {
	p.T.Helper()
	if err := p.Store.View(p.T.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM dhcp_lease_import").Scan(&n)
	}); err != nil {
		p.T.Fatal(err)
	}
	return n
}

// ends checks that a user can end the lease at 10.0.0.20 at once, although no server is left that could do it.
func (p lostPlan) ends() {
	p.T.Helper()
	r := p.Want(201, "POST", "/api/v2/networks/"+p.network+"/leaseActions", `{"address":"10.0.0.20","action":"END_LEASE"}`)
	if r.Text("state") != "DONE" || p.orders() != 0 {
		p.T.Errorf("the action is %s, and %d orders are left", r.Body, p.orders())
	}
	p.Verify()
}

// TestLeasesOfDeletedServer checks that the leases of a deleted server have no server, and wait for the next server of the network; those
// that have expired end.
func TestLeasesOfDeletedServer(t *testing.T) {
	p := newLostPlan(t)
	p.endsLost(0, 0)
	p.is("10.0.0.20", "DHCP_ALLOCATED", p.server, "CONNECTED", "")
	p.is("10.0.0.21", "DHCP_ALLOCATED", p.server, "CONNECTED", "")
	p.Want(204, "DELETE", "/api/v2/servers/"+p.server, "")
	p.endsLost(1, 1)
	p.endsLost(0, 0)
	p.is("10.0.0.20", "DHCP_ALLOCATED", "", "", "")
	p.is("10.0.0.21", "DHCP_FREE", "", "", "EXPIRED")
	if n := p.orders(); n != 1 {
		t.Errorf("%d leases wait for the next server", n)
	}
	p.ends()
	p.is("10.0.0.20", "DHCP_FREE", "", "", "ENDED")
}

// TestLeasesOfLostServicePoint checks that leases show that their server is not connected, and that those of a deleted service point end by
// time. A user can end the others.
func TestLeasesOfLostServicePoint(t *testing.T) {
	p := newLostPlan(t)
	p.DeleteServicePoint(p.point)
	p.is("10.0.0.20", "DHCP_ALLOCATED", p.server, "NOT_CONNECTED", "")
	p.endsLost(0, 1)
	p.endsLost(0, 0)
	p.is("10.0.0.20", "DHCP_ALLOCATED", p.server, "NOT_CONNECTED", "")
	p.is("10.0.0.21", "DHCP_FREE", p.server, "NOT_CONNECTED", "EXPIRED")
	p.ends()
	p.is("10.0.0.20", "DHCP_FREE", p.server, "NOT_CONNECTED", "ENDED")
}

// TestActionsOfLostServicePoint checks that the pending actions of a deleted service point are settled: the manager ends the lease that a
// user wanted to end, and the action on an expired lease has no effect.
func TestActionsOfLostServicePoint(t *testing.T) {
	p := newLostPlan(t)
	actions := "/api/v2/networks/" + p.network + "/leaseActions"
	state := map[string]string{}
	for _, address := range []string{"10.0.0.20", "10.0.0.21"} {
		r := p.Want(201, "POST", actions, `{"address":"`+address+`","action":"END_LEASE"}`)
		if r.Text("state") != "PENDING" {
			t.Errorf("with a server, the action is %s", r.Body)
		}
		state[address] = r.Text("id")
	}
	p.endsLost(0, 0)
	p.DeleteServicePoint(p.point)
	p.endsLost(0, 2)
	p.endsLost(0, 0)
	p.is("10.0.0.20", "DHCP_FREE", p.server, "NOT_CONNECTED", "ENDED")
	p.is("10.0.0.21", "DHCP_FREE", p.server, "NOT_CONNECTED", "EXPIRED")
	for address, want := range map[string]string{"10.0.0.20": "DONE", "10.0.0.21": "NO_EFFECT"} {
		if r := p.Want(200, "GET", "/api/v2/leaseActions/"+state[address], ""); r.Text("state") != want {
			t.Errorf("the action on %s is %s", address, r.Body)
		}
	}
	p.endsLost(0, 0)
}

// TestActionsOfDeletedServer checks that a pending action of a deleted server is performed, and that no order to restore the lease is left.
func TestActionsOfDeletedServer(t *testing.T) {
	p := newLostPlan(t)
	id := p.ID("/api/v2/networks/"+p.network+"/leaseActions", `{"address":"10.0.0.20","action":"END_LEASE"}`)
	p.Want(204, "DELETE", "/api/v2/servers/"+p.server, "")
	p.endsLost(1, 2)
	p.is("10.0.0.20", "DHCP_FREE", "", "", "ENDED")
	if r := p.Want(200, "GET", "/api/v2/leaseActions/"+id, ""); r.Text("state") != "DONE" || p.orders() != 0 {
		t.Errorf("the action is %s, and %d orders are left", r.Body, p.orders())
	}
}
