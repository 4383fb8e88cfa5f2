package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskFullAtAServicePoint checks that a service point with a full disk reports it and keeps its applications running. It applies the
// desired state once there is space.
func TestDiskFullAtAServicePoint(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=2m"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no disk of our own: %v", err)
		}
		t.Skipf("no disk of our own: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	m := serve(t, "")
	p := &fleetPoint{t: t, m: m, state: state}
	var created struct{ RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	p.state = filepath.Join(filepath.Dir(state), "agent") // its output is on another disk
	p.args = []string{"--state", state}
	p.start(created.RegistrationKey)
	p.state = state
	t.Cleanup(func() {
		if err := p.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, p.process.text())
		}
	})
	up := &upstream{address: "127.0.0.1:0"}
	up.start(t)
	defer up.stop()
	at, file := p.configuration(up, `,"queryLog":{"every":1}`) // logs each query, even without space
	id := p.fleet("deploy", "edge", "dns-resolver-service", "--configuration", file)
	p.becomes("dns-resolver-service  HEALTHY")

	ballast := filepath.Join(state, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err == nil {
		t.Fatal("the disk has no end")
	}
	other, file := p.configuration(up, `,"cache":{"entries":77}`)
	p.fleet("deploy", "edge", id, "--configuration", file)
	if !until(func() bool {
		return strings.Contains(p.fleet("show", "edge"), "the desired state cannot be stored on the disk")
	}) {
		t.Errorf("a full disk is not shown:\n%s\n%s", p.fleet("show", "edge"), p.process.text())
	}
	if !answersSoon(at, "one.example.") || answers(other, "one.example.") {
		t.Error("with a full disk it does not run what it ran")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if !until(func() bool {
		return answers(other, "two.example.") && !strings.Contains(p.fleet("show", "edge"), "cannot be kept")
	}) {
		t.Errorf("with room again it does not go on:\n%s\n%s", p.fleet("show", "edge"), p.process.text())
	}
	p.becomes("dns-resolver-service  HEALTHY")
}
