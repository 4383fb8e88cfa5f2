package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/client"
	"portolan/internal/resource"
	"portolan/internal/schema"
)

// export is what is put together as a document.
type export struct {
	*Manager
	only []string
	// keys are what resources that were met are called, as collection/key, by their numbers.
	keys  map[int64]string
	out   []exported
	notes map[string]int
	tell  func(n int)
	ctx   context.Context //nolint:containedctx // of one call, which makes it
}

// exported is a resource of a document; rank is its place in it: what others lie in comes before them.
type exported struct {
	rank [2]int
	raw  json.RawMessage
}

// Export gives a resource, and what lies below it, as a document that POST /apply takes. only are the collections that are wanted; none: all.
// What cannot be told, such as secrets, is left out, and noted. tell is told how many there are so far.
func (m *Manager) Export(ctx context.Context, at Path, only []string, tell func(n int)) (a client.Apply, notes []string, err error) {
	e := &export{Manager: m, ctx: ctx, only: only, keys: map[int64]string{}, notes: map[string]int{}, tell: tell}
	var root json.RawMessage
	if err := m.Get(ctx, at.String(), &root); err != nil {
		return a, nil, err
	}
	if a.Into, err = e.placeOf(at, root); err != nil {
		return a, nil, err
	}
	if err := e.add(at.Collection, root, ""); err != nil {
		return a, nil, err
	}
	if at.Collection.Scope {
		err = e.configuration(root)
	} else {
		err = e.below(at.Collection, at.ID)
	}
	if err != nil {
		return a, nil, err
	}
	slices.SortStableFunc(e.out, func(x, y exported) int { return cmp.Or(x.rank[0]-y.rank[0], x.rank[1]-y.rank[1]) })
	a.Resources = []json.RawMessage{}
	for _, one := range e.out {
		a.Resources = append(a.Resources, one.raw)
	}
	for text, n := range e.notes {
		notes = append(notes, fmt.Sprintf("%s (%d)", text, n))
	}
	slices.Sort(notes)
	return a, notes, nil
}

// placeOf is what the resources of the document belong below.
func (e *export) placeOf(at Path, root json.RawMessage) (string, error) {
	var one struct {
		Name          string                `json:"name"`
		Configuration struct{ Name string } `json:"configuration"`
	}
	if err := json.Unmarshal(root, &one); err != nil {
		return "", err
	}
	switch {
	case at.Collection.Scope:
		return at.Collection.Name + "/" + one.Name, nil
	case one.Configuration.Name != "":
		return e.API.Scope.Name + "/" + one.Configuration.Name, nil
	}
	return "", nil
}

// exportable reports whether resources of a collection can be in a document.
func (e *export) exportable(c *resource.Collection) bool {
	return c.Logged() && !c.ReadOnly && !c.Inner && !c.Joins && (e.only == nil || slices.Contains(e.only, c.Name)) &&
		slices.ContainsFunc(c.Types, func(t *schema.Type) bool { return !t.NotMade })
}

// query asks for the fields of a collection, with those that are shown as subcollections alone.
func query(c *resource.Collection) client.Query {
	q := client.Query{Limit: 1000, OrderBy: "id"}
	var embed []string
	for _, t := range c.Types {
		for _, f := range t.Fields {
			if written(f) && c.Sub(f.Name) != nil && !slices.Contains(embed, "embed("+f.Name+")") {
				embed = append(embed, "embed("+f.Name+")")
			}
		}
	}
	if q.Fields = strings.Join(embed, ","); embed != nil {
		q.Limit = 100
	}
	return q
}

// written reports whether a field is a list of references that is written, and shown as a subcollection.
func written(f *schema.Field) bool { return f.WriteOnly && f.Kind == schema.References && !f.Hidden }

