package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"portolan/internal/testkit/pgtest"
)

// tallyLayout has an extension that counts the things with each name. It is notified of each row and writes before the commit.
func tallyLayout(refuse *string) *Layout {
	table := "CREATE TABLE tally (name TEXT PRIMARY KEY, n BIGINT NOT NULL)"
	e := &Extension{Name: "toy",
		Tables: []Table{{Name: "tally", Columns: []string{"name", "n"}, Key: 1, Derived: "counted anew"},
			{Name: "note", Columns: []string{"text"}, Key: 1}},
		Migrations: fstest.MapFS{
			"migrations/sqlite/0001_tally.sql":   {Data: []byte(table)},
			"migrations/postgres/0001_tally.sql": {Data: []byte(table)},
			"migrations/sqlite/0007_note.sql":    {Data: []byte("CREATE TABLE note (text TEXT PRIMARY KEY)")},
			"migrations/postgres/0007_note.sql":  {Data: []byte("CREATE TABLE note (text TEXT PRIMARY KEY)")},
		},
		Rebuild: func(tx *Tx) error {
			if err := tx.Write("DELETE FROM tally"); err != nil {
				return err
			}
			return tx.Write("INSERT INTO tally (name, n) SELECT name, count(*) FROM resource GROUP BY name")
		},
		Verify: func(tx *Tx, fault func(string, ...any)) error {
			return tx.Each(func(scan func(...any) error) error {
				var name string
				err := scan(&name)
				fault("%s is counted wrong", name)
				return err
			}, "SELECT t.name FROM tally t WHERE t.n <> (SELECT count(*) FROM resource r WHERE r.name = t.name) ORDER BY 1")
		},
		Follow: func(tx *Tx) Follower { return &tallyFollower{tx: tx, by: map[string]int{}, refuse: refuse} },
	}
	return &Layout{Extensions: []*Extension{e}, Unlogged: []string{"whispers"}}
}

type tallyFollower struct {
	tx     *Tx
	by     map[string]int
	refuse *string
}

func (f *tallyFollower) Changed(before, after *Resource) error {
	if before != nil {
		f.by[before.Name]--
	}
	if after != nil {
		if after.Name == *f.refuse {
			return errors.New("refused")
		}
		f.by[after.Name]++
	}
	return nil
}

func (f *tallyFollower) BeforeCommit() error {
	for name, n := range f.by {
		if err := f.tx.Write("INSERT INTO tally (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = tally.n + excluded.n",
			name, n); err != nil {
			return err
		}
	}
	return nil
}

// TestExtension checks that an extension is notified of every change of a row, writes in the same transaction, is rolled back with it, and
// is rebuilt, copied and verified.
func TestExtension(t *testing.T) {
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			refuse := "none"
			options := func() Options {
				o := Options{Layout: tallyLayout(&refuse), Dir: t.TempDir(), Exclusive: true}
				if database == "PostgreSQL" {
					o.Database = pgtest.URL(t)
				}
				return o
			}
			s, err := Open(options())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if s.Layout().Version() != 25 || s.schema != 25 {
				t.Errorf("the layout has schema version %d, the database %d", s.Layout().Version(), s.schema)
			}
			changeThings(t, s, &refuse)
			if got := tallies(t, s); got != "[a:2 b:0 c:1 w:1]" {
				t.Errorf("counts: %s", got)
			}
			faults := func(s *Store) (all []string) {
				if err := s.View(t.Context(), func(tx *Tx) error {
					return tx.Verify(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
				}); err != nil {
					t.Fatal(err)
				}
				return all
			}
			if wrong := faults(s); len(wrong) > 0 {
				t.Errorf("faults: %v", wrong)
			}
			update(t, s, func(tx *Tx) error {
				if err := tx.Write("INSERT INTO note (text) VALUES ('kept')"); err != nil {
					return err
				}
				return tx.Write("UPDATE tally SET n = 9 WHERE name = 'c'")
			})
			if wrong := faults(s); fmt.Sprint(wrong) != "[c is counted wrong]" {
				t.Errorf("faults: %v", wrong)
			}
			o := options()
			o.Filling = true
			to, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = to.Close() }()
			if _, err := Carry(t.Context(), s, to, func(string, int64, int64) {}); err != nil {
				t.Fatal(err)
			}
			var note string
			if err := to.View(t.Context(), func(tx *Tx) error { return tx.QueryRow("SELECT text FROM note").Scan(&note) }); err != nil ||
				note != "kept" {
				t.Errorf("the note is %q, %v", note, err)
			}
			if got := tallies(t, to); got != "[a:2 c:1 w:1]" {
				t.Errorf("counts after the rebuild: %s", got)
			}
		})
	}
}

// changeThings inserts, changes, moves and deletes things, and is rejected once.
func changeThings(t *testing.T, s *Store, refuse *string) {
	t.Helper()
	a, b, w := thing("a"), thing("b"), thing("w")
	w.Collection = "whispers"
	update(t, s, func(tx *Tx) error {
		for _, r := range []*Resource{a, b, w} {
			if err := tx.Insert(r); err != nil {
				return err
			}
		}
		return tx.InsertMany([]*Resource{thing("a"), thing("b"), thing("c")})
	})
	*refuse = "c"
	if err := s.Update(context.Background(), Author{}, func(tx *Tx) error {
		if err := tx.Insert(thing("a")); err != nil {
			return err
		}
		return tx.Insert(thing("c"))
	}); err == nil {
		t.Error("a change that the extension rejected was written")
	}
	*refuse = "none"
	update(t, s, func(tx *Tx) error {
		found, err := tx.ByName("things", 0, "b")
		if err != nil || len(found) != 2 {
			return fmt.Errorf("%d things, %w", len(found), err)
		}
		if _, err := tx.Reparent(found[:1], 77); err != nil {
			return err
		}
		return tx.RemoveMany(found[1:])
	})
	update(t, s, func(tx *Tx) error {
		found, err := tx.ByName("things", 0, "b")
		if err != nil {
			return err
		}
		return tx.Remove(found[0])
	})
	var logged int64
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.QueryRow("SELECT count(*) FROM change WHERE resource = ?", w.ID).Scan(&logged)
	}); err != nil || logged != 0 {
		t.Errorf("unlogged rows have %d changes in the history, %v", logged, err)
	}
}

func update(t *testing.T, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), Author{Name: "test"}, fn); err != nil {
		t.Fatal(err)
	}
}

func tallies(t *testing.T, s *Store) string {
	t.Helper()
	var all []string
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var name string
			var n int64
			err := scan(&name, &n)
			all = append(all, fmt.Sprintf("%s:%d", name, n))
			return err
		}, "SELECT name, n FROM tally ORDER BY name")
	}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all)
}
