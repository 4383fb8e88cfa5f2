package authz

import "portolan/internal/engine/resource"

// Roles of the fleet API and of bearer tokens (reference/fleet.md).
const (
	Administrator = "administrator"
	Analyst       = "analyst"
)

// Principal is who a request comes from: a user, or a token or key set that was made on the command line.
type Principal struct {
	// User is the id of the user resource; 0 for a token that belongs to no user.
	User int64
	// Name is the user's name; "token NAME" or "key set NAME" for who is no user.
	Name string
	// Token is the id of the bearer token or key set; empty for a user's password or session.
	Token string
	// Role is Administrator or Analyst.
	Role string
	// Session is the session resource's id; 0 outside of one.
	Session int64
	// ReadOnly is a session that was opened for reading only, or an analyst's token.
	ReadOnly bool
	// Scopes are those of a token or key set.
	Scopes Scopes
	// History and Security are the user's historyPrivilege and securityPrivilege; who is no user sees the
	// history, and users as analysts do.
	History, Security string
	// MustReset says that nothing is open to the user but to set a new password.
	MustReset bool
	// Rights are what a user may do who is no administrator; nil for all others.
	Rights *Rights
	// Credential is what was shown that is neither a session, nor a token of the manager's, nor a password here.
	Credential string
	// Door is the one that its session was begun at; empty outside of one.
	Door Door
}

// Door is a way in: each user has one of them open, or both (accessType).
type Door string

// The doors: the console, whose requests have the cookie of a session, and the APIs for everybody else.
const (
	ConsoleDoor Door = "GUI"
	APIDoor     Door = "API"
)

// CallerOf words a principal for the resource engine.
func CallerOf(p Principal) resource.Caller {
	c := resource.Caller{User: p.User, Name: p.Name, Administrator: p.Role == Administrator, ReadOnly: p.ReadOnly,
		Session: p.Session,
		Token:   p.Token, History: p.History, Security: p.Security, MustReset: p.MustReset, Credential: p.Credential, Scopes: string(p.Scopes)}
	if p.Rights != nil {
		c.Rights = p.Rights
	}
	return c
}
