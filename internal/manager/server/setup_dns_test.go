package server

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/agenttest"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/testkit/freeport"
)

// TestFirstDNSServer checks each request of the guided setup: an enrolled service point, its application by the default configuration, a
// server with a role, a full deployment, and a query that the server answers.
func TestFirstDNSServer(t *testing.T) {
	m := startAlone(t)
	at := "/api/v2/configurations/" + m.ID("/api/v2/configurations", `{"name":"main"}`)
	point, key := m.create("buoy")
	path := "/user/api/v1/fleetInstances/" + point
	agenttest.Start(t, m.RegistrationEndpoint(), key)
	var address string
	apitest.Eventually(t, "the service point has an address", func() bool {
		address = m.Want(200, "GET", path, "").Text("nodes.0.addresses.0.ipAddress")
		return address != ""
	})
	kinds := string(m.Want(200, "GET", path+"/applicationKinds", "").Body)
	for _, want := range []string{`"name":"dns-authoritative-service"`, `"listen":[{"address":"` + address + `"}]`, `"enum":["sequential"`} {
		if !strings.Contains(kinds, want) {
			t.Errorf("the applications are %s, without %s", kinds, want)
		}
	}
	port := strconv.Itoa(int(freeport.Reserve(t).Port()))
	m.Want(202, "POST", path+"/applications", `{"name":"dns-authoritative-service","configuration":{"listen":[{"address":"127.0.0.1","port":`+
		port+`}]}}`)
	apitest.Eventually(t, "the name server is healthy", func() bool {
		return m.Want(200, "GET", path, "").Text("applications.0.status") == "HEALTHY"
	})
	server := m.ID(at+"/servers", `{"type":"Server","name":"buoy","profile":"PORTOLAN_SERVICE_POINT","servicePoint":"`+point+
		`","interfaces":[{"type":"NetworkInterface","name":"buoy.wire.example","managementAddress":"127.0.0.1"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+server+"/interfaces", "").Text("data.0.id")
	view := m.ID(at+"/views", `{"name":"default"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"wire.example","deploymentEnabled":true}`)
	m.ID("/api/v2/zones/"+zone+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	lookup := "/api/v2/dnsLookup?server=" + server + "&name=wire.example"
	if r := m.Want(200, "GET", lookup, ""); r.Text("status") == "NOERROR" {
		t.Errorf("before the deployment the server answers %s", r.Body)
	}
	last := m.ID("/api/v2/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	deploytest.Await(&m.Client, last, "COMPLETED")
	r := m.Want(200, "GET", lookup, "")
	if r.Text("status") != "NOERROR" || !strings.Contains(r.Text("answers.0"), "SOA") || r.Text("server") != "127.0.0.1:"+port ||
		!strings.Contains(string(r.Body), `"aa"`) {
		t.Errorf("the server answers %s", r.Body)
	}
	if r := m.Want(200, "GET", lookup+"&recordType=NS", ""); !strings.Contains(r.Text("answers.0"), "buoy.wire.example.") {
		t.Errorf("the name servers are %s", r.Body)
	}
	for _, c := range []struct{ query, naming string }{{"", "server"}, {"?server=x", "server"},
		{"?server=" + server + "&zone=" + zone, "server"},
		{"?server=" + server + "&name=a..b", "name"}, {"?zone=" + zone + "&name=a", "name"}, {"?server=" + server + "&name=a&recordType=AXFR",
			"recordType"}, {"?server=" + server + "&name=a&dnssec=maybe", "dnssec"}} {
		m.Refused(400, "InvalidQueryParameterValue", c.naming, "GET", "/api/v2/dnsLookup"+c.query, "")
	}
	m.Refused(404, "ResourceNotFound", "servers/1", "GET", "/api/v2/dnsLookup?server=1&name=a", "")
	m.Want(202, "DELETE", path+"/applications/"+m.Want(200, "GET", path, "").Text("applications.0.id"), "")
}

// TestResolverWithoutConfiguration checks that a resolver without a configuration gets the address of its service point and the servers of
// the system, and that a default without an address is refused with the field.
func TestResolverWithoutConfiguration(t *testing.T) {
	m := startAlone(t)
	point, key := m.create("buoy")
	path := "/user/api/v1/fleetInstances/" + point
	m.Refused(400, "InvalidResourceFieldValue", "configuration.listen", "POST", path+"/applications", `{"name":"dns-resolver-service"}`)
	_, stop := m.agent(filepath.Join(t.TempDir(), "state"), "", m.RegistrationEndpoint(), key)
	defer stop()
	var r reply
	apitest.Eventually(t, "the service point has an address", func() bool {
		r = m.Want(200, "GET", path, "")
		return r.Text("nodes.0.addresses.0.ipAddress") != ""
	})
	stop()
	if r.Text("nodes.0.dnsServers.0") == "" {
		t.Skip("the system has no name servers")
	}
	m.Want(202, "POST", path+"/applications", `{"name":"dns-resolver-service"}`)
	got := m.Want(200, "GET", path+"/applications", "")
	if got.Text("data.0.configuration.listen.0.address") != r.Text("nodes.0.addresses.0.ipAddress") ||
		got.Text("data.0.configuration.upstreams.0.address") != r.Text("nodes.0.dnsServers.0") {
		t.Errorf("the resolver has %s, its service point %s", got.Body, r.Body)
	}
}

// TestDelegationCheck checks that the manager asks its name server for the DS records of a zone, and explains a missing answer.
func TestDelegationCheck(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	const ds = "wire.example.\t300\tIN\tDS\t1 13 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D"
	go func() {
		for {
			buffer := make([]byte, 1500)
			n, from, err := l.ReadFrom(buffer)
			if err != nil {
				return
			}
			q := new(dnsmsg.Msg)
			if q.Unpack(buffer[:n]) != nil {
				continue
			}
			rr, _ := dnsmsg.NewRR(ds)
			a := new(dnsmsg.Msg)
			a.SetReply(q)
			if q.Question[0].Name == "wire.example." && q.Question[0].Qtype == rr.Header().Rrtype {
				a.Answer = []dnsmsg.RR{rr}
			}
			if packed, err := a.Pack(); err == nil {
				_, _ = l.WriteTo(packed, from)
			}
		}
	}()
	m := startOnce(t, func(o *Options) { o.Resolver = netip.MustParseAddrPort(l.LocalAddr().String()) })
	view := m.ID("/api/v2/configurations/"+m.ID("/api/v2/configurations", `{"name":"main"}`)+"/views", `{"name":"default"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"wire.example"}`)
	if r := m.Want(200, "GET", "/api/v2/dnsLookup?zone="+zone, ""); r.Text("answers.0") != ds || r.Text("recordType") != "DS" {
		t.Errorf("the parent has %s", r.Body)
	}
	_ = l.Close()
	if r := m.Want(200, "GET", "/api/v2/dnsLookup?zone="+zone, ""); !strings.Contains(r.Text("reason"), "The name server of the manager") {
		t.Errorf("without a server the answer is %s", r.Body)
	}
}
