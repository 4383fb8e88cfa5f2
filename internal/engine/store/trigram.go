package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Substring search in the texts of resources uses trigrams, which are three adjacent characters. The index contains, for each trigram,
// the resources whose texts contain it. The few resources that have all trigrams of a search text are then checked. The texts of a
// resource are its name and the fields that the layout declares (Layout.Searched). They are indexed with ASCII letters in lower case,
// with textMark before and after each text, and after a trigram that represents the collection.
//
// PostgreSQL maintains an index of its own (pg_trgm), if that extension is available. SQLite has a table (FTS5) whose update would double
// the cost of each change. A change therefore adds its resources to trigram_due, and a manager updates the index shortly afterwards.
// Searches also check the resources in trigram_due.

// textMark is written before and after each text. It is the unit separator, which texts are not expected to contain.
const textMark = "\x1f"

// foldCase returns a text with ASCII letters in lower case, as in the index.
func foldCase(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// Fragment is the condition that a resource of a collection may contain a text in one of the searched fields. It is true for all
// resources that contain the text, ignoring case, and for a few others. An exact condition must accompany it.
type Fragment struct {
	Collection string
	// Text has a textMark where a field must begin or end.
	Text string
	// found are the matching resources. It is valid if known is true, which is so if they were looked up and are few.
	found []int64
	known bool
	// common are the trigrams that very many resources contain.
	common map[string]bool
}

// fragment returns the condition that preselects the rows of a comparison in a collection. ok is false if the field is not searched or
// the text is too short.
func (e Compare) fragment(collection string) (f Fragment, ok bool) {
	text, isText := e.Value.(string)
	if !isText || !e.Field.Searched || e.Field.Via != "" {
		return f, false
	}
	switch e.Op {
	case "contains":
	case "startsWith":
		text = textMark + text
	case "endsWith":
		text += textMark
	default:
		return f, false
	}
	return Fragment{Collection: collection, Text: text}, utf8.RuneCountInString(text) >= 3
}

func (e Fragment) sql(b *builder, row string) { b.fragment(b, row, e) }

// maxKnownMatches is the maximum number of matches that are stored in a Fragment.
const maxKnownMatches = 500

// countFragment returns the approximate number of resources that match a fragment. If they are few, it stores them in f, so that they are
// looked up once. counted is false if there are too many; the caller decides whether counting them is worthwhile.
func (tx *Tx) countFragment(f *Fragment) (n int64, counted bool, err error) {
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	if b.fragments == nil {
		n, err = tx.estimate(*f)
		return n, true, err
	}
	b.fragments(b, *f)
	b.WriteString(" LIMIT " + strconv.Itoa(maxKnownMatches+1))
	found, err := tx.ids64(b.String(), b.args...)
	if err != nil || len(found) > maxKnownMatches {
		return 0, false, err
	}
	f.found, f.known = found, true
	return int64(len(found)), true, nil
}

// searchedOf returns the searched body members by collection.
func (l *Layout) searchedOf() map[string][]string {
	all := map[string][]string{}
	for _, i := range l.Searched {
		all[i.Collection] = append(all[i.Collection], i.Field)
	}
	return all
}

// trigramTable is the index on SQLite. Its column name identifies the searched fields: if the layout searches others, the index is
// recreated.
var trigramTable = Table{Name: "trigram", Columns: []string{"rowid", "text"}, Key: 1, Derived: "follows from the resources"}

// pendingTextTable contains the resources that the index does not have in their current state.
var pendingTextTable = Table{Name: "trigram_due", Columns: []string{"id"}, Key: 1, Derived: "pending entries of the trigram index"}

// trigramColumn returns the name of the index column for the layout.
func (l *Layout) trigramColumn() string {
	texts := make([]string, len(l.Searched))
	for i, s := range l.Searched {
		texts[i] = s.Collection + "." + s.Field
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte("1 " + strings.Join(texts, " "))) // the number is the version of the text encoding
	return "text_" + hex.EncodeToString(sum[:8])
}

// recreateTrigrams returns the statements that recreate the SQLite index and mark all resources as pending.
func (l *Layout) recreateTrigrams() []string {
	return []string{"DROP TABLE IF EXISTS trigram",
		"CREATE VIRTUAL TABLE trigram USING fts5(" + l.trigramColumn() +
			", content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')",
		"INSERT INTO trigram_due SELECT id FROM resource WHERE TRUE ON CONFLICT DO NOTHING"}
}

// collectionMark returns the trigram that represents a collection, in private-use characters. Two collections may have the same one.
func collectionMark(collection string) string {
	sum := sha256.Sum256([]byte(collection))
	return string([]rune{'\x01', 0xe000 + rune(sum[0]), 0xe000 + rune(sum[1])})
}

// indexedText returns the texts of a resource as they are indexed. It is empty if the resource has none.
func indexedText(members []string, collection, name string, body []byte) (text string, err error) {
	var b strings.Builder
	add := func(text string) {
		if text != "" {
			b.WriteString(textMark + text)
		}
	}
	add(name)
	if len(members) > 0 {
		err = Members(body, func(name, raw []byte) error {
			if !slices.Contains(members, string(name)) {
				return nil
			}
			text, err := memberText(raw)
			add(text)
			return err
		})
	}
	if b.Len() == 0 || err != nil {
		return "", err
	}
	return collectionMark(collection) + foldCase(b.String()) + textMark, nil
}

// match returns the FTS5 query for a fragment: its trigrams without common ones. Three characters across two texts match as well.
func (e Fragment) match() string {
	all := trigramsOf(foldCase(e.Text))
	if e.Collection != "" {
		all = append(all, collectionMark(e.Collection))
	}
	var b strings.Builder
	for i, gram := range e.selectRare(all) {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(`"` + strings.ReplaceAll(gram, `"`, `""`) + `"`)
	}
	return b.String()
}

// trigramsOf returns the distinct trigrams of a text.
func trigramsOf(text string) (all []string) {
	runes, known := []rune(text), map[string]bool{}
	for i := 0; i+3 <= len(runes); i++ {
		if gram := string(runes[i : i+3]); !known[gram] {
			known[gram] = true
			all = append(all, gram)
		}
	}
	return all
}

// loadCommonTrigrams returns the trigrams that very many resources contain, or nil if they are not known yet.
func (s *Store) loadCommonTrigrams() map[string]bool {
	if common := s.commonTrigrams.Load(); common != nil {
		return *common
	}
	return nil
}

// noteText records that the trigram index no longer has a resource in its current state.
func (tx *Tx) noteText(before, after *Resource) {
	if tx.RoundTrips() { // PostgreSQL maintains its index itself
		return
	}
	if before != nil && after != nil {
		if before.Name == after.Name && (len(tx.store.searchedFields[after.Collection]) == 0 || string(before.Body) == string(after.Body)) {
			return
		}
		tx.changedTexts = append(tx.changedTexts, after.ID)
		return
	}
	tx.changedTexts = append(tx.changedTexts, max(idOf(before), idOf(after)))
}

func idOf(r *Resource) int64 {
	if r == nil {
		return 0
	}
	return r.ID
}

// markAtOnce is the number of resources that one statement marks as pending.
const markAtOnce = 2000

// writeChangedTexts marks the resources recorded by noteText as pending.
func (tx *Tx) writeChangedTexts() error {
	for part := range slices.Chunk(tx.changedTexts, markAtOnce) {
		if err := tx.Write("INSERT INTO trigram_due (id) SELECT value FROM json_each(?) WHERE TRUE ON CONFLICT DO NOTHING",
			"["+idList(part)+"]"); err != nil {
			return fmt.Errorf("record texts: %w", err)
		}
	}
	return nil
}

// trigramSchema is the version of the schema that introduced the index.
const trigramSchema = 6

// indexBatch is the number of resources that one update indexes. It occupies the writer for a few milliseconds.
const indexBatch = 250

// indexTexts updates the index for the next batch of pending resources.
func (tx *Tx) indexTexts() error {
	ids, err := tx.ids64("SELECT id FROM trigram_due ORDER BY id LIMIT ?", indexBatch)
	if err != nil || len(ids) == 0 {
		return err
	}
	list := idList(ids)
	texts := map[int64]string{}
	if err := tx.Each(func(scan func(...any) error) error {
		var r Resource
		if err := scan(&r.ID, &r.Collection, &r.Name, &r.Body); err != nil {
			return err
		}
		texts[r.ID], err = indexedText(tx.store.searchedFields[r.Collection], r.Collection, r.Name, r.Body)
		return err
	}, "SELECT id, collection, coalesce(name, ''), body FROM resource WHERE id IN ("+list+")"); err != nil {
		return err
	}
	column := tx.store.layout.trigramColumn()
	for _, id := range ids {
		if text := texts[id]; text != "" {
			err = tx.Write("INSERT OR REPLACE INTO trigram (rowid, "+column+") VALUES (?, ?)", id, text)
		} else {
			err = tx.Write("DELETE FROM trigram WHERE rowid = ?", id)
		}
		if err != nil {
			return fmt.Errorf("write the trigram index: %w", err)
		}
	}
	return tx.Write("DELETE FROM trigram_due WHERE id IN (" + list + ")")
}

// IndexTexts brings the trigram index up to date. A manager does so shortly after each change. Searches find resources that are not
// indexed yet by checking all pending ones.
func (s *Store) IndexTexts(ctx context.Context) error {
	for {
		pending := false
		if err := s.View(ctx, func(tx *Tx) error {
			if tx.RoundTrips() {
				return nil
			}
			return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM trigram_due)").Scan(&pending)
		}); err != nil || !pending {
			return err
		}
		if err := s.Update(ctx, Author{}, (*Tx).indexTexts); err != nil {
			return err
		}
	}
}

