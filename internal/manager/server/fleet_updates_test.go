package server

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// publish makes the releases of a manager: versions for this platform.
func publish(t *testing.T, dir string, versions ...string) {
	t.Helper()
	r, keys := release.Repository{Dir: dir}, filepath.Join(t.TempDir(), "keys")
	if err := r.Init(keys, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		if err := r.Add(keys, version, runtime.GOOS+"/"+runtime.GOARCH, strings.NewReader("none"), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Publish(keys, release.TimestampLife, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// names gives the names of the service points that a query lists.
func (m *manager) names(query string) (names string) {
	m.T.Helper()
	r := m.Want(200, "GET", "/user/api/v1/fleetInstances?"+query, "")
	for i := 0; r.Get(fmt.Sprintf("data.%d", i)) != nil; i++ {
		names += r.Text(fmt.Sprintf("data.%d.name", i)) + " "
	}
	return strings.TrimSpace(names)
}

func TestLabelsAndFilters(t *testing.T) {
	m := startAlone(t)
	ids := map[string]string{}
	for _, name := range []string{"bay", "cape", "fjord"} {
		ids[name], _ = m.create(name)
	}
	at := func(name string) string { return "/user/api/v1/fleetInstances/" + ids[name] }
	m.Want(200, "PATCH", at("bay"), `{"labels":{"site":"oslo","ring":"1"},"description":"deep"}`)
	m.Want(200, "PATCH", at("cape"), `{"labels":{"site":"bergen","ring":"1"}}`)
	for query, want := range map[string]string{
		"label=ring=1": "bay cape",
		"label=ring:1": "bay cape", "label=ring": "bay cape", "label=site:oslo": "bay", "label=ring:1&label=site:bergen": "cape",
		"label=none": "", "nameContains=A": "bay cape", "nameContains=%25": "", "nameContains=_ay": "", "nameContains=%C3%84": "",
		"nameContains=ap&label=site:oslo": "",
		"limit=2":                         "bay cape", "limit=3": "bay cape fjord", "limit=1&nameContains=j": "fjord",
		"status=WAITING_FOR_PROVISIONING": "bay cape fjord", "status=HEALTHY": "", "connectionStatus=NOT_CONNECTED&label=site:oslo": "bay",
		"connectionStatus=CONNECTED": "", "description=deep": "bay", "id=" + ids["fjord"]: "fjord", "name=fjord": "fjord", "name=": "",
		"updateStatus=OK": "bay cape fjord", "updateStatus=UPDATE_FAILED": "", "version=7": "", "application=http-probe-service": "",
		"address=192.0.2.1": "", "hostname=x": "", "variant=v4": "", "label=site:oslo'%20OR%201=1": "", "label=ring:": "bay cape",
	} {
		if got := m.names(query); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
	m.Want(200, "PATCH", at("cape"), `{"name":"Ärger Cap"}`)
	for _, part := range []string{"Ärger", "r%20cAP"} {
		if got := m.names("nameContains=" + part); got != "Ärger Cap" {
			t.Errorf("%s finds %q", part, got)
		}
	}
	m.Want(200, "PATCH", at("cape"), `{"name":"cape"}`)
	m.Want(200, "PATCH", at("bay"), `{"labels":{"ring":null},"description":null,"name":"beach"}`)
	r := m.instance(ids["bay"])
	if r.Text("labels.site") != "oslo" || r.Get("labels.ring") != nil || r.Get("description") != nil || r.Text("name") != "beach" {
		t.Errorf("changed, it is %s", r.Body)
	}
	for _, c := range []struct{ code, naming, body string }{
		{"InvalidResourceFieldValue", "labels", `{"labels":[]}`}, {"InvalidResourceFieldValue", "labels", `{"labels":null}`}, {"InvalidResourceFieldValue", "labels", `{"labels":{"a b":"c"}}`},
		{"InvalidResourceFieldValue", "labels.a", `{"labels":{"a":"` + strings.Repeat("x", 256) + `"}}`}, {"InvalidResourceFieldValue", "labels", `{"labels":{"a":7}}`},
		{"InvalidResourceFieldValue", "labels.a", `{"labels":{"a":"b\u0000"}}`}, {"InvalidResourceFieldValue", "name", `{"name":""}`}, {"InvalidResourceFieldValue", "name", `{"name":3}`},
		{"InvalidResourceFieldValue", "description", `{"description":"a\u0000"}`},
	} {
		m.Refused(400, c.code, c.naming, "PATCH", at("cape"), c.body)
	}
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf(`"l%d":"x"`, i))
	}
	m.Refused(400, "InvalidResourceFieldValue", "labels", "PATCH", at("cape"), `{"labels":{`+strings.Join(many, ",")+`}}`)
	m.Refused(409, "ResourceAlreadyExists", "beach", "PATCH", at("cape"), `{"name":"beach"}`)
	m.Refused(404, "ResourceNotFound", "nobody", "PATCH", "/user/api/v1/fleetInstances/nobody", `{"name":"x"}`)
	for _, query := range []string{"status=WELL", "connectionStatus=x", "updateStatus=x", "variant=x", "status=HEALTHY&status=HEALTHY",
		"nameContains=", "lastSeenSince=yesterday", "lastSeenBefore=2026-01-31",
		"nodeCount=one", "nodeCount=-1", "errorCondition=",
		"applicationStatus=WELL", "applicationUpdateStatus=OK", "limit=0", "limit=x", "limit=1&limit=2",
		"label=a&label=a", "label=a%20b"} {
		if r := m.Do("GET", "/user/api/v1/fleetInstances?"+query, ""); r.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.Body)
		}
	}
}

// TestFiltersOfReports checks that filters find service points by the fields of their reports, and by the time of the report.
func TestFiltersOfReports(t *testing.T) {
	m := startAlone(t)
	m.create("never")
	id, key := m.create("quay")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	r := reportOf("the disk is full of Barnacles")
	r.Nodes = []checkin.Node{{ID: id + "-node-1", Name: "crane", Hostname: "Crane.example", IPv4GatewayAddress: "192.0.2.254",
		Addresses: []checkin.NodeAddress{{Type: checkin.Primary, IPAddress: "192.0.2.7"}, {Type: checkin.Alias, IPAddress: "2001:db8::7"}}}}
	rq := checkin.Request{Report: r, Sequence: 1, Digest: "1"}
	if status, a := m.doorPost(checkin.CheckInPath, rq, e.certificateOf(t, answer)); status != 200 {
		t.Fatalf("a check-in: %d %v", status, a)
	}
	m.Want(202, "POST", "/user/api/v1/fleetInstances/"+id+"/applications",
		`{"name":"http-probe-service","configuration":{"targets":[{"address":"192.0.2.1"}]}}`)
	for query, want := range map[string]string{
		"errorCondition=BARNACLES": "quay", "errorCondition=rust": "", "nodeCount=1": "never quay", "nodeCount=2": "",
		"node=node-1": "quay", "node=ode-1": "",
		"node=crane": "quay", "node=" + id + "-node-1": "quay", "node=winch": "", "hostname=crane.EXAMPLE": "quay",
		"gateway=192.0.2.254": "quay", "gateway=192.0.2.7": "", "address=2001:db8::7": "quay", "address=192.0.2.7&node=winch": "",
		"lastSeenSince=2020-01-31T12:00:00Z": "quay", "lastSeenBefore=2020-01-31T12:00:00Z": "never", "lastSeenSince=4102444800000": "",
		"lastSeenSince=-1": "quay", "lastSeenBefore=-1": "never",
		"lastSeenBefore=2100-01-01T00:00:00%2B02:00": "never quay", "lastSeenBefore=2100-01-01T00:00:00Z&lastSeenSince=1": "quay",
		"applicationStatus=DEPLOYING": "quay", "applicationStatus=HEALTHY": "", "applicationVersion=1.0.0&application=http-probe-service": "quay",
		"applicationVersion=1.0.0&application=dns-resolver-service": "", "applicationUpdateStatus=UPDATE_QUEUED": "",
	} {
		if got := m.names(query); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
	}
}

// TestUpdateStates checks that the order of a release changes its state by the reports of the service point, and ends when the release
// runs. A report of another order does not change it.
func TestUpdateStates(t *testing.T) {
	releases := filepath.Join(t.TempDir(), "releases")
	m := startManager(t, func(o *Options) { o.Releases = releases })
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	path := "/user/api/v1/fleetInstances/" + id
	m.Refused(409, "NoReleases", "targetVersion", "PATCH", path, `{"targetVersion":"8"}`)
	publish(t, releases, "8", "9")
	m.Refused(400, "InvalidResourceFieldValue", "targetVersion", "PATCH", path, `{"targetVersion":"10"}`)
	m.Refused(400, "InvalidResourceFieldValue", "targetVersion", "PATCH", path, `{"targetVersion":"../8"}`)
	m.Refused(400, "InvalidResourceFieldValue", "targetVersion", "PATCH", path, `{"targetVersion":8}`)

	sequence, interval := int64(0), 50*time.Millisecond
	report := func(version string, u *checkin.UpdateReport) map[string]any {
		t.Helper()
		sequence++
		r := reportOf()
		r.Version, r.BaseVersion, r.Platform, r.Update = version, "7", runtime.GOOS+"/"+runtime.GOARCH, u
		time.Sleep(interval) // reports are paced
		status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: r, Sequence: sequence, Digest: fmt.Sprint(sequence)}, certificate)
		if status != 200 {
			t.Fatalf("a check-in: %d %v", status, a)
		}
		return a
	}
	is := func(version, target, status string) {
		t.Helper()
		r := m.instance(id)
		if r.Text("version") != version || r.Text("targetVersion") != target || r.Text("updateStatus") != status {
			t.Errorf("it is %s, want version %s, target %q, %s", r.Body, version, target, status)
		}
	}
	order := func(a map[string]any) (u checkin.Update) {
		t.Helper()
		state, _ := a["state"].(map[string]any)
		update, ok := state["update"].(map[string]any)
		if !ok {
			t.Fatalf("%v contains no order", a)
		}
		asked, ok := update["asked"].(float64)
		if !ok {
			t.Fatalf("the order has no time: %v", update)
		}
		u.Asked = int64(asked)
		u.Version = fmt.Sprint(update["version"])
		return u
	}
	report("7", nil)
	m.Want(200, "PATCH", path, `{"targetVersion":"7"}`)
	is("7", "", "OK") // which it runs
	m.Want(200, "PATCH", path, `{"targetVersion":"8"}`)
	is("7", "8", "UPDATE_QUEUED")
	first := order(report("7", nil))
	report("7", &checkin.UpdateReport{Update: first, Status: checkin.UpdateRunning})
	is("7", "8", "UPDATE_RUNNING")
	report("7", &checkin.UpdateReport{Update: first, Status: checkin.UpdateFailed, Reason: "it burns"})
	is("7", "8", "UPDATE_FAILED")
	if i := m.instance(id); i.Text("updateError") != "it burns" || i.Text("errorConditions") != "[]" {
		t.Errorf("after a failed update it is %s", i.Body)
	}
	m.Want(200, "PATCH", path, `{"targetVersion":"8"}`)
	again := order(report("7", &checkin.UpdateReport{Update: first, Status: checkin.UpdateFailed, Reason: "it burns"}))
	if again.Asked <= first.Asked {
		t.Errorf("asked again the order is %v, and it was %v", again, first)
	}
	is("7", "8", "UPDATE_QUEUED")
	report("8", &checkin.UpdateReport{Update: again, Status: checkin.UpdateRunning}) // on trial
	is("8", "8", "UPDATE_RUNNING")
	if a := report("8", nil); strings.Contains(fmt.Sprint(a["state"]), "update") {
		t.Errorf("the order is still sent: %v", a)
	}
	is("8", "", "OK")
	m.Want(200, "PATCH", path, `{"targetVersion":"9"}`)
	m.Want(200, "PATCH", path, `{"targetVersion":null}`)
	is("8", "", "OK")
	want := "OK>UPDATE_QUEUED UPDATE_QUEUED>UPDATE_RUNNING UPDATE_RUNNING>UPDATE_FAILED UPDATE_FAILED>UPDATE_QUEUED " +
		"UPDATE_QUEUED>UPDATE_RUNNING UPDATE_RUNNING>OK OK>UPDATE_QUEUED UPDATE_QUEUED>OK"
	var got []string
	for _, move := range m.moves(id) {
		if rest, ok := strings.CutPrefix(move, "updateStatus "); ok {
			got = append(got, rest)
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the moves are\n%s, want\n%s", strings.Join(got, " "), want)
	}
	if r := m.Want(200, "GET", "/user/api/v1/releases", ""); r.Text("data.0.version") != "9" || r.Text("expires") == "" {
		t.Errorf("the releases are %s", r.Body)
	}
}

