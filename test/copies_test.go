package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runs gives how many applications run at a service point.
func (p *fleetPoint) runs() int {
	files, err := filepath.Glob(filepath.Join(p.state, "application", "*", "pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(files)
}

// An agent with a copy of another one's state directory ends what it runs, and the service point says that there are two. One that is
// deleted ends what it runs, too.
func TestCopiedAndDeletedServicePoint(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state")}
	var created struct{ FleetInstanceID, RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	t.Cleanup(func() { _ = p.process.signal(syscall.SIGTERM) })
	file := filepath.Join(t.TempDir(), "probe.json")
	if err := os.WriteFile(file, []byte(`{"targets":[{"address":"127.0.0.1"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.fleet("deploy", "edge", "http-probe-service", "--configuration", file)
	p.becomes("http-probe-service  HEALTHY")

	copied := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "copied")}
	if err := os.Mkdir(copied.state, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"identity.json", "desired.json", "sequence", "process"} {
		text, err := os.ReadFile(filepath.Join(p.state, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied.state, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copied.start("")
	t.Cleanup(func() { _ = copied.process.signal(syscall.SIGTERM) })
	if !until(func() bool {
		return strings.Contains(p.fleet("show", "edge"), "2 machines answer as this service point")
	}) {
		t.Fatalf("a copy is not found: %s\n%s", p.fleet("show", "edge"), copied.process.text())
	}
	if !until(func() bool {
		return strings.Contains(copied.process.text(), "OtherMachineAnswers") && copied.runs() == 0
	}) {
		t.Errorf("a copy runs %d applications:\n%s", copied.runs(), copied.process.text())
	}
	if p.runs() != 1 {
		t.Errorf("the original runs %d applications:\n%s", p.runs(), p.process.text())
	}

	p.fleet("delete", "edge")
	if !until(func() bool { return p.runs() == 0 }) {
		t.Errorf("a service point that was deleted runs %d applications:\n%s", p.runs(), p.process.text())
	}
}
