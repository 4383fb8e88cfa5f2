package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// The history is chained: a link for each transaction has a hash of the link before it and of the transaction with all that it changed.
// Who changes, removes or slips in a row of the history breaks the chain there, or has to make all later links anew, which the heads show
// that were signed or kept elsewhere before (the room history). A transaction notes in its own commit that it is due; links are made a
// moment later, by one manager at a time, so that writers do not wait for one another.

// The tables of the chain.
var (
	linkTable    = Table{Name: "history_link", Columns: []string{"place", "txn", "hash"}, Key: 1}
	pendingTable = Table{Name: "history_due", Columns: []string{"txn"}, Key: 1}
)

// chainAtOnce is how many transactions are chained in one update; chainChanges is how many changes they have in all before it is ended.
const (
	chainAtOnce  = 500
	chainChanges = 20_000
)

// Link is one link of the chain.
type Link struct {
	// Place is its number: 1 for the first; each link has the next one.
	Place int64
	// Transaction is the one that it was made for.
	Transaction int64
	// Hash is of the link before it and of the transaction.
	Hash []byte
}

// Chain makes the links of what was committed before it was called, and gives how many it has made. What is committed meanwhile waits for
// the next time, so that the chain does not write beside each writer. update is that of a lease: one manager does it.
func (s *Store) Chain(ctx context.Context, update Updater) (made int, err error) {
	for {
		var pending []Link // with the hashes of their contents
		var more bool
		if err := s.View(ctx, func(tx *Tx) (err error) {
			pending, more, err = tx.readPendingLinks()
			return err
		}); err != nil {
			return made, fmt.Errorf("reading what is to be chained: %w", err)
		}
		if len(pending) == 0 {
			return made, nil
		}
		if err := update(ctx, Author{}, func(tx *Tx) error { return tx.appendLinks(pending) }); err != nil {
			return made, fmt.Errorf("chaining the history: %w", err)
		}
		if made += len(pending); !more {
			return made, nil
		}
	}
}

// chained is a transaction's row, as it is chained.
type chainedTransaction struct {
	id, at, user, first, last int64
	operation, body           string
}

// chainedColumns are those of t that are read into it.
const chainedColumns = "t.id, t.at, t.user_id, t.first, t.last, t.operation, t.body"

// contents gives the first transactions that are due, by their numbers, with the hashes of what they are; more says that there may be
// others. The limit stands within, so that PostgreSQL, which knows a queue's size only from when it was last analysed, looks each of them
// up instead of reading the whole history.
func (tx *Tx) readPendingLinks() (pending []Link, more bool, err error) {
	var rows []chainedTransaction
	changes := int64(0)
	if err := tx.Each(func(scan func(...any) error) error {
		var r chainedTransaction
		err := scan(&r.id, &r.at, &r.user, &r.first, &r.last, &r.operation, &r.body)
		if changes < chainChanges {
			rows = append(rows, r)
		}
		changes += r.last - r.first + 1
		return err
	}, "SELECT "+chainedColumns+" FROM (SELECT txn FROM history_due ORDER BY txn LIMIT ?) d JOIN txn t ON t.id = d.txn ORDER BY d.txn",
		chainAtOnce); err != nil {
		return nil, false, err
	}
	sums, err := tx.contentHashes(rows)
	for i, r := range rows {
		pending = append(pending, Link{Transaction: r.id, Hash: sums[i]})
	}
	return pending, len(rows) == chainAtOnce || changes > chainChanges, err
}

// contentHashes are the hashes of transactions with their changes, in the order of the rows.
func (tx *Tx) contentHashes(rows []chainedTransaction) (sums [][]byte, err error) {
	digests := make(map[int64]hash.Hash, len(rows))
	ids := make([]int64, len(rows))
	for i, r := range rows {
		digest := sha256.New()
		writeParts(digest, r.id, r.at, r.user, r.operation, r.first, r.last, r.body)
		digests[r.id], ids[i] = digest, r.id
	}
	if len(rows) == 0 {
		return nil, nil
	}
	err = tx.Stream(func(scan func(...any) error) error {
		var txn, seq, resource int64
		var operation string
		var before, after []byte
		if err := scan(&txn, &seq, &resource, &operation, &before, &after); err != nil {
			return err
		}
		writeParts(digests[txn], seq, resource, operation, before, after)
		return nil
	}, "SELECT txn, seq, resource, operation, before, after FROM change WHERE txn IN ("+idList(ids)+") ORDER BY txn, seq")
	for _, r := range rows {
		sums = append(sums, digests[r.id].Sum(nil))
	}
	return sums, err
}

