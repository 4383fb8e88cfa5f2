package server

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/secrets"
)

// TestMasterKey checks that the keys of secrets are encrypted by the master key from its first start on. Without it or with another one
// they cannot be decrypted. A new master key replaces the old one if both are given.
func TestMasterKey(t *testing.T) {
	dir := t.TempDir()
	keys := func(texts ...string) secrets.MasterKeys {
		all, err := secrets.ParseMasterKeys(strings.Join(texts, "\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	database := databaseFor(t, dir)
	start := func(k secrets.MasterKeys) (*Manager, error) {
		return Start(context.Background(), Options{Data: dir, Database: database, Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0",
			AdminPassword: adminPassword, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), MasterKeys: k})
	}
	sealed := ""
	use := func(k secrets.MasterKeys, fn func(tx *store.Tx) error) {
		t.Helper()
		m, err := start(k)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Store.Update(t.Context(), store.Author{}, fn); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	opens := func(tx *store.Tx) error {
		text, err := secrets.Sealer{}.Open(tx, "x", sealed)
		if text != "nobody knows" {
			t.Errorf("the secret is %q: %v", text, err)
		}
		return err
	}
	var size int
	kept := func(tx *store.Tx) error {
		return tx.QueryRow("SELECT min(length(key)) FROM sealing_key").Scan(&size)
	}
	use(nil, func(tx *store.Tx) (err error) {
		sealed, err = secrets.Sealer{}.Seal(tx, "x", "nobody knows")
		return err
	})
	use(nil, kept)
	if size != 32 {
		t.Errorf("without a master key a key has %d bytes", size)
	}
	first, second := secrets.NewMasterKey(), secrets.NewMasterKey()
	use(keys(first), opens)
	use(keys(first), kept)
	if size <= 32 {
		t.Errorf("with a master key a key has %d bytes", size)
	}
	for what, k := range map[string]secrets.MasterKeys{"no master key": nil, "another one": keys(second)} {
		if m, err := start(k); err == nil {
			t.Errorf("%s opens the database", what)
			_ = m.Close()
		} else if !strings.Contains(err.Error(), "--master-key") {
			t.Errorf("%s: %v", what, err)
		}
	}
	use(keys(second, first), opens)
	use(keys(second), opens)
	m, err := start(keys(second))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := secrets.FromStore(m.Store).RotateSealingKey(t.Context()); err != nil || id != 2 {
		t.Errorf("another key is %d: %v", id, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	use(keys(second), func(tx *store.Tx) error {
		if err := opens(tx); err != nil {
			return err
		}
		fresh, err := secrets.Sealer{}.Seal(tx, "x", "y")
		if !strings.HasPrefix(fresh, "2.") {
			t.Errorf("behind the rotation it is sealed as %s", fresh)
		}
		return err
	})
}

// TestSecretsAreSealed checks that the database contains no secret in plain text: neither the keys of webhooks nor those of service point
// certificates.
func TestSecretsAreSealed(t *testing.T) {
	m := startAlone(t)
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	id := m.ID("/api/v2/webhooks", `{"name":"w","url":"http://127.0.0.1:9/","enabled":false,"secret":"`+secret+`"}`)
	kept := func() (webhook, authority string) {
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			var key []byte
			if err := tx.QueryRow("SELECT secret FROM webhook WHERE id = " + id).Scan(&webhook); err != nil {
				return err
			}
			err := tx.QueryRow("SELECT value FROM secret WHERE name = 'authority-key'").Scan(&key)
			authority = string(key)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return webhook, authority
	}
	webhook, authority := kept()
	if strings.Contains(webhook, "whsec_") || !strings.HasPrefix(authority, "sealed:") {
		t.Errorf("they are kept as %s and %q", webhook, authority)
	}
	// As an earlier release has kept them.
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		if err := tx.Write("UPDATE webhook SET secret = ? WHERE id = "+id, secret); err != nil {
			return err
		}
		return m.Address.Seed(tx)
	}); err != nil {
		t.Fatal(err)
	}
	if webhook, _ := kept(); strings.Contains(webhook, "whsec_") {
		t.Errorf("behind the next start it is kept as %s", webhook)
	}
}
