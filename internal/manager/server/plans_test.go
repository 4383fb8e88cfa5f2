package server

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// askedOf fills a manager with so much that a plan without an index costs more, and gives what questions name.
func (m *manager) askedOf() (block, network, view, zone string) {
	m.T.Helper()
	_, view, zone, block, _ = m.Basics()
	list := func(path, format string, n int) {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
		}
		m.Want(201, "POST", "/api/v2/"+path+"?fields=id", "["+strings.Join(all, ",")+"]")
	}
	place := m.Want(200, "GET", "/api/v2/locations?"+filter("code:'CH'"), "").Text("data.0.id")
	list("blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.9.#.0/24","name":"net-#"}`, 250)
	list("blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.10.#.0/24","location":{"id":`+place+`}}`, 3)
	wide := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.16.0.0/16","name":"wide"}`)
	list("networks/"+wide+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"host-#","userDefinedFields":{"asset":"A-#"}}`, 1500)
	list("networks/"+wide+"/addresses", `{"type":"IPv4Address","state":"DHCP_RESERVED","macAddress":{"address":"00-00-5E-00-53-0#"}}`, 9)
	m.ID("/api/v2/networks/"+wide+"/ranges", `{"type":"IPv4DHCPRange","range":"10.16.200.1-10.16.200.99"}`)
	list("zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"t-#","text":"x"}`, 1000)
	m.ID("/api/v2/userDefinedFieldDefinitions",
		`{"name":"asset","displayName":"Asset","resourceType":"IPv4Address","dataType":"TEXT","indexed":true}`)
	apitest.Eventually(m.T, "the field has its index", func() bool { return m.Address.UserFields.Indexed("addresses", "asset") })
	if err := m.Store.Update(m.T.Context(), store.Author{}, func(tx *store.Tx) error {
		for i := range 3000 { // transactions whose changes are not requested
			if err := tx.Write("INSERT INTO txn (id, at, user_id, operation, first, last, body) VALUES (?, 0, ?, 'X', 1, 1, ?)", 1_000_000+i, 1+i,
				fmt.Sprintf(`{"operation":"X_%d","creationDateTime":"2020-01-01T00:%02d:%02dZ","credential":"token %d","remoteAddress":"192.0.2.%d"}`,
					i, i/60%60, i%60, i, i%250)); err != nil {
				return err
			}
		}
		if !tx.RoundTrips() {
			return nil
		}
		// The same as autovacuum.
		var pages int64
		if err := tx.QueryRow("SELECT sum(gin_clean_pending_list(c.oid)) FROM pg_class c WHERE c.relkind = 'i' AND c.relname LIKE 'search\\_%'").
			Scan(&pages); err != nil {
			return err
		}
		return tx.Write("ANALYZE")
	}); err != nil {
		m.T.Fatal(err)
	}
	return block, wide, view, zone
}

// ofResources finds the statements that are about resources: what a manager reads besides, on its own account, is not asked for here.
var ofResources = regexp.MustCompile(`^(SELECT|WITH)(?s:.*)\b(resource|change|trigram|txn|transaction_resource)\b`)

// How a plan reads a table from its beginning to its end, how it reads all of a collection (PostgreSQL, which counts first,
// may, where that is small), and how rows are sorted.
var (
	scansAll        = regexp.MustCompile(`^SCAN (r|resource|change|t)\b|Seq Scan on (resource|change|txn)\b`)
	scansCollection = regexp.MustCompile(`^SEARCH r USING (COVERING )?INDEX \w+ \(collection=\?\)$|Index Cond: \(\(?collection = 'addresses'::text\)?\)$`)
	sortsRows       = regexp.MustCompile(`TEMP B-TREE FOR ORDER|Sort Key`)
)