// writeParts writes values into a hash so that no two lists of them are written alike: a byte for the kind, the length, the value.
func writeParts(digest hash.Hash, parts ...any) {
	text := func(kind byte, b []byte) {
		digest.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(b))))
		digest.Write(b)
	}
	for _, part := range parts {
		switch v := part.(type) {
		case int64:
			text('n', binary.BigEndian.AppendUint64(nil, uint64(v))) //nolint:gosec // its bits
		case string:
			text('t', []byte(v))
		case []byte:
			if v == nil {
				text('0', nil)
				continue
			}
			text('t', v)
		}
	}
}

// linkHash is the hash of a link, by that of the link before it, nil for the first one, and that of its content.
func linkHash(before, content []byte) []byte {
	digest := sha256.New()
	writeParts(digest, before, content)
	return digest.Sum(nil)
}

// link makes links behind the last one.
func (tx *Tx) appendLinks(pending []Link) error {
	last, err := tx.LastLink()
	if err != nil {
		return err
	}
	if len(pending) == 0 {
		return nil
	}
	rows, ids := make([][]any, len(pending)), make([]int64, len(pending))
	for i, d := range pending {
		last = Link{last.Place + 1, d.Transaction, linkHash(last.Hash, d.Hash)}
		rows[i], ids[i] = []any{last.Place, last.Transaction, last.Hash}, d.Transaction
	}
	n, err := tx.Exec("DELETE FROM history_due WHERE txn IN (" + idList(ids) + ")")
	if err != nil {
		return err
	}
	if n != int64(len(ids)) { // who was late, and reads again
		return errors.New("another manager has chained some of what was due")
	}
	return tx.conn.bulk(linkTable.Name, linkTable.Columns, rows)
}

// LastLink gives the link that was made last; the zero Link where there is none.
func (tx *Tx) LastLink() (l Link, err error) {
	err = tx.QueryRow("SELECT place, txn, hash FROM history_link ORDER BY place DESC LIMIT 1").Scan(&l.Place, &l.Transaction, &l.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return tx.chainBase()
	}
	return l, err
}

// LinkAt gives the link of a place; ok is false where it is not, or not any more, there.
func (tx *Tx) LinkAt(place int64) (l Link, ok bool, err error) {
	base, err := tx.chainBase()
	if err != nil {
		return l, false, err
	}
	if place == base.Place && place > 0 {
		return base, true, nil
	}
	err = tx.QueryRow("SELECT place, txn, hash FROM history_link WHERE place = ?", place).Scan(&l.Place, &l.Transaction, &l.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return l, false, nil
	}
	return l, err == nil, err
}

// ChainBegins gives the place behind which links are kept; what is older went with the history's retention.
func (tx *Tx) ChainBegins() (place int64, err error) {
	base, err := tx.chainBase()
	return base.Place, err
}

// ChainBase gives the last link whose transaction is not, or not wholly, kept any more; the zero Link where all are kept.
func (tx *Tx) ChainBase() (Link, error) { return tx.chainBase() }

// ChainDue tells how many transactions are not chained yet.
func (tx *Tx) ChainDue() (n int64, err error) {
	err = tx.QueryRow("SELECT count(*) FROM history_due").Scan(&n)
	return n, err
}

// chainName is the marker of the last link whose transaction is not, or not wholly, kept any more.
const chainName = "history-chain"

// chainBase gives that link; the zero Link where all are kept.
func (tx *Tx) chainBase() (l Link, err error) {
	var text string
	err = tx.QueryRow("SELECT value FROM marker WHERE name = ?", chainName).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return l, nil
	}
	var sum string
	if err == nil {
		_, err = fmt.Sscanf(text, "%d.%d.%s", &l.Place, &l.Transaction, &sum)
	}
	if err == nil {
		l.Hash, err = hex.DecodeString(sum)
	}
	if err != nil {
		return l, fmt.Errorf("reading where the chain begins: %w", err)
	}
	return l, nil
}

