package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/pgtest"
)

// foreign is the address of primary servers of other operators. They use port 53, because interfaces have no port, and BIND listens only at
// addresses that an interface has. portOfBIND is locked while a test uses that port.
const foreign = "127.0.0.1"

var portOfBIND sync.Mutex

// TestCopiedZones checks a zone with the primary server of another operator. Changes are answered after its NOTIFY. While the primary is
// unavailable, the zone is answered until it expires.
func TestCopiedZones(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { copiedZones(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { copiedZones(t, pgtest.URL(t)) })
}

func copiedZones(t *testing.T, database string) {
	t.Helper()
	a, _, _, _ := liveServer(t, database)
	m := a.m
	_, port, _ := strings.Cut(a.address, ":")
	secret := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	named := theirs(t, fmt.Sprintf(`key "copy" { algorithm hmac-sha256; secret %q; };
		zone "far.example" { type primary; file "far.example"; allow-update { any; }; allow-transfer { key copy; };
		notify explicit; also-notify { 127.0.0.1 port %s; }; };`, secret, port), map[string]string{"far.example": "$ORIGIN far.example.\n" +
		"@ 60 SOA ns h 1 3600 3600 86400 60\n@ 60 NS ns\nns 60 A 192.0.2.1\nberth 60 TXT \"one\"\n*.wild 60 A 192.0.2.7\n"})

	// The zone, its foreign primary server, and our server, which transfers it.
	var lists struct {
		Data []struct {
			ID   int64
			Name string
		}
	}
	list := func(path string) {
		t.Helper()
		if _, text, err := m.call("GET", path, ""); err != nil || json.Unmarshal([]byte(text), &lists) != nil || len(lists.Data) == 0 {
			t.Fatal(text, err)
		}
	}
	list("/configurations")
	configuration := lists.Data[0].ID
	list("/views")
	view := lists.Data[0].ID
	zone := m.id(fmt.Sprintf("/views/%d/zones", view), `{"type":"Zone","absoluteName":"far.example","deploymentEnabled":true}`)
	key := m.id(fmt.Sprintf("/configurations/%d/signingKeys", configuration),
		`{"type":"TSIGKey","name":"copy","algorithm":"SHA256","length":256,"privateKey":"`+secret+`"}`)
	m.id(fmt.Sprintf("/configurations/%d/servers", configuration), `{"type":"Server","name":"theirs","profile":"OTHER_DNS_SERVER",`+
		`"transferKey":{"id":`+key+`},"interfaces":[`+
		`{"type":"NetworkInterface","name":"ns.far.example","managementAddress":"`+foreign+`","servicesIpv4Address":"`+foreign+`"}]}`)
	for name, role := range map[string]string{"ns.far.example": "PRIMARY", "ns1.harbour.example": "SECONDARY"} {
		list("/interfaces?" + url.Values{"filter": {"name:'" + name + "'"}}.Encode())
		m.id("/zones/"+zone+"/deploymentRoles", fmt.Sprintf(`{"type":"DNSDeploymentRole","roleType":%q,"interfaces":[{"id":%d}]}`, role,
			lists.Data[0].ID))
	}
	a.answersWith("berth.far.example.", dns.TypeTXT, `NOERROR "one"`)
	a.answersWith("x.wild.far.example.", dns.TypeA, "NOERROR 192.0.2.7")
	a.answersWith("far.example.", dns.TypeSOA, "NOERROR ns.far.example. h.far.example. 1 3600 3600 86400 60")

	// The zone changes at the primary, which sends a NOTIFY, and our server answers with the new data.
	if got := updatingZone(t, foreign+":53", "far.example.", func(m *dns.Msg) {
		m.Insert(rrs(t, `winch.far.example. 60 TXT "two"`))
	}); got != "NOERROR" {
		t.Fatalf("the primary server says %s", got)
	}
	a.answersWith("winch.far.example.", dns.TypeTXT, `NOERROR "two"`)
	if _, text, err := call(t.Context(), "GET", "http://"+m.api+"/metrics", m.token, ""); err != nil ||
		!strings.Contains(text, `portolan_zone_copies_total{result="changed"} 1`) {
		t.Errorf("not what has changed was transferred alone: %v", err)
	}
	if got := m.count("/events", "sourceName:'far.example.' and message:contains('it is copied')"); got != 1 {
		t.Errorf("%d events say that the zone is copied", got)
	}

	if got := updatingZone(t, foreign+":53", "far.example.", func(m *dns.Msg) {
		m.Insert(rrs(t, "far.example. 60 SOA ns.far.example. h.far.example. 100 2 2 6 60"))
	}); got != "NOERROR" {
		t.Fatalf("the primary server says %s", got)
	}
	a.answersWith("far.example.", dns.TypeSOA, "NOERROR ns.far.example. h.far.example. 100 2 2 6 60")

	// The primary is unavailable: the copy is answered until it expires. A NOTIFY of another server is refused.
	n := new(dns.Msg)
	n.SetNotify("far.example.")
	from := &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	if r, _, err := (&dns.Client{Dialer: from}).Exchange(n, a.address); err != nil || r.Rcode != dns.RcodeRefused {
		t.Errorf("a notice of an unknown sender is answered with %v %v", r, err)
	}
	named.stop()
	if got := a.asks("winch.far.example.", dns.TypeTXT); got != `NOERROR "two"` {
		t.Errorf("while it is away its zone is %s", got)
	}
	a.answersWith("winch.far.example.", dns.TypeTXT, "SERVFAIL")
	named.start()
	a.answersWith("winch.far.example.", dns.TypeTXT, `NOERROR "two"`)
	a.nothingElse()
	m.check()
}
