package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"

	"pgregory.net/rapid"
)

// onBoth runs a test on SQLite and PostgreSQL, with the tables of this package.
func onBoth(t *testing.T, test func(t *testing.T, s *store.Store)) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			o := store.Options{Layout: &store.Layout{Extensions: []*store.Extension{newSpaceExtension(&resource.Registry{})}}, Dir: t.TempDir(),
				Exclusive: true}
			if name == "PostgreSQL" {
				o.Database = pgtest.URL(t)
			}
			s, err := store.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, s)
		})
	}
}

// TestFreeSpaceIsASet checks that free space behaves like a set of addresses, and that its intervals never touch each other.
func TestFreeSpaceIsASet(t *testing.T) { onBoth(t, freeSpaceIsASet) }

func freeSpaceIsASet(t *testing.T, s *store.Store) {
	base := netip.MustParseAddr("10.0.0.0")
	at := func(i int) netip.Addr {
		four := base.As4()
		four[3] = byte(i)
		return netip.AddrFrom4(four)
	}
	container := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		container++
		free := map[int]bool{}
		err := s.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				low := rapid.IntRange(0, 60).Draw(rt, "low")
				high := rapid.IntRange(low, min(63, low+12)).Draw(rt, "high")
				all, none := true, true
				for i := low; i <= high; i++ {
					all, none = all && free[i], none && !free[i]
				}
				if rapid.Bool().Draw(rt, "take") {
					err := freeRemove(tx, container, at(low), at(high))
					if all != (err == nil) || err != nil && !errors.Is(err, space.ErrNotFree) {
						rt.Fatalf("taking %d-%d gives %v; all free: %v", low, high, err, all)
					}
					for i := low; i <= high && all; i++ {
						delete(free, i)
					}
				} else if none {
					if err := freeAdd(tx, container, at(low), at(high)); err != nil {
						return err
					}
					for i := low; i <= high; i++ {
						free[i] = true
					}
				}
				if rapid.Bool().Draw(rt, "many") {
					if err := changeMany(rt, tx, container, free, at); err != nil {
						return err
					}
				}
				if err := sameFree(rt, tx, container, free, at); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// changeMany adds some parts that are not free, or removes some that are free, sometimes with one part that is not free among them.
func changeMany(rt *rapid.T, tx *store.Tx, container int64, free map[int]bool, at func(int) netip.Addr) error {
	take, wrong := rapid.Bool().Draw(rt, "take"), rapid.IntRange(0, 9).Draw(rt, "wrong") == 0
	var parts []space.Range
	var chosen []int
	all := true
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 63), 1, 30, rapid.ID[int]).Draw(rt, "addresses") {
		if free[i] == take || wrong && take {
			parts, chosen, all = append(parts, space.Range{Low: at(i), High: at(i)}), append(chosen, i), all && free[i]
		}
	}
	if len(parts) == 0 {
		return nil
	}
	parts = joinRanges(parts)
	if !take {
		for _, i := range chosen {
			free[i] = true
		}
		return freeAddAround(tx, container, parts)
	}
	taken, err := freeTakeAround(tx, container, parts)
	if err != nil {
		return err
	}
	if (taken == nil) != all {
		rt.Fatalf("taking %v gives %v; all free: %v", parts, taken, all)
	}
	for i := range chosen {
		if all {
			delete(free, chosen[i])
		}
	}
	return nil
}

func sameFree(rt *rapid.T, tx *store.Tx, container int64, free map[int]bool, at func(int) netip.Addr) error {
	var want []space.Range
	for i := 0; i < 64; i++ {
		if !free[i] {
			continue
		}
		if n := len(want); n > 0 && want[n-1].High == at(i-1) {
			want[n-1].High = at(i)
		} else {
			want = append(want, space.Range{Low: at(i), High: at(i)})
		}
	}
	var got []space.Range
	if err := freeEach(tx, container, func(i space.Range) bool { got = append(got, i); return true }); err != nil {
		return err
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		rt.Fatalf("free is %v, want %v", got, want)
	}
	first, err := freeFirst(tx, container, netip.Addr{})
	if len(want) == 0 != errors.Is(err, space.ErrNotFree) || len(want) > 0 && first != want[0] {
		rt.Fatalf("the first free is %v, %v; want %v", first, err, want)
	}
	return nil
}

// TestFreeSpaceAtTheEdges checks free space at the limits of the address space: nothing precedes the first address or follows the last one.
func TestFreeSpaceAtTheEdges(t *testing.T) { onBoth(t, freeSpaceAtTheEdges) }

func freeSpaceAtTheEdges(t *testing.T, s *store.Store) {
	for _, r := range [][2]string{{"0.0.0.0", "255.255.255.255"}, {"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}} {
		low, high := netip.MustParseAddr(r[0]), netip.MustParseAddr(r[1])
		err := s.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
			if err := freeAdd(tx, 5, low, high); err != nil {
				return err
			}
			for _, a := range []netip.Addr{low, high} {
				if err := freeRemove(tx, 5, a, a); err != nil {
					return err
				}
				if err := freeAdd(tx, 5, a, a); err != nil {
					return err
				}
			}
			if i, err := freeFirst(tx, 5, low); err != nil || i.Low != low || i.High != high {
				t.Errorf("%s: the free space is %v, %v", r[0], i, err)
			}
			return freeRemove(tx, 5, low, high)
		})
		if err != nil {
			t.Errorf("%s: %v", r[0], err)
		}
	}
}
