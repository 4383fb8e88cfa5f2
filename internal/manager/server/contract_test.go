package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/testkit/apitest"
)

// posting is a POST of JSON that made a resource.
type posting struct{ path, body string }

// postings makes one of each type, and gives a POST that made one, by type.
func (m *manager) postings() map[string]posting {
	m.T.Helper()
	all := map[string]posting{}
	m.Observe = func(method, path, body string, r reply) {
		if name := r.Text("type"); method == http.MethodPost && r.StatusCode == http.StatusCreated && strings.HasPrefix(body, "{") && !strings.HasPrefix(body, `{"id":`) &&
			m.Address.TypeNamed(name) != nil {
			all[name] = posting{path, body}
		}
	}
	m.oneOfEach()
	m.Observe = nil
	return all
}

// TestEveryLinkResolves checks that every link of a resource of any type, and every page of every collection, can be fetched.
func TestEveryLinkResolves(t *testing.T) {
	apitest.Slow(t)
	apitest.OnSQLite(t)
	m := startManager(t)
	m.oneOfEach()
	seen, types := map[string]bool{}, map[string]int{}
	var follow []string
	visit := func(r reply) {
		var whole any
		if json.Unmarshal(r.Body, &whole) != nil {
			t.Fatalf("no JSON: %s", r.Body)
		}
		var walk func(v any)
		walk = func(v any) {
			switch x := v.(type) {
			case []any:
				for _, one := range x {
					walk(one)
				}
			case map[string]any:
				if name, ok := x["type"].(string); ok && x["_links"] != nil {
					if types[name]++; types[name] > 3 { // of each type some
						return
					}
				}
				if href, ok := x["href"].(string); ok && !seen[href] {
					seen[href] = true
					follow = append(follow, href)
				}
				for _, one := range x {
					walk(one)
				}
			}
		}
		walk(whole)
	}
	for _, c := range m.Address.Collections() {
		if !c.Inner {
			follow = append(follow, "/api/v2/"+c.Path())
		}
	}
	follow = append(follow, "/api/v2")
	for len(follow) > 0 {
		path := follow[0]
		follow = follow[1:]
		r := m.Do("GET", path, "")
		if strings.HasSuffix(path, "/deployments") { // docs/status.md
			continue
		}
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d %s", path, r.StatusCode, r.Body)
			continue
		}
		visit(r)
	}
	if len(seen) < 900 {
		t.Errorf("%d links were followed", len(seen))
	}
}

// wrong are values that a field cannot have, as JSON, by what is wrong with them.
func wrong(a *resource.API, f *schema.Field) map[string]string {
	values := map[string]string{}
	if !f.Nullable {
		values["null"] = "null"
	}
	switch f.Kind {
	case schema.Bool:
		values["no boolean"] = `"perhaps"`
	case schema.Integer, schema.Float:
		values["no number"] = `"many"`
		if f.Min != nil {
			values["below the least"] = fmt.Sprint(*f.Min - 1)
		}
		if f.Max != nil {
			values["above the most"] = fmt.Sprint(*f.Max + 1)
		}
	case schema.Time:
		values["no time"] = `"yesterday"`
	case schema.Address:
		values["no address"] = `"10.0.0.256"`
	case schema.Span:
		values["no range"] = `"10.0.0.0/33"`
	case schema.Map, schema.Nested:
		values["no object"] = `[1]`
	case schema.Strings, schema.Integers, schema.NestedList, schema.References:
		values["no list"] = `{"a":1}`
	case schema.Reference:
		values["no object"] = `"x"`
		values["dangling"] = `{"id":99999999}`
		if len(f.Refs) > 0 && !slices.Contains(f.Refs, "User") && a.TypeNamed(f.Refs[0]) != nil {
			values["of another type"] = `{"id":100000}` // the user admin
		}
	case schema.Text:
		values["no text"] = `{"a":1}`
		values["a control character"] = `"a\u0001b"`
		if f.Enum != nil {
			values["none of them"] = `"NEITHER"`
		}
		if f.NonBlank {
			values["blank"] = `"  "`
		}
		if f.Duration {
			values["no duration"] = `"an hour"`
		}
		if f.Enum == nil && !f.Duration {
			values["too long"] = `"` + strings.Repeat("x", f.MaxLength+1) + `"`
		}
	}
	return values
}

