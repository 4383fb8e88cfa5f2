package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Index is an index of a text that the resources of a collection have in their bodies: it is looked up, and ordered by.
type Index struct{ Collection, Field string }

// indexPrefix is how the names of these indexes begin, and of no others.
const indexPrefix = "field_"

// definition gives what the index is of. It must be what a condition on the field has, to the letter.
func (i Index) definition(d *dialect) string {
	b := &builder{dialect: d}
	Field{Kind: Text, Path: []string{i.Field}, Indexed: true}.column(b, "resource")
	return " ON resource (" + strings.ReplaceAll(b.String(), "resource.", "") + d.nulls[0] + ") WHERE " + CollectionIs("", i.Collection)
}

// name is what the index is called in a database: an index of something else has another one. It fits into the 63 bytes that
// PostgreSQL takes.
func (i Index) name(d *dialect) string {
	sum := sha256.Sum256([]byte(i.definition(d)))
	text := indexPrefix + i.Collection + "_" + i.Field
	return text[:min(len(text), 46)] + "_" + hex.EncodeToString(sum[:8])
}

// makeIndexes makes those indexes of the layout that a database does not have, and drops those that the layout has no more. names
// are those that the database has.
func (l *Layout) makeIndexes(d *dialect, names []string, run func(statement string) error) error {
	wanted := map[string]bool{}
	for _, i := range l.Indexes {
		name := i.name(d)
		if wanted[name] = true; slices.Contains(names, name) {
			continue
		}
		if err := run(`CREATE INDEX "` + name + `"` + i.definition(d)); err != nil {
			return fmt.Errorf("making the index %s: %w", name, err)
		}
	}
	for _, name := range names {
		if !strings.HasPrefix(name, indexPrefix) || wanted[name] {
			continue
		}
		if err := run(`DROP INDEX "` + name + `"`); err != nil {
			return fmt.Errorf("dropping the index %s: %w", name, err)
		}
	}
	return nil
}
