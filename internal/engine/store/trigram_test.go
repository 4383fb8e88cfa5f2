package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/pgtest"
)

// textPieces are the pieces of the texts of the test: few enough to match repeatedly, with all characters that are special in one of the
// languages in between.
var textPieces = []string{"web", "Web", "10.1.2.3", "a'b", `c"d`, `e\f`, "%", "_", "?", "ÄÖÜ", "äöü", "日本語", "\n", "\x01", "-", "0",
	":", " AND ", "*", "é"}

func randomText(random *rand.Rand, pieces int) string {
	var b strings.Builder
	for range pieces {
		b.WriteString(textPieces[random.IntN(len(textPieces))])
	}
	return b.String()
}

func randomNote(random *rand.Rand, id int64) *Resource {
	note, err := json.Marshal(randomText(random, 3))
	if err != nil {
		panic(err)
	}
	body := `{"size":` + strconv.Itoa(random.IntN(9)) + `,"note":` + string(note) + `}`
	if random.IntN(5) == 0 {
		body = `{"note":null}`
	}
	return &Resource{ID: id, Collection: []string{"things", "names"}[random.IntN(2)], Type: "Thing", Name: randomText(random, random.IntN(4)),
		Body: []byte(body)}
}

// TestTrigrams checks that a substring search has the same result with and without the trigram index, whatever is pending, and that it uses
// the index.
func TestTrigrams(t *testing.T) {
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), Exclusive: true, Layout: &Layout{Searched: []Index{{Collection: "things", Field: "note"}}}}
			if database == "PostgreSQL" {
				o.Database = pgtest.URL(t)
			}
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if !s.trigrams {
				t.Fatal("the database has no trigram index")
			}
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test must be reproducible
			update(t, s, func(tx *Tx) error {
				for range 300 {
					if err := tx.Insert(randomNote(random, 0)); err != nil {
						return err
					}
				}
				return nil
			})
			askFragments(t, s, random)
			if err := s.IndexTexts(t.Context()); err != nil {
				t.Fatal(err)
			}
			askFragments(t, s, random)
			changeTexts(t, s, random)
			askFragments(t, s, random)
			if err := s.IndexTexts(t.Context()); err != nil {
				t.Fatal(err)
			}
			askFragments(t, s, random)
			noFaults(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			// The next version searches other texts.
			o.Layout = &Layout{Searched: []Index{{Collection: "things", Field: "note"}, {Collection: "names", Field: "note"}}}
			if s, err = Open(o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := s.IndexTexts(t.Context()); err != nil {
				t.Fatal(err)
			}
			askFragments(t, s, random)
		})
	}
}

