package authz

import (
	"encoding/json"
	"maps"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
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

// FourEyesTypes is the field of a configuration that names the types whose changes others approve, whoever makes them.
const FourEyesTypes = "fourEyesTypes"

// fourEyes refuses a change, by whomever, of a type that its configuration has others approve. What the manager does by itself, and what
// others send over DNS, is not asked for.
func (f *rightsFollower) fourEyes(r *store.Resource) error {
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
	return needsApproval("%s may not change %s %s without an approval: the configuration has four eyes look at it (%s)", author.Name, r.Type,
		problem.About(r.ID, called(r)), FourEyesTypes)
}

// called is whose rights these are.
func (f *rightsFollower) called() string {
	if f.name != "" {
		return f.name
	}
	return f.tx.Author().Name
}

// askedBy gives what holds what is changed to the rights of the user who asked for it, as they are now; nil where nobody did, or may do
// all.
func (f *rightsFollower) askedBy() (*rightsFollower, error) {
	id, _ := f.tx.Approved()
	if id == 0 || id == f.tx.Author().User || f.name != "" { // whose rights these are themselves
		return nil, nil
	}
	if f.asker != nil && f.asker.rights != nil && f.asker.rights.user == id {
		return f.asker, nil
	}
	p, err := f.service.principal(f.tx, id)
	if err != nil || p.Rights == nil {
		return nil, err
	}
	f.asker = &rightsFollower{service: f.service, tx: f.tx, rights: p.Rights, name: p.Name}
	return f.asker, nil
}

// fourEyesTypes gives the types that a configuration names.
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

// standing is resource.API.Standing.
func (s *Policy) standing(tx *store.Tx, caller resource.Caller, at *store.Resource, below bool, typeName string) (st resource.Standing,
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
	if !below {
		typeName = "" // of the resource itself, where it has a right of its own
		if d.at != at.ID {
			typeName = at.Type
		}
	}
	st.Level, st.Workflow = level.String(), d.place.workflow(typeName, level)
	return st, nil
}

// workflow words what is done with changes of resources of a type that take a level.
func (p *place) workflow(typeName string, level Level) string {
	switch {
	case p == nil:
		return noWorkflow
	case p.approvesOf(typeName):
		return approves
	case level >= Change && p.asks(typeName, level):
		return recommends
	}
	return noWorkflow
}

// approvesOf reports whether changes of resources of a type below it are approved: by a right that lets them be changed.
func (p *place) approvesOf(typeName string) bool {
	return p != nil && p.approves && slices.ContainsFunc(p.rights, func(r *AccessRight) bool {
		return r.WorkflowLevel == approves && r.level(typeName) >= Change
	})
}

// approving is the condition that a request is one about which the user decides.
func (r *Rights) approving() store.Expr {
	special := map[string]bool{} // types that a right that approves says something else of
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
		if e := r.approvingOf(name); e != store.Nothing {
			either = append(either, store.All{of, orAll(e)})
		}
	}
	e := r.approvingOf("")
	switch {
	case len(rest) == 0:
		return e
	case e != store.Nothing:
		either = append(either, append(rest, orAll(e)))
	}
	if len(either) == 0 {
		return store.Nothing
	}
	return either
}

// approvingOf is approving of requests about resources of a type.
func (r *Rights) approvingOf(typeName string) store.Expr {
	g := store.Governed{Own: map[int64]bool{}, Below: map[int64]bool{}, Configurations: r.configurations,
		Otherwise: r.places[0].approvesOf(typeName)}
	for _, id := range r.at {
		g.Own[id], g.Below[id] = r.places[id].approvesOf(typeName), r.places[id].approvesOf(typeName)
	}
	switch e := g.Expr(); e {
	case nil, store.Nothing:
		return e
	default:
		return store.Through{Ref: "place", Where: e}
	}
}
