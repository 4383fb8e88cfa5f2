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

// unlogged reports whether the changes of a collection stay out of the history.
func (tx *Tx) unlogged(collection string) bool {
	return slices.Contains(tx.store.layout.Unlogged, collection)
}

// Describe names the transaction: the operation, such as ADD_IPV4_NETWORK, and a sentence. The first
// description of a transaction stands; effects of it do not rename it. Who was first may put the
// sentence in later, with Summarize.
func (tx *Tx) Describe(operation, summary string) (first bool) {
	if tx.operation != "" {
		return false
	}
	tx.operation, tx.summary = operation, summary
	return true
}

// Summarize gives the sentence of a transaction that the caller was the first to describe.
func (tx *Tx) Summarize(summary string) { tx.summary = summary }

// Rename gives another name and another sentence to a transaction that the caller was the first to describe.
func (tx *Tx) Rename(operation, summary string) { tx.operation, tx.summary = operation, summary }

// Summary is the sentence that the transaction has so far.
func (tx *Tx) Summary() string { return tx.summary }

// DescribeUndo names the transaction as one that takes back another one, and says what that did. Of one that took back a third one,
// its number is enough: sentences do not grow.
func (tx *Tx) DescribeUndo(undone int64) error {
	var did transactionBody
	if err := tx.Each(func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		return json.Unmarshal(body, &did)
	}, "SELECT body FROM txn WHERE id = ?", undone); err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	summary := fmt.Sprintf("Undid transaction %d", undone)
	if did.TransactionType == nil && did.Description != "" {
		summary += ": " + did.Description
	}
	tx.Describe("UNDO", summary)
	tx.kind, tx.undoes = "UNDO", undone
	own, err := tx.txnNumber()
	if err != nil {
		return err
	}
	if err := tx.Write("INSERT INTO reverting (txn, undo) VALUES (?, ?) ON CONFLICT (txn) DO UPDATE SET undo = excluded.undo", undone,
		own); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}

// Number is the number that the transaction has in the history.
func (tx *Tx) Number() (int64, error) { return tx.txnNumber() }

// noChanges are the first and the last number of the changes of a transaction that stands in the history without any (Note).
const noChanges = -1

// Note has the transaction stand in the history, with its author, although it may change no resource: what a room keeps in tables of its
// own was changed by somebody, such as a service point of the fleet. It cannot be taken back. summary says what was done, in a sentence.
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

// Noted reports whether a transaction stands in the history without changes of resources (Note).
func (tx *Tx) Noted(transaction int64) (noted bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM txn WHERE id = ? AND first = ?)", transaction, noChanges).Scan(&noted)
	return noted, err
}

// Recorded is the number that the transaction has in the history; 0 as long as it has changed nothing that the history keeps.
func (tx *Tx) Recorded() int64 {
	if tx.first == 0 && !tx.noted {
		return 0
	}
	return tx.txn
}

// Changes gives what a transaction of the history changed, in order; nothing where there is none.
func (tx *Tx) Changes(transaction int64) ([]EntryChange, error) {
	return tx.readChanges(transaction, 0, math.MaxInt)
}

// LastImages gives resources as the changes that wrote them last left them. Those of which no such change is
// kept are not in the answer.
func (tx *Tx) LastImages(ids []int64) (map[int64][]byte, error) {
	images := make(map[int64][]byte, len(ids))
	for part := range slices.Chunk(ids, loadAtOnce) {
		list, args := In(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			var image []byte
			err := scan(&id, &image)
			images[id] = image
			return err
		}, "SELECT r.id, c.after FROM resource r "+tx.SQL(SQL{SQLite: "CROSS JOIN", PostgreSQL: "JOIN"})+ // resources first
			" change c ON c.resource = r.id AND c.txn = r.version WHERE c.after IS NOT NULL AND r.id IN "+list+
			" ORDER BY c.seq", args...); err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
	}
	return images, nil
}

// LastImage gives a resource as the last change of it in the history left it, or found it where that took it away; nil where no change of
// it is kept.
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

// EarlierImages gives a resource as its last changes in the history found it, the latest first, at most so many.
func (tx *Tx) EarlierImages(id int64, most int) (all []*Resource, err error) {
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
	}, "SELECT before FROM change WHERE resource = ? ORDER BY txn DESC, seq DESC LIMIT ?", id, most)
	return all, err
}

