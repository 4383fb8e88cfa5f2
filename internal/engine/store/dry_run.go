package store

import (
	"context"
	"errors"
	"time"
)

// Bounds of trials: how many changes one may make, and how long it may take beyond the first trialFree: twice what an answer shows of
// them, since others go along with those that are shown. Of the time, one part in
// trialShare at most belongs to trials while others have to wait for them: fewer than one in twenty of the others' changes meets one.
const (
	TrialChanges = 1_000
	trialFree    = 200
	trialTime    = 250 * time.Millisecond
	trialShare   = 25
)

// ErrTrialEnded ends a trial that has made as many changes, or has taken as long, as one may.
var ErrTrialEnded = errors.New("more would be changed than is tried")

// errTried takes a trial back.
var errTried = errors.New("the change was only tried")

// trials are those of one process: one at a time.
type trials struct {
	// turn holds one element while there is a trial. next is when the next one may begin: it belongs to who has the turn.
	turn chan struct{}
	next time.Time
}

// trial is what is left to one trial.
type trial struct {
	changes int
	until   time.Time
}

// Try is UpdateIn for a change that is only tried: nothing of it stays. What a trial has done when it may do no more ends it with
// ErrTrialEnded; EndTrial lets fn read what came of it until then.
func (s *Store) Try(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	select {
	case s.trials.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.trials.turn }()
	if Pause(ctx, time.Until(s.trials.next)); ctx.Err() != nil {
		return ctx.Err()
	}
	var took time.Duration
	delayedOthers := false // others from working
	err := s.UpdateIn(ctx, scope, author, func(tx *Tx) error {
		began := time.Now()
		tx.trial = &trial{TrialChanges, began.Add(trialTime)}
		err := fn(tx)
		took += time.Since(began)
		delayedOthers = delayedOthers || s.updates.Load() > 1
		if err == nil {
			err = errTried
		}
		return err
	})
	if delayedOthers {
		s.trials.next = time.Now().Add(trialShare * took)
	}
	if errors.Is(err, errTried) {
		return nil
	}
	return err
}

// EndTrial lets a transaction that is tried go on without a bound, to read what it has done.
func (tx *Tx) EndTrial() { tx.trial = nil }

// trialed counts a change of a transaction that is tried.
func (tx *Tx) countTrialChange() error {
	if t := tx.trial; t != nil {
		if t.changes--; t.changes < 0 || t.changes < TrialChanges-trialFree && time.Now().After(t.until) {
			return ErrTrialEnded
		}
	}
	return nil
}
