package ipam_test

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"portolan/internal/testkit/apitest"
)

func TestViewMatchesSpecification(t *testing.T) {
	m := start(t)
	_, view, _, _, _ := m.Basics()
	r := m.Want(200, "GET", "/api/v2/views/"+view, "")
	if got := r.Header.Get("Content-Type"); got != "application/hal+json" {
		t.Errorf("Content-Type is %s", got)
	}
	links, ok := r.Get("_links").(map[string]any)
	if !ok {
		t.Fatalf("no links: %s", r.Body)
	}
	want := []string{"self", "collection", "up", "deploymentOptions", "deploymentRoles", "restrictedRanges", "namingPolicies", "templates",
		"zones", "tags", "accessRights", "transactions", "userDefinedLinks"}
	for _, name := range want {
		if links[name] == nil {
			t.Errorf("the view has no link %s", name)
		}
	}
	if len(links) != len(want) {
		t.Errorf("the view has %d links, want %d", len(links), len(want))
	}
	for path, want := range map[string]string{"type": "View", "name": "internal", "configuration.type": "Configuration",
		"configuration.name":        "main",
		"deviceRegistrationEnabled": "false", "_links.self.href": "/api/v2/views/" + view, "_links.collection.href": "/api/v2/views"} {
		if got := r.Text(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	for _, null := range []string{`"deviceRegistrationPortalAddress":null`, `"userDefinedFields":null`} {
		if !strings.Contains(string(r.Body), null) {
			t.Errorf("the view lacks %s: %s", null, r.Body)
		}
	}
	if up := m.Want(200, "GET", r.Text("_links.up.href"), "").Text("_links.up.href"); up != "/api/v2/1" {
		t.Errorf("the configuration's up link is %s", up)
	}
	if got := m.Want(200, "GET", "/api/v2/1", "").Text("type"); got != "AddressManager" {
		t.Errorf("the root is a %s", got)
	}
}

func TestPages(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	for i := range 6 {
		m.ID("/api/v2/configurations/"+configuration+"/views", fmt.Sprintf(`{"name":"v%d"}`, i))
	}
	for _, c := range []struct {
		query, count, total, prev, next string
	}{
		{"", "7", "", "", ""},
		{"?limit=7", "7", "", "", ""},
		{"?limit=2&total=true", "2", "7", "", "/api/v2/views?total=true&offset=2&limit=2"},
		{"?limit=4&offset=2", "4", "", "/api/v2/views?offset=0&limit=2", "/api/v2/views?offset=6&limit=4"},
		{"?limit=3&offset=6", "1", "", "/api/v2/views?offset=3&limit=3", ""},
		{"?offset=100", "0", "", "", ""}, {"?limit=7&offset=1", "6", "", "", ""},
		{"?limit=2&offset=999", "0", "", "/api/v2/views?offset=5&limit=2", ""},
		{"?limit=1&orderBy=name&foo=bar", "1", "", "", "/api/v2/views?orderBy=name&foo=bar&offset=1&limit=1"},
	} {
		r := m.Want(200, "GET", "/api/v2/views"+c.query, "")
		for path, want := range map[string]string{"count": c.count, "totalCount": c.total, "_links.prev.href": c.prev,
			"_links.next.href": c.next} {
			got := r.Text(path)
			link, _, _ := strings.Cut(got, "&after=")
			if link != want {
				t.Errorf("%s: %s is %q, want %q", c.query, path, got, want)
			}
			if want != "" && strings.HasPrefix(want, "/") { // with its place and without it leads to the same
				if with, without := m.Want(200, "GET", got, ""), m.Want(200, "GET", link, ""); string(with.Body) != string(without.Body) {
					t.Errorf("%s gives %s, and without its place %s", got, with.Body, without.Body)
				}
			}
		}
		if _, ok := r.Get("data").([]any); !ok {
			t.Errorf("%s: data is not an array: %s", c.query, r.Body)
		}
	}
}

// TestNextLinks checks that the next links of pages lead through each resource once, in the order of the whole list, also over resources
// without a value.
func TestNextLinks(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	list := "/api/v2/networks/" + network + "/addresses"
	for i := range 20 {
		m.ID(list, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","name":%s}`, []string{"null", `"b"`, `"a"`, `"c"`}[i%4]))
	}
	for _, order := range []string{"", "name", "desc(name)", "address", "desc(address)", "id", "desc(id)", "state", "name,desc(id)"} {
		query := "?fields=id&orderBy=" + order
		whole := m.Want(200, "GET", list+query, "")
		var walked []any
		next := list + query + "&limit=3"
		for pages := 0; next != "" && pages < 20; pages++ {
			page := m.Want(200, "GET", next, "")
			data, _ := page.Get("data").([]any)
			walked = append(walked, data...)
			next = page.Text("_links.next.href")
		}
		if want := whole.Get("data").([]any); !reflect.DeepEqual(walked, want) {
			t.Errorf("ordered by %q the walk gives %v, want %v", order, walked, want)
		}
	}
	// A place is one in its own list alone: with its filter, its order, its kind of value, and no text that none can be.
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(list + "\x00\x00name"))
	place := func(value string) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"i":1,"o":0,"l":"%x",%s}`, digest.Sum(nil), value))
	}
	m.Want(200, "GET", list+"?orderBy=name&after="+place(`"t":"b"`), "")
	for _, bad := range []string{"orderBy=name&after=x", "orderBy=name&after=" + place(`"s":"AAA="`), "orderBy=name&after=" +
		place(`"t":"\u0000"`),
		"orderBy=desc(name)&after=" + place(`"t":"b"`), "orderBy=name&filter=id:gt(1)&after=" + place(`"t":"b"`), "after=" + place(`"t":"b"`)} {
		r := m.Do("GET", list+"?"+bad, "")
		if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.Text("message"), "after") {
			t.Errorf("%s: %d %s", bad, r.StatusCode, r.Body)
		}
	}
	vacant := m.Want(200, "GET", list+"?orderBy=name&filter=state:'UNASSIGNED'&limit=1", "").Text("_links.next.href")
	if vacant == "" || strings.Contains(vacant, "after") {
		t.Errorf("the next page of free addresses starts at %s", vacant)
	}
	next := m.Want(200, "GET", list+"?limit=2&orderBy=name", "").Text("_links.next.href")
	again := m.Want(200, "GET", strings.Replace(next, "after", "%61fter", 1), "").Text("_links.next.href")
	m.Want(200, "GET", again, "")
	// The history grows while a client reads it.
	for _, order := range []string{"", "desc(id)"} {
		query := "/api/v2/transactions?fields=id&orderBy=" + order
		whole := m.Want(200, "GET", query, "").Get("data").([]any)
		page := m.Want(200, "GET", query+"&limit=3", "")
		m.ID(list, `{"type":"IPv4Address","state":"STATIC"}`)
		behind := m.Want(200, "GET", page.Text("_links.next.href"), "").Get("data").([]any)
		if !reflect.DeepEqual(behind, whole[3:6]) {
			t.Errorf("ordered by %q behind the first three transactions come %v, want %v", order, behind, whole[3:6])
		}
	}
}

// TestOrderOfResourcesWithoutName checks the place of resources without a name, such as records of a template, in a list ordered by name.
// Resources with a hidden key have no place by it.
func TestOrderOfResourcesWithoutName(t *testing.T) {
	m := start(t)
	_, view, _, _, _ := m.Basics()
	template := m.ID("/api/v2/views/"+view+"/templates", `{"type":"ZoneTemplate","name":"t"}`)
	list := "/api/v2/templates/" + template + "/resourceRecords"
	plain := m.ID(list, `{"type":"TXTRecord","name":null,"text":"x"}`)
	named := m.ID(list, `{"type":"TXTRecord","name":"a","text":"x"}`)
	for order, want := range map[string]string{"absoluteName": plain + " " + named, "desc(absoluteName)": named + " " + plain} {
		if got := m.Want(200, "GET", list+"?total=true&orderBy="+order, ""); got.Text("data.0.id")+" "+got.Text("data.1.id") != want ||
			got.Text("totalCount") != "2" {
			t.Errorf("ordered by %s: %s", order, got.Body)
		}
	}
	if got := m.Want(200, "GET", "/api/v2/resourceRecords?orderBy=absoluteName&filter=absoluteName:null", "").Text("data.0.id"); got != plain {
		t.Errorf("by name, what has none begins with %s, want %s", got, plain)
	}
	policy := m.ID("/api/v2/views/"+view+"/zones", `{"type":"ResponsePolicyZone","name":"aaa","responsePolicyZoneType":"LOCAL"}`)
	for filter, want := range map[string]string{"absoluteName:'aaa'": "0", "absoluteName:in('aaa','example.com')": "1",
		"absoluteName:in('aaa',null)": "2"} { // the view's ExternalHostsZone has no absolute name either
		if got := m.Want(200, "GET", "/api/v2/zones?total=true&filter="+filter, "").Text("totalCount"); got != want {
			t.Errorf("%s finds %s zones, want %s", filter, got, want)
		}
	}
	zones := m.Want(200, "GET", "/api/v2/views/"+view+"/zones?orderBy=desc(absoluteName)", "")
	if zones.Text("data.0.absoluteName") != "com" || !strings.Contains(string(zones.Body), policy) {
		t.Errorf("zones by name: %s", zones.Body)
	}
}

func TestFilters(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	m.ID("/api/v2/blocks/"+block+"/networks",
		`{"type":"IPv4Network","range":"10.0.1.0/26","name":"it's \"quoted\"","userDefinedFields":{"vlan":"12","owner":"ops","since":"2026-01-31","blank":" 12 ",
			"long":"9223372036854775807","less":"9223372036854775806","endless":"`+strings.Repeat("1", 140_000)+`","power":"1e9","part":"0.5"}}`)
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64","name":"six"}`)
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"RESERVED","address":"10.0.0.77"}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"hello","ttl":60}`)
	ch := m.Want(200, "GET", "/api/v2/locations?filter=code:'CH'", "").Text("data.0.id")
	port := m.ID("/api/v2/locations/"+ch+"/locations", `{"code":"BSL","name":"Basel"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"location":{"id":`+port+`}}`)
	for _, c := range []struct {
		collection, filter string
		want               int
	}{
		{"networks", `name:'office'`, 1},
		{"networks", `name:"office"`, 1},
		{"networks", `name:'it\'s "quoted"'`, 1},
		{"networks", `name:"it's \"quoted\""`, 1},
		{"networks", `name:ne('office')`, 2},
		{"networks", `name:in('office','six','nothing')`, 2},
		{"networks", `name:contains('i')`, 3},
		{"networks", `name:startsWith('off') and name:endsWith('ice')`, 1},
		{"networks", `name:'office' or name:'six' and type:'IPv4Network'`, 1},
		{"networks", `(name:'office' or name:'six') and type:'IPv6Network'`, 1},
		{"networks", `id:` + network, 1},
		{"networks", `id:ge(` + network + `) and id:lt(999999)`, 3},
		{"networks", `range:"/24"`, 1},
		{"networks", `range:"10.0.0.0/24"`, 1},
		{"networks", `range:eq("10.0.0.0-10.0.0.255")`, 1},
		{"networks", `range:ge("10.0.0.0/25")`, 1},
		{"networks", `range:ge("/25")`, 2},
		{"networks", `range:lt("/26")`, 1},
		{"networks", `range:contains("10.0.0.5")`, 1},
		{"networks", `range:contains("2001:db8::5")`, 1},
		{"networks", `range:startsWith('10.')`, 2},
		{"networks", `range:within("10.0.0.0/16")`, 2},
		{"networks", `range:within("10.0.0.0-10.0.1.63")`, 2},
		{"networks", `range:within("10.0.0.0/24")`, 1},
		{"networks", `range:within("10.0.0.0/25")`, 0},
		{"networks", `range:within("2001:db8::/32")`, 1},
		{"addresses", `address:within("10.0.0.64/26")`, 1},
		{"addresses", `address:within("::/0")`, 0},
		{"networks/" + network + "/addresses", `state:'UNASSIGNED' and address:within("10.0.0.76/30")`, 3},
		{"networks", `configuration.name:'main'`, 3},
		{"networks", `configuration.id:` + configuration, 3},
		{"networks", `configuration.id:1`, 0},
		{"networks", `location.name:'Basel'`, 1},
		{"networks", `location.country:'Switzerland'`, 1},
		{"networks", `location:null`, 2},
		{"networks", `location:ne(null)`, 1},
		{"networks", `gateway:"10.0.0.1"`, 1},
		{"networks", `gateway:gt("10.0.0.1")`, 1},
		{"networks", `userDefinedFields.vlan:'12'`, 1},
		{"networks", `userDefinedFields.vlan:null`, 2},
		{"networks", `userDefinedFields.vlan:gt(9)`, 1}, // as numbers
		{"networks", `userDefinedFields.vlan:gt('9')`, 1},
		{"networks", `userDefinedFields.vlan:ge(12) and userDefinedFields.vlan:le(12.5)`, 1},
		{"networks", `userDefinedFields.vlan:lt(9)`, 0},
		{"networks", `userDefinedFields.owner:gt(0)`, 0},
		{"networks", `userDefinedFields.blank:gt(0)`, 0}, // no number
		{"networks", `userDefinedFields.endless:gt(0)`, 0},
		{"networks", `userDefinedFields.power:gt(0)`, 0},
		{"networks", `userDefinedFields.part:gt(0.4) and userDefinedFields.part:lt(0.6)`, 1},
		{"networks", `userDefinedFields.long:ge(9223372036854775807)`, 1}, // to the last digit
		{"networks", `userDefinedFields.less:ge(9223372036854775807)`, 0},
		{"networks", `userDefinedFields.less:le(9223372036854775806) and userDefinedFields.less:lt(9223372036854775807)`, 1},
		{"networks", `userDefinedFields.owner:lt(0)`, 0},
		{"networks", `userDefinedFields.since:gt('2026-01-30')`, 1}, // as texts
		{"networks", `userDefinedFields.since:lt('2026-01-30')`, 0},
		{"networks", `defaultZonesInherited:true`, 2},
		{"networks", `defaultZonesInherited:ne(true)`, 1},
		{"addresses", `address:"10.0.0.77"`, 1},
		{"addresses", `address:ge("10.0.0.9") and address:le("10.0.0.100")`, 1},
		{"addresses", `address:in("10.0.0.77","10.0.0.1")`, 2},
		{"addresses", `state:'GATEWAY'`, 2},
		{"resourceRecords", `ttl:60`, 1},
		{"resourceRecords", `ttl:null`, 0},
		{"resourceRecords", `absoluteName:'NOTE.Example.COM'`, 1},
		{"zones", `absoluteName:'example.com' and view.id:` + view, 1},
		{"users", `accountLocked:false`, 1},
		{"transactions", `operation:'ADD_VIEW' and user.name:'admin'`, 1},
		{"transactions", `creationDateTime:ge('2020-01-01') and operation:'ADD_USER'`, 1},
		{"", `type:'Zone'`, 2},
	} {
		path := "/api/v2"
		if c.collection != "" {
			path += "/" + c.collection
		}
		r := m.Want(200, "GET", path+"?limit=1000&filter="+url.QueryEscape(c.filter), "")
		if got := r.Text("count"); got != fmt.Sprint(c.want) {
			t.Errorf("%s?filter=%s finds %s, want %d", c.collection, c.filter, got, c.want)
		}
	}
}

func TestOrder(t *testing.T) {
	m := start(t)
	_, _, _, block, _ := m.Basics()
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.10.0/24","name":"a",
		"userDefinedFields":{"rack":"10","mixed":"9"}}`)
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.9.0/24","name":"z",
		"userDefinedFields":{"rack":"9","mixed":"b"}}`)
	for order, want := range map[string]string{
		"name": "a office z", "desc(name)": "z office a", "desc(id)": "z a office", "range": "office z a", "desc(gateway)": "a z office",
		"configuration.name,asc(name)": "a office z", "userDefinedFields.x,name": "a office z",
		"userDefinedFields.rack": "office z a", "desc(userDefinedFields.rack)": "a z office", "userDefinedFields.mixed": "office z a",
	} {
		r := m.Want(200, "GET", "/api/v2/networks?orderBy="+url.QueryEscape(order), "")
		got := fmt.Sprint(r.Text("data.0.name"), " ", r.Text("data.1.name"), " ", r.Text("data.2.name"))
		if got != want {
			t.Errorf("orderBy=%s gives %s, want %s", order, got, want)
		}
	}
}

func TestFields(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	norway := m.Want(200, "GET", "/api/v2/locations?filter=code:'NO'", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"location":{"id":`+norway+`}}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"?fields=location.code", ""); r.Text("location.code") != "NO" {
		t.Errorf("the code of the location is %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"location":null}`, apitest.MergePatch)
	for fields, want := range map[string]string{
		"id,name":                         `{"id":` + network + `,"name":"office"}`,
		"name,configuration.name":         `{"name":"office","configuration":{"name":"main"}}`,
		"range,not(range)":                `{}`,
		"name,embed(addresses)":           "",
		"embed(addresses),not(id,_links)": "",
	} {
		r := m.Want(200, "GET", "/api/v2/networks/"+network+"?fields="+url.QueryEscape(fields), "")
		if want != "" && string(r.Body) != want {
			t.Errorf("fields=%s gives %s, want %s", fields, r.Body, want)
		}
		if want == "" && r.Text("_embedded.addresses.0.address") != "10.0.0.1" {
			t.Errorf("fields=%s embeds nothing: %s", fields, r.Body)
		}
	}
	for _, fields := range []string{"name.x", "range.low,id", "not(gateway.x)"} {
		m.Refused(400, "InvalidFieldName", "has no members", "GET", "/api/v2/networks?fields="+url.QueryEscape(fields), "")
	}
	r := m.Want(200, "GET", "/api/v2/networks/"+network+"?fields=embed(addresses.resourceRecords)", "")
	if _, ok := r.Get("_embedded.addresses.0._embedded.resourceRecords").([]any); !ok {
		t.Errorf("embed does not go on inside: %s", r.Body)
	}
}

