package schema

import "testing"

type crate struct {
	Head
	// Weight, Colour and Owner are members of the body.
	Weight *int64   `api:"weight"`
	Colour string   `api:"colour"`
	Labels []string `api:"labels,notNull"`
	Owner  string   `api:"owner"`
}

// TestBodiesWithoutNull checks that null members are shown, but not stored.
func TestBodiesWithoutNull(t *testing.T) {
	typ := Declare(&crate{})
	row, err := typ.Row(&crate{Colour: "null"}, nil)
	if err != nil || string(row.Body) != `{"colour":"null","labels":[]}` {
		t.Errorf("the body is %s, %v", row.Body, err)
	}
	for body, want := range map[string]string{
		string(row.Body): `{"userDefinedFields":null,"weight":null,"colour":"null","labels":[],"owner":null}`,
		"":               `{"userDefinedFields":null,"weight":null,"colour":null,"labels":null,"owner":null}`,
		`{}`:             `{"userDefinedFields":null,"weight":null,"colour":null,"labels":null,"owner":null}`,
		`{"userDefinedFields":null,"weight":1,"colour":null,"labels":[],"owner":"x"}`: `{"userDefinedFields":null,"weight":1,"colour":null,"labels":[],"owner":"x"}`,
		`{"owner":"x","weight":1}`:    `{"userDefinedFields":null,"weight":1,"colour":null,"labels":null,"owner":"x"}`,
		`{"weight":1,"former":[1,2]}`: `{"userDefinedFields":null,"weight":1,"former":[1,2],"colour":null,"labels":null,"owner":null}`,
	} {
		got, err := typ.AppendWhole([]byte("in front:"), []byte(body))
		if err != nil || string(got) != "in front:"+want {
			t.Errorf("%s is shown as %s, %v", body, got, err)
		}
	}
	for _, body := range []string{"[]", `{"weight"}`, `{"weight":1`} {
		if got, err := typ.AppendWhole(nil, []byte(body)); err == nil {
			t.Errorf("%s is shown as %s", body, got)
		}
	}
}
