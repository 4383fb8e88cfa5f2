package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// The parts of SPDX 2.3 (spdx.github.io/spdx-spec/v2.3) that a list of modules requires.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Version       string         `json:"versionInfo"`
		Location      string         `json:"downloadLocation"`
		Analyzed      bool           `json:"filesAnalyzed"`
		Concluded     string         `json:"licenseConcluded"`
		Declared      string         `json:"licenseDeclared"`
		Copyright     string         `json:"copyrightText"`
		Checksums     []spdxChecksum `json:"checksums,omitempty"`
		External      []spdxExternal `json:"externalRefs,omitempty"`
		PackageReason string         `json:"primaryPackagePurpose,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxExternal struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// describe writes the bill of materials of a program, from the build information in the program.
func (r *release) describe(p platform) error {
	info, err := buildinfo.ReadFile(r.binary(p))
	if err != nil {
		return err
	}
	body, err := os.ReadFile(r.binary(p))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	name := fmt.Sprintf("portolan_%s_%s_%s", r.version, p.os, p.arch)
	const none = "NOASSERTION"
	d := spdxDocument{Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://spdx.org/spdxdocs/" + name + "-" + hex.EncodeToString(sum[:8]),
		Creation:  spdxCreation{Created: r.modified.Format(time.RFC3339), Creators: []string{"Tool: portolan-release-" + r.version}}}
	d.Packages = append(d.Packages, spdxPackage{ID: "SPDXRef-portolan", Name: "portolan", Version: r.version, Location: none,
		Concluded: "Apache-2.0",
		Declared:  "Apache-2.0", Copyright: none, PackageReason: "APPLICATION",
		Checksums: []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}}})
	d.Relationships = append(d.Relationships, spdxRelationship{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-portolan"})
	add := func(path, version string) {
		id := "SPDXRef-" + strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' {
				return c
			}
			return '-'
		}, path+"-"+version)
		d.Packages = append(d.Packages, spdxPackage{ID: id, Name: path, Version: version, Location: none, Concluded: none, Declared: none,
			Copyright: none,
			External:  []spdxExternal{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}}})
		d.Relationships = append(d.Relationships, spdxRelationship{"SPDXRef-portolan", "DEPENDS_ON", id})
	}
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version)
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	f, err := r.create(name + ".spdx.json")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
