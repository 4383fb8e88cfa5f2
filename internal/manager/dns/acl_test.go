package dns_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestAccessControlLists checks that access control lists name addresses, prefixes, keys and other lists. A list shows the new name of a
// renamed element.
func TestAccessControlLists(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	lists := "/api/v2/configurations/" + configuration + "/accessControlLists"
	if r := m.Want(200, "GET", lists+"?fields=name&orderBy=asc(name)&"+apitest.Filter("predefined:true"),
		""); !strings.Contains(string(r.Body),
		`[{"name":"any"},{"name":"localhost"},{"name":"localnets"},{"name":"none"}]`) {
		t.Errorf("the lists that are always there: %s", r.Body)
	}
	key := m.ID("/api/v2/configurations/"+configuration+"/signingKeys", `{"type":"TSIGKey","name":"k1","algorithm":"SHA256","length":256}`)
	inner := m.ID(lists, `{"name":"inner","matchElements":["10.0.0/24","!10.0.0.5","2001:db8::/32","any"]}`)
	outer := m.ID(lists, `{"name":"outer","matchElements":["! inner","key k1","localhost"]}`)
	if got := m.Want(200, "GET", "/api/v2/accessControlLists/"+inner, "").Text("matchElements.0"); got != "10.0.0/24" {
		t.Errorf("a short prefix became %s", got)
	}
	for body, want := range map[string]string{
		`{"name":"x","matchElements":[]}`:                     "400 EmptyFieldValue matchElements",
		`{"name":"x"}`:                                        "400 MissingRequiredField matchElements",
		`{"name":"x","matchElements":["10.0.0.0/33"]}`:        "400 InvalidResourceFieldValue entry 0",
		`{"name":"x","matchElements":["10.0.0.1/24"]}`:        "400 InvalidResourceFieldValue 10.0.0.0/24",
		`{"name":"x","matchElements":["any","nobody"]}`:       "404 InlinedResourceNotFound entry 1",
		`{"name":"x","matchElements":["key nokey"]}`:          "404 InlinedResourceNotFound nokey",
		`{"name":"x","matchElements":["key"]}`:                "400 InvalidResourceFieldValue entry 0",
		`{"name":"a b","matchElements":["any"]}`:              "400 InvalidResourceFieldValue name",
		`{"name":"10net","matchElements":["any"]}`:            "400 InvalidResourceFieldValue name",
		`{"name":"key","matchElements":["any"]}`:              "400 InvalidResourceFieldValue name",
		"{\"name\":\"a\u2028b\",\"matchElements\":[\"any\"]}": "400 InvalidResourceFieldValue name",
		`{"name":"ANY","matchElements":["any"]}`:              "409 ResourceAlreadyExists name",
		`{"name":"inner","matchElements":["any"]}`:            "409 ResourceAlreadyExists name",
		`{"name":"x","matchElements":["10.0.0.1; } evil"]}`:   "400 InvalidResourceFieldValue entry 0",
	} {
		parts := strings.SplitN(want, " ", 3)
		status := map[string]int{"400": 400, "404": 404, "409": 409}[parts[0]]
		m.Refused(status, parts[1], parts[2], "POST", lists, body)
	}
	m.Refused(400, "ResourceHasCircularReference", "matchElements", "PUT", "/api/v2/accessControlLists/"+inner,
		`{"name":"inner","matchElements":["outer"]}`)
	m.Refused(400, "ResourceHasCircularReference", "matchElements", "PUT", "/api/v2/accessControlLists/"+inner,
		`{"name":"inner","matchElements":["inner"]}`)
	any := m.Want(200, "GET", lists+"?"+apitest.Filter("name:'any'"), "").Text("data.0.id")
	m.Refused(403, "UpdateNotAllowed", "any", "PUT", "/api/v2/accessControlLists/"+any, `{"name":"any","matchElements":["none"]}`)
	m.Refused(403, "DeleteNotAllowed", "any", "DELETE", "/api/v2/accessControlLists/"+any, "")
	// Names follow.
	m.Want(200, "PATCH", "/api/v2/accessControlLists/"+inner, `{"name":"core"}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/signingKeys/"+key, `{"name":"k2"}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/accessControlLists/"+outer, ""); got.Text("matchElements.0") != "!core" ||
		got.Text("matchElements.1") != "key k2" {
		t.Errorf("after other names: %s", got.Body)
	}
	m.Refused(403, "ResourceInUse", "outer", "DELETE", "/api/v2/accessControlLists/"+inner, "")
	m.Refused(403, "ResourceInUse", "outer", "DELETE", "/api/v2/signingKeys/"+key, "")
	m.Want(204, "DELETE", "/api/v2/accessControlLists/"+outer, "")
	m.Want(204, "DELETE", "/api/v2/accessControlLists/"+inner, "")
	m.Want(204, "DELETE", "/api/v2/configurations/"+configuration, "")
	m.Verify()
}

// TestManyAccessControlLists checks that lists that refer to each other many times are each read once.
func TestManyAccessControlLists(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	lists := "/api/v2/configurations/" + configuration + "/accessControlLists"
	m.ID(lists, `{"name":"a0","matchElements":["any"]}`)
	m.ID(lists, `{"name":"b0","matchElements":["any"]}`)
	for i := range 40 {
		for _, name := range []string{"a", "b"} {
			m.ID(lists, fmt.Sprintf(`{"name":"%s%d","matchElements":["a%d","b%d"]}`, name, i+1, i, i))
		}
	}
	m.Verify()
}

// TestTSIGKeys checks that the secret of a key is shown only in the answer to its creation.
func TestTSIGKeys(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	keys := "/api/v2/configurations/" + configuration + "/signingKeys"
	made := m.Want(201, "POST", keys, `{"type":"TSIGKey","name":"k1","algorithm":"SHA256","length":256}`)
	secret := made.Text("privateKey")
	if data, err := base64.StdEncoding.DecodeString(secret); err != nil || len(data) != 32 || made.Text("state") != "GENERATED" ||
		made.Text("keyGenerationDateTime") == "" {
		t.Fatalf("the new key is %s", made.Body)
	}
	id := made.Text("id")
	for _, path := range []string{"/api/v2/signingKeys/" + id, keys, "/api/v2/transactions/" + m.LastTransaction() + "/operations",
		"/api/v2?limit=1000",
		"/api/v2/search?q=k1"} {
		if r := m.Want(200, "GET", path, ""); strings.Contains(string(r.Body), secret) || strings.Contains(string(r.Body), "$sealed") {
			t.Errorf("%s shows the secret: %s", path, r.Body)
		}
	}
	// A PUT of what was shown leaves the secret as it is, and shows nothing.
	shown := m.Want(200, "GET", "/api/v2/signingKeys/"+id, "")
	if r := m.Want(200, "PUT", "/api/v2/signingKeys/"+id, string(shown.Body)); r.Text("privateKey") != "" || r.Text("state") != "GENERATED" {
		t.Errorf("after a PUT: %s", r.Body)
	}
	again := m.Want(200, "PATCH", "/api/v2/signingKeys/"+id, `{"state":"REGENERATE"}`, apitest.MergePatch)
	if again.Text("privateKey") == "" || again.Text("privateKey") == secret || again.Text("state") != "GENERATED" {
		t.Errorf("made anew: %s", again.Body)
	}
	given := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef"))
	if r := m.Want(201, "POST", keys, `{"type":"TSIGKey","name":"k2","algorithm":"MD5","length":128,"privateKey":"`+given+`"}`); r.Text("privateKey") != given {
		t.Errorf("a secret that was given: %s", r.Body)
	}
	if r := m.Want(201, "POST", keys, `{"type":"TSIGKey","name":"k3","algorithm":"MD5","length":128,"state":"NOT_GENERATED"}`); r.Text("privateKey") != "" ||
		r.Text("state") != "NOT_GENERATED" {
		t.Errorf("a key without a secret: %s", r.Body)
	}
	for body, code := range map[string]string{
		`{"type":"TSIGKey","name":"x","algorithm":"SHA256","length":256,"privateKey":"!"}`:             "InvalidPrivateKeyValue",
		`{"type":"TSIGKey","name":"x","algorithm":"SHA256","length":256,"privateKey":"` + given + `"}`: "InvalidPrivateKeyValue",
		`{"type":"TSIGKey","name":"x","algorithm":"SHA3","length":256}`:                                "InvalidEnumValue",
		`{"type":"TSIGKey","name":"x","algorithm":"SHA1","length":600}`:                                "ValueOutsideRange",
		`{"type":"TSIGKey","name":"x y","algorithm":"SHA1","length":160}`:                              "InvalidResourceFieldValue",
		`{"type":"TSIGKey","name":"x","algorithm":"SHA1","length":160,"state":"REGENERATE"}`:           "InvalidEnumValue",
		`{"type":"KeySigningKey","name":"x"}`:                                                          "InvalidResourceType",
	} {
		m.Refused(400, code, "", "POST", keys, body)
	}
	m.Refused(400, "ConflictingResourceFieldValues", "state", "PATCH", "/api/v2/signingKeys/"+id, `{"state":"NOT_GENERATED"}`, apitest.MergePatch)
	taken := m.ID(keys, `{"type":"TSIGKey","name":"k4","algorithm":"MD5","length":"128"}`)
	if r := m.Want(200, "PATCH", "/api/v2/signingKeys/"+taken, `{"privateKey":""}`, apitest.MergePatch); r.Text("state") != "NOT_GENERATED" || r.Text("privateKey") != "" {
		t.Errorf("without its secret: %s", r.Body)
	}
	kept := m.Want(201, "POST", keys, `{"type":"TSIGKey","name":"k5","algorithm":"MD5","length":128}`, "Idempotency-Key: once")
	if !strings.Contains(kept.Header.Get("x-portolan-ignored"), "Idempotency-Key") {
		t.Errorf("an answer with a secret is kept: %s", kept.Header)
	}
	// An undo restores the secret.
	m.Want(204, "DELETE", "/api/v2/signingKeys/"+id, "")
	m.Undo(m.LastTransaction())
	if r := m.Want(200, "GET", "/api/v2/signingKeys/"+id, ""); r.Text("state") != "GENERATED" {
		t.Errorf("after the undo: %s", r.Body)
	}
	m.Verify()
}

// TestSigningPolicies checks that a zone or view gets keys with its signing policy, and loses them with the policy.
func TestSigningPolicies(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, network := m.Basics()
	body := strings.Replace(apitest.PolicyBody, "NAME", "standard", 1)
	policy := m.ID("/api/v2/signingPolicies", body)
	for _, c := range [][3]string{
		{`"ADDRESS_MANAGER"`, `"ENTRUST_HSM"`, "NoHsmConfiguration"},
		{`"P10D"`, `"P1D"`, "ConflictingResourceFieldValues"},
		{`"zoneSigningKeyAlgorithm":"ECDSAP256SHA256"`, `"zoneSigningKeyAlgorithm":"RSAMD5"`, "UnsupportedResourceFieldValue"},
		{`"zoneSigningKeyAlgorithm":"ECDSAP256SHA256"`, `"zoneSigningKeyAlgorithm":"RSASHA256"`, "ValueOutsideRange"},
		{`"P3D"`, `null`, "MissingRequiredField"},
		{`"P5D"`, `"P31D"`, "ConflictingResourceFieldValues"},
		{`"P30D"`, `"thirty days"`, "InvalidDurationValue"},
		{`"keySigningKeyAlgorithm":"ECDSAP256SHA256"`, `"keySigningKeyAlgorithm":"ED25519"`, "ConflictingResourceFieldValues"},
		{`"P365D"`, `"PT0.1S"`, "DurationValueOutsideRange"},
		{`"DOUBLE_SIGNING"`, `"DOUBLE_SIGNING","keySigningKeySigningPeriod":"P1D"`, "ConflictingResourceFieldValues"},
	} {
		m.Refused(400, c[2], "", "POST", "/api/v2/signingPolicies", strings.Replace(strings.Replace(body, c[0], c[1], 1), "standard", "x", 1))
	}
	applied := "/api/v2/signingPolicies/" + policy + "/appliedResources"
	m.Want(201, "POST", applied, `{"id":`+zone+`,"type":"Zone"}`)
	m.Want(201, "POST", applied, `{"id":`+network+`}`)
	if r := m.Want(200, "GET", applied+"?fields=id&orderBy=asc(id)", ""); r.Text("count") != "2" {
		t.Errorf("what it is applied to: %s", r.Body)
	}
	got := m.Want(200, "GET", "/api/v2/zones/"+zone, "")
	if got.Text("signed") != "true" || got.Text("signingPolicy.id") != policy {
		t.Errorf("the zone is %s", got.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/configurations/"+configuration, ""); r.Text("keyAutoRegenerationEnabled") != "true" {
		t.Errorf("the configuration is %s", r.Body)
	}
	keys := m.Want(200, "GET", "/api/v2/zones/"+zone+"/signingKeys?orderBy=asc(flags)", "")
	if keys.Text("count") != "2" || keys.Text("data.0.type") != "ZoneSigningKey" || keys.Text("data.1.flags") != "257" ||
		keys.Text("data.1.publicKey") == "" || keys.Text("data.0.privateKey") != "" || strings.Contains(string(keys.Body), "sealed") {
		t.Errorf("the keys are %s", keys.Body)
	}
	for path, name := range map[string]string{"zones/" + zone: "example.com", "networks/" + network: "0.0.10.in-addr.arpa"} {
		if r := m.Want(200, "GET", "/api/v2/"+path+"/signing", ""); r.Text("signed") != "true" || r.Text("zones.0.zone") != name ||
			r.Text("policy") != "standard" || r.Text("zones.0.keys.0.type") != "ZoneSigningKey" || r.Text("zones.0.keys.0.state") != "GENERATED" ||
			r.Text("zones.0.keys.0.signs") != "false" ||
			r.Text("zones.0.keys.0.waitsFor") != "its DNSKEY record must be deployed" ||
			r.Text("zones.0.keys.1.type") != "KeySigningKey" || r.Text("zones.0.parentHere") != "false" {
			t.Errorf("%s is signed by %s", path, r.Body)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/blocks/"+block+"/signing", ""); r.Text("signed") != "false" || r.Text("zones.0.keys.0.id") != "" {
		t.Errorf("a block that is not signed: %s", r.Body)
	}
	tag := keys.Text("data.1.keyTag") + keys.Text("data.1.publicKey")
	ksk := keys.Text("data.1.id")
	m.Want(200, "PATCH", "/api/v2/signingKeys/"+ksk, `{"state":"REGENERATE"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/signingKeys/"+ksk, ""); r.Text("keyTag")+r.Text("publicKey") == tag || r.Text("state") != "GENERATED" {
		t.Errorf("made anew: %s", r.Body)
	}
	m.Refused(403, "FieldUpdateNotAllowed", "ttl", "PATCH", "/api/v2/signingKeys/"+ksk, `{"ttl":"PT1H"}`, apitest.MergePatch)
	m.Refused(403, "ResourceInUse", "signs", "DELETE", "/api/v2/signingKeys/"+ksk, "")
	m.Refused(400, "SigningPolicyInUse", "", "DELETE", "/api/v2/signingPolicies/"+policy, "")
	m.Refused(400, "MissingRequiredField", "signingPolicy", "PATCH", "/api/v2/zones/"+zone, `{"signingPolicy":null,"signed":true}`, apitest.MergePatch)
	m.Refused(405, "MethodNotAllowed", "", "POST", "/api/v2/zones/"+zone+"/signingKeys", `{}`)
	m.Refused(400, "InvalidResourceFieldValue", "id", "POST", applied, `{"id":`+configuration+`}`)
	m.Want(204, "DELETE", applied+"/"+zone, "")
	if r := m.Want(200, "GET", "/api/v2/zones/"+zone+"/signingKeys", ""); r.Text("count") != "0" {
		t.Errorf("without a policy the keys are %s", r.Body)
	}
	m.Undo(m.LastTransaction())
	if r := m.Want(200, "GET", "/api/v2/zones/"+zone+"/signingKeys", ""); r.Text("count") != "3" {
		t.Errorf("after the undo the keys are %s", r.Body)
	}
	// Slow keys are generated outside of the transaction, also in batches.
	rsa := strings.NewReplacer("standard", "rsa", "ECDSAP256SHA256", "RSASHA256", `Length":256`, `Length":1024`).Replace(body)
	slow := m.ID("/api/v2/signingPolicies", rsa)
	view := m.Want(200, "GET", "/api/v2/configurations/"+configuration+"/views", "").Text("data.0.id")
	more := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"more.example"}`)
	part := `{"method":"PATCH","path":"zones/` + more + `","body":{"signingPolicy":{"id":` + slow + `}}},{"method":"PATCH","path":"zones/` + zone +
		`","body":{"signingPolicy":{"id":` + slow + `}}}`
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[`+part+`]}`)
	seen := map[string]bool{}
	for _, at := range []string{zone, more} {
		keys := m.Want(200, "GET", "/api/v2/zones/"+at+"/signingKeys", "")
		seen[keys.Text("data.0.publicKey")], seen[keys.Text("data.1.publicKey")] = true, true
		if keys.Text("data.0.length") != "1024" || keys.Text("data.0.algorithm") != "RSASHA256" {
			t.Errorf("the keys are %s", keys.Body)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d keys of four are different", len(seen))
	}
	m.Want(204, "DELETE", "/api/v2/zones/"+more, "")
	m.Want(204, "DELETE", "/api/v2/blocks/"+block, "")
	m.Want(204, "DELETE", "/api/v2/zones/"+zone, "")
	m.Want(204, "DELETE", "/api/v2/signingPolicies/"+policy, "")
	m.Verify()
}

// TestKerberos checks that realms have centers and principals, and that the password of a principal is never shown.
func TestKerberos(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	realms := "/api/v2/configurations/" + configuration + "/realms"
	realm := m.ID(realms, `{"name":"EXAMPLE.NET","domain":"example.net"}`)
	m.Refused(400, "InvalidFullyQualifiedDomainName", "domain", "POST", realms, `{"name":"X","domain":"a..b"}`)
	centers := "/api/v2/realms/" + realm + "/keyDistributionCenters"
	if r := m.Want(201, "POST", centers, `{"name":"one","host":"kdc.example.net"}`); r.Text("port") != "88" {
		t.Errorf("a center: %s", r.Body)
	}
	m.Refused(400, "InvalidIpAddressOrFullyQualifiedDomainNameValue", "host", "POST", centers, `{"name":"two","host":"a b"}`)
	m.Refused(400, "ValueLessThanMinimum", "port", "POST", centers, `{"name":"two","host":"10.0.0.1","port":0}`)
	principals := "/api/v2/realms/" + realm + "/servicePrincipals"
	made := m.Want(201, "POST", principals, `{"name":"DHCP/a.example.net","keyVersionNumber":1,"password":"top secret"}`)
	if strings.Contains(string(made.Body), "top secret") || made.Text("password") != "" {
		t.Errorf("the principal shows its password: %s", made.Body)
	}
	m.Want(200, "PATCH", "/api/v2/servicePrincipals/"+made.Text("id"), `{"password":"another"}`, apitest.MergePatch)
	m.Want(200, "PUT", "/api/v2/servicePrincipals/"+made.Text("id"), `{"name":"DHCP/a.example.net","keyVersionNumber":2}`)
	m.Want(200, "PUT", "/api/v2/servicePrincipals/"+made.Text("id"), string(made.Body))
	m.Refused(403, "ResourceInUse", "DHCP/a.example.net", "DELETE", "/api/v2/realms/"+realm, "")
	m.Refused(400, "MissingRequiredField", "password", "PATCH", "/api/v2/servicePrincipals/"+made.Text("id"), `{"password":""}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "name", "POST", principals, `{"name":"nobody","keyVersionNumber":1,"password":"x"}`)
	m.Verify()
}
