package resource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// NeedsAnswer is the error that BeforeWrite returns if the rule needs an answer from outside of the transaction, such as that of a ping.
// The transaction is rolled back, Ask is called, and the change starts again with its result in Answers.
type NeedsAnswer struct {
	// About is the key of the answer, of a type of the package that asks.
	About any
	Ask   func(ctx context.Context) (any, error)
}

// Error returns a text that is shown only where nothing can be asked.
func (n NeedsAnswer) Error() string {
	return fmt.Sprintf("%v: this change cannot ask outside of its transaction", n.About)
}

// Work returns the result of work that takes too long for a transaction, such as an RSA key. The work runs outside of the transaction
// where that is possible. about identifies it.
func (c *Change) Work(about string, do func() (any, error)) (any, error) {
	if c.Results == nil {
		return do()
	}
	made := c.Results[about]
	if len(made) == 0 {
		return nil, NeedsWork{About: about, Do: do}
	}
	c.Results[about] = made[1:]
	return made[0], nil
}

// NeedsWork is the error that Work returns to have the work done. The transaction is rolled back, the work is done, and the change starts
// again.
type NeedsWork struct {
	About string
	Do    func() (any, error)
}

// Error returns a text that is never shown.
func (n NeedsWork) Error() string { return n.About + " is not ready yet" }

// Outside are the results that were computed for a change outside of its transaction.
type Outside struct {
	// Answers are the answers to questions, by what they are about (NeedsAnswer). Results are the results of work (NeedsWork).
	Answers map[any]any
	Results map[string][]any
}

// RetryWithWork runs a change, each attempt in a transaction of its own. Between the attempts it does the work that the change needs
// outside of a transaction: it asks at most maxAnswers questions, and runs long work. A change that asks more fails with tooMany.
func (a *API) RetryWithWork(ctx context.Context, maxAnswers int, tooMany error, change func(o Outside) error) error {
	answers := map[any]any{}
	work := map[string][]any{} // all results so far; each attempt uses them from the start
	for {
		err := change(Outside{answers, maps.Clone(work)})
		var wants NeedsWork
		if errors.As(err, &wants) && ctx.Err() == nil {
			one, err := wants.Do()
			if err != nil {
				return err
			}
			work[wants.About] = append(slices.Clone(work[wants.About]), one)
			continue
		}
		var needs NeedsAnswer
		if !errors.As(err, &needs) {
			return err
		}
		if len(answers) >= maxAnswers {
			return tooMany
		}
		answer, err := needs.Ask(ctx)
		if err != nil {
			return err
		}
		answers[needs.About] = answer
	}
}
