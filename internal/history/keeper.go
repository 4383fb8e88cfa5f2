package history

import (
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

	"portolan/internal/resource"
	"portolan/internal/store"
)

// Times of the work: how often it looks for what is to be chained, how long its lease holds, and how often the head is signed.
const (
	lookEvery   = time.Second
	leaseLength = 30 * time.Second
	signEvery   = time.Minute
)

// Keeper chains the history, signs its head, and sends both elsewhere. One manager at a time does the work.
type Keeper struct {
	store  *store.Store
	sealer resource.Sealer
	log    *slog.Logger
	lease  *store.Lease
	// HeadsFile is a file that signed heads are written to, a line each; empty: none.
	HeadsFile string
	// Syslog is where transactions and heads are sent; nil: nowhere.
	Syslog *Syslog
	// Chained is told of links that were made, Sent of transactions that were sent to the syslog.
	Chained, Sent func(n int)
}

// NewKeeper makes what keeps the history of a store. Run runs it.
func NewKeeper(s *store.Store, sealer resource.Sealer, log *slog.Logger) *Keeper {
	return &Keeper{store: s, sealer: sealer, log: log, lease: s.NewLease("history", leaseLength), Chained: func(int) {}, Sent: func(int) {}}
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	store.Work(ctx, lookEvery, k.log, "the history", k.look, k.lease)
	if k.Syslog != nil {
		k.Syslog.close()
	}
}

// look does what there is to do.
func (k *Keeper) look(ctx context.Context) error {
	var w waiting
	if err := k.store.View(ctx, func(tx *store.Tx) (err error) {
		w, err = k.waiting(tx)
		return err
	}); err != nil || w == (waiting{}) {
		return err
	}
	held, err := k.lease.Take(ctx)
	if err != nil || !held {
		return err
	}
	update := func(ctx context.Context, a store.Author, fn func(*store.Tx) error) error {
		if _, err := k.lease.Take(ctx); err != nil {
			return err
		}
		return k.lease.UpdateIn(ctx, store.OwnTables(), a, fn)
	}
	if w.due {
		made, err := k.store.Chain(ctx, update)
		if k.Chained(made); err != nil {
			return err
		}
	}
	if w.unsigned {
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error { return sign(tx, k.sealer) }); err != nil {
			return fmt.Errorf("signing the head: %w", err)
		}
	}
	return errors.Join(k.writeHeads(ctx, update), k.send(ctx, update))
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
	if k.HeadsFile != "" {
		sent, err = placeOf(tx, headsMark)
	}
	if err == nil && k.Syslog != nil {
		var one, upTo int64
		one, err = placeOf(tx, syslogHeadsMark)
		sent = min(sent, one)
		if err == nil {
			upTo, err = placeOf(tx, syslogLinkMark)
			w.unsent = upTo < last.Place
		}
	}
	w.unsent = w.unsent || sent < head
	return w, err
}

// Marks of what was sent elsewhere.
const (
	headsMark       = "history-heads"        // the place of the last head in the file
	syslogHeadsMark = "history-syslog-heads" // of the last head that was sent
	syslogMark      = "history-syslog"       // the position of the last transaction that was sent
	syslogLinkMark  = "history-syslog-link"  // the place of the last link when nothing was left to be sent
)

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

// unsent gives the heads behind the one of a mark, a line of JSON each.
func (k *Keeper) unsent(ctx context.Context, mark string) (lines [][]byte, last int64, err error) {
	err = k.store.View(ctx, func(tx *store.Tx) error {
		lines = nil
		if last, err = placeOf(tx, mark); err != nil {
			return err
		}
		return heads(tx, last, func(h Head) error {
			line, err := json.Marshal(h)
			lines, last = append(lines, line), h.Place
			return err
		})
	})
	return lines, last, err
}

// writeHeads appends to the file those heads that it does not have. One may be in it twice, if the manager ends in between.
func (k *Keeper) writeHeads(ctx context.Context, update store.Updater) error {
	if k.HeadsFile == "" {
		return nil
	}
	lines, last, err := k.unsent(ctx, headsMark)
	if err != nil || len(lines) == 0 {
		return err
	}
	f, err := os.OpenFile(k.HeadsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
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
	return update(ctx, store.Author{}, func(tx *store.Tx) error { return setMark(tx, headsMark, strconv.FormatInt(last, 10)) })
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
		k.Sent(len(entries))
	}
}

// sendHeads sends the heads that were not sent yet, and notes that all transactions up to a link were.
func (k *Keeper) sendHeads(ctx context.Context, update store.Updater, place int64) error {
	lines, last, err := k.unsent(ctx, syslogHeadsMark)
	if err != nil {
		return err
	}
	if err := k.Syslog.send(ctx, nil, lines); err != nil {
		return fmt.Errorf("sending heads of the history to the syslog: %w", err)
	}
	return update(ctx, store.Author{}, func(tx *store.Tx) error {
		return errors.Join(setMark(tx, syslogHeadsMark, strconv.FormatInt(last, 10)), setMark(tx, syslogLinkMark, strconv.FormatInt(place, 10)))
	})
}
