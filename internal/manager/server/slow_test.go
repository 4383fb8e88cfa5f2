package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
)

// TestSlowReadersAreDisconnected checks that clients that request long lists and do not read them are disconnected, and do not delay
// others for long.
func TestSlowReadersAreDisconnected(t *testing.T) {
	apitest.Slow(t)
	m := startOnce(t)
	m.REST.WriteTime = 300 * time.Millisecond
	if err := Sample(t.Context(), m.Address); err != nil {
		t.Fatal(err)
	}
	for range 20 { // more than there are read connections
		conn, err := net.Dial("tcp", strings.TrimPrefix(m.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(conn, "GET /api/v2?limit=100000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", m.Token)
	}
	m.Want(http.StatusOK, "GET", "/api/v2/networks?limit=1", "")
}
