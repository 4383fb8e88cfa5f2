package model_test

import (
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestGrantsAreLimitedToOwnRights checks that a user cannot grant more than the own rights: neither rights that an override removes, nor
// rights that another right removes further below.
func TestGrantsAreLimitedToOwnRights(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.9","state":"STATIC"}`)
	ada, as := m.User("ada", "ADD_ACCESS_RIGHTS")
	eve, _ := m.User("eve", "NO_ACCESS")
	own := m.Right(ada, block, "FULL", `,"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"HIDE"}]`)
	give := func(user, at string) string {
		return `{"userScope":{"id":` + user + `},"resource":{"id":` + at + `},"defaultAccessLevel":"FULL"}`
	}
	m.Refused(403, "AccessDenied", "FULL", "POST", "/api/v2/accessRights", give(ada, network), as)
	m.Refused(403, "AccessDenied", "FULL", "PATCH", "/api/v2/accessRights/"+own, `{"accessOverrides":[]}`, as)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/addresses/"+address, "", as)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+own, `{"accessOverrides":[]}`)
	hidden := m.Right(ada, network, "HIDE", "")
	m.Refused(403, "AccessDenied", "FULL for everything below", "POST", "/api/v2/accessRights", give(eve, block), as)
	if r := m.Want(200, "GET", "/api/v2/accessRights/"+hidden, "", as); r.Text("resource.id") != network || r.Text("resource.name") != "" {
		t.Errorf("a right at what is hidden is shown as %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/accessRights/"+hidden, "")
	m.Want(201, "POST", "/api/v2/accessRights", give(eve, block), as)
	m.Refused(400, "UnsupportedResourceFieldValue", "HSMServer", "PATCH", "/api/v2/accessRights/"+own,
		`{"accessOverrides":[{"resourceType":"HSMServer","accessLevel":"FULL"}]}`)
	// A right that a batch changes applies to the following change.
	m.Want(200, "PATCH", "/api/v2/accessRights/"+own, `{"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"VIEW"}]}`)
	lower := m.Right(ada, address, "VIEW", "")
	m.Refused(403, "AccessDenied", "", "POST", "/api/v2/batch", `{"changes":[{"method":"PATCH","path":"accessRights/`+lower+
		`","body":{"defaultAccessLevel":"FULL"}},{"method":"PATCH","path":"addresses/`+address+`","body":{"name":"x"}}]}`, as)
	m.Verify()
}

// TestAdministratorChangesAreGuarded checks that a right at a parent does not permit changes that are reserved to administrators.
func TestAdministratorChangesAreGuarded(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, network := m.Basics()
	secret := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/28","name":"secret"}`)
	group := m.ID("/api/v2/groups", `{"name":"g"}`)
	tags := m.ID("/api/v2/tagGroups", `{"name":"colours"}`)
	tag := m.ID("/api/v2/tagGroups/"+tags+"/tags", `{"name":"red"}`)
	user, as := m.User("ada", "VIEW_OTHERS_ACCESS_RIGHTS")
	m.Right(user, "", "FULL", "")
	m.Right(user, secret, "HIDE", "")
	for _, path := range []string{"blocks/" + block, "networks/" + network, "zones/" + zone} {
		for _, kind := range []string{"IPv4NetworkImport", "IPv4AddressImport", "ResourceRecordImport"} {
			r := m.Do("POST", "/api/v2/"+path+"/imports", "name\nx\n", as, "Content-Type: text/csv", "x-bcn-type: "+kind)
			if r.StatusCode < 400 {
				t.Errorf("a user who is not an administrator imports below %s: %s", path, r.Body)
			}
		}
	}
	m.Refused(403, "AccessDenied", "groups", "POST", "/api/v2/tags/"+tag+"/taggedResources", `{"id":`+group+`}`, as)
	m.Refused(403, "AccessDenied", "another user", "POST", "/api/v2/tags/"+tag+"/taggedResources", `{"id":100000}`, as)
	m.Want(201, "POST", "/api/v2/tags/"+tag+"/taggedResources", `{"id":`+group+`}`)
	m.Refused(403, "AccessDenied", "groups", "DELETE", "/api/v2/tags/"+tag+"/taggedResources/"+group, "", as)
	m.Want(204, "DELETE", "/api/v2/tags/"+tag, "", as) // it takes itself off

	// Hidden resources are neither returned nor revealed by gaps.
	r := m.Do("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/28"}`, as, "x-bcn-auto-create: true",
		"x-bcn-traversal-methodology: DEPTH_FIRST", "x-bcn-reuse-existing: true")
	if strings.Contains(string(r.Body), "secret") {
		t.Errorf("a hidden network is deallocated: %s", r.Body)
	}
	m.Right(user, network, "FULL", `,"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"HIDE"}]`)
	m.Refused(403, "AccessDenied", "does not have permission to view everything", "GET",
		"/api/v2/networks/"+network+"/addresses?"+apitest.Filter("state:'UNASSIGNED'"), "", as)

	// A user-defined link requires the right to change both ends, and is deleted with either.
	definition := m.ID("/api/v2/userDefinedLinkDefinitions",
		`{"name":"uplink","displayName":"Uplink","sourceTypes":["IPv4Network"],"destinationTypes":["Device"]}`)
	device := m.ID("/api/v2/configurations/"+configuration+"/devices", `{"name":"router"}`)
	limited, other := m.User("eve", "NO_ACCESS")
	right := m.Right(limited, network, "VIEW", `,"accessOverrides":[{"resourceType":"Zone","accessLevel":"FULL"}]`)
	m.Right(limited, device, "FULL", "")
	link := `{"id":` + network + `,"linkDefinition":{"id":` + definition + `}}`
	m.Right(limited, "", "HIDE", `,"accessOverrides":[{"resourceType":"DeviceType","accessLevel":"VIEW"}]`)
	links := "/api/v2/devices/" + device + "/userDefinedLinks"
	m.Refused(403, "AccessDenied", "requires the level CHANGE", "POST", links, link, other)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+right, `{"defaultAccessLevel":"CHANGE"}`)
	m.Want(201, "POST", links, link, other)
	if r := m.Want(200, "GET", links, "", other); r.Count() != 1 {
		t.Errorf("the link is not seen: %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/accessRights/"+right, `{"defaultAccessLevel":"VIEW"}`)
	m.Refused(403, "AccessDenied", "requires the level CHANGE", "DELETE", links+"/"+network, "", other)
	m.Want(204, "DELETE", "/api/v2/devices/"+device, "", other)
	m.Verify()
}

// TestRightsAtBothEnds checks that a move requires the right to delete at its source and the right to create at its target. An undo
// requires the rights of its changes.
func TestRightsAtBothEnds(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	other := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"192.168.0.0/16"}`)
	user, as := m.User("ada", "NO_ACCESS")
	here, there := m.Right(user, block, "ADD", ""), m.Right(user, other, "ADD", "")
	move := `{"type":"IPMove","address":"192.168.7.0"}`
	m.Refused(403, "AccessDenied", "requires the level FULL, but access right "+here, "POST", "/api/v2/networks/"+network+"/moves", move, as)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+here, `{"defaultAccessLevel":"FULL"}`)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+there, `{"defaultAccessLevel":"CHANGE"}`)
	m.Refused(403, "AccessDenied", "requires the level ADD, but access right "+there, "POST", "/api/v2/networks/"+network+"/moves", move, as)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+there, `{"defaultAccessLevel":"ADD"}`)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/moves", move, as)
	m.Refused(403, "AccessDenied", "requires the level FULL, but access right "+there, "DELETE", "/api/v2/networks/"+network, "", as)

	m.Want(200, "PATCH", "/api/v2/users/"+user, `{"historyPrivilege":"ADMINISTRATOR"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"mine"}`, as)
	mine := m.LastTransaction()
	undo := `{"transactionType":"UNDO","transactionId":` + mine + `}`
	m.Want(200, "PATCH", "/api/v2/accessRights/"+there, `{"defaultAccessLevel":"VIEW"}`)
	m.Refused(403, "AccessDenied", "requires the level CHANGE", "POST", "/api/v2/transactions", undo, as)
	m.Verify()
}

// TestEventsOmitHiddenFields checks that a user with a right at events does not see more of their resources than otherwise.
func TestEventsOmitHiddenFields(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	user, as := m.User("ada", "NO_ACCESS")
	m.ID("/api/v2/accessRights", `{"type":"AdministrativeAccessRight","userScope":{"id":`+user+`},"administrativeAccessRights":[`+
		`{"resourceType":"Event","accessLevel":"VIEW"}]}`)
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write(`INSERT INTO event (id, source, user_id, body) VALUES (1, ` + network + `, 0, '{"message":"it happened","sourceName":null}')`)
	}); err != nil {
		t.Fatal(err)
	}
	if r := m.Want(200, "GET", "/api/v2/events", "", as); r.Count() < 1 || strings.Contains(string(r.Body), "office") {
		t.Errorf("the events are %s", r.Body)
	}
}

// TestSchedulesOfDeletedUsers checks that the schedule of a deleted user who was not an administrator is deleted. Transactions of deleted
// users change nothing.
func TestSchedulesOfDeletedUsers(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	server := m.ID("/api/v2/configurations/"+configuration+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, configuration, "FULL", "")
	hidden := m.ID("/api/v2/configurations/"+configuration+"/serverGroups", `{"name":"edge"}`)
	m.Right(user, hidden, "HIDE", "")
	schedule := m.ID("/api/v2/configurations/"+configuration+"/schedules", `{"type":"DeploymentSchedule","name":"nightly","enabled":true,"servers":[{"id":`+server+
		`}],"deploymentServices":["DNS"],"startDateTime":"2035-01-01T00:00:00Z"}`, as)
	m.Refused(404, "InlinedResourceNotFound", "servers", "PATCH", "/api/v2/schedules/"+schedule, `{"servers":[{"id":`+hidden+`}]}`, as)
	read := func() (holder int64) {
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			row, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.InCollection("schedules")})
			if err == nil {
				holder = row.Ref("holder")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return holder
	}
	if holder := read(); holder == 0 {
		t.Error("the schedule has no user")
	}
	gone := m.Want(200, "GET", "/api/v2/users?"+apitest.Filter("name:'ada'"), "").Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/users/"+gone, "")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/schedules/"+schedule, "")
	var author store.Author
	author.User, author.Name = 987654321, "nobody"
	err := m.Store.Update(t.Context(), author, func(tx *store.Tx) error {
		row, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks")}})
		if err != nil {
			return err
		}
		c := resource.Change{Tx: tx, API: m.Address, SetFields: map[string]bool{}, Extra: map[string]string{}}
		return c.Delete(row)
	})
	if err == nil {
		t.Error("a deleted user changes a resource")
	}
	m.Want(200, "GET", "/api/v2/networks/"+network, "")
}

// TestMoveRequiresRightAtTarget checks that a right at a resource does not permit a move to a place in which the user may not create
// resources.
func TestMoveRequiresRightAtTarget(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	hidden := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"12.0.0.0/8"}`)
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, configuration, "VIEW", "")
	m.Right(user, hidden, "HIDE", "")
	m.Right(user, network, "FULL", "")
	seen := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"14.0.0.0/8"}`)
	for _, to := range []string{"12.0.0.0", "14.0.0.0"} {
		m.Refused(403, "AccessDenied", "", "POST", "/api/v2/networks/"+network+"/moves", `{"type":"IPMove","address":"`+to+`"}`, as)
	}
	m.Right(user, seen, "ADD", "")
	m.Want(201, "POST", "/api/v2/networks/"+network+"/moves", `{"type":"IPMove","address":"14.0.0.0"}`, as)
}

// TestAnswersOmitHiddenResources checks that neither errors nor counts nor filters reveal hidden resources.
func TestAnswersOmitHiddenResources(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	hidden := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/28","name":"secret"}`)
	group := m.ID("/api/v2/groups", `{"name":"g"}`)
	user, as := m.User("ada", "NO_ACCESS")
	m.Want(200, "PATCH", "/api/v2/users/"+user, `{"historyPrivilege":"VIEW_HISTORY_LIST"}`)
	m.Right(user, block, "FULL", "")
	m.Right(user, hidden, "HIDE", "")
	// The refusal does not name the hidden obstacle.
	for _, try := range [][3]string{
		{"POST", "blocks/" + block + "/networks", `{"type":"IPv4Network","range":"10.0.1.0/29"}`},
		{"PATCH", "networks/" + network, `{"range":"10.0.0.0/23"}`},
	} {
		r := m.Do(try[0], "/api/v2/"+try[1], try[2], as)
		if r.StatusCode < 400 || strings.Contains(string(r.Body), hidden) || strings.Contains(string(r.Body), "secret") {
			t.Errorf("%s %s: %d %s", try[0], try[1], r.StatusCode, r.Body)
		}
		if r = m.Do(try[0], "/api/v2/"+try[1], try[2]); r.StatusCode != 409 && r.StatusCode != 400 {
			t.Errorf("an administrator is answered %d %s", r.StatusCode, r.Body)
		}
	}
	m.Refused(400, "IpRangeOverlapsSiblings", "a resource that ada has no access to", "POST", "/api/v2/batch",
		`{"changes":[{"method":"POST","path":"blocks/`+block+`/networks","body":{"type":"IPv4Network","range":"10.0.1.0/28"}}]}`, as)
	// References tell neither what a hidden resource is, nor that it is there.
	for _, id := range []string{hidden, zone, "9999999"} {
		m.Refused(404, "InlinedResourceNotFound", "resource "+id+" does not exist", "PATCH", "/api/v2/networks/"+network,
			`{"location":{"id":`+id+`}}`, as)
	}
	// A field that is shown as null is also filtered as null.
	if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("configuration:ne(null)"), "", as); r.Count() != 0 {
		t.Errorf("a hidden configuration is found: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("configuration:eq(null)"), "", as); r.Count() != 1 {
		t.Errorf("a hidden configuration is not null: %s", r.Body)
	}
	vacant := "/api/v2/networks/" + network + "/addresses?limit=1&" +
		apitest.Filter("state:'UNASSIGNED' and configuration.name:startsWith('')")
	if r := m.Want(200, "GET", vacant, "", as); r.Count() != 0 {
		t.Errorf("the name of a hidden configuration is found: %s", r.Body)
	}
	if r := m.Want(200, "GET", vacant, ""); r.Count() != 1 {
		t.Errorf("the name of a configuration is not found: %s", r.Body)
	}
	// Changes of other users are not undone.
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"theirs"}`)
	others := m.LastTransaction()
	m.Refused(404, "ResourceNotFound", "of ada", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+others+`}`, as)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"mine"}`, as)
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`, as)
	// A place that is hidden itself is not told.
	other, eve := m.User("eve", "NO_ACCESS")
	m.Right(other, block, "HIDE", `,"accessOverrides":[{"resourceType":"IPv4Network","accessLevel":"VIEW"}]`)
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"/effectiveRights", "", eve); r.Text("decidedBy.resource") != "" ||
		r.Text("accessLevel") != "VIEW" {
		t.Errorf("a hidden place is revealed: %s", r.Body)
	}
	m.Refused(403, "AccessDenied", "gives VIEW", "PATCH", "/api/v2/networks/"+network, `{"name":"x"}`, eve)
	if r := m.Do("PATCH", "/api/v2/networks/"+network, `{"name":"x"}`, eve); strings.Contains(string(r.Body), block) {
		t.Errorf("a hidden place is revealed: %s", r.Body)
	}
	// Names that lead to what is hidden tell no number.
	third, sam := m.User("sam", "NO_ACCESS")
	m.Right(third, zone, "FULL", "")
	dark := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"dark.test"}`)
	m.ID("/api/v2/zones/"+dark+"/resourceRecords", `{"type":"GenericRecord","name":"x","recordType":"TXT","rdata":"x"}`)
	m.Refused(404, "InlinedResourceNotFound", `record "x.dark.test" does not exist`, "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"AliasRecord","name":"a","linkedRecord":{"absoluteName":"x.dark.test"}}`, sam)
	// A user who may delete a zone deletes it with the resources of administrators below it.
	m.EndedImport(m.Want(201, "POST", "/api/v2/zones/"+zone+"/imports", "type,name,recordType,rdata\nGenericRecord,q,TXT,x\n",
		"Content-Type: text/csv", "x-bcn-type: ResourceRecordImport").Text("id"))
	m.Refused(403, "AccessDenied", "may not change groups", "DELETE", "/api/v2/groups/"+group, "", sam)
	m.Want(204, "DELETE", "/api/v2/zones/"+zone, "", sam)
	_ = configuration
	m.Verify()
}

