package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"portolan/internal/testkit/freeport"
)

// manager is a `portolan serve` process.
type manager struct {
	t          *testing.T
	dir        string
	where      []string // --data DIR or --database URL
	also       []string // additional arguments
	api, door  string
	token      string
	process    *process
	env        []string // of its commands, in addition to that of the test
	generation int
}

// serve starts a manager on SQLite, or on PostgreSQL if a URL is given. also are further arguments.
func serve(t *testing.T, database string, also ...string) *manager {
	t.Helper()
	m := &manager{t: t, dir: t.TempDir(), also: also}
	m.where = []string{"--data", filepath.Join(m.dir, "data")}
	if database != "" {
		m.where = []string{"--database", database}
	}
	m.listen()
	m.token = m.portolan(append([]string{"token", "create", "--name", "test"}, m.where...)...)
	return m
}

// listen starts the manager on free ports.
func (m *manager) listen() {
	m.t.Helper()
	m.api = freeport.Reserve(m.t).String()
	m.door = freeport.Reserve(m.t).String()
	m.start()
	m.t.Cleanup(func() { _ = m.process.signal(syscall.SIGKILL) })
}

func (m *manager) start() {
	m.t.Helper()
	m.generation++
	var err error
	output := filepath.Join(m.dir, fmt.Sprintf("manager-%d.out", m.generation))
	m.process, err = launch(output, append(os.Environ(), "PORTOLAN_ADMIN_PASSWORD=a-long-password"), "",
		slices.Concat([]string{binary, "serve", "--listen", m.api, "--checkin-listen", m.door}, m.where, m.also)...)
	if err != nil {
		m.t.Fatal(err)
	}
	if !until(func() bool { return strings.Contains(m.process.text(), "msg=serving") }) {
		m.t.Fatalf("the manager does not start:\n%s", m.process.text())
	}
}

func (m *manager) portolan(args ...string) string {
	m.t.Helper()
	var stderr strings.Builder
	c := m.command(args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		m.t.Fatalf("portolan %v: %v\n%s%s", args, err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// check runs portolan check on the manager's data.
func (m *manager) check() string { return m.portolan(append([]string{"check"}, m.where...)...) }

func (m *manager) call(method, path, body string) (int, string, error) {
	return call(context.Background(), method, "http://"+m.api+"/api/v2"+path, m.token, body)
}

// id creates a resource and returns its ID.
func (m *manager) id(path, body string) string {
	m.t.Helper()
	status, text, err := m.call("POST", path, body)
	var answer struct {
		ID json.Number `json:"id"`
	}
	if err != nil || status != 201 || json.Unmarshal([]byte(text), &answer) != nil {
		m.t.Fatalf("POST %s: %d %s %v", path, status, text, err)
	}
	return answer.ID.String()
}

// TestKillDuringCreates kills the manager during 1,000 concurrent creates. It checks that every acknowledged resource exists completely and
// that the data is consistent.
func TestKillDuringCreates(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"v"}`)
	zone := m.id("/views/"+view+"/zones", `{"type":"Zone","name":"example"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.255.0.0/16"}`)
	followed := followers(t, 2, m.token, m)
	for round := range 3 {
		var mu sync.Mutex
		acknowledged := map[string]string{} // ID to name
		var answered atomic.Int64
		killAt := 100 + rand.Int64N(700)
		kill := make(chan struct{})
		var clients sync.WaitGroup
		for i := range 1000 {
			clients.Go(func() {
				name := fmt.Sprintf("r%d-%d", round, i)
				path, body := "/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/28","name":"`+name+`"}`
				if i%2 == 1 { // a host with an address: four rows that belong together
					path, body = "/zones/"+zone+"/resourceRecords",
						fmt.Sprintf(`{"type":"HostRecord","name":"%s","addresses":[{"address":"10.255.%d.%d"}]}`, name, 1+round*4+i/250, 1+i%250)
				}
				status, text, err := m.call("POST", path, body)
				if err != nil {
					return // killed before the response: it may exist or not
				}
				var answer struct {
					ID json.Number `json:"id"`
				}
				if status != 201 || json.Unmarshal([]byte(text), &answer) != nil {
					t.Errorf("%d %s", status, text)
					return
				}
				mu.Lock()
				acknowledged[answer.ID.String()] = name
				mu.Unlock()
				if answered.Add(1) == killAt {
					close(kill)
				}
			})
		}
		<-kill
		_ = m.process.signal(syscall.SIGKILL)
		clients.Wait()
		if got := m.check(); got != "no faults found" {
			t.Fatalf("after the kill: %s", got)
		}
		m.start()
		for id, name := range acknowledged {
			status, text, err := m.call("GET", "/"+id+"?fields=name", "")
			if err != nil || status != 200 || text != `{"name":"`+name+`"}` {
				t.Errorf("round %d: %s, %s, was acknowledged and is %d %s %v", round, id, name, status, text, err)
			}
		}
		if t.Failed() {
			t.Fatalf("the manager's log:\n%.4000s", m.process.text())
		}
		t.Logf("round %d: killed at %d answers; %d were acknowledged in all", round, killAt, len(acknowledged))
	}
	if status, text, err := m.call("GET", "/networks/"+network+"/addresses?limit=1", ""); err != nil || status != 200 {
		t.Errorf("%d %s %v", status, text, err)
	}
	followed(m)
	if err := m.process.signal(syscall.SIGTERM); err != nil {
		t.Errorf("the manager ends with %v", err)
	}
	if got := m.check(); got != "no faults found" {
		t.Errorf("at the end: %s", got)
	}
}
