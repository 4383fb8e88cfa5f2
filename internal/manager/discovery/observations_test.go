package discovery_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestLongObservations measures discovery with many observations, 200,000 or PORTOLAN_TEST_OBSERVATIONS: the cost of a run that sees
// addresses, the first page of the list, each filter with an index, and the last observation of an address. It reports processor time per
// operation and compares the answers, not the times.
func TestLongObservations(t *testing.T) {
	apitest.Long(t)
	count, err := strconv.Atoi(cmp.Or(os.Getenv("PORTOLAN_TEST_OBSERVATIONS"), "200000"))
	if err != nil {
		t.Fatal(err)
	}
	d := startDiscoverer(t)
	configuration, _, _, _, network := d.Basics()
	seven := d.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.7"}`)
	for i := range 200 {
		d.answering[fmt.Sprintf("10.0.0.%d", 7+i)] = true
	}
	policy := d.ID("/api/v2/networks/"+network+"/reconciliationPolicies", fmt.Sprintf(`{"type":"IPv4ReconciliationPolicy","enabled":true,`+
		`"discoveryMethod":"PINGSWEEP","startDateTime":%q,"packetsPerSecond":10000}`, time.Now().UTC().Add(time.Hour).Format(time.RFC3339)))
	alone := cpuTime(t, 1, func() { d.run(policy) })
	fillObservations(t, d.API, apitest.Number(t, configuration), apitest.Number(t, policy), count)
	report := func(what string, calls int, f func()) {
		t.Logf("%-34s %10v of processor time each", what, cpuTime(t, calls, f))
	}
	t.Logf("%d observations; a run that sees 200 addresses in an empty list: %v", count, alone)
	report("run that sees 200 addresses", 3, func() { d.run(policy) })
	// Each call asks for another observation, so that no answer is a repeated one.
	step := 0
	next := func() int { step++; return (count/2 + 7919*step) % count }
	for _, one := range []struct {
		what  string
		query func() string
		count int
	}{
		{"first page, newest first", func() string { return fmt.Sprintf("limit=%d&orderBy=desc(lastSeenDateTime)", 100+next()%7) }, 0},
		{"filter by address", func() string { return apitest.Filter("address:'" + observedAddress(next()).String() + "'") }, 1},
		{"filter by MAC address", func() string { return apitest.Filter("macAddress:'02-00-" + hexPairs(next()) + "'") }, 1},
		{"filter by host name", func() string { return apitest.Filter(fmt.Sprintf("hostName:'host-%d.example.net'", next())) }, 1},
		{"filter by switch", func() string { return "limit=10&" + apitest.Filter(fmt.Sprintf("switch:'switch-%d'", next()/500)) }, 10},
		{"filter by last observation", func() string {
			return "limit=10&" + apitest.Filter("lastSeenDateTime:lt('"+observedAt(next()+1000).Format(time.RFC3339)+"')")
		}, 10},
	} {
		report(one.what, 20, func() {
			if r := d.Want(200, "GET", "/api/v2/observations?"+one.query(), ""); r.Count() != one.count && (one.count > 0 || r.Count() < 100) {
				t.Fatalf("%s: %d observations: %.300s", one.what, r.Count(), r.Body)
			}
		})
	}
	report("last observation of an address", 20, func() {
		if r := d.Want(200, "GET", "/api/v2/addresses/"+seven, ""); r.Text("lastSeenDateTime") == "" {
			t.Fatalf("the address was not seen: %s", r.Body)
		}
	})
}

// hexPairs returns the last four octets of a hardware address.
func hexPairs(n int) string {
	return fmt.Sprintf("%02X-%02X-%02X-%02X", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// observedAddress and observedAt return the address and the time of an observation.
func observedAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
}
func observedAt(i int) time.Time { return time.Date(2026, 1, 1, 0, 0, i/10, 0, time.UTC) }

// fillObservations writes observations of addresses from 11.0.0.0 on, which are in no network.
func fillObservations(t *testing.T, m *apitest.API, configuration, policy int64, count int) {
	t.Helper()
	const atOnce = 20_000
	for from := range slices.Chunk(slices.Collect(func(yield func(int) bool) {
		for i := 0; i < count && yield(i); i++ {
		}
	}), atOnce) {
		if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			for _, i := range from {
				a := observedAddress(i)
				id, err := tx.NewID()
				if err != nil {
					return err
				}
				key := store.AddrKey(a)
				at := observedAt(i).Format(time.RFC3339)
				body := fmt.Sprintf(`{"address":%q,"macAddress":"02-00-%s","hostName":"host-%d.example.net","methods":["NEIGHBOR"],`+
					`"router":"router-1","routerPort":"vlan20","switch":"switch-%d","switchPort":"ge-0/0/%d","vlan":20,`+
					`"firstSeenDateTime":%q,"lastSeenDateTime":%q}`, a, hexPairs(i), i, i/500, i%48, at, at)
				if err := tx.Write("INSERT INTO observation (id, parent, configuration, low, high, version, refs, body) "+
					"VALUES (?, ?, ?, ?, ?, 1, ?, ?)", id, configuration, configuration, key, key, fmt.Sprintf("policy:%d", policy), body); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// cpuTime returns the processor time of this process per call: the median of the calls.
func cpuTime(t *testing.T, calls int, f func()) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	all := make([]time.Duration, calls)
	for i := range all {
		before := used()
		f()
		all[i] = used() - before
	}
	slices.Sort(all)
	return all[calls/2].Round(10 * time.Microsecond)
}