// TestResizeRequiresRightAtSpace checks that a right at a network or range does not permit it to grow over space without a right.
func TestResizeRequiresRightAtSpace(t *testing.T) {
	m := start(t)
	_, _, _, block, _ := m.Basics()
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.8.0/24"}`)
	ranged := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.8.10-10.0.8.20"}`)
	user, as := m.User("ada", "NO_ACCESS")
	around := m.Right(user, block, "VIEW", "")
	m.Right(user, network, "FULL", "")
	m.Refused(403, "AccessDenied", "requires the level ADD", "PATCH", "/api/v2/networks/"+network, `{"range":"10.0.8.0/23"}`, as)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"range":"10.0.8.0/25"}`, as)
	other, eve := m.User("eve", "NO_ACCESS")
	m.Right(other, network, "VIEW", "")
	m.Right(other, ranged, "FULL", "")
	m.Refused(403, "AccessDenied", "requires the level ADD", "PATCH", "/api/v2/ranges/"+ranged, `{"range":"10.0.8.10-10.0.8.30"}`, eve)
	m.Want(200, "PATCH", "/api/v2/ranges/"+ranged, `{"range":"10.0.8.12-10.0.8.19"}`, eve)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+around, `{"defaultAccessLevel":"ADD"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"range":"10.0.8.0/23"}`, as)
	// The counts of a range are hidden if its network contains a hidden address.
	if r := m.Want(200, "GET", "/api/v2/ranges/"+ranged, "", eve); r.Text("usage.UNASSIGNED") == "" {
		t.Errorf("what a range holds is not told: %s", r.Body)
	}
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.8.15","state":"STATIC"}`)
	m.Right(other, address, "HIDE", "")
	if r := m.Want(200, "GET", "/api/v2/ranges/"+ranged, "", eve); r.Text("usage.UNASSIGNED") != "" {
		t.Errorf("a hidden address is counted: %s", r.Body)
	}
	m.Verify()
}

