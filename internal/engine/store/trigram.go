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

// What stands anywhere inside the texts of resources is found by trigrams: three characters that stand side by side. An index has, for
// each trigram, the resources that have it; those that have all of a text's are few, and are looked at. The texts of a resource
// are its name and what the layout says (Layout.Searched), each between two marks, in small ASCII letters, behind a trigram that
// stands for the collection.
//
// PostgreSQL has an index that it keeps in step itself (pg_trgm), where that extension may be used. SQLite has a table (FTS5) that would
// cost each change as much as the change itself: a change notes its resources in trigram_due, and a manager moves them into
// the index soon after. What is due is looked at with what is found.

// mark stands before and behind each text: the unit separator, which no text is expected to have.
const textMark = "\x1f"

// fold gives the form in which texts are in the index: upper and lower case of ASCII are the same there.
func foldCase(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// Fragment is the condition that a resource of a collection may have a text, in one of the fields that are searched. It holds for all
// that have it, in upper or lower case, and for a few that do not: it stands beside a condition that says what is asked.
type Fragment struct {
	Collection string
	// Text has a mark where a field must begin or end.
	Text string
	// found are the resources, where they were looked for and are few.
	found []int64
	known bool
	// common are the trigrams that very many resources have.
	common map[string]bool
}

// fragment gives the condition that narrows a comparison down, in a collection; ok is false where there is none: the field is not
// searched, or the text is too short.
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

// fewFound is how many resources are noted that have a fragment.
const maxKnownMatches = 500

// look gives about how many resources have a fragment; counted is false where that is not known yet, and it is worth the time to count
// them. Where they are few they are noted, so that they are looked for once.
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

// searchedOf are the members of bodies that are searched, of each collection that has any.
func (l *Layout) searchedOf() map[string][]string {
	all := map[string][]string{}
	for _, i := range l.Searched {
		all[i.Collection] = append(all[i.Collection], i.Field)
	}
	return all
}

// trigramTable is the index on SQLite. Its column is named by what is in it: where the layout searches something else, it is made anew.
var trigramTable = Table{Name: "trigram", Columns: []string{"rowid", "text"}, Key: 1, Derived: "follows from the resources"}

// dueTable has the resources that the index does not have as they are.
var pendingTextTable = Table{Name: "trigram_due", Columns: []string{"id"}, Key: 1, Derived: "says what the index of trigrams lacks"}

// trigramColumn is the column that the index has for the layout.
func (l *Layout) trigramColumn() string {
	texts := make([]string, len(l.Searched))
	for i, s := range l.Searched {
		texts[i] = s.Collection + "." + s.Field
	}
	slices.Sort(texts)
	sum := sha256.Sum256([]byte("1 " + strings.Join(texts, " "))) // the number is that of how texts are written
	return "text_" + hex.EncodeToString(sum[:8])
}

// remakeTrigrams gives the statements that make the index of SQLite anew and let everything be due.
func (l *Layout) recreateTrigrams() []string {
	return []string{"DROP TABLE IF EXISTS trigram",
		"CREATE VIRTUAL TABLE trigram USING fts5(" + l.trigramColumn() +
			", content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')",
		"INSERT INTO trigram_due SELECT id FROM resource WHERE TRUE ON CONFLICT DO NOTHING"}
}

// collectionMark is the trigram that stands for a collection, in private characters; two of many may share one.
func collectionMark(collection string) string {
	sum := sha256.Sum256([]byte(collection))
	return string([]rune{'\x01', 0xe000 + rune(sum[0]), 0xe000 + rune(sum[1])})
}

// searched gives the texts of a resource as they are in the index; empty where it has none.
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

// match gives what FTS5 looks for: the trigrams of a text, but for common ones. Marks between two texts need not both be there.
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

// grams gives the trigrams of a text, each once.
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

// commonGrams are the trigrams that very many resources have; nil where that is not known.
func (s *Store) loadCommonTrigrams() map[string]bool {
	if common := s.commonTrigrams.Load(); common != nil {
		return *common
	}
	return nil
}

// noteText notes a resource that the index of trigrams does not have as it is any more.
func (tx *Tx) noteText(before, after *Resource) {
	if tx.RoundTrips() { // which keeps its index itself
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

// writeDue writes what noteText noted.
func (tx *Tx) writeChangedTexts() error {
	for _, id := range tx.changedTexts {
		if err := tx.Write("INSERT INTO trigram_due (id) VALUES (?) ON CONFLICT DO NOTHING", id); err != nil {
			return fmt.Errorf("noting texts: %w", err)
		}
	}
	return nil
}

// trigramSchema is the version of the schema that brought the index.
const trigramSchema = 6

// dueStep is how many resources are moved into the index at a time: the writer is held for some milliseconds.
const indexBatch = 250

// indexTexts moves resources that are due into the index.
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
			return fmt.Errorf("writing the index of trigrams: %w", err)
		}
	}
	return tx.Write("DELETE FROM trigram_due WHERE id IN (" + list + ")")
}