func TestChangeAndConcurrency(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	at := "/api/v2/networks/" + network
	first := m.Want(200, "GET", at, "").Header.Get("ETag")
	r := m.Want(200, "PATCH", at, `{"name":"lab","userDefinedFields":{"a":"1","b":"2"},"unknown":[1]}`, "If-Match: "+first,
		"Content-Type: application/merge-patch+json",
		"x-bcn-change-control-comment: because")
	if r.Text("name") != "lab" || r.Text("range") != "10.0.0.0/24" || r.Header.Get("ETag") == first {
		t.Errorf("PATCH gives %s with %s", r.Body, r.Header.Get("ETag"))
	}
	m.Refused(412, "PreconditionFailed", "has changed", "PATCH", at, `{"name":"x"}`, "If-Match: "+first)
	m.Refused(412, "PreconditionFailed", "has changed", "DELETE", at, ``, "If-Match: "+first)
	r = m.Want(200, "PATCH", at, `{"userDefinedFields":{"a":null,"c":"3"}}`)
	if got := r.Text("userDefinedFields"); got != "map[b:2 c:3]" {
		t.Errorf("the merge patch gives %s", got)
	}
	// PUT is the whole: what is left out is unset, what is read-only is ignored.
	r = m.Want(200, "PUT", at, `{"id":5,"type":"IPv4Network","range":"10.0.0.0/24","gateway":"10.0.0.1","defaultZonesInherited":false,"restrictedZonesInherited":true,
		"reverseZoneSigned":false,"configuration":{"id":1},"_links":{"self":{"href":"x"}}}`)
	if r.Get("name") != nil || r.Get("userDefinedFields") != nil || r.Text("defaultZonesInherited") != "false" || r.Text("id") != network {
		t.Errorf("PUT gives %s", r.Body)
	}
	last := m.Want(200, "GET", at+"/transactions?orderBy=desc(id)&filter=comment:'because'", "")
	if last.Text("data.0.operation") != "UPDATE_IPV4_NETWORK" || last.Text("data.0.user.name") != "admin" {
		t.Errorf("the transaction is %s", last.Body)
	}
	m.Want(204, "DELETE", at, "")
	m.Want(404, "GET", at, "")
	m.Verify()
}