// TestDryRunsOmitHiddenResources checks that a dry run counts only the resources that its user may see.
func TestDryRunsOmitHiddenResources(t *testing.T) {
	m := start(t)
	_, _, _, block, _ := m.Basics()
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/20"}`)
	var list []string
	for i := range 1200 {
		list = append(list, `{"type":"IPv4Address","state":"STATIC","address":"10.2.`+strconv.Itoa(1+i/250)+`.`+strconv.Itoa(1+i%250)+`"}`)
	}
	m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", "["+strings.Join(list, ",")+"]")
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, block, "FULL", "")
	dry := "x-portolan-dry-run: true"
	r := m.Want(200, "DELETE", "/api/v2/networks/"+network, "", dry)
	if r.Text("estimate") != "true" || r.Text("deleted") != "1202" {
		t.Errorf("an administrator gets %s", r.Body)
	}
	r = m.Want(200, "DELETE", "/api/v2/networks/"+network, "", as, dry)
	if r.Text("atLeast") != "true" || r.Text("deleted") == "1202" {
		t.Errorf("a user is told %s", r.Body)
	}
	m.Right(user, network, "VIEW", `,"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"HIDE"}]`)
	r = m.Do("DELETE", "/api/v2/networks/"+network, "", as, dry)
	if r.StatusCode != 403 || strings.Contains(string(r.Body), "120") {
		t.Errorf("a user who does not see the addresses is answered %d %s", r.StatusCode, r.Body)
	}
	m.Verify()
}

