package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/published"
	"portolan/internal/testkit/apitest"
)

// TestLaterOperationsAreServed checks that the operations of release 9.6 are served, except for those in docs/status.md.
func TestLaterOperationsAreServed(t *testing.T) {
	a := declared(t)
	paths := served(t, a)
	total := 0
	var missing []string
	for _, o := range published.LaterOperations() {
		for _, c := range append(o.Collections, "")[:max(1, len(o.Collections))] {
			total++
			path := plain(strings.Replace(o.Path, "{collection}", c, 1))
			if !slices.Contains(paths[path], o.Method) {
				missing = append(missing, o.Method+" "+strings.TrimPrefix(path, Base+"/"))
			}
		}
	}
	t.Logf("release 9.6: %d of %d operations that it adds", total-len(missing), total)
	text, err := os.ReadFile("../../../docs/status.md")
	says := fmt.Sprintf("Of the %d operations that release 9.6 adds, %d are served.", total, total-len(missing))
	if len(missing) > 0 {
		says = strings.TrimSuffix(says, ".") + "; missing: " + strings.Join(missing, ", ") + "."
	}
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
		t.Errorf("%s docs/status.md differs (%v)", says, err)
	}
}

// TestFieldsOfTwoNames checks that a field that release 9.6 renames is shown, accepted and found by both names. Two different values are
// refused.
func TestFieldsOfTwoNames(t *testing.T) {
	m := startAlone(t)
	_, view, _, block, network := m.Basics()
	path := "/api/v2/networks/" + network
	both := func(want string) {
		t.Helper()
		if r := m.Want(200, "GET", path, ""); r.Text("pingBeforeAssignEnabled") != want || r.Text("pingBeforeAssignmentEnabled") != want {
			t.Errorf("it should be %q: %s", want, r.Body)
		}
	}
	m.Want(200, "PATCH", "/api/v2/blocks/"+block, `{"pingBeforeAssignmentEnabled":true}`, apitest.MergePatch)
	both("true") // from above
	m.Want(200, "PATCH", path, `{"pingBeforeAssignmentEnabled":false}`, apitest.MergePatch)
	both("false")
	whole := string(m.Want(200, "GET", path, "").Body)
	m.Want(200, "PUT", path, strings.Replace(whole, `"pingBeforeAssignEnabled":false`, `"pingBeforeAssignEnabled":true`, 1))
	both("true")
	whole = string(m.Want(200, "GET", path, "").Body)
	m.Want(200, "PUT", path, strings.Replace(whole, `"pingBeforeAssignmentEnabled":true`, `"pingBeforeAssignmentEnabled":false`, 1))
	both("false")
	m.Refused(400, "ConflictingResourceFieldValues", "pingBeforeAssignmentEnabled", "PATCH", path,
		`{"pingBeforeAssignEnabled":true,"pingBeforeAssignmentEnabled":null}`, apitest.MergePatch)
	m.Refused(400, "JsonDeserializationError", "pingBeforeAssignmentEnabled", "PATCH", path, `{"pingBeforeAssignmentEnabled":"maybe"}`, apitest.MergePatch)
	for _, name := range []string{"pingBeforeAssignEnabled", "pingBeforeAssignmentEnabled"} {
		if r := m.Want(200, "GET", "/api/v2/networks?"+filter(name+":false"), ""); r.Count() != 1 {
			t.Errorf("by %s are found %s", name, r.Body)
		}
	}
	// Fields with the same value in all resources of a type are found as well.
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"kinds.example"}`)
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	m.ID(records, `{"type":"TXTRecord","name":"a","text":"x"}`)
	m.ID(records, `{"type":"GenericRecord","name":"b","recordType":"TLSA","rdata":"3 1 1 AA"}`)
	for expr, want := range map[string]int{"recordType:'TXT'": 1, "recordType:'TLSA'": 1, "recordType:in('TXT','TLSA')": 2,
		"recordType:'MX'":      0,
		"recordType:ne('TXT')": 1, "recordType:contains('T')": 2, "recordType:'TXT' and name:'b'": 0} {
		if r := m.Want(200, "GET", records+"?"+filter(expr), ""); r.Count() != want {
			t.Errorf("%s finds %s", expr, r.Body)
		}
	}
	if r := m.Want(200, "GET", records+"?"+filter("name:'a'"), ""); r.Text("data.0.recordType") != "TXT" {
		t.Errorf("it is %s", r.Body)
	}
	m.Verify()
}

// TestMovesByType checks that moves of release 9.6 have the type of the moved resource, with its source and target.
func TestMovesByType(t *testing.T) {
	m := startAlone(t)
	_, view, _, _, network := m.Basics()
	was := m.Want(200, "GET", "/api/v2/networks/"+network, "").Text("range")
	moves := "/api/v2/networks/" + network + "/moves"
	m.Refused(400, "InvalidMoveDestination", "destination.range", "POST", moves, `{"type":"IPv4NetworkMove","destination":{"range":"10.0.128.0/25"}}`)
	m.Refused(400, "InvalidResourceFieldValue", "destination.range", "POST", moves, `{"type":"IPv4NetworkMove","destination":{"range":"everywhere"}}`)
	m.Refused(400, "MissingRequiredField", "destination.range", "POST", moves, `{"type":"IPv4NetworkMove","destination":{}}`)
	r := m.Want(201, "POST", moves, `{"type":"IPv4NetworkMove","destination":{"range":"10.0.128.0/24"}}`)
	if r.Text("source.range") != was || r.Text("destination.range") != "10.0.128.0/24" {
		t.Errorf("the move is %s", r.Body)
	}
	if now := m.Want(200, "GET", "/api/v2/networks/"+network, "").Text("range"); now != "10.0.128.0/24" {
		t.Errorf("the network is at %s", now)
	}
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.128.9","state":"STATIC"}`)
	m.Refused(400, "InvalidResourceFieldValue", "type", "POST", "/api/v2/addresses/"+address+"/moves", `{"type":"IPv6AddressMove","destination":{"address":"2001:db8::1"}}`)
	m.Want(201, "POST", "/api/v2/addresses/"+address+"/moves", `{"type":"IPv4AddressMove","destination":{"address":"10.0.128.10"}}`)
	if now := m.Want(200, "GET", "/api/v2/addresses/"+address, "").Text("address"); now != "10.0.128.10" {
		t.Errorf("the address is %s", now)
	}
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"before.example"}`)
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"a","text":"x"}`)
	m.Want(201, "POST", "/api/v2/resourceRecords/"+record+"/moves", `{"type":"ResourceRecordMove","destination":{"absoluteName":"b.before.example"}}`)
	m.Want(201, "POST", "/api/v2/zones/"+zone+"/moves", `{"type":"ZoneMove","destination":{"absoluteName":"after.example"}}`)
	if now := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, "").Text("absoluteName"); now != "b.after.example" {
		t.Errorf("the record is %s", now)
	}
	m.Refused(409, "ZoneNotFound", "no zone", "POST", "/api/v2/resourceRecords/"+record+"/moves",
		`{"type":"ResourceRecordMove","destination":{"absoluteName":"b.nowhere.test"}}`)
	m.Verify()
}

