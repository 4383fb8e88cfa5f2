package authz

import (
	"encoding/json"
	"maps"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// needsApproval returns the error for a change that needs an approval. The change can be requested if it is sent as a single request.
func needsApproval(format string, args ...any) error {
	p := problem.Forbidden("AccessDenied",
		format+"; to request approval, send it as a single POST, PUT, PATCH or DELETE of one resource",
		args...)
	p.Err = resource.ErrApproval
	return p
}

// workflowOf returns the workflow name of a resource's changes; empty if they never need an approval.
func (s *Policy) workflowOf(r *store.Resource) string {
	api := s.api.Load()
	if api == nil {
		return ""
	}
	if c := api.Collection(r.Collection); c != nil && c.Workflow != nil {
		return c.Workflow(r.Type)
	}
	return ""
}

// FourEyesTypes is the field of a configuration that lists the types whose changes always need an approval by another user.
const FourEyesTypes = "fourEyesTypes"

// checkFourEyes rejects an unapproved change of a type in fourEyesTypes. Changes by the manager itself and DNS updates are not checked.
func (f *rightsFollower) checkFourEyes(r *store.Resource) error {
	author := f.tx.Author()
	_, approved := f.tx.Approved()
	if author.User == 0 && author.Credential == "" || r.Configuration == 0 || f.service.workflowOf(r) == "" {
		return nil
	}
	types, err := f.service.fourEyesTypes(f.tx, r.Configuration)
	if err != nil || !slices.Contains(types, r.Type) {
		return err
	}
	if approved {
		f.tx.NoteApproval()
		return nil
	}
	return needsApproval("%s may not change %s %s without approval: the configuration requires it (%s)", author.Name, r.Type,
		problem.Describe(r.ID, labelOf(r)), FourEyesTypes)
}

// userName returns the name of the user whose rights are checked.
func (f *rightsFollower) userName() string {
	if f.name != "" {
		return f.name
	}
	return f.tx.Author().Name
}

// requesterFollower returns the follower that checks an approved change against the current rights of the user who requested it. It returns
// nil if the change was not requested, or if the requester may do everything.
func (f *rightsFollower) requesterFollower() (*rightsFollower, error) {
	id, _ := f.tx.Approved()
	if id == 0 || id == f.tx.Author().User || f.name != "" { // this follower already checks the requester
		return nil, nil
	}
	if f.requester != nil && f.requester.rights != nil && f.requester.rights.user == id {
		return f.requester, nil
	}
	p, err := f.service.principal(f.tx, id)
	if err != nil || p.Rights == nil {
		return nil, err
	}
	f.requester = &rightsFollower{service: f.service, tx: f.tx, rights: p.Rights, name: p.Name}
	return f.requester, nil
}

// fourEyesTypes returns the types that a configuration lists.
func (s *Policy) fourEyesTypes(tx *store.Tx, configuration int64) ([]string, error) {
	if known, ok := s.fourEyes.Get(tx, configuration); ok {
		return known, nil
	}
	row, err := tx.Get(configuration)
	if store.IsNotFound(err) { // it is being deleted
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var body struct {
		FourEyesTypes []string `json:"fourEyesTypes"`
	}
	if err := json.Unmarshal(row.Body, &body); err != nil {
		return nil, err
	}
	s.fourEyes.Put(tx, configuration, body.FourEyesTypes)
	return body.FourEyesTypes, nil
}

// findStanding implements resource.API.Standing.
func (s *Policy) findStanding(tx *store.Tx, caller resource.Caller, at *store.Resource, below bool, typeName string) (st resource.Standing,
	err error) {
	if caller.Administrator {
		return resource.Standing{Level: Full.String(), Workflow: approves}, nil
	}
	r := rightsIn(caller)
	if r == nil { // a token that only reads
		return resource.Standing{Level: View.String(), Workflow: noWorkflow}, nil
	}
	d, err := r.decisionFor(tx, at.ID, at.Parent, at.Type)
	if err != nil {
		return st, err
	}
	level := d.level
	if below {
		level = d.place.levelBelow(typeName)
	}
	if !below {
		typeName = "" // the resource has its own right
		if d.resource != at.ID {
			typeName = at.Type
		}
	}
	st.Level, st.Workflow = level.String(), d.place.workflow(typeName, level)
	return st, nil
}

// workflow returns the workflow level for changes of a type at a level.
func (p *place) workflow(typeName string, level Level) string {
	switch {
	case p == nil:
		return noWorkflow
	case p.approvesType(typeName):
		return approves
	case level >= Change && p.requiresApproval(typeName, level):
		return recommends
	}
	return noWorkflow
}

// approvesType reports whether the user approves changes of a type: by a right that also allows these changes.
func (p *place) approvesType(typeName string) bool {
	return p != nil && p.approves && slices.ContainsFunc(p.rights, func(r *AccessRight) bool {
		return r.WorkflowLevel == approves && r.level(typeName) >= Change
	})
}

// approvable returns the condition for the workflow requests that the user may approve.
func (r *Rights) approvable() store.Expr {
	special := map[string]bool{} // types that an approving right overrides
	for _, p := range r.places {
		for _, one := range p.rights {
			for _, o := range one.AccessOverrides {
				special[o.ResourceType] = special[o.ResourceType] || one.WorkflowLevel == approves
			}
		}
	}
	var either store.Any
	rest := store.All{}
	for _, name := range slices.Sorted(maps.Keys(special)) {
		if !special[name] {
			continue
		}
		of := store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"resourceType"}}, Op: "eq", Value: name}
		rest = append(rest, store.Not{Expr: of})
		if e := r.approvableOfType(name); e != store.False {
			either = append(either, store.All{of, orAll(e)})
		}
	}
	e := r.approvableOfType("")
	switch {
	case len(rest) == 0:
		return e
	case e != store.False:
		either = append(either, append(rest, orAll(e)))
	}
	if len(either) == 0 {
		return store.False
	}
	return either
}

// approvableOfType returns the condition for workflow requests about resources of a type.
func (r *Rights) approvableOfType(typeName string) store.Expr {
	g := store.Governed{Own: map[int64]bool{}, Below: map[int64]bool{}, Configurations: r.configurations,
		Otherwise: r.places[0].approvesType(typeName)}
	for _, id := range r.placeIDs {
		g.Own[id], g.Below[id] = r.places[id].approvesType(typeName), r.places[id].approvesType(typeName)
	}
	switch e := g.Expr(); e {
	case nil, store.False:
		return e
	default:
		return store.Through{Ref: "place", Where: e}
	}
}
