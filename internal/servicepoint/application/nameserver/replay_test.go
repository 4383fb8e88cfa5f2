package nameserver

import (
	"encoding/base64"
	"net"
	"sync/atomic"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/zonedata"
)

// TestSignedUpdatesAreAppliedOnce repeats a signed update within its time window. It gets the same answer and is decided once. An update
// signed before the start is rejected.
func TestSignedUpdatesAreAppliedOnce(t *testing.T) {
	key, match := keyed("client-key.", dns.HmacSHA256)
	a := start(t, nil, given{name: "harbour.example.", records: harbour, update: match, keys: []zonedata.SigningKey{key}})
	at := listening(t, a).String()
	var decided atomic.Int32
	go func() {
		for t.Context().Err() == nil {
			for _, one := range a.Updates(t.Context()) {
				decided.Add(1)
				a.Decide([]application.UpdateAnswer{{ID: one.ID, Code: dns.RcodeYXRrset}})
			}
		}
	}()
	message := func(name string, signed time.Time) (wire []byte, mac string) {
		t.Helper()
		m := new(dns.Msg)
		m.SetUpdate("harbour.example.")
		m.Insert([]dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}})
		m.SetTsig(key.Name, key.Algorithm, 300, signed.Unix())
		wire, mac, err := dns.TsigGenerate(m, base64.StdEncoding.EncodeToString(key.Secret), "", false)
		if err != nil {
			t.Fatal(err)
		}
		return wire, mac
	}
	send := func(wire []byte) *dns.Msg {
		t.Helper()
		c, err := (&dns.Client{Net: "udp", Timeout: 5 * time.Second}).Dial(at)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write(wire); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1<<16)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		r := new(dns.Msg)
		if err := r.Unpack(b[:n]); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, _ := message("a.harbour.example.", time.Now())
	for range 3 {
		if r := send(first); r.Rcode != dns.RcodeYXRrset || r.IsTsig() == nil || r.IsTsig().Error != 0 {
			t.Errorf("it is answered %v", r)
		}
	}
	second, _ := message("b.harbour.example.", time.Now())
	send(second)
	if n := decided.Load(); n != 2 {
		t.Errorf("%d updates were decided on, and 2 were sent", n)
	}
	early, _ := message("c.harbour.example.", a.started.Add(-2*time.Second))
	if r := send(early); r.Rcode != dns.RcodeNotAuth || r.IsTsig() == nil || r.IsTsig().Error != dns.RcodeBadTime {
		t.Errorf("signed before the start: %v", r)
	}
	if n := decided.Load(); n != 2 {
		t.Errorf("%d updates were decided on, and the last one is refused", n)
	}
}

// TestReplaysAreBounded fills the memory of updates. The oldest ones are forgotten, and updates with the same or an earlier time are
// rejected.
func TestReplaysAreBounded(t *testing.T) {
	var r replays
	k, now := &key{name: "k"}, time.Unix(1_000_000, 0)
	at := func(i int) *signature {
		return &signature{time: uint64(now.Unix()) + uint64(i/maxReplays), fudge: 300, mac: []byte{byte(i), byte(i >> 8),
			byte(i >> 16)}} //nolint:gosec // small
	}
	for i := range maxReplays + 10 {
		if one, again, late := r.register(k, at(i), now); one == nil || again || late {
			t.Fatalf("%d: %v %v", i, again, late)
		}
	}
	if len(r.known) != maxReplays || len(r.order) != maxReplays {
		t.Errorf("%d are remembered", len(r.known))
	}
	if _, again, late := r.register(k, at(0), now); again || !late {
		t.Error("one that was forgotten is taken again")
	}
	if _, again, _ := r.register(k, at(maxReplays+9), now); !again {
		t.Error("the last one is not remembered")
	}
	if one, _, late := r.register(k, &signature{time: uint64(now.Unix()) + 1000, mac: []byte{1}},
		now.Add(1000*time.Second)); one == nil || late {
		t.Error("a later one is refused")
	}
	if len(r.known) != 1 {
		t.Errorf("%d are remembered whose time is over", len(r.known))
	}
}
