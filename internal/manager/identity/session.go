package identity

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
)

// registerSessions declares the collection of sessions.
func registerSessions(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "sessions", Parents: []string{"", "users"}, Guard: resource.Sessions, Hidden: true, Unlogged: true,
		NoUp:    true,
		SignIn:  login,
		Aliases: map[string]func(resource.Caller) (int64, error){"current": currentSession}, Virtual: withoutSession}, &UserSession{})
}

// States of a session.
const (
	loggedIn   = "LOGGED_IN"
	loggedOut  = "LOGGED_OUT"
	expired    = "EXPIRED"
	timedOut   = "TIMED_OUT"
	terminated = "TERMINATED"
)

// UserSession is the time between a user's login and logout.
type UserSession struct {
	schema.Head `head:"readOnly"`
	// Username is the name of the user who signs in.
	Username string `api:"username,post,writeOnly,createOnly"`
	// Password is the password of the user who signs in.
	Password string `api:"password,post,writeOnly,createOnly"`
	// SignInCode is the code of a sign-in link that the manager printed. It replaces name and password and is valid once. Portolan
	// extension.
	SignInCode string `api:"signInCode,writeOnly,createOnly"`
	// APIToken is the session token, used as the password of Basic credentials. It is shown in the answer to the login, and at
	// sessions/current if the request has it in its Authorization header.
	APIToken string `api:"apiToken,transient"`
	// APITokenExpirationDateTime is when the token expires.
	APITokenExpirationDateTime time.Time `api:"apiTokenExpirationDateTime,readOnly"`
	// BasicAuthenticationCredentials is the value that follows "Basic " in the Authorization header. It is shown as apiToken is.
	BasicAuthenticationCredentials string `api:"basicAuthenticationCredentials,transient"`
	// RemoteAddress is the client address of the login.
	RemoteAddress string `api:"remoteAddress,readOnly"`
	// ReadOnly restricts the session to reading.
	ReadOnly *bool `api:"readOnly"`
	// LoginDateTime is when the session started.
	LoginDateTime time.Time `api:"loginDateTime,readOnly"`
	// LogoutDateTime is when the session ended.
	LogoutDateTime time.Time `api:"logoutDateTime,readOnly"`
	// State is the state of the session. Set LOGGED_OUT to end your own session and TERMINATED to end another one.
	State string `api:"state" enum:"LOGGED_IN|LOGGED_OUT|TIMED_OUT|EXPIRED|LOGIN_FAIL|TERMINATED"`
	// Response is the answer of an external authenticator.
	Response string `api:"response"`
	// User is the user of the session.
	User schema.Ref `api:"user,readOnly" column:"parent" ref:"User"`
	// Authenticator is the authenticator of the user; null means Portolan itself.
	Authenticator schema.Ref `api:"authenticator,readOnly" ref:"AddressManagerAuthenticator|LDAPAuthenticator|KerberosAuthenticator|RADIUSAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer"`
}

// BeforeWrite initializes a new session, or checks that an existing one is only ended.
func (x *UserSession) BeforeWrite(c *resource.Change) error {
	if c.IsCreation() {
		x.Name, x.Username, x.Password, x.SignInCode = "", "", "", ""
		x.Parent = c.Caller.User
		x.State = loggedIn
		x.RemoteAddress = c.Caller.Remote
		x.LoginDateTime = c.Tx.Now()
		x.APITokenExpirationDateTime = c.Tx.Now().Add(SessionLife)
		if x.ReadOnly == nil {
			x.ReadOnly = new(bool)
		}
		user, err := c.Tx.Get(x.Parent)
		if err != nil {
			return err
		}
		x.Authenticator.ID = user.Ref("authenticator")
		// A user who now requires a certificate cannot sign in with a password any more.
		known, err := asUser(user)
		if err == nil && known.X509Required && !strings.HasPrefix(c.Caller.Credential, certificateOf) {
			err = errLogin
		}
		return err
	}
	old, ok := c.Old.(*UserSession)
	if !ok {
		return nil
	}
	state := x.State
	*x = *old // only the state can be changed
	x.State = state
	if x.State == old.State {
		return nil
	}
	if old.State != loggedIn {
		return problem.Conflict("SessionEnded", "state: the session is %s and cannot become %s", old.State, x.State)
	}
	switch {
	case x.State == loggedOut && c.Caller.User == x.Parent:
	case x.State == terminated && (c.Caller.Administrator || c.Caller.User == x.Parent):
	case (x.State == expired || x.State == timedOut || x.State == terminated) && c.Caller == (resource.Caller{}):
	case x.State == loggedOut || x.State == terminated:
		return problem.Forbidden("AccessDenied", "state: the session belongs to another user")
	default:
		return problem.Invalid("state", "must be LOGGED_OUT or TERMINATED")
	}
	x.LogoutDateTime = c.Tx.Now()
	return nil
}

