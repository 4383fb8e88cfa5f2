package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runs returns the number of applications that run on a service point.
func (p *fleetPoint) runs() int {
	files, err := filepath.Glob(filepath.Join(p.state, "application", "*", "pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(files)
}

// TestCopiedAndDeletedServicePoint checks that an agent with a copied state directory stops its applications, and that the service point
// reports the copy. A deleted service point stops its applications as well.
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
		return strings.Contains(p.fleet("show", "edge"), "2 machines connect as this service point")
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
