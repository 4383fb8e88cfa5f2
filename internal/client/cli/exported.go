package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// export collects the resources of a document.
type export struct {
	*Manager
	selected []string
	// includeEmpty reports that the document includes fields without a value.
	includeEmpty bool
	// order is the order of the collections in the document.
	order []*resource.Collection
	// placed holds the text of the Place member, such as the view, of the resources read so far, by ID.
	placed map[int64]string
	// count is the number of resources read so far, by collection.
	count map[string]int
	// keys are the paths of the resources read so far, as collection/key, by ID.
	keys     map[int64]string
	out      []exported
	notes    map[string]int
	progress func(n int)
	ctx      context.Context //nolint:containedctx // an export lives for one call only
}

// exported is a resource of a document. rank is its position: parents have a lower rank than their children.
type exported struct {
	rank [2]int
	raw  json.RawMessage
}

// Export returns a resource and everything below it as a document for POST /apply. only names the collections to export, nil means all.
// Values that cannot be exported, such as secrets, are omitted and listed in notes. Export calls progress with the number of resources so
// far.
func (m *Manager) Export(ctx context.Context, at Path, only []string, includeEmpty bool, progress func(n int)) (a client.Apply,
	notes []string, err error) {
	e := &export{Manager: m, ctx: ctx, selected: only, includeEmpty: includeEmpty, order: orderCollections(m.API), keys: map[int64]string{},
		placed: map[int64]string{},
		count:  map[string]int{},
		notes:  map[string]int{}, progress: progress}
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
		err = e.addConfiguration(root)
	} else {
		err = e.addChildren(at.Collection, at.ID)
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

// placeOf returns the path that the resources of the document belong below: their configuration, or an empty text.
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
	return c.IsLogged() && !c.ReadOnly && !c.Inner && !c.Joins && (e.selected == nil || slices.Contains(e.selected, c.Name)) &&
		slices.ContainsFunc(c.Types, func(t *schema.Type) bool { return !t.NotMade })
}

// listQuery returns the query for the resources of a collection. It embeds the fields that the API shows only as subcollections.
func listQuery(c *resource.Collection) client.Query {
	q := client.Query{Limit: 1000, OrderBy: "id", Fields: Embedded(c)}
	if q.Fields != "" {
		q.Limit = 100
	}
	return q
}

// Embedded returns the value of the query parameter fields that adds fields which the API shows only as subcollections, such as the
// addresses of hosts. It returns an empty text if the collection has no such fields.
func Embedded(c *resource.Collection) string {
	var embed []string
	for _, t := range c.Types {
		for _, f := range t.Fields {
			if isEmbeddedList(f) && c.Sub(f.Name) != nil && !slices.Contains(embed, "embed("+f.Name+")") {
				embed = append(embed, "embed("+f.Name+")")
			}
		}
	}
	return strings.Join(embed, ",")
}

// isEmbeddedList reports whether a field is a writable list of references that the API shows as a subcollection.
func isEmbeddedList(f *schema.Field) bool {
	return f.WriteOnly && f.Kind == schema.References && !f.Hidden && f.OnPost
}

