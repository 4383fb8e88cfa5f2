package model_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestVLANs checks the numbers of VLANs in their group, the networks of a VLAN, rights, undo and documents.
func TestVLANs(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	group := m.ID("/api/v2/configurations/"+configuration+"/vlanGroups", `{"type":"VLANGroup","name":"quay","firstNumber":10,"lastNumber":14}`)
	in := "/api/v2/vlanGroups/" + group + "/vlans"
	office := m.Want(201, "POST", in, `{"type":"VLAN","name":"office"}`)
	if office.Text("number") != "10" {
		t.Errorf("the first number is %s", office.Body)
	}
	voice := m.ID(in, `{"type":"VLAN","name":"voice","number":12}`)
	if r := m.Want(201, "POST", in, `{"type":"VLAN","name":"guests"}`); r.Text("number") != "11" {
		t.Errorf("the next free number is %s", r.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", "VLAN 12 already exists in the group quay", "POST", in, `{"type":"VLAN","name":"again","number":12}`)
	m.Refused(409, "ResourceAlreadyExists", "office", "POST", in, `{"type":"VLAN","name":"office","number":13}`)
	for number, code := range map[string]string{"0": "ValueLessThanMinimum", "4095": "ValueOutsideRange", "9": "InvalidResourceFieldValue",
		"15": "InvalidResourceFieldValue"} {
		m.Refused(400, code, "number", "POST", in, `{"type":"VLAN","name":"x","number":`+number+`}`)
	}
	m.Refused(400, "InvalidResourceFieldValue", "VLAN 10 of the group is not in 11 to 14", "PATCH", "/api/v2/vlanGroups/"+group, `{"firstNumber":11}`)
	m.Refused(400, "InvalidResourceFieldValue", "lastNumber", "PATCH", "/api/v2/vlanGroups/"+group, `{"lastNumber":5}`)
	free := m.Want(200, "GET", "/api/v2/vlanGroups/"+group+"/freeNumbers", "")
	if free.Text("next") != "13" || free.Text("used") != "3" || free.Text("free") != "2" || free.Text("ranges.0.last") != "14" {
		t.Errorf("the free numbers are %s", free.Body)
	}
	for _, name := range []string{"a", "b"} {
		m.Want(201, "POST", in, `{"type":"VLAN","name":"`+name+`"}`)
	}
	m.Refused(409, "ResourceConflictsWithOther", "no free number from 10 to 14", "POST", in, `{"type":"VLAN","name":"c"}`)

	// A network refers to its VLAN, and is found by it.
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"vlan":{"id":`+voice+`}}`)
	for _, path := range []string{"/api/v2/vlans/" + voice + "/networks?limit=5", "/api/v2/networks?" + apitest.Filter("vlan.number:12"),
		"/api/v2/networks?" + apitest.Filter("vlan.name:'voice'")} {
		if r := m.Want(200, "GET", path, ""); r.Count() != 1 || r.Text("data.0.vlan.number") != "12" {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
	other := m.ID("/api/v2/configurations", `{"name":"other"}`)
	elsewhere := m.ID("/api/v2/vlanGroups/"+m.ID("/api/v2/configurations/"+other+"/vlanGroups", `{"type":"VLANGroup","name":"x"}`)+"/vlans",
		`{"type":"VLAN","name":"far"}`)
	m.Refused(400, "InvalidResourceFieldValue", "far ("+elsewhere+") is in another configuration", "PATCH", "/api/v2/networks/"+network, `{"vlan":{"id":`+elsewhere+`}}`)

	// Deleting the VLAN clears the reference, and an undo restores both.
	m.Want(204, "DELETE", "/api/v2/vlans/"+voice, "")
	if r := m.Want(200, "GET", "/api/v2/networks/"+network, ""); r.Text("vlan") != "" {
		t.Errorf("the network still has the VLAN: %s", r.Body)
	}
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	if r := m.Want(200, "GET", "/api/v2/networks/"+network, ""); r.Text("vlan.name") != "voice" {
		t.Errorf("the network lost its VLAN: %s", r.Body)
	}

	// A document finds VLANs by their names, and a second time nothing changes.
	document := `{"resources":[{"type":"VLANGroup","configuration":"main","name":"mole"},{"type":"VLAN","configuration":"main",` +
		`"vlanGroup":"mole","name":"cranes","number":20},{"type":"IPv4Network","configuration":"main","range":"10.0.7.0/24","vlan":"cranes"}]}`
	if r := m.Want(200, "POST", "/api/v2/apply", document); !strings.Contains(string(r.Body), `"created":3`) {
		t.Errorf("the document: %s", r.Body)
	}
	if r := m.Want(200, "POST", "/api/v2/apply", document); !strings.Contains(string(r.Body), `"unchanged":3`) {
		t.Errorf("the document again: %s", r.Body)
	}

	// Names repeat in groups: a reference may name the group.
	m.Want(200, "POST", "/api/v2/apply", `{"resources":[{"type":"VLAN","configuration":"main","vlanGroup":"quay","name":"cranes","number":30},`+
		`{"type":"VLANGroup","configuration":"main","name":"quay","lastNumber":30}]}`)
	m.Refused(400, "ConflictingResourceFieldValues", "several vlans have the name", "POST", "/api/v2/apply",
		`{"resources":[{"type":"IPv4Network","configuration":"main","range":"10.0.7.0/24","vlan":"cranes"}]}`)
	m.Want(200, "POST", "/api/v2/apply", `{"resources":[{"type":"IPv4Network","configuration":"main","range":"10.0.7.0/24",`+
		`"vlan":"vlanGroups/mole/vlans/cranes"}]}`)

	// Rights apply as everywhere. The numbers of hidden VLANs are not revealed.
	user, as := m.User("team", "NO_ACCESS")
	m.Right(user, block, "FULL", "")
	m.Want(404, "GET", "/api/v2/vlanGroups/"+group, "", as)
	if r := m.Want(200, "GET", "/api/v2/networks/"+network, "", as); r.Text("vlan") != "" {
		t.Errorf("a hidden VLAN is shown: %s", r.Body)
	}
	m.Right(user, group, "ADD", "")
	m.Right(user, voice, "HIDE", "")
	m.Refused(403, "AccessDenied", "permission to view all VLANs", "GET", "/api/v2/vlanGroups/"+group+"/freeNumbers", "", as)
	m.Refused(403, "AccessDenied", "", "DELETE", "/api/v2/vlanGroups/"+group, "", as)
	m.Verify()
}
