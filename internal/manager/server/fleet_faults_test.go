package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/servicepoint"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/checkin"
)

// onTables runs statements on the tables of a manager.
func (m *manager) onTables(statements ...string) {
	m.T.Helper()
	if err := m.Store.UpdateIn(m.T.Context(), store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		for _, s := range statements {
			if err := tx.Write(s); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		m.T.Fatal(err)
	}
}

// moves lists the events of a service point, as "field before>after".
func (m *manager) moves(id string) (all []string) {
	m.T.Helper()
	if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var field, before, after string
			err := scan(&field, &before, &after)
			all = append(all, field+" "+before+">"+after)
			return err
		}, "SELECT field, old, new FROM fleet_event WHERE service_point = ? ORDER BY seq", id)
	}); err != nil {
		m.T.Fatal(err)
	}
	return all
}

func reportOf(conditions ...string) *checkin.Report {
	return &checkin.Report{Version: "7", Variant: checkin.Fleet, ErrorConditions: append([]string{}, conditions...)}
}

// TestRenewalAfterRestoredDatabase checks that a database from before a renewal still accepts the certificate, because a later one was not
// used.
func TestRenewalAfterRestoredDatabase(t *testing.T) {
	m := startAlone(t)
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	first := e.certificateOf(t, answer)
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, first); status != 200 {
		t.Fatalf("a check-in: %d %v", status, a)
	}
	m.onTables("CREATE TABLE kept AS SELECT id, generation FROM service_point")
	fresh := newEnrolment(t)
	_, renewed := m.doorPost(checkin.RenewPath, checkin.RenewRequest{Request: fresh.request}, first)
	second := fresh.certificateOf(t, renewed)
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{}, second); status != 200 {
		t.Fatalf("with the new certificate: %d %v", status, a)
	}
	if status, _ := m.doorPost(checkin.CheckInPath, checkin.Request{}, first); status != 410 {
		t.Errorf("with the old one: %d", status)
	}
	m.onTables("UPDATE service_point SET generation = (SELECT generation FROM kept WHERE kept.id = service_point.id)", "DROP TABLE kept")
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{}, second); status != 200 {
		t.Errorf("after the restore: %d %v", status, a)
	}
	// A new registration key ends them all.
	r := m.Want(202, "POST", "/user/api/v1/fleetInstances/"+id+"/registrationKey", "")
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{}, second); status != 410 {
		t.Errorf("after a new registration key: %d %v", status, a)
	}
	if got := m.instance(id).Text("status"); got != "WAITING_FOR_PROVISIONING" {
		t.Errorf("with a new registration key it is %s", got)
	}
	if status, _ := m.enrol(newEnrolment(t), key); status != 403 {
		t.Errorf("the old key: %d", status)
	}
	again := newEnrolment(t)
	status, answer := m.enrol(again, r.Text("registrationKey"))
	if status != 200 {
		t.Fatalf("the new key: %d %v", status, answer)
	}
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, again.certificateOf(t, answer)); status != 200 {
		t.Errorf("with the certificate of the new key: %d %v", status, a)
	}
	m.Refused(404, "ResourceNotFound", "does not exist", "POST", "/user/api/v1/fleetInstances/nobody/registrationKey", "")
	m.Verify()
}

