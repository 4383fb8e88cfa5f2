package resource

import (
	"encoding/json"

	"portolan/internal/engine/store"
)

// EstimateBelow returns an Estimate function for actions that change resources with everything below them: the resources that the named
// members refer to and, if ofAbove is set, the resource above.
func EstimateBelow(ofAbove bool, names ...string) func(*store.Tx, int64, map[string]json.RawMessage) (store.Tally, error) {
	return func(tx *store.Tx, above int64, members map[string]json.RawMessage) (t store.Tally, err error) {
		var ids []int64
		if ofAbove {
			ids = append(ids, above)
		}
		for _, name := range names {
			ids = append(ids, idsIn(members[name])...)
		}
		for _, id := range ids {
			n, err := tx.CountBelow(id)
			if err != nil {
				return t, err
			}
			t.Changed += int(n) + 1
		}
		return t, nil
	}
}

// idsIn returns the ids of a sent reference, or of a list of references.
func idsIn(raw json.RawMessage) (ids []int64) {
	type one struct {
		ID int64 `json:"id"`
	}
	var single one
	var list []one
	switch {
	case json.Unmarshal(raw, &single) == nil:
		list = []one{single}
	case json.Unmarshal(raw, &list) != nil:
		return nil
	}
	for _, ref := range list {
		ids = append(ids, ref.ID)
	}
	return ids
}
