package address

import (
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
}

func (v *verifier) fault(format string, args ...any) {
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// Verify checks every invariant of the data in a snapshot and lists what is wrong, in sentences.
func Verify(tx *store.Tx, api *resource.API) (faults []string, err error) {
	v := &verifier{api: api, tx: tx}
	for _, check := range []func() error{v.database, v.resources, v.references, v.spans, v.free, v.usage, v.names, v.history, v.credentials} {
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

// resources checks that every row is of a declared type, can be read, and lies below a parent that
// may have it.
func (v *verifier) resources() error {
	parents := map[string]map[string]bool{}
	for _, c := range v.api.Collections() {
		parents[c.Name] = map[string]bool{}
		for _, p := range c.Parents {
			parents[c.Name][p] = true
		}
	}
	return v.tx.List(store.Query{From: store.Resources}, func(r *store.Resource) error {
		t, ok := v.api.Type(r.Type)
		if !ok || t.Collection.Name != r.Collection {
			v.fault("resource %d has the type %s in %s, which is not declared", r.ID, r.Type, r.Collection)
			return nil
		}
		if _, err := v.api.Object(r); err != nil {
			v.fault("resource %d cannot be read: %v", r.ID, err)
		}
		if r.Parent <= resource.RootID {
			return nil
		}
		head, err := v.tx.Head(r.Parent)
		if errors.Is(err, store.ErrNotFound) {
			v.fault("resource %d lies below %d, which is not there", r.ID, r.Parent)
			return nil
		}
		if err != nil {
			return err
		}
		if !parents[r.Collection][head.Collection] && !(r.Collection == "sessions" && head.Collection == "users") {
			v.fault("%s %d lies below %s %d", r.Type, r.ID, head.Type, r.Parent)
		}
		if head.Configuration != r.Configuration && head.Collection != "configurations" && r.Configuration != 0 {
			v.fault("%s %d is in configuration %d, its parent in %d", r.Type, r.ID, r.Configuration, head.Configuration)
		}
		for _, ref := range r.Refs {
			var n int
			if err := v.tx.QueryRow("SELECT count(*) FROM reference WHERE source = ? AND field = ? AND target = ?", r.ID, ref.Field, ref.Target).Scan(&n); err != nil {
				return err
			}
			if n != 1 {
				v.fault("the reference %s of resource %d is not in the table of references", ref.Field, r.ID)
			}
		}
		return nil
	})
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
		Order: []store.Order{{By: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}}, {By: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}}},
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
		"SELECT r.id, r.type FROM resource r JOIN resource p ON p.id = r.parent WHERE r.low IS NOT NULL AND p.low IS NOT NULL AND (r.low < p.low OR r.high > p.high)")
}

// free checks that the free space of every block and network is exactly what is not used in it.
func (v *verifier) free() error {
	if err := v.none("container %d has free space and is not there%s",
		"SELECT DISTINCT f.container, '' FROM free f LEFT JOIN resource r ON r.id = f.container WHERE r.id IS NULL"); err != nil {
		return err
	}
	return v.tx.List(store.Query{From: store.Resources, Where: store.Any{inCollection("blocks"), inCollection("networks")}}, func(r *store.Resource) error {
		whole := space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}
		if r.Collection == "networks" {
			whole = space.Hosts(whole)
		}
		return v.freeOf(r, whole)
	})
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

func inCollection(name string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"collection"}}, Op: "eq", Value: name}
}

// freeOf walks a container's used and free intervals together: they must follow one another without
// a gap or an overlap, and no two free ones may touch.
func (v *verifier) freeOf(r *store.Resource, whole space.Range) error {
	next, wasFree := whole.Low, false
	err := v.tx.Each(func(scan func(...any) error) error {
		var low, high []byte
		var free bool
		if err := scan(&low, &high, &free); err != nil {
			return err
		}
		from, to := store.KeyAddr(low), store.KeyAddr(high)
		if from != next || free && wasFree {
			v.fault("the free space of %s %d is wrong at %s: expected %s", r.Type, r.ID, from, next)
		}
		next, wasFree = to.Next(), free
		return nil
	}, "SELECT low, high, 0 FROM resource WHERE parent = ? AND low IS NOT NULL AND collection IN ('blocks', 'networks', 'addresses') UNION ALL SELECT low, high, 1 FROM free WHERE container = ? ORDER BY 1", r.ID, r.ID)
	if err != nil {
		return err
	}
	end := whole.High.Next()
	if next != end && (next.IsValid() || end.IsValid()) {
		v.fault("the space of %s %d ends at %s, its free and used space before %s", r.Type, r.ID, whole.High, orEnd(next))
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
	return v.tx.List(store.Query{From: store.Resources, Where: store.Any{inCollection("zones"), inCollection("resourceRecords")}}, func(r *store.Resource) error {
		if r.Type == "ExternalHostsZone" || r.Type == "InternalRootZone" || r.Type == "ResponsePolicyZone" { // they have no absoluteName
			return nil
		}
		_, zone, err := above(v.tx, r.Parent)
		if errors.Is(err, store.ErrNotFound) { // a fault already
			return nil
		}
		if err != nil {
			return err
		}
		if name, want := absoluteName(r), naming.Join(r.Name, zone); name != want || r.Key != naming.Key(want) {
			v.fault("%s %d is called %q and should be %q", r.Type, r.ID, name, want)
		}
		return nil
	})
}

// history checks that every change belongs to a transaction and every number is one given out.
func (v *verifier) history() error {
	for _, check := range [][3]string{
		{"change %d belongs to transaction %s, which does not have it", "SELECT c.seq, CAST(c.txn AS TEXT) FROM change c LEFT JOIN txn t ON t.id = c.txn WHERE t.id IS NULL OR c.seq < t.first OR c.seq > t.last", ""},
		{"transaction %d, %s, changed nothing", "SELECT id, operation FROM txn WHERE last < first", ""},
		{"resource %d, of type %s, has a number that was never given out", "SELECT id, type FROM resource WHERE id > ?", "resource"},
		{"transaction %d, %s, has a number that was never given out", "SELECT id, operation FROM txn WHERE id > ?", "txn"},
		{"resource %d, of type %s, is not what the history says it is", "SELECT r.id, r.type FROM resource r WHERE r.collection <> 'sessions' AND NOT EXISTS" +
			" (SELECT 1 FROM change c WHERE c.resource = r.id AND c.txn = r.version AND c.after IS NOT NULL)", ""},
	} {
		var args []any
		if check[2] != "" {
			mark, err := v.tx.Mark(check[2])
			if err != nil {
				return err
			}
			args = append(args, mark)
		}
		if err := v.none(check[0], check[1], args...); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) credentials() error {
	return v.none("user %d has a credential, %s, and is not there",
		"SELECT c.user_id, c.kind FROM credential c LEFT JOIN resource u ON u.id = c.user_id AND u.collection = 'users' WHERE u.id IS NULL")
}
