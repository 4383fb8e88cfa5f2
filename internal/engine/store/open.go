package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"portolan/internal/base/dirlock"

	"zombiezen.com/go/sqlite"
)

// openReadOnly opens a database that nobody is to change, and that may lie where nobody can.
func openReadOnly(s *Store, o Options) (*sqliteEngine, error) {
	path := filepath.Join(o.Dir, databaseFile)
	kind := readSession
	r, err := newSession(path, kind)
	if err != nil { // neither the log nor its index can be made: it must be whole without them
		log, e := os.Stat(path + "-wal")
		if e == nil && log.Size() > 0 {
			return nil, fmt.Errorf("opening %s for reading: its log %s-wal holds changes, and cannot be read where nothing can be written: %w",
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

// openFault words why a database file cannot be opened: that it is damaged, or that its disk is full, with the remedy.
func openError(path string, err error) error {
	var schema *SchemaError
	switch {
	case errors.As(err, &schema):
		return err
	case IsDamage(err):
		return fmt.Errorf("the database %s is damaged and cannot be opened: restore a backup (docs/troubleshoot.md, A damaged database): %w",
			path, err)
	case NoRoom(err) || sqlite.ErrCode(err).ToPrimary() == sqlite.ResultIOErr && diskIsFull(path): // its index of the log has no room
		return fmt.Errorf("the disk of the database %s is full: make room beside it, then start again (docs/troubleshoot.md, A full disk): %w",
			path, err)
	}
	return fmt.Errorf("opening %s: %w", path, err)
}

// leastRoom is how many bytes a database needs beside it to be opened: the index of its log.
const minFreeBytes = 32 << 10

// diskIsFull reports whether the disk of a file has not even the room that opening a database takes.
func diskIsFull(path string) bool {
	free, err := FreeBytes(filepath.Dir(path))
	return err == nil && free != nil && *free < minFreeBytes
}

// SchemaError is a database whose schema is not that of this binary, which the caller may not change.
type SchemaError struct {
	// Database is the version of the schema that the database has, Binary that of this binary.
	Database, Binary int
}

// Error says what to do.
func (e *SchemaError) Error() string {
	if e.Database > e.Binary {
		return fmt.Sprintf("the database has schema version %d, newer than this binary's %d: use a newer portolan", e.Database, e.Binary)
	}
	return fmt.Sprintf("the database has schema version %d, older than this binary's %d, and a manager may be serving it: start the "+
		"manager with this portolan first, which brings the schema up to date", e.Database, e.Binary)
}

// pools makes the pools of read connections.
func (e *sqliteEngine) openPools(path string, o Options, kind sessionKind) {
	e.readers, e.lists = newPool(path, o.Readers, kind), newPool(path, o.ListReaders, kind)
	e.pages, e.health = newPool(path, o.ListReaders, kind), newPool(path, 1, kind)
}

// upToDate brings the schema up to date. Who is no manager may do so only where none is serving.
func (e *sqliteEngine) migrateSchema(w *session, o Options) error {
	version, err := schemaVersion(w.conn)
	if err != nil {
		return err
	}
	if !o.Exclusive && version != 0 && version != o.Layout.Version() {
		lock, err := dirlock.Take(o.Dir, "manager")
		if err != nil {
			return &SchemaError{Database: version, Binary: o.Layout.Version()}
		}
		defer func() { _ = lock.Close() }() // nothing was written
	}
	if err := migrate(w.conn, o.Layout, o.Schema); err != nil {
		return err
	}
	if !o.Exclusive || o.Schema != 0 { // a manager that begins sees to it
		return nil
	}
	if err := ensureIndexes(w.conn, o.Layout); err != nil {
		return err
	}
	// Whoever held a lease has ended: nobody else has the directory.
	_, err = w.exec("UPDATE lease SET until = 0 WHERE until > 0")
	return err
}

// databaseFile is the database in the data directory.
const databaseFile = "portolan.db"

// notEmptied refuses a database file that is empty while there are backups of an earlier one: the file system has lost what was in it.
func checkNotEmptied(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return nil //nolint:nilerr // whoever opens the file reports the error
	}
	backups, err := os.ReadDir(filepath.Join(filepath.Dir(path), "backups"))
	if err != nil || len(backups) == 0 {
		return nil //nolint:nilerr // there is none
	}
	return fmt.Errorf("%s is empty, and there are backups of an earlier database beside it: restore one (docs/troubleshoot.md), or remove "+
		"the empty file to begin anew", path)
}

// protect makes the database's files, and those that are there, readable by their owner alone: the
// authority's key and hashes of passwords are in them. SQLite gives the log the mode of the database.
func protectFiles(path string) error {
	if err := errors.Join(checkNotEmptied(path), checkNotRemoved(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the path is the operator's
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("making the database: %w", err)
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
			return fmt.Errorf("keeping %s from others: %w", file, err)
		}
	}
	return nil
}
