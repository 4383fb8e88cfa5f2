package server

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// mark is a text that no user guesses: names, data and comments of hidden resources have it.
const mark = "zqmark7v"

// TestHiddenResourcesStayHidden seeds hidden resources with a mark, then calls every operation as users with few rights, those that change
// something as a dry run: no answer has the mark.
func TestHiddenResourcesStayHidden(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main","checkNamesValidation":"WARN"}`)
	d := m.deployment(configuration)
	zone := strings.TrimPrefix(d.Zone, "/api/v2/zones/")
	server := strings.TrimPrefix(d.Server, "/api/v2/servers/")
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8","name":"`+mark+`-block"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.77.1.0/24","name":"`+mark+`-network"}`)
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.77.1.9","state":"STATIC","name":"`+mark+`-address"}`)
	m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"`+mark+`_record","recordType":"A","rdata":"192.0.2.1","comment":"`+mark+`"}`)
	m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"t","text":"`+mark+`"}`)
	d.Ends(`{"type":"ValidationDeployment","service":"DNS"}`, "COMPLETED_WITH_WARNINGS")
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Do("POST", "/api/v2/sessions", `{"username":"`+mark+`-user","password":"x"}`, "Authorization:")

	eve, asEve := m.User("eve", "NO_ACCESS")
	m.Right(eve, server, "VIEW", "")
	zed, asZed := m.User("zed", "NO_ACCESS")
	m.Right(zed, "", "VIEW", "")
	m.Right(zed, block, "HIDE", "")
	m.Right(zed, zone, "HIDE", "")
	_, asNobody := m.User("nobody", "NO_ACCESS")
	hidden := regexp.MustCompile("(?i)" + mark)
	asked := 0
	for name, as := range map[string]string{"eve, who sees the server alone": asEve, "zed, from whom the zone and the block are hidden": asZed,
		"one without rights": asNobody} {
		look := func(path string) {
			t.Helper()
			asked++
			if r := m.Do("GET", path, "", as); hidden.Match(r.Body) {
				at := hidden.FindIndex(r.Body)
				t.Errorf("%s reads at %s: %.200s", name, path, r.Body[max(0, at[0]-100):])
			}
		}
		for _, op := range m.operations() {
			if op.method == "GET" && !strings.Contains(op.path, "{") {
				look(op.path)
			}
		}
		for _, path := range []string{"/api/v2/deployments?limit=100", "/api/v2/events?limit=1000", "/api/v2/events?orderBy=desc(id)",
			"/api/v2/search?q=" + mark[:5],
			"/api/v2/zones/" + zone + "/serving", "/metrics", "/api/v2/changes?limit=10", "/api/v2/transactions?limit=1000"} {
			look(path)
		}
		for _, path := range []string{"/api/v2/deployments?filter=message:contains('" + mark + "')", "/api/v2/events?filter=message:contains('" +
			mark + "')",
			"/api/v2/deployments?orderBy=message"} {
			if r := m.Do("GET", path, "", as); r.StatusCode == 200 && r.Text("count") != "0" {
				t.Errorf("%s finds by %s: %s", name, path, r.Body)
			}
		}
	}
	// The answers to changes reveal nothing more.
	records := m.Want(200, "GET", d.Zone+"/resourceRecords?limit=2", "")
	numbers := map[string]string{"zones": zone, "blocks": block, "networks": network, "servers": server, "configurations": configuration,
		"resourceRecords": records.Text("data.0.id"), "addresses": m.Want(200, "GET", "/api/v2/addresses?filter=name:contains('"+mark+"')",
			"").Text("data.0.id")}
	place := regexp.MustCompile(`\{[^}]*\}`)
	for name, as := range map[string]string{"eve": asEve, "zed": asZed, "nobody": asNobody} {
		for _, op := range m.operations() {
			of := strings.Split(op.path, "/")
			id := numbers[of[min(3, len(of)-1)]]
			if op.method == "GET" || op.method == "HEAD" || id == "" && strings.Contains(op.path, "{") || strings.HasSuffix(op.path, "/sessions") {
				continue
			}
			path := place.ReplaceAllString(op.path, id)
			for _, body := range []string{`{}`, `{"name":"x"}`, `{"id":` + numbers["resourceRecords"] + `}`, `{"linkedRecord":{"id":` +
				numbers["resourceRecords"] + `}}`, `{"addresses":[{"id":` + numbers["addresses"] + `}]}`, `{"range":"10.77.1.0/25"}`} {
				if asked++; !apitest.InSample(asked, 3) {
					continue
				}
				r := m.Do(op.method, path, body, as, "x-portolan-dry-run: true")
				if hidden.Match(r.Body) {
					at := hidden.FindIndex(r.Body)
					t.Errorf("%s %s %s as %s: %.200s", op.method, path, body, name, r.Body[max(0, at[0]-100):])
				}
			}
		}
	}
	if asked < 3000 {
		t.Errorf("there are %d questions", asked)
	}
	if r := m.Do("GET", "/api/v2/deployments?limit=100", ""); !hidden.Match(r.Body) {
		t.Errorf("the administrator does not read it either: %s", r.Body)
	}
}

