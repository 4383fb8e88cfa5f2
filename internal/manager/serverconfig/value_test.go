package serverconfig

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestDefinitionsCanBeRead checks that each built-in definition has a readable format and a unique name, and that codes do not repeat.
func TestDefinitionsCanBeRead(t *testing.T) {
	n := 0
	for _, file := range definitionFiles {
		names, all, err := readDefinitions(file)
		if err != nil || len(names) != len(all) {
			t.Fatalf("%s: %d names, %d definitions, %v", file, len(names), len(all), err)
		}
		codes, called := map[int64]string{}, map[string]string{}
		for _, name := range names {
			d := all[name]
			if _, err := ParseFormat(d.ValueFormat); err != nil {
				t.Errorf("%s %s: %v", file, name, err)
			}
			if d.DisplayName == "" || d.Description == "" {
				t.Errorf("%s %s is not mentioned", file, name)
			}
			if d.Code != nil && codes[*d.Code] != "" && !strings.Contains(name, ".") {
				t.Errorf("%s: %s and %s have the code %d", file, name, codes[*d.Code], *d.Code)
			}
			if d.Code != nil {
				codes[*d.Code] = name
			}
			for _, other := range append(d.OtherNames, name) {
				if called[other] != "" {
					t.Errorf("%s: %s is a name of %s and of %s", file, other, name, called[other])
				}
				called[other] = name
			}
			n++
		}
	}
	if n < 400 {
		t.Errorf("there are %d definitions", n)
	}
}

func TestFormats(t *testing.T) {
	for _, bad := range []string{`1`, `{}`, `[]`, `["<text>","<text>"]`, `"text"`, `"<colour>"`, `[[]]`, `[["<text>",1]]`, `"<integer_8 0..300>"`,
		`"<text 1..2>"`, `"<integer_8 1.2>"`} {
		if _, err := ParseFormat(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is a shape", bad)
		}
	}
	for _, c := range []struct{ format, value, want string }{
		{`"<integer_8>"`, `-128`, `-128`}, {`"<integer_8>"`, `128`, "!"}, {`"<integer_8>"`, `1.5`, "!"}, {`"<integer_8>"`, `"1"`, `1`}, {`"<integer_8>"`, `"x"`, "!"}, {`"<integer_8>"`, `"01"`, `1`}, {`"<integer_8>"`, `"+5"`, `5`},
		{`"<boolean>"`, `"true"`, `true`}, {`["<ipv4_address>"]`, `"[\"10.1.1.1\"]"`, `["10.1.1.1"]`},
		{`"<unsigned_integer_16 68..65535>"`, `67`, "!"}, {`"<boolean>"`, `true`, `true`}, {`"<boolean>"`, `1`, "!"},
		{`"<first|only>"`, `"ONLY"`, `"only"`}, {`"<first|only>"`, `"never"`, "!"},
		{`"<ipv4_address>"`, `"10.0.0.1"`, `"10.0.0.1"`}, {`"<ipv4_address>"`, `"::1"`, "!"}, {`"<ipv6_address>"`, `"fe80::1%eth0"`, "!"},
		{`"<ipv4_mask>"`, `"255.255.254.0"`, `"255.255.254.0"`}, {`"<ipv4_mask>"`, `"255.0.255.0"`, "!"},
		{`"<hex>"`, `"0a:0B"`, `"0a:0B"`}, {`"<hex>"`, `"0"`, "!"}, {`"<domain_name>"`, `"a..b"`, "!"}, {`"<url>"`, `"http://x/"`, `"http://x/"`},
		{`"<email>"`, `"a b@c"`, "!"}, {`"<route>"`, `"10.0.0.0/8:10.1.0.1"`, `"10.0.0.0/8:10.1.0.1"`}, {`"<route>"`, `"10.0.0.1/8:10.1.0.1"`, "!"},
		{`"<text>"`, `"a\nb"`, "!"}, {`["<text>"]`, `["a", "b"]`, `["a","b"]`}, {`["<text>"]`, `"a"`, "!"}, {`["<text>"]`, `[]`, "!"},
		{`[["<ipv4_address>","<boolean>"]]`, `[["10.0.0.1", false]]`, `[["10.0.0.1",false]]`},
		{`[["<ipv4_address>","<boolean>"]]`, `[["10.0.0.1"]]`, "!"}, {`["<class>"]`, `["c"]`, `["c"]`}, {`["<class>"]`, `["none"]`, "!"},
	} {
		f, err := ParseFormat(json.RawMessage(c.format))
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Check(json.RawMessage(c.value), func(kind string, values []string) error {
			if values[0] == "none" {
				return errors.New("there is none")
			}
			return nil
		})
		if (err != nil) != (c.want == "!") || err == nil && string(got) != c.want {
			t.Errorf("%s of %s: %s %v, want %s", c.value, c.format, got, err, c.want)
		}
	}
	f, _ := ParseFormat(json.RawMessage(`[["<grant|deny>","<identity>"]]`))
	if got := f.rename(json.RawMessage(`[["grant","k"],["deny","other"]]`), func(kind, text string) string {
		if kind == "identity" && text == "k" {
			return "k2"
		}
		return text
	}); string(got) != `[["grant","k2"],["deny","other"]]` {
		t.Errorf("renamed: %s", got)
	}
}

// FuzzFormats checks that every value and format is accepted or rejected without a panic, and that an accepted value is accepted again
// unchanged.
func FuzzFormats(f *testing.F) {
	f.Add(`["<integer_8>"]`, `[1]`)
	f.Add(`[["<ipv4_address>","<text>"]]`, `[["10.0.0.1","x"]]`)
	f.Fuzz(func(t *testing.T, format, value string) {
		if !json.Valid([]byte(value)) || !json.Valid([]byte(format)) {
			return
		}
		shape, err := ParseFormat(json.RawMessage(format))
		if err != nil {
			return
		}
		none := func(string, []string) error { return nil }
		kept, err := shape.Check(json.RawMessage(value), none)
		if err != nil {
			return
		}
		if again, err := shape.Check(kept, none); err != nil || string(again) != string(kept) {
			t.Errorf("%s of %s is kept as %s, and read again as %s %v", value, format, kept, again, err)
		}
	})
}
