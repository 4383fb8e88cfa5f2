package server

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
)

// TestUpgradeToRights checks that a database from before access rights is upgraded at its first start: its users see what they saw before.
func TestUpgradeToRights(t *testing.T) {
	dir := t.TempDir()
	database := databaseFor(t, dir)
	start := func() *Manager {
		m, err := Start(context.Background(), Options{Data: dir, Database: database, Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0",
			AdminPassword: adminPassword, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := start()
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		c := resource.Change{Tx: tx, API: m.Address, SetFields: map[string]bool{}, Extra: map[string]string{}}
		x := &identity.User{Email: "a@example.net", SecurityPrivilege: "NO_ACCESS", AccessType: "API"}
		x.Type, x.Name = "User", "ada"
		typ, _ := m.Address.Type("User")
		if _, err := c.Create(typ, x); err != nil {
			return err
		}
		return tx.Write("DELETE FROM marker WHERE name = 'access rights of users'")
	}); err != nil {
		t.Fatal(err)
	}
	rights := func(m *Manager) (n int64) {
		if err := m.Store.View(t.Context(), func(tx *store.Tx) (err error) {
			n, err = tx.Count(store.Query{From: store.Resources, Where: store.InCollection("accessRights")})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for want := range int64(3) {
		if got := rights(m); got != min(want, 1) {
			t.Errorf("at start %d there are %d rights", want+1, got)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		m = start()
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
