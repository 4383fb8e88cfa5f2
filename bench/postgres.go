package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The measurements on PostgreSQL. The server runs on the same machine as the managers, with full durability. The figures are ratios and do
// not describe a dedicated database server.

// newSharedDatabase starts the PostgreSQL server if necessary, creates a database, and returns its URL.
func (b *bench) newSharedDatabase(name string) (string, error) {
	if b.server == nil {
		var err error
		if b.server, err = pgtest.Start("shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min"); err != nil {
			return "", err
		}
	}
	return b.server.Create(context.Background(), name)
}

// filled creates a database with this many addresses in one network of a /8, once, and returns its URL and the network's ID. It writes the
// rows by SQL in the same form as the manager.
func (b *bench) filled(addresses int) (url, network string, err error) {
	if known, ok := b.databases[addresses]; ok {
		return known[0], known[1], nil
	}
	if url, err = b.newSharedDatabase(fmt.Sprintf("filled%d", addresses)); err != nil {
		return "", "", err
	}
	network, first, err := b.createNetwork(server.Options{Database: url})
	if err != nil {
		return "", "", err
	}
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	const span = `'\x04000000000000000000000000'::bytea || decode(lpad(to_hex(167772162 + n), 8, '0'), 'hex')`
	for _, step := range []string{
		`INSERT INTO resource (id, collection, type, name, parent, configuration, low, high, key, version, refs, body)
		 SELECT (SELECT max(id) FROM resource) + n, r.collection, r.type, 'host-' || n, r.parent, r.configuration, ` + span + `, ` + span + `, NULL, r.version, r.refs,
		 replace(r.body, '10.0.0.2', '10.' || ((2 + n) >> 16) || '.' || (((2 + n) >> 8) & 255) || '.' || ((2 + n) & 255))
		 FROM generate_series(1, ` + strconv.Itoa(addresses-2) + `) n, resource r WHERE r.id = ` + first,
		`UPDATE free SET low = '\x04000000000000000000000000'::bytea || decode(lpad(to_hex(167772163 + ` + strconv.Itoa(addresses-2) +
			`), 8, '0'), 'hex') WHERE container = ` + network,
		`INSERT INTO usage (container, state, n) SELECT DISTINCT container, state, CAST(` + strconv.Itoa(addresses-2) +
			` AS BIGINT) FROM usage WHERE state = 'STATIC'`,
		`INSERT INTO total (parent, collection, type, n) SELECT DISTINCT parent, collection, type, CAST(` + strconv.Itoa(addresses-2) +
			` AS BIGINT) FROM total WHERE collection = 'addresses' AND type = 'IPv4Address'`,
		`SELECT setval('number_resource', ` + strconv.Itoa(200000+addresses) + `)`, `VACUUM ANALYZE`, `CHECKPOINT`,
	} {
		if _, err := conn.Exec(context.Background(), step); err != nil {
			return "", "", fmt.Errorf("%s: %w", step, err)
		}
	}
	b.databases[addresses] = [2]string{url, network}
	return url, network, nil
}

// analyze runs ANALYZE, which PostgreSQL otherwise does by itself within a minute.
func analyze(url string) error {
	if !strings.HasPrefix(url, "postgres:") {
		return nil
	}
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(context.Background(), "ANALYZE")
	return err
}

// createNetwork creates a configuration, a block, a network and its first address in an empty database.
func (b *bench) createNetwork(o server.Options) (network, first string, err error) {
	o.Listen, o.CheckinListen, o.AdminPassword, o.Version = "127.0.0.1:0", "127.0.0.1:0", password, "bench"
	o.Programs = all.Programs()
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	m, err := server.Start(context.Background(), o)
	if err != nil {
		return "", "", err
	}
	token, err := m.Identity.CreateToken(context.Background(), identity.Grant{Name: "prepare", Role: "administrator"})
	addr := strings.TrimPrefix(m.URL(), "http://")
	id := func(path, body string) (id string) {
		if err == nil {
			id, err = post(addr, path, token, body)
		}
		return id
	}
	configuration := id("/api/v2/configurations", `{"name":"bench"}`)
	block := id("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network = id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/8","name":"wide"}`)
	first = id("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"first"}`)
	if e := m.Close(); err == nil {
		err = e
	}
	return network, first, err
}

