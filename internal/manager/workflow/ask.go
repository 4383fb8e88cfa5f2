package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/audit"
)

// mostPending is how many requests of a user may be pending: each holds what it asks for.
const maxPending = 100

// fewPending refuses one more request of a user who has mostPending.
func checkPendingCount(c *resource.Change) error {
	if c.Caller.User == 0 {
		return nil
	}
	n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("workflowRequests"),
		store.LinksTo{Targets: []int64{c.Caller.User}, Field: "creator"},
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: pending}}})
	if err == nil && n >= maxPending {
		err = problem.Conflict("ResourceConflictsWithOther",
			"%d requests of %s are pending: wait until some of them are decided, or withdraw some", n,
			c.Caller.Name)
	}
	return err
}

// Ask is resource.Workflow: it keeps a change as a request that is pending, and holds what it would make.
func (k *Keeper) Ask(c *resource.Change, asked resource.Asked, came resource.Outcome, depends int64) (*store.Resource, error) {
	x := &WorkflowRequest{State: pending, Creator: schema.Ref{ID: c.Caller.User}, CreationDateTime: c.Tx.Now(), ResourceType: came.Row.Type,
		Description: came.Summary, Comment: c.Tx.Author().Comment, Principal: c.Caller.Name, DependentRequest: schema.Ref{ID: depends}}
	if err := checkPendingCount(c); err != nil {
		return nil, err
	}
	t := c.API.TypeNamed("WorkflowRequest")
	x.Type, x.Config, x.Parent = t.Name, came.Row.Configuration, resource.RootID
	token := ""
	if c.Caller.User == 0 {
		token = c.Caller.Token
	}
	if asked.Method == http.MethodDelete {
		with, err := describeDeleted(came)
		if err != nil {
			return nil, err
		}
		x.Description += with
	}
	about := asked.ID
	if asked.Method == http.MethodPost {
		if depends != 0 {
			on, err := c.Tx.Get(depends)
			if err != nil {
				return nil, err
			}
			about = on.Ref("place")
		}
	} else {
		x.ResourceID = &about
		if err := checkNoOtherPending(c, about); err != nil {
			return nil, err
		}
	}
	x.Place, x.Resource = schema.Ref{ID: about}, schema.Ref{ID: about}
	before, after := beforeAndAfter(came)
	updates, err := audit.FieldUpdates(before, after)
	if err != nil {
		return nil, err
	}
	updates = append(updates, writeOnlyUpdates(c.API.TypeNamed(came.Row.Type), asked.Members)...)
	if err := nameReferences(c, came, updates); err != nil {
		return nil, err
	}
	if x.FieldUpdates, err = json.Marshal(updates); err != nil {
		return nil, err
	}
	x.RequestType = requestType(asked.Method, c.API.Collection(came.Row.Collection).Workflow(came.Row.Type), x.changed)
	x.Operation = x.RequestType
	if err := x.pin(c, &asked, came, before); err != nil {
		return nil, err
	}
	c.Tx.Describe(transactionOf("REQUEST", x.RequestType), "Asked for: "+x.Description)
	row, err := c.Create(t, x)
	if err != nil {
		return nil, err
	}
	if err := saveAsked(c.Tx, row.ID, asked, token); err != nil {
		return nil, err
	}
	if err := holdResources(c, row.ID, came); err != nil {
		return nil, err
	}
	return row, x.addEvent(c.Tx, "INFO", "asked for by %s", x.Principal)
}

// pin lets what was shown be what is done: the address and the range that were found, and of a resource that is changed those fields
// alone that would be different.
func (x *WorkflowRequest) pin(c *resource.Change, asked *resource.Asked, came resource.Outcome, before []byte) error {
	if asked.Method == http.MethodPost {
		if came.Row.Collection == "addresses" {
			text, err := json.Marshal(store.KeyAddr(came.Row.Low).String())
			asked.Members["address"] = text
			return err
		}
		all, err := x.updates()
		for _, one := range all {
			if _, given := asked.Members[one.Name]; given && one.Name == "range" {
				asked.Members[one.Name] = one.Value
			}
		}
		return err
	}
	if asked.Method == http.MethodDelete {
		return nil
	}
	was, err := store.DecodeImage(before)
	if err != nil || was == nil {
		return err
	}
	t := c.API.TypeNamed(was.Type)
	old, err := t.Object(was)
	if err != nil {
		return err
	}
	if asked.Method == http.MethodPut { // what it leaves out becomes null
		for _, f := range t.Fields {
			if _, given := asked.Members[f.Name]; !given && x.changed(f.Name) && !f.ReadOnly && !f.CreateOnly {
				asked.Members[f.Name] = json.RawMessage("null")
			}
		}
		asked.Method = http.MethodPatch
	}
	for name, raw := range asked.Members {
		if f := t.ByName[name]; f == nil || f.Kind != schema.References && !t.Differs(old, f, raw) {
			delete(asked.Members, name)
		}
	}
	return nil
}

