package client

import (
	"context"
	"errors"
	"net/http"
	"strconv"
)

// DeleteOptions are the options of DeleteInSteps.
type DeleteOptions struct {
	// AtMost is the maximum number of resources that one step deletes, 1 to 10,000; 0 means 500. Other requests run between steps.
	AtMost int
	// Comment is stored with each step in the history.
	Comment string
	// Progress is called after each step with the number of resources deleted so far. It may be nil.
	Progress func(deleted int)
}

// Tally is the number of resources that a change creates, changes and deletes.
type Tally struct {
	Created int `json:"created"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
	// Estimate reports that the counts are not exact. AtLeast reports that they are lower bounds.
	Estimate bool `json:"estimate"`
	AtLeast  bool `json:"atLeast"`
}

// DeleteInSteps deletes a resource, such as blocks/100123, and everything below it, from the bottom up, in several transactions. It is not
// atomic: other clients see intermediate states, and an interrupted deletion stays partly done until it is called again. It returns the
// number of deleted resources.
func (c *Client) DeleteInSteps(ctx context.Context, resource string, o DeleteOptions) (deleted int, err error) {
	if o.AtMost == 0 {
		o.AtMost = 500
	}
	header := map[string]string{"x-portolan-at-most": strconv.Itoa(o.AtMost)}
	if o.Comment != "" {
		header["x-bcn-change-control-comment"] = o.Comment
	}
	for steps := 0; ; steps++ {
		var step struct {
			Done bool `json:"done"`
			Tally
		}
		err := c.send(ctx, http.MethodDelete, AddressPath+resource, header, nil, &step)
		var refused *Error
		if steps > 0 && errors.As(err, &refused) && refused.Status == http.StatusNotFound { // another client deleted it
			return deleted, nil
		}
		if err != nil {
			return deleted, err
		}
		deleted += step.Deleted
		if o.Progress != nil {
			o.Progress(deleted)
		}
		if step.Done {
			return deleted, nil
		}
	}
}

// TryDelete returns the counts of a deletion without deleting anything.
func (c *Client) TryDelete(ctx context.Context, resource string) (t Tally, err error) {
	err = c.send(ctx, http.MethodDelete, AddressPath+resource, map[string]string{"x-portolan-dry-run": "true"}, nil, &t)
	return t, err
}
