package ipam

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// freeTable stores the free space of blocks and networks as intervals that neither touch nor overlap.
var freeTable = store.Table{Name: "free", Columns: []string{"container", "low", "high"}, Key: 2}

// freeAdd adds low-high to the free space of a container and joins it with adjacent intervals. The caller must ensure that no part of it is
// already free.
func freeAdd(tx *store.Tx, container int64, low, high netip.Addr) error {
	if before := low.Prev(); before.IsValid() {
		if i, err := freeAt(tx, container, before); err == nil {
			if err := freeDelete(tx, container, i.Low); err != nil {
				return err
			}
			low = i.Low
		} else if !errors.Is(err, space.ErrNotFree) {
			return err
		}
	}
	if after := high.Next(); after.IsValid() {
		if i, err := freeAt(tx, container, after); err == nil {
			if err := freeDelete(tx, container, i.Low); err != nil {
				return err
			}
			high = i.High
		} else if !errors.Is(err, space.ErrNotFree) {
			return err
		}
	}
	return freeInsert(tx, container, low, high)
}

// freeRemove removes low-high from the free space of a container. It returns space.ErrNotFree if any part is not free.
func freeRemove(tx *store.Tx, container int64, low, high netip.Addr) error {
	i, err := freeAt(tx, container, low)
	if err != nil {
		return err
	}
	if i.High.Less(high) {
		return space.ErrNotFree
	}
	return freeCut(tx, container, i, low, high)
}

// freeCut removes low-high from the free interval i that contains it. i must be current.
func freeCut(tx *store.Tx, container int64, i space.Range, low, high netip.Addr) error {
	if i.Low == low && high.Less(i.High) { // the most common case: only the start of the interval changes
		if err := tx.Write("UPDATE free SET low = ? WHERE container = ? AND low = ?", store.AddrKey(high.Next()), container,
			store.AddrKey(low)); err != nil {
			return fmt.Errorf("writing free space: %w", err)
		}
		return nil
	}
	if err := freeDelete(tx, container, i.Low); err != nil {
		return err
	}
	if i.Low.Less(low) {
		if err := freeInsert(tx, container, i.Low, low.Prev()); err != nil {
			return err
		}
	}
	if high.Less(i.High) {
		return freeInsert(tx, container, high.Next(), i.High)
	}
	return nil
}

// freeFirst returns the first free interval of the container at or after an address, or from the beginning if the address is not valid. It
// returns space.ErrNotFree if there is none.
func freeFirst(tx *store.Tx, container int64, from netip.Addr) (space.Range, error) {
	if from.IsValid() {
		if i, err := freeAt(tx, container, from); err == nil {
			return space.Range{Low: from, High: i.High}, nil
		} else if !errors.Is(err, space.ErrNotFree) {
			return space.Range{}, err
		}
	}
	low := []byte{}
	if from.IsValid() {
		low = store.AddrKey(from)
	}
	return freeRow(tx, "SELECT low, high FROM free WHERE container = ? AND low >= ? ORDER BY low LIMIT 1", container, low)
}

// freeEach calls fn for each free interval of the container in order, until fn returns false.
func freeEach(tx *store.Tx, container int64, fn func(space.Range) (more bool)) error {
	from := []byte{}
	for {
		// Each interval is read by its own query, so that fn may change the free space.
		i, err := freeRow(tx, "SELECT low, high FROM free WHERE container = ? AND low > ? ORDER BY low LIMIT 1", container, from)
		if errors.Is(err, space.ErrNotFree) {
			return nil
		}
		if err != nil {
			return err
		}
		if !fn(i) {
			return nil
		}
		from = store.AddrKey(i.Low)
	}
}

// freeWithin calls fn for the free intervals from low to high, clipped to these bounds, until fn returns false. backwards reverses the
// order. fn must not change free space. It reads a few intervals at first and more later, because most callers stop soon.
func freeWithin(tx *store.Tx, container int64, low, high netip.Addr, backwards bool, fn func(space.Range) (more bool)) error {
	// The interval that contains low may begin before it.
	first := "coalesce((SELECT low FROM free WHERE container = ? AND low <= ? ORDER BY low DESC LIMIT 1), ?)"
	from, to, order := []any{container, store.AddrKey(low), store.AddrKey(low)}, high, ""
	if backwards {
		order = " DESC"
	}
	for limit := 32; ; limit = min(limit*8, 16_384) {
		var last space.Range
		n, done := 0, false
		err := tx.Each(func(scan func(...any) error) error {
			var lowKey, highKey []byte
			if err := scan(&lowKey, &highKey); err != nil || done {
				return err
			}
			last = space.Range{Low: store.KeyAddr(lowKey), High: store.KeyAddr(highKey)}
			n++
			i := last
			if i.Low.Less(low) {
				i.Low = low
			}
			if high.Less(i.High) {
				i.High = high
			}
			done = !i.High.Less(i.Low) && !fn(i)
			return nil
		}, "SELECT low, high FROM free WHERE container = ? AND low <= ? AND low >= "+first+" ORDER BY low"+order+" LIMIT "+
			strconv.Itoa(limit), append([]any{container, store.AddrKey(to)}, from...)...)
		switch {
		case err != nil:
			return fmt.Errorf("reading free space: %w", err)
		case done || n < limit:
			return nil
		case backwards:
			if to = last.Low.Prev(); !to.IsValid() {
				return nil
			}
		default:
			first, from = "?", []any{store.AddrKey(last.High)} // the next interval begins behind it
		}
	}
}

