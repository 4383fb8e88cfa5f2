package fleet

import (
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// TestClocksApart checks that managers whose clocks are a year apart agree about a service point, because they use the database's clock.
func TestClocksApart(t *testing.T) {
	url := pgtest.URL(t)
	const year = 365 * 24 * time.Hour
	at := func(skew time.Duration) *Service {
		s, err := store.Open(store.Options{Database: url, Exclusive: true, Skew: skew, Layout: &store.Layout{Scopes: "none",
			Extensions: []*store.Extension{Extension()}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		a, err := LoadAuthority(t.Context(), s, plainSealer{})
		if err != nil {
			t.Fatal(err)
		}
		f := New(s, a, slog.New(slog.NewTextHandler(io.Discard, nil)), 0, nil, nil)
		if err := f.SetClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f
	}
	one, two, three := at(0), at(-year), at(year)
	for i, f := range []*Service{one, two, three} {
		created, err := f.Create(t.Context(), Wanted{Name: string(rune('a' + i))})
		if err != nil {
			t.Fatal(err)
		}
		f.recordContact(row{at: nodeID{created.FleetInstanceID, 1}})
		if err := f.WritePresence(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := f.Sweep(t.Context(), f.store.Update); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []*Service{one, two, three} {
		n := 0
		if err := f.List(t.Context(), Filter{}, func(i Instance) error {
			n++
			if i.ConnectionStatus != Connected || i.Status != Waiting || time.Since(time.UnixMilli(i.LastSeen)).Abs() > time.Minute {
				t.Errorf("a service point is %+v", i)
			}
			return nil
		}); err != nil || n != 3 {
			t.Errorf("%d are listed: %v", n, err)
		}
	}
}

// plainSealer does not encrypt secrets.
type plainSealer struct{}

func (plainSealer) Seal(_ *store.Tx, _, plain string) (string, error)  { return plain, nil }
func (plainSealer) Open(_ *store.Tx, _, sealed string) (string, error) { return sealed, nil }
