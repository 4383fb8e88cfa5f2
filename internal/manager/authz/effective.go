package authz

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// mayDeploy rejects a deployment that the user's rights at a resource do not allow.
func (s *Policy) mayDeploy(tx *store.Tx, user int64, typeName string, at *store.Resource) error {
	p, err := s.principal(tx, user)
	if store.IsNotFound(err) {
		return problem.Forbidden("AccessDenied", "user %d no longer exists", user)
	}
	if err != nil || p.Rights == nil {
		return err
	}
	d, err := p.Rights.decisionFor(tx, at.ID, at.Parent, at.Type)
	switch {
	case err != nil:
		return err
	case d.level == Hide:
		return problem.Forbidden("AccessDenied", "%s may not deploy to a resource without view access", p.Name)
	case !d.place.allowsDeployment(typeName):
		return problem.Forbidden("AccessDenied", "%s may not deploy %s by a %s: %s", p.Name, problem.Describe(at.ID, labelOf(at)),
			typeName, d.reason())
	}
	return nil
}

// effective returns the caller's effective rights at a resource. A user other than 0 asks for the rights of that user.
func (s *Policy) effective(tx *store.Tx, caller resource.Caller, row *store.Resource, user int64) (e resource.Effective, err error) {
	if user != 0 && user != caller.User {
		if err := requirePrivilege(caller, "VIEW_OTHERS_ACCESS_RIGHTS"); err != nil {
			return e, err
		}
		p, err := s.principal(tx, user)
		if store.IsNotFound(err) {
			return e, problem.Query("user", "user %d does not exist", user)
		}
		if err != nil {
			return e, err
		}
		caller = CallerOf(p)
	}
	e.AccessOverrides, e.WorkflowLevel = []resource.TypeLevel{}, noWorkflow
	if caller.User != 0 {
		e.User = &caller.User
	}
	r := rightsIn(caller)
	if r == nil {
		level := View
		if e.Administrator = caller.Administrator; e.Administrator {
			level = Full
			e.DeploymentsAllowed, e.QuickDeploymentsAllowed, e.SelectiveDeploymentsAllowed = true, true, true
			e.WorkflowLevel = approves
		}
		e.AccessLevel, e.LevelBelow = level.String(), level.String()
		return e, nil
	}
	d, err := r.decisionFor(tx, row.ID, row.Parent, row.Type)
	if err != nil {
		return e, err
	}
	if e = d.place.effective(caller.User, d.level); d.place == nil {
		return e, nil
	}
	if d.resource != 0 && d.place.own >= View { // do not reveal a hidden resource
		e.DecidedBy.Resource = &d.resource
	}
	return e, nil
}
