package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// waiter is a service point's connection that is written and read by hand.
type waiter struct {
	t    *testing.T
	conn *tls.Conn
	in   *bufio.Reader
	seen checkin.Answer
}

// provisioned gives a service point that has enrolled and reported: its id and its certificate.
func (m *manager) provisioned(name string) (id string, certificate *tls.Certificate) {
	m.T.Helper()
	id, key := m.create(name)
	e := newEnrolment(m.T)
	_, answer := m.enrol(e, key)
	certificate = e.certificateOf(m.T, answer)
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Digest: "d", Report: &checkin.Report{Version: "1", Variant: checkin.Fleet,
		ErrorConditions: []string{}}}, certificate); status != 200 {
		m.T.Fatalf("a first check-in: %d %v", status, a)
	}
	return id, certificate
}

// waiter connects a service point.
func (m *manager) waiter(certificate *tls.Certificate) *waiter {
	m.T.Helper()
	config := &tls.Config{RootCAs: m.authority.Pool(), ServerName: checkin.ServerName, MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"h2", "http/1.1"}}
	conn, err := tls.Dial("tcp", m.checkins.Addr().String(), config)
	if err != nil {
		m.T.Fatal(err)
	}
	m.T.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		m.T.Fatal(err)
	}
	return &waiter{t: m.T, conn: conn, in: bufio.NewReader(conn)}
}

// send sends a check-in that waits, with what is put behind it.
func (w *waiter) send(proto, behind string, headers ...string) {
	w.t.Helper()
	body, err := json.Marshal(checkin.Request{Digest: "d", Desired: w.seen.Desired, WaitSeconds: 20})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(w.conn, "POST %s %s\r\nHost: m\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s%s",
		checkin.CheckInPath, proto, len(body), strings.Join(append(headers, ""), "\r\n"), body, behind); err != nil {
		w.t.Fatal(err)
	}
}

// answer reads the answer of a check-in.
func (w *waiter) answer(status int) *http.Response {
	w.t.Helper()
	rs, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := io.ReadAll(rs.Body)
	if err == nil && rs.StatusCode == 200 {
		err = json.Unmarshal(body, &w.seen)
	}
	if err != nil || rs.StatusCode != status || rs.Header.Get("Content-Type") != "application/json" || rs.Header.Get("Date") == "" ||
		rs.Header.Get("X-Content-Type-Options") != "nosniff" || rs.Header.Get("X-Request-Id") == "" {
		w.t.Fatalf("the answer is %d %v %s, %v", rs.StatusCode, rs.Header, body, err)
	}
	return rs
}

// ends reports whether the connection has ended.
func (w *waiter) ends() bool {
	_, err := w.in.ReadByte()
	return err == io.EOF //nolint:errorlint // as bufio gives it
}

// waiting returns the number of open check-ins.
func (m *manager) waiting() int {
	return m.parking.Waiting()
}

// order changes what a service point is to run.
func (m *manager) order(id string) {
	m.T.Helper()
	m.Want(202, "POST", "/user/api/v1/fleetInstances/"+id+"/applications",
		`{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`)
}

// desiredOf returns the generation of the desired state of a service point.
func (m *manager) desiredOf(id string) (desired int64) {
	m.T.Helper()
	if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT desired FROM service_point WHERE id = ?", id).Scan(&desired)
	}); err != nil {
		m.T.Fatal(err)
	}
	return desired
}

func startPatient(t *testing.T, change ...func(*Options)) *manager {
	t.Helper()
	return startManager(t, append(change, func(o *Options) { o.Interval = 20 * time.Second })...)
}

