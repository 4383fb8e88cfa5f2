package resource

import (
	"fmt"
	"maps"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// SubQuery returns the query of a subcollection, limited to the resources that the caller may see.
func (a *API) SubQuery(s *Sub, id int64, caller Caller) store.Query {
	q := store.Query{From: store.Resources}
	if from := a.source(s); from != store.Resources {
		where := store.HasParent(id)
		switch s.Relation {
		case History:
			where = store.Touching{Resource: id}
		case Computed: // its resources are found in the transaction (Found)
			where = store.All{}
		case Unbuilt, Children, Linked, Linking:
		}
		q.From, q.Where = from, conjoin(where, a.visibility(a.byName[s.Items[0]], caller))
		return q
	}
	var all store.All
	switch s.Relation {
	case Children:
		all = append(all, store.HasParent(id))
	case Linked:
		all = append(all, store.LinkedFrom{Source: id, Field: s.Field})
	case Linking:
		var either store.Any
		for _, field := range s.Fields() {
			either = append(either, store.LinksTo{Targets: []int64{id}, Field: field})
		}
		if len(either) == 1 {
			all = append(all, either[0])
		} else {
			all = append(all, either)
		}
	case Computed: // its resources are found in the transaction (Found)
	}
	if s.Items[0] != "*" {
		all = append(all, a.inCollections(s.Items, caller))
	} else {
		all = append(all, a.visible(caller))
	}
	q.Where = all
	if s.From != "" {
		q.From = s.From
	}
	return q
}

// source returns the table of a subcollection's resources.
func (a *API) source(s *Sub) store.Source {
	if s.Items[0] == "*" {
		return store.Resources
	}
	return a.byName[s.Items[0]].From
}

// NarrowComputed narrows the query of a computed subcollection to the resources that it finds. It returns other queries unchanged.
func (a *API) NarrowComputed(tx *store.Tx, s *Sub, id int64, q store.Query) (store.Query, error) {
	if s == nil || s.Relation != Computed {
		return q, nil
	}
	above, err := tx.Get(id)
	if err != nil {
		return q, err
	}
	if s.Where != nil {
		within, err := s.Where(tx, a, above)
		q.Where = store.All{within, q.Where}
		return q, err
	}
	ids, err := s.Find(tx, a, above)
	q.Where = store.All{store.IDs(ids), q.Where}
	return q, err
}

func (a *API) inCollections(names []string, caller Caller) store.Expr {
	var either store.Any
	for _, name := range names {
		either = append(either, conjoin(store.InCollection(name), a.visibilityAlone(a.byName[name], caller)))
	}
	if len(either) == 1 {
		return either[0]
	}
	return either
}

// VisibleResources returns the given resources that a caller sees, by id.
func (a *API) VisibleResources(tx *store.Tx, caller Caller, ids []int64) (map[int64]*store.Resource, error) {
	seen := make(map[int64]*store.Resource, len(ids))
	err := tx.List(store.Query{From: store.Resources, Where: append(a.visible(caller), store.IDs(ids))}, func(r *store.Resource) error {
		seen[r.ID] = r.Clone()
		return nil
	})
	return seen, err
}

// visible returns the condition for lists over all collections. Collections with the same condition share one term.
func (a *API) visible(caller Caller) (all store.All) {
	var seen []store.Expr
	var of [][]string
	for _, c := range a.collections {
		if c.From != store.Resources {
			continue
		}
		one := a.visibility(c, caller)
		if c.Hidden {
			one = store.False
		}
		if one == nil {
			continue
		}
		at := slices.IndexFunc(seen, func(e store.Expr) bool { return store.EqualConditions(e, one) })
		if at < 0 {
			at = len(seen)
			seen, of = append(seen, one), append(of, nil)
		}
		of[at] = append(of[at], c.Name)
	}
	for i, one := range seen {
		outside := store.Not{Expr: store.InCollection(of[i]...)}
		if one == store.False {
			all = append(all, outside)
			continue
		}
		all = append(all, store.Any{outside, one})
	}
	return all
}

// Sees reports which of the given resources a limited caller sees, by id.
func (a *API) Sees(tx *store.Tx, heads []store.Head, caller Caller) (map[int64]bool, error) {
	var lying []store.Head // those whose visibility depends on their place
	var others []int64
	for _, h := range heads {
		if c := a.byName[h.Collection]; c != nil && c.Guard == AnyCaller {
			lying = append(lying, h)
		} else {
			others = append(others, h.ID)
		}
	}
	seen, err := caller.Rights.Sees(tx, lying)
	if err != nil || len(others) == 0 {
		return seen, err
	}
	more, err := tx.IDs(others, a.visible(caller))
	maps.Copy(seen, more)
	return seen, err
}

// ListQuery returns the query of a list target and the types that it may contain.
func (a *API) ListQuery(t Target, caller Caller) (store.Query, Scope) {
	switch {
	case t.Root:
		return store.Query{From: store.Resources, Where: a.visible(caller)}, Scope{a, a.AllTypes(), caller}
	case t.Sub != nil:
		return a.SubQuery(t.Sub, t.ID, caller), Scope{a, a.ItemTypes(t.Sub), caller}
	case t.Collection.From != store.Resources:
		return store.Query{From: t.Collection.From, Where: conjoin(store.All{}, a.visibility(t.Collection, caller))},
			Scope{a, t.Collection.Types, caller}
	}
	return store.Query{From: store.Resources, Where: a.inCollections([]string{t.Collection.Name}, caller)},
		Scope{a, a.TargetTypes(t), caller}
}

// Exists returns a 404 problem if the resource is not in the collection or the caller may not see it.
func (a *API) Exists(tx *store.Tx, c *Collection, id int64, caller Caller) error {
	_, err := a.find(tx, c, id, caller)
	return err
}

// FindSingle returns the single resource of a type, such as settings; nil if it does not exist.
func (a *API) FindSingle(tx *store.Tx, typeName string) (schema.Object, error) {
	t := a.types[typeName]
	if t == nil {
		return nil, nil
	}
	row, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection(t.Collection),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: typeName}}})
	if row == nil || err != nil {
		return nil, err
	}
	return t.Object(row)
}

