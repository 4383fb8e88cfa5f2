package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
)

// Resource is one row: the columns that every resource has, and the body with the fields of its type.
type Resource struct {
	ID         int64  `json:"id"`
	Collection string `json:"collection"`
	Type       string `json:"type"`
	// Name is empty if the resource has no name.
	Name string `json:"name,omitempty"`
	// Parent is the id of the resource above; 0 if there is none.
	Parent int64 `json:"parent,omitempty"`
	// Configuration is the id of the configuration that contains the resource; 0 if none does.
	Configuration int64 `json:"configuration,omitempty"`
	// Low and High are the span keys (AddrKey) of a block, network or address. They are nil for other resources.
	Low  []byte `json:"low,omitempty"`
	High []byte `json:"high,omitempty"`
	// Key is the look-up key that the type defines. It is empty for types without one.
	Key string `json:"key,omitempty"`
	// Version is the number of the transaction that last wrote this row.
	Version int64 `json:"version"`
	// Refs are the single-valued references, in the order of the type's fields.
	Refs []Ref `json:"refs,omitempty"`
	// Links are the targets of the many-valued fields. They are only loaded on request.
	Links []Ref `json:"links,omitempty"`
	// Body is the JSON object with the fields of the type.
	Body []byte `json:"-"`
}

// Ref is a reference from a field of a resource to another resource.
type Ref struct {
	Field  string `json:"field"`
	Target int64  `json:"target"`
}

// Head contains the properties of a resource that are shown where another resource refers to it.
type Head struct {
	ID                     int64
	Collection, Type, Name string
	Parent, Configuration  int64
	// Inline is the JSON of the body member that is shown with the head (Store.ShowInline). It is empty if there is none. While a head is
	// being read, Inline is the whole body.
	Inline string
}

// Head returns the head of the resource, without Inline.
func (r *Resource) Head() Head {
	return Head{ID: r.ID, Collection: r.Collection, Type: r.Type, Name: r.Name, Parent: r.Parent, Configuration: r.Configuration}
}

// ErrNotFound means that a resource does not exist.
var ErrNotFound = errors.New("resource does not exist")

// Tx is a snapshot or, in Update, a transaction. It is valid until the function that received it returns, and must not be kept.
type Tx struct {
	ctx   context.Context
	store *Store
	conn  conn
	now   time.Time
	// seenCommit is the number of the last commit known before the transaction started (commits).
	seenCommit uint64
	// inline are the body members that heads include, by type.
	inline  *inlineMembers
	writing bool
	// latest is true if each statement sees the latest commit.
	latest bool
	// skipResolve disables the look-up of resources that conditions walk through (resolve).
	skipResolve bool
	ids         numbers
	author      Author
	// txn is the number of this transaction in the history. It is 0 until the first change of a resource.
	txn       int64
	operation string
	summary   string
	kind      string // UNDO, or empty
	undoes    int64  // the transaction that this one undoes; 0 if none
	tally     Tally
	trial     *trial // nil unless the change is only tried
	approved  bool   // current changes require no approval: others approve them, or have done so
	// neededApproval is true if a change required an approval.
	neededApproval bool
	requestedBy    int64 // the user who requested the approved change; 0 if that is the author or not a user
	totals         totals
	changedTexts   []int64 // resources whose indexed texts changed
	// first and last are the numbers of the first and last change of this transaction in the history; 0 before the first one. noted is
	// true if the transaction is written to the history even without changes.
	first, last int64
	noted       bool
	// step counts the calls of Touch. topics contains the step at which each topic was last touched (Cache). groupTopics are the topics
	// of earlier jobs in the same commit.
	step int
	// writes counts the write requests of the transaction.
	writes      int
	topics      map[string]int
	groupTopics map[string]bool
	// ownCache contains cached values of this transaction that must not be shared (Cache).
	ownCache map[ownKey]ownValue
	// largeWork is true if the transaction is a step of large work (MarkLargeWork).
	largeWork bool
	// followers are those of the layout's extensions, in their order. It is nil in a snapshot.
	followers []Follower
	// listParents are the parents and configurations of the rows of a short list (NoteHeads).
	listParents map[int64]bool
	// prefetched are heads that were read together with resources.
	prefetched map[int64]Head
	// readRows are resources that this change has read, in their current state. It is used only while no other change can commit.
	readRows map[int64]*Resource
	// expected are resources that this change has read ahead.
	expected expected
	// joinedTexts are the texts that were read together with shown resources, in the order of the layout's extensions.
	joinedTexts map[int64][]string
}

