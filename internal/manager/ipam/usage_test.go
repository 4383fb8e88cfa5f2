package ipam_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestUsage checks that usage follows the assignments at every level, after every change of blocks and networks.
func TestUsage(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"u"}`)
	top := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/24"}`)
	lower := m.ID("/api/v2/blocks/"+top+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/25"}`)
	network := m.ID("/api/v2/blocks/"+lower+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/26"}`)
	usage := func(path, field, want string) {
		t.Helper()
		if got := m.Want(200, "GET", path, "").Text(field); got != want {
			t.Errorf("%s: %s is %s, want %s", path, field, got, want)
		}
	}
	usage("/api/v2/networks/"+network, "usage", "map[DHCP_RESERVED:0 GATEWAY:1 RESERVED:0 STATIC:0 UNASSIGNED:61]")
	usage("/api/v2/blocks/"+lower, "usagePercentage",
		"map[addressAllocation:map[addresses:1 assigned:0 unassigned:100] networkAllocation:map[addresses:64 assigned:50 unassigned:50]]")
	addresses := "/api/v2/networks/" + network + "/addresses"
	var last string
	for range 15 {
		last = m.ID(addresses, `{"type":"IPv4Address","state":"STATIC"}`)
	}
	m.Want(200, "PATCH", "/api/v2/addresses/"+last, `{"state":"RESERVED"}`, apitest.MergePatch)
	usage("/api/v2/networks/"+network, "usage", "map[DHCP_RESERVED:0 GATEWAY:1 RESERVED:1 STATIC:14 UNASSIGNED:46]")
	usage("/api/v2/blocks/"+lower, "usagePercentage.addressAllocation.assigned", "12") // 16 of 128
	usage("/api/v2/blocks/"+top, "usagePercentage.addressAllocation.assigned", "6")
	usage("/api/v2/blocks/"+top+"/addressCounts", "counts", "map[GATEWAY:1 RESERVED:1 STATIC:14]")
	usage("/api/v2/networks/"+network+"/addressCounts", "totalCount", "16")
	other := m.ID("/api/v2/blocks/"+top+"/networks", `{"type":"IPv4Network","range":"10.0.0.128/30","name":"full"}`)
	m.ID("/api/v2/networks/"+other+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	fullest := "/api/v2/configurations/" + configuration + "/fullestNetworks"
	usage(fullest, "data", "[map[id:"+other+" name:full range:10.0.0.128/30 size:2 type:IPv4Network used:2] map[id:"+network+
		" name: range:10.0.0.0/26 size:62 type:IPv4Network used:16]]")
	m.Refused(400, "InvalidQueryParameterValue", "limit", "GET", fullest+"?limit=1", "")
	m.Want(404, "GET", "/api/v2/configurations/"+top+"/fullestNetworks", "")
	m.Want(204, "DELETE", "/api/v2/networks/"+other, "")
	m.Want(201, "POST", "/api/v2/blocks/"+lower+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":2}`)
	usage("/api/v2/networks?filter=range:'10.0.0.32/27'", "data.0.usage.STATIC", "0")
	usage("/api/v2/blocks/"+top, "usagePercentage.addressAllocation.assigned", "6")
	dhcp := m.ID("/api/v2/networks/"+network+"/ranges",
		`{"type":"IPv4DHCPRange","range":"10.0.0.10-10.0.0.14","exclusionRanges":["10.0.0.11-10.0.0.12"]}`)
	m.Want(204, "DELETE", m.Want(200, "GET", addresses+"?filter=address:'10.0.0.12'", "").Text("data.0._links.self.href"), "")
	usage("/api/v2/ranges/"+dhcp, "usage", "map[DHCP_EXCLUDED:1 DHCP_RESERVED:0 GATEWAY:0 RESERVED:0 STATIC:4 UNASSIGNED:0]")
	m.Want(201, "POST", "/api/v2/blocks/"+lower+"/moves", `{"type":"IPMove","address":"10.0.0.128"}`)
	usage("/api/v2/blocks/"+lower, "usagePercentage.addressAllocation.assigned", "11")
	m.Want(204, "DELETE", "/api/v2/blocks/"+lower, "")
	usage("/api/v2/blocks/"+top, "usagePercentage.addressAllocation.assigned", "0")
	usage("/api/v2/blocks/"+top, "usagePercentage.networkAllocation.assigned", "0")
	m.Verify()
}

// TestInheritance checks that a setting of a block applies below it until another resource overrides it. A change shows immediately.
func TestInheritance(t *testing.T) {
	m := start(t)
	configuration, view, zone, top, network := m.Basics()
	place := m.Want(200, "GET", "/api/v2/locations?limit=1", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/blocks/"+top,
		`{"pingBeforeAssignEnabled":false,"highWaterMark":80,"location":{"id":`+place+`},"defaultView":{"id":`+view+`},"defaultZones":[{"id":`+zone+`}]}`, apitest.MergePatch)
	r := m.Want(200, "GET", "/api/v2/networks/"+network, "")
	if got := r.Text("_inheritedFields"); got != "[defaultView defaultZones highWaterMark location pingBeforeAssignEnabled]" {
		t.Errorf("inherited are %s", got)
	}
	if r.Text("highWaterMark") != "80" || r.Text("location.id") != place || r.Text("defaultView.id") != view ||
		r.Text("pingBeforeAssignEnabled") != "false" {
		t.Errorf("the network is %s", r.Body)
	}
	// A client that does not know _inheritedFields puts back what it got: the values stay inherited, another value is the network's own.
	whole := strings.Replace(string(r.Body), `"_inheritedFields":`, `"unknown":`, 1)
	r = m.Want(200, "PUT", "/api/v2/networks/"+network, strings.NewReplacer(`"pingBeforeAssignEnabled":false`, `"pingBeforeAssignEnabled":true`,
		`"pingBeforeAssignmentEnabled":false`, `"pingBeforeAssignmentEnabled":true`).Replace(whole))
	if got := r.Text("_inheritedFields"); got != "[defaultView defaultZones highWaterMark location]" {
		t.Errorf("after PUT inherited are %s", got)
	}
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"pingBeforeAssignEnabled":null}`, apitest.MergePatch)
	r = m.Want(200, "PUT", "/api/v2/networks/"+network, strings.NewReplacer(`"pingBeforeAssignEnabled":false`, `"unknown2":false`,
		`"pingBeforeAssignmentEnabled":false`, `"pingBeforeAssignmentEnabled":true`).Replace(whole)) // by its other name alone
	if r.Text("pingBeforeAssignEnabled") != "true" {
		t.Errorf("set by its other name it is %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"pingBeforeAssignEnabled":null}`, apitest.MergePatch)
	// In between, an ancestor that says otherwise; its own fields are not inherited.
	between := m.ID("/api/v2/blocks/"+top+"/blocks",
		`{"type":"IPv4Block","range":"10.0.0.0/16","highWaterMark":70,"defaultZonesInherited":false}`)
	r = m.Want(200, "GET", "/api/v2/networks?filter=range:'10.0.0.0/24'", "")
	if got := r.Text("data.0.highWaterMark") +
		r.Text("data.0._inheritedFields"); got != "70[defaultView highWaterMark location pingBeforeAssignEnabled]" {
		t.Errorf("below another block it is %s", got)
	}
	if got := m.Want(200, "GET", "/api/v2/blocks/"+between,
		"").Text("_inheritedFields"); got != "[defaultView location pingBeforeAssignEnabled]" {
		t.Errorf("the block between inherits %s", got)
	}
	m.Want(200, "PATCH", "/api/v2/blocks/"+between, `{"highWaterMark":60}`, apitest.MergePatch)
	dhcp := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"2,20","lowWaterMark":10}`)
	if r := m.Want(200, "GET", "/api/v2/ranges/"+dhcp, ""); r.Text("highWaterMark")+r.Text("_inheritedFields") != "60[highWaterMark]" {
		t.Errorf("the range is %s", r.Body)
	}
	// Read, changed and written back, what was inherited still is; without the list it is set.
	body := string(m.Want(200, "GET", "/api/v2/networks/"+network, "", "Accept: application/json").Body)
	m.Want(200, "PUT", "/api/v2/networks/"+network, body)
	m.Want(200, "PATCH", "/api/v2/blocks/"+between, `{"highWaterMark":50}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/networks/"+network, "").Text("highWaterMark"); got != "50" {
		t.Errorf("written back, the high water mark is %s", got)
	}
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"highWaterMark":50}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/blocks/"+between, `{"highWaterMark":40}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/networks/"+network, ""); r.Text("highWaterMark") != "50" {
		t.Errorf("set, the high water mark is %s", r.Body)
	}
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32","location":{"id":`+place+`}}`)
	if r := m.Want(201, "POST", "/api/v2/blocks/"+six+"/networks",
		`{"type":"IPv6Network","range":"/64"}`); r.Text("location.id")+r.Text("_inheritedFields") != place+"[location]" {
		t.Errorf("the IPv6 network is %s", r.Body)
	}
	m.Verify()
}