// AfterWrite creates the token of a new session, and deletes the token of an ended one.
func (x *UserSession) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		if x.State == loggedIn {
			return nil
		}
		return closeSession(c.Tx, x.ID)
	}
	if err := limitSessions(c, x); err != nil {
		return err
	}
	policy, err := ServiceOf(c.API.Store).policies.get(c.Tx)
	if err != nil {
		return err
	}
	door := authz.APIInterface
	if c.Caller.Console {
		door = authz.ConsoleInterface
	}
	token, err := openSession(c.Tx, x.ID, x.Parent, c.Tx.Now().Add(min(SessionLife, policy.timeout)), door)
	if err != nil {
		return err
	}
	if c.Caller.Console { // only the cookie carries the credentials, scripts cannot read them
		c.Extra[resource.Cookie] = basicCredentials(c.Caller.Name, token)
		return nil
	}
	c.Extra["apiToken"] = token
	c.Extra["basicAuthenticationCredentials"] = basicCredentials(c.Caller.Name, token)
	return nil
}

// BeforeDelete deletes the session's token.
func (x *UserSession) BeforeDelete(c *resource.Change) error {
	return closeSession(c.Tx, x.ID)
}

// Maximum numbers of open sessions and of retained ended sessions of a user.
const (
	maxOpenSessions  = 64
	maxEndedSessions = 100
)

// sessionsOf returns the open and the ended sessions of a user, oldest first.
func sessionsOf(tx *store.Tx, user int64) (open, ended []int64, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("sessions"),
		store.HasParent(user)}},
		func(r *store.Resource) error {
			return store.Members(r.Body, func(name, raw []byte) error {
				switch {
				case string(name) != "state":
				case string(raw) == `"`+loggedIn+`"`:
					open = append(open, r.ID)
				default:
					ended = append(ended, r.ID)
				}
				return nil
			})
		})
	return open, ended, err
}

// endSessions sets the state of open sessions to an end state. Missing sessions are skipped.
func endSessions(c *resource.Change, ids []int64, state string) error {
	for _, id := range ids {
		row, err := c.Tx.Get(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		n := &resource.Change{Tx: c.Tx, API: c.API, SetFields: map[string]bool{"state": true}}
		if _, err := n.Change(row, func(o schema.Object) { o.(*UserSession).State = state }); err != nil {
			return err
		}
	}
	return nil
}

// limitSessions terminates the oldest open sessions and deletes the oldest ended sessions of a user beyond the limits.
func limitSessions(c *resource.Change, x *UserSession) error {
	n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("sessions"),
		store.HasParent(x.Parent)}})
	if err != nil || n <= maxOpenSessions {
		return err
	}
	open, ended, err := sessionsOf(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	if over := len(open) - maxOpenSessions; over > 0 {
		if err := endSessions(c, open[:over], terminated); err != nil {
			return err
		}
	}
	if over := len(ended) - maxEndedSessions; over > 0 {
		return removeSessions(c, ended[:over])
	}
	return nil
}

// removeSessions deletes sessions that have ended.
func removeSessions(c *resource.Change, ids []int64) error {
	found, err := c.Tx.Load(ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if row, ok := found[id]; ok {
			n := &resource.Change{Tx: c.Tx, API: c.API}
			if err := n.Delete(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeBatch is the number of sessions that one transaction deletes.
const removeBatch = 200

// RemoveSessions deletes the sessions that ended before a time, removeBatch per transaction, and returns their number.
func RemoveSessions(ctx context.Context, a *resource.API, update store.Updater, before time.Time) (removed int, err error) {
	limit := before.UTC().Format(time.RFC3339)
	for {
		n := 0
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
			var ids []int64
			if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("sessions"),
				store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"logoutDateTime"}}, Op: "lt", Value: limit}}, Limit: removeBatch},
				func(r *store.Resource) error {
					ids = append(ids, r.ID)
					return nil
				}); err != nil {
				return err
			}
			n = len(ids)
			return removeSessions(&resource.Change{Tx: tx, API: a}, ids)
		}); err != nil {
			return removed, err
		}
		if removed += n; n < removeBatch {
			return removed, nil
		}
	}
}

