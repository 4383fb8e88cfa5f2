package store

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestTrialsLeaveNoChanges checks that a trial leaves no changes. It ends when it becomes large, and its changes up to then can be read.
func TestTrialsLeaveNoChanges(t *testing.T) { both(t, tries) }

func tries(t *testing.T, s *Store) {
	ctx := t.Context()
	add := func(tx *Tx, n int) error {
		for i := range n {
			if err := tx.Insert(&Resource{Collection: "things", Type: "A", Name: fmt.Sprint(i), Body: []byte("{}")}); err != nil {
				return err
			}
		}
		return nil
	}
	var tally Tally
	if err := s.Try(ctx, Scope{}, Author{}, func(tx *Tx) (err error) {
		if err := add(tx, 3); err != nil {
			return err
		}
		tally, err = tx.Tally()
		return err
	}); err != nil || tally.Created != 3 {
		t.Errorf("the trial returned %v, %+v", err, tally)
	}
	if err := s.Try(ctx, Scope{}, Author{}, func(*Tx) error { return errFailed }); !errors.Is(err, errFailed) {
		t.Errorf("the failing trial returned %v", err)
	}
	err := s.Try(ctx, Scope{}, Author{}, func(tx *Tx) (err error) {
		ended := add(tx, TrialChanges+1)
		tx.EndTrial()
		if tally, err = tx.Tally(); err != nil {
			return err
		}
		if err := add(tx, 1); err != nil { // after EndTrial neither reads nor writes are limited
			return err
		}
		return ended
	})
	// On a slow machine the time limit ends the trial.
	if !errors.Is(err, ErrTrialEnded) || tally.Created > TrialChanges || tally.Created < trialFree {
		t.Errorf("the large trial returned %v, %+v", err, tally)
	}
	if err := s.View(ctx, func(tx *Tx) error {
		n, err := tx.Count(Query{From: Resources, Where: InCollection("things")})
		if n != 0 {
			t.Errorf("%d resources are left after the trials", n)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestTrialsAreDelayed checks that the next trial is delayed if others waited for a trial, so that most changes meet none.
func TestTrialsAreDelayed(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	try := func(inside func()) {
		t.Helper()
		if err := s.Try(ctx, Scope{}, Author{}, func(*Tx) error { inside(); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	try(func() {})
	if !s.trials.next.IsZero() {
		t.Error("the next trial is delayed although no update waited")
	}
	done := make(chan error, 1)
	var began, ended time.Time
	try(func() {
		began = time.Now()
		go func() { done <- s.Update(ctx, Author{}, func(*Tx) error { return nil }) }()
		for s.updates.Load() < 2 {
			time.Sleep(time.Millisecond)
		}
		ended = time.Now()
	})
	if took := ended.Sub(began); s.trials.next.Before(ended.Add(trialShare * took)) {
		t.Errorf("after a trial of %v the next one may start %v later", took, s.trials.next.Sub(ended))
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
