package authn

import (
	"context"
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

	"layeh.com/radius"
	"layeh.com/radius/rfc2865"
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
	for name, forge := range map[string]func(q *radius.Packet) []byte{
		"not signed": func(q *radius.Packet) []byte {
			text, _ := q.Response(radius.CodeAccessAccept).Encode()
			return text
		},
		"signed by another secret": func(q *radius.Packet) []byte {
			a := q.Response(radius.CodeAccessAccept)
			a.Secret = []byte("another")
			text, _ := a.Encode()
			return text
		},
		"of another question": func(q *radius.Packet) []byte {
			a := q.Response(radius.CodeAccessAccept)
			a.Authenticator = [16]byte{1, 2, 3}
			text, _ := a.Encode()
			return text
		},
		"no message": func(*radius.Packet) []byte { return []byte("\x02\x01") },
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
					q, err := radius.Parse(buffer[:n], []byte("shared here"))
					if err != nil || rfc2865.UserName_GetString(q) == "" {
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
