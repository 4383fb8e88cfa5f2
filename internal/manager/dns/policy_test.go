package dns_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestNamingPolicies checks that a naming policy defines names at its resource, and below it if it is inherited.
func TestNamingPolicies(t *testing.T) {
	m := start(t)
	_, view, zone, _, _ := m.Basics()
	lab := m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"lab"}`)
	values, policies := "/api/v2/namingPolicyValues", "/api/v2/namingPolicies"
	site := m.ID(values, `{"type":"NamingPolicyRequiredValue","name":"site","elements":[{"name":"Berlin","value":"ber"},{"name":"Paris","value":"par"}]}`)
	dash := m.ID(values, `{"type":"NamingPolicyConnectorValue","name":"dash","connector":"-"}`)
	role := m.ID(values, `{"type":"NamingPolicyTextValue","name":"role","textType":"REGULAR_EXPRESSION","regularExpression":"[a-z]{2,3}"}`)
	count := m.ID(values, `{"type":"NamingPolicyIncrementalValue","name":"count","incrementalRole":"COUNTER","incrementType":"DECIMAL","paddingType":"SIMPLE","paddingLength":3,"sequenceStart":10,"sequenceIncrement":5}`)
	floor := m.ID(values, `{"type":"NamingPolicyIntegerValue","name":"floor","min":1,"max":9}`)
	bad := m.ID("/api/v2/namingPolicyRestrictions",
		`{"name":"words","restrictions":[{"value":"tmp","matchType":"Any"},{"value":"ber-db-015","matchType":"Exact"}]}`)
	m.Refused(400, "InvalidResourceFieldValue", "elements", "POST", values, `{"type":"NamingPolicyRequiredValue","name":"x","elements":[]}`)
	m.Refused(400, "JsonDeserializationError", "elements", "POST", values, `{"type":"NamingPolicyRequiredValue","name":"x","elements":{"a":1}}`)
	m.Refused(400, "InvalidResourceFieldValue", "regularExpression", "POST", values,
		`{"type":"NamingPolicyTextValue","name":"x","textType":"REGULAR_EXPRESSION","regularExpression":"("}`)
	m.Refused(400, "InvalidResourceFieldValue", "min", "POST", values, `{"type":"NamingPolicyIntegerValue","name":"x","min":5,"max":4}`)
	m.Refused(400, "InvalidResourceFieldValue", "matchType", "POST", "/api/v2/namingPolicyRestrictions",
		`{"name":"x","restrictions":[{"value":"a","matchType":"Some"}]}`)
	policy := m.ID(policies, `{"name":"servers","policyValues":[{"id":`+site+`},{"id":`+dash+`},{"id":`+role+`},{"id":`+dash+`},{"id":`+count+`}],"policyRestrictions":[{"id":`+bad+`}]}`)
	m.Refused(409, "ResourceAlreadyExists", "servers", "POST", policies, `{"name":"servers"}`)
	m.Refused(404, "InlinedResourceNotFound", "NamingPolicy", "POST", policies, `{"name":"x","policyValues":[{"id":`+zone+`}]}`)
	m.Refused(404, "InlinedResourceNotFound", "entry 1", "POST", policies, `{"name":"x","policyValues":[{"id":`+dash+`},{"name":"site"}]}`)
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	record := func(name string) string { return `{"type":"TXTRecord","name":"` + name + `","text":"t"}` }
	m.ID(records, record("anything"))
	r := m.Want(201, "POST", "/api/v2/zones/"+zone+"/namingPolicies",
		`{"id":`+policy+`,"appliedTypes":["TXTRecord","Zone"],"inheritanceEnabled":false}`)
	if r.Text("appliedTypes") != "[TXTRecord Zone]" || r.Text("inheritanceEnabled") != "false" {
		t.Errorf("put on the zone it is %s", r.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "appliedTypes", "POST", "/api/v2/zones/"+lab+"/namingPolicies",
		`{"id":`+policy+`,"appliedTypes":["Nonsense"]}`)
	m.ID(records, record("BER-db-020"))
	for _, name := range []string{"lon-db-015", "ber-database-015", "ber-db-15", "ber-db-012", "ber-db-005", "ber-tmp-010", "BER-DB-015",
		"ber-db-015x"} {
		m.Refused(400, "NamingPolicyViolation", "servers", "POST", records, record(name))
	}
	m.ID(records, record("lon-db-015"), "x-bcn-override-naming-policy: true")
	m.ID(records, `{"type":"GenericRecord","name":"other","recordType":"A","rdata":"192.0.2.1"}`) // a type it is not for
	m.ID(records, `{"type":"TXTRecord","name":null,"text":"t"}`)                                  // the zone's own name
	m.Refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"sub"}`)
	m.ID("/api/v2/zones/"+lab+"/resourceRecords", record("below"))
	m.Want(200, "PATCH", policies+"/"+policy, `{"inheritanceEnabled":true}`, apitest.MergePatch)
	m.Refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/zones/"+lab+"/resourceRecords", record("below2"))
	// A record keeps the name that it had; another one has to fit.
	old := m.Want(200, "GET", "/api/v2/resourceRecords?filter=name:'anything'", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+old, `{"text":"changed"}`, apitest.MergePatch)
	m.Refused(400, "NamingPolicyViolation", "servers", "PATCH", "/api/v2/resourceRecords/"+old, `{"name":"else"}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+old, `{"name":"par-ab-025"}`, apitest.MergePatch)
	// A record that is moved into the zone must fit its policy, unless the check is disabled.
	top := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"elsewhere"}`)
	stray := m.ID("/api/v2/zones/"+top+"/resourceRecords", record("stray"))
	lone := m.ID("/api/v2/zones/"+top+"/zones", `{"type":"Zone","name":"lone"}`)
	m.Refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/resourceRecords/"+stray+"/moves",
		`{"type":"DNSMove","absoluteName":"stray.example.com"}`)
	m.Refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/zones/"+lone+"/moves",
		`{"type":"DNSMove","absoluteName":"lone.example.com"}`)
	override := "x-bcn-override-naming-policy: true"
	m.Want(201, "POST", "/api/v2/resourceRecords/"+stray+"/moves", `{"type":"DNSMove","absoluteName":"stray.example.com"}`, override)
	m.Want(201, "POST", "/api/v2/zones/"+lone+"/moves", `{"type":"DNSMove","absoluteName":"lone.example.com"}`, override)
	// Other values, in another order.
	m.Want(200, "PATCH", policies+"/"+policy, `{"policyValues":[{"id":`+floor+`},{"id":`+site+`}]}`, apitest.MergePatch)
	m.ID(records, record("7ber"))
	m.Refused(400, "NamingPolicyViolation", "more than 9", "POST", records, record("10ber"))
	if r := m.Want(200, "GET", policies+"/"+policy+"/policyValues", ""); r.Text("count") != "2" {
		t.Errorf("its values are %s", r.Body)
	}
	if r := m.Want(200, "GET", policies+"/"+policy+"/appliedResources", ""); r.Text("data.0.id") != zone {
		t.Errorf("it is on %s", r.Body)
	}
	m.Verify() // the order of the values is not a field, and is kept
	m.Want(204, "DELETE", values+"/"+floor, "")
	m.ID(records, record("ber"))
	m.Want(204, "DELETE", "/api/v2/zones/"+zone+"/namingPolicies/"+policy, "")
	m.ID(records, record("free"))
	m.Want(201, "POST", "/api/v2/views/"+view+"/namingPolicies", `{"id":`+policy+`}`)
	m.Refused(400, "NamingPolicyViolation", "servers", "POST", records, record("free2"))
	m.Want(204, "DELETE", policies+"/"+policy, "")
	m.ID(records, record("free2"))
	m.Verify()
}

