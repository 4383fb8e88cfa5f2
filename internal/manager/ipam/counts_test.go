package ipam_test

import (
	"fmt"
	"testing"
)

// TestRecordCounts checks that the stored number of records of a view follows every change of records, zones, templates and views.
func TestRecordCounts(t *testing.T) {
	m := start(t)
	configuration, view, zone, _, _ := m.Basics()
	want := func(path, total, types string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/"+path+"/recordCounts", "")
		if r.Text("totalCount") != total || r.Text("counts") != "map["+types+"]" {
			t.Errorf("%s has %s, want %s: %s", path, r.Body, total, types)
		}
	}
	of, in := "views/"+view, "zones/"+zone
	want(of, "0", "")
	record := func(zone, name string) string {
		return m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"`+name+`","text":"t"}`)
	}
	first := record(zone, "a")
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}]}`)
	below := m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"below"}`)
	record(below, "b")
	want(of, "3", "HostRecord:1 TXTRecord:2")
	want(in, "2", "HostRecord:1 TXTRecord:1")
	// Many at once, moved, and moved with their zone.
	list := ""
	for i := range 40 {
		list += fmt.Sprintf(`,{"type":"TXTRecord","name":"n%d","text":"t"}`, i)
	}
	m.Want(201, "POST", "/api/v2/zones/"+below+"/resourceRecords", "["+list[1:]+"]")
	want(of, "43", "HostRecord:1 TXTRecord:42")
	m.Want(201, "POST", "/api/v2/resourceRecords/"+first+"/moves", `{"type":"DNSMove","absoluteName":"c.below.example.com"}`)
	want("zones/"+below, "42", "TXTRecord:42")
	m.Want(201, "POST", "/api/v2/zones/"+below+"/moves", `{"type":"DNSMove","absoluteName":"elsewhere"}`)
	want(of, "43", "HostRecord:1 TXTRecord:42")
	want(in, "1", "HostRecord:1")
	m.Verify()
	// Records are deleted with their zone, restored by an undo, and created together with their zone in one transaction.
	m.Want(204, "DELETE", "/api/v2/zones/"+below, "")
	want(of, "1", "HostRecord:1")
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	want(of, "43", "HostRecord:1 TXTRecord:42")
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"views/`+view+`/zones","body":{"type":"Zone","absoluteName":"new.example"}},`+
		`{"method":"POST","path":"zones/$0/resourceRecords","body":{"type":"TXTRecord","name":"x","text":"y"}}]}`)
	want(of, "44", "HostRecord:1 TXTRecord:43")
	// The records of a template are not counted for a view.
	template := m.ID("/api/v2/configurations/"+configuration+"/templates", `{"type":"ZoneTemplate","name":"t"}`)
	m.ID("/api/v2/templates/"+template+"/resourceRecords", `{"type":"TXTRecord","name":"x","text":"y"}`)
	want(of, "44", "HostRecord:1 TXTRecord:43")
	m.Want(204, "DELETE", "/api/v2/templates/"+template, "")
	m.Verify()
	m.Want(204, "DELETE", "/api/v2/views/"+view, "")
	m.Want(404, "GET", "/api/v2/views/"+view+"/recordCounts", "")
	m.Verify()
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	want(of, "44", "HostRecord:1 TXTRecord:43")
	m.Verify()
	m.Refused(400, "InvalidQueryParameterValue", "limit", "GET", "/api/v2/views/"+view+"/recordCounts?limit=1", "")
	m.Want(405, "POST", "/api/v2/views/"+view+"/recordCounts", "{}")
	m.Want(404, "GET", "/api/v2/blocks/1/recordCounts", "")
	m.Want(401, "GET", "/api/v2/views/"+view+"/recordCounts", "", "Authorization: Bearer wrong")
}
