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

	"portolan/internal/server"
	"portolan/internal/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// question is one as a user sends it, and the statement that does the least for its answer. KEY(address) stands in it for the
// key of an address.
type question struct {
	what, ask, bare string
	// most is what ours may take of the bare statement's time.
	most float64
}

// How many networks and TXT records lie beside the addresses. Each question is asked sharp times, one that reads much slow
// times.
const (
	questionNetworks = 40_000
	questionRecords  = 100_000
	sharp, slow      = 1001, 5
	slowFrom         = 10 * time.Millisecond
)

// questions gives the questions over so many addresses.
func questions(addresses int) []question {
	of := func(collection string) string {
		return "SELECT body FROM resource WHERE collection = '" + collection + "' AND "
	}
	middle := addresses / 2
	host := fmt.Sprintf("host-%d", middle)
	at := netip.AddrFrom4([4]byte{10, byte((2 + middle) >> 16), byte((2 + middle) >> 8), byte(2 + middle)}).String()
	far := min(900_000, addresses*9/10)
	return []question{
		{"address eq", "addresses?filter=address:'" + at + "'", of("addresses") + "low = KEY(" + at + ")", 2},
		{"address in three", "addresses?filter=address:in('10.0.0.9','" + at + "','10.1.1.1')",
			of("addresses") + "low IN (KEY(10.0.0.9), KEY(" + at + "), KEY(10.1.1.1))", 2},
		{"address eq, in a configuration by name", "addresses?filter=address:'" + at + "' and configuration.name:'bench'",
			of("addresses") + "low = KEY(" + at +
				") AND configuration = (SELECT id FROM resource WHERE collection = 'configurations' AND name = 'bench')",
			2},
		{"addresses in a prefix", "addresses?filter=address:within('10.1.0.0/26')",
			of("addresses") + "low BETWEEN KEY(10.1.0.0) AND KEY(10.1.0.63) ORDER BY id", 2},
		{"name eq", "addresses?filter=name:'" + host + "'", of("addresses") + "name = '" + host + "'", 2},
		{"name:startsWith, 11 rows", "addresses?filter=name:startsWith('" + host[:len(host)-1] + "')",
			of("addresses") + "name >= '" + host[:len(host)-1] + "' AND name < '" + host[:len(host)-1] + ":' ORDER BY id", 2},
		{"name eq, of any type", "?filter=name:'" + host + "'", "SELECT body FROM resource WHERE name = '" + host + "'", 2},
		{"absoluteName eq", "resourceRecords?filter=absoluteName:'t50000.bench.test'",
			of("resourceRecords") + "key = 't50000.bench.test'", 2},
		{"range eq", "networks?filter=range:'11.9.8.0/24'", of("networks") + "low = KEY(11.9.8.0) AND high = KEY(11.9.8.255)", 2},
		{"range:contains an address, networks", "networks?filter=range:contains('11.9.8.7')",
			of("networks") + "low <= KEY(11.9.8.7) ORDER BY low DESC LIMIT 1", 2},
		{"range:contains an address, blocks", "blocks?filter=range:contains('11.9.8.7')",
			of("blocks") + "low <= KEY(11.9.8.7) ORDER BY low DESC LIMIT 1", 2},
		{"range:within a prefix, 64 networks", "networks?filter=range:within('11.9.0.0/18')&limit=100",
			of("networks") + "low BETWEEN KEY(11.9.0.0) AND KEY(11.9.63.255) ORDER BY id", 2},
		{"orderBy name, 100 rows", "addresses?orderBy=name&limit=100", of("addresses") + "name IS NOT NULL ORDER BY name NULLS FIRST LIMIT 100",
			2},
		{"orderBy desc(name), 100 rows", "addresses?orderBy=desc(name)&limit=100",
			of("addresses") + "name IS NOT NULL ORDER BY name DESC NULLS LAST LIMIT 100", 2},
		{"orderBy desc(address), 100 rows", "addresses?orderBy=desc(address)&limit=100",
			of("addresses") + "low IS NOT NULL ORDER BY low DESC LIMIT 100", 2},
		{"offset " + strconv.Itoa(far) + " by id", "addresses?limit=10&offset=" + strconv.Itoa(far),
			"SELECT CAST(id AS TEXT) FROM resource WHERE collection = 'addresses' ORDER BY id LIMIT 10 OFFSET " + strconv.Itoa(far), 1.5},
		{"offset " + strconv.Itoa(far) + " by name", "addresses?orderBy=name&limit=10&offset=" + strconv.Itoa(far),
			"SELECT name FROM resource WHERE collection = 'addresses' AND name IS NOT NULL ORDER BY name NULLS FIRST, id LIMIT 10 OFFSET " +
				strconv.Itoa(far),
			1.5},
		{"no index: a user-defined field", "addresses?filter=userDefinedFields.owner:'nobody'",
			of("addresses") + "MEMBER(userDefinedFields.owner) = 'nobody'", 1.5},
	}
}