// TestTrigramsAreNotDamaged checks that the check of a database during changes finds no damage. FTS5 alone would report some, because it
// compares with outdated data of the connection.
func TestTrigramsAreNotDamaged(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Exclusive: true, Readers: 1,
		Layout: &Layout{Searched: []Index{{Collection: "things", Field: "note"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test must be reproducible
	for range 10 {
		update(t, s, func(tx *Tx) error {
			for range 200 {
				if err := tx.Insert(randomNote(random, 0)); err != nil {
					return err
				}
			}
			return nil
		})
		changeTexts(t, s, random)
		if err := s.IndexTexts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.View(t.Context(), func(tx *Tx) error {
			damage, err := tx.Damage()
			if len(damage) > 0 {
				t.Errorf("%q", damage)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func noFaults(t *testing.T, s *Store) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.trigramFaults(func(format string, args ...any) { t.Errorf(format, args...) })
	}); err != nil {
		t.Fatal(err)
	}
}

// changeTexts changes and deletes some of the resources.
func changeTexts(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	update(t, s, func(tx *Tx) error {
		all, err := tx.queryMany("SELECT " + columns + " FROM resource ORDER BY id")
		if err != nil {
			return err
		}
		for _, r := range all {
			switch random.IntN(4) {
			case 0:
				err = tx.Remove(r)
			case 1:
				next := randomNote(random, r.ID)
				next.Collection = r.Collection
				err = tx.Replace(r, next)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// havingFragments searches texts in all collections: each resource with the text is found, or the result is marked as incomplete.
func havingFragments(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	for i := range 16 {
		if s.sortLimit = 5_000; i%4 == 0 {
			s.sortLimit = 10 // too few for most texts
		}
		text, found, cut := randomText(random, 1+random.IntN(2)), map[int64]bool{}, false
		if err := s.View(t.Context(), func(tx *Tx) error {
			whole, err := tx.HavingText(text, func(ids []int64) (bool, error) {
				for _, id := range ids {
					found[id] = true
				}
				return false, nil
			})
			if cut = !whole; err != nil || len([]rune(text)) < 3 {
				return err
			}
			all, err := tx.queryMany("SELECT " + columns + " FROM resource ORDER BY id")
			for _, r := range all {
				_, _, contains, err := tx.Texts(r, text)
				if err != nil {
					return err
				}
				if contains && !found[r.ID] && !cut {
					t.Errorf("%q not found in %d, %q %s", text, r.ID, r.Name, r.Body)
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if cut && s.sortLimit > 10 {
			t.Errorf("%q was reported as too frequent", text)
		}
	}
	s.sortLimit = defaultSortLimit
}

func askFragments(t *testing.T, s *Store, random *rand.Rand) {
	t.Helper()
	havingFragments(t, s, random)
	used := 0
	for range 60 {
		collection := []string{"things", "names"}[random.IntN(2)]
		field := Field{Kind: ColumnText, Path: []string{"name"}, Searched: true}
		if random.IntN(2) == 0 {
			searchedToo := collection == "things" || len(s.layout.Searched) > 1
			field = Field{Kind: Text, Path: []string{"note"}, Searched: searchedToo}
		}
		op := []string{"contains", "startsWith", "endsWith"}[random.IntN(3)]
		c := Compare{Field: field, Op: op, Value: randomText(random, 1+random.IntN(2))}
		q := Query{From: Resources, Where: All{InCollection(collection), c}, Limit: int64(random.IntN(2) * 5)}
		plain := q
		plain.Where = Any{q.Where} // hides the conjunction from the planner
		want, got := idsOf(t, s, plain), idsOf(t, s, q)
		if !slices.Equal(want, got) {
			t.Fatalf("%+v returned %d, without an index %d:\n%v\n%v", q, len(got), len(want), got, want)
		}
		if err := s.View(t.Context(), func(tx *Tx) error {
			l, err := q.buildList(tx, columns)
			query := l.query
			if strings.Contains(query, "json_each") || strings.Contains(query, "trigram MATCH") || strings.Contains(query, " LIKE ") {
				used++
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if used < 14 {
		t.Errorf("the index was used for %d of 60", used)
	}
}

// TestContainsWord checks that a generic plan is used for texts with a word, and not for texts that might require a scan of the whole
// trigram index.
func TestContainsWord(t *testing.T) {
	for text, want := range map[string]bool{"host": true, "10.1": true, textMark + "ab": true, "ab": false, "éèê": false, "☃☃☃☃": false,
		"a☃b☃c": false, "HOST": true, "a%b": true} {
		if got := (Fragment{Text: text}).hasWord(); got != want {
			t.Errorf("hasWord(%q) is %v", text, got)
		}
	}
}

// TestEstimates checks that an estimate of PostgreSQL is cached for a while.
func TestEstimates(t *testing.T) {
	var e estimates
	now := time.Unix(1_700_000_000, 0)
	for i := range maxEstimates + 1 {
		e.put(strconv.Itoa(i), rowEstimate{int64(i), now})
	}
	last := strconv.Itoa(maxEstimates)
	if rows, ok := e.get(last, now.Add(estimateTime-1)); !ok || rows != maxEstimates {
		t.Errorf("cached: %d, %v", rows, ok)
	}
	if _, ok := e.get(last, now.Add(estimateTime)); ok {
		t.Error("an estimate is cached for too long")
	}
	if len(e.known) > maxEstimates {
		t.Errorf("%d estimates are cached", len(e.known))
	}
}

// TestDamagedTrigramIndex checks that a damaged index fails its own update alone, and no change that shares the commit.
func TestDamagedTrigramIndex(t *testing.T) {
	t.Run("index first", func(t *testing.T) { damagedTrigramIndex(t, true) })
	t.Run("change first", func(t *testing.T) { damagedTrigramIndex(t, false) })
}

func damagedTrigramIndex(t *testing.T, indexFirst bool) {
	o := Options{Dir: t.TempDir(), Exclusive: true, Layout: &Layout{Searched: []Index{{Collection: "things", Field: "note"}}}}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	insert(t, s, &Resource{Collection: "things", Type: "Thing", Name: "indexed", Body: []byte(`{"note":"indexed"}`)})
	if err := s.IndexTexts(t.Context()); err != nil {
		t.Fatal(err)
	}
	var page int64 // of the table that FTS5 writes at the end
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = 'trigram_idx'").Scan(&page)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(o.Dir, "portolan.db"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(bytes.Repeat([]byte{0xa5}, 4096), (page-1)*4096); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	insert(t, s, &Resource{Collection: "things", Type: "Thing", Name: "pending", Body: []byte(`{"note":"pending"}`)})
	var indexErr, changeErr error
	updates := []func(){
		func() { indexErr = s.Update(t.Context(), Author{}, (*Tx).indexTexts) },
		func() {
			changeErr = s.Update(t.Context(), Author{}, func(tx *Tx) error {
				return tx.Insert(&Resource{Collection: "things", Type: "Thing", Name: "other", Body: []byte(`{}`)})
			})
		},
	}
	if !indexFirst {
		slices.Reverse(updates)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // it keeps the writer busy until both wait
		if err := s.Update(t.Context(), Author{}, func(*Tx) error {
			close(entered)
			<-leave
			return errors.New("nothing to commit")
		}); err == nil {
			t.Error("the first update succeeded")
		}
	})
	<-entered
	for i, update := range updates {
		all.Go(update)
		for len(s.engine.(*sqliteEngine).jobs) <= i { // until it waits
			time.Sleep(time.Millisecond)
		}
	}
	close(leave)
	all.Wait()
	if !IsDamage(indexErr) || changeErr != nil {
		t.Errorf("the update of the index returned %v, the change %v", indexErr, changeErr)
	}
}
