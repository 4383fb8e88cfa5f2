package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// isUnlogged reports whether the changes of a collection are not written to the history.
func (tx *Tx) isUnlogged(collection string) bool {
	return slices.Contains(tx.store.layout.Unlogged, collection)
}

// Describe names the transaction: its operation, such as ADD_IPV4_NETWORK, and a sentence. Only the first description counts;
// consequences of a change do not rename it. first reports whether this call was the first. Its caller may set the sentence later with
// Summarize.
func (tx *Tx) Describe(operation, summary string) (first bool) {
	if tx.operation != "" {
		return false
	}
	tx.operation, tx.summary = operation, summary
	return true
}

// Summarize sets the sentence of a transaction. Only the first caller of Describe may call it.
func (tx *Tx) Summarize(summary string) { tx.summary = summary }

// Rename sets the operation and the sentence of a transaction. Only the first caller of Describe may call it.
func (tx *Tx) Rename(operation, summary string) { tx.operation, tx.summary = operation, summary }

// Summary returns the current sentence of the transaction.
func (tx *Tx) Summary() string { return tx.summary }

// DescribeUndo names the transaction as the undo of another one and quotes the sentence of that one. If that one is an undo itself, only
// its number is given, so that sentences do not grow.
func (tx *Tx) DescribeUndo(undone int64) error {
	var undoneBody transactionBody
	if err := tx.Each(func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		return json.Unmarshal(body, &undoneBody)
	}, "SELECT body FROM txn WHERE id = ?", undone); err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	summary := fmt.Sprintf("Undid transaction %d", undone)
	if undoneBody.TransactionType == nil && undoneBody.Description != "" {
		summary += ": " + undoneBody.Description
	}
	tx.Describe("UNDO", summary)
	tx.kind, tx.undoes = "UNDO", undone
	own, err := tx.txnNumber()
	if err != nil {
		return err
	}
	if err := tx.Write("INSERT INTO reverting (txn, undo) VALUES (?, ?) ON CONFLICT (txn) DO UPDATE SET undo = excluded.undo", undone,
		own); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// Number returns the number of the transaction in the history.
func (tx *Tx) Number() (int64, error) { return tx.txnNumber() }

// noChanges is the number of the first and last change of a transaction that is in the history without changes (Note).
const noChanges = -1

// Note writes the transaction to the history, with its author, even if it changes no resource: for changes of a package's own tables,
// such as a service point of the fleet. Such a transaction cannot be undone. summary is a sentence that describes the change.
func (tx *Tx) Note(operation, summary string) error {
	if err := tx.requireWriting(); err != nil {
		return err
	}
	if _, err := tx.txnNumber(); err != nil {
		return err
	}
	tx.noted = true
	tx.Rename(operation, summary)
	return nil
}

// IsNoted reports whether a transaction is in the history without changes of resources (Note).
func (tx *Tx) IsNoted(transaction int64) (noted bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM txn WHERE id = ? AND first = ?)", transaction, noChanges).Scan(&noted)
	return noted, err
}

// Recorded returns the number of the transaction in the history, or 0 if it has made no change that the history contains.
func (tx *Tx) Recorded() int64 {
	if tx.first == 0 && !tx.noted {
		return 0
	}
	return tx.txn
}

// Changes returns the changes of a transaction of the history, in order. It returns none if the transaction does not exist.
func (tx *Tx) Changes(transaction int64) ([]EntryChange, error) {
	return tx.readChanges(transaction, 0, math.MaxInt)
}

// LastImages returns resources as their last changes left them. It omits resources whose last change is no longer kept.
func (tx *Tx) LastImages(ids []int64) (map[int64][]byte, error) {
	images := make(map[int64][]byte, len(ids))
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := InList(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			var image []byte
			err := scan(&id, &image)
			images[id] = image
			return err
		}, "SELECT r.id, c.after FROM resource r "+tx.SQL(SQL{SQLite: "CROSS JOIN", PostgreSQL: "JOIN"})+ // reads resource first
			" change c ON c.resource = r.id AND c.txn = r.version WHERE c.after IS NOT NULL AND r.id IN "+list+
			" ORDER BY c.seq", args...); err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
	}
	return images, nil
}

