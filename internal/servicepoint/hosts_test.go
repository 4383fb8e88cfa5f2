package servicepoint

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
)

// TestForeignHostHeadersAreRejected checks that requests for addresses and names of the machine are answered and other Host headers are
// rejected.
func TestForeignHostHeadersAreRejected(t *testing.T) {
	a := &Agent{log: slog.New(slog.DiscardHandler), options: Options{Names: []string{"edge.example.net"}}}
	handler := a.checkHost(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for host, want := range map[string]int{"127.0.0.1:8083": 200, "[::1]:8083": 200, "192.0.2.1": 200, "localhost:8083": 200,
		"LOCALHOST": 200, "": 200,
		"edge.example.net:8083": 200, "edge.example.net.": 200, "evil.example": 421, "evil.example:8083": 421,
		"edge.example.net.evil.example": 421} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != want {
			t.Errorf("Host %q is answered by %d, want %d", host, w.Code, want)
		}
	}
}

// TestOneClientCannotExhaustDiagnostics opens idle connections and sends a request from another address.
func TestOneClientCannotExhaustDiagnostics(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{log: slog.New(slog.DiscardHandler)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.serveAt(ctx, "diagnostics", checkin.DiagnosticsPath, handler, func() (net.Listener, error) { return l, nil })
	}()
	t.Cleanup(func() { stop(); <-ended })
	from := func(address string) *net.Dialer {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: from("127.0.0.3").DialContext}}
	for range 200 {
		c, err := from("127.0.0.2").Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	for range 5 {
		r, err := client.Get("http://" + l.Addr().String() + checkin.DiagnosticsPath)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("it is answered by %d, %v", r.StatusCode, err)
		}
		_ = r.Body.Close()
	}
}
