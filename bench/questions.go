package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/manager/server"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// question is a request of a user, and the statement with the minimum work for its answer. In the statement, KEY(address) is the key of an
// address, MEMBER(path) a member of the body, and HAS(text) a match of the trigram index. ORDER BY +id sorts the rows: with the index of
// ids SQLite would read the whole collection in their order.
type question struct {
	what, ask, bare string
	// maxRatio is the maximum ratio to the bare statement's duration.
	maxRatio float64
}

// The numbers of additional networks and TXT records. Fast questions are repeated fastRepeats times, and slow ones, from slowLatency,
// slowRepeats times.
const (
	questionNetworks         = 40_000
	questionRecords          = 1_000_000
	fastRepeats, slowRepeats = 1001, 5
	questionMAC              = "00-00-5E-00-53-01"
	slowLatency              = 10 * time.Millisecond
)

// questions returns the questions for a database with this many addresses.
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
		{"macAddress.address eq", "addresses?filter=macAddress.address:'" + questionMAC + "'", of("addresses") + "id IN (" +
			"SELECT source FROM reference WHERE field = 'macAddress' AND target = (SELECT id FROM resource WHERE collection = 'macAddresses'" +
			" AND MEMBER(address) = '" + questionMAC + "'))", 2},
		{"location.code eq, blocks", "blocks?filter=location.code:'CH'", of("blocks") + "id IN (SELECT source FROM reference WHERE " +
			"field = 'location' AND target = (SELECT id FROM resource WHERE collection = 'locations' AND MEMBER(code) = 'CH'))", 2},
		{"addresses in a prefix", "addresses?filter=address:within('10.1.0.0/26')",
			of("addresses") + "low BETWEEN KEY(10.1.0.0) AND KEY(10.1.0.63) ORDER BY id", 2},
		{"name eq", "addresses?filter=name:'" + host + "'", of("addresses") + "name = '" + host + "'", 2},
		{"name in three", "addresses?filter=name:in('host-5','" + host + "','host-77')",
			of("addresses") + "name IN ('host-5', '" + host + "', 'host-77') ORDER BY +id", 2},
		{"name:startsWith, 11 rows", "addresses?filter=name:startsWith('" + host[:len(host)-1] + "')",
			of("addresses") + "name >= '" + host[:len(host)-1] + "' AND name < '" + host[:len(host)-1] + ":' ORDER BY id", 2},
		{"name eq, of any type", "?filter=name:'" + host + "'", "SELECT body FROM resource WHERE name = '" + host + "'", 2},
		{"absoluteName eq", "resourceRecords?filter=absoluteName:'t50000.bench.test'",
			of("resourceRecords") + "key = 't50000.bench.test'", 2},
		{"absoluteName in three", "resourceRecords?filter=absoluteName:in('t5.bench.test','t50000.bench.test','t77.bench.test')",
			of("resourceRecords") + "key IN ('t5.bench.test', 't50000.bench.test', 't77.bench.test') ORDER BY +id", 2},
		{"range in two", "networks?filter=range:in('11.9.8.0/24','11.1.1.0/24')",
			of("networks") + "(low = KEY(11.9.8.0) AND high = KEY(11.9.8.255) OR low = KEY(11.1.1.0) AND high = KEY(11.1.1.255)) ORDER BY +id", 2},
		{"range eq", "networks?filter=range:'11.9.8.0/24'", of("networks") + "low = KEY(11.9.8.0) AND high = KEY(11.9.8.255)", 2},
		{"range:contains an address, networks", "networks?filter=range:contains('11.9.8.7')",
			of("networks") + "low <= KEY(11.9.8.7) ORDER BY low DESC LIMIT 1", 2},
		{"range:contains a prefix, networks", "networks?filter=range:contains('11.9.8.64/26')",
			of("networks") + "low <= KEY(11.9.8.64) ORDER BY low DESC LIMIT 1", 2},
		{"range:contains an address, ranges", "ranges?filter=range:contains('11.0.0.110')",
			of("ranges") + "low <= KEY(11.0.0.110) ORDER BY low DESC LIMIT 1", 2},
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
		{"orderBy absoluteName, 100 rows", "resourceRecords?orderBy=absoluteName&limit=100",
			of("resourceRecords") + "low IS NULL ORDER BY key LIMIT 100", 2},
		{"orderBy desc(range), 100 rows", "networks?orderBy=desc(range)&limit=100",
			of("networks") + "low IS NOT NULL ORDER BY low DESC LIMIT 100", 2},
		{"offset 90000 by absoluteName", "resourceRecords?orderBy=absoluteName&limit=10&offset=90000",
			"SELECT key FROM resource WHERE collection = 'resourceRecords' AND low IS NULL ORDER BY key, id LIMIT 10 OFFSET 90000", 1.5},
		{"offset " + strconv.Itoa(far) + " by id", "addresses?limit=10&offset=" + strconv.Itoa(far),
			"SELECT CAST(id AS TEXT) FROM resource WHERE collection = 'addresses' ORDER BY id LIMIT 10 OFFSET " + strconv.Itoa(far), 1.5},
		{"offset " + strconv.Itoa(far) + " by name", "addresses?orderBy=name&limit=10&offset=" + strconv.Itoa(far),
			"SELECT name FROM resource WHERE collection = 'addresses' AND name IS NOT NULL ORDER BY name NULLS FIRST, id LIMIT 10 OFFSET " +
				strconv.Itoa(far),
			1.5},
		{"name:contains, 11 rows", "addresses?filter=name:contains('-" + host[5:len(host)-1] + "')",
			of("addresses") + "HAS(-" + host[5:len(host)-1] + ") AND name LIKE '%-" + host[5:len(host)-1] + "%' ORDER BY id", 2},
		{"name:contains, none", "addresses?filter=name:contains('nothing')",
			of("addresses") + "HAS(nothing) AND name LIKE '%nothing%' ORDER BY id", 2},
		{"name:endsWith", "addresses?filter=name:endsWith('" + host[2:] + "')",
			of("addresses") + "HAS(" + host[2:] + ") AND name LIKE '%" + host[2:] + "' ORDER BY id", 2},
		{"absoluteName:contains, 11 rows", "resourceRecords?filter=absoluteName:contains('t5000')",
			of("resourceRecords") + "HAS(t5000) AND MEMBER(absoluteName) LIKE '%t5000%' ORDER BY id", 2},
		{"absoluteName:startsWith, 11 rows", "resourceRecords?filter=absoluteName:startsWith('t5000')&limit=20",
			of("resourceRecords") + "low IS NULL AND key >= 't5000' AND key < 't5001' ORDER BY id", 2},
		{"absoluteName:endsWith", "resourceRecords?filter=absoluteName:endsWith('49999.bench.test')",
			of("resourceRecords") + "HAS(49999.bench.test) AND MEMBER(absoluteName) LIKE '%49999.bench.test' ORDER BY id", 2},
		{"address:startsWith, 256 rows", "addresses?filter=address:startsWith('10.1.2.')&limit=256",
			of("addresses") + "HAS(10.1.2.) AND MEMBER(address) LIKE '10.1.2.%' ORDER BY id LIMIT 256", 2},
		{"address:contains", "addresses?filter=address:contains('" + at[3:] + "')",
			of("addresses") + "HAS(" + at[3:] + ") AND MEMBER(address) LIKE '%" + at[3:] + "%' ORDER BY id", 2},
		{"address:endsWith", "addresses?filter=address:endsWith('" + at[4:] + "')",
			of("addresses") + "HAS(" + at[4:] + ") AND MEMBER(address) LIKE '%" + at[4:] + "' ORDER BY id", 2},
		{"no index: a user-defined field", "addresses?filter=userDefinedFields.owner:'nobody'",
			of("addresses") + "MEMBER(userDefinedFields.owner) = 'nobody'", 1.5},
	}
}

