package fleet

import (
	"testing"

	"portolan/internal/base/problem"
)

// FuzzParseRequest checks that any certificate request is parsed, or rejected with a problem that names the field.
func FuzzParseRequest(f *testing.F) {
	f.Add("")
	f.Add("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseRequest(text); err != nil && !problem.Is(err, "InvalidResourceFieldValue") {
			t.Errorf("%q gives %v", text, err)
		}
	})
}

func TestNewID(t *testing.T) {
	for name, front := range map[string]string{"Test FSP 1": "test_fsp_1-", "é!": "sp-", "a_b": "a_b-", "Quay/7": "quay_7-"} {
		if id := newID(name); len(id) != len(front)+9+1+12 || id[:len(front)] != front {
			t.Errorf("newID(%q) = %s", name, id)
		}
	}
	if first, second := newID("x"), newID("x"); first == second {
		t.Error("the same id twice")
	}
}