// unchain notes that the oldest transaction is about to be taken out of the history: the chain begins behind its link then.
func (tx *Tx) moveChainBase(transaction int64) error {
	l := Link{Transaction: transaction}
	if err := tx.QueryRow("SELECT place, hash FROM history_link WHERE txn = ?", transaction).Scan(&l.Place, &l.Hash); err != nil {
		return err
	}
	return tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", chainName,
		fmt.Sprintf("%d.%d.%x", l.Place, l.Transaction, l.Hash))
}

// chainFaults follows the chain and says where it does not fit, the oldest place first.
func (tx *Tx) chainFaults(fault func(string, ...any)) error {
	last, err := tx.chainBase()
	if err == nil && last.Place > 0 { // what the chain says to be gone has to be gone, but for the last one, which goes in parts
		err = tx.Faulty(fault, "transaction %d is kept, and the chain is said to begin behind it (link %s)",
			"SELECT l.txn, CAST(l.place AS TEXT) FROM history_link l WHERE l.place < ? OR l.place = ? AND l.txn <> ?", last.Place, last.Place,
			last.Transaction)
	}
	for more := true; more && err == nil; {
		last, more, err = tx.verifyLinks(last, fault)
	}
	if err != nil {
		return fmt.Errorf("following the chain of the history: %w", err)
	}
	for _, check := range [][2]string{
		{"transaction %d, %s, was slipped into the history: no link is of it, and none is due", "SELECT id, operation FROM txn t" +
			" WHERE NOT EXISTS (SELECT 1 FROM history_link l WHERE l.txn = t.id) AND NOT EXISTS (SELECT 1 FROM history_due d WHERE d.txn = t.id)"},
		// One that retention takes in parts has no more changes than it had; one that was left whole was not taken.
		{"transaction %d is said to be taken out of the history%s, and is whole", "SELECT t.id, '' FROM txn t JOIN marker m ON m.name = '" +
			chainName + "' WHERE EXISTS (SELECT 1 FROM history_link l WHERE l.txn = t.id AND m.value LIKE l.place || '.' || l.txn || '.%')" +
			" AND EXISTS (SELECT 1 FROM change c WHERE c.txn = t.id AND c.seq = t.first)"},
		{"transaction %d is to be chained, and is not there%s",
			"SELECT txn, '' FROM history_due d WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.id = d.txn)"},
	} {
		if err := tx.Faulty(fault, check[0], check[1]); err != nil {
			return err
		}
	}
	return nil
}

// followChain looks at the next links behind one, and gives the last of them; more is false where there are none.
func (tx *Tx) verifyLinks(behind Link, fault func(string, ...any)) (last Link, more bool, err error) {
	type one struct {
		Link
		row   chainedTransaction
		there bool
	}
	var page []one
	var rows []chainedTransaction
	changes := int64(0)
	if err := tx.Each(func(scan func(...any) error) error {
		var o one
		err := scan(&o.Place, &o.Transaction, &o.Hash, &o.there, &o.row.id, &o.row.at, &o.row.user, &o.row.first, &o.row.last,
			&o.row.operation, &o.row.body)
		if changes < chainChanges {
			page = append(page, o)
			if o.there {
				rows = append(rows, o.row)
			}
		}
		changes += o.row.last - o.row.first + 1
		return err
	}, "SELECT l.place, l.txn, l.hash, t.id IS NOT NULL, coalesce(t.id, 0), coalesce(t.at, 0), coalesce(t.user_id, 0), coalesce(t.first, 0),"+
		" coalesce(t.last, 0), coalesce(t.operation, ''), coalesce(t.body, '') FROM history_link l LEFT JOIN txn t ON t.id = l.txn"+
		" WHERE l.place > ? ORDER BY l.place LIMIT ?", behind.Place, chainAtOnce); err != nil {
		return last, false, err
	}
	sums, err := tx.contentHashes(rows)
	if err != nil {
		return last, false, err
	}
	last = behind
	for _, o := range page {
		before := last
		last = o.Link
		var sum []byte
		if o.there {
			sum, sums = sums[0], sums[1:]
		}
		switch {
		case o.Place != before.Place+1:
			fault("the chain of the history lacks the links %d to %d, before transaction %d", before.Place+1, o.Place-1, o.Transaction)
		case !o.there:
			fault("transaction %d was removed from the history (link %d)", o.Transaction, o.Place)
		case !bytes.Equal(linkHash(before.Hash, sum), o.Hash):
			fault("transaction %d is not what it was when it was chained (link %d)", o.Transaction, o.Place)
		}
	}
	return last, len(page) > 0, nil
}
