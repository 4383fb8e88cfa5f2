package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/peers"
	"portolan/internal/testkit/pgtest"
)

// named is a BIND of another operator at port 53 of the address foreign.
type named struct {
	t            *testing.T
	program, dir string
	c            *exec.Cmd
}

// theirs starts BIND with zones: the texts of the zone files by name. options are additional statements of its configuration. Until the
// test ends, other tests that call theirs wait.
func theirs(t *testing.T, options string, zones map[string]string) *named {
	t.Helper()
	n := &named{t: t, program: peers.Program(t, "named"), dir: t.TempDir()}
	portOfBIND.Lock()
	t.Cleanup(portOfBIND.Unlock)
	if l, err := net.Listen("tcp", foreign+":53"); err != nil {
		t.Skipf("listening at %s:53 is not permitted: %v", foreign, err)
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf(`options { directory %q; listen-on port 53 { %s; }; listen-on-v6 { none; }; pid-file none; session-keyfile none; recursion no;
		dnssec-validation no; empty-zones-enable no; notify-source %s; }; controls { }; %s`, n.dir, foreign, foreign, options)
	for name, text := range zones {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(n.dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	t.Cleanup(n.stop)
	for name := range zones {
		if !until(func() bool {
			return strings.HasPrefix(asked(foreign+":53", dns.Fqdn(name), dns.TypeSOA), "NOERROR")
		}) {
			t.Fatal("named does not answer")
		}
	}
	return n
}

func (n *named) start() {
	n.t.Helper()
	n.c = exec.Command(n.program, "-g", "-n", "1", "-c", filepath.Join(n.dir, "conf"))
	if err := n.c.Start(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *named) stop() {
	_ = n.c.Process.Kill()
	_ = n.c.Wait()
}

// TestFollowedView checks a view that follows a server of another operator. Its records are those of the server. Transactions name the
// server as author, and users cannot change the records.
func TestFollowedView(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { followedView(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { followedView(t, pgtest.URL(t)) })
}

func followedView(t *testing.T, database string) {
	t.Helper()
	secret := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	far := "$ORIGIN far.example.\n$TTL 60\n@ SOA ns h 1 3600 3600 86400 60\n@ NS ns\nns A 192.0.2.1\nmail A 10.0.0.5\n@ MX 10 mail\n" +
		"www CNAME mail\nsub NS ns.sub\nns.sub A 192.0.2.9\ninside.sub A 192.0.2.8\nlost CNAME .\n" +
		"same 90 A 10.0.0.6\nsame 60 AAAA 2001:db8::6\n"
	theirs(t, fmt.Sprintf(`key "copy" { algorithm hmac-sha256; secret %q; };
		zone "far.example" { type primary; file "far.example"; allow-update { any; }; allow-transfer { key copy; }; };
		zone "other.example" { type primary; file "other.example"; allow-transfer { key copy; }; };`, secret), map[string]string{"far.example": far,
		"other.example": "$ORIGIN other.example.\n$TTL 60\n@ SOA ns.far.example. h 1 3600 3600 86400 60\n@ NS ns.far.example.\n" +
			"@ MX 10 mail.far.example.\n"})
	m := serve(t, database)
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`)
	key := m.id("/configurations/"+configuration+"/signingKeys",
		`{"type":"TSIGKey","name":"copy","algorithm":"SHA256","length":256,"privateKey":"`+secret+`"}`)
	server := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"theirs","profile":"OTHER_DNS_SERVER",`+
		`"transferKey":{"id":`+key+`},"interfaces":[`+
		`{"type":"NetworkInterface","name":"ns.far.example","managementAddress":"`+foreign+`","servicesIpv4Address":"`+foreign+`"}]}`)
	own := m.id("/configurations/"+configuration+"/servers", `{"type":"Server","name":"ours","profile":"DNS_DHCP_SERVER_60","interfaces":[`+
		`{"type":"NetworkInterface","managementAddress":"127.0.0.77"}]}`)
	refused := func(status int, word, method, path, body string) {
		t.Helper()
		if got, text, err := m.call(method, path, body); err != nil || got != status || !strings.Contains(text, word) {
			t.Errorf("%s %s %s: %d %s %v, expected %d with %q", method, path, body, got, text, err, status, word)
		}
	}
	refused(400, "a followed server must be external", "POST", "/configurations/"+configuration+"/views", `{"name":"v","followedServer":{"id":`+own+`}}`)
	refused(400, "transferKey", "PATCH", "/servers/"+own, `{"transferKey":{"id":`+key+`}}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"v","followedServer":{"id":`+server+`}}`)
	zone := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"far.example"}`)
	m.id("/zones/"+zone+"/zones", `{"type":"Zone","name":"sub"}`)
	other := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"other.example"}`)

	// is waits until the zone contains exactly these records.
	is := func(zone string, want ...string) {
		t.Helper()
		slices.Sort(want)
		var got []string
		if !until(func() bool {
			var list struct {
				Data []struct{ Type, AbsoluteName string }
			}
			_, text, err := m.call("GET", "/zones/"+zone+"/resourceRecords?limit=5000", "")
			if err != nil || json.Unmarshal([]byte(text), &list) != nil {
				t.Fatal(text, err)
			}
			got = nil
			for _, r := range list.Data {
				got = append(got, r.AbsoluteName+" "+r.Type)
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		}) {
			t.Fatalf("the zone has\n%s\nexpected\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), m.process.text())
		}
	}
	first := []string{"ns.far.example GenericRecord", "mail.far.example HostRecord", "far.example MXRecord", "www.far.example AliasRecord",
		"same.far.example HostRecord", "same.far.example GenericRecord"}
	is(zone, first...)
	is(other, "other.example MXRecord")
	if got := m.count("/transactions", "operation:'RECONCILE_ZONE' and principal:'server theirs'"); got == 0 {
		t.Error("no transaction says that it is theirs")
	}
	lost := func() int {
		return m.count("/events", "sourceName:'far.example.' and message:contains('lost.far.example. CNAME')")
	}
	if !until(func() bool { return lost() == 1 }) {
		t.Errorf("%d events say what is not kept, want one", lost())
	}

	// No request can change the records.
	host := m.first("resourceRecords", "absoluteName:'mail.far.example'")
	address := m.first("addresses", "address:'10.0.0.5'")
	refused(403, "follows server theirs", "POST", "/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"mine","text":"x"}`)
	refused(403, "follows server theirs", "PATCH", "/resourceRecords/"+host, `{"ttl":5}`)
	refused(403, "follows server theirs", "DELETE", "/resourceRecords/"+host, "")
	refused(403, "follows server theirs", "DELETE", "/addresses/"+address, "")
	refused(403, "followedServer", "DELETE", "/servers/"+server, "")
	is(zone, first...)

	// Changes at the server appear here at once: a host that others refer to becomes an alias, and names are added and deleted.
	change := func(lines ...string) {
		t.Helper()
		if got := updatingZone(t, foreign+":53", "far.example.", func(u *dns.Msg) {
			u.RemoveName(rrs(t, "mail.far.example. 0 A 10.0.0.5", "same.far.example. 0 A 10.0.0.6"))
			u.Insert(rrs(t, lines...))
		}); got != "NOERROR" {
			t.Fatalf("the primary server says %s", got)
		}
	}
	change("post.far.example. 60 A 10.0.0.7", "mail.far.example. 60 CNAME post.far.example.", `text.far.example. 60 TXT "a;b"`)
	is(zone, "ns.far.example GenericRecord", "mail.far.example AliasRecord", "far.example MXRecord", "www.far.example AliasRecord",
		"post.far.example HostRecord", "text.far.example TXTRecord")
	if got := m.count("/networks/"+network+"/addresses", "address:'10.0.0.5'"); got != 0 {
		t.Errorf("%d addresses of a host that went are still assigned", got)
	}
	if n := lost(); n != 1 {
		t.Errorf("the ignored records are reported %d times", n)
	}

	// A deleted zone that is created again is followed again, and a manager killed during many changes continues.
	refused(403, "zone other.example", "DELETE", "/zones/"+zone, "") // a record of other.example refers to it
	for _, one := range []string{other, zone} {
		if status, text, err := m.call("DELETE", "/zones/"+one, ""); err != nil || status != 204 {
			t.Fatal(status, text, err)
		}
	}
	zone = m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"far.example"}`)
	var lines []string
	want := []string{"ns.far.example GenericRecord", "mail.far.example HostRecord", "far.example MXRecord", "www.far.example AliasRecord",
		"post.far.example HostRecord", "text.far.example TXTRecord", "ns.sub.far.example GenericRecord", "inside.sub.far.example GenericRecord",
		"sub.far.example GenericRecord"}
	for i := range 700 {
		lines = append(lines, fmt.Sprintf("many%d.far.example. 60 A 10.0.0.%d", i, 20+i%200))
		want = append(want, fmt.Sprintf("many%d.far.example HostRecord", i))
	}
	change(append(lines, "mail.far.example. 60 A 10.0.0.5")...)
	if !until(func() bool { return m.count("/zones/"+zone+"/resourceRecords", "name:startsWith('many')") > 0 }) {
		t.Fatal("nothing comes")
	}
	_ = m.process.signal(syscall.SIGKILL)
	m.start()
	is(zone, want...)

	// After following has ended, the records can be changed.
	if status, text, err := m.call("PATCH", "/views/"+view, `{"followedServer":null}`); err != nil || status != 200 {
		t.Fatal(status, text, err)
	}
	m.id("/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"mine","text":"x"}`)
	m.check()
}
