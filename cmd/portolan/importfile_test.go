package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestImportGuessesTheType checks the type of rows by the header of a file: with each separator, a byte order mark, and the line of
// spreadsheets that names the separator.
func TestImportGuessesTheType(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"IP Address,Hostname\n10.0.0.1,a\n":       "IPv4Address",
		"IP Address;Hostname\r\n10.0.0.1;a\r\n":   "IPv4Address",
		"\ufeffsubnet\tdescription\n":             "IPv4Network",
		"sep=;\n\"Zone Name\";View\n":             "Zone",
		"type,address\nIPv4Address,10.0.0.1\n":    "",
		"owner,room\n":                            "",
		"\"IP Address,\nHostname\n10.0.0.1,a\n\n": "",
		"": "",
	} {
		file := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := (&importFile{File: file}).guessType()
		if err != nil || got != want {
			t.Errorf("the rows of %q are %q (%v), want %q", text, got, err, want)
		}
	}
}

// TestReasonsOfRefusals checks that rows with a common reason are counted together, whatever their values are.
func TestReasonsOfRefusals(t *testing.T) {
	t.Parallel()
	var r reasons
	last := 0
	for _, why := range []string{"E: 10.0.0.1 is not in a network", "E: 10.0.0.2 is not in a network",
		"F: other", "E: ::1 is not in a network"} {
		last = r.add(why)
	}
	if last != 3 || len(r) != 2 {
		t.Errorf("the reasons are %v, and the last one has %d rows", r, last)
	}
}
