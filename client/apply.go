package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Apply are resources as they are to be (POST /api/v2/apply): those that are there otherwise are changed, those that are not there are
// made.
type Apply struct {
	// Into is the path of what they belong below, by names or numbers, such as configurations/main.
	Into string `json:"into,omitempty"`
	// Defaults are members of each whose type has them and that does not say otherwise.
	Defaults map[string]json.RawMessage `json:"defaults,omitempty"`
	// Action leaves it at one: CREATE or UPDATE. Empty: both.
	Action string `json:"action,omitempty"`
	// Tag is the path of a tag that each gets; with Prune what has it and is not among them goes.
	Tag   string `json:"tag,omitempty"`
	Prune bool   `json:"prune,omitempty"`
	// Skip leaves out resources that are refused, and applies the others. Nothing is pruned where one was refused.
	Skip bool `json:"skip,omitempty"`
	// Resources are objects with a type.
	Resources []json.RawMessage `json:"resources"`
}

// Applied is what came of them.
type Applied struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Deleted   int `json:"deleted"`
	// Transaction is its number in the history; nil where nothing changed, or it was only tried.
	Transaction *int64            `json:"transaction"`
	Resources   []AppliedResource `json:"resources"`
	// Refused are those that were skipped.
	Refused []RefusedResource `json:"refused,omitempty"`
	// DryRun says that it was only tried; AtLeast that it was tried in part, because it would change much: there are no resources then, and
	// the numbers are of that part.
	DryRun  bool `json:"dryRun,omitempty"`
	AtLeast bool `json:"atLeast,omitempty"`
}

// RefusedResource is a resource that was skipped: its place in the list, and why.
type RefusedResource struct {
	Index   int      `json:"index"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fields  []string `json:"fields,omitempty"`
}

// FieldChange is a change of a field: its value before and after, as JSON.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// AppliedResource is what came of one of them.
type AppliedResource struct {
	// Did is CREATED, CHANGED, UNCHANGED, DELETED or, of a resource that has the tag and stays because others were refused, ABSENT.
	Did  string `json:"did"`
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Key is what people name it by, such as a range; Path where it is.
	Key     string        `json:"key"`
	Path    string        `json:"path"`
	Changes []FieldChange `json:"changes"`
	Notes   []string      `json:"notes"`
	// Once are secrets of it that no other answer shows, by their fields.
	Once map[string]string `json:"once,omitempty"`
}

// ChangeOptions say how a change is made; the zero value says nothing.
type ChangeOptions struct {
	// DryRun only tries it.
	DryRun bool
	// Comment is kept with it in the history.
	Comment string
	// Key makes it once only, however often it is sent within 24 hours (Idempotency-Key).
	Key string
	// Headers are more that the manager looks at, such as x-bcn-no-gateway.
	Headers map[string]string
}

// header gives the headers of a request.
func (o ChangeOptions) header() map[string]string {
	header := map[string]string{}
	for name, value := range o.Headers {
		header[name] = value
	}
	for name, value := range map[string]string{"x-bcn-change-control-comment": o.Comment, "Idempotency-Key": o.Key} {
		if value != "" {
			header[name] = value
		}
	}
	if o.DryRun {
		header["x-portolan-dry-run"] = "true"
	}
	return header
}

// Apply lets resources be as they are sent, in one transaction, all or none. An *Error names those that cannot be, as in
// "resources[3].name".
func (c *Client) Apply(ctx context.Context, a Apply, o ChangeOptions) (done Applied, err error) {
	if !o.DryRun {
		err = c.send(ctx, http.MethodPost, "/api/v2/apply", o.header(), a, &done)
		return done, err
	}
	var tried struct {
		Tried
		Resource *Applied `json:"resource"`
	}
	if err = c.send(ctx, http.MethodPost, "/api/v2/apply", o.header(), a, &tried); err != nil {
		return done, err
	}
	if tried.Resource != nil {
		done = *tried.Resource
	} else {
		done.Created, done.Changed, done.Deleted = tried.Created, tried.Changed, tried.Deleted
	}
	done.DryRun, done.AtLeast, done.Transaction = true, tried.AtLeast, nil
	return done, nil
}

// Tried is what a change would do that was only tried.
type Tried struct {
	// Estimate says that the numbers are estimated, AtLeast that they are of a part.
	Estimate bool `json:"estimate"`
	AtLeast  bool `json:"atLeast"`
	Created  int  `json:"created"`
	Changed  int  `json:"changed"`
	Deleted  int  `json:"deleted"`
	// Approval reports that the change needs an approval: without a dry run it creates a workflow request (202).
	Approval bool `json:"approval"`
	// Resource is the answer that it would give.
	Resource json.RawMessage `json:"resource"`
	// Operations are the first changes.
	Operations []Change `json:"operations"`
}

// Try only tries a change of the address API, at a path such as "networks/100007".
func (c *Client) Try(ctx context.Context, method, path string, body any, o ChangeOptions) (t Tried, err error) {
	o.DryRun = true
	err = c.send(ctx, method, "/api/v2/"+path, o.header(), body, &t)
	return t, err
}

// Make makes a change of the address API at a path, and gives its answer.
func (c *Client) Make(ctx context.Context, method, path string, body any, o ChangeOptions) (answer json.RawMessage, err error) {
	err = c.send(ctx, method, "/api/v2/"+path, o.header(), body, &answer)
	return answer, err
}