// sharedGet measures (p): GET of one resource, compared with a bare query through pgx and net/http.
func (b *bench) sharedGet() error {
	url, network, err := b.filled(100_000)
	if err != nil {
		return err
	}
	m, err := spawn("manager", url, "")
	if err != nil {
		return err
	}
	defer m.stop()
	bare, err := spawn("bare-pg", url, "")
	if err != nil {
		return err
	}
	defer bare.stop()
	address, err := firstOf(m, "networks/"+network+"/addresses?limit=1&filter=state:'STATIC'")
	if err != nil {
		return err
	}
	for _, one := range []struct{ what, collection, id string }{{"address", "addresses", address},
		{"network, with its usage", "networks", network}} {
		theirs, err := rate(bare.addr, nil, clients, b.time, code200, func(int, int) []byte { return request("GET", "/one/"+one.id, "", "") })
		if err != nil {
			return err
		}
		ours, err := rate(m.addr, nil, clients, b.time, code200, func(int, int) []byte {
			return request("GET", "/api/v2/"+one.collection+"/"+one.id, m.token, "")
		})
		if err != nil {
			return err
		}
		b.add("(p) GET one "+one.what+", PostgreSQL", perSecond(ours), perSecond(theirs), ours/theirs, "at least 0.6", ours/theirs >= 0.6)
	}
	return nil
}

// sharedPages measures (q): pages, compared with a bare query that writes the same bytes.
func (b *bench) sharedPages() error {
	url, _, err := b.filled(100_000)
	if err != nil {
		return err
	}
	m, err := spawn("manager", url, "")
	if err != nil {
		return err
	}
	defer m.stop()
	for _, n := range []int{1000, 100_000} {
		rq := request("GET", fmt.Sprintf("/api/v2/addresses?limit=%d", n), m.token, "")
		c, err := dial(m.addr, nil)
		if err != nil {
			return err
		}
		_, body, err := c.do(rq, true)
		if err != nil {
			return err
		}
		_ = c.conn.Close()
		file := filepath.Join(b.dir, "page")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			return err
		}
		bare, err := spawn("bare-pg", url, file)
		if err != nil {
			return err
		}
		times := max(9, 100_000/n)
		theirs, err := latency(bare.addr, times, code200, func(int) []byte { return request("GET", fmt.Sprintf("/page/%d", n), "", "") })
		bare.stop()
		if err != nil {
			return err
		}
		ours, err := latency(m.addr, times, code200, func(int) []byte { return rq })
		if err != nil {
			return err
		}
		ratio := float64(ours) / float64(theirs)
		b.add(fmt.Sprintf("(q) page of %d, PostgreSQL", n), ours.Round(10*time.Microsecond).String(),
			theirs.Round(10*time.Microsecond).String(), ratio, "at most 1.5", ratio <= 1.5)
	}
	return nil
}

// pgRows are statements that write the rows of a create in PostgreSQL: the resource with its indexes, the change and the transaction in the
// history, and the free space.
var pgRows = []string{
	"INSERT INTO resource (id, collection, type, name, parent, configuration, low, high, version, refs, body) VALUES ($2, 'addresses', " +
		"'IPv4Address', 'x', 5, 4, int8send($2), int8send($2), $2, '', $1)",
	"INSERT INTO change (seq, txn, resource, operation, after) VALUES ($2, $2, $2, 'ADD', $1::text || $1::text)",
	"INSERT INTO txn (id, at, user_id, operation, first, last, body) VALUES ($2, 0, 1, 'ADD_IPV4_ADDRESS', $2, $2, " +
		"json_build_object('credential', 'token 1', 'remoteAddress', '127.0.0.1', 'description', substr($1, 1, 80)))",
	"INSERT INTO free VALUES ($2, int8send($2), convert_to(substr($1, 1, 17), 'UTF8'))",
	"INSERT INTO total VALUES ($2, 'addresses', substr($1, 1, 11), 1), (-1, 'addresses', substr($1, 1, 11), 1)",
}