// CountPendingTexts returns the number of resources that are pending in the trigram index. It is 0 on PostgreSQL.
func (s *Store) CountPendingTexts(ctx context.Context) (n int64, err error) {
	err = s.Read(ctx, func(tx *Tx) error {
		if tx.RoundTrips() {
			return nil
		}
		return tx.QueryRow("SELECT count(*) FROM trigram_due").Scan(&n)
	})
	return n, err
}

// reindexTexts recreates the index and marks all resources as pending.
func reindexTexts(tx *Tx) error {
	if tx.RoundTrips() {
		return nil
	}
	for _, statement := range tx.store.layout.recreateTrigrams() {
		if err := tx.Write(statement); err != nil {
			return err
		}
	}
	return nil
}

// trigramFaults reports resources with texts that are neither indexed nor pending.
func (tx *Tx) trigramFaults(fault func(format string, args ...any)) error {
	if tx.RoundTrips() {
		return nil
	}
	return tx.Stream(func(scan func(...any) error) error {
		var r Resource
		if err := scan(&r.ID, &r.Collection, &r.Type, &r.Name, &r.Body); err != nil {
			return err
		}
		text, err := indexedText(tx.store.searchedFields[r.Collection], r.Collection, r.Name, r.Body)
		if err == nil && text != "" {
			fault("the texts of resource %d of type %s are not indexed and not pending", r.ID, r.Type)
		}
		return err
	}, "SELECT id, collection, type, coalesce(name, ''), body FROM resource WHERE id NOT IN (SELECT id FROM trigram_docsize)"+
		" AND id NOT IN (SELECT id FROM trigram_due)")
}

