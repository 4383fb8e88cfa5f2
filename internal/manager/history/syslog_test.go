package history

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
)

// some are transactions to send.
var some = []store.Entry{
	{ID: 7, Operation: "CREATE_ZONE", At: time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC), Body: []byte(`{"comment":"a mast"}`)},
	{ID: 8, Operation: "DELETE_ZONE", At: time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC), Body: []byte(`{}`)},
}

func collector(t *testing.T, text string) *Syslog {
	t.Helper()
	s, err := ParseSyslog(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func isMessage(t *testing.T, got, begins, has string) {
	t.Helper()
	if !strings.HasPrefix(got, begins) || !strings.Contains(got, has) {
		t.Errorf("the message is %q", got)
	}
}

// TestSyslogOverUDP checks that each message is a datagram of its own over UDP (RFC 5426 section 3.1).
func TestSyslogOverUDP(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := collector(t, "udp://"+l.LocalAddr().String())
	if err := s.send(t.Context(), some, [][]byte{[]byte(`{"place":3}`)}); err != nil {
		t.Fatal(err)
	}
	_ = l.SetReadDeadline(time.Now().Add(30 * time.Second))
	for _, want := range []string{"CREATE_ZONE - {\"transaction\":7", "DELETE_ZONE - {\"transaction\":8", headID + ` - {"place":3}`} {
		text := make([]byte, 1<<16)
		n, _, err := l.ReadFrom(text)
		if err != nil {
			t.Fatal(err)
		}
		isMessage(t, string(text[:n]), "<109>1 2026-", " portolan - "+want)
	}
}

// TestSyslogToClosedPort checks that the error of a closed port is returned only once.
func TestSyslogToClosedPort(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := collector(t, "udp://"+l.LocalAddr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	said := 0
	for range 20 {
		if s.send(t.Context(), some, nil) != nil {
			said++
		}
	}
	if said != 1 {
		t.Errorf("it was reported %d times", said)
	}
}

// TestSyslogOverTLS checks that messages over TLS are framed by their length (RFC 5425 section 4.3), and are sent only if the certificate
// is trusted.
func TestSyslogOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil) // for its certificate
	defer server.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: server.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read := make(chan string, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			text, err := message(r)
			if err == nil {
				read <- text
			}
			_ = conn.Close()
		}
	}()
	s := collector(t, "tls://"+l.Addr().String())
	if err := s.send(t.Context(), some, nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the error for a collector with an untrusted certificate is %v", err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(server.Certificate())
	if err := s.send(t.Context(), some, nil); err != nil {
		t.Fatal(err)
	}
	isMessage(t, <-read, "<109>1 2026-03-04T05:06:07.089Z ", " portolan - CREATE_ZONE - {\"transaction\":7")
}

// message reads a message that is preceded by its length.
func message(r *bufio.Reader) (string, error) {
	length, err := r.ReadString(' ')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(length, " "))
	if err != nil {
		return "", fmt.Errorf("the length is %q", length)
	}
	text := make([]byte, n)
	_, err = io.ReadFull(r, text)
	return string(text), err
}
