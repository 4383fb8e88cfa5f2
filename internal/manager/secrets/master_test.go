package secrets

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMasterKeys checks that a sealing key is decrypted only by its master key and under its own id. The error names the missing master
// key.
func TestMasterKeys(t *testing.T) {
	first, second := NewMasterKey(), NewMasterKey()
	one, err := ParseMasterKeys("# ours\n"+first+"\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	both, err := ParseMasterKeys(second+"\n"+first, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := RandomBytes(keySize)
	kept, err := one.sealKey(3, key)
	if err != nil || bytes.Contains(kept, key) {
		t.Fatalf("it is kept as %x: %v", kept, err)
	}
	if got, current, err := one.openKey(3, kept); err != nil || !current || !bytes.Equal(got, key) {
		t.Errorf("it is opened as %x %v %v", got, current, err)
	}
	if got, current, err := both.openKey(3, kept); err != nil || current || !bytes.Equal(got, key) {
		t.Errorf("by a former master key it is opened as %x %v %v", got, current, err)
	}
	if got, current, err := one.openKey(3, key); err != nil || current || !bytes.Equal(got, key) {
		t.Errorf("one that is not sealed is opened as %x %v %v", got, current, err)
	}
	if got, err := MasterKeys(nil).sealKey(3, key); err != nil || !bytes.Equal(got, key) {
		t.Errorf("without a master key it is kept as %x %v", got, err)
	}
	other, err := ParseMasterKeys(second, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(kept)
	changed[len(changed)-1] ^= 1
	for what, try := range map[string]func() error{
		"another master key": func() error { _, _, err := other.openKey(3, kept); return err },
		"no master key":      func() error { _, _, err := MasterKeys(nil).openKey(3, kept); return err },
		"another number":     func() error { _, _, err := one.openKey(4, kept); return err },
		"a changed bit":      func() error { _, _, err := one.openKey(3, changed); return err },
		"half of it":         func() error { _, _, err := one.openKey(3, kept[:20]); return err },
		"nothing":            func() error { _, _, err := one.openKey(3, nil); return err },
	} {
		if try() == nil {
			t.Errorf("%s opens it", what)
		}
	}
	for _, text := range []string{"x", first[1:], first + "A"} {
		if _, err := ParseMasterKeys(text, nil); err == nil || strings.Contains(err.Error(), text) && len(text) > 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("# none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadMasterKeys(file, nil); err == nil {
		t.Error("a file without a key is taken")
	}
}
