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

// Times and limits of sending.
const (
	// sendTime is the timeout of a request. graceTime is the timeout of a request in progress when the worker stops.
	sendTime  = 10 * time.Second
	graceTime = 2 * time.Second
	// firstPause and lastPause are the minimum and maximum time between two attempts. It doubles each time and varies at random by half.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// maxText is the size of the transactions of a message, in bytes, at which no more are added.
	maxText = 256 << 10
	// maxChanges is the number of changes of one transaction that are sent.
	maxChanges = 1000
	// maxReason is the length limit of a stored error, in bytes.
	maxReason = 300
)

// worker sends messages to one webhook.
type worker struct {
	*Sender
	hook
	end  context.CancelFunc
	done chan struct{}

	mu sync.Mutex
	// now is the current progress, and events are the events to add. isStarted means that now is valid. Guarded by mu.
	now       progress
	events    []event.Event
	isStarted bool

	// saved is the stored progress, and savedAt the time at which it was written. After the start only the Sender uses them.
	saved   progress
	savedAt time.Time
}

// progress is the position and the state of a webhook.
type progress struct {
	// position is the position of the last change that was accepted or not wanted. delivered is the time of the last accepted message, in
	// Unix milliseconds.
	position  store.Position
	delivered int64
	// failures is the number of consecutive failed attempts, and message the reason of the last failure or of the stop.
	failures int64
	message  string
	stopped  bool
}

// takeUnsaved returns the progress and the events to be written; yes is false if there is nothing to write.
func (w *worker) takeUnsaved(urgent bool) (now progress, events []event.Event, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	far := w.now
	far.position = w.saved.position // a new position alone is written rarely
	if !w.isStarted || w.now == w.saved && len(w.events) == 0 ||
		!urgent && far == w.saved && len(w.events) == 0 && time.Since(w.savedAt) < idleSaveInterval {
		return now, nil, false
	}
	return w.now, slices.Clone(w.events), true
}

// setSaved records what was written.
func (w *worker) setSaved(m progress, events int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved, w.savedAt, w.events = m, time.Now(), w.events[events:]
}

// update changes the progress and adds events.
func (w *worker) update(change func(m *progress), events ...event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.now)
	for _, e := range events {
		e.Category, e.SourceName = "APPLICATION", w.name
		w.events = append(w.events, e)
	}
}

// errChanged stops a worker whose webhook has changed, or may be served by another manager.
var errChanged = errors.New("the webhook has changed")

// run sends messages until the context ends or the webhook is stopped.
func (w *worker) run(ctx context.Context) {
	at, err := w.start(ctx)
	if err == nil {
		err = w.store.FollowTogether(ctx, at, idleSaveInterval, func(entries []store.Entry) error { return w.deliver(ctx, entries) })
	}
	switch {
	case errors.Is(err, store.ErrPruned), errors.Is(err, store.ErrForeignPosition): // changes would be lost
		text := err.Error() + ": set enabled to true to resume with the changes from then on"
		w.log.Error("webhook stopped", "webhook", w.name, "error", err)
		w.update(func(m *progress) { m.stopped, m.message = true, text },
			event.Event{EventType: "ERROR", Message: "Webhook " + w.name + " is stopped: " + text})
	case err != nil && ctx.Err() == nil && !errors.Is(err, errChanged):
		w.log.Error("webhook worker failed, restarting", "webhook", w.name, "error", err)
		store.Pause(ctx, firstPause)
	}
}

// start reads the position to continue from. The cached webhook may be older than the last write.
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
	w.now, w.isStarted = progress{position: at, delivered: now.delivered, failures: now.failures, message: now.message}, true
	w.saved, w.savedAt = w.now, time.Now()
	return at, nil
}

// deliver sends the wanted changes of transactions, several transactions in one message.
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
			w.update(func(m *progress) { m.position = e.Position })
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

// send sends a message until it is accepted. When the context ends, it waits graceTime for a request in progress, so that the message need
// not be sent again.
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
		store.Pause(ctx, wait/2+rand.N(wait)) //nolint:gosec // the jitter need not be unpredictable
	}
	return ctx.Err()
}

// checkUnchanged returns errChanged if the webhook has changed since the worker started. A change that was acknowledged applies to the next
// message.
func (w *worker) checkUnchanged(ctx context.Context) error {
	all, err := w.hooks(ctx)
	if err == nil && !slices.ContainsFunc(all, func(h hook) bool { return h.id == w.id && h.version == w.version }) {
		err = errChanged
	}
	return err
}

// deliveryFailed records a failed attempt.
func (w *worker) deliveryFailed(reason string) {
	var events []event.Event
	if w.now.failures == 0 { // only this goroutine changes it
		events = []event.Event{{EventType: "WARNING", Message: "Webhook " + w.name + " rejects messages: " + reason}}
		w.log.Warn("webhook delivery failed", "webhook", w.name, "error", reason)
	}
	w.update(func(m *progress) { m.failures, m.message = m.failures+1, reason }, events...)
}

// delivered records that all changes up to a position were accepted.
func (w *worker) delivered(at store.Position) {
	var events []event.Event
	if w.now.failures > 0 {
		events = []event.Event{{EventType: "SUCCESS", Message: "Webhook " + w.name + " accepts messages again."}}
	}
	w.update(func(m *progress) { *m = progress{position: at, delivered: w.store.Now().UnixMilli()} }, events...)
}

// printable returns the beginning of a received text, with unprintable characters replaced.
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

// message is the body of a request: transactions as JSON.
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