// TestReportsInOrder checks that a delayed report does not replace a later one. A manager whose report differs from the service point's
// requests a new one.
func TestReportsInOrder(t *testing.T) {
	m := startAlone(t)
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	ask := func(rq checkin.Request, sendReport bool, sequence float64) {
		t.Helper()
		status, a := m.doorPost(checkin.CheckInPath, rq, certificate)
		if status != 200 || (a["sendReport"] == true) != sendReport || a["sequence"] != sequence {
			t.Errorf("%+v gets %d %v, want sendReport %v and sequence %v", rq, status, a, sendReport, sequence)
		}
	}
	ask(checkin.Request{Report: reportOf("late"), Sequence: 5, Digest: "five"}, false, 5)
	ask(checkin.Request{Report: reportOf(), Sequence: 4, Digest: "four"}, true, 5)
	if got := m.instance(id); got.Text("status") != "UNHEALTHY" || got.Text("errorConditions.0") != "late" {
		t.Errorf("an older report replaced a later one: %s", got.Body)
	}
	ask(checkin.Request{Sequence: 6, Digest: "six"}, true, 5)
	ask(checkin.Request{Report: reportOf(), Sequence: 6, Digest: "six"}, false, 6)
	ask(checkin.Request{Sequence: 6, Digest: "six"}, false, 6)
	if got := m.instance(id).Text("status"); got != "HEALTHY" {
		t.Errorf("after the latest report it is %s", got)
	}
	for _, bad := range []*checkin.Report{
		{Variant: "fleet", Version: strings.Repeat("v", 129)},
		{Variant: "else"},
		{Variant: "fleet", Nodes: []checkin.Node{{Hostname: strings.Repeat("h", 2000)}}},
		{Variant: "fleet", Nodes: []checkin.Node{{Addresses: []checkin.NodeAddress{{IPAddress: "a\x00b"}}}}},
		{Variant: "fleet", Nodes: []checkin.Node{{DNSServers: make([]string, 513)}}},
	} {
		if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: bad, Sequence: 9}, certificate); status != 400 {
			t.Errorf("a report beyond the bounds: %d %v", status, a)
		}
	}
	if status, _ := m.doorPost(checkin.CheckInPath, checkin.Request{Digest: strings.Repeat("d", 129)}, certificate); status != 400 {
		t.Errorf("a long digest: %d", status)
	}
	m.Verify()
}

