package rest

import (
	"errors"
	"time"

	"portolan/internal/base/problem"
)

// applyAgain is what a transaction knows of those that were taken back before it.
type applyAgain struct {
	// broken are the resources that were refused half done, by their places, and why: they are left out.
	broken map[int]*problem.Problem
	// keeps says that resources were refused also when what has the tag had gone: nothing goes.
	keeps bool
	// first are the ids of the tagged resources to delete before the document is applied, because at least one of them occupies the place of
	// a resource of the document.
	first []int64
	until time.Time
}

// errApplyAgain takes a transaction back, which is begun again with what is known then.
var errApplyAgain = errors.New("the document is applied again")

// applyAgainTime is within how long a document is begun again.
const applyAgainTime = time.Minute

// run runs a transaction, again as long as it ends with errApplyAgain.
func (g *applyAgain) run(transaction func() error) error {
	for {
		err := transaction()
		if !errors.Is(err, errApplyAgain) {
			return err
		}
		if time.Now().After(g.until) {
			return problem.BadRequest("RequestTooLarge", "the document was begun again for longer than %v: leave out the resources that are "+
				"refused, or apply fewer", applyAgainTime)
		}
	}
}
