package server

import (
	"strings"
	"testing"
)

// What is applied is there as it was sent, however it was before; a second time nothing changes; what has the tag and is not sent goes.
func TestApply(t *testing.T) {
	m := startAlone(t)
	configuration := m.id("/api/v2/configurations", `{"name":"main"}`)
	m.id("/api/v2/configurations/"+configuration+"/views", `{"type":"View","name":"internal"}`)
	group := m.id("/api/v2/tagGroups", `{"name":"owners"}`)
	m.id("/api/v2/tagGroups/"+group+"/tags", `{"name":"north"}`)
	plan := func(rows string) string {
		return `{"into":"configurations/main","defaults":{"view":"internal"},"tag":"tags/north","prune":true,"resources":[` + rows + `]}`
	}
	const block, network = `{"type":"IPv4Block","range":"10.0.0.0/8","name":"site"}`, `{"type":"IPv4Network","range":"10.1.0.0/24","name":"office","location":"NO"}`
	const address = `{"type":"IPv4Address","address":"10.1.0.10","name":"printer","state":"STATIC","macAddress":"00:00:5e:00:53:01"}`
	const zone, host = `{"type":"Zone","absoluteName":"example.net"}`, `{"type":"HostRecord","absoluteName":"www.example.net","addresses":["10.1.0.10","10.1.0.11"]}`
	const alias = `{"type":"AliasRecord","absoluteName":"web.example.net","linkedRecord":"www.example.net"}`
	all := plan(strings.Join([]string{block, network, address, zone, host, alias}, ","))
	// Their order does not matter.
	turned := m.want(200, "POST", "/api/v2/apply", plan(strings.Join([]string{alias, host, zone, address, network, block}, ",")),
		"x-portolan-dry-run: true")
	if turned.text("resource.created") != "5" || turned.text("resource.changed") != "1" || // the host makes the address
		turned.text("resource.resources.0.key") != "web.example.net" {
		t.Errorf("turned around, it is %s", turned.body)
	}
	dry := m.want(200, "POST", "/api/v2/apply", all, "x-portolan-dry-run: true")
	if dry.text("resource.created") != "6" || dry.text("dryRun") != "true" {
		t.Fatalf("tried, it is %s", dry.body)
	}
	m.want(200, "GET", "/api/v2/blocks", "")
	r := m.want(200, "POST", "/api/v2/apply", all)
	if r.text("created") != "6" || r.text("resources.4.key") != "www.example.net" {
		t.Fatalf("it is %s", r.body)
	}
	if got := m.want(200, "GET", "/api/v2/networks?filter=range:'10.1.0.0/24'", ""); got.text("data.0.location.code") == "" &&
		got.text("data.0.location.id") == "" {
		t.Errorf("the network is %s", got.body)
	}
	if r = m.want(200, "POST", "/api/v2/apply", all); r.text("unchanged") != "6" || r.text("changed") != "0" || r.get("transaction") != nil {
		t.Errorf("a second time it is %s", r.body)
	}
	// One changes, one goes, one host gets another address.
	changed := plan(strings.Join([]string{block, strings.Replace(network, "office", "lab", 1), address, zone, strings.Replace(host, `,"10.1.0.11"`, `,"10.1.0.12"`, 1)}, ","))
	r = m.want(200, "POST", "/api/v2/apply", changed)
	if r.text("changed") != "2" || r.text("deleted") != "1" || r.text("resources.1.changes.0.before") != "office" ||
		r.text("resources.1.changes.0.after") != "lab" {
		t.Errorf("changed, it is %s", r.body)
	}
	if n := m.want(200, "GET", "/api/v2/resourceRecords?total=true&filter=type:'AliasRecord'", "").text("totalCount"); n != "0" {
		t.Errorf("%s aliases are left", n)
	}
	// All of it is one transaction.
	m.want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+r.text("transaction")+`}`)
	if r = m.want(200, "POST", "/api/v2/apply", all); r.text("unchanged") != "6" {
		t.Errorf("taken back, it is %s", r.body)
	}
	m.verify()

	// What cannot be is refused, each with its place, and changes nothing.
	for wrong, field := range map[string]string{
		plan(`{"range":"10.0.0.0/8"}`):                                                            "resources[0].type",
		plan(`{"type":"Nonsense"}`):                                                               "resources[0].type",
		plan(block + `,{"type":"IPv4Network","range":"11.0.0.0/24"}`):                             "resources[1]",
		plan(block + `,` + block):                                                                 "resources[1]",
		plan(`{"type":"IPv4Network","range":"10.2.0.0/24","location":"locations/nowhere"}`):       "resources[0].location",
		plan(`{"type":"IPv4Network","id":7,"range":"10.2.0.0/24"}`):                               "resources[0].id",
		plan(`{"type":"Tag","name":"x","in":"tagGroups/nothing"}`):                                "resources[0].in",
		`{"resources":[],"prune":true}`:                                                           "prune",
		`{"resources":[],"tag":"tags/none"}`:                                                      "tag",
		`{"resources":{}}`:                                                                        "resources",
		`{"into":"configurations/other","resources":[{"type":"IPv4Block","range":"10.0.0.0/8"}]}`: "resources[0].in",
		strings.Replace(all, `"prune":true`, `"action":"CREATE"`, 1):                              "resources[0]",
		strings.Replace(all, `"prune":true`, `"action":"MAKE"`, 1):                                "action",
		`{"action":"UPDATE","resources":[{"type":"IPv4Block","range":"12.0.0.0/8"}]}`:             "resources[0]",
		`{"what":1,"resources":[]}`:                                                               "what",
		`{}`:                                                                                      "resources",
	} {
		r := m.do("POST", "/api/v2/apply", wrong)
		if r.StatusCode < 400 || r.StatusCode > 409 || !strings.Contains(r.text("fields"), field) {
			t.Errorf("%s: %d %s, want one that names %s", wrong, r.StatusCode, r.body, field)
		}
	}
	m.want(405, "GET", "/api/v2/apply", "")
	if r = m.want(200, "POST", "/api/v2/apply", all); r.text("unchanged") != "6" {
		t.Errorf("behind what was refused it is %s", r.body)
	}
}
