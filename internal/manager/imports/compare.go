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
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// ownAlike reports whether a list says of the children that a resource makes itself, such as the interface of a server, what they are. One
// that no request makes, such as the gateway of a template, need not be in it.
func (p *perform) ownAlike(t *schema.Type, f *schema.Field, raw json.RawMessage, there *store.Resource) (bool, error) {
	sub := p.API.CollectionOf(t).Sub(f.Name)
	var items []json.RawMessage
	if sub == nil || sub.Relation != resource.Children || !f.WriteOnly {
		return false, nil
	}
	if err := json.Unmarshal(raw, &items); err != nil || len(items) == 0 {
		return false, nil //nolint:nilerr // who decodes it will say what is wrong
	}
	rows, err := p.Tx.Some(store.All{store.InCollection(sub.Name), store.HasParent(there.ID)}, len(items)+2)
	if err != nil || len(rows) < len(items) {
		return false, err
	}
	left := slices.Clone(items)
	for _, row := range rows {
		members, err := p.shown(row)
		if err != nil {
			return false, err
		}
		shown, err := json.Marshal(members)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(left, func(item json.RawMessage) bool { return alike(item, shown) })
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case !p.API.TypeNamed(row.Type).NotMade:
			return false, nil
		}
	}
	return len(left) == 0, nil
}

// changedFields words what is to be changed; what is only written, such as a password, without its values. Of parts of a field those alone
// that are sent.
func (p *perform) changedFields(t *schema.Type, sent, shown map[string]json.RawMessage, there *store.Resource) (all []resource.FieldChange,
	err error) {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		one := resource.FieldChange{Field: name, Before: shown[name], After: sent[name]}
		f := t.ByName[name]
		switch {
		case f != nil && f.Kind == schema.References && f.WriteOnly:
			if one.Before, err = p.linked(there, name); err != nil {
				return nil, err
			}
		case f != nil && f.Kind == schema.Reference && !f.WriteOnly:
			if one.After, err = p.called(one.After); err != nil {
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
					if !alike(value, before[part]) {
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

// called gives a reference by a number with what its target is called, as the value before it is shown.
func (p *perform) called(raw json.RawMessage) (json.RawMessage, error) {
	var ref *struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(raw, &ref); err != nil || ref == nil || ref.ID == 0 {
		return raw, err
	}
	row, err := p.Tx.Get(ref.ID)
	if errors.Is(err, store.ErrNotFound) { // which is refused behind this, with the field
		return raw, nil
	}
	if err != nil {
		return nil, err
	}
	members, err := p.shown(row)
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

// linked are the addresses or names of what a resource refers to by a field of many.
func (p *perform) linked(there *store.Resource, name string) (json.RawMessage, error) {
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

// linksOf gives what a resource refers to by a field of many, as far as who started it sees it; where the subcollection of that name is of
// those that refer to it, such as the restricted ranges of a view, these.
func (p *perform) linksOf(there *store.Resource, name string) (ids []int64, err error) {
	c := p.API.Collection(there.Collection)
	sub := c.Sub(name)
	if sub == nil || sub.Relation != resource.Linking {
		if ids, err = p.Tx.Links(there.ID, name); err != nil || !p.Caller.Limited() {
			return ids, err
		}
		return p.seen(ids)
	}
	return ids, p.Tx.List(p.API.SubQuery(sub, there.ID, p.Caller), func(r *store.Resource) error {
		ids = append(ids, r.ID)
		return nil
	})
}

// seen gives those of the resources that who started it sees.
func (p *perform) seen(ids []int64) ([]int64, error) {
	heads := map[int64]store.Head{}
	if err := p.Tx.Heads(ids, heads); err != nil || len(heads) == 0 {
		return nil, err
	}
	seen, err := p.API.Sees(p.Tx, slices.Collect(maps.Values(heads)), p.Caller)
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return !seen[id] }), err
}

// dropSameLinks takes out of what is sent the fields of many that hold just what is sent, by number or by address: they are not shown.
func (p *perform) dropSameLinks(t *schema.Type, sent map[string]json.RawMessage, there *store.Resource) error {
	for name, raw := range sent {
		f := t.ByName[name]
		if f == nil || f.Kind != schema.References && !(f.Kind == schema.Raw && f.List && f.WriteOnly) {
			continue
		}
		var items []struct {
			ID      int64   `json:"id"`
			Address *string `json:"address"` // what else is said of one is not compared
		}
		if json.Unmarshal(raw, &items) != nil {
			continue
		}
		if own, err := p.ownAlike(t, f, raw, there); err != nil {
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
		met := map[int64]bool{} // each once: two that are the same are not two others
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

// sameReference refuses a reference whose number is as it was, and whose name is another one: by its name nothing is found.
func sameReference(name string, sent, shown json.RawMessage) error {
	var is, was struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	if json.Unmarshal(sent, &is) == nil && json.Unmarshal(shown, &was) == nil && is.ID == was.ID && is.Name != "" && is.Name != was.Name {
		return problem.Field("ConflictingResourceFieldValues", name, "resource %d is called %q: change the id to name another one", was.ID,
			was.Name)
	}
	return nil
}

// says reports whether a row says of a member what is shown.
func (r *row) says(name string, value json.RawMessage, shown map[string]json.RawMessage) bool {
	if r.cells == nil {
		return alike(value, shown[name])
	}
	same := true
	for _, c := range r.cells {
		if c.column.Member() == name && c.text != "" && c.text != c.column.Text(shown) {
			same = false
		}
	}
	return same || alike(value, shown[name]) // which may be written otherwise, such as TRUE
}

// asShown gives what is sent for a field as it is shown, where both say the same in two notations, such as of an address or a DUID; of a
// reference the member that names what it refers to in the notation of that. Else it gives what is sent.
func (p *perform) asShown(f *schema.Field, sent, shown json.RawMessage) json.RawMessage {
	var text, is string
	if json.Unmarshal(sent, &text) == nil && json.Unmarshal(shown, &is) == nil && f.Same(text, is) {
		return shown
	}
	var members map[string]json.RawMessage
	if f.Kind != schema.Reference || f.Identify == "" || json.Unmarshal(sent, &members) != nil ||
		json.Unmarshal(members[f.Identify], &text) != nil { // who decodes it will say what is wrong
		return sent
	}
	var now map[string]json.RawMessage
	if json.Unmarshal(shown, &now) == nil && json.Unmarshal(now[f.Identify], &is) == nil && p.API.SameTarget(f, text, is) {
		text = is
	}
	members[f.Identify] = schema.AppendString(nil, p.API.AsShown(f, text))
	if other, err := json.Marshal(members); err == nil {
		return other
	}
	return sent
}

// alike reports whether what is sent says nothing else than what is shown: of objects, as far as it says something.
func alike(sent, shown json.RawMessage) bool {
	var a, b any
	if len(shown) == 0 {
		return string(sent) == "null"
	}
	return json.Unmarshal(sent, &a) == nil && json.Unmarshal(shown, &b) == nil && alikeValues(a, b)
}

func alikeValues(sent, shown any) bool {
	switch a := sent.(type) {
	case map[string]any:
		b, ok := shown.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range a {
			if !strings.HasPrefix(name, "_") && !alikeValues(value, b[name]) {
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
			if !alikeValues(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return sent == shown
}
