package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// waitForIndex waits until a manager has moved all texts into the trigram index. On SQLite the manager does this in the background.
func waitForIndex(data string) error {
	if strings.HasPrefix(data, "postgres:") {
		return nil
	}
	conn, err := sqlite.OpenConn(filepath.Join(data, "portolan.db"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	start := time.Now()
	for pending := true; pending; time.Sleep(100 * time.Millisecond) {
		if err := sqlitex.ExecuteTransient(conn, "SELECT EXISTS (SELECT 1 FROM trigram_due)",
			&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error { pending = stmt.ColumnBool(0); return nil }}); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "indexed all texts in %v\n", time.Since(start).Round(time.Millisecond))
	return nil
}

// mapRows selects the rows of the map of a block with 40,000 networks.
const mapRows = "SELECT CAST(r.id AS TEXT), r.low, r.high, (SELECT sum(n) FROM usage u WHERE u.container = r.id) FROM resource r " +
	"WHERE r.collection = 'networks' AND r.low BETWEEN KEY(11.0.0.0) AND KEY(11.255.255.255) UNION ALL " +
	"SELECT CAST(r.id AS TEXT), r.low, r.high, (SELECT sum(n) FROM usage u WHERE u.container = r.id) FROM resource r " +
	"WHERE r.collection = 'blocks' AND r.low BETWEEN KEY(11.0.0.0) AND KEY(11.255.255.255)"

// freeRows selects the rows of the map of a network with all addresses: its free intervals.
const freeRows = "SELECT CAST(f.container AS TEXT), f.low, f.high FROM free f WHERE f.container = " +
	"(SELECT id FROM resource WHERE collection = 'networks' AND low = KEY(10.0.0.0))"

// measureSearch measures the search, and the map compared with bare statements. statement is the number of the first of these.
func (b *bench) measureSearch(what string, m, bare *child, statement, addresses int) error {
	if strings.Contains("search", b.question) {
		if err := b.searches(what, m, addresses); err != nil {
			return err
		}
	}
	if strings.Contains("vacant", b.question) {
		if err := b.vacant(what, m); err != nil {
			return err
		}
	}
	if !strings.Contains("map", b.question) {
		return nil
	}
	block, err := firstOf(m, "blocks?filter="+url.QueryEscape("range:'11.0.0.0/8'"))
	if err != nil {
		return err
	}
	network, err := firstOf(m, "networks?filter="+url.QueryEscape("range:'10.0.0.0/8'"))
	if err != nil {
		return err
	}
	for i, one := range []struct{ what, ask string }{
		{"map of a /8 with 40,000 networks in 65,536 cells", "blocks/" + block + "/map?cells=65536"},
		{fmt.Sprintf("map of a network with %d addresses in 65,536 cells", addresses), "networks/" + network + "/map?cells=65536"},
	} {
		size, err := answerSize(m, one.ask)
		if err != nil {
			return err
		}
		theirs, err := b.median(bare.addr, request("GET", fmt.Sprintf("/%d?size=%d", statement+i, size), "", ""))
		if err != nil {
			return err
		}
		if err := b.compareDuration(what+" "+one.what, m, one.ask, theirs, 3); err != nil {
			return err
		}
	}
	return nil
}

// vacant measures the lists of free addresses in the network with all addresses, compared with a page of its addresses.
func (b *bench) vacant(what string, m *child) error {
	network, err := firstOf(m, "networks?filter="+url.QueryEscape("name:'wide'"))
	if err != nil {
		return err
	}
	list := "networks/" + network + "/addresses?limit=1"
	page, err := b.median(m.addr, request("GET", "/api/v2/"+list, m.token, ""))
	if err != nil {
		return err
	}
	for _, one := range []struct{ what, more string }{
		{"", "&filter=state:'UNASSIGNED'"},
		{", with their number", "&filter=state:'UNASSIGNED'&total=true"},
		{" from the last", "&filter=state:'UNASSIGNED'&orderBy=desc(address)"},
		{" from the thousandth", "&filter=state:'UNASSIGNED'&offset=1000"},
		{" in half of it", "&filter=state:'UNASSIGNED' and address:ge('10.128.0.0')"},
		{" or a name", "&filter=state:'UNASSIGNED' or name:'nothing'"},
		{" or the gateway", "&filter=state:in('UNASSIGNED','GATEWAY')"},
	} {
		if err := b.compareDuration(what+" free addresses"+one.what+", against a page of addresses", m, list+one.more, page, 8); err != nil {
			return err
		}
	}
	return nil
}

// searches measures the search with texts of all kinds in turns, each with random numbers.
func (b *bench) searches(what string, m *child, addresses int) error {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts in each run
	kinds := []func(n int) string{
		func(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255) },
		func(n int) string { return fmt.Sprintf("11.%d.%d.0/24", n>>8&127, n&255) },
		func(n int) string { return fmt.Sprintf("host-%d", n) },
		func(n int) string { return fmt.Sprintf("st-%d", n) },
		func(n int) string { return fmt.Sprintf("%d.%d.%d", n>>16, n>>8&255, n&255) },
		func(n int) string { return fmt.Sprintf("t%d.bench.test", n%questionRecords) },
		func(n int) string { return fmt.Sprintf("T%d.BENCH", n%questionRecords) },
		func(n int) string { return fmt.Sprintf("net-%d", n%questionNetworks) },
		func(int) string { return "host" },
		func(int) string { return "bench" },
		func(n int) string { return fmt.Sprintf("00-00-5e-%02x-%02x-%02x", n>>16&255, n>>8&255, n&255) },
		func(n int) string { return fmt.Sprint(100_000 + n) },
		func(int) string { return "nothing like it" },
	}
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	var took []time.Duration
	slowest, longest := "", time.Duration(0)
	for i := range 40 * len(kinds) {
		text := kinds[i%len(kinds)](random.IntN(addresses))
		start := time.Now()
		code, answer, err := c.do(request("GET", "/api/v2/search?q="+url.QueryEscape(text), m.token, ""), true)
		if err != nil || code != 200 {
			return fmt.Errorf("search for %s: %d %s: %w", text, code, answer, err)
		}
		took = append(took, time.Since(start))
		if took[i] > longest {
			slowest, longest = text, took[i]
		}
	}
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	b.add(fmt.Sprintf("%s search, p95 (the middle %v, the slowest %v, %s)", what, took[len(took)/2].Round(10*time.Microsecond),
		longest.Round(time.Millisecond), slowest), p95.Round(10*time.Microsecond).String(), "20ms", float64(p95)/float64(20*time.Millisecond),
		"at most 1", p95 <= 20*time.Millisecond)
	return nil
}
