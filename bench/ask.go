package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/engine/store"

	"github.com/jackc/pgx/v5/pgxpool"
	"zombiezen.com/go/sqlite"
)

// compareDuration compares the median of a request to the manager with a duration. list is a path below /api/v2/ with its query.
func (b *bench) compareDuration(what string, m *child, list string, theirs time.Duration, maxRatio float64) error {
	ours, err := b.median(m.addr, request("GET", pathOf(list), m.token, ""))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ratio := float64(ours) / float64(theirs)
	b.add(what, ours.Round(time.Microsecond).String(), theirs.Round(time.Microsecond).String(), ratio, fmt.Sprintf("at most %.1f", maxRatio),
		ratio <= maxRatio)
	return nil
}

// answerSize returns the number of bytes of the answer for a list.
func answerSize(m *child, list string) (int, error) {
	c, err := dial(m.addr, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	_, answer, err := c.do(request("GET", pathOf(list), m.token, ""), true)
	return len(answer), err
}

// pathOf returns the path of a list below /api/v2/, with its query encoded.
func pathOf(list string) string {
	at, query, asks := strings.Cut(list, "?")
	at = strings.TrimSuffix("/api/v2/"+at, "/")
	if asks {
		values := strings.Split(query, "&")
		for i, v := range values {
			name, value, _ := strings.Cut(v, "=")
			values[i] = name + "=" + url.QueryEscape(value)
		}
		at += "?" + strings.Join(values, "&")
	}
	return at
}

// median returns the median duration of a request. It repeats fast requests often and slow ones a few times.
func (b *bench) median(addr string, rq []byte) (time.Duration, error) {
	ask := func(int) []byte { return rq }
	took, err := latency(addr, slowRepeats, code200, ask)
	if err != nil || took > slowLatency {
		return took, err
	}
	return latency(addr, fastRepeats, code200, ask)
}

// turns is the number of alternations between two requests.
const turns = 5

// medians returns the medians of two requests that it sends in turns, so that a slow phase of the machine affects both. Each result is the
// median of the turns.
func (b *bench) medians(addr string, one, other []byte) (ofOne, ofOther time.Duration, err error) {
	var took [2][]time.Duration
	for range turns {
		for i, rq := range [][]byte{one, other} {
			t, err := b.median(addr, rq)
			if err != nil {
				return 0, 0, err
			}
			took[i] = append(took[i], t)
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return took[0][turns/2], took[1][turns/2], nil
}

// firstOf returns the ID of the first resource of a list.
func firstOf(m *child, list string) (string, error) {
	c, err := dial(m.addr, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.conn.Close() }()
	_, answer, err := c.do(request("GET", "/api/v2/"+list, m.token, ""), true)
	if err != nil {
		return "", err
	}
	var page struct {
		Data []struct {
			ID int64 `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &page); err != nil || len(page.Data) == 0 {
		return "", fmt.Errorf("%s has nothing: %s", list, answer)
	}
	return strconv.FormatInt(page.Data[0].ID, 10), nil
}

// walk follows the links next and compares the last page with the first.
func (b *bench) walk(what string, m *child, pages int) error {
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	first := "/api/v2/addresses?orderBy=name&limit=1000"
	next := first
	for range pages - 1 {
		_, answer, err := c.do(request("GET", next, m.token, ""), true)
		if err != nil {
			return err
		}
		i := strings.LastIndex(string(answer), `"next":{"href":"`)
		if i < 0 {
			return errors.New("a page has no next one: " + next)
		}
		link, _, _ := strings.Cut(string(answer[i+len(`"next":{"href":"`):]), `"`)
		next = link
	}
	early, err := b.median(m.addr, request("GET", first, m.token, ""))
	if err != nil {
		return err
	}
	late, err := b.median(m.addr, request("GET", next, m.token, ""))
	if err != nil {
		return err
	}
	ratio := float64(late) / float64(early)
	b.add(fmt.Sprintf("%s page %d by next links, by name, against page 1", what, pages), late.Round(time.Microsecond).String(),
		early.Round(time.Microsecond).String(), ratio, "at most 1.2", ratio <= 1.2)
	return nil
}

// bareSQL serves GET /N?size=SIZE with the texts that statement N of the file selects, and as many bytes more as SIZE requires.
func bareSQL(ctx context.Context, data, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var statements []string
	if err := json.Unmarshal(text, &statements); err != nil {
		return err
	}
	run, done, err := bareDriver(ctx, data)
	if err != nil {
		return err
	}
	defer done()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		out := &countingWriter{w, 0}
		if err == nil {
			err = run(out, statements[n])
		}
		if size, e := strconv.Atoi(r.URL.Query().Get("size")); e == nil && err == nil && size > out.n {
			_, err = w.Write(make([]byte, size-out.n))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	go func() { <-ctx.Done(); _ = s.Close() }()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// countingWriter counts the bytes that it writes.
type countingWriter struct {
	w io.Writer
	n int
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}

// bareDriver returns a function that runs a statement and writes the texts that it selects.
func bareDriver(ctx context.Context, data string) (run func(w io.Writer, statement string) error, done func(), err error) {
	shared := strings.HasPrefix(data, "postgres:")
	if shared {
		pool, err := pgxpool.New(ctx, data)
		if err != nil {
			return nil, nil, err
		}
		var words string
		if err := pool.QueryRow(ctx, "SELECT pg_get_expr(i.indexprs, i.indrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "+
			"WHERE c.relname LIKE 'search\\_%'").Scan(&words); err != nil {
			return nil, nil, err
		}
		return func(w io.Writer, statement string) error {
			rows, err := pool.Query(ctx, expandSQL(statement, words))
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				if _, err := w.Write(rows.RawValues()[0]); err != nil {
					return err
				}
			}
			return rows.Err()
		}, pool.Close, nil
	}
	conn, err := sqlite.OpenConn(filepath.Join(data, "portolan.db"))
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex // guards conn
	return func(w io.Writer, statement string) error {
		mu.Lock()
		defer mu.Unlock()
		stmt, err := conn.Prepare(expandSQL(statement, ""))
		if err != nil {
			return err
		}
		defer func() { _ = stmt.Reset() }()
		for {
			if more, err := stmt.Step(); err != nil || !more {
				return err
			}
			if _, err := io.WriteString(w, stmt.ColumnText(0)); err != nil {
				return err
			}
		}
	}, func() { _ = conn.Close() }, nil
}

// expandSQL replaces KEY(address), MEMBER(path) and HAS(text) by SQL of the database. words is the expression of PostgreSQL's trigram
// index, or empty for SQLite.
func expandSQL(statement, words string) string {
	shared := words != ""
	for _, form := range []struct {
		name  string
		write func(inner string) string
	}{
		{"KEY(", func(inner string) string {
			key := store.AddrKey(netip.MustParseAddr(inner))
			if shared {
				return fmt.Sprintf(`'\x%x'::bytea`, key)
			}
			return fmt.Sprintf("X'%x'", key)
		}},
		{"MEMBER(", func(inner string) string {
			if shared {
				return "body::json #>> '{" + strings.ReplaceAll(inner, ".", ",") + "}'"
			}
			return "json_extract(body, '$." + inner + "')"
		}},
		{"HAS(", func(inner string) string {
			if shared {
				return words + " LIKE '%" + strings.NewReplacer(".", "q", "-", "x").Replace(inner) + "%'"
			}
			var grams []string
			for i := range len(inner) - 2 {
				grams = append(grams, `"`+inner[i:i+3]+`"`)
			}
			return "id IN (SELECT rowid FROM trigram WHERE trigram MATCH '" + strings.Join(grams, " AND ") + "')"
		}},
	} {
		for {
			before, rest, found := strings.Cut(statement, form.name)
			if !found {
				break
			}
			inner, behind, _ := strings.Cut(rest, ")")
			statement = before + form.write(inner) + behind
		}
	}
	return statement
}