// TestSilence checks that a silent service point is NOT_CONNECTED, with an event and a sentence. Its status keeps the last report.
func TestSilence(t *testing.T) {
	apitest.Slow(t)
	m := startOnce(t, silentSoon)
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	write := func() {
		t.Helper()
		if err := m.Fleet.WritePresence(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := m.Fleet.Sweep(t.Context(), m.Store.Update); err != nil {
			t.Fatal(err)
		}
	}
	m.doorPost(checkin.CheckInPath, checkin.Request{Report: reportOf()}, certificate)
	if got := m.moves(id); len(got) != 3 { // others, and rollouts, know at once that it is there
		t.Errorf("behind its first report it moved %v", got)
	}
	write()
	apitest.Eventually(t, "silence for three intervals of a second", func() bool {
		write()
		return len(m.moves(id)) > 3
	})
	i := m.instance(id)
	if i.Text("status") != "HEALTHY" || i.Text("connectionStatus") != "NOT_CONNECTED" ||
		i.Text("errorConditions") != "[]" { // which a healthy one has none of (spec.md 2.1)
		t.Errorf("a silent service point is %s", i.Body)
	}
	m.doorPost(checkin.CheckInPath, checkin.Request{}, certificate)
	write()
	want := "[status >WAITING_FOR_PROVISIONING status WAITING_FOR_PROVISIONING>HEALTHY connectionStatus NOT_CONNECTED>CONNECTED " +
		"connectionStatus CONNECTED>NOT_CONNECTED connectionStatus NOT_CONNECTED>CONNECTED]"
	if got := fmt.Sprint(m.moves(id)); got != want {
		t.Errorf("it moved %s\nwant %s", got, want)
	}
	if i := m.instance(id); i.Text("connectionStatus") != "CONNECTED" || i.Get("errorConditions.0") != nil {
		t.Errorf("back again it is %s", i.Body)
	}
	// A time in the future, written by a wrong clock, does not keep it connected for years.
	m.onTables(fmt.Sprintf("UPDATE presence SET last_seen = %d", time.Now().Add(9000*time.Hour).UnixMilli()))
	write()
	m.doorPost(checkin.CheckInPath, checkin.Request{}, certificate)
	write()
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		var last int64
		err := tx.QueryRow("SELECT last_seen FROM presence").Scan(&last)
		if last > time.Now().UnixMilli()+1000 {
			t.Errorf("it was last seen in the future, at %d", last)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestRepeatedCreation checks that a repeated creation with the same Idempotency-Key returns the same registration key, until the key was
// used.
func TestRepeatedCreation(t *testing.T) {
	m := startAlone(t)
	const path = "/api/v1/fleetInstanceMinimumConfig"
	body := `{"name":"one","description":"d"}`
	first := m.Want(202, "POST", path, body, "Idempotency-Key: k")
	if again := m.Want(202, "POST", path, body, "Idempotency-Key: k"); string(again.Body) != string(first.Body) {
		t.Errorf("again: %s, first %s", again.Body, first.Body)
	}
	m.Refused(409, "IdempotencyKeyReused", "Idempotency-Key", "POST", path, `{"name":"one"}`, "Idempotency-Key: k")
	m.Refused(409, "ResourceAlreadyExists", "one", "POST", path, body, "Idempotency-Key: other")
	m.Refused(409, "ResourceAlreadyExists", "one", "POST", path, body)
	m.Refused(400, "InvalidHeaderValue", "Idempotency-Key", "POST", path, body, "Idempotency-Key: "+strings.Repeat("k", 256))
	if other := m.Want(202, "POST", path, `{"name":"two"}`, "Idempotency-Key: k"); other.Text("registrationKey") == first.Text("registrationKey") {
		t.Error("another name gets the same registration key")
	}
	if status, a := m.enrol(newEnrolment(t), first.Text("registrationKey")); status != 200 {
		t.Fatalf("enrolling with it: %d %v", status, a)
	}
	m.Refused(409, "ResourceAlreadyExists", "one", "POST", path, body, "Idempotency-Key: k")
}

// TestRefusedReportGetsItsState checks that a service point whose report is refused still gets its desired state.
func TestRefusedReportGetsItsState(t *testing.T) {
	m := startAlone(t)
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	bad := reportOf(strings.Repeat("x", 2000))
	if status, _ := m.doorPost(checkin.CheckInPath, checkin.Request{Report: bad, Sequence: 1, Digest: "d"}, certificate); status != 400 {
		t.Errorf("a report beyond the bounds: %d", status)
	}
	m.Want(202, "POST", "/user/api/v1/fleetInstances/"+id+"/applications", `{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`)
	status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Sequence: 1, WaitSeconds: 20}, certificate)
	if status != 200 || !strings.Contains(fmt.Sprint(a["state"]), "http-probe-service") {
		t.Errorf("without it: %d %v", status, a)
	}
}

// service starts a service point with these options and those that all tests share.
func (m *manager) service(o servicepoint.Options) (a *servicepoint.Agent, stop func()) {
	m.T.Helper()
	o.Targets = servicepoint.Targets{Gateway: "off", Ping: "off", HTTP: "off"}
	o.Version, o.Log, o.Patience = "1.2.3", slog.New(slog.NewTextHandler(io.Discard, nil)), 100*time.Millisecond
	a, err := servicepoint.New(o)
	if err != nil {
		m.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				m.T.Error(err)
			}
		}
	}
	m.T.Cleanup(stop)
	return a, stop
}

