package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBundleIsCurrent checks that the committed bundle matches the sources.
func TestBundleIsCurrent(t *testing.T) {
	made, err := bundle("..")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir("../bundle")
	if err != nil {
		t.Fatal(err)
	}
	if len(kept)+1 != len(made) { // plus the types
		t.Errorf("%d files are kept, %d are made", len(kept), len(made))
	}
	for name, content := range made {
		was, err := os.ReadFile(filepath.Join("..", name))
		if err != nil || !bytes.Equal(was, content) {
			t.Errorf("%s is not what the sources make: run go generate ./console (%v)", name, err)
		}
	}
}

// TestBundleIsReproducible bundles a copy of the sources below a folder of a package with other settings: the bundle is the same.
func TestBundleIsReproducible(t *testing.T) {
	above := t.TempDir()
	if err := os.WriteFile(filepath.Join(above, "package.json"), []byte(`{"type":"commonjs","sideEffects":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(above, "copy", "console")
	for from, to := range map[string]string{"..": root, "../../api": filepath.Join(above, "copy", "api")} {
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := bundle(root)
	if err != nil {
		t.Fatal(err)
	}
	here, err := bundle("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range here {
		if !bytes.Equal(made[name], content) {
			t.Errorf("%s differs below another package", name)
		}
	}
}

// TestPackages checks that the npm packages are unchanged and have their licences.
func TestPackages(t *testing.T) {
	text, err := os.ReadFile("../npm/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	if err := fs.WalkDir(os.DirFS("../npm"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == "SHA256SUMS" || path == "README.md" {
			return err
		}
		content, err := os.ReadFile(filepath.Join("../npm", path))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		if sums[path] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what it was: %x", path, sum)
		}
		delete(sums, path)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for path := range sums {
		t.Errorf("%s is gone", path)
	}
	for _, name := range []string{"preact", "@preact/signals", "@preact/signals-core", "lucide-static"} {
		if _, err := os.Stat(filepath.Join("../npm", name, "LICENSE")); err != nil {
			t.Error(err)
		}
	}
}
