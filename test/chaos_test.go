package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/pgtest"
)

// chaosTime returns the duration of the load: 40 seconds with make test-long, the value of PORTOLAN_CHAOS if set, otherwise 10 seconds.
func chaosTime(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("PORTOLAN_CHAOS"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		return 40 * time.Second
	}
	return 10 * time.Second
}

// TestKillsAtRandom kills two managers and their PostgreSQL at random times under a mixed load of 64 clients. It checks that exactly the
// acknowledged changes remain.
func TestKillsAtRandom(t *testing.T) {
	t.Parallel()
	database := pgtest.New(t)
	c := newChaos(t, database.URL("postgres"))
	c.run(func(n int) {
		if n%3 == 2 {
			c.must(database.Kill())
			c.must(database.Revive())
			c.databases++
			return
		}
		c.killManager()
	})
}

// TestStandbyPromoted does the same with a synchronous standby, which is promoted when the primary is killed.
func TestStandbyPromoted(t *testing.T) {
	t.Parallel()
	primary := pgtest.New(t)
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	c := newChaos(t, primary.URL("postgres", standby))
	promoteAt := time.Now().Add(chaosTime(t) / 2)
	c.run(func(int) {
		if c.databases > 0 || time.Now().Before(promoteAt) {
			c.killManager()
			return
		}
		c.must(primary.Kill())
		c.must(standby.Promote())
		c.databases++
	})
}

// chaos is a load and the state that was acknowledged.
type chaos struct {
	t        *testing.T
	managers [2]*manager
	token    string
	network  string
	zone     string
	// kills and databases are the numbers of killed managers and databases.
	kills, databases int

	mu sync.Mutex
	// assigned are the addresses in use, with the client that owns each. Guarded by mu.
	assigned map[string]int
	// unsure counts requests without a response or with an uncertain result.
	unsure, answers atomic.Int64
}

func newChaos(t *testing.T, url string) *chaos {
	t.Helper()
	c := &chaos{t: t, assigned: map[string]int{}}
	for i := range c.managers {
		c.managers[i] = serve(t, url)
	}
	m := c.managers[0]
	c.token = m.token
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	c.network = m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/12"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"v"}`)
	c.zone = m.id("/views/"+view+"/zones", `{"type":"Zone","name":"example"}`)
	return c
}

func (c *chaos) must(err error) {
	if err != nil {
		c.t.Error(err)
	}
}

func (c *chaos) killManager() {
	m := c.managers[c.kills%2]
	c.kills++
	_ = m.process.signal(syscall.SIGKILL)
	m.start()
}

// run calls disturb at random times while the clients work, and verifies the result.
func (c *chaos) run(disturb func(n int)) {
	c.t.Helper()
	ends, over := time.Now().Add(chaosTime(c.t)), make(chan struct{})
	var clients sync.WaitGroup
	all := make([]*chaosClient, 64)
	for i := range all {
		all[i] = &chaosClient{chaos: c, number: i, addresses: map[string]heldAddress{}, records: map[string]string{}}
		clients.Go(func() { all[i].work(over) })
	}
	followed := followers(c.t, 3, c.token, c.managers[:]...)
	done := func() bool { return c.kills > 0 && c.databases > 0 && c.unsure.Load() > 0 }
	for n := 0; !c.t.Failed() && (time.Now().Before(ends) || !done() && time.Now().Before(ends.Add(patience))); n++ {
		time.Sleep(time.Duration(300+rand.N(2000)) * time.Millisecond) // at random times
		disturb(n)
	}
	close(over)
	clients.Wait()
	c.t.Logf("%d answers, %d requests repeated because their result was unknown; %d managers and %d databases killed", c.answers.Load(),
		c.unsure.Load(),
		c.kills, c.databases)
	if !done() {
		c.t.Error("nothing was disturbed")
	}
	c.verify(all)
	followed(c.managers[1])
	if c.t.Failed() {
		for _, m := range c.managers {
			c.t.Logf("the log of a manager:\n%.4000s", m.process.text())
		}
	}
}

// verify compares the data with the acknowledged changes.
func (c *chaos) verify(all []*chaosClient) {
	c.t.Helper()
	addresses, records := map[string]string{}, map[string]string{} // by ID
	for _, client := range all {
		for id, h := range client.addresses {
			addresses[id] = h.address + " " + h.name
		}
		for id, name := range client.records {
			records[id] = name
		}
	}
	c.compare("/networks/"+c.network+"/addresses?limit=100000&fields=id,address,name&filter=state:'STATIC'%20and%20name:startsWith('c')",
		addresses, func(r listed) string { return r.Address + " " + r.Name })
	c.compare("/zones/"+c.zone+"/resourceRecords?limit=100000&fields=id,name", records, func(r listed) string { return r.Name })
	if got := c.managers[0].check(); got != "no faults found" {
		c.t.Errorf("check: %s", got)
	}
}

type listed struct {
	ID            json.Number
	Address, Name string
}

