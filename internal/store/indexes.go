package store

import "strings"

// Index is an index of a text that the resources of a collection have in their bodies: it is looked up, and ordered by.
type Index struct{ Collection, Field string }

// name is what the index is called in a database.
func (i Index) name() string { return "field_" + i.Collection + "_" + i.Field }

// statement makes the index. What it is of must be what a condition on the field has, to the letter.
func (i Index) statement(d *dialect) string {
	b := &builder{dialect: d}
	Field{Kind: Text, Path: []string{i.Field}, Indexed: true}.column(b, "resource")
	return `CREATE INDEX "` + i.name() + `" ON resource (` + strings.ReplaceAll(b.String(), "resource.", "") + ") WHERE collection = " +
		quoted(i.Collection)
}

// makeIndexes makes those indexes of the layout that a database does not have. names are those that it has.
func (l *Layout) makeIndexes(d *dialect, names map[string]bool, run func(statement string) error) error {
	for _, i := range l.Indexes {
		if !names[i.name()] {
			if err := run(i.statement(d)); err != nil {
				return err
			}
		}
	}
	return nil
}
