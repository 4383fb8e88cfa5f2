package store

import (
	"context"
	"testing"
	"time"
)

// TestLargeStepsDoNotDelayOthers checks that a change that runs before a large step is committed and answered before the step runs, and
// that the duration of the step is measured.
func TestLargeStepsDoNotDelayOthers(t *testing.T) {
	s := open(t, t.TempDir())
	e := s.engine.(*sqliteEngine)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began, answered, ended := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		answered <- s.Update(ctx, Author{}, func(tx *Tx) error {
			close(began)
			for len(e.jobs) == 0 && ctx.Err() == nil { // until the large step waits
				time.Sleep(time.Millisecond)
			}
			return tx.Insert(thing("small"))
		})
	}()
	<-began
	var large LargeStep
	go func() {
		ended <- s.Update(large.Context(ctx), Author{}, func(tx *Tx) error {
			select {
			case err := <-answered:
				answered <- nil
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
			return tx.Insert(thing("large"))
		})
	}()
	if err := <-ended; err != nil {
		t.Fatalf("a large step began before an earlier change was answered: %v", err)
	}
	if large.Took <= 0 {
		t.Error("the step was not measured")
	}
	if count(t, s) != 2 {
		t.Error("not both changes were stored")
	}
}
