package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
)

// authority is a server of the manager that runs on a service point and answers at an address.
type authority struct {
	*fleetPoint
	address, server string
}

// asked queries a server and returns the response code and the data, sorted.
func asked(server, name string, kind uint16) string {
	q := new(dns.Msg)
	q.SetQuestion(name, kind)
	r, _, err := (&dns.Client{Timeout: time.Second}).Exchange(q, server)
	if err != nil {
		return err.Error()
	}
	words := []string{dns.RcodeToString[r.Rcode]}
	for _, rr := range r.Answer {
		words = append(words, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(words[1:])
	return strings.Join(words, " ")
}

// asks queries the authority.
func (a *authority) asks(name string, kind uint16) string { return asked(a.address, name, kind) }

// copied transfers the zone harbour.example and returns the number of records. If secret is not empty, it uses the TSIG key copy.
func (a *authority) copied(secret string) (records int, err error) {
	q, transfer := new(dns.Msg), new(dns.Transfer)
	if q.SetAxfr("harbour.example."); secret != "" {
		q.SetTsig("copy.", dns.HmacSHA256, 300, time.Now().Unix())
		transfer.TsigSecret = map[string]string{"copy.": secret}
	}
	envelopes, err := transfer.In(q, a.address)
	if err != nil {
		return 0, err
	}
	for e := range envelopes {
		if e.Error != nil {
			err = e.Error
		}
		records += len(e.RR)
	}
	return records, err
}

// deploy creates a deployment and waits for its end. It returns its state and message.
func (a *authority) deploy(path, body string) (state, message string) {
	a.t.Helper()
	id := a.m.id(path, body)
	var d struct{ State, Message string }
	if !until(func() bool {
		status, text, err := a.m.call("GET", "/deployments/"+id, "")
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &d) != nil {
			a.t.Fatalf("the deployment is %d %s %v", status, text, err)
		}
		return d.State != "QUEUED" && d.State != "RUNNING"
	}) {
		a.t.Fatalf("the deployment continues: %+v\n%s", d, a.process.text())
	}
	return d.State, d.Message
}

// answersWith waits until a query has this answer.
func (a *authority) answersWith(name string, kind uint16, want string) {
	a.t.Helper()
	got := ""
	if !until(func() bool { got = a.asks(name, kind); return got == want }) {
		a.t.Fatalf("%s is %s, not %s\n%s", name, got, want, a.process.text())
	}
}

// becomeServer creates a service point with a name server, and the server of a configuration that runs on it. args are additional arguments
// of the agent.
func becomeServer(t *testing.T, m *manager, configuration string, args ...string) *authority {
	t.Helper()
	a := &authority{fleetPoint: &fleetPoint{t: t, m: m, args: args, state: filepath.Join(t.TempDir(), "state")}}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(a.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	a.start(created.RegistrationKey)
	t.Cleanup(func() { // ends its applications
		if err := a.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, a.process.text())
		}
	})
	var err error
	a.address = freeport.Reserve(t).String()
	host, port, err := net.SplitHostPort(a.address)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "authority.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}]}`, host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	a.server = m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"ns1","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+
		created.FleetInstanceID+`","interfaces":[{"type":"NetworkInterface","name":"ns1.harbour.example","managementAddress":"192.0.2.53"}]}`)
	if state, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`); state != "FAILED" ||
		!strings.Contains(message, "dns-authoritative-service") {
		t.Errorf("without the application a deployment is %s: %s", state, message)
	}
	a.fleet("deploy", "edge", "dns-authoritative-service", "--configuration", file)
	a.becomes("HEALTHY")
	return a
}

// TestZonesOnTheWire checks that the network serves the manager's data. Zones are deployed, changed, and served without manager and agent.
// A restarted name server reads the zones from disk.
func TestZonesOnTheWire(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"default"}`)
	zone := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"harbour.example","deploymentEnabled":true}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	host := func(name, address string) string {
		return m.id("/zones/"+zone+"/resourceRecords", fmt.Sprintf(`{"type":"HostRecord","name":%q,"reverseRecord":true,"addresses":[`+
			`{"type":"IPv4Address","address":%q,"state":"STATIC"}]}`, name, address))
	}
	crane := host("crane", "10.0.0.10")
	a := becomeServer(t, m, configuration)
	deployments := "/servers/" + a.server + "/deployments"
	if status, text, err := m.call("POST", deployments, `{"type":"DifferentialDeployment","service":"DNS"}`); status != 400 || err != nil ||
		!strings.Contains(text, "NoPreviousFullDeploymentForDifferential") {
		t.Errorf("a difference to nothing is %d %s %v", status, text, err)
	}
	var interfaces struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/servers/"+a.server+"/interfaces", ""); err != nil || json.Unmarshal([]byte(text), &interfaces) != nil {
		t.Fatal(text, err)
	}
	role := fmt.Sprintf(`{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":%s},"interfaces":[{"id":%d}]}`, view,
		interfaces.Data[0].ID)
	m.id("/views/"+view+"/deploymentRoles", role)
	m.id("/networks/"+network+"/deploymentRoles", role)
	secret := base64.StdEncoding.EncodeToString([]byte("nobody is to know this secret..."))
	m.id("/configurations/"+configuration+"/signingKeys", `{"type":"TSIGKey","name":"copy","algorithm":"SHA256","length":256,"privateKey":"`+secret+`"}`)
	option := m.id("/zones/"+zone+"/deploymentOptions", `{"type":"DNSOption","name":"allow-transfer","value":["127.0.0.2","key copy"]}`)
	if state, message := a.deploy(deployments, `{"type":"FullDeployment","service":"DNS"}`); state != "COMPLETED" ||
		!strings.Contains(message, "2 zones") {
		t.Fatalf("the deployment is %s: %s\n%s\n%s", state, message, a.process.text(), m.process.text())
	}
	for _, c := range []struct {
		name string
		kind uint16
		want string
	}{
		{"crane.harbour.example.", dns.TypeA, "NOERROR 10.0.0.10"},
		{"10.0.0.10.in-addr.arpa.", dns.TypePTR, "NOERROR crane.harbour.example."},
		{"harbour.example.", dns.TypeNS, "NOERROR ns1.harbour.example."},
		{"ns1.harbour.example.", dns.TypeA, "NOERROR 192.0.2.53"},
		{"tug.harbour.example.", dns.TypeA, "NXDOMAIN"},
		{"elsewhere.example.", dns.TypeA, "REFUSED"},
	} {
		if got := a.asks(c.name, c.kind); got != c.want {
			t.Errorf("%s is %s, not %s", c.name, got, c.want)
		}
	}

	// A differential deployment publishes changes. Until then the old data is served.
	host("tug", "10.0.0.11")
	if got := a.asks("tug.harbour.example.", dns.TypeA); got != "NXDOMAIN" {
		t.Errorf("before it is deployed a host is %s", got)
	}
	if state, message := a.deploy(deployments, `{"type":"DifferentialDeployment","service":"DNS"}`); state != "COMPLETED" {
		t.Errorf("the difference is %s: %s", state, message)
	}
	if got := a.asks("tug.harbour.example.", dns.TypeA); got != "NOERROR 10.0.0.11" {
		t.Errorf("the host is %s", got)
	}
	if n, err := a.copied(secret); n != 6 || err != nil { // SOA twice, NS, and three addresses
		t.Errorf("the zone is transferred in %d records: %v", n, err)
	}
	if n, err := a.copied(""); err == nil {
		t.Errorf("without its key the zone is transferred in %d records", n)
	}

	// The name server answers without manager and agent, and restarts without a manager.
	_ = m.process.signal(syscall.SIGKILL)
	_ = a.process.signal(syscall.SIGKILL)
	a.answersWith("tug.harbour.example.", dns.TypeA, "NOERROR 10.0.0.11")
	if err := syscall.Kill(a.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.start("")
	a.answersWith("tug.harbour.example.", dns.TypeA, "NOERROR 10.0.0.11")
	m.start()

	// A selective deployment publishes a single record with its related records.
	host("buoy", "10.0.0.12")
	quay := host("quay", "10.0.0.13")
	if status, text, err := m.call("PATCH", "/resourceRecords/"+crane, `{"name":"derrick"}`); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	if state, message := a.deploy("/deployments", `{"type":"SelectiveDeployment","resources":[{"id":`+quay+`}]}`); state != "COMPLETED" || !strings.HasPrefix(message, "2 zones, 2 of them changed: 4 records added, 2 removed") {
		t.Errorf("the selected are %s: %s", state, message)
	}
	a.answersWith("quay.harbour.example.", dns.TypeA, "NOERROR 10.0.0.13")
	a.answersWith("13.0.0.10.in-addr.arpa.", dns.TypePTR, "NOERROR quay.harbour.example.")
	if got := a.asks("buoy.harbour.example.", dns.TypeA) + a.asks("crane.harbour.example.", dns.TypeA); got != "NXDOMAINNOERROR 10.0.0.10" {
		t.Errorf("what was not selected is %s", got)
	}
	if state, message := a.deploy("/zones/"+zone+"/deployments", `{"type":"QuickDeployment"}`); state != "COMPLETED" {
		t.Errorf("what the user has changed is %s: %s", state, message)
	} else {
		t.Log(message)
	}
	a.answersWith("buoy.harbour.example.", dns.TypeA, "NOERROR 10.0.0.12")
	a.answersWith("crane.harbour.example.", dns.TypeA, "NXDOMAIN")
	a.answersWith("10.0.0.10.in-addr.arpa.", dns.TypePTR, "NOERROR derrick.harbour.example.")

	// A server of another product with a role may transfer the zone, unless an option restricts transfers. It is also a name server of the
	// zone.
	if status, text, err := m.call("DELETE", "/deploymentOptions/"+option, ""); status != 204 || err != nil {
		t.Fatal(status, text, err)
	}
	m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"old","profile":"OTHER_DNS_SERVER","interfaces":[`+
		`{"type":"NetworkInterface","name":"ns2.far.example","managementAddress":"127.0.0.1"}]}`)
	if _, text, err := m.call("GET", "/interfaces?"+url.Values{"filter": {"name:'ns2.far.example'"}}.Encode(), ""); err != nil ||
		json.Unmarshal([]byte(text), &interfaces) != nil || len(interfaces.Data) != 1 {
		t.Fatal(text, err)
	}
	m.id("/views/"+view+"/deploymentRoles", fmt.Sprintf(`{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":%d}]}`,
		interfaces.Data[0].ID))
	if state, message := a.deploy(deployments, `{"type":"FullDeployment","service":"DNS"}`); state != "COMPLETED" {
		t.Errorf("with a server of others the deployment is %s: %s", state, message)
	}
	if got := a.asks("harbour.example.", dns.TypeNS); got != "NOERROR ns1.harbour.example. ns2.far.example." {
		t.Errorf("with a server of others the name servers are %s", got)
	}
	if n, err := a.copied(""); err != nil || n < 7 {
		t.Errorf("it copies %d records: %v", n, err)
	}
	if text := m.check(); !strings.Contains(text, "no faults found") && strings.Contains(text, "wrong") {
		t.Error(text)
	}
}

