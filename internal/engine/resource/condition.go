package resource

import (
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// condition returns the function that compares a field whose values the only collection of the scope adds; nil if there is none.
func (s Scope) condition(path []string) func(n *schema.Node) (store.Expr, error) {
	if len(path) != 1 || len(s.Types) == 0 {
		return nil
	}
	c := s.api.CollectionOf(s.Types[0])
	if slices.ContainsFunc(s.Types, func(t *schema.Type) bool { return s.api.CollectionOf(t) != c }) {
		return nil
	}
	return c.Conditions[path[0]]
}

// referenceColumn returns the column with the target of a reference; empty if the target is in the table of references. ok is false if it
// is in neither, as in rows from other sources.
func (s Scope) referenceColumn(f *schema.Field) (column string, ok bool) {
	if f.Column != "" || s.api.CollectionOf(s.Types[0]).From == store.Resources {
		return f.Column, true
	}
	return f.FilterColumn, f.FilterColumn != ""
}

// lacksSpace reports whether no resource of the scope has space.
func (s Scope) lacksSpace() bool {
	return !slices.ContainsFunc(s.Types, func(t *schema.Type) bool { return s.api.CollectionOf(t).Space != NoSpace })
}
