package server

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
)

// TestReadsFollowAcknowledgements checks that no request after an acknowledgement returns older data: inlined names, inherited policies
// and new rules, with concurrent reads and writes.
func TestReadsFollowAcknowledgements(t *testing.T) {
	apitest.Slow(t)
	m := startManager(t)
	_, _, zone, block, network := m.Basics()
	restriction := m.ID("/api/v2/namingPolicyRestrictions", `{"name":"words","restrictions":[{"value":"bad","matchType":"Any"}]}`)
	location := m.ID("/api/v2/locations/"+m.Want(200, "GET", "/api/v2/locations?filter=code:'CH'", "").Text("data.0.id")+"/locations",
		`{"type":"Location","code":"CH ZRH","name":"n0"}`)
	m.Want(200, "PATCH", "/api/v2/blocks/"+block, `{"location":{"id":`+location+`}}`)
	a := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","location":{"id":`+location+`}}`)
	var acknowledged atomic.Int64 // the number of the name that was acknowledged last
	stop := make(chan struct{})
	var all sync.WaitGroup
	paths := []string{"/api/v2/addresses/" + a + "?fields=id,location", "/api/v2/addresses/" + a, "/api/v2/networks/" + network,
		"/api/v2/networks?fields=id,location&limit=5",
		"/api/v2/blocks/" + block + "?fields=location", "/api/v2/addresses?fields=location&limit=1&orderBy=desc(id)"}
	stale, asked := atomic.Int64{}, atomic.Int64{}
	for i := range 8 {
		all.Go(func() {
			reader := clientOf(t, m.Manager, &http.Client{}, m.Token)
			for n := i; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				path := paths[n%len(paths)]
				before := acknowledged.Load()
				r := reader.Do("GET", path, "")
				name := r.Text("location.name")
				if name == "" {
					name = r.Text("data.0.location.name")
				}
				var seen int64
				if _, err := fmt.Sscanf(name, "n%d", &seen); err != nil {
					t.Errorf("%s gives %s", path, r.Body)
					return
				}
				asked.Add(1)
				if seen < before {
					stale.Add(1)
				}
			}
		})
	}
	// Rules that begin to hold: the first naming policy of all, and the first mark.
	begun := make(chan struct{})
	all.Go(func() {
		reader := clientOf(t, m.Manager, &http.Client{}, m.Token)
		close(begun)
		for {
			select {
			case <-stop:
				return
			default:
				reader.Do("GET", "/api/v2/addresses?limit=5", "") // asks which policies there are, in a snapshot
			}
		}
	})
	<-begun
	ends := time.Now().Add(3 * time.Second)
	for n := int64(1); time.Now().Before(ends) || asked.Load() < 50 && time.Now().Before(ends.Add(apitest.Patience)); n++ {
		m.Want(200, "PATCH", "/api/v2/locations/"+location, fmt.Sprintf(`{"name":"n%d"}`, n))
		acknowledged.Store(n)
		if n%10 != 5 {
			continue
		}
		policy := m.ID("/api/v2/namingPolicies", fmt.Sprintf(`{"name":"p%d","policyRestrictions":[{"id":%s}]}`, n, restriction))
		m.Want(201, "POST", "/api/v2/zones/"+zone+"/namingPolicies", `{"id":`+policy+`}`)
		if r := m.Do("POST", "/api/v2/zones/"+zone+"/resourceRecords",
			fmt.Sprintf(`{"type":"TXTRecord","name":"bad%d","text":"x"}`, n)); r.StatusCode != http.StatusConflict &&
			r.StatusCode != http.StatusBadRequest {
			t.Errorf("a name against the policy is taken: %d %s", r.StatusCode, r.Body)
		}
		m.Want(204, "DELETE", "/api/v2/namingPolicies/"+policy, "")
	}
	close(stop)
	all.Wait()
	if stale.Load() > 0 || asked.Load() < 50 {
		t.Errorf("%d of %d answers are older than what was acknowledged before they were asked for", stale.Load(), asked.Load())
	}
	t.Logf("%d answers, %d renames", asked.Load(), acknowledged.Load())
}