// TestCheckInListenerServesReleases checks that the check-in listener serves files of releases to service points only, and no other files.
func TestCheckInListenerServesReleases(t *testing.T) {
	releases := filepath.Join(t.TempDir(), "releases")
	publish(t, releases, "8")
	if err := os.WriteFile(filepath.Join(releases, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(releases, "metadata", "link.json")); err != nil {
		t.Fatal(err)
	}
	m := startOnce(t, func(o *Options) { o.Releases = releases })
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	if status, text := m.doorGet(release.Path+"metadata/1.root.json", certificate); status != 200 || !strings.Contains(text, `"_type"`) {
		t.Errorf("the root: %d %s", status, text)
	}
	if status, text := m.doorGet(release.Path+"metadata/1.root.json", nil); status != 401 {
		t.Errorf("the root without a certificate: %d %s", status, text)
	}
	for _, name := range []string{"secret", "metadata/../secret", "metadata/%2e%2e/secret", "metadata/link.json", "metadata", "metadata/", "",
		"metadata/.new-1", "targets/../../x"} {
		if status, text := m.doorGet(release.Path+name, certificate); status == 200 {
			t.Errorf("%s is given: %s", name, text)
		}
	}
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+id, "")
	if status, text := m.doorGet(release.Path+"metadata/1.root.json", certificate); status != 410 {
		t.Errorf("the root for a service point that was deleted: %d %s", status, text)
	}
}

