package server

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// spansVariable is the number of lease spans of TestLongLeaseSpans; the goals of docs/scale.md are for ten million.
const spansVariable = "PORTOLAN_TEST_SPANS"

// fillSpans copies the span of the address 10.0.0.20 n times by SQL, in the same form as the manager: the holders of the addresses from
// 10.1.0.0, seven for each address, one after the other. Each holder has a MAC address of its own.
func fillSpans(t *testing.T, database string, n int) {
	t.Helper()
	conn, err := sqlite.OpenConn(database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const number = "(167837696 + n / 7)" // 10.1.0.0
	const text = "'10.' || ((" + number + " >> 16) & 255) || '.' || ((" + number + " >> 8) & 255) || '.' || (" + number + " & 255)"
	const low = "unhex('04000000000000000000000000' || printf('%08x', " + number + "))"
	run := func(text string, args ...any) {
		if err := sqlitex.ExecuteTransient(conn, text, &sqlitex.ExecOptions{Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	run("PRAGMA synchronous = OFF")
	run("PRAGMA cache_size = -400000")
	run("PRAGMA busy_timeout = 60000")
	const step = 50_000 // the manager writes meanwhile
	for first := 0; first < n; first += step {
		run(`
WITH RECURSIVE seq(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM seq WHERE n < ?2)
INSERT INTO dhcp_lease_span (id, type, name, parent, configuration, low, high, version, refs, body, start, stop)
SELECT s.id + 1 + n, s.type, s.name, s.parent, s.configuration, `+low+`, `+low+`, s.version, s.refs,
  replace(replace(s.body, '10.0.0.20', `+text+`), '00-00-5E-00-53-01', printf('02-00-%02X-%02X-%02X-%02X', n >> 24, n >> 16 & 255,
  n >> 8 & 255, n & 255)), s.start - 86400 * (n % 7), s.stop - 86400 * (n % 7)
FROM seq, dhcp_lease_span s WHERE s.id = (SELECT min(id) FROM dhcp_lease_span)`, first, min(first+step, n)-1)
	}
	run("ANALYZE dhcp_lease_span")
}

// TestLongLeaseSpans asks who had an address, and which addresses a client had, among many spans, and lists a network. It prints the
// median times, and that of a list of addresses.
func TestLongLeaseSpans(t *testing.T) {
	apitest.Long(t)
	if os.Getenv(apitest.OnPostgres) != "" {
		t.Skip("the rows are written by SQL of SQLite")
	}
	n := 200_000
	if text := os.Getenv(spansVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	m := startManager(t, func(o *Options) { o.Data = dir })
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/8"}`)
	_, source := m.leaseServer(configuration, "dhcp1")
	start := m.Store.Now().Truncate(time.Second).Add(-time.Hour)
	lease := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.20"), Start: start.Unix(),
		Expires: start.Add(24 * time.Hour).Unix(), MAC: "00005e005301", HostName: "lamp"}
	source.event(dhcplease.Begin, start, lease)
	source.event(dhcplease.Release, start.Add(time.Minute), lease)
	for range 100 {
		m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	}
	began := time.Now()
	fillSpans(t, filepath.Join(dir, "portolan.db"), n)
	t.Logf("%d spans written in %v", n, time.Since(began).Round(time.Second))
	middle := netip.AddrFrom4([4]byte{10, byte(1 + n/14>>16), byte(n / 14 >> 8), byte(n / 14)})
	at := start.Add(30 * time.Second).UTC().Format(time.RFC3339)
	during := fmt.Sprintf("startDateTime:le('%s') and (endDateTime:gt('%s') or endDateTime:null)", at, at)
	lists := map[string]string{
		"who had it":          "/api/v2/leaseSpans?orderBy=desc(startDateTime)&" + filter("address:'"+middle.String()+"' and "+during),
		"what a client had":   "/api/v2/leaseSpans?" + filter("macAddress:'02-00-00-00-10-00'"),
		"spans of a network":  "/api/v2/networks/" + network + "/leaseSpans?limit=100",
		"addresses of a page": "/api/v2/networks/" + network + "/addresses?limit=100",
	}
	for name, path := range lists {
		var all []time.Duration
		for range 15 {
			began := time.Now()
			r := m.Want(200, "GET", path, "")
			if all = append(all, time.Since(began)); r.Text("data.0.id") == "" {
				t.Fatalf("%s: %s", name, r.Body)
			}
		}
		slices.Sort(all)
		t.Logf("%s: %v", name, all[len(all)/2])
	}
}
