package store

import (
	"slices"
	"strings"
)

// expected are resources that a change has read for all of its rows at once (ExpectKeys, ExpectSpans). Each entry is removed when the
// change writes a resource with the key or the span.
type expected struct {
	keys  map[keyIn][]*Resource
	spans map[spanBelow][]*Resource
}

// keyIn is a key in a configuration.
type keyIn struct {
	configuration int64
	key           string
}

// spanBelow is the low end of the span of a resource of a collection directly below a parent.
type spanBelow struct {
	parent          int64
	collection, low string
}

// expectAtOnce is the number of keys or spans of one statement.
const expectAtOnce = 250

// ExpectKeys reads the resources of a configuration with the given keys, for later calls of ResourcesByKey in this change.
func (tx *Tx) ExpectKeys(configuration int64, keys []string) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	if tx.expected.keys == nil {
		tx.expected.keys = map[keyIn][]*Resource{}
	}
	for part := range slices.Chunk(keys, expectAtOnce) {
		for _, key := range part {
			tx.expected.keys[keyIn{configuration, key}] = nil
		}
		found, err := lookUpValues(tx, "text", part, "r.key = w.value AND r.configuration = ?", configuration)
		if err != nil {
			return err
		}
		for _, r := range found {
			at := keyIn{configuration, r.Key}
			tx.expected.keys[at] = append(tx.expected.keys[at], r)
		}
	}
	return nil
}

// ExpectSpans reads the resources of a collection directly below a parent whose spans begin at the given keys, for later calls of
// BeginningAt in this change.
func (tx *Tx) ExpectSpans(parent int64, collection string, lows [][]byte) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	if tx.expected.spans == nil {
		tx.expected.spans = map[spanBelow][]*Resource{}
	}
	for part := range slices.Chunk(lows, expectAtOnce) {
		for _, low := range part {
			tx.expected.spans[spanBelow{parent, collection, string(low)}] = nil
		}
		found, err := lookUpValues(tx, "bytea", part,
			"r.parent = ? AND "+CollectionIs("r", collection)+" AND r.low IS NOT NULL AND r.low = w.value",
			parent)
		if err != nil {
			return err
		}
		for _, r := range found {
			at := spanBelow{parent, collection, string(r.Low)}
			tx.expected.spans[at] = append(tx.expected.spans[at], r)
		}
	}
	return nil
}

// lookUpValues reads the resources r that meet the condition for any of the values w.value, ordered by id. Both databases look the values
// up one by one: otherwise they would expect many rows for that number of values, and read all of them.
func lookUpValues[T any](tx *Tx, kind string, values []T, condition string, args ...any) ([]*Resource, error) {
	if tx.RoundTrips() {
		return tx.queryMany("SELECT "+rowColumns+" FROM (SELECT DISTINCT unnest(?::"+kind+"[]) AS value) w CROSS JOIN LATERAL "+
			"(SELECT * FROM resource r WHERE "+condition+" OFFSET 0) r ORDER BY r.id", append([]any{values}, args...)...)
	}
	all := make([]any, expectAtOnce, expectAtOnce+len(args)) // one statement serves all numbers of values: the last one is repeated
	for i := range all {
		all[i] = values[min(i, len(values)-1)]
	}
	return tx.queryMany("WITH w (value) AS (SELECT DISTINCT column1 FROM (VALUES (?)"+strings.Repeat(", (?)", expectAtOnce-1)+")) SELECT "+
		rowColumns+" FROM w CROSS JOIN resource r WHERE "+condition+" ORDER BY r.id", append(all, args...)...)
}

// BeginningAt reads the resources of a collection directly below a parent whose span begins at low.
func (tx *Tx) BeginningAt(parent int64, collection string, low []byte) ([]*Resource, error) {
	if found, ok := tx.expected.spans[spanBelow{parent, collection, string(low)}]; ok {
		return shallowCopies(found), nil
	}
	return tx.queryMany("SELECT "+columns+" FROM resource WHERE parent = ? AND "+CollectionIs("", collection)+
		" AND low IS NOT NULL AND low = ? ORDER BY id", parent, low)
}

// shallowCopies returns a shallow copy of each resource.
func shallowCopies(rs []*Resource) []*Resource {
	copies := make([]*Resource, len(rs))
	for i, r := range rs {
		copies[i] = r.shallowCopy()
	}
	return copies
}

// forget removes what the change has read with the key or the span of a resource that it writes.
func (e *expected) forget(r *Resource) {
	if r == nil {
		return
	}
	if r.Key != "" {
		delete(e.keys, keyIn{r.Configuration, r.Key})
	}
	if r.Low != nil && e.spans != nil {
		delete(e.spans, spanBelow{r.Parent, r.Collection, string(r.Low)})
	}
}

// hidden is a condition that is evaluated without an index.
type hidden struct{ Expr }

func (e hidden) sql(b *builder, row string) {
	was := b.hide
	b.hide = true
	e.Expr.sql(b, row)
	b.hide = was
}
