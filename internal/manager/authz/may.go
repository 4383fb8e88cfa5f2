package authz

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Govern sets the policy functions of an API.
func Govern(a *resource.API) {
	names := ScopeNames(a)
	a.May = func(c resource.Caller, action resource.Action, on resource.Subject) (store.Expr, error) {
		if c.Scopes != "" && action != resource.ActionFind && action != resource.ActionSee {
			if err := Scopes(c.Scopes).checkChange(c.Name, on, names); err != nil {
				return nil, err
			}
		}
		return May(c, action, on)
	}
	a.Effective = func(tx *store.Tx, caller resource.Caller, row *store.Resource, user int64) (resource.Effective, error) {
		return PolicyOf(a.Store).effective(tx, caller, row, user)
	}
	a.Standing = func(tx *store.Tx, caller resource.Caller, at *store.Resource, below bool, typeName string) (resource.Standing, error) {
		return PolicyOf(a.Store).findStanding(tx, caller, at, below, typeName)
	}
	if a.Store != nil {
		PolicyOf(a.Store).api.Store(a)
	}
}

// MayDeploy refuses a deployment of a type at a resource if the user has no right to it. User 0, of a token without a user, is not checked.
func MayDeploy(c *resource.Change, user int64, typeName string, at int64) error {
	if user == 0 {
		return nil
	}
	row, err := c.Tx.Get(at)
	if err != nil {
		return err
	}
	return PolicyOf(c.API.Store).mayDeploy(c.Tx, user, typeName, row)
}

// May decides whether a caller may perform an action (resource.Decide). For ActionFind it returns the condition for the resources that the
// caller sees. Administrators may do everything. Tokens without a user read everything, or may do everything.
//
// For users with access rights, May only rejects changes that no right can allow. The rights limit what the user sees (Rights), and
// rightsFollower checks each change when it is made.
//
// In addition, the guard of the collection applies. Users without a security privilege see only themselves. Sessions are visible to their
// user, the history depends on historyPrivilege, and the manager's configuration is for administrators. A user who must set a new password
// may do nothing else.
func May(c resource.Caller, action resource.Action, on resource.Subject) (seen store.Expr, err error) {
	if action == resource.ActionFind {
		return visible(c, on), nil
	}
	if c.MustReset && !isPasswordReset(c, action, on) {
		return nil, problem.Forbidden("PasswordResetRequired",
			"%s must set a new password first: PATCH %s/users/%d with the field password", c.Name, published.Base, c.User)
	}
	if action == resource.ActionSee { // what is visible was decided by ActionFind
		return nil, nil
	}
	guarded := on.Collection != nil && on.Sub == nil
	accounts := guarded && on.Collection.Guard == resource.Accounts
	// Users may change their own account, where a rule allows only the password, and end the sessions that they see.
	own := accounts || guarded && on.Collection.Guard == resource.Sessions || isPersonal(on, c.User)
	switch {
	case !c.Administrator && accounts && (on.ID != c.User || action != resource.ActionChange && action != resource.ActionReplace):
		return nil, problem.Forbidden("AccessDenied",
			"%s may only set the own password (PATCH with only the field password), not create, change or delete users", c.Name)
	case !c.Administrator && !own && !mayBeGranted(c, on):
		if rightsIn(c) != nil && on.Collection != nil {
			return nil, problem.Forbidden("AccessDenied", "%s may not change %s: only administrators can", c.Name, on.Collection.Name)
		}
		return nil, problem.Forbidden("AccessDenied", "%s may only read: changes require the role %s", c.Name, Administrator)
	// A read-only session can still change itself, so that it can end.
	case c.ReadOnly && (!own || isPersonal(on, c.User) || on.ID == 0 || on.ID != c.Session):
		return nil, problem.Forbidden("ReadOnlySession", "this session or token may only read")
	// For resources with the guard Everybody, rightsFollower checks the change itself.
	case guarded && on.Collection.Guard != resource.AnyCaller && visible(c, on) == store.False:
		return nil, problem.Forbidden("AccessDenied", "%s does not have permission to view %s", c.Name, on.Collection.Name)
	}
	return nil, nil
}

// mayBeGranted reports whether access rights can allow a change: of resources, of access rights, or of history entries, which are undone.
func mayBeGranted(c resource.Caller, on resource.Subject) bool {
	if rightsIn(c) == nil || on.Collection == nil {
		return false
	}
	switch on.Collection.Guard {
	case resource.AnyCaller, resource.Own, resource.Between, resource.HistoryList, resource.Asking:
		return true
	case resource.Granted:
		return hasPrivilege(c, "CHANGE_ACCESS_RIGHTS")
	}
	return false
}

