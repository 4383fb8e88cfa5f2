package imports

import (
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// sameOwnChildren reports whether a list describes the children that a resource creates itself, such as the interface of a server, as they
// are. Children that cannot be created by a request, such as the gateway of a template, may be missing from the list.
func (p *executor) sameOwnChildren(t *schema.Type, f *schema.Field, raw json.RawMessage, there *store.Resource) (bool, error) {
	sub := p.API.CollectionOf(t).Sub(f.Name)
	var items []json.RawMessage
	if sub == nil || sub.Relation != resource.Children || !f.WriteOnly {
		return false, nil
	}
	if err := json.Unmarshal(raw, &items); err != nil || len(items) == 0 {
		return false, nil //nolint:nilerr // decoding reports the error later
	}
	rows, err := p.Tx.ListSome(store.All{store.InCollection(sub.Name), store.HasParent(there.ID)}, len(items)+2)
	if err != nil || len(rows) < len(items) {
		return false, err
	}
	left := slices.Clone(items)
	for _, row := range rows {
		members, err := p.shownMembers(row)
		if err != nil {
			return false, err
		}
		shown, err := json.Marshal(members)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(left, func(item json.RawMessage) bool { return equalToSent(item, shown) })
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case !p.API.TypeNamed(row.Type).NotMade:
			return false, nil
		}
	}
	return len(left) == 0, nil
}

