package servicepoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portolan/internal/servicepoint/spool"
	"portolan/internal/wire/stream"
)

// aManager accepts batches as a manager does. Its fields are guarded by mu.
type aManager struct {
	mu sync.Mutex
	// away is the number of batches without an answer. refuses is the reason of the events that it rejects.
	away    int
	refuses string
	next    map[string]int64
	taken   []string
}

func (m *aManager) post(_ context.Context, b stream.Batch) (stream.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away > 0 {
		m.away--
		return stream.Answer{}, errors.New("nobody answers")
	}
	var reasons []string
	for _, text := range b.Records {
		var e stream.Event
		if err := json.Unmarshal(text, &e); err != nil {
			return stream.Answer{}, err
		}
		if e.Reason == m.refuses {
			return stream.Answer{}, &refusal{Status: 400, Code: stream.InvalidRecord, Message: "records[0]"}
		}
		reasons = append(reasons, e.Reason)
	}
	key := b.Application + "/" + b.Kind + "/" + b.Spool
	next := max(1, m.next[key])
	if skip := next - b.First; skip > 0 {
		reasons = reasons[min(int(skip), len(reasons)):]
	}
	m.next[key] = max(next, b.First+int64(len(b.Records)))
	m.taken = append(m.taken, reasons...)
	if m.away--; m.away == -3 { // it stores the batch, but its answer is lost
		return stream.Answer{}, errors.New("the connection was cut")
	}
	return stream.Answer{Next: m.next[key]}, nil
}

// TestStreamsArriveInOrder checks in virtual time that events arrive in order and once, also those from before a restart or while no
// manager answered. A rejected event does not block others.
func TestStreamsArriveInOrder(t *testing.T) {
	state := t.TempDir()
	m := &aManager{away: 4, refuses: "7", next: map[string]int64{}}
	var want []string
	for round := range 3 {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			s := newStreams(state, slog.New(slog.DiscardHandler), m.post)
			ended := make(chan struct{})
			note := func(n int) {
				s.recordEvent(stream.Event{Field: "process", Reason: fmt.Sprint(n)})
				if n != 7 {
					want = append(want, fmt.Sprint(n))
				}
			}
			note(10 * round)
			go func() { s.run(ctx); close(ended) }()
			for n := range 9 {
				note(10*round + n + 1)
				if n%4 == 0 {
					time.Sleep(time.Minute)
				}
			}
			if round != 1 { // the second time it ends before all is sent
				time.Sleep(10 * time.Minute)
			}
			end()
			<-ended
		})
	}
	if !slices.Equal(m.taken, want) {
		t.Errorf("what has come is %v, want %v", m.taken, want)
	}
}

// TestStreamsOfARemovedApplication checks that the unsent records of a removed application are deleted.
func TestStreamsOfARemovedApplication(t *testing.T) {
	state := t.TempDir()
	s := newStreams(state, slog.New(slog.DiscardHandler), (&aManager{away: 1 << 30}).post)
	to, err := s.spool(streamKey{"app", stream.Events})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Append(json.RawMessage(`{"field":"x"}`)); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	if err := s.forget("app"); err != nil {
		t.Error(err)
	}
	end()
	running.Wait()
	if left, err := os.ReadDir(filepath.Join(state, streamFolder)); err != nil || len(left) != 0 {
		t.Errorf("left are %v %v", left, err)
	}
}

// TestKindsAreNames checks that the kind of a record cannot refer to another folder.
func TestKindsAreNames(t *testing.T) {
	s := newStreams(t.TempDir(), slog.New(slog.DiscardHandler), (&aManager{}).post)
	for _, key := range []streamKey{{"app", "../../x"}, {"app", "../_/events"}, {"app", ""}, {"app", "my.kind"}, {"../x", "events"},
		{"_", "events"}} {
		if _, err := s.spool(key); !errors.Is(err, errNoName) {
			t.Errorf("%v: %v", key, err)
		}
	}
}

// TestStreamsOfARestoredMachine checks that new records arrive although a restored machine reuses numbers that the manager has.
func TestStreamsOfARestoredMachine(t *testing.T) {
	before, m := t.TempDir(), &aManager{next: map[string]int64{}}
	run := func(state string, reasons ...string) {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			s := newStreams(state, slog.New(slog.DiscardHandler), m.post)
			for _, reason := range reasons {
				s.recordEvent(stream.Event{Field: "process", Reason: reason})
			}
			var running sync.WaitGroup
			running.Go(func() { s.run(ctx) })
			time.Sleep(10 * time.Minute)
			end()
			running.Wait()
		})
	}
	run(before, "a")
	after := t.TempDir()
	if err := os.CopyFS(after, os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
	run(before, "b", "c", "d")
	run(after, "new 1", "new 2")
	for _, want := range []string{"a", "b", "c", "d", "new 1", "new 2"} {
		if !slices.Contains(m.taken, want) {
			t.Errorf("%s has not come: %v", want, m.taken)
		}
	}
}

// TestProxyErrorsDropNoRecords checks that error answers of a proxy do not make the agent drop records.
func TestProxyErrorsDropNoRecords(t *testing.T) {
	m := &aManager{next: map[string]int64{}}
	away := 20
	post := func(ctx context.Context, b stream.Batch) (stream.Answer, error) {
		if away--; away > 0 {
			return stream.Answer{}, &refusal{Status: 413, Code: unexpected, Message: "Request Entity Too Large"}
		}
		return m.post(ctx, b)
	}
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newStreams(state, slog.New(slog.DiscardHandler), post)
		for _, reason := range []string{"1", "2", "3"} {
			s.recordEvent(stream.Event{Field: "process", Reason: reason})
		}
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		time.Sleep(time.Hour)
		end()
		running.Wait()
	})
	if !slices.Equal(m.taken, []string{"1", "2", "3"}) {
		t.Errorf("what has come is %v", m.taken)
	}
}

// TestOwnEventsOfAPreviousIdentity checks that unsent events of the agent are deleted before it enrols as another service point, and that
// later events are stored.
func TestOwnEventsOfAPreviousIdentity(t *testing.T) {
	s := newStreams(t.TempDir(), slog.New(slog.DiscardHandler), nil)
	event := func(field string) *spool.Spool {
		t.Helper()
		s.recordEvent(stream.Event{Field: field})
		to, err := s.spool(streamKey{kind: stream.Events})
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	if n := event("before").Waiting(); n != 1 {
		t.Fatalf("%d events wait, want 1", n)
	}
	if err := s.forgetOwn(); err != nil {
		t.Fatal(err)
	}
	to := event("after")
	if n := to.Waiting(); n != 1 {
		t.Errorf("%d events wait, want the one after the enrolment", n)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}
