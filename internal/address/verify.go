package address

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"portolan/internal/naming"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// maxFaults bounds what Verify lists.
const maxFaults = 100

// verifier looks for faults in one snapshot.
type verifier struct {
	api    *resource.API
	tx     *store.Tx
	faults []string
	// heads are those of resources above others, as far as they were read.
	heads map[int64]store.Head
}

func (v *verifier) fault(format string, args ...any) {
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// Verify checks every invariant of the data in a snapshot and lists what is wrong, in sentences.
func Verify(tx *store.Tx, api *resource.API) (faults []string, err error) {
	v := &verifier{api: api, tx: tx, heads: map[int64]store.Head{}}
	for _, check := range []func() error{v.database, v.resources, v.references, v.spans, v.extensions, v.names, v.unique, v.history,
		v.images, v.others} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return v.faults, nil
}

// extensions looks at what the extensions keep beside the rows.
func (v *verifier) extensions() error { return v.tx.Verify(v.fault) }

// none reports every row of a query as a fault: the query gives a number and a text.
func (v *verifier) none(format, query string, args ...any) error {
	return faulty(v.tx, v.fault, format, query, args...)
}

// faulty reports every row of a query as a fault: the query gives a number and a text.
func faulty(tx *store.Tx, fault func(string, ...any), format, query string, args ...any) error {
	return tx.Each(func(scan func(...any) error) error {
		var id int64
		var text string
		if err := scan(&id, &text); err != nil {
			return err
		}
		fault(format, id, text)
		return nil
	}, query, args...)
}

// database asks the database to check itself.
func (v *verifier) database() error {
	damage, err := v.tx.Damage()
	for _, text := range damage {
		v.fault("the database is damaged: %s", text)
	}
	return err
}

// verifyAtOnce is how many resources are looked at together: what they need of others is read for all of them.
const verifyAtOnce = 500

// resources looks at every row.
func (v *verifier) resources() error {
	rows := make([]*store.Resource, 0, verifyAtOnce)
	look := func() error {
		err := v.checkRows(rows)
		rows = rows[:0]
		return err
	}
	if err := v.tx.List(store.Query{From: store.Resources}, func(r *store.Resource) error {
		if rows = append(rows, r.Clone()); len(rows) < verifyAtOnce {
			return nil
		}
		return look()
	}); err != nil {
		return err
	}
	return look()
}

// checkRows looks at some rows: that each is of a declared type, can be read, says in its columns what its body
// says, lies below a parent that may have it, refers to what the table of references says, and is what the
// history says it is.
func (v *verifier) checkRows(rows []*store.Resource) error {
	var ids, above []int64
	for _, r := range rows {
		ids = append(ids, r.ID)
		if _, known := v.heads[r.Parent]; !known && r.Parent > resource.RootID {
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
	references, err := v.tx.Linked(ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t, ok := v.api.Type(r.Type)
		if !ok || t.Collection.Name != r.Collection {
			v.fault("resource %d has the type %s in %s, which is not declared", r.ID, r.Type, r.Collection)
			continue
		}
		v.row(r)
		v.place(r, t.ParentCollections())
		v.links(r, t, references[r.ID])
	}
	return v.versions(rows, references)
}

// maxHeads bounds the heads that are kept.
const maxHeads = 100_000

// row checks that a row's columns follow from its body.
func (v *verifier) row(r *store.Resource) {
	again, err := v.api.Again(r)
	switch {
	case err != nil:
		v.fault("resource %d cannot be read: %v", r.ID, err)
	case !bytes.Equal(again.Low, r.Low) || !bytes.Equal(again.High, r.High):
		v.fault("%s %d takes up another space than its body says", r.Type, r.ID)
	case again.Key != r.Key:
		v.fault("%s %d is looked up by %q and should be by %q", r.Type, r.ID, r.Key, again.Key)
	}
}

// place checks what a resource lies below.
func (v *verifier) place(r *store.Resource, may []string) {
	if r.Parent <= resource.RootID {
		return
	}
	head, ok := v.heads[r.Parent]
	switch {
	case !ok:
		v.fault("resource %d lies below %d, which is not there", r.ID, r.Parent)
		return
	case !slices.Contains(may, head.Collection):
		v.fault("%s %d lies below %s %d", r.Type, r.ID, head.Type, r.Parent)
	}
	if head.Configuration != r.Configuration && head.Collection != "configurations" && r.Configuration != 0 {
		v.fault("%s %d is in configuration %d, its parent in %d", r.Type, r.ID, r.Configuration, head.Configuration)
	}
}

// links checks that the single references in a row and in the table of references are the same.
func (v *verifier) links(r *store.Resource, t *resource.Type, references []store.Ref) {
	for _, ref := range r.Refs {
		if !slices.Contains(references, ref) {
			v.fault("the reference %s of resource %d is not in the table of references", ref.Field, r.ID)
		}
	}
	for _, ref := range references {
		f, ok := t.Field(ref.Field)
		if ok && f.Kind == resource.Reference && !slices.Contains(r.Refs, ref) {
			v.fault("the reference %s of resource %d is in the table of references and not in its row", ref.Field, r.ID)
		}
	}
}

func (v *verifier) references() error {
	if err := v.none("a reference of resource %d, %s, leads nowhere",
		"SELECT f.source, f.field FROM reference f LEFT JOIN resource r ON r.id = f.target WHERE r.id IS NULL"); err != nil {
		return err
	}
	return v.none("resource %d is not there, and refers to something by %s",
		"SELECT f.source, f.field FROM reference f LEFT JOIN resource r ON r.id = f.source WHERE r.id IS NULL")
}

// spans checks that siblings never overlap and that everything lies within its parent.
func (v *verifier) spans() error {
	last := map[bool]*store.Resource{} // of what takes space, and of what lies over it
	err := v.tx.List(store.Query{From: store.Resources,
		Where: store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, Op: "ne"},
		Order: []store.Order{{By: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}},
			{By: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}}},
	}, func(r *store.Resource) error {
		if r.Collection == "ipGroups" { // which may lie over ranges
			return nil
		}
		takes := spaced(r)
		if l := last[takes]; l != nil && l.Parent == r.Parent && string(r.Low) <= string(l.High) {
			v.fault("%s %d, %s, overlaps %s %d, %s", r.Type, r.ID, spanOf(r), l.Type, l.ID, spanOf(l))
		}
		last[takes] = r.Clone()
		return nil
	})
	if err != nil {
		return err
	}
	return v.none("resource %d, of type %s, does not lie within its parent",
		"SELECT r.id, r.type FROM resource r JOIN resource p ON p.id = r.parent WHERE r.low IS NOT NULL AND p.low IS NOT NULL AND (r.low < "+
			"p.low OR r.high > p.high)")
}

