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

// pg_trgm only indexes letters and digits and splits texts into words at other characters. Other characters in names, IP addresses and
// MAC addresses are replaced by letters, to make each text a single word. So are characters with a meaning in LIKE. Occasionally this
// makes a row match a text that it does not contain.
const (
	wordFrom = textMark + `.-:_/@ %\`
	wordTo   = `zqxjvvvvvv`
)

// asWord returns a text with these characters replaced, so that it is one word.
func asWord(text string) string {
	return strings.Map(func(r rune) rune {
		if i := strings.IndexRune(wordFrom, r); i >= 0 {
			return rune(wordTo[i])
		}
		return r
	}, foldCase(text))
}

// words returns the SQL expression for the searched texts of a row, which is both indexed and compared.
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
		b.WriteString(" || CASE WHEN " + row + ".collection IN (" + quoteNames(members[member]...) + ") THEN coalesce(json_extract(" + row +
			".body, '" + path([]string{member}) + "'), '') || '" + textMark + "' ELSE '' END")
	}
	b.WriteString(`) COLLATE "C"), '` + wordFrom + "', '" + wordTo + "')")
	return b.String()
}

// postgresFragment writes the condition that a row may contain the text of f.
func postgresFragment(b *builder, row string, f Fragment) {
	b.WriteString(b.layout.words(row) + " LIKE ")
	b.arg("%" + asWord(f.Text) + "%")
}

// hasWord reports whether the text contains three adjacent ASCII letters or digits. Then the trigram index can be used in every locale,
// and one plan suits all such texts.
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

// estimates caches how many resources PostgreSQL expects to match a word. An estimate determines how rows are found and not which rows,
// so an estimate of up to estimateTime ago is good enough.
type estimates struct {
	mu    sync.Mutex
	known map[string]rowEstimate // guarded by mu
}

// rowEstimate is a cached estimate with its time.
type rowEstimate struct {
	rows   int64
	readAt time.Time
}

// Limits of the cached estimates: their age and their number.
const (
	estimateTime = time.Minute
	maxEstimates = 1000
)

func (e *estimates) get(word string, now time.Time) (rows int64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found, ok := e.known[word]
	return found.rows, ok && now.Sub(found.readAt) < estimateTime
}

func (e *estimates) put(word string, found rowEstimate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil || len(e.known) >= maxEstimates {
		e.known = map[string]rowEstimate{}
	}
	e.known[word] = found
}

// estimate returns how many resources PostgreSQL expects to match a fragment. Its index finds all matches at once, so counting would take
// as long as finding them.
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

// samplePerCollection is the number of resources of each collection that are checked if too many match a fragment.
const samplePerCollection = 500

// findSampledMatches returns the ids of resources that match a fragment. whole is false if there are too many, so that only a sample of
// each collection was checked.
func (tx *Tx) findSampledMatches(f Fragment) (ids []int64, whole bool, err error) {
	rows, err := tx.estimate(f)
	if err != nil {
		return nil, false, err
	}
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	maxMatches := maxMatchFactor * tx.store.sortLimit
	if whole = rows <= maxMatches; whole { // OFFSET 0 keeps the planner from scanning all rows in the hope of early matches
		b.WriteString("SELECT id FROM (SELECT id FROM resource r WHERE ")
		f.sql(b, "r")
		b.WriteString(" OFFSET 0) found")
	} else { // with an equality of collections, the planner would scan the ids of all resources
		b.WriteString("SELECT r.id FROM (SELECT DISTINCT collection FROM total WHERE parent = " + strconv.Itoa(everywhere) +
			") c CROSS JOIN LATERAL (SELECT * FROM resource WHERE collection BETWEEN c.collection AND c.collection" +
			" ORDER BY collection, id LIMIT " + strconv.Itoa(samplePerCollection) + ") r WHERE ")
		f.sql(b, "r")
	}
	ids, err = tx.ids64(b.String()+" LIMIT "+strconv.FormatInt(maxMatches, 10), b.args...)
	return ids, whole && int64(len(ids)) < maxMatches, err
}

// searchPrefix is the prefix of the names of the trigram indexes. No other index has it.
const searchPrefix = "search_"

// searchIndex returns the name of the trigram index. It depends on the indexed texts.
func (l *Layout) searchIndex() string {
	sum := sha256.Sum256([]byte(l.words("resource")))
	return searchPrefix + hex.EncodeToString(sum[:8])
}

// trigramErrors are the error codes of a database on which pg_trgm is missing or not permitted.
var trigramErrors = []string{"0A000", "58P01", "42501", "42704", "3F000"}

// createTextIndex creates the trigram index of the layout's texts if it is missing, and drops those of other texts. If pg_trgm cannot be
// used, it logs a warning, and searches check each row.
func (p *postgres) createTextIndex(ctx context.Context, tx pgx.Tx, names []string) error {
	wanted, exists := p.layout.searchIndex(), false
	for _, name := range names {
		exists = exists || name == wanted
		if strings.HasPrefix(name, searchPrefix) && name != wanted {
			if _, err := tx.Exec(ctx, `DROP INDEX "`+name+`"`); err != nil {
				return err
			}
		}
	}
	if exists {
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
		slog.Warn("no trigram index, extension pg_trgm not available: contains, endsWith and search read every row",
			"error", err)
		return nil
	}
	return err
}

// hasTrigrams reports whether the database has the trigram index of the layout.
func (p *postgres) hasTrigrams(ctx context.Context) (exists bool, err error) {
	err = p.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", p.layout.searchIndex()).Scan(&exists)
	return exists, err
}
