package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/audit"
)

// notAllowed is the error code if a user may not decide.
const notAllowed = "WorkflowRequestApproveDenyNotAllowed"

// BeforeWrite decides a request: an approval performs the change, a denial releases its reservations.
func (x *WorkflowRequest) BeforeWrite(c *resource.Change) error {
	if c.IsCreation() || !c.IsRequested() {
		return nil
	}
	old, ok := c.Old.(*WorkflowRequest)
	switch {
	case !ok:
		return fmt.Errorf("a workflow request was a %T", c.Old)
	case x.State == pending:
		return problem.Invalid("state", "must be APPROVED or DENIED")
	case old.State != pending:
		return problem.BadRequest("WorkflowRequestNotPending", "state: workflow request %d was %s on %s", x.ID, old.State,
			schema.FormatTime(old.ModificationDateTime))
	}
	switch own, err := x.isOwn(c); {
	case err != nil:
		return err
	case own:
		return problem.FieldForbidden(notAllowed, "state", "%s cannot approve an own request: another user must decide", x.Principal)
	}
	if err := x.checkMayDecide(c); err != nil {
		return err
	}
	if x.State == denied {
		c.Operation, c.Summary = transactionOf("DENY", x.RequestType), "Denied: "+x.Description
		return x.deny(c, "")
	}
	c.Operation, c.Summary = transactionOf("APPROVE", x.RequestType), "Approved: "+x.Description
	return x.approve(c)
}

// checkMayDecide returns an error if the caller may not approve changes there.
func (x *WorkflowRequest) checkMayDecide(c *resource.Change) error {
	if c.Caller.Administrator {
		return nil
	}
	if x.Place.ID != 0 {
		at, err := c.Tx.Get(x.Place.ID)
		if err != nil {
			return err
		}
		st, err := c.API.Standing(c.Tx, c.Caller, at, x.ResourceID == nil, x.ResourceType)
		if err != nil || st.Workflow == "APPROVE" {
			return err
		}
	}
	return problem.FieldForbidden(notAllowed, "state",
		"%s may not decide this request: this requires the workflow level APPROVE", c.Caller.Name)
}

// setDecision sets the user and the time of a decision, and releases the reservations.
func (x *WorkflowRequest) setDecision(c *resource.Change) error {
	x.Modifier, x.Decider, x.ModificationDateTime = schema.Ref{ID: c.Caller.User}, c.Caller.Name, c.Tx.Now()
	x.DecisionComment = c.Tx.Author().Comment
	return releaseHolds(c.Tx, x.ID)
}

// deny denies a request and those that depend on it. because is the reason if the request is denied as a consequence; empty if the caller
// has denied it.
func (x *WorkflowRequest) deny(c *resource.Change, because string) error {
	if err := x.setDecision(c); err != nil {
		return err
	}
	if because != "" { // the caller's change is about another request
		row, err := c.Tx.Get(x.ID)
		if err != nil {
			return err
		}
		if _, err := c.Following().Change(row, func(o schema.Object) {
			other, _ := o.(*WorkflowRequest)
			other.State, other.Modifier, other.Decider, other.ModificationDateTime = denied, x.Modifier, x.Decider, x.ModificationDateTime
			other.DecisionComment = because
		}); err != nil {
			return err
		}
	}
	if err := dependents(c, x, func(other *WorkflowRequest) error { return other.deny(c, "its prerequisite was denied") }); err != nil {
		return err
	}
	if because == "" {
		because = "denied by " + c.Caller.Name
	}
	return x.addEvent(c.Tx, "WARNING", "%s", because)
}

// approve performs the requested change on the current data.
func (x *WorkflowRequest) approve(c *resource.Change) error {
	asked, token, err := x.readChange(c.Tx)
	if err != nil {
		return err
	}
	if x.DependentRequest.ID != 0 && asked.ID == 0 {
		return problem.FieldForbidden(notAllowed, "state", "requires workflow request %d, which is not approved: approve that request first",
			x.DependentRequest.ID)
	}
	creator, err := x.creator(c, token)
	if err != nil {
		return err
	}
	if err := x.checkFits(c, asked); err != nil {
		return err
	}
	if err := x.setDecision(c); err != nil {
		return err
	}
	end := c.Tx.Approve(x.Creator.ID)
	defer end()
	if asked.Method == http.MethodDelete { // afterwards the parent decides who can see the request
		was, err := c.Tx.Get(asked.ID)
		if err != nil {
			return err
		}
		x.Place = schema.Ref{ID: was.Parent}
	}
	creator.Remote = c.Caller.Remote // marks the change as made by a request
	n := &resource.Change{Tx: c.Tx, API: c.API, Caller: creator, Answers: c.Answers, Results: c.Results, Extra: map[string]string{}}
	row, err := c.API.Perform(n, asked)
	if err != nil {
		return wrapNoFit(x.ID, err)
	}
	if row != nil {
		x.Resource, x.ResourceID = schema.Ref{ID: row.ID}, &row.ID
		if err := dependents(c, x, func(other *WorkflowRequest) error { return other.setParent(c, row.ID) }); err != nil {
			return err
		}
	} else {
		x.Resource = schema.Ref{}
	}
	return x.addEvent(c.Tx, "SUCCESS", "approved by %s", c.Caller.Name)
}

