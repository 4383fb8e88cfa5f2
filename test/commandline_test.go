package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// setEnvironment sets the environment so that the commands of the test use the manager.
func (m *manager) setEnvironment() {
	m.env = []string{"PORTOLAN_URL=http://" + m.api, "PORTOLAN_TOKEN=" + m.token,
		"PORTOLAN_CONTEXTS=" + filepath.Join(m.t.TempDir(), "contexts.yaml")}
}

// environment returns the environment of the test's commands, and more.
func (m *manager) environment(more ...string) []string {
	return slices.Concat(os.Environ(), m.env, more)
}

// command returns a command of the program in the environment of the test.
func (m *manager) command(args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Env = m.environment()
	return c
}

// says runs a command that must succeed, and reports texts that are missing in its output.
func (m *manager) says(wants []string, args ...string) string {
	m.t.Helper()
	text := m.portolan(args...)
	for _, want := range wants {
		if !strings.Contains(text, want) {
			m.t.Errorf("portolan %s says\n%s\nwithout %q", strings.Join(args, " "), text, want)
		}
	}
	return text
}

// TestCommandLine checks that commands reach the whole API by names and print what changed.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.says([]string{"+ Configuration main", "1 created, transaction"}, "create", "configuration", "name=main")
	m.says([]string{"+ IPv4Block 10.0.0.0/8"}, "create", "block", "range=10.0.0.0/8", "name=Harbour")
	m.says([]string{"dry run: 1 created"}, "create", "network", "range=10.1.0.0/24", "name=office", "-n")
	m.says([]string{"networks/"}, "create", "network", "range=10.1.0.0/24", "name=office", "location=NO", "-o", "name")
	m.says([]string{"10.2.0.0/16"}, "create", "IPv4Block", "range=10.2.0.0/16", "-o", "json")
	m.says([]string{"RANGE", "10.1.0.0/24", "office", "Norway"}, "list", "networks", "--filter", "off")
	m.says([]string{"1"}, "list", "networks", "--total")
	m.says([]string{"range: 10.1.0.0/24", "name: Norway"}, "list", "networks", "--filter", "name=office", "-o", "yaml")
	m.says([]string{"id,range,name\n"}, "list", "networks", "--fields", "id,range,name", "-o", "csv")
	m.says([]string{"1"}, "list", "networks", "--filter", "name='office'", "--total") // with the quotes of API filters
	if text := m.portolan("list", "networks", "--filter", "name=nobody", "-o", "json"); text != "[]" {
		t.Errorf("nothing is %q", text)
	}
	m.says([]string{"gateway", "10.1.0.1"}, "get", "networks/10.1.0.0/24")
	m.says([]string{"office -> lab", "dry run: 1 changed"}, "set", "networks/10.1.0.0/24", "name=lab", "--dry-run")
	m.says([]string{"location", "none", "highWaterMark", "90"}, "set", "networks/10.1.0.0/24", "highWaterMark=90", "location=")
	m.says([]string{"no changes"}, "set", "networks/10.1.0.0/24", "highWaterMark=90")
	m.says([]string{"10.1.0.2\n10.1.0.3"}, "next", "networks/10.1.0.0/24", "--count", "2")
	m.says([]string{"+ IPv4Address 10.1.0.2"}, "assign", "networks/10.1.0.0/24", "name=printer", "macAddress=0000.5e00.5301")
	m.says([]string{"10.0.0.0/26\n10.0.0.64/26"}, "next", "blocks/10.0.0.0/8", "--size", "/26", "--count", "2")
	m.says([]string{"+ IPv4Network 10.0.0.0/26"}, "assign", "blocks/10.0.0.0/8", "--size", "26", "name=bench")
	m.says([]string{"addresses/"}, "list", "networks/10.1.0.0/24/addresses", "--filter", "state=STATIC", "-o", "name")
	m.says([]string{"00-00-5E-00-53-01"}, "get", "addresses/10.1.0.2")
	m.says([]string{"range  10.1.0.0/24 -> 10.1.0.0/26", "dry run: "}, "split", "networks/10.1.0.0/24", "--parts", "4", "-n")
	m.says([]string{"IPv4NetworkMove 10.1.0.0/24 to 10.9.0.0/24", "done, transaction"}, "move", "networks/10.1.0.0/24", "10.9.0.0")
	m.says([]string{"office"}, "get", "networks/10.9.0.0/24")
	m.says([]string{"+ View inside"}, "create", "view", "name=inside")
	m.says([]string{"+ Zone lab.example"}, "create", "Zone", "absoluteName=lab.example")
	m.says([]string{"+ HostRecord www.lab.example"}, "create", "HostRecord", "absoluteName=www.lab.example", "addresses=10.9.0.2,10.9.0.9")
	m.says([]string{"ttl  none -> 300"}, "set", "record/www.lab.example", "ttl=300")
	m.says([]string{"absoluteName  www.lab.example -> web.lab.example"}, "move", "records/www.lab.example", "web.lab.example")
	history := m.says([]string{"Added", "admin"}, "history", "--limit", "50")
	if strings.Contains(history, "Applied 1 ") {
		t.Errorf("the history says\n%s", history)
	}
	m.says([]string{"ttl  none -> 300"}, "history", transactionOf(m, "ttl"))
	number, _, _ := strings.Cut(strings.Split(m.portolan("history", "networks/10.9.0.0/24", "--limit", "1", "-o", "csv"), "\n")[1], ",")
	m.says([]string{"range  10.1.0.0/24 -> 10.9.0.0/24"}, "history", number)
	m.says([]string{"~ HostRecord"}, "undo", transactionOf(m, "ttl"), "--dry-run", "--force")
	// A list in CSV can be imported unchanged, including references.
	m.portolan("set", "networks/10.9.0.0/24", "location=NO")
	number, _, _ = strings.Cut(strings.Split(m.portolan("history", "networks/10.9.0.0/24", "--limit", "1", "-o", "csv"), "\n")[1], ",")
	m.says([]string{"location  none -> NO"}, "history", number) // the key, not the ID
	for _, c := range []struct{ collection, says string }{{"networks", "2 rows: 0 created, 0 updated, 2 unchanged"},
		{"records", "1 row: 0 created, 0 updated, 1 unchanged"}, {"addresses", "0 updated, 4 unchanged"}} {
		table := filepath.Join(t.TempDir(), "table.csv")
		if err := os.WriteFile(table, []byte(m.portolan("list", c.collection, "-o", "csv")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.says([]string{c.says}, "import", "file", table)
	}
	// A deletion in steps is undone step by step.
	m.says([]string{"in 3 transactions"}, "delete", "zones/lab.example", "--at-most", "1", "-y")
	undo := []string{"undo"}
	for _, row := range strings.Split(m.portolan("history", "--limit", "3", "-o", "csv"), "\n")[1:] {
		number, _, _ := strings.Cut(row, ",")
		undo = append(undo, number)
	}
	m.says([]string{"undid transaction " + undo[1], "undid transaction " + undo[3]}, undo...)
	m.says([]string{"web.lab.example"}, "get", "records/web.lab.example")
	m.check()
}

// transactionOf returns the ID of the transaction that changed the TTL.
func transactionOf(m *manager, _ string) string {
	text := m.portolan("history", "records/web.lab.example", "--limit", "5", "-o", "csv")
	for line := range strings.Lines(text) {
		if strings.Contains(line, "UPDATE") || strings.Contains(line, "CHANGE") {
			number, _, _ := strings.Cut(line, ",")
			return number
		}
	}
	m.t.Fatalf("no change in\n%s", text)
	return ""
}

// TestCommandLineRefuses checks that errors suggest the likely intention and that nothing is changed.
func TestCommandLineRefuses(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "range=10.0.0.0/8")
	m.portolan("create", "configuration", "name=other")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"list netwroks", 2, "did you mean networks?"},
		{"get networks/10.77.0.0/24", 1, `networks contains no resource with the range "10.77.0.0/24"`},
		{"create network", 2, "can have several types"},
		{"create network rnage=10.1.0.0/24", 2, "no type of networks has all of these fields"},
		{"create IPv4Network rnage=10.1.0.0/24", 2, "did you mean range?"},
		{"create IPv4Network range", 2, "not of the form FIELD=VALUE"},
		{"create IPv4Network range=11.0.0.0/24 --configuration main", 1, "not in a block"},
		{"create IPv4Network range=10.1.0.0/24", 1, "select one with --configuration NAME"}, // there are two
		{"get blocks/10.0.0.0/8/addressCounts -o csv", 2, "use -o json or -o yaml"},
		{"get blocks/10.0.0.0/8/addressCounts --fields counts", 2, "cannot be limited to fields"},
		{"list blocks/10.0.0.0/8/addressCounts", 2, "use portolan get"},
		{"set blocks/10.0.0.0/8/addressCounts name=2", 2, "is not a resource"},
		{"merge blocks/10.0.0.0/8 configurations/main", 2, "only resources of one type can be merged"},
		{"merge configurations/main configurations/other", 2, "can be merged"},
		{"merge blocks/10.0.0.0/8 blocks/10.0.0.0/8", 1, "nothing to merge"},
		{"create IPv4Network range=10.1.0.0/24 usage=1", 2, "read-only"},
		{"set blocks/10.0.0.0/8 name.x=1 name=2", 2, "name"},
		{"set blocks name=2", 2, "is not a resource, such as blocks/"},
		{"next blocks/10.0.0.0/8", 2, "--size"},
		{"next configurations/main", 2, "neither a network nor a block"},
		{"move blocks/10.0.0.0/8 10.0.0.1", 1, "10.0.0.1"},
		{"move blocks/10.0.0.0/8/networks/1 10.9.0.0", 1, "is not a prefix length"}, // the path of a network is networks/...
		{"undo 999999", 1, "999999"},
		{"list networks --context nowhere", 2, "specify two managers"},
		{"apply -f nowhere.yaml", 2, "nowhere.yaml: no such file"},
		{"export nothing/1", 2, "no collection"},
	} {
		if code, text := m.wrong(strings.Fields(c.args)...); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("portolan %s ends with %d, and says %s", c.args, code, text)
		}
	}
	m.says([]string{"+ IPv4Network 10.1.0.0/24"}, "create", "IPv4Network", "range=10.1.0.0/24", "--configuration", "main")
	// Flags may be anywhere.
	m.says([]string{"none -> a", "userDefinedFields.y  none -> -1", "dry run"}, "set", "-n", "blocks/10.0.0.0/8", "name=a",
		"--configuration", "main", "userDefinedFields.y=-1")
	m.says([]string{`"range":"10.0.0.0/8"`}, "list", "blocks", "-ojson", "--filter=range=10.0.0.0/8", "--configuration=main")
	m.says([]string{"totalCount: 1", "GATEWAY: 1"}, "get", "blocks/10.0.0.0/8/addressCounts")
	m.says([]string{"+ IPv4Network 10.1.1.0/24"}, "create", "IPv4Network", "range=10.1.1.0/24", "--configuration", "main")
	m.says([]string{"+ IPv4NetworkMerge 10.1.1.0/24 into 10.1.0.0/24", "~ IPv4Network 10.1.0.0/23", "- IPv4Network 10.1.1.0/24",
		"done, transaction"}, "merge", "networks/10.1.0.0/24", "networks/10.1.1.0/24")
	m.check()
}

