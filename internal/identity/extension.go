package identity

import (
	"embed"

	"portolan/internal/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Extension is what is kept in a database of who may sign in: hashes of passwords, tokens and key sets.
func Extension() *store.Extension {
	return &store.Extension{Name: "identity", Migrations: migrations, Tables: []store.Table{
		{Name: "credential", Columns: []string{"id", "kind", "name", "user_id", "role", "hash", "session", "created", "expires",
			"revoked"}, Key: 1}}}
}
