package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"portolan/internal/dns"
	"portolan/internal/ipam"
	"portolan/internal/naming"
	"portolan/internal/server"
	"portolan/internal/store"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// zoneOf prepares a data directory with a zone of that many TXT records, and gives the zone's id. The
// rows are written by SQL, as the rules would have written them.
func (b *bench) zoneOf(n int) (dir, zone string, err error) {
	dir = filepath.Join(b.dir, fmt.Sprintf("zone-%d", n))
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

// (h) compiling a zone out of the store, against the DNS library's parse of the same zone as a file.
func (b *bench) compileZone() error {
	const n = 1_000_000
	dir, _, err := b.zoneOf(n)
	if err != nil {
		return err
	}
	s, err := store.Open(store.Options{Layout: server.Layout(), Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	api := server.NewAPI(s)
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
	began := time.Now()
	if err := s.View(context.Background(), func(tx *store.Tx) error {
		row, err := dns.FindZone(tx, "bench", "v", "example")
		if err == nil {
			zone, err = dns.ZoneData(tx, api, row)
		}
		return err
	}); err != nil {
		return err
	}
	ours := time.Since(began)
	var file bytes.Buffer
	if err := zone.Write(&file); err != nil {
		return err
	}
	zone = nil
	began = time.Now()
	_, records, err := naming.ReadZone(&file, "")
	if err != nil {
		return err
	}
	theirs := time.Since(began)
	if len(records) != n+2 {
		return fmt.Errorf("the file has %d records", len(records))
	}
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	began = time.Now()
	if _, err := naming.Compile("example.", records); err != nil {
		return err
	}
	alone := time.Since(began)
	ratio := float64(alone) / float64(theirs)
	b.add("(h) compiling 1,000,000 records in any order", alone.Round(time.Millisecond).String(),
		theirs.Round(time.Millisecond).String()+" to parse", ratio, "at most 1.5", ratio <= 1.5)
	ratio = float64(ours) / float64(theirs)
	b.add("(h) the same with reading them from the store", ours.Round(time.Millisecond).String(),
		theirs.Round(time.Millisecond).String()+" to parse", ratio, "at most 1.5", ratio <= 1.5)
	return nil
}

// (i) renaming a zone, per record below it, against a bare UPDATE of the same rows.
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
	conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	began := time.Now()
	if err := sqlitex.ExecuteTransient(conn,
		"UPDATE resource SET key = replace(key, 'renamed', 'another'), body = replace(body, 'renamed', 'another'), version = version + 1 "+
			"WHERE parent = ?",
		&sqlitex.ExecOptions{Args: []any{zone}}); err != nil {
		return err
	}
	theirs := time.Since(began)
	each := func(d time.Duration) string {
		return fmt.Sprintf("%.1f us each", float64(d.Microseconds())/float64(n))
	}
	b.add(fmt.Sprintf("(i) renaming a zone with %d records", n), each(ours), each(theirs), float64(ours)/float64(theirs), "no goal", true)
	return nil
}

// (j) splitting a network with 60,000 addresses, half of which move, against a bare UPDATE of those.
func (b *bench) splitNetwork() error {
	dir := filepath.Join(b.dir, "split")
	network, _, err := b.begin(server.Options{Data: dir})
	if err != nil {
		return err
	}
	s, err := store.Open(store.Options{Layout: server.Layout(), Dir: dir})
	if err != nil {
		return err
	}
	var lines []ipam.Line
	for i := range 60_000 {
		lines = append(lines, ipam.Line{Number: i, Address: netip.AddrFrom4([4]byte{10, byte(1 + i%2*128), byte(i >> 8), byte(i)}),
			State: "STATIC"})
	}
	err = ipam.ImportAddresses(context.Background(), server.NewAPI(s), "bench", lines,
		func(int64) {})
	if e := s.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	_, answer, err := c.do(request("GET", "/api/v2/networks/"+network, m.token, ""), true)
	_ = c.conn.Close()
	if err != nil {
		return err
	}
	_, block, _ := strings.Cut(string(answer), `"up":{"href":"/api/v2/blocks/`)
	block, _, _ = strings.Cut(block, `"`)
	rq := request("POST", "/api/v2/blocks/"+block+"/splits", m.token,
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	ours, err := latency(m.addr, 1, 201, func(int) []byte { return rq })
	m.stop()
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	began := time.Now()
	if err := sqlitex.ExecuteTransient(conn,
		"UPDATE resource SET parent = parent + 1000000, version = version + 1 WHERE parent = ? AND collection = 'addresses'",
		&sqlitex.ExecOptions{Args: []any{network}}); err != nil {
		return err
	}
	theirs := time.Since(began)
	b.add("(j) splitting a network with 60,000 addresses", ours.Round(time.Millisecond).String(), theirs.Round(time.Millisecond).String(),
		float64(ours)/float64(theirs), "no goal", true)
	return nil
}
