package store

import (
	"slices"
)

// Around is true for resources with space (Layout.Spaced) whose span contains all of low to high. collection is the collection of these
// resources, if it is known.
type Around struct {
	Low, High  []byte
	collection string
}

// walkStep is one step of the walk from the scopes down to the resources around a span: from resources of the collection above to those
// of the collection below that are directly below them.
type walkStep struct{ above, below string }

// steps returns the steps that lead to the resources with space of a collection. An empty collection means all of them.
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

// aroundStart returns the start of the recursive list of the resources around a span (dialect.around). Its alias a is the list so far.
func aroundStart(scopes string) string {
	return "WITH RECURSIVE around (id, collection) AS (SELECT id, collection FROM resource WHERE " + CollectionIs("", scopes) +
		" UNION ALL SELECT c.id, c.collection FROM around a"
}

// endAround returns the end of that list, limited to one collection unless it is empty.
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
	if len(steps) == 0 { // no collection on the way has space
		b.WriteString("FALSE")
		return
	}
	b.WriteString(row + ".id IN (" + b.containersOf(b.layout.Scopes, steps, e.collection))
	b.args = append(b.args, e.Low, e.High)
	b.WriteByte(')')
}

// limitAround limits the Around conditions in all to one collection. It returns false if there are none.
func limitAround(all []Expr, collection string) (some bool) {
	for i, e := range all {
		if around, ok := e.(Around); ok {
			around.collection, some = collection, true
			all[i] = around
		}
	}
	return some
}