// TestCheckInsWaitWithoutGoroutines holds check-ins open, orders something, and has their connections go on.
func TestCheckInsWaitWithoutGoroutines(t *testing.T) {
	apitest.Slow(t)
	m := startPatient(t)
	const many = 40
	ids, all := make([]string, many), make([]*waiter, many)
	for i := range all {
		id, certificate := m.provisioned(fmt.Sprintf("w%d", i))
		ids[i], all[i] = id, m.waiter(certificate)
		all[i].send("HTTP/1.1", "") // it learns what it is to run
		all[i].answer(200)
	}
	if got := all[0].conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the door speaks %q", got)
	}
	for round := range 3 {
		for _, w := range all {
			w.send("HTTP/1.1", "")
		}
		apitest.Eventually(t, "all wait", func() bool { return m.waiting() == many })
		stacks := make([]byte, 1<<20)
		apitest.Eventually(t, "no request waits for them", func() bool {
			of := string(stacks[:runtime.Stack(stacks, true)])
			return !strings.Contains(of, "fleet.(*Service).CheckIn") && strings.Count(of, "net/http.(*conn).serve") < many/2
		})
		for i, w := range all {
			m.order(ids[i])
			if w.answer(200); w.seen.State == nil || len(w.seen.State.Applications) != round+1 {
				t.Fatalf("round %d: the answer is %+v", round, w.seen)
			}
		}
		apitest.Eventually(t, "nobody waits", func() bool { return m.waiting() == 0 })
	}
	// All are notified at once and read together: each gets its own state.
	for _, w := range all {
		w.send("HTTP/1.1", "")
	}
	apitest.Eventually(t, "all wait", func() bool { return m.waiting() == many })
	if err := m.Store.UpdateIn(t.Context(), store.LockedRowsScope(), store.Author{}, func(tx *store.Tx) error {
		for i, id := range ids {
			if err := tx.Write("UPDATE service_point SET desired = desired + ? WHERE id = ?", 1000+i, id); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		m.Fleet.Wake(id)
	}
	for i, w := range all {
		before := w.seen.Desired
		if w.answer(200); w.seen.Desired != before+int64(1000+i) || w.seen.State.Generation != w.seen.Desired {
			t.Errorf("service point %d gets generation %d, and had %d", i, w.seen.Desired, before)
		}
	}
}

// TestParkedConnections checks when the connection of a waiting check-in stays open after its answer, and when it is closed.
func TestParkedConnections(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access")
	m := startPatient(t, func(o *Options) { o.AccessLog = log })
	id, certificate := m.provisioned("one")
	m.order(id)
	first := m.waiter(certificate)
	first.send("HTTP/1.1", "") // it has not seen what it is to run
	first.answer(200)
	waits := func(proto, behind string, headers ...string) *waiter {
		apitest.Eventually(t, "no earlier request waits", func() bool { return m.waiting() == 0 }) // one may be counted until after its answer
		w := m.waiter(certificate)
		w.seen = first.seen
		w.send(proto, behind, headers...)
		apitest.Eventually(t, "it waits", func() bool { return m.waiting() == 1 })
		return w
	}
	for i, c := range []struct {
		proto, behind, header string
		ends                  bool
	}{
		{"HTTP/1.1", "", "X-Request-Id: mine", false},
		{"HTTP/1.1", "", "Connection: close", true},
		{"HTTP/1.0", "", "X: y", true},
		{"HTTP/1.1", "P", "X: y", true}, // who has sent more has not waited
	} {
		w := waits(c.proto, c.behind, c.header)
		m.order(id)
		rs := w.answer(200)
		first.seen = w.seen
		if rs.Close != c.ends || c.ends && !w.ends() {
			t.Errorf("%+v: the connection ends: %v", c, rs.Close)
		}
		if i == 0 && rs.Header.Get("X-Request-Id") != "mine" {
			t.Errorf("its name is %q", rs.Header.Get("X-Request-Id"))
		}
	}
	apitest.Eventually(t, "the access log has a line for each answer, which may be written behind it", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && bytes.Count(text, []byte(`"POST /checkin/v1 HTTP/1.1" 200 `)) >= 5 &&
			bytes.Contains(text, []byte(`HTTP/1.0" 200 `)) && bytes.Contains(text, []byte(" mine\n"))
	})

	// A client that asks again has dropped its earlier request, which is answered, and its connection is released.
	given := waits("HTTP/1.1", "", "X: y")
	again := m.waiter(certificate)
	again.seen = first.seen
	again.send("HTTP/1.1", "")
	given.answer(200)
	apitest.Eventually(t, "the other one waits alone, or was answered", func() bool { return m.waiting() <= 1 })
	m.order(id)
	again.answer(200)
	for again.seen.Desired < m.desiredOf(id) { // it was answered before there was news, as it may be at any time
		again.send("HTTP/1.1", "")
		again.answer(200)
	}
	first.seen = again.seen

	gone := waits("HTTP/1.1", "")
	_ = gone.conn.Close()
	m.order(id)
	apitest.Eventually(t, "it is let go of", func() bool { return m.waiting() == 0 })

	gone = m.waiter(certificate)
	gone.send("HTTP/1.1", "")
	gone.answer(200)
	gone.send("HTTP/1.1", "")
	apitest.Eventually(t, "it waits", func() bool { return m.waiting() == 1 })
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+id, "")
	gone.answer(410)
	// The connection is as good as any.
	gone.send("HTTP/1.1", "")
	gone.answer(410)
}

