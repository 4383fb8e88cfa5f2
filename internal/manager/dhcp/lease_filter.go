package dhcp

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// selectEnds selects the ids of the leases whose ends meet a condition, by the pages that may contain such ends. An index finds the pages.
// The first condition is on the page, the second one on the end of a lease.
const selectEnds = "SELECT l.id FROM (WITH RECURSIVE place (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM place WHERE i < 255) " +
	"SELECT p.configuration AS configuration, " +
	"CAST(substr(p.first, 1, length(p.first) - 1) || substr(p.ends, 5 * i + 1, 1) AS BLOB) AS low " +
	"FROM dhcp_lease_page p JOIN place ON 5 * i < length(p.ends) WHERE %s AND substr(p.ends, 5 * i + 2, 4) %s) e " +
	"JOIN dhcp_lease l ON l.configuration = e.configuration AND l.low = e.low"

// whereExpires returns the condition for a comparison of leaseExpirationDateTime, which is in the pages of leases.
func whereExpires(n *schema.Node) (store.Expr, error) {
	field := &schema.Field{Name: n.Path[0], Kind: schema.Time}
	one := func(v schema.Literal) (store.Expr, error) {
		op := n.Op
		if op == "in" || op == "ne" {
			op = "eq"
		}
		e, err := field.CompareWith(&schema.Node{Path: n.Path, At: n.At, Op: op, Values: []schema.Literal{v}}, field.StoreField())
		if err != nil {
			return nil, err
		}
		c, ok := e.(store.Compare)
		if !ok {
			return nil, fmt.Errorf("unexpected comparison of a time: %T", e)
		}
		return expiresAt(op, c.Value)
	}
	var either store.Any
	for _, v := range n.Values {
		e, err := one(v)
		if err != nil {
			return nil, err
		}
		either = append(either, e)
	}
	if n.Op == "ne" {
		return store.Not{Expr: either}, nil
	}
	return either, nil
}

// expiresAt returns the condition for one value: a time as text, or nil for leases without an end.
func expiresAt(op string, value any) (store.Expr, error) {
	first, last := packEnd(0), packEnd(infinite-1)
	if value == nil {
		return store.Not{Expr: store.Selected{Query: fmt.Sprintf(selectEnds, "p.latest IS NOT NULL", "<= ?"), Args: []any{last}}}, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("unexpected value of a time: %T", value)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("unexpected form of a time: %w", err)
	}
	seconds := at.Unix()
	switch op {
	case "eq":
		if seconds < 0 || seconds >= infinite {
			return store.False, nil
		}
		first, last = packEnd(seconds), packEnd(seconds)
	case "ge":
		first = packEnd(seconds)
	case "gt":
		first = packEnd(seconds + 1)
	case "le":
		last = packEnd(seconds)
	default: // lt
		last = packEnd(seconds - 1)
	}
	if seconds >= infinite-1 && op[0] == 'g' || seconds < 1 && op[0] == 'l' {
		return store.False, nil
	}
	return store.Selected{Query: fmt.Sprintf(selectEnds, "p.latest >= ? AND p.earliest <= ?", "BETWEEN ? AND ?"),
		Args: []any{first, last, first, last}}, nil
}

// packEnd returns an end in Unix seconds as a page contains it: packed ends compare like times.
func packEnd(seconds int64) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(min(max(0, seconds), math.MaxUint32))) //nolint:gosec // within the bounds
}
