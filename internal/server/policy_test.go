package server

import "testing"

// A naming policy says how names are composed, on what it is put on and below it where it is inherited.
func TestNamingPolicies(t *testing.T) {
	m := startManager(t)
	_, view, zone, _, _ := m.basics()
	lab := m.id("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"lab"}`)
	values, policies := "/api/v2/namingPolicyValues", "/api/v2/namingPolicies"
	site := m.id(values, `{"type":"NamingPolicyRequiredValue","name":"site","elements":[{"name":"Berlin","value":"ber"},{"name":"Paris","value":"par"}]}`)
	dash := m.id(values, `{"type":"NamingPolicyConnectorValue","name":"dash","connector":"-"}`)
	role := m.id(values, `{"type":"NamingPolicyTextValue","name":"role","textType":"REGULAR_EXPRESSION","regularExpression":"[a-z]{2,3}"}`)
	count := m.id(values, `{"type":"NamingPolicyIncrementalValue","name":"count","incrementalRole":"COUNTER","incrementType":"DECIMAL","paddingType":"SIMPLE","paddingLength":3,"sequenceStart":10,"sequenceIncrement":5}`)
	floor := m.id(values, `{"type":"NamingPolicyIntegerValue","name":"floor","min":1,"max":9}`)
	bad := m.id("/api/v2/namingPolicyRestrictions",
		`{"name":"words","restrictions":[{"value":"tmp","matchType":"Any"},{"value":"ber-db-015","matchType":"Exact"}]}`)
	m.refused(400, "InvalidField", "elements", "POST", values, `{"type":"NamingPolicyRequiredValue","name":"x","elements":[]}`)
	m.refused(400, "InvalidField", "elements", "POST", values, `{"type":"NamingPolicyRequiredValue","name":"x","elements":{"a":1}}`)
	m.refused(400, "InvalidField", "regularExpression", "POST", values,
		`{"type":"NamingPolicyTextValue","name":"x","textType":"REGULAR_EXPRESSION","regularExpression":"("}`)
	m.refused(400, "InvalidField", "min", "POST", values, `{"type":"NamingPolicyIntegerValue","name":"x","min":5,"max":4}`)
	m.refused(400, "InvalidField", "matchType", "POST", "/api/v2/namingPolicyRestrictions",
		`{"name":"x","restrictions":[{"value":"a","matchType":"Some"}]}`)
	policy := m.id(policies, `{"name":"servers","policyValues":[{"id":`+site+`},{"id":`+dash+`},{"id":`+role+`},{"id":`+dash+`},{"id":`+count+`}],"policyRestrictions":[{"id":`+bad+`}]}`)
	m.refused(409, "ResourceAlreadyExists", "servers", "POST", policies, `{"name":"servers"}`)
	m.refused(404, "InlinedResourceNotFound", "NamingPolicy", "POST", policies, `{"name":"x","policyValues":[{"id":`+zone+`}]}`)
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	record := func(name string) string { return `{"type":"TXTRecord","name":"` + name + `","text":"t"}` }
	m.id(records, record("anything"))
	r := m.want(201, "POST", "/api/v2/zones/"+zone+"/namingPolicies",
		`{"id":`+policy+`,"appliedTypes":["TXTRecord","Zone"],"inheritanceEnabled":false}`)
	if r.text("appliedTypes") != "[TXTRecord Zone]" || r.text("inheritanceEnabled") != "false" {
		t.Errorf("put on the zone it is %s", r.body)
	}
	m.refused(400, "InvalidField", "appliedTypes", "POST", "/api/v2/zones/"+lab+"/namingPolicies",
		`{"id":`+policy+`,"appliedTypes":["Nonsense"]}`)
	m.id(records, record("BER-db-020"))
	for _, name := range []string{"lon-db-015", "ber-database-015", "ber-db-15", "ber-db-012", "ber-db-005", "ber-tmp-010", "BER-DB-015",
		"ber-db-015x"} {
		m.refused(400, "NamingPolicyViolation", "servers", "POST", records, record(name))
	}
	m.id(records, record("lon-db-015"), "x-bcn-override-naming-policy: true")
	m.id(records, `{"type":"GenericRecord","name":"other","recordType":"A","rdata":"192.0.2.1"}`) // a type it is not for
	m.id(records, `{"type":"TXTRecord","name":null,"text":"t"}`)                                  // the zone's own name
	m.refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"sub"}`)
	m.id("/api/v2/zones/"+lab+"/resourceRecords", record("below"))
	m.want(200, "PATCH", policies+"/"+policy, `{"inheritanceEnabled":true}`, mergePatch)
	m.refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/zones/"+lab+"/resourceRecords", record("below2"))
	// A record keeps the name that it had; another one has to fit.
	old := m.want(200, "GET", "/api/v2/resourceRecords?filter=name:'anything'", "").text("data.0.id")
	m.want(200, "PATCH", "/api/v2/resourceRecords/"+old, `{"text":"changed"}`, mergePatch)
	m.refused(400, "NamingPolicyViolation", "servers", "PATCH", "/api/v2/resourceRecords/"+old, `{"name":"else"}`, mergePatch)
	m.want(200, "PATCH", "/api/v2/resourceRecords/"+old, `{"name":"par-ab-025"}`, mergePatch)
	// What is moved into the zone has to fit, too, unless that is said.
	top := m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"elsewhere"}`)
	stray := m.id("/api/v2/zones/"+top+"/resourceRecords", record("stray"))
	lone := m.id("/api/v2/zones/"+top+"/zones", `{"type":"Zone","name":"lone"}`)
	m.refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/resourceRecords/"+stray+"/moves",
		`{"type":"DNSMove","absoluteName":"stray.example.com"}`)
	m.refused(400, "NamingPolicyViolation", "servers", "POST", "/api/v2/zones/"+lone+"/moves",
		`{"type":"DNSMove","absoluteName":"lone.example.com"}`)
	override := "x-bcn-override-naming-policy: true"
	m.want(201, "POST", "/api/v2/resourceRecords/"+stray+"/moves", `{"type":"DNSMove","absoluteName":"stray.example.com"}`, override)
	m.want(201, "POST", "/api/v2/zones/"+lone+"/moves", `{"type":"DNSMove","absoluteName":"lone.example.com"}`, override)
	// Other values, in another order.
	m.want(200, "PATCH", policies+"/"+policy, `{"policyValues":[{"id":`+floor+`},{"id":`+site+`}]}`, mergePatch)
	m.id(records, record("7ber"))
	m.refused(400, "NamingPolicyViolation", "more than 9", "POST", records, record("10ber"))
	if r := m.want(200, "GET", policies+"/"+policy+"/policyValues", ""); r.text("count") != "2" {
		t.Errorf("its values are %s", r.body)
	}
	if r := m.want(200, "GET", policies+"/"+policy+"/appliedResources", ""); r.text("data.0.id") != zone {
		t.Errorf("it is on %s", r.body)
	}
	m.verify() // the order of the values is no field, and kept
	m.want(204, "DELETE", values+"/"+floor, "")
	m.id(records, record("ber"))
	m.want(204, "DELETE", "/api/v2/zones/"+zone+"/namingPolicies/"+policy, "")
	m.id(records, record("free"))
	m.want(201, "POST", "/api/v2/views/"+view+"/namingPolicies", `{"id":`+policy+`}`)
	m.refused(400, "NamingPolicyViolation", "servers", "POST", records, record("free2"))
	m.want(204, "DELETE", policies+"/"+policy, "")
	m.id(records, record("free2"))
	m.verify()
}
