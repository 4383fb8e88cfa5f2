package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// building skips a test that builds a release, which takes minutes. make release-test runs it.
func building(t *testing.T) {
	t.Helper()
	if os.Getenv("PORTOLAN_TEST_RELEASE") == "" {
		t.Skip("builds programs for minutes: make release-test")
	}
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
}

// read returns the content of a file of a release.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRelease checks that a release is complete, signed, documented and reproducible, and that the package installs, upgrades and
// uninstalls.
func TestRelease(t *testing.T) {
	building(t)
	dir := t.TempDir()
	platform := "linux/" + runtime.GOARCH
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := minisign.EncryptKey("pass", private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PORTOLAN_RELEASE_KEY_PASSWORD", "pass")
	first, again, next := filepath.Join(dir, "first"), filepath.Join(dir, "again"), filepath.Join(dir, "next")
	for out, version := range map[string]string{first: "0.1.0", again: "0.1.0", next: "0.2.0"} {
		if err := run(version, out, platform, key); err != nil {
			t.Fatal(err)
		}
	}
	sums := read(t, filepath.Join(first, "SHA256SUMS"))
	if other := read(t, filepath.Join(again, "SHA256SUMS")); !bytes.Equal(sums, other) {
		t.Errorf("built again it is\n%s\nbefore\n%s", other, sums)
	}
	if !minisign.Verify(public, sums, read(t, filepath.Join(first, "SHA256SUMS.minisig"))) {
		t.Error("the signature is none of the checksums")
	}
	var bill struct {
		Version  string `json:"spdxVersion"`
		Packages []struct{ Name string }
	}
	if err := json.Unmarshal(read(t, filepath.Join(first, "portolan_0.1.0_linux_"+runtime.GOARCH+".spdx.json")), &bill); err != nil ||
		bill.Version != "SPDX-2.3" || len(bill.Packages) < 50 {
		t.Errorf("what is in it is %+v %v", bill, err)
	}
	if python, err := exec.LookPath("python3"); err == nil { // Python can import from the wheel file
		c := exec.Command(python, "-c", "import portolan, portolan.types; print(portolan.Portolan('http://x').url)")
		c.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(first, "portolan-0.1.0-py3-none-any.whl"))
		if out, err := c.CombinedOutput(); err != nil || string(out) != "http://x\n" {
			t.Errorf("the package for Python: %v %s", err, out)
		}
	}
	providerInstalls(t, filepath.Join(first, "terraform-provider-portolan_0.1.0_linux_"+runtime.GOARCH+".zip"))
	imageRuns(t, filepath.Join(first, "portolan_0.1.0_oci.tar"))
	if compose := read(t, filepath.Join(first, "portolan_0.1.0_compose.yaml")); !bytes.Contains(compose,
		[]byte("image: portolan:${PORTOLAN_VERSION:-0.1.0}")) {
		t.Errorf("the Compose file is\n%s", compose)
	}
	chartIs(t, filepath.Join(first, "portolan-chart-0.1.0.tgz"))
	rpms, err := filepath.Glob(filepath.Join(first, "portolan-0.1.0*.rpm"))
	if err != nil || len(rpms) != 1 {
		t.Fatal(rpms, err)
	}
	rpmInstalls(t, rpms[0], filepath.Join(first, "portolan_0.1.0_"+runtime.GOARCH+".deb"))
	installs(t, filepath.Join(first, "portolan_0.1.0_"+runtime.GOARCH+".deb"), filepath.Join(next, "portolan_0.2.0_"+runtime.GOARCH+".deb"))
}

// providerInstalls installs the provider from a filesystem mirror, if Terraform or OpenTofu is installed.
func providerInstalls(t *testing.T, zipped string) {
	t.Helper()
	program, err := exec.LookPath("tofu")
	if err != nil {
		if program, err = exec.LookPath("terraform"); err != nil {
			t.Log("neither tofu nor terraform is on the PATH: the provider is not installed")
			return
		}
	}
	mirror, site := t.TempDir(), t.TempDir()
	at := filepath.Join(mirror, "registry.terraform.io", "portolan", "portolan")
	for path, text := range map[string]string{filepath.Join(at, filepath.Base(zipped)): string(read(t, zipped)),
		filepath.Join(site, "rc"): `provider_installation {
  filesystem_mirror { path = "` + mirror + `" }
}`, filepath.Join(site, "main.tf"): `terraform {
  required_providers {
    portolan = { source = "registry.terraform.io/portolan/portolan", version = "0.1.0" }
  }
}
data "portolan_ipv4_network" "office" { range = "10.1.0.0/24" }
resource "portolan_ipv4_block" "harbour" { range = "10.0.0.0/8" }
`} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-no-color"}, {"validate", "-no-color"}} {
		c := exec.Command(program, args...) //nolint:gosec // constant arguments
		c.Dir = site
		c.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(site, "rc"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v %s", program, args, err, out)
		}
	}
}

