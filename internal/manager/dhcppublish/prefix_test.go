package dhcppublish_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// prefixPlan is a server with a network whose clients get addresses, and prefixes of a range in the same network.
func prefixPlan(t *testing.T) (p *dhcpPlan, prefixes string) {
	t.Helper()
	m := startAlone(t)
	p = m.dhcpServer()
	block := m.ID("/api/v2/configurations/"+p.configuration+"/blocks", `{"type":"IPv6Block","name":"six","range":"2001:db8::/32"}`)
	p.network = m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv6Network","name":"quay6","range":"2001:db8:100::/48"}`)
	p.server = m.ID("/api/v2/configurations/"+p.configuration+"/servers", `{"type":"Server","name":"dhcp6","profile":"DNS_DHCP_SERVER_20",`+
		`"interfaces":[{"managementAddress":"2001:db8:100::5"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+p.server+"/interfaces", "").Text("data.0.id")
	m.ID("/api/v2/blocks/"+block+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	at := "/api/v2/networks/" + p.network
	m.ID(at+"/ranges", `{"type":"IPv6DHCPRange","range":"2001:db8:100::100-2001:db8:100::1ff"}`)
	prefixes = m.ID(at+"/ranges", `{"type":"IPv6DHCPRange","name":"homes",`+
		`"range":"2001:db8:100:8000::-2001:db8:100:83ff:ffff:ffff:ffff:ffff"}`)
	m.ID("/api/v2/ranges/"+prefixes+"/deploymentOptions", `{"type":"DHCPv6ServiceOption","name":"delegated-prefix-length","value":56}`)
	return p, prefixes
}

// TestPrefixExplanation checks that the explanation answers for a delegated prefix as for an address: a free prefix, the wish of the
// client, the lease that it holds, and the reason for none.
func TestPrefixExplanation(t *testing.T) {
	p, prefixes := prefixPlan(t)
	m := p.manager
	explain := func(query string) apitest.Reply {
		t.Helper()
		return m.Want(200, "GET", "/api/v2/dhcpExplanation?planned=true&network="+p.network+query, "")
	}
	is := func(query, address, length, within string) {
		t.Helper()
		r := explain(query)
		if address == "" {
			address = r.Text("address")
		}
		if r.Text("reply") != "ADVERTISE" || r.Text("address") != address || r.Text("prefixLength") != length ||
			(r.Text("range") == prefixes) != (length != "") || !netip.MustParsePrefix(within).Contains(netip.MustParseAddr(r.Text("address"))) {
			t.Errorf("%s: %s", query, r.Body)
		}
		if want := address + "/56 is free"; length != "" && !strings.Contains(string(r.Body), want) &&
			!strings.Contains(string(r.Body), "asks for "+address+"/56") {
			t.Errorf("%s: no rule names %s/56: %s", query, address, r.Body)
		}
	}
	const client = "&macAddress=02:00:00:00:00:01"
	is(client, "", "", "2001:db8:100::100/120")
	is(client+"&prefix=true", "", "56", "2001:db8:100:8000::/54")
	is(client+"&prefix=true&requested=2001:db8:100:8200::/56", "2001:db8:100:8200::", "56", "2001:db8:100:8000::/54")
	is(client+"&prefix=true&requested=::/60", "", "56", "2001:db8:100:8000::/54")
	_, source := m.LeaseServer(p.configuration, "dhcp7")
	now := m.Store.Now().Unix()
	lease := func(mac, iaid int, address string) dhcplease.Lease {
		return dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr(address), PrefixLength: 56, Start: now,
			Expires: now + 3600, DUID: fmt.Sprintf("000300010200000000%02x", mac), IAID: uint32(iaid)} //nolint:gosec // small
	}
	begin := func(l dhcplease.Lease) { source.Event(dhcplease.Begin, time.Unix(now, 0), l) }
	begin(lease(1, 7, "2001:db8:100:8100::"))
	is(client+"&prefix=true&iaid=7", "2001:db8:100:8100::", "56", "2001:db8:100:8000::/54")
	r := explain("&macAddress=02:00:00:00:00:02&prefix=true&requested=2001:db8:100:8100::/56")
	if r.Text("address") == "2001:db8:100:8100::" || r.Text("address") == "" {
		t.Errorf("another client gets %s", r.Body)
	}
	for i, address := range []string{"2001:db8:100:8000::", "2001:db8:100:8200::", "2001:db8:100:8300::"} {
		begin(lease(3+i, 1, address))
	}
	if r := explain("&macAddress=02:00:00:00:00:02&prefix=true"); r.Text("reply") != "ADVERTISE" || r.Text("address") != "" ||
		r.Text("reason") != string(dhcpdata.Exhausted) || !strings.Contains(string(r.Body), "has no free prefix") {
		t.Errorf("with all prefixes delegated: %s", r.Body)
	}
	for query, field := range map[string]string{"&prefix=x": "prefix", "&prefix=true&requested=2001:db8::1": "requested",
		"&prefix=true&requested=::/0": "requested", "&requested=2001:db8::/56": "requested",
		"&prefix=true&requested=10.0.0.0/24": "requested"} {
		m.Refused(400, "InvalidQueryParameterValue", field, "GET", "/api/v2/dhcpExplanation?network="+p.network+client+query, "")
	}
	block := m.ID("/api/v2/configurations/"+p.configuration+"/blocks", `{"type":"IPv4Block","range":"192.0.2.0/24"}`)
	v4 := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"192.0.2.0/24"}`)
	m.Refused(400, "InvalidQueryParameterValue", "prefix", "GET", "/api/v2/dhcpExplanation?network="+v4+client+"&prefix=true", "")
}