// TestLaterFields checks that every type and field of release 9.6 exists, except for those in docs/status.md.
func TestLaterFields(t *testing.T) {
	a := declared(t)
	var missing []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(published.LaterTypes())) {
		typ, ok := a.Type(name)
		if !ok && name != "AddressManager" { // the root is not a resource
			t.Errorf("the type %s does not exist", name)
		}
		for _, field := range slices.Sorted(maps.Keys(published.LaterTypes()[name].Fields)) {
			if total++; ok && typ.ByName[field] == nil {
				missing = append(missing, name+"."+field)
			}
		}
	}
	t.Logf("release 9.6: %d of %d fields", total-len(missing), total)
	text, err := os.ReadFile("../../../docs/status.md")
	says := fmt.Sprintf("Of the %d fields of release 9.6, %d are supported; missing: %s.", total, total-len(missing),
		strings.Join(missing, ", "))
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
		t.Errorf("%s docs/status.md differs (%v)", says, err)
	}
}

// TestFiltersOfInheritedSettings compares filters by effective settings with the result of GET, for random settings in a tree of blocks.
func TestFiltersOfInheritedSettings(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"tree"}`)
	random := rand.New(rand.NewPCG(7, 11))
	settings := func() string {
		return []string{"", `,"pingBeforeAssignEnabled":true`, `,"pingBeforeAssignEnabled":false`, `,"highWaterMark":80`, `,"highWaterMark":90`}[random.IntN(5)]
	}
	paths := []string{"/api/v2/configurations/" + configuration}
	prefixes := []string{"10.0.0.0/8"}
	for n := 1; n < 40; n++ {
		at := random.IntN(len(paths))
		prefix := netip.MustParsePrefix(prefixes[at])
		if prefix.Bits() > 20 {
			continue
		}
		body := fmt.Sprintf(`{"type":"IPv4Block","range":"/%d"%s}`, prefix.Bits()+3, settings())
		if at == 0 {
			body = fmt.Sprintf(`{"type":"IPv4Block","range":"10.%d.0.0/16"%s}`, n, settings())
		}
		r := m.Do("POST", paths[at]+"/blocks", body)
		if r.StatusCode != 201 {
			continue
		}
		paths, prefixes = append(paths, "/api/v2/blocks/"+r.Text("id")), append(prefixes, r.Text("range"))
		if r := m.Do("POST", paths[len(paths)-1]+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"/%d"%s}`, 26, settings())); r.StatusCode == 201 {
			m.Do("POST", "/api/v2/networks/"+r.Text("id")+"/ranges", `{"type":"IPv4DHCPRange","range":"2,10"`+
				strings.ReplaceAll(settings(), `,"pingBefore`, `,"name":"x","nothing`)+`}`)
		}
	}
	for _, collection := range []string{"blocks", "networks", "ranges"} {
		for field, values := range map[string][]string{"pingBeforeAssignEnabled": {"true", "false"}, "highWaterMark": {"80", "90"}} {
			if collection == "ranges" && field == "pingBeforeAssignEnabled" {
				continue
			}
			shown := map[string]string{}
			all := m.Want(200, "GET", "/api/v2/"+collection+"?limit=1000", "")
			list, _ := all.Get("data").([]any)
			for i := range list {
				shown[all.Text(fmt.Sprintf("data.%d.id", i))] = all.Text(fmt.Sprintf("data.%d.%s", i, field))
			}
			ask := func(expr string, want func(value string) bool) {
				found := map[string]bool{}
				r := m.Want(200, "GET", "/api/v2/"+collection+"?limit=1000&"+filter(expr), "")
				list, _ := r.Get("data").([]any)
				for i := range list {
					found[r.Text(fmt.Sprintf("data.%d.id", i))] = true
				}
				for id, value := range shown {
					if want(value) != found[id] {
						t.Errorf("%s?filter=%s: %s, which shows %q, is found: %v", collection, expr, id, value, found[id])
					}
				}
			}
			for _, v := range values {
				ask(field+":"+v, func(value string) bool { return value == v })
				ask(field+":ne("+v+")", func(value string) bool { return value != v })
			}
			ask(field+":null", func(value string) bool { return value == "" })
			ask(field+":ne(null)", func(value string) bool { return value != "" })
		}
	}
}