// TestVacantReadsNoAddresses checks that lists of free addresses read no stored address: there may be millions of others.
func TestVacantReadsNoAddresses(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.9"}`)
	free := regexp.MustCompile(`\br\.collection = 'addresses'`)
	var mu sync.Mutex
	var seen []string
	m.Store.Observe(func(s store.Statement) {
		mu.Lock()
		defer mu.Unlock()
		if free.MatchString(s.Query) {
			seen = append(seen, s.Query)
		}
	})
	defer m.Store.Observe(nil)
	ask := func(more string) []string {
		mu.Lock()
		seen = nil
		mu.Unlock()
		m.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?limit=1&"+more, "")
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
	for _, more := range []string{"", "&total=true", "&orderBy=desc(address)", "&offset=100", "&offset=1000", "&fields=address"} {
		if read := ask(filter("state:'UNASSIGNED'") + more); len(read) > 0 {
			t.Errorf("the list with %q reads addresses: %s", more, read)
		}
	}
	for _, text := range []string{"state:'UNASSIGNED' and address:ge('10.0.0.100')", "state:in('UNASSIGNED','RESERVED')", "state:'RESERVED'"} {
		if read := ask(filter(text)); len(read) > 0 {
			t.Errorf("the list of %s reads addresses: %s", text, read)
		}
	}
	if len(ask(filter("state:'STATIC'"))) == 0 {
		t.Error("a list of stored addresses reads none of them, so this test would find no fault")
	}
}

// TestPlansOfQuestions checks the query plans of frequent requests on both databases. No statement scans all resources, nor a whole
// collection, unless the order of the list is that of an index.
func TestPlansOfQuestions(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	block, network, view, zone := m.askedOf()
	m.vlans()
	m.indexedTexts()
	var mu sync.Mutex
	var seen []store.Statement
	m.Store.Observe(func(s store.Statement) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	})
	defer m.Store.Observe(nil)
	for _, ask := range []string{
		"addresses?" + filter("address:'10.16.1.9'"),
		"addresses?" + filter("address:in('10.16.1.9','10.16.0.9','10.1.1.1')"),
		"addresses?" + filter("address:'10.16.1.9' and configuration.name:'main'"),
		"addresses?" + filter("address:'10.16.1.9' and state:'STATIC'"),
		"addresses?" + filter("macAddress.address:'00-00-5E-00-53-01'"),
		"blocks?" + filter("location.code:'CH'"),
		"networks?" + filter("location.code:'CH'"),
		"vlans?" + filter("number:210"),
		"addresses?" + filter("address:within('10.16.1.0/26')"),
		"addresses?" + filter("name:'host-77'"),
		"addresses?" + filter("name:in('host-77','host-78')"),
		"addresses?" + filter("name:startsWith('host-77')"),
		"?" + filter("name:'host-77'"),
		"addresses?" + filter("userDefinedFields.asset:'A-77'"),
		"addresses?" + filter("userDefinedFields.asset:in('A-77','A-78') and state:'STATIC'"),
		"addresses?" + filter("userDefinedFields.asset:startsWith('A-77')"),
		"resourceRecords?" + filter("absoluteName:'t-77.example.com'"),
		"resourceRecords?" + filter("absoluteName:in('t-77.example.com','t-78.example.com')"),
		"resourceRecords?" + filter("absoluteName:startsWith('t-77')"),
		"resourceRecords?" + filter("absoluteName:startsWith('t-77.')"),
		"networks?" + filter("range:'10.9.8.0/24'"),
		"networks?" + filter("range:in('10.9.8.0/24','10.9.9.0/24')"),
		"networks?" + filter("range:contains('10.9.8.7')"),
		"networks?" + filter("range:contains('10.9.8.64/26')"),
		"blocks?" + filter("range:contains('10.9.8.7')"),
		"ranges?" + filter("range:contains('10.16.200.7')"),
		"networks?" + filter("range:within('10.9.0.0/20')"),
		"addresses?" + filter("name:contains('st-77')"),
		"addresses?" + filter("name:contains('nothing')"),
		"addresses?" + filter("name:endsWith('t-777')"),
		"addresses?" + filter("address:contains('16.1.9')"),
		"addresses?" + filter("address:endsWith('16.1.99')"),
		"resourceRecords?" + filter("absoluteName:contains('-777.')"),
		"resourceRecords?" + filter("absoluteName:endsWith('-777.example.com')"),
		"locations?" + filter("description:contains('nothing')"),
		"addresses?total=true&limit=1",
		"networks/" + network + "/addresses?total=true&limit=1",
		"addresses?orderBy=name&limit=10", "addresses?orderBy=desc(name)&limit=10", "addresses?orderBy=desc(address)&limit=10",
		"networks?orderBy=range&limit=10", "resourceRecords?orderBy=absoluteName&limit=10", "addresses?limit=10&offset=900",
		"addresses?orderBy=name&limit=10&offset=900",
		"blocks/" + block + "/addressCounts", "networks/" + network + "/addressCounts",
		"views/" + view + "/recordCounts", "zones/" + zone + "/recordCounts",
		"blocks/" + block + "/map?cells=256", "networks/" + network + "/map?cells=256",
		"zones/" + zone + "/serving",
		"search?q=10.16.1.9", "search?q=10.9.8.0/24", "search?q=host-77", "search?q=st-77", "search?q=00005e005301", "search?q=" + network,
		"networks/" + network, "networks/" + network + "/transactions",
		"transactions?" + filter("operation:'X_77'"), "transactions?" + filter("credential:'token 77'"), "transactions?" + filter("user.id:77"),
		"transactions?" + filter("remoteAddress:'192.0.2.77'"),
		"transactions?orderBy=desc(creationDateTime)&limit=10&" + filter("creationDateTime:gt('2020-01-01T00:40:00Z')"),
		"transactions?orderBy=desc(creationDateTime)&limit=10",
	} {
		fault := ""
		for range 3 { // what the manager asks for itself meanwhile is not asked for each time
			mu.Lock()
			seen = nil
			mu.Unlock()
			r := m.Do("GET", strings.Replace("/api/v2/"+ask, "/?", "?", 1), "")
			if r.StatusCode != 200 {
				t.Errorf("%s answers %d %s", ask, r.StatusCode, r.Body)
			}
			mu.Lock()
			asked := seen
			mu.Unlock()
			ordered := strings.Contains(ask, "orderBy=") || strings.Contains(ask, "offset=") || strings.Contains(ask, "limit=1")
			if fault = m.fault(asked, ordered); fault == "" && len(asked) > 0 {
				break
			}
			fault = fmt.Sprintf("%d statements\n%s", len(asked), fault)
		}
		if fault != "" {
			t.Errorf("%s asks %s", ask, fault)
		}
	}
	m.Store.Observe(func(s store.Statement) { // no other caller reads addresses
		if mu.Lock(); slices.Contains(s.Args, any("nobody")) {
			seen = append(seen, s)
		}
		mu.Unlock()
	})
	mu.Lock()
	seen = nil
	mu.Unlock()
	m.Want(200, "GET", "/api/v2/addresses?"+filter("userDefinedFields.owner:'nobody'"), "")
	mu.Lock()
	asked := seen
	mu.Unlock()
	if m.fault(asked, false) == "" {
		t.Error("a question that no index answers looks as if one did: nothing would be found out here")
	}
}