// TestApplyFiles plans and applies a document, applies it again without changes, exports it, and applies it to another manager. Resources
// removed from the document are deleted.
func TestApplyFiles(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "tagGroup", "name=owners")
	m.portolan("create", "tag", "name=north", "--in", "tagGroups/owners")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const space = `# The north.
into: configurations/main
tag: tags/north
resources:
- {type: IPv4Network, range: 10.1.0.0/24, name: office, location: NO}
- type: IPv4Block
  range: 10.0.0.0/8
---
- {type: View, name: inside}
`
	names := `type: Zone
absoluteName: lab.example
view: inside
---
type: HostRecord
absoluteName: www.lab.example
view: inside
addresses: [10.1.0.10]
userDefinedFields: null
`
	write("space.yaml", space)
	write("names.yml", names)
	m.says([]string{"+ IPv4Block 10.0.0.0/8", "dry run: 5 created"}, "apply", "-f", dir, "-n")
	m.says([]string{"+ HostRecord www.lab.example", "5 created"}, "apply", "-f", dir)
	m.says([]string{"no changes"}, "apply", "-f", dir)
	write("names.yml", strings.Replace(names, "type: HostRecord\n", "type: HostRecord\nttl: 60\n", 1))
	m.says([]string{"~ HostRecord www.lab.example", "ttl  none -> 60", "1 changed, 4 unchanged"}, "apply", "-f", dir)
	write("space.yaml", strings.Replace(space, "- {type: IPv4Network, range: 10.1.0.0/24, name: office, location: NO}\n", "", 1))
	write("names.yml", strings.Replace(names, "addresses: [10.1.0.10]", "addresses: [10.0.9.9]", 1))
	if code, text := m.wrong("apply", "-f", dir, "--prune"); code != 1 || !strings.Contains(text, "10.0.9.9") {
		t.Errorf("a host without its network is %d %s", code, text)
	}
	if err := os.Remove(filepath.Join(dir, "names.yml")); err != nil {
		t.Fatal(err)
	}
	m.says([]string{"- IPv4Network 10.1.0.0/24", "- Zone lab.example", "dry run: 2 deleted, 2 unchanged"}, "apply", "-f", dir,
		"--prune", "-n")
	// ENUM zones are identified by their parent.
	m.portolan("apply", "-f", write("numbers.yaml", "into: configurations/main\nresources:\n"+
		"- {type: ENUMZone, in: views/inside, name: e164.arpa}\n- {type: ENUMNumberZone, in: zones/e164.arpa, name: 2.2.7.4}\n"))
	m.says([]string{"in: zones/e164.arpa\n    name: 2.2.7.4"}, "export", "configurations/main")
	// With several views, the document contains the view of a zone.
	m.portolan("apply", "-f", write("views.yaml", "into: configurations/main\nresources:\n- {type: View, name: outside}\n"+
		"- {type: Zone, view: outside, absoluteName: lab.example}\n"+
		"- {type: DNSOption, in: views/outside/zones/lab.example, name: allow-query, value: [any]}\n"+
		"- {type: ExternalHostRecord, view: outside, absoluteName: mail.elsewhere.example}\n"+
		"- {type: MXRecord, view: outside, absoluteName: lab.example, priority: 5, linkedRecord: mail.elsewhere.example}\n"+
		"- {type: DNSOption, in: views/inside/zones/lab.example, name: allow-query, value: [none]}\n"))
	if code, text := m.wrong("apply", "-f", write("views.yaml", "into: configurations/main\nresources:\n"+
		"- {type: DNSOption, in: views/outside/zones/e164.arpa, name: allow-query, value: [any]}\n")); code != 1 ||
		!strings.Contains(text, `the absoluteName "e164.arpa" does not exist`) {
		t.Errorf("a zone that is in another view: %d %s", code, text)
	}
	exported := m.says([]string{"into: configurations/main", "in: views/inside\n    name: e164.arpa",
		"in: views/inside/zones/e164.arpa\n    name: 2.2.7.4", "in: views/outside/zones/lab.example\n    name: allow-query\n    value: [any]",
		"absoluteName: www.lab.example", "view: inside", "location: NO"}, "export",
		"configurations/main")
	file := filepath.Join(dir, "all.yaml")
	write("all.yaml", exported)
	m.says([]string{"no changes"}, "apply", "-f", file)
	m.says([]string{"range: 10.1.0.0/24"}, "export", "blocks/10.0.0.0/8", "--only", "network")
	m.check()

	// On another manager.
	other := serve(t, "")
	other.setEnvironment()
	other.says([]string{" created"}, "apply", "-f", file)
	other.says([]string{"no changes"}, "apply", "-f", file)
	if again := other.portolan("export", "configurations/main"); again != exported {
		t.Errorf("exported there it is\n%s\nwant\n%s", again, exported)
	}
	other.check()

	for text, says := range map[string]string{
		"resources: 5":                        "must be a list",
		"resorces: []\ntype: x\nresources: 1": "must be a resource type",
		"into: a\nresources: []\nwhat: 1":     "what is not a member",
		"- 5":                                 "is not a resource",
		"just a text":                         "is neither a resource",
		"a: [":                                "wrong.yaml",
		"":                                    "no resources",
		"type: IPv4Network\nname: a\nname: b": "twice",
	} {
		path := write("wrong.yaml", text)
		if code, out := m.wrong("apply", "-f", path); code == 0 || !strings.Contains(out, says) {
			t.Errorf("%q ends with %d, and says %s", text, code, out)
		}
	}
}

