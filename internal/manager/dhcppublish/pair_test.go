package dhcppublish_test

import (
	"bytes"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// pairMember is a DHCP server of a failover pair.
type pairMember struct {
	*leasetest.Source
	m                  *manager
	server, point, own string
	id                 int64
	// key is the fingerprint that the server reports, as a digit that is repeated.
	key      string
	units    dhcpdata.Units
	revision string
}

// pairOfServers creates two DHCP servers, and a role with a failover pair for a block.
func (m *manager) pairOfServers(configuration, block string) (one, two *pairMember) {
	m.T.Helper()
	create := func(name string) *pairMember {
		server, source := m.LeaseServer(configuration, name)
		p := &pairMember{Source: source, m: m, server: server, id: apitest.Number(m.T, server), key: name[len(name)-1:]}
		r := m.Want(200, "GET", "/api/v2/servers/"+server, "")
		p.point = r.Text("servicePoint")
		p.own = m.Want(200, "GET", "/api/v2/servers/"+server+"/interfaces", "").Text("data.0.id")
		return p
	}
	one, two = create("dhcp1"), create("dhcp2")
	m.ID("/api/v2/blocks/"+block+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+one.own+
		`,"deploymentRoleInterfaceType":"PRIMARY"},{"id":`+two.own+`,"deploymentRoleInterfaceType":"SECONDARY"}]}`)
	return one, two
}

// deploy deploys DHCPv4 to the server, and fetches its content.
func (p *pairMember) deploy() {
	p.m.T.Helper()
	id := p.m.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`)
	deploytest.AwaitPoint(&p.m.Client, id)
	p.fetch()
}

func (p *pairMember) fetch() {
	p.m.T.Helper()
	var stream bytes.Buffer
	if err := p.m.Store.View(p.m.T.Context(), func(tx *store.Tx) error {
		stream.Reset()
		return dhcppublish.Planner{}.Write(tx, p.point, p.revision, &stream)
	}); err != nil {
		p.m.T.Fatal(err)
	}
	last, units, err := dhcpdata.ReadAll(&stream, p.revision, p.units)
	if err != nil {
		p.m.T.Fatal(err)
	}
	p.revision, p.units = last.To, units
}

// pair returns the pair in the content of the server.
func (p *pairMember) pair() (x dhcpdata.Pair) {
	p.m.T.Helper()
	p.fetch()
	c, err := dhcpdata.Compile(p.units, nil)
	if err != nil {
		p.m.T.Fatal(err)
	}
	for _, one := range c.Pairs {
		x = one
	}
	return x
}

// reports sends a report about the pair.
func (p *pairMember) reports(r dhcplease.Pair) {
	p.m.T.Helper()
	r.Key, r.MCLT, r.Since = strings.Repeat(p.key, 64), 3600, p.m.Store.Now().Unix()
	p.Send(dhcplease.Record{At: p.m.Store.Now().UnixMilli(), Pair: &r})
}

// TestFailoverPair checks that a role with a PRIMARY and a SECONDARY interface creates a pair: each server gets the address, the key and
// the declarations of the other.
func TestFailoverPair(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, block, network := m.Basics()
	one, two := m.pairOfServers(configuration, block)
	m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110","splitAroundStaticAddresses":true}`)
	m.ID("/api/v2/servers/"+one.server+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"mclt","value":600}`)
	m.ID("/api/v2/servers/"+one.server+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"load-balance-split","value":256}`)
	one.deploy()
	two.deploy()
	if x := one.pair(); !x.Primary || x.Partner != two.id || x.MCLT != 600 || x.Split != 256 || x.Override != 3 ||
		x.Endpoint.Port() != 647 || len(x.PartnerKey) != 0 {
		t.Errorf("the pair of the primary is %+v", x)
	}
	if x := two.pair(); x.Primary || x.Partner != one.id || x.MCLT != 600 || x.Split != 256 {
		t.Errorf("the pair of the secondary is %+v", x)
	}
	explained := func(want string, seconds string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/dhcpExplanation?network="+network+"&macAddress=00:00:5e:00:53:01", "")
		if got := string(r.Body); r.Text("leaseTime") != seconds || !strings.Contains(got, want) {
			t.Errorf("the explanation lacks %q or the lease time %s: %s", want, seconds, got)
		}
	}
	explained("this server answers a new client, and dhcp2 after 3 s; a new lease lasts at most 600 s", "600")
	actions := "/api/v2/servers/" + two.server + "/dhcpPartnerActions"
	down := `{"partner":{"id":` + one.server + `},"action":"PARTNER_DOWN"}`
	m.Refused(404, "ResourceNotFound", "has not reported", "POST", actions, down)

	one.reports(dhcplease.Pair{Partner: two.id, State: "PARTNER-DOWN"})
	explained("the partner dhcp2 is down", "86400")
	one.reports(dhcplease.Pair{Partner: two.id, State: "NORMAL", Connected: true})
	two.reports(dhcplease.Pair{Partner: one.id, State: "NORMAL", Connected: true, Pending: 7, SkewMillis: -1500, Port: 1647})
	apitest.Eventually(t, "the servers know the keys of each other", func() bool {
		return len(one.pair().PartnerKey) == 32 && len(two.pair().PartnerKey) == 32 && one.pair().Endpoint.Port() == 1647
	})
	shown := m.Want(200, "GET", "/api/v2/servers/"+two.server+"/dhcpPartners", "")
	for field, want := range map[string]string{"state": "NORMAL", "partner.id": one.server, "pendingUpdates": "7", "clockDifference": "-1500",
		"connected": "true", "mclt": "3600"} {
		if got := shown.Text("data.0." + field); got != want {
			t.Errorf("%s is %q, not %q", field, got, want)
		}
	}
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		partners, err := dhcp.CountPartners(tx)
		if partners["NORMAL"] != 2 {
			t.Errorf("the partners are %v", partners)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	m.Refused(409, "ResourceConflictsWithOther", "are connected", "POST", actions, down)
	two.reports(dhcplease.Pair{Partner: one.id, State: "COMMUNICATIONS-INTERRUPTED"})
	m.Refused(409, "ResourceConflictsWithOther", "set force", "POST", actions, down)
	m.Want(200, "POST", actions, `{"partner":{"id":`+one.server+`},"action":"PARTNER_DOWN","force":true}`, "x-portolan-dry-run: true")
	action := m.Want(201, "POST", actions, `{"partner":{"id":`+one.server+`},"action":"PARTNER_DOWN","force":true}`)
	id := apitest.Number(t, action.Text("id"))
	apitest.Eventually(t, "both servers learn the declaration", func() bool {
		return two.pair().PartnerDown && two.pair().Declaration == id && one.pair().DeclaredDown == id && !one.pair().PartnerDown
	})
	state := func(want string) {
		t.Helper()
		if got := m.Want(200, "GET", "/api/v2/dhcpPartnerActions/"+action.Text("id"), "").Text("state"); got != want {
			t.Errorf("the declaration is %s, not %s", got, want)
		}
	}
	state("PENDING")
	two.reports(dhcplease.Pair{Partner: one.id, State: "PARTNER-DOWN", Declaration: id})
	state("DECLARED")
	apitest.Eventually(t, "the declaration is followed once", func() bool { return !two.pair().PartnerDown && one.pair().DeclaredDown == id })
	two.reports(dhcplease.Pair{Partner: one.id, State: "NORMAL", Connected: true, Declaration: id, Conflicts: 2,
		Contested: []dhcplease.Contested{{Address: netip.MustParseAddr("10.0.0.101"),
			Keeps: dhcplease.Holder{MAC: "00005e005301", HostName: "lamp"},
			Loses: dhcplease.Holder{DUID: "00030001aa"}}}})
	state("DONE")
	apitest.Eventually(t, "the declaration ends", func() bool { return one.pair().DeclaredDown == 0 })
	events := string(m.Want(200, "GET", "/api/v2/events?limit=100&"+apitest.Filter("category:'SERVER_HIGH_AVAILABILITY'"), "").Body)
	for _, want := range []string{"Failover of DHCP server dhcp2 with dhcp1: COMMUNICATIONS-INTERRUPTED, after NORMAL.", "by force",
		"had leased 2 addresses to different clients: 10.0.0.101 stays with 00-00-5E-00-53-01 (lamp), and 00030001AA gets a NAK at its next " +
			"renewal; " +
			"the others are in the log of the server."} {
		if !strings.Contains(events, want) {
			t.Errorf("no event contains %q: %s", want, events)
		}
	}
	m.Verify()
}

