package authz

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Govern lets the policy decide what callers of an API may see and change.
func Govern(a *resource.API) {
	names := ScopeNames(a)
	a.May = func(c resource.Caller, action resource.Action, on resource.Subject) (store.Expr, error) {
		if c.Scopes != "" && action != resource.ActionFind && action != resource.ActionSee {
			if err := Scopes(c.Scopes).change(c.Name, on, names); err != nil {
				return nil, err
			}
		}
		return May(c, action, on)
	}
	a.Effective = func(tx *store.Tx, caller resource.Caller, row *store.Resource, user int64) (resource.Effective, error) {
		return PolicyOf(a.Store).effective(tx, caller, row, user)
	}
	a.Standing = func(tx *store.Tx, caller resource.Caller, at *store.Resource, below bool, typeName string) (resource.Standing, error) {
		return PolicyOf(a.Store).standing(tx, caller, at, below, typeName)
	}
	a.MayDeploy = func(tx *store.Tx, user int64, typeName string, at *store.Resource) error {
		return PolicyOf(a.Store).mayDeploy(tx, user, typeName, at)
	}
	if a.Store != nil {
		PolicyOf(a.Store).api.Store(a)
	}
}

// May decides what a caller may do (resource.Decide). Administrators do everything. Tokens that belong to no user read everything, or may
// do everything. What a user sees of what lies somewhere its access rights say (Rights), and whether a change is within them is looked at
// when it is made (rightsFollower): here is refused what no right gives. Beyond that holds what a collection's guard says: users without
// a security privilege see themselves alone, sessions are seen by whose they are, the history by whose historyPrivilege says so, and how
// the manager is set up by administrators. Who must set a new password may do nothing before.
func May(c resource.Caller, action resource.Action, on resource.Subject) (seen store.Expr, err error) {
	if action == resource.ActionFind {
		return sees(c, on), nil
	}
	if c.MustReset && !resets(c, action, on) {
		return nil, problem.Forbidden("PasswordResetRequired",
			"%s has to set a new password first: PATCH %s/users/%d with the field password", c.Name, published.Base, c.User)
	}
	if action == resource.ActionSee { // what is found
		return nil, nil
	}
	guarded := on.Collection != nil && on.Sub == nil
	accounts := guarded && on.Collection.Guard == resource.Accounts
	// Users change their own account, of which the rule lets them set the password alone, and end those sessions that they see.
	own := accounts || guarded && on.Collection.Guard == resource.Sessions || belongs(on, c.User)
	switch {
	case !c.Administrator && accounts && (on.ID != c.User || action != resource.ActionChange && action != resource.ActionReplace):
		return nil, problem.Forbidden("AccessDenied",
			"%s may set the own password (PATCH with the field password alone), and make, change and delete no user", c.Name)
	case !c.Administrator && !own && !mayTry(c, on):
		if rightsIn(c) != nil && on.Collection != nil {
			return nil, problem.Forbidden("AccessDenied", "%s may not change %s: administrators do", c.Name, on.Collection.Name)
		}
		return nil, problem.Forbidden("AccessDenied", "%s may read, not change: that takes the role %s", c.Name, Administrator)
	// A session may always be changed by itself, so that one that may only read can end.
	case c.ReadOnly && (!own || belongs(on, c.User) || on.ID == 0 || on.ID != c.Session):
		return nil, problem.Forbidden("ReadOnlySession", "this session or token may only read")
	case guarded && on.Collection.Guard != resource.Everybody && sees(c, on) == store.Nothing: // of the others the change itself tells
		return nil, problem.Forbidden("AccessDenied", "%s does not see %s", c.Name, on.Collection.Name)
	}
	return nil, nil
}

// mayTry reports whether a change may be within a caller's access rights: of what lies somewhere, of access rights, or of what the history
// has, which is undone.
func mayTry(c resource.Caller, on resource.Subject) bool {
	if rightsIn(c) == nil || on.Collection == nil {
		return false
	}
	switch on.Collection.Guard {
	case resource.Everybody, resource.Own, resource.Between, resource.HistoryList, resource.Asking:
		return true
	case resource.Granted:
		return privileged(c, "CHANGE_ACCESS_RIGHTS")
	}
	return false
}

// rightsIn gives the rights of a caller who is a user; nil for others, and administrators.
func rightsIn(c resource.Caller) *Rights {
	r, ok := c.Rights.(*Rights)
	if !ok || c.Administrator {
		return nil
	}
	return r
}

