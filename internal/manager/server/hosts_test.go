package server

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"portolan/internal/base/ping"
)

// Networks say which hosts they take, and where those go that name no zone.
func TestHostPolicies(t *testing.T) {
	m := startAlone(t)
	configuration, view, zone, block, network := m.basics()
	other := m.id("/api/v2/configurations/"+configuration+"/views", `{"name":"external"}`)
	twin := m.id("/api/v2/views/"+other+"/zones", `{"type":"Zone","absoluteName":"example.com"}`)
	lab := m.id("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"lab"}`)
	addresses := "/api/v2/networks/" + network + "/addresses"
	in := func(record, want string) {
		t.Helper()
		if r := m.want(200, "GET", "/api/v2/resourceRecords?filter=name:'"+record+"'",
			""); r.text("data.0._links.up.href") != "/api/v2/zones/"+want || r.text("count") != "1" {
			t.Errorf("%s is %s", record, r.body)
		}
	}
	// The default view decides between views, the default zone takes what lies in no zone.
	m.refused(404, "InlinedResourceNotFound", "no zone", "POST", addresses,
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"alone"}]}`)
	m.want(200, "PATCH", "/api/v2/blocks/"+block, `{"defaultView":{"id":`+other+`},"defaultZones":[{"id":`+lab+`}]}`, mergePatch)
	m.id(addresses, `{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"www.example.com"}]}`)
	in("www", twin)
	m.id(addresses, `{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"alone"}]}`,
		"x-bcn-create-reverse-record: false")
	in("alone", lab)
	host := m.want(200, "GET", "/api/v2/resourceRecords?filter=name:'alone'", "")
	if host.text("data.0.absoluteName") != "alone.lab.example.com" || host.text("data.0.reverseRecord") != "false" {
		t.Errorf("the host is %s", host.body)
	}
	m.id(addresses, `{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"id":`+host.text("data.0.id")+`}]}`,
		"x-bcn-create-reverse-record: true")
	if r := m.want(200, "GET", "/api/v2/resourceRecords/"+host.text("data.0.id"), ""); r.text("reverseRecord") != "true" {
		t.Errorf("with a second address it is %s", r.body)
	}
	// Restricted to one zone, hosts go there or below it and nowhere else.
	m.want(200, "PATCH", "/api/v2/networks/"+network, `{"restrictedZones":[{"id":`+lab+`}]}`, mergePatch)
	m.refused(409, "ZoneNotAllowed", lab, "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.50"}]}`)
	m.refused(409, "ZoneNotAllowed", lab, "POST", addresses,
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"h.example.com"}]}`)
	outside := m.id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"outside","addresses":[{"address":"10.9.9.9"}]}`,
		"x-bcn-auto-create-network: true")
	m.refused(409, "ZoneNotAllowed", lab, "POST", "/api/v2/resourceRecords/"+outside+"/addresses", // linked as if it were given
		`{"id":`+m.id(addresses, `{"type":"IPv4Address","state":"STATIC"}`)+`}`)
	h := m.id("/api/v2/zones/"+lab+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.50"}]}`)
	m.want(200, "PATCH", "/api/v2/networks/"+network, `{"restrictedZones":[{"id":`+view+`}]}`, mergePatch)
	m.id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"above","addresses":[{"address":"10.0.0.51"}]}`)
	m.refused(409, "ZoneNotAllowed", view, "POST", "/api/v2/zones/"+twin+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.52"}]}`)
	// No name twice, where the block says so.
	m.want(200, "PATCH", "/api/v2/blocks/"+block, `{"duplicateHostnamesAllowed":false}`, mergePatch)
	m.refused(409, "DuplicateHostname", "h.lab.example.com", "PATCH", "/api/v2/resourceRecords/"+h,
		`{"addresses":[{"address":"10.0.0.50"},{"address":"10.0.0.53"}]}`, mergePatch)
	m.refused(409, "DuplicateHostname", "h.lab.example.com", "POST", addresses,
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"id":`+h+`}]}`)
	m.want(200, "PATCH", "/api/v2/networks/"+network, `{"duplicateHostnamesAllowed":true}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/resourceRecords/"+h, `{"addresses":[{"address":"10.0.0.50"},{"address":"10.0.0.53"}]}`, mergePatch)
	m.verify()
}