// TestTemplateItemsInBody checks that items in the body of a template replace all of its items except for the gateway.
func TestTemplateItemsInBody(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	templates := "/api/v2/configurations/" + configuration + "/templates"
	const list = `{"type":"IPv4Template","name":"office","templateItems":[
		{"type":"IPv4GatewayTemplateItem","startOffset":2,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END"},
		{"type":"IPv4ReservedRangeTemplateItem","startOffset":2,"size":3,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_START","name":"switches"},
		{"type":"IPv4GroupTemplateItem","startOffset":10,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END","name":"printers"}]}`
	id := m.ID(templates, list)
	items := "/api/v2/templates/" + id + "/templateItems?orderBy=id"
	said := func() (all string) {
		t.Helper()
		r := m.Want(200, "GET", items, "")
		for i := range r.Count() {
			at := fmt.Sprintf("data.%d.", i)
			all += r.Text(at + "type")[4:8] + r.Text(at+"startOffset") + r.Text(at+"name") + " "
		}
		return all
	}
	if got := said(); got != "Gate2 Rese2switches Grou10printers " {
		t.Errorf("it has %s", got)
	}
	at := "/api/v2/templates/" + id
	printers := m.Want(200, "GET", items+"&"+filter("name:'printers'"), "").Text("data.0.id")
	for _, refused := range []struct{ code, field, list string }{
		{"MissingRequiredField", "templateItems[1]: required and missing: size",
			`{"id":` + printers + `},{"type":"IPv4GroupTemplateItem","startOffset":10,"rangeDefinitionFormat":"OFFSETS","name":"x"}`},
		{"InvalidResourceFieldValue", "templateItems[1]: id", `{"id":` + printers + `},{"id":` + printers + `}`},
		{"InvalidResourceFieldValue", "templateItems[0]: id", `{"id":` + network + `}`},
		{"InvalidResourceFieldValue", "templateItems[1]: type: the list has two gateways",
			`{"type":"IPv4GatewayTemplateItem","startOffset":1},{"type":"IPv4GatewayTemplateItem","startOffset":2}`},
		{"InvalidResourceId", "templateItems[0]: id", `{"id":"x"}`},
		{"JsonDeserializationError", "templateItems: entry 0 must be an object", `7`},
		{"InvalidResourceType", "templateItems[0]: type", `{"type":"IPv4Network","startOffset":1}`},
		{"ValueLessThanMinimum", "templateItems[0]: startOffset", `{"type":"IPv4GatewayTemplateItem","startOffset":0}`},
	} {
		m.Refused(400, refused.code, refused.field, "PATCH", at, `{"templateItems":[`+refused.list+`]}`, apitest.MergePatch)
	}
	m.Refused(400, "JsonDeserializationError", "templateItems", "PATCH", at, `{"templateItems":{}}`, apitest.MergePatch)
	m.Want(200, "PATCH", at, strings.Replace(list, `"type":"IPv4Template","name":"office",`, "", 1), apitest.MergePatch)
	if got := m.Want(200, "GET", items+"&"+filter("name:'printers'"), "").Text("data.0.id"); got != printers {
		t.Errorf("what is there already was made anew: %s, was %s", got, printers)
	}
	r := m.Want(200, "PATCH", at, `{"templateItems":[{"id":`+printers+`,"name":"scanners","colour":"red"},
		{"type":"IPv4DHCPRangeTemplateItem","startOffset":20,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_START","name":"clients"}]}`,
		apitest.MergePatch)
	if got := said(); got != "Gate2 Grou10scanners DHCP20clients " || r.Header.Get("X-Portolan-Ignored") != "templateItems%5B0%5D.colour" {
		t.Errorf("it has %s, and ignores %q", got, r.Header.Get("X-Portolan-Ignored"))
	}
	m.Undo(m.LastTransaction())
	if got := said(); got != "Gate2 Rese2switches Grou10printers " {
		t.Errorf("undone, it has %s", got)
	}
	m.Want(200, "PUT", at, `{"name":"office"}`) // says nothing of items
	if got := said(); got != "Gate2 Rese2switches Grou10printers " {
		t.Errorf("after a PUT without items it has %s", got)
	}
	m.Want(200, "PATCH", at, `{"templateItems":null}`, apitest.MergePatch)
	if got := said(); got != "Gate2 " {
		t.Errorf("it has %s", got)
	}
	m.applied(`{"into":"configurations/main","resources":[{"type":"IPv4Template","name":"branch","templateItems":[
		{"type":"IPv4GroupTemplateItem","startOffset":10,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END","name":"printers"}]}]}`)
	m.Verify()
}

