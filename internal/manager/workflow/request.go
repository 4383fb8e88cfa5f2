package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// requests is the collection of what is asked for.
const requests = "workflowRequests"

// registerRequests declares the collection of workflow requests.
func registerRequests(r *resource.Registry) {
	r.Collection(resource.Collection{Name: requests, Parents: []string{""}, Guard: resource.Asking, NoSearch: true}, &WorkflowRequest{})
	for _, name := range []string{"resourceRecords", "zones"} { // what else is asked for below what a request would add
		r.Computed(resource.ComputedSub{Below: requests, Name: name, Asks: true,
			Find: func(*store.Tx, *resource.API, *store.Resource) ([]int64, error) { return nil, nil }})
	}
	r.Computed(resource.ComputedSub{Below: "configurations", Name: requests,
		Find: func(tx *store.Tx, _ *resource.API, above *store.Resource) ([]int64, error) {
			return requestsOf(tx, store.All{store.InCollection(requests), inConfiguration(above.ID)})
		}})
	r.Extension(newExtension())
}

// inConfiguration is the condition that a resource lies in a configuration.
func inConfiguration(id int64) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: id}
}

// requestsOf gives the numbers of requests.
func requestsOf(tx *store.Tx, where store.Expr) (ids []int64, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: where}, func(r *store.Resource) error {
		ids = append(ids, r.ID)
		return nil
	})
	return ids, err
}

// The states of a request.
const (
	pending  = "PENDING"
	approved = "APPROVED"
	denied   = "DENIED"
)

// WorkflowRequest is a change that somebody asked for, and others approve.
type WorkflowRequest struct {
	schema.Head `head:"readOnly" post:"no"`
	// State is what became of it.
	State string `api:"state,notNull,index" enum:"PENDING|APPROVED|DENIED"`
	// RequestType is what was asked for.
	RequestType string `api:"requestType,readOnly" enum:"ADD_ZONE|ADD_IPV4_NETWORK|ASSIGN_IPV4_ADDRESS|ADD_HOST_RECORD|ADD_ALIAS_RECORD|ADD_RESOURCE_RECORD|UPDATE_ZONE|UPDATE_IPV4_NETWORK|UPDATE_READONLY_IPV4_NETWORK|UPDATE_IPV4_ADDRESS|CHANGE_IPV4_ADDRESS_STATE|UPDATE_HOST_RECORD|UPDATE_RESOURCE_RECORD|UPDATE_ALIAS_RECORD|RENAME_RESOURCE_RECORD|DELETE_RESOURCE"`
	// Creator is who asked; null for a token that belongs to no user.
	Creator schema.Ref `api:"creator,readOnly" ref:"User" onDelete:"clear"`
	// Resource is what it is about: while something is to be added, what that is to lie in.
	Resource schema.Ref `api:"resource,readOnly" back:"workflowRequests" onDelete:"clear"`
	// DependentResource is what has to be approved first.
	DependentResource schema.Ref `api:"dependentResource,readOnly" onDelete:"clear"`
	// Modifier is who decided.
	Modifier schema.Ref `api:"modifier,readOnly" ref:"User" onDelete:"clear"`
	// CreationDateTime is when it was asked.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// ModificationDateTime is when it was decided.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
	// Operation is what was asked for, as release 9.6 calls it.
	Operation string `api:"operation,readOnly"`
	// ResourceID is the id of what it is about; null while it is to be added.
	ResourceID *int64 `api:"resourceId,readOnly"`
	// ResourceType is its type.
	ResourceType string `api:"resourceType,readOnly"`
	// FieldUpdates are the fields that would be different.
	FieldUpdates json.RawMessage `api:"fieldUpdates,readOnly,list"`
	// DependentRequest is the request that has to be approved first.
	DependentRequest schema.Ref `api:"dependentRequest,readOnly" ref:"WorkflowRequest" onDelete:"clear"`
	// Comment is what was said with it.
	Comment string `api:"comment,readOnly"`
	// Description says in a sentence what was asked for, DecisionComment is what was said with the decision, Principal who asked and
	// Decider who decided, as they were called then. They are ours.
	Description     string `api:"description,readOnly"`
	DecisionComment string `api:"decisionComment,readOnly"`
	Principal       string `api:"principal,readOnly"`
	Decider         string `api:"decider,readOnly"`
	// Place is what decides who approves it: the resource, or what it is to lie in.
	Place schema.Ref `api:"place,hidden" onDelete:"clear"`
}

