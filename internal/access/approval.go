package access

import (
	"encoding/json"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// needsApproval refuses a change that others have to approve: it can be asked for where it is sent by itself.
func needsApproval(format string, args ...any) error {
	p := problem.Forbidden("AccessDenied",
		format+"; it is asked for where it is sent by itself, by POST, PUT, PATCH or DELETE of one resource",
		args...)
	p.Err = resource.ErrApproval
	return p
}

// workflowOf gives what changes of a resource are called where others have to approve them; empty where none ever has to be.
func (s *Service) workflowOf(r *store.Resource) string {
	api := s.api.Load()
	if api == nil {
		return ""
	}
	if c := api.Collection(r.Collection); c != nil && c.Workflow != nil {
		return c.Workflow(r.Type)
	}
	return ""
}

// FourEyesTypes is the field of a configuration that names the types whose changes others approve, whoever makes them.
const FourEyesTypes = "fourEyesTypes"

// fourEyes refuses a change, by whomever, of a type that its configuration has others approve. What the manager does by itself, and what
// others send over DNS, is not asked for.
func (f *rightsFollower) fourEyes(r *store.Resource) error {
	author := f.tx.Author()
	if author.User == 0 && author.Credential == "" || f.tx.Approved() || r.Configuration == 0 || f.service.workflowOf(r) == "" {
		return nil
	}
	types, err := f.service.fourEyesTypes(f.tx, r.Configuration)
	if err != nil || !slices.Contains(types, r.Type) {
		return err
	}
	return needsApproval("%s may not change %s %s without an approval: the configuration has four eyes look at it (%s)", author.Name, r.Type,
		called(r), FourEyesTypes)
}

// fourEyesTypes gives the types that a configuration names.
func (s *Service) fourEyesTypes(tx *store.Tx, configuration int64) ([]string, error) {
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

// standing is resource.API.Standing.
func (s *Service) standing(tx *store.Tx, caller resource.Caller, at *store.Resource, below bool, typeName string) (st resource.Standing,
	err error) {
	if caller.Administrator {
		return resource.Standing{Level: Full.String(), Workflow: approves}, nil
	}
	r := rightsIn(caller)
	if r == nil { // a token that only reads
		return resource.Standing{Level: View.String(), Workflow: noWorkflow}, nil
	}
	d, err := r.of(tx, at.ID, at.Parent, at.Type)
	if err != nil {
		return st, err
	}
	level := d.level
	if below {
		level = d.place.below(typeName)
	}
	st.Level, st.Workflow = level.String(), d.place.workflow(level)
	return st, nil
}

// workflow words what is done with changes that take a level.
func (p *place) workflow(level Level) string {
	switch {
	case p == nil:
		return noWorkflow
	case p.approves:
		return approves
	case level >= Change && p.asks("", level):
		return recommends
	}
	return noWorkflow
}

// approving is the condition that a resource is one about which the user approves changes.
func (r *Rights) approving() store.Expr {
	g := store.Governed{Own: map[int64]bool{}, Below: map[int64]bool{}, Configurations: r.configurations,
		Otherwise: r.places[0] != nil && r.places[0].approves}
	for _, id := range r.at {
		g.Own[id], g.Below[id] = r.places[id].approves, r.places[id].approves
	}
	switch e := g.Expr(); e {
	case nil, store.Nothing:
		return e
	default:
		return store.Through{Ref: "place", Where: e}
	}
}
