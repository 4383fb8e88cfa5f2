package resource

import (
	"encoding/json"
	"errors"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// ErrApproval is wrapped in the problem that refuses a change because it needs an approval first.
var ErrApproval = errors.New("another user must approve this change")

// RequestedChange is a requested change that needs an approval: the original request as it was sent.
type RequestedChange struct {
	Method string `json:"method"`
	// Collection, ID and Sub are the target of the request: a resource, or a subcollection of it.
	Collection string `json:"collection"`
	ID         int64  `json:"id"`
	Sub        string `json:"sub,omitempty"`
	// Members are the members of the body, Headers the option headers of the request.
	Members map[string]json.RawMessage `json:"members,omitempty"`
	Headers map[string]string          `json:"headers,omitempty"`
	// Version is the version of the resource at the time of the request; 0 for a POST.
	Version int64 `json:"version,omitempty"`
}

// Outcome is the result of trying a requested change.
type Outcome struct {
	// Row is the created or changed resource; for a deletion, the resource before it.
	Row *store.Resource
	// Changes are all its changes, Summary describes them in a sentence. The first Foreseen of them are those of the pending requests
	// that it depends on.
	Changes  []store.EntryChange
	Foreseen int
	Summary  string
}

// Workflow stores requests for approval (package workflow).
type Workflow interface {
	// Ask stores a change and returns the request. depends is the id of the request that has to be approved first, 0 for none.
	Ask(c *Change, asked RequestedChange, came Outcome, depends int64) (*store.Resource, error)
	// Foresee applies a pending request in a transaction that will be rolled back, and returns the resulting resource.
	Foresee(c *Change, request int64) (*store.Resource, error)
}

// WorkflowExtension is the name of the database extension that stores the changes of pending requests.
const WorkflowExtension = "workflow"

// ReservedSpace returns the space of a collection that pending requests reserve in a configuration, in order.
func ReservedSpace(tx *store.Tx, collection string, configuration int64) ([]space.Range, error) {
	if e := tx.Extension(WorkflowExtension); e != nil {
		if h, ok := e.State.(interface {
			ReservedSpace(tx *store.Tx, collection string, configuration int64) ([]space.Range, error)
		}); ok {
			return h.ReservedSpace(tx, collection, configuration)
		}
	}
	return nil, nil
}

// Standing are the rights of a caller on resources of a type: the access level, and the workflow level. NONE applies changes directly,
// RECOMMEND creates requests for approval, APPROVE also approves requests.
type Standing struct{ Level, Workflow string }

// Askable reports whether a request for the target may become a request for approval: it creates a resource below another one, or changes
// or deletes one resource, in a collection whose changes may need an approval.
func (a *API) Askable(t Target, method string) bool {
	if method == methodPost {
		return t.Sub != nil && (t.Sub.Relation == Children || t.Sub.NeedsApproval) && a.byName[t.Sub.Items[0]].Workflow != nil
	}
	return t.Collection != nil && t.Sub == nil && !t.List && t.Collection.Workflow != nil
}

// Perform applies a requested change to the current data. It returns the created or changed resource, nil after a deletion.
func (a *API) Perform(c *Change, k RequestedChange) (*store.Resource, error) {
	t := Target{Collection: a.byName[k.Collection], ID: k.ID}
	if t.Collection == nil {
		return nil, errors.New("the workflow request names a collection that does not exist: " + k.Collection)
	}
	if k.Sub != "" {
		t.Sub = t.Collection.Sub(k.Sub)
	}
	c.Sent = k.Members
	if c.Sent == nil {
		c.Sent = map[string]json.RawMessage{}
	}
	for _, h := range a.Headers {
		if text := k.Headers[h.Name]; text != "" {
			var err error
			if c.Options, err = h.Read(c.Options, text); err != nil {
				return nil, err
			}
		}
	}
	if k.Method == methodPost {
		return a.CreateIn(c, t)
	}
	row, err := a.Locate(c.Tx, t, c.Caller)
	switch {
	case err != nil:
		return nil, err
	case k.Method == methodDelete:
		return nil, c.Delete(row)
	}
	return a.Rewrite(c, row, k.Method == methodPut)
}