// rightsIn returns the rights of a caller who is a user; nil for other callers and for administrators.
func rightsIn(c resource.Caller) *Rights {
	r, ok := c.Rights.(*Rights)
	if !ok || c.Administrator {
		return nil
	}
	return r
}

// isPersonal reports whether a request is about personal data of a user: tasks and favorites.
func isPersonal(on resource.Subject, user int64) bool {
	return on.Sub != nil && on.Collection != nil && on.Collection.Guard == resource.Accounts && on.ID == user &&
		(on.Sub.Name == "tasks" || on.Sub.Name == "favorites")
}

// isPasswordReset reports whether a request is allowed to a caller who must set a new password: setting it, and ending the session.
func isPasswordReset(c resource.Caller, action resource.Action, on resource.Subject) bool {
	return action == resource.ActionChange && on.Collection != nil && on.Sub == nil && on.ID != 0 && on.Plain &&
		(on.Collection.Guard == resource.Accounts && on.ID == c.User || on.ID == c.Session)
}

// visible returns the condition for the resources of a collection that the caller sees; nil for all, store.Nothing for none.
func visible(c resource.Caller, on resource.Subject) store.Expr {
	if on.Collection == nil || c.Administrator && on.Collection.Guard != resource.HistoryList &&
		on.Collection.Guard != resource.HistoryImages {
		return nil
	}
	r := rightsIn(c)
	switch on.Collection.Guard {
	case resource.Common:
		if r != nil && !r.seesAnything() {
			return store.False
		}
		return nil
	case resource.Accounts:
		switch {
		case c.Security == "NO_ACCESS":
			return store.IDs{c.User}
		case r != nil && !hasPrivilege(c, "VIEW_OTHERS_ACCESS_RIGHTS"):
			return anyOf(store.IDs{c.User}, r.visible(on.Collection, on.Alone))
		}
		return nil
	case resource.Sessions:
		return store.HasParent(c.User)
	case resource.Administration:
		return store.False
	case resource.Logs:
		if r != nil && r.logs {
			return nil
		}
		return store.False
	case resource.HistoryList:
		switch {
		case c.History == "HIDE":
			return store.False
		case r != nil && !r.SeesEverything(): // other users change resources that the user may not see
			return store.HasParent(c.User)
		}
		return nil
	case resource.HistoryImages:
		if c.History == "HIDE" || c.History == "VIEW_HISTORY_LIST" || r != nil && !r.SeesEverything() {
			return store.False
		}
		return nil
	case resource.Events:
		switch {
		case r == nil || r.events:
			return nil
		case !r.SeesEverything():
			return store.False
		}
		return notAdministrative
	case resource.Granted:
		return visibleRights(c, r)
	}
	if r == nil || on.Collection.Name == "groups" && hasPrivilege(c, "VIEW_OTHERS_ACCESS_RIGHTS") {
		return nil
	}
	if on.Collection.Guard == resource.Asking {
		return anyOf(store.LinksTo{Targets: []int64{c.User}, Field: "creator"}, r.approvable())
	}
	if on.Collection.Guard == resource.Own {
		return anyOf(store.LinksTo{Targets: []int64{c.User}, Field: "user"}, r.visible(on.Collection, on.Alone))
	}
	if on.Collection.Guard == resource.Managed { // such as the user's own groups
		return anyOf(store.IDs(r.subjects), r.visible(on.Collection, on.Alone))
	}
	return r.visible(on.Collection, on.Alone)
}

// visibleRights returns the condition for the access rights that the caller sees, depending on its security privilege.
func visibleRights(c resource.Caller, r *Rights) store.Expr {
	switch {
	case r == nil || hasPrivilege(c, "VIEW_OTHERS_ACCESS_RIGHTS"):
		return nil
	case hasPrivilege(c, "VIEW_MY_ACCESS_RIGHTS"):
		return store.LinksTo{Targets: r.subjects, Field: "userScope"}
	}
	return store.False
}

// anyOf returns the disjunction of two conditions. A nil condition matches everything.
func anyOf(one, other store.Expr) store.Expr {
	switch other {
	case nil:
		return nil
	case store.False:
		return one
	}
	return store.Any{one, other}
}

// notAdministrative excludes events that only administrators see: sign-ins, tokens, webhooks, workflow requests, imports and backups.
var notAdministrative = store.Not{Expr: store.Any{categoryIs("APPLICATION"), categoryIs("WORKFLOW_REQUEST"), categoryIs("MIGRATION"),
	categoryIs("DATABASE_MAINTENANCE")}}

func categoryIs(category string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"category"}}, Op: "eq", Value: category}
}
