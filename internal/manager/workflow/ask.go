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

// maxPending is the number of pending requests of a user. It is limited, because each request reserves names or addresses.
const maxPending = 100

// checkPendingCount returns an error if a user has maxPending pending requests.
func checkPendingCount(c *resource.Change) error {
	if c.Caller.User == 0 {
		return nil
	}
	n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("workflowRequests"),
		store.Recheck{Expr: store.LinksTo{Targets: []int64{c.Caller.User}, Field: "creator"}},
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: pending}}})
	if err == nil && n >= maxPending {
		err = problem.Conflict("ResourceConflictsWithOther",
			"%d requests of %s are pending: wait for decisions or withdraw some", n,
			c.Caller.Name)
	}
	return err
}

// Ask implements resource.Workflow: it stores a change as a pending request, and reserves the names and addresses of the resources that the
// change would create.
func (k *Keeper) Ask(c *resource.Change, asked resource.RequestedChange, outcome resource.Outcome, depends int64) (*store.Resource, error) {
	x := &WorkflowRequest{State: pending, Creator: schema.Ref{ID: c.Caller.User}, CreationDateTime: c.Tx.Now(), ResourceType: outcome.Row.Type,
		Description: outcome.Summary, Comment: c.Tx.Author().Comment, Principal: c.Caller.Name, DependentRequest: schema.Ref{ID: depends}}
	if err := checkPendingCount(c); err != nil {
		return nil, err
	}
	t := c.API.TypeNamed("WorkflowRequest")
	x.Type, x.Config, x.Parent = t.Name, outcome.Row.Configuration, resource.RootID
	token := ""
	if c.Caller.User == 0 {
		token = c.Caller.Token
	}
	if asked.Method == http.MethodDelete {
		with, err := describeDeleted(outcome)
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
	before, after := beforeAndAfter(outcome)
	updates, err := audit.FieldUpdates(before, after)
	if err != nil {
		return nil, err
	}
	updates = append(updates, writeOnlyUpdates(c.API.TypeNamed(outcome.Row.Type), asked.Members)...)
	if err := nameReferences(c, outcome, updates); err != nil {
		return nil, err
	}
	if x.FieldUpdates, err = json.Marshal(updates); err != nil {
		return nil, err
	}
	x.RequestType = requestType(asked.Method, c.API.Collection(outcome.Row.Collection).Workflow(outcome.Row.Type), x.isChanged)
	x.Operation = x.RequestType
	if err := x.pin(c, &asked, outcome, before); err != nil {
		return nil, err
	}
	c.Tx.Describe(transactionOf("REQUEST", x.RequestType), "Asked for: "+x.Description)
	row, err := c.Create(t, x)
	if err != nil {
		return nil, err
	}
	if err := saveChange(c.Tx, row.ID, asked, token); err != nil {
		return nil, err
	}
	if err := holdResources(c, row.ID, outcome); err != nil {
		return nil, err
	}
	return row, x.addEvent(c.Tx, "INFO", "asked for by %s", x.Principal)
}

// pin replaces choices by the values that were shown to the user. A new address or range gets the value found, and a changed resource keeps
// only the fields that differ.
func (x *WorkflowRequest) pin(c *resource.Change, asked *resource.RequestedChange, outcome resource.Outcome, before []byte) error {
	if asked.Method == http.MethodPost {
		if outcome.Row.Collection == "addresses" {
			text, err := json.Marshal(store.KeyAddr(outcome.Row.Low).String())
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
	if asked.Method == http.MethodPut { // fields left out become null
		for _, f := range t.Fields {
			if _, given := asked.Members[f.Name]; !given && x.isChanged(f.Name) && !f.ReadOnly && !f.CreateOnly {
				asked.Members[f.Name] = json.RawMessage("null")
			}
		}
		asked.Method = http.MethodPatch
	}
	for name, raw := range asked.Members {
		if f := t.ByName[name]; f == nil || f.Kind != schema.References && !t.DiffersFrom(old, f, raw) {
			delete(asked.Members, name)
		}
	}
	return nil
}

// writeOnlyUpdates returns the lists of a request that its resource does not show, such as the restricted ranges of a view. Other resources
// store them.
func writeOnlyUpdates(t *schema.Type, members map[string]json.RawMessage) (updates []audit.FieldUpdate) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f := t.ByName[name]
		if f != nil && f.WriteOnly && f.Column == "" && (f.Kind == schema.References && len(f.Refs) == 0 || f.Kind == schema.Raw && f.List) {
			updates = append(updates, audit.FieldUpdate{Name: name, Value: members[name], PreviousValue: json.RawMessage("null")})
		}
	}
	return updates
}

// checkNoOtherPending returns an error if another request about a resource is pending.
func checkNoOtherPending(c *resource.Change, about int64) error {
	return eachPending(c, about, "resource", func(x *WorkflowRequest) error {
		if x.ResourceID == nil || *x.ResourceID != about {
			return nil
		}
		return problem.Conflict("WorkflowRequestAlreadyPending", "workflow request %d of %s (%s) is already pending", x.ID, x.Principal,
			x.Description)
	})
}

// describeDeleted lists how many resources of each type a deletion also deletes; empty if there are none.
func describeDeleted(outcome resource.Outcome) (string, error) {
	n := map[string]int{}
	for _, one := range outcome.Changes {
		if one.After != nil || one.Resource == outcome.Row.ID {
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

// beforeAndAfter returns the images of a resource before the first and after the last change to it; nil if it did not exist.
func beforeAndAfter(outcome resource.Outcome) (before, after []byte) {
	first := true
	for _, one := range outcome.Changes {
		if one.Resource != outcome.Row.ID {
			continue
		}
		if first {
			before, first = one.Before, false
		}
		after = one.After
	}
	return before, after
}

// updates returns the fields that would change.
func (x *WorkflowRequest) updates() (all []audit.FieldUpdate, err error) {
	err = json.Unmarshal(x.FieldUpdates, &all)
	return all, err
}

// isChanged reports whether a field would change.
func (x *WorkflowRequest) isChanged(name string) bool {
	all, err := x.updates()
	for _, one := range all {
		if err == nil && one.Name == name {
			return true
		}
	}
	return false
}

// requestType returns the published type of a request. word is the name of the resource type in these types.
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

// transactionOf returns the operation of a decision or request in the history.
func transactionOf(what, requestType string) string {
	return what + "_" + strings.Replace(requestType, "CHANGE_IPV4_ADDRESS_STATE", "CHANGE_IPV4_STATE", 1)
}

// Foresee implements resource.Workflow. It performs the change of a pending request in a transaction that is rolled back, and returns the
// new resource.
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
		return nil, problem.NotFound("workflow request %d does not exist", request)
	case x.State != pending:
		return nil, problem.BadRequest("WorkflowRequestNotPending", "workflow request %d is %s and no longer pending", x.ID,
			x.State)
	case x.RequestType != "ADD_ZONE":
		return nil, problem.BadRequest("WrongResourceType",
			"workflow request %d does not request a zone: nothing can be added below it", x.ID)
	}
	asked, _, err := x.readChange(c.Tx)
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
	if err := releaseHolds(c.Tx, x.ID); err != nil { // only in this transaction, which is rolled back
		return nil, err
	}
	n := &resource.Change{Tx: c.Tx, API: c.API, Caller: c.Caller, Answers: c.Answers, Results: c.Results, Extra: map[string]string{}}
	return c.API.Perform(n, asked)
}
