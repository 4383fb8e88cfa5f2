package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"portolan/internal/manager/server"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// data prepares a data directory with this many addresses in one network of a /8. It returns the directory and the network's ID. It writes
// the rows by SQL in the same form as the manager, but without history, which would take too long for ten million.
func (b *bench) data(addresses int) (dir, network string, err error) {
	dir = filepath.Join(b.dir, fmt.Sprintf("data-%d", addresses))
	note := filepath.Join(b.dir, fmt.Sprintf("network-%d", addresses))
	if text, err := os.ReadFile(note); err == nil {
		return dir, string(text), nil
	}
	start := time.Now()
	network, first, err := b.createNetwork(server.Options{Data: dir})
	if err != nil {
		return "", "", err
	}
	if err := fill(dir, network, first, addresses-2); err != nil { // createNetwork has created the gateway and the first address
		return "", "", err
	}
	fmt.Fprintf(os.Stderr, "prepared %d addresses in %v\n", addresses, time.Since(start).Round(time.Millisecond))
	return dir, network, os.WriteFile(note, []byte(network), 0o600)
}

// fill copies the first address n times.
func fill(dir, network, first string, n int) error {
	conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// The first address is 10.0.0.2. The others follow without a gap.
	const span = "unhex('04000000000000000000000000' || printf('%08x', 167772162 + n))"
	script := `
WITH RECURSIVE seq(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < ?1)
INSERT INTO resource (id, collection, type, name, parent, configuration, low, high, key, version, refs, body)
SELECT r.id + n, r.collection, r.type, 'host-' || n, r.parent, r.configuration, ` + span + `, ` + span + `, NULL, r.version, r.refs,
       replace(r.body, '10.0.0.2', '10.' || ((2 + n) >> 16) || '.' || (((2 + n) >> 8) & 255) || '.' || ((2 + n) & 255))
FROM seq, resource r WHERE r.id = ?2`
	if n < 1 {
		return nil
	}
	for _, step := range []struct {
		text string
		args []any
	}{
		{"PRAGMA synchronous = OFF", nil}, {"PRAGMA cache_size = -400000", nil}, {script, []any{n, first}},
		{"UPDATE free SET low = unhex('04000000000000000000000000' || printf('%08x', 167772163 + ?)) WHERE container = ?", []any{n, network}},
		{"UPDATE usage SET n = n + ? WHERE state = 'STATIC'", []any{n}}, {"UPDATE total SET n = n + ? WHERE collection = 'addresses'", []any{n}},
		{"UPDATE counter SET value = value + ? WHERE name = 'resource'", []any{n}}, {"PRAGMA wal_checkpoint(TRUNCATE)", nil},
	} {
		if err := sqlitex.ExecuteTransient(conn, step.text, &sqlitex.ExecOptions{Args: step.args}); err != nil {
			return fmt.Errorf("filling: %w", err)
		}
	}
	return nil
}

// post creates a resource and returns its ID.
func post(addr, path, token, body string) (string, error) {
	c, err := dial(addr, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.conn.Close() }()
	code, answer, err := c.do(request("POST", path, token, body), true)
	if err != nil {
		return "", err
	}
	var v struct {
		ID int64 `json:"id"`
	}
	if code != 201 || json.Unmarshal(answer, &v) != nil {
		return "", fmt.Errorf("POST %s answers %d %s", path, code, answer)
	}
	return strconv.FormatInt(v.ID, 10), nil
}
