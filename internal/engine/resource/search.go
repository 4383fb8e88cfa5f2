package resource

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Match is the reason why a resource matches a search text. Better matches have lower values.
type Match int

// The matches.
const (
	// MatchID: the text is the resource's id.
	MatchID Match = iota
	// MatchSpace: the resource has exactly that address or range.
	MatchSpace
	// MatchKey: the text is the look-up key, such as a hardware address or an absolute name.
	MatchKey
	// MatchName: the text is the name, or another text of the resource.
	MatchName
	// MatchRefers: the resource refers to one that has that address or look-up key.
	MatchRefers
	// MatchAround: the resource contains that address or range; the smallest one comes first.
	MatchAround
	// MatchWithin: the resource is inside that range.
	MatchWithin
	// MatchBegins: one of the resource's texts begins with the text.
	MatchBegins
	// MatchContains: one of the resource's texts contains the text.
	MatchContains
)

var matches = [...]string{"id", "address", "key", "name", "refers", "around", "within", "begins", "contains"}

// Matches returns the names of the matches, best first.
func Matches() []string { return matches[:] }

func (m Match) String() string { return matches[m] }

// Hit is a resource that was found, with the reason.
type Hit struct {
	Row   *store.Resource
	Match Match
}

// Search finds resources by a text: an id, an address, a prefix or a range, a hardware address, a name or a part of a name. Exact finds
// complete values through indexes, Anywhere finds parts of texts. Hits has the results.
type Search struct {
	API    *API
	Caller Caller
	Text   string
	// Limit is the maximum number of hits.
	Limit int
	// Hits are the results, each resource once; More says that there may be more than the limit.
	Hits []Hit
	More bool
	// Complete says that the search covered every text it had to.
	Complete bool

	seen map[int64]bool
	// cut says that some results were omitted.
	cut bool
}

// isFull reports whether enough resources were found.
func (s *Search) isFull() bool { return len(s.Hits) > s.Limit }

// add adds the resources that are not in the results yet.
func (s *Search) add(m Match, rows []*store.Resource) {
	if s.seen == nil {
		s.seen = map[int64]bool{}
	}
	for _, r := range rows {
		if !s.seen[r.ID] {
			s.seen[r.ID] = true
			s.Hits = append(s.Hits, Hit{r, m})
		}
	}
}

// find adds visible resources that match a condition.
func (s *Search) find(tx *store.Tx, m Match, where ...store.Expr) ([]*store.Resource, error) {
	if s.isFull() {
		return nil, nil
	}
	rows, err := tx.ListSome(append(store.All{s.API.visible(s.Caller)}, where...), s.Limit+1)
	s.add(m, rows)
	return rows, err
}

