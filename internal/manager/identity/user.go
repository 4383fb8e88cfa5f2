package identity

import (
	"context"
	"encoding/json"
	"net/mail"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
)

// registerUsers declares the collection of users.
func registerUsers(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "users", Parents: []string{""}, Secret: true, Guard: resource.Accounts,
		Beforehand: hashPassword}, &User{})
}

// User is a person or a program that signs in.
type User struct {
	schema.Head `head:"post,nonblank" unique:"all"`
	// Password is the user's password; it is written and never shown.
	Password string `api:"password,writeOnly,nonblank"`
	// Authenticator is what checks the user's password, or issues the user's tokens; null means Portolan itself.
	Authenticator schema.Ref `api:"authenticator" ref:"AddressManagerAuthenticator|LDAPAuthenticator|KerberosAuthenticator|RADIUSAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer" onDelete:"refuse"`
	// Email is the user's mail address.
	Email string `api:"email,required,nonblank,index" example:"ada@example.net"`
	// PhoneNumber is the user's telephone number.
	PhoneNumber string `api:"phoneNumber"`
	// SecurityPrivilege is what the user may do about access rights; ADMINISTRATOR may do everything.
	SecurityPrivilege string `api:"securityPrivilege,required" enum:"NO_ACCESS|VIEW_MY_ACCESS_RIGHTS|VIEW_OTHERS_ACCESS_RIGHTS|CHANGE_ACCESS_RIGHTS|ADD_ACCESS_RIGHTS|DELETE_ACCESS_RIGHTS|ADMINISTRATOR"`
	// HistoryPrivilege is what the user sees of the history.
	HistoryPrivilege string `api:"historyPrivilege,put,notNull" enum:"HIDE|VIEW_HISTORY_LIST|ADMINISTRATOR" default:"HIDE"`
	// AccessType says which doors are open to the user.
	AccessType string `api:"accessType,required" enum:"GUI|API|GUI_AND_API" example:"GUI_AND_API"`
	// PasswordResetRequired says whether the user must change the password.
	PasswordResetRequired bool `api:"passwordResetRequired,put"`
	// AccountLocked says whether the user is locked out.
	AccountLocked bool `api:"accountLocked,put"`
	// X509Required says whether the user signs in with a certificate, and in no other way.
	X509Required bool `api:"x509Required,put"`
	// AdministrativeAccessLevels are the user's rights on the manager's own parts.
	AdministrativeAccessLevels map[string]string `api:"administrativeAccessLevels,readOnly"`

	// AdministrativeAccessRights are the same, as release 9.6 has them.
	AdministrativeAccessRights json.RawMessage `api:"administrativeAccessRights,readOnly,list"`

	// hash is the password's hash, computed by BeforeWrite; moved says that somebody else knows the user from now on.
	hash  string
	moved bool
}

// BeforeWrite refuses a name that another user has and a bad password, and keeps at least one usable
// administrator. Who is no administrator may set the own password, and nothing else.
func (x *User) BeforeWrite(c *resource.Change) error {
	if c.Caller.MustReset && (len(c.Given) != 1 || !c.Given["password"] || x.Password == "") {
		return problem.Forbidden("PasswordResetRequired", "%s may set a new password, and nothing else before", c.Caller.Name)
	}
	if !authz.ManagesUsers(c) && (len(c.Given) != 1 || !c.Given["password"]) {
		return problem.Forbidden("AccessDenied",
			"%s may set the own password (PATCH with the field password alone), and no other field", c.Caller.Name)
	}
	if x.X509Required && (c.Creates() || c.Given["x509Required"]) {
		taken, err := certificatesTaken(c, 0)
		if err == nil && !taken {
			err = problem.Invalid("x509Required", "would keep the user out: there is no X509Authenticator, which verifies certificates")
		}
		if err != nil {
			return err
		}
	}
	if c.Creates() || c.Given["email"] {
		if !isMail(x.Email) {
			return problem.Field("InvalidEmailAddress", "email", "%q is no mail address such as ada@example.net (RFC 5322)", x.Email)
		}
	}
	if err := x.authenticates(c); err != nil {
		return err
	}
	if c.Given["password"] && x.Password != "" {
		if err := CheckPassword(x.Password); err != nil {
			return err
		}
		if err := meetsPolicy(c, x.Password); err != nil {
			return err
		}
		if err := x.takePassword(c); err != nil {
			return err
		}
	}
	if old, ok := c.Old.(*User); ok {
		was, err := old.administers(c.Tx)
		if err != nil {
			return err
		}
		is, err := x.administers(c.Tx)
		if err == nil && was && !is {
			err = lastAdministrator(c, x.ID)
		}
		return err
	}
	return nil
}

