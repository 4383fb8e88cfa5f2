package resource

import (
	"encoding/json"
	"errors"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// ErrApproval is inside the problem that refuses a change which others have to approve before it is made.
var ErrApproval = errors.New("others have to approve this")

// Asked is a change that is asked for: what a request would have done, as it was sent.
type Asked struct {
	// Method is POST, PUT, PATCH or DELETE.
	Method string `json:"method"`
	// Collection, ID and Sub are where it was sent: a resource, or a subcollection of it.
	Collection string `json:"collection"`
	ID         int64  `json:"id"`
	Sub        string `json:"sub,omitempty"`
	// Members are those of the body, Headers what the request asked beside.
	Members map[string]json.RawMessage `json:"members,omitempty"`
	Headers map[string]string          `json:"headers,omitempty"`
	// Version is that of the resource when it was asked; 0 for a POST.
	Version int64 `json:"version,omitempty"`
}

// Outcome is what a change that is asked for came to when it was tried.
type Outcome struct {
	// Row is what was made, or changed; what was deleted as it was before.
	Row *store.Resource
	// Changes are all that it did, Summary says it in a sentence. The first ones, Foreseen, are those of the requests that it depends on.
	Changes  []store.EntryChange
	Foreseen int
	Summary  string
}

// Workflow keeps changes that are asked for (room workflow).
type Workflow interface {
	// Ask keeps a change, and gives the request; depends is the request that is to be approved before, 0 where there is none.
	Ask(c *Change, asked Asked, came Outcome, depends int64) (*store.Resource, error)
	// Foresee makes, in a transaction that is only tried, what a pending request asks for, and gives it.
	Foresee(c *Change, request int64) (*store.Resource, error)
}

// WorkflowExtension is the name of the extension that keeps what pending requests ask for.
const WorkflowExtension = "workflow"

// HeldSpace gives the space of a collection that pending requests ask for in a configuration, in order.
func HeldSpace(tx *store.Tx, collection string, configuration int64) ([]space.Range, error) {
	if e := tx.Extension(WorkflowExtension); e != nil {
		if h, ok := e.State.(interface {
			HeldSpace(tx *store.Tx, collection string, configuration int64) ([]space.Range, error)
		}); ok {
			return h.HeldSpace(tx, collection, configuration)
		}
	}
	return nil, nil
}

// Standing is what somebody may do with resources of a type: the level, and whether changes are made (NONE), asked for (RECOMMEND), or
// approved, too (APPROVE).
type Standing struct{ Level, Workflow string }

// Askable reports whether what is sent there can be asked for: to make what lies in another resource, or to change or delete one resource,
// of a collection with changes that may need an approval.
func (a *API) Askable(t Target, method string) bool {
	if method == methodPost {
		return t.Sub != nil && (t.Sub.Relation == Children || t.Sub.Asks) && a.byName[t.Sub.Items[0]].Workflow != nil
	}
	return t.Collection != nil && t.Sub == nil && !t.List && t.Collection.Workflow != nil
}

// Perform makes a change that was asked for, with the data as it is now. It gives what was made or changed; nil where it was deleted.
func (a *API) Perform(c *Change, k Asked) (*store.Resource, error) {
	t := Target{Collection: a.byName[k.Collection], ID: k.ID}
	if t.Collection == nil {
		return nil, errors.New("what was asked for is about a collection that is not there: " + k.Collection)
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
		return a.MakeIn(c, t)
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
