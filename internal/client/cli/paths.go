// Package cli implements the shared parts of the command line: paths of resources, field values, contexts, documents of resources, and
// output. It is a client of the public API. It reads the types and fields from the declarations in the program, so that command lines can
// be completed and checked without a manager.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// UsageError is a mistake on the command line.
type UsageError struct{ error }

// Unwrap returns the underlying error.
func (e UsageError) Unwrap() error { return e.error }

// wrongf returns a UsageError with a formatted message.
func wrongf(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Manager is the manager that commands address.
type Manager struct {
	*client.Client
	// API holds the declarations of the API, without a store.
	API *resource.API
	// Configuration and View are the names of the default configuration and view of a command. Empty means any.
	Configuration, View string
}

// Path is the target of a command: a collection, a resource, or a subcollection of a resource.
type Path struct {
	Collection *resource.Collection
	// ID is the ID of the resource; 0 means the collection itself.
	ID int64
	// Sub is the subcollection; nil means the resource itself.
	Sub *resource.Sub
	// Report is the last segment of a report on the resource, such as serving for a zone. Empty means none.
	Report string
	// Above is the path before the ID of a resource that exists only in a subcollection, such as databases/100/schedules. Empty means that the
	// path starts with the collection.
	Above string
}

// String returns the path below /api/v2, such as networks/100123/addresses.
func (p Path) String() string {
	text := cmp.Or(p.Above, p.Collection.Path())
	if p.ID != 0 {
		text += fmt.Sprint("/", p.ID)
	}
	if p.Sub != nil {
		text += "/" + p.Sub.Name
	}
	if p.Report != "" {
		text += "/" + p.Report
	}
	return text
}

// List reports whether the path is a collection or a subcollection.
func (p Path) List() bool { return p.ID == 0 || p.Sub != nil }

// Items returns the collection of the resources at the path.
func (p Path) Items(a *resource.API) *resource.Collection {
	if types := p.Types(a); p.Sub != nil && len(types) > 0 {
		return a.CollectionOf(types[0])
	}
	return p.Collection
}

// Types returns the types of the resources at the path.
func (p Path) Types(a *resource.API) []*schema.Type {
	if p.Sub != nil {
		return a.ItemTypes(p.Sub)
	}
	return p.Collection.Types
}

// CollectionNamed returns the collection that a word names, in any case: by its plural, its singular, or a type, such as networks, network
// or IPv4Network.
func CollectionNamed(a *resource.API, word string) (*resource.Collection, error) {
	named := func(name string) bool { return strings.EqualFold(name, word) || strings.EqualFold(name, plural(word)) }
	for _, c := range a.Collections() {
		if own := a.CollectionByPath(c.Path()) == c; own && named(c.Path()) {
			return c, nil
		}
	}
	for _, t := range a.AllTypes() {
		if strings.EqualFold(t.Name, word) {
			return a.CollectionOf(t), nil
		}
	}
	near := FindNearest(word, CollectionNames(a))
	if near != "" {
		return nil, wrongf("no collection %q; did you mean %s? portolan list shows all", word, near)
	}
	return nil, wrongf("no collection %q; examples are networks, zones and users; portolan list shows all", word)
}

// plural returns the plural of a word, and resourceRecords for record.
func plural(word string) string {
	lower := strings.ToLower(word)
	switch {
	case lower == "":
		return word
	case lower == "record", lower == "records":
		return "resourceRecords"
	case strings.HasSuffix(lower, "y"):
		return word[:len(word)-1] + "ies"
	case strings.HasSuffix(lower, "ss"), strings.HasSuffix(lower, "x"):
		return word + "es"
	}
	return word + "s"
}

// CollectionNames returns the names of the collections that have a path of their own.
func CollectionNames(a *resource.API) (names []string) {
	for _, c := range a.Collections() {
		if !c.Inner && !c.Joins {
			names = append(names, c.Path())
		}
	}
	slices.Sort(names)
	return names
}

// Find returns the path that a text names, such as networks, networks/10.1.0.0/24, zone/example.net or networks/100123/addresses. A
// resource is named by its ID or its key. Find returns an error if several resources have the key.
func (m *Manager) Find(ctx context.Context, text string) (p Path, err error) {
	word, rest, _ := strings.Cut(strings.Trim(text, "/"), "/")
	if word == "" {
		return p, wrongf("%q is not a path, such as networks, networks/10.1.0.0/24 or zones/example.net/resourceRecords", text)
	}
	if p.Collection, err = CollectionNamed(m.API, word); err != nil || rest == "" {
		return p, err
	}
	key := rest
	if i := strings.LastIndexByte(rest, '/'); i > 0 { // the key may contain a slash, for example a range
		if p.Sub = p.Collection.Sub(rest[i+1:]); p.Sub != nil {
			key = rest[:i]
		} else if p.Collection.HasReport(rest[i+1:]) {
			p.Report, key = rest[i+1:], rest[:i]
		}
	}
	if inner, item := m.splitInner(p.Collection, rest); inner != nil {
		p.ID, err = m.numberOf(ctx, p.Collection, strings.TrimSuffix(rest, "/"+inner.Name+"/"+strconv.FormatInt(item, 10)))
		above := Path{Collection: p.Collection, ID: p.ID, Sub: inner}
		return Path{Collection: above.Items(m.API), ID: item, Above: above.String()}, err
	}
	p.ID, err = m.numberOf(ctx, p.Collection, key)
	return p, err
}

// splitInner returns the subcollection and the ID at the end of a path, for a resource that exists only in a subcollection, such as
// 100/schedules/101 of a database. It returns nil for all other paths.
func (m *Manager) splitInner(c *resource.Collection, rest string) (*resource.Sub, int64) {
	i := strings.LastIndexByte(rest, '/')
	if i < 0 {
		return nil, 0
	}
	item, err := strconv.ParseInt(rest[i+1:], 10, 64)
	sub := c.Sub(rest[strings.LastIndexByte(rest[:i], '/')+1 : i])
	if err != nil || item <= 0 || sub == nil || !(Path{Collection: c, Sub: sub}).Items(m.API).Inner {
		return nil, 0
	}
	return sub, item
}

// FindOne calls Find and returns an error unless the text names a resource.
func (m *Manager) FindOne(ctx context.Context, text string) (p Path, err error) {
	if p, err = m.Find(ctx, text); err == nil && (p.List() || p.Report != "") {
		err = wrongf("%q is not a resource, such as %s/%s or %s/100123", text, p.Collection.Name, exampleKey(p.Collection), p.Collection.Name)
	}
	return p, err
}

// exampleKey returns an example of a key in the collection.
func exampleKey(c *resource.Collection) string {
	for _, t := range c.Types {
		if f := t.ByName[c.KeyField()]; f != nil && f.Example != "" {
			return f.Example
		}
	}
	return "NAME"
}

// numberOf returns the ID of the resource of a collection with a key. It returns an error if none or several have the key.
func (m *Manager) numberOf(ctx context.Context, c *resource.Collection, key string) (int64, error) {
	number, wrong := strconv.ParseInt(key, 10, 64)
	if wrong == nil && c.KeyField() != "name" { // a number is never a range or an address
		return number, nil
	}
	if alias := c.Aliases[key]; alias != nil {
		var one client.Head
		err := m.Get(ctx, c.Path()+"/"+key+"?fields=id", &one)
		return one.ID, err
	}
	field := c.KeyField()
	if (field == "range" || field == "address") && !strings.ContainsAny(key, ".:") && !c.HardwareKey(key) { // a name, not an address
		field = "name"
	}
	if a, err := netip.ParseAddr(key); err == nil && field == "range" && c.Name != "ranges" {
		return 0, wrongf("%s is an address, and %s have ranges: give a range, or list those that contain it with portolan list %s --filter "+
			"\"range:contains('%s')\"", a, c.Name, c.Name, a)
	}
	filter := strings.Join(append([]string{field + ":" + Quoted(key)}, m.scopes(c)...), " and ")
	ids, err := m.IDs(ctx, c.Path(), filter, maxNamesakes)
	if err == nil && len(ids) > 1 && m.View != "" && c.PlacedBy == "view" && !hasField(c, "view") {
		ids, err = m.filterByView(ctx, c, ids)
	}
	switch {
	case err != nil:
		return 0, err
	case len(ids) == 0 && wrong == nil: // no resource has the number as its name
		return number, nil
	case len(ids) == 0:
		return 0, fmt.Errorf("%s contains no resource with the %s %q%s", c.Path(), field, key, m.ScopeWords(c))
	case len(ids) == 1:
		return ids[0], nil
	}
	hint := "use its number"
	var of, flags []string
	if m.Configuration == "" && hasField(c, "configuration") {
		of, flags = append(of, "configuration"), append(flags, "--configuration NAME")
	}
	if m.View == "" && c.PlacedBy == "view" {
		of, flags = append(of, "view"), append(flags, "--view NAME")
	}
	if len(of) > 0 {
		hint = fmt.Sprintf("specify its %s (%s), or use its number", strings.Join(of, " and "), strings.Join(flags, " "))
	}
	return 0, wrongf("several of %s have the %s %q: %s; portolan list %s --filter %q shows them", c.Path(), field, key, hint, c.Path(),
		field+":"+Quoted(key))
}

// maxNamesakes is the maximum number of resources with the same key that are read.
const maxNamesakes = 20

// filterByView returns the records whose zone is in the default view.
func (m *Manager) filterByView(ctx context.Context, c *resource.Collection, ids []int64) (left []int64, err error) {
	for _, id := range ids {
		var record struct {
			Links map[string]client.Link `json:"_links"`
		}
		if err := m.Get(ctx, fmt.Sprint(c.Name, "/", id, "?fields=id,_links"), &record); err != nil {
			return nil, err
		}
		var zone struct{ View struct{ Name string } }
		if err := m.Get(ctx, strings.TrimPrefix(record.Links["up"].Href, client.AddressPath)+"?fields=id,view", &zone); err != nil {
			return nil, err
		}
		if zone.View.Name == m.View {
			left = append(left, id)
		}
	}
	return left, nil
}

// ScopeWords returns the search scope for an error message. It is empty if the search was not limited to a configuration.
func (m *Manager) ScopeWords(c *resource.Collection) string {
	if m.Configuration == "" || !hasField(c, "configuration") {
		return ""
	}
	return " in the configuration " + m.Configuration
}

// CheckScopes returns an error if the default configuration or view does not exist.
func (m *Manager) CheckScopes(ctx context.Context) error {
	for _, one := range []struct{ collection, name string }{{"configurations", m.Configuration}, {"views", m.View}} {
		if one.name == "" {
			continue
		}
		ids, err := m.IDs(ctx, one.collection, "name:"+Quoted(one.name), 1)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return fmt.Errorf("%s contains no resource with the name %q; portolan list %s shows all", one.collection, one.name, one.collection)
		}
	}
	return nil
}