// setParent sets the parent of a request that depended on another one to the resource created by that one.
func (x *WorkflowRequest) setParent(c *resource.Change, above int64) error {
	asked, token, err := x.readChange(c.Tx)
	if err != nil {
		return err
	}
	asked.ID = above
	if err := saveChange(c.Tx, x.ID, asked, token); err != nil {
		return err
	}
	row, err := c.Tx.Get(x.ID)
	if err != nil {
		return err
	}
	_, err = c.Following().Change(row, func(o schema.Object) {
		other, _ := o.(*WorkflowRequest)
		other.Place, other.Resource, other.DependentResource = schema.Ref{ID: above}, schema.Ref{ID: above}, schema.Ref{ID: above}
	})
	return err
}

// creator returns the user who asked, with current rights. It returns an error if these no longer permit the change.
func (x *WorkflowRequest) creator(c *resource.Change, token string) (resource.Caller, error) {
	gone := problem.Conflict("StaleResourceState", "state: the requester %s may no longer make this change: deny the request", x.Principal)
	creator, err := keeperOf(c).acting(c.Tx, x.Creator.ID, token)
	if p, ok := problem.As(err); ok && p.Status == http.StatusForbidden {
		return creator, gone
	}
	if err != nil || x.Place.ID == 0 {
		return creator, err
	}
	at, err := c.Tx.Get(x.Place.ID)
	if err != nil {
		return creator, err
	}
	st, err := c.API.Standing(c.Tx, creator, at, x.ResourceID == nil, x.ResourceType)
	if err != nil {
		return creator, err
	}
	may := st.Level == "FULL" || st.Level == "ADD" && x.RequestType != "DELETE_RESOURCE" || st.Level == "CHANGE" && x.ResourceID != nil &&
		x.RequestType != "DELETE_RESOURCE"
	if !may {
		return creator, gone
	}
	return creator, nil
}

// checkFits returns an error if the same fields of the resource were changed since the request. The error names the later change.
func (x *WorkflowRequest) checkFits(c *resource.Change, asked resource.RequestedChange) error {
	if asked.Method == http.MethodPost {
		return nil
	}
	row, err := c.Tx.Get(asked.ID)
	if errors.Is(err, store.ErrNotFound) {
		return problem.Conflict("StaleResourceState", "state: the request is outdated: %s %d no longer exists", x.ResourceType,
			asked.ID)
	}
	if err != nil || row.Version == asked.Version {
		return err
	}
	by, err := describeTransaction(c.Tx, row.Version)
	if err != nil {
		return err
	}
	if asked.Method == http.MethodDelete {
		return problem.Conflict("StaleResourceState", "state: the request is outdated: %s %d was changed afterwards, last by %s",
			x.ResourceType, asked.ID, by)
	}
	if err := c.Tx.LoadLinks(row); err != nil {
		return err
	}
	fields, err := audit.FieldUpdates(nil, store.EncodeImage(row))
	if err != nil {
		return err
	}
	now := map[string]json.RawMessage{}
	for _, one := range fields {
		now[one.Name] = one.Value
	}
	wanted, err := x.updates()
	if err != nil {
		return err
	}
	for _, one := range wanted {
		value, there := now[one.Name]
		if !there {
			value = json.RawMessage("null")
		}
		is, err := idsOnly(value)
		if err != nil {
			return err
		}
		was, err := idsOnly(one.PreviousValue)
		if err != nil {
			return err
		}
		if is != was {
			return problem.Conflict("StaleResourceState", "state: the request is outdated: %s of %s %d was changed afterwards, last by %s",
				one.Name, x.ResourceType, asked.ID, by)
		}
	}
	return nil
}

// describeTransaction describes a transaction of the history.
func describeTransaction(tx *store.Tx, transaction int64) (string, error) {
	text := fmt.Sprintf("transaction %d", transaction)
	var body string
	err := tx.QueryRow("SELECT coalesce((SELECT body FROM txn WHERE id = ?), '{}')", transaction).Scan(&body)
	if err != nil {
		return text, err
	}
	var said struct{ Principal, Description, CreationDateTime string }
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		return text, err
	}
	if said.Principal == "" {
		return text, nil
	}
	return fmt.Sprintf("%s of %s on %s, %s", text, said.Principal, said.CreationDateTime, said.Description), nil
}

// wrapNoFit adds to an error why a request can no longer be performed. It leaves errors of the server unchanged, and those that ask for
// work outside of the transaction.
func wrapNoFit(request int64, err error) error {
	p, ok := problem.As(err)
	if !ok || p.Status >= http.StatusInternalServerError {
		return err
	}
	other := *p
	other.Message = fmt.Sprintf("state: workflow request %d cannot be applied as requested: %s", request, p.Message)
	other.Fields = []string{"state"}
	return &other
}