// TestPrefixSpans checks that the lease and the spans of a delegated prefix are found by the prefix and by each address in it, that a
// prefix of another length begins a span, and that a prefix is not reserved.
func TestPrefixSpans(t *testing.T) {
	p, _ := prefixPlan(t)
	m := p.manager
	server, source := m.LeaseServer(p.configuration, "dhcp7")
	start := m.Store.Now().Truncate(time.Second).Add(-time.Hour)
	lease := dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr("2001:db8:100:8100::"), PrefixLength: 56,
		Start: start.Unix(), Expires: start.Add(24 * time.Hour).Unix(), DUID: "00030001020000000001", IAID: 7}
	source.Event(dhcplease.Begin, start, lease)
	address := lease
	address.Address, address.PrefixLength, address.IAID = netip.MustParseAddr("2001:db8:100::177"), 0, 1
	source.Event(dhcplease.Begin, start, address)
	for _, collection := range []string{"leases", "leaseSpans", "networks/" + p.network + "/leaseSpans"} {
		for text, want := range map[string]string{"prefix:'2001:db8:100:8100::/56'": "2001:db8:100:8100::/56",
			"prefix:contains('2001:db8:100:81ff::9')": "2001:db8:100:8100::/56", "prefix:contains('2001:db8:100:8100::')": "2001:db8:100:8100::/56",
			"prefix:contains('2001:db8:100:8110::/60')":           "2001:db8:100:8100::/56",
			"prefix:in('2001:db8::/56','2001:db8:100:8100::/56')": "2001:db8:100:8100::/56",
			"prefix:ne(null)":                     "2001:db8:100:8100::/56",
			"prefix:null":                         "",
			"prefix:ne('2001:db8:100:8100::/56')": "",
			"address:'2001:db8:100:8100::' or prefix:contains('::1')": "2001:db8:100:8100::/56"} {
			r := m.Want(200, "GET", "/api/v2/"+collection+"?"+apitest.Filter(text), "")
			if r.Count() != 1 || r.Text("data.0.prefix") != want {
				t.Errorf("%s with %s: %s", collection, text, r.Body)
			}
		}
		for _, text := range []string{"prefix:'2001:db8:100:8100::/60'", "prefix:'2001:db8:100:8100::'", "prefix:contains('2001:db8:100:8200::')",
			"prefix:contains('2001:db8:100:8000::/52')", "prefix:contains('2001:db8:100::177')", "prefix:contains('10.0.0.1')"} {
			m.Want(200, "GET", "/api/v2/"+collection+"?"+apitest.Filter(text), "").None(t)
		}
		m.Want(400, "GET", "/api/v2/"+collection+"?"+apitest.Filter("prefix:contains('x')"), "")
		m.Want(400, "GET", "/api/v2/"+collection+"?"+apitest.Filter("prefix:gt('2001:db8::/56')"), "")
	}
	for _, text := range []string{"address", "macAddress"} { // the API and CSV have the member
		if r := m.Want(200, "GET", "/api/v2/leaseSpans?fields=prefix,"+text+"&"+apitest.Filter("prefix:ne(null)"),
			""); r.Text("data.0.prefix") == "" {
			t.Errorf("the fields are %s", r.Body)
		}
	}
	for _, action := range []string{"RESERVE", "END_LEASE"} {
		path, body := "/api/v2/networks/"+p.network+"/leaseActions", `{"address":"2001:db8:100:8100::","action":"`+action+`"}`
		if action == "RESERVE" {
			m.Refused(409, "ResourceConflictsWithOther", "", "POST", path, body)
			continue
		}
		m.Want(201, "POST", path, body)
	}
	longer := lease
	longer.PrefixLength, longer.Start = 60, start.Add(time.Minute).Unix()
	source.Event(dhcplease.Change, start.Add(time.Minute), longer)
	r := m.Want(200, "GET", "/api/v2/leaseSpans?orderBy=asc(startDateTime)&"+apitest.Filter("address:'2001:db8:100:8100::'"), "")
	if r.Count() != 2 || r.Text("data.0.endReason") != "REPLACED" || r.Text("data.0.prefix") != "2001:db8:100:8100::/56" ||
		r.Text("data.1.prefix") != "2001:db8:100:8100::/60" || r.Text("data.1.endDateTime") != "" {
		t.Errorf("after a prefix of another length: %s", r.Body)
	}
	m.Verify()
	// A server that has lost its leases gets the prefix and the address back, with the association and the DUID.
	list := m.Store.Now().Unix() << 30
	source.Send(dhcplease.Record{At: m.Store.Now().UnixMilli(),
		Snapshot: &dhcplease.Snapshot{ID: uint64(list), Last: true, Lost: true}}) //nolint:gosec // not negative
	if r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("server.id:"+server), ""); r.Count() != 0 {
		t.Errorf("the server still has %s", r.Body)
	}
	var orders []dhcpdata.Order
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var text string
			var o dhcpdata.Order
			if err := scan(&text); err != nil {
				return err
			}
			err := json.Unmarshal([]byte(text), &o)
			orders = append(orders, o)
			return err
		}, "SELECT data FROM dhcp_lease_import ORDER BY low")
	}); err != nil {
		t.Fatal(err)
	}
	if len(orders) != 2 || orders[0].Lease.PrefixLength != 0 || orders[0].Lease.IAID != 1 || orders[1].Lease.PrefixLength != 60 ||
		orders[1].Lease.IAID != 7 || fmt.Sprintf("%x", []byte(orders[1].Lease.DUID)) != lease.DUID {
		t.Errorf("the orders are %+v", orders)
	}
	m.Verify()
}

