package dns_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"portolan/internal/base/ping"
	"portolan/internal/engine/resource"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// TestHostPolicies checks that networks state which hosts they accept, and the default zone of hosts without a zone.
func TestHostPolicies(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	other := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"external"}`)
	twin := m.ID("/api/v2/views/"+other+"/zones", `{"type":"Zone","absoluteName":"example.com"}`)
	lab := m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"lab"}`)
	addresses := "/api/v2/networks/" + network + "/addresses"
	in := func(record, want string) {
		t.Helper()
		if r := m.Want(200, "GET", "/api/v2/resourceRecords?filter=name:'"+record+"'",
			""); r.Text("data.0._links.up.href") != "/api/v2/zones/"+want || r.Text("count") != "1" {
			t.Errorf("%s is %s", record, r.Body)
		}
	}
	// The default view selects between views. The default zone contains the hosts without a zone.
	m.Refused(404, "InlinedResourceNotFound", "no zone", "POST", addresses,
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"alone"}]}`)
	m.Want(200, "PATCH", "/api/v2/blocks/"+block, `{"defaultView":{"id":`+other+`},"defaultZones":[{"id":`+lab+`}]}`, apitest.MergePatch)
	m.ID(addresses, `{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"www.example.com"}]}`)
	in("www", twin)
	m.ID(addresses, `{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"alone"}]}`,
		"x-bcn-create-reverse-record: false")
	in("alone", lab)
	host := m.Want(200, "GET", "/api/v2/resourceRecords?filter=name:'alone'", "")
	if host.Text("data.0.absoluteName") != "alone.lab.example.com" || host.Text("data.0.reverseRecord") != "false" {
		t.Errorf("the host is %s", host.Body)
	}
	m.ID(addresses, `{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"id":`+host.Text("data.0.id")+`}]}`,
		"x-bcn-create-reverse-record: true")
	if r := m.Want(200, "GET", "/api/v2/resourceRecords/"+host.Text("data.0.id"), ""); r.Text("reverseRecord") != "true" {
		t.Errorf("with a second address it is %s", r.Body)
	}
	// Restricted to one zone, hosts go there or below it and nowhere else.
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"restrictedZones":[{"id":`+lab+`}]}`, apitest.MergePatch)
	m.Refused(409, "ZoneNotAllowed", lab, "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.50"}]}`)
	m.Refused(409, "ZoneNotAllowed", lab, "POST", addresses,
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"h.example.com"}]}`)
	outside := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"outside","addresses":[{"address":"10.9.9.9"}]}`,
		"x-bcn-auto-create-network: true")
	m.Refused(409, "ZoneNotAllowed", lab, "POST", "/api/v2/resourceRecords/"+outside+"/addresses", // linked as if it were given
		`{"id":`+m.ID(addresses, `{"type":"IPv4Address","state":"STATIC"}`)+`}`)
	h := m.ID("/api/v2/zones/"+lab+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.50"}]}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"restrictedZones":[{"id":`+view+`}]}`, apitest.MergePatch)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"above","addresses":[{"address":"10.0.0.51"}]}`)
	m.Refused(409, "ZoneNotAllowed", view, "POST", "/api/v2/zones/"+twin+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.52"}]}`)
	// Duplicate names are refused if the block forbids them.
	m.Want(200, "PATCH", "/api/v2/blocks/"+block, `{"duplicateHostnamesAllowed":false}`, apitest.MergePatch)
	m.Refused(409, "DuplicateHostname", "h.lab.example.com", "PATCH", "/api/v2/resourceRecords/"+h,
		`{"addresses":[{"address":"10.0.0.50"},{"address":"10.0.0.53"}]}`, apitest.MergePatch)
	m.Refused(409, "DuplicateHostname", "h.lab.example.com", "POST", addresses,
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"id":`+h+`}]}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"duplicateHostnamesAllowed":true}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+h, `{"addresses":[{"address":"10.0.0.50"},{"address":"10.0.0.53"}]}`, apitest.MergePatch)
	m.Verify()
}