func TestRefusedLogs(t *testing.T) {
	m := startAlone(t)
	id, _ := m.create("one")
	path := "/user/api/v1/fleetInstances/" + id + "/applications"
	application := m.Want(202, "POST", path, `{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`).Text("id")
	m.Refused(409, "NotConnected", "is not connected", "GET", path+"/"+application+"/log", "")
	m.Refused(404, "ResourceNotFound", "nothing", "GET", path+"/nothing/log", "")
	m.Refused(404, "ResourceNotFound", "nobody", "GET", "/user/api/v1/fleetInstances/nobody/applications/"+application+"/log", "")
	for _, bytes := range []string{"0", "-1", "x", "131073"} {
		m.Refused(400, "InvalidQueryParameterValue", "bytes", "GET", path+"/"+application+"/log?bytes="+bytes, "")
	}
}

// TestWavesFollowUpdates checks that a wave starts when the updates of the previous one have ended, and that the rollout ends with the last
// update. Neither waits for a periodic check.
func TestWavesFollowUpdates(t *testing.T) {
	releases := filepath.Join(t.TempDir(), "releases")
	publish(t, releases, "8")
	m := startManager(t, func(o *Options) { o.Releases, o.RolloutEvery = releases, time.Hour })
	type point struct {
		certificate *tls.Certificate
		version     string
		sequence    int64
	}
	var points []*point
	for _, name := range []string{"one", "two", "three"} {
		_, certificate := m.provisioned(name)
		points = append(points, &point{certificate, "7", 0})
	}
	report := func() {
		for _, p := range points {
			p.sequence++
			r := reportOf()
			r.Version, r.BaseVersion, r.Platform = p.version, "7", runtime.GOOS+"/"+runtime.GOARCH
			rq := checkin.Request{Report: r, Sequence: p.sequence, Digest: fmt.Sprint(p.sequence)}
			status, a := m.doorPost(checkin.CheckInPath, rq, p.certificate)
			if status != 200 {
				t.Fatalf("a check-in: %d %v", status, a)
			}
			if state, ok := a["state"].(map[string]any); ok && state["update"] != nil {
				p.version = "8" // it is done with the next report
			}
		}
	}
	report()
	const path = "/user/api/v1/rollouts"
	id := m.Want(201, "POST", path, `{"version":"8","waves":[1,2,3],"mostAway":3}`).Text("id")
	apitest.Eventually(t, "the rollout is done", func() bool {
		report()
		return m.Want(200, "GET", path+"/"+id, "").Text("status") == "DONE"
	})
	if got := m.Want(200, "GET", path+"/"+id, "").Text("counts.UPDATED"); got != "3" {
		t.Errorf("%s were updated", got)
	}
}

