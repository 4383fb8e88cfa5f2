package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// publicClients is the environment variable with a directory of checkouts of public clients, by repository name. These clients are not in a
// package registry.
const publicClients = "PORTOLAN_TEST_CLIENTS"

// installFromSource returns a checkout of a public client and the Python of an environment with its requirements. The test is skipped
// without a checkout.
func installFromSource(t *testing.T, repository string, packages ...string) (dir, python string) {
	t.Helper()
	dir = filepath.Join(os.Getenv(publicClients), repository)
	if _, err := os.Stat(dir); os.Getenv(publicClients) == "" || err != nil {
		t.Skipf("no registry has %s: %s names no directory with a checkout of it", repository, publicClients)
	}
	return dir, installed(t, packages...)
}

// pip installs packages. The test is skipped if that fails.
func pip(t *testing.T, python string, args ...string) {
	t.Helper()
	if out, err := exec.Command(python, append([]string{"-m", "pip", "install", "-q"}, args...)...).CombinedOutput(); err != nil {
		t.Skipf("it cannot be installed: %v\n%s", err, out)
	}
}

// world is a manager with a configuration, a view, a zone and a network for clients.
func world(t *testing.T) *manager {
	t.Helper()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"Default"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"Internal"}`)
	m.id("/views/"+view+"/zones", `{"absoluteName":"example.com"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.9.9.0/24"}`)
	return m
}

// TestPublicOctoDNS checks that the public octoDNS provider plans and creates missing records, and plans nothing the second time.
func TestPublicOctoDNS(t *testing.T) {
	t.Parallel()
	source, python := installFromSource(t, "octodns-bluecat", "octodns", "setuptools")
	pip(t, python, "--no-deps", "--no-build-isolation", source)
	m, dir := world(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "zones"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"c.yaml": "providers:\n  config: {class: octodns.provider.yaml.YamlProvider, directory: ./zones, enforce_order: false}\n  bluecat:\n" +
			"    class: octodns_bluecat.BlueCatProvider\n    base_url: http://" + m.api + "\n    username: admin\n    password: a-long-password\n" +
			"    confname: Default\n    view: Internal\nzones:\n  example.com.:\n    sources: [config]\n    targets: [bluecat]\n",
		"zones/example.com.yaml": "'':\n  - {type: A, values: [10.9.9.1]}\n  - {type: TXT, value: v=spf1 -all}\n" +
			"www: {type: A, ttl: 300, values: [10.9.9.2, 10.9.9.3]}\nsix: {type: AAAA, value: 2001:db8::77}\n" +
			"alias: {type: CNAME, value: www.elsewhere.test.}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"Creates=5", "No changes were planned"} {
		c := exec.Command(filepath.Join(filepath.Dir(python), "octodns-sync"), "--config-file", "c.yaml", "--doit", "--force")
		c.Dir = dir
		out, err := c.CombinedOutput()
		if text := string(out); err != nil || !strings.Contains(text, want) {
			t.Fatalf("run %d: %v\n%s\nwithout %q\n%s", i+1, err, text, want, m.process.text())
		}
	}
	m.check()
}

// TestPublicBamClient checks that the public BamClient lists, adds and deletes records and networks. Its command update fails before it
// sends a request.
func TestPublicBamClient(t *testing.T) {
	t.Parallel()
	source, python := installFromSource(t, "BamClient", "requests", "setuptools", "wheel")
	pip(t, python, "--no-deps", "--no-build-isolation", source)
	m := world(t)
	for _, c := range []struct{ args, want string }{
		{"add --zone example.com --name www --type A --data 10.9.9.7", ""},
		{"add --zone example.com --name t --type TXT --data hello", ""},
		{"list --zone example.com", "10.9.9.7"},
		{"delete --zone example.com --name t --type TXT", ""},
		{"add --network 10.8.0.0/24", ""},
		{"list --network 10.8.0.0/24", "10.8.0.0/24"},
		{"delete --network 10.8.0.0/24", ""},
	} {
		args := append([]string{"--host", "http://" + m.api, "--user", "admin", "--password", "a-long-password", "--config", "Default", "--view",
			"Internal"}, strings.Fields(c.args)...)
		run := exec.Command(filepath.Join(filepath.Dir(python), "BamClient"), args...)
		run.Env = append(os.Environ(), "BAM_BLOCKS=10.0.0.0/8")
		out, err := run.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s\nwithout %q", c.args, err, out, c.want)
		}
	}
	m.check()
}

// TestPublicCSVImporter checks that the public CSV importer passes its self-test, which creates, changes and deletes resources.
func TestPublicCSVImporter(t *testing.T) {
	t.Parallel()
	source, python := installFromSource(t, "Bluecat-CSV-Importer", "setuptools")
	pip(t, python, "-r", filepath.Join(source, "requirements.txt"))
	m := world(t)
	run := exec.Command(python, "import.py", "self-test")
	run.Dir = source
	run.Env = append(os.Environ(), "BAM_URL=http://"+m.api, "BAM_USERNAME=admin", "BAM_PASSWORD=a-long-password", "BAM_VERIFY_SSL=false",
		"COLUMNS=200")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	m.check()
}
