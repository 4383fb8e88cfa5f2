package ipam

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// What comes down the tree of blocks and networks: a field that is not set has the value of the nearest
// one above that sets it. It is not written down, so that a changed ancestor is seen at once.

// inheritedFields are the fields that come down (the option inherit), by how they are kept. A list comes down where its type has
// a field, of its name with Inherited behind it, that may say otherwise.
type inheritedFields struct {
	values, refs, lists map[string]bool
	// by are those of each type, also their other names.
	by   map[string]map[string]bool
	also map[string]string
}

// inheritedOf finds the fields that come down, of the declared types.
func inheritedOf(r *resource.Registry) *inheritedFields {
	f := &inheritedFields{values: map[string]bool{}, refs: map[string]bool{}, lists: map[string]bool{}, by: map[string]map[string]bool{},
		also: map[string]string{}}
	r.EachType(func(t *schema.Type) {
		for _, field := range t.Fields {
			if main := t.ByName[field.Also]; main != nil && main.Inherit {
				f.also[field.Also] = field.Name
			}
			if _, open := t.Field(field.Name + "Inherited"); !field.Inherit || field.Kind == schema.References && !open {
				continue
			}
			if f.by[t.Name] == nil {
				f.by[t.Name] = map[string]bool{}
			}
			f.by[t.Name][field.Name] = true
			switch field.Kind {
			case schema.Reference:
				f.refs[field.Name] = true
			case schema.References:
				f.lists[field.Name] = true
			default:
				f.values[field.Name] = true
			}
		}
	})
	return f
}

// Settings is what holds in a block or network: what it sets itself and what comes from above. It is not
// changed once it is made.
type Settings struct {
	Values map[string]string // as JSON, by field
	Refs   map[string]int64
	Zones  map[string][]int64
}

// number gives a value that is a whole number; ok is false where there is none.
func (p *Settings) number(field string) (n int64, ok bool) {
	text, ok := p.Values[field]
	return n, ok && json.Unmarshal([]byte(text), &n) == nil
}