// changedFields returns the fields to be changed. Fields that are only written, such as a password, have no values. Of a field with parts
// it returns the parts that were sent.
func (p *executor) changedFields(t *schema.Type, sent, shown map[string]json.RawMessage, there *store.Resource) (all []resource.FieldChange,
	err error) {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		one := resource.FieldChange{Field: name, Before: shown[name], After: sent[name]}
		f := t.ByName[name]
		switch {
		case f != nil && f.Kind == schema.References && f.WriteOnly:
			if one.Before, err = p.linkedNames(there, name); err != nil {
				return nil, err
			}
		case f != nil && f.Kind == schema.Reference && !f.WriteOnly:
			if one.After, err = p.withNames(one.After); err != nil {
				return nil, err
			}
		case f == nil || f.Kind == schema.SecretText || f.WriteOnly:
			one.Before, one.After = nil, nil
		case f.Kind == schema.Map:
			var parts, before map[string]json.RawMessage
			if json.Unmarshal(one.After, &parts) == nil && parts != nil {
				if err := json.Unmarshal(shown[name], &before); err != nil {
					before = nil // there is none
				}
				for part, value := range parts {
					if !equalToSent(value, before[part]) {
						all = append(all, resource.FieldChange{Field: name + "." + part, Before: before[part], After: value})
					}
				}
				continue
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// withNames adds the names of its target to a reference by number, so that it looks like the value before.
func (p *executor) withNames(raw json.RawMessage) (json.RawMessage, error) {
	var ref *struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(raw, &ref); err != nil || ref == nil || ref.ID == 0 {
		return raw, err
	}
	row, err := p.Tx.Get(ref.ID)
	if errors.Is(err, store.ErrNotFound) { // it is rejected later, with the field
		return raw, nil
	}
	if err != nil {
		return nil, err
	}
	members, err := p.shownMembers(row)
	if err != nil {
		return nil, err
	}
	names := map[string]json.RawMessage{}
	for _, name := range []string{"id", "type", "name", "code", "range", "address", "absoluteName"} {
		if value, ok := members[name]; ok && string(value) != "null" {
			names[name] = value
		}
	}
	return json.Marshal(names)
}

// linkedNames returns the addresses or names of the targets of a field with several references.
func (p *executor) linkedNames(there *store.Resource, name string) (json.RawMessage, error) {
	ids, err := p.linksOf(there, name)
	if err != nil {
		return nil, err
	}
	texts := []string{}
	for _, id := range ids {
		row, err := p.Tx.Get(id)
		if err != nil {
			return nil, err
		}
		text := row.Name
		if len(row.Low) > 0 {
			text = store.KeyAddr(row.Low).String()
		}
		texts = append(texts, text)
	}
	return json.Marshal(texts)
}

// linksOf returns the ids of the targets of a field with several references that the user can see. If a subcollection of that name holds
// the referring resources, such as the restricted ranges of a view, it returns their ids.
func (p *executor) linksOf(there *store.Resource, name string) (ids []int64, err error) {
	c := p.API.Collection(there.Collection)
	sub := c.Sub(name)
	if sub == nil || sub.Relation != resource.Linking {
		if ids, err = p.Tx.Links(there.ID, name); err != nil {
			return ids, err
		}
		return p.visible(ids)
	}
	return ids, p.Tx.List(p.API.SubQuery(sub, there.ID, p.Caller), func(r *store.Resource) error {
		ids = append(ids, r.ID)
		return nil
	})
}

// visible returns the resources that the user who started the import can see.
func (p *executor) visible(ids []int64) ([]int64, error) {
	if !p.Caller.Limited() {
		return ids, nil
	}
	heads := map[int64]store.Head{}
	if err := p.Tx.Heads(ids, heads); err != nil || len(heads) == 0 {
		return nil, err
	}
	seen, err := p.API.Sees(p.Tx, slices.Collect(maps.Values(heads)), p.Caller)
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return !seen[id] }), err
}

// dropSameLinks removes fields with several references that already have the values sent, by number or address. These fields are not part
// of a shown resource.
func (p *executor) dropSameLinks(t *schema.Type, sent map[string]json.RawMessage, there *store.Resource) error {
	for name, raw := range sent {
		f := t.ByName[name]
		if f == nil || f.Kind != schema.References && !(f.Kind == schema.Raw && f.List && f.WriteOnly) {
			continue
		}
		var items []struct {
			ID      int64   `json:"id"`
			Address *string `json:"address"` // other members are not compared
		}
		if json.Unmarshal(raw, &items) != nil {
			continue
		}
		if own, err := p.sameOwnChildren(t, f, raw, there); err != nil {
			return err
		} else if own {
			delete(sent, name)
			continue
		}
		linked, err := p.linksOf(there, name)
		if err != nil {
			return err
		}
		targets := map[string]int64{}
		for _, id := range linked {
			row, err := p.Tx.Get(id)
			if err != nil {
				return err
			}
			targets[strconv.FormatInt(id, 10)] = id
			if len(row.Low) > 0 {
				targets[store.KeyAddr(row.Low).String()] = id
			}
		}
		met := map[int64]bool{} // count each target once, as a list may name one twice
		for _, one := range items {
			key := strconv.FormatInt(one.ID, 10)
			if one.Address != nil {
				key = *one.Address
				if a, err := netip.ParseAddr(key); err == nil {
					key = a.Unmap().String()
				}
			}
			if id := targets[key]; id != 0 {
				met[id] = true
			}
		}
		if len(items) == len(linked) && len(met) == len(linked) {
			delete(sent, name)
		}
	}
	return nil
}

// sameReference returns an error if a reference has the old number but a different name, as only the number counts.
func sameReference(name string, sent, shown json.RawMessage) error {
	var is, was struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	if json.Unmarshal(sent, &is) == nil && json.Unmarshal(shown, &was) == nil && is.ID == was.ID && is.Name != "" && is.Name != was.Name {
		return problem.Field("ConflictingResourceFieldValues", name, "resource %d is named %q: change the id for another resource", was.ID,
			was.Name)
	}
	return nil
}

// matchesShown reports whether a row has the shown value for a member.
func (r *row) matchesShown(name string, value json.RawMessage, shown map[string]json.RawMessage) bool {
	if r.cells == nil {
		return equalToSent(value, shown[name])
	}
	same := true
	for _, c := range r.cells {
		if c.column.Member() == name && c.text != "" && c.text != c.column.Text(shown) {
			same = false
		}
	}
	return same || equalToSent(value, shown[name]) // the cell may use another notation, such as TRUE
}

// asShown returns the shown value if the value sent means the same in another notation, for example of an address or a DUID. In a reference
// it normalizes the identifying member. Otherwise it returns the value sent.
func (p *executor) asShown(f *schema.Field, sent, shown json.RawMessage) json.RawMessage {
	var text, is string
	if json.Unmarshal(sent, &text) == nil && json.Unmarshal(shown, &is) == nil && f.Same(text, is) {
		return shown
	}
	var members map[string]json.RawMessage
	if f.Kind != schema.Reference || f.Identify == "" || json.Unmarshal(sent, &members) != nil ||
		json.Unmarshal(members[f.Identify], &text) != nil { // decoding reports the error later
		return sent
	}
	var now map[string]json.RawMessage
	if json.Unmarshal(shown, &now) == nil && json.Unmarshal(now[f.Identify], &is) == nil && p.API.SameTarget(f, text, is) {
		text = is
	}
	members[f.Identify] = schema.AppendString(nil, p.API.FormatReference(f, text))
	if other, err := json.Marshal(members); err == nil {
		return other
	}
	return sent
}

// sameNamed reports whether a reference by name is the one of a resource whose target is not managed here: the name is then in a field of
// its own, such as zoneAbsoluteName for the absoluteName of zone.
func sameNamed(f *schema.Field, sent json.RawMessage, shown map[string]json.RawMessage) bool {
	if f.Kind != schema.Reference || f.Identify == "" || string(shown[f.Name]) != "null" {
		return false
	}
	var text, is string
	var members map[string]json.RawMessage
	field := f.Name + strings.ToUpper(f.Identify[:1]) + f.Identify[1:]
	return json.Unmarshal(sent, &members) == nil && json.Unmarshal(members[f.Identify], &text) == nil &&
		json.Unmarshal(shown[field], &is) == nil && is != "" && strings.EqualFold(strings.TrimSuffix(text, "."), is)
}

// isNowThere reports whether the target of a reference that sameNamed accepts exists now: the change then refers to it. It is about
// references by range, which a write resolves.
func (p *executor) isNowThere(f *schema.Field, sent json.RawMessage, there *store.Resource) (bool, error) {
	var members map[string]json.RawMessage
	var text string
	if f.Identify != "range" || json.Unmarshal(sent, &members) != nil || json.Unmarshal(members[f.Identify], &text) != nil {
		return false, nil //nolint:nilerr // decoding reports the error later
	}
	r, err := space.Parse(text)
	if err != nil {
		return false, nil //nolint:nilerr // as above
	}
	in := store.Any{}
	for _, name := range f.Refs {
		in = append(in, store.InCollection(p.API.CollectionOf(p.API.TypeNamed(name)).Name))
	}
	rows, err := p.Tx.ListSome(store.All{in,
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: there.Configuration},
		store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, Op: "eq", Value: store.AddrKey(r.Low)},
		store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}, Op: "eq", Value: store.AddrKey(r.High)}}, 2)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	ids := make([]int64, 0, len(rows))
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	seen, err := p.visible(ids)
	return len(seen) > 0, err
}

