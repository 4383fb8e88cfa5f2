package access

import (
	"slices"
	"strings"

	"portolan/internal/problem"
	"portolan/internal/resource"
)

// Scopes of a token or key set say what it is good for, beside its role and the rights of its user: ScopeAddress and ScopeFleet, each for
// one API as a whole, and names of collections of the address API, in their order with a blank between. Who has that of a collection may
// change its resources, and reads what the address API shows. Empty: everything.
type Scopes string

// Scopes that are for an API as a whole.
const (
	ScopeAddress = "address"
	ScopeFleet   = "fleet"
)

// ScopesOf refuses scopes that there are not, given the names of collections.
func ScopesOf(scopes, collections []string) (Scopes, error) {
	for _, one := range scopes {
		if one != ScopeAddress && one != ScopeFleet && !slices.Contains(collections, one) {
			return "", problem.Invalid("scopes", "%q is neither %s nor %s, nor a collection of the address API such as resourceRecords", one,
				ScopeAddress, ScopeFleet)
		}
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

// change refuses who has a token that is not for changes of what a request is about: of what is made below a resource the collection of
// that counts, else the collection of the resource.
func (s Scopes) change(name string, on resource.Subject) error {
	of := []string{ScopeAddress}
	switch {
	case s.has(ScopeAddress):
		return nil
	case on.Sub != nil && on.Sub.Relation == resource.Children && len(on.Sub.Items) > 0:
		of = on.Sub.Items
	case on.Collection != nil:
		of = []string{on.Collection.Name}
	}
	for _, one := range of {
		if !s.has(one) {
			return s.lacks(name, one)
		}
	}
	return nil
}

// lacks is the refusal of what takes a scope.
func (s Scopes) lacks(name, scope string) error {
	return problem.Forbidden("AccessDenied", "%s is good for %s: this takes the scope %s", name, strings.Join(s.List(), ", "), scope)
}
