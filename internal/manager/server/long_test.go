package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// Tests that need size: make test-long runs them, on both databases.

// sized returns the number of resources that a test creates: a fifth on PostgreSQL, where each costs round trips.
func sized(n int) int {
	if os.Getenv(apitest.OnPostgres) != "" {
		return n / 5
	}
	return n
}

// large imports /24 networks with the given number of addresses each into the configuration main.
func (m *manager) large(networks, addresses int) {
	m.T.Helper()
	m.ID("/api/v2/configurations/"+m.Want(200, "GET", "/api/v2/configurations?filter=name:'main'", "").Text("data.0.id")+"/blocks",
		`{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	var file strings.Builder
	file.WriteString("network,netmask,name,gateway\n")
	for i := range networks {
		fmt.Fprintf(&file, "10.%d.%d.0,255.255.255.0,n%d,10.%d.%d.1\n", i>>8, i&255, i, i>>8, i&255)
	}
	lines, _, err := ipam.ReadNetworks(strings.NewReader(file.String()))
	if err == nil {
		_, err = ipam.ImportNetworks(context.Background(), m.Address, "main", lines, ipam.Import{})
	}
	if err != nil {
		m.T.Fatal(err)
	}
	if addresses == 0 {
		return
	}
	file.Reset()
	file.WriteString("address\n")
	for i := range networks {
		for n := range addresses {
			fmt.Fprintf(&file, "10.%d.%d.%d\n", i>>8, i&255, n+2)
		}
	}
	all, _, err := ipam.ReadAddresses(strings.NewReader(file.String()))
	if err == nil {
		_, err = ipam.ImportAddresses(context.Background(), m.Address, "main", all, ipam.Import{})
	}
	if err != nil {
		m.T.Fatal(err)
	}
}

// TestLongWork imports, finds and deletes large amounts of data while other requests continue.
func TestLongWork(t *testing.T) {
	apitest.Long(t)
	m := startManager(t)
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"main"}`)
	m.ID("/api/v2/configurations", `{"name":"other"}`)
	began := time.Now()
	m.large(sized(61_000), 0)
	t.Logf("%d networks imported in %v", sized(61_000), time.Since(began))
	if r := m.Want(200, "GET", "/api/v2/networks?"+filter("gateway:'10.20.7.1'"), ""); r.Text("count") != "1" {
		t.Errorf("a network is not found by its gateway: %s", r.Body)
	}
	wide := m.Want(200, "GET", "/api/v2/blocks?limit=1&"+filter("type:'IPv4Block'"), "").Text("data.0.id")
	one := m.ID("/api/v2/configurations/"+m.Want(200, "GET", "/api/v2/configurations?filter=name:'other'", "").Text("data.0.id")+"/blocks",
		`{"type":"IPv4Block","range":"192.168.0.0/16"}`)
	elsewhere := m.ID("/api/v2/blocks/"+one+"/networks", `{"type":"IPv4Network","range":"192.168.0.0/17"}`)
	// Deleting all of it holds up no change of another configuration for long, where changes run side by side.
	stop := make(chan struct{})
	var longest atomic.Int64
	var all sync.WaitGroup
	if os.Getenv(apitest.OnPostgres) != "" {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				if r := m.Do("POST", "/api/v2/networks/"+elsewhere+"/addresses",
					`{"type":"IPv4Address","state":"STATIC"}`); r.StatusCode != http.StatusCreated {
					t.Errorf("an assignment elsewhere: %d %s", r.StatusCode, r.Body)
				}
				longest.Store(max(longest.Load(), int64(time.Since(began))))
			}
		})
	}
	began = time.Now()
	m.Want(204, "DELETE", "/api/v2/blocks/"+wide, "")
	t.Logf("they were deleted in %v; the longest assignment elsewhere took %v", time.Since(began), time.Duration(longest.Load()))
	close(stop)
	all.Wait()
	m.Verify()
}

// TestLongDelete deletes 60,000 addresses of a network in one request, and restores them in another.
func TestLongDelete(t *testing.T) {
	apitest.Long(t)
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/16"}`)
	var file strings.Builder
	file.WriteString("address\n")
	for i := 2; i < 60_002; i++ {
		fmt.Fprintf(&file, "10.0.%d.%d\n", i>>8, i&255)
	}
	lines, _, err := ipam.ReadAddresses(strings.NewReader(file.String()))
	if err == nil {
		_, err = ipam.ImportAddresses(t.Context(), m.Address, "main", lines, ipam.Import{})
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.Want(204, "DELETE", "/api/v2/networks/"+network, "")
	t.Logf("deleted in %v", time.Since(began))
	began = time.Now()
	if r := m.Undo(m.LastTransaction()); r.StatusCode != 201 {
		t.Fatalf("undoing it: %d %s", r.StatusCode, r.Body)
	}
	t.Logf("and undone in %v", time.Since(began))
	m.Verify()
}

// TestLongZone imports a zone of 100,000 hosts into many networks with marks and policies, which are evaluated for each host.
func TestLongZone(t *testing.T) {
	apitest.Long(t)
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"internal"}`)
	m.large(1200, 0)
	var file strings.Builder
	file.WriteString("$ORIGIN example.\n$TTL 300\n@ SOA ns hostmaster 1 2 3 4 5\n@ NS ns\nns A 10.0.0.250\n")
	for i := range sized(100_000) {
		n := i + 256
		fmt.Fprintf(&file, "h%d A 10.%d.%d.%d\n", i, n>>16&3, n>>8&255, 1+n&127)
	}
	began := time.Now()
	zone, records, err := readZone(file.String(), "")
	if err == nil {
		_, err = transfer.ImportZone(t.Context(), m.Address, "main", "internal", zone, records, ipam.Import{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d hosts imported in %v", sized(100_000), time.Since(began))
}

// TestLongFeed checks that the feed of a large import requires little memory.
func TestLongFeed(t *testing.T) {
	apitest.Long(t)
	m := startAlone(t)
	m.ID("/api/v2/configurations", `{"name":"main"}`)
	m.large(1200, 200)
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most, seen := uint64(0), 0
	after, last := store.Position{}, m.LastTransaction()
	for behind := ""; behind != last; {
		entries, err := m.Store.Feed(t.Context(), after, 100)
		if err == nil && len(entries) == 0 { // on PostgreSQL it waits for other transactions of the server
			err = m.Store.AwaitFeed(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := m.Store.EachChange(t.Context(), e, func(store.EntryChange) error {
				if seen++; seen%20000 == 0 {
					runtime.GC()
					runtime.ReadMemStats(&now)
					most = max(most, now.HeapAlloc)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			after, behind = e.Position, fmt.Sprint(e.ID)
		}
	}
	if grown := int64(most) - int64(before.HeapAlloc); seen < 240_000 || grown > 64<<20 {
		t.Errorf("%d changes take %d MiB", seen, grown>>20)
	}
	began := time.Now()
	m.Verify()
	t.Logf("%d changes; verified in %v", seen, time.Since(began))
}