// Exact finds resources that have the text as a complete value, or a name that begins with it.
func (s *Search) Exact(tx *store.Tx) error {
	if id, err := strconv.ParseInt(s.Text, 10, 64); err == nil && id > RootID {
		switch r, err := s.API.find(tx, nil, id, s.Caller); {
		case err == nil:
			s.add(MatchID, []*store.Resource{r})
		case !problem.IsNotFound(err):
			return err
		}
	}
	var named []*store.Resource
	for _, step := range []func() error{
		func() (err error) { named, err = s.findSpace(tx); return err },
		func() error {
			rows, err := s.findKeys(tx)
			named = append(named, rows...)
			return err
		},
		func() error { return s.findNames(tx) },
		func() error { return s.findReferring(tx, named) },
		func() error { return s.findAround(tx) },
		func() error { return s.findPrefixes(tx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	s.sort()
	return nil
}

// sort sorts the hits by match; hits with equal matches keep their order.
func (s *Search) sort() {
	slices.SortStableFunc(s.Hits, func(a, b Hit) int { return cmp.Compare(a.Match, b.Match) })
	s.More = s.More || s.cut
	if s.isFull() {
		s.Hits, s.More = s.Hits[:s.Limit], true
	}
}

// spans returns the address, prefix or range that the text is. For an address with a prefix length, such as that of an interface, it
// returns the prefix and the address.
func (s *Search) spans() []space.Range {
	one := func(a netip.Addr) space.Range { return space.Range{Low: a.Unmap(), High: a.Unmap()} }
	if a, err := netip.ParseAddr(s.Text); err == nil && a.Zone() == "" {
		return []space.Range{one(a)}
	}
	if p, err := netip.ParsePrefix(s.Text); err == nil && p.Masked() != p {
		if r, err := space.Parse(p.Masked().String()); err == nil {
			return []space.Range{r, one(p.Addr())}
		}
	}
	if r, err := space.Parse(s.Text); err == nil {
		return []space.Range{r}
	}
	return nil
}

// searchableCollections returns the names of the searchable collections that satisfy the condition holds.
func (s *Search) searchableCollections(holds func(c *Collection) bool) (names []string) {
	for _, c := range s.API.collections {
		if c.From == store.Resources && !c.Hidden && !c.NoSearch && holds(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// spacedCollections returns the collections that use space in one of these ways; without an argument, in any way.
func (s *Search) spacedCollections(uses ...SpaceUse) []string {
	return s.searchableCollections(func(c *Collection) bool {
		return c.Space != NoSpace && !c.Scope && (len(uses) == 0 || slices.Contains(uses, c.Space))
	})
}

// The columns in search conditions.
var (
	lowColumn  = store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
	highColumn = store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}
	keyColumn  = store.Field{Kind: store.ColumnText, Path: []string{"key"}}
	nameColumn = store.Field{Kind: store.ColumnText, Path: []string{"name"}}
)

func compare(f store.Field, op string, value any) store.Expr {
	return store.Compare{Field: f, Op: op, Value: value}
}

// findSpace finds resources with exactly the address or range.
func (s *Search) findSpace(tx *store.Tx) (found []*store.Resource, err error) {
	for _, r := range s.spans() {
		rows, err := s.find(tx, MatchSpace, store.InCollection(s.spacedCollections()...), compare(lowColumn, "eq", store.AddrKey(r.Low)),
			compare(highColumn, "eq", store.AddrKey(r.High)))
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return found, nil
}

// findAround finds resources that contain the address or range, and resources inside the range.
func (s *Search) findAround(tx *store.Tx) error {
	spans := s.spans()
	if len(spans) == 0 || s.isFull() {
		return nil
	}
	r := spans[0]
	low, high := store.AddrKey(r.Low), store.AddrKey(r.High)
	rows, err := tx.ListSome(store.All{s.API.visible(s.Caller), store.InCollection(s.spacedCollections()...),
		store.Around{Low: low, High: high}},
		maxAround)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b *store.Resource) int {
		return cmp.Or(bytes.Compare(b.Low, a.Low), bytes.Compare(a.High, b.High))
	})
	if r.Low == r.High {
		s.add(MatchAround, rows)
		return nil
	}
	if limit := (s.Limit + 1) / 2; len(rows) > limit { // resources inside the range need some of the hits as well
		rows, s.cut = rows[:limit], true
	}
	s.add(MatchAround, rows)
	// Resources that contain others come first.
	for _, use := range []SpaceUse{HoldsSpace, SpansSpace, TakesSpace} {
		if _, err := s.find(tx, MatchWithin, store.InCollection(s.spacedCollections(use)...), compare(lowColumn, "ge", low),
			compare(lowColumn, "le", high), compare(highColumn, "le", high)); err != nil {
			return err
		}
	}
	return nil
}

// maxAround is the maximum number of nested blocks and networks, of all configurations, that are read around an address.
const maxAround = 10_000

// eachField calls fn for each field of the searchable types.
func (s *Search) eachField(fn func(c *Collection, f *schema.Field)) {
	s.searchableCollections(func(c *Collection) bool {
		for _, t := range c.Types {
			for _, f := range t.Fields {
				fn(c, f)
			}
		}
		return false
	})
}

// findKeys finds resources whose look-up key is the text.
func (s *Search) findKeys(tx *store.Tx) ([]*store.Resource, error) {
	known, either := map[string]bool{}, store.Any{}
	s.eachField(func(_ *Collection, f *schema.Field) {
		key := ""
		switch {
		case f.KeyPrefix != "":
			if kept, err := f.Normalize(s.Text); err == nil {
				key = f.KeyPrefix + kept
			}
		case f.DNS:
			key = naming.Key(s.Text)
		}
		if key != "" && !known[key] {
			known[key] = true
			either = append(either, compare(keyColumn, "eq", key))
		}
	})
	return s.find(tx, MatchKey, either)
}

// anySearchable returns a condition that is true for every searchable resource. Its form lets the database use the index of names by
// collection.
func (s *Search) anySearchable() store.Expr {
	return store.InCollection(s.searchableCollections(func(*Collection) bool { return true })...)
}

// findNames finds resources with the text as their name: as it is, in lower case or in upper case.
func (s *Search) findNames(tx *store.Tx) error {
	tried := []string{}
	for _, name := range []string{s.Text, strings.ToLower(s.Text), strings.ToUpper(s.Text)} {
		if slices.Contains(tried, name) {
			continue
		}
		tried = append(tried, name)
		if _, err := s.find(tx, MatchName, s.anySearchable(), compare(nameColumn, "eq", name)); err != nil {
			return err
		}
	}
	return nil
}

// findReferring finds resources that refer to a resource with the address or the key.
func (s *Search) findReferring(tx *store.Tx, named []*store.Resource) error {
	var ids []int64
	for _, r := range named {
		if space := s.API.byName[r.Collection].Space; space == TakesSpace || space == NoSpace {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := s.find(tx, MatchRefers, store.LinksTo{Targets: ids})
	return err
}

// findPrefixes finds resources whose name or absolute name begins with the text.
func (s *Search) findPrefixes(tx *store.Tx) error {
	if _, err := s.find(tx, MatchBegins, s.anySearchable(), compare(nameColumn, "startsWith", s.Text)); err != nil {
		return err
	}
	known := map[string]bool{}
	var dns []string
	s.eachField(func(c *Collection, f *schema.Field) {
		if f.DNS && !known[c.Name] {
			known[c.Name] = true
			dns = append(dns, c.Name)
		}
	})
	// Resources with DNS names have no space; the index of keys by collection contains only resources without space.
	_, err := s.find(tx, MatchBegins, store.InCollection(dns...), compare(keyColumn, "startsWith", naming.Key(s.Text)),
		compare(lowColumn, "eq", nil))
	return err
}

// FindText finds resources with the text in one of their texts, in upper or lower case, if there is room for more hits. It does nothing
// if the text, such as an address, has already identified one resource. If there are very many results, it finds some of them; the best
// matches come first.
func (s *Search) FindText(tx *store.Tx) error {
	s.Complete = true
	switch {
	case s.More || len(s.Hits) == s.Limit:
		s.More = true
		return nil
	case len(s.Hits) > 0 && s.Hits[0].Match <= MatchKey && s.Text != s.Hits[0].Row.Name:
		return nil
	}
	defer s.sort() // also the results before an interruption
	if kept := asKept(s.Text); kept != s.Text {
		if err := s.findContaining(tx, kept); err != nil {
			return err
		}
	}
	return s.findContaining(tx, s.Text)
}

// findContaining finds resources with a text in one of their texts.
func (s *Search) findContaining(tx *store.Tx, text string) error {
	const ranked = 10 // candidates for each hit within the limit
	found, n := map[Match][]*store.Resource{}, 0
	whole, err := tx.HavingText(text, func(ids []int64) (enough bool, err error) {
		rows, err := tx.ListSome(store.All{s.API.visible(s.Caller), store.IDs(ids)}, len(ids))
		if err != nil {
			return false, err
		}
		for _, r := range rows {
			m, ok, err := textMatch(tx, r, text)
			if err != nil {
				return false, err
			}
			if ok && !s.seen[r.ID] && !s.API.byName[r.Collection].NoSearch {
				found[m] = append(found[m], r)
				n++
			}
		}
		enough = n >= ranked*s.Limit
		s.More = s.More || enough
		return enough, nil
	})
	if err != nil {
		return err
	}
	s.Complete = s.Complete && (whole || s.More)
	for m := range MatchContains + 1 {
		slices.SortStableFunc(found[m], func(a, b *store.Resource) int {
			return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.ID, b.ID))
		})
		s.add(m, found[m])
	}
	return nil
}

// asKept returns a part of a hardware address in the notation of stored addresses; other texts unchanged.
func asKept(text string) string {
	if strings.Trim(text, "0123456789abcdefABCDEF:") == "" && strings.Contains(text, ":") && !strings.Contains(text, "::") {
		return strings.ReplaceAll(text, ":", "-")
	}
	return text
}

// textMatch returns how a text matches the texts of a resource; ok is false if it does not.
func textMatch(tx *store.Tx, r *store.Resource, text string) (m Match, ok bool, err error) {
	whole, begins, contains, err := tx.Texts(r, text)
	switch {
	case whole:
		return MatchName, true, err
	case begins:
		return MatchBegins, true, err
	}
	return MatchContains, contains, err
}
