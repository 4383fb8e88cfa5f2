package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Index is an index of a field in the bodies of a collection, for look-ups and orders: of a text, or of a number. Field may be a nested
// member, with a dot between the names.
type Index struct {
	Collection, Field string
	Number            bool
}

// kind returns the kind of the indexed field.
func (i Index) kind() FieldKind {
	if i.Number {
		return Number
	}
	return Text
}

// layoutIndex is the prefix of the names of the indexes that the layout requires. keptIndex is that of the indexes that are created while
// the manager runs. No other index has these prefixes.
const (
	layoutIndex = "field_"
	keptIndex   = "kept_"
)

// definition returns the columns and the condition of the index. It must match the conditions on the field exactly. An index with the
// prefix keptIndex starts with the collection: SQLite without statistics would otherwise prefer the index of collections for lists and
// ranges. On PostgreSQL, which knows that a compared value is not NULL, it contains only rows with a value.
func (i Index) definition(d *dialect, prefix string) string {
	b := &builder{dialect: d}
	Field{Kind: i.kind(), Path: strings.Split(i.Field, "."), Indexed: true}.column(b, "resource")
	of, first, which := strings.ReplaceAll(b.String(), "resource.", ""), "", CollectionIs("", i.Collection)
	if prefix == keptIndex {
		first = "collection, "
		if d == &postgresDialect {
			which += " AND " + of + " IS NOT NULL"
		}
	}
	return " ON resource (" + first + of + d.nulls[0] + ") WHERE " + which
}

// name returns the name of the index in a database. It depends on the definition, and fits into the 63 bytes that PostgreSQL allows.
func (i Index) name(d *dialect, prefix string) string {
	sum := sha256.Sum256([]byte(i.definition(d, prefix)))
	text := prefix + i.Collection + "_" + i.Field
	return text[:min(len(text), 46)] + "_" + hex.EncodeToString(sum[:8])
}

// syncIndexes creates the missing indexes of all, and drops those with the prefix that are not in all. names are the existing indexes.
// how is empty or CONCURRENTLY.
func syncIndexes(d *dialect, prefix string, all []Index, names []string, how string, run func(statement string) error) error {
	wanted := map[string]bool{}
	var failed error // a failure does not prevent the others
	for _, i := range all {
		name := i.name(d, prefix)
		if wanted[name] = true; slices.Contains(names, name) {
			continue
		}
		if err := run("CREATE INDEX " + how + ` "` + name + `"` + i.definition(d, prefix)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("create the index %s: %w", name, err))
		}
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) || wanted[name] {
			continue
		}
		if err := run("DROP INDEX " + how + ` "` + name + `"`); err != nil {
			failed = errors.Join(failed, fmt.Errorf("drop the index %s: %w", name, err))
		}
	}
	return failed
}

// KeepIndexes creates the given indexes in addition to those of the layout, and drops others that it created before. On SQLite, changes
// wait while an index is created, about 1.4 microseconds per resource. On PostgreSQL they continue. Only one manager may call it at a
// time.
func (s *Store) KeepIndexes(ctx context.Context, all []Index) error {
	return s.engine.keepIndexes(ctx, all)
}

// HasIndexes returns those of the indexes that KeepIndexes has completely created.
func (s *Store) HasIndexes(ctx context.Context, all []Index) (present map[Index]bool, err error) {
	present = map[Index]bool{}
	return present, s.Read(ctx, func(tx *Tx) error {
		names, err := indexNames(tx)
		for _, i := range all {
			if slices.Contains(names, i.name(tx.conn.sqlDialect(), keptIndex)) {
				present[i] = true
			}
		}
		return err
	})
}

// indexNames returns the names of the complete indexes of resources.
func indexNames(tx *Tx) (names []string, err error) {
	return names, tx.Each(func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	}, tx.SQL(SQL{SQLite: sqliteDialect.indexes, PostgreSQL: wholeIndexes}))
}

// wholeIndexes selects the names of the complete indexes of resources. PostgreSQL does not use an incomplete index.
const wholeIndexes = "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid " +
	"WHERE i.indrelid = 'resource'::regclass AND i.indisvalid"

func (e *sqliteEngine) keepIndexes(ctx context.Context, all []Index) error {
	return e.update(ctx, ExtensionScope(), Author{}, func(tx *Tx) error {
		names, err := indexNames(tx)
		if err != nil {
			return err
		}
		return syncIndexes(&sqliteDialect, keptIndex, all, names, "", func(statement string) error { return tx.Write(statement) })
	})
}

func (e *postgresEngine) keepIndexes(ctx context.Context, all []Index) error {
	pooled, err := e.pg.lists.Acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	c := pooled.Conn()
	// The creation of an index has no time limit.
	if _, err := c.Exec(ctx, "SET statement_timeout = 0"); err != nil {
		return err
	}
	defer func() {
		if _, err := c.Exec(context.WithoutCancel(ctx), "RESET statement_timeout"); err != nil {
			_ = c.Close(context.WithoutCancel(ctx))
		}
	}()
	read := func(query string) (names []string, err error) {
		rows, err := c.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
		return names, rows.Err()
	}
	names, err := read(postgresDialect.indexes)
	if err != nil {
		return err
	}
	whole, err := read(wholeIndexes)
	if err != nil {
		return err
	}
	run := func(statement string) error {
		_, err := c.Exec(ctx, statement)
		return err
	}
	for _, name := range names { // incomplete indexes that an interrupted manager left
		if strings.HasPrefix(name, keptIndex) && !slices.Contains(whole, name) {
			err = errors.Join(err, run(`DROP INDEX CONCURRENTLY "`+name+`"`))
		}
	}
	if err != nil {
		return err
	}
	return syncIndexes(&postgresDialect, keptIndex, all, whole, "CONCURRENTLY", run)
}
