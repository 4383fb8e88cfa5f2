package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"portolan/internal/base/problem"
)

// Resource is one row: the head that every resource has, and the body that its type gave.
type Resource struct {
	ID         int64  `json:"id"`
	Collection string `json:"collection"`
	Type       string `json:"type"`
	// Name is empty where the resource has none.
	Name string `json:"name,omitempty"`
	// Parent is the id of the resource above, 0 where there is none.
	Parent int64 `json:"parent,omitempty"`
	// Configuration is the id of the configuration the resource belongs to, 0 outside of all.
	Configuration int64 `json:"configuration,omitempty"`
	// Low and High are the span keys (AddrKey) of a block, network or address; nil elsewhere.
	Low  []byte `json:"low,omitempty"`
	High []byte `json:"high,omitempty"`
	// Key is the type's own look-up key; empty where it has none.
	Key string `json:"key,omitempty"`
	// Version is the number of the transaction that wrote this row last.
	Version int64 `json:"version"`
	// Refs are the single references, in the order of the type's fields.
	Refs []Ref `json:"refs,omitempty"`
	// Links are the targets of the fields that hold many; only read where asked for.
	Links []Ref `json:"links,omitempty"`
	// Body is the JSON object of the type's own fields.
	Body []byte `json:"-"`
}

// Ref is a reference from a field of a resource to another resource.
type Ref struct {
	Field  string `json:"field"`
	Target int64  `json:"target"`
}

// Head is what an inlined reference shows of its target.
type Head struct {
	ID                     int64
	Collection, Type, Name string
	Parent, Configuration  int64
	// Inline is the JSON of the member that is shown beside (Store.ShowInline); empty where there is none. While a head
	// is being read it is the whole body.
	Inline string
}

// Head gives what identifies the resource.
func (r *Resource) Head() Head {
	return Head{ID: r.ID, Collection: r.Collection, Type: r.Type, Name: r.Name, Parent: r.Parent, Configuration: r.Configuration}
}

// ErrNotFound is a resource that is not there.
var ErrNotFound = errors.New("no such resource")

// Tx is a snapshot or, inside Update, a transaction. It ends with the function it was given to and
// must not be kept.
type Tx struct {
	ctx   context.Context
	store *Store
	conn  conn
	now   time.Time
	// at is the number of the last commit that was known before this began (commits).
	seenCommit uint64
	// inline are the members that heads have beside what every one has, by type.
	inline  *inlineMembers
	writing bool
	// latest says that each statement sees the latest commit.
	latest bool
	// unresolved says that what conditions go through is not looked for before (resolve).
	skipResolve bool
	ids         numbers
	author      Author
	// txn is the number of this job's transaction, 0 until it first changes a resource.
	txn       int64
	operation string
	summary   string
	kind      string // of the transaction: UNDO, or empty
	undoes    int64  // the transaction that it takes back; 0 for none
	tally     Tally
	trial     *trial // nil where what is changed is to stay
	approved  bool   // others approve what is changed now, or have done so
	// neededApproval reports that a change required an approval.
	neededApproval bool
	askedBy        int64 // the user who asked for it; 0 where nobody did, or no user
	totals         totals
	changedTexts   []int64 // whose texts have changed
	// first and last are the numbers of this job's changes in the history, 0 until there is one; noted says that it stands there also without.
	first, last int64
	noted       bool
	// step counts what this job touched, topics has the step at which it last touched each (Cache). earlier are the topics
	// of the jobs before it that share its commit.
	step int
	// writes counts what the transaction was asked to write.
	writes      int
	topics      map[string]int
	groupTopics map[string]bool
	// own is what was found out in this transaction that must not be shared (Cache).
	ownCache map[ownKey]ownValue
	// followers follow it for the extensions of the layout, in their order; nil in a snapshot.
	followers []Follower
	// around are what the rows of a short list lie in (NoteHeads).
	listParents map[int64]bool
	// prefetched are heads that came with resources that were read.
	prefetched map[int64]Head
	// read are resources that were read in this change, where nobody else changes anything meanwhile, as they are by now.
	readRows map[int64]*Resource
	// beside is what came with resources that were read to be shown, in the order of the layout's extensions.
	besideTexts map[int64][]string
}

// Writing reports whether it is an update.
func (tx *Tx) Writing() bool { return tx.writing }

// Now is the time of the transaction.
func (tx *Tx) Now() time.Time { return tx.now }

// Approve notes that others than the author approve what the transaction changes until end is called, or have done so; askedBy is the
// user who asked for it, 0 where that is the author, or no user.
func (tx *Tx) Approve(askedBy int64) (end func()) {
	tx.approved, tx.askedBy = true, askedBy
	return func() { tx.approved, tx.askedBy = false, 0 }
}