// TestUndoRestoresRights checks that a deletion deletes the rights at its resources, and that its undo restores them. Links do not use the
// rights of other users.
func TestUndoRestoresRights(t *testing.T) {
	m := start(t)
	_, view, zone, block, network := m.Basics()
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, network, "FULL", "")
	m.Want(204, "DELETE", "/api/v2/blocks/"+block, "")
	deleted := m.LastTransaction()
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+network, "", as)
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"again"}`, as)
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	right := m.Right(user, block, "VIEW", "")
	m.Want(200, "PATCH", "/api/v2/accessRights/"+right, `{"defaultAccessLevel":"CHANGE"}`)
	m.Refused(409, "UndoConflict", "AccessRight", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)

	// Only the owner of a host may change the host by its address.
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.77","state":"STATIC"}`)
	eve, other := m.User("eve", "NO_ACCESS")
	m.Right(eve, zone, "FULL", "")
	there := m.Right(eve, network, "VIEW", "")
	host := func(name, more string) string {
		return `{"type":"HostRecord","name":"` + name + `","addresses":[{"id":` + address + `}]` + more + `}`
	}
	m.Refused(403, "AccessDenied", "requires the level CHANGE", "POST", "/api/v2/zones/"+zone+"/resourceRecords", host("x", ""), other)
	mine := m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords", host("x", `,"reverseRecord":false`), other).Text("id")
	m.Refused(403, "AccessDenied", "requires the level CHANGE", "PATCH", "/api/v2/resourceRecords/"+mine, `{"reverseRecord":true}`, other)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+there, `{"defaultAccessLevel":"CHANGE"}`)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+mine, `{"reverseRecord":true}`, other)

	// A zone with a right of its own has zones made below it, and no other name.
	m.Refused(403, "AccessDenied", "requires the level ADD", "PATCH", "/api/v2/zones/"+zone, `{"name":"another"}`, other)
	m.Want(201, "POST", "/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"lab"}`, other)
	_ = view
	m.Verify()
}

