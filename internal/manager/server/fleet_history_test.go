package server

import (
	"strings"
	"testing"
)

// TestFleetChangesAreInTheHistory checks that the history contains the user of each change of the fleet, and the values before and after
// it. Such a change cannot be undone.
func TestFleetChangesAreInTheHistory(t *testing.T) {
	m := startAlone(t)
	last := func() reply {
		id := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)", "").Text("data.0.id")
		return m.Want(200, "GET", "/api/v2/transactions/"+id, "")
	}
	says := func(operation, description string) {
		t.Helper()
		if r := last(); r.Text("operation") != operation || !strings.HasPrefix(r.Text("description"), description) ||
			r.Text("principal") != "admin" || !strings.HasPrefix(r.Text("credential"), "token ") || r.Text("remoteAddress") != "127.0.0.1" {
			t.Errorf("the history says %s, want %s %q", r.Body, operation, description)
		}
	}
	const fleetOf = "/user/api/v1/fleetInstances"
	m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pier"}`, "x-bcn-change-control-comment: for the north")
	says("ADD_SERVICE_POINT", "Added service point pier")
	if comment := last().Text("comment"); comment != "for the north" {
		t.Errorf("the comment is %q", comment)
	}
	m.Refused(400, "InvalidHeaderValue", "x-bcn-change-control-comment", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"quay"}`,
		"x-bcn-change-control-comment: "+strings.Repeat("x", 5000))
	id := m.Want(200, "GET", fleetOf+"?name=pier", "").Text("data.0.id")
	m.Want(200, "PATCH", fleetOf+"/"+id, `{"labels":{"site":"north","floor":"2"},"description":"by the lighthouse"}`)
	says("UPDATE_SERVICE_POINT", "Changed service point pier: description: none -> by the lighthouse, label floor: none -> 2, "+
		"label site: none -> north")
	m.Want(200, "PATCH", fleetOf+"/"+id, `{"labels":{"floor":null},"name":"mole"}`)
	says("UPDATE_SERVICE_POINT", "Changed service point pier: label floor: 2 -> none, name: pier -> mole")
	before := last().Text("id")
	m.Want(200, "PATCH", fleetOf+"/"+id, `{"labels":{"site":"north"}}`) // as it is
	if now := last().Text("id"); now != before {
		t.Errorf("nothing was changed, and that is transaction %s", now)
	}
	m.Want(202, "POST", fleetOf+"/"+id+"/registrationKey", "")
	says("REKEY_SERVICE_POINT", "Created a new registration key for service point mole")
	application := m.Want(202, "POST", fleetOf+"/"+id+"/applications", `{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`).Text("id")
	says("ADD_APPLICATION", "Service point mole: deployed application http-probe-service ("+application+")")
	m.Want(202, "PATCH", fleetOf+"/"+id+"/applications/"+application, `{"configuration":{"targets":[{"address":"127.0.0.2"}]},"limits":{"memoryMiB":512}}`)
	says("UPDATE_APPLICATION", "Service point mole: changed application http-probe-service ("+application+
		"): its configuration, its limits")
	m.Want(202, "DELETE", fleetOf+"/"+id+"/applications/"+application, "")
	says("DELETE_APPLICATION", "Service point mole: removed application http-probe-service")
	m.Want(202, "POST", fleetOf+"/"+id+"/nodes", "")
	says("UPDATE_SERVICE_POINT", "Service point mole: allowed another node, up to 2")
	m.Want(204, "DELETE", fleetOf+"/"+id, "")
	says("DELETE_SERVICE_POINT", "Deleted service point mole")
	number := last().Text("id")
	m.ID("/api/v2/configurations", `{"name":"north"}`)
	if r := last(); r.Text("changedResources") != "true" {
		t.Errorf("a transaction that made a configuration is %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions/"+number, ""); r.Text("changedResources") != "false" {
		t.Errorf("it is %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions/"+number+"/operations?total=true", ""); r.Text("totalCount") != "0" {
		t.Errorf("its operations are %s", r.Body)
	}
	m.Refused(409, "UndoConflict", "did not change a resource", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+number+`}`)
	updates := "/api/v2/transactions?total=true&" + filter("operation:'UPDATE_SERVICE_POINT'")
	if r := m.Want(200, "GET", updates, ""); r.Text("totalCount") != "3" {
		t.Errorf("changes of service points are %s", r.Body)
	}
}

// TestReadOnlySessionOfTheFleet checks that a read-only session changes nothing of the fleet, for every user.
func TestReadOnlySessionOfTheFleet(t *testing.T) {
	m := startAlone(t)
	m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pier"}`)
	id := m.Want(200, "GET", "/user/api/v1/fleetInstances?name=pier", "").Text("data.0.id")
	cookie := m.atConsole(`{"username":"admin","password":"` + adminPassword + `","readOnly":true}`)
	none := "Authorization:"
	m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "", none, cookie)
	for _, c := range [][3]string{{"PATCH", "/user/api/v1/fleetInstances/" + id, `{"description":"mine"}`},
		{"POST", "/user/api/v1/fleetInstances/" + id + "/registrationKey", ""}, {"DELETE", "/user/api/v1/fleetInstances/" + id, ""},
		{"POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"quay"}`}} {
		m.Refused(403, "ReadOnlySession", "only read", c[0], c[1], c[2], none, cookie)
	}
}

// TestHistoryOfDeletedResources checks that the history of a deleted resource is shown at its former path to users who see the complete
// history, and only to them.
func TestHistoryOfDeletedResources(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"gone"}`)
	m.Want(204, "DELETE", "/api/v2/addresses/"+address, "", "x-bcn-change-control-comment: too old")
	r := m.Want(200, "GET", "/api/v2/addresses/"+address+"/transactions?orderBy=desc(id)&total=true", "")
	if r.Text("totalCount") != "2" || r.Text("data.0.comment") != "too old" || r.Text("data.0.principal") != "admin" {
		t.Errorf("its history is %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/networks/"+network, "")
	if r := m.Want(200, "GET", "/api/v2/addresses/"+address+"/transactions?total=true", ""); r.Text("totalCount") != "2" {
		t.Errorf("its history is %s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", address, "GET", "/api/v2/addresses/"+address, "")
	m.Refused(404, "ResourceNotFound", address, "GET", "/api/v2/networks/"+address+"/transactions", "")
	m.Refused(404, "ResourceNotFound", "999999", "GET", "/api/v2/addresses/999999/transactions", "")
	_, as := m.User("ada", "NO_ACCESS")
	m.refusedAs(as, 404, "ResourceNotFound", address, "GET", "/api/v2/addresses/"+address+"/transactions", "")
}