// TestHiddenAddressesEqualMissing gives one answer for an address that is used, one that is free, and one outside of networks.
func TestHiddenAddressesEqualMissing(t *testing.T) {
	m := startAlone(t)
	_, _, zone, _, network := m.Basics()
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.9","state":"STATIC"}`)
	bob, asBob := m.User("bob", "NO_ACCESS")
	m.Right(bob, zone, "FULL", "")
	answers := map[string]bool{}
	for _, address := range []string{"10.0.0.9", "10.0.0.250", "192.168.77.1"} {
		r := m.Do("POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"x","addresses":[{"address":"`+address+`"}]}`, asBob)
		answers[strings.ReplaceAll(string(r.Body), address, "ADDRESS")] = true
	}
	if len(answers) != 1 {
		t.Errorf("the answers are %v", answers)
	}
}

// TestReservationsAreNotBypassed protects the targets of a reserved address: deleting or changing them requires an approval as well.
func TestReservationsAreNotBypassed(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	address := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.78","state":"DHCP_RESERVED","macAddress":{"address":"00-00-5E-00-53-01"}}`)
	mac := address.Text("macAddress.id")
	location := m.Want(200, "GET", "/api/v2/locations?limit=1", "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/addresses/"+address.Text("id"), `{"location":{"id":`+location+`}}`, apitest.MergePatch)
	carol, asCarol := m.User("carol", "NO_ACCESS")
	m.Right(carol, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	for _, path := range []string{"/api/v2/macAddresses/" + mac, "/api/v2/macAddresses?filter=id:" + mac} {
		if r := m.Do("DELETE", path, "", asCarol); r.StatusCode < 300 && r.StatusCode != 202 {
			t.Errorf("DELETE %s is %d", path, r.StatusCode)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/addresses/"+address.Text("id"), ""); r.Text("macAddress.id") != mac {
		t.Errorf("the address is %s", r.Body)
	}
	m.Verify()
}

// TestRefusalsOmitHiddenResources changes a network and a zone around what is hidden there: a refusal tells neither names nor numbers.
func TestRefusalsOmitHiddenResources(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, block, _ := m.Basics()
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.77.1.0/24","name":"seen"}`)
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.77.1.213","state":"STATIC","name":"`+mark+`"}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"AliasRecord","name":"t","linkedRecord":{"type":"ExternalHostRecord",
		"absoluteName":"`+mark+`.example.net"}}`, "x-bcn-link-to-external-host: true")
	template := m.ID("/api/v2/configurations/"+configuration+"/templates", `{"type":"ZoneTemplate","name":"z"}`)
	m.ID("/api/v2/templates/"+template+"/resourceRecords", `{"type":"TXTRecord","name":"t","text":"x"}`)
	m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"template":{"id":`+template+`}}`, apitest.MergePatch)
	hal, asHal := m.User("hal", "NO_ACCESS")
	m.Right(hal, block, "FULL", `,"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"HIDE"}]`)
	m.Right(hal, zone, "FULL", `,"accessOverrides":[{"resourceType":"AliasRecord","accessLevel":"HIDE"}]`)
	m.Right(hal, template, "VIEW", "")
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", "/networks/" + network, `{"range":"10.77.1.0/25"}`},
		{"POST", "/zones/" + zone + "/templateApplications", `{"conflictResolutionStrategy":"ABORT"}`},
		{"POST", "/zones/" + zone + "/resourceRecords", `{"type":"TXTRecord","name":"t","text":"x"}`},
	} {
		for _, headers := range [][]string{{asHal}, {asHal, "x-portolan-dry-run: true"}} {
			if c.method == "PATCH" {
				headers = append(headers, apitest.MergePatch)
			}
			r := m.Do(c.method, "/api/v2"+c.path, c.body, headers...)
			if text := string(r.Body); r.StatusCode < 400 || strings.Contains(text, "10.77.1.213") || strings.Contains(text, mark) ||
				strings.Contains(text, " more") || !strings.Contains(text, "has no access to") {
				t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, text)
			}
		}
	}
	// Administrators read what is in the way.
	r := m.Do("PATCH", "/api/v2/networks/"+network, `{"range":"10.77.1.0/25"}`, apitest.MergePatch)
	if !strings.Contains(string(r.Body), "10.77.1.213") {
		t.Errorf("the administrator reads %s", r.Body)
	}
}

