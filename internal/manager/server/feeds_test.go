package server

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// TestFeedsRequireLength checks that a feed without a length is refused: nothing would reveal that it was cut off.
func TestFeedsRequireLength(t *testing.T) {
	for head, want := range map[string]string{
		"HTTP/1.0 200 OK\r\n\r\n":                                         "does not declare the length",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n":                    "does not declare the length",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n":                    "",
		"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n": "302",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			if line, err := bufio.NewReader(c).ReadString('\n'); err == nil && strings.HasPrefix(line, "GET /malware.txt ") {
				_, _ = io.WriteString(c, head+"bad.test\n")
			}
		}()
		m := &Manager{options: Options{Feeds: "http://" + l.Addr().String() + "/{category}.txt"}}
		body, err := m.feed(t.Context(), "malware")
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", head, err)
		case err == nil:
			if text, err := io.ReadAll(body); string(text) != "bad.test\n" || err != nil {
				t.Errorf("%q gives %q %v", head, text, err)
			}
			_ = body.Close()
		}
		_ = l.Close()
	}
}