// A host brings its network along where it may.
func TestAutoCreateNetwork(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, block, _ := m.basics()
	six := m.id("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.7.0.0/26"}`)
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	auto, over := "x-bcn-auto-create-network: true", "x-bcn-allow-address-overlap: true"
	m.refused(404, "InlinedResourceNotFound", "no network", "POST", records,
		`{"type":"HostRecord","name":"a","addresses":[{"address":"10.6.0.9"}]}`)
	m.refused(404, "InlinedResourceNotFound", "no block", "POST", records,
		`{"type":"HostRecord","name":"a","addresses":[{"address":"192.0.2.9"}]}`, auto)
	m.refused(400, "IpRangeOverlapsSiblings", "10.7.0.0/24", "POST", records, `{"type":"HostRecord","name":"a","addresses":[{"address":"10.7.0.129"}]}`,
		auto)
	m.id(records, `{"type":"HostRecord","name":"a","addresses":[{"address":"10.6.0.9"},{"address":"2001:db8:5::1"}]}`, auto)
	m.id(records, `{"type":"HostRecord","name":"b","addresses":[{"address":"10.8.0.1"}]}`, auto)
	m.id(records, `{"type":"HostRecord","name":"c","addresses":[{"address":"10.7.0.129"}]}`, auto, over)
	for parent, want := range map[string]string{
		block: "10.0.0.0/24 10.6.0.0/24 10.7.0.0/26 10.7.0.128/25 10.8.0.0/24", six: "2001:db8:5::/64",
	} {
		r, got := m.want(200, "GET", "/api/v2/blocks/"+parent+"/networks?orderBy=range", ""), ""
		for _, i := range []string{"0", "1", "2", "3", "4", "5"} {
			if text := r.text("data." + i + ".range"); text != "" {
				got += " " + text
			}
		}
		if got != " "+want {
			t.Errorf("the networks are%s, want %s", got, want)
		}
	}
	if r := m.want(200, "GET", "/api/v2/networks?filter=range:'10.8.0.0/24'", ""); r.get("data.0.gateway") != nil {
		t.Errorf("the host's network is %s", r.body)
	}
	m.verify()
}

// Where it is asked for, an address that answers is not handed out; nothing is locked meanwhile.
func TestPingBeforeAssign(t *testing.T) {
	m := startManager(t)
	_, _, zone, block, network := m.basics()
	var mu sync.Mutex
	var asked []string
	m.Address.Probe = func(_ context.Context, a netip.Addr) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a.String())
		if a.String() == "10.0.0.66" {
			return false, errors.New("no way")
		}
		return a.String() == "10.0.0.2" || a.String() == "10.0.0.4", nil
	}
	addresses := "/api/v2/networks/" + network + "/addresses"
	next := func(want string, headers ...string) {
		t.Helper()
		if a := m.want(201, "POST", addresses, `{"type":"IPv4Address","state":"STATIC"}`, headers...); a.text("address") != want {
			t.Errorf("the next address is %s, want %s", a.text("address"), want)
		}
	}
	next("10.0.0.2")
	m.want(204, "DELETE", m.want(200, "GET", addresses+"?filter=address:'10.0.0.2'", "").text("data.0._links.self.href"), "")
	m.want(200, "PATCH", "/api/v2/blocks/"+block, `{"pingBeforeAssignEnabled":true}`, mergePatch)
	if len(asked) > 0 {
		t.Errorf("asked were %v", asked)
	}
	next("10.0.0.3")
	next("10.0.0.5")
	m.refused(409, "AddressAnswers", "10.0.0.2", "POST", addresses, `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.2"}`)
	m.refused(503, "ProbeFailed", "10.0.0.66", "POST", addresses, `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.66"}`)
	m.refused(409, "AddressAnswers", "10.0.0.4", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.4"}]}`)
	m.want(200, "PATCH", "/api/v2/networks/"+network, `{"pingBeforeAssignEnabled":false}`, mergePatch)
	next("10.0.0.2")
	// Loopback answers whoever asks.
	if _, err := ping.Answers(t.Context(), netip.MustParseAddr("127.0.0.1"), probeTime); errors.Is(err, ping.ErrForbidden) {
		t.Skip(err)
	}
	m.Address.Probe = func(ctx context.Context, a netip.Addr) (bool, error) { return ping.Answers(ctx, a, probeTime) }
	local := m.id(m.want(200, "GET", "/api/v2/blocks/"+block, "").text("_links.up.href")+"/blocks",
		`{"type":"IPv4Block","range":"127.0.0.0/8","pingBeforeAssignEnabled":true}`)
	loop := m.id("/api/v2/blocks/"+local+"/networks", `{"type":"IPv4Network","range":"127.0.0.0/28"}`)
	m.refused(400, "NoSpaceForAddress", "127.0.0.0/28", "POST", "/api/v2/networks/"+loop+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`)
	wide := m.id("/api/v2/blocks/"+local+"/networks", `{"type":"IPv4Network","range":"127.1.0.0/24"}`)
	m.refused(400, "NoSpaceForAddress", "first 16", "POST", "/api/v2/networks/"+wide+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
}

// Addresses change their state as rules allow, and those that a smaller DHCP range leaves outside get the
// one that is asked for.
func TestStates(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.basics()
	addresses := "/api/v2/networks/" + network + "/addresses"
	m.refused(400, "InvalidResourceFieldValue", "macAddress", "POST", addresses, `{"type":"IPv4Address","state":"DHCP_RESERVED"}`)
	a := m.id(addresses, `{"type":"IPv4Address","state":"RESERVED"}`)
	m.refused(400, "InvalidResourceFieldValue", "macAddress", "PATCH", "/api/v2/addresses/"+a, `{"state":"DHCP_RESERVED"}`, mergePatch)
	m.refused(409, "CreateUpdateNetworkGatewayNotSupported", "gateway", "PATCH", "/api/v2/addresses/"+a, `{"state":"GATEWAY"}`, mergePatch)
	m.refused(400, "InvalidEnumValue", "state", "PATCH", "/api/v2/addresses/"+a, `{"state":"UNASSIGNED"}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/addresses/"+a, `{"state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:01"}}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/addresses/"+a, `{"state":"STATIC"}`, mergePatch)
	dhcp := m.id("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.120"}`)
	for _, last := range []string{"101", "119"} {
		m.id(addresses, `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.`+last+`"}`)
	}
	m.refused(400, "InvalidHeaderValue", "x-bcn-orphaned-address-state", "PATCH", "/api/v2/ranges/"+dhcp, `{"range":"10.0.0.110-10.0.0.120"}`,
		mergePatch, "x-bcn-orphaned-address-state: GONE")
	m.want(200, "PATCH", "/api/v2/ranges/"+dhcp, `{"range":"10.0.0.110-10.0.0.120"}`, mergePatch, "x-bcn-orphaned-address-state: RESERVED")
	if r := m.want(200, "GET", addresses+"?filter=address:'10.0.0.101'", ""); r.text("data.0.state") != "RESERVED" {
		t.Errorf("left outside it is %s", r.body)
	}
	m.want(200, "PATCH", "/api/v2/ranges/"+dhcp, `{"range":"10.0.0.110-10.0.0.112"}`, mergePatch, "x-bcn-orphaned-address-state: UNASSIGNED")
	if r := m.want(200, "GET", addresses+"?filter=address:'10.0.0.119'", ""); r.text("count") != "0" {
		t.Errorf("released it is %s", r.body)
	}
	m.verify()
}
