package resource

import (
	"bytes"
	"fmt"
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// maxProblems is the maximum number of problems that Verify lists.
const maxProblems = 100

// verifier collects problems in one snapshot.
type verifier struct {
	api      *API
	tx       *store.Tx
	problems []string
	// heads caches the heads of parent resources.
	heads map[int64]store.Head
}

func (v *verifier) addProblem(format string, args ...any) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	}
}

// Verify checks every invariant of the data in a snapshot, including those of other packages, and lists the faults, in sentences.
func (a *API) Verify(tx *store.Tx) (faults []string, err error) {
	v := &verifier{api: a, tx: tx, heads: map[int64]store.Head{}}
	if err := tx.Verify(v.addProblem); err != nil {
		return nil, err
	}
	if err := tx.RunShielded(v.checkAll); store.IsDamage(err) {
		v.addProblem("resources after damaged data were not checked: %v", err)
	} else if err != nil {
		return nil, err
	}
	return v.problems, nil
}

// verifyAtOnce is the number of resources that are checked together. The data that they need of other resources is read once for all of
// them.
const verifyAtOnce = 500

// checkAll checks every row.
func (v *verifier) checkAll() error {
	rows := make([]*store.Resource, 0, verifyAtOnce)
	flush := func() error {
		err := v.checkRows(rows)
		rows = rows[:0]
		return err
	}
	if err := v.tx.List(store.Query{From: store.Resources}, func(r *store.Resource) error {
		if rows = append(rows, r.Clone()); len(rows) < verifyAtOnce {
			return nil
		}
		return flush()
	}); err != nil {
		return err
	}
	return flush()
}

// checkRows checks rows: the type is declared, the body can be decoded, columns equal the body, the parent may have such children,
// references equal the table of references, and the row equals its last image in the history.
func (v *verifier) checkRows(rows []*store.Resource) error {
	var ids, above []int64
	for _, r := range rows {
		ids = append(ids, r.ID)
		if _, known := v.heads[r.Parent]; !known && r.Parent > RootID {
			above = append(above, r.Parent)
		}
	}
	if len(v.heads) > maxHeads {
		clear(v.heads)
	}
	slices.Sort(above)
	if err := v.tx.Heads(slices.Compact(above), v.heads); err != nil {
		return err
	}
	references, err := v.tx.ListReferences(ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t, ok := v.api.Type(r.Type)
		if !ok || t.Collection != r.Collection {
			v.addProblem("resource %d has the type %s in %s, which is not declared", r.ID, r.Type, r.Collection)
			continue
		}
		v.checkRow(r)
		v.checkParent(r, v.api.ParentsOf(t))
		v.checkLinks(r, t, references[r.ID])
	}
	return v.checkHistory(rows, references)
}

// maxHeads is the maximum number of cached heads.
const maxHeads = 100_000

// checkRow checks that a row's columns match its body.
func (v *verifier) checkRow(r *store.Resource) {
	again, err := v.api.RebuildRow(r)
	switch {
	case err != nil:
		v.addProblem("resource %d cannot be read: %v", r.ID, err)
	case !bytes.Equal(again.Low, r.Low) || !bytes.Equal(again.High, r.High):
		v.addProblem("%s %d has another address range than its body", r.Type, r.ID)
	case again.Key != r.Key:
		v.addProblem("%s %d has the key %q; it should be %q", r.Type, r.ID, r.Key, again.Key)
	}
}

// checkParent checks the parent of a resource.
func (v *verifier) checkParent(r *store.Resource, may []string) {
	if r.Parent <= RootID {
		return
	}
	head, ok := v.heads[r.Parent]
	switch {
	case !ok:
		v.addProblem("resource %d has the parent %d, which does not exist", r.ID, r.Parent)
		return
	case !slices.Contains(may, head.Collection):
		v.addProblem("%s %d has the parent %s %d, which cannot contain it", r.Type, r.ID, head.Type, r.Parent)
	}
	if head.Configuration != r.Configuration && !v.isScope(head.Collection) && r.Configuration != 0 {
		v.addProblem("%s %d is in configuration %d, its parent in %d", r.Type, r.ID, r.Configuration, head.Configuration)
	}
}

// isScope reports whether the resources of a collection are scopes, which are not in another scope.
func (v *verifier) isScope(collection string) bool {
	c := v.api.Collection(collection)
	return c != nil && c.Scope
}

func (v *verifier) checkLinks(r *store.Resource, t *schema.Type, references []store.Ref) {
	for _, ref := range r.Refs {
		if !slices.Contains(references, ref) {
			v.addProblem("the reference %s of resource %d is missing in the table of references", ref.Field, r.ID)
		}
	}
	for _, ref := range references {
		f, ok := t.Field(ref.Field)
		if ok && f.Kind == schema.Reference && !slices.Contains(r.Refs, ref) {
			v.addProblem("the reference %s of resource %d is in the table of references, but not in its row", ref.Field, r.ID)
		}
	}
}
