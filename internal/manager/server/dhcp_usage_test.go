package server

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcplease"
)

// TestUsageCountsLeases checks that leases count in the usage of networks, blocks and ranges, also after a network is split, resized or
// deleted. Leases do not count stored addresses again.
func TestUsageCountsLeases(t *testing.T) {
	m := startManager(t)
	configuration, _, _, block, network := m.Basics()
	server, source := m.leaseServer(configuration, "dhcp1")
	at := "/api/v2/networks/" + network
	pool := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.29","exclusionRanges":["10.0.0.29"]}`)
	upper := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.140-10.0.0.149"}`)
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.21","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:21"}}`)
	start := m.Store.Now().Truncate(time.Second)
	lease := func(last int) dhcplease.Lease {
		return dhcplease.Lease{Network: int64Of(t, network), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}), Start: start.Unix(),
			Expires: start.Add(time.Hour).Unix(), MAC: fmt.Sprintf("00005e0053%02x", last)}
	}
	for _, last := range []int{20, 22, 23, 30, 140, 141} {
		source.event(dhcplease.Begin, start, lease(last))
	}
	source.event(dhcplease.Decline, start, lease(23))
	source.event(dhcplease.Release, start, lease(22))
	used := func(want string, path, field string) {
		t.Helper()
		if got := m.Want(200, "GET", path, "").Text(field); got != want {
			t.Errorf("%s of %s is %s, want %s", field, path, got, want)
		}
	}
	used("4", at, "usage.DHCP_ALLOCATED")
	used("1", at, "usage.DHCP_ABANDONED")
	used("7", "/api/v2/blocks/"+block, "usagePercentage.addressAllocation.addresses") // with the gateway and the reservation
	for field, want := range map[string]string{"addresses": "9", "leased": "1", "reserved": "1", "abandoned": "1", "assigned": "0",
		"excluded": "1", "free": "6", "percent": "33", "leasesPerHour": "", "fullInHours": ""} {
		used(want, "/api/v2/ranges/"+pool, "utilization."+field)
	}
	if n := m.Want(200, "GET", at+"/addresses", "").Count(); n != 2 {
		t.Errorf("%d addresses are stored", n)
	}
	states := at + "/addresses?" + filter("state:in('UNASSIGNED','GATEWAY','DHCP_RESERVED')") + "&limit=1&total=true"
	if n := m.Want(200, "GET", states, "").Text("totalCount"); n != "254" {
		t.Errorf("%s addresses, with those that are free", n)
	}
	m.Want(200, "PATCH", "/api/v2/ranges/"+pool, `{"range":"10.0.0.20-10.0.0.39"}`)
	used("2", "/api/v2/ranges/"+pool, "utilization.leased")
	m.Verify()
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	m.Verify()
	used("2", "/api/v2/ranges/"+pool, "utilization.leased")
	used("2", "/api/v2/ranges/"+upper, "utilization.leased")
	high := m.Want(200, "GET", "/api/v2/networks?"+filter("range:'10.0.0.128/25'"), "").Text("data.0.id")
	used("2", "/api/v2/networks/"+high, "usage.DHCP_ALLOCATED")
	m.Want(204, "DELETE", "/api/v2/networks/"+high, "")
	used("5", "/api/v2/blocks/"+block, "usagePercentage.addressAllocation.addresses")
	m.Verify()
	m.Want(204, "DELETE", "/api/v2/servers/"+server, "")
	m.Verify()
}

// TestForecastOfRange checks the forecast of a range that fills. One of the managers takes the samples.
func TestForecastOfRange(t *testing.T) {
	m := startOnce(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.leaseServer(configuration, "dhcp1")
	at := "/api/v2/networks/" + network
	pool := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.199"}`)
	now := m.Store.Now().Truncate(time.Second)
	for hour := range 5 {
		for n := range 10 {
			source.event(dhcplease.Begin, now, dhcplease.Lease{Network: int64Of(t, network),
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