// chartIs checks that the chart has the version of the release and contains every template.
func chartIs(t *testing.T, path string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(body)
	}
	about := found["portolan/Chart.yaml"]
	if !strings.Contains(about, "\nversion: 0.1.0\n") || !strings.Contains(about, "appVersion: 0.1.0\n") {
		t.Errorf("the chart is %q", about)
	}
	here, err := filepath.Glob("packaging/helm/portolan/templates/*")
	if err != nil || len(here) == 0 {
		t.Fatal(here, err)
	}
	for _, one := range here {
		if found["portolan/templates/"+filepath.Base(one)] != string(read(t, one)) {
			t.Errorf("%s is not in the chart, or is another", one)
		}
	}
}

// rpmInstalls installs the rpm into a root directory, without its scripts, and compares its files with those of the deb. Only the
// completions have other paths.
func rpmInstalls(t *testing.T, rpm, deb string) {
	t.Helper()
	program, err := exec.LookPath("rpm")
	if err != nil {
		t.Log("rpm is not installed: the rpm package is not tested")
		return
	}
	root, other := t.TempDir(), t.TempDir()
	for _, args := range [][]string{{program, "--root", root, "--nodeps", "--noscripts", "--nosignature", "-i", rpm},
		{program, "--root", root, "--nodeps", "--noscripts", "-V", "portolan"}, {"dpkg-deb", "-x", deb, other}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:gosec // constant arguments
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	list := func(dir string) (all []string) {
		if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			name := strings.TrimPrefix(path, dir)
			if err == nil && !d.IsDir() && !strings.HasPrefix(name, "/var/lib/rpm") && !strings.HasPrefix(name, "/usr/lib/sysimage") &&
				!strings.HasPrefix(name, "/root/") && !strings.HasPrefix(name, "/usr/share/zsh/") {
				all = append(all, fmt.Sprintf("%s %x", name, sha256.Sum256(read(t, path))))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got, want := list(root), list(other); len(want) < 50 || !slices.Equal(got, want) {
		t.Errorf("the rpm has %d files, the deb %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for _, path := range []string{filepath.Join(root, "/usr/share/zsh/site-functions/_portolan"),
		filepath.Join(other, "/usr/share/zsh/vendor-completions/_portolan")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// imageRuns checks the layout of the image.
func imageRuns(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	names, config := map[string]bool{}, ""
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
		if h.Size < 10_000 {
			body, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(body, []byte(`"Entrypoint"`)) {
				config = string(body)
			}
		}
	}
	if !names["oci-layout"] || !names["index.json"] {
		t.Errorf("the layout has %v", names)
	}
	for _, want := range []string{`"User":"65532:65532"`, `"Entrypoint":["/portolan"]`, `"Healthcheck":{"Test":["CMD","/portolan","ready"]`} {
		if !strings.Contains(config, want) {
			t.Errorf("the image is %s, without %s", config, want)
		}
	}
}

// installs installs one package and then another in a Debian namespace, uses them, and removes them.
func installs(t *testing.T, old, next string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("installing takes root, and dpkg")
	}
	c := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "packaging/release/testdata/install.sh", t.TempDir(),
		old, next)
	out, err := c.CombinedOutput()
	if bytes.Contains(out, []byte("wrong fs type")) || bytes.Contains(out, []byte("Operation not permitted")) && !bytes.Contains(out,
		[]byte("== ")) {
		t.Skipf("no file system over another one is to be had here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestVersions checks which versions and times are accepted.
func TestVersions(t *testing.T) {
	for given, want := range map[string]string{"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "x": "", "1.2 3": "", "1;rm": ""} {
		if got, err := versionOf(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q %v", given, got, err)
		}
	}
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-beta.2": "1.2.3b2",
		"1.2.3-x": "1.2.3.dev0"} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s is %s for Python", version, got)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "never")
	if _, err := timeOf(); err == nil {
		t.Error("never is a time")
	}
}

// TestUnits checks that systemd-analyze security rates the exposure of the systemd units at 2.0 or less.
func TestUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	for _, unit := range []string{"portolan.service", "portolan-agent.service"} {
		out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", "../systemd/"+unit).CombinedOutput()
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			t.Errorf("%s is open to more than 2.0: %v %s", unit, err, lines[len(lines)-1])
		}
	}
}
