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

// News between processes on PostgreSQL. A transaction that touches a watched topic tells the others
// in its own commit: what is remembered of it is right or forgotten, however the teller ends. All
// other commits only wake followers, who would look within a second anyway; they are told behind the
// commit, many at once, because a commit that notifies waits for every other one that does.

// channel is the name under which processes tell each other.
const channel = "portolan"

// Times of the listening connection. While it is silent for aliveFor nothing is remembered.
const (
	listenPing = time.Second
	aliveFor   = 3 * time.Second
)

// listener hears what other processes tell.
type listener struct {
	store *Store
	p     *postgres
	stop  context.CancelFunc
	done  sync.WaitGroup
	// heard is when the connection was last known to be good, in Unix milliseconds; 0 while there is none.
	lastContact atomic.Int64
	// tell has a token while there are commits that others were not told of.
	pendingWake chan struct{}
}

// listen begins to hear what other processes tell.
func listen(s *Store, p *postgres) *listener {
	ctx, stop := context.WithCancel(context.Background())
	l := &listener{store: s, p: p, stop: stop, pendingWake: make(chan struct{}, 1)}
	l.done.Go(func() {
		for attempt := 0; ctx.Err() == nil; attempt++ {
			began := time.Now()
			_ = l.listenOnce(ctx) // whatever it was, it is tried again
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

// alive reports whether news would have come through.
func (l *listener) isAlive() bool {
	return time.Now().UnixMilli()-l.lastContact.Load() < aliveFor.Milliseconds()
}

// hear listens until the connection is lost.
func (l *listener) listenOnce(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, l.p.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		// The lock is given back before the connection goes: the server notices that only a moment later, and a tool that
		// is started right behind this manager would be refused.
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = c.Exec(leaving, "SELECT pg_advisory_unlock_all()") // the connection may be lost
		_ = c.Close(leaving)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	// Shared with other managers while the connection lives: tools that must be alone find it taken.
	var shared bool
	if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock_shared($1)", int64(managerLock)).Scan(&shared); err != nil {
		return err
	}
	if !shared { // changes wait for that tool meanwhile
		return errors.New("a tool that must be alone is at work")
	}
	l.store.recordForeignCommit(nil) // whatever was told meanwhile
	for {
		l.lastContact.Store(time.Now().UnixMilli())
		waiting, cancel := context.WithTimeout(ctx, listenPing)
		n, err := c.WaitForNotification(waiting)
		late := waiting.Err() != nil
		cancel()
		switch {
		case err == nil && n.Payload == "":
			l.store.commitSignal.wake()
		case err == nil:
			// Also of our own: a commit whose answer was lost may have come after it was counted.
			_, topics, _ := strings.Cut(n.Payload, " ")
			l.store.recordForeignCommit(strings.Split(topics, ","))
		case !late || ctx.Err() != nil || c.IsClosed():
			return err
		default: // silence: is anybody there?
			ping, cancel := context.WithTimeout(ctx, 2*listenPing)
			_, err := c.Exec(ping, "SELECT 1")
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// wake tells the others that there were commits.
func (l *listener) notifyCommits(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.pendingWake:
		}
		// A failure costs them a second at the most.
		_, _ = l.p.pool.Exec(ctx, "SELECT pg_notify($1, '')", channel)
	}
}

// watched are the topics whose changes every process hears of at once.
type watchList struct {
	mu sync.RWMutex
	// calls are what to call when another process has changed something of a topic.
	callbacks map[string][]func(details []string)
}

// detailMark stands between a topic and what of it was changed, in what a transaction touches.
const detailMark = "#"

// Detail is a topic with what of it a transaction changes, which must hold no comma: others that watch the topic are told.
func Detail(topic, what string) string { return topic + detailMark + what }

// Watch lets what follows from a topic be remembered (Cache). changed, which may be nil, is called
// when another process may have changed something of it, with what that was (Detail), or nil where it may be anything; it must return
// at once.
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

// among gives those of the topics that are watched.
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

// longestNews is how long the list of topics may be that others are told of: PostgreSQL takes 8,000 bytes.
const maxNotification = 7000

// worded joins topics for the others; where they are too many, without their details.
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

// detailsOf gives what of a topic was changed, nil where it may be anything; ok is false where nothing was.
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

// news forgets what is known of the topics, or of all where none is named, because another process
// has changed something.
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
