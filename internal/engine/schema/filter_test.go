package schema

import (
	"slices"
	"strings"
	"testing"

	"portolan/internal/base/problem"
)

// FuzzParseFilter checks that the error for a filter has a position.
func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{`name:'x'`, `id:in(1,2) and (a.b:ne("y") or c:null)`, `name:contains('\'')`, `((((`, `a:ge(-1.5e3)`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseFilter(text)
		if err != nil {
			if p, ok := problem.As(err); !ok || !slices.Contains([]string{"FilterParseError", "FilterTokenError", "UnsupportedFilterOperator",
				"FilterNeedsRefinement"}, p.Code) || p.Code != "FilterNeedsRefinement" && !strings.Contains(err.Error(), "at position ") {
				t.Errorf("%q gives %v", text, err)
			}
			return
		}
		if n == nil {
			t.Errorf("%q gives nothing and no error", text)
		}
	})
}

// TestFilterPrecedence checks that "and" binds tighter than "or".
func TestFilterPrecedence(t *testing.T) {
	n, err := ParseFilter(`a:1 or b:2 and c:3 or (d:4 or e:5) and f:6`)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Or) != 3 || len(n.Or[1].And) != 2 || len(n.Or[2].And) != 2 || len(n.Or[2].And[0].Or) != 2 {
		t.Errorf("parsed as %+v", n)
	}
}

// TestFilterWordsAsFields checks that words of the grammar may be field names.
func TestFilterWordsAsFields(t *testing.T) {
	for _, text := range []string{`order:1`, `android:'x' and origin:'y'`, `in:in(1)`, `and:1 and or:2`} {
		if _, err := ParseFilter(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParseBody(f *testing.F) {
	typ := Declare(&sample{})
	for _, s := range []string{`{}`, `{"name":"x","count":1.0,"at":"2020-01-01T00:00:00Z","range":"/24","link":{"id":1}}`,
		`{"name":null,"range":"10.0.0.0-10.0.0.9"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, err := ParseObject([]byte(text), 200_000)
		if err != nil {
			return
		}
		o := typ.New()
		if _, problems := typ.Decode(o, members, true); len(problems) > 0 {
			return
		}
		if o.(*sample).Range.String() == "" { // missing, or only a size, which the rules resolve
			return
		}
		typ.Collection = "samples"
		row, err := typ.Row(o, nil)
		if err != nil {
			t.Fatalf("%q decodes and cannot be encoded: %v", text, err)
		}
		if _, err := typ.Object(row); err != nil {
			t.Errorf("%q is kept as %s, which cannot be read: %v", text, row.Body, err)
		}
	})
}

type sample struct {
	Head
	Count *int64  `api:"count"`
	Range Range   `api:"range"`
	Link  Ref     `api:"link" ref:"sample"`
	Many  RefList `api:"many"`
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{"IPv4Network": "IPV4_NETWORK", "MXRecord": "MX_RECORD", "HostRecord": "HOST_RECORD",
		"User": "USER", "DHCPv4ClientClass": "DHCPV4_CLIENT_CLASS", "OAuthAuthorizationServer": "OAUTH_AUTHORIZATION_SERVER",
		"UserSession": "USER_SESSION", "TXTRecord": "TXT_RECORD", "IPv6Block": "IPV6_BLOCK"} {
		if got := snake(name); got != want {
			t.Errorf("snake(%s) = %s, want %s", name, got, want)
		}
	}
}
