package identity

import (
	"embed"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// registerCredentials declares the tables of credentials.
func registerCredentials(r *resource.Registry) { r.Extension(newExtension()) }

// newExtension returns the store extension for credentials: password hashes, tokens and key sets.
func newExtension() *store.Extension {
	e := &store.Extension{Name: extensionName, Verify: verify, Migrations: migrations, Tables: []store.Table{
		{Name: "credential", Columns: []string{"id", "kind", "name", "user_id", "role", "hash", "session", "created", "expires",
			"revoked", "scopes"}, Earlier: []store.Earlier{{Before: 15, Columns: []string{"id", "kind", "name", "user_id", "role", "hash",
			"session", "created", "expires", "revoked"}}}, Key: 1},
		{Name: "credential_used", Columns: []string{"id", "used"}, Key: 1},
		{Name: "user_preference", Columns: []string{"user_id", "name", "value", "changed"}, Key: 2}}}
	e.Opened = func(s *store.Store) {
		service := newService(s)
		e.State = service
		authz.PolicyOf(s).Principals(service.principalByID)
	}
	return e
}

// extensionName is the name of the extension.
const extensionName = "access"

// ServiceOf returns the service of a store. It panics if the store was opened without the extension.
func ServiceOf(s *store.Store) *Service {
	if e := s.Layout().Extension(extensionName); e != nil {
		if service, ok := e.State.(*Service); ok {
			return service
		}
	}
	panic("the database was opened without the extension of access")
}

// verify reports credentials of users that do not exist, and of sessions that do not exist or have ended.
func verify(tx *store.Tx, fault func(format string, args ...any)) error {
	if err := tx.ReportFaults(fault, "user %d does not exist, but has a credential, %s",
		"SELECT c.user_id, c.kind FROM credential c LEFT JOIN resource u ON u.id = c.user_id AND u.collection = 'users' WHERE u.id IS NULL "+
			"AND c.user_id <> 0"); err != nil {
		return err
	}
	if err := tx.ReportFaults(fault, "user %d has a preference, %s, and does not exist",
		"SELECT p.user_id, p.name FROM user_preference p LEFT JOIN resource u ON u.id = p.user_id AND u.collection = 'users'"+
			" WHERE u.id IS NULL"); err != nil {
		return err
	}
	return tx.ReportFaults(fault, "session %d does not exist or has ended, but has a token%s",
		"SELECT c.session, '' FROM credential c LEFT JOIN resource s ON s.id = c.session AND s.collection = 'sessions'"+
			" WHERE c.kind = 'session' AND c.revoked = 0 AND (s.id IS NULL OR json_extract(s.body, '$.state') <> 'LOGGED_IN')")
}
