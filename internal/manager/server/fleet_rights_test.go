package server

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestRightsOnLabels checks that a user with rights on labels sees the service points with these labels, may do what the right permits, and
// sees no others.
func TestRightsOnLabels(t *testing.T) {
	m := startAlone(t)
	point := func(name, labels string) (id string) {
		m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"`+name+`"}`)
		id = m.Want(200, "GET", "/user/api/v1/fleetInstances?name="+name, "").Text("data.0.id")
		if labels != "" {
			m.Want(200, "PATCH", "/user/api/v1/fleetInstances/"+id, `{"labels":`+labels+`}`)
		}
		return id
	}
	north, south, bare := point("north-1", `{"site":"north","role":"edge"}`), point("south-1", `{"site":"south","role":"core"}`), point("bare", "")
	user := func(name string) (id, as string) {
		id = m.ID("/api/v2/users", `{"name":"`+name+`","password":"`+adminPassword+`","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","historyPrivilege":"HIDE"}`)
		token := m.Want(201, "POST", "/api/v2/tokens", `{"name":"`+name+`","role":"administrator"}`, apitest.BasicAuth(name, adminPassword), "Content-Type: application/json")
		return id, "Authorization: Bearer " + token.Text("token")
	}
	ada, as := user("ada")
	const fleetOf = "/user/api/v1/fleetInstances"
	m.refusedAs(as, 403, "AccessDenied", "fleetRights", "GET", fleetOf, "")
	view := m.ID("/api/v2/fleetRights", `{"userScope":{"id":`+ada+`},"labels":["site=north","role"],"accessLevel":"VIEW"}`)
	names := func() string {
		r := m.Want(200, "GET", fleetOf, "", as)
		var all []string
		for i := range 5 {
			if name := r.Text("data." + string(rune('0'+i)) + ".name"); name != "" {
				all = append(all, name)
			}
		}
		return strings.Join(all, " ")
	}
	if got := names(); got != "north-1" {
		t.Errorf("ada sees %q", got)
	}
	if r := m.Want(200, "GET", fleetOf+"?label=role:core", "", as); r.Get("data.0") != nil {
		t.Errorf("a filter shows %s", r.Body)
	}
	m.Want(200, "GET", fleetOf+"/"+north, "", as)
	m.Want(200, "GET", fleetOf+"/"+north+"/events", "", as)
	for _, hidden := range []string{south, bare, "nowhere-1"} {
		m.refusedAs(as, 404, "ResourceNotFound", hidden, "GET", fleetOf+"/"+hidden, "")
		m.refusedAs(as, 404, "ResourceNotFound", hidden, "DELETE", fleetOf+"/"+hidden, "")
		m.refusedAs(as, 404, "ResourceNotFound", hidden, "GET", fleetOf+"/"+hidden+"/applications", "")
	}
	m.refusedAs(as, 403, "AccessDenied", "CHANGE", "PATCH", fleetOf+"/"+north, `{"description":"mine"}`)
	m.refusedAs(as, 403, "AccessDenied", "labels", "GET", "/user/api/v1/rollouts", "")
	m.refusedAs(as, 403, "AccessDenied", "labels", "GET", "/user/api/v1/servicePoints/"+south, "")
	m.refusedAs(as, 403, "AccessDenied", "labels", "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"mine"}`)
	m.Want(200, "PATCH", "/api/v2/fleetRights/"+view, `{"accessLevel":"CHANGE"}`, apitest.MergePatch)
	m.Want(200, "PATCH", fleetOf+"/"+north, `{"description":"mine"}`, as)
	m.refusedAs(as, 403, "AccessDenied", "labels", "PATCH", fleetOf+"/"+north, `{"labels":{"site":"south"}}`)
	m.refusedAs(as, 403, "AccessDenied", "FULL", "POST", fleetOf+"/"+north+"/registrationKey", "")
	m.refusedAs(as, 403, "AccessDenied", "FULL", "POST", fleetOf+"/"+north+"/nodes", "")
	m.refusedAs(as, 403, "AccessDenied", "FULL", "DELETE", fleetOf+"/"+north, "")
	m.refusedAs(as, 403, "AccessDenied", "nodeCount", "PATCH", fleetOf+"/"+north, `{"nodeCount":8}`)
	if r := m.Want(409, "PATCH", fleetOf+"/"+north, `{"name":"south-1"}`, as); strings.Contains(string(r.Body), south) {
		t.Errorf("the refusal of a used name reveals a hidden resource: %s", r.Body)
	}
	// By a group, and beside the right to see everything.
	group := m.ID("/api/v2/groups", `{"name":"south"}`)
	m.Want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+ada+`}`)
	m.ID("/api/v2/fleetRights", `{"userScope":{"id":`+group+`},"labels":["site=south"],"accessLevel":"FULL"}`)
	if got := names(); got != "north-1 south-1" {
		t.Errorf("ada sees %q", got)
	}
	m.Right(ada, "", "VIEW", "")
	if got := names(); len(strings.Fields(got)) != 3 {
		t.Errorf("who sees everything sees %q", got)
	}
	m.refusedAs(as, 403, "AccessDenied", "CHANGE", "PATCH", fleetOf+"/"+bare, `{"description":"mine"}`)
	m.Want(204, "DELETE", fleetOf+"/"+south, "", as)
	// A token that reads alone reads alone.
	token := m.Want(201, "POST", "/api/v2/tokens", `{"name":"reads","role":"analyst"}`, apitest.BasicAuth("ada", adminPassword), "Content-Type: application/json")
	m.refusedAs("Authorization: Bearer "+token.Text("token"), 403, "AccessDenied", "", "PATCH", fleetOf+"/"+north, `{"description":"read"}`)
	// Rights are given by administrators, and go with their users.
	m.refusedAs(as, 403, "AccessDenied", "", "POST", "/api/v2/fleetRights", `{"userScope":{"id":`+ada+`},"labels":["site"],"accessLevel":"FULL"}`)
	for labels, field := range map[string]string{`[]`: "labels", `["=x"]`: "labels", `["a="]`: "labels", `["a=1","a=2"]`: "labels"} {
		m.Refused(400, "InvalidResourceFieldValue", field, "POST", "/api/v2/fleetRights", `{"userScope":{"id":`+ada+`},"labels":`+labels+`,"accessLevel":"FULL"}`)
	}
	m.Want(204, "DELETE", "/api/v2/users/"+ada, "")
	if r := m.Want(200, "GET", "/api/v2/fleetRights", ""); r.Text("count") != "1" {
		t.Errorf("rights are left: %s", r.Body)
	}
	m.Verify()
}