func TestIdempotencyKey(t *testing.T) {
	m := start(t)
	body := `{"name":"once"}`
	first := m.Want(201, "POST", "/api/v2/configurations", body, "Idempotency-Key: k1")
	again := m.Want(201, "POST", "/api/v2/configurations", body, "Idempotency-Key: k1")
	if string(first.Body) != string(again.Body) || first.Header.Get("Location") != again.Header.Get("Location") ||
		first.Header.Get("Location") == "" {
		t.Errorf("the same key gives\n %s\n %s", first.Body, again.Body)
	}
	m.Refused(409, "IdempotencyKeyReused", "another request", "POST", "/api/v2/configurations", `{"name":"twice"}`, "Idempotency-Key: k1")
	m.Refused(409, "ResourceAlreadyExists", "once", "POST", "/api/v2/configurations", body, "Idempotency-Key: k2")
	// A refusal is not kept: the key is good for the next try.
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"third"}`, "Idempotency-Key: k2")
}

func TestSpaceRules(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	networks := "/api/v2/blocks/" + block + "/networks"
	blocks := "/api/v2/configurations/" + configuration + "/blocks"
	net4 := func(r string) string { return `{"type":"IPv4Network","range":"` + r + `"}` }
	m.Refused(400, "IpRangeOverlapsSiblings", "overlaps IPv4Network 10.0.0.0/24 ("+network+")", "POST", networks, net4("10.0.0.0/16"))
	m.Refused(400, "IpRangeOverlapsSiblings", "10.0.0.0/24", "POST", networks, net4("10.0.0.128/25"))
	m.Refused(400, "IpRangeOutsideParent", "is not within IPv4Block 10.0.0.0/8 ("+block+")", "POST", networks, net4("11.0.0.0/24"))
	m.Refused(400, "InvalidIpRangeValue", "host bits set", "POST", networks, net4("10.0.1.1/24"))
	m.Refused(400, "InvalidResourceFieldValue", "not a CIDR", "POST", networks, net4("10.0.1.0-10.0.1.9"))
	m.Refused(400, "InvalidResourceFieldValue", "address family", "POST", networks, net4("2001:db8::/64"))
	m.Refused(400, "InvalidResourceFieldValue", "cannot be in IPv4Block", "POST", networks, `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	m.Refused(400, "IpRangeOverlapsSiblings", "10.0.0.0/8", "POST", blocks, `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	m.Refused(400, "InvalidResourceFieldValue", "cannot be in", "POST", "/api/v2/blocks/"+block+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.Refused(400, "IpRangeOverlapsSiblings", "IPv4Network", "POST", "/api/v2/blocks/"+block+"/blocks",
		`{"type":"IPv4Block","range":"10.0.0.128-10.0.1.255"}`)
	m.Refused(400, "InvalidResourceFieldValue", "requires a parent block", "POST", blocks, `{"type":"IPv4Block","range":"/16"}`)
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "10.0.0.1", "PATCH", "/api/v2/networks/"+network, `{"range":"10.0.0.128/25"}`)

	// By size: the first free space, and with DEPTH_FIRST that of the blocks below.
	next := m.Want(201, "POST", networks, net4("/24"))
	if got := next.Text("range"); got != "10.0.1.0/24" {
		t.Errorf("the next /24 is %s", got)
	}
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.128.0.0/9"}`)
	m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.64.0.0/10"}`)
	m.Refused(400, "NoSpaceForNetwork", "no free /9", "POST", networks, net4("/9"))
	deep := m.Want(201, "POST", networks, net4("/9"), "x-bcn-traversal-method: DEPTH_FIRST")
	if deep.Text("range") != "10.128.0.0/9" || deep.Text("_links.up.href") != "/api/v2/blocks/"+inner {
		t.Errorf("DEPTH_FIRST gives %s below %s", deep.Text("range"), deep.Text("_links.up.href"))
	}

	addresses := "/api/v2/networks/" + network + "/addresses"
	address := func(a string) string { return `{"type":"IPv4Address","state":"STATIC","address":"` + a + `"}` }
	m.Refused(400, "AddressNotInNetwork", "10.0.1.5 is not in", "POST", addresses, address("10.0.1.5"))
	m.Refused(400, "AddressIsBroadcastAddress", "broadcast", "POST", addresses, address("10.0.0.255"))
	m.Refused(409, "ResourceAlreadyExists", "10.0.0.1 is already in use", "POST", addresses, address("10.0.0.1"))
	m.Refused(409, "CreateUpdateNetworkGatewayNotSupported", "gateway", "POST", addresses, `{"type":"IPv4Address","state":"GATEWAY"}`)
	m.Refused(400, "InvalidResourceFieldValue", "cannot be in", "POST", addresses, `{"type":"IPv6Address","state":"STATIC"}`)
	m.Refused(400, "InvalidResourceFieldValue", "not a host address", "POST", networks, `{"type":"IPv4Network","range":"10.0.9.0/24","gateway":"10.0.8.1"}`)
	m.Verify()
}

