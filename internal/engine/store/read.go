package store

import (
	"database/sql"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// queryOne reads one resource. It returns ErrNotFound if there are no rows.
func (tx *Tx) queryOne(query string, args ...any) (r *Resource, err error) {
	err = queryFirst(tx.conn, query, args, func(at row) error {
		r = &Resource{}
		return at.readResource(r)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	return r, err
}

// queryMany reads resources.
func (tx *Tx) queryMany(query string, args ...any) (found []*Resource, err error) {
	err = tx.conn.each(query, args, func(at row) error {
		r := &Resource{}
		found = append(found, r)
		return at.readResource(r)
	})
	return found, err
}

func parseRefs(text string) []Ref {
	if text == "" {
		return nil
	}
	refs := make([]Ref, 0, strings.Count(text, ",")+1)
	for part := range strings.SplitSeq(text, ",") {
		field, id, _ := strings.Cut(part, ":")
		target, err := strconv.ParseInt(id, 10, 64)
		if err != nil || target == 0 {
			continue
		}
		refs = append(refs, Ref{field, target})
	}
	return refs
}

func formatRefs(refs []Ref) string {
	if len(refs) == 0 {
		return ""
	}
	var b strings.Builder
	for i, r := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(r.Field)
		b.WriteByte(':')
		b.WriteString(strconv.FormatInt(r.Target, 10))
	}
	return b.String()
}

// Get reads a resource by id. It returns ErrNotFound if it does not exist.
func (tx *Tx) Get(id int64) (*Resource, error) { return tx.get(id, nil) }

// GetShown is Get for a resource that will be shown. The texts of extensions (Extension.JoinedText) may be read with it.
func (tx *Tx) GetShown(id int64) (*Resource, error) {
	// The texts would lack the changes of the transaction itself.
	if _, ok := tx.conn.(prefetcher); !ok || tx.writing {
		return tx.Get(id)
	}
	if tx.joinedTexts == nil {
		tx.joinedTexts = map[int64][]string{}
	}
	return tx.get(id, tx.joinedTexts)
}

// ExtensionText returns the text of an extension for a resource. ok is false if it was not read with the resource (GetShown).
func (tx *Tx) ExtensionText(e *Extension, id int64) (text string, ok bool) {
	texts, ok := tx.joinedTexts[id]
	if !ok || tx.writing || e.JoinedText.SQL == "" {
		return "", false
	}
	n := 0
	for _, one := range tx.store.layout.Extensions {
		if one == e {
			return texts[n], true
		}
		if one.JoinedText.SQL != "" {
			n++
		}
	}
	return "", false
}

func (tx *Tx) get(id int64, beside map[int64][]string) (*Resource, error) {
	c, err := tx.prefetcher()
	if err != nil {
		return nil, err
	}
	if c != nil {
		if tx.prefetched == nil {
			tx.prefetched = map[int64]Head{}
		}
		tx.keepPlan()
		return c.getNear(id, tx.prefetched, beside, tx.inline)
	}
	query := "SELECT " + columns + " FROM resource WHERE id = ?"
	switch {
	case tx.latest:
		if r, ok := tx.store.rowCache.Get(tx, id); ok {
			return r.shallowCopy(), nil
		}
	case tx.writing:
		if r, ok := tx.readRows[id]; ok {
			return r.shallowCopy(), nil
		}
	default:
		return tx.queryOne(query, id)
	}
	r, err := tx.queryOne(query, id)
	if err != nil || len(r.Body) > maxCachedBody {
		return r, err
	}
	if tx.latest {
		tx.store.rowCache.Put(tx, id, r.shallowCopy())
		return r, nil
	}
	if len(tx.readRows) == maxReadRows {
		tx.readRows = nil
	}
	if tx.readRows == nil {
		tx.readRows = map[int64]*Resource{}
	}
	tx.readRows[id] = r.shallowCopy()
	return r, nil
}

// maxReadRows is the number of resources that a change caches. A change often reads the same few resources, such as the parent of all
// that it creates.
const maxReadRows = 256

// shallowCopy returns a copy that shares texts, keys and references with r. Code that changes a copy replaces these and never modifies
// them.
func (r *Resource) shallowCopy() *Resource {
	own := *r
	own.Body, own.Low, own.High = slices.Clip(r.Body), slices.Clip(r.Low), slices.Clip(r.High)
	own.Refs, own.Links = slices.Clip(r.Refs), slices.Clip(r.Links)
	return &own
}

// forgetRow removes a written resource from the caches of the transaction. It must be called after the write, because followers may read
// the resource before it.
func (tx *Tx) forgetRow(id int64) {
	delete(tx.prefetched, id)
	delete(tx.readRows, id)
}

// Limits of the cached rows: their number, and the bytes of a cached body.
const (
	maxCachedRows = 4_096
	maxCachedBody = 4 << 10
)

// prefetcher is a connection with expensive round trips. It reads a resource together with the data that an answer usually needs: the
// heads of its parent and its configuration.
type prefetcher interface {
	getNear(id int64, near map[int64]Head, beside map[int64][]string, inline *inlineMembers) (*Resource, error)
}

// Head reads the head of a resource. It returns ErrNotFound if it does not exist.
func (tx *Tx) Head(id int64) (h Head, err error) {
	if h, ok := tx.prefetched[id]; ok {
		return h, nil
	}
	err = queryFirst(tx.conn, "SELECT "+tx.inline.columns("r")+" FROM resource r WHERE r.id = ?", []any{id}, func(at row) error {
		h, err = tx.inline.extractInline(at.readHead())
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return h, ErrNotFound
	}
	return h, err
}

// inlineMembers are the body members that heads include, by type.
type inlineMembers struct {
	members map[string]string
	// types is the quoted SQL list of the types. It is empty if there are none.
	types string
	// joinedTexts are the texts of the extensions. headQueries contains the statements of nearQuery, without and with these texts.
	joinedTexts []JoinedText
	headQueries [2]rowQuery
}

// ShowInline sets the body member that heads include, by type. It must be called before heads are read.
func (s *Store) ShowInline(members map[string]string) {
	types := ""
	if len(members) > 0 {
		types = "'" + strings.Join(slices.Sorted(maps.Keys(members)), "','") + "'"
	}
	inline := inlineMembers{members: members, types: types}
	for _, e := range s.layout.Extensions {
		if e.JoinedText.SQL != "" {
			inline.joinedTexts = append(inline.joinedTexts, e.JoinedText)
		}
	}
	inline.headQueries = [2]rowQuery{nearQuery(&inline, nil), nearQuery(&inline, inline.joinedTexts)}
	s.inline.Store(&inline)
}

// columns returns the columns of a head for the row alias row. The last column is the whole body if a member of it is included.
// extractInline finds the member, because the databases are slower at that.
func (m *inlineMembers) columns(row string) string {
	body := "NULL"
	if m.types != "" {
		body = "CASE WHEN " + row + ".type IN (" + m.types + ") THEN " + row + ".body END"
	}
	return row + ".id, " + row + ".collection, " + row + ".type, " + row + ".name, " + row + ".parent, " + row + ".configuration, " + body
}

// extractInline replaces the body in a head that was read by the included member, and returns the head.
func (m *inlineMembers) extractInline(h Head, err error) (Head, error) {
	if h.Inline == "" || err != nil {
		return h, err
	}
	body, shown := h.Inline, m.members[h.Type]
	h.Inline = ""
	err = Members([]byte(body), func(name, raw []byte) error {
		if string(name) == shown {
			h.Inline = string(raw)
		}
		return nil
	})
	return h, err
}

// usePrefetched adds prefetched heads to known, and returns the ids of the others.
func (tx *Tx) usePrefetched(ids []int64, known map[int64]Head) (others []int64) {
	if len(tx.prefetched) == 0 {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		h, ok := tx.prefetched[id]
		if ok {
			known[id] = h
		}
		return ok
	})
}

// Heads adds the heads of the given resources to known. It omits ids that do not exist.
func (tx *Tx) Heads(ids []int64, known map[int64]Head) error {
	const maxHeads = 64
	ids = tx.usePrefetched(ids, known)
	for len(ids) > 0 {
		// The number is rounded up to a power of two, so that only a few different statements are prepared.
		n := min(len(ids), maxHeads)
		width := 1
		for width < n {
			width *= 2
		}
		args := make([]any, width)
		for i := range args {
			args[i] = ids[min(i, n-1)]
		}
		query := "SELECT " + tx.inline.columns("r") + " FROM resource r WHERE r.id IN (?" + strings.Repeat(",?", width-1) + ")"
		if err := tx.readAfterList(query, args, func(at row) error {
			h, err := tx.inline.extractInline(at.readHead())
			known[h.ID] = h
			return err
		}); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// Links reads the targets of one field of a resource, ordered by id.
func (tx *Tx) Links(source int64, field string) (targets []int64, err error) {
	return tx.ids64("SELECT target FROM reference WHERE source = ? AND field = ? ORDER BY target", source, field)
}

// Children reads the ids of the resources directly below the parents, ordered by id for each batch of parents.
func (tx *Tx) Children(parents ...int64) (children []int64, err error) {
	for part := range slices.Chunk(parents, loadAtOnce) {
		list, args := InList(part)
		found, err := tx.ids64("SELECT id FROM resource WHERE parent IN "+list+" ORDER BY id", args...)
		if err != nil {
			return nil, err
		}
		children = append(children, found...)
	}
	return children, nil
}

// FirstChildren returns the ids of at most limit resources directly below a resource, in the order of the index.
func (tx *Tx) FirstChildren(parent int64, limit int) ([]int64, error) {
	return tx.ids64("SELECT id FROM resource WHERE parent = ? ORDER BY collection, id LIMIT ?", parent, limit)
}

func (tx *Tx) ids64(query string, args ...any) (ids []int64, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var id int64
		if err := scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
		return nil
	}, query, args...)
	return ids, err
}

// ResourcesByKey reads the resources of a configuration with the given key.
func (tx *Tx) ResourcesByKey(configuration int64, key string) ([]*Resource, error) {
	if found, ok := tx.expected.keys[keyIn{configuration, key}]; ok {
		return shallowCopies(found), nil
	}
	return tx.queryMany("SELECT "+columns+" FROM resource WHERE key = ? AND configuration = ? ORDER BY id", key, configuration)
}

// ByName reads the resources of a collection with the given name below a parent. Parent 0 means any parent.
func (tx *Tx) ByName(collection string, parent int64, name string) ([]*Resource, error) {
	return tx.queryMany("SELECT "+columns+" FROM resource WHERE name = ? AND "+CollectionIs("", collection)+
		" AND (CAST(? AS BIGINT) = 0 OR parent = ?) ORDER BY id", name, parent, parent)
}

// FindOverlapping returns the resource of the collection directly below parent whose span overlaps low-high, except for the resource with
// the id except. It returns ErrNotFound if there is none. Siblings of a collection never overlap, so only the nearest one at or below high
// can match.
func (tx *Tx) FindOverlapping(parent int64, collection string, low, high []byte, except int64) (*Resource, error) {
	r, err := tx.queryOne("SELECT "+columns+" FROM resource WHERE parent = ? AND "+CollectionIs("", collection)+
		" AND low IS NOT NULL AND low <= ? AND id <> ? ORDER BY low DESC LIMIT 1", parent, high, except)
	if err == nil && string(r.High) < string(low) {
		return nil, ErrNotFound
	}
	return r, err
}

// Holding returns the resource of a collection in a configuration whose span contains an address. It returns ErrNotFound if there is
// none. The spans of the collection must not overlap within a configuration.
func (tx *Tx) Holding(configuration int64, collection string, a netip.Addr) (*Resource, error) {
	key := AddrKey(a)
	r, err := tx.queryOne("SELECT "+columns+" FROM resource WHERE configuration = ? AND "+CollectionIs("", collection)+
		" AND low IS NOT NULL AND low <= ? ORDER BY low DESC LIMIT 1", configuration, key)
	if err == nil && string(r.High) < string(key) {
		return nil, ErrNotFound
	}
	return r, err
}

// ListWithin returns at most limit resources of the collection directly below parent that overlap low-high, ordered by their low ends. The
// search starts at the last resource at or before low: siblings of a collection never overlap, so no earlier one reaches low.
func (tx *Tx) ListWithin(parent int64, collection string, low, high []byte, limit int) ([]*Resource, error) {
	siblings := "FROM resource WHERE parent = ? AND " + CollectionIs("", collection) + " AND low IS NOT NULL AND low <= ? "
	return tx.queryMany("SELECT "+columns+" "+siblings+"AND high >= ? AND low >= coalesce((SELECT low "+siblings+
		"ORDER BY low DESC LIMIT 1), ?) ORDER BY low LIMIT ?", parent, high, low, parent, low, low, limit)
}
