package server

import (
	"fmt"
	"testing"
)

// What is kept of how many records a view has follows whatever is done to records, zones, templates and views.
func TestRecordCounts(t *testing.T) {
	m := startManager(t)
	configuration, view, zone, _, _ := m.basics()
	want := func(path, total, types string) {
		t.Helper()
		r := m.want(200, "GET", "/api/v2/"+path+"/recordCounts", "")
		if r.text("totalCount") != total || r.text("counts") != "map["+types+"]" {
			t.Errorf("%s has %s, want %s: %s", path, r.body, total, types)
		}
	}
	of, in := "views/"+view, "zones/"+zone
	want(of, "0", "")
	record := func(zone, name string) string {
		return m.id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"`+name+`","text":"t"}`)
	}
	first := record(zone, "a")
	m.id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}]}`)
	below := m.id("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"below"}`)
	record(below, "b")
	want(of, "3", "HostRecord:1 TXTRecord:2")
	want(in, "2", "HostRecord:1 TXTRecord:1")
	// Many at once, moved, and moved with their zone.
	list := ""
	for i := range 40 {
		list += fmt.Sprintf(`,{"type":"TXTRecord","name":"n%d","text":"t"}`, i)
	}
	m.want(201, "POST", "/api/v2/zones/"+below+"/resourceRecords", "["+list[1:]+"]")
	want(of, "43", "HostRecord:1 TXTRecord:42")
	m.want(201, "POST", "/api/v2/resourceRecords/"+first+"/moves", `{"type":"DNSMove","absoluteName":"c.below.example.com"}`)
	want("zones/"+below, "42", "TXTRecord:42")
	m.want(201, "POST", "/api/v2/zones/"+below+"/moves", `{"type":"DNSMove","absoluteName":"elsewhere"}`)
	want(of, "43", "HostRecord:1 TXTRecord:42")
	want(in, "1", "HostRecord:1")
	m.verify()
	// Deleted with their zone, taken back, and made together with their zone in one transaction.
	m.want(204, "DELETE", "/api/v2/zones/"+below, "")
	want(of, "1", "HostRecord:1")
	m.want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.last()+`}`)
	want(of, "43", "HostRecord:1 TXTRecord:42")
	m.want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"views/`+view+`/zones","body":{"type":"Zone","absoluteName":"new.example"}},`+
		`{"method":"POST","path":"zones/$0/resourceRecords","body":{"type":"TXTRecord","name":"x","text":"y"}}]}`)
	want(of, "44", "HostRecord:1 TXTRecord:43")
	// A template's records are no view's.
	template := m.id("/api/v2/configurations/"+configuration+"/templates", `{"type":"ZoneTemplate","name":"t"}`)
	m.id("/api/v2/templates/"+template+"/resourceRecords", `{"type":"TXTRecord","name":"x","text":"y"}`)
	want(of, "44", "HostRecord:1 TXTRecord:43")
	m.want(204, "DELETE", "/api/v2/templates/"+template, "")
	m.verify()
	m.want(204, "DELETE", "/api/v2/views/"+view, "")
	m.want(404, "GET", "/api/v2/views/"+view+"/recordCounts", "")
	m.verify()
	m.want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.last()+`}`)
	want(of, "44", "HostRecord:1 TXTRecord:43")
	m.verify()
	m.refused(400, "InvalidQueryParameterValue", "limit", "GET", "/api/v2/views/"+view+"/recordCounts?limit=1", "")
	m.want(405, "POST", "/api/v2/views/"+view+"/recordCounts", "{}")
	m.want(404, "GET", "/api/v2/blocks/1/recordCounts", "")
	m.want(401, "GET", "/api/v2/views/"+view+"/recordCounts", "", "Authorization: Bearer wrong")
}
