package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Apply is the body of POST /api/v2/apply: the desired state of resources. Missing resources are created, and resources that differ are
// changed.
type Apply struct {
	// Into is the path that the resources belong below, by names or IDs, such as configurations/main.
	Into string `json:"into,omitempty"`
	// Defaults are members for each resource whose type has them and that does not set them itself.
	Defaults map[string]json.RawMessage `json:"defaults,omitempty"`
	// Action limits the operations: CREATE or UPDATE. Empty means both.
	Action string `json:"action,omitempty"`
	// Tag is the path of a tag that each resource receives. Prune deletes the resources that have the tag and are not in Resources.
	Tag   string `json:"tag,omitempty"`
	Prune bool   `json:"prune,omitempty"`
	// Skip omits resources that are rejected and applies the others. If one is rejected, nothing is pruned.
	Skip bool `json:"skip,omitempty"`
	// Resources are JSON objects with the member type.
	Resources []json.RawMessage `json:"resources"`
}

// Applied is the result of an apply.
type Applied struct {
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Deleted   int `json:"deleted"`
	// Transaction is the ID of the transaction in the history. It is nil if nothing changed or for a dry run.
	Transaction *int64            `json:"transaction"`
	Resources   []AppliedResource `json:"resources"`
	// Refused are the resources that were skipped.
	Refused []RefusedResource `json:"refused,omitempty"`
	// DryRun reports a dry run. AtLeast reports that a large change was tried only in part: Resources is empty, and the counts cover that
	// part.
	DryRun  bool `json:"dryRun,omitempty"`
	AtLeast bool `json:"atLeast,omitempty"`
}

// RefusedResource is a resource that was skipped: its index in the list and the reason.
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

// AppliedResource is the result for one resource.
type AppliedResource struct {
	// Did is CREATED, CHANGED, UNCHANGED, DELETED or ABSENT. ABSENT is a tagged resource that was not pruned because others were rejected.
	Did  string `json:"did"`
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Key is the identifying field, such as a range. Path is the path of the resource.
	Key     string        `json:"key"`
	Path    string        `json:"path"`
	Changes []FieldChange `json:"changes"`
	Notes   []string      `json:"notes"`
	// Once holds secrets of the resource, by field. No later response contains them.
	Once map[string]string `json:"once,omitempty"`
}

// ChangeOptions are the options of a change. The zero value sets none.
type ChangeOptions struct {
	// DryRun tries the change without committing it.
	DryRun bool
	// Comment is stored with the change in the history.
	Comment string
	// Key is the Idempotency-Key: requests with the same key within 24 hours are executed once.
	Key string
	// Headers are additional request headers, such as x-bcn-no-gateway.
	Headers map[string]string
}

// header returns the headers of a request.
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

// Apply creates and changes resources to match a, all in one transaction or none. An *Error names the resources that are rejected, as in
// "resources[3].name".
func (c *Client) Apply(ctx context.Context, a Apply, o ChangeOptions) (done Applied, err error) {
	if !o.DryRun {
		err = c.send(ctx, http.MethodPost, AddressPath+"apply", o.header(), a, &done)
		return done, err
	}
	var tried struct {
		Tried
		Resource *Applied `json:"resource"`
	}
	if err = c.send(ctx, http.MethodPost, AddressPath+"apply", o.header(), a, &tried); err != nil {
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

// Tried is the result of a dry run.
type Tried struct {
	// Estimate reports that the counts are estimates. AtLeast reports that they cover only a part of the change.
	Estimate bool `json:"estimate"`
	AtLeast  bool `json:"atLeast"`
	Created  int  `json:"created"`
	Changed  int  `json:"changed"`
	Deleted  int  `json:"deleted"`
	// Approval reports that the change needs an approval: without a dry run it creates a workflow request (202).
	Approval bool `json:"approval"`
	// Resource is the body that the request would return.
	Resource json.RawMessage `json:"resource"`
	// Operations are the first changes.
	Operations []Change `json:"operations"`
}

// Try performs a dry run of a change of the address API, at a path such as "networks/100007".
func (c *Client) Try(ctx context.Context, method, path string, body any, o ChangeOptions) (t Tried, err error) {
	o.DryRun = true
	err = c.send(ctx, method, AddressPath+path, o.header(), body, &t)
	return t, err
}

// Make performs a change of the address API at a path and returns the body of the response.
func (c *Client) Make(ctx context.Context, method, path string, body any, o ChangeOptions) (answer json.RawMessage, err error) {
	err = c.send(ctx, method, AddressPath+path, o.header(), body, &answer)
	return answer, err
}
