package address

import (
	"os"

	"portolan/internal/identity"
	"portolan/internal/published"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// Base is the path of the API (spec.md section 9).
const Base = published.Base

// registry takes the declarations of this room, with what their rules need. Each file that declares types has a function
// register..., which takes a registry; registerAll, generated, calls them all.
type registry struct {
	resource.Registry
	users *identity.Service
}

// facts are what is published.
type facts struct{}

// Subs gives the subcollections of a collection, in the order of its links.
func (facts) Subs(collection string) []published.Sub { return published.Subs(collection) }

// Methods gives the published methods of a path.
func (facts) Methods(parts []string) []string { return published.Methods(parts) }

// newRegistry takes everything that this room declares.
func newRegistry(users *identity.Service) *registry {
	r := &registry{Registry: resource.Registry{Facts: facts{}}, users: users}
	registerAll(r)
	r.Extension(newSpaceExtension())
	r.Extension(newEventExtension())
	return r
}

// Layout is what the address API keeps in a database.
func Layout() *store.Layout { return newRegistry(nil).Layout() }

// New makes the address API over a store. maxLimit is the largest page (spec.md section 8).
func New(s *store.Store, users *identity.Service, maxLimit int64, version string) *resource.API {
	r := newRegistry(users)
	for _, name := range []string{"x-bcn-skip-cache", "x-bcn-calculate-inherited"} {
		r.Header(resource.RequestHeader{Name: name,
			Description: "Taken, and of no effect: every answer is fresh, and what is inherited is always calculated.", Methods: resource.Reading})
	}
	a := resource.NewAPI(s, Base, maxLimit, &r.Registry)
	a.RootType, a.Version = "AddressManager", version
	a.Descriptions = descriptions
	a.Respan = respan
	if name, err := os.Hostname(); err == nil {
		a.Hostname = name
	}
	return a
}