// IndexTexts brings the index of trigrams up to date. A manager does so by itself, soon after each change; what is not in the index
// yet is found all the same, by looking at it.
func (s *Store) IndexTexts(ctx context.Context) error {
	for {
		due := false
		if err := s.View(ctx, func(tx *Tx) error {
			if tx.RoundTrips() {
				return nil
			}
			return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM trigram_due)").Scan(&due)
		}); err != nil || !due {
			return err
		}
		if err := s.Update(ctx, Author{}, (*Tx).indexTexts); err != nil {
			return err
		}
	}
}

// TextsDue is how many resources the index of trigrams does not have as they are. On PostgreSQL there are none.
func (s *Store) TextsDue(ctx context.Context) (n int64, err error) {
	err = s.Read(ctx, func(tx *Tx) error {
		if tx.RoundTrips() {
			return nil
		}
		return tx.QueryRow("SELECT count(*) FROM trigram_due").Scan(&n)
	})
	return n, err
}

// reindexTexts lets all resources be due.
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

// trigramFaults looks for resources whose texts the index does not know of.
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
			fault("the texts of %d, of type %s, are in no index and are not due", r.ID, r.Type)
		}
		return err
	}, "SELECT id, collection, type, coalesce(name, ''), body FROM resource WHERE id NOT IN (SELECT id FROM trigram_docsize)"+
		" AND id NOT IN (SELECT id FROM trigram_due)")
}

// memberText gives the text that a member of a body is; empty where it is none.
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

// HavingText calls fn with the ids of resources of any collection that may have a text in what is searched, in upper or lower case,
// some at a time, until fn says that it has enough. A text of fewer than three characters has none. whole is false where not all
// were given: so many have the text, or have changed just now, or the database has no index of trigrams.
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

// mostFound is how many resources that may have a text are looked at, in so many times Store.few; of what is due, once that.
const maxMatchFactor = 4

// matching gives the ids of resources that may have a fragment, and of those that are due.
func (tx *Tx) findMatches(f Fragment) (ids []int64, whole bool, err error) {
	due, err := tx.ids64("SELECT id FROM trigram_due ORDER BY id DESC LIMIT ?", tx.store.sortLimit)
	if err != nil {
		return nil, false, err
	}
	most := maxMatchFactor * tx.store.sortLimit
	found, err := tx.ids64("SELECT rowid FROM trigram WHERE trigram MATCH ? LIMIT ?", f.match(), most)
	// What is due comes last: it is all that has changed, whatever its text.
	return slices.Concat(found, due), int64(len(due)) < tx.store.sortLimit && int64(len(found)) < most, err
}

// Texts reports whether one of the texts of a resource is a text, begins with it, or has it anywhere, in upper or lower case.
func (tx *Tx) Texts(r *Resource, text string) (whole, begins, contains bool, err error) {
	all, err := indexedText(tx.store.searchedFields[r.Collection], r.Collection, r.Name, r.Body)
	text = foldCase(text)
	return strings.Contains(all, textMark+text+textMark), strings.Contains(all, textMark+text), strings.Contains(all, text), err
}
