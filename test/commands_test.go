package test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// wrong runs a command that must fail, and returns its exit code and output.
func (m *manager) wrong(args ...string) (code int, text string) {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	if err == nil {
		return 0, string(out)
	}
	return exit.ExitCode(), string(out)
}

// ends runs a command and checks its exit code and output.
func (m *manager) ends(want int, says string, args ...string) {
	m.t.Helper()
	if code, text := m.wrong(args...); code != want || !strings.Contains(text, says) {
		m.t.Errorf("portolan %s ends with %d, want %d; it says\n%s\nwant %q in it", strings.Join(args, " "), code, want, text, says)
	}
}

// TestCommandsAcceptNames checks that commands accept names, addresses and ranges in place of IDs, and report missing arguments.
func TestCommandsAcceptNames(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/24"}`)
	other := m.id("/configurations", `{"name":"other"}`)
	twice := m.id("/configurations/"+other+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.id("/users", `{"name":"carol","email":"carol@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	m.setEnvironment()
	if text := m.portolan("rights", "--user", "carol", "networks/10.1.0.0/24"); !strings.Contains(text, "networks/10.1.0.0/24: HIDE") {
		t.Errorf("carol may %s", text)
	}
	if text := m.portolan("delete", "--dry-run", "networks/10.1.0.0/24"); !strings.HasPrefix(text, "dry run: ") {
		t.Errorf("a dry run says %s", text)
	}
	if text := m.portolan("help", "rights"); !strings.HasPrefix(text, "Usage: portolan rights ") {
		t.Errorf("help says %s", text)
	}
	link := m.portolan(append([]string{"sign-in", "--user", "admin"}, m.where...)...)
	if base, code, _ := strings.Cut(strings.TrimSpace(link), "/#sign-in="); base != "http://"+m.api || len(code) < 40 {
		t.Errorf("the link is %s", link)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"delete blocks/10.0.0.0/8", 2, "several of blocks have the range"},
		{"delete networks", 2, "is not a resource"},
		{"rights zones/none.example", 1, `zones contains no resource with the absoluteName "none.example"`},
		{"rights --user dave networks/10.1.0.0/24", 1, `users contains no resource with the name "dave"`},
		{"sign-in --user dave " + strings.Join(m.where, " "), 2, `user "dave" does not exist`},
		{"sign-in --url nowhere " + strings.Join(m.where, " "), 2, "--url must be the URL of a manager"},
		{"rights --frob", 2, "Try: portolan rights --help"},
	} {
		if code, text := m.wrong(strings.Fields(c.args)...); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("portolan %s ends with %d, and says %s", c.args, code, text)
		}
	}
	if status, text, err := m.call("GET", "/blocks/"+twice, ""); status != 200 || err != nil {
		t.Errorf("the block is %d %s %v", status, text, err)
	}
	nowhere := filepath.Join(t.TempDir(), "none", "heads")
	code, text := m.wrong("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--checkin-listen", "127.0.0.1:0", "--history-heads",
		nowhere)
	if code != 1 || !strings.Contains(text, "history's heads") {
		t.Errorf("a manager that cannot write heads ends with %d, and says %s", code, text)
	}
}
