package cli

import (
	"encoding/json"
	"os"
	"testing"
)

// TestLikelyType checks the types of rows by their headers, with the cases of the console.
func TestLikelyType(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Header []string
		Type   string
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for _, one := range cases {
		if got := LikelyType(one.Header); got != one.Type {
			t.Errorf("the rows with the header %q are %q, want %q", one.Header, got, one.Type)
		}
	}
}
