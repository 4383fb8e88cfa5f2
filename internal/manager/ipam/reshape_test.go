package ipam_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// TestReshapingSpace resizes, splits, merges and moves blocks and networks with their contents, and creates blocks around others. Each
// change can be undone.
func TestReshapingSpace(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	other := m.ID("/api/v2/configurations", `{"name":"other"}`) // nothing leaks across
	for _, c := range []string{configuration, other} {
		b := m.ID("/api/v2/configurations/"+c+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/16","name":"b"}`)
		m.ID("/api/v2/blocks/"+b+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/24"}`)
	}
	elsewhere := m.Tree(other)
	block := m.Want(200, "GET", "/api/v2/configurations/"+configuration+"/blocks?filter=name:'b'", "").Text("data.0.id")
	network := m.Want(200, "GET", "/api/v2/blocks/"+block+"/networks", "").Text("data.0.id")
	for _, a := range []string{"10.0.1.10", "10.0.1.200"} {
		m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"`+a+`"}`)
	}
	steps := []struct{ method, path, body, want string }{
		{"PATCH", "/blocks/" + block, `{"range":"10.0.0.0/12"}`,
			">10.0.0.0/12 10.0.0.0/12>10.0.1.0/24~10.0.1.1 10.0.1.0/24>10.0.1.1!G 10.0.1.0/24>10.0.1.10 10.0.1.0/24>10.0.1.200"},
		{"PATCH", "/blocks/" + block, `{"range":"10.0.0.0-10.0.2.255"}`,
			">10.0.0.0-10.0.2.255 10.0.0.0-10.0.2.255>10.0.1.0/24~10.0.1.1 10.0.1.0/24>10.0.1.1!G 10.0.1.0/24>10.0.1.10 10.0.1.0/24>10.0.1.200"},
		{"PATCH", "/blocks/" + block, `{"range":"10.0.0.0/16"}`,
			">10.0.0.0/16 10.0.0.0/16>10.0.1.0/24~10.0.1.1 10.0.1.0/24>10.0.1.1!G 10.0.1.0/24>10.0.1.10 10.0.1.0/24>10.0.1.200"},
		{"POST", "/configurations/" + configuration + "/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`,
			">10.0.0.0/8 10.0.0.0/8>10.0.0.0/16 10.0.0.0/16>10.0.1.0/24~10.0.1.1 10.0.1.0/24>10.0.1.1!G 10.0.1.0/24>10.0.1.10 " +
				"10.0.1.0/24>10.0.1.200"},
		{"POST", "/blocks/" + block + "/blocks", `{"type":"IPv4Block","range":"10.0.0.0/20"}`,
			">10.0.0.0/8 10.0.0.0/8>10.0.0.0/16 10.0.0.0/16>10.0.0.0/20 10.0.0.0/20>10.0.1.0/24~10.0.1.1 10.0.1.0/24>10.0.1.1!G " +
				"10.0.1.0/24>10.0.1.10 10.0.1.0/24>10.0.1.200"},
		{"POST", "/blocks/" + block + "/splits", `{"type":"IPv4NetworkSplit","network":{"id":` + network +
			`},"networkCount":2,"defaultGatewayAssigned":true}`,
			">10.0.0.0/8 10.0.0.0/8>10.0.0.0/16 10.0.0.0/16>10.0.0.0/20 10.0.0.0/20>10.0.1.0/25~10.0.1.1 10.0.0.0/20>10.0.1.128/25~10.0.1.129 " +
				"10.0.1.0/25>10.0.1.1!G 10.0.1.0/25>10.0.1.10 10.0.1.128/25>10.0.1.129!G 10.0.1.128/25>10.0.1.200"},
	}
	for _, s := range steps {
		before := m.Tree(configuration)
		headers := []string{}
		if s.method == "PATCH" {
			headers = append(headers, apitest.MergePatch)
		}
		if r := m.Do(s.method, "/api/v2"+s.path, s.body, headers...); r.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", s.path, s.body, r.StatusCode, r.Body)
		}
		if got := m.Tree(configuration); got != apitest.Sorted(s.want) {
			t.Fatalf("after %s %s\n%s\nwant\n%s", s.path, s.body, got, s.want)
		}
		m.Undoable(configuration, before)
	}
	inner := m.Want(200, "GET", "/api/v2/blocks?filter=range:'10.0.0.0/20'", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/blocks/"+inner, `{"highWaterMark":77}`, apitest.MergePatch)
	second := m.Want(200, "GET", "/api/v2/networks?filter=range:'10.0.1.128/25'", "").Text("data.0.id")
	split := m.Want(200, "GET", "/api/v2/blocks/"+block+"/splits", "")
	if got := m.Want(200, "GET", "/api/v2/splits/"+split.Text("data.0.id")+"/networks?orderBy=asc(id)",
		""); got.Text("data.1.id") != second || split.Text("data.0.networkCount") != "2" {
		t.Errorf("the record of the split is %s with %s", split.Body, got.Body)
	}
	for _, s := range []struct{ path, body, want string }{
		{"/blocks/" + inner + "/merges", `{"type":"IPv4NetworkMerge","networks":[{"id":` + second + `}],"destination":{"id":` + network + `}}`,
			"10.0.0.0/20>10.0.1.0/24~10.0.1.1 10.0.1.0/24>10.0.1.1!G 10.0.1.0/24>10.0.1.10 10.0.1.0/24>10.0.1.129 10.0.1.0/24>10.0.1.200"},
		{"/configurations/" + configuration + "/splits", `{"type":"IPv4BlockSplit","block":{"id":` + inner +
			`},"splitPointAddress":"10.0.1.0"}`,
			">10.0.0.0/8 10.0.0.0/8>10.0.0.0/16 10.0.0.0/16>10.0.0.0/24 10.0.0.0/16>10.0.1.0-10.0.15.255 10.0.1.0-10.0.15.255>10.0.1.0/24~10.0.1.1"},
		{"/blocks/" + block + "/merges", `{"type":"IPv4BlockMerge","blocks":[{"id":` + inner + `}],"destination":{"id":` + block + `}}`,
			">10.0.0.0/8 10.0.0.0/8>10.0.0.0/16 10.0.0.0/16>10.0.1.0-10.0.15.255 10.0.1.0-10.0.15.255>10.0.1.0/24~10.0.1.1"},
		{"/blocks/" + block + "/moves", `{"type":"IPMove","address":"10.7.0.0"}`,
			">10.0.0.0/8 10.0.0.0/8>10.7.0.0/16 10.7.0.0/16>10.7.1.0-10.7.15.255 10.7.1.0-10.7.15.255>10.7.1.0/24~10.7.1.1 " +
				"10.7.1.0/24>10.7.1.1!G 10.7.1.0/24>10.7.1.10"},
		{"/networks/" + network + "/moves", `{"type":"IPMove","address":"10.7.200.0"}`,
			"10.7.0.0/16>10.7.200.0/24~10.7.200.1 10.7.200.0/24>10.7.200.1!G 10.7.200.0/24>10.7.200.10"},
		{"/networks/" + network + "/moves", `{"type":"IPMove","address":"10.7.200.128"}`, ""},
	} {
		before := m.Tree(configuration)
		r := m.Do("POST", "/api/v2"+s.path, s.body)
		if s.want == "" {
			if r.StatusCode != 400 && r.StatusCode != 409 || m.Tree(configuration) != before {
				t.Errorf("%s %s: %d %s", s.path, s.body, r.StatusCode, r.Body)
			}
			continue
		}
		if r.StatusCode != 201 {
			t.Fatalf("%s %s: %d %s", s.path, s.body, r.StatusCode, r.Body)
		}
		if got := m.Tree(configuration); !apitest.HasWords(got, s.want) {
			t.Fatalf("after %s %s\n%s\nwant\n%s", s.path, s.body, got, s.want)
		}
		if strings.Contains(s.body, "NetworkMerge") {
			if got := m.Want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "").Text("data.0.description"); got !=
				"Merged IPv4Network 10.0.1.128/25 into 10.0.1.0/25" {
				t.Errorf("the merge is described as %q", got)
			}
		}
		m.Undoable(configuration, before)
	}
	if got := m.Want(200, "GET", "/api/v2/blocks?filter=range:'10.7.1.0-10.7.15.255'", "").Text("data.0.highWaterMark"); got != "77" {
		t.Errorf("the part that was split off has the high water mark %q", got)
	}
	if m.Tree(other) != elsewhere {
		t.Errorf("the other configuration is %s", m.Tree(other))
	}
}

