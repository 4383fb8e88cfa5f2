package dhcp_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/dhcplease"
)

// withoutIndex are the filters and orders of leases, their spans and refused clients that read all rows, with the reason. The key is the
// collection and the field; one of a filter ends with "=".
var withoutIndex = map[string]string{
	"leases type=":         "two values",
	"leases type":          "two values",
	"leases name=":         "always null",
	"leases name":          "always null",
	"leases prefixLength=": "few values, of delegated prefixes",
	"leases prefixLength":  "few values, of delegated prefixes",

	"leaseSpans configuration=": "few values",

	"leaseSpans type=":      "one value",
	"leaseSpans type":       "one value",
	"leaseSpans name=":      "always null",
	"leaseSpans name":       "always null",
	"leaseSpans endReason=": "six values",
	"leaseSpans endReason":  "six values",
}

// leaseTables are the tables of rows that DHCP servers report, by collection. Those of refused clients are limited to 100 of a network and
// to seven days, so that only their references and their hardware addresses have an index.
var leaseTables = map[string]string{"leases": "dhcp_lease", "leaseSpans": "dhcp_lease_span", "refusedClients": "dhcp_refused_client",
	"refusedCounts": "dhcp_refused_count"}

// leaseFilter returns a filter by a field with an operator that an index can answer; empty if lists have no filter by the field.
func leaseFilter(f *schema.Field, hasCondition bool) string {
	switch {
	case f.Name == "prefix":
		return "prefix:contains('2001:db8:1::9')"
	case hasCondition || f.Kind == schema.Time:
		return f.Name + ":gt('2026-01-01T00:00:00Z')"
	case f.Kind == schema.Reference:
		return f.Name + ".id:77"
	case f.Name == "id" || f.Kind == schema.Integer:
		return f.Name + ":77"
	case f.Kind == schema.Address:
		return f.Name + ":'10.0.0.20'"
	case f.Hardware:
		return f.Name + ":'00:00:5e:00:53:01'"
	case len(f.Enum) > 0:
		return f.Name + ":'" + f.Enum[0] + "'"
	case f.Kind == schema.Text:
		return f.Name + ":'77'"
	}
	return ""
}

// TestFiltersOfLeasesHaveIndexes checks that each filter and each order that the API declares for leases, their spans and refused clients
// has an index, except those with a reason.
func TestFiltersOfLeasesHaveIndexes(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	_, send := m.Observe(configuration, "dhcp2")
	now := m.Store.Now().Truncate(time.Second)
	for i := range 50 {
		source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, network),
			Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), Start: now.Unix(), Expires: now.Add(time.Hour).Unix(),
			MAC: fmt.Sprintf("00005e0053%02x", i)})
		send(dhcplease.Observation{Refused: []dhcplease.Refused{{Network: apitest.Number(t, network), Reason: "no-free-address",
			Message: "DISCOVER",
			Count:   1, First: now.Unix(), Last: now.Unix(), MAC: fmt.Sprintf("00005e0054%02x", i)}}})
	}
	var mu sync.Mutex
	var seen []store.Statement
	m.Store.Observe(func(s store.Statement) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	})
	defer m.Store.Observe(nil)
	// ask returns the plan of the list.
	ask := func(collection, query string) (text string, plan []string) {
		mu.Lock()
		seen = nil
		mu.Unlock()
		m.Want(200, "GET", "/api/v2/"+collection+"?limit=10&"+query, "")
		mu.Lock()
		statements := slices.Clone(seen)
		mu.Unlock()
		for _, s := range statements {
			if !strings.Contains(s.Query, "FROM "+leaseTables[collection]+" r") {
				continue
			}
			if err := m.Store.View(t.Context(), func(tx *store.Tx) (err error) {
				plan, err = tx.Explain(s)
				return err
			}); err != nil {
				t.Fatalf("%s: %v", s.Query, err)
			}
			return s.Query, plan
		}
		t.Fatalf("%s?%s does not read its table: %v", collection, query, statements)
		return "", nil
	}
	// asked is ask again without statistics if they have come: of few rows, they say that all rows are read at the least cost.
	asked := func(collection, query string, isGood func(plan []string) bool) (text string, plan []string, ok bool) {
		if text, plan = ask(collection, query); isGood(plan) {
			return text, plan, true
		}
		forgetStatistics(m)
		text, plan = ask(collection, query)
		return text, plan, isGood(plan)
	}
	used := map[string]bool{}
	fail := func(key, query string, plan []string) {
		if used[key] = true; withoutIndex[key] == "" {
			t.Errorf("%s has no index:\n%s\n  %s", key, query, strings.Join(plan, "\n  "))
		}
	}
	for collection := range leaseTables {
		few := strings.HasPrefix(collection, "refused")
		c := m.Address.Collection(collection)
		for _, typ := range c.Types {
			for _, f := range typ.Fields {
				if few && (f.Kind != schema.Reference || f.Column == "configuration") && !f.Indexed {
					continue
				}
				condition := c.Conditions[f.Name] != nil
				if text := leaseFilter(f, condition); text != "" && (f.Filterable() || condition) {
					if query, plan, ok := asked(collection, apitest.Filter(text), isSelected); !ok {
						fail(collection+" "+f.Name+"=", query, plan)
					}
				}
				if f.Filterable() && !few && f.Kind != schema.Reference && leaseFilter(f, false) != "" { // a list sorts by values of other resources
					for _, order := range []string{f.Name, "desc(" + f.Name + ")"} {
						if query, plan, ok := asked(collection, "orderBy="+order, isInOrder); !ok {
							fail(collection+" "+f.Name, query, plan)
						}
					}
				}
			}
		}
	}
	for key := range withoutIndex {
		if !used[key] {
			t.Errorf("withoutIndex contains %q, which has an index, or is not a filter or an order", key)
		}
	}
}

