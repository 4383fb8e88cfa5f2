package store

import (
	"slices"
)

// Around holds for the resources with space (Layout.Spaced) whose span has all of low to high in it. of is the collection that they
// are of, where that is known.
type Around struct {
	Low, High  []byte
	collection string
}

// downward is one step of the walk down to what lies around something: from resources of a collection to those of another one right below
// them.
type walkStep struct{ above, below string }

// steps gives the steps that lead to resources of a collection with space, or of all where it is empty.
func (l *Layout) steps(to string) (steps []walkStep) {
	wanted := []string{to}
	for i := 0; i < len(wanted); i++ {
		for _, s := range l.Spaced {
			if s.Collection != wanted[i] && to != "" {
				continue
			}
			for _, above := range s.Below {
				steps = append(steps, walkStep{above, s.Collection})
				if to != "" && !slices.Contains(wanted, above) {
					wanted = append(wanted, above)
				}
			}
		}
	}
	return steps
}

// beginAround begins the list of what lies around something (dialect.around): a is what it has so far.
func beginAround(scopes string) string {
	return "WITH RECURSIVE around (id, collection) AS (SELECT id, collection FROM resource WHERE " + CollectionIs("", scopes) +
		" UNION ALL SELECT c.id, c.collection FROM around a"
}

// endAround ends it, with those of one collection, or all where it is empty.
func endAround(of string) string {
	if of == "" {
		return " SELECT id FROM around"
	}
	return " SELECT id FROM around WHERE " + CollectionIs("", of)
}

func (e Around) sql(b *builder, row string) {
	if b.layout.Scopes == "" {
		b.WriteString("(" + row + ".low <= ")
		b.arg(e.Low)
		b.WriteString(" AND " + row + ".high >= ")
		b.arg(e.High)
		b.WriteByte(')')
		return
	}
	steps := b.layout.steps(e.collection)
	if len(steps) == 0 { // nothing of it has space
		b.WriteString("FALSE")
		return
	}
	b.WriteString(row + ".id IN (" + b.around(b.layout.Scopes, steps, e.collection))
	b.args = append(b.args, e.Low, e.High)
	b.WriteByte(')')
}

// aimed lets the conditions Around walk to one collection alone; false where there are none.
func limitAround(all []Expr, collection string) (some bool) {
	for i, e := range all {
		if around, ok := e.(Around); ok {
			around.collection, some = collection, true
			all[i] = around
		}
	}
	return some
}
