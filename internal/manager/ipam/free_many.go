package ipam

import (
	"errors"
	"fmt"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Functions that add or remove many parts of the free space of a container at once. They read the free space around the parts once and
// write it once. The parts must be sorted and must not touch each other.

// maxSingleParts is the maximum number of parts that are added or removed one by one.
const maxSingleParts = 16

// freeAddMany adds parts to the free space of a container.
func freeAddMany(tx *store.Tx, container int64, parts []space.Range) error {
	if len(parts) <= maxSingleParts {
		for _, part := range parts {
			if err := freeAdd(tx, container, part.Low, part.High); err != nil {
				return err
			}
		}
		return nil
	}
	return freeAddAround(tx, container, parts)
}

func freeAddAround(tx *store.Tx, container int64, parts []space.Range) error {
	around, err := freeAround(tx, container, parts)
	if err != nil {
		return err
	}
	return freeReplace(tx, container, around, joinRanges(append(append([]space.Range{}, around...), parts...)))
}

// freeTakeParts removes parts from the free space of a container. If a part is not entirely free, it returns this part, and some other
// parts may have been removed. The caller must then roll the transaction back.
func freeTakeParts(tx *store.Tx, container int64, parts []space.Range) (taken *space.Range, err error) {
	if len(parts) <= maxSingleParts {
		for i, part := range parts {
			if err := freeRemove(tx, container, part.Low, part.High); errors.Is(err, space.ErrNotFree) {
				return &parts[i], nil
			} else if err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return freeTakeAround(tx, container, parts)
}

func freeTakeAround(tx *store.Tx, container int64, parts []space.Range) (taken *space.Range, err error) {
	around, err := freeAround(tx, container, parts)
	if err != nil {
		return nil, err
	}
	var left []space.Range
	next := 0
	for _, free := range around {
		for next < len(parts) && free.Contains(parts[next]) {
			part := parts[next]
			if free.Low.Less(part.Low) {
				left = append(left, space.Range{Low: free.Low, High: part.Low.Prev()})
			}
			next++
			if part.High == free.High {
				free = space.Range{}
				break
			}
			free.Low = part.High.Next()
		}
		if free.Low.IsValid() {
			left = append(left, free)
		}
	}
	if next < len(parts) {
		return &parts[next], nil
	}
	return nil, freeReplace(tx, container, around, left)
}

// freeAround returns the free intervals from just before the first part to just after the last one, in order.
func freeAround(tx *store.Tx, container int64, parts []space.Range) (around []space.Range, err error) {
	first, last := store.AddrKey(parts[0].Low), parts[len(parts)-1].High
	if behind := last.Next(); behind.IsValid() {
		last = behind
	}
	err = tx.Each(func(scan func(...any) error) error {
		var low, high []byte
		err := scan(&low, &high)
		around = append(around, space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)})
		return err
	}, "SELECT low, high FROM free WHERE container = ? AND low >= coalesce((SELECT low FROM free WHERE container = ? AND low < ? "+
		"ORDER BY low DESC LIMIT 1), ?) AND low <= ? ORDER BY low", container, container, first, first, store.AddrKey(last))
	if err != nil {
		return nil, fmt.Errorf("reading free space: %w", err)
	}
	return around, nil
}

// freeReplace replaces the free intervals old, which freeAround returned, by young.
func freeReplace(tx *store.Tx, container int64, old, young []space.Range) error {
	if len(old) > 0 {
		if err := tx.Write("DELETE FROM free WHERE container = ? AND low >= ? AND low <= ?", container, store.AddrKey(old[0].Low),
			store.AddrKey(old[len(old)-1].Low)); err != nil {
			return fmt.Errorf("writing free space: %w", err)
		}
	}
	rows := make([][]any, len(young))
	for i, part := range young {
		rows[i] = []any{container, store.AddrKey(part.Low), store.AddrKey(part.High)}
	}
	return tx.Bulk(&freeTable, rows)
}