// TestFailoverPartnerSilent checks that a declaration does not require force if the partner has not reported for a minute.
func TestFailoverPartnerSilent(t *testing.T) {
	var ahead atomic.Int64
	m := newManager(apitest.NewAt(t, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, packages()...))
	configuration, _, _, block, _ := m.Basics()
	one, two := m.pairOfServers(configuration, block)
	one.reports(dhcplease.Pair{Partner: two.id, State: "NORMAL", Connected: true})
	ahead.Store(int64(2 * time.Minute))
	two.reports(dhcplease.Pair{Partner: one.id, State: "COMMUNICATIONS-INTERRUPTED"})
	actions := "/api/v2/servers/" + two.server + "/dhcpPartnerActions"
	m.Want(201, "POST", actions, `{"partner":{"id":`+one.server+`},"action":"PARTNER_DOWN"}`)
	two.reports(dhcplease.Pair{Partner: one.id, State: "RECOVER-WAIT"})
	m.Refused(409, "ResourceConflictsWithOther", "lacks leases", "POST", actions, `{"partner":{"id":`+one.server+`},"action":"PARTNER_DOWN"}`)
	m.Verify()
}

// TestFailoverIsRefused checks that roles and options that cannot form a pair are refused by name.
func TestFailoverIsRefused(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	option := m.ID("/api/v2/networks/"+p.network+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"mclt","value":600}`)
	if got := p.fails(); !strings.Contains(got, "set it at the primary server") {
		t.Error(got)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+option, "")
	other := m.ID("/api/v2/configurations/"+p.configuration+"/servers", `{"type":"Server","name":"dhcp2","profile":"DNS_DHCP_SERVER_20",`+
		`"interfaces":[{"managementAddress":"10.0.0.6"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+p.server+"/interfaces", "").Text("data.0.id")
	far := m.Want(200, "GET", "/api/v2/servers/"+other+"/interfaces", "").Text("data.0.id")
	m.ID("/api/v2/networks/"+p.network+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+
		`,"deploymentRoleInterfaceType":"PRIMARY"},{"id":`+far+`,"deploymentRoleInterfaceType":"SECONDARY"}]}`)
	bootp := m.ID("/api/v2/networks/"+p.network+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"dynamic-bootp","value":true}`)
	if got := p.fails(); !strings.Contains(got, "BOOTP clients of a failover pair need reservations") {
		t.Error(got)
	}
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+bootp, "")
	m.ID("/api/v2/networks/"+p.network+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":600}`)
	if got := p.deploys(); !strings.Contains(got, "mclt 3600") {
		t.Errorf("the message %s does not warn of the lead time", got)
	}
}