// fault gives the first of the statements whose plan is none of an index, with its plan.
func (m *manager) fault(asked []store.Statement, ordered bool) string {
	m.T.Helper()
	for _, s := range asked {
		if !ofResources.MatchString(s.Query) {
			continue
		}
		var plan []string
		if err := m.Store.View(m.T.Context(), func(tx *store.Tx) (err error) {
			plan, err = tx.Explain(s)
			return err
		}); err != nil {
			m.T.Fatalf("%s: %v", s.Query, err)
		}
		for _, line := range plan {
			if scansAll.MatchString(line) && (!ordered || !strings.Contains(line, "INDEX")) || scansCollection.MatchString(line) && !ordered ||
				ordered && !strings.Contains(s.Query, ") page ") && sortsRows.MatchString(line) {
				return fmt.Sprintf("%s %v\n  %s", s.Query, s.Args, strings.Join(plan, "\n  "))
			}
		}
	}
	return ""
}

// vlans creates ten groups of 300 VLANs.
func (m *manager) vlans() {
	m.T.Helper()
	configuration := m.Want(200, "GET", "/api/v2/configurations?fields=id", "").Text("data.0.id")
	for i := range 10 {
		group := m.ID("/api/v2/configurations/"+configuration+"/vlanGroups", fmt.Sprintf(`{"type":"VLANGroup","name":"site-%d"}`, i))
		all := make([]string, 300)
		for n := range all {
			all[n] = fmt.Sprintf(`{"type":"VLAN","name":"vlan-%d"}`, n+1)
		}
		m.Want(201, "POST", "/api/v2/vlanGroups/"+group+"/vlans?fields=id", "["+strings.Join(all, ",")+"]")
	}
}

// indexedTexts waits until SQLite's index of trigrams has all texts.
func (m *manager) indexedTexts() {
	m.T.Helper()
	apitest.Eventually(m.T, "all texts are in the index of trigrams", func() bool {
		due := int64(0)
		if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
			if tx.RoundTrips() {
				return nil
			}
			return tx.QueryRow("SELECT count(*) FROM trigram_due").Scan(&due)
		}); err != nil {
			m.T.Fatal(err)
		}
		return due == 0
	})
}
