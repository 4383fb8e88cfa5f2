package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// TestCopiedStateDirectory checks that a machine with a copy of another one's state directory is detected and reported once. The first
// machine is answered, and the other one is refused until there is a new registration key. The same applies to one of several nodes.
func TestCopiedStateDirectory(t *testing.T) {
	m := startAlone(t, silentSoon)
	for _, nodes := range []int{1, 2} {
		name := fmt.Sprintf("copied-%d", nodes)
		created := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", fmt.Sprintf(`{"name":%q,"nodeCount":%d}`, name, nodes))
		id, key := created.Text("fleetInstanceID"), created.Text("registrationKey")
		path := "/user/api/v1/fleetInstances/" + id
		first := m.machine("first", key)
		for range nodes - 1 {
			m.machine("second", key).report(0, nil)
		}
		copied := *first
		as := func(c *machine, process string, rq checkin.Request) (int, map[string]any) {
			id, before, _ := strings.Cut(process, "/")
			rq.Process = &checkin.Process{ID: id, Before: before, Address: "192.0.2." + id}
			if rq.Report == nil && !rq.Leaving {
				c.sequence += 7
				rq.Report = reportOf()
			}
			return c.ask(rq)
		}
		wants := func(want int, c *machine, process string, rq checkin.Request) {
			t.Helper()
			if status, answer := as(c, process, rq); status != want || status == 409 && answer["code"] != checkin.OtherMachine {
				t.Errorf("%d nodes, process %s: %d %v, want %d", nodes, process, status, answer, want)
			}
		}
		wants(200, first, "1", checkin.Request{})
		wants(200, &copied, "9/1", checkin.Request{})
		wants(200, first, "1", checkin.Request{Leaving: true}) // it is not the one that answered last
		if r := m.instance(id); r.Text("connectionStatus") != "CONNECTED" {
			t.Errorf("when one of two machines has ended it is %s", r.Body)
		}
		wants(200, first, "1", checkin.Request{})
		wants(200, &copied, "9/1", checkin.Request{})
		if r := m.instance(id); r.Text("status") != "HEALTHY" {
			t.Errorf("behind a check-in that was late it is %s", r.Body)
		}
		wants(200, first, "1", checkin.Request{})
		wants(409, &copied, "9/1", checkin.Request{})
		wants(200, &copied, "9/1", checkin.Request{Leaving: true})
		wants(200, first, "1", checkin.Request{})
		wants(200, first, "2/1", checkin.Request{})
		wants(409, &copied, "8/9", checkin.Request{})
		const condition = "2 machines connect as this service point, at 192.0.2.2 and 192.0.2.9"
		if r := m.instance(id); r.Text("status") != "UNHEALTHY" || r.Text("connectionStatus") != "CONNECTED" ||
			!strings.Contains(r.Text("errorConditions.0"), condition) || r.Get("errorConditions.1") != nil {
			t.Errorf("with a copy of its state directory it is %s", r.Body)
		}
		events := string(m.Want(200, "GET", path+"/events", "").Body)
		if n := strings.Count(events, `"field":"machines"`); n != 1 || strings.Count(events, `"after":"UNHEALTHY"`) > nodes {
			t.Errorf("there are %d events of two machines in %s", n, events)
		}

		// The copy has not asked for long: there is one machine again, and it is found anew when it comes back.
		if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			return tx.Write("UPDATE lineage SET body = replace(body, '\"refused\":', '\"refused\":1,\"was\":') WHERE service_point = ?", id)
		}); err != nil {
			t.Fatal(err)
		}
		m.Fleet.SetStart(time.Now().Add(-time.Hour))
		for range 2 {
			if status, answer := first.ask(checkin.Request{Process: &checkin.Process{ID: "2", Address: "192.0.2.2"}}); status != 200 {
				t.Errorf("%d nodes, without a report: %d %v", nodes, status, answer)
			}
		}
		wants(200, first, "2", checkin.Request{})
		if r := m.instance(id); r.Text("status") != "HEALTHY" {
			t.Errorf("when the copy is gone it is %s", r.Body)
		}
		for _, turn := range []string{"8", "2", "8"} {
			wants(200, map[string]*machine{"8": &copied, "2": first}[turn], turn+"/"+turn, checkin.Request{})
		}
		wants(200, first, "2", checkin.Request{})
		wants(409, &copied, "8", checkin.Request{})
		if r := m.instance(id); r.Text("status") != "UNHEALTHY" {
			t.Errorf("when the copy is back it is %s", r.Body)
		}

		again := m.Want(202, "POST", path+"/registrationKey", "").Text("registrationKey")
		for _, one := range []*machine{first, &copied} {
			wants(410, one, "2", checkin.Request{})
		}
		machines := []*machine{m.machine("first", again)}
		for range nodes - 1 {
			machines = append(machines, m.machine("second", again))
		}
		for _, one := range machines {
			one.sequence = 1000 // behind those from before
			wants(200, one, "2/1", checkin.Request{})
		}
		if r := m.instance(id); r.Text("status") != "HEALTHY" {
			t.Errorf("behind a new key it is %s", r.Body)
		}
	}
	created := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"odd"}`)
	one := m.machine("odd", created.Text("registrationKey"))
	for _, p := range []checkin.Process{{}, {ID: strings.Repeat("x", 65)}, {ID: "x", Before: strings.Repeat("x", 65)}, {ID: "x\x00"}} {
		if status, answer := one.ask(checkin.Request{Process: &p}); status != 400 || !strings.Contains(fmt.Sprint(answer["message"]), "process") {
			t.Errorf("process %q is answered %d %v", p, status, answer)
		}
	}
}
