package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
)

// Interval is a closed interval of addresses of one family.
type Interval struct{ Low, High netip.Addr }

// ErrTaken is space that is not free.
var ErrTaken = errors.New("the space is not free")

// FreeAdd makes low-high free in the container, joining it with the free space that it touches.
// The caller sees to it that none of it is free already.
func (tx *Tx) FreeAdd(container int64, low, high netip.Addr) error {
	if err := tx.mustWrite(); err != nil {
		return err
	}
	if before := low.Prev(); before.IsValid() {
		if i, err := tx.FreeAt(container, before); err == nil {
			if err := tx.freeDelete(container, i.Low); err != nil {
				return err
			}
			low = i.Low
		} else if !errors.Is(err, ErrTaken) {
			return err
		}
	}
	if after := high.Next(); after.IsValid() {
		if i, err := tx.FreeAt(container, after); err == nil {
			if err := tx.freeDelete(container, i.Low); err != nil {
				return err
			}
			high = i.High
		} else if !errors.Is(err, ErrTaken) {
			return err
		}
	}
	return tx.freeInsert(container, low, high)
}

// FreeTake takes low-high out of the container's free space. It gives ErrTaken where not all of it
// is free.
func (tx *Tx) FreeTake(container int64, low, high netip.Addr) error {
	if err := tx.mustWrite(); err != nil {
		return err
	}
	i, err := tx.FreeAt(container, low)
	if err != nil {
		return err
	}
	if i.High.Less(high) {
		return ErrTaken
	}
	return tx.FreeCut(container, i, low, high)
}

// FreeCut takes low-high out of the container's free interval i, as it was just read, that holds it.
func (tx *Tx) FreeCut(container int64, i Interval, low, high netip.Addr) error {
	if i.Low == low && high.Less(i.High) { // the commonest: the interval just begins later
		if err := tx.Write("UPDATE free SET low = ? WHERE container = ? AND low = ?", AddrKey(high.Next()), container, AddrKey(low)); err != nil {
			return fmt.Errorf("writing free space: %w", err)
		}
		return nil
	}
	if err := tx.freeDelete(container, i.Low); err != nil {
		return err
	}
	if i.Low.Less(low) {
		if err := tx.freeInsert(container, i.Low, low.Prev()); err != nil {
			return err
		}
	}
	if high.Less(i.High) {
		return tx.freeInsert(container, high.Next(), i.High)
	}
	return nil
}

// FreeFirst gives the container's first free interval at or after an address; ErrTaken where there
// is none.
func (tx *Tx) FreeFirst(container int64, from netip.Addr) (Interval, error) {
	if from.IsValid() {
		if i, err := tx.FreeAt(container, from); err == nil {
			return Interval{from, i.High}, nil
		} else if !errors.Is(err, ErrTaken) {
			return Interval{}, err
		}
	}
	low := []byte{}
	if from.IsValid() {
		low = AddrKey(from)
	}
	return tx.freeRow("SELECT low, high FROM free WHERE container = ? AND low >= ? ORDER BY low LIMIT 1", container, low)
}

// FreeEach calls fn for each free interval of the container in order, until fn says stop.
func (tx *Tx) FreeEach(container int64, fn func(Interval) (more bool)) error {
	from := []byte{}
	for {
		// In pages, so that fn may change the free space in between.
		i, err := tx.freeRow("SELECT low, high FROM free WHERE container = ? AND low > ? ORDER BY low LIMIT 1", container, from)
		if errors.Is(err, ErrTaken) {
			return nil
		}
		if err != nil {
			return err
		}
		if !fn(i) {
			return nil
		}
		from = AddrKey(i.Low)
	}
}

// FreeWithin calls fn for what is free from low to high, in order, or from the last to the first, until
// fn says stop. fn must not change free space.
func (tx *Tx) FreeWithin(container int64, low, high netip.Addr, backwards bool, fn func(Interval) (more bool)) error {
	stop := errors.New("enough")
	order := ""
	if backwards {
		order = " DESC"
	}
	err := tx.Each(func(scan func(...any) error) error {
		var from, to []byte
		if err := scan(&from, &to); err != nil {
			return err
		}
		i := Interval{KeyAddr(from), KeyAddr(to)}
		if i.Low.Less(low) {
			i.Low = low
		}
		if high.Less(i.High) {
			i.High = high
		}
		if !i.High.Less(i.Low) && !fn(i) {
			return stop
		}
		return nil
	}, "SELECT low, high FROM free WHERE container = ? AND low <= ? AND low >= coalesce((SELECT low FROM free WHERE container = ? AND "+
		"low <= ? ORDER BY low DESC LIMIT 1), ?) ORDER BY low"+order,
		container, AddrKey(high), container, AddrKey(low), AddrKey(low))
	if err != nil && !errors.Is(err, stop) {
		return fmt.Errorf("reading free space: %w", err)
	}
	return nil
}

// FreeAt gives the free interval that holds the address; ErrTaken where none does.
func (tx *Tx) FreeAt(container int64, a netip.Addr) (Interval, error) {
	key := AddrKey(a)
	i, err := tx.freeRow("SELECT low, high FROM free WHERE container = ? AND low <= ? ORDER BY low DESC LIMIT 1", container, key)
	if err != nil {
		return i, err
	}
	if bytes.Compare(AddrKey(i.High), key) < 0 {
		return i, ErrTaken
	}
	return i, nil
}

func (tx *Tx) freeRow(query string, args ...any) (Interval, error) {
	var low, high []byte
	err := tx.QueryRow(query, args...).Scan(&low, &high)
	if errors.Is(err, sql.ErrNoRows) {
		return Interval{}, ErrTaken
	}
	if err != nil {
		return Interval{}, fmt.Errorf("reading free space: %w", err)
	}
	return Interval{KeyAddr(low), KeyAddr(high)}, nil
}

func (tx *Tx) freeInsert(container int64, low, high netip.Addr) error {
	if err := tx.Write("INSERT INTO free (container, low, high) VALUES (?, ?, ?)", container, AddrKey(low), AddrKey(high)); err != nil {
		return fmt.Errorf("writing free space: %w", err)
	}
	return nil
}

func (tx *Tx) freeDelete(container int64, low netip.Addr) error {
	if err := tx.Write("DELETE FROM free WHERE container = ? AND low = ?", container, AddrKey(low)); err != nil {
		return fmt.Errorf("writing free space: %w", err)
	}
	return nil
}
