package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"portolan/internal/base/dirlock"

	"zombiezen.com/go/sqlite"
)

// openReadOnly opens a database for reading. The file system may be read-only.
func openReadOnly(s *Store, o Options) (*sqliteEngine, error) {
	path := filepath.Join(o.Dir, databaseFile)
	kind := readSession
	r, err := newSession(path, kind)
	if err != nil { // the log and its index cannot be created, so the database must be complete without them
		log, e := os.Stat(path + "-wal")
		if e == nil && log.Size() > 0 {
			return nil, fmt.Errorf("open %s for reading: its log %s-wal contains changes, which require write access to the directory: %w",
				path, databaseFile, err)
		}
		kind = immutableSession
		if r, err = newSession(path, kind); err != nil {
			return nil, openError(path, err)
		}
	}
	version, err := schemaVersion(r.conn)
	if e := r.close(); err == nil {
		err = e
	}
	if err == nil && version != o.Layout.Version() {
		err = &SchemaError{Database: version, Binary: o.Layout.Version()}
	}
	if err != nil {
		return nil, openError(path, err)
	}
	e := &sqliteEngine{store: s, path: path, stop: make(chan struct{}), stopped: make(chan struct{}), readOnly: true}
	s.trigrams = true
	e.openPools(path, o, kind)
	close(e.stopped)
	return e, nil
}

// openError describes why a database file cannot be opened. For a damaged file and a full disk it names the remedy.
func openError(path string, err error) error {
	var schema *SchemaError
	switch {
	case errors.As(err, &schema):
		return err
	case IsDamage(err):
		return fmt.Errorf("the database %s is damaged and cannot be opened: restore a backup (docs/troubleshoot.md, A damaged database): %w",
			path, err)
	case NoRoom(err) || sqlite.ErrCode(err).ToPrimary() == sqlite.ResultIOErr && diskIsFull(path): // no space for the log's index
		return fmt.Errorf("the disk of the database %s is full: free disk space, then start again (docs/troubleshoot.md, A full disk): %w",
			path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// minFreeBytes is the free disk space in bytes that opening a database requires, for the index of its log.
const minFreeBytes = 32 << 10

// diskIsFull reports whether the disk of a file has less free space than opening a database requires.
func diskIsFull(path string) bool {
	free, err := FreeBytes(filepath.Dir(path))
	return err == nil && free != nil && *free < minFreeBytes
}

// SchemaError is returned if the schema of the database is not that of this binary and the caller must not migrate it.
type SchemaError struct {
	// Database is the schema version of the database. Binary is the schema version of this binary.
	Database, Binary int
}

// Error describes the mismatch and the remedy.
func (e *SchemaError) Error() string {
	if e.Database > e.Binary {
		return fmt.Sprintf("the database has schema version %d, newer than this binary's %d: use a newer portolan", e.Database, e.Binary)
	}
	return fmt.Sprintf("the database has schema version %d, older than this binary's %d, and a manager may be using it: start the "+
		"manager with this portolan first, which brings the schema up to date", e.Database, e.Binary)
}

// openPools creates the pools of read connections.
func (e *sqliteEngine) openPools(path string, o Options, kind sessionKind) {
	e.readers, e.lists = newPool(path, o.Readers, kind), newPool(path, o.ListReaders, kind)
	e.pages, e.health = newPool(path, o.ListReaders, kind), newPool(path, 1, kind)
}

// migrateSchema migrates the schema to the requested version. A process that is not a manager may do so only while no manager is running.
func (e *sqliteEngine) migrateSchema(w *session, o Options) error {
	version, err := schemaVersion(w.conn)
	if err != nil {
		return err
	}
	if !o.Exclusive && version != 0 && version != o.Layout.Version() {
		lock, err := dirlock.Acquire(o.Dir, "manager")
		if err != nil {
			return &SchemaError{Database: version, Binary: o.Layout.Version()}
		}
		defer func() { _ = lock.Close() }() // nothing was written
	}
	if err := migrate(w.conn, o.Layout, o.Schema); err != nil {
		return err
	}
	if !o.Exclusive || o.Schema != 0 { // the next manager that starts creates the indexes
		return nil
	}
	if err := ensureIndexes(w.conn, o.Layout); err != nil {
		return err
	}
	// Previous holders of leases have stopped: no other process has the directory.
	_, err = w.exec("UPDATE lease SET until = 0 WHERE until > 0")
	return err
}

// databaseFile is the name of the database file in the data directory.
const databaseFile = "portolan.db"

// checkNotEmptied returns an error if the database file is empty and backups of an earlier database exist: the file system lost its
// content.
func checkNotEmptied(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return nil //nolint:nilerr // opening the file reports the error
	}
	backups, err := os.ReadDir(filepath.Join(filepath.Dir(path), "backups"))
	if err != nil || len(backups) == 0 {
		return nil //nolint:nilerr // no backups exist
	}
	return fmt.Errorf("%s is empty, but the directory contains backups of an earlier database: restore one (docs/troubleshoot.md), or remove "+
		"the empty file to create a new database", path)
}

// protectFiles creates the database file and restricts it and the existing log files to their owner. They contain the key of the
// certificate authority and password hashes. SQLite creates the log with the mode of the database.
func protectFiles(path string) error {
	if err := errors.Join(checkNotEmptied(path), checkNotRemoved(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the path is the operator's
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(file, 0o600)
		}
		if err != nil {
			return fmt.Errorf("restrict %s to its owner: %w", file, err)
		}
	}
	return nil
}
