package ipam

import (
	"errors"
	"fmt"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Many parts of a container's free space are given back, or taken, at once: what is free around them is read once and written anew. The
// parts are in order, and none of them touches another one.

// fewParts is how many parts are given back or taken one by one.
const fewParts = 16

// freeAddMany puts parts into the container's free space.
func freeAddMany(tx *store.Tx, container int64, parts []space.Range) error {
	if len(parts) <= fewParts {
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
	return freeReplace(tx, container, around, joined(append(append([]space.Range{}, around...), parts...)))
}

// freeTakeParts takes parts out of the container's free space. Where one is not all free it is given, and some of the others may be taken:
// the transaction is to be taken back.
func freeTakeParts(tx *store.Tx, container int64, parts []space.Range) (taken *space.Range, err error) {
	if len(parts) <= fewParts {
		for i, part := range parts {
			if err := freeTake(tx, container, part.Low, part.High); errors.Is(err, space.ErrTaken) {
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

// freeAround gives what is free of the container from just before the first part to just behind the last one, in order.
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

// freeReplace writes free space anew that was read by freeAround.
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
