package middleware

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestParkedConnectionsReturn checks that an answered connection returns to the server when the wait function permits it. If the manager
// ends before that, or at the same time, the connection is closed.
func TestParkedConnectionsReturn(t *testing.T) {
	at, err := net.ResolveTCPAddr("tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	var standing atomic.Int64
	begin := func() (p *Parking, goOn, asked chan struct{}) {
		goOn, asked = make(chan struct{}), make(chan struct{}, 10)
		p = NewParking(at, func(more int) { standing.Add(int64(more)) }, func(ctx context.Context) {
			asked <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		})
		t.Cleanup(func() { _ = p.Close() })
		return p, goOn, asked
	}
	p, goOn, asked := begin()
	var all []net.Conn
	for range 3 {
		_, c := net.Pipe()
		all = append(all, c)
		p.returnConn(c)
	}
	<-asked
	select {
	case c := <-p.back:
		t.Errorf("%v is returned before", c)
	default:
	}
	if n := standing.Load(); n != 3 {
		t.Errorf("%d connections are parked, want 3", n)
	}
	goOn <- struct{}{}
	for _, c := range all {
		if got, err := p.Accept(); err != nil || got != c {
			t.Errorf("%v, %v is returned", got, err)
		}
	}
	goOn <- struct{}{} // it checks for further connections
	eventually(t, "no connection is parked, and no goroutine returns them", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.returning && standing.Load() == 0
	})
	for name, ends := range map[string]func(p *Parking, goOn chan struct{}){
		"before they may return":            func(p *Parking, _ chan struct{}) { p.End() },
		"when they may":                     func(p *Parking, goOn chan struct{}) { p.ends.Store(true); goOn <- struct{}{} },
		"without a listener to accept them": func(p *Parking, goOn chan struct{}) { goOn <- struct{}{}; _ = p.Close() },
		"with the listener, before that":    func(p *Parking, _ chan struct{}) { _ = p.Close() },
	} {
		p, goOn, asked := begin()
		theirs, c := net.Pipe()
		p.returnConn(c)
		<-asked
		ends(p, goOn)
		if _, err := theirs.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // as pipes give it
			t.Errorf("an answered connection does not end %s: %v", name, err)
		}
		eventually(t, "no connection is parked", func() bool { return standing.Load() == 0 })
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after 10 s: %s", what)
		}
	}
}

// TestConnWriter checks that the writer of an answer keeps the declared length, and closes the connection otherwise.
func TestConnWriter(t *testing.T) {
	for name, c := range map[string]struct {
		length string
		write  []string
		goes   bool
		says   string
	}{
		"whole": {"5", []string{"he", "llo"}, true, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"},
		"short": {"5", []string{"hell"}, false, ""}, "long": {"5", []string{"hello", "!"}, false, ""},
		"nobody has said": {"", []string{"hello"}, true, "HTTP/1.1 200 OK\r\nConnection: close\r\n"},
		"nothing":         {"", nil, true, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			got := make(chan string, 1)
			go func() { text, _ := io.ReadAll(theirs); got <- string(text) }()
			s := &sheet{header: http.Header{}, conn: ours, out: bufio.NewWriter(ours)}
			if c.length != "" {
				s.header.Set("Content-Length", c.length)
			}
			for _, text := range c.write {
				_, _ = s.Write([]byte(text))
			}
			if err := s.finish(); (err == nil) != c.goes {
				t.Errorf("it ends with %v", err)
			}
			_ = ours.Close()
			if text := <-got; !strings.HasPrefix(text, c.says[:min(len(c.says), 17)]) || c.says != "" && !strings.Contains(text, c.says[17:]) {
				t.Errorf("it is %q", text)
			}
		})
	}
}
