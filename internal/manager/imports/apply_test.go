package imports_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// TestApply checks that resources equal the applied document afterwards, and that a second time changes nothing. Resources with the tag
// that are not in the document are deleted.
func TestApply(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	m.ID("/api/v2/configurations/"+configuration+"/views", `{"type":"View","name":"internal"}`)
	group := m.ID("/api/v2/tagGroups", `{"name":"owners"}`)
	m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"north"}`)
	plan := func(rows string) string {
		return `{"into":"configurations/main","defaults":{"view":"internal"},"tag":"tags/north","prune":true,"resources":[` + rows + `]}`
	}
	const block, network = `{"type":"IPv4Block","range":"10.0.0.0/8","name":"site"}`, `{"type":"IPv4Network","range":"10.1.0.0/24","name":"office","location":"NO"}`
	const address = `{"type":"IPv4Address","address":"10.1.0.10","name":"printer","state":"STATIC","macAddress":"00:00:5e:00:53:01"}`
	const zone, host = `{"type":"Zone","absoluteName":"example.net"}`, `{"type":"HostRecord","absoluteName":"www.example.net","addresses":["10.1.0.10","10.1.0.11"]}`
	const alias = `{"type":"AliasRecord","absoluteName":"web.example.net","linkedRecord":"www.example.net"}`
	all := plan(strings.Join([]string{block, network, address, zone, host, alias}, ","))
	// Their order does not matter.
	turned := m.Want(200, "POST", "/api/v2/apply", plan(strings.Join([]string{alias, host, zone, address, network, block}, ",")),
		"x-portolan-dry-run: true")
	if turned.Text("resource.created") != "6" || turned.Text("resource.resources.0.key") != "web.example.net" {
		t.Errorf("turned around, it is %s", turned.Body)
	}
	dry := m.Want(200, "POST", "/api/v2/apply", all, "x-portolan-dry-run: true")
	if dry.Text("resource.created") != "6" || dry.Text("dryRun") != "true" {
		t.Fatalf("tried, it is %s", dry.Body)
	}
	m.Want(200, "GET", "/api/v2/blocks", "")
	r := m.Want(200, "POST", "/api/v2/apply", all)
	if r.Text("created") != "6" || r.Text("resources.4.key") != "www.example.net" {
		t.Fatalf("it is %s", r.Body)
	}
	if got := m.Want(200, "GET", "/api/v2/networks?filter=range:'10.1.0.0/24'", ""); got.Text("data.0.location.code") == "" &&
		got.Text("data.0.location.id") == "" {
		t.Errorf("the network is %s", got.Body)
	}
	if r = m.Want(200, "POST", "/api/v2/apply", all); r.Text("unchanged") != "6" || r.Text("changed") != "0" || r.Get("transaction") != nil {
		t.Errorf("a second time it is %s", r.Body)
	}
	// One changes, one goes, one host gets another address.
	changed := plan(strings.Join([]string{block, strings.Replace(network, "office", "lab", 1), address, zone, strings.Replace(host, `,"10.1.0.11"`, `,"10.1.0.12"`, 1)}, ","))
	r = m.Want(200, "POST", "/api/v2/apply", changed)
	if r.Text("changed") != "2" || r.Text("deleted") != "1" || r.Text("resources.1.changes.0.before") != "office" ||
		r.Text("resources.1.changes.0.after") != "lab" {
		t.Errorf("changed, it is %s", r.Body)
	}
	if n := m.Want(200, "GET", "/api/v2/resourceRecords?total=true&filter=type:'AliasRecord'", "").Text("totalCount"); n != "0" {
		t.Errorf("%s aliases are left", n)
	}
	// All of it is one transaction.
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+r.Text("transaction")+`}`)
	if r = m.Want(200, "POST", "/api/v2/apply", all); r.Text("unchanged") != "6" {
		t.Errorf("after the undo it is %s", r.Body)
	}
	m.Verify()
	// References show names, before and after.
	moved := strings.Replace(network, `"location":"NO"`, `"location":"SE"`, 1)
	r = m.Want(200, "POST", "/api/v2/apply", plan(strings.Join([]string{block, moved, address, zone, host, alias}, ",")),
		"x-portolan-dry-run: true")
	if at := "resource.resources.1.changes.0."; r.Text(at+"before.name") != "Norway" || r.Text(at+"before.code") != "NO" ||
		r.Text(at+"after.code") != "SE" || r.Text(at+"after.name") != "Sweden" {
		t.Errorf("another location is %s", r.Body)
	}

	// Impossible changes are refused, each with its place, and change nothing.
	for wrong, field := range map[string]string{
		plan(strings.Replace(network, `"location":"NO"`, `"location":{"id":999999}`, 1)): "resources[0].location",
		plan(`{"range":"10.0.0.0/8"}`):                                                            "resources[0].type",
		plan(`{"type":"Nonsense"}`):                                                               "resources[0].type",
		plan(block + `,{"type":"IPv4Network","range":"11.0.0.0/24"}`):                             "resources[1]",
		plan(block + `,` + block):                                                                 "resources[1]",
		plan(`{"type":"IPv4Network","range":"10.2.0.0/24","location":"locations/nowhere"}`):       "resources[0].location",
		plan(`{"type":"IPv4Network","id":7,"range":"10.2.0.0/24"}`):                               "resources[0].id",
		plan(`{"type":"Tag","name":"x","in":"tagGroups/nothing"}`):                                "resources[0].in",
		`{"resources":[],"prune":true}`:                                                           "prune",
		`{"resources":[],"tag":"tags/none"}`:                                                      "tag",
		`{"resources":{}}`:                                                                        "resources",
		`{"into":"configurations/other","resources":[{"type":"IPv4Block","range":"10.0.0.0/8"}]}`: "into",
		strings.Replace(all, `"prune":true`, `"action":"CREATE"`, 1):                              "resources[0]",
		strings.Replace(all, `"prune":true`, `"action":"MAKE"`, 1):                                "action",
		`{"action":"UPDATE","resources":[{"type":"IPv4Block","range":"12.0.0.0/8"}]}`:             "resources[0]",
		`{"what":1,"resources":[]}`:                                                               "what",
		`{}`:                                                                                      "resources",
	} {
		r := m.Do("POST", "/api/v2/apply", wrong)
		if r.StatusCode < 400 || r.StatusCode > 409 || !strings.Contains(r.Text("fields"), field) {
			t.Errorf("%s: %d %s, want one that names %s", wrong, r.StatusCode, r.Body, field)
		}
	}
	m.Want(405, "GET", "/api/v2/apply", "")
	if r = m.Want(200, "POST", "/api/v2/apply", all); r.Text("unchanged") != "6" {
		t.Errorf("behind what was refused it is %s", r.Body)
	}
}

// TestApplyTags checks that tags are set, and tagged resources deleted, only within the rights of the caller. Resources in the document are
// never deleted.
func TestApplyTags(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"2024"}`)
	m.ID("/api/v2/tagGroups", `{"name":"owners"}`)
	group := m.Want(200, "GET", "/api/v2/tagGroups", "").Text("data.0.id")
	m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"north"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/24","name":"office"}`)
	document := func(prune bool, rows string) string {
		return fmt.Sprintf(`{"into":"configurations/2024","tag":"tags/north","prune":%v,"resources":[%s]}`, prune, rows)
	}
	const office = `{"type":"IPv4Network","range":"10.1.0.0/24"}`
	analyst, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "reader", Role: authz.Analyst})
	if err != nil {
		t.Fatal(err)
	}
	m.Refused(403, "AccessDenied", "may only read", "POST", "/api/v2/apply", document(false, office), "Authorization: Bearer "+analyst)
	if n := m.Want(200, "GET", "/api/v2/networks/"+network+"/tags", "").Text("count"); n != "0" {
		t.Errorf("who may only read gave it %s tags", n)
	}
	m.ID("/api/v2/users", `{"name":"ada","email":"a@x","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	r := m.Do("POST", "/api/v2/apply", `{"tag":"tags/north","resources":[{"type":"User","name":"ada"}]}`, apitest.BasicAuth("ada", "a-long-password"))
	if r.StatusCode < 400 {
		t.Errorf("ada tags herself: %s", r.Body)
	}
	// The plan says that the tag is set.
	r = m.Want(200, "POST", "/api/v2/apply", document(false, `{"type":"IPv4Block","range":"10.0.0.0/8"},`+office), "x-portolan-dry-run: true")
	if r.Text("resource.changed") != "2" || r.Text("resource.resources.0.changes.0.field") != "tags" {
		t.Errorf("the plan is %s", r.Body)
	}
	m.Want(200, "POST", "/api/v2/apply", document(false, `{"type":"IPv4Block","range":"10.0.0.0/8"},`+office))
	// Parents of resources in the document stay.
	r = m.Want(200, "POST", "/api/v2/apply", document(true, office))
	if r.Text("deleted") != "0" || !strings.Contains(string(r.Body), "it contains resources of the document") {
		t.Errorf("with a network in a block that goes: %s", r.Body)
	}
	m.Want(200, "GET", "/api/v2/blocks/"+block, "")
	m.Want(200, "GET", "/api/v2/networks/"+network, "")
	// A resource that is to be pruned and conflicts with the document is deleted first: a range that has moved.
	const ranges = office + `,{"type":"IPv4DHCPRange","range":"10.1.0.%s"}`
	m.Want(200, "POST", "/api/v2/apply", document(false, fmt.Sprintf(ranges, "100-10.1.0.120")))
	m.Refused(400, "IpRangeOverlapsSiblings", "overlaps", "POST", "/api/v2/apply", document(false, fmt.Sprintf(ranges, "90-10.1.0.110")))
	r = m.Want(200, "POST", "/api/v2/apply", document(true, fmt.Sprintf(ranges, "90-10.1.0.110")))
	if r.Text("deleted") != "1" || r.Text("created") != "1" {
		t.Errorf("a range that has moved: %s", r.Body)
	}
	// The old range is kept if the new one is rejected for another reason.
	r = m.Want(200, "POST", "/api/v2/apply", strings.Replace(document(true, fmt.Sprintf(ranges, "95-10.1.1.5")), `"prune"`, `"skip":true,"prune"`, 1))
	if r.Text("deleted") != "0" || r.Text("refused.0.index") != "1" {
		t.Errorf("a range that cannot be: %s", r.Body)
	}
	m.ID("/api/v2/configurations", `{"name":"elsewhere"}`)
	r = m.Want(200, "POST", "/api/v2/apply", `{"into":"configurations/elsewhere","tag":"tags/north","prune":true,"resources":[]}`)
	if r.Text("deleted") != "0" {
		t.Errorf("a resource of another configuration is deleted: %s", r.Body)
	}
	m.Want(200, "POST", "/api/v2/apply", document(true, office))
	at := m.Want(200, "GET", "/api/v2/networks?filter=range:'10.1.0.0/24'", "").Text("data.0.id")
	m.ID("/api/v2/networks/"+at+"/addresses", `{"type":"IPv4Address","address":"10.1.0.77","state":"STATIC"}`)
	r = m.Want(200, "POST", "/api/v2/apply", document(true, ""))
	if r.Text("deleted") != "1" || !strings.Contains(string(r.Body), "resources below it or dependent on it") ||
		!strings.Contains(string(r.Body), "including resources without the tag: ") || !strings.Contains(string(r.Body), "IPv4Address 10.1.0.77") {
		t.Errorf("all is pruned: %s", r.Body)
	}
	got := m.Want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "").Text("data.0.description")
	if got != "Applied 0 resources, and deleted other resources with the tag north" {
		t.Errorf("the history says %q", got)
	}
	m.Verify()
}

// TestApplySplitNetwork prunes a network that was split at the source, although it contains addresses of the document.
func TestApplySplitNetwork(t *testing.T) {
	m := start(t)
	m.ID("/api/v2/configurations", `{"name":"main"}`)
	m.ID("/api/v2/tagGroups", `{"name":"owners"}`)
	m.ID("/api/v2/tagGroups/"+m.Want(200, "GET", "/api/v2/tagGroups", "").Text("data.0.id")+"/tags", `{"name":"north"}`)
	document := func(prune bool, networks ...string) string {
		rows := `{"type":"IPv4Block","range":"10.0.0.0/8"}`
		for _, one := range networks {
			rows += `,{"type":"IPv4Network","range":"` + one + `"}`
		}
		return fmt.Sprintf(`{"into":"configurations/main","tag":"tags/north","prune":%v,"skip":true,"resources":[%s%s]}`, prune, rows,
			`,{"type":"IPv4Address","address":"10.1.0.20","state":"STATIC","name":"printer"}`)
	}
	networks := func() string {
		var all []string
		r := m.Want(200, "GET", "/api/v2/networks?fields=range&orderBy=range", "")
		for i := range r.Count() {
			all = append(all, r.Text(fmt.Sprintf("data.%d.range", i)))
		}
		return strings.Join(all, " ")
	}
	m.Want(200, "POST", "/api/v2/apply", document(false, "10.1.0.0/24", "10.2.0.0/24"))
	for _, c := range []struct{ rows, there string }{
		{"10.1.0.0/25 10.1.0.128/25 10.2.0.0/24", "10.1.0.0/25 10.1.0.128/25 10.2.0.0/24"},
		{"10.1.0.0/23 10.2.0.0/24", "10.1.0.0/23 10.2.0.0/24"},
	} {
		before, rows := networks(), strings.Fields(c.rows)
		r := m.Want(200, "POST", "/api/v2/apply", document(false, rows...))
		if r.Text("refused.0.code") != "IpRangeOverlapsSiblings" || networks() != before {
			t.Errorf("%s without prune: %s", c.rows, r.Body)
		}
		if r = m.Want(200, "POST", "/api/v2/apply", document(true, rows...), "x-portolan-dry-run: true"); networks() != before ||
			r.Text("resource.deleted") == "0" {
			t.Errorf("%s, tried: %s", c.rows, r.Body)
		}
		if r = m.Want(200, "POST", "/api/v2/apply", document(true, rows...)); networks() != c.there || r.Text("refused.0.code") != "" {
			t.Errorf("%s: there are %s: %s", c.rows, networks(), r.Body)
		}
		if n := m.Want(200, "GET", "/api/v2/addresses?filter=address:'10.1.0.20'%20and%20name:'printer'", "").Text("count"); n != "1" {
			t.Errorf("%s: %s addresses", c.rows, n)
		}
	}
	// A network that conflicts with no row of the document is kept, also if a row is rejected for another reason.
	r := m.Want(200, "POST", "/api/v2/apply", document(true, "10.2.0.0/24", "11.0.0.0/24"))
	if networks() != "10.1.0.0/23 10.2.0.0/24" || r.Text("deleted") != "0" {
		t.Errorf("there are %s: %s", networks(), r.Body)
	}
	m.Verify()
}

// TestApplyChangesTheKindOfAName prunes an alias whose name becomes a host, which is refused half done; nothing goes where another
// resource is refused. A resource with the member tag false does not get the tag.
func TestApplyChangesTheKindOfAName(t *testing.T) {
	m := start(t)
	m.ID("/api/v2/configurations", `{"name":"main"}`)
	m.ID("/api/v2/configurations/"+m.Want(200, "GET", "/api/v2/configurations", "").Text("data.0.id")+"/views", `{"name":"v"}`)
	m.ID("/api/v2/tagGroups", `{"name":"owners"}`)
	m.ID("/api/v2/tagGroups/"+m.Want(200, "GET", "/api/v2/tagGroups", "").Text("data.0.id")+"/tags", `{"name":"north"}`)
	document := func(prune bool, rows ...string) string {
		rows = append(rows, `{"type":"IPv4Block","range":"10.0.0.0/8","tag":false}`, `{"type":"IPv4Network","range":"10.41.0.0/16"}`,
			`{"type":"Zone","absoluteName":"a.example"}`, `{"type":"HostRecord","absoluteName":"www.a.example","addresses":["10.41.1.5"]}`)
		return fmt.Sprintf(`{"into":"configurations/main","defaults":{"view":"v"},"tag":"tags/north","prune":%v,"skip":true,"resources":[%s]}`,
			prune, strings.Join(rows, ","))
	}
	const alias, host = `{"type":"AliasRecord","absoluteName":"smtp.a.example","linkedRecord":"www.a.example"}`,
		`{"type":"HostRecord","absoluteName":"smtp.a.example","addresses":["10.41.1.6"]}`
	m.Want(200, "POST", "/api/v2/apply", document(false, alias))
	r := m.Want(200, "POST", "/api/v2/apply", document(true, host, `{"type":"IPv4Network","range":"11.0.0.0/24"}`))
	if r.Text("deleted") != "0" || r.Text("refused.1.index") != "1" || !strings.Contains(string(r.Body), `"did":"ABSENT"`) {
		t.Errorf("with a resource that is refused: %s", r.Body)
	}
	r = m.Want(200, "POST", "/api/v2/apply", document(true, host))
	if r.Text("deleted") != "1" || r.Text("created") != "1" || r.Text("refused.0.code") != "" {
		t.Errorf("an alias becomes a host: %s", r.Body)
	}
	r = m.Want(200, "POST", "/api/v2/apply", document(true, alias))
	if r.Text("deleted") != "1" || r.Text("created") != "1" || r.Text("refused.0.code") != "" {
		t.Errorf("a host becomes an alias: %s", r.Body)
	}
	block := m.Want(200, "GET", "/api/v2/blocks", "").Text("data.0.id")
	if n := m.Want(200, "GET", "/api/v2/blocks/"+block+"/tags", "").Text("count"); n != "0" {
		t.Errorf("a resource that says otherwise gets %s tags", n)
	}
	m.Refused(400, "InvalidResourceFieldValue", "tag: must be true or false", "POST", "/api/v2/apply",
		`{"resources":[{"type":"IPv4Block","range":"10.0.0.0/8","tag":"north"}]}`)
	m.Verify()
}

// TestApplyRefuses checks that misspelled fields, numbers in place of names, and wrong types in a document are refused. Chains of
// references in either order are fast.
func TestApplyRefuses(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	view := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"in"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"lab.example"}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"t","text":"x"}`)
	document := func(rows string) string { return `{"into":"configurations/main","resources":[` + rows + `]}` }
	for wrong, field := range map[string]string{
		document(`{"type":"IPv4Block","range":"10.0.0.0/8","nmae":"x"}`):                                                             "resources[0].nmae",
		`{"into":"configurations/nowhere","resources":[]}`:                                                                           "into",
		`{"into":"configurations","resources":[]}`:                                                                                   "into",
		`{"action":"NONSENSE","resources":[]}`:                                                                                       "action",
		`{"tag":"tags/x","prune":true,"resources":null}`:                                                                             "resources",
		`{"defaults":{"veiw":"in"},"resources":[{"type":"Configuration","name":"x"}]}`:                                               "defaults.veiw",
		document(`{"type":"Device","name":"` + configuration + `"},{"type":"Device","name":"y","location":"` + configuration + `"}`): "resources[1].location",
		document(`{"type":"Tag","name":"x"}`):                                                                                        "resources[0].type",
	} {
		if r := m.Do("POST", "/api/v2/apply", wrong); r.StatusCode < 400 || r.StatusCode > 409 || !strings.Contains(r.Text("fields"), field) {
			t.Errorf("%s: %d %s, want one that names %s", wrong, r.StatusCode, r.Body, field)
		}
	}
	m.Refused(400, "InvalidHeaderValue", "has secrets", "POST", "/api/v2/apply", `{"resources":[{"type":"User","name":"zed","email":"z@x",`+
		`"accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}]}`, "Idempotency-Key: k")
	// A secret that no other answer shows is in this one, unless it is only tried; and nothing that has one is remembered.
	key := document(`{"type":"TSIGKey","name":"dhcp","algorithm":"SHA256","length":256,"in":"configurations/main"}`)
	m.Refused(400, "InvalidHeaderValue", "has secrets", "POST", "/api/v2/apply", key, "Idempotency-Key: k")
	if r := m.Want(200, "POST", "/api/v2/apply", key, "x-portolan-dry-run: true"); strings.Contains(string(r.Body), "once") {
		t.Errorf("what is tried shows a secret: %s", r.Body)
	}
	for _, want := range []int{44, 0, 44} { // a secret in base64, when it is made, left, and made anew
		r := m.Want(200, "POST", "/api/v2/apply", key)
		if len(r.Text("resources.0.once.privateKey")) != want {
			t.Errorf("the secret is not of %d characters: %s", want, r.Body)
		}
		if want == 0 {
			key = strings.Replace(key, `"name"`, `"state":"REGENERATE","name"`, 1)
		}
	}
	// Two of a kind without names of their own are two.
	const records = `{"type":"TXTRecord","name":"t","text":"one","in":"zones/lab.example"},{"type":"TXTRecord","name":"t","text":"two","in":"zones/lab.example"}`
	if r := m.Want(200, "POST", "/api/v2/apply", document(records)); r.Text("created") == "0" {
		t.Errorf("two texts: %s", r.Body)
	}
	if r := m.Want(200, "POST", "/api/v2/apply", document(records)); r.Text("unchanged") != "2" {
		t.Errorf("two texts, again: %s", r.Body)
	}
	var chain []string
	for i := 300; i > 0; i-- {
		chain = append(chain, fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.%d.0/24"}`, i/250, i%250))
	}
	chain = append(chain, `{"type":"IPv4Block","range":"10.0.0.0/16"}`, `{"type":"IPv4Block","range":"10.1.0.0/16"}`)
	began := time.Now()
	if r := m.Want(200, "POST", "/api/v2/apply", document(strings.Join(chain, ","))); r.Text("created") != "302" {
		t.Errorf("in the wrong order: %.200s", r.Body)
	}
	t.Logf("in the wrong order it takes %v", time.Since(began))
	m.Verify()
}