// freeAt returns the free interval that contains the address, or space.ErrNotFree.
func freeAt(tx *store.Tx, container int64, a netip.Addr) (space.Range, error) {
	key := store.AddrKey(a)
	i, err := freeRow(tx, "SELECT low, high FROM free WHERE container = ? AND low <= ? ORDER BY low DESC LIMIT 1", container, key)
	if err != nil {
		return i, err
	}
	if bytes.Compare(store.AddrKey(i.High), key) < 0 {
		return i, space.ErrNotFree
	}
	return i, nil
}

func freeRow(tx *store.Tx, query string, args ...any) (space.Range, error) {
	var low, high []byte
	err := tx.QueryRow(query, args...).Scan(&low, &high)
	if errors.Is(err, sql.ErrNoRows) {
		return space.Range{}, space.ErrNotFree
	}
	if err != nil {
		return space.Range{}, fmt.Errorf("reading free space: %w", err)
	}
	return space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)}, nil
}

func freeInsert(tx *store.Tx, container int64, low, high netip.Addr) error {
	if err := tx.Write("INSERT INTO free (container, low, high) VALUES (?, ?, ?)", container, store.AddrKey(low),
		store.AddrKey(high)); err != nil {
		return fmt.Errorf("writing free space: %w", err)
	}
	return nil
}

func freeDelete(tx *store.Tx, container int64, low netip.Addr) error {
	if err := tx.Write("DELETE FROM free WHERE container = ? AND low = ?", container, store.AddrKey(low)); err != nil {
		return fmt.Errorf("writing free space: %w", err)
	}
	return nil
}

// freeRemoveMany removes addresses from the free space of a container. The addresses must be sorted and distinct. If some are not free,
// freeRemoveMany returns these and changes nothing.
func freeRemoveMany(tx *store.Tx, container int64, addresses []netip.Addr) (taken []netip.Addr, err error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	var gone []netip.Addr // low ends of the intervals to delete
	var left [][]any
	keep := func(low, high netip.Addr) {
		if low.IsValid() && !high.Less(low) {
			left = append(left, []any{container, store.AddrKey(low), store.AddrKey(high)})
		}
	}
	next := 0
	err = tx.Each(func(scan func(...any) error) error {
		var lowKey, highKey []byte
		if err := scan(&lowKey, &highKey); err != nil {
			return err
		}
		low, high := store.KeyAddr(lowKey), store.KeyAddr(highKey)
		for ; next < len(addresses) && addresses[next].Less(low); next++ {
			taken = append(taken, addresses[next])
		}
		if next == len(addresses) || high.Less(addresses[next]) {
			return nil
		}
		gone = append(gone, low)
		for ; next < len(addresses) && !high.Less(addresses[next]); next++ {
			if low.Less(addresses[next]) {
				keep(low, addresses[next].Prev())
			}
			low = addresses[next].Next()
		}
		keep(low, high)
		return nil
	}, "SELECT low, high FROM free WHERE container = ? AND low <= ? ORDER BY low", container, store.AddrKey(addresses[len(addresses)-1]))
	if err != nil {
		return nil, fmt.Errorf("reading free space: %w", err)
	}
	if taken = append(taken, addresses[next:]...); len(taken) > 0 {
		return taken, nil
	}
	for _, low := range gone {
		if err := freeDelete(tx, container, low); err != nil {
			return nil, err
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return nil, tx.Bulk(&freeTable, left)
}

// freeFirstBelow returns the first free interval of the container. end is the end of the last resource of a collection that starts at or
// before the interval; it is not valid if there is none. A single query reads both, because most networks have no such resource. It returns
// space.ErrNotFree if nothing is free.
func freeFirstBelow(tx *store.Tx, container int64, collection string) (first space.Range, end netip.Addr, err error) {
	var low, high, over []byte
	err = tx.QueryRow("SELECT f.low, f.high, (SELECT r.high FROM resource r WHERE r.parent = f.container AND "+
		store.CollectionIs("r", collection)+" AND r.low IS NOT NULL AND r.low <= f.low ORDER BY r.low DESC LIMIT 1) "+
		"FROM free f WHERE f.container = ? ORDER BY f.low LIMIT 1", container).Scan(&low, &high, &over)
	if errors.Is(err, sql.ErrNoRows) {
		return first, end, space.ErrNotFree
	}
	if err != nil {
		return first, end, fmt.Errorf("looking for a free address: %w", err)
	}
	return space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)}, store.KeyAddr(over), nil
}
