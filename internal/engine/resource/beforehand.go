package resource

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
)

// NeedsProbe is what BeforeWrite gives where the change depends on whether an address answers. All of it is
// taken back, the address is asked (API.Probe), and the change begins anew with the answer in Probed.
type NeedsProbe struct{ Addr netip.Addr }

// Error is shown where nobody can ask.
func (p NeedsProbe) Error() string { return "nobody has asked whether " + p.Addr.String() + " answers" }

// Work gives what takes too long for a transaction, such as a key of RSA: it is made outside of it where that can be.
func (c *Change) Work(about string, do func() (any, error)) (any, error) {
	if c.Made == nil {
		return do()
	}
	made := c.Made[about]
	if len(made) == 0 {
		return nil, NeedsWork{About: about, Do: do}
	}
	c.Made[about] = made[1:]
	return made[0], nil
}

// NeedsWork is what Work gives where something has yet to be made. All of the change is taken back, it is made, and the change begins anew.
type NeedsWork struct {
	About string
	Do    func() (any, error)
}

// Error is never shown.
func (n NeedsWork) Error() string { return n.About + " has yet to be made" }

// Outside is what was found out and made for a change outside of its transaction.
type Outside struct {
	// Probed are the addresses that were asked whether they answer (NeedsProbe), Made is what was made (NeedsWork).
	Probed map[netip.Addr]bool
	Made   map[string][]any
}

// WithOutside makes a change, in a transaction of its own each time it is tried, and does for it in between what it asks for outside of
// one: asking whether addresses answer, at most so many, and making what takes long. tooMany words, with their number, that more would
// have to be asked.
func (a *API) WithOutside(ctx context.Context, most int, tooMany string, change func(o Outside) error) error {
	probed := map[netip.Addr]bool{}
	work := map[string][]any{} // all that was made so far: each try takes it from the beginning
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
		if len(probed) >= most {
			return problem.BadRequest("NoSpaceForAddress", tooMany, most)
		}
		if a.Probe == nil {
			return err
		}
		answers, err := a.Probe(ctx, needs.Addr)
		if err != nil {
			p := problem.Unavailable("ProbeFailed",
				"whether %s answers has to be asked before it is assigned, and could not be: %v", needs.Addr, err)
			p.Err = err
			return p
		}
		probed[needs.Addr] = answers
	}
}
