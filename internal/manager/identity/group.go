package identity

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerGroups declares the collection of groups, and who is in them.
func registerGroups(r *resource.Registry) {
	r.Collection(resource.Collection{Name: groupsName, Parents: []string{""}, Guard: resource.Managed, Beforehand: lookForGroup},
		&UserGroup{})
	r.Links(resource.Links{Name: "groups", From: []string{"users"}, To: "groups", Back: "users", Joined: notByHand})
}

// groupsName is the name of the collection.
const groupsName = "groups"

// UserGroup is a group of users.
type UserGroup struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	// GroupType is where the group is known: here, or by an authenticator.
	GroupType string `api:"groupType,put,notNull" enum:"ADDRESS_MANAGER|LDAP|SSO|TACACS_PLUS" default:"ADDRESS_MANAGER"`
	// Description says who is in it.
	Description string `api:"description,nonblank" length:"4000"`
	// AdministratorPrivilege says whether its members may do everything.
	AdministratorPrivilege bool `api:"administratorPrivilege,put"`
	// AdministrativeAccessRights are the group's rights on the manager's own parts; there are none.
	AdministrativeAccessRights json.RawMessage `api:"administrativeAccessRights,readOnly,list"`
	// Authenticator is the authenticator that knows the group; null for groups that are known here.
	Authenticator schema.Ref `api:"authenticator" ref:"LDAPAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer" onDelete:"refuse"`
}

// notByHand refuses to put a user into a group whose members an authenticator knows.
func notByHand(c *resource.Change, _, target *store.Resource) error {
	if target.Collection == groupsName && target.Ref("authenticator") != 0 {
		return problem.Forbidden("OperationNotPermitted", "the members of group %s come from its authenticator, when they sign in",
			problem.About(target.ID, target.Name))
	}
	return nil
}

// Validate refuses a group that no authenticator knows the members of.
func (x *UserGroup) Validate(c *resource.Change) error {
	if x.GroupType == "ADDRESS_MANAGER" {
		if x.Authenticator.ID != 0 {
			return problem.Invalid("authenticator", "is null of a group whose members are said here (groupType ADDRESS_MANAGER)")
		}
		return nil
	}
	known := groupKinds[x.GroupType]
	if x.Authenticator.ID == 0 {
		return problem.Join(schema.MissingFields([]string{"authenticator"}))
	}
	head, err := c.Tx.Head(x.Authenticator.ID)
	if err == nil && !slices.Contains(known, head.Type) {
		err = problem.Field("AuthenticatorMismatch", "authenticator", "of a group of the type %s is an %s", x.GroupType,
			strings.Join(known, " or an "))
	}
	return err
}