func TestGateway(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	at := "/api/v2/networks/" + network
	gateways := func() string {
		r := m.Want(200, "GET", at+"/addresses?filter=state:'GATEWAY'", "")
		return r.Text("data.0.address") + " " + r.Text("count")
	}
	if got := gateways(); got != "10.0.0.1 1" {
		t.Errorf("the new network's gateway is %s", got)
	}
	m.Want(200, "PATCH", at, `{"gateway":"10.0.0.254"}`)
	if got := gateways(); got != "10.0.0.254 1" {
		t.Errorf("the changed gateway is %s", got)
	}
	gateway := m.Want(200, "GET", at+"/addresses?filter=state:'GATEWAY'", "").Text("data.0.id")
	m.Refused(409, "CreateUpdateNetworkGatewayNotSupported", "gateway", "PATCH", "/api/v2/addresses/"+gateway, `{"state":"STATIC"}`)
	m.Want(204, "DELETE", "/api/v2/addresses/"+gateway, "")
	if got := m.Want(200, "GET", at, ""); got.Get("gateway") != nil || gateways() != " 0" {
		t.Errorf("the gateway is still there: %s", got.Body)
	}
	none := m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/28"}`, "x-bcn-no-gateway: true")
	if none.Get("gateway") != nil {
		t.Errorf("x-bcn-no-gateway gives %s", none.Body)
	}
	m.ID(at+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.9"}`)
	m.Refused(409, "ResourceAlreadyExists", "10.0.0.9 is already in use", "PATCH", at, `{"gateway":"10.0.0.9"}`)
	m.Verify()
}

// TestNextAvailableAddressIsAtomic checks that 64 clients that request addresses of a /24 get 253 different ones, without the gateway, and
// then a 409.
func TestNextAvailableAddressIsAtomic(t *testing.T) {
	apitest.Slow(t)
	m := startConcurrent(t)
	_, _, _, _, network := m.Basics()
	var mu sync.Mutex
	got := map[string]int{}
	full := 0
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for {
				r := m.Do("POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
				mu.Lock()
				switch {
				case r.StatusCode == 201:
					got[r.Text("address")]++
				case r.Text("code") == "NoSpaceForAddress":
					full++
					mu.Unlock()
					return
				default:
					t.Errorf("%d %s", r.StatusCode, r.Body)
					mu.Unlock()
					return
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if len(got) != 253 || full != 64 {
		t.Errorf("%d different addresses and %d refusals; want 253 and 64", len(got), full)
	}
	for a, n := range got {
		if n != 1 {
			t.Errorf("%s was given %d times", a, n)
		}
	}
	m.Verify()
}

// TestNextAvailableNetworkIsAtomic checks that concurrent requests for networks by size get different ones: a /20 contains sixteen /24.
func TestNextAvailableNetworkIsAtomic(t *testing.T) {
	m := startConcurrent(t)
	_, _, _, block, _ := m.Basics()
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.16.0.0/20"}`)
	var mu sync.Mutex
	var ranges []string
	var clients sync.WaitGroup
	for range 24 {
		clients.Go(func() {
			r := m.Do("POST", "/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"/24"}`)
			mu.Lock()
			defer mu.Unlock()
			if r.StatusCode == 201 {
				ranges = append(ranges, r.Text("range"))
			} else if r.Text("code") != "NoSpaceForNetwork" {
				t.Errorf("%d %s", r.StatusCode, r.Body)
			}
		})
	}
	clients.Wait()
	slices.Sort(ranges)
	if len(slices.Compact(ranges)) != 16 {
		t.Errorf("%d different networks: %v", len(ranges), ranges)
	}
	m.Verify()
}

func TestNames(t *testing.T) {
	m := start(t)
	before := m.Want(200, "GET", "/api/v2?limit=1&total=true", "").Text("totalCount")
	configuration, view, zone, _, network := m.Basics()
	records := "/api/v2/zones/" + zone + "/resourceRecords"
	if got := m.Want(200, "GET", "/api/v2/zones?orderBy=id&filter=type:'Zone'%20and%20view.id:"+view,
		""); got.Text("data.0.absoluteName") != "com" ||
		got.Text("data.1.absoluteName") != "example.com" {
		t.Errorf("absoluteName makes %s", got.Body)
	}
	host := m.Want(201, "POST", records, `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.10"},{"address":"10.0.0.11"}]}`)
	if host.Text("absoluteName") != "www.example.com" || host.Text("reverseRecord") != "true" {
		t.Errorf("the host is %s", host.Body)
	}
	id := host.Text("id")
	if got := m.Want(200, "GET", "/api/v2/resourceRecords/"+id+"/addresses", ""); got.Text("count") != "2" ||
		got.Text("data.0.state") != "STATIC" {
		t.Errorf("its addresses are %s", got.Body)
	}
	alias := m.Want(201, "POST", records, `{"type":"AliasRecord","name":"web","linkedRecord":{"absoluteName":"www.example.com"}}`)
	if alias.Text("linkedRecord.id") != id {
		t.Errorf("the alias is %s", alias.Body)
	}
	m.ID(records, `{"type":"MXRecord","name":null,"linkedRecord":{"id":`+id+`},"priority":5}`)
	apex := m.Want(201, "POST", records, `{"type":"TXTRecord","name":"ignored","text":"x"}`, "x-bcn-same-as-zone: true")
	if apex.Get("name") != "" || m.Want(200, "GET", records+"?"+apitest.Filter("name:''"), "").Count() != 2 ||
		m.Want(200, "GET", records+"?"+apitest.Filter("name:null"), "").Count() != 2 ||
		m.Want(200, "GET", records+"?"+apitest.Filter("name:contains('')"), "").Count() != m.Want(200, "GET", records, "").Count() ||
		apex.Text("absoluteName") != "example.com" {
		t.Errorf("the apex record is %s", apex.Body)
	}
	m.ID(records, `{"type":"GenericRecord","name":"_443._tcp","recordType":"TLSA","rdata":"3 1 1 `+strings.Repeat("ab", 32)+`"}`)
	if got := m.Want(200, "GET", "/api/v2/resourceRecords/"+id+"/dependentRecords", ""); got.Text("count") != "2" {
		t.Errorf("dependent records: %s", got.Body)
	}
	m.Refused(404, "InlinedResourceNotFound", "nothing.example.com", "POST", records,
		`{"type":"AliasRecord","name":"x","linkedRecord":{"absoluteName":"nothing.example.com"}}`)
	m.Refused(404, "InlinedResourceNotFound", "999", "POST", records, `{"type":"AliasRecord","name":"x","linkedRecord":{"id":999}}`)
	m.Refused(404, "InlinedResourceNotFound", "type IPv4Network", "POST", records,
		`{"type":"AliasRecord","name":"x","linkedRecord":{"id":`+network+`}}`)
	m.Refused(404, "InlinedResourceNotFound", "192.0.2.1 is not in a network", "POST", records,
		`{"type":"HostRecord","name":"x","addresses":[{"address":"192.0.2.1"}]}`)
	m.Refused(400, "EmptyFieldValue", "1 or more entries", "POST", records, `{"type":"HostRecord","name":"x","addresses":[]}`)
	m.Refused(400, "InvalidResourceFieldValue", "under_score", "POST", records,
		`{"type":"HostRecord","name":"under_score","addresses":[{"address":"10.0.0.12"}]}`)
	m.Refused(400, "InvalidResourceFieldValue", "empty label", "POST", records, `{"type":"TXTRecord","name":"a..b","text":"x"}`)
	m.Refused(400, "InvalidResourceFieldValue", "rdata", "POST", records, `{"type":"GenericRecord","name":"a","recordType":"A","rdata":"10.0.0"}`)
	if below := m.Want(201, "POST", "/api/v2/views/"+view+"/zones", `{"name":"a.b"}`); below.Text("name") != "a" || below.Text("absoluteName") != "a.b" ||
		below.Text("type") != "Zone" {
		t.Errorf("a zone with a dotted name is %s", below.Body)
	}
	for body, want := range map[string]string{`{"name":"","text":"apex"}`: "TXTRecord", `{"name":"h1","addresses":[{"address":"10.0.0.99"}]}`: "HostRecord",
		`{"name":"g1","recordType":"A","rdata":"192.0.2.1"}`: "GenericRecord"} {
		if r := m.Want(201, "POST", records, body); r.Text("type") != want {
			t.Errorf("%s is %s", body, r.Body)
		}
	}
	m.Refused(400, "InvalidResourceFieldValue", "blank", "POST", records, `{"type":"TXTRecord","name":"  ","text":"x"}`)
	m.Refused(409, "ResourceAlreadyExists", "example.com", "POST", "/api/v2/views/"+view+"/zones",
		`{"type":"Zone","absoluteName":"example.com"}`)
	dotted := m.Want(201, "POST", "/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"10.in-addr.arpa"}`,
		"x-bcn-allow-multi-label-zonenames: true")
	if dotted.Text("name") != "10.in-addr.arpa" {
		t.Errorf("the dotted zone is %s", dotted.Body)
	}

	// The history names what was asked for, not what it took.
	history := m.Want(200, "GET", "/api/v2/resourceRecords/"+id+"/transactions", "")
	if history.Text("data.0.operation") != "ADD_HOST_RECORD" || history.Text("data.0.description") != "Added HostRecord www.example.com" {
		t.Errorf("the history says %s", history.Body)
	}
	if got := m.Want(200, "GET", "/api/v2/zones/"+zone+"/transactions", ""); got.Text("data.0.description") != "Added Zone example.com" {
		t.Errorf("the history says %s", got.Body)
	}

	// A rename takes all below along.
	m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"renamed"}`)
	if got := m.Want(200, "GET", "/api/v2/resourceRecords/"+id, "").Text("absoluteName"); got != "www.renamed.com" {
		t.Errorf("after the rename the host is %s", got)
	}
	m.Verify()

	// Dependent records are deleted with a record. An address can be unlinked; unlinking the last one deletes the host.
	address := m.Want(200, "GET", "/api/v2/resourceRecords/"+id+"/addresses", "").Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+id+"/addresses/"+address, "")
	m.Want(200, "GET", "/api/v2/resourceRecords/"+id, "")
	other := m.Want(200, "GET", "/api/v2/resourceRecords/"+id+"/addresses", "").Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/addresses/"+other, "")
	m.Want(404, "GET", "/api/v2/resourceRecords/"+id, "")
	m.Want(404, "GET", "/api/v2/resourceRecords/"+alias.Text("id"), "")
	m.Verify()

	m.Want(204, "DELETE", "/api/v2/configurations/"+configuration, "")
	if left := m.Want(200, "GET", "/api/v2?limit=1&total=true", "").Text("totalCount"); left != before {
		t.Errorf("%s resources are left of those of a deleted configuration, and there were %s", left, before)
	}
	m.Verify()
}

func TestAddressWithHost(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	r := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"printer.example.com"}]}`)
	got := m.Want(200, "GET", "/api/v2/addresses/"+r.Text("id")+"/resourceRecords", "")
	if got.Text("data.0.absoluteName") != "printer.example.com" || got.Text("count") != "1" {
		t.Errorf("the address has %s", got.Body)
	}
	m.Refused(404, "InlinedResourceNotFound", "no zone", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"printer.example.net"}]}`)
	second := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	host := got.Text("data.0.id")
	m.Want(201, "POST", "/api/v2/addresses/"+second+"/resourceRecords", `{"id":`+host+`,"type":"HostRecord"}`)
	m.Refused(409, "ResourceAlreadyExists", "already linked", "POST", "/api/v2/resourceRecords/"+host+"/addresses", `{"id":`+second+`}`)
	if n := m.Want(200, "GET", "/api/v2/resourceRecords/"+host+"/addresses", "").Text("count"); n != "2" {
		t.Errorf("the host has %s addresses", n)
	}
	m.Verify()
}

func TestLocationsAndLinks(t *testing.T) {
	m := start(t)
	_, _, zone, block, network := m.Basics()
	ch := m.Want(200, "GET", "/api/v2/locations?filter=code:'CH'", "").Text("data.0.id")
	basel := m.Want(201, "POST", "/api/v2/locations/"+ch+"/locations", `{"code":"BSL","name":"Basel","latitude":47.56,"longitude":7.59}`)
	if basel.Text("country") != "Switzerland" || basel.Text("latitude") != "47.56" {
		t.Errorf("the location is %s", basel.Body)
	}
	at := "/api/v2/locations/" + basel.Text("id")
	m.Refused(409, "ResourceAlreadyExists", "BSL", "POST", "/api/v2/locations/"+ch+"/locations", `{"code":"BSL","name":"Other"}`)
	m.Refused(400, "ValueOutsideRange", "latitude", "PATCH", at, `{"latitude":91}`)
	m.Refused(403, "ResourceInUse", "country", "DELETE", "/api/v2/locations/"+ch, "")
	m.Want(201, "POST", at+"/annotatedResources", `{"id":`+network+`}`)
	if got := m.Want(200, "GET", at+"/annotatedResources", ""); got.Text("data.0.id") != network ||
		got.Text("data.0.location.name") != "Basel" {
		t.Errorf("annotated: %s", got.Body)
	}
	m.Want(204, "DELETE", at, "")
	if got := m.Want(200, "GET", "/api/v2/networks/"+network, ""); got.Get("location") != nil {
		t.Errorf("the network still refers to a deleted location: %s", got.Body)
	}
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/defaultZones", `{"id":`+zone+`}`)
	m.Want(200, "GET", "/api/v2/blocks/"+block+"/defaultZones/"+zone, "")
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/restrictedZones", `{"id":`+zone+`}`)
	if got := m.Want(200, "GET", "/api/v2/zones/"+zone+"/restrictedRanges", ""); got.Text("data.0.id") != block {
		t.Errorf("restricted ranges: %s", got.Body)
	}
	m.Want(204, "DELETE", "/api/v2/blocks/"+block+"/defaultZones/"+zone, "")
	m.Want(404, "GET", "/api/v2/blocks/"+block+"/defaultZones/"+zone, "")
	m.Verify()
}