// TestSortingByHiddenNames orders by the name of a hidden resource, which is ordered as null.
func TestSortingByHiddenNames(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	device := func(name string) string {
		return m.ID("/api/v2/configurations/"+configuration+"/devices", `{"name":"`+name+`"}`)
	}
	own, hidden := device("mmm"), device("ppp-"+mark)
	for address, of := range map[string]string{"10.0.0.51": own, "10.0.0.52": hidden} {
		m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"`+address+`","state":"STATIC","device":{"id":`+of+`}}`)
	}
	lea, asLea := m.User("lea", "NO_ACCESS")
	m.Right(lea, network, "VIEW", "")
	m.Right(lea, own, "FULL", "")
	first := func() string {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/addresses?filter=address:in('10.0.0.51','10.0.0.52')&orderBy=device.name&limit=1", "", asLea)
		if strings.Contains(string(r.Body), mark) {
			t.Errorf("the list is %s", r.Body)
		}
		return r.Text("data.0.address")
	}
	before := first()
	m.Want(200, "PATCH", "/api/v2/devices/"+own, `{"name":"zzz"}`, asLea, apitest.MergePatch)
	if after := first(); after != before {
		t.Errorf("first came %s, and after another name %s", before, after)
	}
}

// TestClientsOfReservationsAreProtected changes the address of a client that an address is reserved for, and moves an address that a host
// leads to: both change a protected resource, and take an approval.
func TestClientsOfReservationsAreProtected(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, network := m.Basics()
	address := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.78","state":"DHCP_RESERVED","macAddress":{"address":"00-00-5E-00-53-01"}}`)
	mac := "/api/v2/macAddresses/" + address.Text("macAddress.id")
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8:1::/64"}`)
	m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"six","addresses":[{"type":"IPv6Address","address":"2001:db8:1::5","state":"STATIC"}]}`)
	moved := m.Want(200, "GET", "/api/v2/addresses?filter=address:'2001:db8:1::5'", "").Text("data.0.id")
	rex, asRex := m.User("rex", "NO_ACCESS")
	m.Right(rex, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	tries := func(as ...string) {
		t.Helper()
		m.Refused(403, "AccessDenied", "requires approval", "PATCH", mac, `{"address":"02-00-00-00-0A-0A"}`, append(as, apitest.MergePatch)...)
		m.Refused(403, "AccessDenied", "requires approval", "POST", "/api/v2/addresses/"+moved+"/moves",
			`{"type":"IPv6AddressMove","destination":{"address":"2001:db8:1::666"}}`, as...)
	}
	tries(asRex)
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":["IPv4Address","HostRecord"]}`, apitest.MergePatch)
	tries()
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":[]}`, apitest.MergePatch)
	m.Want(200, "PATCH", mac, `{"address":"02-00-00-00-0A-0A"}`, apitest.MergePatch)
	m.Verify()
}

