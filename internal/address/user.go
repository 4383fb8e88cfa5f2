package address

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"portolan/internal/identity"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// User is a person or a program that signs in.
type User struct {
	resource.Head `head:"post,nonblank"`
	// Password is the user's password; it is written and never shown.
	Password string `api:"password,writeOnly,nonblank"`
	// Authenticator is what checks the user's password; null means Portolan itself.
	Authenticator resource.Ref `api:"authenticator" ref:"Authenticator"`
	// Email is the user's mail address.
	Email string `api:"email,required,nonblank"`
	// PhoneNumber is the user's telephone number.
	PhoneNumber string `api:"phoneNumber"`
	// SecurityPrivilege is what the user may do about access rights; ADMINISTRATOR may do everything.
	SecurityPrivilege string `api:"securityPrivilege,required" enum:"NO_ACCESS|VIEW_MY_ACCESS_RIGHTS|VIEW_OTHERS_ACCESS_RIGHTS|CHANGE_ACCESS_RIGHTS|ADD_ACCESS_RIGHTS|DELETE_ACCESS_RIGHTS|ADMINISTRATOR"`
	// HistoryPrivilege is what the user sees of the history.
	HistoryPrivilege string `api:"historyPrivilege,put,notNull" enum:"HIDE|VIEW_HISTORY_LIST|ADMINISTRATOR" default:"HIDE"`
	// AccessType says which doors are open to the user.
	AccessType string `api:"accessType,required" enum:"GUI|API|GUI_AND_API"`
	// PasswordResetRequired says whether the user must change the password.
	PasswordResetRequired bool `api:"passwordResetRequired,put"`
	// AccountLocked says whether the user is locked out.
	AccountLocked bool `api:"accountLocked,put"`
	// X509Required says whether the user needs a certificate.
	X509Required bool `api:"x509Required,put"`
	// AdministrativeAccessLevels are the user's rights on the manager's own parts.
	AdministrativeAccessLevels map[string]string `api:"administrativeAccessLevels,readOnly"`

	// hash is the password's hash, computed by Check.
	hash string
}

// Check refuses a name that another user has and a bad password, and keeps at least one usable
// administrator.
func (x *User) Check(c *resource.Change) error {
	if err := uniqueName(c, "users", 0, x.Name); err != nil {
		return err
	}
	if c.Given["password"] && x.Password != "" {
		if err := identity.CheckPassword(x.Password); err != nil {
			return err
		}
		x.hash = identity.HashPassword(x.Password)
		x.Password = ""
	}
	if old, ok := c.Old.(*User); ok && old.rules() && !x.rules() {
		return lastAdministrator(c, x.ID)
	}
	return nil
}

// rules reports whether the user can administer.
func (x *User) rules() bool {
	return x.SecurityPrivilege == "ADMINISTRATOR" && !x.AccountLocked && x.AccessType != "GUI"
}

// lastAdministrator refuses to go on without another usable administrator.
func lastAdministrator(c *resource.Change, id int64) error {
	body := func(name string) store.Field { return store.Field{Kind: store.Text, Path: []string{name}} }
	others, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{
		inCollection("users"), store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "ne", Value: id},
		store.Compare{Field: body("securityPrivilege"), Op: "eq", Value: "ADMINISTRATOR"},
		store.Compare{Field: store.Field{Kind: store.Bool, Path: []string{"accountLocked"}}, Op: "eq", Value: false},
		store.Compare{Field: body("accessType"), Op: "ne", Value: "GUI"},
	}})
	if err != nil {
		return err
	}
	if others == 0 {
		return problem.Conflict("ResourceInUse", "user %d is the last administrator who can sign in", id)
	}
	return nil
}

// Settle sets the password.
func (x *User) Settle(c *resource.Change) error {
	if x.hash == "" {
		return nil
	}
	return identity.SetPassword(c.Tx, x.ID, x.hash)
}

// Release takes the user's credentials away.
func (x *User) Release(c *resource.Change) error {
	if x.rules() {
		if err := lastAdministrator(c, x.ID); err != nil {
			return err
		}
	}
	return identity.Forget(c.Tx, x.ID)
}

// States of a session.
const (
	loggedIn   = "LOGGED_IN"
	loggedOut  = "LOGGED_OUT"
	expired    = "EXPIRED"
	terminated = "TERMINATED"
)