// Approved reports whether others approve what is changed now, and who asked for it.
func (tx *Tx) Approved() (askedBy int64, approved bool) { return tx.askedBy, tx.approved }

// NoteApproval notes that the transaction changes what others have to approve.
func (tx *Tx) NoteApproval() { tx.neededApproval = true }

// NeededApproval reports whether the transaction changes what others have to approve.
func (tx *Tx) NeededApproval() bool { return tx.neededApproval }

// Author is who the transaction is for.
func (tx *Tx) Author() Author { return tx.author }

// AddrKey gives the 17 bytes by which addresses are stored and compared: a byte of family, 4 or 6,
// then the address in 16 bytes, IPv4 right-aligned.
func AddrKey(a netip.Addr) []byte {
	key := make([]byte, 17)
	if a.Is4() {
		four := a.As4()
		key[0] = 4
		copy(key[13:], four[:])
		return key
	}
	sixteen := a.As16()
	key[0] = 6
	copy(key[1:], sixteen[:])
	return key
}

// KeyAddr is the address of a key that AddrKey made.
func KeyAddr(key []byte) netip.Addr {
	if len(key) != 17 {
		return netip.Addr{}
	}
	if key[0] == 4 {
		return netip.AddrFrom4([4]byte(key[13:17]))
	}
	return netip.AddrFrom16([16]byte(key[1:17]))
}

// Exec runs a statement of a room that keeps its own table and gives the number of rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.requireWriting(); err != nil {
		return 0, err
	}
	return tx.conn.exec(query, args...)
}

// Write is Exec where nobody asks how many rows it changed. On PostgreSQL it waits for the next
// statement that somebody asks for, or for the commit; its error may be theirs.
func (tx *Tx) Write(query string, args ...any) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	return tx.conn.execLater(query, args...)
}

// QueryRow asks for one row, which Scan of the answer reads.
func (tx *Tx) QueryRow(query string, args ...any) Row { return Row{tx.conn, query, args} }

// Row is a question for one row.
type Row struct {
	conn  conn
	query string
	args  []any
}

// Scan runs the query and reads its first row; it gives sql.ErrNoRows where there is none.
func (r Row) Scan(dest ...any) error {
	return queryFirst(r.conn, r.query, r.args, func(at row) error { return at.scan(dest...) })
}

// Each runs a query and calls fn for each of its rows.
func (tx *Tx) Each(fn func(scan func(...any) error) error, query string, args ...any) error {
	return tx.conn.each(query, args, func(at row) error { return fn(at.scan) })
}

// Stream is Each for answers that may be long: few of its rows are in memory at a time.
func (tx *Tx) Stream(fn func(scan func(...any) error) error, query string, args ...any) error {
	return tx.conn.list(query, args, false, func(at row) error { return fn(at.scan) })
}

// shownColumns are those that an answer shows, and the low end of the span, which a link to the next page may name.
const (
	shownColumns = "id, collection, type, name, parent, configuration, version, refs, body, low"
	shownSize    = 10
)

const columns = "id, collection, type, name, parent, configuration, low, high, key, version, refs, body"

// Ref gives the target of a single reference; 0 where there is none.
func (r *Resource) Ref(field string) int64 {
	for _, ref := range r.Refs {
		if ref.Field == field {
			return ref.Target
		}
	}
	return 0
}

// Clone gives a copy that shares no memory with r.
func (r *Resource) Clone() *Resource {
	c := *r
	c.Low, c.High, c.Body = bytes.Clone(r.Low), bytes.Clone(r.High), bytes.Clone(r.Body)
	return &c
}

// mustWrite guards the methods that change something.
func (tx *Tx) requireWriting() error {
	if !tx.writing {
		return errors.New("a change outside of Update")
	}
	tx.writes++
	return nil
}

func (tx *Tx) writeLinks(r *Resource) error {
	for _, refs := range [][]Ref{r.Refs, r.Links} {
		for _, ref := range refs {
			if err := tx.Write("INSERT INTO reference (source, field, target) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
				r.ID, ref.Field, ref.Target); err != nil {
				return fmt.Errorf("writing a reference: %w", err)
			}
		}
	}
	return nil
}

// Touch notes that the transaction changes something of a topic, before it does: what was remembered that follows from
// it (Cache) holds no longer, for this transaction at once, for others with its commit.
func (tx *Tx) Touch(topic string) {
	tx.step++
	if tx.topics == nil {
		tx.topics = map[string]int{}
	}
	tx.topics[topic] = tx.step
}

// Writes is how often the transaction was asked to write something: as often as before where nothing was written in between.
func (tx *Tx) Writes() int { return tx.writes }

func nullIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Insert writes a new resource, taking an id where it has none, and records it in the history.
func (tx *Tx) Insert(r *Resource) (err error) {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	if r.ID == 0 {
		if r.ID, err = tx.ids.nextResource(); err != nil {
			return err
		}
	}
	tx.Touch(r.Collection)
	if r.Version, err = tx.txnNumber(); err != nil {
		return err
	}
	if err := tx.Write("INSERT INTO resource ("+columns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		r.ID, r.Collection, r.Type, nullIfEmpty(r.Name), r.Parent, r.Configuration, r.Low, r.High, nullIfEmpty(r.Key), r.Version,
		formatRefs(r.Refs), string(r.Body)); err != nil {
		return fmt.Errorf("inserting a resource: %w", err)
	}
	if err := tx.writeLinks(r); err != nil {
		return err
	}
	return tx.recordChange("ADD", nil, r)
}

// Replace writes a resource anew over old, as it was read in this transaction. Links is the whole
// set of its links: what is not in it goes.
func (tx *Tx) Replace(old, r *Resource) (err error) {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	tx.Touch(r.Collection)
	if r.Version, err = tx.txnNumber(); err != nil {
		return err
	}
	if err := tx.writeChangedColumns(old, r); err != nil {
		return err
	}
	if !slices.Equal(old.Refs, r.Refs) || !slices.Equal(old.Links, r.Links) {
		if len(old.Refs)+len(old.Links) > 0 {
			if err := tx.Write("DELETE FROM reference WHERE source = ?", r.ID); err != nil {
				return fmt.Errorf("updating references: %w", err)
			}
		}
		if err := tx.writeLinks(r); err != nil {
			return err
		}
	}
	return tx.recordChange("UPDATE", old, r)
}

// rewrite writes those columns of a row that have changed: SQLite writes every index of a column that a statement sets, whether it has
// changed or not.
func (tx *Tx) writeChangedColumns(old, r *Resource) error {
	set, args := "UPDATE resource SET version=?", []any{r.Version}
	change := func(changed bool, columns string, values ...any) {
		if changed {
			set, args = set+columns, append(args, values...)
		}
	}
	change(old.Name != r.Name, ", name=?", nullIfEmpty(r.Name))
	change(old.Parent != r.Parent, ", parent=?", r.Parent)
	change(old.Type != r.Type || old.Configuration != r.Configuration, ", type=?, configuration=?", r.Type, r.Configuration)
	change(!bytes.Equal(old.Low, r.Low) || !bytes.Equal(old.High, r.High), ", low=?, high=?", r.Low, r.High)
	change(old.Key != r.Key, ", key=?", nullIfEmpty(r.Key))
	change(!slices.Equal(old.Refs, r.Refs), ", refs=?", formatRefs(r.Refs))
	change(!bytes.Equal(old.Body, r.Body), ", body=?", string(r.Body))
	if err := tx.Write(set+" WHERE id=?", append(args, r.ID)...); err != nil {
		return fmt.Errorf("updating a resource: %w", err)
	}
	tx.forgetRow(r.ID)
	return nil
}

// LoadLinks reads the many-valued references of a resource, all fields but its single ones.
func (tx *Tx) LoadLinks(r *Resource) error {
	r.Links = nil
	return tx.Each(func(scan func(...any) error) error {
		var ref Ref
		if err := scan(&ref.Field, &ref.Target); err != nil {
			return err
		}
		for _, single := range r.Refs {
			if single.Field == ref.Field {
				return nil
			}
		}
		r.Links = append(r.Links, ref)
		return nil
	}, "SELECT field, target FROM reference WHERE source = ? ORDER BY field, target", r.ID)
}

// Remove deletes one resource and its references to others, and records it. What points at it and
// what lies below it is the caller's to see to first.
func (tx *Tx) Remove(r *Resource) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	if err := tx.LoadLinks(r); err != nil {
		return err
	}
	return tx.RemoveLoaded(r)
}

// RemoveLoaded is Remove of a resource whose links are loaded.
func (tx *Tx) RemoveLoaded(r *Resource) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	tx.Touch(r.Collection)
	tx.forgetRow(r.ID)
	for _, query := range []string{
		"DELETE FROM resource WHERE id = ?", "DELETE FROM reference WHERE source = ?",
	} {
		if err := tx.Write(query, r.ID); err != nil {
			return fmt.Errorf("deleting a resource: %w", err)
		}
	}
	return tx.recordChange("DELETE", r, nil)
}

// IsNotFound reports whether an error is a resource that is not there.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// Problem words ErrNotFound for a client.
func Problem(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return problem.NotFound(format, args...)
	}
	return err
}
