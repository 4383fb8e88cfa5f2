package resource

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"portolan/internal/problem"
	"portolan/internal/store"
)

// Conceal gives what refused a caller's change: in other words where it names resources that the caller does not see, such as the one that
// is in the way. What the caller has sent itself tells it nothing, and is said again as it is.
func (a *API) Conceal(tx *store.Tx, caller Caller, sent map[string]json.RawMessage, err error) error {
	p, ok := problem.As(err)
	if !ok || len(p.Named) == 0 || problem.IsNotFound(p) || !caller.Limited() {
		return err
	}
	named := slices.DeleteFunc(slices.Clone(p.Named), func(id int64) bool {
		for _, raw := range sent {
			if bytes.Contains(raw, strconv.AppendInt(nil, id, 10)) {
				return true
			}
		}
		return false
	})
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

// Sees reports whether the caller sees a resource.
func (c *Change) Sees(head store.Head) (bool, error) {
	if !c.Caller.Limited() {
		return true, nil
	}
	seen, err := c.API.Sees(c.Tx, []store.Head{head}, c.Caller)
	return seen[head.ID], err
}
