package access

import (
	"encoding/json"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
)

// registerGroups declares the collection of groups, and who is in them.
func registerGroups(r *resource.Registry) {
	r.Collection(resource.Collection{Name: groupsName, Parents: []string{""}, Guard: resource.Managed}, &UserGroup{})
	r.Links(resource.Links{Name: "groups", From: []string{"users"}, To: "groups", Back: "users"})
}

// groupsName is the name of the collection.
const groupsName = "groups"

// groupType is the type of groups, whose rows are read outside of a request.
var groupType = schema.Declare(&UserGroup{})

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
	Authenticator schema.Ref `api:"authenticator" ref:"LDAPAuthenticator|TACACSPlusAuthenticator|SAMLIdentityProvider|OAuthAuthorizationServer"`
}

// Validate refuses what nothing acts upon yet.
func (x *UserGroup) Validate(*resource.Change) error {
	if x.GroupType != "ADDRESS_MANAGER" || x.Authenticator.ID != 0 {
		return problem.NotYet("groupType: groups that an authenticator knows are not built yet; ADDRESS_MANAGER is")
	}
	return nil
}
