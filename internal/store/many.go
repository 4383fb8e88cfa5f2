package store

import (
	"fmt"
	"net/netip"
)

// InsertMany writes new resources as Insert does, many at a time.
func (tx *Tx) InsertMany(rs []*Resource) error {
	if err := tx.mustWrite(); err != nil || len(rs) == 0 {
		return err
	}
	ids, err := tx.ids.many("resource", len(rs))
	if err != nil {
		return err
	}
	sequence, err := tx.ids.many("change", len(rs))
	if err != nil {
		return err
	}
	number, err := tx.number()
	if err != nil {
		return err
	}
	resources, changes := make([][]any, len(rs)), make([][]any, len(rs))
	var references [][]any
	for i, r := range rs {
		r.ID, r.Version = ids[i], number
		tx.Touch(r.Collection)
		resources[i] = []any{r.ID, r.Collection, r.Type, null(r.Name), r.Parent, r.Configuration, r.Low, r.High, null(r.Key), r.Version,
			formatRefs(r.Refs), string(r.Body)}
		for _, refs := range [][]Ref{r.Refs, r.Links} {
			for _, ref := range refs {
				references = append(references, []any{r.ID, ref.Field, ref.Target})
			}
		}
		image, err := encodeImage(r)
		if err != nil {
			return err
		}
		changes[i] = []any{sequence[i], number, r.ID, "ADD", nil, image}
	}
	for _, b := range []struct {
		table string
		rows  [][]any
	}{{"resource", resources}, {"reference", references}, {"change", changes}} {
		if len(b.rows) == 0 {
			continue
		}
		if err := tx.conn.bulk(b.table, tableColumns(b.table), b.rows); err != nil {
			return err
		}
	}
	tx.tally.Created += len(rs)
	if tx.first == 0 {
		tx.first = sequence[0]
	}
	tx.last = sequence[len(sequence)-1]
	return nil
}

func tableColumns(name string) []string {
	for i := range Tables {
		if Tables[i].Name == name {
			return Tables[i].Columns
		}
	}
	return nil
}

// FreeTakeMany takes addresses, which must be in order and different from each other, out of the
// container's free space. Those that are not free are given, and nothing is taken then.
func (tx *Tx) FreeTakeMany(container int64, addresses []netip.Addr) (taken []netip.Addr, err error) {
	if err := tx.mustWrite(); err != nil || len(addresses) == 0 {
		return nil, err
	}
	var gone []netip.Addr // low ends of intervals that change
	var left [][]any
	keep := func(low, high netip.Addr) {
		if low.IsValid() && !high.Less(low) {
			left = append(left, []any{container, AddrKey(low), AddrKey(high)})
		}
	}
	next := 0
	err = tx.Each(func(scan func(...any) error) error {
		var lowKey, highKey []byte
		if err := scan(&lowKey, &highKey); err != nil {
			return err
		}
		low, high := KeyAddr(lowKey), KeyAddr(highKey)
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
	}, "SELECT low, high FROM free WHERE container = ? AND low <= ? ORDER BY low", container, AddrKey(addresses[len(addresses)-1]))
	if err != nil {
		return nil, fmt.Errorf("reading free space: %w", err)
	}
	if taken = append(taken, addresses[next:]...); len(taken) > 0 {
		return taken, nil
	}
	for _, low := range gone {
		if err := tx.freeDelete(container, low); err != nil {
			return nil, err
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return nil, tx.conn.bulk("free", tableColumns("free"), left)
}
