package test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var writeMigrations = flag.Bool("write-migrations", false, "write the list of migrations anew, for a new number")

// migrationFile matches the number of a migration.
var migrationFile = regexp.MustCompile(`/migrations/(postgres|sqlite)/(\d{4})_\w+\.sql$`)

// TestMigrationsAreKept compares the migrations with testdata/migrations.sum. A database with a number runs no migration of that number
// again. A changed migration, or one added below an existing number, would therefore never run there. The list is one file for all
// packages, so that branches that add migrations with the same number conflict. Migrations with the highest number may be added until its
// release.
func TestMigrationsAreKept(t *testing.T) {
	const kept = "testdata/migrations.sum"
	var now []string
	if err := filepath.WalkDir("../internal", func(path string, _ fs.DirEntry, err error) error {
		found := migrationFile.FindStringSubmatch(filepath.ToSlash(path))
		if err != nil || found == nil {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		name := strings.TrimPrefix(filepath.ToSlash(path), "../internal/")
		now = append(now, fmt.Sprintf("%s %s %s", found[2], name, hex.EncodeToString(sum[:])))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(now)
	if *writeMigrations {
		if err := os.WriteFile(kept, []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, one := range now {
		if !slices.Contains(before, one) {
			t.Errorf("not in %s: %s\nA released migration must not change; a new one needs a new number. Then run this test with "+
				"-args -write-migrations.", kept, one)
		}
	}
	for _, one := range before {
		if !slices.Contains(now, one) {
			t.Errorf("in %s and not below internal/: %s", kept, one)
		}
	}
}