// LastImage returns a resource after its last change in the history, or before it if that deleted the resource. It returns nil if no
// change of the resource is kept.
func (tx *Tx) LastImage(id int64) (last *Resource, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var image []byte
		if err := scan(&image); err != nil {
			return err
		}
		last, err = DecodeImage(image)
		return err
	}, "SELECT coalesce(after, before) FROM change WHERE resource = ? ORDER BY txn DESC, seq DESC LIMIT 1", id)
	return last, err
}

// EarlierImages returns a resource before each of its last changes in the history, latest first, at most limit of them.
func (tx *Tx) EarlierImages(id int64, limit int) (all []*Resource, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var image []byte
		if err := scan(&image); err != nil {
			return err
		}
		r, err := DecodeImage(image)
		if r != nil {
			all = append(all, r)
		}
		return err
	}, "SELECT before FROM change WHERE resource = ? ORDER BY txn DESC, seq DESC LIMIT ?", id, limit)
	return all, err
}

// DecodeImage decodes a resource from the history. It returns nil for a nil image.
func DecodeImage(image []byte) (*Resource, error) {
	if image == nil {
		return nil, nil
	}
	var i struct {
		Resource
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(image, &i); err != nil {
		return nil, fmt.Errorf("read an image of the history: %w", err)
	}
	i.Resource.Body = i.Body
	return &i.Resource, nil
}

// EachDeleted calls fn for the resources deleted since a time in Unix milliseconds, as they were before, latest first. It passes at most
// limit resources. It searches only the latest transactions of the history, whose number is transactions.
func (tx *Tx) EachDeleted(since int64, limit, transactions int, fn func(*Resource) error) error {
	var images [][]byte
	if err := tx.Each(func(scan func(...any) error) error {
		var image []byte
		err := scan(&image)
		images = append(images, image)
		return err
	}, "SELECT c.before FROM txn t JOIN change c ON c.txn = t.id WHERE t.id > (SELECT coalesce(max(id), 0) FROM txn) - ? AND t.at >= ?"+
		" AND c.operation = 'DELETE' ORDER BY t.id DESC, c.seq DESC LIMIT ?", transactions, since, limit); err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	for _, image := range images {
		r, err := DecodeImage(image)
		if err == nil {
			err = fn(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// EachChangeAfter calls fn for the changes of resources after a position of the change feed, by transaction, with the resource before and
// after each. They include those of transactions that the feed does not return yet. all is false if there are more than limit changes; fn
// then gets none of them. It returns ErrPruned and ErrForeignPosition as Store.Feed does.
func (tx *Tx) EachChangeAfter(after Position, limit int, fn func(before, after *Resource) error) (all bool, err error) {
	if err := tx.checkPosition(after); err != nil {
		return false, err
	}
	d := tx.conn.sqlDialect()
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM (SELECT 1 FROM "+d.changes+" LIMIT ?) changes", after.Settled, after.Transaction,
		limit+1).Scan(&n); err != nil {
		return false, fmt.Errorf("read the history: %w", err)
	}
	if n > limit {
		return false, nil
	}
	type images struct{ before, after []byte }
	changes := make([]images, 0, n)
	if err := tx.Each(func(scan func(...any) error) error {
		var c images
		err := scan(&c.before, &c.after)
		changes = append(changes, c)
		return err
	}, "SELECT c.before, c.after FROM "+d.changes+" ORDER BY t.id, c.seq", after.Settled, after.Transaction); err != nil {
		return false, fmt.Errorf("read the history: %w", err)
	}
	for _, c := range changes {
		was, err := DecodeImage(c.before)
		if err != nil {
			return false, err
		}
		is, err := DecodeImage(c.after)
		if err == nil {
			err = fn(was, is)
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// Keep writes a resource to a table of an extension that has the columns of resources and is a Source. It replaces a row with the same
// id. It does not write the links.
func (tx *Tx) Keep(table Source, r *Resource) error {
	if err := tx.Write("DELETE FROM "+string(table)+" WHERE id = ?", r.ID); err != nil {
		return err
	}
	return tx.Write("INSERT INTO "+string(table)+" ("+columns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		r.ID, r.Collection, r.Type, nullIfEmpty(r.Name), r.Parent, r.Configuration, r.Low, r.High, nullIfEmpty(r.Key), r.Version,
		formatRefs(r.Refs), string(r.Body))
}

// Tally is the number of resources that a transaction has created, changed and deleted so far.
type Tally struct {
	Created int `json:"created"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
}

// Tally returns the counts of the transaction so far. It sends queued statements first, so that the database has accepted them.
func (tx *Tx) Tally() (Tally, error) {
	var one int
	err := tx.QueryRow("SELECT 1").Scan(&one)
	return tx.tally, err
}

// Touched returns the resources that the transaction has changed so far, with their last operation: ADD, UPDATE or DELETE. It returns ADD
// for a resource that was created and then changed.
func (tx *Tx) Touched() (map[int64]string, error) {
	touched := map[int64]string{}
	number, err := tx.txnNumber()
	if err != nil {
		return nil, err
	}
	return touched, tx.Each(func(scan func(...any) error) error {
		var id int64
		var operation string
		err := scan(&id, &operation)
		if touched[id] != "ADD" || operation == "DELETE" { // a resource that was created and then changed stays ADD
			touched[id] = operation
		}
		return err
	}, "SELECT resource, operation FROM change WHERE txn = ? ORDER BY seq", number)
}

// TallyOf returns the number of resources that a transaction of the history created, changed and deleted.
func (tx *Tx) TallyOf(transaction int64) (t Tally, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var operation string
		var n int
		err := scan(&operation, &n)
		switch operation {
		case "ADD":
			t.Created = n
		case "DELETE":
			t.Deleted = n
		default:
			t.Changed = n
		}
		return err
	}, "SELECT operation, count(*) FROM change WHERE txn = ? GROUP BY operation", transaction)
	return t, err
}

// NotedAmong returns those of the transactions that are in the history without changes of resources (Note).
func (tx *Tx) NotedAmong(transactions []int64) (map[int64]bool, error) {
	noted := map[int64]bool{}
	for part := range slices.Chunk(transactions, loadAtOnce) {
		list, args := InList(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			noted[id] = true
			return err
		}, "SELECT id FROM txn WHERE first = ? AND id IN "+list, append([]any{int64(noChanges)}, args...)...); err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
	}
	return noted, nil
}

// txnNumber returns the number of the transaction. It is assigned at the first call.
func (tx *Tx) txnNumber() (n int64, err error) {
	if tx.txn == 0 {
		tx.txn, err = tx.ids.nextTxn()
	}
	return tx.txn, err
}

// EncodeImage encodes a resource for the history.
func EncodeImage(r *Resource) []byte {
	image, _ := encodeImage(r).(string)
	return []byte(image)
}

// encodeImage encodes a resource for the history, as an argument of a statement: the row as JSON, with the body, which is JSON, last.
func encodeImage(r *Resource) any {
	if r == nil {
		return nil
	}
	image := make([]byte, 0, imageSize+len(r.Body))
	image = append(strconv.AppendInt(append(image, `{"id":`...), r.ID, 10), `,"collection":`...)
	image = AppendString(image, r.Collection)
	image = AppendString(append(image, `,"type":`...), r.Type)
	if r.Name != "" {
		image = AppendString(append(image, `,"name":`...), r.Name)
	}
	if r.Parent != 0 {
		image = strconv.AppendInt(append(image, `,"parent":`...), r.Parent, 10)
	}
	if r.Configuration != 0 {
		image = strconv.AppendInt(append(image, `,"configuration":`...), r.Configuration, 10)
	}
	for _, end := range []struct {
		name string
		key  []byte
	}{{"low", r.Low}, {"high", r.High}} {
		if len(end.key) > 0 {
			image = append(append(append(image, `,"`...), end.name...), `":"`...)
			image = append(base64.StdEncoding.AppendEncode(image, end.key), '"')
		}
	}
	if r.Key != "" {
		image = AppendString(append(image, `,"key":`...), r.Key)
	}
	image = strconv.AppendInt(append(image, `,"version":`...), r.Version, 10)
	image = appendRefs(image, `,"refs":`, r.Refs)
	image = appendRefs(image, `,"links":`, r.Links)
	image = append(append(image, `,"body":`...), r.Body...)
	return string(append(image, '}'))
}

// imageSize is the size in bytes of most images without their bodies.
const imageSize = 320

// appendRefs appends a list of references after a member name, or nothing if there are none.
func appendRefs(b []byte, name string, refs []Ref) []byte {
	if len(refs) == 0 {
		return b
	}
	b = append(append(b, name...), '[')
	for i, ref := range refs {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(append(b, `{"field":`...), ref.Field)
		b = append(strconv.AppendInt(append(b, `,"target":`...), ref.Target, 10), '}')
	}
	return append(b, ']')
}

// nextChange assigns the number of the next change. The numbers within a transaction must rise, so lower reserved numbers are skipped.
func (tx *Tx) nextChange() error {
	for {
		n, err := tx.ids.nextChange()
		if err != nil {
			return err
		}
		if n > tx.last {
			tx.last = n
			return nil
		}
	}
}

// recordChange writes one change with its images.
func (tx *Tx) recordChange(operation string, before, after *Resource) error {
	r := after
	if r == nil {
		r = before
	}
	if err := tx.noteChanged(before, after); err != nil {
		return err
	}
	if tx.isUnlogged(r.Collection) {
		return nil
	}
	old, young := encodeImage(before), encodeImage(after)
	if err := tx.nextChange(); err != nil {
		return err
	}
	number, err := tx.txnNumber()
	if err != nil {
		return err
	}
	if err := tx.insert("change", "INSERT INTO change (seq, txn, resource, operation, before, after) VALUES (?,?,?,?,?,?)",
		tx.last, number, r.ID, operation, old, young); err != nil {
		return fmt.Errorf("record change: %w", err)
	}
	tx.noteLogged(tx.last)
	_ = tx.Describe(operation, operation) // unless the caller describes it better
	return nil
}

// transactionBody is the body of a transaction's row, with the fields of its resource.
type transactionBody struct {
	Operation        string  `json:"operation"`
	Description      string  `json:"description"`
	Principal        *string `json:"principal"`
	Comment          *string `json:"comment"`
	Credential       *string `json:"credential"`
	RemoteAddress    *string `json:"remoteAddress"`
	Client           *string `json:"client"`
	CreationDateTime string  `json:"creationDateTime"`
	TransactionType  *string `json:"transactionType"`
	Undoes           *int64  `json:"undoes"`
}

// pointerOrNil returns a pointer to a text, or nil if the text is empty.
func pointerOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// writeHistory writes the row of the transaction, if it changed anything that the history contains, or was noted (Note).
func (tx *Tx) writeHistory() error {
	switch {
	case tx.first != 0:
	case tx.noted:
		tx.first, tx.last = noChanges, noChanges
	default:
		return nil
	}
	var undoes *int64
	if tx.undoes != 0 {
		undoes = &tx.undoes
	}
	body, err := json.Marshal(transactionBody{tx.operation, tx.summary, pointerOrNil(tx.author.Name), pointerOrNil(tx.author.Comment),
		pointerOrNil(tx.author.Credential), pointerOrNil(tx.author.Remote), pointerOrNil(tx.author.Client),
		tx.now.UTC().Format(time.RFC3339), pointerOrNil(tx.kind),
		undoes})
	if err != nil {
		return err
	}
	if err := tx.Write("INSERT INTO txn (id, at, user_id, operation, first, last, body) VALUES (?,?,?,?,?,?,?)",
		tx.txn, tx.now.UnixMilli(), tx.author.User, tx.operation, tx.first, tx.last, string(body)); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return tx.Write("INSERT INTO history_due (txn) VALUES (?)", tx.txn)
}