// TestEveryTypeRefusesBadBodies checks that a bad value of any field of any type is refused by the field's name on creation and on change,
// and changes nothing. A missing required field is refused as well.
func TestEveryTypeRefusesBadBodies(t *testing.T) {
	apitest.Slow(t)
	apitest.OnSQLite(t)
	m := startManager(t)
	posts := m.postings()
	count := 0
	transactions := func() string {
		return m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	}
	before := transactions()
	quiet := func(what string, r reply) {
		t.Helper()
		if r.StatusCode < 400 || r.StatusCode >= 500 {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.Body)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(posts)) {
		p, typ := posts[name], m.Address.TypeNamed(name)
		c := m.Address.CollectionOf(typ)
		if c.SignIn != nil || c.Act != nil || c.Inner {
			continue
		}
		var good map[string]json.RawMessage
		if err := json.Unmarshal([]byte(p.body), &good); err != nil {
			t.Fatal(err)
		}
		send := func(method, path, field, value, what string) {
			t.Helper()
			body := map[string]json.RawMessage{}
			if method == http.MethodPost {
				body = maps.Clone(good)
			}
			if body[field] = json.RawMessage(value); value == "" {
				delete(body, field)
			}
			text, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			header := "Content-Type: application/json"
			if method == http.MethodPatch {
				header = apitest.MergePatch
			}
			r := m.Do(method, path, string(text), header)
			quiet(method+" "+name+"."+field+" "+what, r)
			if !r.Names(field) {
				t.Errorf("%s %s.%s %s is not named: %d %s", method, name, field, what, r.StatusCode, r.Body)
			}
		}
		one := m.Want(200, "GET", "/api/v2/"+c.Path()+"?limit=1&"+filter("type:'"+name+"'"), "").Text("data.0.id")
		for _, f := range typ.Fields {
			if f.Name == "id" || f.Name == "type" || f.ReadOnly || f.Column != "" || f.Hidden {
				continue
			}
			if f.OnPost && f.Unless == "" {
				if _, there := good[f.Name]; there {
					send(http.MethodPost, p.path, f.Name, "", "missing")
				}
			}
			values := wrong(m.Address, f)
			for _, what := range slices.Sorted(maps.Keys(values)) {
				value := values[what]
				if count++; value == "null" && f.Kind == schema.SecretText || !apitest.InSample(count, 3) {
					continue
				}
				dangling := what == "dangling" || what == "of another type"
				if !dangling {
					send(http.MethodPost, p.path, f.Name, value, what)
				}
				if one != "" && !f.CreateOnly && !c.ReadOnly {
					send(http.MethodPatch, "/api/v2/"+c.Path()+"/"+one, f.Name, value, what)
				}
			}
		}
	}
	if count < 1200 {
		t.Errorf("there are %d bad values", count)
	}
	if after := transactions(); after != before {
		t.Errorf("what was refused has left transactions: %s, and before %s", after, before)
	}
}

// literal words a value for a filter; empty where none can be worded.
func literal(f *schema.Field, v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool, json.Number:
		return fmt.Sprint(x)
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(x) + "'"
	case map[string]any:
		if f.Kind == schema.Reference {
			return fmt.Sprint(x["id"])
		}
	}
	return ""
}

// kept gives what a resource of a type is, as JSON, without what is found as it is shown.
func kept(t *testing.T, typ *schema.Type, r reply) string {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	for _, f := range typ.Fields {
		if f.Computed {
			delete(body, f.Name)
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryTypeRoundTrips checks that a PUT of the result of a GET is accepted for every type, and that the resource is unchanged
// afterwards. Each of its fields can be used in a filter that finds it.
func TestEveryTypeRoundTrips(t *testing.T) {
	apitest.Slow(t)
	apitest.OnSQLite(t)
	m := startManager(t)
	m.oneOfEach()
	types, filters := 0, 0
	for _, c := range m.Address.Collections() {
		for _, typ := range c.Types {
			// A merge, split or move shows once what it was about.
			if c.Inner || c.SignIn != nil || c.Act != nil || c.From != "resource" ||
				slices.Contains([]string{"merges", "moves", "splits"}, c.Name) {
				continue
			}
			of := "/api/v2/" + c.Path() + "?" + filter("type:'"+typ.Name+"'") + "&limit=1"
			id := m.Want(200, "GET", of, "").Text("data.0.id")
			if id == "" {
				continue
			}
			types++
			path := "/api/v2/" + c.Path() + "/" + id
			was := m.Want(200, "GET", path, "")
			for field, want := range published.LaterTypes()[typ.Name].Fields {
				f, ok := typ.Field(field)
				if ok && want.Nullable != nil && !*want.Nullable && !f.WriteOnly && was.Get(field) == nil && nullable[typ.Name+"."+field] == "" {
					t.Errorf("%s.%s is null, and release 9.6 publishes it as never null", typ.Name, field)
				}
			}
			for _, f := range typ.Fields {
				word := literal(f, was.Get(f.Name))
				inherited := f.Inherit && strings.Contains(was.Text("_inheritedFields"), f.Name)
				if word == "" || f.Kind == schema.Raw || !f.Filterable() || f.Computed || inherited ||
					f.Name == "monitoringEnabled" || f.Name == "value" { // the first is inherited from the settings; values of settings differ in kind
					continue
				}
				name := f.Name
				if f.Kind == schema.Reference && word != "null" {
					name += ".id"
				}
				filters++
				r := m.Do("GET", "/api/v2/"+c.Path()+"?"+filter(name+":"+word+" and id:"+id), "")
				if r.StatusCode != 200 || r.Text("count") != "1" {
					t.Errorf("%s.%s:%s finds %d %s", typ.Name, name, word, r.StatusCode, r.Body)
				}
			}
			if c.NoPut {
				continue
			}
			r := m.Do("PUT", path, string(was.Body))
			if r.Text("code") == "UpdateNotAllowed" { // what the manager defines, or comes with something else
				continue
			}
			if r.StatusCode == 200 { // a client that does not know the member _inheritedFields
				r = m.Do("PUT", path, strings.Replace(string(was.Body), `"_inheritedFields":`, `"unknownToClients":`, 1))
			}
			after := m.Want(200, "GET", path, "")
			// Some values, such as the size of the database, change by themselves.
			if r.StatusCode != 200 || kept(t, typ, after) != kept(t, typ, was) {
				t.Errorf("PUT of a %s as it is shown: %d %s\nit was %s\nand is %s", typ.Name, r.StatusCode, r.Body, was.Body, after.Body)
			}
		}
	}
	if types < 110 || filters < 900 {
		t.Errorf("%d types and %d filters", types, filters)
	}
}