// below gives what holds in a row with its links below what p says; nil for the top.
func (f *inheritedFields) below(p *Settings, r *store.Resource) (*Settings, error) {
	n := &Settings{Values: map[string]string{}, Refs: map[string]int64{}, Zones: map[string][]int64{}}
	closed := map[string]bool{}
	if err := store.Members(r.Body, func(name, raw []byte) error {
		field := string(name)
		if f.values[field] && string(raw) != "null" {
			n.Values[field] = string(raw)
		}
		if zones, ok := strings.CutSuffix(field, "Inherited"); ok && string(raw) == "false" {
			closed[zones] = true
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, ref := range r.Refs {
		if f.refs[ref.Field] {
			n.Refs[ref.Field] = ref.Target
		}
	}
	for _, link := range r.Links {
		if f.lists[link.Field] {
			n.Zones[link.Field] = append(n.Zones[link.Field], link.Target)
		}
	}
	if p == nil {
		return n, nil
	}
	for field, value := range p.Values {
		if _, ok := n.Values[field]; !ok {
			n.Values[field] = value
		}
	}
	for field, target := range p.Refs {
		if _, ok := n.Refs[field]; !ok {
			n.Refs[field] = target
		}
	}
	for field, zones := range p.Zones {
		if len(n.Zones[field]) == 0 && !closed[field] {
			n.Zones[field] = zones
		}
	}
	return n, nil
}

// inheritance finds what holds in blocks and networks, and remembers it.
type inheritance struct {
	// fields gives the fields that come down.
	fields func() *inheritedFields
	// blocks is what holds in blocks, networks what holds in networks, which change more often; used what is used at all, under the one
	// key there is.
	blocks, networks *store.Cache[int64, *Settings]
	used             *store.Cache[struct{}, settingsInUse]
}

func newInheritance(s *store.Store, fields func() *inheritedFields) *inheritance {
	return &inheritance{fields: fields, blocks: store.NewCache[int64](s, store.CacheOptions[*Settings]{Topics: []string{"blocks"}}),
		networks: store.NewCache[int64](s, store.CacheOptions[*Settings]{Topics: []string{"blocks", "networks"}}),
		used:     store.NewCache[struct{}](s, store.CacheOptions[settingsInUse]{Topics: []string{policyTopic}, Late: true, Max: 1})}
}

// policyTopic is the topic of changes to what settingsInUse knows.
const policyTopic = "policies"

// settingsInUse says which policies any block or network has, and whether there are IP groups: what nobody uses costs nothing.
type settingsInUse struct{ marks, pings, groups bool }

// inUse gives which policies any block or network has.
func (p *inheritance) inUse(tx *store.Tx) (used settingsInUse, err error) {
	if known, ok := p.used.Get(tx, struct{}{}); ok {
		return known, nil
	}
	for _, one := range []struct {
		found       *bool
		collections []string
		fields      []string // any of which is set
	}{
		{&used.marks, spacesIn(tx).levelled, []string{lowWaterMark, highWaterMark}},
		{&used.pings, spacesIn(tx).asking, []string{pingBeforeAssign}},
		{&used.groups, []string{"ipGroups"}, nil},
	} {
		var set store.Any
		where := store.All{store.InCollection(one.collections...)}
		for _, name := range one.fields {
			set = append(set, store.Compare{Field: store.Field{Kind: store.Text, Path: []string{name}}, Op: "ne"})
		}
		if set != nil {
			where = append(where, set)
		}
		if *one.found, err = tx.Exists(store.Query{From: store.Resources, Where: where}); err != nil {
			return used, err
		}
	}
	if err == nil && !used.marks { // a level that the last mark left behind is put right when usage next changes
		err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM water WHERE level <> ?)", levelNormal).Scan(&used.marks)
	}
	if err == nil {
		p.used.Put(tx, struct{}{}, used)
	}
	return used, err
}

// holdIn gives what holds in each of the blocks and networks; a configuration has nothing.
func (p *inheritance) holdIn(tx *store.Tx, ids []int64) (map[int64]*Settings, error) {
	found := map[int64]*Settings{}
	var missing []int64
	for _, id := range ids {
		known, ok := p.blocks.Get(tx, id)
		if !ok {
			known, ok = p.networks.Get(tx, id)
		}
		if ok {
			found[id] = known
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	rows, err := lineage(tx, missing)
	if err != nil {
		return nil, err
	}
	var within func(r *store.Resource) (*Settings, error)
	within = func(r *store.Resource) (*Settings, error) {
		if known, ok := found[r.ID]; ok {
			return known, nil
		}
		var above *Settings
		if parent, ok := rows[r.Parent]; ok {
			var err error
			if above, err = within(parent); err != nil {
				return nil, err
			}
		}
		one, err := p.fields().below(above, r)
		found[r.ID] = one
		return one, err
	}
	for id, r := range rows {
		one, err := within(r)
		if err != nil {
			return nil, err
		}
		if r.Collection == "blocks" {
			p.blocks.Put(tx, id, one)
		} else {
			p.networks.Put(tx, id, one)
		}
	}
	return found, nil
}

// settingsOf finds what comes down the tree in the database of a transaction.
func settingsOf(tx *store.Tx) *inheritance {
	if s, ok := tx.Extension(spaceName).State.(*spaceExtension); ok {
		return s.settings
	}
	panic("the database was opened without the space extension")
}

// show puts what p, which holds above a row, brings down to it into the row's body, which is whole, and references, and lists it in
// _inheritedFields. own are the lists of zones that the row has itself.
func (f *inheritedFields) show(p *Settings, r *store.Resource, own map[string]bool, body *store.Object) {
	if p == nil {
		return
	}
	comes := f.by[r.Type]
	var names []string
	for field, value := range p.Values {
		if comes[field] && string(body.Get(field)) == "null" {
			body.Set(field, []byte(value))
			if other := f.also[field]; other != "" {
				body.Set(other, []byte(value))
			}
			names = append(names, field)
		}
	}
	refs := r.Refs
	for field, target := range p.Refs {
		if comes[field] && !slices.ContainsFunc(r.Refs, func(ref store.Ref) bool { return ref.Field == field }) {
			refs = append(slices.Clip(refs), store.Ref{Field: field, Target: target})
			names = append(names, field)
		}
	}
	r.Refs = refs
	for field, zones := range p.Zones {
		if comes[field] && len(zones) > 0 && !own[field] && string(body.Get(field+"Inherited")) != "false" {
			names = append(names, field)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	body.Set("_inheritedFields", schema.AppendStrings(nil, names))
}

// stayInherited leaves a field unset that a request gives back as it was shown: it names the field among those inherited
// (resource.Change.SentInherited), with the value that comes from above. A field that is named there with another value is set.
func stayInherited(c *resource.Change) error {
	var fields []string
	for _, f := range c.Type.Fields {
		if f.Inherit {
			fields = append(fields, f.Name)
		}
	}
	names := c.SentInherited(fields...)
	if len(names) == 0 {
		return nil
	}
	above := schema.HeadOf(c.New).Parent
	held, err := settingsOf(c.Tx).holdIn(c.Tx, []int64{above})
	if err != nil {
		return err
	}
	settings := held[above]
	for _, name := range names {
		f, ok := c.Type.Field(name)
		if !ok || !f.Inherit || f.Kind == schema.References || !c.Given[name] {
			continue
		}
		sent := c.Sent[name]
		for _, other := range c.Type.Fields { // it may be sent by its other name
			if sent == nil && other.Also == name {
				sent = c.Sent[other.Name]
			}
		}
		if settings == nil || sent == nil || settings.shows(f, sent) {
			c.Type.Unset(c.New, name)
		}
	}
	return nil
}

// shows reports whether a field is shown with a value where nothing is set.
func (p *Settings) shows(f *schema.Field, sent json.RawMessage) bool {
	if f.Kind != schema.Reference {
		return sameJSON(sent, []byte(p.Values[f.Name]))
	}
	var ref struct {
		ID int64 `json:"id"`
	}
	return json.Unmarshal(sent, &ref) == nil && ref.ID == p.Refs[f.Name]
}

// sameJSON reports whether two texts are the same value.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
