package ipam

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/resource"
	"portolan/internal/store"
)

// What comes down the tree of blocks and networks: a field that is not set has the value of the nearest
// one above that sets it. It is not written down, so that a changed ancestor is seen at once.

// inheritedValues, inheritedRefs and inheritedZones are the fields that come down, by how they are kept.
var (
	inheritedValues = []string{"duplicateHostnamesAllowed", "highWaterMark", "lowWaterMark", "pingBeforeAssignEnabled"}
	inheritedRefs   = []string{"defaultView", "location"}
	inheritedZones  = []string{"defaultZones", "restrictedZones"}
)

// inherits reports whether a type has a field that comes down.
func inherits(kind, field string) bool {
	switch kind {
	case "IPv4Block", "IPv4Network":
		return true
	case "IPv6Block", "IPv6Network":
		return field == "location"
	case "IPv4DHCPRange":
		return strings.HasSuffix(field, "WaterMark")
	}
	return false
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

// below gives what holds in a row with its links below p; nil for the top.
func (p *Settings) below(r *store.Resource) (*Settings, error) {
	n := &Settings{Values: map[string]string{}, Refs: map[string]int64{}, Zones: map[string][]int64{}}
	closed := map[string]bool{}
	if err := store.Members(r.Body, func(name, raw []byte) error {
		field := string(name)
		if slices.Contains(inheritedValues, field) && string(raw) != "null" {
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
		if slices.Contains(inheritedRefs, ref.Field) {
			n.Refs[ref.Field] = ref.Target
		}
	}
	for _, link := range r.Links {
		if slices.Contains(inheritedZones, link.Field) {
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

// inheritance finds what holds in blocks and networks, and remembers what holds in blocks.
type inheritance struct {
	// blocks is what holds in blocks; used what is used at all, under the one key there is.
	blocks *store.Cache[int64, *Settings]
	used   *store.Cache[struct{}, settingsInUse]
}

func newInheritance(s *store.Store) *inheritance {
	return &inheritance{blocks: store.NewCache[int64](s, store.CacheOptions[*Settings]{Topics: []string{"blocks"}}),
		used: store.NewCache[struct{}](s, store.CacheOptions[settingsInUse]{Topics: []string{policyTopic}, Late: true, Max: 1})}
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
		{&used.marks, []string{"blocks", "networks", "ranges"}, []string{"lowWaterMark", "highWaterMark"}},
		{&used.pings, containers, []string{"pingBeforeAssignEnabled"}},
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
		if known, ok := p.blocks.Get(tx, id); ok {
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
		one, err := above.below(r)
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
		}
	}
	return found, nil
}

// settingsOf finds what comes down the tree in the database of a transaction.
func settingsOf(tx *store.Tx) *inheritance {
	if s, ok := tx.Extension(spaceName).Room.(*spaceExtension); ok {
		return s.settings
	}
	panic("the database was opened without the space extension")
}

// show puts what p, which holds above a row, brings down to it into values and the row's references, and
// lists it in _inheritedFields. own are the lists of zones that the row has itself.
func (p *Settings) show(r *store.Resource, own map[string]bool, values map[string][]byte) {
	if p == nil {
		return
	}
	closed := map[string]bool{}
	set := map[string]bool{}
	_ = store.Members(r.Body, func(name, raw []byte) error { // a row that cannot be read says so where it is decoded
		field := string(name)
		set[field] = string(raw) != "null"
		if zones, ok := strings.CutSuffix(field, "Inherited"); ok && string(raw) == "false" {
			closed[zones] = true
		}
		return nil
	})
	var names []string
	for field, value := range p.Values {
		if inherits(r.Type, field) && !set[field] {
			values[field] = []byte(value)
			names = append(names, field)
		}
	}
	refs := slices.Clone(r.Refs)
	for field, target := range p.Refs {
		if inherits(r.Type, field) && !slices.ContainsFunc(r.Refs, func(ref store.Ref) bool { return ref.Field == field }) {
			refs = append(refs, store.Ref{Field: field, Target: target})
			names = append(names, field)
		}
	}
	r.Refs = refs
	for field, zones := range p.Zones {
		if inherits(r.Type, field) && len(zones) > 0 && !own[field] && !closed[field] {
			names = append(names, field)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	text, err := json.Marshal(names)
	if err == nil { // which texts always are
		values["_inheritedFields"] = text
	}
}

// stayInherited leaves a field unset that a request gives back as it was shown: it names the field among
// those inherited.
func stayInherited(c *resource.Change, unset map[string]func()) {
	raw, ok := c.Sent["_inheritedFields"]
	var names []string
	if !ok || json.Unmarshal(raw, &names) != nil {
		return
	}
	for _, name := range names {
		if fn := unset[name]; fn != nil && c.Given[name] {
			fn()
		}
	}
}
