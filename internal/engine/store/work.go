package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// releaseTime is the deadline for releasing the leases.
const releaseTime = 2 * time.Second

// minPause is the shortest pause that Options.Speedup leaves. Shorter pauses would keep the processors busy
// during tests.
const minPause = 200 * time.Millisecond

// ShortenPause returns the pause d of a worker, shortened by Options.Speedup.
func (s *Store) ShortenPause(d time.Duration) time.Duration {
	return max(d/time.Duration(s.speedup), min(d, minPause))
}

// Speedup returns Options.Speedup, at least 1.
func (s *Store) Speedup() int { return s.speedup }

// Work calls runOnce, pauses for every (shortened by ShortenPause), and repeats until ctx ends. It then releases the leases. It logs an
// error only if it differs from the previous one. name is the name of the work in the log.
func (s *Store) Work(ctx context.Context, every time.Duration, log *slog.Logger, name string, runOnce func(context.Context) error,
	leases ...*Lease) {
	s.WorkOn(ctx, nil, every, log, name, runOnce, leases...)
}

// WorkOn is Work that calls runOnce also as soon as a commit has changed data of one of the topics.
func (s *Store) WorkOn(ctx context.Context, topics []string, every time.Duration, log *slog.Logger, name string,
	runOnce func(context.Context) error, leases ...*Lease) {
	lastError := ""
	for ctx.Err() == nil {
		known := s.commits.latest(topics) // before runOnce, so that a commit during it is not missed
		err := runOnce(ctx)
		if text := fmt.Sprint(err); text != lastError && ctx.Err() == nil {
			if lastError = text; err != nil {
				log.Error("background work failed", "work", name, "error", err)
			}
		}
		s.pauseUntilCommit(ctx, s.ShortenPause(every), topics, known)
	}
	releaseCtx, end := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer end()
	var err error
	for _, l := range leases {
		err = errors.Join(err, l.Release(releaseCtx))
	}
	if err != nil {
		log.Error("lease release failed", "work", name, "error", err)
	}
}

// pauseUntilCommit waits for d, until ctx ends, or until a commit after known has changed data of one of the topics.
func (s *Store) pauseUntilCommit(ctx context.Context, d time.Duration, topics []string, known uint64) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		signal := s.commitSignal.wait() // before the check, so that no commit is missed
		if s.commits.latest(topics) > known {
			return
		}
		select {
		case <-signal:
		case <-ctx.Done():
			return
		}
	}
}

// Keep renews a held lease during long work, until stop is called. stop waits for the last renewal.
func (l *Lease) Keep(ctx context.Context, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for {
			Pause(ctx, l.length/5)
			if ctx.Err() != nil {
				return
			}
			if _, err := l.Acquire(ctx); err != nil && ctx.Err() == nil {
				log.Error("lease renewal failed", "lease", l.name, "error", err)
			}
		}
	})
	return func() {
		cancel()
		keeping.Wait()
	}
}
