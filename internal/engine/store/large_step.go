package store

import (
	"context"
	"time"
)

// LargeStep is one update of work with many changes, such as a step of an import. On SQLite it does not share the commit of smaller
// updates that run before it, so that these do not wait for it. Updates that wait when it ends share its commit.
type LargeStep struct {
	// Took is the time that other updates had to wait for the update, without its commit. It is set when the update has ended.
	Took time.Duration
}

// largeStepKey is the key of the LargeStep in a context.
type largeStepKey struct{}

// Context returns the context for the update.
func (s *LargeStep) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, largeStepKey{}, s)
}

// largeStep returns the step that an update belongs to, or nil.
func largeStep(ctx context.Context) *LargeStep {
	s, _ := ctx.Value(largeStepKey{}).(*LargeStep)
	return s
}

// timeStep starts to measure the step that an update belongs to, if any, and returns the function that ends it.
func timeStep(ctx context.Context) (end func()) {
	s := largeStep(ctx)
	if s == nil {
		return func() {}
	}
	began := time.Now()
	return func() { s.Took = time.Since(began) }
}
