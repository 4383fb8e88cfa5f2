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

// registerGroups declares the collection of groups and the membership links.
func registerGroups(r *resource.Registry) {
	r.Collection(resource.Collection{Name: groupsName, Parents: []string{""}, Guard: resource.Managed, Beforehand: checkGroupExists},
		&UserGroup{})
	r.Links(resource.Links{Name: "groups", From: []string{"users"}, To: "groups", Back: "users", Joined: rejectManualMembers})
}

// groupsName is the name of the collection.
const groupsName = "groups"

// UserGroup is a group of users.
type UserGroup struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	// GroupType is the origin of the group: ADDRESS_MANAGER, or the kind of authenticator.
	GroupType string `api:"groupType,put,notNull" enum:"ADDRESS_MANAGER|LDAP|SSO|TACACS_PLUS" default:"ADDRESS_MANAGER"`
	// Description describes the members.
	Description string `api:"description,nonblank" length:"4000"`
	// AdministratorPrivilege makes all members administrators.
	AdministratorPrivilege bool `api:"administratorPrivilege,put"`
	// AdministrativeAccessRights are the group's rights on the manager itself; always empty.
	AdministrativeAccessRights json.RawMessage `api:"administrativeAccessRights,readOnly,list"`
	// Authenticator is the authenticator that the group belongs to; null for groups of the manager.
	Authenticator schema.Ref `api:"authenticator" ref:"LDAPAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer" onDelete:"refuse"`
}

// rejectManualMembers rejects manual changes to the members of a group that belongs to an authenticator.
func rejectManualMembers(c *resource.Change, _, target *store.Resource) error {
	if target.Collection == groupsName && target.Ref("authenticator") != 0 {
		return problem.Forbidden("OperationNotPermitted", "the members of group %s come from its authenticator, when they sign in",
			problem.Describe(target.ID, target.Name))
	}
	return nil
}

// Validate requires an authenticator of the right type, except for groups of the manager.
func (x *UserGroup) Validate(c *resource.Change) error {
	if x.GroupType == "ADDRESS_MANAGER" {
		if x.Authenticator.ID != 0 {
			return problem.Invalid("authenticator", "must be null for a group with local members (groupType ADDRESS_MANAGER)")
		}
		return nil
	}
	known := groupKinds[x.GroupType]
	if x.Authenticator.ID == 0 {
		return problem.Join(schema.MissingFields([]string{"authenticator"}))
	}
	head, err := c.Tx.Head(x.Authenticator.ID)
	if err == nil && !slices.Contains(known, head.Type) {
		err = problem.Field("AuthenticatorMismatch", "authenticator", "must be an authenticator for a group of the type %s: %s", x.GroupType,
			strings.Join(known, " or an "))
	}
	return err
}