// scopes returns the filters for the default configuration and view, as far as the collection has these fields.
func (m *Manager) scopes(c *resource.Collection) (filters []string) {
	for _, scope := range []struct{ field, name string }{{"configuration", m.Configuration}, {"view", m.View}} {
		if scope.name != "" && hasField(c, scope.field) {
			filters = append(filters, scope.field+".name:"+Quoted(scope.name))
		}
	}
	return filters
}

// ScopeFilters returns the filters joined with those for the default configuration and view.
func (m *Manager) ScopeFilters(c *resource.Collection, filters []string) string {
	return strings.Join(append(slices.Clone(filters), m.scopes(c)...), " and ")
}

// hasField reports whether all types of a collection have a reference field of this name.
func hasField(c *resource.Collection, name string) bool {
	return !slices.ContainsFunc(c.Types, func(t *schema.Type) bool { f := t.ByName[name]; return f == nil || f.Kind != schema.Reference })
}

// Quoted returns a text as a quoted string of the filter syntax.
func Quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// FindNearest returns the word most similar to another one. It returns an empty text if no word is similar.
func FindNearest(word string, words []string) (near string) {
	limit := max(2, len(word)/3) + 1
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w)); d < limit {
			near, limit = w, d
		}
	}
	return near
}

// distance returns the number of insertions, deletions, substitutions and swaps of neighbours between two words (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
