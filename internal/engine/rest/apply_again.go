package rest

import (
	"errors"
	"time"

	"portolan/internal/base/problem"
)

// attempt is the information that one attempt to apply a document passes to the next, after its transaction was rolled back.
type attempt struct {
	// broken are the resources that were refused after some of their writes, by index, with the error. Further attempts leave them out.
	broken map[int]*problem.Problem
	// isPruneDisabled disables prune, because resources were refused even after the deletions.
	isPruneDisabled bool
	// first are the ids of the tagged resources to delete before the document is applied, because at least one of them occupies the place
	// of a resource of the document.
	first []int64
	until time.Time
}

// errApplyAgain rolls a transaction back so that the document is applied again with the new information.
var errApplyAgain = errors.New("apply the document again")

// applyAgainTime is the time limit for new attempts.
const applyAgainTime = time.Minute

// run runs transactions until one returns another error than errApplyAgain, or nil.
func (g *attempt) run(transaction func() error) error {
	for {
		err := transaction()
		if !errors.Is(err, errApplyAgain) {
			return err
		}
		if time.Now().After(g.until) {
			return problem.BadRequest("RequestTooLarge", "applying the document took longer than %v in several attempts; remove the refused "+
				"resources, or apply fewer at once", applyAgainTime)
		}
	}
}