// currentSession returns the session of the caller's token.
func currentSession(c resource.Caller) (int64, error) {
	if c.Session == 0 {
		return 0, problem.NotFound("the request does not use the token of a session")
	}
	return c.Session, nil
}

// RequestToken returns the token of the current session from the Authorization header of the request, for public clients that read it back.
// It returns nil for cookies, so that scripts of a page cannot read the token.
func RequestToken(r *http.Request, c resource.Caller) map[string]string {
	scheme, token, err := header(r)
	if err != nil || c.Session == 0 || scheme == cookieScheme {
		return nil
	}
	if scheme == "basic" {
		if _, token, err = basic(token); err != nil {
			return nil
		}
	}
	if !strings.HasPrefix(token, sessionPrefix) {
		return nil
	}
	return map[string]string{"apiToken": token, "basicAuthenticationCredentials": basicCredentials(c.Name, token)}
}

// withoutSession returns the UserSession that sessions/current shows to a caller with a bearer token or a password. It has no row, and its
// id is null. Public clients read the user of their credentials there.
func withoutSession(c resource.Caller) schema.Object {
	x := &UserSession{State: loggedIn, RemoteAddress: c.Remote, ReadOnly: &c.ReadOnly, User: schema.Ref{ID: c.User}}
	x.Type, x.Parent = "UserSession", c.User
	return x
}

// ExpireSessions ends the sessions whose token has expired: EXPIRED a day after the login, TIMED_OUT after the session timeout. One manager
// runs it at a time; update must be the updater of its lease.
func ExpireSessions(ctx context.Context, a *resource.API, users *Service, update store.Updater) error {
	yes, err := users.HasExpired(ctx)
	if err != nil || !yes {
		return err
	}
	return update(ctx, store.Author{}, func(tx *store.Tx) error {
		sessions, err := expiredSessions(tx)
		if err != nil {
			return err
		}
		c := &resource.Change{Tx: tx, API: a}
		for _, session := range sessions {
			end, err := expiryOf(tx, session)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			state := timedOut
			if end <= tx.Now().Unix() {
				state = expired
			}
			if err := endSessions(c, []int64{session}, state); err != nil {
				return err
			}
		}
		return nil
	})
}

// login checks the credentials of a new session, from the body or from the Authorization header.
func login(ctx context.Context, a *resource.API, s resource.SignIn) (resource.Caller, error) {
	var name, password string
	var missing []string
	var code string
	for field, value := range map[string]*string{"username": &name, "password": &password, "signInCode": &code} {
		if raw, ok := s.Members[field]; ok {
			if json.Unmarshal(raw, value) != nil {
				return resource.Caller{}, problem.Invalid(field, "must be a string")
			}
		}
	}
	by := authz.APIInterface
	if s.Console {
		by = authz.ConsoleInterface
	}
	if code != "" {
		if name != "" || password != "" || s.Basic {
			return resource.Caller{}, problem.Invalid("signInCode", "cannot be combined with a name and a password")
		}
		s.Members["username"], s.Members["password"] = json.RawMessage(`""`), json.RawMessage(`""`)
		p, err := ServiceOf(a.Store).redeemLink(ctx, code, s.Remote, by)
		c := authz.CallerOf(p)
		c.Console = s.Console
		return c, err
	}
	if name == "" && password == "" && s.Basic {
		name, password = s.Name, s.Password
		s.Members["username"], s.Members["password"] = json.RawMessage(`""`), json.RawMessage(`""`)
	}
	if name == "" {
		missing = append(missing, "username")
	}
	if password == "" {
		missing = append(missing, "password")
	}
	if len(missing) > 0 {
		p := problem.BadRequest("MissingRequiredField", "required and missing: %s", strings.Join(missing, ", "))
		p.Fields = missing
		return resource.Caller{}, p
	}
	p, err := ServiceOf(a.Store).Login(ctx, name, password, s.Remote, by)
	c := authz.CallerOf(p)
	c.Console = s.Console
	return c, err
}
