package resource

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/engine/store"
)

// checkHistory checks that resources equal their last image in the history. Changes before the horizon of the history are unknown.
func (v *verifier) checkHistory(rows []*store.Resource, references map[int64][]store.Ref) error {
	horizon, err := v.tx.Horizon()
	if err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	images, err := v.tx.LastImages(ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if c := v.api.byName[r.Collection]; c != nil && c.Unlogged {
			continue
		}
		text, ok := images[r.ID]
		if !ok {
			if horizon.At == 0 || horizon.Settled == 0 && r.Version > horizon.Transaction {
				v.addProblem("resource %d of type %s differs from the history: no change wrote it", r.ID, r.Type)
			}
			continue
		}
		if what := differingPart(r, text, references[r.ID]); what != "" {
			v.addProblem("resource %d of type %s differs from the history: %s differs", r.ID, r.Type, what)
		}
	}
	return nil
}

// differingPart returns the part of a resource that differs from its image in the history; empty if they are equal.
func differingPart(r *store.Resource, text []byte, references []store.Ref) string {
	var was struct {
		store.Resource
		Body json.RawMessage `json:"body"`
	}
	if json.Unmarshal(text, &was) != nil {
		return "the unreadable image"
	}
	switch {
	case was.Name != r.Name:
		return "the name"
	case was.Type != r.Type || was.Collection != r.Collection:
		return "the type"
	case was.Parent != r.Parent || was.Configuration != r.Configuration:
		return "the place"
	case string(was.Low) != string(r.Low) || string(was.High) != string(r.High) || was.Key != r.Key:
		return "the space or the key"
	case string(was.Body) != string(r.Body):
		return "the body"
	case !sameRefs(slices.Concat(was.Refs, was.Links), references):
		return "a reference"
	}
	return ""
}

// sameRefs reports whether two lists hold the same references, in any order.
func sameRefs(a, b []store.Ref) bool {
	order := func(x, y store.Ref) int {
		if c := strings.Compare(x.Field, y.Field); c != 0 {
			return c
		}
		return int(x.Target - y.Target)
	}
	a, b = slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
