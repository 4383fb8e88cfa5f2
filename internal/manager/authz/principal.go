package authz

import "portolan/internal/engine/resource"

// Roles of the fleet API and of bearer tokens (reference/fleet.md).
const (
	Administrator = "administrator"
	Analyst       = "analyst"
)

// Principal is the authenticated sender of a request: a user, or a token or key set.
type Principal struct {
	// User is the id of the user resource; 0 for a token without a user.
	User int64
	// Name is the user's name. For a token without a user it is "token NAME" or "key set NAME".
	Name string
	// Token is the id of the bearer token or key set; empty for a user's password or session.
	Token string
	// Role is Administrator or Analyst.
	Role string
	// Session is the id of the session resource; 0 without a session.
	Session int64
	// ReadOnly is true for a read-only session and for an analyst's token.
	ReadOnly bool
	// Scopes are the scopes of a token or key set.
	Scopes Scopes
	// History and Security are the user's historyPrivilege and securityPrivilege. A token without a user sees the history, and users as
	// analysts do.
	History, Security string
	// MustReset is true if the user may do nothing before setting a new password.
	MustReset bool
	// Rights are the rights of a user who is not an administrator; nil for all others.
	Rights *Rights
	// Credential describes a credential other than a session, a token of the manager, or a local password.
	Credential string
	// Interface is the interface where the session was started; empty without a session.
	Interface Interface
}

// Interface is an interface where users sign in. The accessType of a user allows one or both.
type Interface string

// The interfaces: the console, whose requests have a session cookie, and the APIs.
const (
	ConsoleInterface Interface = "GUI"
	APIInterface     Interface = "API"
)

// CallerOf returns a principal as a caller of the resource engine.
func CallerOf(p Principal) resource.Caller {
	c := resource.Caller{User: p.User, Name: p.Name, Administrator: p.Role == Administrator, ReadOnly: p.ReadOnly,
		Session: p.Session,
		Token:   p.Token, History: p.History, Security: p.Security, MustReset: p.MustReset, Credential: p.Credential, Scopes: string(p.Scopes)}
	if p.Rights != nil {
		c.Rights = p.Rights
	}
	return c
}