// memberText returns the text of a member of a body, or "" if the member is not a string.
func memberText(raw []byte) (text string, err error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	err = json.Unmarshal(raw, &text)
	return text, err
}

// HavingText calls fn with batches of ids of resources, of any collection, that may contain a text in a searched field, ignoring case,
// until fn returns enough. A text of fewer than three characters matches nothing. whole is false if not all matches were passed: there
// are too many matches or pending resources, or the database has no trigram index.
func (tx *Tx) HavingText(text string, fn func(ids []int64) (enough bool, err error)) (whole bool, err error) {
	short := utf8.RuneCountInString(text) < 3
	if short || !tx.store.trigrams {
		return short, nil
	}
	f := Fragment{Text: text, common: tx.store.loadCommonTrigrams()}
	var ids []int64
	if tx.RoundTrips() {
		ids, whole, err = tx.findSampledMatches(f)
	} else {
		ids, whole, err = tx.findMatches(f)
	}
	if err != nil {
		return false, err
	}
	for part := range slices.Chunk(ids, loadAtOnce) {
		if enough, err := fn(part); err != nil || enough {
			return whole, err
		}
	}
	return whole, nil
}

// maxMatchFactor times Store.sortLimit is the maximum number of matches that a search checks. For pending resources, the limit is
// sortLimit.
const maxMatchFactor = 4

// findMatches returns the ids of resources that may match a fragment, and of pending ones.
func (tx *Tx) findMatches(f Fragment) (ids []int64, whole bool, err error) {
	pending, err := tx.ids64("SELECT id FROM trigram_due ORDER BY id DESC LIMIT ?", tx.store.sortLimit)
	if err != nil {
		return nil, false, err
	}
	maxMatches := maxMatchFactor * tx.store.sortLimit
	found, err := tx.ids64("SELECT rowid FROM trigram WHERE trigram MATCH ? LIMIT ?", f.match(), maxMatches)
	// Pending resources come last, because they are included whatever their text is.
	return slices.Concat(found, pending), int64(len(pending)) < tx.store.sortLimit && int64(len(found)) < maxMatches, err
}

// Texts reports whether a text of the resource equals the given text (whole), begins with it, or contains it, ignoring case.
func (tx *Tx) Texts(r *Resource, text string) (whole, begins, contains bool, err error) {
	all, err := indexedText(tx.store.searchedFields[r.Collection], r.Collection, r.Name, r.Body)
	text = foldCase(text)
	return strings.Contains(all, textMark+text+textMark), strings.Contains(all, textMark+text), strings.Contains(all, text), err
}