// TestApplySkipsHalfDone checks that a resource is skipped if it is refused after a part of it was written. The others are applied.
func TestApplySkipsHalfDone(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"inside"}`)
	r := m.Want(200, "POST", "/api/v2/apply", `{"into":"configurations/main","defaults":{"view":"inside"},"skip":true,"resources":[
		{"type":"Zone","absoluteName":"example.org"},
		{"type":"AliasRecord","absoluteName":"example.org","linkedRecord":"elsewhere.example.net"},
		{"type":"TXTRecord","absoluteName":"a.example.org","text":"one"},
		{"type":"AliasRecord","absoluteName":"a.example.org","linkedRecord":"elsewhere.example.com"},
		{"type":"AliasRecord","absoluteName":"b.example.org","linkedRecord":"elsewhere.example.com"},
		{"type":"AliasRecord","absoluteName":"b.example.org","linkedRecord":"third.example.com"}]}`, "x-bcn-link-to-external-host: true")
	if r.Text("created") != "3" || r.Text("refused.0.index") != "1" || r.Text("refused.1.index") != "3" || r.Text("refused.2.index") != "5" {
		t.Errorf("it answers %s", r.Body)
	}
	m.Verify()
}

// TestApplyZonesByName creates zones in a view by their names alone, also of types without an absolute name.
func TestApplyZonesByName(t *testing.T) {
	m := startConcurrent(t)
	configuration, view, _, _, _ := m.Basics()
	in := `{"into":"views/` + view + `","action":"CREATE","resources":[`
	m.Refused(400, "MissingRequiredField", "responsePolicyZoneType", "POST", "/api/v2/apply", in+`{"type":"ResponsePolicyZone","name":"rpz"}]}`)
	for _, zone := range []string{`{"type":"ResponsePolicyZone","name":"rpz","responsePolicyZoneType":"FEED","feedCategories":["ads"]}`, `{"type":"Zone","name":"lab"}`} {
		m.Want(200, "POST", "/api/v2/apply", in+zone+`]}`)
	}
	if r := m.Want(200, "GET", "/api/v2/views/"+view+"/zones?"+apitest.Filter("name:'lab'"), ""); r.Text("data.0.absoluteName") != "lab" {
		t.Errorf("the zone is %s", r.Body)
	}
	m.ID("/api/v2/configurations/"+configuration+"/views", `{"type":"View","name":"second"}`)
	in = strings.Replace(in, "views/"+view, "configurations/"+configuration, 1)
	m.Refused(400, "MissingRequiredField", "several views", "POST", "/api/v2/apply", in+`{"type":"Zone","name":"two"}]}`)
	m.Want(200, "POST", "/api/v2/apply", in+`{"type":"Zone","name":"two","view":{"name":"second"}}]}`)
}
