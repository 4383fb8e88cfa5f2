package rest

import (
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
)

// maxProbes is how many addresses are asked for one change. Asking takes its time, and no lock is held
// meanwhile.
const maxProbes = 16

// probing makes a change, asking for it whether addresses answer, at most so many; tooMany words, with their number, that more
// would have to be.
func (a *Server) probing(rq *request, most int, tooMany string, change func() error) error {
	rq.probed = map[netip.Addr]bool{}
	work := map[string][]any{} // all that was made so far: each try takes it from the beginning
	for {
		rq.made = maps.Clone(work)
		err := change()
		var wants resource.NeedsWork
		if errors.As(err, &wants) && rq.Context().Err() == nil {
			one, err := wants.Do()
			if err != nil {
				return err
			}
			work[wants.About] = append(slices.Clone(work[wants.About]), one)
			continue
		}
		var needs resource.NeedsProbe
		if !errors.As(err, &needs) {
			return err
		}
		if len(rq.probed) >= most {
			return problem.Conflict("NoAvailableAddress", tooMany, most)
		}
		if a.Probe == nil {
			return err
		}
		answers, err := a.Probe(rq.Context(), needs.Addr)
		if err != nil {
			p := problem.New(http.StatusServiceUnavailable, "ProbeFailed",
				"whether %s answers has to be asked before it is assigned, and could not be: %v", needs.Addr, err)
			p.Err = err
			return p
		}
		rq.probed[needs.Addr] = answers
	}
}