// liveServer creates a configuration with a live view, a zone, a zone below it, a network, and a server for them.
func liveServer(t *testing.T, database string, args ...string) (a *authority, zone, below, network string) {
	t.Helper()
	return liveServerOf(serve(t, database), args...)
}

// liveServerOf returns a server with a live view of a manager, like liveServer.
func liveServerOf(m *manager, args ...string) (a *authority, zone, below, network string) {
	t := m.t
	t.Helper()
	configuration := m.id("/configurations", `{"name":"main"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"default","liveDeployment":true}`)
	zone = m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"harbour.example","deploymentEnabled":true}`)
	below = m.id("/zones/"+zone+"/zones", `{"type":"Zone","name":"quay","deploymentEnabled":true}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network = m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	a = becomeServer(t, m, configuration, args...)
	var interfaces struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/servers/"+a.server+"/interfaces", ""); err != nil || json.Unmarshal([]byte(text), &interfaces) != nil {
		t.Fatal(text, err)
	}
	role := fmt.Sprintf(`{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":%s},"interfaces":[{"id":%d}]}`, view,
		interfaces.Data[0].ID)
	m.id("/views/"+view+"/deploymentRoles", role)
	m.id("/networks/"+network+"/deploymentRoles", role)
	if state, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`); state != "COMPLETED" {
		t.Fatalf("the deployment is %s: %s\n%s\n%s", state, message, a.process.text(), m.process.text())
	}
	return a, zone, below, network
}

// nothingElse checks that all changes were published: a full deployment finds no difference.
func (a *authority) nothingElse() {
	a.t.Helper()
	state, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	if state != "COMPLETED" || !strings.Contains(message, "0 of them changed") {
		a.t.Errorf("behind the changes a deployment is %s: %s", state, message)
	}
}

// TestLiveDeployment checks that every change of a live view is answered at once. The result is the same as that of a full deployment.
func TestLiveDeployment(t *testing.T) {
	t.Parallel()
	onBoth(t, liveDeployment)
}

func liveDeployment(t *testing.T, database string) {
	t.Helper()
	a, zone, below, network := liveServer(t, database)
	m := a.m
	random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
	var records []string
	hosts := map[string]bool{}
	var slowest time.Duration
	for i := range 120 {
		at := zone
		if random.IntN(3) == 0 {
			at = below
		}
		pick := func() string { return records[random.IntN(len(records))] }
		name := fmt.Sprintf("n%d", i)
		switch kind := random.IntN(9); {
		case kind < 3 || len(records) < 3:
			id := m.id("/zones/"+at+"/resourceRecords", fmt.Sprintf(`{"type":"HostRecord","name":%q,"reverseRecord":true,"addresses":[`+
				`{"type":"IPv4Address","address":"10.0.0.%d","state":"STATIC"}]}`, name, 10+i))
			hosts[id] = true
			records = append(records, id)
			start := time.Now()
			if at == below {
				name += ".quay"
			}
			a.answersWith(name+".harbour.example.", dns.TypeA, fmt.Sprintf("NOERROR 10.0.0.%d", 10+i))
			slowest = max(slowest, time.Since(start))
		case kind == 3:
			records = append(records, m.id("/zones/"+at+"/resourceRecords", fmt.Sprintf(`{"type":"TXTRecord","name":%q,"text":"%d"}`, name, i)))
		case kind == 4:
			if target := pick(); hosts[target] {
				records = append(records, m.id("/zones/"+at+"/resourceRecords", fmt.Sprintf(`{"type":"MXRecord","name":%q,"priority":5,"linkedRecord":`+
					`{"id":%s}}`, name, target)))
			}
		case kind == 5:
			records = append(records, m.id("/zones/"+at+"/resourceRecords", fmt.Sprintf(`{"type":"GenericRecord","name":%q,"recordType":"NS",`+
				`"rdata":"n0.harbour.example."}`, name)))
		case kind == 6:
			if status, text, err := m.call("PATCH", "/resourceRecords/"+pick(), fmt.Sprintf(`{"ttl":%d}`, 60+i)); status != 200 || err != nil {
				t.Fatal(status, text, err)
			}
		case kind == 7:
			id := pick()
			if status, text, err := m.call("PATCH", "/resourceRecords/"+id, fmt.Sprintf(`{"name":%q}`, name)); status >= 500 || err != nil {
				t.Fatal(status, text, err)
			}
		default:
			n := random.IntN(len(records))
			if status, text, err := m.call("DELETE", "/resourceRecords/"+records[n], ""); status >= 500 || err != nil {
				t.Fatal(status, text, err)
			} else if status < 300 {
				records = slices.Delete(records, n, n+1)
			}
		}
	}
	t.Logf("the slowest host was answered after %s", slowest)
	id := m.id("/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"last","addresses":[{"type":"IPv4Address","address":"10.0.0.250"}]}`)
	a.answersWith("last.harbour.example.", dns.TypeA, "NOERROR 10.0.0.250")
	a.nothingElse()

	// Other changes are published as well: options, roles, other zones, and the address of a host that is deleted with its network.
	m.id("/zones/"+zone+"/deploymentOptions", `{"type":"StartOfAuthority","value":[77,"primary.harbour.example","admin@harbour.example","auto",1200,180,1209600,99]}`)
	if !until(func() bool { return strings.Contains(a.asks("harbour.example.", dns.TypeSOA), " 1200 180 1209600 99") }) {
		t.Errorf("the start of authority is %s", a.asks("harbour.example.", dns.TypeSOA))
	}
	m.id("/zones/"+zone+"/zones", `{"type":"Zone","name":"dock","deploymentEnabled":true}`)
	if !until(func() bool {
		return strings.HasPrefix(a.asks("dock.harbour.example.", dns.TypeSOA), "NOERROR primary.harbour.example.")
	}) {
		t.Errorf("a new zone is %s", a.asks("dock.harbour.example.", dns.TypeSOA))
	}
	if status, text, err := m.call("DELETE", "/resourceRecords/"+id, ""); status >= 300 || err != nil {
		t.Fatal(status, text, err)
	}
	a.answersWith("last.harbour.example.", dns.TypeA, "NXDOMAIN")
	a.nothingElse()
	_ = network
}
