package resource

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
)

// NeedsProbe is the error that BeforeWrite returns to have an address probed. The transaction is rolled back, the address is probed
// (API.Probe), and the change starts again with the result in Probed.
type NeedsProbe struct{ Addr netip.Addr }

// Error is shown where probing is not possible.
func (p NeedsProbe) Error() string { return "address " + p.Addr.String() + " was not probed" }

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
	// Probed are the probed addresses, with whether each one answered (NeedsProbe). Made are the results of work (NeedsWork).
	Probed  map[netip.Addr]bool
	Results map[string][]any
}

// RetryWithWork runs a change, each attempt in a transaction of its own. Between the attempts it does the work that the change needs
// outside of a transaction: it probes at most maxProbes addresses, and runs long work. tooMany is the error message for more probes, with
// a verb %d for maxProbes.
func (a *API) RetryWithWork(ctx context.Context, maxProbes int, tooMany string, change func(o Outside) error) error {
	probed := map[netip.Addr]bool{}
	work := map[string][]any{} // all results so far; each attempt uses them from the start
	for {
		err := change(Outside{probed, maps.Clone(work)})
		var wants NeedsWork
		if errors.As(err, &wants) && ctx.Err() == nil {
			one, err := wants.Do()
			if err != nil {
				return err
			}
			work[wants.About] = append(slices.Clone(work[wants.About]), one)
			continue
		}
		var needs NeedsProbe
		if !errors.As(err, &needs) {
			return err
		}
		if len(probed) >= maxProbes {
			return problem.BadRequest("NoSpaceForAddress", tooMany, maxProbes)
		}
		if a.Probe == nil {
			return err
		}
		answers, err := a.Probe(ctx, needs.Addr)
		if err != nil {
			p := problem.Unavailable("ProbeFailed",
				"%s could not be probed before it is assigned: %v", needs.Addr, err)
			p.Err = err
			return p
		}
		probed[needs.Addr] = answers
	}
}
