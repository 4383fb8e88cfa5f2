package dnspublish

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestReadFeed checks that lists are read in their published formats. Other files, and lists without names, are rejected.
func TestReadFeed(t *testing.T) {
	for text, want := range map[string]string{
		"bad.test\n": "*.bad.test bad.test",
		"# remark\nbad.test # and another\n; x\n":       "*.bad.test bad.test",
		"0.0.0.0 bad.test worse.test\n127.0.0.1 pc\n":   "bad.test worse.test",
		"[Adblock]\n! remark\n||bad.test^\n":            "*.bad.test bad.test",
		"news.test##.banner\nbad.test\nnews.test#@#a\n": "*.bad.test bad.test",
		"||news.test^$third-party\nbad.test\n":          "*.bad.test bad.test",
		"@@||news.test^\n||news.test/path^\nbad.test\n": "*.bad.test bad.test",
		"":                             "the feed has no names",
		"# moved, see elsewhere\n":     "the feed has no names",
		"Forbidden\n":                  "the feed has no names",
		"<html>\n":                     "not a name",
		"Sorry, you may not have it\n": "must contain a name",
	} {
		names := map[string]bool{}
		err := readFeed(strings.NewReader(text), names)
		got := strings.Join(slices.Sorted(maps.Keys(names)), " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	names := map[string]bool{"bad.test": true, "*.bad.test": true}
	if err := readFeed(strings.NewReader("bad.test\n"), names); err != nil {
		t.Errorf("a category whose names another one has: %v", err)
	}
}
