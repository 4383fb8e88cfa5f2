package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// chain creates the pending links.
func chain(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Chain(t.Context(), s.Update); err != nil {
		t.Fatal(err)
	}
}

// faultsOf returns the faults that Verify reports.
func faultsOf(t *testing.T, s *Store) (faults []string) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.Verify(func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) })
	}); err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestChainDetectsManipulation checks that a manipulation of the history outside of the manager is reported with the number of its
// transaction.
func TestChainDetectsManipulation(t *testing.T) {
	for name, tamper := range map[string]struct {
		statements []string // with %d for the third transaction
		says       string
	}{
		"an image is changed": {[]string{"UPDATE change SET after = replace(after, 'two', 'too') WHERE txn = %d"},
			"transaction %d was changed after it was chained"},
		"an image is left out": {[]string{"UPDATE change SET after = NULL WHERE txn = %d"}, "transaction %d was changed after it was chained"},
		"an author is changed": {[]string{"UPDATE txn SET user_id = 7 WHERE id = %d"}, "transaction %d was changed after it was chained"},
		"a time is changed":    {[]string{"UPDATE txn SET at = at - 1 WHERE id = %d"}, "transaction %d was changed after it was chained"},
		"a comment is changed": {[]string{`UPDATE txn SET body = replace(body, '"comment":null', '"comment":"x"') WHERE id = %d`},
			"transaction %d was changed after it was chained"},
		"a transaction is removed": {[]string{"DELETE FROM change WHERE txn = %d", "DELETE FROM txn WHERE id = %d"},
			"transaction %d was removed"},
		"with its link": {[]string{"DELETE FROM change WHERE txn = %d", "DELETE FROM history_link WHERE txn = %d",
			"DELETE FROM txn WHERE id = %d"}, "lacks the links 3 to 3"},
		"a change is slipped in": {[]string{"INSERT INTO change (seq, txn, resource, operation) SELECT max(seq) + 1000, %d, 5, 'UPDATE'" +
			" FROM change"},
			"transaction %d was changed after it was chained"},
		"a link is changed": {[]string{"UPDATE history_link SET hash = (SELECT hash FROM history_link ORDER BY place LIMIT 1) WHERE txn = %d"},
			"transaction %d was changed after it was chained"},
		"a transaction slips in": {[]string{"INSERT INTO txn (id, at, user_id, operation, first, last, body) " +
			"SELECT id + 1000, at, user_id, operation, first, last, body FROM txn WHERE id = %d"},
			"was inserted into the history"},
		"the chain starts after it": {[]string{"UPDATE txn SET user_id = 7 WHERE id = %d", "INSERT INTO marker (name, value) SELECT " +
			"'history-chain', '5.' || txn || '.00' FROM history_link WHERE place = 5"}, "the chain is recorded to start after it"},
		"the last one is marked as chained": {[]string{"INSERT INTO marker (name, value) SELECT 'history-chain', '3.' || txn || '.00'" +
			" FROM history_link WHERE txn = %d"}, "is recorded as pruned"},
		"it is marked as undone": {[]string{"INSERT INTO reverting (txn, undo) SELECT %d, max(id) FROM txn"},
			"which did not undo it"},
		"what is due is not there": {[]string{"INSERT INTO history_due (txn) VALUES (%d + 5000)"},
			"is pending for the chain, but does not exist"},
		"the newest of all is gone": {[]string{"DELETE FROM change WHERE txn > %d", "DELETE FROM txn WHERE id > %d"},
			"was removed from the history (link 4)"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, s *Store) {
				for _, word := range []string{"nought", "one", "two", "three", "four"} {
					insert(t, s, thing(word))
				}
				chain(t, s)
				if faults := faultsOf(t, s); len(faults) > 0 {
					t.Fatalf("faults before the manipulation: %q", faults)
				}
				var third int64
				if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
					l, ok, err := tx.LinkAt(3)
					third = l.Transaction
					if err != nil || !ok {
						return fmt.Errorf("no third link: %w", err)
					}
					for _, statement := range tamper.statements {
						if _, err := tx.Exec(strings.ReplaceAll(statement, "%d", fmt.Sprint(third))); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				says := strings.ReplaceAll(tamper.says, "%d", fmt.Sprint(third))
				if faults := faultsOf(t, s); !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, says) }) {
					t.Errorf("%q not found in %q", says, faults)
				}
			})
		})
	}
}

// TestChainContinuesAfterPruning checks that the chain continues after all or some transactions were pruned, and after a time\nwithout
// links.
func TestChainContinuesAfterPruning(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		insert(t, s, thing("first"))
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			var all []*Resource
			for i := range pruneAtOnce + 10 {
				all = append(all, thing(fmt.Sprint(i)))
			}
			return tx.InsertMany(all)
		}); err != nil {
			t.Fatal(err)
		}
		for i := range chainAtOnce + 3 {
			insert(t, s, thing("more "+fmt.Sprint(i)))
		}
		chain(t, s)
		// A single step, so that the second transaction is deleted in part.
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			_, more, err := tx.prune(time.Now().Add(time.Hour).UnixMilli())
			if !more {
				t.Error("one step deleted everything")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if faults := faultsOf(t, s); len(faults) > 0 {
			t.Errorf("faults after partial pruning: %q", faults)
		}
		if _, err := s.PruneHistory(t.Context(), s.Update, time.Now().Add(time.Hour), nil); err != nil {
			t.Fatal(err)
		}
		insert(t, s, thing("later"))
		if faults := faultsOf(t, s); len(faults) > 0 {
			t.Errorf("faults after pruning: %q", faults)
		}
		chain(t, s)
		if faults := faultsOf(t, s); len(faults) > 0 {
			t.Errorf("faults after adding links: %q", faults)
		}
		if err := s.View(t.Context(), func(tx *Tx) error {
			begins, err := tx.ChainStart()
			last, e := tx.LastLink()
			if err != nil || e != nil || begins != chainAtOnce+5 || last.Place != begins+1 {
				t.Errorf("the chain starts after %d and ends at %d, %v, %v", begins, last.Place, err, e)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestChainIgnoresLateProcess checks a delayed process whose pending transactions another process has linked and pruned. It does not link
// them again.
func TestChainIgnoresLateProcess(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		for n := range 3 {
			insert(t, s, thing(fmt.Sprint("one ", n)))
		}
		late := false
		_, err := s.Chain(t.Context(), func(ctx context.Context, a Author, fn func(*Tx) error) error {
			if !late {
				late = true
				chain(t, s)
				if _, err := s.PruneHistory(ctx, s.Update, time.Now().Add(time.Hour), nil); err != nil {
					t.Fatal(err)
				}
			}
			return s.Update(ctx, a, fn)
		})
		if err == nil || !strings.Contains(err.Error(), "another manager has chained") {
			t.Errorf("linking again returned %v", err)
		}
		insert(t, s, thing("later"))
		chain(t, s)
		if faults := faultsOf(t, s); len(faults) > 0 {
			t.Errorf("the chain has faults: %q", faults)
		}
	})
}
