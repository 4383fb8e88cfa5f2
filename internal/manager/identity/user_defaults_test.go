package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestDefaultsAreFound checks that filters treat the default value of a field like the same value set explicitly, for all operators.
func TestDefaultsAreFound(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	_, _, _, block, _ := m.Basics()
	for i, value := range []string{"7", "12.5", "north 7"} {
		name := fmt.Sprintf("field%d", i)
		networks := "/api/v2/blocks/" + block + "/networks"
		set := m.ID(networks, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.0.0/24","userDefinedFields":{"%s":"%s"}}`, i+10, name, value))
		unset := m.ID(networks, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.1.0/24"}`, i+10))
		other := m.ID(networks, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.2.0/24","userDefinedFields":{"%s":"other"}}`, i+10, name))
		field := "userDefinedFields." + name
		ids := "id:in(" + set + "," + unset + "," + other + ")"
		both := func(expr string, want ...string) {
			t.Helper()
			r := m.Want(200, "GET", "/api/v2/networks?orderBy=id&"+apitest.Filter(ids+" and "+field+":"+expr), "")
			got := ""
			for i := range r.Count() {
				got += r.Text(fmt.Sprintf("data.%d.id", i)) + " "
			}
			if len(want) > 0 && got != want[0] {
				t.Errorf("%s of %q finds %q, want %q", expr, value, got, want[0])
			}
			if hasSet, hasUnset := apitest.HasWords(got, set), apitest.HasWords(got, unset); hasSet != hasUnset {
				t.Errorf("%s finds the resource that sets %q: %v, and the one that inherits it: %v", expr, value, hasSet, hasUnset)
			}
		}
		both("null and id:"+set, "") // without a default, one of them has no value
		definition := m.ID("/api/v2/userDefinedFieldDefinitions",
			`{"name":"`+name+`","displayName":"x","resourceType":"IPv4Network","dataType":"TEXT","defaultValue":"`+value+`"}`)
		if r := m.Want(200, "GET", "/api/v2/networks/"+unset, ""); r.Text(field) != value {
			t.Fatalf("it shows %s", r.Body)
		}
		both("'"+value+"'", set+" "+unset+" ")
		both("ne('"+value+"')", other+" ")
		both("null", "")
		both("ne(null)", set+" "+unset+" "+other+" ")
		for _, op := range []string{"eq", "ne", "gt", "ge", "lt", "le", "contains", "startsWith", "endsWith"} {
			for _, v := range []string{"7", "'7'", "12.5", "12", "-1", "1e1", "'north 7'", "'north'", "'NORTH'", "''", "'o'", "'other'",
				"' 7'", "'7x'"} {
				both(op + "(" + v + ")")
			}
		}
		both("in('x','"+value+"')", set+" "+unset+" ")
		both("in('x','other')", other+" ")
		m.Want(200, "PATCH", "/api/v2/userDefinedFieldDefinitions/"+definition, `{"defaultValue":null}`, apitest.MergePatch)
		if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter(ids+" and "+field+":null"), ""); r.Text("data.0.id") != unset ||
			r.Count() != 1 {
			t.Errorf("without a default %s", r.Body)
		}
	}
	m.Verify()
}

// TestRequiredFieldsOfRequestedResource checks that a required field is required in the resource of a request, but not in resources that
// are created with it. Definitions are visible to all users who see any resource.
func TestRequiredFieldsOfRequestedResource(t *testing.T) {
	m := start(t)
	_, _, zone, block, network := m.Basics()
	m.ID("/api/v2/userDefinedFieldDefinitions",
		`{"name":"ticket","displayName":"Ticket","resourceType":"IPv4Address","dataType":"TEXT","required":true}`)
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.9.0.0/24"}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}]}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"gateway":"10.0.0.77"}`, apitest.MergePatch)
	m.Refused(400, "MissingRequiredField", "userDefinedFields.ticket", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.10","state":"STATIC"}`)
	m.ID("/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.10","state":"STATIC","userDefinedFields":{"ticket":"7"}}`)
	carol := m.ID("/api/v2/users",
		`{"name":"carol","email":"c@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	as := apitest.BasicAuth("carol", "a-long-password")
	if r := m.Want(200, "GET", "/api/v2/userDefinedFieldDefinitions", "", as); r.Count() != 0 {
		t.Errorf("without any right carol sees %s", r.Body)
	}
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+carol+`},"resource":{"id":`+network+`},"defaultAccessLevel":"FULL"}`)
	if r := m.Want(200, "GET", "/api/v2/userDefinedFieldDefinitions", "", as); r.Text("data.0.name") != "ticket" {
		t.Errorf("with a right on a network carol sees %s", r.Body)
	}
	m.Refused(403, "AccessDenied", "administrators", "PATCH", "/api/v2/userDefinedFieldDefinitions/"+
		m.Want(200, "GET", "/api/v2/userDefinedFieldDefinitions", "").Text("data.0.id"), `{"displayName":"x"}`, apitest.MergePatch, as)
	m.Verify()
}

// TestNamesOfActsAreConcealed checks that the name of a merge is concealed from users who do not see the merged resource.
func TestNamesOfActsAreConcealed(t *testing.T) {
	m := start(t)
	_, _, _, block, _ := m.Basics()
	networks := "/api/v2/blocks/" + block + "/networks"
	one := m.ID(networks, `{"type":"IPv4Network","range":"10.9.0.0/25"}`)
	two := m.ID(networks, `{"type":"IPv4Network","range":"10.9.0.128/25"}`)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/merges",
		`{"type":"IPv4NetworkMerge","networks":[{"id":`+two+`}],"destination":{"id":`+one+`}}`)
	if r := m.Want(200, "GET", "/api/v2/blocks/"+block+"/merges", ""); r.Text("data.0.name") != "10.9.0.128/25 into 10.9.0.0/25" {
		t.Errorf("the merge is %s", r.Body)
	}
	carol := m.ID("/api/v2/users",
		`{"name":"carol","email":"c@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+carol+`},"resource":{"id":`+block+`},"defaultAccessLevel":"FULL"}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+carol+`},"resource":{"id":`+one+`},"defaultAccessLevel":"HIDE"}`)
	r := m.Want(200, "GET", "/api/v2/blocks/"+block+"/merges", "", apitest.BasicAuth("carol", "a-long-password"))
	if r.Count() != 1 || strings.Contains(string(r.Body), "10.9.0") {
		t.Errorf("carol, who does not see the network, is shown %s", r.Body)
	}
}

// TestRepeatedReadsOfOperations checks that repeated reads of an operation return the same name, and do not return the name of a resource
// with the same id.
func TestRepeatedReadsOfOperations(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"lab"}`, apitest.MergePatch)
	operations := "/api/v2/transactions/" + m.LastTransaction() + "/operations"
	id := m.Want(200, "GET", operations, "").Text("data.0.id")
	for range 3 {
		if r := m.Want(200, "GET", operations+"/"+id, ""); r.Text("name") != "10.0.0.0/24 lab" {
			t.Errorf("the operation is %s", r.Body)
		}
	}
}