// TestUnseenReferencesStay checks that a reference to a resource that the user does not see is kept on changes, and is not shown: a user
// cannot remove a hidden reference.
func TestUnseenReferencesStay(t *testing.T) {
	m := start(t)
	configuration, _, zone, _, network := m.Basics()
	path := "/api/v2/networks/" + network + "/addresses"
	made := func(address string) string {
		return m.ID(path, `{"type":"IPv4Address","state":"STATIC","address":"`+address+`"}`)
	}
	open, hidden, other := made("10.0.0.9"), made("10.0.0.10"), made("10.0.0.11")
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"quay","reverseRecord":true,"addresses":[{"id":`+open+
		`},{"id":`+hidden+`}]}`)
	device := m.ID("/api/v2/configurations/"+configuration+"/devices", `{"type":"Device","name":"crane","addresses":[{"id":`+open+
		`},{"id":`+hidden+`}]}`)
	user, as := m.User("ada", "VIEW_OTHERS_ACCESS_RIGHTS")
	m.Right(user, "", "FULL", "")
	m.Right(user, hidden, "HIDE", "")
	of := func(resource string) string {
		r := m.Want(200, "GET", "/api/v2/"+resource+"/addresses?fields=address&orderBy=asc(address)", "")
		return r.Text("data.0.address") + " " + r.Text("data.1.address") + " " + r.Text("data.2.address")
	}
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+host, `{"addresses":[{"id":`+other+`}]}`, apitest.MergePatch, as)
	if got := of("resourceRecords/" + host); got != "10.0.0.10 10.0.0.11 " {
		t.Errorf("the host has %s", got)
	}
	m.Refused(403, "AccessDenied", "hidden from", "PATCH", "/api/v2/devices/"+device, `{"addresses":[]}`, apitest.MergePatch, as) // each of them is changed
	r := m.Want(200, "POST", "/api/v2/apply", `{"into":"configurations/main","resources":[{"type":"HostRecord","absoluteName":"quay.`+
		m.Want(200, "GET", "/api/v2/zones/"+zone, "").Text("absoluteName")+`","addresses":["10.0.0.9"]}]}`, as, "x-portolan-dry-run: true")
	if strings.Contains(string(r.Body), "10.0.0.10") || !strings.Contains(string(r.Body), "10.0.0.11") {
		t.Errorf("a document tells %s", r.Body)
	}
	m.Want(200, "POST", "/api/v2/apply", `{"into":"configurations/main","resources":[{"type":"HostRecord","absoluteName":"quay.example.com",`+
		`"addresses":["10.0.0.9"]}]}`, as)
	if got := of("resourceRecords/" + host); got != "10.0.0.9 10.0.0.10 " {
		t.Errorf("behind the document the host has %s", got)
	}
	// A user who sees all references can remove all.
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"addresses":[]}`, apitest.MergePatch)
	if got := of("devices/" + device); got != "  " {
		t.Errorf("the device has %s", got)
	}
	// A single one stays where null was shown, and can be replaced.
	kind := m.ID("/api/v2/deviceTypes", `{"name":"cranes"}`)
	next := m.ID("/api/v2/deviceTypes", `{"name":"boats"}`)
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"deviceType":{"id":`+kind+`}}`, apitest.MergePatch)
	m.Right(user, kind, "HIDE", "")
	shown := m.Want(200, "GET", "/api/v2/devices/"+device, "", as)
	if shown.Get("deviceType") != nil {
		t.Errorf("the device is shown as %s", shown.Body)
	}
	m.Want(200, "PUT", "/api/v2/devices/"+device, string(shown.Body), as)
	if got := m.Want(200, "GET", "/api/v2/devices/"+device, "").Text("deviceType.id"); got != kind {
		t.Errorf("the device is of %s", got)
	}
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"deviceType":{"id":`+next+`}}`, apitest.MergePatch, as)
	if got := m.Want(200, "GET", "/api/v2/devices/"+device, "").Text("deviceType.id"); got != next {
		t.Errorf("the device is of %s, and not of %s", got, next)
	}
	m.Verify()
}
