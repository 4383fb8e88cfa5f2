package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/model"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Bare transactions with the same durability. oneRow is the minimum that a transaction can write. equalRows are all rows that the manager
// writes for a create. These are the resource with its indexes, and the change and the transaction in the history. Free space, totals and
// the usage of the network and its block are updated, and the trigram index and the history chain get pending entries.
var (
	oneRow    = []string{"INSERT INTO bare (body) VALUES (?1)"}
	equalRows = []string{
		"INSERT INTO resource (collection, type, name, parent, configuration, low, high, version, body) VALUES ('addresses', 'IPv4Address', " +
			"'x', 5, 4, unhex(printf('%034x', ?2)), unhex(printf('%034x', ?2)), ?2, ?1)",
		"INSERT INTO change (txn, resource, operation, after) VALUES (?2, last_insert_rowid(), 'ADD', ?1 || ?1)",
		"INSERT INTO txn (at, user_id, operation, first, last, body) VALUES (0, 1, 'ADD_IPV4_ADDRESS', ?2, ?2, " +
			"json_object('credential', 'token 1', 'remoteAddress', '127.0.0.1', 'description', substr(?1, 1, 80)))",
		"UPDATE free SET low = unhex(printf('%034x', ?2 + 1)) WHERE container = 5",
		"INSERT INTO total VALUES (5, 'addresses', 'IPv4Address', 1), (-1, 'addresses', 'IPv4Address', 1) ON CONFLICT DO UPDATE SET n = n + 1",
		"INSERT INTO usage VALUES (5, 'STATIC', 1), (4, 'STATIC', 1) ON CONFLICT DO UPDATE SET n = n + 1",
		"INSERT INTO trigram_due VALUES (?2)",
		"INSERT INTO history_due VALUES (?2)",
	}
)

// bareCreates measures bare transactions of these statements, per second.
func (b *bench) bareCreates(writers int, statements []string) (float64, error) {
	dir, err := os.MkdirTemp(b.dir, "bare-")
	if err != nil {
		return 0, err
	}
	s, err := store.Open(store.Options{Layout: model.Layout(), Dir: dir}) // creates the schema
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return 0, err
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	for _, script := range []string{"PRAGMA synchronous = FULL", "CREATE TABLE bare (id INTEGER PRIMARY KEY, body TEXT)",
		"INSERT INTO free VALUES (5, unhex(printf('%034x', 1)), unhex(printf('%034x', 1000000000)))"} {
		if err := sqlitex.ExecuteTransient(conn, script, nil); err != nil {
			return 0, err
		}
	}
	var mu sync.Mutex // SQLite has one writer, and waiting for a mutex is the fastest way to wait
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	stop := make(chan struct{})
	body := strings.Repeat("x", 450)
	n := int64(1)
	for range writers {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				n++
				err := runStatements(conn, statements, body, n)
				mu.Unlock()
				if err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	time.Sleep(b.time)
	count := done.Load()
	close(stop)
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(count) / b.time.Seconds(), nil
}

func runStatements(conn *sqlite.Conn, statements []string, body string, n int64) error {
	for _, text := range append(append([]string{"BEGIN IMMEDIATE"}, statements...), "COMMIT") {
		stmt, err := conn.Prepare(text)
		if err != nil {
			return err
		}
		for i := range stmt.BindParamCount() {
			if i == 0 {
				stmt.BindText(1, body)
			} else {
				stmt.BindInt64(2, n)
			}
		}
		if _, err := stmt.Step(); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// measureCreates measures (e): creates per second.
func (b *bench) measureCreates() error {
	for _, n := range []int{1, 64} {
		dir, network, err := b.data(20 + n)
		if err != nil {
			return err
		}
		m, err := spawn("manager", dir, "")
		if err != nil {
			return err
		}
		rq := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC","name":"x"}`)
		ours, err := rate(m.addr, nil, n, b.time, 201, func(int, int) []byte { return rq })
		for _, bare := range []struct {
			name       string
			statements []string
		}{{"the same rows", equalRows}, {"one row", oneRow}} {
			if err != nil {
				break
			}
			var theirs float64
			if theirs, err = b.bareCreates(n, bare.statements); err == nil {
				b.add(fmt.Sprintf("(e) creates, %d clients, to %s", n, bare.name), perSecond(ours), perSecond(theirs), ours/theirs, "at least 0.5",
					ours/theirs >= 0.5)
			}
		}
		m.stop()
		if err != nil {
			return err
		}
	}
	return nil
}
