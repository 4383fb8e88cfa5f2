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

// The history is a hash chain. The link of each transaction contains a hash of the previous link and of the transaction with all its
// changes. Changing, removing or inserting a row of the history breaks the chain, or requires all later links to be recomputed. Heads of
// the chain that were signed or stored elsewhere (package history) reveal that. A transaction marks itself as pending in its own commit.
// One manager at a time creates the links shortly afterwards, so that writers do not wait for one another.

// The tables of the chain.
var (
	linkTable    = Table{Name: "history_link", Columns: []string{"place", "txn", "hash"}, Key: 1}
	pendingTable = Table{Name: "history_due", Columns: []string{"txn"}, Key: 1}
)

// chainAtOnce is the maximum number of transactions that one update links. chainChanges is the number of their changes after which it
// stops.
const (
	chainAtOnce  = 500
	chainChanges = 20_000
)

// Link is one link of the chain.
type Link struct {
	// Place is the position of the link in the chain, starting at 1.
	Place int64
	// Transaction is the number of the linked transaction.
	Transaction int64
	// Hash is the hash of the previous link and of the transaction.
	Hash []byte
}

// Chain creates the links of the transactions that were committed before the call, and returns their number. Later transactions wait for
// the next call, so that the chain is not written next to each change. update must be Lease.Update, so that only one manager creates
// links.
func (s *Store) Chain(ctx context.Context, update Updater) (made int, err error) {
	for {
		var pending []Link // with the hashes of their transactions
		var more bool
		if err := s.View(ctx, func(tx *Tx) (err error) {
			pending, more, err = tx.readPendingLinks()
			return err
		}); err != nil {
			return made, fmt.Errorf("read the unchained transactions: %w", err)
		}
		if len(pending) == 0 {
			return made, nil
		}
		if err := update(ctx, Author{}, func(tx *Tx) error { return tx.appendLinks(pending) }); err != nil {
			return made, fmt.Errorf("chain the history: %w", err)
		}
		if made += len(pending); !more {
			return made, nil
		}
	}
}

// chainedTransaction is the row of a transaction, with the columns that its hash includes.
type chainedTransaction struct {
	id, time, user, first, last int64
	operation, body             string
}

// chainedColumns are the columns of t that are read into a chainedTransaction.
const chainedColumns = "t.id, t.at, t.user_id, t.first, t.last, t.operation, t.body"