// TestAutoCreateNetwork checks that a host creates its network if the settings permit it.
func TestAutoCreateNetwork(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, _ := m.Basics()
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.7.0.0/26"}`)
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	auto, over := "x-bcn-auto-create-network: true", "x-bcn-allow-address-overlap: true"
	m.Refused(404, "InlinedResourceNotFound", "not in a network", "POST", records,
		`{"type":"HostRecord","name":"a","addresses":[{"address":"10.6.0.9"}]}`)
	m.Refused(404, "InlinedResourceNotFound", "not in a block", "POST", records,
		`{"type":"HostRecord","name":"a","addresses":[{"address":"192.0.2.9"}]}`, auto)
	m.Refused(400, "IpRangeOverlapsSiblings", "10.7.0.0/24", "POST", records, `{"type":"HostRecord","name":"a","addresses":[{"address":"10.7.0.129"}]}`,
		auto)
	m.ID(records, `{"type":"HostRecord","name":"a","addresses":[{"address":"10.6.0.9"},{"address":"2001:db8:5::1"}]}`, auto)
	m.ID(records, `{"type":"HostRecord","name":"b","addresses":[{"address":"10.8.0.1"}]}`, auto)
	m.ID(records, `{"type":"HostRecord","name":"c","addresses":[{"address":"10.7.0.129"}]}`, auto, over)
	for parent, want := range map[string]string{
		block: "10.0.0.0/24 10.6.0.0/24 10.7.0.0/26 10.7.0.128/25 10.8.0.0/24", six: "2001:db8:5::/64",
	} {
		r, got := m.Want(200, "GET", "/api/v2/blocks/"+parent+"/networks?orderBy=range", ""), ""
		for _, i := range []string{"0", "1", "2", "3", "4", "5"} {
			if text := r.Text("data." + i + ".range"); text != "" {
				got += " " + text
			}
		}
		if got != " "+want {
			t.Errorf("the networks are%s, want %s", got, want)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/networks?filter=range:'10.8.0.0/24'", ""); r.Get("data.0.gateway") != nil {
		t.Errorf("the host's network is %s", r.Body)
	}
	m.Verify()
}

// TestPingBeforeAssign checks that an address that answers a ping is not assigned if the request demands the check. No lock is held during
// the ping.
func TestPingBeforeAssign(t *testing.T) {
	apitest.SkipOnPostgreSQL(t)
	m := apitest.NewConcurrent(t, packages...)
	_, _, zone, block, network := m.Basics()
	var mu sync.Mutex
	var asked []string
	resource.Provide(m.Address.Provisions, ipam.Options{Probe: func(_ context.Context, a netip.Addr) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a.String())
		if a.String() == "10.0.0.66" {
			return false, errors.New("no way")
		}
		return a.String() == "10.0.0.2" || a.String() == "10.0.0.4", nil
	}})
	addresses := "/api/v2/networks/" + network + "/addresses"
	next := func(want string, headers ...string) {
		t.Helper()
		if a := m.Want(201, "POST", addresses, `{"type":"IPv4Address","state":"STATIC"}`, headers...); a.Text("address") != want {
			t.Errorf("the next address is %s, want %s", a.Text("address"), want)
		}
	}
	next("10.0.0.2")
	m.Want(204, "DELETE", m.Want(200, "GET", addresses+"?filter=address:'10.0.0.2'", "").Text("data.0._links.self.href"), "")
	m.Want(200, "PATCH", "/api/v2/blocks/"+block, `{"pingBeforeAssignEnabled":true}`, apitest.MergePatch)
	if len(asked) > 0 {
		t.Errorf("asked were %v", asked)
	}
	next("10.0.0.3")
	next("10.0.0.5")
	m.Refused(409, "AddressAnswers", "10.0.0.2", "POST", addresses, `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.2"}`)
	m.Refused(503, "ProbeFailed", "10.0.0.66", "POST", addresses, `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.66"}`)
	m.Refused(409, "AddressAnswers", "10.0.0.4", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.4"}]}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"pingBeforeAssignEnabled":false}`, apitest.MergePatch)
	next("10.0.0.2")
	// Loopback answers whoever asks.
	if _, err := ping.Answers(t.Context(), netip.MustParseAddr("127.0.0.1"), time.Second); errors.Is(err, ping.ErrForbidden) {
		t.Skip(err)
	}
	resource.Provide(m.Address.Provisions, ipam.Options{Probe: func(ctx context.Context, a netip.Addr) (bool, error) {
		return ping.Answers(ctx, a, time.Second)
	}})
	local := m.ID(m.Want(200, "GET", "/api/v2/blocks/"+block, "").Text("_links.up.href")+"/blocks",
		`{"type":"IPv4Block","range":"127.0.0.0/8","pingBeforeAssignEnabled":true}`)
	loop := m.ID("/api/v2/blocks/"+local+"/networks", `{"type":"IPv4Network","range":"127.0.0.0/28"}`)
	m.Refused(400, "NoSpaceForAddress", "127.0.0.0/28", "POST", "/api/v2/networks/"+loop+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`)
	wide := m.ID("/api/v2/blocks/"+local+"/networks", `{"type":"IPv4Network","range":"127.1.0.0/24"}`)
	m.Refused(400, "NoSpaceForAddress", "first 16", "POST", "/api/v2/networks/"+wide+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
}

// TestStates checks that addresses change their state by the rules. Addresses that a smaller DHCP range excludes get the requested state.
func TestStates(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	addresses := "/api/v2/networks/" + network + "/addresses"
	m.Refused(400, "InvalidResourceFieldValue", "macAddress", "POST", addresses, `{"type":"IPv4Address","state":"DHCP_RESERVED"}`)
	a := m.ID(addresses, `{"type":"IPv4Address","state":"RESERVED"}`)
	m.Refused(400, "InvalidResourceFieldValue", "macAddress", "PATCH", "/api/v2/addresses/"+a, `{"state":"DHCP_RESERVED"}`, apitest.MergePatch)
	m.Refused(409, "CreateUpdateNetworkGatewayNotSupported", "gateway", "PATCH", "/api/v2/addresses/"+a, `{"state":"GATEWAY"}`, apitest.MergePatch)
	m.Refused(400, "InvalidEnumValue", "state", "PATCH", "/api/v2/addresses/"+a, `{"state":"UNASSIGNED"}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/addresses/"+a, `{"state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:01"}}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/addresses/"+a, `{"state":"STATIC"}`, apitest.MergePatch)
	dhcp := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.120"}`)
	for _, last := range []string{"101", "119"} {
		m.ID(addresses, `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.`+last+`"}`)
	}
	m.Refused(400, "InvalidHeaderValue", "x-bcn-orphaned-address-state", "PATCH", "/api/v2/ranges/"+dhcp, `{"range":"10.0.0.110-10.0.0.120"}`,
		apitest.MergePatch, "x-bcn-orphaned-address-state: GONE")
	m.Want(200, "PATCH", "/api/v2/ranges/"+dhcp, `{"range":"10.0.0.110-10.0.0.120"}`, apitest.MergePatch, "x-bcn-orphaned-address-state: RESERVED")
	if r := m.Want(200, "GET", addresses+"?filter=address:'10.0.0.101'", ""); r.Text("data.0.state") != "RESERVED" {
		t.Errorf("left outside it is %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/ranges/"+dhcp, `{"range":"10.0.0.110-10.0.0.112"}`, apitest.MergePatch, "x-bcn-orphaned-address-state: UNASSIGNED")
	if r := m.Want(200, "GET", addresses+"?filter=address:'10.0.0.119'", ""); r.Text("count") != "0" {
		t.Errorf("released it is %s", r.Body)
	}
	m.Verify()
}
