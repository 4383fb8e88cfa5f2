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

// Times of the work: how often it looks for what is to be chained, how long its lease holds, and how often the head is signed.
const (
	lookEvery   = time.Second
	leaseLength = 30 * time.Second
	signEvery   = time.Minute
)

// roundsBeforeHead is how often at most it is chained before a head is signed, where others write all the time.
const roundsBeforeHead = 20

// Keeper chains the history, signs its head, and sends both elsewhere. One manager at a time does the work.
type Keeper struct {
	store  *store.Store
	sealer resource.Sealer
	log    *slog.Logger
	// lease is that of chaining and signing, sending that of those who send to the syslog.
	lease, sending *store.Lease
	// HeadsFile is a file that signed heads are written to, a line each; empty: none.
	HeadsFile string
	// Syslog is where transactions and heads are sent; nil: nowhere.
	Syslog *Syslog
	// Chained is told of links that were made, Sent of transactions that were sent to the syslog.
	Chained, Sent func(n int)
	// Failed is told that some of the work could not be done.
	Failed func()

	// What follows is Run's own: the last head that was seen signed, and whether the file was asked for it.
	last  Head
	begun bool
	// behind are positions of what was sent to the syslog, with when, the oldest first (resend).
	behind []sentAt
}

// NewKeeper makes what keeps the history of a store. Run runs it.
func NewKeeper(s *store.Store, sealer resource.Sealer, log *slog.Logger) *Keeper {
	return &Keeper{store: s, sealer: sealer, log: log, lease: s.NewLease("history", leaseLength),
		sending: s.NewLease("history syslog", leaseLength), Chained: func(int) {}, Sent: func(int) {}, Failed: func() {}}
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	look := func(ctx context.Context) error {
		err := k.look(ctx)
		if err != nil && ctx.Err() == nil {
			k.Failed()
		}
		return err
	}
	k.store.Work(ctx, lookEvery, k.log, "the history", look, k.lease, k.sending)
	if k.Syslog != nil {
		k.Syslog.close()
	}
}

// look does what there is to do.
func (k *Keeper) look(ctx context.Context) error {
	if err := k.writeHeads(ctx); err != nil { // each manager its own file
		return err
	}
	var w waiting
	if err := k.store.View(ctx, func(tx *store.Tx) (err error) {
		w, err = k.waiting(tx)
		return err
	}); err != nil || w == (waiting{}) {
		return err
	}
	if w.due || w.unsigned {
		if err := k.chain(ctx, w); err != nil {
			return err
		}
	}
	if k.Syslog == nil {
		return nil
	}
	held, err := k.sending.Take(ctx)
	if err != nil || !held {
		return err
	}
	return k.send(ctx, under(k.sending))
}

// under gives what updates under a lease, which it takes for longer each time.
func under(lease *store.Lease) store.Updater {
	return func(ctx context.Context, a store.Author, fn func(*store.Tx) error) error {
		if _, err := lease.Take(ctx); err != nil {
			return err
		}
		return lease.UpdateIn(ctx, store.OwnTables(), a, fn)
	}
}

// chain chains and signs, if that is this manager's to do.
func (k *Keeper) chain(ctx context.Context, w waiting) error {
	held, err := k.lease.Take(ctx)
	if err != nil || !held {
		return err
	}
	update := under(k.lease)
	// Before a head is signed what came meanwhile is chained, too: what a head says to be earlier than itself has to be before it.
	for rounds := 1; w.due && rounds <= roundsBeforeHead; rounds++ {
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
		if err := k.unchanged(tx); err != nil {
			return err
		}
		return sign(tx, k.sealer)
	}); err != nil {
		return fmt.Errorf("signing the head: %w", err)
	}
	return k.writeHeads(ctx)
}

// unchanged refuses to sign a chain that is not the one that this manager, or its file of heads, has seen signed.
func (k *Keeper) unchanged(tx *store.Tx) error {
	if k.last.Place == 0 {
		return nil
	}
	var faults []string
	_, err := compare(tx, k.last, "a head that was seen", func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format,
			args...))
	})
	if err == nil && len(faults) > 0 {
		err = errors.New(faults[0])
	}
	return err
}

// waiting is what there is to do: to chain, to sign, to send.
type waiting struct{ due, unsigned, unsent bool }

// waiting looks what there is to do.
func (k *Keeper) waiting(tx *store.Tx) (w waiting, err error) {
	if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM history_due)").Scan(&w.due); err != nil {
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
	w.unsigned = last.Place > head && tx.Now().Sub(time.Unix(at, 0)) >= signEvery
	sent := head
	if k.Syslog != nil {
		var upTo int64
		sent, err = placeOf(tx, syslogHeadsMark)
		if err == nil {
			upTo, err = placeOf(tx, syslogLinkMark)
			w.unsent = upTo < last.Place
		}
	}
	w.unsent = w.unsent || sent < head || len(k.behind) > 0 && k.Syslog.broken()
	return w, err
}

// Marks of what was sent elsewhere.
const (
	syslogHeadsMark = "history-syslog-heads" // of the last head that was sent
	syslogMark      = "history-syslog"       // the position of the last transaction that was sent
	syslogLinkMark  = "history-syslog-link"  // the place of the last link when nothing was left to be sent
)

// Unsigned gives how many links of the chain are behind the last head that was signed.
func Unsigned(tx *store.Tx) (n int64, err error) {
	last, err := tx.LastLink()
	if err == nil {
		err = tx.QueryRow("SELECT ? - coalesce(max(place), 0) FROM history_head", last.Place).Scan(&n)
	}
	return max(n, 0), err
}

