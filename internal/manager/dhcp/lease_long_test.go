package dhcp_test

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// leasesVariable is the number of leases of TestLongLeaseReports; the goals of docs/scale.md are for a million.
const leasesVariable = "PORTOLAN_TEST_LEASES"

// TestLongLeaseReports reports 500 renewals a second on many leases. They write no history. It prints their share of the time of the
// writer, the time from a report to the list of leases, and the time of a create alone and beside renewals.
func TestLongLeaseReports(t *testing.T) {
	apitest.Long(t)
	n := 100_000
	if text := os.Getenv(leasesVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	m := startManager(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/9"}`)
	_, source := m.LeaseServer(configuration, "dhcp1")
	now := m.Store.Now()
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(1 + i>>16), byte(i >> 8), byte(i)}) } //nolint:gosec // parts
	const step = 2000
	for first := 0; first < n; first += step {
		var all []any
		for i := first; i < min(first+step, n); i++ {
			all = append(all, source.Next(dhcplease.Record{Previous: source.Sequence, At: now.UnixMilli(),
				Event: &dhcplease.Event{Kind: dhcplease.Begin,
					Lease: dhcplease.Lease{Network: apitest.Number(t, network), Address: address(i), Start: now.Unix(), Expires: now.Unix() + 86400,
						MAC: fmt.Sprintf("0200%08x", i), HostName: fmt.Sprintf("host-%d", i)}}}))
		}
		source.Apply(all)
	}
	began := time.Now()
	source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.9"),
		Start: now.Unix(), Expires: now.Unix() + 86400, MAC: "020100000001"})
	if r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.9'"), ""); r.Count() != 1 {
		t.Errorf("the lease is not listed: %s", r.Body)
	}
	t.Logf("%d leases; from a report to the list of leases: %v", n, time.Since(began).Round(10*time.Microsecond))

	last := m.LastTransaction()
	renewals := func(first, count int) (all []any) { // digests as the server sends them
		for from := first; from < first+count; from += dhcplease.MaxRenewals {
			var some []dhcplease.Renewal
			for i := from; i < min(from+dhcplease.MaxRenewals, first+count); i++ {
				some = append(some, dhcplease.Renewal{Address: address(i * 7919 % n), Expires: now.Unix() + 90000})
			}
			all = append(all, source.Next(dhcplease.Record{Previous: source.Sequence, At: now.UnixMilli(),
				Renewals: &dhcplease.Renewals{Network: apitest.Number(t, network),
					Packed: dhcplease.Pack(some)}}))
		}
		return all
	}
	const minute = 500 * 60
	began = time.Now()
	source.Apply(renewals(0, minute))
	took := time.Since(began)
	t.Logf("a minute of 500 renewals a second: %v of the writer, %.2f %% (goal 2 %%)", took.Round(time.Millisecond), took.Seconds()/60*100)
	if m.LastTransaction() != last {
		t.Error("renewals are in the history")
	}
	creates := func(part int) time.Duration {
		var all []time.Duration
		for i := range 40 {
			began := time.Now()
			m.ID("/api/v2/blocks/"+block+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.%d.0/24"}`, 200+part, i))
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	alone := creates(0)
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for second := 1; ; second++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond): // 50 renewals each: the rate of the load, not a condition
				source.Apply(renewals(second*50, 50))
			}
		}
	})
	beside := creates(1)
	close(stop)
	load.Wait()
	t.Logf("a create of a network: %v alone, %v beside renewals, %.2f (goal 1.1)", alone.Round(time.Microsecond),
		beside.Round(time.Microsecond), float64(beside)/float64(alone))
	m.Verify()
}