// isMail reports whether a text is a mail address.
func isMail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text
}

// authenticates refuses a password of somebody whom an authenticator knows, and an authenticator that nobody signs in by.
func (x *User) authenticates(c *resource.Change) error {
	own, err := x.isOwn(c.Tx)
	if err != nil {
		return err
	}
	if !own && x.Password != "" {
		return problem.Field("AuthenticatorMismatch", "password", "is not kept here: the authenticator of the user knows it")
	}
	old, ok := c.Old.(*User)
	x.moved = ok && old.Authenticator.ID != x.Authenticator.ID
	return nil
}

// leave ends what the user had by the authenticator before: the password here, the sessions, and the groups whose members others know.
func (x *User) leave(c *resource.Change) error {
	c.Tx.Touch(topic)
	if err := RevokeTokens(c.Tx, x.ID); err != nil {
		return err
	}
	if err := c.Tx.Write("DELETE FROM credential WHERE user_id = ? AND kind IN (?, ?, ?)", x.ID, kindPassword, kindSession,
		kindLink); err != nil {
		return err
	}
	open, _, err := sessionsOf(c.Tx, x.ID)
	if err == nil {
		err = endSessions(c, open, terminated)
	}
	if err != nil {
		return err
	}
	in, err := c.Tx.Links(x.ID, "groups")
	if err != nil {
		return err
	}
	var gone []int64
	if err := eachRemoteGroup(c.Tx, func(row *store.Resource, authenticator int64) {
		if authenticator != x.Authenticator.ID && slices.Contains(in, row.ID) {
			gone = append(gone, row.ID)
		}
	}); err != nil {
		return err
	}
	return ServiceOf(c.API.Store).regroup(c, x.ID, nil, gone)
}

// isOwn reports whether the manager itself knows the user's password.
func (x *User) isOwn(tx *store.Tx) (bool, error) {
	if x.Authenticator.ID == 0 {
		return true, nil
	}
	head, err := tx.Head(x.Authenticator.ID)
	if store.IsNotFound(err) { // which is refused elsewhere
		return true, nil
	}
	return err == nil && (head.Type == ownType || head.Collection != authenticators), err
}

// administers reports whether the user can administer whoever else is away: by a password that the manager itself knows.
func (x *User) administers(tx *store.Tx) (bool, error) {
	if !x.rules() || x.X509Required {
		return false, nil
	}
	return x.isOwn(tx)
}

// takePassword turns the password that was given into its hash. A user who sets its own is not asked for another
// one any more, and one who must set a new one sets another one.
func (x *User) takePassword(c *resource.Change) error {
	password := x.Password
	x.Password = ""
	x.hash, _ = c.Prepared.(string)
	if x.hash == "" { // no request, or one that could not be prepared
		x.hash = HashPassword(password, c.API.Store.Hurry())
	}
	if x.ID != c.Caller.User || x.ID == 0 || c.Given["passwordResetRequired"] {
		return nil
	}
	x.PasswordResetRequired = false
	if !c.Caller.MustReset {
		return nil
	}
	same, err := HasPassword(c.Tx, x.ID, password)
	if err == nil && same {
		err = problem.Invalid("password", "is the one that you have; set another one")
	}
	return err
}