// bareShared measures bare transactions of these rows, per second, with one commit each.
func (b *bench) bareShared(writers int) (float64, error) {
	url, err := b.newSharedDatabase("bare" + strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		return 0, err
	}
	if _, _, err := b.createNetwork(server.Options{Database: url}); err != nil { // creates the schema
		return 0, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return 0, err
	}
	config.MaxConns = 16
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	body := `{"x":"` + strings.Repeat("x", 442) + `"}`
	var n, done atomic.Int64
	n.Store(1_000_000)
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for ctx.Err() == nil {
				number := n.Add(1)
				err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					for _, statement := range pgRows {
						if _, err := tx.Exec(ctx, statement, body, number); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					if ctx.Err() == nil {
						failed.Store(&err)
					}
					return
				}
				done.Add(1)
			}
		})
	}
	time.Sleep(b.time / 6)
	before := done.Load()
	time.Sleep(b.time)
	count := done.Load() - before
	cancel()
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(count) / b.time.Seconds(), nil
}

// sharedCreates measures (r): creates by 64 clients, compared with bare inserts with a commit each. It also compares two managers with one.
func (b *bench) sharedCreates() error {
	const n = 64
	url, network, err := b.filled(84)
	if err != nil {
		return err
	}
	var managers [2]*child
	for i := range managers {
		if managers[i], err = spawn("manager", url, ""); err != nil {
			return err
		}
		defer managers[i].stop()
	}
	token := managers[0].token
	// First each client has a network of its own, then all clients share one.
	networks := make([]string, n)
	for i := range networks {
		if networks[i], err = ownNetwork(managers[0].addr, token, i); err != nil {
			return err
		}
	}
	body := `{"type":"IPv4Address","state":"STATIC","name":"x"}`
	to := func(which func(client int) string) func(client, _ int) []byte {
		return func(client, _ int) []byte {
			return request("POST", "/api/v2/networks/"+which(client)+"/addresses", token, body)
		}
	}
	same := to(func(int) string { return network })
	own := to(func(client int) string { return networks[client] })
	theirs, err := b.bareShared(n)
	if err != nil {
		return err
	}
	apart, err := rate(managers[0].addr, nil, n, b.time, 201, own)
	if err != nil {
		return err
	}
	b.add("(r) creates, 64 clients, each in its network, PostgreSQL", perSecond(apart), perSecond(theirs), apart/theirs, "at least 0.5",
		apart/theirs >= 0.5)
	together, err := rate(managers[0].addr, nil, n, b.time, 201, same)
	if err != nil {
		return err
	}
	b.add("(r) creates, 64 clients, all in one network, PostgreSQL", perSecond(together), perSecond(theirs), together/theirs, "at least 0.35",
		together/theirs >= 0.35)
	two, err := rateOf([]string{managers[0].addr, managers[1].addr}, nil, n, b.time, 201, own)
	if err != nil {
		return err
	}
	b.add("(s) the same by two managers, each in its network", perSecond(two), perSecond(apart)+" by one", two/apart, "no goal", true)
	return nil
}

