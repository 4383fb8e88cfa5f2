package history

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/engine/store"
)

// plain is a sealer that stores secrets unencrypted.
type plain struct{}

func (plain) Seal(_ *store.Tx, _, text string) (string, error) { return text, nil }
func (plain) Open(_ *store.Tx, _, text string) (string, error) { return text, nil }

// TestKeeperSeesAnotherChain checks that a manager does not sign a rebuilt chain if it saw the signature of the old one or has a heads file
// of it. It also detects a transaction that is inserted later with a time before an earlier head.
func TestKeeperSeesAnotherChain(t *testing.T) {
	var ahead atomic.Int64 // a time.Duration; the store reads the clock concurrently
	s, err := store.Open(store.Options{Dir: t.TempDir(), Exclusive: true, Layout: &store.Layout{Extensions: []*store.Extension{Extension()}},
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	file := filepath.Join(t.TempDir(), "heads")
	keeper := func() *Keeper {
		k := NewKeeper(s, plain{}, slog.New(slog.DiscardHandler))
		k.HeadsFile = file
		return k
	}
	insert := func(name string) {
		t.Helper()
		if err := s.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			return tx.Insert(&store.Resource{Collection: "things", Type: "Thing", Name: name, Body: []byte("{}")})
		}); err != nil {
			t.Fatal(err)
		}
	}
	verify := func() (faults []string) {
		t.Helper()
		if err := s.View(t.Context(), func(tx *store.Tx) error {
			return tx.Verify(func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) })
		}); err != nil {
			t.Fatal(err)
		}
		return faults
	}
	look := func(k *Keeper) error { // chains, then signs
		if err := k.runOnce(t.Context()); err != nil {
			return err
		}
		return k.runOnce(t.Context())
	}
	insert("one")
	first := keeper()
	if err := look(first); err != nil || first.last.Place != 1 {
		t.Fatalf("%+v, %v", first.last, err)
	}
	insert("two")
	ahead.Store(int64(2 * time.Hour))
	if err := look(first); err != nil || first.last.Place != 2 {
		t.Fatalf("%+v, %v", first.last, err)
	}
	if faults := verify(); len(faults) > 0 {
		t.Errorf("nothing was done, and %q", faults)
	}

	// A backdated transaction is detected.
	tamper := func(statements ...string) {
		t.Helper()
		if err := s.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			for _, statement := range statements {
				if err := tx.Write(statement); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	tamper("INSERT INTO txn (id, at, user_id, operation, first, last, body) SELECT 100, at, user_id, operation, 1000, 1000,"+
		" body FROM txn WHERE id = 1",
		"INSERT INTO change (seq, txn, resource, operation) VALUES (1000, 100, 1, 'UPDATE')", "INSERT INTO history_due (txn) VALUES (100)")
	if err := look(first); err != nil {
		t.Fatal(err)
	}
	if faults := verify(); !strings.Contains(strings.Join(faults, "\n"), "was inserted into the history") {
		t.Errorf("a backdated transaction: %q", faults)
	}

	// A chain that was rebuilt from the beginning is not signed.
	ahead.Store(int64(4 * time.Hour))
	tamper("UPDATE txn SET user_id = 77 WHERE id = 1", "DELETE FROM history_head", "DELETE FROM history_link", "DELETE FROM history_due",
		"INSERT INTO history_due SELECT id FROM txn")
	if err := first.lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]*Keeper{"who has seen it": first, "who has the file": keeper()} {
		if err := look(k); err == nil || !strings.Contains(err.Error(), "of the chain: transactions up to") {
			t.Errorf("%s signs another chain: %v", name, err)
		}
		if err := k.lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var heads int
	if err := s.View(t.Context(),
		func(tx *store.Tx) error { return tx.QueryRow("SELECT count(*) FROM history_head").Scan(&heads) }); err != nil || heads > 0 {
		t.Errorf("%d heads were signed, %v", heads, err)
	}

	// A manager that has not seen the old chain signs the new one. The heads file does not change.
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blind := keeper()
	blind.HeadsFile = ""
	if err := look(blind); err != nil || blind.last.Place == 0 {
		t.Fatalf("%+v, %v", blind.last, err)
	}
	insert("three")
	if err := look(keeper()); err == nil || !strings.Contains(err.Error(), "of the chain: transactions up to") {
		t.Errorf("the keeper of the file accepts another chain: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file was %s, and is %s, %v", before, after, err)
	}
	if text, err := json.Marshal(first.last); err != nil || !strings.Contains(string(text), `"place":2`) {
		t.Errorf("the last head is %s, %v", text, err)
	}
}
