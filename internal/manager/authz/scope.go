package authz

import (
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
)

// Scopes of a token or key set say what it is good for, beside its role and the rights of its user: ScopeAddress and ScopeFleet, each for
// one API as a whole, and names of collections of the address API (ScopeNames), in their order with a blank between. Who has that of a
// collection may change its resources, and reads what the address API shows. Empty: everything.
type Scopes string

// Scopes that are for an API as a whole.
const (
	ScopeAddress = "address"
	ScopeFleet   = "fleet"
)

// ScopeNames are the collections of an API that a token may be for. Those by which somebody could get at more than that, such as users,
// access rights, settings and the history, which is undone, are not among them: they take ScopeAddress.
func ScopeNames(a *resource.API) (names []string) {
	for _, c := range a.Collections() {
		switch c.Guard {
		case resource.Everybody, resource.Between, resource.Own, resource.Asking:
			names = append(names, c.Name)
		}
	}
	return names
}

// ScopesOf refuses scopes that a token cannot be for, given ScopeNames, and none.
func ScopesOf(scopes, names []string) (Scopes, error) {
	for _, one := range scopes {
		if one != ScopeAddress && one != ScopeFleet && !slices.Contains(names, one) {
			return "", problem.Invalid("scopes", "%q is neither %s nor %s, nor a collection of the address API that a token can be for by itself,"+
				" such as resourceRecords", one, ScopeAddress, ScopeFleet)
		}
	}
	if len(scopes) == 0 {
		return "", problem.Invalid("scopes", "must not be empty: leave it out for a token that is good for everything")
	}
	return Scopes(strings.Join(slices.Compact(slices.Sorted(slices.Values(scopes))), " ")), nil
}

// List gives them one by one.
func (s Scopes) List() []string { return strings.Fields(string(s)) }

func (s Scopes) has(one string) bool { return s == "" || slices.Contains(s.List(), one) }

// OpensFleet refuses who has a token that is not for the fleet API.
func (p Principal) OpensFleet() error {
	if p.Scopes.has(ScopeFleet) {
		return nil
	}
	return p.Scopes.lacks(p.Name, ScopeFleet)
}

// OpensAddress refuses who has a token that is for the fleet API alone.
func (p Principal) OpensAddress() error {
	if p.Scopes != ScopeFleet {
		return nil
	}
	return p.Scopes.lacks(p.Name, ScopeAddress)
}

// change refuses who has a token that is not for changes of what a request is about. What is made below a resource, and what a link leads
// from, counts by its own collection, everything else by that of the resource. names are ScopeNames.
func (s Scopes) change(name string, on resource.Subject, names []string) error {
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
			return s.lacks(name, one)
		}
	}
	return nil
}

// lacks is the refusal of what takes a scope.
func (s Scopes) lacks(name, scope string) error {
	if !strings.HasPrefix(name, "token ") && !strings.HasPrefix(name, "key set ") {
		name = "this token of " + name
	}
	return problem.Forbidden("AccessDenied", "%s is good for %s: this takes the scope %s", name, strings.Join(s.List(), ", "), scope)
}