func identityOf(t *testing.T, state string) (id map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(state, "identity.json"))
	if err == nil {
		err = json.Unmarshal(text, &id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestUnknownServicePointContinues checks that a service point that the manager does not know continues to check in. A backup that was
// restored by mistake does not end the fleet.
func TestUnknownServicePointContinues(t *testing.T) {
	apitest.Slow(t)
	m := startManager(t)
	id, key := m.create("one")
	// The port of its diagnostics is taken at first; all else works.
	taken, err := net.Listen("tcp", freeport.Reserve(t).String()) // no other process gets this port by chance when it is free
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	options := servicepoint.Options{State: state, Variant: checkin.V4, Endpoint: m.RegistrationEndpoint(), Key: key,
		DiagnosticsListen: taken.Addr().String()}
	_, stop := m.service(options)
	connected := func() bool { return m.instance(id).Text("connectionStatus") == "CONNECTED" }
	apitest.Eventually(t, "CONNECTED", connected)
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	registration := func() string {
		conn, err := net.DialTimeout("tcp", options.DiagnosticsListen, time.Second)
		if err != nil {
			return ""
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "GET /api/v1/status HTTP/1.0\r\n\r\n")
		text, _ := io.ReadAll(conn)
		return string(text)
	}
	apitest.Eventually(t, "the diagnostics are shown", func() bool { return strings.Contains(registration(), `"state":"REGISTERED"`) })
	if _, err := servicepoint.New(servicepoint.Options{State: state}); err == nil || !strings.Contains(err.Error(), "another service point") {
		t.Errorf("a second one in the same state directory: %v", err)
	}

	m.onTables("CREATE TABLE kept AS SELECT * FROM service_point", "DELETE FROM service_point")
	apitest.Eventually(t, "DEREGISTERED", func() bool { return strings.Contains(registration(), `"state":"DEREGISTERED"`) })
	m.onTables("INSERT INTO service_point SELECT * FROM kept", "DROP TABLE kept")
	apitest.Eventually(t, "REGISTERED again", func() bool { return strings.Contains(registration(), `"state":"REGISTERED"`) && connected() })
	stop()

	// Without options it keeps its identity; with another key it enrols again.
	_, stop = m.service(servicepoint.Options{State: state, DiagnosticsListen: options.DiagnosticsListen})
	apitest.Eventually(t, "REGISTERED after a restart", func() bool { return strings.Contains(registration(), `"state":"REGISTERED"`) })
	if got := identityOf(t, state); got["variant"] != checkin.V4 || got["id"] != id {
		t.Errorf("after a restart it is %v", got)
	}
	stop()
	other, key := m.create("two")
	m.service(servicepoint.Options{State: state, Endpoint: m.RegistrationEndpoint(), Key: key, DiagnosticsListen: options.DiagnosticsListen})
	apitest.Eventually(t, "enrolled anew", func() bool { return m.instance(other).Text("connectionStatus") == "CONNECTED" })
	if got := identityOf(t, state); got["id"] != other {
		t.Errorf("with another key it is %v", got)
	}
	if _, err := servicepoint.New(servicepoint.Options{State: t.TempDir(), Endpoint: "http://x", Key: key}); err == nil {
		t.Error("an endpoint in the clear is taken")
	}
}

// TestApplicationStates checks that an application changes its state along the transitions of spec.md section 3, each with an event, and
// that a request reaches the service point immediately.
func TestApplicationStates(t *testing.T) {
	m := startManager(t)
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	path := "/user/api/v1/fleetInstances/" + id + "/applications"
	probe := `{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`
	for _, c := range []struct {
		status             int
		code, naming, body string
	}{
		{400, "MissingRequiredField", "name", `{}`},
		{400, "InvalidResourceFieldValue", "nothing", `{"name":"nothing"}`},
		{400, "InvalidResourceFieldValue", "configuration", `{"name":"http-probe-service","configuration":[]}`},
		{400, "InvalidResourceFieldValue", "configuration.targets[0].address", `{"name":"http-probe-service","configuration":{"targets":[{"address":"x"}]}}`},
		{400, "InvalidResourceFieldValue", "version", `{"name":"http-probe-service","version":"","configuration":{"targets":[{"address":"127.0.0.1"}]}}`},
		{400, "InvalidResourceFieldValue", "version", `{"name":"http-probe-service","version":"a\u0000b","configuration":{"targets":[{"address":"127.0.0.1"}]}}`},
		{400, "InvalidResourceFieldValue", "configuration", `{"name":"http-probe-service","configuration":{"targets":[{"name":"` + strings.Repeat("n", 140_000) +
			`","address":"127.0.0.1"}]}}`},
		{400, "InvalidResourceFieldValue", "name", `{"name":7}`},
	} {
		m.Refused(c.status, c.code, c.naming, "POST", path, c.body)
	}
	m.Refused(404, "ResourceNotFound", "nobody", "POST", "/user/api/v1/fleetInstances/nobody/applications", probe)
	m.Refused(404, "ResourceNotFound", "nobody", "GET", "/user/api/v1/fleetInstances/nobody/applications", "")
	m.Refused(404, "ResourceNotFound", "nobody", "GET", "/user/api/v1/fleetInstances/nobody/events", "")
	m.Refused(404, "ResourceNotFound", "nothing", "GET", path+"/nothing", "")

	// A check-in that is held open is answered when an application is deployed.
	checkIn := func(rq checkin.Request) map[string]any {
		t.Helper()
		status, a := m.doorPost(checkin.CheckInPath, rq, certificate)
		if status != 200 {
			t.Fatalf("a check-in: %d %v", status, a)
		}
		return a
	}
	desired := func() (generation int64) {
		t.Helper()
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT desired FROM service_point WHERE id = ?", id).Scan(&generation)
		}); err != nil {
			t.Fatal(err)
		}
		return generation
	}
	sequence := int64(0)
	report := func(acknowledged, applied int64, applications ...checkin.Application) map[string]any {
		t.Helper()
		sequence++
		r := reportOf()
		r.Applied, r.Applications = applied, applications
		return checkIn(checkin.Request{Desired: acknowledged, Report: r, Sequence: sequence, Digest: fmt.Sprint(sequence)})
	}
	report(1, 1)
	held := make(chan map[string]any, 1)
	began := time.Now()
	go func() {
		_, a := m.doorPost(checkin.CheckInPath, checkin.Request{Desired: 1, WaitSeconds: 30, Sequence: 1, Digest: "1"}, certificate)
		held <- a
	}()
	application := m.Want(202, "POST", path, probe, "Idempotency-Key: k").Text("id")
	if again := m.Want(202, "POST", path, probe, "Idempotency-Key: k").Text("id"); again != application {
		t.Errorf("asked again, it is %s and not %s", again, application)
	}
	m.Refused(409, "IdempotencyKeyReused", "Idempotency-Key", "POST", path, strings.Replace(probe, "0.0.1", "0.0.2", 1), "Idempotency-Key: k")
	state := fmt.Sprint((<-held)["state"])
	if !strings.Contains(state, application) || !strings.Contains(state, "generation:") || time.Since(began) >= checkin.Interval {
		t.Errorf("after %v the service point is to run %s", time.Since(began), state)
	}
	is := func(want string) {
		t.Helper()
		one := m.instance(id).Get("applications.0")
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("the application is %s, want %s", text, want)
		}
	}
	has := "1.0.0"
	as := func(status string, conditions ...string) checkin.Application {
		return checkin.Application{ID: application, Name: "http-probe-service", Version: has, Status: status, ErrorConditions: conditions}
	}
	is(`"status":"DEPLOYING"`)
	report(desired(), 1, as("HEALTHY"))
	is(`"status":"DEPLOYING"`)
	report(desired(), desired(), as("DEPLOY_FAILED", "it burns"))
	is(`"errorConditions":["it burns"]`)
	m.Want(202, "PATCH", path+"/"+application, `{"configuration":{"targets":[{"address":"127.0.0.2"}]}}`, "Content-Type: application/merge-patch+json")
	is(`"status":"DEPLOYING"`)
	report(desired(), desired(), as("UNHEALTHY", "it smokes"))
	is(`"status":"UNHEALTHY"`)
	// A service point with an older release runs an older version of the application, and lacks no update.
	has = "0.9.0"
	before := desired()
	report(before, before, as("HEALTHY"))
	is(`"version":"0.9.0"`)
	if state := fmt.Sprint(checkIn(checkin.Request{Desired: before})["state"]); desired() == before || !strings.Contains(state, has) {
		t.Errorf("behind another version of its application it is to run %s", state)
	}
	m.Refused(400, "InvalidResourceFieldValue", "targetVersion", "PATCH", path+"/"+application, `{"targetVersion":"2.0.0"}`)
	m.Want(202, "PATCH", path+"/"+application, `{"targetVersion":"1.0.0"}`)
	is(`"updateStatus":"UPDATE_QUEUED"`)
	checkIn(checkin.Request{Desired: desired(), Sequence: sequence, Digest: fmt.Sprint(sequence)})
	is(`"updateStatus":"UPDATE_IN_PROGRESS"`)
	if state := fmt.Sprint(checkIn(checkin.Request{Desired: 3})["state"]); !strings.Contains(state, "1.0.0") {
		t.Errorf("it is to run %s", state)
	}
	m.Want(202, "PATCH", path+"/"+application, `{"targetVersion":"0.9.0"}`)
	report(desired(), desired(), as("HEALTHY"))
	if strings.Contains(string(m.instance(id).Body), "targetVersion") {
		t.Errorf("a cancelled update is present: %s", m.instance(id).Body)
	}
	m.Refused(400, "MissingRequiredField", "at least one of", "PATCH", path+"/"+application, `{}`)
	m.Refused(400, "InvalidResourceFieldValue", "targetVersion", "PATCH", path+"/"+application, `{"targetVersion":""}`)
	m.Refused(404, "ResourceNotFound", "nothing", "PATCH", path+"/nothing", `{"targetVersion":"2"}`)
	resolver := func(address string) string {
		return `{"name":"dns-resolver-service","configuration":{"listen":[{"address":"` + address + `"}],"upstreams":[{"address":"192.0.2.99"}]}}`
	}
	other := m.Want(202, "POST", path, resolver("127.0.0.1")).Text("id")
	m.Refused(400, "InvalidResourceFieldValue", "127.0.0.1:53", "POST", path, resolver("127.0.0.1"))
	m.Refused(400, "InvalidResourceFieldValue", other, "POST", path, resolver("0.0.0.0"))
	m.Refused(400, "InvalidResourceFieldValue", "listen", "PATCH", path+"/"+other, `{"configuration":{}}`)
	m.Want(202, "DELETE", path+"/"+other, "")
	report(desired(), desired(), as("HEALTHY"))
	m.onTables("DELETE FROM application WHERE status = 'DELETED'")
	m.Want(202, "DELETE", path+"/"+application, "")
	m.Refused(409, "ApplicationIsDeleted", application, "DELETE", path+"/"+application, "")
	is(`"updateStatus":"DELETE_QUEUED"`)
	report(desired(), desired()-1, as("HEALTHY"))
	is(`"updateStatus":"DELETE_IN_PROGRESS"`)
	report(desired(), desired())
	is(`"status":"DELETED"`)
	var moved []string
	for _, one := range m.moves(id) {
		if _, move, ok := strings.Cut(one, application+"/"); ok {
			moved = append(moved, move)
		}
	}
	want := "status >DEPLOYING status DEPLOYING>DEPLOY_FAILED status DEPLOY_FAILED>DEPLOYING status DEPLOYING>HEALTHY " +
		"status HEALTHY>UNHEALTHY status UNHEALTHY>HEALTHY updateStatus >UPDATE_QUEUED " +
		"updateStatus UPDATE_QUEUED>UPDATE_IN_PROGRESS updateStatus UPDATE_IN_PROGRESS> " +
		"updateStatus >DELETE_QUEUED updateStatus DELETE_QUEUED>DELETE_IN_PROGRESS status HEALTHY>DELETED updateStatus DELETE_IN_PROGRESS>"
	if got := strings.Join(moved, " "); got != want {
		t.Errorf("it moved %s\nwant %s", got, want)
	}
	if events := m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id+"/events", ""); !strings.Contains(string(events.Body), "DELETED") {
		t.Errorf("its events are %s", events.Body)
	}
	m.onTables("UPDATE application SET deleted = 1")
	if err := m.Fleet.Sweep(t.Context(), m.Store.Update); err != nil {
		t.Fatal(err)
	}
	if got := m.instance(id).Get("applications.0"); got != nil {
		t.Errorf("a minute later there is %v", got)
	}
	m.Verify()
}
