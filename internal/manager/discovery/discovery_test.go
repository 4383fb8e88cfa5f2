package discovery_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/manager/discovery"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/workflow"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/snmpagent"
)

// startNames starts a DNS server with PTR records, and returns its address.
func startNames(t *testing.T, names map[string]string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &wire.Server{PacketConn: conn, Handler: wire.HandlerFunc(func(w wire.ResponseWriter, q *wire.Msg) {
		m := new(wire.Msg).SetReply(q)
		if name := names[q.Question[0].Name]; name != "" {
			m.Answer = append(m.Answer, &wire.PTR{Ptr: name,
				Hdr: wire.RR_Header{Name: q.Question[0].Name, Rrtype: wire.TypePTR, Class: wire.ClassINET, Ttl: 60}})
		} else {
			m.Rcode = wire.RcodeNameError
		}
		_ = w.WriteMsg(m)
	})}
	done := make(chan error)
	go func() { done <- server.ActivateAndServe() }()
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return conn.LocalAddr().String()
}

// discoverer is a manager with discovery, whose clock and pings a test controls.
type discoverer struct {
	*apitest.API
	mu        sync.Mutex
	ahead     time.Duration
	answering map[string]bool
}

// startDiscoverer starts a manager with discovery.
func startDiscoverer(t *testing.T) *discoverer {
	t.Helper()
	d := &discoverer{answering: map[string]bool{}}
	now := func() time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		return time.Now().Add(d.ahead)
	}
	probe := func(_ context.Context, a netip.Addr) (bool, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.answering[a.String()], nil
	}
	d.API = apitest.NewAt(t, now, ipam.Register, dns.Register, serverconfig.Register, discovery.Register,
		workflow.Register)
	workflow.Open(d.Address, d.Identity.Acting)
	resource.Provide(d.Address.Provisions, discovery.Options{Sweeps: true})
	d.Work(discovery.NewSweeper(d.Address, probe, apitest.Log()).Run)
	return d
}

// advance moves the clock of the manager.
func (d *discoverer) advance(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead += by
}

// run starts a run of a policy and returns its result.
func (d *discoverer) run(policy string) apitest.Reply {
	d.T.Helper()
	id := d.ID("/api/v2/reconciliationPolicies/"+policy+"/reconciliationRuns", `{}`)
	return d.ended(id)
}

// ended waits for the end of a run.
func (d *discoverer) ended(id string) (r apitest.Reply) {
	d.T.Helper()
	apitest.Eventually(d.T, "the run ends", func() bool {
		r = d.Want(200, "GET", "/api/v2/reconciliationRuns/"+id, "")
		return r.Text("state") != "QUEUED"
	})
	return r
}

// first waits for the first run of a policy by its schedule.
func (d *discoverer) first(policy string) {
	d.T.Helper()
	apitest.Eventually(d.T, "the first run ends", func() bool {
		r := d.Want(200, "GET", "/api/v2/reconciliationPolicies/"+policy+"/reconciliationRuns", "")
		return r.Count() == 1 && r.Text("data.0.state") == "DONE"
	})
}

// finding returns the id of the finding of a kind at an address; empty if there is none.
func (d *discoverer) finding(kind, address string) string {
	d.T.Helper()
	r := d.Want(200, "GET", "/api/v2/reconciliationFindings?"+apitest.Filter("kind:'"+kind+"' and address:'"+address+"'"), "")
	if r.Count() == 0 {
		return ""
	}
	return r.Text("data.0.id")
}

// set sets the state of a finding.
func (d *discoverer) set(id, state string) {
	d.T.Helper()
	d.Want(200, "PATCH", "/api/v2/reconciliationFindings/"+id, `{"state":"`+state+`"}`, apitest.MergePatch)
}