// TestEqualNotations checks that a value in another notation equals the stored one: hardware addresses, DUIDs and names, in
// documents, in tables and in filters.
func TestEqualNotations(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, _ := m.Basics()
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	m.applied(`{"into":"configurations/` + configuration + `","resources":[
		{"type":"MACAddress","address":"00:00:5e:00:53:07","name":"crane"},
		{"type":"IPv4Address","address":"10.0.0.77","state":"DHCP_RESERVED","macAddress":{"address":"0000.5e00.5308"}},
		{"type":"IPv6Network","range":"2001:DB8:0:1:0:0:0:0/64","name":"one"},
		{"type":"IPv4DHCPRange","range":" 10.0.0.100 - 10.0.0.120"},
		{"type":"IPv6Address","address":"2001:DB8:0::9","state":"STATIC"},
		{"type":"IPv6Address","address":"2001:db8::7","state":"DHCP_RESERVED","reservedUsing":"CLIENT_DUID",
			"clientIdentifier":{"duid":"00-01-00-01-2a-cc"}},
		{"type":"IPv6Address","address":"2001:db8::8","state":"DHCP_RESERVED","reservedUsing":"CLIENT_DUID","clientIdentifier":"00 01 00 01 2a bb"}]}`)
	m.applied(`{"into":"zones/` + zone + `","resources":[{"type":"HostRecord","name":"quay","addresses":[{"address":"10.0.0.78"}]},{"type":"AliasRecord","name":"far","linkedRecord":{"absoluteName":"quay.example.com."}}]}`)
	for _, text := range []string{"000100012ABB", "00:01:00:01:2a:bb", "00-01-00-01-2A-bb"} {
		if r := m.Want(200, "GET", "/api/v2/clientIdentifiers?"+filter("duid:'"+text+"'"), ""); r.Count() != 1 {
			t.Errorf("%s finds %s", text, r.Body)
		}
		if r := m.Want(200, "GET", "/api/v2/search?q="+url.QueryEscape(text), ""); !strings.Contains(string(r.Body), `"DHCPUniqueIdentifier"`) {
			t.Errorf("a search for %s finds %s", text, r.Body)
		}
	}
	for _, part := range []string{"startsWith('00:01:00')", "contains('01-2a')", "endsWith('2a bb')"} {
		if r := m.Want(200, "GET", "/api/v2/clientIdentifiers?"+filter("duid:"+part), ""); r.Count() == 0 {
			t.Errorf("duid:%s finds %s", part, r.Body)
		}
	}
	// Names are the same in either case.
	view := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"other"}`)
	large := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"EXAMPLE.org"}`)
	m.applied(`{"into":"zones/` + large + `","resources":[{"type":"HostRecord","absoluteName":"quay.example.org","addresses":[{"address":"10.0.0.79"}]},
		{"type":"AliasRecord","absoluteName":"pier.example.org","linkedRecord":{"absoluteName":"QUAY.example.org"}},
		{"type":"MXRecord","absoluteName":"mail.example.ORG","priority":10,"linkedRecord":{"absoluteName":"quay.example.org"}},
		{"type":"GenericRecord","absoluteName":"txt.example.org","recordType":"TXT","rdata":"\"x\""}]}`)
	m.Refused(400, "InvalidFilterValue", "duid", "GET", "/api/v2/clientIdentifiers?"+filter("duid:'00:01'"), "")
	want := "COMPLETED: 2 rows, 0 created, 0 updated, 2 unchanged, 0 refused"
	if made, log := m.Imported(`"contentType":"text/csv","into":"configurations/`+configuration+`"`, "type,address,macAddress.address,clientIdentifier.duid\n"+
		"IPv4Address,10.0.0.77,00:00:5e:00:53:08,\nIPv6Address,2001:db8::7,,00:01:00:01:2A:CC\n"); apitest.ImportCounts(made) != want {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	m.Verify()
}

