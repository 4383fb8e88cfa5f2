package server

import (
	"slices"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/model"
	"portolan/internal/testkit/pgtest"
)

// TestEveryTableIsCarriedOrDerived checks that the layout contains every table of the schema, and that every table of the layout exists on
// both databases.
func TestEveryTableIsCarriedOrDerived(t *testing.T) {
	for database, query := range map[string]string{
		"SQLite":     "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite_%'",
		"PostgreSQL": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
	} {
		t.Run(database, func(t *testing.T) {
			o := store.Options{Layout: model.Layout(), Dir: t.TempDir()}
			if database == "PostgreSQL" {
				o.Database = pgtest.URL(t)
			}
			s, err := store.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			var there []string
			if err := s.View(t.Context(), func(tx *store.Tx) error {
				return tx.Each(func(scan func(...any) error) error {
					var name string
					err := scan(&name)
					there = append(there, name)
					return err
				}, query)
			}); err != nil {
				t.Fatal(err)
			}
			only := map[string]string{"counter": "SQLite", "schema_version": "PostgreSQL",
				"trigram": "SQLite", "trigram_due": "SQLite"} // the other has something else for it
			var known []string
			for _, table := range o.Layout.Tables() {
				if slices.Contains(known, table.Name) {
					t.Errorf("%s is in the layout twice", table.Name)
				}
				known = append(known, table.Name)
				if of := only[table.Name]; !slices.Contains(there, table.Name) && (of == "" || of == database) {
					t.Errorf("%s is in the layout and not there", table.Name)
				}
			}
			for _, name := range there {
				if !slices.Contains(known, name) {
					t.Errorf("%s is there and not in the layout", name)
				}
			}
		})
	}
}
