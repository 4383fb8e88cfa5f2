package history

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Intervals of the keeper: polling for unchained transactions, the lease, and signing the head.
const (
	pollInterval = time.Second
	leaseLength  = 30 * time.Second
	signInterval = time.Minute
)

// maxChainRounds is the maximum number of chaining rounds before a head is signed, for a database that is written to all the time.
const maxChainRounds = 20

// Keeper chains the history, signs its head, and exports both. One manager at a time does the work.
type Keeper struct {
	store  *store.Store
	sealer resource.Sealer
	log    *slog.Logger
	// lease is held for chaining and signing, sending for the export to syslog.
	lease, sending *store.Lease
	// HeadsFile is the file that signed heads are appended to, one per line; empty for none.
	HeadsFile string
	// Syslog is the collector that transactions and heads are sent to; nil for none.
	Syslog *Syslog
	// Chained is called with the number of new links, Sent with the number of transactions sent to syslog.
	Chained, Sent func(n int)
	// Failed is called when a run of the keeper failed.
	Failed func()

	// The following fields are used by Run only: the last signed head that was seen, and whether the heads file was read for it.
	last     Head
	fileRead bool
	// sentBatches are the batches sent to syslog within the last minute, oldest first (see resendPosition).
	sentBatches []sentBatch
}

// NewKeeper returns a keeper for the history of a store. Start it with Run.
func NewKeeper(s *store.Store, sealer resource.Sealer, log *slog.Logger) *Keeper {
	return &Keeper{store: s, sealer: sealer, log: log, lease: s.NewLease("history", leaseLength),
		sending: s.NewLease("history syslog", leaseLength), Chained: func(int) {}, Sent: func(int) {}, Failed: func() {}}
}

// Run works until ctx is cancelled.
func (k *Keeper) Run(ctx context.Context) {
	look := func(ctx context.Context) error {
		err := k.runOnce(ctx)
		if err != nil && ctx.Err() == nil {
			k.Failed()
		}
		return err
	}
	k.store.Work(ctx, pollInterval, k.log, "history", look, k.lease, k.sending)
	if k.Syslog != nil {
		k.Syslog.close()
	}
}

// runOnce does all pending work: it writes heads to the file, chains, signs, and sends to syslog.
func (k *Keeper) runOnce(ctx context.Context) error {
	var w pendingWork
	if err := k.writeHeads(ctx, func(tx *store.Tx) (err error) { // each manager writes its own file
		w, err = k.findPending(tx)
		return err
	}); err != nil || w == (pendingWork{}) {
		return err
	}
	if w.unchained || w.unsigned {
		if err := k.chain(ctx, w); err != nil {
			return err
		}
	}
	if k.Syslog == nil {
		return nil
	}
	held, err := k.sending.Acquire(ctx)
	if err != nil || !held {
		return err
	}
	return k.send(ctx, leasedUpdater(k.sending))
}

// leasedUpdater returns a function that updates the store under a lease and renews the lease each time.
func leasedUpdater(lease *store.Lease) store.Updater {
	return func(ctx context.Context, a store.Author, fn func(*store.Tx) error) error {
		if _, err := lease.Acquire(ctx); err != nil {
			return err
		}
		return lease.UpdateIn(ctx, store.ExtensionScope(), a, fn)
	}
}

// chain chains transactions and signs the head, if this manager gets the lease.
func (k *Keeper) chain(ctx context.Context, w pendingWork) error {
	held, err := k.lease.Acquire(ctx)
	if err != nil || !held {
		return err
	}
	update := leasedUpdater(k.lease)
	// Transactions that arrive meanwhile are chained before the head is signed: a transaction older than a head must be before it in the
	// chain.
	for rounds := 1; w.unchained && rounds <= maxChainRounds; rounds++ {
		made, err := k.store.Chain(ctx, update)
		if k.Chained(made); err != nil {
			return err
		}
		if made == 0 || !w.unsigned {
			break
		}
	}
	if !w.unsigned {
		return nil
	}
	if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
		if err := k.checkUnchanged(tx); err != nil {
			return err
		}
		return signHead(tx, k.sealer)
	}); err != nil {
		return fmt.Errorf("sign the head: %w", err)
	}
	return k.writeHeads(ctx, nil)
}

