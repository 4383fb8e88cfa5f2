package test

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
)

// TestDemo checks the examples that the demo prints: its name server and its resolver answer, and an update is rolled out and rolled back
// meanwhile.
func TestDemo(t *testing.T) {
	t.Parallel()
	port := func() string { return freeport.Reserve(t).String() }
	nameServer, resolver, dhcp := port(), port(), port()
	dir := t.TempDir()
	p, err := launch(filepath.Join(dir, "demo.out"), os.Environ(), dir, binary, "demo", "--data", filepath.Join(dir, "data"),
		"--listen", port(),
		"--checkin-listen", port(), "--diagnostics", port()+","+port(), "--name-server", nameServer,
		"--resolver", resolver, "--dhcp", dhcp, "--status", port())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the demo ends with %v:\n%s", err, p.text())
		}
	})
	if !until(func() bool { return strings.Contains(p.text(), "is part done)") }) {
		t.Fatalf("the demo says\n%s", p.text())
	}
	if strings.Contains(p.text(), "level=") {
		t.Errorf("the demo prints log lines:\n%s", p.text())
	}
	find := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(p.text())
		if found == nil {
			t.Fatalf("there is no %s in\n%s", pattern, p.text())
		}
		return found[1]
	}
	m := &manager{t: t}
	where := []string{"--url", find(`PORTOLAN_URL=(\S+)`), "--token", find(`PORTOLAN_TOKEN=(\S+)`)}
	run := func(args ...string) string { return m.portolan(append(args, where...)...) }
	answer := func(when string) {
		t.Helper()
		for _, at := range []string{nameServer, resolver} {
			last := ""
			if !until(func() bool {
				last = asked(at, "crane-1-1-1.harbour.example.", dns.TypeA)
				return strings.HasPrefix(last, "NOERROR 10.")
			}) {
				t.Errorf("%s, %s answers %s\n%s", when, at, last, p.text())
			}
		}
	}
	answer("at the beginning")
	if !until(func() bool {
		out, err := exec.Command(binary, "dhcp", "ask", dhcp, "02:00:5e:00:53:01", "--network", "10.0.0.0/24").Output()
		return err == nil && strings.HasPrefix(string(out), "ACK 02:00:5e:00:53:01 10.0.0.2")
	}) {
		t.Errorf("the DHCP server does not answer:\n%s", p.text())
	}
	if client := regexp.MustCompile(`ip netns exec \S+ udhcpc[^(]*`).FindString(p.text()); client != "" { // root, ip and udhcpc
		args := strings.Fields(client)
		if !until(func() bool {
			out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
			return err == nil && strings.Contains(string(out), "lease of 10.0.1.2")
		}) {
			t.Errorf("the client in the namespace gets no lease: %s\n%s", client, p.text())
		}
	} else if os.Getenv("CI") == "true" {
		t.Errorf("the demo names no client in a namespace:\n%s", p.text())
	}
	if !until(func() bool {
		return strings.Contains(run("dhcp", "leases", "networks/10.0.0.0/24"), "02-00-5E-00-53-01")
	}) {
		t.Errorf("the leases are\n%s", run("dhcp", "leases", "networks/10.0.0.0/24"))
	}
	if !until(func() bool {
		return strings.Count(run("fleet", "list", "--filter", "status=HEALTHY"), " CONNECTED") == 10
	}) {
		t.Fatalf("the fleet is\n%s", run("fleet", "list"))
	}
	version := find(`rollout start (\S+) --filter label=site=quay --watch`)
	if !until(func() bool { // the demo is still publishing this program
		out, err := exec.Command(binary, append([]string{"fleet", "releases"}, where...)...).Output()
		return err == nil && strings.Contains(string(out), version)
	}) {
		t.Fatalf("the demo has no release:\n%s", p.text())
	}
	if !until(func() bool { // the rollout to the simulated service points is part done
		return strings.Contains(run("rollout", "list"), "RUNNING") && strings.Count(run("fleet", "list", "--filter", "version="+version),
			"buoy-") == 3
	}) {
		t.Errorf("the rollouts are\n%s\nof\n%s", run("rollout", "list"), run("fleet", "list"))
	}
	if got := run("status"); !strings.Contains(got, "The certificate of dns-resolver-service on buoy-2 expired on ") {
		t.Errorf("the status is\n%s", got)
	}
	id := run("rollout", "start", version, "--filter", "label=site=quay")
	if got := run("rollout", "watch", id); !strings.Contains(got, "DONE: 2 updated") {
		t.Errorf("the rollout ends with %s\n%s", got, p.text())
	}
	answer("updated")
	run("rollout", "take-back", id)
	if got := run("rollout", "watch", id); !strings.Contains(got, "TAKEN_BACK: 0 updated, 2 went back") {
		t.Errorf("after the rollback the rollout ends with %s\n%s", got, p.text())
	}
	answer("taken back")
}

// TestDemoEndsOnHangUp checks that the demo ends with its terminal, leaves no process, and deletes its directory.
func TestDemoEndsOnHangUp(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) { // child processes inherit that
		t.Skip("the tests are started so that they do not hear of a hang-up (nohup)")
	}
	port := func() string { return freeport.Reserve(t).String() }
	nameServer, resolver, dhcp := port(), port(), port()
	dir := t.TempDir()
	p, err := launch(filepath.Join(dir, "demo.out"), append(os.Environ(), "TMPDIR="+dir), dir, binary, "demo",
		"--listen", port(), "--checkin-listen", port(), "--diagnostics", port()+","+port(), "--name-server", nameServer,
		"--resolver", resolver, "--dhcp", dhcp, "--status", port())
	if err != nil {
		t.Fatal(err)
	}
	if !until(func() bool {
		return strings.HasPrefix(asked(nameServer, "crane-1-1-1.harbour.example.", dns.TypeA), "NOERROR 10.")
	}) {
		t.Fatalf("the demo says\n%s", p.text())
	}
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGHUP); err != nil { // the signal is sent to this process only
		t.Fatal(err)
	}
	<-p.done
	for _, at := range []string{nameServer, resolver} {
		if !until(func() bool {
			l, err := net.Listen("tcp", at)
			if err == nil {
				_ = l.Close()
			}
			return err == nil
		}) {
			t.Errorf("%s is still in use\n%s", at, p.text())
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "portolan-demo-*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %s %v", left, err)
	}
}
