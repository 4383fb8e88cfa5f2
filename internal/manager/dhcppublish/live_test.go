package dhcppublish_test

import (
	"net/netip"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/content"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// follows fetches the content until a unit contains a text, or lacks it.
func (p *dhcpPlan) follows(unit, text string, contains bool) {
	p.T.Helper()
	apitest.Eventually(p.T, unit+" "+text, func() bool {
		p.fetch()
		return strings.Contains(strings.Join(p.items(unit), "\n"), text) == contains
	})
}

// leases reports the lease of an address.
func (p *dhcpPlan) leases(source *leasetest.Source, address string) {
	p.T.Helper()
	now := p.Store.Now()
	source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(p.T, p.network), Address: netip.MustParseAddr(address),
		Start: now.Unix(), Expires: now.Unix() + 3600, MAC: "00005e0053f0"})
}

// compiles fails the test unless the service point accepts the content.
func (p *dhcpPlan) compiles() {
	p.T.Helper()
	if _, err := dhcpdata.Compile(p.units, nil); err != nil {
		p.T.Errorf("the service point refuses the content: %v", err)
	}
}

// TestLeaseActionIsDeployedAlone checks that an action on a lease is deployed alone: the other changes of the network wait for the
// deployment. It is also deployed if the settings of a live network cannot be.
func TestLeaseActionIsDeployedAlone(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	p.deploys()
	unit := dhcpdata.NetworkUnit(apitest.Number(t, p.network))
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.10","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:01"}}`)
	source := m.SourceOf(p.point)
	p.leases(source, "10.0.0.15")
	m.Want(201, "POST", at+"/leaseActions", `{"address":"10.0.0.15","action":"END_LEASE"}`)
	p.follows(unit, `"action":"endLease"`, true)
	if all := strings.Join(p.items(unit), "\n"); strings.Contains(all, "10.0.0.10") {
		t.Errorf("the action has deployed a reservation:\n%s", all)
	}
	m.Want(200, "PATCH", at, `{"dynamicUpdateEnabled":true}`, apitest.MergePatch)
	p.follows(unit, "10.0.0.10", true)
	m.ID(at+"/deploymentOptions", `{"type":"DHCPv4RawOption","name":"odd","value":"if option x = \"y\" { }"}`)
	p.leases(source, "10.0.0.16")
	m.Want(201, "POST", at+"/leaseActions", `{"address":"10.0.0.16","action":"END_LEASE"}`)
	p.follows(unit, `"address":"10.0.0.16","action":"endLease"`, true)
	p.has(unit, "10.0.0.10", "10.0.0.15")
	r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'NOT_DEPLOYED'"), "")
	if !strings.Contains(r.Text("data.0.message"), "raw option odd") || r.Text("data.0.subcategory") != "DHCPv4" {
		t.Errorf("the events are %s", r.Body)
	}
	m.Verify()
}

// TestHardwareAddressMovesToDeny checks a hardware address that moves to a live MAC pool. It leaves the deployed pools that listed it, and
// the addresses without a pool, because the service point would refuse content that lists it twice. Their other changes wait for the
// deployment.
func TestHardwareAddressMovesToDeny(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	below := "/api/v2/configurations/" + p.configuration
	pool := m.ID(below+"/macPools", `{"type":"MACPool","name":"staff"}`)
	mac := m.ID(below+"/macAddresses", `{"address":"00:00:5e:00:53:09","macPool":{"id":`+pool+`}}`)
	m.ID("/api/v2/macAddresses/"+mac+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"host-name","value":"lamp"}`)
	alone := m.ID(below+"/macAddresses", `{"address":"00:00:5e:00:53:0a"}`)
	m.ID("/api/v2/macAddresses/"+alone+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"host-name","value":"radio"}`)
	deny := m.Want(200, "GET", "/api/v2/macPools?"+apitest.Filter("type:'DenyMACPool'"), "").Text("data.0.id")
	p.deploys()
	p.compiles()
	units := map[string]string{mac: dhcpdata.MACPoolUnit(apitest.Number(t, pool)), alone: dhcpdata.MACPoolUnit(0)}
	p.has(units[mac], "00005e005309", "host-name")
	p.has(units[alone], "00005e00530a", "host-name")
	m.ID(below+"/macAddresses", `{"address":"00:00:5e:00:53:0b","macPool":{"id":`+pool+`}}`)
	to := dhcpdata.MACPoolUnit(apitest.Number(t, deny))
	for id, digits := range map[string]string{mac: "00005e005309", alone: "00005e00530a"} {
		m.Want(200, "PATCH", "/api/v2/macAddresses/"+id, `{"macPool":{"id":`+deny+`}}`, apitest.MergePatch)
		p.follows(to, digits, true)
		p.compiles()
		if all := strings.Join(p.items(units[id]), "\n"); strings.Contains(all, digits) || strings.Contains(all, "host-name") {
			t.Errorf("%s still has the address:\n%s", units[id], all)
		}
	}
	if all := strings.Join(p.items(units[mac]), "\n"); !strings.Contains(all, "staff") || strings.Contains(all, "00005e00530b") {
		t.Errorf("the pool staff is not as it was deployed:\n%s", all)
	}
	m.Verify()
	p.confirms(p.revision)
	p.deploys()
	p.compiles()
	p.has(units[mac], "00005e00530b")
}

