package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// pythonVersion returns a version in Python's format (PEP 440): 1.2.3-rc.1 becomes 1.2.3rc1.
func pythonVersion(version string) string {
	base, pre, ok := strings.Cut(version, "-")
	if !ok {
		return version
	}
	kind, number, _ := strings.Cut(pre, ".")
	switch kind {
	case "alpha", "beta", "rc":
		return base + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[kind] + number
	}
	return base + ".dev0"
}

// wheel writes the Python package (PEP 427).
func (r *release) wheel() error {
	version := pythonVersion(r.version)
	sources, err := filepath.Glob("clients/python/portolan/*.py")
	if err != nil {
		return err
	}
	slices.Sort(sources)
	about, err := os.ReadFile("clients/python/README.md")
	if err != nil {
		return err
	}
	info := fmt.Sprintf("portolan-%s.dist-info", version)
	all := []entry{}
	for _, source := range sources {
		all = append(all, entry{from: source, to: path.Join("portolan", filepath.Base(source)), mode: 0o644})
	}
	all = append(all, entry{from: "LICENSE", to: info + "/licenses/LICENSE", mode: 0o644},
		entry{to: info + "/METADATA", mode: 0o644, body: []byte("Metadata-Version: 2.1\nName: portolan\nVersion: " + version +
			"\nSummary: A client of Portolan, the address, name and fleet manager\nLicense: Apache-2.0\nRequires-Python: >=3.9\n" +
			"Description-Content-Type: text/markdown\n\n" + string(about))},
		entry{to: info + "/WHEEL", mode: 0o644,
			body: []byte("Wheel-Version: 1.0\nGenerator: portolan-release\nRoot-Is-Purelib: true\nTag: py3-none-any\n")})
	var record strings.Builder
	for _, e := range all {
		body, err := e.read()
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", e.to, base64.RawURLEncoding.EncodeToString(sum[:]), len(body))
	}
	fmt.Fprintf(&record, "%s/RECORD,,\n", info)
	all = append(all, entry{to: info + "/RECORD", mode: 0o644, body: []byte(record.String())})
	f, err := r.create("portolan-" + version + "-py3-none-any.whl")
	if err != nil {
		return err
	}
	err = r.zip(f, "", all)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
