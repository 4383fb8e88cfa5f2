package server

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/manager/dhcp"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// TestForecastOfRange checks the forecast of a range that fills. One of the managers takes the samples.
func TestForecastOfRange(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.leaseServer(configuration, "dhcp1")
	at := "/api/v2/networks/" + network
	pool := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.199"}`)
	now := m.Store.Now().Truncate(time.Second)
	for hour := range 5 {
		for n := range 10 {
			source.event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, network),
				Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + 10*hour + n)}), Start: now.Unix(), Expires: now.Add(100 * time.Hour).Unix(),
				MAC: fmt.Sprintf("00005e0053%02x", 10*hour+n)})
		}
		if n, err := dhcp.SampleRanges(context.Background(), m.Store.Update, now.Add(time.Duration(hour-4)*time.Hour)); err != nil || n != 1 {
			t.Fatalf("%d samples, %v", n, err)
		}
	}
	if n, err := dhcp.SampleRanges(context.Background(), m.Store.Update, now.Add(time.Minute)); err != nil || n != 0 {
		t.Errorf("a sample too early: %d, %v", n, err)
	}
	r := m.Want(200, "GET", "/api/v2/ranges/"+pool, "")
	for field, want := range map[string]string{"leased": "50", "percent": "50", "leasesPerHour": "10", "trendHours": "4", "fullInHours": "5"} {
		if got := r.Text("utilization." + field); got != want {
			t.Errorf("%s is %q, want %q: %s", field, got, want, r.Body)
		}
	}
	full, err := time.Parse(time.RFC3339, r.Text("utilization.fullDateTime"))
	if err != nil || full.Sub(now.Add(5*time.Hour)).Abs() > time.Minute {
		t.Errorf("full at %v, %v", full, err)
	}
	if got := m.Want(200, "GET", at+"/ranges?fields=utilization", "").Text("data.0.utilization.fullInHours"); got != "5" {
		t.Errorf("in the list it is %q", got)
	}
	status, err := m.status(t.Context())
	if err != nil || len(status.Space.DHCP.Ranges) != 1 || status.Space.DHCP.Filling != 1 || status.Space.DHCP.Ranges[0].Used != 0.5 {
		t.Errorf("the status is %+v, %v", status.Space.DHCP, err)
	}
	text := string(m.Want(200, "GET", "/metrics", "").Body)
	for _, want := range []string{`portolan_dhcp_leases{server="dhcp1",state="DHCP_ALLOCATED"} 50`,
		`portolan_dhcp_leases_all{state="DHCP_ALLOCATED"} 50`, "portolan_dhcp_ranges_filling_all 1",
		`portolan_dhcp_range_used_ratio{configuration="main",range="10.0.0.100-10.0.0.199"} 0.5`,
		`portolan_dhcp_range_full_hours{configuration="main",range="10.0.0.100-10.0.0.199"} 5`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	m.Verify()
}

// TestStateOfDHCPServers checks what a manager reports about its DHCP servers: the failover pairs in its status, and the connection of the
// server of a lease.
func TestStateOfDHCPServers(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	server, source := m.leaseServer(configuration, "dhcp1")
	partner, _ := m.leaseServer(configuration, "dhcp2")
	now := m.Store.Now()
	source.send(dhcplease.Record{At: now.UnixMilli(), Pair: &dhcplease.Pair{Partner: apitest.Number(t, partner), State: "NORMAL",
		Connected: true, Key: strings.Repeat("0", 64), MCLT: 3600, Since: now.Unix()}})
	status, err := m.status(t.Context())
	if err != nil || status.Space.DHCP.Partners["NORMAL"] != 1 {
		t.Errorf("the partners are %v, %v", status.Space.DHCP.Partners, err)
	}
	source.event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.20"),
		Start: now.Unix(), Expires: now.Add(time.Hour).Unix(), MAC: "00005e005301"})
	leases := "/api/v2/networks/" + network + "/leases"
	m.Want(200, "GET", leases, "").Shows(t, map[string]string{"data.0.serverConnectionStatus": "CONNECTED"})
	point := m.Want(200, "GET", "/api/v2/servers/"+server, "").Text("servicePoint")
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+point, "")
	m.Want(200, "GET", leases, "").Shows(t, map[string]string{"data.0.serverConnectionStatus": "NOT_CONNECTED"})
	m.Verify()
}
