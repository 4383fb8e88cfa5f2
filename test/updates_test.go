package test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testedVersion is the version of the program that is tested, newerVersion that of a copy of it. They are of one length.
const (
	testedVersion = "0.1.0-story"
	newerVersion  = "0.1.1-story"
)

// releases creates a release repository for a manager. In addition to the tested version it publishes newerVersion, which works, 1.2.0,
// which exits at once, and 1.3.0, which does nothing.
func releases(t *testing.T, m *manager) {
	t.Helper()
	dir := t.TempDir()
	repository, keys := filepath.Join(m.dir, "data", "releases"), filepath.Join(dir, "keys")
	well := filepath.Join(dir, "well")
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.ReplaceAll(program, []byte(testedVersion), []byte(newerVersion)) // which takes no second link
	if err := os.WriteFile(well, newer, 0o700); err != nil {                        //nolint:gosec // it is to run
		t.Fatal(err)
	}
	programs := []string{well}
	for version, does := range map[string]string{"1.2.0": "echo broken >&2; exit 3", "1.3.0": "exec sleep 600"} {
		path := filepath.Join(dir, version)
		script := "#!/bin/sh\nif [ \"$1\" = version ]; then echo portolan " + version + "; exit 0; fi\n" + does + "\n"
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // an executable
			t.Fatal(err)
		}
		programs = append(programs, path)
	}
	at := []string{"--repository", repository, "--keys", keys}
	m.portolan(append([]string{"release", "init"}, at...)...)
	for _, program := range programs {
		m.portolan(append([]string{"release", "sign", program}, at...)...)
	}
	m.portolan(append([]string{"release", "publish"}, at...)...)
}

// newEdge creates the service point edge and starts its agent.
func newEdge(t *testing.T, m *manager, args ...string) *fleetPoint {
	t.Helper()
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state"), args: args}
	var created struct{ RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	t.Cleanup(func() {
		if err := p.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, p.process.text())
		}
	})
	return p
}

// shows waits until the service point in the API contains all parts.
func (p *fleetPoint) shows(parts ...string) {
	p.t.Helper()
	var last string
	if !until(func() bool {
		last = p.fleet("show", "edge")
		for _, part := range parts {
			if !strings.Contains(last, part) {
				return false
			}
		}
		return true
	}) {
		p.t.Fatalf("the service point never was %q:\n%s\n%s", parts, last, p.process.text())
	}
}