// checkUnchanged returns an error if the chain does not contain the last head that this manager or its heads file has seen. Such a chain is
// not signed.
func (k *Keeper) checkUnchanged(tx *store.Tx) error {
	if k.last.Place == 0 {
		return nil
	}
	var faults []string
	_, err := compareHead(tx, k.last, "a head that was seen", func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format,
			args...))
	})
	if err == nil && len(faults) > 0 {
		err = errors.New(faults[0])
	}
	return err
}

// pendingWork reports the kinds of work to do: to chain, to sign, to send.
type pendingWork struct{ unchained, unsigned, unsent bool }

// findPending returns the pending work.
func (k *Keeper) findPending(tx *store.Tx) (w pendingWork, err error) {
	if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM history_due)").Scan(&w.unchained); err != nil {
		return w, err
	}
	last, err := tx.LastLink()
	if err != nil {
		return w, err
	}
	var head, at int64
	if err := tx.QueryRow("SELECT coalesce(max(place), 0), coalesce(max(at), 0) FROM history_head").Scan(&head, &at); err != nil {
		return w, err
	}
	w.unsigned = last.Place > head && tx.Now().Sub(time.Unix(at, 0)) >= signInterval
	sent := head
	if k.Syslog != nil {
		var upTo int64
		sent, err = markedPlace(tx, syslogHeadsMark)
		if err == nil {
			upTo, err = markedPlace(tx, syslogLinkMark)
			w.unsent = upTo < last.Place
		}
	}
	w.unsent = w.unsent || sent < head || len(k.sentBatches) > 0 && k.Syslog.isBroken()
	return w, err
}

// Names of markers that record the progress of the export to syslog.
const (
	syslogHeadsMark = "history-syslog-heads" // place of the last head sent
	syslogMark      = "history-syslog"       // position of the last transaction sent
	syslogLinkMark  = "history-syslog-link"  // place of the last link when all transactions had been sent
)

// Unsigned returns the number of links after the last signed head.
func Unsigned(tx *store.Tx) (n int64, err error) {
	last, err := tx.LastLink()
	if err == nil {
		err = tx.QueryRow("SELECT ? - coalesce(max(place), 0) FROM history_head", last.Place).Scan(&n)
	}
	return max(n, 0), err
}

// Unsent returns the number of links after the last link that was sent to syslog.
func Unsent(tx *store.Tx) (n int64, err error) {
	last, err := tx.LastLink()
	if err != nil {
		return 0, err
	}
	sent, err := markedPlace(tx, syslogLinkMark)
	return max(last.Place-sent, 0), err
}

