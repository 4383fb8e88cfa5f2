package model_test

import (
	"fmt"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"portolan/internal/testkit/apitest"
)

// TestRandomChangesKeepInvariants checks random changes in random order: none causes a 500, a refused change changes nothing, and the
// data keeps its invariants. Free space is the unused space, names follow zones, and references have targets.
func TestRandomChangesKeepInvariants(t *testing.T) {
	m := startConcurrent(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		w := &world{m: m, rt: rt, configuration: m.ID("/api/v2/configurations", fmt.Sprintf(`{"name":"world %d"}`, round))}
		w.view = m.ID("/api/v2/configurations/"+w.configuration+"/views", `{"name":"v"}`)
		for range rapid.IntRange(5, 60).Draw(rt, "steps") {
			w.step()
		}
		m.Verify()
		if t.Failed() {
			rt.FailNow()
		}
		// Everything is deleted with the configuration, unless an undo has deleted it already.
		status := http.StatusNoContent
		if w.undone {
			status = http.StatusNotFound
		}
		m.Want(status, "DELETE", "/api/v2/configurations/"+w.configuration, "")
	})
	m.Verify()
}

// world contains the resources of a round.
type world struct {
	m                                           *manager
	rt                                          *rapid.T
	configuration, view                         string
	blocks, networks, addresses, zones, records []string
	ranges                                      []string
	// undone reports that the creation of the configuration was undone. Only an undo takes or brings it.
	undone bool
}

func (w *world) pick(list []string) string {
	if len(list) == 0 {
		return "999999"
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(w.rt, "which")]
}

// add creates something where the rules let it, and remembers it.
func (w *world) add(list *[]string, path, body string, headers ...string) {
	r := w.m.Do("POST", "/api/v2/"+path, body, headers...)
	if r.StatusCode >= 500 {
		w.rt.Fatalf("POST %s %s: %d %s", path, body, r.StatusCode, r.Body)
	}
	if r.StatusCode == http.StatusCreated {
		*list = append(*list, r.Text("id"))
	}
}

func (w *world) do(method, path, body string) {
	headers := []string{}
	if method == "PATCH" {
		headers = append(headers, apitest.MergePatch)
	}
	if r := w.m.Do(method, "/api/v2/"+path, body, headers...); r.StatusCode >= 500 && r.StatusCode != http.StatusNotImplemented {
		w.rt.Fatalf("%s %s %s: %d %s", method, path, body, r.StatusCode, r.Body)
	}
}

// undo undoes one of the latest transactions, with or without a dry run, with or without force. A refused undo\nchanges nothing.
func (w *world) undo() {
	r := w.m.Do("GET", "/api/v2/transactions?limit=6&orderBy=desc(creationDateTime)&fields=id", "")
	n := w.number(5)
	id := r.Text(fmt.Sprintf("data.%d.id", n))
	if id == "" {
		return
	}
	headers := []string{}
	if w.number(3) == 0 {
		headers = append(headers, "x-bcn-force-undo: true")
	}
	if w.number(3) == 0 {
		headers = append(headers, "x-portolan-dry-run: true")
	}
	if r := w.m.Do("POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+id+`}`, headers...); r.StatusCode >= 500 {
		w.rt.Fatalf("undoing %s: %d %s", id, r.StatusCode, r.Body)
	}
	w.undone = w.m.Do("GET", "/api/v2/configurations/"+w.configuration, "").StatusCode == http.StatusNotFound
}

// number draws a small number, so that things often meet.
func (w *world) number(most int) int { return rapid.IntRange(0, most).Draw(w.rt, "number") }