// hasSecret reports whether a resource has the secret that was sent. Only a user who could change it learns that. It is for random secrets
// alone, which cannot be guessed.
func (p *executor) hasSecret(on resource.Subject, there *store.Resource, name string, sent json.RawMessage) (bool, error) {
	var text string
	if json.Unmarshal(sent, &text) != nil || text == "" {
		return false, nil //nolint:nilerr // decoding reports the error later
	}
	if p.checkAccess(resource.ActionChange, on) != nil {
		return false, nil //nolint:nilerr // the change reports the error later
	}
	o, err := p.API.Object(there.Clone())
	if err != nil {
		return false, err
	}
	plain, err := p.API.Secrets(p.Tx, o)
	return plain[name] == text, err
}

// equalToSent reports whether the value sent equals the shown one. Objects are compared only by the members sent.
func equalToSent(sent, shown json.RawMessage) bool {
	var a, b any
	if len(shown) == 0 {
		return string(sent) == "null"
	}
	return json.Unmarshal(sent, &a) == nil && json.Unmarshal(shown, &b) == nil && equalValues(a, b)
}

func equalValues(sent, shown any) bool {
	switch a := sent.(type) {
	case map[string]any:
		b, ok := shown.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range a {
			if !strings.HasPrefix(name, "_") && !equalValues(value, b[name]) {
				return false
			}
		}
		return true
	case []any:
		b, ok := shown.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	if inner, ok := shown.(map[string]any); ok && len(inner) == 1 { // an identifier in an object of its own, such as uid
		for _, value := range inner {
			shown = value
		}
	}
	return sent == shown
}
