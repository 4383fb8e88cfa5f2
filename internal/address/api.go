package address

import (
	"os"

	"portolan/internal/published"
	"portolan/internal/resource"
	"portolan/internal/store"
)

// Base is the path of the API (spec.md section 9).
const Base = published.Base

// newRegistry takes everything that is declared.
func newRegistry() *resource.Registry {
	r := &resource.Registry{Facts: published.Facts{}}
	Register(r)
	return r
}

// Layout is what the address API keeps in a database.
func Layout() *store.Layout { return newRegistry().Layout() }

// New makes the address API over a store. maxLimit is the largest page (spec.md section 8).
func New(s *store.Store, maxLimit int64, version string) *resource.API {
	r := newRegistry()
	for _, name := range []string{"x-bcn-skip-cache", "x-bcn-calculate-inherited"} {
		r.Header(resource.RequestHeader{Name: name,
			Description: "Taken, and of no effect: every answer is fresh, and what is inherited is always calculated.", Methods: resource.Reading})
	}
	a := resource.NewAPI(s, Base, maxLimit, r)
	a.RootType, a.Version = "AddressManager", version
	a.Respan = respan
	if name, err := os.Hostname(); err == nil {
		a.Hostname = name
	}
	return a
}
