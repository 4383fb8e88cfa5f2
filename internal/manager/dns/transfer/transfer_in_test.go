package transfer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// startServer starts a server that calls do for each connection, and returns its address.
func startServer(t testing.TB, do func(c net.Conn, question []byte)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				var length [2]byte
				if _, err := io.ReadFull(c, length[:]); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(c, question); err == nil {
					do(c, question)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// frame encodes messages one after the other, as over TCP.
func frame(t testing.TB, id uint16, messages ...[]dns.RR) (out []byte) {
	t.Helper()
	for _, rrs := range messages {
		m := new(dns.Msg)
		m.Id, m.Response, m.Authoritative, m.Answer = id, true, true, rrs
		wire, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(wire))), wire...) //nolint:gosec // a message
	}
	return out
}

// zoneLines parses records, one for each line.
func zoneLines(t testing.TB, lines ...string) (all []dns.RR) {
	t.Helper()
	for _, line := range lines {
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr)
	}
	return all
}

func soaLine(serial int) string {
	return fmt.Sprintf("far.example. 60 SOA ns.far.example. h.far.example. %d 1 1 1 1", serial)
}

// TestTransferIsCut checks that a transfer that is cut anywhere before its end is rejected.
func TestTransferIsCut(t *testing.T) {
	lines := []string{soaLine(1), "far.example. 60 NS ns.far.example."}
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("h%d.far.example. 60 A 192.0.2.%d", i, i))
	}
	all := zoneLines(t, append(lines, soaLine(1))...)
	cut := -1
	at := startServer(t, func(c net.Conn, question []byte) {
		out := frame(t, binary.BigEndian.Uint16(question), all[:7], all[7:15], all[15:])
		if cut >= 0 {
			out = out[:min(cut, len(out)-1)]
		}
		_, _ = c.Write(out)
	})
	got, err := CopyZone(t.Context(), at, "far.example", nil)
	if err != nil || len(got) != len(all)-1 {
		t.Fatal(len(got), err)
	}
	whole := len(frame(t, 1, all[:7], all[7:15], all[15:]))
	for cut = range whole {
		if got, err := CopyZone(t.Context(), at, "far.example", nil); err == nil {
			t.Fatalf("cut after %d of %d bytes the zone has %d records", cut, whole, len(got))
		}
	}
}

// TestChangesAreRead checks that changes are read step by step, that invalid ones are rejected, and that a server may send the complete
// zone instead.
func TestChangesAreRead(t *testing.T) {
	a := func(n int) string { return fmt.Sprintf("h%d.far.example. 60 A 192.0.2.%d", n, n) }
	for _, c := range []struct {
		what, want string
		messages   [][]string
	}{
		{"two steps", "-h1 +h2 -h2 +h3+h4", [][]string{{soaLine(3), soaLine(1), a(1), soaLine(2), a(2), soaLine(2), a(2), soaLine(3), a(3), a(4),
			soaLine(3)}}},
		{"in messages", "-h1 +h2", [][]string{{soaLine(3)}, {soaLine(1), a(1)}, {soaLine(3)}, {a(2), soaLine(3)}}},
		{"nothing", "", [][]string{{soaLine(1)}}},
		{"all of it", "SOA h1 h2", [][]string{{soaLine(3), a(1)}, {a(2), soaLine(3)}}},
		{"another beginning", "error", [][]string{{soaLine(3), soaLine(2), a(1), soaLine(3), a(2), soaLine(3)}}},
		{"steps that do not follow", "error", [][]string{{soaLine(3), soaLine(1), a(1), soaLine(2), a(2), soaLine(3), a(3), soaLine(3),
			soaLine(3)}}},
		{"after its end", "error", [][]string{{soaLine(3), soaLine(1), a(1), soaLine(3), a(2), soaLine(3), a(5)}}},
		{"no SOA", "error", [][]string{{a(1), soaLine(3)}}},
		{"that of another zone", "error", [][]string{{"other.example. 60 SOA a. b. 3 1 1 1 1", a(1)}}},
		{"no end", "error", [][]string{{soaLine(3), soaLine(1), a(1), soaLine(3), a(2)}}},
		{"nothing at all", "error", [][]string{{}}},
	} {
		at := startServer(t, func(conn net.Conn, question []byte) {
			var messages [][]dns.RR
			for _, lines := range c.messages {
				messages = append(messages, zoneLines(t, lines...))
			}
			_, _ = conn.Write(frame(t, binary.BigEndian.Uint16(question), messages...))
		})
		known, _ := zoneLines(t, soaLine(1))[0].(*dns.SOA)
		found, err := CopyChanges(t.Context(), at, "far.example", nil, known)
		var words []string
		name := func(rr dns.RR) string {
			if rr.Header().Rrtype == dns.TypeSOA {
				return "SOA"
			}
			return strings.TrimSuffix(rr.Header().Name, ".far.example.")
		}
		switch {
		case err != nil:
			words = []string{"error"}
		default:
			for _, rr := range found.Whole {
				words = append(words, name(rr))
			}
			for _, step := range found.Steps {
				text := ""
				for _, rr := range step.Records {
					text += map[bool]string{true: "+", false: "-"}[step.Added] + name(rr)
				}
				words = append(words, text)
			}
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s: %q, want %q; %v", c.what, got, c.want, err)
		}
	}
}

