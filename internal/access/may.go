package access

import (
	"portolan/internal/problem"
	"portolan/internal/published"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// May decides what a caller may do (resource.Decide). Administrators change things, and everybody reads, but for what a
// collection's guard says: users without a security privilege see themselves alone, sessions are seen by whose they are, the
// history by whose historyPrivilege says so, and how the manager is set up by administrators. Who must set a new
// password may do nothing before.
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
	case !c.Administrator && !own:
		return nil, problem.Forbidden("AccessDenied", "%s may read, not change", c.Name)
	// A session may always be changed by itself, so that one that may only read can end.
	case c.ReadOnly && (!own || belongs(on, c.User) || on.ID == 0 || on.ID != c.Session):
		return nil, problem.Forbidden("ReadOnlySession", "this session or token may only read")
	case guarded && sees(c, on) == store.Nothing:
		return nil, problem.Forbidden("AccessDenied", "%s does not see %s", c.Name, on.Collection.Name)
	}
	return nil, nil
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
	if on.Collection == nil {
		return nil
	}
	switch on.Collection.Guard {
	case resource.Accounts:
		if c.Security == "NO_ACCESS" {
			return store.IDs{c.User}
		}
	case resource.Sessions:
		if !c.Administrator {
			return store.HasParent(c.User)
		}
	case resource.Administration:
		if !c.Administrator {
			return store.Nothing
		}
	case resource.HistoryList:
		if c.History == "HIDE" {
			return store.Nothing
		}
	case resource.HistoryImages:
		if c.History == "HIDE" || c.History == "VIEW_HISTORY_LIST" {
			return store.Nothing
		}
	}
	return nil
}
