package resolver

import (
	"crypto"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// signing starts a server that signs its answers for signed.example. Signatures of names that start with bogus are invalid. It returns
// the server's address and the DS record.
func signing(t *testing.T) (at string, anchor string) {
	t.Helper()
	key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "signed.example.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 60},
		Flags: 257, Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
	private, err := key.Generate(256)
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable = true
		m.SetEdns0(1232, true)
		q := r.Question[0]
		head := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: 60}
		switch q.Qtype {
		case dns.TypeDNSKEY:
			if q.Name == "signed.example." {
				m.Answer = []dns.RR{key}
			}
		case dns.TypeA:
			m.Answer = []dns.RR{&dns.A{Hdr: head, A: net.ParseIP("192.0.2.1")}}
		}
		if len(m.Answer) > 0 && dns.IsSubDomain("signed.example.", strings.ToLower(q.Name)) {
			sig := &dns.RRSIG{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeRRSIG, Class: dns.ClassINET, Ttl: 60}, Algorithm: key.Algorithm,
				SignerName: "signed.example.", KeyTag: key.KeyTag(), Inception: uint32(time.Now().Add(-time.Hour).Unix()),
				Expiration: uint32(time.Now().Add(time.Hour).Unix())}
			if err := sig.Sign(private.(crypto.Signer), m.Answer); err != nil { //nolint:forcetypeassert // it is one
				t.Error(err)
			}
			if strings.HasPrefix(strings.ToLower(q.Name), "bogus") {
				m.Answer[0].(*dns.A).A = net.ParseIP("192.0.2.66") //nolint:forcetypeassert // an A record
			}
			m.Answer = append(m.Answer, sig)
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	return packets.LocalAddr().String(), key.ToDS(dns.SHA256).String()
}

// TestRecursion checks that unbound resolves and validates names, is restarted when it ends, and ends with the resolver.
func TestRecursion(t *testing.T) {
	if _, err := unboundProgram(); err != nil {
		t.Skip(err)
	}
	server, anchor := signing(t)
	var log lines
	more := fmt.Sprintf(`,"recursion":{"trustAnchors":[%q]},"cache":{"maxTTLSeconds":1}`, strings.ReplaceAll(anchor, "\t", " "))
	app, at := startResolver(t, server, &log, more)
	check := func(name, want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if got = asked(t, "udp", at, name, dns.TypeA); got == want || strings.HasPrefix(got, want+" ") {
				return
			}
		}
		t.Errorf("%s: %s, want %s\n%s", name, got, want, log.String())
	}
	check("good.signed.example.", "NOERROR 192.0.2.1")
	check("bogus.signed.example.", "SERVFAIL")
	check("plain.example.", "NOERROR 192.0.2.1")
	r := new(dns.Msg)
	r.SetQuestion("other.signed.example.", dns.TypeA)
	r.AuthenticatedData = true
	if answer, _, err := (&dns.Client{Timeout: 5 * time.Second}).Exchange(r, at); err != nil || !answer.AuthenticatedData {
		t.Errorf("a validated answer does not have the AD bit: %v %v", answer, err)
	}
	port := app.recursor.address[strings.LastIndex(app.recursor.address, ":")+1:]
	pids := func() []string {
		out, _ := exec.Command("pgrep", "-P", fmt.Sprint(syscall.Getpid()), "unbound").Output() //nolint:gosec // our own number
		return strings.Fields(string(out))
	}
	before := pids()
	if len(before) == 0 {
		t.Fatalf("no unbound runs at %s", port)
	}
	for _, pid := range before {
		if err := exec.Command("kill", "-9", pid).Run(); err != nil {
			t.Fatal(err)
		}
	}
	check("again.signed.example.", "NOERROR 192.0.2.1")
	if !strings.Contains(log.String(), "unbound ended, restarting it") {
		t.Error("it is not said that unbound has ended")
	}
	if d := app.Diagnostics(); !strings.Contains(fmt.Sprintf("%+v", d), "validates") {
		t.Errorf("%+v", d)
	}
	// Without validation, invalid answers are returned by a new unbound process, and the previous one ends.
	host, p, _ := net.SplitHostPort(at)
	if err := app.Configure(fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}],"upstreams":[{"address":%q}],"recursion":{"validation":false}}`,
		host, p, server)); err != nil {
		t.Fatal(err)
	}
	check("bogus2.signed.example.", "NOERROR 192.0.2.66")
	if got := pids(); len(got) != len(before) {
		t.Errorf("there are %v, and were %v", got, before)
	}
}

// TestRandomCase checks that upstream queries use random case, and that the answer has the case of the client's query.
func TestRandomCase(t *testing.T) {
	if _, err := unboundProgram(); err != nil {
		t.Skip(err)
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var names sync.Map
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		names.Store(r.Question[0].Name, true)
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable = true
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
			A: net.ParseIP("192.0.2.1")}}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	var log lines
	_, at := startResolver(t, packets.LocalAddr().String(), &log, `,"recursion":{"validation":false,"randomCase":true}`)
	const name = "a.name.with.many.letters.example."
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && got != "NOERROR 192.0.2.1"; {
		got = asked(t, "udp", at, name, dns.TypeA)
	}
	mixed := false
	names.Range(func(one, _ any) bool {
		text, _ := one.(string)
		mixed = mixed || strings.EqualFold(text, name) && text != name && text != strings.ToUpper(name)
		return !mixed
	})
	if got != "NOERROR 192.0.2.1" || !mixed {
		t.Errorf("it answers %s; asked in mixed case: %v\n%s", got, mixed, log.String())
	}
}

// TestRecursionRefusals checks that invalid settings are rejected with the name of the field.
func TestRecursionRefusals(t *testing.T) {
	for field, text := range map[string]string{
		"upstreams":                 `{"listen":[{"address":"127.0.0.1"}]}`,
		"recursion.trustAnchors[0]": `{"listen":[{"address":"127.0.0.1"}],"recursion":{"trustAnchors":["a.test. A 192.0.2.1"]}}`,
		"recursion.trustAnchors[1]": `{"listen":[{"address":"127.0.0.1"}],"recursion":{"trustAnchors":[". DS 20326 8 2 AA","$INCLUDE /etc/hostname"]}}`,
		"recursion.insecure[0]":     `{"listen":[{"address":"127.0.0.1"}],"recursion":{"insecure":["a\" b"]}}`,
	} {
		if _, err := read([]byte(text)); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := read([]byte(`{"listen":[{"address":"127.0.0.1"}],"recursion":{}}`)); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := unboundProgram(); err == nil {
		t.Skip("unbound is installed at its usual path")
	}
}
