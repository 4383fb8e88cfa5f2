package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// pg_trgm knows letters and digits alone, and takes what stands between two others for a word. So that names, addresses and hardware
// addresses are one word each with their marks, what stands in them beside letters and digits is written as a letter, which now and
// then makes a row look like what is sought. So is what means something in a pattern of LIKE.
const (
	wordFrom = textMark + `.-:_/@ %\`
	wordTo   = `zqxjvvvvvv`
)

// word writes a text as a word.
func asWord(text string) string {
	return strings.Map(func(r rune) rune {
		if i := strings.IndexRune(wordFrom, r); i >= 0 {
			return rune(wordTo[i])
		}
		return r
	}, foldCase(text))
}

// words gives the texts of a row that are searched, as SQL: what the index is of, and what is compared.
func (l *Layout) words(row string) string {
	var b strings.Builder
	b.WriteString("translate(lower(('" + textMark + "' || coalesce(" + row + ".name, '') || '" +
		textMark + "'")
	members := map[string][]string{}
	for _, i := range l.Searched {
		members[i.Field] = append(members[i.Field], i.Collection)
	}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		slices.Sort(members[member])
		b.WriteString(" || CASE WHEN " + row + ".collection IN (" + quoted(members[member]...) + ") THEN coalesce(json_extract(" + row +
			".body, '" + path([]string{member}) + "'), '') || '" + textMark + "' ELSE '' END")
	}
	b.WriteString(`) COLLATE "C"), '` + wordFrom + "', '" + wordTo + "')")
	return b.String()
}

func postgresFragment(b *builder, row string, f Fragment) {
	b.WriteString(b.layout.words(row) + " LIKE ")
	b.arg("%" + asWord(f.Text) + "%")
}

// hasWord reports whether the index of trigrams has something to look for, whatever the locale: three letters or digits of ASCII side by
// side. One plan is as good as any then.
func (e Fragment) hasWord() bool {
	n := 0
	for _, c := range asWord(e.Text) {
		if n++; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			n = 0
		}
		if n == 3 {
			return true
		}
	}
	return false
}

// estimates remembers how many resources PostgreSQL expects to have a fragment, by its word. The answer decides how rows are found, and
// never which: one that is a minute old is as good.
type estimates struct {
	mu    sync.Mutex
	known map[string]rowEstimate // guarded by mu
}

type rowEstimate struct {
	rows int64
	at   time.Time
}

// How long an estimate is remembered, and how many are.
const (
	estimateTime = time.Minute
	maxEstimates = 1000
)

func (e *estimates) get(word string, now time.Time) (rows int64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, ok := e.known[word]
	return found.rows, ok && now.Sub(found.at) < estimateTime
}

func (e *estimates) put(word string, found rowEstimate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil || len(e.known) >= maxEstimates {
		e.known = map[string]rowEstimate{}
	}
	e.known[word] = found
}

// estimate gives how many resources PostgreSQL expects to have a fragment: what its index finds it finds all at once, so that
// counting would take as long as finding.
func (tx *Tx) estimate(f Fragment) (rows int64, err error) {
	if rows, ok := tx.store.estimates.get(asWord(f.Text), tx.now); ok {
		return rows, nil
	}
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	b.WriteString("EXPLAIN SELECT 1 FROM resource r WHERE ")
	f.sql(b, "r")
	var plan string
	if err := tx.QueryRow(b.String(), b.args...).Scan(&plan); err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(plan, " rows=")
	number, _, _ := strings.Cut(behind, " ")
	if rows, err = strconv.ParseInt(number, 10, 64); err == nil {
		tx.store.estimates.put(asWord(f.Text), rowEstimate{rows, tx.now})
	}
	return rows, err
}

// sample is how many of each collection are looked at where too many have a fragment.
const samplePerCollection = 500

// sampled gives the ids of resources that have a fragment; whole is false where they are so many that some of each collection are
// looked at.
func (tx *Tx) findSampledMatches(f Fragment) (ids []int64, whole bool, err error) {
	rows, err := tx.estimate(f)
	if err != nil {
		return nil, false, err
	}
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	most := maxMatchFactor * tx.store.sortLimit
	if whole = rows <= most; whole { // OFFSET 0 keeps the planner from hoping to meet them soon among all others
		b.WriteString("SELECT id FROM (SELECT id FROM resource r WHERE ")
		f.sql(b, "r")
		b.WriteString(" OFFSET 0) found")
	} else { // the planner takes an equal collection as a reason to go along the ids of all
		b.WriteString("SELECT r.id FROM (SELECT DISTINCT collection FROM total WHERE parent = " + strconv.Itoa(everywhere) +
			") c CROSS JOIN LATERAL (SELECT * FROM resource WHERE collection BETWEEN c.collection AND c.collection" +
			" ORDER BY collection, id LIMIT " + strconv.Itoa(samplePerCollection) + ") r WHERE ")
		f.sql(b, "r")
	}
	ids, err = tx.ids64(b.String()+" LIMIT "+strconv.FormatInt(most, 10), b.args...)
	return ids, whole && int64(len(ids)) < most, err
}

// searchPrefix is how the names of these indexes begin, and of no others.
const searchPrefix = "search_"

// searchIndex is what the index of trigrams is called: one of other texts has another name.
func (l *Layout) searchIndex() string {
	sum := sha256.Sum256([]byte(l.words("resource")))
	return searchPrefix + hex.EncodeToString(sum[:8])
}

// noTrigrams are the errors of a database whose extension pg_trgm is not there, or is not to be used by who asks.
var trigramErrors = []string{"0A000", "58P01", "42501", "42704", "3F000"}

// makeTextIndex makes the index of trigrams, where there is none of the layout's texts. Where the extension may not be used, what is
// sought by a fragment is found by looking at each row.
func (p *postgres) createTextIndex(ctx context.Context, tx pgx.Tx, names []string) error {
	wanted, there := p.layout.searchIndex(), false
	for _, name := range names {
		there = there || name == wanted
		if strings.HasPrefix(name, searchPrefix) && name != wanted {
			if _, err := tx.Exec(ctx, `DROP INDEX "`+name+`"`); err != nil {
				return err
			}
		}
	}
	if there {
		return nil
	}
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_trgm"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `CREATE INDEX "`+wanted+`" ON resource USING gin (`+p.layout.words("resource")+" gin_trgm_ops)")
		return err
	})
	if slices.Contains(trigramErrors, pgCode(err)) {
		slog.Warn("the database has no index of trigrams: contains, endsWith and search look at each row; the extension pg_trgm makes it",
			"error", err)
		return nil
	}
	return err
}

// hasTrigrams reports whether the database has the index.
func (p *postgres) hasTrigrams(ctx context.Context) (there bool, err error) {
	err = p.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", p.layout.searchIndex()).Scan(&there)
	return there, err
}
