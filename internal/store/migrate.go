package store

import (
	"embed"
	"fmt"
	"io/fs"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// migrate brings the schema up to date, all of it in one transaction that also records the version,
// so a process killed in the middle starts again where it was.
//
// upTo is the version to stop at; 0 means the newest.
func migrate(conn *sqlite.Conn, upTo int) (err error) {
	files, err := fs.Glob(migrations, "migrations/sqlite/*.sql")
	if err != nil {
		return err
	}
	version, err := schemaVersion(conn)
	if err != nil {
		return err
	}
	if version > len(files) {
		return fmt.Errorf("the database has schema version %d, newer than this binary's %d: use a newer portolan", version, len(files))
	}
	if upTo == 0 {
		upTo = len(files)
	}
	if version >= upTo {
		return nil
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return fmt.Errorf("locking the schema: %w", err)
	}
	defer end(&err)
	// Read again under the lock: another process may have been faster.
	if version, err = schemaVersion(conn); err != nil {
		return err
	}
	for i := version; i < upTo; i++ {
		script, err := fs.ReadFile(migrations, files[i])
		if err != nil {
			return err
		}
		if err := sqlitex.ExecuteScript(conn, string(script), nil); err != nil {
			return fmt.Errorf("migration %s: %w", files[i], err)
		}
	}
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA user_version = %d", max(version, upTo)), nil)
}

func schemaVersion(conn *sqlite.Conn) (version int, err error) {
	err = sqlitex.ExecuteTransient(conn, "PRAGMA user_version", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		version = stmt.ColumnInt(0)
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("reading the schema version: %w", err)
	}
	return version, nil
}