// TestLiveChangeIsChecked checks that a live change that the service point would refuse is not sent: the network keeps its content, and an
// event names the reason.
func TestLiveChangeIsChecked(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/"
	m.Want(200, "PATCH", at+p.network, `{"range":"10.0.0.0/25"}`, apitest.MergePatch)
	other := m.ID("/api/v2/blocks/"+p.block+"/networks", `{"type":"IPv4Network","range":"10.0.0.128/25","gateway":null,"dynamicUpdateEnabled":true}`)
	p.deploys()
	unit := dhcpdata.NetworkUnit(apitest.Number(t, other))
	m.Want(204, "DELETE", at+p.network, "") // the server serves it until the next deployment
	m.Want(200, "PATCH", at+other, `{"range":"10.0.0.0/24"}`, apitest.MergePatch)
	p.follows(unit, `"prefix":"10.0.0.0/24"`, true)
	m.Want(200, "PATCH", at+other, `{"range":"10.0.0.0/25"}`, apitest.MergePatch)
	apitest.Eventually(t, "the event", func() bool {
		r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'NOT_DEPLOYED'"), "")
		return strings.Contains(r.Text("data.0.message"), "the prefix 10.0.0.0/25 is served twice")
	})
	p.fetch()
	p.has(unit, `"prefix":"10.0.0.0/24"`)
	p.compiles()
	p.confirms(p.revision)
	p.deploys()
	p.compiles()
	p.has(unit, `"prefix":"10.0.0.0/25"`)
}

// TestFailedLiveChangeDelaysNoOther checks that a live change that cannot be deployed delays no other one. It is tried again, and its
// network follows after the reason was removed.
func TestFailedLiveChangeDelaysNoOther(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/"
	m.Want(200, "PATCH", at+p.network, `{"dynamicUpdateEnabled":true,"range":"10.0.0.0/25"}`, apitest.MergePatch)
	other := m.ID("/api/v2/blocks/"+p.block+"/networks", `{"type":"IPv4Network","range":"10.0.0.128/25","gateway":null,"dynamicUpdateEnabled":true}`)
	p.deploys()
	broken, unit := dhcpdata.NetworkUnit(apitest.Number(t, p.network)), dhcpdata.NetworkUnit(apitest.Number(t, other))
	var good []byte
	write := func(records []byte) {
		t.Helper()
		if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			return tx.Write("UPDATE dhcp_unit SET records = ? WHERE unit = ?", records, broken)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT records FROM dhcp_unit WHERE unit = ?", broken).Scan(&good)
	}); err != nil {
		t.Fatal(err)
	}
	write([]byte("damaged"))
	reserve := func(network, address, mac string) {
		t.Helper()
		m.ID(at+network+"/addresses", `{"type":"IPv4Address","address":"`+address+`","state":"DHCP_RESERVED","macAddress":{"address":"`+mac+`"}}`)
	}
	reserve(p.network, "10.0.0.20", "00:00:5e:00:53:20")
	reserve(other, "10.0.0.140", "00:00:5e:00:53:21")
	p.follows(unit, "10.0.0.140", true)
	write(good)
	p.follows(broken, "10.0.0.20", true)
	m.Verify()
}

// TestDHCPDeploymentAfterRestore checks the full deployment after the restore of an older backup. It replaces a revision of a service
// point's content that the database does not contain, also if the settings have not changed.
func TestDHCPDeploymentAfterRestore(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	p.deploys()
	p.confirms(p.revision)
	at, err := content.ParseRevision(p.revision)
	if err != nil {
		t.Fatal(err)
	}
	at.Number += 60_000
	at.Hash = dhcpdata.HashOf(nil).String()
	foreign := at.String()
	p.confirms(foreign)
	p.revision, p.units = foreign, dhcpdata.Units{}
	p.deploys()
	now, err := content.ParseRevision(p.revision)
	if err != nil || now.Number <= at.Number || now.Hash == at.Hash {
		t.Errorf("the deployment serves %s after %s: %v", p.revision, foreign, err)
	}
	p.has(dhcpdata.NetworkUnit(apitest.Number(t, p.network)), `"prefix":"10.0.0.0/24"`)
	m.Verify()
}