// DecodeImage gives a resource as the history keeps it; nil where it was not there.
func DecodeImage(image []byte) (*Resource, error) {
	if image == nil {
		return nil, nil
	}
	var i struct {
		Resource
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(image, &i); err != nil {
		return nil, fmt.Errorf("reading an image of the history: %w", err)
	}
	i.Resource.Body = i.Body
	return &i.Resource, nil
}

// EachDeleted calls fn for what was deleted since a time, in Unix milliseconds, as it was last: the newest first, at most so many, of the
// last so many transactions.
func (tx *Tx) EachDeleted(since int64, most, transactions int, fn func(*Resource) error) error {
	var images [][]byte
	if err := tx.Each(func(scan func(...any) error) error {
		var image []byte
		err := scan(&image)
		images = append(images, image)
		return err
	}, "SELECT c.before FROM txn t JOIN change c ON c.txn = t.id WHERE t.id > (SELECT coalesce(max(id), 0) FROM txn) - ? AND t.at >= ?"+
		" AND c.operation = 'DELETE' ORDER BY t.id DESC, c.seq DESC LIMIT ?", transactions, since, most); err != nil {
		return fmt.Errorf("reading the history: %w", err)
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

// Keep writes a resource as it is now, or was, into a table of an extension that has the columns of resources and is a Source of its own,
// in the place of what that has of it. Its links are not kept.
func (tx *Tx) Keep(table Source, r *Resource) error {
	if err := tx.Write("DELETE FROM "+string(table)+" WHERE id = ?", r.ID); err != nil {
		return err
	}
	return tx.Write("INSERT INTO "+string(table)+" ("+columns+") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
		r.ID, r.Collection, r.Type, nullIfEmpty(r.Name), r.Parent, r.Configuration, r.Low, r.High, nullIfEmpty(r.Key), r.Version, formatRefs(r.Refs),
		string(r.Body))
}

// Tally is how many resources a transaction has made, changed and deleted so far.
type Tally struct {
	Created int `json:"created"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
}

// Tally counts what the transaction has done so far. What waits to be sent to the database is sent, so
// that the database has agreed to it.
func (tx *Tx) Tally() (Tally, error) {
	var one int
	err := tx.QueryRow("SELECT 1").Scan(&one)
	return tx.tally, err
}

// Touched gives the resources that the transaction has changed until now, each with its last operation: ADD, UPDATE or DELETE.
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
		if touched[id] != "ADD" || operation == "DELETE" { // what was made and changed then was made
			touched[id] = operation
		}
		return err
	}, "SELECT resource, operation FROM change WHERE txn = ? ORDER BY seq", number)
}

// TallyOf counts what a transaction of the history did: how many resources it made, changed and deleted.
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

// NotedAmong gives those among transactions, by their numbers, that stand in the history without changes of resources (Note).
func (tx *Tx) NotedAmong(transactions []int64) (map[int64]bool, error) {
	noted := map[int64]bool{}
	for part := range slices.Chunk(transactions, loadAtOnce) {
		list, args := In(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			noted[id] = true
			return err
		}, "SELECT id FROM txn WHERE first = ? AND id IN "+list, append([]any{int64(noChanges)}, args...)...); err != nil {
			return nil, fmt.Errorf("reading the history: %w", err)
		}
	}
	return noted, nil
}

// number is the transaction's number, taken at its first change.
func (tx *Tx) txnNumber() (n int64, err error) {
	if tx.txn == 0 {
		tx.txn, err = tx.ids.nextTxn()
	}
	return tx.txn, err
}

// EncodeImage writes a resource as the history keeps it.
func EncodeImage(r *Resource) []byte {
	image, _ := encodeImage(r).(string)
	return []byte(image)
}

// encodeImage writes a resource as the history keeps it, as the argument of a statement: its row as JSON, the body last. The body is
// JSON already and is taken as it is.
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

// imageRoom is as long as most images are without their bodies, in bytes.
const imageSize = 320

// appendRefs writes references behind a name, or nothing where there are none.
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

// nextChange numbers the next change. Those of a transaction rise: numbers that were reserved before
// others of it were given out are left out.
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

// record writes one change with its images.
func (tx *Tx) recordChange(operation string, before, after *Resource) error {
	r := after
	if r == nil {
		r = before
	}
	if err := tx.noteChanged(before, after); err != nil {
		return err
	}
	if tx.unlogged(r.Collection) {
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
	if err := tx.Write("INSERT INTO change (seq, txn, resource, operation, before, after) VALUES (?,?,?,?,?,?)",
		tx.last, number, r.ID, operation, old, young); err != nil {
		return fmt.Errorf("recording a change: %w", err)
	}
	tx.noteLogged(tx.last)
	_ = tx.Describe(operation, operation) // where nobody has said it better
	return nil
}

// transaction is the body of a transaction's row, with the fields of its resource.
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

// orNull gives a text, nil where it is empty.
func pointerOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// writeHistory writes the transaction's own row, if it changed anything the history keeps, or is to stand there all the same.
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
		pointerOrNil(tx.author.Credential), pointerOrNil(tx.author.Remote), pointerOrNil(tx.author.Client), tx.now.UTC().Format(time.RFC3339), pointerOrNil(tx.kind),
		undoes})
	if err != nil {
		return err
	}
	if err := tx.Write("INSERT INTO txn (id, at, user_id, operation, first, last, body) VALUES (?,?,?,?,?,?,?)",
		tx.txn, tx.now.UnixMilli(), tx.author.User, tx.operation, tx.first, tx.last, string(body)); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return tx.Write("INSERT INTO history_due (txn) VALUES (?)", tx.txn)
}