// TestSignedTransferIn checks that, with a key, all responses must have a valid signature by this key, for the current time and the
// received content.
func TestSignedTransferIn(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	all := zoneLines(t, soaLine(1), "a.far.example. 60 A 192.0.2.1", "b.far.example. 60 A 192.0.2.2", soaLine(1))
	// spoil changes the signed messages.
	for what, c := range map[string]struct {
		spoil func(number int, wire []byte) []byte
		want  string
	}{
		"as it is": {func(_ int, wire []byte) []byte { return wire }, ""},
		"another address": {func(number int, wire []byte) []byte {
			if at := strings.Index(string(wire), "\xc0\x00\x02\x02"); at >= 0 {
				wire[at+3] = 9
			}
			return wire
		}, "invalid"},
		"the first one unsigned": {func(number int, wire []byte) []byte {
			if number == 0 {
				return stripSignature(t, wire)
			}
			return wire
		}, "not signed"},
		"the last one unsigned": {func(number int, wire []byte) []byte {
			if number == 2 {
				return stripSignature(t, wire)
			}
			return wire
		}, "not signed"},
		"the one between unsigned": {func(number int, wire []byte) []byte { // the signatures of later messages must cover it
			if number == 1 {
				return stripSignature(t, wire)
			}
			return wire
		}, "invalid"},
	} {
		at := startServer(t, func(conn net.Conn, question []byte) {
			q := new(dns.Msg)
			if err := q.Unpack(question); err != nil || q.IsTsig() == nil {
				return
			}
			mac := q.IsTsig().MAC
			for i, rrs := range [][]dns.RR{all[:2], all[2:3], all[3:]} {
				m := new(dns.Msg)
				m.SetReply(q)
				m.Answer, m.Extra = rrs, nil
				m.SetTsig("copy.", dns.HmacSHA256, 300, time.Now().Unix())
				wire, next, err := dns.TsigGenerate(m, secret, mac, i > 0)
				if err != nil {
					return
				}
				mac = next
				wire = c.spoil(i, slices.Clone(wire))
				_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)) //nolint:gosec // a message
			}
		})
		got, err := CopyZone(t.Context(), at, "far.example", &TransferKey{"copy.", dns.HmacSHA256, secret})
		if c.want == "" && (err != nil || len(got) != 3) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d records, %v", what, len(got), err)
		}
	}
}

// stripSignature removes the signature from a message.
func stripSignature(t testing.TB, wire []byte) []byte {
	t.Helper()
	body, err := stripLastRecord(wire)
	if err != nil {
		t.Error(err)
	}
	return body
}

// FuzzTransferIn checks that any data yields a zone with its SOA record, changes, or an error.
func FuzzTransferIn(f *testing.F) {
	a := "h.far.example. 60 A 192.0.2.1"
	f.Add(frame(f, 1, zoneLines(f, soaLine(3), a), zoneLines(f, soaLine(3))), true)
	f.Add(frame(f, 1, zoneLines(f, soaLine(3), soaLine(1), a, soaLine(3), a, soaLine(3))), true)
	f.Fuzz(func(t *testing.T, data []byte, asked bool) {
		var whole, changed int
		tr := &transfer{zone: "far.example.", ixfr: asked, from: 1, onRecord: func(rr dns.RR) error {
			if whole++; whole == 1 && rr.Header().Rrtype != dns.TypeSOA {
				t.Error("it does not begin with the SOA")
			}
			return nil
		}, onChange: func(dns.RR, bool) error {
			changed++
			return nil
		}}
		for len(data) > 2 {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			m := new(dns.Msg)
			if m.Unpack(data[2:2+n]) == nil {
				if _, err := stripLastRecord(data[2 : 2+n]); err == nil && len(m.Extra) == 0 {
					t.Error("a message without further records has a last one")
				}
				last, err := tr.readMessage(m)
				if err != nil || last {
					break
				}
			}
			data = data[2+n:]
		}
		if tr.done && !tr.incremental && whole == 0 || tr.done && tr.incremental && whole > 0 || changed > 0 && !tr.incremental {
			t.Errorf("done %t, steps %t: %d records, %d changes", tr.done, tr.incremental, whole, changed)
		}
	})
}
