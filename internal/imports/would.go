package imports

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/naming"
	"portolan/internal/space"
	"portolan/internal/store"
)

// maxWould is the number of rows of a dry run that later rows are tried with, and sameName how many of them one name finds.
const (
	maxWould = 100_000
	sameName = 4
)

// would are the rows whose resources a dry run would create. Each step of a dry run is rolled back: the rows of a later step that need
// such resources are tried together with the rows that create them.
type would struct {
	// spans are the rows by the prefix of their resource, names by its name and its absolute name.
	spans map[netip.Prefix][]*row
	names map[string][]*row
	// needs are the rows that a row was tried with.
	needs map[*row][]*row
}

// add adds a row whose resource would be created.
func (w *would) add(one *row, made *store.Resource) {
	if len(w.needs) >= maxWould {
		return
	}
	if w.needs == nil {
		*w = would{spans: map[netip.Prefix][]*row{}, names: map[string][]*row{}, needs: map[*row][]*row{}}
	}
	w.needs[one] = w.neededBy([]*row{one})
	if low, high := store.KeyAddr(made.Low), store.KeyAddr(made.High); low.IsValid() && high.IsValid() {
		if p, ok := (space.Range{Low: low, High: high}).Prefix(); ok {
			w.spans[p] = append(w.spans[p], one)
		}
	}
	for _, name := range []string{naming.Key(made.Name), made.Key} {
		if name != "" && len(w.names[name]) < sameName && !slices.Contains(w.names[name], one) {
			w.names[name] = append(w.names[name], one)
		}
	}
}

// neededBy gives the rows that others may need: in whose prefixes their addresses lie, or whose names they name or lie below.
func (w *would) neededBy(rows []*row) []*row {
	all := map[*row]bool{}
	take := func(one *row) {
		all[one] = true
		for _, other := range w.needs[one] {
			all[other] = true
		}
	}
	for _, one := range rows {
		if len(w.needs) == 0 {
			break
		}
		for text := range one.texts() {
			first, _, _ := strings.Cut(text, "-")
			p, err := netip.ParsePrefix(text)
			if a, e := netip.ParseAddr(first); e == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err == nil {
				for bits := p.Bits(); bits >= 0; bits-- {
					for _, found := range w.spans[netip.PrefixFrom(p.Addr(), bits).Masked()] {
						take(found)
					}
				}
				continue
			}
			for name := naming.Key(text[strings.LastIndexByte(text, '/')+1:]); name != ""; _, name, _ = strings.Cut(name, ".") {
				for _, found := range w.names[name] {
					take(found)
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b *row) int { return int(a.number - b.number) })
}

// texts are the texts that a row has, each once.
func (r *row) texts() map[string]bool {
	all := map[string]bool{}
	var walk func(value any)
	walk = func(value any) {
		switch x := value.(type) {
		case string:
			all[x] = true
		case []any:
			for _, one := range x {
				walk(one)
			}
		case map[string]any:
			for _, one := range x {
				walk(one)
			}
		}
	}
	for _, c := range r.cells {
		all[strings.TrimSpace(c.text)] = true
	}
	for _, raw := range r.members {
		var value any
		if json.Unmarshal(raw, &value) == nil {
			walk(value)
		}
	}
	return all
}