// applied applies a document twice: the second time nothing changes.
func (m *manager) applied(document string) {
	m.T.Helper()
	m.Want(200, "POST", "/api/v2/apply", document)
	if r := m.Want(200, "POST", "/api/v2/apply", document); r.Get("transaction") != nil {
		m.T.Errorf("applied again it changes something: %s", r.Body)
	}
}

// TestRestrictedRangesInBody checks that restricted ranges in the bodies of views and zones are stored at the blocks and networks.
func TestRestrictedRangesInBody(t *testing.T) {
	m := startAlone(t)
	configuration, view, zone, block, network := m.Basics()
	ranges := func(path string, headers ...string) (ids []string) {
		r := m.Want(200, "GET", path+"/restrictedRanges?orderBy=id", "", headers...)
		for i := range r.Count() {
			ids = append(ids, r.Text(fmt.Sprintf("data.%d.id", i)))
		}
		return ids
	}
	both := `{"restrictedRanges":[{"id":` + block + `},{"id":` + network + `},{"id":` + network + `}]}`
	for _, path := range []string{"/api/v2/views/" + view, "/api/v2/zones/" + zone} {
		m.Want(200, "PATCH", path, both, apitest.MergePatch)
		if got := ranges(path); !slices.Equal(got, []string{block, network}) {
			t.Errorf("%s has %s", path, got)
		}
		m.Want(200, "PATCH", path, `{"restrictedRanges":[{"id":`+network+`}]}`, apitest.MergePatch)
		fewer := m.LastTransaction()
		m.Want(200, "PATCH", path, `{"userDefinedFields":{"a":"b"}}`, apitest.MergePatch) // says nothing of ranges
		if got := ranges(path); !slices.Equal(got, []string{network}) {
			t.Errorf("%s has %s", path, got)
		}
		m.Undo(m.LastTransaction())
		m.Undo(fewer)
		if got := ranges(path); !slices.Equal(got, []string{block, network}) {
			t.Errorf("undone, %s has %s", path, got)
		}
		m.Refused(400, "InvalidInlinedResource", "restrictedRanges", "PATCH", path, `{"restrictedRanges":[{"range":"10.0.0.0/24"}]}`, apitest.MergePatch)
		m.Refused(404, "InlinedResourceNotFound", "restrictedRanges[0]: id", "PATCH", path, `{"restrictedRanges":[{"id":999999999}]}`,
			apitest.MergePatch)
		m.Refused(400, "InvalidResourceFieldValue", "restrictedRanges[1]: id", "PATCH", path,
			`{"restrictedRanges":[{"id":`+block+`},{"id":`+configuration+`}]}`, apitest.MergePatch)
	}
	second := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"second","restrictedRanges":[{"id":`+network+`}]}`)
	if got := ranges("/api/v2/views/" + second); !slices.Equal(got, []string{network}) {
		t.Errorf("a new view has %s", got)
	}
	// A user who does not see a restricted range does not remove it.
	bob := m.ID("/api/v2/users", `{"name":"bob","email":"b@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+bob+`},"resource":{"id":`+view+`},"defaultAccessLevel":"FULL"}`)
	as := apitest.BasicAuth("bob", "a-long-password")
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"restrictedRanges":[]}`, apitest.MergePatch, as)
	if got := ranges("/api/v2/views/" + view); !slices.Equal(got, []string{block, network}) {
		t.Errorf("bob, who sees none, left %s", got)
	}
	m.Refused(404, "InlinedResourceNotFound", "restrictedRanges[0]: id", "PATCH", "/api/v2/views/"+view,
		`{"restrictedRanges":[{"id":`+network+`}]}`, apitest.MergePatch, as)
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"restrictedRanges":null}`, apitest.MergePatch)
	if got := ranges("/api/v2/views/" + view); len(got) > 0 {
		t.Errorf("with null there are %s", got)
	}
	m.applied(`{"into":"configurations/main","resources":[{"type":"View","name":"third","restrictedRanges":["blocks/10.0.0.0/8"]}]}`)
	m.Verify()
}