// Unsent gives how many links of the chain are behind the last one when all was sent to the syslog.
func Unsent(tx *store.Tx) (n int64, err error) {
	last, err := tx.LastLink()
	if err != nil {
		return 0, err
	}
	sent, err := placeOf(tx, syslogLinkMark)
	return max(last.Place-sent, 0), err
}

// mark gives what is noted under a name; empty where nothing is.
func mark(tx *store.Tx, name string) (value string, err error) {
	err = tx.QueryRow("SELECT value FROM marker WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

// placeOf gives a place that is noted; 0 where none is.
func placeOf(tx *store.Tx, name string) (place int64, err error) {
	text, err := mark(tx, name)
	if err == nil && text != "" {
		place, err = strconv.ParseInt(text, 10, 64)
	}
	return place, err
}

func setMark(tx *store.Tx, name, value string) error {
	return tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

// unsent gives the heads behind a place, a line of JSON each, and the last of them.
func unsent(tx *store.Tx, behind int64) (lines [][]byte, last Head, err error) {
	last = Head{Place: behind}
	err = heads(tx, behind, func(h Head) error {
		line, err := json.Marshal(h)
		lines, last = append(lines, line), h
		return err
	})
	return lines, last, err
}

// begin reads which head the file has last: the file says what it has, and nobody else.
func (k *Keeper) begin() error {
	if k.begun || k.HeadsFile == "" {
		return nil
	}
	f, err := os.Open(k.HeadsFile)
	if errors.Is(err, os.ErrNotExist) {
		k.begun = true
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
		if json.Unmarshal(lines.Bytes(), &h) == nil && h.Place > 0 { // a line that was not written whole is written again
			k.last = h
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", k.HeadsFile, err)
	}
	k.begun = true
	return nil
}

// CheckFile reports why heads cannot be written to a file, which it makes where it is not there; an empty name is none.
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

// writeHeads notes the heads that were signed, and appends those to the file that it does not have, as long as the chain is still the one
// that was seen.
func (k *Keeper) writeHeads(ctx context.Context) error {
	if err := k.begin(); err != nil {
		return err
	}
	var lines [][]byte
	var last Head
	if err := k.store.View(ctx, func(tx *store.Tx) (err error) {
		if lines, last, err = unsent(tx, k.last.Place); err != nil || len(lines) == 0 {
			return err
		}
		return k.unchanged(tx)
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

// sendAtOnce is how many transactions are sent before it is noted.
const sendAtOnce = 200

// send sends transactions that were not sent yet, in the order of the feed, and heads. One may come twice, if the manager ends in between.
func (k *Keeper) send(ctx context.Context, update store.Updater) error {
	if k.Syslog == nil {
		return nil
	}
	for {
		var text string
		var place int64 // what is linked now is in the feed already
		if err := k.store.View(ctx, func(tx *store.Tx) (err error) {
			if text, err = mark(tx, syslogMark); err != nil {
				return err
			}
			l, err := tx.LastLink()
			place = l.Place
			return err
		}); err != nil {
			return err
		}
		if before, again := k.resend(); again {
			text = before
		}
		after, err := store.ParsePosition(text)
		if err != nil {
			return err
		}
		entries, err := k.store.Feed(ctx, after, sendAtOnce)
		if errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrForeignPosition) {
			k.log.Warn("transactions were not sent to the syslog: they are not kept any more, or the database is another one", "error", err)
			entries, err = k.store.Feed(ctx, store.Position{}, sendAtOnce)
		}
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return k.sendHeads(ctx, update, place)
		}
		if err := k.Syslog.send(ctx, entries, nil); err != nil {
			return fmt.Errorf("sending the history to the syslog: %w", err)
		}
		last := entries[len(entries)-1].Position.String()
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error { return setMark(tx, syslogMark, last) }); err != nil {
			return err
		}
		k.behind = append(k.behind, sentAt{text, time.Now()})
		k.Sent(len(entries))
	}
}

// sentAt is where a batch of messages began, and when it was sent.
type sentAt struct {
	position string
	at       time.Time
}

// overlap is how far back messages are sent again over TCP after a collector has gone: what it had not read when it went is lost with it.
const overlap = time.Minute

// resend gives where to begin again, where the connection to the collector has broken since messages were sent. They come twice then.
func (k *Keeper) resend() (position string, again bool) {
	for len(k.behind) > 0 && time.Since(k.behind[0].at) > overlap {
		k.behind = k.behind[1:]
	}
	if !k.Syslog.broken() || len(k.behind) == 0 {
		return "", false
	}
	position = k.behind[0].position
	k.behind = nil
	return position, true
}

// sendHeads sends the heads that were not sent yet, and notes that all transactions up to a link were.
func (k *Keeper) sendHeads(ctx context.Context, update store.Updater, place int64) error {
	var lines [][]byte
	var last Head
	if err := k.store.View(ctx, func(tx *store.Tx) error {
		behind, err := placeOf(tx, syslogHeadsMark)
		if err == nil {
			lines, last, err = unsent(tx, behind)
		}
		return err
	}); err != nil {
		return err
	}
	if err := k.Syslog.send(ctx, nil, lines); err != nil {
		return fmt.Errorf("sending heads of the history to the syslog: %w", err)
	}
	return update(ctx, store.Author{}, func(tx *store.Tx) error {
		return errors.Join(setMark(tx, syslogHeadsMark, strconv.FormatInt(last.Place, 10)), setMark(tx, syslogLinkMark,
			strconv.FormatInt(place, 10)))
	})
}
