package rest

import (
	"bytes"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Lists can contain resources that do not exist: the free addresses of a network, derived from its free ranges. They have no id, and
// their fields differ only in the address. A filter is therefore converted into the set of matching addresses, without a scan.

// vacancies are the vacant resources of a list that match its filter.
type vacancies struct {
	a          *Server
	tx         *store.Tx
	kind       *resource.Vacancy
	matching   space.Set
	offset     int64
	descending bool
	// concealed says that their configuration is hidden from the caller.
	concealed bool
}

// findVacancies returns the vacant resources that a list has after the existing ones; nil if its filter does not ask for their state.
func (a *Server) findVacancies(tx *store.Tx, t resource.Target, o options, caller resource.Caller) (*vacancies, error) {
	if t.Sub == nil || t.Sub.Vacant == nil || o.filter == nil {
		return nil, nil
	}
	above, err := tx.Get(t.ID)
	if err != nil {
		return nil, err
	}
	kind, err := t.Sub.Vacant(tx, above)
	if err != nil || kind == nil || !asksForValue(o.filter, kind.Field, kind.Value) {
		return nil, err
	}
	// Missing vacant addresses would reveal hidden resources.
	if _, err := a.locateFullyVisible(tx, resource.Target{Collection: t.Collection, ID: t.ID}, caller); err != nil {
		return nil, err
	}
	v := &vacancies{a: a, tx: tx, kind: kind, offset: o.offset}
	if caller.Limited() {
		head, err := tx.Head(kind.Configuration)
		if err != nil {
			return nil, err
		}
		seen, err := a.Sees(tx, []store.Head{head}, caller)
		if err != nil {
			return nil, err
		}
		v.concealed = !seen[head.ID]
	}
	if v.matching, err = v.match(o.filter); err != nil {
		return nil, err
	}
	v.descending = len(o.order) > 0 && o.order[0].Descending && slices.Equal(o.order[0].By.Path, []string{"low"})
	return v, nil
}

// asksForValue reports whether the filter asks for a value of a field.
func asksForValue(n *schema.Node, field, value string) bool {
	for _, part := range slices.Concat(n.And, n.Or) {
		if asksForValue(part, field, value) {
			return true
		}
	}
	return len(n.Path) == 1 && n.Path[0] == field && (n.Op == "eq" || n.Op == "in") &&
		slices.ContainsFunc(n.Values, func(l schema.Literal) bool { return l.Text == value })
}

// match returns the addresses that match a filter.
func (v *vacancies) match(n *schema.Node) (space.Set, error) {
	switch {
	case n.And != nil:
		let := space.Set{v.kind.Whole}
		for _, part := range n.And {
			one, err := v.match(part)
			if err != nil {
				return nil, err
			}
			let = let.Intersect(one)
		}
		return let, nil
	case n.Or != nil:
		var let space.Set
		for _, part := range n.Or {
			one, err := v.match(part)
			if err != nil {
				return nil, err
			}
			let = let.Union(one)
		}
		return let, nil
	case n.Path[0] == v.kind.By:
		return v.matchAddress(n)
	}
	holds, err := v.matchesOther(n)
	if err != nil || !holds {
		return nil, err
	}
	return space.Set{v.kind.Whole}, nil
}

// matchAddress returns the addresses that match a comparison of the address.
func (v *vacancies) matchAddress(n *schema.Node) (let space.Set, err error) {
	whole := v.kind.Whole
	for _, l := range n.Values {
		if l.Null() { // an address is never null
			if n.Op == "ne" {
				let = let.Union(space.Set{whole})
			}
			continue
		}
		if n.Op == "within" {
			r, err := schema.RangeOf(n, l)
			if err != nil {
				return nil, err
			}
			let = let.Union(space.Set{r}.Intersect(space.Set{whole}))
			continue
		}
		at, err := netip.ParseAddr(strings.TrimSpace(l.Text))
		if err != nil {
			return nil, schema.FilterValue(n, l, "expected an IP address")
		}
		at = at.Unmap()
		one := space.Range{Low: at, High: at}
		lowest, highest := whole.Low, whole.High
		if at.Is4() != whole.Low.Is4() { // the other family: no address compares
			if n.Op == "ne" {
				let = let.Union(space.Set{whole})
			}
			continue
		}
		below, above := space.Range{Low: lowest, High: at}, space.Range{Low: at, High: highest}
		part := space.Set{one}
		switch n.Op {
		case "ge":
			part = space.Set{above}
		case "gt":
			part = space.Set{one}.Complement(above)
		case "le":
			part = space.Set{below}
		case "lt":
			part = space.Set{one}.Complement(below)
		case "ne":
			part = space.Set{one}.Complement(whole)
		}
		if (n.Op == "ge" || n.Op == "gt") && highest.Less(at) || (n.Op == "le" || n.Op == "lt") && at.Less(lowest) {
			part = nil
		}
		let = let.Union(part.Intersect(space.Set{whole}))
	}
	return let, nil
}

// matchesOther reports whether a comparison of any other field is true; except for a few, all other fields are null.
func (v *vacancies) matchesOther(n *schema.Node) (bool, error) {
	text := ""
	switch path := strings.Join(n.Path, "."); path {
	case v.kind.Field:
		text = v.kind.Value
	case "type":
		text = v.kind.Type
	case "configuration.id":
		text = fmt.Sprint(v.kind.Configuration)
	case "configuration.name", "configuration.type":
		head, err := v.tx.Head(v.kind.Configuration)
		if err != nil {
			return false, err
		}
		if v.concealed {
			break
		}
		text = head.Type
		if path == "configuration.name" {
			text = head.Name
		}
	case "configuration":
		if !v.concealed {
			text = "there"
		}
	}
	for _, l := range n.Values {
		null := l.Null()
		holds := false
		switch n.Op {
		case "eq", "in":
			holds = null && text == "" || !null && text != "" && text == l.Text
		case "ne":
			holds = null && text != "" || !null && text != l.Text
		case "contains":
			holds = text != "" && strings.Contains(text, l.Text)
		case "startsWith":
			holds = text != "" && strings.HasPrefix(text, l.Text)
		case "endsWith":
			holds = text != "" && strings.HasSuffix(text, l.Text)
		}
		if holds {
			return true, nil
		}
	}
	return false, nil
}

// total returns the number of vacant resources plus the number of others.
func (v *vacancies) total(others int64) (string, error) {
	sum := big.NewInt(others)
	if v == nil {
		return sum.String(), nil
	}
	if len(v.matching) == 1 && v.matching[0] == v.kind.Whole {
		n, err := v.kind.Size()
		if err != nil {
			return "", err
		}
		return sum.Add(sum, n).String(), nil
	}
	for _, part := range v.matching {
		if err := v.kind.Free(part.Low, part.High, false, func(i space.Range) bool {
			sum.Add(sum, i.Size())
			return true
		}); err != nil {
			return "", err
		}
	}
	return sum.String(), nil
}

// list adds the vacant resources to a page that has room after the existing ones.
func (v *vacancies) list(rows *rowCount, p *pager) error {
	if v == nil || len(v.matching) == 0 {
		return nil
	}
	skip := new(big.Int)
	if v.offset > 0 {
		others, err := rows.get()
		if err != nil {
			return err
		}
		if v.offset > others {
			skip.SetInt64(v.offset - others)
		}
	}
	row, sample, err := v.sample()
	if err != nil {
		return err
	}
	parts := v.matching
	if v.descending {
		parts = slices.Clone(parts)
		slices.Reverse(parts)
	}
	for _, part := range parts {
		var failed error
		if err := v.kind.Free(part.Low, part.High, v.descending, func(i space.Range) bool {
			failed = v.each(i, skip, func(a netip.Addr) error {
				one := *row
				one.Body = bytes.Replace(row.Body, sample, []byte(`"`+a.String()+`"`), 1)
				return p.add(&one)
			}, p)
			return failed == nil && !p.more
		}); err != nil {
			return err
		}
		if failed != nil || p.more {
			return failed
		}
	}
	return nil
}

// each calls fn for the addresses of a free range after the skipped ones, until the page is full.
func (v *vacancies) each(free space.Range, skip *big.Int, fn func(netip.Addr) error, p *pager) error {
	size := free.Size()
	if skip.Cmp(size) >= 0 {
		skip.Sub(skip, size)
		return nil
	}
	at := free.Nth(skip)
	if v.descending {
		at = free.Nth(new(big.Int).Sub(new(big.Int).Sub(size, big.NewInt(1)), skip))
	}
	skip.SetInt64(0)
	for at.IsValid() && free.Has(at) && !p.more {
		if err := fn(at); err != nil {
			return err
		}
		if v.descending {
			at = at.Prev()
		} else {
			at = at.Next()
		}
	}
	return nil
}

// sample returns the row of a vacant resource, and the JSON text of its address in the body.
func (v *vacancies) sample() (*store.Resource, []byte, error) {
	t := v.a.TypeNamed(v.kind.Type)
	o := t.New()
	h := schema.HeadOf(o)
	h.Parent, h.Config = v.kind.Parent, v.kind.Configuration
	first := v.kind.Whole.Low.String()
	given := map[string][]byte{v.kind.By: schema.AppendString(nil, first), v.kind.Field: schema.AppendString(nil, v.kind.Value)}
	row, err := t.Row(o, nil)
	if err != nil {
		return nil, nil, err
	}
	row.Low, row.High = nil, nil
	if row.Body, err = t.AppendWhole(nil, row.Body); err != nil {
		return nil, nil, err
	}
	if row.Body, err = store.Rewritten(row.Body, given); err != nil {
		return nil, nil, err
	}
	return row, given[v.kind.By], nil
}
