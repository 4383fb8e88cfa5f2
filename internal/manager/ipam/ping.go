package ipam

import (
	"context"
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
)

// Options are the functions that the manager provides to package ipam (resource.Provide).
type Options struct {
	// Probe reports whether an address answers; nil where probing is not possible.
	Probe func(ctx context.Context, a netip.Addr) (answers bool, err error)
}

// pinged is the key of the answer whether an address answers a ping.
type pinged struct{ address netip.Addr }

// String returns the question.
func (p pinged) String() string { return "ping of " + p.address.String() }

// answered reports whether an address is known to answer a ping.
func answered(c *resource.Change, a netip.Addr) bool {
	answers, _ := c.Answers[pinged{a}].(bool)
	return answers
}

// answersPing reports whether an address answers a ping. It returns resource.NeedsAnswer as long as that is unknown.
func answersPing(c *resource.Change, a netip.Addr) (bool, error) {
	if _, known := c.Answers[pinged{a}]; known {
		return answered(c, a), nil
	}
	probe := resource.Provided[Options](c.API.Provisions).Probe
	return false, resource.NeedsAnswer{About: pinged{a}, Ask: func(ctx context.Context) (any, error) {
		if probe == nil {
			return nil, problem.Unavailable("ProbeFailed", "%s cannot be probed before it is assigned: this manager does not probe", a)
		}
		answers, err := probe(ctx, a)
		if err != nil {
			p := problem.Unavailable("ProbeFailed", "%s could not be probed before it is assigned: %v", a, err)
			p.Err = err
			return nil, p
		}
		return answers, nil
	}}
}