// addConfiguration adds the contents of a configuration.
func (e *export) addConfiguration(root json.RawMessage) error {
	var one client.Head
	if err := json.Unmarshal(root, &one); err != nil {
		return err
	}
	for _, c := range e.order {
		if !e.exportable(c) || !hasField(c, "configuration") {
			continue
		}
		q := listQuery(c)
		q.Filter = fmt.Sprintf("configuration.id:%d", one.ID)
		if err := e.All(e.ctx, c.Name, q, func(raw json.RawMessage) error { return e.add(c, raw, "") }); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// addChildren adds everything below a resource.
func (e *export) addChildren(c *resource.Collection, id int64) error {
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
			if err := e.All(e.ctx, at, listQuery(of), func(raw json.RawMessage) error {
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
				if err := e.addChildren(of, child); err != nil {
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

// add adds one resource. above is the path of its parent, as collection/ID, or empty if it is not known.
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
	case t == nil:
		e.notes["left out, as this program is older than the manager: "+head.Type]++
		return nil
	case t.NotMade: // it is exported with its parent
		if c.PlacedBy != "" {
			e.placed[head.ID] = fieldText(members[c.PlacedBy])
		}
		return nil
	case c.Secret:
		e.notes["left out, as it has secrets: "+head.Type]++
		return nil
	}
	if fieldText(members["state"]) == "GATEWAY" && fieldText(members["name"]) == "" && fieldText(members["macAddress"]) == "" {
		return nil // the network of the gateway contains it
	}
	e.count[c.Name]++
	e.keys[head.ID] = c.Name + "/" + cmp.Or(fieldText(members[c.KeyField()]), fmt.Sprint(head.ID))
	var b strings.Builder
	b.WriteString(`{"type":` + jsonText(t.Name))
	if c.Scope {
		b.WriteString(`,"in":""`)
	} else if c.Place == nil || !keyContainsParent(c, t) {
		in, err := e.parentOf(members, above)
		if err != nil {
			return err
		}
		if in != "" && in != e.API.Scope.Name+"/"+fieldText(members["configuration"]) {
			b.WriteString(`,"in":` + jsonText(in))
		}
	}
	if c.PlacedBy != "" {
		if e.placed[head.ID] = fieldText(members[c.PlacedBy]); e.placed[head.ID] == "" {
			e.placed[head.ID] = e.placed[parentID(members)]
			if e.placed[head.ID] != "" && keyContainsParent(c, t) {
				b.WriteString(`,` + jsonText(c.PlacedBy) + `:` + jsonText(e.placed[head.ID]))
			}
		}
		if above := e.placeCollection(c); above != nil && e.placed[head.ID] != "" && e.count[above.Name] != 1 { // keys may repeat
			e.keys[head.ID] = above.Name + "/" + e.placed[head.ID] + "/" + e.keys[head.ID]
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
	if e.progress != nil {
		e.progress(len(e.out))
	}
	return nil
}

// placeCollection returns the collection that the member PlacedBy of a collection names, such as views. It returns nil if none matches.
func (e *export) placeCollection(c *resource.Collection) *resource.Collection {
	for _, one := range e.API.Collections() {
		if slices.ContainsFunc(one.Types, func(t *schema.Type) bool { return strings.EqualFold(t.Name, c.PlacedBy) }) {
			return one
		}
	}
	return nil
}

func jsonText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // a string can always be encoded
		return `""`
	}
	return string(raw)
}

// rank returns the position of a resource in the document: by its collection, then large ranges before small ones, and parent names before
// child names.
func (e *export) rank(c *resource.Collection, members map[string]json.RawMessage) (rank [2]int) {
	rank[0] = slices.Index(e.order, c)
	text := fieldText(members[c.KeyField()])
	if prefix, err := netip.ParsePrefix(text); err == nil {
		rank[1] = prefix.Bits()
	} else if c.KeyField() == "absoluteName" {
		rank[1] = strings.Count(text, ".")
	}
	return rank
}

// Order sorts the resources of a document so that parents come before their children. Where possible, a resource also comes after the
// resources that it refers to.
func Order(a *resource.API, all []json.RawMessage) error {
	e := &export{Manager: &Manager{API: a}, order: orderCollections(a)}
	type ranked struct {
		rank [2]int
		raw  json.RawMessage
	}
	list := make([]ranked, len(all))
	for i, raw := range all {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return err
		}
		list[i].raw = raw
		if t := a.TypeNamed(fieldText(members["type"])); t != nil { // the manager rejects an unknown type by its name
			list[i].rank = e.rank(a.CollectionOf(t), members)
		}
	}
	slices.SortStableFunc(list, func(x, y ranked) int { return cmp.Or(x.rank[0]-y.rank[0], x.rank[1]-y.rank[1]) })
	for i := range list {
		all[i] = list[i].raw
	}
	return nil
}

// orderCollections returns the collections with parents before their children. Where possible, a collection also comes after the
// collections that it refers to.
func orderCollections(a *resource.API) (order []*resource.Collection) {
	left := slices.Clone(a.Collections())
	countDependencies := func(c *resource.Collection) (below, refers int) {
		for _, other := range left {
			if other == c {
				continue
			}
			if slices.Contains(c.Parents, other.Name) {
				below++
			}
			for _, t := range c.Types {
				if slices.ContainsFunc(t.Fields, func(f *schema.Field) bool { return !f.ReadOnly && isReference(f) && collectionsOf(a, f)[other] }) {
					refers++
				}
			}
		}
		return below, refers
	}
	for len(left) > 0 {
		best, lowest := 0, [2]int{1 << 30, 0}
		for i, c := range left {
			below, refers := countDependencies(c)
			if cost := [2]int{below, refers}; cost[0] < lowest[0] || cost[0] == lowest[0] && cost[1] < lowest[1] {
				best, lowest = i, cost
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return order
}

// parentID returns the ID of a resource's parent, from its link up. It returns 0 if the resource has no such link.
func parentID(members map[string]json.RawMessage) (id int64) {
	var links map[string]client.Link
	if json.Unmarshal(members["_links"], &links) != nil {
		return 0
	}
	href := links["up"].Href
	if _, err := fmt.Sscan(href[strings.LastIndexByte(href, '/')+1:], &id); err != nil {
		return 0
	}
	return id
}

// parentOf returns the path of a resource's parent, with the parent's key.
func (e *export) parentOf(members map[string]json.RawMessage, above string) (string, error) {
	if above == "" {
		var links map[string]client.Link
		if err := json.Unmarshal(members["_links"], &links); err != nil {
			return "", err
		}
		_, at, ok := strings.Cut(links["up"].Href, client.AddressPath)
		if !ok {
			return "", nil
		}
		above = at
	}
	word, number, _ := strings.Cut(above, "/")
	c := e.API.Collection(word)
	if c == nil || number == "" { // its parent is the root
		return "", nil
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return "", err
	}
	return e.keyOf(c, id)
}

// WriteDocument returns a document as YAML or JSON.
func WriteDocument(a client.Apply, format string) ([]byte, error) {
	if format == JSON {
		raw, err := json.MarshalIndent(a, "", "  ")
		return append(raw, '\n'), err
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return toYAML(raw)
}
