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
	// Password is the user's password. It is write-only.
	Password string `api:"password,writeOnly,nonblank"`
	// Authenticator is the authenticator that checks the user's password or issues the user's tokens; null means Portolan itself.
	Authenticator schema.Ref `api:"authenticator" ref:"AddressManagerAuthenticator|LDAPAuthenticator|KerberosAuthenticator|RADIUSAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer" onDelete:"refuse"`
	// Email is the user's mail address.
	Email string `api:"email,required,nonblank,index" example:"ada@example.net"`
	// PhoneNumber is the user's telephone number.
	PhoneNumber string `api:"phoneNumber"`
	// SecurityPrivilege is the user's privilege for access rights. ADMINISTRATOR may do everything.
	SecurityPrivilege string `api:"securityPrivilege,required" enum:"NO_ACCESS|VIEW_MY_ACCESS_RIGHTS|VIEW_OTHERS_ACCESS_RIGHTS|CHANGE_ACCESS_RIGHTS|ADD_ACCESS_RIGHTS|DELETE_ACCESS_RIGHTS|ADMINISTRATOR"`
	// HistoryPrivilege is the user's access to the history.
	HistoryPrivilege string `api:"historyPrivilege,put,notNull" enum:"HIDE|VIEW_HISTORY_LIST|ADMINISTRATOR" default:"HIDE"`
	// AccessType selects the interfaces where the user may sign in.
	AccessType string `api:"accessType,required" enum:"GUI|API|GUI_AND_API" example:"GUI_AND_API"`
	// PasswordResetRequired requires the user to set a new password.
	PasswordResetRequired bool `api:"passwordResetRequired,put"`
	// AccountLocked locks the account: the user cannot sign in.
	AccountLocked bool `api:"accountLocked,put"`
	// X509Required restricts sign-in to client certificates.
	X509Required bool `api:"x509Required,put"`
	// AdministrativeAccessLevels are the user's rights on the manager itself.
	AdministrativeAccessLevels map[string]string `api:"administrativeAccessLevels,readOnly"`

	// AdministrativeAccessRights are the user's rights on the manager itself, in the form of release 9.6.
	AdministrativeAccessRights json.RawMessage `api:"administrativeAccessRights,readOnly,list"`

	// hash is the password hash, computed by BeforeWrite. authenticatorChanged is set if the write changes the authenticator.
	hash                 string
	authenticatorChanged bool
}