// names checks that absolute names follow names and zones.
func (v *verifier) names() error {
	zones := map[int64]string{}
	return v.tx.List(store.Query{From: store.Resources, Where: store.Any{store.InCollection("zones"), store.InCollection("resourceRecords")}},
		func(r *store.Resource) error {
			if r.Type == "ExternalHostsZone" || r.Type == "InternalRootZone" || r.Type == "ResponsePolicyZone" { // they have no absoluteName
				return nil
			}
			zone, known := zones[r.Parent]
			if !known {
				_, name, err := above(v.tx, r.Parent)
				if errors.Is(err, store.ErrNotFound) { // a fault already
					return nil
				}
				if err != nil {
					return err
				}
				if len(zones) > maxHeads {
					clear(zones)
				}
				zone, zones[r.Parent] = name, name
			}
			if name, want := absoluteName(r), naming.Join(r.Name, zone); name != want || r.Key != naming.Key(want) {
				v.fault("%s %d is called %q and should be %q", r.Type, r.ID, name, want)
			}
			return nil
		})
}

// unique checks that hardware addresses and client identifiers stand once in a configuration.
func (v *verifier) unique() error {
	return v.none("configuration %d has more than one client %q",
		"SELECT configuration, key FROM resource WHERE collection IN ('macAddresses', 'clientIdentifiers') GROUP BY configuration, "+
			"collection, key HAVING count(*) > 1")
}
