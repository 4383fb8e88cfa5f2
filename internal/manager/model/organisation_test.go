package model_test

import (
	"strings"
	"testing"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
)

// TestOrganisation is a day of an organisation: three teams, each with its part of the addresses and names, an auditor, automation, and an
// approver.
func TestOrganisation(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"corporate"}`)
	view := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"internal"}`)
	top := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"corp.example"}`)
	type team struct{ group, block, zone, member, as string }
	teams := map[string]team{}
	for i, name := range []string{"campus", "factory", "labs"} {
		x := team{group: m.ID("/api/v2/groups", `{"name":"`+name+`"}`)}
		x.block = m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.`+string(rune('1'+i))+`.0.0/16","name":"`+name+`"}`)
		x.zone = m.ID("/api/v2/zones/"+top+"/zones", `{"type":"Zone","name":"`+name+`"}`)
		x.member, x.as = m.User("of-"+name, "VIEW_MY_ACCESS_RIGHTS")
		m.Want(201, "POST", "/api/v2/groups/"+x.group+"/users", `{"id":`+x.member+`}`)
		workflow := ""
		if name == "labs" { // their changes require approval
			workflow = `,"workflowLevel":"RECOMMEND"`
		}
		m.Right(x.group, x.block, "FULL", workflow)
		m.Right(x.group, x.zone, "FULL", workflow)
		m.Right(x.group, configuration, "HIDE", `,"accessOverrides":[{"resourceType":"Configuration","accessLevel":"VIEW"},{"resourceType":"View","accessLevel":"VIEW"}]`)
		teams[name] = x
	}
	auditor, asAuditor := m.User("auditor", "NO_ACCESS")
	m.Want(200, "PATCH", "/api/v2/users/"+auditor, `{"historyPrivilege":"ADMINISTRATOR"}`)
	m.Right(auditor, "", "VIEW", "")
	approver, asApprover := m.User("approver", "NO_ACCESS")
	m.Right(approver, configuration, "FULL", `,"workflowLevel":"APPROVE"`)
	robot, _ := m.User("robot", "NO_ACCESS")
	m.Right(robot, teams["factory"].block, "ADD", "")
	m.Right(robot, teams["factory"].zone, "ADD", "")
	token, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "ci", Role: authz.Administrator, User: "robot"})
	if err != nil {
		t.Fatal(err)
	}
	asRobot := "Authorization: Bearer " + token

	// Morning: each team works in its own part, and sees no other one.
	networks := map[string]string{}
	for _, name := range []string{"campus", "factory"} {
		x := teams[name]
		networks[name] = m.ID("/api/v2/blocks/"+x.block+"/networks", `{"type":"IPv4Network","range":"10.`+map[string]string{"campus": "1",
			"factory": "2"}[name]+`.0.0/24","name":"`+name+`-office"}`, x.as)
		m.ID("/api/v2/zones/"+x.zone+"/resourceRecords", `{"type":"HostRecord","name":"printer","addresses":[{"address":"10.`+map[string]string{"campus": "1",
			"factory": "2"}[name]+`.0.9"}]}`, x.as)
		if r := m.Want(200, "GET", "/api/v2/networks", "", x.as); r.Count() != 1 {
			t.Errorf("%s sees %s", name, r.Body)
		}
		if r := m.Want(200, "GET", "/api/v2/search?q=printer", "", x.as); strings.Contains(string(r.Body), map[string]string{"campus": "factory",
			"factory": "campus"}[name]) {
			t.Errorf("%s finds %s", name, r.Body)
		}
	}
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+networks["factory"], "", teams["campus"].as)
	m.Refused(404, "ResourceNotFound", "", "POST", "/api/v2/blocks/"+teams["factory"].block+"/networks", `{"type":"IPv4Network","range":"10.2.9.0/24"}`,
		teams["campus"].as)

	// Noon: automation adds hosts of the factory, and deletes none.
	host := m.ID("/api/v2/zones/"+teams["factory"].zone+"/resourceRecords", `{"type":"HostRecord","name":"robot-1","addresses":[{"address":"10.2.0.20"}]}`,
		asRobot)
	m.Refused(403, "AccessDenied", "FULL", "DELETE", "/api/v2/resourceRecords/"+host, "", asRobot)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+networks["campus"], "", asRobot)

	// Afternoon: the labs ask, the approver approves one and denies another.
	labs := teams["labs"]
	request, _ := m.Requested("POST", "/api/v2/blocks/"+labs.block+"/networks", `{"type":"IPv4Network","range":"10.3.0.0/24","name":"bench"}`, labs.as)
	m.Refused(404, "ResourceNotFound", "", "GET", request, "", teams["campus"].as)
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asApprover)
	second, _ := m.Requested("POST", "/api/v2/zones/"+labs.zone+"/resourceRecords", `{"type":"TXTRecord","name":"www","text":"x"}`, labs.as)
	m.Want(200, "PATCH", second, `{"state":"DENIED"}`, asApprover, "x-bcn-change-control-comment: the name is taken outside")
	if r := m.Want(200, "GET", "/api/v2/networks", "", labs.as); r.Count() != 1 || r.Text("data.0.name") != "bench" {
		t.Errorf("the labs see %s", r.Body)
	}

	// Evening: the auditor sees the author and the credential of each change, and changes nothing.
	r := m.Want(200, "GET", "/api/v2/transactions?limit=1000&orderBy=id", "", asAuditor)
	found := map[string]bool{}
	for _, row := range r.Get("data").([]any) {
		one := row.(map[string]any)
		user, _ := one["user"].(map[string]any)
		name, _ := user["name"].(string)
		operation, _ := one["operation"].(string)
		credential, _ := one["credential"].(string)
		kind, _, _ := strings.Cut(credential, " ")
		found[name+" "+operation+" "+kind] = true
	}
	for _, want := range []string{"of-campus ADD_IPV4_NETWORK password", "robot ADD_HOST_RECORD token",
		"of-labs REQUEST_ADD_IPV4_NETWORK password",
		"approver APPROVE_ADD_IPV4_NETWORK password", "approver DENY_ADD_RESOURCE_RECORD password"} {
		if !found[want] {
			t.Errorf("the auditor does not find %q among %v", want, found)
		}
	}
	m.Refused(403, "AccessDenied", "VIEW", "PATCH", "/api/v2/networks/"+networks["campus"], `{"name":"x"}`, asAuditor)

	// A member leaves: the changes of the locked account remain, and it cannot sign in.
	m.Want(200, "PATCH", "/api/v2/users/"+teams["campus"].member, `{"accountLocked":true}`)
	m.Want(401, "GET", "/api/v2/networks", "", teams["campus"].as)
	m.Verify()
}
