package dhcppublish

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"portolan/internal/manager/serverconfig"
)

// formatsOf returns the formats of the client options of DHCPv4, each once, in a fixed order.
func formatsOf(t testing.TB) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range definitionsOf(t, "dhcpv4_client.tsv") {
		seen[d[1]] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// FuzzRawOption checks that arbitrary raw options are translated or refused without a panic, and that a translated value can be encoded or
// is refused.
func FuzzRawOption(f *testing.F) {
	formats := formatsOf(f)
	for _, text := range []string{"option x , a;", "option x a ,;", `option x "a", 0x0b, 00:0c;`, ";;", `"`, "option x 10.0.0.1 10.0.0.2, true;"} {
		f.Add(text, uint16(0))
	}
	f.Fuzz(func(t *testing.T, text string, format uint16) {
		kind := json.RawMessage(formats[int(format)%len(formats)])
		statements, err := splitStatements(text)
		if err != nil {
			return
		}
		for _, words := range statements {
			for first := range min(len(words), 3) { // the value follows the keyword and the name
				value, err := rawValue(kind, words[first:])
				if err != nil {
					continue
				}
				if !json.Valid(value) {
					t.Errorf("the value of %v is %s", words, value)
				}
				_, _ = encodeOption("x", false, kind, value)
			}
		}
	})
}

// FuzzEncodeOption checks that values are encoded or refused without a panic.
func FuzzEncodeOption(f *testing.F) {
	formats := formatsOf(f)
	for _, value := range []string{`"10.0.0.1"`, `["10.0.0.0/8,10.0.0.1"]`, "true", "-1", `"a\u0000b"`, `[[1,"x"]]`, `{"a":1}`, "null"} {
		f.Add(value, uint16(0))
	}
	f.Fuzz(func(_ *testing.T, value string, format uint16) {
		kind := json.RawMessage(formats[int(format)%len(formats)])
		if !json.Valid([]byte(value)) {
			return
		}
		checked, err := serverconfig.ParseFormat(kind)
		if err != nil {
			return
		}
		if stored, err := checked.Check(json.RawMessage(value), nil); err == nil {
			_, _ = encodeOption("x", false, kind, stored)
		}
	})
}
