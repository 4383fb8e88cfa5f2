package dhcp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// maxPrefixLength is the maximum length of a prefix that the filter finds. A prefix of 128 bits looks like an address in the table.
const maxPrefixLength = 127

// wherePrefix returns the condition for a comparison of the member prefix of a table. The columns low and high have the prefix: they
// differ, unlike those of an address.
func wherePrefix(table store.Source) func(n *schema.Node) (store.Expr, error) {
	return func(n *schema.Node) (store.Expr, error) {
		if !slices.Contains([]string{"eq", "in", "ne", "contains"}, n.Op) {
			return nil, schema.UnsupportedOperator(n, "eq in ne contains")
		}
		var either store.Any
		for _, v := range n.Values {
			if v.Null() && n.Op != "contains" {
				either = append(either, store.Selected{Query: fmt.Sprintf("SELECT id FROM %s WHERE high = low", table)})
				continue
			}
			r, err := schema.RangeOf(n, v)
			if err != nil {
				return nil, err
			}
			low, high := store.AddrKey(r.Low), store.AddrKey(r.High)
			if n.Op != "contains" {
				either = append(either, store.Selected{Query: fmt.Sprintf("SELECT id FROM %s WHERE low = ? AND high = ? AND high > low", table),
					Args: []any{low, high}})
				continue
			}
			args := containingPrefixKeys(r.Low)
			if len(args) == 0 { // no prefix of IPv4 is delegated
				either = append(either, store.False)
				continue
			}
			list := strings.TrimPrefix(strings.Repeat(",?", len(args)), ",")
			either = append(either, store.Selected{Query: fmt.Sprintf("SELECT id FROM %s WHERE low IN (%s) AND high >= ? AND high > low", table,
				list), Args: append(args, high)})
		}
		if n.Op == "ne" {
			return store.Not{Expr: either}, nil
		}
		return either, nil
	}
}

// containingPrefixKeys returns the keys of the first addresses of all prefixes, up to maxPrefixLength, that contain an IPv6 address. An
// index finds each of them.
func containingPrefixKeys(a netip.Addr) (keys []any) {
	if !a.Is6() {
		return nil
	}
	last := netip.Addr{}
	for bits := 1; bits <= maxPrefixLength; bits++ {
		if p, err := a.Prefix(bits); err == nil && p.Addr() != last {
			last = p.Addr()
			keys = append(keys, store.AddrKey(last))
		}
	}
	return keys
}

// completeSpans adds the prefixes to rows of spans. A body does not have the length of its prefix, so it is read from the table.
func completeSpans(tx *store.Tx, rows []*store.Resource) error {
	var maybe []*store.Resource
	var body store.Object
	for _, r := range rows {
		if err := body.Read(r.Body); err != nil {
			return err
		}
		if strings.Contains(textOf(&body, "address"), ":") {
			maybe = append(maybe, r)
		}
		body.Set("prefix", []byte("null"))
		r.Body = body.Text()
	}
	prefixes, err := readPrefixes(tx, maybe)
	for _, r := range maybe {
		text, is := prefixes[r.ID]
		if err != nil || !is {
			continue
		}
		if err = body.Read(r.Body); err == nil {
			body.Set("prefix", schema.AppendString(nil, text))
			r.Body = body.Text()
		}
	}
	return err
}

// readPrefixes returns the prefixes of rows of spans, by id; those of addresses are missing.
func readPrefixes(tx *store.Tx, rows []*store.Resource) (map[int64]string, error) {
	all := map[int64]string{}
	for part := range slices.Chunk(rows, countsAtOnce) {
		ids := make([]int64, len(part))
		for i, r := range part {
			ids[i] = r.ID
		}
		list, args := store.InList(ids)
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			var low, high []byte
			err := scan(&id, &low, &high)
			all[id] = space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)}.String()
			return err
		}, "SELECT id, low, high FROM "+string(spanRows)+" WHERE high > low AND id IN "+list, args...); err != nil {
			return nil, fmt.Errorf("read delegated prefixes: %w", err)
		}
	}
	return all, nil
}
