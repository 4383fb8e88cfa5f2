package fleet

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Reports are written so many side by side, and of one service point one at a time: who waits for its own holds up nobody else.
func TestReportsSideBySide(t *testing.T) {
	s := &Service{reporting: make(chan struct{}, 2), reporters: map[string]chan struct{}{}}
	begin := func(id string) func() {
		t.Helper()
		done, err := s.report(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	waits := func(id string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := s.report(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s does not wait: %v", id, err)
		}
	}
	a := begin("a")
	waits("a")
	b := begin("b") // which does not wait for those of a
	waits("c")
	a()
	c := begin("c")
	waits("b")
	came := make(chan func())
	go func() {
		done, err := s.report(context.Background(), "b")
		if err != nil {
			t.Error(err)
		}
		came <- done
	}()
	b()
	(<-came)()
	c()
	if len(s.reporters) != 0 || len(s.reporting) != 0 {
		t.Errorf("%d reporters and %d tokens are left", len(s.reporters), len(s.reporting))
	}
}
