package store

import (
	"context"
	"errors"
	"time"
)

// Limits of a trial: the number of its changes, and its duration beyond the first trialFree changes. trialFree is twice what an answer
// shows, because related changes accompany those that are shown. While other updates wait, trials may use at most one part in trialShare
// of the time. Fewer than one in twenty of those updates then meets a trial.
const (
	TrialChanges = 1_000
	trialFree    = 200
	trialTime    = 250 * time.Millisecond
	trialShare   = 25
)

// ErrTrialEnded ends a trial that reached the limit of its changes or of its time.
var ErrTrialEnded = errors.New("the change is larger than the limit of a dry run")

// errTried rolls a trial back.
var errTried = errors.New("roll back the dry run")

// trials contains the state of the trials of this process, which run one at a time.
type trials struct {
	// token holds one element during a trial. next is when the next trial may start; only the trial that runs uses it.
	token chan struct{}
	next  time.Time
}

// trial is the remaining budget of a trial.
type trial struct {
	changes int
	until   time.Time
}

// Try is UpdateIn for a change that is only tried and always rolled back. A trial that exceeds its limits ends with ErrTrialEnded. fn can
// call EndTrial to read the result of its changes without a limit.
func (s *Store) Try(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	select {
	case s.trials.token <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.trials.token }()
	if Pause(ctx, time.Until(s.trials.next)); ctx.Err() != nil {
		return ctx.Err()
	}
	var took time.Duration
	delayedOthers := false // true if the trial delayed other updates
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

// EndTrial removes the limits of a trial, so that fn can read what it has changed.
func (tx *Tx) EndTrial() { tx.trial = nil }

// countTrialChange counts a change of a trial. It returns ErrTrialEnded if the trial exceeds its limits.
func (tx *Tx) countTrialChange() error {
	if t := tx.trial; t != nil {
		if t.changes--; t.changes < 0 || t.changes < TrialChanges-trialFree && time.Now().After(t.until) {
			return ErrTrialEnded
		}
	}
	return nil
}
