package dhcppublish_test

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// noLeases is a view of leases without any.
type noLeases struct{ dhcpdata.Leases }

func (noLeases) Lease(netip.Addr) (l dhcpdata.LeaseState, ok bool)          { return l, false }
func (noLeases) ClientLease(int64, string) (l dhcpdata.LeaseState, ok bool) { return l, false }
func (noLeases) OtherLeases(int64, string) []dhcpdata.LeaseState            { return nil }
func (noLeases) CountUsed(int64) uint64                                     { return 0 }
func (noLeases) Exhausted(int64) bool                                       { return false }

// TestDHCPv6Deployment checks that a full deployment of DHCPv6 compiles ranges, reservations by DUID and options.
func TestDHCPv6Deployment(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	block := m.ID("/api/v2/configurations/"+p.configuration+"/blocks", `{"type":"IPv6Block","name":"six","range":"2001:db8::/32"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv6Network","name":"quay6","range":"2001:db8:0:1::/64"}`)
	p.point = "dhcp6"
	p.server = m.ID("/api/v2/configurations/"+p.configuration+"/servers", `{"type":"Server","name":"dhcp6","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+p.point+`","interfaces":[{"managementAddress":"2001:db8:0:1::5"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+p.server+"/interfaces", "").Text("data.0.id")
	m.ID("/api/v2/blocks/"+block+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	at := "/api/v2/networks/" + network
	m.ID(at+"/ranges", `{"type":"IPv6DHCPRange","range":"2001:db8:0:1::100-2001:db8:0:1::1ff"}`)
	m.ID(at+"/addresses", `{"type":"IPv6Address","address":"2001:db8:0:1::9","state":"DHCP_RESERVED","reservedUsing":"CLIENT_DUID",`+
		`"clientIdentifier":{"duid":"00:03:00:01:02:00:00:00:00:09"}}`)
	m.ID(at+"/deploymentOptions", `{"type":"DHCPv6ServiceOption","name":"default-lease-time","value":7200}`)
	unicast := m.ID(at+"/deploymentOptions", `{"type":"DHCPv6ClientOption","name":"unicast","value":"2001:db8::5"}`)
	refused := p.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv6"}`)
	if got := deploytest.Await(&p.Client, refused, "FAILED"); !strings.Contains(got,
		"option unicast of IPv6Network 2001:db8:0:1::/64 (quay6)") {
		t.Errorf("the message is %s", got)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+unicast, "")
	m.ID(at+"/deploymentOptions", `{"type":"DHCPv6ClientOption","name":"vendor-opts","value":"00000009000100015a"}`)
	id := p.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv6"}`)
	deploytest.AwaitPoint(&p.Client, id)
	p.fetch()
	deny := m.Want(200, "GET", "/api/v2/configurations/"+p.configuration+"/macPools", "").Text("data.0.id")
	m.ID("/api/v2/configurations/"+p.configuration+"/macAddresses", `{"address":"02:00:00:00:00:66","macPool":{"id":`+deny+`}}`)
	apitest.Eventually(t, "the server of DHCPv6 knows the pool DENY", func() bool {
		p.fetch()
		return strings.Contains(strings.Join(p.items(dhcpdata.MACPoolUnit(apitest.Number(t, deny))), "\n"), "020000000066")
	})
	for _, planned := range []string{"", "&planned=true"} {
		m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+network+"&macAddress=02:00:00:00:00:66"+planned, "").Shows(t,
			map[string]string{"reason": "denied-mac-pool"})
	}
	c, err := dhcpdata.Compile(p.units, nil)
	if err != nil {
		t.Fatal(err)
	}
	message := &dhcpmsg.Message6{Type: dhcpmsg.InformationRequest6, Options: dhcpmsg.Options6{
		{Code: dhcpmsg.OptRequest6, Data: []byte{0, 17}}}}
	d := dhcpdata.Decide6(c, &dhcpdata.Facts6{Message: message, Interface: []netip.Prefix{netip.MustParsePrefix("2001:db8:0:1::1/64")}},
		noLeases{}, 1000)
	if o := d.Options[len(d.Options)-1]; o.Code != 17 || o.Name != "vendor-opts" || hex.EncodeToString(o.Value) != "00000009000100015a" {
		t.Errorf("the vendor options are %+v", o)
	}
	for client, want := range map[byte]string{9: "2001:db8:0:1::9/128", 1: "2001:db8:0:1::100/120"} {
		message := &dhcpmsg.Message6{Type: dhcpmsg.Request6, Options: dhcpmsg.Options6{
			{Code: dhcpmsg.OptClientID6, Data: []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, client}}, {Code: dhcpmsg.OptServerID6, Data: c.ServerDUID()},
			{Code: dhcpmsg.OptIANA6, Data: make([]byte, 12)}}}
		d := dhcpdata.Decide6(c, &dhcpdata.Facts6{Message: message, Interface: []netip.Prefix{netip.MustParsePrefix("2001:db8:0:1::1/64")}},
			noLeases{}, 1000)
		if len(d.Changes) != 1 || !netip.MustParsePrefix(want).Contains(d.Changes[0].Address) || d.Changes[0].Valid != 7200 {
			t.Errorf("client %d gets %+v, %s", client, d.Changes, d.Reason)
		}
	}
	explain := func(query string) apitest.Reply {
		t.Helper()
		return m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+network+query, "")
	}
	facts := dhcpdata.Facts6{Message: &dhcpmsg.Message6{Type: dhcpmsg.Solicit6, Options: dhcpmsg.Options6{
		{Code: dhcpmsg.OptClientID6, Data: []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 1}},
		{Code: dhcpmsg.OptIANA6, Data: append([]byte{0, 0, 0, 1}, make([]byte, 8)...)}}},
		Interface: []netip.Prefix{netip.MustParsePrefix("2001:db8:0:1::1/64")}}
	offered := dhcpdata.Decide6(c, &facts, noLeases{}, 1000).Changes[0].Address.String()
	for _, planned := range []string{"", "&planned=true"} {
		r := explain("&clientIdentifier=00:03:00:01:02:00:00:00:00:09" + planned)
		if r.Text("reply") != "ADVERTISE" || r.Text("address") != "2001:db8:0:1::9" || r.Text("reservation") == "" ||
			r.Text("leaseTime") != "7200" ||
			!strings.Contains(string(r.Body), `"name":"vendor-opts","value":"00000009000100015a","from":{"level":"network"`) {
			t.Errorf("the explanation%s is %s", planned, r.Body)
		}
		r = explain("&macAddress=02:00:00:00:00:01" + planned)
		if r.Text("address") != offered || r.Text("range") == "" || r.Text("reservation") != "" {
			t.Errorf("another client gets %s, and by the server %s", r.Body, offered)
		}
	}
	r := m.Want(200, "GET", "/api/v2/dhcpExplanation?relay=2001:db8:0:1::77&macAddress=02:00:00:00:00:01", "")
	if r.Text("address") != offered || !strings.Contains(string(r.Body), "link address 2001:db8:0:1::77") {
		t.Errorf("by its relay: %s", r.Body)
	}
	_, source := m.LeaseServer(p.configuration, "dhcp7")
	now := m.Store.Now().Unix()
	held := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("2001:db8:0:1::177"), Start: now,
		Expires: now + 3600,
		DUID:    "00030001020000000001", IAID: 7}
	source.Send(dhcplease.Record{At: now * 1000, Event: &dhcplease.Event{Kind: dhcplease.Begin, Lease: held}})
	if r := explain("&macAddress=02:00:00:00:00:01&iaid=7"); r.Text("address") != "2001:db8:0:1::177" {
		t.Errorf("the holder of a lease gets %s", r.Body)
	}
	if r := explain("&macAddress=02:00:00:00:00:01&requested=2001:db8:0:1::177"); r.Text("address") != offered {
		t.Errorf("another association gets %s", r.Body)
	}
	// A live network sends a reservation without a deployment.
	m.Want(200, "PATCH", at, `{"dynamicUpdateEnabled":true}`, apitest.MergePatch)
	m.ID(at+"/addresses", `{"type":"IPv6Address","address":"2001:db8:0:1::a","state":"DHCP_RESERVED","reservedUsing":"CLIENT_DUID",`+
		`"clientIdentifier":{"duid":"00:03:00:01:02:00:00:00:00:0a"}}`)
	apitest.Eventually(t, "a reservation is live", func() bool {
		p.fetch()
		return strings.Contains(strings.Join(p.items(dhcpdata.NetworkUnit(apitest.Number(t, network))), "\n"), "2001:db8:0:1::a\"")
	})
	for query, field := range map[string]string{"": "clientIdentifier", "&clientIdentifier=00": "clientIdentifier",
		"&macAddress=x": "macAddress",
		"&macAddress=02:00:00:00:00:01&requested=10.0.0.1": "requested", "&macAddress=02:00:00:00:00:01&iaid=-1": "iaid",
		"&macAddress=02:00:00:00:00:01&vendorClassIdentifier=x": "vendorClassIdentifier"} {
		m.Refused(400, "InvalidQueryParameterValue", field, "GET", "/api/v2/dhcpExplanation?network="+network+query, "")
	}
	p.confirms(p.revision)
	m.ID("/api/v2/macPools/"+deny+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"NONE","interfaces":[{"id":`+own+`}]}`)
	deploytest.AwaitPoint(&p.Client, p.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv6"}`))
	p.fetch()
	if all := p.items(dhcpdata.MACPoolUnit(apitest.Number(t, deny))); len(all) > 0 {
		t.Errorf("the pool DENY is deployed against its role: %v", all)
	}
}
