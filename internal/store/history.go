package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// unlogged are the collections whose rows are no change to the network and stay out of the history.
func unlogged(collection string) bool { return collection == "sessions" }

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

// number is the transaction's number, taken at its first change.
func (tx *Tx) number() int64 {
	if tx.txn == 0 {
		tx.ids.txn++
		tx.txn = tx.ids.txn
	}
	return tx.txn
}

// image is a resource as the history keeps it.
type image struct {
	*Resource
	Body json.RawMessage `json:"body"`
}

func encodeImage(r *Resource) (any, error) {
	if r == nil {
		return nil, nil
	}
	text, err := json.Marshal(image{r, r.Body})
	if err != nil {
		return nil, fmt.Errorf("recording a change: %w", err)
	}
	return string(text), nil
}

// record writes one change with its images.
func (tx *Tx) record(operation string, before, after *Resource) error {
	r := after
	if r == nil {
		r = before
	}
	if unlogged(r.Collection) {
		return nil
	}
	old, err := encodeImage(before)
	if err != nil {
		return err
	}
	young, err := encodeImage(after)
	if err != nil {
		return err
	}
	tx.ids.change++
	if _, err := tx.Exec("INSERT INTO change (seq, txn, resource, operation, before, after) VALUES (?,?,?,?,?,?)",
		tx.ids.change, tx.number(), r.ID, operation, old, young); err != nil {
		return fmt.Errorf("recording a change: %w", err)
	}
	if tx.first == 0 {
		tx.first = tx.ids.change
	}
	_ = tx.Describe(operation, operation) // where nobody has said it better
	return nil
}

// writeHistory writes the transaction's own row, if it changed anything the history keeps.
func (tx *Tx) writeHistory() error {
	if tx.first == 0 {
		return nil
	}
	var comment any
	if tx.author.Comment != "" {
		comment = tx.author.Comment
	}
	body, err := json.Marshal(map[string]any{
		"operation": tx.operation, "description": tx.summary, "comment": comment,
		"creationDateTime": tx.now.UTC().Format(time.RFC3339), "transactionType": nil,
	})
	if err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO txn (id, at, user, operation, first, last, body) VALUES (?,?,?,?,?,?,?)",
		tx.txn, tx.now.UnixMilli(), tx.author.User, tx.operation, tx.first, tx.ids.change, string(body)); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}

// Image is a resource as it stood before or after a change.
type Image struct {
	Seq, Txn, ID  int64
	Operation     string
	Before, After json.RawMessage
}

// Images reads the changes of one transaction in their order.
func (tx *Tx) Images(txn int64) (images []Image, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		i := Image{Txn: txn}
		var before, after []byte
		if err := scan(&i.Seq, &i.ID, &i.Operation, &before, &after); err != nil {
			return err
		}
		i.Before, i.After = before, after
		images = append(images, i)
		return nil
	}, "SELECT seq, resource, operation, before, after FROM change WHERE seq BETWEEN (SELECT first FROM txn WHERE id = ?) AND (SELECT last FROM txn WHERE id = ?) ORDER BY seq", txn, txn)
	return images, err
}
