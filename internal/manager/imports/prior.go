package imports

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// maxPrior is the number of prior rows kept in a dry run. samePrior is the number of prior rows kept for one prefix or name.
const (
	maxPrior  = 100_000
	samePrior = 4
)

// priorRows are the rows of a dry run whose resources would be created. A dry run rolls each step back, so a later step tries its rows
// together with the prior rows that they need.
type priorRows struct {
	// spans are the rows by the prefix of their resource, and by the configuration that they name. names are the rows by the name and the
	// absolute name of their resource.
	spans map[priorSpan][]*row
	names map[string][]*row
	// needs are the prior rows that a row needs, at any depth.
	needs map[*row][]*row
}

// priorSpan is a prefix in a configuration; configuration is empty if the row does not name it.
type priorSpan struct {
	configuration string
	prefix        netip.Prefix
}

// add adds a row whose resource would be created, up to maxPrior rows.
func (w *priorRows) add(one *row, made *store.Resource) {
	if len(w.needs) >= maxPrior {
		return
	}
	if w.needs == nil {
		*w = priorRows{spans: map[priorSpan][]*row{}, names: map[string][]*row{}, needs: map[*row][]*row{}}
	}
	w.needs[one] = w.neededBy([]*row{one})
	if p, ok := (space.Range{Low: store.KeyAddr(made.Low), High: store.KeyAddr(made.High)}).Prefix(); ok {
		if at := (priorSpan{one.configuration(), p}); len(w.spans[at]) < samePrior {
			w.spans[at] = append(w.spans[at], one)
		}
	}
	for _, name := range []string{naming.Key(made.Name), made.Key} {
		if name != "" && len(w.names[name]) < samePrior && !slices.Contains(w.names[name], one) {
			w.names[name] = append(w.names[name], one)
		}
	}
}

// neededBy returns the prior rows that create the parents and references of the given rows, in the order of the file. These rows have a
// prefix that contains an address of a given row, or the name, or a parent domain of the name, in one of its texts.
func (w *priorRows) neededBy(rows []*row) []*row {
	if len(w.needs) == 0 {
		return nil
	}
	all := map[*row]bool{}
	add := func(found []*row) {
		for _, one := range found {
			all[one] = true
			for _, other := range w.needs[one] {
				all[other] = true
			}
		}
	}
	for _, one := range rows {
		for text := range one.texts() {
			first, _, _ := strings.Cut(text, "-")
			p, err := netip.ParsePrefix(text)
			if a, e := netip.ParseAddr(first); e == nil {
				p, err = netip.PrefixFrom(a, a.BitLen()), nil
			}
			if err == nil {
				for bits := p.Bits(); bits >= 0; bits-- {
					add(w.spans[priorSpan{one.configuration(), netip.PrefixFrom(p.Addr(), bits).Masked()}])
				}
				continue
			}
			for name := naming.Key(text[strings.LastIndexByte(text, '/')+1:]); name != ""; _, name, _ = strings.Cut(name, ".") {
				add(w.names[name])
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b *row) int { return cmp.Compare(a.number, b.number) })
}

// configuration returns the name of the configuration that a row gives; empty if it gives none.
func (r *row) configuration() string {
	for _, c := range r.cells {
		if c.column.Name == "configuration.name" || c.column.Name == "configuration" {
			return strings.TrimSpace(c.text)
		}
	}
	var name string
	var one struct{ Name string }
	if raw := r.members["configuration"]; json.Unmarshal(raw, &name) != nil && json.Unmarshal(raw, &one) == nil {
		name = one.Name
	}
	return name
}

// texts returns the texts of a row, each once.
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