// ownNetwork creates a network in a block and a configuration of its own.
func ownNetwork(addr, token string, i int) (string, error) {
	configuration, err := post(addr, "/api/v2/configurations", token, fmt.Sprintf(`{"name":"own %d %d"}`, i, time.Now().UnixNano()))
	if err != nil {
		return "", err
	}
	block, err := post(addr, "/api/v2/configurations/"+configuration+"/blocks", token, `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	if err != nil {
		return "", err
	}
	return post(addr, "/api/v2/blocks/"+block+"/networks", token, `{"type":"IPv4Network","range":"10.0.0.0/8"}`)
}

// sharedImport measures (t): an import of a million addresses, compared with COPY of the same rows into the same schema.
func (b *bench) sharedImport() error {
	const n = 1_000_000
	ctx := context.Background()
	url, err := b.newSharedDatabase("imported")
	if err != nil {
		return err
	}
	if _, _, err := b.createNetwork(server.Options{Database: url}); err != nil {
		return err
	}
	file := filepath.Join(b.dir, "addresses.csv")
	var text strings.Builder
	text.WriteString("address,name\n")
	for i := range n {
		fmt.Fprintf(&text, "10.%d.%d.%d,host-%d\n", 1+i>>16, i>>8&255, i&255, i)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	start := time.Now()
	if err := b.importFile(url, file); err != nil {
		return err
	}
	ours := time.Since(start)
	// The comparison copies the rows that the import has written.
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	empty, err := b.newSharedDatabase("copied")
	if err != nil {
		return err
	}
	if _, _, err := b.createNetwork(server.Options{Database: empty}); err != nil { // creates the schema
		return err
	}
	into, err := pgx.Connect(ctx, empty)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close(ctx) }()
	var theirs time.Duration
	for _, table := range []string{"resource", "change"} {
		columns, where := "id, collection, type, name, parent, configuration, low, high, key, version, refs, body",
			"collection = 'addresses' AND name LIKE 'host-%'"
		if table == "change" {
			columns, where = "seq, txn, resource, operation, before, after", "txn = (SELECT max(txn) FROM change)"
		}
		var copied bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &copied, "COPY (SELECT "+columns+" FROM "+table+" WHERE "+where+") TO STDOUT BINARY"); err != nil {
			return err
		}
		start := time.Now()
		tag, err := into.PgConn().CopyFrom(ctx, &copied, "COPY "+table+" ("+columns+") FROM STDIN BINARY")
		if err != nil {
			return err
		}
		theirs += time.Since(start)
		if tag.RowsAffected() != n {
			return fmt.Errorf("%d rows of %s were copied, not %d", tag.RowsAffected(), table, n)
		}
	}
	ratio := float64(theirs) / float64(ours)
	b.add("(t) import of 1,000,000 addresses, PostgreSQL", ours.Round(10*time.Millisecond).String(),
		theirs.Round(10*time.Millisecond).String()+" by COPY", ratio, "at least 0.25", ratio >= 0.25)
	return nil
}

func (b *bench) importFile(url, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, _, err := ipam.ReadAddresses(f)
	if err != nil {
		return err
	}
	s, err := store.Open(store.Options{Layout: model.Layout(), Database: url})
	if err != nil {
		return err
	}
	_, err = ipam.ImportAddresses(context.Background(), model.NewAPI(s), "bench", lines, ipam.Import{})
	if e := s.Close(); err == nil {
		err = e
	}
	return err
}

// sharedCheckIns measures (u): check-ins per second, compared with a bare handler that decodes the same body.
func (b *bench) sharedCheckIns() error {
	url, _, err := b.filled(84)
	if err != nil {
		return err
	}
	return b.checkInsOn("(u) check-ins, PostgreSQL", url, 0)
}

// sharedNext measures (v): the next available address with many in use, and the size of the database.
func (b *bench) sharedNext() error {
	sizes := []int{84, 1_000_000}
	if b.big {
		sizes[1] = 10_000_000
	}
	var took [2]time.Duration
	for i, n := range sizes {
		url, network, err := b.filled(n)
		if err != nil {
			return err
		}
		m, err := spawn("manager", url, "")
		if err != nil {
			return err
		}
		rq := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC"}`)
		took[i], err = latency(m.addr, 1500, 201, func(int) []byte { return rq })
		m.stop()
		if err != nil {
			return err
		}
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			return err
		}
		var size int64
		err = conn.QueryRow(context.Background(), "SELECT pg_database_size(current_database())").Scan(&size)
		_ = conn.Close(context.Background())
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "(v) with %d in use: %v, %d MiB on disk\n", n, took[i], size>>20)
	}
	ratio := float64(took[1]) / float64(took[0])
	b.add(fmt.Sprintf("(v) next available address, %d in use, PostgreSQL", sizes[1]), took[1].Round(time.Microsecond).String(),
		took[0].Round(time.Microsecond).String()+fmt.Sprintf(" with %d", sizes[0]), ratio, "at most 1.5", ratio <= 1.5)
	return nil
}
