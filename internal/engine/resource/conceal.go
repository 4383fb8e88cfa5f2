package resource

import (
	"encoding/json"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// Conceal gives what refused a caller's change: in other words where it names resources that the caller does not see, such as the one that
// is in the way. What the caller has sent itself tells it nothing, and is said again as it is.
func (a *API) Conceal(tx *store.Tx, caller Caller, sent map[string]json.RawMessage, err error) error {
	p, ok := problem.As(err)
	if !ok || len(p.Named) == 0 || problem.IsNotFound(p) || !caller.Limited() {
		return err
	}
	said := numbersSent(onlyFields(sent, p.Fields))
	named := slices.DeleteFunc(slices.Clone(p.Named), func(id int64) bool { return said[id] })
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
			other := problem.New(p.Status, p.Code, "%ssomething that %s does not see is in the way", about, caller.Name)
			other.Fields = p.Fields
			return other
		}
	}
	return err
}

// Concealed gives what refused a part of the change as Conceal does, for words that are kept instead of answered.
func (c *Change) Concealed(err error) error { return c.API.Conceal(c.Tx, c.Caller, nil, err) }

// onlyFields gives the members that a problem is about. Others tell nothing of what the caller knows: unknown ones are ignored.
func onlyFields(sent map[string]json.RawMessage, fields []string) map[string]json.RawMessage {
	only := map[string]json.RawMessage{}
	for _, name := range fields {
		if raw, ok := sent[name]; ok {
			only[name] = raw
		}
	}
	return only
}

// mostSaid is how many resources a caller may have named: who sends very many numbers does not know them, but tries.
const mostSaid = 20

// numbersSent are the numbers of resources that a caller named itself, as {"id":N}; none where there are very many.
func numbersSent(sent map[string]json.RawMessage) map[int64]bool {
	said := map[int64]bool{}
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
					said[int64(n)] = true
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
	if len(said) > mostSaid {
		return nil
	}
	return said
}

// Sees reports whether the caller sees a resource.
func (c *Change) Sees(head store.Head) (bool, error) {
	if !c.Caller.Limited() {
		return true, nil
	}
	seen, err := c.API.Sees(c.Tx, []store.Head{head}, c.Caller)
	return seen[head.ID], err
}