// TestLaterRefusals checks that unsupported settings of release 9.6 are refused by name.
func TestLaterRefusals(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, network := m.Basics()
	at := "/api/v2/networks/" + network
	m.Refused(400, "JsonDeserializationError", "dynamicUpdateEnabled", "PATCH", at, `{"dynamicUpdateEnabled":"yes"}`, apitest.MergePatch)
	m.Want(200, "PATCH", at, `{"dynamicUpdateEnabled":false}`, apitest.MergePatch)
	if r := m.Want(200, "GET", at, ""); r.Get("dynamicUpdateEnabled") != false {
		t.Errorf("shown is %s", r.Body)
	}
	for expr, want := range map[string]int{"dynamicUpdateEnabled:false": 1, "dynamicUpdateEnabled:true": 0} {
		if r := m.Want(200, "GET", "/api/v2/networks?"+filter(expr), ""); r.Count() != want {
			t.Errorf("%s finds %s", expr, r.Body)
		}
	}
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	m.Refused(400, "UnsupportedResourceFieldValue", "linkedRecord", "POST", records,
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}],"dependentRecords":[{"type":"AliasRecord","name":"a"}]}`)
	m.ID(records, `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}],"dependentRecords":[]}`)
	for _, field := range []string{"serviceProviderAccount", "serviceProviderApiKey"} {
		m.Refused(400, "UnsupportedResourceFieldValue", field, "POST", "/api/v2/configurations/"+configuration+"/servers",
			`{"type":"Server","name":"cloud","profile":"CLOUD_DNS_SERVER","`+field+
				`":"x","interfaces":[{"name":"c.example","managementAddress":"10.0.0.9"}]}`)
	}
	m.Verify()
}
