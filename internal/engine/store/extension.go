package store

import (
	"fmt"
	"io/fs"
	stdpath "path"
	"slices"
	"strconv"
	"strings"
)

// Layout is what the rooms above keep in a database, and what the store has to know of it. Whoever opens a database gives
// the layout of the whole program: with part of it, part of the tables would not be made, carried or kept in step. The zero
// Layout is the store alone.
type Layout struct {
	// Scopes is the collection whose resources are scopes: what lies in one never refers to another one (Scope). Empty:
	// there are none.
	Scopes string
	// Spaced are the collections whose resources have space that holds, or covers, that of others.
	Spaced []Spaced
	// Unlogged are the collections whose rows are no change to the network: they stay out of the history.
	Unlogged []string
	// Extensions are what is kept in step with the rows.
	Extensions []*Extension
	// Indexes are those that follow from the declarations. A manager that begins makes those that its database lacks, and
	// waits for it.
	Indexes []Index
	// Searched are the texts in bodies that are found by what stands anywhere in them, beside the names of all resources.
	Searched []Index
}

// Spaced is a collection of resources with space, with the collections that they lie right below. Those of the collection that lie right
// below the same resource never overlap.
type Spaced struct {
	Collection string
	Below      []string
}

// Extension is what a room keeps beside the rows, in tables of its own, and how it is kept in step with them.
type Extension struct {
	// Name says whose it is.
	Name string
	// State is what the room finds its own by, from a transaction (Tx.Extension).
	State any
	// Tables are its tables.
	Tables []Table
	// Migrations holds migrations/sqlite/NNNN_what.sql and migrations/postgres/NNNN_what.sql. The numbers are the versions
	// of the schema of the whole layout; several rooms may have a script of one number. nil: it has no tables.
	Migrations fs.FS
	// Opened is told of the store when it is open and before it is used; nil where nobody asks.
	Opened func(s *Store)
	// Follow gives what follows one transaction that changes something; nil where nothing is kept in step.
	Follow func(tx *Tx) Follower
	// Beside is what is read together with a resource that is to be shown (Tx.GetShown), where a round trip to the database
	// costs so much that this saves one. The zero Beside is nothing.
	Beside Beside
	// Rebuild writes its derived tables anew from what is carried; nil where it has none. It is called where all its tables
	// are there, also in an older schema.
	Rebuild func(tx *Tx) error
	// Verify lists what is wrong in its tables, in sentences; nil where nothing can be.
	Verify func(tx *Tx, fault func(format string, args ...any)) error
}

// Beside is a text that is read with the resources of some collections, which are asked for when the database is open. SQL, in
// PostgreSQL's words, is an expression over the row r.
type Beside struct {
	Collections func() []string
	SQL         string
}

// Follower follows one transaction. Nothing else uses it at the same time.
type Follower interface {
	// Changed is told of each row that the transaction changes, when it is written or just before: before is nil where it is
	// made, after where it is deleted. The rows must not be changed.
	Changed(before, after *Resource) error
	// BeforeCommit is called once, when the transaction is about to be committed, in the order of the extensions. It may write
	// tables that extensions keep, its own or those of a room below (an event), and no rows: those before it would not hear of it.
	BeforeCommit() error
}

// Refuser is a Follower that may refuse a transaction at its end, for what it has changed in all: also one that is only tried.
type Refuser interface {
	Follower
	// Refuse says why; nil where there is nothing to refuse. It changes nothing.
	Refuse() error
}

// Refused asks the followers whether the transaction is refused for what it has changed so far.
func (tx *Tx) Refused() error {
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
	// Earlier are the columns that it had in earlier versions of the schema, the earliest first: backups of those have them.
	Earlier []Earlier
	// Key is how many of the first columns are its key; 0: the last column is.
	Key int
	// Derived is why the table is not carried from one database to another: it follows from what is carried, or belongs to
	// one database alone. Empty: all its rows are carried, secrets included.
	Derived string
}

// Earlier is what a table was in the versions of the schema before one.
type Earlier struct {
	Before  int
	Columns []string
}

// columnsAt are the columns that the table has in a version of the schema.
func (t *Table) columnsAt(version int) []string {
	for _, e := range t.Earlier {
		if version < e.Before {
			return e.Columns
		}
	}
	return t.Columns
}

// SQL is a statement, or a part of one, in the words of each database.
type SQL struct{ SQLite, PostgreSQL string }

// SQL gives the words of the transaction's database.
func (tx *Tx) SQL(s SQL) string {
	if _, shared := tx.conn.(*pgConn); shared {
		return s.PostgreSQL
	}
	return s.SQLite
}

// RoundTrips says that a statement costs more than what it does: two are put into one where that can be.
func (tx *Tx) RoundTrips() bool { return tx.conn.sqlDialect().roundTrips }

// Follower gives what follows the transaction for an extension of the layout; nil in a snapshot.
func (tx *Tx) Follower(e *Extension) Follower {
	for i, one := range tx.store.layout.Extensions {
		if one == e && i < len(tx.followers) {
			return tx.followers[i]
		}
	}
	return nil
}

// follow begins to follow a transaction that changes something.
func (tx *Tx) startFollowers() {
	extensions := tx.store.layout.Extensions
	tx.followers = make([]Follower, len(extensions))
	for i, e := range extensions {
		if e.Follow != nil {
			tx.followers[i] = e.Follow(tx)
		}
	}
}

// changed counts a row that has changed, and tells the extensions of it.
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

// finish writes what stands at the end of a transaction: what the extensions keep, the totals and the history.
func (tx *Tx) finish() error {
	if err := tx.Refused(); err != nil {
		return err
	}
	for _, f := range tx.followers {
		if f != nil {
			if err := f.BeforeCommit(); err != nil {
				return err
			}
		}
	}
	if err := tx.writeTotals(); err != nil {
		return err
	}
	if err := tx.writeChangedTexts(); err != nil {
		return err
	}
	return tx.writeHistory()
}

// Extension gives the extension of that name in the layout; nil where there is none.
func (tx *Tx) Extension(name string) *Extension { return tx.store.layout.Extension(name) }

// Extension gives the extension of that name; nil where there is none.
func (l *Layout) Extension(name string) *Extension {
	for _, e := range l.Extensions {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Layout is what is kept in the database.
func (s *Store) Layout() *Layout { return s.layout }

// own are the store's own tables.
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
	{Name: "filling", Derived: "says that this database is being filled"},
	{Name: "schema_version", Derived: "the schema's own"},
}

// Tables gives all tables: the store's, then those of the extensions.
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

// Carried gives the tables that are carried from one database to another, whole: history and secrets included.
func (l *Layout) Carried() []*Table {
	return slices.DeleteFunc(l.Tables(), func(t *Table) bool { return t.Derived != "" })
}

// script is one file of a migration.
type script struct {
	version int
	name    string
	text    string
}

// scripts gives the migrations for a database, sqlite or postgres, in the order in which they run.
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

// Version is the version of the schema that the layout has.
func (l *Layout) Version() (version int) {
	all, err := l.scripts("sqlite")
	if err != nil { // they are part of the binary
		panic(err)
	}
	for _, s := range all {
		version = max(version, s.version)
	}
	return version
}
