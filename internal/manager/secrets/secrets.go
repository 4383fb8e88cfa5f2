// Package secrets encrypts the secrets that a manager stores, creates random secrets, and hashes those that it only compares. The sealing
// keys are stored in the database, encrypted with master keys that are not (docs/secure.md).
package secrets

import (
	"embed"
	"sync/atomic"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// extensionName is the name of the extension.
const extensionName = "secrets"

// Secrets holds the master keys of an open store and manages its sealing keys. It is safe for concurrent use.
type Secrets struct {
	store *store.Store
	// master are the master keys; nil before they are set.
	master atomic.Pointer[MasterKeys]
}

// Register declares the table of sealing keys.
func Register(r *resource.Registry) {
	e := &store.Extension{Name: extensionName, Migrations: migrations,
		Tables: []store.Table{{Name: "sealing_key", Columns: []string{"id", "key", "created"}, Key: 1}}}
	e.Opened = func(s *store.Store) { e.State = &Secrets{store: s} }
	r.Extension(e)
}

// FromStore returns the secrets of a store. It panics if the store was opened without the extension.
func FromStore(s *store.Store) *Secrets {
	if e := s.Layout().Extension(extensionName); e != nil {
		if secrets, ok := e.State.(*Secrets); ok {
			return secrets
		}
	}
	panic("the database was opened without the extension of secrets")
}