// TestReshapingRefusals checks that a change is refused if it would leave content outside, would overlap, or has no effect. The error names
// the obstacle, and nothing changes.
func TestReshapingRefusals(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, network := m.Basics()
	second := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.2.0/24"}`)
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.127"}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.127"}]}`)
	b, n := "/api/v2/blocks/"+block, "/api/v2/networks/"+network
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "IPv4Network "+second, "PATCH", b, `{"range":"10.0.0.0/23"}`, apitest.MergePatch)
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "10.0.0.127", "PATCH", n, `{"range":"10.0.0.0/26"}`, apitest.MergePatch)
	m.Refused(400, "IpRangeOverlapsSiblings", "overlaps IPv4Network 10.0.2.0/24 ("+second+")", "PATCH", n,
		`{"range":"10.0.0.0/22"}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "CIDR", "PATCH", n, `{"range":"10.0.0.0-10.0.0.99"}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "family", "PATCH", n, `{"range":"2001:db8::/64"}`, apitest.MergePatch)
	m.Refused(400, "IpRangeOutsideParent", "10.0.0.0/8", "PATCH", n, `{"range":"11.0.0.0/24"}`, apitest.MergePatch)
	m.Refused(400, "IpRangeOverlapsSiblings", "overlaps", "POST", b+"/blocks", `{"type":"IPv4Block","range":"10.0.0.128-10.0.1.255"}`)
	splits, merges := b+"/splits", b+"/merges"
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "10.0.0.127", "POST", splits, `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	m.Refused(400, "InvalidResourceFieldValue", "power of two", "POST", splits, `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":3}`)
	m.Refused(400, "IpRangeTooSmall", "parts", "POST", splits, `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":512}`)
	m.Refused(404, "InlinedResourceNotFound", "network", "POST", splits,
		`{"type":"IPv4NetworkSplit","network":{"id":`+six+`},"networkCount":2}`)
	m.Refused(400, "InvalidResourceFieldValue", "is not below", "POST", "/api/v2/blocks/"+six+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "cannot be split", "POST", splits,
		`{"type":"IPv4BlockSplit","block":{"id":`+block+`},"splitPointAddress":"10.0.0.9"}`)
	m.Refused(400, "InvalidResourceFieldValue", "splitPointAddress", "POST", splits,
		`{"type":"IPv4BlockSplit","block":{"id":`+block+`},"splitPointAddress":"10.0.0.0"}`)
	m.Refused(404, "InlinedResourceNotFound", "networks", "POST", merges,
		`{"type":"IPv4NetworkMerge","networks":[{"id":999999}],"destination":{"id":`+network+`}}`)
	m.Refused(404, "InlinedResourceNotFound", "destination", "POST", merges,
		`{"type":"IPv4NetworkMerge","networks":[{"id":`+network+`}],"destination":{"id":999999}}`)
	m.Refused(409, "RangesNotAdjacent", "between", "POST", merges,
		`{"type":"IPv4NetworkMerge","networks":[{"id":`+second+`}],"destination":{"id":`+network+`}}`)
	m.Refused(400, "InvalidResourceFieldValue", "nothing to merge", "POST", merges,
		`{"type":"IPv4NetworkMerge","networks":[{"id":`+network+`}],"destination":{"id":`+network+`}}`)
	m.Refused(404, "InlinedResourceNotFound", "networks", "POST", merges,
		`{"type":"IPv4NetworkMerge","networks":[{"id":`+block+`}],"destination":{"id":`+network+`}}`)
	m.Refused(400, "IpRangeOverlapsSiblings", "overlaps", "POST", n+"/moves", `{"type":"IPMove","address":"10.0.2.0"}`)
	m.Refused(400, "IpRangeOutsideParent", "not in a block", "POST", n+"/moves", `{"type":"IPMove","address":"192.168.0.0"}`)
	m.Refused(400, "InvalidResourceFieldValue", "family", "POST", n+"/moves", `{"type":"IPMove","address":"2001:db8::"}`)
	m.Refused(409, "ResourceAlreadyExists", "10.0.2.1", "POST", "/api/v2/addresses/"+address+"/moves",
		`{"type":"IPMove","address":"10.0.2.1"}`)
	m.Refused(400, "AddressNotInNetwork", "not in a network", "POST", "/api/v2/addresses/"+address+"/moves",
		`{"type":"IPMove","address":"10.0.9.1"}`)
	m.Refused(405, "MethodNotAllowed", "DELETE", "DELETE", "/api/v2/splits/1234", "")
	m.Verify()

	// An address moves with its records; a zone with all below it, and a record.
	mac := m.ID("/api/v2/configurations/"+configuration+"/macAddresses", `{"address":"00:00:5e:00:53:07"}`)
	m.Want(201, "POST", "/api/v2/addresses/"+address+"/moves", `{"type":"IPMove","address":"10.0.2.77","macAddress":{"id":`+mac+`}}`)
	if got := m.Want(200, "GET", "/api/v2/addresses/"+address, "").Text("macAddress.id"); got != mac {
		t.Errorf("at the new place its hardware address is %s", got)
	}
	if r := m.Want(200, "GET", "/api/v2/addresses/"+address, ""); r.Text("address") != "10.0.2.77" ||
		r.Text("_links.up.href") != "/api/v2/networks/"+second {
		t.Errorf("the address is %s", r.Body)
	}
	record := m.Want(200, "GET", "/api/v2/addresses/"+address+"/resourceRecords", "").Text("data.0.id")
	m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"sub"}`)
	view := m.Want(200, "GET", "/api/v2/zones/"+zone, "").Text("view.id")
	org := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","name":"org"}`)
	m.Refused(400, "InvalidMoveDestination", "the zone to move", "POST", "/api/v2/zones/"+zone+"/moves",
		`{"type":"DNSMove","absoluteName":"x.sub.example.com"}`)
	m.Want(201, "POST", "/api/v2/zones/"+zone+"/moves", `{"type":"DNSMove","absoluteName":"example.org"}`)
	if got := m.Want(200, "GET", "/api/v2/zones/"+zone, ""); got.Text("absoluteName") != "example.org" ||
		got.Text("_links.up.href") != "/api/v2/zones/"+org {
		t.Errorf("the zone is %s", got.Body)
	}
	if got := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, "").Text("absoluteName"); got != "www.example.org" {
		t.Errorf("its record is %s", got)
	}
	m.Want(201, "POST", "/api/v2/resourceRecords/"+record+"/moves", `{"type":"DNSMove","absoluteName":"a.sub.example.org"}`)
	if got := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, ""); got.Text("absoluteName") != "a.sub.example.org" ||
		got.Text("name") != "a" {
		t.Errorf("the record is %s", got.Body)
	}
	m.Verify()
}

