package dhcp_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// TestUsageCountsLeases checks that leases count in the usage of networks, blocks and ranges, also after a network is split, resized or
// deleted. Leases do not count stored addresses again.
func TestUsageCountsLeases(t *testing.T) {
	m := startManager(t)
	configuration, _, _, block, network := m.Basics()
	server, source := m.LeaseServer(configuration, "dhcp1")
	at := "/api/v2/networks/" + network
	pool := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.29","exclusionRanges":["10.0.0.29"]}`)
	upper := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.140-10.0.0.149"}`)
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.21","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:21"}}`)
	start := m.Store.Now().Truncate(time.Second)
	lease := func(last int) dhcplease.Lease {
		return dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}),
			Start:   start.Unix(),
			Expires: start.Add(time.Hour).Unix(), MAC: fmt.Sprintf("00005e0053%02x", last)}
	}
	for _, last := range []int{20, 22, 23, 30, 140, 141} {
		source.Event(dhcplease.Begin, start, lease(last))
	}
	source.Event(dhcplease.Decline, start, lease(23))
	source.Event(dhcplease.Release, start, lease(22))
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
	states := at + "/addresses?" + apitest.Filter("state:in('UNASSIGNED','GATEWAY','DHCP_RESERVED')") + "&limit=1&total=true"
	if n := m.Want(200, "GET", states, "").Text("totalCount"); n != "254" {
		t.Errorf("%s addresses, with those that are free", n)
	}
	for _, one := range []struct{ last, leased, free string }{{"39", "2", "16"}, {"21", "1", "0"}, {"39", "2", "16"}} {
		r := m.Want(200, "PATCH", "/api/v2/ranges/"+pool, `{"range":"10.0.0.20-10.0.0.`+one.last+`","exclusionRanges":[]}`,
			"x-bcn-orphaned-address-state: UNASSIGNED")
		if leased, free := r.Text("utilization.leased"), r.Text("utilization.free"); leased != one.leased || free != one.free {
			t.Errorf("after the change to .%s, %s are leased and %s free, want %s and %s", one.last, leased, free, one.leased, one.free)
		}
		used(one.leased, "/api/v2/ranges/"+pool, "utilization.leased")
		used(one.free, "/api/v2/ranges/"+pool, "utilization.free")
	}
	m.Verify()
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	m.Verify()
	used("2", "/api/v2/ranges/"+pool, "utilization.leased")
	used("2", "/api/v2/ranges/"+upper, "utilization.leased")
	high := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("range:'10.0.0.128/25'"), "").Text("data.0.id")
	used("2", "/api/v2/networks/"+high, "usage.DHCP_ALLOCATED")
	m.Want(204, "DELETE", "/api/v2/networks/"+high, "")
	used("5", "/api/v2/blocks/"+block, "usagePercentage.addressAllocation.addresses")
	m.Verify()
	m.Want(204, "DELETE", "/api/v2/servers/"+server, "")
	m.Verify()
}

// TestSmallerRangeKeepsClients checks that the clients of the addresses that a smaller DHCP range leaves outside keep these, in the state
// that the request names, and that the change can be undone.
func TestSmallerRangeKeepsClients(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	at := "/api/v2/networks/" + network
	pool := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.29"}`)
	start := m.Store.Now().Truncate(time.Second)
	for _, last := range []int{21, 25, 27, 28, 29} {
		l := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}), Start: start.Unix(),
			Expires: start.Add(time.Hour).Unix(), MAC: fmt.Sprintf("00005e0053%02x", last)}
		if last == 28 { // a client without a hardware address
			l.MAC, l.ClientID = "", "01ff"
		}
		source.Event(dhcplease.Begin, start, l)
		if last == 27 {
			source.Event(dhcplease.Release, start.Add(time.Second), l)
		}
	}
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.29","state":"STATIC"}`)
	shrinks := func(last, state, want string) {
		t.Helper()
		header := "x-bcn-orphaned-address-state: " + state
		if state == "" {
			header = "x-request-without-a-state: true"
		}
		m.Want(200, "PATCH", "/api/v2/ranges/"+pool, `{"range":"10.0.0.20-10.0.0.`+last+`"}`, apitest.MergePatch, header)
		var all []string
		r := m.Want(200, "GET", at+"/addresses?orderBy=asc(address)&"+apitest.Filter("state:in('STATIC','DHCP_RESERVED','RESERVED')"), "")
		for i := range r.Count() {
			one := "data." + strconv.Itoa(i)
			all = append(all, strings.TrimSpace(r.Text(one+".address")+" "+r.Text(one+".state")+" "+r.Text(one+".macAddress.address")))
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("after the range ends at .%s with the state %q: %s, want %s", last, state, got, want)
		}
	}
	const static = "10.0.0.29 STATIC"
	shrinks("28", "", static)
	shrinks("27", "", "10.0.0.28 DHCP_RESERVED, "+static)
	shrinks("26", "UNASSIGNED", "10.0.0.28 DHCP_RESERVED, "+static)
	shrinks("24", "STATIC", "10.0.0.25 STATIC 00-00-5E-00-53-19, 10.0.0.28 DHCP_RESERVED, "+static)
	shrinks("20", "RESERVED", "10.0.0.21 RESERVED 00-00-5E-00-53-15, 10.0.0.25 STATIC 00-00-5E-00-53-19, 10.0.0.28 DHCP_RESERVED, "+static)
	m.Verify()
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	m.Verify()
}
