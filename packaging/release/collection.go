package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// collectionDir is the directory of the Ansible collection.
const collectionDir = "clients/ansible/ansible_collections/portolan/network"

// collectionFile is a file in the collection's manifest.
type collectionFile struct {
	Name   string  `json:"name"`
	Type   string  `json:"ftype"`
	Kind   *string `json:"chksum_type"`
	Sum    *string `json:"chksum_sha256"`
	Format int     `json:"format"`
}

// collection writes the Ansible collection in the format of ansible-galaxy collection install: its files, the list of files, and its
// metadata.
func (r *release) collection() error {
	var about map[string]any
	text, err := os.ReadFile(filepath.Join(collectionDir, "galaxy.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &about)
	}
	if err != nil {
		return err
	}
	about["version"] = r.version
	about["license_file"], about["repository"], about["documentation"], about["homepage"], about["issues"] = nil, nil, nil, nil, nil
	kind := "sha256"
	sum := func(body []byte) *string {
		h := sha256.Sum256(body)
		text := hex.EncodeToString(h[:])
		return &text
	}
	files := []collectionFile{{Name: ".", Type: "dir", Format: 1}}
	var all []entry
	if err := filepath.WalkDir(collectionDir, func(path string, d os.DirEntry, err error) error {
		name := strings.TrimPrefix(strings.TrimPrefix(path, collectionDir), "/")
		if err != nil || name == "" || name == "galaxy.yml" || strings.Contains(name, "__pycache__") {
			return err
		}
		if d.IsDir() {
			files = append(files, collectionFile{Name: name, Type: "dir", Format: 1})
			all = append(all, entry{to: name + "/", mode: 0o755})
			return nil
		}
		body, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return err
		}
		files = append(files, collectionFile{Name: name, Type: "file", Kind: &kind, Sum: sum(body), Format: 1})
		all = append(all, entry{body: body, to: name, mode: 0o644})
		return nil
	}); err != nil {
		return err
	}
	list, err := json.MarshalIndent(map[string]any{"files": files, "format": 1}, "", " ")
	if err != nil {
		return err
	}
	manifest, err := json.MarshalIndent(map[string]any{"collection_info": about, "format": 1,
		"file_manifest_file": collectionFile{Name: "FILES.json", Type: "file", Kind: &kind, Sum: sum(list), Format: 1}}, "", " ")
	if err != nil {
		return err
	}
	all = slices.Insert(all, 0, entry{body: manifest, to: "MANIFEST.json", mode: 0o644}, entry{body: list, to: "FILES.json", mode: 0o644})
	f, err := r.create(fmt.Sprintf("portolan-network-%s.tar.gz", r.version))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.tar(z, "", all); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Sync()
}
