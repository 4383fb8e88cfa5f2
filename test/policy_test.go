package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
)

// TestResponsePolicies checks response policies and forwarding roles in the resolver. Policy changes take effect at once, feeds are
// downloaded, and foreign policies are transferred. Blocked names stay blocked while processes are killed.
func TestResponsePolicies(t *testing.T) {
	t.Parallel()
	onBoth(t, responsePolicies)
}

// foreignAddresses counts the addresses of name servers that foreignDNS starts.
var foreignAddresses atomic.Int32

// foreignDNS starts a name server of another operator at port 53 of an address. It serves a policy by AXFR and answers all other names with
// an address.
func foreignDNS(t *testing.T, address string) {
	t.Helper()
	packets, err := net.ListenPacket("udp", address+":53")
	if err != nil {
		t.Skipf("listening at %s:53 is not permitted: %v", address, err)
	}
	l, err := net.Listen("tcp", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	policy := rrs(t, "theirs.rpz. 60 SOA localhost. h. 1 3600 3600 86400 60", "theirs.rpz. 60 NS localhost.",
		"crooks.test.theirs.rpz. 60 CNAME .",
		"32.99.2.0.192.rpz-ip.theirs.rpz. 60 CNAME .", "theirs.rpz. 60 SOA localhost. h. 1 3600 3600 86400 60")
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Authoritative = true
		switch q := r.Question[0]; {
		case q.Qtype == dns.TypeAXFR:
			m.Answer = policy
		case q.Qtype == dns.TypeSOA:
			m.Answer = policy[:1]
		case q.Qtype == dns.TypeA && strings.HasPrefix(q.Name, "99."):
			m.Answer = rrs(t, q.Name+" 0 A 192.0.2.99")
		case q.Qtype == dns.TypeA:
			m.Answer = rrs(t, q.Name+" 0 A 192.0.2.1")
		}
		_ = w.WriteMsg(m)
	})
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: l, Handler: handler}} {
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
}

// killEach kills all applications of a service point and returns their child processes.
func (p *fleetPoint) killEach() (started []int) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "application", "*", "pid"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("there are %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var process struct{ PID int }
		if err != nil || json.Unmarshal(text, &process) != nil || process.PID == 0 {
			p.t.Fatal(string(text), err)
		}
		for _, stat := range glob(p.t, "/proc/[0-9]*/stat") {
			text, err := os.ReadFile(stat)
			_, behind, _ := strings.Cut(string(text), ") ") // pid (name) state parent
			var state string
			var parent, pid int
			if _, e := fmt.Sscan(behind, &state, &parent); err != nil || e != nil || parent != process.PID {
				continue
			}
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				p.t.Fatal(err)
			}
			started = append(started, pid)
		}
		if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // it is restarting
			p.t.Fatal(err)
		}
	}
	return started
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// first returns the ID of the first resource of a list.
func (m *manager) first(collection, filter string) string {
	m.t.Helper()
	var list struct{ Data []struct{ ID int64 } }
	_, text, err := m.call("GET", "/"+collection+"?"+url.Values{"filter": {filter}}.Encode(), "")
	if err != nil || json.Unmarshal([]byte(text), &list) != nil || len(list.Data) == 0 {
		m.t.Fatal(collection, filter, text, err)
	}
	return fmt.Sprint(list.Data[0].ID)
}