// TestUpdateOfAServicePoint updates a service point while its resolver answers. It checks the automatic rollback of versions that do not
// start or do nothing, and the return to the installed version. A rollout does the same and is rolled back.
func TestUpdateOfAServicePoint(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	releases(t, m)
	p := newEdge(t, m, "--update-trial", "3s")
	up := &upstream{address: "127.0.0.1:0"}
	up.start(t)
	defer func() { up.stop() }()
	at, file := p.configuration(up, "")
	p.fleet("deploy", "edge", "dns-resolver-service", "--configuration", file)
	p.becomes("HEALTHY")
	pid := p.pid()
	serves := func(when string) {
		t.Helper()
		if !answersSoon(at, strings.ReplaceAll(when, " ", "-")+".example.") || p.pid() != pid {
			t.Errorf("%s the resolver of before does not answer", when)
		}
	}

	p.fleet("update", "edge", newerVersion)
	p.shows(`"version": "`+newerVersion+`"`, `"updateStatus": "OK"`)
	serves("updated")
	for version, why := range map[string]string{"1.2.0": "it ended before it was healthy: exit status 3",
		"1.3.0": "it was not healthy within 3s"} {
		p.fleet("update", "edge", version)
		p.shows(`"version": "`+newerVersion+`"`, `"updateStatus": "UPDATE_FAILED"`, `"targetVersion": "`+version+`"`, why)
		serves("after a failed update")
	}
	p.fleet("update", "edge") // cancels the update
	p.shows(`"updateStatus": "OK"`, `"errorConditions": []`)

	// A resolver started by the release runs as the right user.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !until(func() bool { return p.pid() != pid && answers(at, "again.example.") }) {
		t.Fatalf("the resolver does not come back:\n%s", p.process.text())
	}
	if strings.Contains(p.process.text(), "retrying with fewer restrictions") {
		t.Errorf("the resolver has more privileges than it should:\n%s", p.process.text())
	}
	pid = p.pid()
	p.becomes("dns-resolver-service  HEALTHY")

	p.fleet("update", "edge", testedVersion)
	p.shows(`"version": "`+testedVersion+`"`, `"updateStatus": "OK"`)
	serves("back at what was installed")

	p.fleet("label", "edge", "site=quay")
	where := []string{"--url", "http://" + m.api, "--token", m.token}
	id := m.portolan(append([]string{"rollout", "start", newerVersion, "--filter", "label=site:quay"}, where...)...)
	if got := m.portolan(append([]string{"rollout", "watch", id}, where...)...); !strings.Contains(got, "DONE: 1 updated") {
		t.Errorf("a rollout ends with %s", got)
	}
	p.shows(`"version": "` + newerVersion + `"`)
	m.portolan(append([]string{"rollout", "take-back", id}, where...)...)
	if got := m.portolan(append([]string{"rollout", "watch", id}, where...)...); !strings.Contains(got, "TAKEN_BACK: 0 updated, 1 went back") {
		t.Errorf("a rollout after a rollback ends with %s", got)
	}
	list := strings.Split(m.portolan(append([]string{"rollout", "list"}, where...)...), "\n")
	columns, cells := strings.Fields(list[0]), strings.Fields(list[1])
	for column, want := range map[string]string{"WAITING": "0", "UPDATED": "0", "WENT_BACK": "1", "FAILED": "0", "TOTAL": "1"} {
		if at := slices.Index(columns, column) + 2; at < 2 || at >= len(cells) || cells[at] != want { // "1 of 1" is three cells
			t.Errorf("in the list of rollouts %s is not %s: %q", column, want, list)
		}
	}
	p.shows(`"version": "`+testedVersion+`"`, `"updateStatus": "OK"`)
	serves("taken back")
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}

// TestKilledWhileUpdating kills a service point at random times during an update. It checks that it starts again with the old or the new
// version and reaches the target version.
func TestKilledWhileUpdating(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	releases(t, m)
	p := newEdge(t, m, "--update-trial", "20s")
	p.shows(`"status": "HEALTHY"`)
	rounds := 2
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		rounds = 4
	}
	for round := range rounds {
		version := []string{newerVersion, testedVersion}[round%2]
		p.fleet("update", "edge", version)
		for range 3 {
			time.Sleep(rand.N(1200 * time.Millisecond)) // at a random point
			_ = p.process.signal(syscall.SIGKILL)
			p.start("")
		}
		p.shows(`"version": "`+version+`"`, `"updateStatus": "OK"`)
	}
	left, err := filepath.Glob(filepath.Join(p.state, "release", ".new-*"))
	if err != nil || len(left) > 1 { // the next start removes leftovers of the last one
		t.Errorf("left over: %v %v", left, err)
	}
}

// TestForgedUpdates checks that releases that cannot be trusted are not run: modified, truncated or empty files.
func TestForgedUpdates(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	releases(t, m)
	p := newEdge(t, m)
	p.shows(`"status": "HEALTHY"`)
	repository := filepath.Join(m.dir, "data", "releases")
	files, err := filepath.Glob(filepath.Join(repository, "targets", "portolan", newerVersion, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	forged := append([]byte{}, whole...)
	forged[len(forged)/2] ^= 1
	for what, text := range map[string][]byte{"forged": forged, "truncated": whole[:len(whole)/2], "empty": nil} {
		if err := os.WriteFile(files[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
		p.fleet("update", "edge", newerVersion)
		p.shows(`"version": "`+testedVersion+`"`, `"updateStatus": "UPDATE_FAILED"`, "version "+newerVersion+" cannot be trusted")
		if strings.Contains(p.process.text(), "release trial started") {
			t.Fatalf("%s, and it runs:\n%s", what, p.process.text())
		}
		p.fleet("update", "edge")
		p.shows(`"updateStatus": "OK"`)
	}
	if err := os.WriteFile(files[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	p.fleet("update", "edge", newerVersion)
	p.shows(`"version": "`+newerVersion+`"`, `"updateStatus": "OK"`)
}