// TestReuseExisting checks the option to reuse an existing network of the requested size that contains only its gateway. Without such a
// network, a new one is created.
func TestReuseExisting(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.1.0.0/16"}`)
	empty := m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.1.7.0/24"}`)
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	networks, size := "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/24"}`
	reuse := []string{"x-bcn-traversal-method: DEPTH_FIRST", "x-bcn-reuse-existing: true"}
	last := m.LastTransaction()
	if got := m.ID(networks, size, reuse...); got != empty || m.LastTransaction() != last {
		t.Errorf("network %s is taken, want %s", got, empty)
	}
	m.ID("/api/v2/networks/"+empty+"/ranges", `{"type":"IPv4DHCPRange","range":"10,20"}`)
	if r := m.Want(201, "POST", networks, size, reuse...); r.Text("range") != "10.0.1.0/24" {
		t.Errorf("the new network is %s", r.Body)
	}
	if r := m.Want(201, "POST", networks, size, "x-bcn-reuse-existing: true"); r.Text("range") != "10.0.2.0/24" {
		t.Errorf("without a traversal the new network is %s", r.Body)
	}
	m.Verify()
}

// TestRefusalsStateRemedy checks that errors state the remedy: the operation that splits, the right for an alias to another user's name,
// the role to change.
func TestRefusalsStateRemedy(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/24"}`)
	view := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"in"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"lab.example"}`)
	m.Refused(404, "ResourceNotFound", "splits exist below blocks and configurations", "POST", "/api/v2/networks/"+network+"/splits", `{}`)
	m.Refused(404, "ResourceNotFound", `"lab" is not a number of a resource in blocks`, "GET", "/api/v2/blocks/lab/networks", "")
	m.Refused(404, "InlinedResourceNotFound", "ExternalHostsZone", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"AliasRecord","name":"x","linkedRecord":{"absoluteName":"www.elsewhere.example"}}`)
	token, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "reader", Role: authz.Analyst})
	if err != nil {
		t.Fatal(err)
	}
	m.Refused(403, "AccessDenied", "require the role administrator", "POST", "/api/v2/configurations", `{"name":"x"}`, "Authorization: Bearer "+token)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":4}`)
	r := m.Want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "")
	if got := r.Text("data.0.description"); got != "Split IPv4Network 10.1.0.0/24 in 4" {
		t.Errorf("the history says %q", got)
	}
}

