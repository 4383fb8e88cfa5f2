package ipam

import (
	"encoding/json"
	"errors"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// placeSpace finds the direct parent of a new resource: the smallest block or network, within a configuration or block, that contains its
// range or address. A range given only as a size is placed directly in the resource that the request names (see resource.Collection.Place).
func placeSpace(c *resource.Change, t *schema.Type, within *store.Resource, members map[string]json.RawMessage) (*store.Resource, error) {
	if within.Collection != "configurations" && within.Collection != "blocks" {
		return within, nil
	}
	o := t.New()
	spanned, ok := o.(schema.Spanned)
	if _, problems := t.Decode(o, members, true); len(problems) > 0 {
		return nil, problem.Join(problems)
	}
	if !ok {
		return within, nil
	}
	field := "range"
	if t.ByName[field] == nil {
		field = "address"
	}
	low, high := spanned.Span()
	if !low.IsValid() || !high.IsValid() {
		if _, there := members[field]; there {
			return within, nil
		}
		return nil, problem.Missing(field)
	}
	at, err := smallestBlock(c.Tx, within, space.Range{Low: low, High: high}, t.Collection == "blocks")
	if err != nil || t.Collection == "blocks" {
		return at, err
	}
	if at.Collection != "blocks" {
		return nil, problem.BadRequest("IpRangeOutsideParent", "%s: %s is not in a block of %s", field,
			space.Range{Low: low, High: high}, problem.Describe(within.ID, within.Name))
	}
	if t.Collection == "networks" {
		return at, nil
	}
	configuration := within.ID
	if within.Configuration != 0 {
		configuration = within.Configuration
	}
	network, err := NetworkOf(c.Tx, configuration, low)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem.BadRequest("AddressNotInNetwork", "%s: %s is not in a network", field, low)
	}
	return network, err
}

// smallestBlock returns the smallest block that contains a range, within a configuration or block. It returns within if no block below it
// contains the range. With larger, a block that equals the range does not count.
func smallestBlock(tx *store.Tx, within *store.Resource, r space.Range, larger bool) (*store.Resource, error) {
	if within.Collection == "blocks" && !RangeOf(within).Contains(r) {
		return nil, problem.Field("IpRangeOutsideParent", "range", "%s is outside %s", r, problem.Describe(within.ID, spanOf(within)))
	}
	for {
		found, err := tx.ListBelow(within.ID, "blocks", store.AddrKey(r.Low), store.AddrKey(r.High))
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(found, func(b *store.Resource) bool {
			return RangeOf(b).Contains(r) && (!larger || RangeOf(b) != r)
		})
		if i < 0 {
			return within, nil
		}
		within = found[i]
	}
}
