package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
)

// bindBeside starts BIND once an agent has written a configuration for it, and restarts it when it ends. args are the arguments for the
// agent. began is closed at the first start. kill kills BIND.
func bindBeside(t *testing.T) (args []string, start chan struct{}, kill func()) {
	t.Helper()
	program := peers.Program(t, "named")
	dir := t.TempDir()
	control := freeport.Reserve(t).String()
	options, conf := filepath.Join(dir, "options"), filepath.Join(dir, "named.conf")
	if err := os.WriteFile(options, []byte("pid-file none; session-keyfile none;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start = make(chan struct{})
	var mu sync.Mutex
	var running *exec.Cmd // guarded by mu, like ends
	ends := false         // do not restart
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if !until(func() bool { _, err := os.Stat(conf); return err == nil }) {
			close(start)
			return
		}
		for first := true; ; first = false {
			c := exec.Command(program, "-g", "-n", "1", "-c", conf)
			mu.Lock()
			stopped := ends
			if !stopped {
				if err := c.Start(); err != nil {
					t.Error(err)
					stopped = true
				} else {
					running = c
				}
			}
			mu.Unlock()
			if first {
				close(start)
			}
			if stopped {
				return
			}
			_ = c.Wait() // in any way
		}
	}()
	kill = func() {
		mu.Lock()
		defer mu.Unlock()
		if running != nil {
			_ = running.Process.Kill()
		}
	}
	t.Cleanup(func() {
		mu.Lock()
		ends = true
		mu.Unlock()
		kill()
		<-ended
	})
	return []string{"--engine", "bind", "--bind-config", conf, "--bind-zones", filepath.Join(dir, "zones"), "--bind-control", control,
		"--bind-options", options}, start, kill
}

// TestBINDOnTheWire checks a service point that drives BIND: BIND answers with the manager's data, each change is published, and signed
// zones are signed. The agent may be restarted meanwhile.
func TestBINDOnTheWire(t *testing.T) {
	t.Parallel()
	args, start, _ := bindBeside(t)
	a, zone, below, _ := liveServer(t, "", args...)
	<-start
	for i, id := range []string{zone, below} {
		a.m.id("/zones/"+id+"/resourceRecords", fmt.Sprintf(`{"type":"TXTRecord","name":"berth","text":"n%d"}`, i))
	}
	a.answersWith("berth.harbour.example.", dns.TypeTXT, `NOERROR "n0"`)
	a.answersWith("berth.quay.harbour.example.", dns.TypeTXT, `NOERROR "n1"`)
	policy := a.m.id("/signingPolicies", signingPolicy)
	if status, text, err := a.m.call("POST", "/signingPolicies/"+policy+"/appliedResources", `{"id":`+zone+`}`); status != 201 || err != nil {
		t.Fatal(status, text, err)
	}
	_, anchors := a.m.trusted(zone)
	var err error
	if !until(func() bool {
		err = a.good("berth.harbour.example.", dns.TypeTXT, "harbour.example.", anchors)
		return err == nil
	}) {
		t.Fatalf("signed: %v\n%s", err, a.process.text())
	}
	a.delv(t, anchors, "nobody.harbour.example.", "A")
	if !until(func() bool { // published after the key has been served
		err = a.good("harbour.example.", dns.TypeCDS, "harbour.example.", anchors)
		return err == nil
	}) {
		t.Fatalf("the CDS record: %v\n%s", err, a.process.text())
	}
	a.nothingElse()
}
