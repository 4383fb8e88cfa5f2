package test

import (
	"context"
	"encoding/base64"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// installed returns the Python of an environment with public packages. The test is skipped if they cannot be installed.
func installed(t *testing.T, packages ...string) (python string) {
	t.Helper()
	dir := t.TempDir()
	ctx, end := context.WithTimeout(t.Context(), 3*time.Minute)
	defer end()
	if out, err := exec.CommandContext(ctx, "python3", "-m", "venv", dir).CombinedOutput(); err != nil {
		t.Skipf("no environment for Python: %v\n%s", err, out)
	}
	python = filepath.Join(dir, "bin", "python")
	args := append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...)
	if out, err := exec.CommandContext(ctx, python, args...).CombinedOutput(); err != nil {
		t.Skipf("%v cannot be installed: %v\n%s", packages, err, out)
	}
	return python
}

// TestPublicPythonClient checks that the public package bluecat-libraries works unmodified: sign-in, pages, media types, errors, and all
// kinds of credentials.
func TestPublicPythonClient(t *testing.T) {
	t.Parallel()
	python := installed(t, "bluecat-libraries==26.1.0")
	m := serve(t, "")
	token := m.portolan(append([]string{"token", "create", "--name", "client", "--user", "admin"}, m.where...)...)
	out, err := exec.Command(python, "testdata/clients/python_client.py", "http://"+m.api, "admin", "a-long-password", token).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, m.process.text())
	}
}

// TestPublicACMEProvider checks that the provider bluecatv2 of the public library lego creates and deletes the record of a challenge,
// unmodified. certbot-dns-multi and other ACME clients use it.
func TestPublicACMEProvider(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"Default"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"Internal"}`)
	zone := m.id("/views/"+view+"/zones", `{"absoluteName":"example.com"}`)
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/clients/lego.go.txt")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "main.go"), source, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
	defer end()
	environment := append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "LEGO_DISABLE_CNAME_SUPPORT=true",
		"BLUECATV2_SERVER_URL=http://"+m.api, "BLUECATV2_USERNAME=admin", "BLUECATV2_PASSWORD=a-long-password",
		"BLUECATV2_CONFIG_NAME=Default", "BLUECATV2_VIEW_NAME=Internal", "BLUECATV2_SKIP_DEPLOY=true")
	for _, args := range [][]string{{"mod", "init", "example"}, {"get", "github.com/go-acme/lego/v5/providers/dns/bluecatv2@v5.6.0"},
		{"build", "-o", "lego", "."}} {
		c := exec.CommandContext(ctx, "go", args...)
		c.Dir, c.Env = dir, environment
		if out, err := c.CombinedOutput(); err != nil && args[0] == "get" {
			t.Skipf("lego cannot be installed: %v\n%s", err, out)
		} else if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	c := exec.CommandContext(ctx, filepath.Join(dir, "lego"))
	c.Env, c.Stderr = environment, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	output := make([]byte, 9)
	if _, err := io.ReadFull(out, output); err != nil || string(output) != "presented" {
		t.Fatalf("it says %q: %v\n%s", output, err, m.process.text())
	}
	if n := m.count("/zones/"+zone+"/resourceRecords", "type:'TXTRecord'"); n != 1 {
		t.Errorf("there are %d records of the challenge", n)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("it ends with %v\n%s", err, m.process.text())
	}
	if n := m.count("/zones/"+zone+"/resourceRecords", "type:'TXTRecord'"); n != 0 {
		t.Errorf("%d records of the challenge stay", n)
	}
}

// TestPublicEdgeClient checks that the public Python package signs in to the fleet API with a key and lists service points.
func TestPublicEdgeClient(t *testing.T) {
	t.Parallel()
	python := installed(t, "bluecat-libraries==26.1.0")
	m := serve(t, "")
	key := m.portolan(append([]string{"key", "create", "--name", "edge", "--role", "administrator"}, m.where...)...)
	out, err := exec.Command(python, append([]string{"testdata/clients/edge_client.py", "http://" + m.api},
		strings.Fields(key)...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, m.process.text())
	}
}

// TestPublicRegistration checks that the public program bluecatipreg registers and removes a host, unmodified.
func TestPublicRegistration(t *testing.T) {
	t.Parallel()
	python := installed(t, "bluecatipreg==0.0.1")
	const logs = "/var/log/bluecat" // the program's fixed log directory
	if _, err := os.Stat(logs); os.IsNotExist(err) {
		if err := os.Mkdir(logs, 0o755); err != nil {
			t.Skipf("it cannot write its log: %v", err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(logs) })
	}
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"Playground"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"default"}`)
	m.id("/views/"+view+"/zones", `{"absoluteName":"private.example"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.128.7.0/24"}`)
	run := func(want string, args ...string) {
		t.Helper()
		all := append([]string{"-m", "bluecatipreg", args[0], "-url", "http://" + m.api, "-user", "admin", "-passwd",
			base64.StdEncoding.EncodeToString([]byte("a-long-password")), "-conf", "Playground"}, args[1:]...)
		if out, err := exec.Command(python, all...).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	run("has been registered successfully", "add", "-n", "host1", "-fqdn", "host1.private.example", "-ipv4", "10.128.7.14",
		"-net", "10.128.7.0/24", "-domain", "private.example", "-contact", "ab1", "-c", "a remark")
	if n := m.count("/resourceRecords", "absoluteName:'host1.private.example'"); n != 1 {
		t.Errorf("%d records of the host are there", n)
	}
	run("has been unregistered successfully", "delete", "-ipv4", "10.128.7.14")
	if n := m.count("/resourceRecords", "absoluteName:'host1.private.example'"); n != 0 {
		t.Errorf("%d records of the host stay", n)
	}
}