// UserSession is the time between a user's login and logout.
type UserSession struct {
	resource.Head `head:"readOnly"`
	// Username is the name of the user who logs in.
	Username string `api:"username,post,writeOnly,createOnly"`
	// Password is the password of the user who logs in.
	Password string `api:"password,post,writeOnly,createOnly"`
	// APIToken is the session's token: the password of Basic credentials. It is shown once, in the
	// answer to the login.
	APIToken string `api:"apiToken,transient"`
	// APITokenExpirationDateTime is when the token ends.
	APITokenExpirationDateTime time.Time `api:"apiTokenExpirationDateTime,readOnly"`
	// BasicAuthenticationCredentials is what follows "Basic " in the Authorization header; shown once.
	BasicAuthenticationCredentials string `api:"basicAuthenticationCredentials,transient"`
	// RemoteAddress is where the login came from.
	RemoteAddress string `api:"remoteAddress,readOnly"`
	// ReadOnly says whether the session may only read.
	ReadOnly *bool `api:"readOnly"`
	// LoginDateTime is when the session began.
	LoginDateTime time.Time `api:"loginDateTime,readOnly"`
	// LogoutDateTime is when the session ended.
	LogoutDateTime time.Time `api:"logoutDateTime,readOnly"`
	// State is the state of the session; LOGGED_OUT ends one's own, TERMINATED another's.
	State string `api:"state" enum:"LOGGED_IN|LOGGED_OUT|TIMED_OUT|EXPIRED|LOGIN_FAIL|TERMINATED"`
	// Response is what an external authenticator answered.
	Response string `api:"response"`
	// User is the user of the session.
	User resource.Ref `api:"user,readOnly" column:"parent" ref:"User"`
	// Authenticator is what checked the password; null means Portolan itself.
	Authenticator resource.Ref `api:"authenticator,readOnly" ref:"Authenticator"`
}

// Check starts a session, or ends one.
func (x *UserSession) Check(c *resource.Change) error {
	if c.Creates() {
		x.Name, x.Username, x.Password = "", "", ""
		x.Parent = c.Caller.User
		x.State = loggedIn
		x.RemoteAddress = c.Remote
		x.LoginDateTime = c.Tx.Now()
		x.APITokenExpirationDateTime = c.Tx.Now().Add(identity.SessionLife)
		if x.ReadOnly == nil {
			x.ReadOnly = new(bool)
		}
		return nil
	}
	old, ok := c.Old.(*UserSession)
	if !ok {
		return nil
	}
	state := x.State
	*x = *old // nothing but the state can be changed
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
	case x.State == expired && c.Caller == (resource.Caller{}):
	case x.State == loggedOut || x.State == terminated:
		return problem.New(http.StatusForbidden, "AccessDenied", "state: the session is another user's")
	default:
		return problem.Invalid("state", "a session can be LOGGED_OUT or TERMINATED")
	}
	x.LogoutDateTime = c.Tx.Now()
	return nil
}

// Settle makes the token of a new session, and takes that of an ended one away.
func (x *UserSession) Settle(c *resource.Change) error {
	if !c.Creates() {
		if x.State == loggedIn {
			return nil
		}
		return identity.CloseSession(c.Tx, x.ID)
	}
	token, err := identity.OpenSession(c.Tx, x.ID, x.Parent, x.APITokenExpirationDateTime)
	if err != nil {
		return err
	}
	c.Extra["apiToken"] = token
	c.Extra["basicAuthenticationCredentials"] = identity.BasicCredentials(c.Caller.Name, token)
	return nil
}

// Release takes the session's token away.
func (x *UserSession) Release(c *resource.Change) error { return identity.CloseSession(c.Tx, x.ID) }

// Transaction is one change, as the history keeps it: all of it happened, at one moment.
type Transaction struct {
	resource.Head `head:"readOnly"`
	// TransactionType is the kind of a transaction that is asked for: UNDO takes another one back.
	TransactionType string `api:"transactionType,required" enum:"UNDO"`
	// TransactionID is the transaction that is to be taken back.
	TransactionID int64 `api:"transactionId,required,writeOnly" min:"1"`
	// Operation is what was done, such as ADD_IPV4_NETWORK.
	Operation string `api:"operation,readOnly"`
	// Description says it in a sentence.
	Description string `api:"description,readOnly"`
	// Comment is what the client sent as x-bcn-change-control-comment.
	Comment string `api:"comment,readOnly"`
	// CreationDateTime is when it was done.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// User is who did it; null for the manager itself.
	User resource.Ref `api:"user,readOnly" column:"parent" ref:"User"`
	// RevertingTransaction is the transaction that undid it.
	RevertingTransaction resource.Ref `api:"revertingTransaction,readOnly" ref:"Transaction"`
}

// undo takes back the transaction that a new one names.
func undo(c *resource.Change, o resource.Object) error {
	t, ok := o.(*Transaction)
	if !ok {
		return fmt.Errorf("a transaction is a %T", o)
	}
	return c.Undo(t.TransactionID, strings.EqualFold(c.Header.Get("x-bcn-force-undo"), "true"))
}

// ownSessions lets everyone but administrators see their own sessions only.
func ownSessions(c resource.Caller) store.Expr {
	if c.Administrator {
		return nil
	}
	return store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: c.User}
}

// currentSession is the session of the caller's token.
func currentSession(c resource.Caller) (int64, error) {
	if c.Session == 0 {
		return 0, problem.NotFound("the request was not sent with a session's token")
	}
	return c.Session, nil
}