// belongs reports whether a request is about what belongs to a user alone: tasks and favorites.
func belongs(on resource.Subject, user int64) bool {
	return on.Sub != nil && on.Collection != nil && on.Collection.Guard == resource.Accounts && on.ID == user &&
		(on.Sub.Name == "tasks" || on.Sub.Name == "favorites")
}

// resets reports whether a request is one of those that are left to a caller who must set a new password: that itself, and to
// end the session.
func resets(c resource.Caller, action resource.Action, on resource.Subject) bool {
	return action == resource.ActionChange && on.Collection != nil && on.Sub == nil && on.ID != 0 && on.Plain &&
		(on.Collection.Guard == resource.Accounts && on.ID == c.User || on.ID == c.Session)
}

// sees gives what narrows what a caller sees of a collection; nil where it sees all of it, store.Nothing where none.
func sees(c resource.Caller, on resource.Subject) store.Expr {
	if on.Collection == nil || c.Administrator && on.Collection.Guard != resource.HistoryList &&
		on.Collection.Guard != resource.HistoryImages {
		return nil
	}
	r := rightsIn(c)
	switch on.Collection.Guard {
	case resource.Common:
		if r != nil && !r.anything() {
			return store.Nothing
		}
		return nil
	case resource.Accounts:
		switch {
		case c.Security == "NO_ACCESS":
			return store.IDs{c.User}
		case r != nil && !privileged(c, "VIEW_OTHERS_ACCESS_RIGHTS"):
			return anyOf(store.IDs{c.User}, r.sees(on.Collection, on.Alone))
		}
		return nil
	case resource.Sessions:
		return store.HasParent(c.User)
	case resource.Administration:
		return store.Nothing
	case resource.Logs:
		if r != nil && r.logs {
			return nil
		}
		return store.Nothing
	case resource.HistoryList:
		switch {
		case c.History == "HIDE":
			return store.Nothing
		case r != nil && !r.Everything(): // others change what the user may not see
			return store.HasParent(c.User)
		}
		return nil
	case resource.HistoryImages:
		if c.History == "HIDE" || c.History == "VIEW_HISTORY_LIST" || r != nil && !r.Everything() {
			return store.Nothing
		}
		return nil
	case resource.Events:
		switch {
		case r == nil || r.events:
			return nil
		case !r.Everything():
			return store.Nothing
		}
		return notAdministrative
	case resource.Granted:
		return seesGranted(c, r)
	}
	if r == nil || on.Collection.Name == "groups" && privileged(c, "VIEW_OTHERS_ACCESS_RIGHTS") {
		return nil
	}
	if on.Collection.Guard == resource.Asking {
		return anyOf(store.LinksTo{Targets: []int64{c.User}, Field: "creator"}, r.approving())
	}
	if on.Collection.Guard == resource.Own {
		return anyOf(store.LinksTo{Targets: []int64{c.User}, Field: "user"}, r.sees(on.Collection, on.Alone))
	}
	if on.Collection.Guard == resource.Managed { // such as the user's own groups
		return anyOf(store.IDs(r.subjects), r.sees(on.Collection, on.Alone))
	}
	return r.sees(on.Collection, on.Alone)
}

// seesGranted narrows access rights: by what the user may see of them, to those of the user and its groups.
func seesGranted(c resource.Caller, r *Rights) store.Expr {
	switch {
	case r == nil || privileged(c, "VIEW_OTHERS_ACCESS_RIGHTS"):
		return nil
	case privileged(c, "VIEW_MY_ACCESS_RIGHTS"):
		return store.LinksTo{Targets: r.subjects, Field: "userScope"}
	}
	return store.Nothing
}

// anyOf lets through what one of two conditions does; nil lets everything through.
func anyOf(one, other store.Expr) store.Expr {
	switch other {
	case nil:
		return nil
	case store.Nothing:
		return one
	}
	return store.Any{one, other}
}

// notAdministrative leaves out events about what administrators alone see: sign-ins, tokens, webhooks, workflow requests, imports and
// backups.
var notAdministrative = store.Not{Expr: store.Any{categoryIs("APPLICATION"), categoryIs("WORKFLOW_REQUEST"), categoryIs("MIGRATION"),
	categoryIs("DATABASE_MAINTENANCE")}}

func categoryIs(category string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"category"}}, Op: "eq", Value: category}
}
