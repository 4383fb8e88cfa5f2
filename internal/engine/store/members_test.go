package store

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzMembers checks that Members returns the same as encoding/json for a valid object. For other input it returns an error or any result,
// and never reads beyond the end.
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
			return // not in the format that this program writes
		}
		for name := range want {
			if written, err := json.Marshal(name); err != nil || string(written) != `"`+name+`"` || !bytes.Contains(text, append(written, ':')) {
				return // a name with escapes
			}
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %v, %v", text, got, err)
		}
		var o Object
		if err := o.Read(text); err != nil || !bytes.Equal(o.Text(), text) {
			t.Fatalf("%s: parsed and formatted it is %s, %v", text, o.Text(), err)
		}
		for name, raw := range want {
			if got[name] != string(raw) {
				t.Fatalf("%s: %s is %s, want %s", text, name, got[name], raw)
			}
		}
	})
}

// TestObject checks that existing members are replaced and others are not added. An Object that reads another text discards the first one.
func TestObject(t *testing.T) {
	var o Object
	if err := o.Read([]byte(`{"a":1,"b":"x\"y","c":null}`)); err != nil {
		t.Fatal(err)
	}
	o.Set("c", []byte(`[1,2]`))
	o.Set("a", []byte(`null`))
	o.Set("d", []byte(`4`))
	if got := string(o.Text()); got != `{"a":null,"b":"x\"y","c":[1,2]}` || string(o.Get("b")) != `"x\"y"` || o.Get("d") != nil {
		t.Errorf("the object is %s", got)
	}
	if err := o.Read([]byte(`{}`)); err != nil || string(o.Text()) != `{}` || o.Get("a") != nil {
		t.Errorf("the object is %s, %v", o.Text(), err)
	}
	if err := o.Read([]byte(`{"a":1`)); err == nil {
		t.Error("an object in another format was accepted")
	}
}