// TestNamingPoliciesNumberNames checks that a mark in a new name is replaced by the next number of a policy's value: the number of
// a\ncounter, or the first number with a free name.
func TestNamingPoliciesNumberNames(t *testing.T) {
	m := start(t)
	_, view, zone, _, _ := m.Basics()
	other := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"other.test"}`)
	values, policies := "/api/v2/namingPolicyValues", "/api/v2/namingPolicies"
	site := m.ID(values, `{"type":"NamingPolicyRequiredValue","name":"site","elements":[{"name":"Berlin","value":"ber"},{"name":"Paris","value":"par"}]}`)
	dash := m.ID(values, `{"type":"NamingPolicyConnectorValue","name":"dash","connector":"-"}`)
	number := func(name, rest string) string {
		return m.ID(values, `{"type":"NamingPolicyIncrementalValue","name":"`+name+`",`+rest+`}`)
	}
	counter := number("counter", `"incrementalRole":"COUNTER","incrementType":"DECIMAL","paddingType":"SIMPLE","paddingLength":3,"sequenceStart":10,"sequenceIncrement":5`)
	again := number("again", `"incrementalRole":"UNIQUE_NAME","incrementType":"HEXADECIMAL","paddingType":"NONE","sequenceStart":9,"missingValueReuseEnabled":true`)
	ever := number("ever", `"incrementalRole":"UNIQUE_NAME","incrementType":"DECIMAL","paddingType":"NONE"`)
	m.Refused(400, "InvalidResourceFieldValue", "regularExpression", "POST", values,
		`{"type":"NamingPolicyTextValue","name":"x","textType":"REGULAR_EXPRESSION","regularExpression":"(?P<portolanPart0>x)"}`)
	m.Refused(400, "ConflictingResourceFieldValues", "missingValueReuseEnabled", "POST", values,
		`{"type":"NamingPolicyIncrementalValue","name":"x","incrementalRole":"COUNTER","incrementType":"DECIMAL","paddingType":"NONE","missingValueReuseEnabled":true}`)
	m.Refused(400, "MissingRequiredField", "paddingLength", "POST", values,
		`{"type":"NamingPolicyIncrementalValue","name":"x","incrementalRole":"COUNTER","incrementType":"DECIMAL","paddingType":"SIMPLE"}`)
	on := func(policy string, zones ...string) {
		for _, z := range zones {
			m.Want(201, "POST", "/api/v2/zones/"+z+"/namingPolicies", `{"id":`+policy+`}`)
		}
	}
	record := func(zone, name string) (string, string) {
		t.Helper()
		r := m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"`+name+`","text":"t"}`)
		return r.Text("id"), r.Text("name")
	}
	makes := func(zone, name, want string) string {
		t.Helper()
		id, got := record(zone, name)
		if got != want {
			t.Errorf("%s makes %s, want %s", name, got, want)
		}
		return id
	}
	m.Refused(400, "InvalidResourceFieldValue", "#", "POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"ber-#","text":"t"}`)
	policy := m.ID(policies, `{"name":"counted","policyValues":[{"id":`+site+`},{"id":`+dash+`},{"id":`+counter+`}]}`)
	on(policy, zone, other)
	makes(zone, "ber-#", "ber-010")
	makes(other, "PAR-#", "PAR-015") // one counter for all
	id := makes(zone, "ber-#", "ber-020")
	m.Refused(400, "NamingPolicyViolation", "counted", "POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"lon-#","text":"t"}`)
	m.Want(200, "POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"ber-#","text":"t"}`, "x-portolan-dry-run: true")
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+id, "")
	makes(zone, "ber-#", "ber-025") // a deleted number is not used again, and a dry run uses none
	m.Undo(m.LastTransaction())
	makes(zone, "ber-#", "ber-030") // nor is an undone one
	first := m.LastTransaction()
	makes(zone, "ber-#", "ber-035")
	m.Undo(first) // allowed: no later change depends on it
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"BER-040","text":"t"}`)
	makes(zone, "ber-#", "ber-045") // a name that is there is passed over
	m.Want(200, "PATCH", policies+"/"+policy, `{"policyValues":[{"id":`+site+`},{"id":`+dash+`},{"id":`+again+`}]}`, apitest.MergePatch)
	makes(zone, "par-#", "par-9")
	gone := makes(zone, "par-#", "par-a")
	makes(zone, "par-#", "par-b")
	makes(other, "par-#", "par-9")
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+gone, "")
	makes(zone, "Par-#", "Par-a")
	m.Want(200, "PATCH", policies+"/"+policy, `{"policyValues":[{"id":`+ever+`},{"id":`+dash+`},{"id":`+site+`}]}`, apitest.MergePatch)
	makes(zone, "#-ber", "0-ber")
	gone = makes(zone, "#-ber", "1-ber")
	makes(zone, "#-ber", "2-ber")
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+gone, "")
	makes(zone, "#-ber", "3-ber")
	makes(zone, "#-par", "0-par")
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"9223372036854775807-par","text":"t"}`, "x-bcn-override-naming-policy: true")
	// A name that changes is made as well; what keeps its name is left alone.
	changed := makes(zone, "7-ber", "7-ber")
	if r := m.Want(200, "PATCH", "/api/v2/resourceRecords/"+changed, `{"name":"#-par"}`, apitest.MergePatch); r.Text("name") != "1-par" {
		t.Errorf("another name is %s", r.Body)
	}
	if r := m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords?fields=name", `[{"type":"TXTRecord","name":"#-par","text":"t"},{"type":"TXTRecord","name":"#-par","text":"t"}]`); !strings.Contains(string(r.Body),
		`2-par`) || !strings.Contains(string(r.Body), `3-par`) {
		t.Errorf("two at a time are %s", r.Body)
	}
	m.Verify()
}
