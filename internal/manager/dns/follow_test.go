package dns_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/testkit/apitest"
)

// TestFollowing checks that the records of a following view become those of the server's zone after any change, with as many changes as
// there are differences.
func TestFollowing(t *testing.T) {
	m := start(t)
	configuration, view, _, _, _ := m.Basics()
	server := m.ID("/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"theirs.example.net","profile":"OTHER_DNS_SERVER",`+
		`"interfaces":[{"type":"NetworkInterface","managementAddress":"127.0.0.1"}]}`)
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"followedServer":{"id":`+server+`}}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"far.example"}`)
	m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"ours"}`)
	random := rand.New(rand.NewPCG(11, 12)) //nolint:gosec // a test
	follow := func(records []wire.RR, chunk int) (left []string) {
		t.Helper()
		var names map[string][]wire.RR
		row := &store.Resource{}
		if err := m.Store.View(t.Context(), func(tx *store.Tx) (err error) {
			if row, err = tx.Get(idOf(t, zone)); err == nil {
				names, err = transfer.Different(tx, m.Address, row, records)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(transfer.CreationOrder(names), chunk) {
			some := map[string][]wire.RR{}
			for _, name := range part {
				some[name] = names[name]
			}
			if err := m.Store.Update(t.Context(), store.Author{Name: "server theirs"}, func(tx *store.Tx) error {
				not, err := transfer.Follow(&resource.Change{Tx: tx, API: m.Address, Extra: map[string]string{}}, row, some)
				left = append(left, not...)
				return err
			}); err != nil {
				t.Fatalf("%v: %v\n%v", part, err, records)
			}
		}
		return left
	}
	for round := range 80 {
		records := randomRecords(t, random)
		if left := follow(records, 1+random.IntN(8)); len(left) > 0 {
			t.Fatalf("round %d: not kept: %v", round, left)
		}
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			row, err := tx.Get(idOf(t, zone))
			if err != nil {
				return err
			}
			left, err := transfer.Different(tx, m.Address, row, records)
			if err == nil && len(left) > 0 {
				t.Fatalf("round %d: not the same: %v\nof %v", round, left, records)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	follow(nil, 100)
	for _, path := range []string{"/api/v2/zones/" + zone + "/resourceRecords?" + apitest.Filter("type:ne('x')"),
		"/api/v2/addresses?" + apitest.Filter("name:startsWith('h')")} {
		if r := m.Want(200, "GET", path, ""); r.Text("count") != "0" {
			t.Errorf("when all is gone there is left: %s", r.Body)
		}
	}
}

// idOf reads an id.
func idOf(t *testing.T, id string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(id, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// randomRecords makes a zone of few names: hosts in and beyond networks, aliases, names that lead to others, and what is not followed.
func randomRecords(t *testing.T, random *rand.Rand) (all []wire.RR) {
	t.Helper()
	name := func() string {
		return []string{"h1", "h2", "h3", "a.h1", "*", "_x", "far", "x.deep", ""}[random.IntN(9)] + "."
	}
	whole := func(n string) string { return strings.TrimPrefix(n+"far.example.", ".") }
	aliases, data := map[string]bool{}, map[string]bool{}
	add := func(n, rest string) {
		rr, err := wire.NewRR(whole(n) + " " + rest)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr)
	}
	for range random.IntN(25) {
		n := name()
		kind := random.IntN(9)
		if aliases[n] || kind == 0 && (data[n] || n == "." || n == "h1." || n == "far.") { // nothing goes round
			continue
		}
		if aliases[n], data[n] = kind == 0, true; kind > 0 {
			aliases[n] = false
		}
		ttl := 60 + 60*random.IntN(2)
		switch kind {
		case 0:
			add(n, fmt.Sprintf("%d CNAME %s", ttl, whole([]string{"h1.", "far.", "gone."}[random.IntN(3)])))
		case 1, 2, 3:
			add(n, fmt.Sprintf("60 A 10.0.0.%d", 20+random.IntN(30)))
		case 4:
			add(n, fmt.Sprintf("60 A 192.0.2.%d", random.IntN(9)))
		case 5:
			add(n, fmt.Sprintf("60 MX %d %s", random.IntN(3), whole(name())))
		case 6:
			add(n, fmt.Sprintf(`60 TXT "t%d" "more"`, random.IntN(3)))
		case 7:
			add(n, fmt.Sprintf("60 SRV 0 %d 5 %s", random.IntN(3), whole(name())))
		case 8:
			add(n, fmt.Sprintf("60 CAA 0 issue \"ca%d.example\"", random.IntN(3)))
		}
	}
	add(".", "60 SOA ns h 1 1 1 1 1")
	add(".", "60 NS ns.elsewhere.example.")
	add("x.ours.", "60 A 192.0.2.99")
	add("h1.", "60 NSEC h2.far.example. A NSEC")
	slices.SortFunc(all, func(a, b wire.RR) int { return random.IntN(3) - 1 })
	return all
}