// readPendingLinks returns the pending transactions with the lowest numbers, with their hashes. more is true if there may be others. The
// LIMIT is in the inner query, so that PostgreSQL looks up each transaction. It knows the queue's size only from the last ANALYZE and
// might read the whole history otherwise.
func (tx *Tx) readPendingLinks() (pending []Link, more bool, err error) {
	var rows []chainedTransaction
	changes := int64(0)
	if err := tx.Each(func(scan func(...any) error) error {
		var r chainedTransaction
		err := scan(&r.id, &r.time, &r.user, &r.first, &r.last, &r.operation, &r.body)
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

// contentHashes returns the hashes of transactions with their changes, in the order of rows.
func (tx *Tx) contentHashes(rows []chainedTransaction) (sums [][]byte, err error) {
	digests := make(map[int64]hash.Hash, len(rows))
	ids := make([]int64, len(rows))
	for i, r := range rows {
		digest := sha256.New()
		writeParts(digest, r.id, r.time, r.user, r.operation, r.first, r.last, r.body)
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

// writeParts writes values to a hash in an unambiguous encoding: one byte for the kind, the length, the value.
func writeParts(digest hash.Hash, parts ...any) {
	text := func(kind byte, b []byte) {
		digest.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(b))))
		digest.Write(b)
	}
	for _, part := range parts {
		switch v := part.(type) {
		case int64:
			text('n', binary.BigEndian.AppendUint64(nil, uint64(v))) //nolint:gosec // the bits are kept
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

// linkHash returns the hash of a link. before is the hash of the previous link, nil for the first link; content is that of the
// transaction.
func linkHash(before, content []byte) []byte {
	digest := sha256.New()
	writeParts(digest, before, content)
	return digest.Sum(nil)
}

// appendLinks adds links for the pending transactions at the end of the chain.
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
	if n != int64(len(ids)) { // this process was late; it reads the queue again next time
		return errors.New("another manager has chained some of the pending transactions")
	}
	return tx.conn.bulk(linkTable.Name, linkTable.Columns, rows)
}

// LastLink returns the last link of the chain, or the zero Link if there is none.
func (tx *Tx) LastLink() (l Link, err error) {
	err = tx.QueryRow("SELECT place, txn, hash FROM history_link ORDER BY place DESC LIMIT 1").Scan(&l.Place, &l.Transaction, &l.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return tx.chainBase()
	}
	return l, err
}

// LinkAt returns the link at a position. ok is false if it does not exist or was pruned.
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

// ChainStart returns the position after which links are kept. Earlier links were pruned with the history.
func (tx *Tx) ChainStart() (place int64, err error) {
	base, err := tx.chainBase()
	return base.Place, err
}

// ChainBase returns the last link whose transaction was pruned, wholly or in part. It returns the zero Link if none was.
func (tx *Tx) ChainBase() (Link, error) { return tx.chainBase() }

// CountUnlinked returns the number of transactions that are not linked yet.
func (tx *Tx) CountUnlinked() (n int64, err error) {
	err = tx.QueryRow("SELECT count(*) FROM history_due").Scan(&n)
	return n, err
}

// chainName is the name of the marker that contains the last link whose transaction was pruned, wholly or in part.
const chainName = "history-chain"

// chainBase implements ChainBase.
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
		return l, fmt.Errorf("read the start of the chain: %w", err)
	}
	return l, nil
}

// moveChainBase records that the chain starts after the link of the oldest transaction, which the caller is about to prune.
func (tx *Tx) moveChainBase(transaction int64) error {
	l := Link{Transaction: transaction}
	if err := tx.QueryRow("SELECT place, hash FROM history_link WHERE txn = ?", transaction).Scan(&l.Place, &l.Hash); err != nil {
		return err
	}
	return tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", chainName,
		fmt.Sprintf("%d.%d.%x", l.Place, l.Transaction, l.Hash))
}

// chainFaults verifies the chain from its base and reports each fault, lowest position first.
func (tx *Tx) chainFaults(fault func(string, ...any)) error {
	last, err := tx.chainBase()
	if err == nil && last.Place > 0 {
		// Transactions at or before the base must be deleted, except for the last one, which may be deleted in part.
		err = tx.ReportFaults(fault, "transaction %d exists, but the chain is recorded to start after it (link %s)",
			"SELECT l.txn, CAST(l.place AS TEXT) FROM history_link l WHERE l.place < ? OR l.place = ? AND l.txn <> ?", last.Place, last.Place,
			last.Transaction)
	}
	for more := true; more && err == nil; {
		last, more, err = tx.verifyLinks(last, fault)
	}
	if err != nil {
		return fmt.Errorf("verify the chain of the history: %w", err)
	}
	for _, check := range [][2]string{
		{"transaction %d, %s, was inserted into the history: it has no link and is not pending", "SELECT id, operation FROM txn t" +
			" WHERE NOT EXISTS (SELECT 1 FROM history_link l WHERE l.txn = t.id) AND NOT EXISTS (SELECT 1 FROM history_due d WHERE d.txn = t.id)"},
		// A transaction that was pruned in part has lost its first change. If that change exists, the transaction was not pruned.
		{"transaction %d is recorded as pruned%s, but it is complete", "SELECT t.id, '' FROM txn t JOIN marker m ON m.name = '" +
			chainName + "' WHERE EXISTS (SELECT 1 FROM history_link l WHERE l.txn = t.id AND m.value LIKE l.place || '.' || l.txn || '.%')" +
			" AND EXISTS (SELECT 1 FROM change c WHERE c.txn = t.id AND c.seq = t.first)"},
		{"transaction %d is pending for the chain%s, but does not exist",
			"SELECT txn, '' FROM history_due d WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.id = d.txn)"},
	} {
		if err := tx.ReportFaults(fault, check[0], check[1]); err != nil {
			return err
		}
	}
	return nil
}

// verifyLinks verifies the next links after a link and returns the last of them. more is false if there were none.
func (tx *Tx) verifyLinks(behind Link, fault func(string, ...any)) (last Link, more bool, err error) {
	type one struct {
		Link
		row    chainedTransaction
		isKept bool
	}
	var page []one
	var rows []chainedTransaction
	changes := int64(0)
	if err := tx.Each(func(scan func(...any) error) error {
		var o one
		err := scan(&o.Place, &o.Transaction, &o.Hash, &o.isKept, &o.row.id, &o.row.time, &o.row.user, &o.row.first, &o.row.last,
			&o.row.operation, &o.row.body)
		if changes < chainChanges {
			page = append(page, o)
			if o.isKept {
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
		if o.isKept {
			sum, sums = sums[0], sums[1:]
		}
		switch {
		case o.Place != before.Place+1:
			fault("the chain of the history lacks the links %d to %d, before transaction %d", before.Place+1, o.Place-1, o.Transaction)
		case !o.isKept:
			fault("transaction %d was removed from the history (link %d)", o.Transaction, o.Place)
		case !bytes.Equal(linkHash(before.Hash, sum), o.Hash):
			fault("transaction %d was changed after it was chained (link %d)", o.Transaction, o.Place)
		}
	}
	return last, len(page) > 0, nil
}