// TestSettingsOfNetworks checks that the effective settings of a network are cached until the network or a block above it changes.
func TestSettingsOfNetworks(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"2,20"}`)
	block, network = "/api/v2/blocks/"+block, "/api/v2/networks/"+network
	for _, c := range []struct{ path, mark, want string }{{block, "60", "60"}, {network, "50", "50"}, {block, "40", "50"},
		{network, "30", "30"}, {network, "null", "40"}, {block, "35", "35"}, {block, "null", ""}} {
		m.Want(200, "PATCH", c.path, `{"highWaterMark":`+c.mark+`}`, apitest.MergePatch)
		for range 2 {
			r := m.Want(200, "GET", "/api/v2/ranges?filter=range:contains('10.0.0.7')", "")
			if got := r.Text("data.0.highWaterMark"); r.Text("count") != "1" || got != c.want {
				t.Errorf("after %s of %s the range has %s, want %s", c.mark, c.path, got, c.want)
			}
		}
	}
}

// TestWaterMarks checks that usage that rises above its mark, falls below it or returns is reported once.
func TestWaterMarks(t *testing.T) {
	m := start(t)
	_, _, _, block, _ := m.Basics()
	m.Refused(400, "InvalidResourceFieldValue", "lowWaterMark", "PATCH", "/api/v2/blocks/"+block, `{"lowWaterMark":50,"highWaterMark":40}`, apitest.MergePatch)
	m.Refused(400, "ValueOutsideRange", "highWaterMark", "PATCH", "/api/v2/blocks/"+block, `{"highWaterMark":101}`, apitest.MergePatch)
	small := m.ID("/api/v2/blocks/"+block+"/networks",
		`{"type":"IPv4Network","range":"10.1.0.0/28","name":"small","lowWaterMark":20,"highWaterMark":50}`)
	told := func(want ...string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/events?orderBy=id", "")
		if r.Text("count") != strconv.Itoa(len(want)) {
			t.Fatalf("there are these events, want %d: %s", len(want), r.Body)
		}
		for i, text := range want {
			if got := r.Text("data." + strconv.Itoa(i) + ".message"); got != "The usage of IPv4Network 10.1.0.0/28 small "+text {
				t.Errorf("event %d is %s", i, got)
			}
		}
	}
	told()
	var ids []string
	for range 7 { // with the gateway 8 of 14
		ids = append(ids, m.ID("/api/v2/networks/"+small+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`))
	}
	high := "is above its high water mark: 8 of 14 addresses, 57%"
	between, low := "is between its water marks again: 3 of 14 addresses, 21%", "is below its low water mark: 2 of 14 addresses, 14%"
	told("is between its water marks again: 3 of 14 addresses, 21%", high)
	for _, id := range ids {
		m.Want(204, "DELETE", "/api/v2/addresses/"+id, "")
	}
	told(between, high, "is between its water marks again: 7 of 14 addresses, 50%", low)
	r := m.Want(200, "GET", "/api/v2/events?filter=eventType:'WARNING'&orderBy=id", "")
	if r.Text("data.0.source.id") != small || r.Text("data.0.category") != "DHCP_ALERT" || r.Text("data.0.type") != "Event" {
		t.Errorf("the warnings are %s", r.Body)
	}
	one := m.Want(200, "GET", r.Text("data.0._links.self.href"), "")
	if one.Text("message") != r.Text("data.0.message") {
		t.Errorf("one event is %s", one.Body)
	}
	m.Want(404, "GET", "/api/v2/events/1", "")
	for filter, want := range map[string]string{"source.id:" + small: "4", "source.name:'small'": "4", "source.id:" + block: "0",
		"user.name:'admin'": "4", "user:null": "0"} {
		if r := m.Want(200, "GET", "/api/v2/events?filter="+filter, ""); r.Text("count") != want {
			t.Errorf("%s gives %s", filter, r.Body)
		}
	}
	m.Want(400, "GET", "/api/v2/transactions?filter=revertingTransaction.id:5", "")
	m.Want(405, "DELETE", r.Text("data.0._links.self.href"), "")
	// A mark that is set later is looked at at once.
	m.Want(200, "PATCH", "/api/v2/networks/"+small, `{"lowWaterMark":null,"highWaterMark":5}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/events?orderBy=desc(id)&limit=1",
		"").Text("data.0.message"); got != "The usage of IPv4Network 10.1.0.0/28 small is above its high water mark: 1 of 14 addresses, 7%" {
		t.Errorf("the last event is %s", got)
	}
}

// TestLastWaterMark checks that a level is deleted with the last mark: a new mark raises an alarm again.
func TestLastWaterMark(t *testing.T) {
	m := start(t)
	_, _, _, block, _ := m.Basics()
	small := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/28","highWaterMark":10}`)
	addresses := "/api/v2/networks/" + small + "/addresses"
	alarms := func(want string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'WARNING' and source.id:"+small)+"&total=true", "")
		if r.Text("totalCount") != want {
			t.Errorf("want %s alarms: %s", want, r.Body)
		}
	}
	m.ID(addresses, `{"type":"IPv4Address","state":"STATIC"}`)
	alarms("1")
	m.Want(200, "PATCH", "/api/v2/networks/"+small, `{"highWaterMark":null}`, apitest.MergePatch)
	m.ID(addresses, `{"type":"IPv4Address","state":"STATIC"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+small, `{"highWaterMark":10}`, apitest.MergePatch)
	m.ID(addresses, `{"type":"IPv4Address","state":"STATIC"}`)
	alarms("2")
	m.Verify()
}

// TestWaterMarksOfRanges checks the water marks of DHCP ranges: their own, or those of their network.
func TestWaterMarksOfRanges(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	ranges := "/api/v2/networks/" + network + "/ranges"
	m.Refused(400, "InvalidResourceFieldValue", "lowWaterMark", "POST", ranges,
		`{"type":"IPv4DHCPRange","range":"10.0.0.10-10.0.0.19","lowWaterMark":50,"highWaterMark":40}`)
	r := m.ID(ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.10-10.0.0.19","name":"pool","exclusionRanges":["10.0.0.18-10.0.0.19"],"highWaterMark":30}`)
	told := func(want string) {
		t.Helper()
		e := m.Want(200, "GET", "/api/v2/events?filter=source.id:"+r+"&orderBy=desc(id)&limit=1", "")
		if got := e.Text("data.0.message"); got != want {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
	var ids []string
	for range 3 {
		ids = append(ids, m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`, "x-portolan-within: "+r))
	}
	told("The usage of IPv4DHCPRange 10.0.0.10-10.0.0.19 pool is above its high water mark: 3 of 8 addresses, 37%")
	m.Want(204, "DELETE", "/api/v2/addresses/"+ids[0], "")
	told("The usage of IPv4DHCPRange 10.0.0.10-10.0.0.19 pool is between its water marks again: 2 of 8 addresses, 25%")
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"lowWaterMark":1}`, apitest.MergePatch)
	m.Want(204, "DELETE", "/api/v2/addresses/"+ids[1], "")
	m.Want(204, "DELETE", "/api/v2/addresses/"+ids[2], "")
	told("The usage of IPv4DHCPRange 10.0.0.10-10.0.0.19 pool is below its low water mark: 0 of 8 addresses, 0%")
	m.Want(204, "DELETE", "/api/v2/ranges/"+r, "")
	// The level is deleted with the range, also by an undo.
	m.ID("/api/v2/networks/"+network+"/ranges",
		`{"type":"IPv4DHCPRange","range":"10.0.0.200-10.0.0.203","lowWaterMark":10,"highWaterMark":50}`)
	m.Undo(m.LastTransaction())
	m.Verify()
}

// TestOperations checks that the operations of a transaction list the changed fields.
func TestOperations(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"other","userDefinedFields":{"a":"b"}}`, apitest.MergePatch)
	last := m.Want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "").Text("data.0.id")
	r := m.Want(200, "GET", "/api/v2/transactions/"+last+"/operations", "")
	if got := r.Text("data.0.operationType") + r.Text("data.0.resourceType") + r.Text("data.0.fieldUpdates"); got !=
		"CHANGEIPv4Network[map[name:name previousValue:office value:other] map[name:userDefinedFields previousValue:<nil> value:map[a:b]]]" {
		t.Errorf("the operation is %s", got)
	}
	one := m.Want(200, "GET", r.Text("data.0._links.self.href"), "")
	if one.Text("resourceId") != network || one.Text("_links.up.href") != "/api/v2/transactions/"+last {
		t.Errorf("it is %s", one.Body)
	}
	m.Want(404, "GET", "/api/v2/operations", "")
	m.Want(404, "GET", "/api/v2/transactions/999999999/operations", "")
	if r := m.Want(200, "GET", "/api/v2/transactions/"+last+"/operations?filter=resourceType:'IPv4Block'", ""); r.Text("count") != "0" {
		t.Errorf("filtered they are %s", r.Body)
	}
	undo := m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+last+`}`).Text("id")
	if got := m.Want(200, "GET", "/api/v2/transactions/"+last, "").Text("revertingTransaction.id"); got != undo {
		t.Errorf("it was undone by %q, want %s", got, undo)
	}
}

// TestPartsOfASplitAreLikeTheWhole checks that the parts of a split network have its policies, its zones and its tags.
func TestPartsOfASplitAreLikeTheWhole(t *testing.T) {
	m := start(t)
	_, _, zone, block, network := m.Basics()
	group := m.ID("/api/v2/tagGroups", `{"name":"sites"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"berlin"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"highWaterMark":70,"defaultZones":[{"id":`+zone+`}]}`, apitest.MergePatch)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+tag+`}`)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits", `{"type":"IPv4NetworkSplit","network":{"id":`+network+`},"networkCount":4}`)
	r := m.Want(200, "GET", "/api/v2/networks?orderBy=range", "")
	for _, i := range []string{"0", "1", "2", "3"} {
		one := "/api/v2/networks/" + r.Text("data."+i+".id")
		if r.Text("data."+i+".highWaterMark") != "70" || m.Want(200, "GET", one+"/defaultZones", "").Text("data.0.id") != zone ||
			m.Want(200, "GET", one+"/tags", "").Text("data.0.id") != tag {
			t.Errorf("part %s is %s", i, m.Want(200, "GET", one, "").Body)
		}
	}
	m.Verify()
}

// TestConcurrentWaterMarks fills two networks of a block at the same time until they pass its mark together. The event is raised, whichever
// network is the last.
func TestConcurrentWaterMarks(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	const rounds = 12
	for round := range rounds {
		block := m.ID("/api/v2/configurations/"+configuration+"/blocks",
			fmt.Sprintf(`{"type":"IPv4Block","range":"10.0.%d.0/28","highWaterMark":50}`, round))
		var networks [2]string
		for i := range networks {
			networks[i] = m.ID("/api/v2/blocks/"+block+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"10.0.%d.%d/29"}`, round, 8*i),
				"x-bcn-no-gateway: true")
		}
		assign := func(network string) {
			if r := m.Do("POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`); r.StatusCode != 201 {
				t.Errorf("an assignment: %d %s", r.StatusCode, r.Body)
			}
		}
		for i := range 7 {
			assign(networks[i%2])
		}
		var both sync.WaitGroup
		for _, network := range networks { // 7 of 16 are used; with both it is more than half
			both.Go(func() { assign(network) })
		}
		both.Wait()
	}
	if n := m.Want(200, "GET", "/api/v2/events?total=true&"+apitest.Filter("message:contains('IPv4Block') and message:contains('is above its "+
		"high water mark')"), "").Text("totalCount"); n != fmt.Sprint(rounds) {
		t.Errorf("%s events of %d marks that were passed", n, rounds)
	}
	m.Verify()
}