func (c *chaos) compare(path string, want map[string]string, of func(listed) string) {
	c.t.Helper()
	status, text, err := c.managers[1].call(http.MethodGet, path, "")
	var page struct{ Data []listed }
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &page) != nil {
		c.t.Fatalf("%s: %d %.200s %v", path, status, text, err)
	}
	there := map[string]string{}
	for _, r := range page.Data {
		there[r.ID.String()] = of(r)
	}
	for id, what := range want {
		if there[id] != what {
			c.t.Errorf("%s was acknowledged as %q and is %q", id, what, there[id])
		}
	}
	for id, what := range there {
		if _, ok := want[id]; !ok {
			c.t.Errorf("%s, %q, exists and was never acknowledged", id, what)
		}
	}
	c.t.Logf("%d of %.40s are as they were acknowledged", len(want), path)
}

// chaosClient changes its own resources. It repeats requests with an uncertain result at the other manager until the result is certain.
type chaosClient struct {
	*chaos
	number    int
	sent      int
	addresses map[string]heldAddress // by ID
	records   map[string]string      // ID to name
}

type heldAddress struct{ address, name string }

func (c *chaosClient) work(over <-chan struct{}) {
	for !c.t.Failed() {
		select {
		case <-over:
			return
		default:
		}
		c.sent++
		name := fmt.Sprintf("c%d-%d", c.number, c.sent)
		switch what := rand.N(10); {
		case what < 4:
			c.assign(name)
		case what < 5:
			c.host(name)
		case what < 7:
			c.rename(name)
		case what < 8:
			c.release()
		default:
			c.ask(http.MethodGet, "/networks/"+c.network+"/addresses?limit=20", "", "", 200)
		}
	}
}

// ask repeats a request until its result is certain. The status must be one of want.
func (c *chaosClient) ask(method, path, body, key string, want ...int) (int, string) {
	deadline := time.Now().Add(2 * time.Minute)
	for n := c.number; ; n++ {
		m := c.managers[n%2]
		status, text, err := c.send(m, method, path, body, key)
		if err == nil && status != http.StatusServiceUnavailable {
			c.answers.Add(1)
			for _, w := range want {
				if status == w {
					return status, text
				}
			}
			c.t.Errorf("%s %s %s: %d %s, want %v", method, path, body, status, text, want)
			return status, text
		}
		if time.Now().After(deadline) {
			c.t.Errorf("%s %s was never answered: %d %s %v", method, path, status, text, err)
			return 0, ""
		}
		c.unsure.Add(1)
		time.Sleep(time.Duration(20+rand.N(50)) * time.Millisecond) // deliberately shorter than Retry-After
	}
}

func (c *chaosClient) send(m *manager, method, path, body, key string) (int, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	headers := map[string]string{}
	if key != "" {
		headers["Idempotency-Key"] = key
	}
	if method == http.MethodPatch {
		headers["Content-Type"] = "application/merge-patch+json"
	}
	return callWith(ctx, method, "http://"+m.api+"/api/v2"+path, c.token, body, headers)
}

func (c *chaosClient) assign(name string) {
	_, text := c.ask(http.MethodPost, "/networks/"+c.network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"`+name+`"}`, name,
		201)
	var a listed
	if json.Unmarshal([]byte(text), &a) != nil || a.Name != name {
		c.t.Errorf("an address is %s", text)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, twice := c.assigned[a.Address]; twice {
		c.t.Errorf("%s was given to %d and to %d", a.Address, other, c.number)
	}
	c.assigned[a.Address] = c.number
	c.addresses[a.ID.String()] = heldAddress{a.Address, name}
}

// host creates a host record with its own address: rows that belong together.
func (c *chaosClient) host(name string) {
	address := fmt.Sprintf("10.15.%d.%d", c.number, 1+len(c.records)%250)
	status, text := c.ask(http.MethodPost, "/zones/"+c.zone+"/resourceRecords",
		`{"type":"HostRecord","name":"`+name+`","addresses":[{"address":"`+address+`"}]}`, name, 201)
	var r listed
	if status == 201 && json.Unmarshal([]byte(text), &r) == nil {
		c.records[r.ID.String()] = name
	}
}

func (c *chaosClient) any() (id string) {
	for id = range c.addresses {
		break
	}
	return id
}

func (c *chaosClient) rename(name string) {
	if id := c.any(); id != "" {
		c.ask(http.MethodPatch, "/addresses/"+id, `{"name":"`+name+`"}`, "", 200)
		c.addresses[id] = heldAddress{c.addresses[id].address, name}
	}
}

func (c *chaosClient) release() {
	id := c.any()
	if id == "" {
		return
	}
	address := c.addresses[id].address
	// Before the response, because another client may receive the address first.
	c.mu.Lock()
	delete(c.assigned, address)
	c.mu.Unlock()
	c.ask(http.MethodDelete, "/addresses/"+id, "", "", 204, 404)
	delete(c.addresses, id)
}
