package access

import (
	"embed"

	"portolan/internal/resource"
	"portolan/internal/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// registerCredentials declares what is kept of who may sign in.
func registerCredentials(r *resource.Registry) { r.Extension(newExtension()) }

// newExtension gives what is kept in a database of who may sign in: hashes of passwords, tokens and key sets.
func newExtension() *store.Extension {
	e := &store.Extension{Name: extensionName, Migrations: migrations, Tables: []store.Table{
		{Name: "credential", Columns: []string{"id", "kind", "name", "user_id", "role", "hash", "session", "created", "expires",
			"revoked"}, Key: 1}}}
	e.Opened = func(s *store.Store) { e.Room = newService(s) }
	return e
}

// extensionName is the name of the extension.
const extensionName = "access"

// Of gives the service of a store, which must have been opened with the extension.
func Of(s *store.Store) *Service {
	if e := s.Layout().Extension(extensionName); e != nil {
		if service, ok := e.Room.(*Service); ok {
			return service
		}
	}
	panic("the database was opened without the extension of access")
}
