package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"
)

// A service point that drives BIND: what the manager knows BIND answers, each change by itself, signed where it is to be; and the agent may
// end meanwhile.
func TestBINDOnTheWire(t *testing.T) {
	program := tool(t, "named")
	dir := t.TempDir()
	control, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	options, conf := filepath.Join(dir, "options"), filepath.Join(dir, "named.conf")
	if err := os.WriteFile(options, []byte("pid-file none; session-keyfile none;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // who looks after BIND starts it once it has a configuration
		defer close(done)
		if !until(func() bool { _, err := os.Stat(conf); return err == nil }) {
			return
		}
		c := exec.Command(program, "-g", "-n", "1", "-c", conf)
		if err := c.Start(); err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
	}()
	a, zone, below, _ := liveServer(t, "", "--engine", "bind", "--bind-config", conf, "--bind-zones", filepath.Join(dir, "zones"),
		"--bind-control", control, "--bind-options", options)
	<-done
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
	if !until(func() bool {
		err = a.good("berth.harbour.example.", dns.TypeTXT, "harbour.example.", anchors)
		return err == nil
	}) {
		t.Fatalf("signed: %v\n%s", err, a.process.text())
	}
	a.delv(t, anchors, "nobody.harbour.example.", "A")
	a.nothingElse()
}
