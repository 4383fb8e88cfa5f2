package imports_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// TestImportInBatches compares imports that write their rows in batches with imports that write them one by one: the results of rows, the
// logs, and the content of the database must be the same, also after an undo.
func TestImportInBatches(t *testing.T) {
	seed := rand.Uint64()
	for round := range uint64(3) {
		addresses, records := randomRows(rand.New(rand.NewPCG(seed, round))) //nolint:gosec // it needs no secrecy
		var results [2]string
		for i := range results {
			results[i] = importBoth(t, i == 1, addresses, records)
		}
		if results[0] != results[1] {
			t.Fatalf("seed %d, round %d: in batches and one by one differ at %s\n%s\n%s", seed, round, firstDifference(results[0], results[1]),
				addresses, records)
		}
	}
}

// firstDifference returns the first lines that differ.
func firstDifference(a, b string) string {
	first, second := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range first {
		if i >= len(second) || first[i] != second[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i, first[i], strings.Join(second[min(i, len(second)):min(i+1, len(second))], ""))
		}
	}
	return "the end"
}

// randomRows returns files of addresses and records. Some rows repeat or contradict others, refer to others, or are invalid.
func randomRows(r *rand.Rand) (addresses, records string) {
	var a, b strings.Builder
	a.WriteString("type,address,name,state\n")
	b.WriteString("type,name,text,addresses[0].address,reverseRecord,linkedRecord.absoluteName\n")
	for range 150 {
		state := []string{"STATIC", "RESERVED", "GATEWAY", "DHCP_RESERVED"}[min(r.IntN(12), 3)]
		address := fmt.Sprintf("10.0.0.%d", 1+r.IntN(200))
		if r.IntN(20) == 0 {
			address = []string{"10.0.0.255", "192.0.2.1", "nonsense"}[r.IntN(3)]
		}
		fmt.Fprintf(&a, "IPv4Address,%s,host-%d,%s\n", address, r.IntN(100), state)
		name := fmt.Sprintf("n%d", r.IntN(60))
		switch r.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "HostRecord,%s,,10.0.0.%d,%t,\n", name, 1+r.IntN(250), r.IntN(2) == 0)
		case 1:
			fmt.Fprintf(&b, "AliasRecord,%s,,,,n%d.example.com\n", name, r.IntN(60))
		case 2:
			fmt.Fprintf(&b, "TXTRecord,%s..%d,text,,,\n", name, r.IntN(9))
		default:
			fmt.Fprintf(&b, "TXTRecord,%s,text %d,,,\n", name, r.IntN(5))
		}
	}
	return a.String(), b.String()
}

// importBoth imports files of addresses and records into a new database, undoes the last change, and returns everything that this leaves.
func importBoth(t *testing.T, singly bool, addresses, records string) string {
	t.Helper()
	m := apitest.New(t, ipam.Register, dns.Register, imports.Register)
	runner := imports.NewRunner(m.Address, m.REST.Show, m.Identity.Acting, slog.New(slog.DiscardHandler))
	if singly {
		runner.WriteSingly()
	}
	m.Work(runner.Run)
	_, _, zone, _, network := m.Basics()
	var all strings.Builder
	for _, mode := range []string{"ALL_OR_NOTHING", "ROW_BY_ROW"} {
		for _, f := range []struct{ into, rows string }{{"networks/" + network + "/addresses", addresses},
			{"zones/" + zone + "/resourceRecords", records}} {
			made, log := m.Imported(`"contentType":"text/csv","mode":"`+mode+`","into":"`+f.into+`"`, f.rows)
			lines := strings.Split(withoutNumbers(log), "\n")
			slices.Sort(lines) // the order depends on the sizes of the steps, which depend on time
			fmt.Fprintln(&all, apitest.ImportCounts(made), strings.Join(lines, "\n"))
		}
	}
	m.Verify()
	dump(m, &all)
	if r := m.Undo(m.LastTransaction()); r.StatusCode != 201 {
		t.Fatalf("undoing the import: %d %s", r.StatusCode, r.Body)
	}
	m.Verify()
	return all.String()
}

// numbers are the numbers of resources and transactions, and times.
var numbers = regexp.MustCompile(`\b[0-9]{6,}\b|"version":[0-9]+|[0-9-]{10}T[0-9:.]+Z?`)

// withoutNumbers removes the numbers of resources, which differ after a repeated step.
func withoutNumbers(text string) string { return numbers.ReplaceAllString(text, "N") }

// dump writes the content of the tables that an import writes. Resources are named instead of numbered.
func dump(m *apitest.API, to *strings.Builder) {
	m.T.Helper()
	const name = "(SELECT p.collection || ' ' || coalesce(p.name, p.key, '') FROM resource p WHERE p.id = %s)"
	of := func(column string) string { return fmt.Sprintf(name, column) }
	if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
		for _, query := range []string{
			"SELECT concat_ws('|', collection, type, name, key, " + of("r.parent") + ", body) FROM resource r ORDER BY id",
			"SELECT concat_ws('|', operation, after) FROM change ORDER BY seq",
			"SELECT concat_ws('|', " + of("source") + ", field, " + of("target") + ") FROM reference ORDER BY 1",
			"SELECT concat_ws('|', " + of("parent") + ", collection, type, sum(n)) FROM total GROUP BY parent, collection, type ORDER BY 1",
			"SELECT concat_ws('|', " + of("container") + ", state, sum(n)) FROM usage GROUP BY container, state ORDER BY 1",
			"SELECT count(*) || ' intervals' FROM free",
		} {
			if err := tx.Each(func(scan func(...any) error) error {
				var line string
				err := scan(&line)
				fmt.Fprintln(to, withoutNumbers(line))
				return err
			}, query); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
		}
		return nil
	}); err != nil {
		m.T.Fatal(err)
	}
}

// TestImportIsLargeWork checks that the names of a long file wait in the lane for large work, and those of its first rows do not.
func TestImportIsLargeWork(t *testing.T) {
	m := start(t)
	_, view, zone, _, _ := m.Basics()
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	var file strings.Builder
	file.WriteString("type,name,text\n")
	for i := range 350 {
		fmt.Fprintf(&file, "TXTRecord,n%d,text\n", i)
	}
	made, log := m.Imported(`"contentType":"text/csv","into":"zones/`+zone+`/resourceRecords"`, file.String())
	if apitest.ImportCounts(made) != "COMPLETED: 350 rows, 350 created, 0 updated, 0 unchanged, 0 refused" {
		t.Fatalf("%s\n%s", apitest.ImportCounts(made), log)
	}
	live := rows(m, "SELECT count(*) FROM dns_due WHERE kind = 'name' AND lane = 0")
	bulk := rows(m, "SELECT count(*) FROM dns_due WHERE kind = 'name' AND lane = 1")
	if live < 50 || live > 200 || live+bulk != 350 {
		t.Errorf("%d names in the lane of single changes, %d in that of large work", live, bulk)
	}
}