// TestReserve6IsUndone checks that the reservation of the address of a DHCPv6 lease is one transaction that can be undone.
func TestReserve6IsUndone(t *testing.T) {
	p, _ := prefixPlan(t)
	m := p.manager
	_, source := m.LeaseServer(p.configuration, "dhcp7")
	now := m.Store.Now().Truncate(time.Second)
	source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, p.network),
		Address: netip.MustParseAddr("2001:db8:100::177"),
		Start:   now.Unix(), Expires: now.Add(time.Hour).Unix(), DUID: "00030001020000000001", IAID: 7})
	r := m.Want(201, "POST", "/api/v2/networks/"+p.network+"/leaseActions", `{"address":"2001:db8:100::177","action":"RESERVE"}`)
	state := func(want string) {
		t.Helper()
		if l := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'2001:db8:100::177'"), ""); l.Text("data.0.state") != want {
			t.Errorf("the lease is %s, want %s", l.Body, want)
		}
		m.Verify()
	}
	state("DHCP_LEASED")
	reserved := m.Want(200, "GET", "/api/v2/addresses/"+r.Text("reservation.id"), "")
	if reserved.Text("state") != "DHCP_RESERVED" || reserved.Text("reservedUsing") != "CLIENT_DUID" ||
		reserved.Text("clientIdentifier.duid") != "00030001020000000001" {
		t.Errorf("the reservation is %s", reserved.Body)
	}
	last := m.Want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "").Text("data.0.id")
	m.Want(201, "POST", "/api/v2/transactions", `{"type":"Transaction","transactionType":"UNDO","transactionId":`+last+`}`)
	m.Want(404, "GET", "/api/v2/addresses/"+r.Text("reservation.id"), "")
	state("DHCP_ALLOCATED")
	if r := m.Want(200, "GET", "/api/v2/networks/"+p.network+"/leaseActions", ""); r.Count() != 1 || r.Text("data.0.reservation.id") != "" {
		t.Errorf("after the undo the actions are %s", r.Body)
	}
	id := m.ID("/api/v2/networks/"+p.network+"/addresses", `{"type":"IPv6Address","address":"2001:db8:100::177","state":"DHCP_RESERVED",`+
		`"clientIdentifier":{"duid":"00030001020000000001"}}`)
	state("DHCP_LEASED")
	m.Want(200, "PATCH", "/api/v2/addresses/"+id, `{"state":"STATIC"}`, apitest.MergePatch)
	state("DHCP_ALLOCATED")
}