// BeforeWrite validates the user. A caller who does not manage users may only set the own password. At least one administrator with a local
// password must remain.
func (x *User) BeforeWrite(c *resource.Change) error {
	if c.Caller.MustReset && (len(c.SetFields) != 1 || !c.SetFields["password"] || x.Password == "") {
		return problem.Forbidden("PasswordResetRequired", "%s must set a new password first", c.Caller.Name)
	}
	if !authz.ManagesUsers(c) && (len(c.SetFields) != 1 || !c.SetFields["password"]) {
		return problem.Forbidden("AccessDenied",
			"%s may only change the own password (PATCH with only the field password)", c.Caller.Name)
	}
	if x.X509Required && (c.IsCreation() || c.SetFields["x509Required"]) {
		taken, err := hasCertificateAuthenticator(c, 0)
		if err == nil && !taken {
			err = problem.Invalid("x509Required", "would lock out the user: create an X509Authenticator first, to verify certificates")
		}
		if err != nil {
			return err
		}
	}
	if c.IsCreation() || c.SetFields["email"] {
		if !isMail(x.Email) {
			return problem.Field("InvalidEmailAddress", "email", "must be a mail address such as ada@example.net, not %q (RFC 5322)", x.Email)
		}
	}
	if err := x.checkAuthenticator(c); err != nil {
		return err
	}
	if c.SetFields["password"] && x.Password != "" {
		if err := CheckPassword(x.Password); err != nil {
			return err
		}
		if err := checkPolicy(c, x.Password); err != nil {
			return err
		}
		if err := x.applyPassword(c); err != nil {
			return err
		}
	}
	if old, ok := c.Old.(*User); ok {
		was, err := old.isLocalAdministrator(c.Tx)
		if err != nil {
			return err
		}
		is, err := x.isLocalAdministrator(c.Tx)
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

// checkAuthenticator rejects a password for a user of an external authenticator, and records whether the authenticator changes.
func (x *User) checkAuthenticator(c *resource.Change) error {
	own, err := x.isLocal(c.Tx)
	if err != nil {
		return err
	}
	if !own && x.Password != "" {
		return problem.Field("AuthenticatorMismatch", "password", "is not stored here: the authenticator of the user manages it")
	}
	old, ok := c.Old.(*User)
	x.authenticatorChanged = ok && old.Authenticator.ID != x.Authenticator.ID
	return nil
}

// revokeAccess deletes the user's credentials, ends the sessions, and removes the user from groups of other authenticators. It is called
// when the authenticator changes.
func (x *User) revokeAccess(c *resource.Change) error {
	c.Tx.Touch(topic)
	if err := revokeTokens(c.Tx, x.ID); err != nil {
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
	return ServiceOf(c.API.Store).updateGroups(c, x.ID, nil, gone)
}

// isLocal reports whether the manager itself checks the user's password.
func (x *User) isLocal(tx *store.Tx) (bool, error) {
	if x.Authenticator.ID == 0 {
		return true, nil
	}
	head, err := tx.Head(x.Authenticator.ID)
	if store.IsNotFound(err) { // another rule rejects it
		return true, nil
	}
	return err == nil && (head.Type == ownType || head.Collection != authenticators), err
}

// isLocalAdministrator reports whether the user can administer without an external authenticator: with a password that the manager checks.
func (x *User) isLocalAdministrator(tx *store.Tx) (bool, error) {
	if !x.isActiveAdministrator() || x.X509Required {
		return false, nil
	}
	return x.isLocal(tx)
}

// applyPassword replaces the given password by its hash. A user who sets the own password clears passwordResetRequired. A user who must set
// a new password has to choose a different one.
func (x *User) applyPassword(c *resource.Change) error {
	password := x.Password
	x.Password = ""
	x.hash, _ = c.Prepared.(string)
	if x.hash == "" { // the change is not a request, or hashPassword was skipped
		x.hash = HashPassword(password, c.API.Store.Speedup())
	}
	if x.ID != c.Caller.User || x.ID == 0 || c.SetFields["passwordResetRequired"] {
		return nil
	}
	x.PasswordResetRequired = false
	if !c.Caller.MustReset {
		return nil
	}
	same, err := hasPassword(c.Tx, x.ID, password)
	if err == nil && same {
		err = problem.Invalid("password", "must differ from the current password")
	}
	return err
}

// hashPassword hashes the password of a request before its transaction, a few at a time.
func hashPassword(ctx context.Context, a *resource.API, members map[string]json.RawMessage) (any, error) {
	var password string
	if json.Unmarshal(members["password"], &password) != nil || CheckPassword(password) != nil {
		return nil, nil //nolint:nilerr // the rules report the error
	}
	return ServiceOf(a.Store).Hash(ctx, password)
}

// isActiveAdministrator reports whether the user is an administrator and not locked.
func (x *User) isActiveAdministrator() bool {
	return x.role() == authz.Administrator && !x.AccountLocked
}

// lastAdministrator returns an error if no other local administrator exists besides the user id.
func lastAdministrator(c *resource.Change, id int64) error {
	another := false
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("users")}, func(r *store.Resource) error {
		x, err := asUser(r)
		if err != nil || another || x.ID == id {
			return err
		}
		another, err = x.isLocalAdministrator(c.Tx)
		return err
	}); err != nil {
		return err
	}
	if !another {
		return problem.InUse("user %d is the last administrator with a local password", id)
	}
	return nil
}

// AfterWrite stores the password hash and ends the sessions that were started with the old credentials.
func (x *User) AfterWrite(c *resource.Change) error {
	if x.authenticatorChanged {
		if err := x.revokeAccess(c); err != nil {
			return err
		}
	}
	if old, ok := c.Old.(*User); ok && x.X509Required && !old.X509Required { // sessions without a certificate end
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
	if !c.IsCreation() && c.Caller.User != x.ID { // another user resets it
		if err := revokeTokens(c.Tx, x.ID); err != nil {
			return err
		}
	}
	open, _, err := sessionsOf(c.Tx, x.ID)
	if err != nil {
		return err
	}
	return endSessions(c, open, terminated)
}

// BeforeDelete deletes the user's credentials.
func (x *User) BeforeDelete(c *resource.Change) error {
	last, err := x.isLocalAdministrator(c.Tx)
	if err == nil && last {
		err = lastAdministrator(c, x.ID)
	}
	if err != nil {
		return err
	}
	return Forget(c.Tx, x.ID)
}

// Types whose rows are read outside of a request.
var (
	userType    = schema.Declare(&User{})
	sessionType = schema.Declare(&UserSession{})
)

// userOf reads a user. It returns store.ErrNotFound if the user does not exist.
func userOf(tx *store.Tx, id int64) (*User, error) {
	row, err := tx.Get(id)
	if err != nil {
		return nil, err
	}
	return asUser(row)
}

// asUser returns the user in a row.
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

// usable reports whether the user may sign in at an interface.
func (x *User) usable(by authz.Interface) bool {
	return !x.AccountLocked && (x.AccessType == string(by) || x.AccessType == "GUI_AND_API")
}

// canSignIn reports whether the user may sign in at an interface without a client certificate.
func (x *User) canSignIn(by authz.Interface) bool { return x.usable(by) && !x.X509Required }

func (x *User) role() string {
	if x.SecurityPrivilege == "ADMINISTRATOR" {
		return authz.Administrator
	}
	return authz.Analyst
}

// principal returns the user as a principal.
func (x *User) principal() authz.Principal {
	return authz.Principal{User: x.ID, Name: x.Name, Role: x.role(), History: x.HistoryPrivilege, Security: x.SecurityPrivilege,
		MustReset: x.PasswordResetRequired}
}