// questions measures (x): the most frequent questions, in the form that users send, compared with bare statements through the same driver
// and net/http.
func (b *bench) questions() error {
	addresses := b.questionAddresses()
	dir, _, err := b.data(addresses)
	if err != nil {
		return err
	}
	if err := b.addSurroundings(server.Options{Data: dir}, func(script string) error {
		conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return sqlitex.ExecuteScript(conn, script+"\nINSERT INTO trigram_due SELECT id FROM resource WHERE TRUE ON CONFLICT DO NOTHING;", nil)
	}); err != nil {
		return err
	}
	return b.ask("(x)", dir, addresses)
}

// sharedQuestions measures (y): the questions on PostgreSQL.
func (b *bench) sharedQuestions() error {
	addresses := b.questionAddresses()
	url, _, err := b.filled(addresses)
	if err != nil {
		return err
	}
	if err := b.addSurroundings(server.Options{Database: url}, func(script string) error {
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

// questionAddresses returns the number of addresses for the questions.
func (b *bench) questionAddresses() int {
	if b.big {
		return 10_000_000
	}
	return 1_000_000
}

// addSurroundings adds networks and records to the database. run executes SQL.
func (b *bench) addSurroundings(o server.Options, run func(script string) error) error {
	network, record, err := b.createQuestions(o)
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
		"INSERT INTO total (parent, collection, type, n) SELECT -1, collection, type, count(*) FROM resource GROUP BY 2, 3;\n" +
		"UPDATE record_count SET n = " + strconv.Itoa(questionRecords) + ";")
}

// createQuestions creates the first network and the first record, which addSurroundings copies.
func (b *bench) createQuestions(o server.Options) (network, record string, err error) {
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
	place, e := firstOf(m, "locations?filter="+url.QueryEscape("code:'CH'"))
	if err == nil {
		err = e
	}
	block := id("configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"11.0.0.0/8","location":{"id":`+place+`}}`)
	network = id("blocks/"+block+"/networks", `{"type":"IPv4Network","range":"11.0.0.0/24","name":"net-0"}`)
	id("networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"11.0.0.9","state":"DHCP_RESERVED","macAddress":{"address":"`+questionMAC+`"}}`)
	id("networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"11.0.0.100-11.0.0.120"}`)
	view := id("configurations/"+configuration+"/views", `{"name":"internal"}`)
	zone := id("views/"+view+"/zones", `{"type":"Zone","absoluteName":"bench.test"}`)
	record = id("zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"t0","text":"a text"}`)
	return network, record, err
}

// ask compares all questions to a manager with the bare statements.
func (b *bench) ask(what, data string, addresses int) error {
	all := slices.DeleteFunc(questions(addresses), func(q question) bool { return !strings.Contains(q.what, b.question) })
	statements := make([]string, len(all))
	for i, q := range all {
		statements[i] = q.bare
	}
	text, err := json.Marshal(append(statements, mapRows, freeRows))
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
	if err := waitForIndex(data); err != nil {
		return err
	}
	bare, err := spawn("bare-sql", data, file)
	if err != nil {
		return err
	}
	defer bare.stop()
	for i, q := range all {
		size, err := answerSize(m, q.ask)
		if err != nil {
			return fmt.Errorf("%s: %w", q.what, err)
		}
		theirs, err := b.median(bare.addr, request("GET", fmt.Sprintf("/%d?size=%d", i, size), "", ""))
		if err != nil {
			return fmt.Errorf("%s, bare: %w", q.what, err)
		}
		if err := b.compareDuration(what+" "+q.what, m, q.ask, theirs, q.maxRatio); err != nil {
			return err
		}
	}
	if err := b.measureSearch(what, m, bare, len(all), addresses); err != nil {
		return err
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
		if err := b.compareDuration(what+" total=true of "+strings.ReplaceAll(of, one, "{id}")+", against GET one", m,
			of+"?limit=1&total=true", get,
			2); err != nil {
			return err
		}
	}
	view, err := firstOf(m, "views?filter="+url.QueryEscape("name:'internal'"))
	if err != nil {
		return err
	}
	block, err := firstOf(m, "blocks?filter="+url.QueryEscape("range:'10.0.0.0/8'"))
	if err != nil {
		return err
	}
	if err := b.compareDuration(what+" addresses of a block by state, against GET one", m, "blocks/"+block+"/addressCounts", get,
		2); err != nil {
		return err
	}
	if err := b.compareDuration(what+" records of a view by type, against GET one", m, "views/"+view+"/recordCounts", get, 2); err != nil {
		return err
	}
	return b.walk(what, m, min(900, addresses/1000-1))
}
