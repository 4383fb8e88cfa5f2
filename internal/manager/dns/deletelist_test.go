package dns_test

import (
	"fmt"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestDeleteLists deletes the members of a list that match a filter, all or none. The request states their number.
func TestDeleteLists(t *testing.T) {
	m := start(t)
	_, _, zone, block, network := m.Basics()
	for i := range 6 {
		m.ID("/api/v2/networks/"+network+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.0.0.%d","name":"old-%d"}`, 20+i, i))
	}
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.20"}]}`)
	addresses := "/api/v2/networks/" + network + "/addresses?" + apitest.Filter("name:startsWith('old-')")
	confirm := func(n string) string { return "x-portolan-confirm: " + n }
	m.Refused(409, "ConfirmationRequired", "6 resources match", "DELETE", addresses, "")
	m.Refused(409, "ConfirmationRequired", "6", "DELETE", addresses, "", confirm("5"))
	m.Refused(400, "InvalidHeaderValue", "x-portolan-confirm", "DELETE", addresses, "", confirm("all"))
	m.Refused(400, "MissingQueryParameter", "filter", "DELETE", "/api/v2/networks/"+network+"/addresses", "", confirm("6"))
	m.Refused(400, "InvalidQueryParameterValue", "limit", "DELETE", addresses+"&limit=1", "", confirm("6"))
	m.Refused(400, "FilterParseError", "position", "DELETE", "/api/v2/addresses?filter=x", "", confirm("6"))
	m.Refused(404, "ResourceNotFound", "", "DELETE", "/api/v2/networks/99999999/addresses?"+apitest.Filter("name:'x'"), "", confirm("0"))
	m.Refused(400, "InvalidHeaderValue", "list", "DELETE", "/api/v2/networks/"+network, "", confirm("1"))
	m.Refused(405, "MethodNotAllowed", "", "DELETE", "/api/v2/users?"+apitest.Filter("name:'admin'"), "", confirm("1"))
	m.Refused(405, "MethodNotAllowed", "", "DELETE", "/api/v2/networks/"+network+"/tags?"+apitest.Filter("name:'x'"), "", confirm("0"))
	if r := m.Want(200, "DELETE", addresses, "", "x-portolan-dry-run: true"); r.Text("deleted") != "7" {
		t.Errorf("tried: %s", r.Body)
	}
	r := m.Want(200, "DELETE", addresses, "", confirm("6"), "x-bcn-change-control-comment: tidied")
	if r.Text("count") != "6" || r.Text("deleted") != "7" { // with the host that had one alone
		t.Errorf("deleted: %s", r.Body)
	}
	if r := m.Want(200, "GET", addresses, ""); r.Text("count") != "0" {
		t.Errorf("left are %s", r.Body)
	}
	last := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)", "")
	if last.Text("data.0.operation") != "DELETE_LIST" || last.Text("data.0.comment") != "tidied" {
		t.Errorf("the history says %s", last.Body)
	}
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+last.Text("data.0.id")+`}`)
	if r := m.Want(200, "GET", addresses, ""); r.Text("count") != "6" {
		t.Errorf("after the undo there are %s", r.Body)
	}
	// One refused deletion undoes all. A resource that was deleted with its parent is not an error.
	m.Refused(403, "DeleteNotAllowed", "any", "DELETE", "/api/v2/accessControlLists?"+apitest.Filter("name:'any'"), "", confirm("1"))
	m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.64.0.0/16"}`)
	if r := m.Want(200, "DELETE", "/api/v2/blocks?"+apitest.Filter("type:'IPv4Block'"), "", confirm("2")); r.Text("count") != "2" {
		t.Errorf("the blocks: %s", r.Body)
	}
	m.Want(404, "GET", "/api/v2/blocks/"+block, "")
}