// hashPassword hashes the password of a request before its transaction, few at a time.
func hashPassword(ctx context.Context, a *resource.API, members map[string]json.RawMessage) (any, error) {
	var password string
	if json.Unmarshal(members["password"], &password) != nil || CheckPassword(password) != nil {
		return nil, nil //nolint:nilerr // the rules will say what is wrong
	}
	return ServiceOf(a.Store).Hash(ctx, password)
}

// rules reports whether the user can administer.
func (x *User) rules() bool {
	return x.role() == authz.Administrator && !x.AccountLocked
}

// lastAdministrator refuses to go on without another usable administrator.
func lastAdministrator(c *resource.Change, id int64) error {
	another := false
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("users")}, func(r *store.Resource) error {
		x, err := asUser(r)
		if err != nil || another || x.ID == id {
			return err
		}
		another, err = x.administers(c.Tx)
		return err
	}); err != nil {
		return err
	}
	if !another {
		return problem.InUse("user %d is the last administrator who can sign in by a password that is kept here", id)
	}
	return nil
}

// AfterWrite sets the password, and ends the sessions that were begun with the one before.
func (x *User) AfterWrite(c *resource.Change) error {
	if x.moved {
		if err := x.leave(c); err != nil {
			return err
		}
	}
	if old, ok := c.Old.(*User); ok && x.X509Required && !old.X509Required { // who came in otherwise comes in again
		open, _, err := sessionsOf(c.Tx, x.ID)
		if err == nil {
			err = endSessions(c, open, terminated)
		}
		if err != nil {
			return err
		}
	}
	if x.hash == "" {
		return nil
	}
	if err := SetPassword(c.Tx, x.ID, x.hash); err != nil {
		return err
	}
	if !c.Creates() && c.Caller.User != x.ID { // somebody else resets it
		if err := RevokeTokens(c.Tx, x.ID); err != nil {
			return err
		}
	}
	open, _, err := sessionsOf(c.Tx, x.ID)
	if err != nil {
		return err
	}
	return endSessions(c, open, terminated)
}

// BeforeDelete takes the user's credentials away.
func (x *User) BeforeDelete(c *resource.Change) error {
	last, err := x.administers(c.Tx)
	if err == nil && last {
		err = lastAdministrator(c, x.ID)
	}
	if err != nil {
		return err
	}
	return Forget(c.Tx, x.ID)
}

// The types whose rows are read outside of a request.
var (
	userType    = schema.Declare(&User{})
	sessionType = schema.Declare(&UserSession{})
)

// userOf reads a user; store.ErrNotFound where there is none.
func userOf(tx *store.Tx, id int64) (*User, error) {
	row, err := tx.Get(id)
	if err != nil {
		return nil, err
	}
	return asUser(row)
}

// asUser gives the user of a row.
func asUser(row *store.Resource) (*User, error) {
	if row.Type != userType.Name {
		return nil, store.ErrNotFound
	}
	o, err := userType.Object(row)
	if err != nil {
		return nil, err
	}
	return o.(*User), nil
}

// usable reports whether the user can come in by a door.
func (x *User) usable(by authz.Door) bool {
	return !x.AccountLocked && (x.AccessType == string(by) || x.AccessType == "GUI_AND_API")
}

// enters reports whether the user comes in by a door without a certificate.
func (x *User) enters(by authz.Door) bool { return x.usable(by) && !x.X509Required }

func (x *User) role() string {
	if x.SecurityPrivilege == "ADMINISTRATOR" {
		return authz.Administrator
	}
	return authz.Analyst
}

// principal is the user as who asks.
func (x *User) principal() authz.Principal {
	return authz.Principal{User: x.ID, Name: x.Name, Role: x.role(), History: x.HistoryPrivilege, Security: x.SecurityPrivilege,
		MustReset: x.PasswordResetRequired}
}
