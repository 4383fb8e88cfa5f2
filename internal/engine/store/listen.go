package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Notifications between processes on PostgreSQL. A transaction that touches a watched topic notifies the others in its own commit: their
// cached values are correct or discarded even if this process crashes. All other commits only wake followers of the feed, which poll
// every second anyway. These notifications are sent after the commit, many at once, because commits with a notification wait for one
// another.

// channel is the notification channel of the processes.
const channel = "portolan"

// Times of the listening connection. If the connection was not known to work for aliveFor, values are no longer cached.
const (
	listenPing = time.Second
	aliveFor   = 3 * time.Second
)

// listener receives the notifications of other processes.
type listener struct {
	store *Store
	p     *postgres
	stop  context.CancelFunc
	done  sync.WaitGroup
	// lastContact is the time in Unix milliseconds at which the connection last worked; 0 while disconnected.
	lastContact atomic.Int64
	// pendingWake holds a token while other processes have to be notified of commits.
	pendingWake chan struct{}
}

// listen starts to receive the notifications of other processes.
func listen(s *Store, p *postgres) *listener {
	ctx, stop := context.WithCancel(context.Background())
	l := &listener{store: s, p: p, stop: stop, pendingWake: make(chan struct{}, 1)}
	l.done.Go(func() {
		for attempt := 0; ctx.Err() == nil; attempt++ {
			began := time.Now()
			_ = l.listenOnce(ctx) // every error is retried
			l.lastContact.Store(0)
			if time.Since(began) > aliveFor {
				attempt = 0
			}
			backOff(ctx, attempt)
		}
	})
	l.done.Go(func() { l.notifyCommits(ctx) })
	return l
}

func (l *listener) close() {
	l.stop()
	l.done.Wait()
}

// isAlive reports whether notifications arrive.
func (l *listener) isAlive() bool {
	return time.Now().UnixMilli()-l.lastContact.Load() < aliveFor.Milliseconds()
}

// listenOnce listens until the connection is lost.
func (l *listener) listenOnce(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, l.p.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		// The lock is released before the connection is closed. The server notices the close a moment later, and a tool that starts right
		// after this manager would be rejected.
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = c.Exec(closeCtx, "SELECT pg_advisory_unlock_all()") // the connection may be lost
		_ = c.Close(closeCtx)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	// Managers share this lock while they are connected. A tool that must run alone finds it taken.
	var shared bool
	if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock_shared($1)", int64(managerLock)).Scan(&shared); err != nil {
		return err
	}
	if !shared { // that tool makes changes wait
		return errors.New("a tool has exclusive use of the database")
	}
	l.store.recordForeignCommit(nil) // notifications may have been missed
	for {
		l.lastContact.Store(time.Now().UnixMilli())
		waitCtx, cancel := context.WithTimeout(ctx, listenPing)
		n, err := c.WaitForNotification(waitCtx)
		late := waitCtx.Err() != nil
		cancel()
		switch {
		case err == nil && n.Payload == "":
			l.store.commitSignal.wake()
		case err == nil:
			// Own notifications are included: a commit whose answer was lost may have completed after it was counted.
			_, topics, _ := strings.Cut(n.Payload, " ")
			l.store.recordForeignCommit(strings.Split(topics, ","))
		case !late || ctx.Err() != nil || c.IsClosed():
			return err
		default: // no notification within listenPing: check the connection
			pingCtx, cancel := context.WithTimeout(ctx, 2*listenPing)
			_, err := c.Exec(pingCtx, "SELECT 1")
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// notifyCommits notifies other processes of commits.
func (l *listener) notifyCommits(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.pendingWake:
		}
		// After a failure they see the commits within a second.
		_, _ = l.p.pool.Exec(ctx, "SELECT pg_notify($1, '')", channel)
	}
}

// watchList contains the topics whose changes are notified to all processes.
type watchList struct {
	mu sync.RWMutex
	// callbacks are called when another process has changed data of a topic.
	callbacks map[string][]func(details []string)
}

// detailMark separates a topic from the changed part of it, in the topics that a transaction touches.
const detailMark = "#"

// Detail returns a topic with the part of it that a transaction changes, for Tx.Touch. what must not contain a comma. Processes that
// watch the topic are notified of it.
func Detail(topic, what string) string { return topic + detailMark + what }

// Watch allows values that depend on a topic to be cached (Cache). changed may be nil. It is called when another process may have changed
// data of the topic, with the changed parts (Detail), or with nil if anything may have changed. It must return immediately.
func (s *Store) Watch(topic string, changed func(details []string)) {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	if s.watches.callbacks == nil {
		s.watches.callbacks = map[string][]func([]string){}
	}
	calls := s.watches.callbacks[topic]
	if changed != nil {
		calls = append(calls, changed)
	}
	s.watches.callbacks[topic] = calls
}

// filter returns those of the topics that are watched.
func (w *watchList) filter(topics []string) (watching []string) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, topic := range topics {
		name, _, _ := strings.Cut(topic, detailMark)
		if _, ok := w.callbacks[name]; ok {
			watching = append(watching, topic)
		}
	}
	return watching
}

// maxNotification is the maximum length in bytes of the topics of a notification. PostgreSQL allows 8,000 bytes.
const maxNotification = 7000

// joinTopics returns the topics as the text of a notification, without details if they are too long.
func joinTopics(topics []string) string {
	text := strings.Join(topics, ",")
	if len(text) <= maxNotification {
		return text
	}
	names := map[string]bool{}
	for _, topic := range topics {
		name, _, _ := strings.Cut(topic, detailMark)
		names[name] = true
	}
	return strings.Join(slices.Collect(maps.Keys(names)), ",")
}

// detailsOf returns the changed parts of a topic, or nil if anything may have changed. ok is false if the topic was not changed.
func detailsOf(topic string, topics []string) (details []string, ok bool) {
	if topics == nil || slices.Contains(topics, topic) {
		return nil, true
	}
	for _, one := range topics {
		if what, found := strings.CutPrefix(one, topic+detailMark); found {
			details = append(details, what)
		}
	}
	return details, len(details) > 0
}

// recordForeignCommit counts a commit of another process that changed the topics, and calls their callbacks. nil means that any topic may
// have changed.
func (s *Store) recordForeignCommit(topics []string) {
	s.commits.record(topics, topics != nil)
	s.commitSignal.wake()
	s.watches.mu.RLock()
	defer s.watches.mu.RUnlock()
	for topic, calls := range s.watches.callbacks {
		if details, ok := detailsOf(topic, topics); ok {
			for _, call := range calls {
				call(details)
			}
		}
	}
}