// onlyWritten gives the lists that a request has and its resource does not show, such as the restricted ranges of a view: what they lead to
// is changed elsewhere.
func writeOnlyUpdates(t *schema.Type, members map[string]json.RawMessage) (updates []audit.FieldUpdate) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f := t.ByName[name]
		if f != nil && f.WriteOnly && f.Column == "" && (f.Kind == schema.References && len(f.Refs) == 0 || f.Kind == schema.Raw && f.List) {
			updates = append(updates, audit.FieldUpdate{Name: name, Value: members[name], PreviousValue: json.RawMessage("null")})
		}
	}
	return updates
}

// onlyOne refuses a second request about a resource while there is one that is pending.
func checkNoOtherPending(c *resource.Change, about int64) error {
	return eachPending(c, about, "resource", func(x *WorkflowRequest) error {
		if x.ResourceID == nil || *x.ResourceID != about {
			return nil
		}
		return problem.Conflict("WorkflowRequestAlreadyPending", "workflow request %d of %s, %s, is pending already", x.ID, x.Principal,
			x.Description)
	})
}

// withIt words how many resources of which types a deletion takes along.
func describeDeleted(came resource.Outcome) (string, error) {
	n := map[string]int{}
	for _, one := range came.Changes {
		if one.After != nil || one.Resource == came.Row.ID {
			continue
		}
		was, err := store.DecodeImage(one.Before)
		if err != nil {
			return "", err
		}
		n[was.Type]++
	}
	if len(n) == 0 {
		return "", nil
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		all = append(all, fmt.Sprintf("%d %s", n[name], name))
	}
	return ", and with it " + strings.Join(all, ", "), nil
}

// ends gives a resource before all that a change did to it, and after it; nil where it was not there.
func beforeAndAfter(came resource.Outcome) (before, after []byte) {
	first := true
	for _, one := range came.Changes {
		if one.Resource != came.Row.ID {
			continue
		}
		if first {
			before, first = one.Before, false
		}
		after = one.After
	}
	return before, after
}

// updates gives the fields that would be different.
func (x *WorkflowRequest) updates() (all []audit.FieldUpdate, err error) {
	err = json.Unmarshal(x.FieldUpdates, &all)
	return all, err
}

// changed reports whether a field would be different.
func (x *WorkflowRequest) changed(name string) bool {
	all, err := x.updates()
	for _, one := range all {
		if err == nil && one.Name == name {
			return true
		}
	}
	return false
}

// requestType says what is asked for, as it is published; word is what changes of the type are called.
func requestType(method, word string, changed func(field string) bool) string {
	record := strings.HasSuffix(word, "_RECORD")
	switch {
	case method == http.MethodDelete:
		return "DELETE_RESOURCE"
	case method == http.MethodPost && word == "IPV4_ADDRESS":
		return "ASSIGN_" + word
	case method == http.MethodPost:
		return "ADD_" + word
	case record && changed("name"):
		return "RENAME_RESOURCE_RECORD"
	case word == "IPV4_ADDRESS" && changed("state"):
		return "CHANGE_IPV4_ADDRESS_STATE"
	}
	return "UPDATE_" + word
}

// transactionOf is what the history calls what is done with a request.
func transactionOf(what, requestType string) string {
	return what + "_" + strings.Replace(requestType, "CHANGE_IPV4_ADDRESS_STATE", "CHANGE_IPV4_STATE", 1)
}

// Foresee is resource.Workflow.
func (k *Keeper) Foresee(c *resource.Change, request int64) (*store.Resource, error) {
	row, err := c.API.Visible(c.Tx, request, c.Caller)
	if err != nil {
		return nil, err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return nil, err
	}
	x, ok := o.(*WorkflowRequest)
	switch {
	case !ok:
		return nil, problem.NotFound("there is no workflow request %d", request)
	case x.State != pending:
		return nil, problem.BadRequest("WorkflowRequestNotPending", "workflow request %d is %s: what it asked for is there, or will not be", x.ID,
			x.State)
	case x.RequestType != "ADD_ZONE":
		return nil, problem.BadRequest("WrongResourceType", "workflow request %d asks for no zone: nothing is asked for below it", x.ID)
	}
	asked, _, err := x.readAsked(c.Tx)
	if err != nil {
		return nil, err
	}
	if x.DependentRequest.ID != 0 {
		above, err := k.Foresee(c, x.DependentRequest.ID)
		if err != nil {
			return nil, err
		}
		asked.ID = above.ID
	}
	if err := releaseHolds(c.Tx, x.ID); err != nil { // in this transaction, which is only tried
		return nil, err
	}
	n := &resource.Change{Tx: c.Tx, API: c.API, Caller: c.Caller, Probed: c.Probed, Made: c.Made, Extra: map[string]string{}}
	return c.API.Perform(n, asked)
}