// TestContentWaits checks that requests for content wait in the same way, and continue to wait without new content.
func TestContentWaits(t *testing.T) {
	apitest.Slow(t)
	m := startPatient(t)
	_, certificate := m.provisioned("one")
	w := m.waiter(certificate)
	for range 2 {
		const body = `{"from":"","waitSeconds":1}`
		if _, err := fmt.Fprintf(w.conn, "POST %s HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			checkin.ContentPath, len(body), body); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, "it waits", func() bool { return m.waiting() == 1 })
		rs, err := http.ReadResponse(w.in, nil)
		if err != nil || rs.StatusCode != http.StatusNoContent || rs.Close {
			t.Fatalf("the answer is %+v, %v", rs, err)
		}
	}
}

// TestContentOfTwoApplications checks that content requests of two applications wait independently. A new request of an application ends
// the earlier one of the same application.
func TestContentOfTwoApplications(t *testing.T) {
	m := startPatient(t)
	_, certificate := m.provisioned("one")
	ask := func(w *waiter, application string) {
		t.Helper()
		body := `{"from":"","waitSeconds":30,"application":"` + application + `"}`
		if _, err := fmt.Fprintf(w.conn, "POST %s HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			checkin.ContentPath, len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(w *waiter) {
		t.Helper()
		if rs, err := http.ReadResponse(w.in, nil); err != nil || rs.StatusCode != http.StatusNoContent {
			t.Fatalf("the answer is %+v, %v", rs, err)
		}
	}
	server, resolver := m.waiter(certificate), m.waiter(certificate)
	asked := time.Now()
	ask(server, "server")
	ask(resolver, "resolver")
	apitest.Eventually(t, "both wait", func() bool { return m.waiting() == 2 })
	again := m.waiter(certificate)
	ask(again, "resolver")
	answered(resolver)
	apitest.Eventually(t, "the other one still waits, unless a slow machine took longer than the longest wait", func() bool {
		return m.waiting() == 2 || time.Since(asked) > checkin.Interval
	})
	for i := range 70 { // more than it can have applications: those that have waited longest go
		ask(m.waiter(certificate), fmt.Sprint("other-", i))
	}
	answered(server)
	apitest.Eventually(t, "there are as many as it can have", func() bool { return m.waiting() == 65 || m.waiting() == 64 })
}

// TestCheckInsEndWithTheManager checks that a waiting check-in is answered and its connection closed when the manager stops.
func TestCheckInsEndWithTheManager(t *testing.T) {
	var w *waiter
	whole := t
	t.Run("a manager", func(t *testing.T) {
		m := startPatient(t)
		_, certificate := m.provisioned("one")
		m.T = whole // the connection outlives this
		w = m.waiter(certificate)
		w.send("HTTP/1.1", "")
		w.answer(200) // what it is to run
		w.send("HTTP/1.1", "")
		apitest.Eventually(t, "it waits", func() bool { return m.waiting() == 1 })
	})
	if rs := w.answer(200); !rs.Close || !w.ends() {
		t.Error("the connection is still open")
	}
}

// TestSessionsResume checks that a service point that cancelled a check-in resumes its TLS session, without sending certificates again.
func TestSessionsResume(t *testing.T) {
	m := startPatient(t)
	_, certificate := m.provisioned("one")
	h := m.doorClient(certificate)
	transport, _ := h.Transport.(*http.Transport)
	transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for round := range 2 {
		resumed := false
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
			TLSHandshakeDone: func(s tls.ConnectionState, _ error) { resumed = s.DidResume }})
		rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+m.checkins.Addr().String()+checkin.CheckInPath,
			strings.NewReader(`{"digest":"d"}`))
		if err != nil {
			t.Fatal(err)
		}
		rq.Header.Set("Content-Type", "application/json")
		rs, err := h.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, rs.Body)
		_ = rs.Body.Close()
		if rs.StatusCode != 200 || resumed != (round == 1) {
			t.Errorf("round %d: %d, resumed %v", round, rs.StatusCode, resumed)
		}
	}
}
