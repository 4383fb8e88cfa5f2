package server

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// TestConnectionsWithoutCertificateAreLimited checks that connections without a certificate to the check-in listener do not block service
// points, however many a client opens. Connections of service points are not counted.
func TestConnectionsWithoutCertificateAreLimited(t *testing.T) {
	m := startAlone(t)
	created := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"quay"}`)
	one := m.machine("quay", created.Text("registrationKey"))
	held := m.anonymous.Open()
	one.report(0, nil)
	apitest.Eventually(t, "the service point is not counted as a stranger", func() bool { return m.anonymous.Open() <= held })
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}, Timeout: 5 * time.Second}
	const many = 600
	for i := range many {
		c, err := dialer.DialContext(context.Background(), "tcp", m.checkins.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%200 == 0 {
			if status, answer := one.ask(checkin.Request{}); status != http.StatusOK {
				t.Fatalf("beside %d strangers a check-in gives %d %v", i, status, answer)
			}
		}
	}
	one.report(0, nil)
}

// TestStatusOfADamagedDatabase checks that the status of a manager with a damaged database shows an alarm, and that the metrics show it.
func TestStatusOfADamagedDatabase(t *testing.T) {
	if os.Getenv(apitest.OnPostgres) != "" {
		t.Skip("the file of SQLite is damaged")
	}
	dir, page := t.TempDir(), 4096
	mark := []byte(strings.Repeat("damage", 40))
	t.Run("before", func(t *testing.T) { // it is closed at the end
		m := startManager(t, func(o *Options) { o.Data = dir })
		for i := range 60 {
			m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", fmt.Sprintf(`{"name":"quay%d","description":%q}`, i, mark))
		}
	})
	file := filepath.Join(dir, "portolan.db")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for from := page; from+page <= len(text); from += page {
		if bytes.Contains(text[from:from+page], mark) {
			copy(text[from:from+page], bytes.Repeat([]byte{0xa5}, page))
		}
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m := startManager(t, func(o *Options) { o.Data = dir })
	m.Refused(503, "DatabaseDamaged", "", "GET", "/user/api/v1/fleetInstances", "")
	s, err := m.readStatus(t.Context())
	if err != nil || s.Database.Condition != store.Damaged {
		t.Fatalf("the status is %+v, %v", s, err)
	}
	if !slices.ContainsFunc(s.Alarms, func(a Alarm) bool { return a.Severity == critical && strings.Contains(a.What, "damaged") }) {
		t.Errorf("the alarms are %+v", s.Alarms)
	}
	text = m.Want(200, "GET", "/metrics", "").Body
	for _, want := range []string{`portolan_database_condition{condition="DAMAGED"} 1`, `portolan_alarms{severity="critical"} 1`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the metrics do not say %s", want)
		}
	}
	m.Want(200, "GET", "/api/v2/status", "")
}