// isSelected reports whether a plan finds the rows r by an index.
func isSelected(plan []string) bool {
	return slices.ContainsFunc(plan, func(line string) bool {
		return strings.HasPrefix(line, "SEARCH r ") || strings.HasPrefix(line, "Index Cond: ")
	}) && !slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, "SCAN r") || strings.Contains(line, "Seq Scan") })
}

// forgetStatistics deletes the statistics of SQLite's planner. A new version of the schema makes all connections read them again.
func forgetStatistics(m *leasetest.Manager) {
	m.T.Helper()
	if err := m.Store.Update(m.T.Context(), store.Author{}, func(tx *store.Tx) error {
		if tx.RoundTrips() {
			return nil
		}
		there := false
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1')").Scan(&there); err != nil || !there {
			return err
		}
		return errors.Join(tx.Write("DELETE FROM sqlite_stat1"), tx.Write("CREATE TABLE plans_test (id INTEGER)"),
			tx.Write("DROP TABLE plans_test"))
	}); err != nil {
		m.T.Fatal(err)
	}
}

// isInOrder reports whether a plan reads the rows in order. The rows of one address are few.
func isInOrder(plan []string) bool {
	if slices.Contains(plan, "Presorted Key: low") {
		return true
	}
	return !slices.ContainsFunc(plan, func(line string) bool {
		return strings.Contains(line, "TEMP B-TREE FOR ORDER") || strings.HasPrefix(line, "Sort Key") || strings.Contains(line, "->  Sort ")
	})
}

// TestLeasesByTheirEnd checks filters by leaseExpirationDateTime against the ends that the lists show.
func TestLeasesByTheirEnd(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	now := m.Store.Now().Truncate(time.Second)
	for i := range 40 {
		end := now.Add(time.Duration(i) * time.Minute).Unix()
		if i == 39 {
			end = dhcplease.Infinite
		}
		source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, network),
			Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), Start: now.Unix(), Expires: end, MAC: fmt.Sprintf("00005e0053%02x", i)})
	}
	source.Event(dhcplease.Release, now, dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.20"),
		Start: now.Unix(), MAC: "00005e005300"})
	at := func(i int) string { return now.Add(time.Duration(i) * time.Minute).UTC().Format(time.RFC3339) }
	for text, want := range map[string]int{"le('" + at(5) + "')": 5, "lt('" + at(5) + "')": 4, "ge('" + at(30) + "')": 9,
		"gt('" + at(30) + "')": 8,
		"'" + at(7) + "'":      1, "in('" + at(7) + "','" + at(9) + "')": 2, "ne('" + at(7) + "')": 39, "null": 2, "ne(null)": 38,
		"gt('2200-01-01T00:00:00Z')": 0, "lt('1960-01-01T00:00:00Z')": 0, "ge('1960-01-01T00:00:00Z')": 38, "'1960-01-01T00:00:00Z'": 0} {
		for _, path := range []string{"leases", "networks/" + network + "/leases"} {
			if r := m.Want(200, "GET", "/api/v2/"+path+"?limit=100&"+apitest.Filter("leaseExpirationDateTime:"+text), ""); r.Count() != want {
				t.Errorf("%s: %d leases end %s, want %d", path, r.Count(), text, want)
			}
		}
	}
	m.Refused(400, "InvalidFilterDate", "leaseExpirationDateTime", "GET",
		"/api/v2/leases?"+apitest.Filter("leaseExpirationDateTime:gt('noon')"), "")
	m.Refused(400, "UnsupportedOrderByField", "leaseExpirationDateTime", "GET", "/api/v2/leases?orderBy=leaseExpirationDateTime", "")
	source.Send(dhcplease.Record{At: now.UnixMilli(), Renewals: &dhcplease.Renewals{Network: apitest.Number(t, network),
		Packed: dhcplease.Pack([]dhcplease.Renewal{{Address: netip.MustParseAddr("10.0.0.21"), Expires: now.Add(100 * time.Hour).Unix()}})}})
	if r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("leaseExpirationDateTime:gt('"+at(99*60)+"')"), ""); r.Count() != 1 ||
		r.Text("data.0.address") != "10.0.0.21" {
		t.Errorf("after a renewal: %s", r.Body)
	}
}
