package dhcppublish_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// TestLeaseOrders checks that an order names the lease that the user saw, and leaves the content when the server has performed it.
func TestLeaseOrders(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	p.deploys()
	_, source := m.LeaseServer(p.configuration, "dhcp2")
	start := m.Store.Now().Truncate(time.Second)
	lease := dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr("10.0.0.20"), Start: start.Unix(),
		Expires: start.Add(time.Hour).Unix(), MAC: "00005e005301"}
	source.Event(dhcplease.Begin, start, lease)
	end := m.Want(201, "POST", "/api/v2/networks/"+p.network+"/leaseActions", `{"address":"10.0.0.20","action":"END_LEASE"}`)
	if got, err := time.Parse(time.RFC3339, end.Text("leaseDateTime")); err != nil || !got.Equal(start) {
		t.Errorf("the action names the lease of %s: %v", end.Text("leaseDateTime"), err)
	}
	orders := func() string {
		p.fetch()
		all := strings.Join(p.items(dhcpdata.NetworkUnit(apitest.Number(t, p.network))), "\n")
		_, all, _ = strings.Cut(all, `Q{`)
		return all
	}
	apitest.Eventually(t, "the order is in the content", func() bool {
		return strings.Contains(orders(), fmt.Sprintf(`"action":"endLease","start":%d}`, start.Unix()))
	})
	source.Send(dhcplease.Record{At: start.UnixMilli(), Event: &dhcplease.Event{Kind: dhcplease.End, Lease: lease,
		Order: apitest.Number(t, end.Text("id"))}})
	apitest.Eventually(t, "the performed order has left the content", func() bool { return orders() == "" })
	m.Verify()
}