// asked gives the change that was asked for, and the token or key set that it was asked with; empty where that belongs to a user.
func (x *WorkflowRequest) readAsked(tx *store.Tx) (k resource.Asked, token string, err error) {
	var text string
	err = tx.QueryRow("SELECT asked, token FROM workflow_asked WHERE request = ?", x.ID).Scan(&text, &token)
	if err == nil {
		err = json.Unmarshal([]byte(text), &k)
	}
	if err != nil {
		err = fmt.Errorf("what workflow request %d asks for cannot be read: %w", x.ID, err)
	}
	return k, token, err
}

// keep notes the change that a request asks for, and by which token.
func saveAsked(tx *store.Tx, request int64, k resource.Asked, token string) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return tx.Write("INSERT INTO workflow_asked (request, token, asked) VALUES (?, ?, ?) ON CONFLICT (request) DO UPDATE SET asked ="+
		" excluded.asked", request, token, string(text))
}

// tell keeps an event about the request.
func (x *WorkflowRequest) addEvent(tx *store.Tx, kind, format string, args ...any) error {
	return event.Add(tx, event.Event{EventType: kind, Category: "WORKFLOW_REQUEST", SourceName: x.Description,
		Message: fmt.Sprintf("workflow request %d, %s: ", x.ID, x.Description) + fmt.Sprintf(format, args...)}, x.Place.ID)
}

// BeforeDelete lets those who asked withdraw a request, and others clear what was decided.
func (x *WorkflowRequest) BeforeDelete(c *resource.Change) error {
	own, err := x.isOwn(c)
	if err != nil {
		return err
	}
	if x.State == pending && !own {
		return problem.Forbidden("AccessDenied", "workflow request %d is pending: %s asked for it, and alone withdraws it; PATCH with the state "+
			"APPROVED or DENIED decides", x.ID, x.Principal)
	}
	if x.State != pending && !own {
		if err := x.checkMayDecide(c); err != nil {
			return err
		}
	}
	if x.State == pending {
		if err := dependents(c, x, func(other *WorkflowRequest) error { return other.deny(c, "what it depends on was withdrawn") }); err != nil {
			return err
		}
	}
	if err := c.Tx.Write("DELETE FROM workflow_asked WHERE request = ?", x.ID); err != nil {
		return err
	}
	return releaseHolds(c.Tx, x.ID)
}

// own reports whether the caller is who asked.
func (x *WorkflowRequest) isOwn(c *resource.Change) (bool, error) {
	if x.Creator.ID != 0 || c.Caller.Token == "" {
		return x.Creator.ID != 0 && x.Creator.ID == c.Caller.User, nil
	}
	_, token, err := x.readAsked(c.Tx)
	return token == c.Caller.Token, err
}

// dependents calls fn for the pending requests that wait for one.
func dependents(c *resource.Change, x *WorkflowRequest, fn func(other *WorkflowRequest) error) error {
	return eachPending(c, x.ID, "dependentRequest", fn)
}

// eachPending calls fn for the pending requests that lead to a resource by a field, the oldest first.
func eachPending(c *resource.Change, target int64, field string, fn func(*WorkflowRequest) error) error {
	ids, err := requestsOf(c.Tx, store.All{store.InCollection(requests), store.LinksTo{Targets: []int64{target}, Field: field}})
	if err != nil {
		return err
	}
	slices.Sort(ids)
	for _, id := range ids {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		if x, ok := o.(*WorkflowRequest); ok && x.State == pending {
			if err := fn(x); err != nil {
				return err
			}
		}
	}
	return nil
}