// configuration adds what is in a configuration.
func (e *export) configuration(root json.RawMessage) error {
	var one client.Head
	if err := json.Unmarshal(root, &one); err != nil {
		return err
	}
	for _, c := range e.API.Collections() {
		if !e.exportable(c) || !hasField(c, "configuration") {
			continue
		}
		q := query(c)
		q.Filter = fmt.Sprintf("configuration.id:%d", one.ID)
		if err := e.All(e.ctx, c.Name, q, func(raw json.RawMessage) error { return e.add(c, raw, "") }); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// below adds what lies below a resource.
func (e *export) below(c *resource.Collection, id int64) error {
	for _, s := range c.Subs {
		if s.Relation != resource.Children || !s.Post {
			continue
		}
		for _, name := range itemsOf(s) {
			of := e.API.Collection(name)
			if of == nil || !e.exportable(of) {
				continue
			}
			var ids []int64
			at := fmt.Sprint(c.Name, "/", id, "/", s.Name)
			if err := e.All(e.ctx, at, query(of), func(raw json.RawMessage) error {
				var one client.Head
				if err := json.Unmarshal(raw, &one); err != nil {
					return err
				}
				ids = append(ids, one.ID)
				return e.add(of, raw, fmt.Sprint(c.Name, "/", id))
			}); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			for _, child := range ids {
				if err := e.below(of, child); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func itemsOf(s resource.Sub) []string {
	if len(s.Items) > 0 {
		return s.Items
	}
	return []string{s.Name}
}

// add adds one resource. above is what it lies in, as collection/number, where that is known.
func (e *export) add(c *resource.Collection, raw json.RawMessage, above string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	var head client.Head
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	t := e.API.TypeNamed(head.Type)
	switch {
	case t == nil || t.NotMade:
		e.notes["left out, as nobody makes one: "+head.Type]++
		return nil
	case c.Secret:
		e.notes["left out, as it has secrets: "+head.Type]++
		return nil
	}
	e.keys[head.ID] = c.Name + "/" + cmp.Or(FieldText(members[c.KeyField()]), fmt.Sprint(head.ID))
	var b strings.Builder
	b.WriteString(`{"type":` + jsonText(t.Name))
	if c.Scope {
		b.WriteString(`,"in":""`)
	} else if c.Place == nil {
		in, err := e.parentOf(members, above)
		if err != nil {
			return err
		}
		if in != "" && in != e.API.Scope.Name+"/"+FieldText(members["configuration"]) {
			b.WriteString(`,"in":` + jsonText(in))
		}
	}
	for _, f := range t.Fields {
		value, err := e.value(t, c, f, members)
		if err != nil {
			return err
		}
		if value != nil {
			b.WriteString("," + jsonText(f.Name) + ":" + string(value))
		}
	}
	b.WriteByte('}')
	e.out = append(e.out, exported{rank: e.rank(c, members), raw: json.RawMessage(b.String())})
	if e.tell != nil {
		e.tell(len(e.out))
	}
	return nil
}

func jsonText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // a text always can be
		return `""`
	}
	return string(raw)
}

// rank is where a resource stands in the document: by its collection and, of what has space, the large before the small.
func (e *export) rank(c *resource.Collection, members map[string]json.RawMessage) (rank [2]int) {
	rank[0] = slices.Index(e.API.Collections(), c)
	if c.Scope {
		rank[0] = -1
	}
	text := FieldText(members[c.KeyField()])
	if prefix, err := netip.ParsePrefix(text); err == nil {
		rank[1] = prefix.Bits()
	} else if c.KeyField() == "absoluteName" {
		rank[1] = strings.Count(text, ".")
	}
	return rank
}

// parentOf is the path of what a resource lies in, by its key.
func (e *export) parentOf(members map[string]json.RawMessage, above string) (string, error) {
	if above == "" {
		var links map[string]client.Link
		if json.Unmarshal(members["_links"], &links) != nil {
			return "", nil
		}
		_, at, ok := strings.Cut(links["up"].Href, "/api/v2/")
		if !ok {
			return "", nil
		}
		above = at
	}
	word, number, _ := strings.Cut(above, "/")
	c := e.API.Collection(word)
	var id int64
	if _, err := fmt.Sscan(number, &id); err != nil || c == nil {
		return "", nil //nolint:nilerr // it lies right below the root
	}
	if key := e.keys[id]; key != "" {
		return key, nil
	}
	var one map[string]json.RawMessage
	if err := e.Get(e.ctx, above, &one); err != nil {
		return "", err
	}
	e.keys[id] = c.Name + "/" + cmp.Or(FieldText(one[c.KeyField()]), number)
	return e.keys[id], nil
}

// value is what the document says of a field; nil: nothing.
func (e *export) value(t *schema.Type, c *resource.Collection, f *schema.Field, members map[string]json.RawMessage) (json.RawMessage, error) {
	raw := members[f.Name]
	if written(f) {
		var embedded map[string]json.RawMessage
		if members["_embedded"] != nil && json.Unmarshal(members["_embedded"], &embedded) == nil {
			raw = embedded[f.Name]
		}
	}
	text := string(raw)
	key := t.ByName[c.KeyField()]
	whole := f.Name == "name" && key != nil && key.DNS // the whole name says it
	placed := f.Name == "view" && c.Place != nil
	switch {
	case f.Name == "id" || f.Name == "type" || whole || f.Hidden || f.Transient || f.Also != "" || f.Column != "" && !placed:
		return nil, nil
	case f.ReadOnly && !placed, len(raw) == 0, text == "null", text == "{}", text == "[]", text == `""`:
		return nil, nil
	case f.Default != "" && (text == f.Default || text == jsonText(f.Default)):
		return nil, nil
	case f.Kind == schema.Reference:
		return e.named(t, f, raw), nil
	case f.Kind == schema.References:
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, err
		}
		named := []json.RawMessage{}
		for _, item := range items {
			if one := e.named(t, f, item); one != nil {
				named = append(named, one)
			}
		}
		return json.Marshal(named)
	case f.Kind == schema.SecretText || f.Kind == schema.Nested && text == "{}":
		return nil, nil
	}
	return raw, nil
}

// named is a reference as a text: the key of what it refers to, or its path where that could be of several collections.
func (e *export) named(t *schema.Type, f *schema.Field, raw json.RawMessage) json.RawMessage {
	var to map[string]json.RawMessage
	if json.Unmarshal(raw, &to) != nil {
		return nil
	}
	of := e.API.TypeNamed(FieldText(to["type"]))
	if of == nil {
		return nil
	}
	c := e.API.CollectionOf(of)
	if f.Identify != "" && FieldText(to[f.Identify]) != "" {
		return json.RawMessage(jsonText(FieldText(to[f.Identify])))
	}
	key := FieldText(to[c.KeyField()])
	if key == "" && c.KeyField() == "name" {
		key = FieldText(to["name"])
	}
	if key == "" {
		e.notes[fmt.Sprintf("left out, as it has no name: %s of %s", f.Name, t.Name)]++
		return nil
	}
	if f.Column != "" || f.ReadOnly || len(collectionsOf(e.API, f)) == 1 || c.KeyField() == "address" && f.Kind == schema.References {
		return json.RawMessage(jsonText(key))
	}
	return json.RawMessage(jsonText(c.Name + "/" + key))
}

// collectionsOf are the collections that a field leads to.
func collectionsOf(a *resource.API, f *schema.Field) map[*resource.Collection]bool {
	all := map[*resource.Collection]bool{}
	for _, name := range f.Refs {
		if t := a.TypeNamed(name); t != nil {
			all[a.CollectionOf(t)] = true
		}
	}
	return all
}

// WriteDocument gives a document as YAML.
func WriteDocument(a client.Apply) ([]byte, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return ToYAML(raw)
}
