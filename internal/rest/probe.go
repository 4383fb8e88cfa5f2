package rest

import (
	"errors"
	"net/http"
	"net/netip"

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
	for {
		err := change()
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
