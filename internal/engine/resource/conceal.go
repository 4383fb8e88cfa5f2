package resource

import (
	"encoding/json"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// Conceal replaces the error of a caller's change if it names resources that the caller does not see, such as a conflicting one. Ids that
// the caller sent itself reveal nothing, so they stay in the error.
func (a *API) Conceal(tx *store.Tx, caller Caller, sent map[string]json.RawMessage, err error) error {
	p, ok := problem.As(err)
	if !ok || len(p.Named) == 0 || problem.IsNotFound(p) || !caller.Limited() {
		return err
	}
	known := sentIDs(selectMembers(sent, p.Fields))
	named := slices.DeleteFunc(slices.Clone(p.Named), func(id int64) bool { return known[id] })
	heads := map[int64]store.Head{}
	if failed := tx.Heads(named, heads); failed != nil {
		return failed
	}
	var list []store.Head
	for _, h := range heads {
		list = append(list, h)
	}
	seen, failed := a.Sees(tx, list, caller)
	if failed != nil {
		return failed
	}
	for id := range heads {
		if !seen[id] {
			about := ""
			if len(p.Fields) > 0 {
				about = p.Fields[0] + ": "
			}
			other := problem.New(p.Status, p.Code, "%sconflicts with a resource that %s has no access to", about, caller.Name)
			other.Fields = p.Fields
			return other
		}
	}
	return err
}

// Concealed is Conceal for errors of a part of the change that are stored instead of returned.
func (c *Change) Concealed(err error) error { return c.API.Conceal(c.Tx, c.Caller, nil, err) }

// selectMembers returns the members that a problem is about. Other members do not show that the caller knows an id, because unknown members
// are ignored.
func selectMembers(sent map[string]json.RawMessage, fields []string) map[string]json.RawMessage {
	only := map[string]json.RawMessage{}
	for _, name := range fields {
		if raw, ok := sent[name]; ok {
			only[name] = raw
		}
	}
	return only
}

// maxKnownIDs is the maximum number of ids that a caller is assumed to know. A caller that sends more of them guesses.
const maxKnownIDs = 20

// sentIDs returns the ids that the caller sent as {"id":N}; nil if there are more than maxKnownIDs.
func sentIDs(sent map[string]json.RawMessage) map[int64]bool {
	ids := map[int64]bool{}
	var visit func(value any)
	visit = func(value any) {
		switch x := value.(type) {
		case []any:
			for _, one := range x {
				visit(one)
			}
		case map[string]any:
			for name, one := range x {
				if n, ok := one.(float64); ok && name == "id" {
					ids[int64(n)] = true
				}
				visit(one)
			}
		}
	}
	for _, raw := range sent {
		var value any
		if json.Unmarshal(raw, &value) == nil {
			visit(value)
		}
	}
	if len(ids) > maxKnownIDs {
		return nil
	}
	return ids
}

// Sees reports whether the caller sees a resource.
func (c *Change) Sees(head store.Head) (bool, error) {
	if !c.Caller.Limited() {
		return true, nil
	}
	seen, err := c.API.Sees(c.Tx, []store.Head{head}, c.Caller)
	return seen[head.ID], err
}
