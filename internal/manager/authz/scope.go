package authz

import (
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
)

// Scopes restrict a token or key set, in addition to its role and the rights of its user. They are sorted and separated by blanks:
// ScopeAddress and ScopeFleet for a whole API, and names of collections of the address API (ScopeNames). The scope of a collection allows
// changing its resources and reading the address API. Empty means everything.
type Scopes string

// Scopes of whole APIs.
const (
	ScopeAddress = "address"
	ScopeFleet   = "fleet"
)

// ScopeNames returns the collections of an API that a token can be restricted to. Collections that would give access to more than
// themselves, such as users, access rights, settings and the history (undo), require ScopeAddress.
func ScopeNames(a *resource.API) (names []string) {
	for _, c := range a.Collections() {
		switch c.Guard {
		case resource.AnyCaller, resource.Between, resource.Own, resource.Asking:
			names = append(names, c.Name)
		}
	}
	return names
}

// ScopesOf validates scopes against names, which are ScopeNames, and joins them. An empty list is an error.
func ScopesOf(scopes, names []string) (Scopes, error) {
	for _, one := range scopes {
		if one != ScopeAddress && one != ScopeFleet && !slices.Contains(names, one) {
			return "", problem.Invalid("scopes", "%q is not a scope: use %s, %s, or a collection of the address API, such as resourceRecords",
				one, ScopeAddress, ScopeFleet)
		}
	}
	if len(scopes) == 0 {
		return "", problem.Invalid("scopes", "must not be empty: omit it for a token with access to everything")
	}
	return Scopes(strings.Join(slices.Compact(slices.Sorted(slices.Values(scopes))), " ")), nil
}

// List returns the single scopes.
func (s Scopes) List() []string { return strings.Fields(string(s)) }

func (s Scopes) has(one string) bool { return s == "" || slices.Contains(s.List(), one) }

// OpensFleet returns an error if the token is not valid for the fleet API.
func (p Principal) OpensFleet() error {
	if p.Scopes.has(ScopeFleet) {
		return nil
	}
	return p.Scopes.missingScope(p.Name, ScopeFleet)
}

// OpensAddress returns an error if the token is valid for the fleet API only.
func (p Principal) OpensAddress() error {
	if p.Scopes != ScopeFleet {
		return nil
	}
	return p.Scopes.missingScope(p.Name, ScopeAddress)
}

// checkChange returns an error if the token does not allow the change. Resources created below another one, and links that start at it, are
// checked by their own collection, everything else by the collection of the resource. names are ScopeNames.
func (s Scopes) checkChange(name string, on resource.Subject, names []string) error {
	if s.has(ScopeAddress) {
		return nil
	}
	of := []string{ScopeAddress}
	if on.Collection != nil {
		of = []string{on.Collection.Name}
	}
	if on.Sub != nil && (on.Sub.Relation == resource.Children || on.Sub.Relation == resource.Linking && !on.Sub.Open) {
		of = on.Sub.Items
	}
	for _, one := range of {
		if !slices.Contains(names, one) {
			one = ScopeAddress
		}
		if !s.has(one) {
			return s.missingScope(name, one)
		}
	}
	return nil
}

// missingScope returns the error for a missing scope.
func (s Scopes) missingScope(name, scope string) error {
	if !strings.HasPrefix(name, "token ") && !strings.HasPrefix(name, "key set ") {
		name = "this token of " + name
	}
	return problem.Forbidden("AccessDenied", "%s is limited to %s: this requires the scope %s", name, strings.Join(s.List(), ", "), scope)
}