// TestDelegatedLengthKeepsLeases checks that a range gets another delegated length only when no client has a prefix of the deployed one. A
// lease of a reserved address does not count.
func TestDelegatedLengthKeepsLeases(t *testing.T) {
	p, prefixes := prefixPlan(t)
	m := p.manager
	p.point = "dhcp6"
	m.Want(200, "PATCH", "/api/v2/servers/"+p.server, `{"servicePoint":"dhcp6"}`, apitest.MergePatch)
	_, source := m.LeaseServer(p.configuration, "dhcp7")
	start := m.Store.Now().Truncate(time.Second).Add(-time.Hour)
	lease := dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr("2001:db8:100:8110::"), PrefixLength: 60,
		Start: start.Unix(), Expires: start.Add(24 * time.Hour).Unix(), DUID: "00030001020000000001", IAID: 7}
	source.Event(dhcplease.Begin, start, lease)
	own := m.ID("/api/v2/networks/"+p.network+"/addresses", `{"type":"IPv6Address","address":"2001:db8:100:8200::1","state":"DHCP_RESERVED",`+
		`"reservedUsing":"CLIENT_DUID","clientIdentifier":{"duid":"00:03:00:01:02:00:00:00:00:0a"}}`)
	reserved := lease
	reserved.Address, reserved.PrefixLength, reserved.DUID = netip.MustParseAddr("2001:db8:100:8200::1"), 0, "0003000102000000000a"
	reserved.Reservation = apitest.Number(t, own)
	source.Event(dhcplease.Begin, start, reserved)
	deploy := func() string {
		return m.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv6"}`)
	}
	option := func(length int) {
		all := m.Want(200, "GET", "/api/v2/ranges/"+prefixes+"/deploymentOptions", "")
		m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+all.Text("data.0.id"), "")
		m.ID("/api/v2/ranges/"+prefixes+"/deploymentOptions", fmt.Sprintf(`{"type":"DHCPv6ServiceOption","name":"delegated-prefix-length","value":%d}`, length))
	}
	refused := func() {
		t.Helper()
		if got := deploytest.Await(&m.Client, deploy(), "FAILED"); !strings.Contains(got,
			"is one of prefixes of the length 56, and has 1 lease of others") {
			t.Errorf("the message is %s", got)
		}
	}
	refused()
	completes := func() {
		t.Helper()
		deploytest.AwaitPoint(&m.Client, deploy())
		p.fetch()
		p.confirms(p.revision)
	}
	option(60)
	completes()
	option(56)
	refused()
	source.Event(dhcplease.End, start.Add(time.Minute), lease)
	completes()
}

// TestDelegatedLengthIsOfTheRange checks that a deployment refuses a delegated length that the manager does not read: of one server, or in
// a raw option.
func TestDelegatedLengthIsOfTheRange(t *testing.T) {
	p, prefixes := prefixPlan(t)
	m := p.manager
	at := "/api/v2/ranges/" + prefixes
	m.Want(200, "PATCH", "/api/v2/servers/"+p.server, `{"servicePoint":"dhcp6"}`, apitest.MergePatch)
	refused := func(want string) {
		t.Helper()
		id := m.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv6"}`)
		if got := deploytest.Await(&m.Client, id, "FAILED"); !strings.Contains(got, want) {
			t.Errorf("the message is %s, want %s", got, want)
		}
	}
	option := m.Want(200, "GET", at+"/deploymentOptions", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/deploymentOptions/"+option, `{"serverScope":{"id":`+p.server+`}}`, apitest.MergePatch)
	refused("has a serverScope")
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+option, "")
	m.ID(at+"/deploymentOptions", `{"type":"DHCPv6RawOption","name":"raw","value":"delegated-prefix-length 56;"}`)
	refused("set the service option delegated-prefix-length")
}
