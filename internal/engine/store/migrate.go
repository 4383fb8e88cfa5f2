package store

import (
	"embed"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// migrate migrates the schema in one transaction that also records the version, so that an interrupted migration has no effect. upTo is
// the target version; 0 means the newest.
func migrate(conn *sqlite.Conn, l *Layout, upTo int) (err error) {
	scripts, err := l.scripts("sqlite")
	if err != nil {
		return err
	}
	version, err := schemaVersion(conn)
	if err != nil {
		return err
	}
	if version > l.Version() {
		return &SchemaError{Database: version, Binary: l.Version()}
	}
	if upTo == 0 {
		upTo = l.Version()
	}
	if version >= upTo {
		return nil
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return fmt.Errorf("lock the schema: %w", err)
	}
	defer end(&err)
	// Another process may have migrated the schema before this one got the lock.
	if version, err = schemaVersion(conn); err != nil {
		return err
	}
	for _, s := range scripts {
		if s.version <= version || s.version > upTo {
			continue
		}
		if err := sqlitex.ExecuteScript(conn, s.text, nil); err != nil {
			return fmt.Errorf("migration %s: %w", s.name, err)
		}
	}
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA user_version = %d", max(version, upTo)), nil)
}

// ensureIndexes creates the indexes that the layout requires and drops obsolete ones. Each is a separate change, so that an interrupted
// process continues at its next start. Nothing is locked if nothing has to be changed.
func ensureIndexes(conn *sqlite.Conn, l *Layout) error {
	var names []string
	if err := sqlitex.ExecuteTransient(conn, sqliteDialect.indexes, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		names = append(names, stmt.ColumnText(0))
		return nil
	}}); err != nil {
		return fmt.Errorf("read the indexes: %w", err)
	}
	if err := recreateTrigramTable(conn, l); err != nil {
		return fmt.Errorf("create the trigram index: %w", err)
	}
	return syncIndexes(&sqliteDialect, layoutIndex, l.Indexes, names, "", func(statement string) error {
		return sqlitex.ExecuteTransient(conn, statement, nil)
	})
}

// recreateTrigramTable recreates the trigram index if the layout searches other texts than the index contains.
func recreateTrigramTable(conn *sqlite.Conn, l *Layout) (err error) {
	columns := 0
	count := func(stmt *sqlite.Stmt) error {
		columns = stmt.ColumnInt(0)
		return nil
	}
	query := "SELECT count(*) FROM pragma_table_info('trigram') WHERE name = '" + l.trigramColumn() + "'"
	if err := sqlitex.ExecuteTransient(conn, query, &sqlitex.ExecOptions{ResultFunc: count}); err != nil || columns > 0 {
		return err
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	for _, statement := range l.recreateTrigrams() {
		if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
			return err
		}
	}
	return nil
}

// schemaVersion returns the version of the schema, which SQLite stores as user_version.
func schemaVersion(conn *sqlite.Conn) (version int, err error) {
	err = sqlitex.ExecuteTransient(conn, "PRAGMA user_version", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		version = stmt.ColumnInt(0)
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return version, nil
}