// readMark returns the value of a marker; empty if it does not exist.
func readMark(tx *store.Tx, name string) (value string, err error) {
	err = tx.QueryRow("SELECT value FROM marker WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

// markedPlace returns the place in a marker; 0 if it does not exist.
func markedPlace(tx *store.Tx, name string) (place int64, err error) {
	text, err := readMark(tx, name)
	if err == nil && text != "" {
		place, err = strconv.ParseInt(text, 10, 64)
	}
	return place, err
}

func setMark(tx *store.Tx, name, value string) error {
	return tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

// headsAfter returns the signed heads after a place, each as a line of JSON, and the last of them.
func headsAfter(tx *store.Tx, behind int64) (lines [][]byte, last Head, err error) {
	last = Head{Place: behind}
	err = eachHead(tx, behind, func(h Head) error {
		line, err := json.Marshal(h)
		lines, last = append(lines, line), h
		return err
	})
	return lines, last, err
}

// readHeadsFile sets the last seen head from the heads file, once. The file alone determines the heads that are still to be appended.
func (k *Keeper) readHeadsFile() error {
	if k.fileRead || k.HeadsFile == "" {
		return nil
	}
	f, err := os.Open(k.HeadsFile)
	if errors.Is(err, os.ErrNotExist) {
		k.fileRead = true
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		var h Head
		if json.Unmarshal(lines.Bytes(), &h) == nil && h.Place > 0 { // an incomplete line is written again
			k.last = h
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", k.HeadsFile, err)
	}
	k.fileRead = true
	return nil
}

// CheckFile returns an error if heads cannot be written to a file. It creates the file if it does not exist; an empty name is valid.
func CheckFile(name string) error {
	if name == "" {
		return nil
	}
	f, err := openFile(name)
	if err != nil {
		return err
	}
	return f.Close()
}

func openFile(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// writeHeads appends the new signed heads to the heads file, if the chain still contains the last head seen. also runs in the transaction
// that reads them; nil means nothing.
func (k *Keeper) writeHeads(ctx context.Context, also func(*store.Tx) error) error {
	if err := k.readHeadsFile(); err != nil {
		return err
	}
	var lines [][]byte
	var last Head
	if err := k.store.View(ctx, func(tx *store.Tx) (err error) {
		if lines, last, err = headsAfter(tx, k.last.Place); err == nil && len(lines) > 0 {
			err = k.checkUnchanged(tx)
		}
		if err == nil && also != nil {
			err = also(tx)
		}
		return err
	}); err != nil || len(lines) == 0 {
		return err
	}
	if k.HeadsFile == "" {
		k.last = last
		return nil
	}
	f, err := openFile(k.HeadsFile)
	if err != nil {
		return err
	}
	_, err = f.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	k.last = last
	return nil
}

// batchSize is the maximum number of transactions that are sent before progress is recorded.
const batchSize = 200

// send sends new transactions, in the order of the feed, and then new heads. After a crash of the manager, a message can be sent twice.
func (k *Keeper) send(ctx context.Context, update store.Updater) error {
	if k.Syslog == nil {
		return nil
	}
	for {
		var text string
		var place int64 // the transactions up to this link are in the feed already
		if err := k.store.View(ctx, func(tx *store.Tx) (err error) {
			if text, err = readMark(tx, syslogMark); err != nil {
				return err
			}
			l, err := tx.LastLink()
			place = l.Place
			return err
		}); err != nil {
			return err
		}
		if before, again := k.resendPosition(); again {
			text = before
		}
		after, err := store.ParsePosition(text)
		if err != nil {
			return err
		}
		entries, err := k.store.Feed(ctx, after, batchSize)
		if errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrForeignPosition) {
			k.log.Warn("syslog export skipped transactions: history pruned or database replaced", "error", err)
			entries, err = k.store.Feed(ctx, store.Position{}, batchSize)
		}
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return k.sendHeads(ctx, update, place)
		}
		if err := k.Syslog.send(ctx, entries, nil); err != nil {
			return fmt.Errorf("send the history to the syslog: %w", err)
		}
		last := entries[len(entries)-1].Position.String()
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error { return setMark(tx, syslogMark, last) }); err != nil {
			return err
		}
		k.sentBatches = append(k.sentBatches, sentBatch{text, time.Now()})
		k.Sent(len(entries))
	}
}

// sentBatch is the position where a batch of messages started, and the time when it was sent.
type sentBatch struct {
	position string
	at       time.Time
}

// overlap is the maximum age of messages that are sent again after a TCP connection broke. Messages that the collector had not read are
// lost with the connection.
const overlap = time.Minute

// resendPosition returns the position to send from again if the connection broke after messages were sent. These messages are sent twice.
func (k *Keeper) resendPosition() (position string, again bool) {
	for len(k.sentBatches) > 0 && time.Since(k.sentBatches[0].at) > overlap {
		k.sentBatches = k.sentBatches[1:]
	}
	if !k.Syslog.isBroken() || len(k.sentBatches) == 0 {
		return "", false
	}
	position = k.sentBatches[0].position
	k.sentBatches = nil
	return position, true
}

// sendHeads sends new heads, and records that all transactions up to the link at place were sent.
func (k *Keeper) sendHeads(ctx context.Context, update store.Updater, place int64) error {
	var lines [][]byte
	var last Head
	if err := k.store.View(ctx, func(tx *store.Tx) error {
		behind, err := markedPlace(tx, syslogHeadsMark)
		if err == nil {
			lines, last, err = headsAfter(tx, behind)
		}
		return err
	}); err != nil {
		return err
	}
	if err := k.Syslog.send(ctx, nil, lines); err != nil {
		return fmt.Errorf("send heads of the history to the syslog: %w", err)
	}
	return update(ctx, store.Author{}, func(tx *store.Tx) error {
		return errors.Join(setMark(tx, syslogHeadsMark, strconv.FormatInt(last.Place, 10)), setMark(tx, syslogLinkMark,
			strconv.FormatInt(place, 10)))
	})
}
