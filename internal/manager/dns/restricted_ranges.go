package dns

import (
	"encoding/json"
	"fmt"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// RestrictedRanges is the field of views and zones, as in release 9.6, for the address space whose hosts are limited to them. It is stored
// as restrictedZones of the blocks and networks, and listed as the sub-collection restrictedRanges.
type RestrictedRanges struct {
	// RestrictedRanges is the complete list of blocks and networks, by id, whose hosts are limited to this view or zone.
	RestrictedRanges schema.RefList `api:"restrictedRanges,writeOnly"`

	// requestedRanges are the ranges of the request; saveRanges links them.
	requestedRanges schema.RefList
}

// extractRanges moves the ranges out of the field, because they are not references of the view or zone itself.
func (x *RestrictedRanges) extractRanges() {
	x.requestedRanges, x.RestrictedRanges = x.RestrictedRanges, schema.RefList{}
}

// saveRanges links the requested ranges and unlinks all others.
func (x *RestrictedRanges) saveRanges(c *resource.Change, id int64) error {
	if !x.requestedRanges.IsSet {
		return nil
	}
	in := c.API.Collection(c.Type.Collection)
	at := resource.Target{Collection: in, Sub: in.Sub("restrictedRanges"), ID: id}
	wanted := map[int64]bool{}
	for i, item := range x.requestedRanges.Items {
		if item.ID == 0 {
			return problem.Field("InvalidInlinedResource", "restrictedRanges", "entry %d must be the id of a block or network", i)
		}
		wanted[item.ID] = true
	}
	var there []int64
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.LinksTo{Targets: []int64{id}, Field: "restrictedZones"}},
		func(r *store.Resource) error {
			there = append(there, r.ID)
			return nil
		}); err != nil {
		return err
	}
	seen, err := c.API.VisibleResources(c.Tx, c.Caller, there) // the caller cannot unlink ranges that are hidden from it
	if err != nil {
		return err
	}
	for _, block := range there {
		if seen[block] == nil {
			continue
		}
		if wanted[block] {
			delete(wanted, block)
			continue
		}
		at.Item = block
		if err := c.API.Unlink(c.FollowingWithOptions(), at); err != nil {
			return err
		}
	}
	for i, item := range x.requestedRanges.Items {
		if !wanted[item.ID] {
			continue
		}
		delete(wanted, item.ID) // also skips a repeated entry
		n := c.FollowingWithOptions()
		n.Sent = map[string]json.RawMessage{"id": json.RawMessage(fmt.Sprint(item.ID))}
		if _, err := c.API.Link(n, at); err != nil {
			return problem.AddPlace(fmt.Sprintf("restrictedRanges[%d]", i), err)
		}
	}
	return nil
}
