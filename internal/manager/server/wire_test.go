package server

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/testkit/apitest"
)

var writeWire = flag.Bool("write-wire", false, "write testdata/wire.golden anew")

// refusedTypes are the types that cannot be created: each is refused with its reason.
var refusedTypes = []string{"TrustRelationship", "ServerPatch", "ServerPatchApplication"}

// oneOfEach makes a resource of every type that there is.
func (m *manager) oneOfEach() {
	defer func() {
		for _, more := range samples {
			more(m)
		}
	}()
	configuration, view, zone, block, network := m.Basics()
	m.ID("/api/v2/webhooks", `{"type":"Webhook","name":"nowhere","url":"http://127.0.0.1:9/","secret":"whsec_`+strings.Repeat("QUJD", 8)+
		`","collections":["addresses"],"enabled":false}`)
	group := m.ID("/api/v2/tagGroups", `{"name":"sites"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"quay"}`)
	country := m.Want(200, "GET", "/api/v2/locations?filter=code:'CH'", "").Text("data.0.id")
	location := m.ID("/api/v2/locations/"+country+"/locations", `{"code":"CH ZRH","name":"Zurich"}`)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+tag+`}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"location":{"id":`+location+`},"highWaterMark":5}`)
	// Space.
	block6 := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32","name":"six"}`)
	network6 := m.ID("/api/v2/blocks/"+block6+"/networks", `{"type":"IPv6Network","range":"2001:db8:1::/64","name":"lab"}`)
	host := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.9","name":"printer","state":`+
			`"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:01"},"clientIdentifier":{"uid":"01:00:00:5e:00:53:01"}}`).Text("id")
	m.ID("/api/v2/networks/"+network6+"/addresses", `{"type":"IPv6Address","state":"DHCP_RESERVED","clientIdentifier":{"duid":"00:01:00:01"}}`)
	m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.119","name":"pool"}`)
	second := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.120-10.0.0.129"}`)
	third := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.130-10.0.0.139"}`)
	m.ID("/api/v2/networks/"+network6+"/ranges", `{"type":"IPv6DHCPRange","range":"2001:db8:1::100-2001:db8:1::1ff"}`)
	m.ID("/api/v2/networks/"+network+"/ipGroups", `{"type":"IPv4Group","name":"printers","range":"10.0.0.20-10.0.0.40"}`)
	m.ID("/api/v2/networks/"+network+"/merges", `{"type":"IPv4DHCPRangeMerge","ranges":[{"id":`+third+`}],"destination":{"id":`+second+`}}`)
	split := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/24"}`)
	m.ID("/api/v2/blocks/"+block+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+split+`},"networkCount":2}`)
	halves := m.Want(200, "GET", "/api/v2/blocks/"+block+"/networks?orderBy=asc(range)&filter="+
		"range:'10.1.0.0/25'%20or%20range:'10.1.0.128/25'", "")
	m.ID("/api/v2/blocks/"+block+"/merges", `{"type":"IPv4NetworkMerge","networks":[{"id":`+halves.Text("data.1.id")+`}],"destination":{"id":`+
		halves.Text("data.0.id")+`}}`)
	upper := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/16"}`)
	m.ID("/api/v2/configurations/"+configuration+"/splits",
		`{"type":"IPv4BlockSplit","block":{"id":`+upper+`},"splitPointAddress":"172.16.128.0"}`)
	parts := m.Want(200, "GET", "/api/v2/configurations/"+configuration+"/blocks?orderBy=asc(range)&filter="+
		"range:'172.16.0.0/17'%20or%20range:'172.16.128.0/17'", "")
	m.ID("/api/v2/configurations/"+configuration+"/merges", `{"type":"IPv4BlockMerge","blocks":[{"id":`+parts.Text("data.1.id")+
		`}],"destination":{"id":`+parts.Text("data.0.id")+`}}`)
	small := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.3.0.0/29","highWaterMark":10}`)
	m.ID("/api/v2/networks/"+small+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`) // which passes the mark: an event
	m.ID("/api/v2/addresses/"+host+"/moves", `{"type":"IPMove","address":"10.0.0.10"}`)
	// Names.
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	www := m.ID(records, `{"type":"HostRecord","name":"www","addresses":[{"id":`+host+`}]}`)
	m.ID(records, `{"type":"AliasRecord","name":"web","linkedRecord":{"id":`+www+`}}`)
	m.ID(records, `{"type":"MXRecord","name":null,"linkedRecord":{"id":`+www+`},"priority":5}`)
	m.ID(records, `{"type":"SRVRecord","name":"_sip._tcp","linkedRecord":{"id":`+www+`},"priority":1,"weight":2,"port":5060}`)
	m.ID(records, `{"type":"TXTRecord","name":null,"text":"v=spf1 -all"}`)
	m.ID(records, `{"type":"HINFORecord","name":"www","os":"Unix","cpu":"VAX"}`)
	m.ID(records, `{"type":"NAPTRRecord","name":"n","order":1,"preference":2,"flags":"u","service":"E2U+sip","regularExpression":"!^.*$!sip:x@example.com!"}`)
	m.ID(records, `{"type":"GenericRecord","name":"_443._tcp","recordType":"TLSA","rdata":"3 1 1 `+strings.Repeat("ab", 32)+`"}`)
	m.ID(records, `{"type":"URIRecord","name":"_ftp._tcp","priority":1,"weight":2,"target":"ftp://ftp.example.com/"}`)
	m.ID(records, `{"type":"HTTPSRecord","name":"https","linkedRecord":{"id":`+www+`},"priority":1,"serviceParameters":{"alpnIdentifiers":["h2"]}}`)
	m.ID(records, `{"type":"SVCBRecord","name":"_dns","linkedRecord":{"id":`+www+`},"priority":0}`)
	zones := "/api/v2/views/" + view + "/zones"
	outside := m.Want(200, "GET", zones+"?"+filter("type:'ExternalHostsZone'"), "").Text("data.0.id")
	m.ID("/api/v2/zones/"+outside+"/resourceRecords", `{"type":"ExternalHostRecord","name":"elsewhere.test"}`)
	enum := m.ID(zones, `{"type":"ENUMZone","name":"e164.arpa"}`)
	m.ID("/api/v2/zones/"+enum+"/zones", `{"type":"ENUMNumberZone","name":"9.4"}`)
	m.ID(zones, `{"type":"InternalRootZone"}`)
	rules := m.ID("/api/v2/configurations/"+configuration+"/responsePolicies", `{"name":"bad","policyType":"BLOCKLIST"}`)
	m.ID("/api/v2/responsePolicies/"+rules+"/policyItems", `{"name":"bad.example"}`)
	m.ID(zones, `{"type":"ResponsePolicyZone","name":"rpz","responsePolicyZoneType":"LOCAL","responsePolicy":{"id":`+rules+`}}`)
	m.ID("/api/v2/zones/"+zone+"/moves", `{"type":"DNSMove","absoluteName":"example.net"}`)
	// Templates and naming policies.
	template := m.ID("/api/v2/configurations/"+configuration+"/templates", `{"type":"IPv4Template","name":"office"}`)
	items := "/api/v2/templates/" + template + "/templateItems"
	m.ID(items, `{"type":"IPv4ReservedRangeTemplateItem","startOffset":2,"size":3,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_START","name":"switches"}`)
	m.ID(items, `{"type":"IPv4DHCPRangeTemplateItem","startOffset":10,"size":20,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_START","name":"clients"}`)
	m.ID(items, `{"type":"IPv4GroupTemplateItem","startOffset":10,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END","name":"printers"}`)
	fresh := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/24","template":{"id":`+template+`}}`)
	m.ID("/api/v2/networks/"+fresh+"/templateApplications", `{"type":"IPv4TemplateApplication"}`)
	names := m.ID("/api/v2/views/"+view+"/templates", `{"type":"ZoneTemplate","name":"mail"}`)
	m.ID("/api/v2/templates/"+names+"/resourceRecords", `{"type":"TXTRecord","name":null,"text":"v=spf1 mx -all"}`)
	templated := m.ID(zones, `{"type":"Zone","absoluteName":"example.org","template":{"id":`+names+`}}`)
	m.ID("/api/v2/zones/"+templated+"/templateApplications", `{"type":"ZoneTemplateApplication"}`)
	values := "/api/v2/namingPolicyValues"
	m.ID(values, `{"type":"NamingPolicyConnectorValue","name":"dash","connector":"-"}`)
	m.ID(values, `{"type":"NamingPolicyTextValue","name":"role","textType":"REGULAR_EXPRESSION","regularExpression":"[a-z]{2,3}"}`)
	m.ID(values, `{"type":"NamingPolicyIncrementalValue","name":"count","incrementalRole":"COUNTER","incrementType":"DECIMAL","paddingType":"SIMPLE",`+
		`"paddingLength":3,"sequenceStart":10,"sequenceEnd":99,"sequenceIncrement":1}`)
	m.ID(values, `{"type":"NamingPolicyIntegerValue","name":"floor","min":1,"max":9}`)
	site := m.ID(values, `{"type":"NamingPolicyRequiredValue","name":"site","elements":[{"name":"Berlin","value":"ber"}]}`)
	restriction := m.ID("/api/v2/namingPolicyRestrictions", `{"name":"words","restrictions":[{"value":"bad","matchType":"Any"}]}`)
	m.ID("/api/v2/namingPolicies", `{"name":"servers","policyValues":[{"id":`+site+`}],"policyRestrictions":[{"id":`+restriction+`}]}`)
	m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`)
}

// changing are the members that are another one in each run.
var changing = regexp.MustCompile(`"(creationDateTime|dateTime|lastLoginDateTime|loginDateTime|logoutDateTime|expirationDateTime|apiTokenExpirationDateTime|` +
	`apiToken|basicAuthenticationCredentials|transactionDateTime|lastActivityDateTime|[a-zA-Z]*Time|publicKey|dnsKeyRecord|dsRecord|hostname)":"[^"]*"`)

// counting are the members that are another number in each run.
var counting = regexp.MustCompile(`("(?:keyTag|activeSessions)":|"entityCount":[0-9]+,"size":)[0-9]+`)

// held matches the number of resources.
var held = regexp.MustCompile(`"entityCount":[0-9]+`)

// numbered finds the numbers of resources, which are others on another database.
var numbered = regexp.MustCompile(`("id":|"resourceId":|"/api/v2/[a-zA-Z]+/|/operations/)([0-9]+)`)

// TestWire compares the bytes of one resource of each type, in HAL and in JSON, with the golden file: responses must not change by
// accident. Run it with -write-wire after an intended change.
func TestWire(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	m.oneOfEach()
	apitest.Eventually(t, "it is known when the schedule is due", func() bool {
		return m.Want(200, "GET", "/api/v2/schedules", "").Text("data.0.nextDateTime") != ""
	})
	var b bytes.Buffer
	ids := map[string]int{}
	renumber := func(text []byte) []byte {
		text = bytes.ReplaceAll(text, []byte(m.URL()), []byte("http://here"))
		return numbered.ReplaceAllFunc(text, func(found []byte) []byte {
			parts := numbered.FindSubmatch(found)
			id := string(parts[2])
			if ids[id] == 0 {
				ids[id] = len(ids) + 1
			}
			return fmt.Appendf(nil, "%s%d", parts[1], ids[id])
		})
	}
	show := func(kind, path string) {
		for _, form := range []string{"application/hal+json", "application/json"} {
			r := m.Want(200, "GET", path, "", "Accept: "+form)
			fmt.Fprintf(&b, "%s %s\n%s\n", kind, form, renumber(held.ReplaceAll(counting.ReplaceAll(changing.ReplaceAll(r.Body, []byte(`"$1":"..."`)),
				[]byte(`${1}0`)), []byte(`"entityCount":0`))))
		}
	}
	var missing []string
	collections := slices.SortedFunc(slices.Values(m.Address.Collections()), func(a, b *resource.Collection) int {
		return strings.Compare(a.Name, b.Name)
	})
	for _, c := range collections {
		for _, typ := range c.Types {
			if c.Inner {
				continue
			}
			found := m.Want(200, "GET", "/api/v2/"+c.Path()+"?limit=1&orderBy=asc(id)&fields=id,type&"+filter("type:'"+typ.Name+"'"), "")
			if id := found.Text("data.0.id"); id != "" {
				show(typ.Name, "/api/v2/"+c.Path()+"/"+id)
				continue
			}
			// Resources of types that cannot be created, or are refused, do not exist.
			if !typ.NotMade && !slices.Contains(refusedTypes, typ.Name) {
				missing = append(missing, typ.Name)
			}
		}
	}
	last := m.LastTransaction()
	show("Operation", "/api/v2/transactions/"+last+"/operations/"+m.Want(200, "GET", "/api/v2/transactions/"+last+"/operations",
		"").Text("data.0.id"))
	if len(missing) > 0 {
		t.Errorf("there are none of %s", strings.Join(missing, ", "))
	}
	golden := "testdata/wire.golden"
	if *writeWire {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(ours), len(theirs)) {
		if i >= len(ours) || i >= len(theirs) || ours[i] != theirs[i] {
			t.Errorf("line %d is\n%s\nand was\n%s", i+1, at(ours, i), at(theirs, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}