// (x) questions that people ask most, as they send them, against the bare statements through the same driver behind net/http.
func (b *bench) questions() error {
	addresses := b.questioned()
	dir, _, err := b.data(addresses)
	if err != nil {
		return err
	}
	if err := b.surroundings(server.Options{Data: dir}, func(script string) error {
		conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return sqlitex.ExecuteScript(conn, script, nil)
	}); err != nil {
		return err
	}
	return b.ask("(x)", dir, addresses)
}

// (y) the same on PostgreSQL.
func (b *bench) sharedQuestions() error {
	addresses := b.questioned()
	url, _, err := b.filled(addresses)
	if err != nil {
		return err
	}
	if err := b.surroundings(server.Options{Database: url}, func(script string) error {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.Background()) }()
		for _, step := range []string{script, "VACUUM ANALYZE"} {
			if _, err := conn.Exec(context.Background(), step); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return b.ask("(y) PostgreSQL,", url, addresses)
}

// questioned is how many addresses the questions are about.
func (b *bench) questioned() int {
	if b.big {
		return 10_000_000
	}
	return 1_000_000
}

// surroundings puts networks and records beside the addresses. run runs SQL in the database's words.
func (b *bench) surroundings(o server.Options, run func(script string) error) error {
	network, record, err := b.beginQuestions(o)
	if err != nil {
		return err
	}
	sequence, key := "WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < %d) ",
		"unhex('04000000000000000000000000' || printf('%%08x', 184549376 + n * 256 + %d))"
	if o.Database != "" {
		sequence, key = "WITH seq(n) AS (SELECT generate_series(1, %d)) ",
			`'\x04000000000000000000000000'::bytea || decode(lpad(to_hex(184549376 + n * 256 + %d), 8, '0'), 'hex')`
	}
	copied := "INSERT INTO resource (id, collection, type, name, parent, configuration, low, high, key, version, refs, body) SELECT "
	return run(fmt.Sprintf(sequence, questionNetworks-1) + copied +
		"200000000 + n, r.collection, r.type, 'net-' || n, r.parent, r.configuration, " +
		fmt.Sprintf(key, 0) + ", " + fmt.Sprintf(key, 255) + ", NULL, r.version, r.refs, " +
		"replace(r.body, '11.0.0.0/24', '11.' || (n >> 8) || '.' || (n & 255) || '.0/24') FROM seq, resource r WHERE r.id = " + network + ";\n" +
		fmt.Sprintf(sequence, questionRecords-1) + copied +
		"300000000 + n, r.collection, r.type, 't' || n, r.parent, r.configuration, NULL, NULL, " +
		"'t' || n || '.bench.test', r.version, r.refs, replace(r.body, 't0.bench.test', 't' || n || '.bench.test') FROM seq, resource r " +
		"WHERE r.id = " + record + ";\n" +
		"DELETE FROM total; INSERT INTO total (parent, collection, type, n) SELECT parent, collection, type, count(*) FROM resource GROUP " +
		"BY 1, 2, 3;\n" +
		"INSERT INTO total (parent, collection, type, n) SELECT -1, collection, type, count(*) FROM resource GROUP BY 2, 3;")
}

// beginQuestions makes the first network and the first record, which are copied.
func (b *bench) beginQuestions(o server.Options) (network, record string, err error) {
	m, err := spawn("manager", o.Data+o.Database, "")
	if err != nil {
		return "", "", err
	}
	defer m.stop()
	id := func(path, body string) (id string) {
		if err == nil {
			id, err = post(m.addr, "/api/v2/"+path, m.token, body)
		}
		return id
	}
	configuration := id("configurations", `{"name":"beside"}`)
	block := id("configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"11.0.0.0/8"}`)
	network = id("blocks/"+block+"/networks", `{"type":"IPv4Network","range":"11.0.0.0/24","name":"net-0"}`)
	view := id("configurations/"+configuration+"/views", `{"name":"internal"}`)
	zone := id("views/"+view+"/zones", `{"type":"Zone","absoluteName":"bench.test"}`)
	record = id("zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"t0","text":"a text"}`)
	return network, record, err
}

// ask asks all questions of a manager and of the bare statements.
func (b *bench) ask(what, data string, addresses int) error {
	all := slices.DeleteFunc(questions(addresses), func(q question) bool { return !strings.Contains(q.what, b.question) })
	statements := make([]string, len(all))
	for i, q := range all {
		statements[i] = q.bare
	}
	text, err := json.Marshal(statements)
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "statements.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	m, err := spawn("manager", data, "")
	if err != nil {
		return err
	}
	defer m.stop()
	bare, err := spawn("bare-sql", data, file)
	if err != nil {
		return err
	}
	defer bare.stop()
	for i, q := range all {
		theirs, err := b.median(bare.addr, request("GET", "/"+strconv.Itoa(i), "", ""))
		if err != nil {
			return fmt.Errorf("%s, bare: %w", q.what, err)
		}
		if err := b.against(what+" "+q.what, m, q.ask, theirs, q.most); err != nil {
			return err
		}
	}
	if b.question != "" {
		return nil
	}
	one, err := firstOf(m, "networks?filter=name:'wide'")
	if err != nil {
		return err
	}
	get, err := b.median(m.addr, request("GET", "/api/v2/networks/"+one, m.token, ""))
	if err != nil {
		return err
	}
	for _, of := range []string{"addresses", "networks/" + one + "/addresses"} {
		if err := b.against(what+" total=true of "+strings.ReplaceAll(of, one, "{id}")+", against GET one", m, of+"?limit=1&total=true", get,
			2); err != nil {
			return err
		}
	}
	return b.walk(what, m, min(900, addresses/1000-1))
}

// against measures an answer of the manager against a time. list is a path below the API's, with its query.
func (b *bench) against(what string, m *child, list string, theirs time.Duration, most float64) error {
	at, query, _ := strings.Cut(list, "?")
	at = strings.TrimSuffix("/api/v2/"+at, "/")
	values := strings.Split(query, "&")
	for i, v := range values {
		name, value, _ := strings.Cut(v, "=")
		values[i] = name + "=" + url.QueryEscape(value)
	}
	ours, err := b.median(m.addr, request("GET", at+"?"+strings.Join(values, "&"), m.token, ""))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ratio := float64(ours) / float64(theirs)
	b.add(what, ours.Round(time.Microsecond).String(), theirs.Round(time.Microsecond).String(), ratio, fmt.Sprintf("at most %.1f", most),
		ratio <= most)
	return nil
}

// median asks often what is answered at once, and a few times what takes long.
func (b *bench) median(addr string, rq []byte) (time.Duration, error) {
	ask := func(int) []byte { return rq }
	took, err := latency(addr, slow, code200, ask)
	if err != nil || took > slowFrom {
		return took, err
	}
	return latency(addr, sharp, code200, ask)
}

// firstOf gives the id of the first resource of a list.
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

// walk follows next links, and compares the last page with the first.
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

// bareSQL answers GET /N with the texts that statement N of the file selects.
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
		if err == nil {
			err = run(w, statements[n])
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

// bareDriver gives what runs a statement and writes the texts that it selects.
func bareDriver(ctx context.Context, data string) (run func(w io.Writer, statement string) error, done func(), err error) {
	shared := strings.HasPrefix(data, "postgres:")
	if shared {
		pool, err := pgxpool.New(ctx, data)
		if err != nil {
			return nil, nil, err
		}
		return func(w io.Writer, statement string) error {
			rows, err := pool.Query(ctx, inWords(statement, true))
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
		stmt, err := conn.Prepare(inWords(statement, false))
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

// inWords writes KEY(address) and MEMBER(path) in a database's words.
func inWords(statement string, shared bool) string {
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
