package client

import (
	"context"
	"errors"
	"net/http"
	"strconv"
)

// DeleteOptions are for DeleteInSteps.
type DeleteOptions struct {
	// AtMost is how many resources one step deletes, 1 to 10,000; 0 means 500. Others get their turn between steps.
	AtMost int
	// Comment is a remark that the history keeps with each step.
	Comment string
	// Progress is told how many resources are gone after each step; nil where nobody asks.
	Progress func(deleted int)
}

// Tally is how many resources a change makes, changes and deletes.
type Tally struct {
	Created int `json:"created"`
	Changed int `json:"changed"`
	Deleted int `json:"deleted"`
	// Estimate says that the numbers are not exact, AtLeast that they are too small.
	Estimate bool `json:"estimate"`
	AtLeast  bool `json:"atLeast"`
}

// DeleteInSteps deletes a resource, such as blocks/100123, with all that lies below it, from the bottom up, in several transactions. It is
// neither all nor nothing: whoever looks sees what is left, and what was deleted stays so where it is cut off; called again it
// goes on. It gives how many resources are gone.
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
		err := c.send(ctx, http.MethodDelete, "/api/v2/"+resource, header, nil, &step)
		var refused *Error
		if steps > 0 && errors.As(err, &refused) && refused.Status == http.StatusNotFound { // somebody else has deleted it
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

// TryDelete tells what deleting a resource would do, and deletes nothing.
func (c *Client) TryDelete(ctx context.Context, resource string) (t Tally, err error) {
	return t, c.send(ctx, http.MethodDelete, "/api/v2/"+resource, map[string]string{"x-portolan-dry-run": "true"}, nil, &t)
}
