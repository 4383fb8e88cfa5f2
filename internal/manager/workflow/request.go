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

// requests is the name of the collection.
const requests = "workflowRequests"

// registerRequests declares the collection of workflow requests.
func registerRequests(r *resource.Registry) {
	r.Collection(resource.Collection{Name: requests, Parents: []string{""}, Guard: resource.Asking, NoSearch: true}, &WorkflowRequest{})
	for _, name := range []string{"resourceRecords", "zones"} { // requests for resources below a requested one
		r.Computed(resource.ComputedSub{Below: requests, Name: name, NeedsApproval: true,
			Find: func(*store.Tx, *resource.API, *store.Resource) ([]int64, error) { return nil, nil }})
	}
	r.Computed(resource.ComputedSub{Below: "configurations", Name: requests,
		Find: func(tx *store.Tx, _ *resource.API, above *store.Resource) ([]int64, error) {
			return requestsOf(tx, store.All{store.InCollection(requests), inConfiguration(above.ID)})
		}})
	r.Extension(newExtension())
}

// inConfiguration returns the condition that a resource is in a configuration.
func inConfiguration(id int64) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: id}
}

// requestsOf returns the ids of requests.
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

// WorkflowRequest is a requested change that other users approve or deny.
type WorkflowRequest struct {
	schema.Head `head:"readOnly" post:"no"`
	// State is PENDING, or the decision.
	State string `api:"state,notNull,index" enum:"PENDING|APPROVED|DENIED"`
	// RequestType is the type of the change.
	RequestType string `api:"requestType,readOnly" enum:"ADD_ZONE|ADD_IPV4_NETWORK|ASSIGN_IPV4_ADDRESS|ADD_HOST_RECORD|ADD_ALIAS_RECORD|ADD_RESOURCE_RECORD|UPDATE_ZONE|UPDATE_IPV4_NETWORK|UPDATE_READONLY_IPV4_NETWORK|UPDATE_IPV4_ADDRESS|CHANGE_IPV4_ADDRESS_STATE|UPDATE_HOST_RECORD|UPDATE_RESOURCE_RECORD|UPDATE_ALIAS_RECORD|RENAME_RESOURCE_RECORD|DELETE_RESOURCE"`
	// Creator is the user who asked; null for a token without a user.
	Creator schema.Ref `api:"creator,readOnly" ref:"User" onDelete:"clear"`
	// Resource is the resource to change; for a new resource, its parent until it is created.
	Resource schema.Ref `api:"resource,readOnly" back:"workflowRequests" onDelete:"clear"`
	// DependentResource is the resource that dependentRequest has created; null until then.
	DependentResource schema.Ref `api:"dependentResource,readOnly" onDelete:"clear"`
	// Modifier is the user who decided.
	Modifier schema.Ref `api:"modifier,readOnly" ref:"User" onDelete:"clear"`
	// CreationDateTime is the time of the request.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// ModificationDateTime is the time of the decision.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
	// Operation is the type of the change, by the name of release 9.6.
	Operation string `api:"operation,readOnly"`
	// ResourceID is the id of the resource; null until a new resource is created.
	ResourceID *int64 `api:"resourceId,readOnly"`
	// ResourceType is the type of the resource.
	ResourceType string `api:"resourceType,readOnly"`
	// FieldUpdates are the fields that would change.
	FieldUpdates json.RawMessage `api:"fieldUpdates,readOnly,list"`
	// DependentRequest is the request that has to be approved first.
	DependentRequest schema.Ref `api:"dependentRequest,readOnly" ref:"WorkflowRequest" onDelete:"clear"`
	// Comment is the comment of the request.
	Comment string `api:"comment,readOnly"`
	// Description describes the change in a sentence (a Portolan extension).
	Description string `api:"description,readOnly"`
	// DecisionComment is the comment of the decision (a Portolan extension).
	DecisionComment string `api:"decisionComment,readOnly"`
	// Principal is the name of the user who asked, at the time of the request (a Portolan extension).
	Principal string `api:"principal,readOnly"`
	// Decider is the name of the user who decided, at the time of the decision (a Portolan extension).
	Decider string `api:"decider,readOnly"`
	// Place determines which users may approve the request: the resource, or the parent of a new one.
	Place schema.Ref `api:"place,hidden" onDelete:"clear"`
}

// readChange returns the requested change and the token or key set of the request; the token is empty if it belongs to a user.
func (x *WorkflowRequest) readChange(tx *store.Tx) (k resource.RequestedChange, token string, err error) {
	var text string
	err = tx.QueryRow("SELECT asked, token FROM workflow_asked WHERE request = ?", x.ID).Scan(&text, &token)
	if err == nil {
		err = json.Unmarshal([]byte(text), &k)
	}
	if err != nil {
		err = fmt.Errorf("read the change of workflow request %d: %w", x.ID, err)
	}
	return k, token, err
}

// saveChange stores the change of a request and its token.
func saveChange(tx *store.Tx, request int64, k resource.RequestedChange, token string) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return tx.Write("INSERT INTO workflow_asked (request, token, asked) VALUES (?, ?, ?) ON CONFLICT (request) DO UPDATE SET asked ="+
		" excluded.asked", request, token, string(text))
}

// addEvent adds an event about the request.
func (x *WorkflowRequest) addEvent(tx *store.Tx, kind, format string, args ...any) error {
	return event.Add(tx, event.Event{EventType: kind, Category: "WORKFLOW_REQUEST", SourceName: x.Description,
		Message: fmt.Sprintf("workflow request %d, %s: ", x.ID, x.Description) + fmt.Sprintf(format, args...)}, x.Place.ID)
}

// BeforeDelete allows the requester to withdraw a pending request, and users who may decide to delete a decided one.
func (x *WorkflowRequest) BeforeDelete(c *resource.Change) error {
	own, err := x.isOwn(c)
	if err != nil {
		return err
	}
	if x.State == pending && !own {
		return problem.Forbidden("AccessDenied", "workflow request %d is pending: only its requester %s can withdraw it; PATCH the state to "+
			"APPROVED or DENIED to decide it", x.ID, x.Principal)
	}
	if x.State != pending && !own {
		if err := x.checkMayDecide(c); err != nil {
			return err
		}
	}
	if x.State == pending {
		if err := dependents(c, x, func(other *WorkflowRequest) error { return other.deny(c, "its prerequisite was withdrawn") }); err != nil {
			return err
		}
	}
	if err := c.Tx.Write("DELETE FROM workflow_asked WHERE request = ?", x.ID); err != nil {
		return err
	}
	return releaseHolds(c.Tx, x.ID)
}

// isOwn reports whether the caller has made the request.
func (x *WorkflowRequest) isOwn(c *resource.Change) (bool, error) {
	if x.Creator.ID != 0 || c.Caller.Token == "" {
		return x.Creator.ID != 0 && x.Creator.ID == c.Caller.User, nil
	}
	_, token, err := x.readChange(c.Tx)
	return token == c.Caller.Token, err
}

// dependents calls fn for the pending requests that depend on a request.
func dependents(c *resource.Change, x *WorkflowRequest, fn func(other *WorkflowRequest) error) error {
	return eachPending(c, x.ID, "dependentRequest", fn)
}

// eachPending calls fn for the pending requests that refer to a resource by a field, the oldest first.
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