func responsePolicies(t *testing.T, database string) {
	t.Helper()
	address := fmt.Sprintf("127.0.53.%d", foreignAddresses.Add(1))
	foreignDNS(t, address)
	var feed atomic.Value
	feed.Store("# bad names\nmalware.test\n0.0.0.0 tracker.test\n")
	fetched, deployed := make(chan struct{}, 10), make(chan struct{})
	feeds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.txt" { // delayed until its zone was deployed without it
			fetched <- struct{}{}
			<-deployed
			_, _ = io.WriteString(w, "late.test\n")
			return
		}
		if r.URL.Path != "/malware.txt" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, feed.Load().(string)) //nolint:forcetypeassert // a text
	}))
	defer feeds.Close()
	a, _, _, _ := liveServerOf(serve(t, database, "--response-feeds", feeds.URL+"/{category}.txt"))
	m := a.m
	at := freeport.Reserve(t).String()
	resolver := &authority{fleetPoint: a.fleetPoint, address: at}
	host, port, _ := strings.Cut(at, ":")
	file := filepath.Join(t.TempDir(), "resolver.json")
	recursion := ""
	if _, err := exec.LookPath("unbound"); err == nil {
		recursion = `,"recursion":{"validation":false}`
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}],"upstreams":[{"address":%q}],"cache":{"maxTTLSeconds":1}%s}`,
		host, port, address, recursion), 0o600); err != nil {
		t.Fatal(err)
	}

	view, configuration := m.first("views", "name:'default'"), m.first("configurations", "name:'main'")
	zones := "/views/" + view + "/zones"
	policy := m.id("/configurations/"+configuration+"/responsePolicies", `{"name":"blocked","policyType":"BLOCKLIST","ttl":5}`)
	m.id("/responsePolicies/"+policy+"/policyItems", `{"name":"bad.test"}`)
	m.id(zones, `{"type":"ResponsePolicyZone","name":"ours.rpz","responsePolicyZoneType":"LOCAL","responsePolicy":{"id":`+policy+`}}`)
	if state, message := a.deploy("/servers/"+a.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`); state != "COMPLETED_WITH_WARNINGS" ||
		!strings.Contains(message, "dns-resolver-service") {
		t.Errorf("without the resolver a deployment is %s: %s", state, message)
	}
	a.fleet("deploy", "edge", "dns-resolver-service", "--configuration", file)
	resolver.answersWith("good.test.", dns.TypeA, "NOERROR 192.0.2.1")
	if !until(func() bool { return strings.Count(a.fleet("applications", "edge"), " HEALTHY") == 2 }) {
		t.Fatal(a.fleet("applications", "edge"))
	}
	resolver.answersWith("bad.test.", dns.TypeA, "NXDOMAIN")

	// Names are added and deleted at once, and a change of the action applies to all names.
	item := m.id("/responsePolicies/"+policy+"/policyItems", `{"name":"*.worse.test"}`)
	resolver.answersWith("a.b.worse.test.", dns.TypeA, "NXDOMAIN")
	if status, text, err := m.call("PATCH", "/responsePolicies/"+policy, `{"policyType":"REDIRECT","redirectTarget":"10.0.0.9"}`); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	resolver.answersWith("bad.test.", dns.TypeA, "NOERROR 10.0.0.9")
	resolver.answersWith("x.worse.test.", dns.TypeA, "NOERROR 10.0.0.9")
	if status, text, err := m.call("DELETE", "/policyItems/"+item, ""); status != 204 || err != nil {
		t.Fatal(status, text, err)
	}
	resolver.answersWith("x.worse.test.", dns.TypeA, "NOERROR 192.0.2.1")
	if got := asked(a.address, "bad.test.ours.rpz.", dns.TypeA); got != "REFUSED" {
		t.Errorf("the answer to a blocked query is %s", got)
	}

	// Feeds are downloaded. An invalid feed is rejected, and the previous data is kept.
	for body, field := range map[string]string{`"responsePolicyZoneType":"FEED","feedCategories":["../etc"]`: "feedCategories",
		`"responsePolicyZoneType":"LOCAL","feedCategories":["malware"]`:                                "feedCategories",
		`"responsePolicyZoneType":"FEED","overrideRefreshTime":"often"`:                                "overrideRefreshTime",
		`"responsePolicyZoneType":"FEED","overrideRefreshTime":"PT1S"`:                                 "overrideRefreshTime",
		`"responsePolicyZoneType":"LOCAL","overrideRefreshTime":"PT1H"`:                                "overrideRefreshTime",
		`"responsePolicyZoneType":"EXTERNAL","responsePolicy":{"id":` + policy + `}`:                   "responsePolicy",
		`"responsePolicyZoneType":"EXTERNAL","overridePolicyType":"REDIRECT","redirectTarget":"a b c"`: "redirectTarget"} {
		if status, text, err := m.call("POST", zones, `{"type":"ResponsePolicyZone","name":"wrong.rpz",`+body+`}`); status != 400 ||
			!strings.Contains(text, field) || err != nil {
			t.Errorf("%s: %d %s %v", body, status, text, err)
		}
	}
	fed := m.id(zones, `{"type":"ResponsePolicyZone","name":"feed.rpz","responsePolicyZoneType":"FEED","feedCategories":["malware"]}`)
	resolver.answersWith("www.malware.test.", dns.TypeA, "NXDOMAIN")
	resolver.answersWith("tracker.test.", dns.TypeA, "NXDOMAIN")
	resolver.answersWith("www.tracker.test.", dns.TypeA, "NOERROR 192.0.2.1")
	feed.Store("<html>we are sorry</html>")
	if status, text, err := m.call("PATCH", "/zones/"+fed, `{"overrideRefreshTime":"60"}`); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	if !until(func() bool { return m.count("/events", "sourceName:'feed.rpz.' and message:contains('line 1')") > 0 }) {
		t.Error("no event reports that the feed is not a list")
	}
	resolver.answersWith("www.malware.test.", dns.TypeA, "NXDOMAIN")

	// A slow feed takes effect when it arrives, even though its view was deployed meanwhile.
	m.id(zones, `{"type":"ResponsePolicyZone","name":"slow.rpz","responsePolicyZoneType":"FEED","feedCategories":["slow"]}`)
	<-fetched
	m.id("/zones/"+m.first("zones", "absoluteName:'harbour.example'")+"/resourceRecords", `{"type":"TXTRecord","name":"behind","text":"x"}`)
	a.answersWith("behind.harbour.example.", dns.TypeTXT, `NOERROR "x"`)
	close(deployed)
	resolver.answersWith("late.test.", dns.TypeA, "NXDOMAIN")
	if n := m.count("/events", "sourceName:'slow.rpz.' and eventType:'WARNING'"); n > 0 || len(fetched) > 0 {
		t.Errorf("a feed that took long is warned of %d times, and was fetched %d times more", n, len(fetched))
	}

	// A foreign policy is transferred, including its rules for addresses.
	m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"theirs","profile":"OTHER_DNS_SERVER","interfaces":[`+
		`{"type":"NetworkInterface","name":"ns.theirs.example","managementAddress":"`+address+`","servicesIpv4Address":"`+address+`"}]}`)
	theirs := m.first("interfaces", "name:'ns.theirs.example'")
	external := m.id(zones, `{"type":"ResponsePolicyZone","name":"theirs.rpz","responsePolicyZoneType":"EXTERNAL"}`)
	m.id("/zones/"+external+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+theirs+`}]}`)
	resolver.answersWith("crooks.test.", dns.TypeA, "NXDOMAIN")
	resolver.answersWith("99.test.", dns.TypeA, "NXDOMAIN")

	// A zone is forwarded if it has a forwarding role.
	zone := m.id(zones, `{"type":"Zone","absoluteName":"corp.example","deploymentEnabled":true}`)
	ours := m.first("interfaces", "name:'ns1.harbour.example'")
	m.id("/zones/"+zone+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"FORWARDING","interfaces":[{"id":`+ours+
		`},{"id":`+theirs+`,"deploymentRoleInterfaceType":"TARGET"}]}`)
	resolver.answersWith("a.corp.example.", dns.TypeA, "NOERROR 192.0.2.1")
	a.nothingElse()

	// A killed resolver answers again, and not before it has loaded its policies.
	before := asked(at, "www.malware.test.", dns.TypeA)
	for range 3 {
		started := a.killEach()
		if !until(func() bool {
			return !slices.ContainsFunc(started, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
		}) {
			t.Errorf("of %v some go on without the one that started them", started)
		}
		for i, answered := 0, 0; i < 2000 && answered < 20; i++ {
			if got := asked(at, "www.malware.test.", dns.TypeA); strings.HasPrefix(got, "NOERROR") {
				t.Fatalf("blocked names get through: %s", got)
			} else if got == before {
				answered++
			}
		}
		resolver.answersWith("bad.test.", dns.TypeA, "NOERROR 10.0.0.9")
	}
}