// Visible reads a resource of any collection that the caller may see.
func (a *API) Visible(tx *store.Tx, id int64, caller Caller) (*store.Resource, error) {
	return a.find(tx, nil, id, caller)
}

// JoinIn joins the resource that a request names to the resource above, and returns the joined resource.
func (a *API) JoinIn(c *Change, at Target) (*store.Resource, error) {
	above, err := a.find(c.Tx, at.Collection, at.ID, c.Caller)
	if err != nil {
		return nil, err
	}
	if at.Item, err = at.Sub.Join(c, above); err != nil {
		return nil, err
	}
	return a.Locate(c.Tx, at, c.Caller)
}

// Unjoin removes the join of a resource to the resource above.
func (a *API) Unjoin(c *Change, at Target) error {
	above, err := a.find(c.Tx, at.Collection, at.ID, c.Caller)
	if err != nil {
		return err
	}
	return at.Sub.Remove(c, above, at.Item)
}

// find reads one resource of a collection; nil means any collection.
func (a *API) find(tx *store.Tx, c *Collection, id int64, caller Caller) (*store.Resource, error) {
	if c != nil && c.From != store.Resources {
		return a.findIn(tx, c, id, a.visibility(c, caller))
	}
	r, err := tx.GetShown(id)
	if err != nil {
		return nil, store.Problem(err, "resource %d does not exist%s", id, phraseBelow(c))
	}
	if c == nil && a.byName[r.Collection].Hidden {
		return nil, store.Problem(store.ErrNotFound, "resource %d does not exist", id)
	}
	if seen := a.visibility(a.byName[r.Collection], caller); seen != nil {
		n, err := tx.Count(store.Query{From: store.Resources, Where: store.All{hasID(id), seen}})
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, store.Problem(store.ErrNotFound, "resource %d does not exist%s", id, phraseBelow(c))
		}
	}
	if c != nil && r.Collection != c.Name && a.byName[r.Collection].Hidden { // hidden resources are not mentioned elsewhere
		return nil, store.Problem(store.ErrNotFound, "resource %d does not exist%s", id, phraseBelow(c))
	}
	if c != nil && r.Collection != c.Name {
		where := "in " + a.byName[r.Collection].Path()
		if a.byName[r.Collection].Inner {
			where = fmt.Sprintf("below %d", r.Parent)
		}
		p := problem.NotFound("resource %d does not exist%s: it is %s", id, phraseBelow(c), where)
		p.Code = "WrongResourceCollection"
		return nil, p
	}
	return r, nil
}

func hasID(id int64) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "eq", Value: id}
}

func phraseBelow(c *Collection) string {
	if c == nil {
		return ""
	}
	return " in " + c.Path()
}

// FindIn reads one resource of a collection whose rows have a source of their own.
func (a *API) FindIn(tx *store.Tx, c *Collection, id int64) (*store.Resource, error) {
	return a.findIn(tx, c, id, nil)
}

// findIn is FindIn with an additional condition; nil adds none.
func (a *API) findIn(tx *store.Tx, c *Collection, id int64, by store.Expr) (found *store.Resource, err error) {
	err = tx.List(store.Query{From: c.From, Where: conjoin(hasID(id), by), Limit: 1}, func(r *store.Resource) error {
		found = r.Clone()
		return nil
	})
	if err == nil && found == nil {
		err = store.Problem(store.ErrNotFound, "resource %d does not exist%s", id, phraseBelow(c))
	}
	return found, err
}

// Locate reads the resource that a target names.
func (a *API) Locate(tx *store.Tx, t Target, caller Caller) (*store.Resource, error) {
	if t.Sub == nil {
		return a.find(tx, t.Collection, t.ID, caller)
	}
	if err := a.Exists(tx, t.Collection, t.ID, caller); err != nil {
		return nil, err
	}
	q, err := a.NarrowComputed(tx, t.Sub, t.ID, a.SubQuery(t.Sub, t.ID, caller))
	if err != nil {
		return nil, err
	}
	q.Where = store.All{hasID(t.Item), q.Where}
	n, err := tx.Count(q)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, problem.NotFound("resource %d does not exist in %s/%d/%s", t.Item, t.Collection.Name, t.ID, t.Sub.Name)
	}
	if q.From != store.Resources {
		return a.findIn(tx, a.CollectionOf(a.ItemTypes(t.Sub)[0]), t.Item, q.Where)
	}
	return tx.Get(t.Item)
}
