package ipam_test

import (
	"strconv"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestRanges creates DHCP ranges and IP groups over a network's hosts, in every notation. The next available address is outside of the
// ranges, and changes of the network include its ranges.
func TestRanges(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	ranges, groups := "/api/v2/networks/"+network+"/ranges", "/api/v2/networks/"+network+"/ipGroups"
	first := m.Want(201, "POST", ranges,
		`{"type":"IPv4DHCPRange","range":"2,29","name":"low","exclusionRanges":["10.0.0.10","10.0.0.12-10.0.0.15"]}`)
	if first.Text("range") != "10.0.0.2-10.0.0.30" || first.Text("exclusionRanges.0") != "10.0.0.10-10.0.0.10" {
		t.Errorf("the range is %s", first.Body)
	}
	for body, want := range map[string]string{
		`{"type":"IPv4DHCPRange","range":"10.0.0.64/26"}`:          "10.0.0.64-10.0.0.127",
		`{"type":"IPv4DHCPRange","range":"128,25%"}`:               "10.0.0.128-10.0.0.190",
		`{"type":"IPv4DHCPRange","range":"10.0.0.191-10.0.0.200"}`: "10.0.0.191-10.0.0.200",
	} {
		if r := m.Want(201, "POST", ranges, body); r.Text("range") != want {
			t.Errorf("%s is %s", body, r.Body)
		}
	}
	m.Refused(400, "IpRangeOverlapsSiblings", "10.0.0.2-10.0.0.30", "POST", ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.30-10.0.0.31"}`)
	m.Refused(400, "IpRangeOutsideParent", "hosts", "POST", ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.250-10.0.0.255"}`)
	m.Refused(400, "InvalidResourceFieldValue", "offset", "POST", ranges, `{"type":"IPv4DHCPRange","range":"300,1"}`)
	m.Refused(400, "InvalidResourceFieldValue", "IPv6", "POST", ranges, `{"type":"IPv4DHCPRange","range":"/28"}`)
	m.Refused(400, "InvalidResourceFieldValue", "exclusionRanges", "POST", ranges,
		`{"type":"IPv4DHCPRange","range":"10.0.0.40-10.0.0.50","exclusionRanges":["10.0.0.60"]}`)
	m.Refused(400, "InvalidResourceFieldValue", "in order", "POST", ranges,
		`{"type":"IPv4DHCPRange","range":"10.0.0.40-10.0.0.50","exclusionRanges":["10.0.0.45","10.0.0.44"]}`)
	m.Refused(400, "InvalidResourceFieldValue", "cannot be in", "POST", ranges, `{"type":"IPv6DHCPRange","range":"/80"}`)
	m.Refused(400, "InvalidResourceFieldValue", "DHCP ranges", "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"2,5"}`)
	// The first that is outside: .1 is the gateway, .2 to .30 are a range.
	if a := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`); a.Text("address") != "10.0.0.31" {
		t.Errorf("the next address is %s", a.Text("address"))
	}
	group := m.ID(groups, `{"type":"IPv4Group","name":"printers","range":"10.0.0.20-10.0.0.40"}`)
	m.Refused(409, "ResourceAlreadyExists", "printers", "POST", groups, `{"type":"IPv4Group","name":"printers","range":"10.0.0.50-10.0.0.51"}`)
	m.Refused(400, "IpRangeOverlapsSiblings", " ("+group+")", "POST", groups,
		`{"type":"IPv4Group","name":"others","range":"10.0.0.40-10.0.0.51"}`)
	// The next address of a range is outside of its exclusions, and that of a group is outside of all ranges.
	within := func(part, want string) {
		t.Helper()
		if a := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`,
			"x-portolan-within: "+part); a.Text("address") != want {
			t.Errorf("the next address within %s is %s, want %s", part, a.Text("address"), want)
		}
	}
	for n := 2; n < 10; n++ {
		within(first.Text("id"), "10.0.0."+strconv.Itoa(n))
	}
	within(first.Text("id"), "10.0.0.11")
	within(first.Text("id"), "10.0.0.16")
	within(group, "10.0.0.32")
	r := m.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?filter=address:'10.0.0.32'", "")
	if r.Text("data.0.ipGroup.id") != group {
		t.Errorf("in the group it is %s", r.Body)
	}
	m.Refused(400, "InvalidHeaderValue", "x-portolan-within", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`, "x-portolan-within: "+network)
	single := m.ID(groups, `{"type":"IPv4Group","name":"one","range":"10.0.0.250-10.0.0.250"}`)
	within(single, "10.0.0.250")
	m.Refused(400, "NoSpaceForAddress", "IPv4Group", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`, "x-portolan-within: "+single)
	m.Want(204, "DELETE", m.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?filter=address:'10.0.0.250'",
		"").Text("data.0._links.self.href"), "")
	m.Want(204, "DELETE", "/api/v2/ipGroups/"+single, "")
	m.Verify()

	// Ranges are merged and resized, and refuse changes that would cut them.
	second := m.Want(200, "GET", ranges+"?filter=range:'10.0.0.128-10.0.0.190'", "").Text("data.0.id")
	third := m.Want(200, "GET", ranges+"?filter=range:'10.0.0.191-10.0.0.200'", "").Text("data.0.id")
	m.Refused(409, "RangesNotAdjacent", "between", "POST", "/api/v2/networks/"+network+"/merges",
		`{"type":"IPv4DHCPRangeMerge","ranges":[{"id":`+third+`}],"destination":{"id":`+first.Text("id")+`}}`)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/merges",
		`{"type":"IPv4DHCPRangeMerge","ranges":[{"id":`+third+`}],"destination":{"id":`+second+`}}`)
	if got := m.Want(200, "GET", "/api/v2/ranges/"+second, "").Text("range"); got != "10.0.0.128-10.0.0.200" {
		t.Errorf("merged it is %s", got)
	}
	m.Want(200, "PATCH", "/api/v2/ranges/"+second, `{"range":"10.0.0.140-10.0.0.150"}`, apitest.MergePatch)
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "IPv4DHCPRange", "PATCH", "/api/v2/networks/"+network, `{"range":"10.0.0.0/27"}`, apitest.MergePatch)
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "IPv4DHCPRange", "POST", "/api/v2/blocks/"+block+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":16}`)
	before := m.Tree(configuration)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/moves", `{"type":"IPMove","address":"10.9.9.0"}`)
	if r := m.Want(200, "GET", "/api/v2/ranges/"+first.Text("id"), ""); r.Text("range") != "10.9.9.2-10.9.9.30" ||
		r.Text("exclusionRanges.1") != "10.9.9.12-10.9.9.15" {
		t.Errorf("moved it is %s", r.Body)
	}
	m.Undoable(configuration, before)
	// .127 would be a broadcast address.
	m.Refused(400, "IpRangeExcludesAssignedAddresses", "10.9.9.64", "POST", "/api/v2/blocks/"+block+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	wideRange := m.Want(200, "GET", ranges+"?filter=range:'10.9.9.64-10.9.9.127'", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/ranges/"+wideRange, `{"range":"10.9.9.64-10.9.9.126"}`, apitest.MergePatch)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	upper := m.Want(200, "GET", "/api/v2/networks?filter=range:'10.9.9.128/25'", "").Text("data.0.id")
	if r := m.Want(200, "GET", "/api/v2/networks/"+upper+"/ranges", ""); r.Text("data.0.range") != "10.9.9.140-10.9.9.150" {
		t.Errorf("the upper half has %s", r.Body)
	}
	m.Verify()

	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	wide := m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	for _, want := range []string{"2001:db8:0:0:1::-2001:db8::1:ffff:ffff:ffff", "2001:db8:0:0:2::-2001:db8::2:ffff:ffff:ffff"} {
		r := m.Want(201, "POST", "/api/v2/networks/"+wide+"/ranges", `{"type":"IPv6DHCPRange","range":"/80"}`)
		if got := r.Text("range"); !strings.HasSuffix(got, want[strings.Index(want, "-"):]) {
			t.Errorf("the next /80 is %s, want %s", got, want)
		}
	}
	m.Verify()
}

// TestUsageOfManyRanges checks that the usage of several ranges, counted together, equals the usage that each of them shows alone.
func TestUsageOfManyRanges(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	below := "/api/v2/networks/" + network
	for _, body := range []string{`{"type":"IPv4DHCPRange","range":"10.0.0.10-10.0.0.29","exclusionRanges":["10.0.0.12","10.0.0.20-10.0.0.24"]}`,
		`{"type":"IPv4DHCPRange","range":"10.0.0.40-10.0.0.49"}`,
		`{"type":"IPv4DHCPRange","range":"10.0.0.60-10.0.0.69","exclusionRanges":["10.0.0.60-10.0.0.69"]}`} {
		m.ID(below+"/ranges", body)
	}
	for _, address := range []string{"10.0.0.9", "10.0.0.10", "10.0.0.12", "10.0.0.22", "10.0.0.29", "10.0.0.30", "10.0.0.41", "10.0.0.60"} {
		m.ID(below+"/addresses", `{"type":"IPv4Address","address":"`+address+`","state":"STATIC"}`)
	}
	list := m.Want(200, "GET", "/api/v2/ranges?orderBy=asc(range)", "")
	for i, want := range []string{"4 4", "1 ", "1 9"} {
		at := "data." + strconv.Itoa(i)
		one := m.Want(200, "GET", "/api/v2/ranges/"+list.Text(at+".id"), "")
		if got, alone := list.Text(at+".usage.STATIC")+" "+list.Text(at+".usage.DHCP_EXCLUDED"), one.Text("usage.STATIC")+" "+
			one.Text("usage.DHCP_EXCLUDED"); got != want || alone != want {
			t.Errorf("range %s: %s in a list, %s alone, want %s: %s", list.Text(at+".range"), got, alone, want, one.Body)
		}
	}
}
