package store

import (
	"fmt"
	"io/fs"
	stdpath "path"
	"slices"
	"strconv"
	"strings"
)

// Layout describes what the packages above keep in a database, as far as the store has to know it. Each program that opens a database
// must pass the complete layout: with a part of it, tables would not be created, copied or kept in step. The zero Layout is the store
// alone.
type Layout struct {
	// Scopes is the collection whose resources are scopes: resources in one scope never refer to those in another (Scope). Empty means
	// none.
	Scopes string
	// Spaced are the collections whose resources have a span that contains or covers the spans of others.
	Spaced []Spaced
	// Unlogged are the collections whose rows are not part of the network. Their changes are not written to the history.
	Unlogged []string
	// Extensions are kept in step with the rows.
	Extensions []*Extension
	// Indexes are the indexes that the declarations require. A manager creates missing ones at its start, and waits for that.
	Indexes []Index
	// Searched are the body fields that substring searches cover, in addition to the names of all resources.
	Searched []Index
}

// Spaced is a collection of resources with spans, with the collections that its resources can be directly below. Siblings of the
// collection never overlap.
type Spaced struct {
	Collection string
	Below      []string
}

// Extension describes what a package keeps beside the rows, in tables of its own, and how it is kept in step with the rows.
type Extension struct {
	// Name identifies the extension.
	Name string
	// State is private data of the package, which it finds again through a transaction (Tx.Extension).
	State any
	// Tables are the tables of the extension.
	Tables []Table
	// Migrations contains migrations/sqlite/NNNN_what.sql and migrations/postgres/NNNN_what.sql. The numbers are schema versions of the
	// whole layout. Several packages may have a script with the same number. nil means that there are no tables.
	Migrations fs.FS
	// Opened is called after the store was opened and before it is used. It may be nil.
	Opened func(s *Store)
	// Follow returns the follower of a transaction that changes something. It is nil if nothing is kept in step.
	Follow func(tx *Tx) Follower
	// JoinedText is a text that is read together with a shown resource (Tx.GetShown), if that saves an expensive round trip. The zero Beside
	// means none.
	JoinedText JoinedText
	// Rebuild recreates the derived tables from the copied ones. It is nil if there are none. It is called, also with an older schema,
	// only if all tables of the extension exist.
	Rebuild func(tx *Tx) error
	// Verify reports the faults in the tables as sentences. It may be nil.
	Verify func(tx *Tx, fault func(format string, args ...any)) error
}

// JoinedText is a text that is read with the resources of some collections. Collections is called when the database is open. SQL is a
// PostgreSQL expression over the row r.
type JoinedText struct {
	Collections func() []string
	SQL         string
}

// Follower follows one transaction. It is not used concurrently.
type Follower interface {
	// Changed is called for each row that the transaction changes, at or just before the write. before is nil for a new row, after is nil
	// for a deleted one. The rows must not be modified.
	Changed(before, after *Resource) error
	// BeforeCommit is called once before the commit, in the order of the extensions. It may write tables of its own extension, or of a
	// package below (an event). It must not write rows, because earlier extensions would not be notified.
	BeforeCommit() error
}

// Refuser is a Follower that can reject a transaction at its end because of all its changes. This also applies to a change that is only
// tried.
type Refuser interface {
	Follower
	// Refuse returns the reason for the rejection, or nil. It changes nothing.
	Refuse() error
}

