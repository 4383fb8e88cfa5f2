package store

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What the scanner gives of an object is what the JSON library gives; of anything else it gives an
// error or something, and never reads beyond.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1}`, `{"a":"x\"y,}","b":[1,{"c":"]"}],"d":null}`, `{"a":}`, `{"a":1,}`, `{"a`, ``,
		`{"a":"\\"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := map[string]string{}
		err := Members(text, func(name, raw []byte) error {
			got[string(name)] = string(raw)
			return nil
		})
		var compact bytes.Buffer
		var want map[string]json.RawMessage
		if json.Compact(&compact, text) != nil || !bytes.Equal(compact.Bytes(), text) || json.Unmarshal(text, &want) != nil || want == nil {
			return // nothing that was written here
		}
		for name := range want {
			if written, err := json.Marshal(name); err != nil || string(written) != `"`+name+`"` || !bytes.Contains(text, append(written, ':')) {
				return // a name with escapes
			}
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %v, %v", text, got, err)
		}
		for name, raw := range want {
			if got[name] != string(raw) {
				t.Fatalf("%s: %s is %s, want %s", text, name, got[name], raw)
			}
		}
	})
}