// TestContextsAndCompletion signs in to a context once and then uses it. Completion uses the context as well.
func TestContextsAndCompletion(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "range=10.0.0.0/8")
	m.portolan("create", "network", "range=10.1.0.0/24", "name=office")
	file := filepath.Join(t.TempDir(), "c", "contexts.yaml")
	m.env = []string{"PORTOLAN_CONTEXTS=" + file, "PORTOLAN_URL=", "PORTOLAN_TOKEN="}
	if code, text := m.wrong("list", "networks"); code != 2 || !strings.Contains(text, "portolan login") {
		t.Errorf("without a token it is %d %s", code, text)
	}
	m.env = append(m.env, "PORTOLAN_PASSWORD=wrong-password")
	if code, text := m.wrong("login", "http://"+m.api, "--name", "here"); code != 1 || !strings.Contains(text, "401") {
		t.Errorf("a wrong password is %d %s", code, text)
	}
	m.env = append(m.env, "PORTOLAN_PASSWORD=a-long-password")
	m.says([]string{"signed in at http://" + m.api, "here"}, "login", "http://"+m.api, "--name", "here", "--configuration", "main")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the contexts are %v %v", info, err)
	}
	m.says([]string{"office"}, "list", "networks")
	m.says([]string{"*", "here", "main"}, "context")
	m.portolan("fleet", "create", "pier")
	for words, want := range map[string]string{
		"li":                          "list\t",
		"get networks/10.1":           "networks/10.1.0.0/24\toffice",
		"get networks/10.1.0.0/24/ad": "networks/10.1.0.0/24/addresses",
		"create address state=":       "state=STATIC",
		"set networks/10.1.0.0/24 hi": "highWaterMark=\t",
		"list networks --out":         "--output\t",
		"list networks --output y":    "yaml",
		"context use h":               "here\thttp://" + m.api,
		"fleet li":                    "list\t",
		"export configurations/m":     "configurations/main",
		"fleet show p":                "pier\tWAITING_FOR_PROVISIONING",
	} {
		if text := m.portolan(append([]string{"complete", "--"}, strings.Fields(words)...)...); !strings.Contains(text, want) {
			t.Errorf("%q becomes\n%s\nwant %q", words, text, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		m.says([]string{"portolan complete --"}, "completion", shell)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		script := `PATH="$1:$PATH"; . <(portolan completion bash); COMP_LINE="portolan create address state=S"; COMP_POINT=${#COMP_LINE}; _portolan; echo "${COMPREPLY[@]}"`
		c := exec.Command(bash, "-c", script, "-", filepath.Dir(binary))
		c.Env = m.environment()
		out, err := c.CombinedOutput()
		if err != nil || string(out) != "STATIC\n" {
			t.Errorf("bash completes %s %v", out, err)
		}
	}
	m.says([]string{"deleted context here; its token was revoked"}, "logout", "here")
	if code, text := m.wrong("list", "networks", "--context", "here"); code != 2 || !strings.Contains(text, "does not exist: list contexts") {
		t.Errorf("a context that is gone is %d %s", code, text)
	}
}
