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

// Index is an index of a text that the resources of a collection have in their bodies: it is looked up, and ordered by. Field may be the
// member of a member, with a dot between them.
type Index struct{ Collection, Field string }

// layoutIndex begins the names of the indexes of the layout, keptIndex those of the indexes that are made while the manager serves; no
// other names begin so.
const (
	layoutIndex = "field_"
	keptIndex   = "kept_"
)

// definition gives what the index is of. It must be what a condition on the field has, to the letter. One that is kept begins with the
// collection: SQLite, which does not count, would else take the index of collections for lists and ranges of values. PostgreSQL, which sees
// that who asks for a value asks for none that is null, has those alone that have one.
func (i Index) definition(d *dialect, prefix string) string {
	b := &builder{dialect: d}
	Field{Kind: Text, Path: strings.Split(i.Field, "."), Indexed: true}.column(b, "resource")
	of, first, which := strings.ReplaceAll(b.String(), "resource.", ""), "", CollectionIs("", i.Collection)
	if prefix == keptIndex {
		first = "collection, "
		if d == &postgresDialect {
			which += " AND " + of + " IS NOT NULL"
		}
	}
	return " ON resource (" + first + of + d.nulls[0] + ") WHERE " + which
}

// name is what the index is called in a database: an index of something else has another one. It fits into the 63 bytes that
// PostgreSQL takes.
func (i Index) name(d *dialect, prefix string) string {
	sum := sha256.Sum256([]byte(i.definition(d, prefix)))
	text := prefix + i.Collection + "_" + i.Field
	return text[:min(len(text), 46)] + "_" + hex.EncodeToString(sum[:8])
}

// makeIndexes makes those of the indexes that a database does not have, and drops those whose names begin alike and that are not among
// them. names are those that the database has; how is nothing, or CONCURRENTLY.
func syncIndexes(d *dialect, prefix string, all []Index, names []string, how string, run func(statement string) error) error {
	wanted := map[string]bool{}
	var failed error // one that cannot be made does not keep the others
	for _, i := range all {
		name := i.name(d, prefix)
		if wanted[name] = true; slices.Contains(names, name) {
			continue
		}
		if err := run("CREATE INDEX " + how + ` "` + name + `"` + i.definition(d, prefix)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("making the index %s: %w", name, err))
		}
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) || wanted[name] {
			continue
		}
		if err := run("DROP INDEX " + how + ` "` + name + `"`); err != nil {
			failed = errors.Join(failed, fmt.Errorf("dropping the index %s: %w", name, err))
		}
	}
	return failed
}

// KeepIndexes has the database have these indexes, beside those of the layout, and no others of their kind. On SQLite changes wait while
// one is made, some 1.4 microseconds for each resource that there is; on PostgreSQL they go on. One manager does it at a time.
func (s *Store) KeepIndexes(ctx context.Context, all []Index) error {
	return s.engine.keepIndexes(ctx, all)
}

// HasIndexes gives those of the indexes that the database has, for KeepIndexes or by it, whole.
func (s *Store) HasIndexes(ctx context.Context, all []Index) (there map[Index]bool, err error) {
	there = map[Index]bool{}
	return there, s.Read(ctx, func(tx *Tx) error {
		names, err := indexNames(tx)
		for _, i := range all {
			if slices.Contains(names, i.name(tx.conn.sqlDialect(), keptIndex)) {
				there[i] = true
			}
		}
		return err
	})
}

// indexNames are the names of the indexes of resources that are whole.
func indexNames(tx *Tx) (names []string, err error) {
	return names, tx.Each(func(scan func(...any) error) error {
		var name string
		err := scan(&name)
		names = append(names, name)
		return err
	}, tx.SQL(SQL{SQLite: sqliteDialect.indexes, PostgreSQL: wholeIndexes}))
}

// wholeIndexes asks for the indexes of resources that answer questions: one that was not finished does not.
const wholeIndexes = "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid " +
	"WHERE i.indrelid = 'resource'::regclass AND i.indisvalid"

func (e *sqliteEngine) keepIndexes(ctx context.Context, all []Index) error {
	return e.update(ctx, OwnTables(), Author{}, func(tx *Tx) error {
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
	// An index takes as long as it takes.
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
	for _, name := range names { // what a manager left that ended while it made one
		if strings.HasPrefix(name, keptIndex) && !slices.Contains(whole, name) {
			err = errors.Join(err, run(`DROP INDEX CONCURRENTLY "`+name+`"`))
		}
	}
	if err != nil {
		return err
	}
	return syncIndexes(&postgresDialect, keptIndex, all, whole, "CONCURRENTLY", run)
}