// IsUpdate reports whether the transaction is an update.
func (tx *Tx) IsUpdate() bool { return tx.writing }

// MarkLargeWork records that the transaction is a step of work with many changes, such as an import. Deployments of its changes may wait
// for deployments of other changes.
func (tx *Tx) MarkLargeWork() { tx.largeWork = true }

// IsLargeWork reports whether MarkLargeWork was called.
func (tx *Tx) IsLargeWork() bool { return tx.largeWork }

// Now returns the time of the transaction.
func (tx *Tx) Now() time.Time { return tx.now }

// Approve marks the changes until the call of end as approved, or to be approved, by users other than the author. requestedBy is the user
// who requested the change. It is 0 if that is the author or not a user.
func (tx *Tx) Approve(requestedBy int64) (end func()) {
	tx.approved, tx.requestedBy = true, requestedBy
	return func() { tx.approved, tx.requestedBy = false, 0 }
}

// Approved reports whether the current changes are marked by Approve, and returns the user who requested them.
func (tx *Tx) Approved() (requestedBy int64, approved bool) { return tx.requestedBy, tx.approved }

// NoteApproval records that the transaction contains changes that require an approval.
func (tx *Tx) NoteApproval() { tx.neededApproval = true }

// NeededApproval reports whether the transaction contains changes that require an approval.
func (tx *Tx) NeededApproval() bool { return tx.neededApproval }

// Author returns the author of the transaction.
func (tx *Tx) Author() Author { return tx.author }

// AddrKey returns the 17-byte key that addresses are stored as and compared by: the family (4 or 6) in one byte, then 16 bytes with the
// address, IPv4 right-aligned.
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

// KeyAddr returns the address of a key that AddrKey returned.
func KeyAddr(key []byte) netip.Addr {
	if len(key) != 17 {
		return netip.Addr{}
	}
	if key[0] == 4 {
		return netip.AddrFrom4([4]byte(key[13:17]))
	}
	return netip.AddrFrom16([16]byte(key[1:17]))
}

// Exec runs a statement on an extension's own table and returns the number of rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.requireWriting(); err != nil {
		return 0, err
	}
	return tx.conn.exec(query, args...)
}

// Write is Exec without the number of rows. On PostgreSQL the statement is sent with the next query or the commit, which may return its
// error.
func (tx *Tx) Write(query string, args ...any) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	return tx.conn.execLater(query, args...)
}

// QueryRow returns a query for one row. Scan runs it.
func (tx *Tx) QueryRow(query string, args ...any) Row { return Row{tx.conn, query, args} }

// Row is a query for one row.
type Row struct {
	conn  conn
	query string
	args  []any
}

// Scan runs the query and reads its first row. It returns sql.ErrNoRows if there are no rows.
func (r Row) Scan(dest ...any) error {
	return queryFirst(r.conn, r.query, r.args, func(at row) error { return at.scan(dest...) })
}

// Each runs a query and calls fn for each of its rows.
func (tx *Tx) Each(fn func(scan func(...any) error) error, query string, args ...any) error {
	return tx.conn.each(query, args, func(at row) error { return fn(at.scan) })
}

// Stream is Each for large results: only a few rows are in memory at a time.
func (tx *Tx) Stream(fn func(scan func(...any) error) error, query string, args ...any) error {
	return tx.conn.list(query, args, false, func(at row) error { return fn(at.scan) })
}

// shownColumns are the columns that an answer shows, and the low end of the span, which a link to the next page may contain.
const (
	shownColumns = "id, collection, type, name, parent, configuration, version, refs, body, low"
	shownSize    = 10
)

