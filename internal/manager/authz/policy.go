package authz

import (
	"sync/atomic"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Policy decides what callers may do with the resources of one store. It is safe for concurrent use.
type Policy struct {
	store *store.Store
	// rights caches the rights by user id.
	rights *store.Cache[int64, *Rights]
	// fourEyes caches the types in fourEyesTypes by configuration id.
	fourEyes *store.Cache[int64, []string]
	// api is the governed API (Govern).
	api atomic.Pointer[resource.API]
	// principal returns the user with an id as a principal; store.ErrNotFound if the user does not exist.
	principal func(tx *store.Tx, user int64) (Principal, error)
}

// maxCached is the maximum number of cached users, and of cached configurations.
const maxCached = 10_000

// extensionName is the name of the extension.
const extensionName = "rights"

// registerPolicy declares the store extension that checks transactions against the rights of their authors.
func registerPolicy(r *resource.Registry) {
	e := &store.Extension{Name: extensionName}
	e.Opened = func(s *store.Store) {
		p := &Policy{store: s, rights: store.NewCache[int64](s, store.CacheOptions[*Rights]{Topics: rightsTopics, Max: maxCached}),
			fourEyes: store.NewCache[int64](s, store.CacheOptions[[]string]{Topics: []string{"configurations"}, Late: true, Max: maxCached})}
		e.State = p
		e.Follow = p.follow
	}
	r.Extension(e)
}

// PolicyOf returns the policy of a store, which must have been opened with the extension.
func PolicyOf(s *store.Store) *Policy {
	if e := s.Layout().Extension(extensionName); e != nil {
		if p, ok := e.State.(*Policy); ok {
			return p
		}
	}
	panic("the database was opened without the extension of rights")
}

// Principals sets the function that returns the principal of a user id. It is called when the store is opened.
func (s *Policy) Principals(principal func(tx *store.Tx, user int64) (Principal, error)) {
	s.principal = principal
}

// API returns the API that the policy governs; nil before Govern.
func (s *Policy) API() *resource.API { return s.api.Load() }

// ManagesUsers reports whether the caller may manage users. The manager itself, without a caller, may.
func ManagesUsers(c *resource.Change) bool {
	return c.Caller.Administrator || c.Caller == (resource.Caller{})
}
