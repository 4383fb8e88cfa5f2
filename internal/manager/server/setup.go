package server

import (
	"context"
	"fmt"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/catalog"
	"portolan/internal/manager/identity"
)

// Setup creates the initial data of a manager: the user admin and the countries. made reports whether it created the user. If the user
// exists, Setup adds the data that an older version did not have.
func Setup(ctx context.Context, a *resource.API, password string) (made bool, err error) {
	if err := identity.CheckPassword(password); err != nil {
		return false, fmt.Errorf("the password of admin: %w", err)
	}
	err = a.Store.Update(ctx, store.Author{Comment: "set-up"}, func(tx *store.Tx) error {
		admins, err := tx.ByName("users", 0, "admin")
		if err != nil {
			return err
		}
		if len(admins) > 0 {
			return a.Seed(tx)
		}
		made = true
		c := &resource.Change{Tx: tx, API: a, Extra: map[string]string{}, SetFields: map[string]bool{"password": true}}
		if err := identity.CreateAdmin(c, password); err != nil {
			return err
		}
		if err := catalog.SeedLocations(&resource.Change{Tx: tx, API: a, Extra: map[string]string{}}); err != nil {
			return err
		}
		return a.Seed(tx)
	})
	return made, err
}

// SetPassword replaces the password of a user, for a lost one. It ends the user's sessions.
func SetPassword(ctx context.Context, a *resource.API, user, password string) error {
	if err := identity.CheckPassword(password); err != nil {
		return err
	}
	return a.Store.Update(ctx, store.Author{Name: "command line", Comment: "portolan password"}, func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, user)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return problem.NotFound("user %q does not exist", user)
		}
		c := &resource.Change{Tx: tx, API: a, Extra: map[string]string{}, SetFields: map[string]bool{"password": true}}
		_, err = c.Change(rows[0], func(o schema.Object) { o.(*identity.User).Password = password })
		return err
	})
}
