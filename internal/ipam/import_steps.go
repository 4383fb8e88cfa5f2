package ipam

import (
	"cmp"
	"context"

	"portolan/internal/store"
)

// Import says how a file is imported.
type Import struct {
	// InSteps imports in several transactions, between which others get their turn. It is neither all nor nothing then: whoever looks sees
	// what is there so far, which stays where it is cut off. What is there already, and the same, is passed over, so that importing
	// the same file again goes on.
	InSteps bool
	// StepSize is how many lines a step has; 0 means 1,000.
	StepSize int
	// Strict refuses all where a record of a zone would be left out. Prune deletes records of a zone that the file does not have.
	Strict, Prune bool
	// Progress is told how many lines are done; nil where nobody asks.
	Progress func(done int64)
}

// importStep is how many lines are imported in a step where nobody says how many.
const importStep = 1_000

// Step gives how many of so many lines one transaction imports.
func (i Import) Step(lines int) int {
	if i.InSteps {
		return cmp.Or(i.StepSize, importStep)
	}
	return max(lines, 1)
}

// Stepped ends a step: it tells of progress, and lets others have their turn.
func (i Import) Stepped(ctx context.Context, s *store.Store, done int) {
	i.progressed(done)
	if i.InSteps {
		s.Yield(ctx)
	}
}

func (i Import) progressed(done int) {
	if i.Progress != nil {
		i.Progress(int64(done))
	}
}
