package catalog

import (
	"encoding/json"
	"time"

	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
)

// registerWorkflow declares the collection of workflow requests. Nothing makes any before access rights have a workflow level.
func registerWorkflow(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "workflowRequests", Parents: []string{""}, Guard: resource.Managed,
		NotYet: "changes that are asked for come with access rights, which are not enforced yet: there are no workflow requests"},
		&WorkflowRequest{})
	for _, name := range []string{"resourceRecords", "zones"} { // what a request would add, of which there are none
		r.Computed(resource.ComputedSub{Below: "workflowRequests", Name: name,
			Find: func(*store.Tx, *resource.API, *store.Resource) ([]int64, error) { return nil, nil }})
	}
}

// WorkflowRequest is a change that somebody asked for, and others approve.
type WorkflowRequest struct {
	schema.Head `head:"readOnly"`
	// State is what became of it.
	State string `api:"state,notNull" enum:"PENDING|APPROVED|DENIED"`
	// RequestType is what was asked for.
	RequestType string `api:"requestType,readOnly" enum:"ADD_ZONE|ADD_IPV4_NETWORK|ASSIGN_IPV4_ADDRESS|ADD_HOST_RECORD|ADD_ALIAS_RECORD|ADD_RESOURCE_RECORD|UPDATE_ZONE|UPDATE_IPV4_NETWORK|UPDATE_READONLY_IPV4_NETWORK|UPDATE_IPV4_ADDRESS|CHANGE_IPV4_ADDRESS_STATE|UPDATE_HOST_RECORD|UPDATE_RESOURCE_RECORD|UPDATE_ALIAS_RECORD|RENAME_RESOURCE_RECORD|DELETE_RESOURCE"`
	// Creator is who asked.
	Creator schema.Ref `api:"creator,readOnly" ref:"User"`
	// Resource is what it is about.
	Resource schema.Ref `api:"resource,readOnly" back:"workflowRequests"`
	// DependentResource is what has to be approved first.
	DependentResource schema.Ref `api:"dependentResource,readOnly"`
	// Modifier is who decided.
	Modifier schema.Ref `api:"modifier,readOnly" ref:"User"`
	// CreationDateTime is when it was asked.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// ModificationDateTime is when it was decided.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
	// Operation is what was asked for, as release 9.6 calls it.
	Operation string `api:"operation,readOnly"`
	// ResourceID is the id of what it is about.
	ResourceID *int64 `api:"resourceId,readOnly"`
	// ResourceType is its type.
	ResourceType string `api:"resourceType,readOnly"`
	// FieldUpdates are the fields that would be different.
	FieldUpdates json.RawMessage `api:"fieldUpdates,readOnly,list"`
	// DependentRequest is the request that has to be approved first.
	DependentRequest schema.Ref `api:"dependentRequest,readOnly" ref:"WorkflowRequest"`
	// Comment is what was said with it.
	Comment string `api:"comment,readOnly"`
}