func (w *world) step() {
	name := fmt.Sprintf("n%d", w.number(6))
	switch rapid.IntRange(0, 29).Draw(w.rt, "step") {
	case 0:
		w.add(&w.blocks, "configurations/"+w.configuration+"/blocks",
			fmt.Sprintf(`{"type":"IPv4Block","range":"10.%d.0.0/%d"}`, w.number(3), 14+w.number(4)))
	case 1:
		w.add(&w.blocks, "configurations/"+w.configuration+"/blocks",
			fmt.Sprintf(`{"type":"IPv6Block","range":"2001:db8:%x::/%d"}`, w.number(3), 46+w.number(3)))
	case 2:
		w.add(&w.blocks, "blocks/"+w.pick(w.blocks)+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"/%d"}`, 16+w.number(8)))
	case 3:
		w.add(&w.networks, "blocks/"+w.pick(w.blocks)+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"/%d"}`, 22+w.number(10)),
			"x-bcn-traversal-method: DEPTH_FIRST")
	case 4:
		w.add(&w.networks, "blocks/"+w.pick(w.blocks)+"/networks",
			fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.%d.0/%d"}`, w.number(3), w.number(2), 22+w.number(4)))
	case 5:
		w.add(&w.networks, "blocks/"+w.pick(w.blocks)+"/networks", fmt.Sprintf(`{"type":"IPv6Network","range":"/%d"}`, 64+w.number(64)))
	case 6, 7:
		family := rapid.SampledFrom([]string{"IPv4", "IPv4", "IPv6"}).Draw(w.rt, "family")
		w.add(&w.addresses, "networks/"+w.pick(w.networks)+"/addresses", `{"type":"`+family+`Address","state":"STATIC"}`)
	case 8:
		w.add(&w.addresses, "networks/"+w.pick(w.networks)+"/addresses",
			fmt.Sprintf(`{"type":"IPv4Address","state":"RESERVED","address":"10.%d.0.%d","resourceRecords":[{"absoluteName":"%s.a"}]}`,
				w.number(3), w.number(9), name))
	case 9:
		w.do("PATCH", "networks/"+w.pick(w.networks), fmt.Sprintf(`{"gateway":"10.%d.0.%d"}`, w.number(3), w.number(9)))
	case 10:
		w.add(&w.zones, "views/"+w.view+"/zones", `{"type":"Zone","absoluteName":"`+rapid.SampledFrom([]string{"a", "b.a", "c.b.a",
			"d"}).Draw(w.rt, "zone")+`"}`)
	case 11:
		w.add(&w.records, "zones/"+w.pick(w.zones)+"/resourceRecords",
			fmt.Sprintf(`{"type":"HostRecord","name":"%s","addresses":[{"address":"10.%d.0.%d"}]}`, name, w.number(3), w.number(9)))
	case 12:
		w.add(&w.records, "zones/"+w.pick(w.zones)+"/resourceRecords",
			`{"type":"AliasRecord","name":"`+name+`","linkedRecord":{"id":`+w.pick(w.records)+`}}`)
	case 13:
		w.do("PATCH", "zones/"+w.pick(w.zones), `{"name":"`+name+`"}`)
	case 16:
		w.do("PATCH", "blocks/"+w.pick(w.blocks), fmt.Sprintf(`{"range":"10.%d.0.0/%d"}`, w.number(3), 10+w.number(10)))
	case 17:
		w.do("PATCH", "networks/"+w.pick(w.networks), fmt.Sprintf(`{"range":"10.%d.%d.0/%d"}`, w.number(3), w.number(2), 20+w.number(8)))
	case 18:
		w.add(&w.blocks, "configurations/"+w.configuration+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.0.0.0/%d"}`, 8+w.number(6)))
	case 19:
		w.add(&w.blocks, "blocks/"+w.pick(w.blocks)+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.%d.0.0/%d"}`, w.number(3),
			15+w.number(4)))
	case 20:
		w.do("POST", "configurations/"+w.configuration+"/splits",
			fmt.Sprintf(`{"type":"IPv4BlockSplit","block":{"id":%s},"splitPointAddress":"10.%d.%d.0"}`, w.pick(w.blocks), w.number(3),
				w.number(200)))
	case 21:
		w.do("POST", "blocks/"+w.pick(w.blocks)+"/splits",
			fmt.Sprintf(`{"type":"IPv4NetworkSplit","network":{"id":%s},"networkCount":%d,"gatewayPreserved":%t,"defaultGatewayAssigned":%t}`,
				w.pick(w.networks), 2<<w.number(2), w.number(1) == 0, w.number(1) == 0))
	case 22:
		w.do("POST", "configurations/"+w.configuration+"/merges",
			fmt.Sprintf(`{"type":"IPv4BlockMerge","blocks":[{"id":%s}],"destination":{"id":%s}}`, w.pick(w.blocks), w.pick(w.blocks)))
	case 23:
		w.do("POST", "blocks/"+w.pick(w.blocks)+"/merges",
			fmt.Sprintf(`{"type":"IPv4NetworkMerge","networks":[{"id":%s}],"destination":{"id":%s}}`, w.pick(w.networks), w.pick(w.networks)))
	case 24:
		kind := rapid.SampledFrom([]string{"blocks", "networks", "addresses"}).Draw(w.rt, "kind")
		w.do("POST", kind+"/"+w.pick(map[string][]string{"blocks": w.blocks, "networks": w.networks, "addresses": w.addresses}[kind])+"/moves",
			fmt.Sprintf(`{"type":"IPMove","address":"10.%d.%d.%d"}`, w.number(3), w.number(3), w.number(1)*w.number(200)))
	case 25:
		w.do("POST", "zones/"+w.pick(w.zones)+"/moves", `{"type":"DNSMove","absoluteName":"`+rapid.SampledFrom([]string{"a", "b.a", "e.d",
			"f.c.b.a"}).Draw(w.rt, "name")+`"}`)
	case 26, 27:
		w.undo()
	case 28:
		w.add(&w.ranges, "networks/"+w.pick(w.networks)+"/ranges",
			fmt.Sprintf(`{"type":"IPv4DHCPRange","range":"%d,%d"}`, 1+w.number(20), 1+w.number(20)))
	case 29:
		w.add(&w.ranges, "networks/"+w.pick(w.networks)+"/ipGroups",
			fmt.Sprintf(`{"type":"IPv4Group","name":"%s","range":"%d,%d%%"}`, name, 1+w.number(20), 1+w.number(50)))
	default:
		kind := rapid.SampledFrom([]string{"blocks", "networks", "addresses", "zones", "resourceRecords"}).Draw(w.rt, "kind")
		list := map[string][]string{"blocks": w.blocks, "networks": w.networks, "addresses": w.addresses, "zones": w.zones,
			"resourceRecords": w.records}[kind]
		w.do("DELETE", kind+"/"+w.pick(list), "")
	}
}