const columns = "id, collection, type, name, parent, configuration, low, high, key, version, refs, body"

// rowColumns and shownRowColumns are columns and shownColumns of the row alias r.
var (
	rowColumns      = "r." + strings.ReplaceAll(columns, ", ", ", r.")
	shownRowColumns = "r." + strings.ReplaceAll(shownColumns, ", ", ", r.")
)

// Ref returns the target of a single-valued reference, or 0 if it is not set.
func (r *Resource) Ref(field string) int64 {
	for _, ref := range r.Refs {
		if ref.Field == field {
			return ref.Target
		}
	}
	return 0
}

// Clone returns a copy that shares no memory with r, except for Refs and Links.
func (r *Resource) Clone() *Resource {
	c := *r
	c.Low, c.High, c.Body = bytes.Clone(r.Low), bytes.Clone(r.High), bytes.Clone(r.Body)
	return &c
}

// requireWriting returns an error outside of an update. Each method that writes calls it.
func (tx *Tx) requireWriting() error {
	if !tx.writing {
		return errors.New("write outside of Update")
	}
	tx.writes++
	return nil
}

func (tx *Tx) writeLinks(r *Resource) error {
	for _, refs := range [][]Ref{r.Refs, r.Links} {
		for _, ref := range refs {
			if err := tx.Write("INSERT INTO reference (source, field, target) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
				r.ID, ref.Field, ref.Target); err != nil {
				return fmt.Errorf("write reference: %w", err)
			}
		}
	}
	return nil
}

// Touch records that the transaction is about to change data of a topic. It invalidates the cached values that depend on the topic
// (Cache): for this transaction at once, for others at the commit.
func (tx *Tx) Touch(topic string) {
	tx.step++
	if tx.topics == nil {
		tx.topics = map[string]int{}
	}
	tx.topics[topic] = tx.step
}

// Writes returns the number of write requests so far. If it is unchanged, nothing was written in between.
func (tx *Tx) Writes() int { return tx.writes }

func nullIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Insert writes a new resource and records it in the history. It assigns an id if r.ID is 0.
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
	if err := tx.insert("resource", "INSERT INTO resource ("+columns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		r.ID, r.Collection, r.Type, nullIfEmpty(r.Name), r.Parent, r.Configuration, r.Low, r.High, nullIfEmpty(r.Key), r.Version,
		formatRefs(r.Refs), string(r.Body)); err != nil {
		return fmt.Errorf("insert resource: %w", err)
	}
	if err := tx.writeLinks(r); err != nil {
		return err
	}
	return tx.recordChange("ADD", nil, r)
}

// Replace overwrites the resource old, as read in this transaction, with r. Links is the complete set of links: Replace deletes all
// others.
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
				return fmt.Errorf("update references: %w", err)
			}
		}
		if err := tx.writeLinks(r); err != nil {
			return err
		}
	}
	return tx.recordChange("UPDATE", old, r)
}

// writeChangedColumns updates only the columns that changed: SQLite writes every index of a column in SET, even if the value is the same.
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
		return fmt.Errorf("update resource: %w", err)
	}
	tx.forgetRow(r.ID)
	return nil
}

// LoadLinks reads the many-valued references of a resource into Links.
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

// Remove deletes a resource and its references to others, and records the deletion. The caller must first delete the resources below it
// and the references to it.
func (tx *Tx) Remove(r *Resource) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	if err := tx.LoadLinks(r); err != nil {
		return err
	}
	return tx.RemoveLoaded(r)
}

// RemoveLoaded is Remove for a resource whose links are loaded.
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
			return fmt.Errorf("delete resource: %w", err)
		}
	}
	return tx.recordChange("DELETE", r, nil)
}

// IsNotFound reports whether the error is ErrNotFound.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// Problem converts ErrNotFound into a 404 problem with the given message. It returns other errors unchanged.
func Problem(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return problem.NotFound(format, args...)
	}
	return err
}
