package dns

import (
	"encoding/json"
	"fmt"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// RestrictedRanges is where views and zones take, in their own body, which address space puts hosts into them, as release 9.6 has it. It is
// kept with the blocks and networks (restrictedZones), and listed below the view or zone (restrictedRanges).
type RestrictedRanges struct {
	// RestrictedRanges are the blocks and networks whose hosts are put into it, by their ids. A body that gives them makes them all that it
	// has.
	RestrictedRanges schema.RefList `api:"restrictedRanges,writeOnly"`

	// wantedRanges are those of the request, for keepRanges to link.
	requestedRanges schema.RefList
}

// holdRanges keeps the ranges of a request for after: they are no references of the view or zone itself.
func (x *RestrictedRanges) extractRanges() {
	x.requestedRanges, x.RestrictedRanges = x.RestrictedRanges, schema.RefList{}
}

// keepRanges links what the request gives, and takes off what else is linked.
func (x *RestrictedRanges) saveRanges(c *resource.Change, id int64) error {
	if !x.requestedRanges.Given {
		return nil
	}
	in := c.API.Collection(c.Type.Collection)
	at := resource.Target{Collection: in, Sub: in.Sub("restrictedRanges"), ID: id}
	wanted := map[int64]bool{}
	for i, item := range x.requestedRanges.Items {
		if item.ID == 0 {
			return problem.Field("InvalidInlinedResource", "restrictedRanges", "entry %d names no block or network by its id", i)
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
	seen, err := c.API.Seen(c.Tx, c.Caller, there) // others are not this caller's to take off
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
		if err := c.API.Unlink(c.FollowingAsked(), at); err != nil {
			return err
		}
	}
	for i, item := range x.requestedRanges.Items {
		if !wanted[item.ID] {
			continue
		}
		delete(wanted, item.ID) // also where it is named twice
		n := c.FollowingAsked()
		n.Sent = map[string]json.RawMessage{"id": json.RawMessage(fmt.Sprint(item.ID))}
		if _, err := c.API.Link(n, at); err != nil {
			return problem.At(fmt.Sprintf("restrictedRanges[%d]", i), err)
		}
	}
	return nil
}