// TestSplitKeepsSettings checks that the roles and options of a split network are set at each of its parts.
func TestSplitKeepsSettings(t *testing.T) {
	m := start(t)
	configuration, view, _, block, network := m.Basics()
	at := "/api/v2/configurations/" + configuration
	one := m.ID(at+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	face := m.Want(200, "GET", "/api/v2/servers/"+one+"/interfaces", "").Text("data.0.id")
	tag := m.ID("/api/v2/tagGroups/"+m.ID("/api/v2/tagGroups", `{"name":"sites"}`)+"/tags", `{"name":"quay"}`)
	list := m.ID(at+"/accessControlLists", `{"name":"inside","matchElements":["10.0.0.0/8"]}`)
	roles, options := "/api/v2/networks/"+network+"/deploymentRoles", "/api/v2/networks/"+network+"/deploymentOptions"
	m.ID(roles, `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+face+`}]}`)
	m.ID(roles, `{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":`+view+`},"interfaces":[{"id":`+face+`}]}`)
	tagged := m.ID(options, `{"type":"DHCPv4ClientOption","name":"domain-name","value":"example.com","serverScope":{"id":`+one+`}}`)
	m.Want(201, "POST", "/api/v2/deploymentOptions/"+tagged+"/tags", `{"id":`+tag+`}`)
	m.ID(options, `{"type":"DHCPv4RawOption","name":"mine","value":"option x 1;"}`)
	query := m.ID(options, `{"type":"DNSOption","name":"allow-query","value":["inside"]}`)
	before := m.Want(200, "GET", options+"?orderBy=asc(id)&fields=type,name,value,serverScope", "")
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	part := "/api/v2/networks/" + m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("range:'10.0.0.128/25'"), "").Text("data.0.id")
	got := m.Want(200, "GET", part+"/deploymentRoles?orderBy=asc(id)", "")
	if got.Count() != 2 || got.Text("data.0.type") != "DHCPDeploymentRole" || got.Text("data.1.view.id") != view {
		t.Errorf("the part has the roles %s", got.Body)
	}
	for i := range 2 {
		if r := m.Want(200, "GET", "/api/v2/deploymentRoles/"+got.Text(fmt.Sprintf("data.%d.id", i))+"/interfaces", ""); r.Count() != 1 ||
			r.Text("data.0.id") != face {
			t.Errorf("a role of the part has the interfaces %s", r.Body)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/servers/"+one+"/deploymentRoles", ""); r.Count() != 4 {
		t.Errorf("the server has the roles %s", r.Body)
	}
	after := m.Want(200, "GET", part+"/deploymentOptions?orderBy=asc(id)&fields=type,name,value,serverScope", "")
	for _, field := range []string{"type", "name", "value", "serverScope.id"} {
		for i := range before.Count() {
			if path := fmt.Sprintf("data.%d.%s", i, field); fmt.Sprint(before.Get(path)) != fmt.Sprint(after.Get(path)) {
				t.Errorf("%s: %v at the whole, %v at the part", path, before.Get(path), after.Get(path))
			}
		}
	}
	if r := m.Want(200, "GET", "/api/v2/tags/"+tag+"/taggedResources", ""); r.Count() != 2 {
		t.Errorf("tagged are %s", r.Body)
	}
	split := m.LastTransaction()
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+query, "")
	// the option of the part still refers to it
	m.Refused(403, "ResourceInUse", "allow-query", "DELETE", "/api/v2/accessControlLists/"+list, "")
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+split+`}`)
	if r := m.Want(200, "GET", "/api/v2/deploymentOptions?total=true", ""); r.Text("totalCount") != "3" {
		t.Errorf("after undo there are the options %s", r.Body)
	}
	m.Verify()
}
