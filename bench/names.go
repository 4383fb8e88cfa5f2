package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
	"portolan/internal/manager/server"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// zoneOf prepares a new data directory with a zone of n TXT records and returns the zone's ID. It writes the rows by SQL in the same form
// as the manager. Each measurement changes its zone, so none shares a directory with another one.
func (b *bench) zoneOf(n int) (dir, zone string, err error) {
	if dir, err = os.MkdirTemp(b.dir, fmt.Sprintf("zone-%d-", n)); err != nil {
		return "", "", err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return "", "", err
	}
	id := func(path, body string) (id string) {
		if err == nil {
			id, err = post(m.addr, path, m.token, body)
		}
		return id
	}
	configuration := id("/api/v2/configurations", `{"name":"bench"}`)
	view := id("/api/v2/configurations/"+configuration+"/views", `{"name":"v"}`)
	zone = id("/api/v2/views/"+view+"/zones", `{"type":"Zone","name":"example"}`)
	first := id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"r-0","text":"text"}`)
	m.stop()
	if err != nil {
		return "", "", err
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
	if err != nil {
		return "", "", err
	}
	defer func() { _ = conn.Close() }()
	for _, step := range []struct {
		text string
		args []any
	}{
		{"PRAGMA synchronous = OFF", nil}, {"PRAGMA cache_size = -400000", nil},
		{`WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < ?1)
		INSERT INTO resource (id, collection, type, name, parent, configuration, key, version, refs, body)
		SELECT r.id + n, r.collection, r.type, 'r-' || n, r.parent, r.configuration, 'r-' || n || '.example', r.version, r.refs,
		replace(r.body, 'r-0.', 'r-' || n || '.')
		FROM seq, resource r WHERE r.id = ?2`, []any{n - 1, first}},
		{"UPDATE counter SET value = value + ? WHERE name = 'resource'", []any{n}}, {"PRAGMA wal_checkpoint(TRUNCATE)", nil},
	} {
		if err := sqlitex.ExecuteTransient(conn, step.text, &sqlitex.ExecOptions{Args: step.args}); err != nil {
			return "", "", fmt.Errorf("filling: %w", err)
		}
	}
	return dir, zone, nil
}

// compileZone measures (h): compiling a zone from the store, compared with parsing the same zone as a file by the DNS library.
func (b *bench) compileZone() error {
	const n = 1_000_000
	dir, _, err := b.zoneOf(n)
	if err != nil {
		return err
	}
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	api := model.NewAPI(s)
	var zone *naming.Zone
	if name := os.Getenv("BENCH_PROFILE_COMPILE"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	start := time.Now()
	if err := s.View(context.Background(), func(tx *store.Tx) error {
		row, err := dns.FindZone(tx, "bench", "v", "example")
		if err == nil {
			zone, err = dns.ZoneData(tx, api, row, dns.Served{})
		}
		return err
	}); err != nil {
		return err
	}
	ours := time.Since(start)
	var file bytes.Buffer
	if err := zone.Write(&file); err != nil {
		return err
	}
	zone = nil
	start = time.Now()
	read, err := naming.ReadZone(&file, "", nil)
	if err != nil {
		return err
	}
	theirs := time.Since(start)
	if len(read.Records) != n+2 {
		return fmt.Errorf("the file has %d records", len(read.Records))
	}
	records := read.Records
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	start = time.Now()
	if _, err := naming.Compile("example.", records); err != nil {
		return err
	}
	alone := time.Since(start)
	ratio := float64(alone) / float64(theirs)
	b.add("(h) compiling 1,000,000 records in any order", alone.Round(time.Millisecond).String(),
		theirs.Round(time.Millisecond).String()+" to parse", ratio, "at most 1.5", ratio <= 1.5)
	ratio = float64(ours) / float64(theirs)
	b.add("(h) the same with reading them from the store", ours.Round(time.Millisecond).String(),
		theirs.Round(time.Millisecond).String()+" to parse", ratio, "at most 1.5", ratio <= 1.5)
	return nil
}

// renameZone measures (i): renaming a zone, per record below it, compared with a bare UPDATE of the same rows.
func (b *bench) renameZone() error {
	n := 100_000
	if b.big {
		n = 1_000_000
	}
	dir, zone, err := b.zoneOf(n)
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	rq := []byte(strings.Replace(string(request("PATCH", "/api/v2/zones/"+zone, m.token, `{"name":"renamed"}`)),
		"Content-Type: application/json", "Content-Type: application/merge-patch+json", 1))
	ours, err := latency(m.addr, 1, code200, func(int) []byte { return rq })
	m.stop()
	if err != nil {
		return err
	}
	theirs, err := bareStatement(server.Options{Data: dir}, "UPDATE resource SET key = replace(key, 'renamed', 'another'), "+
		"body = replace(body, 'renamed', 'another'), version = version + 1 WHERE parent = "+zone)
	if err != nil {
		return err
	}
	each := func(d time.Duration) string {
		return fmt.Sprintf("%.1f us each", float64(d.Microseconds())/float64(n))
	}
	b.add(fmt.Sprintf("(i) renaming a zone with %d records", n), each(ours), each(theirs), float64(ours)/float64(theirs), "5 us each",
		ours <= time.Duration(n)*5*time.Microsecond)
	return nil
}

// fillNetwork creates a network with 60,000 addresses in an empty database.
func (b *bench) fillNetwork(o server.Options) (network string, err error) {
	if network, _, err = b.createNetwork(o); err != nil {
		return "", err
	}
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: o.Data, Database: o.Database})
	if err != nil {
		return "", err
	}
	var lines []ipam.Line
	for i := range 60_000 {
		lines = append(lines, ipam.Line{Number: i, Address: netip.AddrFrom4([4]byte{10, byte(1 + i%2*128), byte(i >> 8), byte(i)}),
			State: "STATIC"})
	}
	_, err = ipam.ImportAddresses(context.Background(), model.NewAPI(s), "bench", lines, ipam.Import{})
	if e := s.Close(); err == nil {
		err = e
	}
	return network, err
}

// newDataDir returns the options of a new data directory.
func (b *bench) newDataDir(name string) (server.Options, error) {
	return server.Options{Data: filepath.Join(b.dir, name)}, nil
}

// newDatabase creates a PostgreSQL database and returns its options.
func (b *bench) newDatabase(name string) (server.Options, error) {
	url, err := b.newSharedDatabase(strings.ToLower(name))
	return server.Options{Database: url}, err
}

// splitNetwork measures (j): splitting a network so that half of its 60,000 addresses move, compared with a bare UPDATE of these. It also
// compares deleting the block of the network with a bare DELETE.
func (b *bench) splitNetwork() error { return b.reshaped("(j)", b.newDataDir) }

// sharedReshaped measures (s): the measurements (j) and (z) on PostgreSQL.
func (b *bench) sharedReshaped() error {
	if err := b.reshaped("(s) PostgreSQL,", b.newDatabase); err != nil {
		return err
	}
	url, network, err := b.filled(1_000_000)
	if err != nil {
		return err
	}
	return b.previewed("(s) PostgreSQL,", url, network)
}

// reshaped measures splits and deletions in databases that empty creates.
func (b *bench) reshaped(what string, empty func(name string) (server.Options, error)) error {
	for _, c := range []struct{ what, method, path, body, bare string }{
		{"splitting a network with 60,000 addresses", "POST", "/splits", `{"type":"IPv4NetworkSplit","network":{"id":NETWORK},"networkCount":2}`,
			"UPDATE resource SET parent = parent + 1000000, version = version + 1 WHERE parent = NETWORK AND collection = 'addresses'"},
		{"deleting a block with 60,000 addresses", "DELETE", "", "", "DELETE FROM resource WHERE parent = NETWORK AND collection = 'addresses'"},
	} {
		o, err := empty(c.method)
		if err != nil {
			return err
		}
		network, err := b.fillNetwork(o)
		if err != nil {
			return err
		}
		ours, err := b.reshape(o, c.method, c.path, strings.ReplaceAll(c.body, "NETWORK", network))
		if err != nil {
			return err
		}
		if c.method == "DELETE" { // the rows are deleted, so the comparison needs a new database
			if o, err = empty("again"); err != nil {
				return err
			}
			if network, err = b.fillNetwork(o); err != nil {
				return err
			}
		}
		theirs, err := bareStatement(o, strings.ReplaceAll(c.bare, "NETWORK", network))
		if err != nil {
			return err
		}
		ratio := float64(ours) / float64(theirs)
		b.add(what+" "+c.what, ours.Round(time.Millisecond).String(), theirs.Round(time.Millisecond).String(), ratio, "at most 3", ratio <= 3)
	}
	return nil
}

// reshape sends one request about the block 10.0.0.0/8 to a manager and returns how long it took.
func (b *bench) reshape(o server.Options, method, path, body string) (time.Duration, error) {
	m, err := spawn("manager", o.Data+o.Database, "")
	if err != nil {
		return 0, err
	}
	defer m.stop()
	if err := waitForIndex(o.Data + o.Database); err != nil {
		return 0, err
	}
	block, err := firstOf(m, "blocks?filter="+url.QueryEscape("range:'10.0.0.0/8'"))
	if err != nil {
		return 0, err
	}
	rq := request(method, "/api/v2/blocks/"+block+path, m.token, body)
	return latency(m.addr, 1, map[string]int{"POST": 201, "DELETE": 204}[method], func(int) []byte { return rq })
}

// bareStatement measures one statement.
func bareStatement(o server.Options, text string) (time.Duration, error) {
	if o.Database != "" {
		conn, err := pgx.Connect(context.Background(), o.Database)
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close(context.Background()) }()
		start := time.Now()
		_, err = conn.Exec(context.Background(), text)
		return time.Since(start), err
	}
	conn, err := sqlite.OpenConn(filepath.Join(o.Data, "portolan.db"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	start := time.Now()
	err = sqlitex.ExecuteTransient(conn, text, nil)
	return time.Since(start), err
}