// TestDiscovery checks discovery by SNMP and names: observations, the values at addresses, findings, their acceptance, rejection and undo.
func TestDiscovery(t *testing.T) {
	apitest.Slow(t)
	agent := snmpagent.Start(t, snmpagent.Switch)
	names := startNames(t, map[string]string{"7.0.0.10.in-addr.arpa.": "crane.quay.example.", "9.0.0.10.in-addr.arpa.": "-bad-.example."})
	d := startDiscoverer(t)
	configuration, _, _, _, network := d.Basics()
	assign := func(address, more string) string {
		return d.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"`+address+`"`+more+`}`)
	}
	seven := assign("10.0.0.7", `,"macAddress":{"address":"02-00-5E-00-53-AA"}`)
	assign("10.0.0.50", "")
	policy := d.ID("/api/v2/networks/"+network+"/reconciliationPolicies", fmt.Sprintf(`{"type":"IPv4ReconciliationPolicy","enabled":true,`+
		`"discoveryMethod":"SNMP_PINGSWEEP","startDateTime":%q,"frequency":"P300D","seedRouterAddresses":[%q],"dnsServers":[%q],`+
		`"packetsPerSecond":10000,"notSeenDays":1,"overrides":["10.0.0.60"],"neighborBoundaries":["127.0.0.0/30"],"neighborLimit":2,"snmp":{"version":"v3","port":%d,"usernames":["%s"],`+
		`"securityLevel":"AUTH_PRIV","authenticationProtocol":"SHA","authenticationPassphrase":"%s","privacyProtocol":"AES128","privacyPassphrase":"%s"}}`,
		time.Now().UTC().Format(time.RFC3339), agent.Addr(), names, agent.Port(), snmpagent.EncryptedUser, snmpagent.AuthenticationPassphrase,
		snmpagent.PrivacyPassphrase))
	d.answering["10.0.0.30"], d.answering["10.0.0.60"] = true, true
	d.first(policy)
	if r := d.Want(200, "GET", "/api/v2/reconciliationPolicies/"+policy, ""); strings.Contains(string(r.Body), snmpagent.PrivacyPassphrase) {
		t.Errorf("the policy shows its passphrases: %s", r.Body)
	}

	// The neighbouring devices in the boundaries are read: the switch at its other address, which counts once, and one that does not answer.
	if r := d.Want(200, "GET", "/api/v2/reconciliationPolicies/"+policy+"/reconciliationRuns", ""); r.Text("data.0.devices") != "1" ||
		!strings.HasPrefix(r.Text("data.0.messages.0"), "127.0.0.3, a neighbouring device: ") || strings.Contains(string(r.Body), "127.0.0.2") {
		t.Errorf("the run with neighbouring devices is %s", r.Body)
	}

	// Observations: places, hardware addresses and names, with filters and the values at the address.
	r := d.Want(200, "GET", "/api/v2/observations?orderBy=address", "")
	if r.Count() != 3 || r.Text("data.0.address") != "10.0.0.7" || r.Text("data.0.macAddress") != "02-00-5E-00-53-07" ||
		r.Text("data.0.hostName") != "crane.quay.example" || r.Text("data.0.router") != "quay-switch" ||
		r.Text("data.0.routerPort") != "ge-0/0/1" ||
		r.Text("data.0.switch") != "quay-switch" || r.Text("data.0.vlan") != "20" || r.Text("data.0.methods.0") != "NEIGHBOR" ||
		r.Text("data.1.hostName") != "" || r.Text("data.2.methods.0") != "PING" || r.Text("data.0.policy.id") != policy {
		t.Errorf("the observations are %s", r.Body)
	}
	for path, count := range map[string]int{"observations?" + apitest.Filter("macAddress:'02:00:5e:00:53:07'"): 1,
		"observations?" + apitest.Filter("hostName:'crane.quay.example'"):                                                  1,
		"observations?" + apitest.Filter("lastSeenDateTime:lt('2020-01-01T00:00:00Z')"):                                    0,
		"networks/" + network + "/observations?" + apitest.Filter("address:gt('10.0.0.7')"):                                2,
		"addresses/" + seven + "/observations":                                                                             1,
		"reconciliationPolicies/" + policy + "/discoveredDevices?" + apitest.Filter("type:'DiscoveredHost'"):               3,
		"reconciliationPolicies/" + policy + "/discoveredDevices?" + apitest.Filter("address:'"+agent.Addr().String()+"'"): 1} {
		if r := d.Want(200, "GET", "/api/v2/"+path, ""); r.Count() != count {
			t.Errorf("%s: %d in place of %d: %s", path, r.Count(), count, r.Body)
		}
	}
	if r := d.Want(200, "GET", "/api/v2/addresses/"+seven, ""); r.Text("lastSeenDateTime") == "" ||
		r.Text("switchPortInfo") != "quay-switch ge-0/0/1" ||
		r.Text("routerPortInfo") != "quay-switch ge-0/0/1" || r.Text("vlanInfo") != "20" {
		t.Errorf("the address is %s", r.Body)
	}
	silentOne := "/api/v2/networks/" + network + "/addresses?" + apitest.Filter("address:'10.0.0.50'")
	if r := d.Want(200, "GET", silentOne, ""); r.Text("data.0.lastSeenDateTime") != "" {
		t.Errorf("a silent address was seen: %s", r.Body)
	}

	// Findings: 10.0.0.50 is not one yet, because it is silent for less than a day.
	if r := d.Want(200, "GET", "/api/v2/networks/"+network+"/reconciliationFindings?orderBy=address", ""); r.Count() != 3 {
		t.Errorf("the findings are %s", r.Body)
	}
	differs := d.finding("MAC_ADDRESS_DIFFERS", "10.0.0.7")
	nine, thirty := d.finding("UNKNOWN_ADDRESS", "10.0.0.9"), d.finding("UNKNOWN_ADDRESS", "10.0.0.30")
	d.Refused(400, "InvalidEnumValue", "state", "PATCH", "/api/v2/reconciliationFindings/"+nine, `{"state":"MAYBE"}`, apitest.MergePatch)
	d.set(differs, "ACCEPTED")
	if r := d.Want(200, "GET", "/api/v2/addresses/"+seven, ""); r.Text("macAddress.address") != "02-00-5E-00-53-07" {
		t.Errorf("the accepted hardware address is missing: %s", r.Body)
	}
	d.set(nine, "ACCEPTED")
	made := d.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?"+apitest.Filter("address:'10.0.0.9'"), "")
	if made.Count() != 1 || made.Text("data.0.state") != "STATIC" || !strings.Contains(string(made.Body), "02-00-5E-00-53-09") {
		t.Errorf("the accepted address is %s", made.Body)
	}
	transaction := d.LastTransaction()
	d.set(thirty, "REJECTED")
	if d.LastTransaction() != transaction {
		t.Error("a rejection is in the history")
	}
	d.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+transaction+`}`)
	if r := d.run(policy); r.Text("state") != "DONE" || r.Text("findings") != "1" || r.Text("devices") != "1" || r.Text("seen") != "3" {
		t.Errorf("the run is %s", r.Body)
	}
	for id, state := range map[string]string{nine: "OPEN", thirty: "REJECTED"} {
		if r := d.Want(200, "GET", "/api/v2/reconciliationFindings/"+id, ""); r.Text("state") != state {
			t.Errorf("a finding is %s", r.Body)
		}
	}
	d.Want(404, "GET", "/api/v2/reconciliationFindings/"+differs, "")

	// A finding that does not apply any more is refused when it is accepted.
	assign("10.0.0.9", "")
	d.Refused(409, "ResourceAlreadyExists", "assigned meanwhile", "PATCH", "/api/v2/reconciliationFindings/"+nine, `{"state":"ACCEPTED"}`, apitest.MergePatch)

	// A host that disappears keeps its rejection; an assigned address is a finding after a day.
	delete(d.answering, "10.0.0.30")
	d.advance(25 * time.Hour)
	d.run(policy)
	if d.finding("UNKNOWN_ADDRESS", "10.0.0.30") != thirty {
		t.Error("the rejection is forgotten")
	}
	silent := d.finding("NOT_SEEN", "10.0.0.50")
	d.set(silent, "ACCEPTED")
	if r := d.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?"+apitest.Filter("address:'10.0.0.50'"), ""); r.Count() != 0 {
		t.Errorf("the silent address is still assigned: %s", r.Body)
	}

	// Names: a host record with another name is a finding.
	d.Want(200, "PATCH", "/api/v2/addresses/"+seven, `{"resourceRecords":[{"absoluteName":"old.example.com"}]}`, apitest.MergePatch)
	d.run(policy)
	name := d.finding("HOST_NAME_DIFFERS", "10.0.0.7")
	if r := d.Want(200, "GET", "/api/v2/reconciliationFindings/"+name, ""); r.Text("seenHostName") != "crane.quay.example" ||
		r.Text("storedHostNames.0") != "old.example.com" {
		t.Errorf("the finding of the name is %s", r.Body)
	}

	// Networks that disappear leave their observations to the configuration.
	d.Want(204, "DELETE", "/api/v2/networks/"+network, "")
	if r := d.Want(200, "GET", "/api/v2/observations?"+apitest.Filter("address:'10.0.0.7'"),
		""); r.Text("data.0.network.id") != configuration {
		t.Errorf("an observation without a network is %s", r.Body)
	}
	d.Verify()
}

// TestDiscoveryRules checks policies of configurations and of IPv6 networks, devices that do not answer, rights, approvals, dry runs and
// refused policies.
func TestDiscoveryRules(t *testing.T) {
	apitest.Slow(t)
	agent := snmpagent.Start(t, snmpagent.Switch)
	d := startDiscoverer(t)
	configuration, _, _, block, network := d.Basics()
	six := d.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	network6 := d.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	body := func(kind, devices, more string) string {
		return fmt.Sprintf(`{"type":%q,"enabled":true,"discoveryMethod":"SNMP","startDateTime":%q,"frequency":"P300D","packetsPerSecond":10000,`+
			`"seedRouterAddresses":[%s],"snmp":{"version":"v2c","port":%d,"communities":["%s"]}%s}`, kind, time.Now().UTC().Format(time.RFC3339), devices,
			agent.Port(), snmpagent.Community, more)
	}
	at := "/api/v2/networks/" + network6 + "/reconciliationPolicies"
	one := `"` + agent.Addr().String() + `"`
	v6 := d.ID(at, body("IPv6ReconciliationPolicy", one, ""))
	d.first(v6)
	address := d.finding("UNKNOWN_ADDRESS", "2001:db8::7")
	d.set(address, "ACCEPTED")
	if r := d.Want(200, "GET", "/api/v2/networks/"+network6+"/addresses?"+apitest.Filter("address:'2001:db8::7'"), ""); r.Count() != 1 ||
		r.Text("data.0.state") != "STATIC" ||
		r.Text("data.0.lastSeenDateTime") == "" {
		t.Errorf("the IPv6 address is %s", r.Body)
	}

	// A policy of a configuration sees addresses in no network. A device that does not answer makes the run partial: no address is silent.
	silent := d.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.200","state":"STATIC"}`)
	d.Want(204, "DELETE", "/api/v2/networks/"+network, "")
	narrow := d.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.8/29"}`, "x-bcn-no-gateway: true")
	wide := d.ID("/api/v2/configurations/"+configuration+"/reconciliationPolicies",
		body("IPv4ReconciliationPolicy", one+`,"127.0.0.4"`, `,"notSeenDays":0,"networkBoundaries":["10.0.0.0/8"]`))
	d.ID("/api/v2/networks/"+narrow+"/addresses", `{"type":"IPv4Address","address":"10.0.0.10","state":"STATIC"}`)
	d.first(wide)
	none, nine := d.finding("UNKNOWN_NETWORK", "10.0.0.7"), d.finding("UNKNOWN_ADDRESS", "10.0.0.9")
	d.Refused(409, "ResourceConflictsWithOther", "Create its network", "PATCH", "/api/v2/reconciliationFindings/"+none, `{"state":"ACCEPTED"}`,
		apitest.MergePatch)
	if id := d.finding("NOT_SEEN", "10.0.0.10"); id != "" {
		t.Error("a partial run has found a silent address")
	}
	r := d.Want(200, "GET", "/api/v2/reconciliationPolicies/"+wide+"/reconciliationRuns", "")
	if !strings.Contains(r.Text("data.0.messages.0"), "127.0.0.4: ") {
		t.Errorf("the run is %s", r.Body)
	}
	d.Want(404, "GET", "/api/v2/addresses/"+silent, "")

	// Rights: a user who may only see refuses nothing and accepts nothing; a user who needs approvals makes a request.
	viewer, asViewer := d.User("vera", "NO_ACCESS")
	d.Right(viewer, configuration, "VIEW", "")
	if r := d.Want(200, "GET", "/api/v2/reconciliationFindings", "", asViewer); r.Count() != 3 {
		t.Errorf("the viewer sees %s", r.Body)
	}
	d.Want(403, "PATCH", "/api/v2/reconciliationFindings/"+nine, `{"state":"REJECTED"}`, apitest.MergePatch, asViewer)
	partial, asPartial := d.User("paul", "NO_ACCESS")
	d.Right(partial, configuration, "FULL", `,"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"VIEW"}]`)
	d.Want(403, "PATCH", "/api/v2/reconciliationFindings/"+nine, `{"state":"ACCEPTED"}`, apitest.MergePatch, asPartial)
	other, asOther := d.User("olga", "NO_ACCESS")
	d.Right(other, network6, "VIEW", "")
	if r := d.Want(200, "GET", "/api/v2/observations", "", asOther); r.Count() != 1 || r.Text("data.0.address") != "2001:db8::7" {
		t.Errorf("a user of one network sees %s", r.Body)
	}
	carol, asCarol := d.User("carol", "NO_ACCESS")
	d.Right(carol, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	dry := d.Want(200, "PATCH", "/api/v2/reconciliationFindings/"+nine, `{"state":"ACCEPTED"}`, apitest.MergePatch, "x-portolan-dry-run: true")
	if !strings.Contains(string(dry.Body), "10.0.0.9") || d.finding("UNKNOWN_ADDRESS", "10.0.0.9") != nine {
		t.Errorf("the dry run is %s", dry.Body)
	}
	request, _ := d.Requested("PATCH", "/api/v2/reconciliationFindings/"+nine, `{"state":"ACCEPTED"}`, apitest.MergePatch, asCarol)
	found := func() int {
		return d.Want(200, "GET", "/api/v2/networks/"+narrow+"/addresses?"+apitest.Filter("address:'10.0.0.9'"), "").Count()
	}
	if found() != 0 {
		t.Error("the address exists before the approval")
	}
	d.Want(200, "PATCH", request, `{"state":"APPROVED"}`, apitest.MergePatch)
	if found() != 1 {
		t.Error("the address does not exist after the approval")
	}

	// Refusals.
	policies := "/api/v2/networks/" + narrow + "/reconciliationPolicies"
	for _, one := range []struct{ code, field, body string }{
		{"MissingRequiredField", "snmp", `{"type":"IPv4ReconciliationPolicy","enabled":true,"discoveryMethod":"SNMP","startDateTime":"2027-01-01T00:00:00Z","seedRouterAddresses":["127.0.0.1"],"skipFqdnEnabled":true}`},
		{"MissingRequiredField", "snmp.usernames", strings.NewReplacer(`"version":"v2c"`, `"version":"v3"`, `,"communities":["harbour"]`, "").
			Replace(body("IPv4ReconciliationPolicy", one, ""))},
		{"ValueLessThanMinimum", "packetsPerSecond", strings.Replace(body("IPv4ReconciliationPolicy", one, ""), "10000", "0", 1)},
		{"InvalidResourceFieldValue", "dnsServers", body("IPv4ReconciliationPolicy", one, `,"dnsServers":["here"]`)},
		{"InvalidResourceFieldValue", "seedRouterAddresses", body("IPv4ReconciliationPolicy", `"router"`, "")},
		{"InvalidResourceFieldValue", "neighborBoundaries", body("IPv4ReconciliationPolicy", one, `,"neighborBoundaries":["10.0.0.1/24"]`)},
		{"InvalidResourceFieldValue", "enabled", strings.Replace(body("IPv4ReconciliationPolicy", one, ""), `"SNMP"`, `"NO_DISCOVERY"`, 1)},
	} {
		r := d.Do("POST", policies, one.body)
		if r.StatusCode != 400 || !strings.Contains(string(r.Body), one.field) {
			t.Errorf("%s of %s: %d %s", one.code, one.field, r.StatusCode, r.Body)
		}
	}
	d.Want(200, "PATCH", "/api/v2/reconciliationPolicies/"+wide, `{"enabled":false}`, apitest.MergePatch)
	d.Refused(409, "ResourceConflictsWithOther", "is disabled", "POST", "/api/v2/reconciliationPolicies/"+wide+"/reconciliationRuns", `{}`)
	d.Want(405, "POST", "/api/v2/observations", `{}`)

	// If no device answers, the run fails and changes nothing.
	d.Want(200, "PATCH", "/api/v2/reconciliationPolicies/"+v6, `{"snmp":{"version":"v2c","communities":["wrong"]}}`, apitest.MergePatch)
	if r := d.run(v6); r.Text("state") != "FAILED" || !strings.Contains(r.Text("messages.0"), "no device responded") {
		t.Errorf("the run is %s", r.Body)
	}
	d.Verify()
}
