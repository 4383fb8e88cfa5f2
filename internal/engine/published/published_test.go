package published

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestFacts checks the numbers of operations and types against spec.md.
func TestFacts(t *testing.T) {
	if n := len(Operations()); n != 477 {
		t.Errorf("%d operations", n)
	}
	if n := len(Types()); n != 172 {
		t.Errorf("%d types", n)
	}
	for _, o := range Operations() {
		if strings.Contains(o.Path, "{collection}") != (len(o.Collections) > 0) || !strings.HasPrefix(o.Path, Base) {
			t.Errorf("%s %s with %v", o.Method, o.Path, o.Collections)
		}
	}
	for collection, names := range Subcollections() {
		if !slices.IsSorted(names) {
			t.Errorf("%s links to %v", collection, names)
		}
		for _, name := range names {
			if FindOperation(http.MethodGet, collection+"/{}/"+name) == nil {
				t.Logf("%s/%s is linked to and cannot be read", collection, name)
			}
		}
	}
}

func TestMethods(t *testing.T) {
	for path, want := range map[string]string{"servers": "GET", "tagGroups": "GET POST", "networks/100001/tags": "GET POST",
		"networks/100001/nothing": "", "nothing": "",
		"transactions/5/operations": "GET", "servers/7": "GET PUT PATCH DELETE", "networks/x/tags": "", "sessions/5": "GET PATCH"} {
		if got := strings.Join(Methods(strings.Split(path, "/")), " "); got != want {
			t.Errorf("Methods(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestSubcollections(t *testing.T) {
	sub := func(collection, name string) Sub {
		for _, s := range Subs(collection) {
			if s.Name == name {
				return s
			}
		}
		t.Fatalf("%s has no %s", collection, name)
		return Sub{}
	}
	if s := sub("networks", "addresses"); !s.Post || !s.Item || !s.Delete || !slices.Equal(s.Types, []string{"IPv4Address", "IPv6Address"}) {
		t.Errorf("%+v", s)
	}
	if s := sub("locations", "annotatedResources"); len(s.Types) > 0 || !s.Post {
		t.Errorf("%+v", s)
	}
	if s := sub("users", "sessions"); s.Post || !s.Item || s.Delete {
		t.Errorf("%+v", s)
	}
}

func BenchmarkRead(b *testing.B) {
	for range b.N {
		read([]Operation(nil), operationsText)
	}
}