// TestGrantsKeepApprovals gives and takes rights by privilege: who has to ask for changes does not let itself make them.
func TestGrantsKeepApprovals(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, _ := m.Basics()
	carol, asCarol := m.User("carol", "DELETE_ACCESS_RIGHTS")
	m.Right(carol, configuration, "FULL", "")
	right := m.Right(carol, zone, "FULL", `,"workflowLevel":"RECOMMEND"`)
	m.Refused(403, "AccessDenied", "require approval", "DELETE", "/api/v2/accessRights/"+right, "", asCarol)

	cora, asCora := m.User("cora", "ADD_ACCESS_RIGHTS")
	group := m.ID("/api/v2/groups", `{"name":"g"}`)
	m.Want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+cora+`}`)
	m.Right(cora, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	m.Right(group, configuration, "FULL", `,"accessOverrides":[{"resourceType":"TXTRecord","accessLevel":"VIEW"}]`)
	m.Refused(403, "AccessDenied", "workflowLevel", "POST", "/api/v2/accessRights",
		`{"userScope":{"id":`+cora+`},"resource":{"id":`+zone+`},"defaultAccessLevel":"FULL"}`, asCora)
}

// TestDryRunsOmitHiddenAddresses tries the deletion of a hardware address that hidden addresses refer to: they are not counted.
func TestDryRunsOmitHiddenAddresses(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	address := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.78","state":"STATIC","macAddress":{"address":"00-00-5E-00-53-01"}}`)
	mac := address.Text("macAddress.id")
	fay, asFay := m.User("fay", "NO_ACCESS")
	m.Right(fay, mac, "FULL", "")
	for as, changed := range map[string]string{asFay: "0", "": "1"} {
		headers := []string{"x-portolan-dry-run: true"}
		if as != "" {
			headers = append(headers, as)
		}
		r := m.Want(200, "DELETE", "/api/v2/macAddresses/"+mac, "", headers...)
		if r.Text("changed") != changed {
			t.Errorf("%q reads %s", as, r.Body)
		}
	}
}

// TestTasksAreBounded makes as many tasks as a user may have.
func TestTasksAreBounded(t *testing.T) {
	m := startAlone(t)
	nan, asNan := m.User("nan", "NO_ACCESS")
	one := `{"name":"x","priority":"LOW","state":"NOT_STARTED","percentComplete":0}`
	list := "[" + strings.Repeat(one+",", 999) + one + "]"
	m.Want(201, "POST", "/api/v2/users/"+nan+"/tasks", list, asNan, "Content-Type: application/json")
	m.Refused(409, "ResourceConflictsWithOther", "1000 tasks", "POST", "/api/v2/users/"+nan+"/tasks", one, asNan)
}

// TestRenamingAHostNeedsApproval renames a host that an alias leads to: it is asked for as any other change of the host.
func TestRenamingAHostNeedsApproval(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, network := m.Basics()
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.78","state":"STATIC"}`)
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"one","addresses":[{"address":"10.0.0.78"}]}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"AliasRecord","name":"other","linkedRecord":{"id":`+host+`}}`)
	rex, asRex := m.User("rex", "NO_ACCESS")
	m.Right(rex, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	m.Want(202, "PATCH", "/api/v2/resourceRecords/"+host, `{"name":"two"}`, asRex, apitest.MergePatch)
}

// TestPendingRequestsAreBounded asks for as many changes as a user may have pending.
func TestPendingRequestsAreBounded(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	configuration, _, zone, _, _ := m.Basics()
	rex, asRex := m.User("rex", "NO_ACCESS")
	m.Right(rex, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	record := func(n int) string { return `{"type":"TXTRecord","name":"t` + strconv.Itoa(n) + `","text":"x"}` }
	for n := range 100 {
		m.Want(202, "POST", "/api/v2/zones/"+zone+"/resourceRecords", record(n), asRex)
	}
	m.Refused(409, "ResourceConflictsWithOther", "100 requests", "POST", "/api/v2/zones/"+zone+"/resourceRecords", record(100), asRex)
	request := m.Want(200, "GET", "/api/v2/workflowRequests?limit=1", "", asRex).Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/workflowRequests/"+request, "", asRex)
	m.Want(202, "POST", "/api/v2/zones/"+zone+"/resourceRecords", record(100), asRex)
}
