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

// Inheritance in the tree of blocks and networks: an unset field has the value of the nearest ancestor that sets it. The inherited value is
// not stored, so that a change of an ancestor takes effect immediately.

// inheritedFields contains the names of the inheritable fields (tag option inherit), by the way they are stored. A list is inheritable if
// its type has a boolean field named after it with the suffix Inherited, which can disable the inheritance.
type inheritedFields struct {
	values, refs, lists map[string]bool
	// by contains the inheritable fields of each type. also maps the main name of a field to its alternative name.
	by   map[string]map[string]bool
	also map[string]string
}

// collectInherited collects the inheritable fields of all declared types.
func collectInherited(r *resource.Registry) *inheritedFields {
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

// Settings contains the effective settings of a block or network: its own values and the inherited ones. It is immutable, because caches
// share it.
type Settings struct {
	Values map[string]string // JSON values by field name
	Refs   map[string]int64
	Zones  map[string][]int64
}

// number returns the value of an integer field. ok is false if the value is missing or not an integer.
func (p *Settings) number(field string) (n int64, ok bool) {
	text, ok := p.Values[field]
	return n, ok && json.Unmarshal([]byte(text), &n) == nil
}

// derive returns the effective settings of a row, given the settings p of its parent. p is nil at the top. The row must include its links.
func (f *inheritedFields) derive(p *Settings, r *store.Resource) (*Settings, error) {
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

// inheritance computes and caches the effective settings of blocks and networks.
type inheritance struct {
	// fields returns the inheritable fields.
	fields func() *inheritedFields
	// blocks and networks cache settings by id. They are separate because networks change more often. used caches settingsInUse under a
	// single key.
	blocks, networks *store.Cache[int64, *Settings]
	used             *store.Cache[struct{}, settingsInUse]
	// defaults caches the default marks of ranges under a single key.
	defaults *store.Cache[struct{}, defaultMarks]
}

func newInheritance(s *store.Store, fields func() *inheritedFields) *inheritance {
	return &inheritance{fields: fields, blocks: store.NewCache[int64](s, store.CacheOptions[*Settings]{Topics: []string{"blocks"}}),
		networks: store.NewCache[int64](s, store.CacheOptions[*Settings]{Topics: []string{"blocks", "networks"}}),
		used: store.NewCache[struct{}](s, store.CacheOptions[settingsInUse]{Topics: []string{policyTopic, settingsTopic}, Late: true,
			Max: 1}),
		defaults: store.NewCache[struct{}](s, store.CacheOptions[defaultMarks]{Topics: []string{settingsTopic}, Late: true, Max: 1})}
}

// policyTopic is touched by changes that affect settingsInUse.
const policyTopic = "policies"

// settingsInUse records whether any resource has water marks or ping settings, and whether IP groups exist. Code for unused features is
// skipped.
type settingsInUse struct{ marks, pings, groups bool }

// inUse returns which policies are in use in the database.
func (p *inheritance) inUse(tx *store.Tx) (used settingsInUse, err error) {
	if known, ok := p.used.Get(tx, struct{}{}); ok {
		return known, nil
	}
	for _, one := range []struct {
		found       *bool
		collections []string
		fields      []string // at least one of them must be set
	}{
		{&used.marks, spacesIn(tx).withMarks, []string{lowWaterMark, highWaterMark}},
		{&used.pings, spacesIn(tx).withPing, []string{pingBeforeAssign}},
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
	if !used.marks {
		defaults, err := p.rangeDefaults(tx)
		if err != nil {
			return used, err
		}
		used.marks = defaults.isSet()
	}
	if !used.marks { // a level that remains from the last mark is corrected at the next change of usage
		err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM water WHERE level <> ?)", levelNormal).Scan(&used.marks)
	}
	if err == nil {
		p.used.Put(tx, struct{}{}, used)
	}
	return used, err
}

// resolve returns the effective settings of blocks and networks by id. A configuration has no entry.
func (p *inheritance) resolve(tx *store.Tx, ids []int64) (map[int64]*Settings, error) {
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
		one, err := p.fields().derive(above, r)
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

// settingsOf returns the inheritance of the database of a transaction.
func settingsOf(tx *store.Tx) *inheritance {
	if s, ok := tx.Extension(spaceName).State.(*spaceExtension); ok {
		return s.settings
	}
	panic("the database was opened without the space extension")
}

// addInherited adds the values that a row inherits from p, the settings of its parent, to its complete body and its references. It lists
// their names in _inheritedFields. own contains the zone lists that the row sets itself.
func (f *inheritedFields) addInherited(p *Settings, r *store.Resource, own map[string]bool, body *store.Object) {
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

// keepInherited unsets a field that the request sends back unchanged from a response. Such a request lists the field as inherited
// (resource.Change.SentInherited), and its value equals the inherited value. A listed field with a different value is set.
func keepInherited(c *resource.Change) error {
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
	held, err := settingsOf(c.Tx).resolve(c.Tx, []int64{above})
	if err != nil {
		return err
	}
	settings := held[above]
	for _, name := range names {
		f, ok := c.Type.Field(name)
		if !ok || !f.Inherit || f.Kind == schema.References || !c.SetFields[name] {
			continue
		}
		sent := c.Sent[name]
		for _, other := range c.Type.Fields { // the request may use the alternative name of the field
			if sent == nil && other.Also == name {
				sent = c.Sent[other.Name]
			}
		}
		if settings == nil || sent == nil || settings.hasValue(f, sent) {
			c.Type.Unset(c.New, name)
		}
	}
	return nil
}

// hasValue reports whether a field has the sent value in these settings.
func (p *Settings) hasValue(f *schema.Field, sent json.RawMessage) bool {
	if f.Kind != schema.Reference {
		return sameJSON(sent, []byte(p.Values[f.Name]))
	}
	var ref struct {
		ID int64 `json:"id"`
	}
	return json.Unmarshal(sent, &ref) == nil && ref.ID == p.Refs[f.Name]
}

// sameJSON reports whether two JSON texts have equal values.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
