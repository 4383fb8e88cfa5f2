package store

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestImages checks that an image equals the JSON that encoding/json would write for the row, with the body after it. Each field is
// included.
func TestImages(t *testing.T) {
	if n := reflect.TypeFor[Resource]().NumField(); n != 13 {
		t.Fatalf("a resource has %d fields: update encodeImage and this test", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		refs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Ref {
			return Ref{rapid.String().Draw(t, "field"), rapid.Int64().Draw(t, "target")}
		}), 0, 3)
		number, key := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()), rapid.SliceOfN(rapid.Byte(), 0, 18)
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]*`))
		r := &Resource{ID: number.Draw(t, "id"), Collection: text.Draw(t, "collection"), Type: text.Draw(t, "type"), Name: text.Draw(t, "name"),
			Parent: number.Draw(t, "parent"), Configuration: number.Draw(t, "configuration"), Low: key.Draw(t, "low"), High: key.Draw(t, "high"),
			Key: text.Draw(t, "key"), Version: number.Draw(t, "version"), Refs: refs.Draw(t, "refs"), Links: refs.Draw(t, "links"),
			Body: []byte(`{"n":1}`)}
		head, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		decoded := func(text string) (v any) {
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return v
		}
		image := EncodeImage(r)
		got, want := decoded(string(image)), decoded(string(head[:len(head)-1])+`,"body":{"n":1}}`)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("the image is %s\nwant         %s", image, head)
		}
		read, err := DecodeImage(image)
		if err != nil {
			t.Fatal(err)
		}
		if again := EncodeImage(read); !bytes.Equal(again, image) {
			t.Fatalf("decoded and encoded again it is %s\nwant %s", again, image)
		}
	})
}
