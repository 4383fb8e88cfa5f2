package authn

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // RFC 2865 requires it
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"portolan/internal/testkit/authntest"
	"portolan/internal/testkit/freeport"
)

// freeRADIUS starts FreeRADIUS with one user and returns the client for it.
func freeRADIUS(t *testing.T) RADIUS {
	t.Helper()
	server := authntest.Program(t, "freeradius")
	dir, port := t.TempDir(), int64(freeport.Reserve(t).Port())
	config := fmt.Sprintf(`prefix = /usr
name = freeradius
logdir = %[1]s
run_dir = %[1]s
libdir = /usr/lib/freeradius
pidfile = %[1]s/pid
log { destination = stderr }
listen { type = auth
 ipaddr = 127.0.0.1
 port = %[2]d
 virtual_server = default }
client here { ipaddr = 127.0.0.1
 secret = "shared here" }
modules { pap { }
 chap { }
 files { usersfile = %[1]s/users } }
server default {
 authorize {
  chap
  files
  pap
 }
 authenticate {
  Auth-Type PAP {
   pap
  }
  Auth-Type CHAP {
   chap
  }
 }
 post-auth {
  update reply {
   Message-Authenticator := 0x00
  }
  Post-Auth-Type REJECT {
   update reply {
    Message-Authenticator := 0x00
   }
  }
 }
}
`, dir, port)
	for name, text := range map[string]string{"radiusd.conf": config, "users": "carol Cleartext-Password := \"carols password\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), server, "-f", "-d", dir, "-n", "radiusd")
	said := filepath.Join(dir, "said")
	log, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = log.Close()
	})
	r := RADIUS{Host: "127.0.0.1", Port: port, Secret: "shared here", Signed: true, Timeout: 2 * time.Second, Retries: 2}
	for deadline := time.Now().Add(20 * time.Second); ; { // until it answers
		if _, err := r.Check(t.Context(), "carol", "carols password"); err == nil {
			return r
		} else if time.Now().After(deadline) {
			text, _ := os.ReadFile(said)
			t.Fatalf("it does not answer: %v\n%s", err, text)
		}
	}
}

// TestRADIUS checks that a RADIUS server verifies passwords by PAP and by CHAP.
func TestRADIUS(t *testing.T) {
	pap := freeRADIUS(t)
	chap, stranger := pap, pap
	chap.CHAP = true
	stranger.Secret, stranger.Timeout, stranger.Retries = "another", 100*time.Millisecond, 1
	for name, r := range map[string]RADIUS{"PAP": pap, "CHAP": chap} {
		if id, err := r.Check(t.Context(), "carol", "carols password"); err != nil || id.Name != "carol" {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
		for _, pair := range [][2]string{{"carol", "wrong"}, {"nobody", "carols password"}, {"carol", string(make([]byte, 129))}} {
			if _, err := r.Check(t.Context(), pair[0], pair[1]); !errors.Is(err, ErrWrong) {
				t.Errorf("%s: %q with %q: %v", name, pair[0], pair[1], err)
			}
		}
	}
	if _, err := stranger.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with another secret: %v", err)
	}
}

// TestForgedAnswers checks that a forged or unsigned answer is rejected.
func TestForgedAnswers(t *testing.T) {
	answer := func(q *radiusMessage, secret string) []byte {
		m := &radiusMessage{code: accessAccept, id: q.id, authenticator: q.authenticator}
		m.authenticator = md5.Sum(append(m.encode(), secret...)) //nolint:gosec // RFC 2865 requires MD5
		return m.encode()
	}
	for name, forge := range map[string]func(q *radiusMessage) []byte{
		"not signed":               func(q *radiusMessage) []byte { return answer(q, "shared here") },
		"signed by another secret": func(q *radiusMessage) []byte { return answer(q, "another") },
		"of another question": func(q *radiusMessage) []byte {
			other := *q
			other.authenticator = [16]byte{1, 2, 3}
			return answer(&other, "shared here")
		},
		"no message": func(*radiusMessage) []byte { return []byte("\x02\x01") },
		"a wrong attribute": func(q *radiusMessage) []byte {
			return append(append([]byte{accessAccept, q.id, 0, 22}, q.authenticator[:]...), radiusUserName, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			t.Cleanup(func() { stop(); _ = conn.Close() })
			go func() {
				for ctx.Err() == nil {
					buffer := make([]byte, 4096)
					n, from, err := conn.ReadFrom(buffer)
					if err != nil {
						return
					}
					q, err := parseRADIUS(buffer[:n])
					if err != nil {
						continue
					}
					_, _ = conn.WriteTo(forge(q), from)
				}
			}()
			r := RADIUS{Host: "127.0.0.1", Port: int64(conn.LocalAddr().(*net.UDPAddr).Port), Secret: "shared here", Signed: true,
				Timeout: 50 * time.Millisecond, Retries: 1}
			if id, err := r.Check(t.Context(), "carol", "x"); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%+v, %v", id, err)
			}
		})
	}
}

// FuzzRADIUS checks that each message that is read is written again with the same octets.
func FuzzRADIUS(f *testing.F) {
	m := newRADIUSRequest()
	if err := m.add(radiusUserName, []byte("carol")); err != nil {
		f.Fatal(err)
	}
	m.sign("shared here")
	f.Add(m.encode())
	f.Add([]byte{accessAccept, 1, 0, 20})
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseRADIUS(text)
		if err != nil {
			return
		}
		if again := m.encode(); !bytes.Equal(again, text[:len(again)]) {
			t.Errorf("%x is written as %x", text, again)
		}
		m.checkSignature(m, "shared here")
		m.isAnswerTo(m, "shared here")
	})
}

// TestRADIUSPassword compares hidden passwords with those of RFC 2865 section 7.1.
func TestRADIUSPassword(t *testing.T) {
	m := &radiusMessage{}
	copy(m.authenticator[:], "\x0f\x40\x3f\x94\x73\x97\x80\x57\xbd\x83\xd5\xcb\x98\xf4\x22\x7a")
	if got := fmt.Sprintf("%x", m.hidePassword("arctangent", "xyzzy5461")); got != "0dbe708d93d413ce3196e43f782a0aee" {
		t.Errorf("the password is %s", got)
	}
}

// TestRADIUSPortClosed checks that a closed port ends a sign-in before its first time-out.
func TestRADIUSPortClosed(t *testing.T) {
	r := RADIUS{Host: "127.0.0.1", Port: int64(freeport.Reserve(t).Port()), Secret: "shared here", Timeout: 20 * time.Second, Retries: 2}
	ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	if _, err := r.Check(ctx, "carol", "x"); !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// TestRADIUSWithoutAnswer checks that a request is sent as often as configured to a server that does not answer, and once if the sign-in is
// cancelled meanwhile.
func TestRADIUSWithoutAnswer(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	received := func() (n int) {
		for buffer := make([]byte, maxRADIUS); ; n++ {
			if err := silent.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := silent.ReadFrom(buffer); err != nil {
				return n
			}
		}
	}
	r := RADIUS{Host: "127.0.0.1", Port: int64(silent.LocalAddr().(*net.UDPAddr).Port), Secret: "shared here",
		Timeout: 100 * time.Millisecond, Retries: 2}
	if _, err := r.Check(t.Context(), "carol", "x"); !errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) {
		t.Errorf("without an answer: %v", err)
	}
	if n := received(); n != 3 {
		t.Errorf("%d requests were sent, and 3 are configured", n)
	}
	r.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := r.Check(ctx, "carol", "x"); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if n := received(); n != 1 {
		t.Errorf("%d requests were sent by a cancelled sign-in", n)
	}
}