// CheckFollowers asks the followers whether they reject the transaction because of its changes so far.
func (tx *Tx) CheckFollowers() error {
	for _, f := range tx.followers {
		if r, ok := f.(Refuser); ok {
			if err := r.Refuse(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Table is a table of the database.
type Table struct {
	Name    string
	Columns []string
	// Earlier are the columns of earlier schema versions, oldest first. Backups of those versions have them.
	Earlier []Earlier
	// Key is the number of leading columns that form the key. 0 means that the last column is the key.
	Key int
	// Derived is the reason why the table is not copied to another database: it can be derived from the copied tables, or belongs to one
	// database. Empty means that all rows are copied, including secrets.
	Derived string
}

// Earlier contains the columns of a table in the schema versions before Before.
type Earlier struct {
	Before  int
	Columns []string
}

// columnsAt returns the columns of the table in a schema version.
func (t *Table) columnsAt(version int) []string {
	for _, e := range t.Earlier {
		if version < e.Before {
			return e.Columns
		}
	}
	return t.Columns
}

// SQL is a statement, or a part of one, for each of the databases.
type SQL struct{ SQLite, PostgreSQL string }

// SQL returns the text for the transaction's database.
func (tx *Tx) SQL(s SQL) string {
	if tx.RoundTrips() {
		return s.PostgreSQL
	}
	return s.SQLite
}

// RoundTrips reports whether sending a statement costs more than running it, so that statements should be combined.
func (tx *Tx) RoundTrips() bool { return tx.conn.sqlDialect().roundTrips }

// Follower returns the follower of the transaction for an extension of the layout. It returns nil in a snapshot.
func (tx *Tx) Follower(e *Extension) Follower {
	for i, one := range tx.store.layout.Extensions {
		if one == e && i < len(tx.followers) {
			return tx.followers[i]
		}
	}
	return nil
}

// startFollowers creates the followers of a transaction that changes something.
func (tx *Tx) startFollowers() {
	extensions := tx.store.layout.Extensions
	tx.followers = make([]Follower, len(extensions))
	for i, e := range extensions {
		if e.Follow != nil {
			tx.followers[i] = e.Follow(tx)
		}
	}
}

// noteChanged counts a changed row and notifies the followers.
func (tx *Tx) noteChanged(before, after *Resource) error {
	if err := tx.countTrialChange(); err != nil {
		return err
	}
	switch {
	case before == nil:
		tx.tally.Created++
	case after == nil:
		tx.tally.Deleted++
	default:
		tx.tally.Changed++
	}
	tx.expected.forget(before)
	tx.expected.forget(after)
	tx.noteTotals(before, after)
	tx.noteText(before, after)
	for _, f := range tx.followers {
		if f != nil {
			if err := f.Changed(before, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish writes the data that is written at the end of a transaction: that of the extensions, the counters and the history.
func (tx *Tx) finish() error {
	if err := tx.CheckFollowers(); err != nil {
		return err
	}
	for _, f := range tx.followers {
		if f != nil {
			if err := f.BeforeCommit(); err != nil {
				return err
			}
		}
	}
	if err := tx.flushBatch(); err != nil {
		return err
	}
	if err := tx.writeTotals(); err != nil {
		return err
	}
	if err := tx.writeChangedTexts(); err != nil {
		return err
	}
	return tx.writeHistory()
}

// Extension returns the extension of the layout with the given name, or nil if there is none.
func (tx *Tx) Extension(name string) *Extension { return tx.store.layout.Extension(name) }

// Extension returns the extension with the given name, or nil if there is none.
func (l *Layout) Extension(name string) *Extension {
	for _, e := range l.Extensions {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Layout returns the layout of the database.
func (s *Store) Layout() *Layout { return s.layout }

// storeTables are the store's own tables.
var storeTables = []Table{
	{Name: "resource", Columns: strings.Split(columns, ", "), Key: 1},
	{Name: "reference", Columns: []string{"source", "field", "target"}, Key: 3},
	{Name: "txn", Columns: []string{"id", "at", "user_id", "operation", "first", "last", "body"}, Key: 1},
	{Name: "change", Columns: []string{"seq", "txn", "resource", "operation", "before", "after"}, Key: 1},
	{Name: "reverting", Columns: []string{"txn", "undo"}, Key: 1},
	{Name: "marker", Columns: []string{"name", "value"}, Key: 1},
	linkTable,
	pendingTable,
	totalSums.Table,
	trigramTable,
	pendingTextTable,
	{Name: "counter", Derived: "carried as marks"},
	{Name: "lease", Derived: "held by managers of this database"},
	{Name: "origin", Derived: "names this database"},
	{Name: "filling", Derived: "marks a database that is being filled"},
	{Name: "schema_version", Derived: "belongs to the schema"},
}

// Tables returns all tables: the store's own, then those of the extensions.
func (l *Layout) Tables() (all []*Table) {
	for i := range storeTables {
		all = append(all, &storeTables[i])
	}
	for _, e := range l.Extensions {
		for i := range e.Tables {
			all = append(all, &e.Tables[i])
		}
	}
	return all
}

// ListCarried returns the tables that are copied to another database, including the history and secrets.
func (l *Layout) ListCarried() []*Table {
	return slices.DeleteFunc(l.Tables(), func(t *Table) bool { return t.Derived != "" })
}

// script is one migration script.
type script struct {
	version int
	name    string
	text    string
}

// scripts returns the migrations for a database, sqlite or postgres, in the order of execution.
func (l *Layout) scripts(database string) (all []script, err error) {
	for _, from := range append([]*Extension{{Name: "store", Migrations: migrations}}, l.Extensions...) {
		if from.Migrations == nil {
			continue
		}
		files, err := fs.Glob(from.Migrations, "migrations/"+database+"/*.sql")
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			number, _, _ := strings.Cut(stdpath.Base(file), "_")
			version, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("the migration %s of %s has no number", file, from.Name)
			}
			text, err := fs.ReadFile(from.Migrations, file)
			if err != nil {
				return nil, err
			}
			all = append(all, script{version, from.Name + "/" + stdpath.Base(file), string(text)})
		}
	}
	slices.SortStableFunc(all, func(a, b script) int { return a.version - b.version })
	return all, nil
}

// Version returns the schema version of the layout.
func (l *Layout) Version() (version int) {
	all, err := l.scripts("sqlite")
	if err != nil { // the scripts are part of the binary
		panic(err)
	}
	for _, s := range all {
		version = max(version, s.version)
	}
	return version
}
