package webhook

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
)

// Times and bounds of sending.
const (
	// sendTime is how long a receiver may take, graceTime how long when a message is on its way and the work ends.
	sendTime  = 10 * time.Second
	graceTime = 2 * time.Second
	// firstPause and lastPause bound the time between two attempts, which doubles, give or take a half.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// textMax is how long the transactions of a message are, in bytes, before no further one is added.
	maxText = 256 << 10
	// changesMax is how many changes of one transaction are sent.
	maxChanges = 1000
	// reasonMax is how much of what a receiver says is kept, in bytes.
	maxReason = 300
)

// worker sends to one webhook.
type worker struct {
	*Sender
	hook
	end  context.CancelFunc
	done chan struct{}

	mu sync.Mutex
	// now is how it is, and events are those to be raised; begun says that it is known. Guarded by mu.
	now       progress
	events    []event.Event
	isStarted bool

	// noted is what is written down of it, and notedAt when that was: the Sender's own once it has begun.
	saved   progress
	savedAt time.Time
}

// mark is how far a webhook has come, and how it is.
type progress struct {
	// at is up to where everything was taken, or not wanted; delivered is when something was last taken, in Unix milliseconds.
	at        store.Position
	delivered int64
	// failures is how many times in a row what is sent was not taken, and message why, or why it is stopped.
	failures int64
	message  string
	stopped  bool
}

// due reports whether something is to be written down of the webhook, and gives it.
func (w *worker) unsaved(urgent bool) (now progress, events []event.Event, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	far := w.now
	far.at = w.saved.at // how far it came without being sent anything is nothing new
	if !w.isStarted || w.now == w.saved && len(w.events) == 0 ||
		!urgent && far == w.saved && len(w.events) == 0 && time.Since(w.savedAt) < idleSaveInterval {
		return now, nil, false
	}
	return w.now, slices.Clone(w.events), true
}

// written notes what was written down.
func (w *worker) setSaved(m progress, events int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved, w.savedAt, w.events = m, time.Now(), w.events[events:]
}

// become changes how the webhook is.
func (w *worker) update(change func(m *progress), events ...event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.now)
	for _, e := range events {
		e.Category, e.SourceName = "APPLICATION", w.name
		w.events = append(w.events, e)
	}
}

// errChanged ends the work for a webhook that is not any more what it was, or that another manager may send to.
var errChanged = errors.New("the webhook has changed")

// work sends what changes until the context ends or the webhook is stopped.
func (w *worker) run(ctx context.Context) {
	at, err := w.start(ctx)
	if err == nil {
		err = w.store.FollowTogether(ctx, at, idleSaveInterval, func(entries []store.Entry) error { return w.deliver(ctx, entries) })
	}
	switch {
	case errors.Is(err, store.ErrPruned), errors.Is(err, store.ErrForeignPosition): // it would be left out of something
		text := err.Error() + ": set enabled, and it goes on with what changes then"
		w.log.Error("a webhook is stopped", "webhook", w.name, "error", err)
		w.update(func(m *progress) { m.stopped, m.message = true, text },
			event.Event{EventType: "ERROR", Message: "Webhook " + w.name + " is stopped: " + text})
	case err != nil && ctx.Err() == nil && !errors.Is(err, errChanged):
		w.log.Error("sending to a webhook; it goes on", "webhook", w.name, "error", err)
		store.Pause(ctx, firstPause)
	}
}

// start finds where to go on: what is remembered may be of before it was last written down.
func (w *worker) start(ctx context.Context) (at store.Position, err error) {
	var now record
	err = w.store.View(ctx, func(tx *store.Tx) error {
		all, err := readRecords(tx, w.id)
		now = all[w.id]
		return err
	})
	if err == nil && now.version != w.version {
		err = errChanged
	}
	if err == nil {
		at, err = store.ParsePosition(now.position)
	}
	if err != nil {
		return at, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.isStarted = progress{at: at, delivered: now.delivered, failures: now.failures, message: now.message}, true
	w.saved, w.savedAt = w.now, time.Now()
	return at, nil
}

// take sends what is wanted of some transactions, several in one message.
func (w *worker) deliver(ctx context.Context, entries []store.Entry) error {
	var m message
	for i, e := range entries {
		text, err := w.render(ctx, e, w.collections, w.parent, maxChanges)
		if err != nil {
			return err
		}
		if text != nil {
			m.add(e.Position, text)
		}
		switch {
		case m.size() == 0:
			w.update(func(m *progress) { m.at = e.Position })
		case m.size() >= maxText || i == len(entries)-1:
			if err := w.send(ctx, &m); err != nil {
				return err
			}
			w.delivered(e.Position)
			m = message{}
		}
	}
	return nil
}

// send sends a message until it is taken. One that is on its way when the context ends is waited for a moment, so that it need not be
// sent again.
func (w *worker) send(ctx context.Context, m *message) error {
	within, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(graceTime, end) })()
	for wait := firstPause; ctx.Err() == nil; wait = min(2*wait, lastPause) {
		if time.Now().UnixMilli() > w.sendUntil.Load() {
			return errChanged
		}
		if err := w.checkUnchanged(ctx); err != nil {
			return err
		}
		err := w.post(within, m)
		if w.Sent != nil {
			w.Sent(err == nil)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		w.deliveryFailed(printable(err.Error()))
		store.Pause(ctx, wait/2+rand.N(wait)) //nolint:gosec // nobody gains by foreseeing it
	}
	return ctx.Err()
}

// asItWas refuses to send to a webhook that was changed since its work began: what is acknowledged counts for the next message.
func (w *worker) checkUnchanged(ctx context.Context) error {
	all, err := w.hooks(ctx)
	if err == nil && !slices.ContainsFunc(all, func(h hook) bool { return h.id == w.id && h.version == w.version }) {
		err = errChanged
	}
	return err
}

// refused notes that a message was not taken.
func (w *worker) deliveryFailed(reason string) {
	var events []event.Event
	if w.now.failures == 0 { // nobody else changes it
		events = []event.Event{{EventType: "WARNING", Message: "Webhook " + w.name + " does not take what it is sent: " + reason}}
		w.log.Warn("a webhook does not take what it is sent", "webhook", w.name, "error", reason)
	}
	w.update(func(m *progress) { m.failures, m.message = m.failures+1, reason }, events...)
}

// taken notes that what there was up to a position was taken.
func (w *worker) delivered(at store.Position) {
	var events []event.Event
	if w.now.failures > 0 {
		events = []event.Event{{EventType: "SUCCESS", Message: "Webhook " + w.name + " takes what it is sent again."}}
	}
	w.update(func(m *progress) { *m = progress{at: at, delivered: w.store.Now().UnixMilli()} }, events...)
}

// printable gives the beginning of a text that somebody else wrote, in signs that can be kept and shown.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " ..."
	}
	return text
}

// message is what is sent at once: transactions, as JSON.
type message struct {
	text bytes.Buffer
	last store.Position
}

func (m *message) size() int { return m.text.Len() }

func (m *message) add(at store.Position, text []byte) {
	if m.size() > 0 {
		m.text.WriteByte(',')
	}
	m.text.Write(text)
	m.last = at
}
