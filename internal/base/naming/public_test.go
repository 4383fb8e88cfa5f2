package naming

import (
	"crypto/sha256"
	_ "embed"
	"encoding/csv"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/public-zones.tsv
var publicZones string

// publicZoneFiles names a directory with zone files of public repositories. File names do not matter: files are identified by their
// SHA-256.
const publicZoneFiles = "PORTOLAN_TEST_ZONE_FILES"

// TestPublicZoneFiles reads zone files of public repositories. Each must have as many records as named-compilezone returns, and the same
// ones if that program is installed. The table contains the facts: origin, number of records or -1 if BIND rejects the file, SHA-256, URL,
// and included files. The files are in the directory publicZoneFiles.
func TestPublicZoneFiles(t *testing.T) {
	table := csv.NewReader(strings.NewReader(publicZones))
	table.Comma, table.FieldsPerRecord = '\t', -1
	rows, err := table.ReadAll()
	if err != nil || len(rows) < 31 {
		t.Fatalf("the table has %d rows: %v", len(rows), err)
	}
	from := os.Getenv(publicZoneFiles)
	if from == "" {
		t.Skip(publicZoneFiles + " names no directory with the files of testdata/public-zones.tsv")
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		files[hex.EncodeToString(sum[:])] = text
	}
	read := 0
	for _, row := range rows[1:] {
		origin, sum, url := row[0], row[2], row[3]
		want, err := strconv.Atoi(row[1])
		text, there := files[sum]
		if err != nil || !there {
			t.Logf("not in the directory: %s %v", url, err)
			continue
		}
		read++
		t.Run(filepath.Base(url), func(t *testing.T) {
			dir := t.TempDir()
			write := func(name string, text []byte) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("zone", text)
			for _, included := range row[4:] {
				for _, one := range strings.Fields(included) {
					name, rest, _ := strings.Cut(one, "=")
					sum, _, _ := strings.Cut(rest, "=")
					write(name, files[sum])
				}
			}
			if want < 0 { // BIND rejects it; we may read or reject it
				return
			}
			z, err := ReadZone(strings.NewReader(string(text)), origin, func(name string) (io.ReadCloser, error) {
				return os.Open(filepath.Join(dir,
					name))
			})
			if err != nil || len(z.Faults) > 0 {
				t.Fatalf("%s is refused: %v %q", url, err, z.Faults)
			}
			if got := len(z.Records); got < want {
				t.Errorf("%s has %d records, and %d by BIND", url, got, want)
			}
			sameAsBIND(t, dir, "zone", origin)
		})
	}
	if read < 30 {
		t.Errorf("%d files of the table are in %s, which is fewer than 30", read, from)
	}
}
