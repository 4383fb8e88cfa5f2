package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// TestTwoManagersOneDatabase lets 64 clients request addresses of one network from two managers on one PostgreSQL. It checks that each
// address is assigned once. One manager is killed meanwhile: its acknowledged addresses remain, and the other manager continues.
func TestTwoManagersOneDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	first := serve(t, url)
	second := serve(t, url)
	second.token = first.token // a token is valid at both managers
	configuration := first.id("/configurations", `{"name":"main"}`)
	block := second.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := first.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/23"}`)
	var mu sync.Mutex
	given := map[string]string{} // address to ID
	var answers atomic.Int64
	kill := make(chan struct{})
	var once sync.Once
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			m := []*manager{first, second}[i%2]
			for {
				status, text, err := m.call("POST", "/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
				if err != nil { // this manager was killed, so the other one is used
					if m != first {
						t.Errorf("the manager that was not killed: %v", err)
						return
					}
					m = second
					continue
				}
				if status == 400 && strings.Contains(text, "NoSpaceForAddress") {
					return
				}
				var answer struct {
					ID      json.Number `json:"id"`
					Address string      `json:"address"`
				}
				if status != 201 || json.Unmarshal([]byte(text), &answer) != nil {
					t.Errorf("%d %s", status, text)
					return
				}
				mu.Lock()
				if other, twice := given[answer.Address]; twice {
					t.Errorf("%s was given to %s and to %s", answer.Address, other, answer.ID)
				}
				given[answer.Address] = answer.ID.String()
				mu.Unlock()
				if answers.Add(1) >= 200 {
					once.Do(func() { close(kill) })
				}
			}
		})
	}
	<-kill
	_ = first.process.signal(syscall.SIGKILL)
	clients.Wait()
	// There are 510 hosts including the gateway. The killed manager may have assigned addresses without a response.
	if len(given) < 509-32 || len(given) > 509 {
		t.Errorf("%d addresses were given", len(given))
	}
	for address, id := range given {
		status, text, err := second.call("GET", "/addresses/"+id+"?fields=address", "")
		if err != nil || status != 200 || text != fmt.Sprintf(`{"address":"%s"}`, address) {
			t.Errorf("%s, %s, was acknowledged and is %d %s %v", id, address, status, text, err)
		}
	}
	if got := second.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
	first.start()
	if status, _, err := first.call("GET", "/networks/"+network, ""); err != nil || status != 200 {
		t.Errorf("the manager that was killed and started again: %d %v", status, err)
	}
}