func TestRolloutsOverHTTP(t *testing.T) {
	releases := filepath.Join(t.TempDir(), "releases")
	publish(t, releases, "8")
	m := startManager(t, func(o *Options) { o.Releases = releases })
	m.create("one")
	const path = "/user/api/v1/rollouts"
	m.Refused(400, "MissingRequiredField", "version", "POST", path, `{}`)
	for naming, body := range map[string]string{"waves": `{"version":"8","waves":["x"]}`, "mostAway": `{"version":"8","mostAway":"-1"}`,
		"filter": `{"version":"8","filter":{"status":"WELL"}}`, "giveUpSeconds": `{"version":"8","giveUpSeconds":"x"}`,
		"version": `{"version":"7"}`, "windows": `{"version":"8","windows":[{"from":"x"}]}`, "timeZone": `{"version":"8","timeZone":"Local"}`} {
		m.Refused(400, "InvalidResourceFieldValue", naming, "POST", path, body)
	}
	m.Refused(409, "NoServicePoints", "filter", "POST", path, `{"version":"8","filter":{"name":"nobody"}}`)
	r := m.Want(201, "POST", path, `{"version":"8","waves":[1,"50%"],"mostFailed":3}`)
	id := r.Text("id")
	if r.Text("total") != "1" || r.Text("counts.SKIPPED") != "1" || r.Text("waves.0") != "1" || r.Text("mostFailed") != "3" ||
		r.Text("mostAway") != "10%" || r.Text("status") != "RUNNING" && r.Text("status") != "DONE" { // there is nothing to do, which is soon done
		t.Errorf("it began as %s", r.Body)
	}
	if got := m.Want(200, "GET", path+"/"+id+"/members?state=SKIPPED", "").Text("data.0.reason"); got != "it is not registered" {
		t.Errorf("who takes part: %s", got)
	}
	m.Refused(400, "InvalidQueryParameterValue", "state", "GET", path+"/"+id+"/members?state=x", "")
	m.Refused(404, "ResourceNotFound", "nothing", "GET", path+"/nothing", "")
	m.Refused(404, "ResourceNotFound", "nothing", "GET", path+"/nothing/members", "")
	m.Refused(404, "ResourceNotFound", "dance", "POST", path+"/"+id+"/dance", "")
	apitest.Eventually(t, "the rollout is done", func() bool { return m.Want(200, "GET", path+"/"+id, "").Text("status") == "DONE" })
	m.Refused(409, "RolloutState", "DONE", "POST", path+"/"+id+"/pause", "")
	figures := ""
	apitest.Eventually(t, "the move of the rollout is counted", func() bool { // which happens behind its commit
		figures = string(m.Want(200, "GET", "/metrics", "").Body)
		return strings.Contains(figures, `portolan_fleet_moves_total{field="rollout status",to="DONE"} 1`)
	})
	for _, line := range []string{`portolan_rollouts{status="DONE"} 1`, `portolan_service_points{status="WAITING_FOR_PROVISIONING"} 1`,
		"portolan_service_points_connected 0"} {
		if !strings.Contains(figures, line) {
			t.Errorf("the figures have no %s", line)
		}
	}
	m.Want(204, "DELETE", path+"/"+id, "")
	m.Refused(404, "ResourceNotFound", id, "DELETE", path+"/"+id, "")
}
