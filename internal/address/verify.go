package address

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/naming"
	"portolan/internal/resource"
	"portolan/internal/space"
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
	for _, check := range []func() error{v.database, v.resources, v.references, v.spans, v.free, v.usage, v.names, v.unique, v.history,
		v.images, v.others} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return v.faults, nil
}

// none reports every row of a query as a fault: the query gives a number and a text.
func (v *verifier) none(format, query string, args ...any) error {
	return v.tx.Each(func(scan func(...any) error) error {
		var id int64
		var text string
		if err := scan(&id, &text); err != nil {
			return err
		}
		v.fault(format, id, text)
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

// free checks that the free space of every block and network is exactly what is not used in it. What is
// used and what is free is read once for all of them, in the order of the containers.
func (v *verifier) free() error {
	if err := v.none("container %d has free space and is not there%s",
		"SELECT DISTINCT f.container, '' FROM free f LEFT JOIN resource r ON r.id = f.container WHERE r.id IS NULL"); err != nil {
		return err
	}
	containers := map[int64]*walk{}
	if err := v.tx.List(store.Query{From: store.Resources, Where: store.Any{store.InCollection("blocks"), store.InCollection("networks")}},
		func(r *store.Resource) error {
			w := &walk{id: r.ID, kind: r.Type, whole: space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}}
			if r.Collection == "networks" {
				w.whole = space.Hosts(w.whole)
			}
			w.next = w.whole.Low
			containers[r.ID] = w
			return nil
		}); err != nil {
		return err
	}
	if err := v.tx.Stream(func(scan func(...any) error) error {
		var container int64
		var low, high []byte
		var free bool
		if err := scan(&container, &low, &high, &free); err != nil {
			return err
		}
		if w := containers[container]; w != nil { // what lies elsewhere is another fault, or none
			w.step(v, store.KeyAddr(low), store.KeyAddr(high), free)
		}
		return nil
	}, "SELECT parent, low, high, 0 FROM resource WHERE low IS NOT NULL AND collection IN ('blocks', 'networks', 'addresses')"+
		" UNION ALL SELECT container, low, high, 1 FROM free ORDER BY 1, 2"); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(containers)) {
		containers[id].end(v)
	}
	return nil
}

// walk goes through a container's used and free intervals: they must follow one another without a gap or an
// overlap, and no two free ones may touch.
type walk struct {
	id      int64
	kind    string
	whole   space.Range
	next    netip.Addr
	wasFree bool
}

func (w *walk) step(v *verifier, from, to netip.Addr, free bool) {
	if from != w.next || free && w.wasFree {
		v.fault("the free space of %s %d is wrong at %s: expected %s", w.kind, w.id, from, w.next)
	}
	w.next, w.wasFree = to.Next(), free
}

func (w *walk) end(v *verifier) {
	end := w.whole.High.Next()
	if w.next != end && (w.next.IsValid() || end.IsValid()) {
		v.fault("the space of %s %d ends at %s, its free and used space before %s", w.kind, w.id, w.whole.High, orEnd(w.next))
	}
}

// usage checks that what is written of the usage of blocks and networks is what counting gives.
func (v *verifier) usage() error {
	counted, err := v.tx.CountUsage()
	if err != nil {
		return err
	}
	if err := v.none("the usage of container %d is kept, which is not there%s",
		"SELECT DISTINCT u.container, '' FROM usage u LEFT JOIN resource r ON r.id = u.container WHERE r.id IS NULL"); err != nil {
		return err
	}
	written, err := v.tx.Usage(slices.Sorted(maps.Keys(counted)))
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(counted)) {
		if !maps.Equal(counted[id], written[id]) && len(counted[id])+len(written[id]) > 0 {
			v.fault("the usage of resource %d is kept as %v and is %v", id, written[id], counted[id])
		}
	}
	return nil
}

func orEnd(a netip.Addr) string {
	if !a.IsValid() {
		return "the end of all addresses"
	}
	return a.String()
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
