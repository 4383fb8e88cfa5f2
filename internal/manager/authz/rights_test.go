package authz_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestAccessRightsOfReading checks that a user without rights sees only itself. A user with a right sees its resource and everything below
// it.
func TestAccessRightsOfReading(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	secret := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/24","name":"secret"}`)
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.9","state":"STATIC","name":"printer"}`)
	m.ID("/api/v2/networks/"+secret+"/addresses", `{"type":"IPv4Address","address":"10.0.1.9","state":"STATIC","name":"vault"}`)
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"printer","addresses":[{"id":`+address+`}]}`)
	user, as := m.User("ada", "NO_ACCESS")

	for _, c := range m.Address.Collections() {
		if c.Inner || c.Name == "sessions" {
			continue
		}
		r := m.Do("GET", "/api/v2/"+c.Path()+"?limit=5", "", as)
		if r.StatusCode != 200 && r.StatusCode != 403 || r.StatusCode == 200 && r.Count() > 0 && c.Name != "users" {
			t.Errorf("a user without rights is shown of %s: %d %s", c.Name, r.StatusCode, r.Body)
		}
	}
	for _, path := range []string{"", "/search?q=10.0.0.9", "/search?q=printer", "/search?q=" + network, "/users"} {
		r := m.Want(200, "GET", "/api/v2"+path, "", as)
		for _, row := range r.Get("data").([]any) {
			if fmt.Sprint(row.(map[string]any)["id"]) == user {
				continue // the user itself
			}
			t.Errorf("%s shows %s", path, r.Body)
		}
	}
	for _, path := range []string{"/networks/" + network, "/" + network, "/blocks/" + block + "/networks", "/blocks/" + block + "/map",
		"/networks/" + network + "/effectiveRights", "/networks/" + network + "/transactions"} {
		m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2"+path, "", as)
	}

	right := m.Right(user, network, "VIEW", "")
	r := m.Want(200, "GET", "/api/v2/networks", "", as)
	if r.Count() != 1 || r.Text("data.0.id") != network || r.Text("data.0.configuration") != "" || r.Text("data.0._links.up") != "" {
		t.Errorf("of one network is shown %s", r.Body)
	}
	if r.Get("data.0.usage") == nil {
		t.Errorf("the usage of a network that is seen whole is not shown: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks?total=true&"+apitest.Filter("configuration.name:'main'"), "", as); r.Count() != 0 {
		t.Errorf("it is found by what is not seen: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/addresses?total=true&orderBy=desc(name)", "", as); r.Text("totalCount") != "2" ||
		r.Text("data.0.id") != address &&
			r.Text("data.1.id") != address {
		t.Errorf("of the addresses is shown %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/addresses/"+address+"/resourceRecords", "", as); r.Count() != 0 {
		t.Errorf("the record that is not seen is shown at its address: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"?fields=embed(addresses.resourceRecords)", "",
		as); strings.Contains(string(r.Body), "HostRecord") {
		t.Errorf("it is embedded: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/search?q=printer", "", as); strings.Contains(string(r.Body), "HostRecord") || strings.Contains(string(r.Body), `"main"`) ||
		!strings.Contains(string(r.Body), "10.0.0.9") {
		t.Errorf("the search shows %s", r.Body)
	}

	// The nearest right decides, and a group's right may give a higher level.
	m.Right(user, block, "VIEW", "")
	hidden := m.Right(user, secret, "HIDE", "")
	if r := m.Want(200, "GET", "/api/v2/blocks/"+block, "", as); r.Get("usagePercentage") != nil || !strings.Contains(string(r.Body), `"usagePercentage":null`) {
		t.Errorf("the usage of a block with something hidden in it: %s", r.Body)
	}
	m.Refused(403, "AccessDenied", "does not have permission to view everything", "GET", "/api/v2/blocks/"+block+"/map", "", as)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+secret, "", as)
	group := m.ID("/api/v2/groups", `{"name":"keepers"}`)
	m.Want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+user+`}`)
	kept := m.Right(group, secret, "VIEW", "")
	m.Want(200, "GET", "/api/v2/networks/"+secret, "", as)
	m.Want(200, "GET", "/api/v2/blocks/"+block+"/map", "", as)
	m.Want(204, "DELETE", "/api/v2/groups/"+group+"/users/"+user, "")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+secret, "", as)
	m.Want(204, "DELETE", "/api/v2/accessRights/"+hidden, "")
	m.Want(200, "GET", "/api/v2/networks/"+secret, "", as)

	// An override applies to resources of its type below the right's resource.
	m.Want(200, "PATCH", "/api/v2/accessRights/"+right, `{"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"HIDE"}]}`)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/addresses/"+address, "", as)
	m.Want(200, "GET", "/api/v2/networks/"+network, "", as)
	m.Right(user, view, "VIEW", "")
	if r := m.Want(200, "GET", "/api/v2/resourceRecords/"+host+"?fields=embed(addresses)", "", as); strings.Contains(string(r.Body),
		"10.0.0.9") {
		t.Errorf("the record shows an address that is not seen: %s", r.Body)
	}

	// The default rights, and a group that makes its members administrators.
	m.Right(user, "", "VIEW", "")
	m.Want(200, "GET", "/api/v2/configurations/"+configuration, "", as)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/addresses/"+address, "", as)
	m.Want(200, "PATCH", "/api/v2/groups/"+group, `{"administratorPrivilege":true}`)
	m.Want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+user+`}`)
	m.Want(200, "GET", "/api/v2/addresses/"+address, "", as)
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"description":"x"}`, as)
	m.Want(204, "DELETE", "/api/v2/groups/"+group, "")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/addresses/"+address, "", as)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/accessRights/"+kept, "") // deleted with its group
	m.Verify()
}

// TestAccessRightsOfChanging checks that each change requires its level, whichever request causes it. The error names the right that grants
// a lower level.
func TestAccessRightsOfChanging(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	other := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"192.168.0.0/16"}`)
	far := m.ID("/api/v2/blocks/"+other+"/networks", `{"type":"IPv4Network","range":"192.168.0.0/24"}`)
	farAddress := m.ID("/api/v2/networks/"+far+"/addresses", `{"type":"IPv4Address","address":"192.168.0.9","state":"STATIC"}`)
	user, as := m.User("ada", "NO_ACCESS")
	right := m.Right(user, block, "VIEW", "")
	level := func(l string) { m.Want(200, "PATCH", "/api/v2/accessRights/"+right, `{"defaultAccessLevel":"`+l+`"}`) }
	address := `{"type":"IPv4Address","address":"10.0.0.7","state":"STATIC"}`

	m.Refused(403, "AccessDenied", "requires the level CHANGE, but access right "+right+" on resource "+block+" gives VIEW", "PATCH",
		"/api/v2/networks/"+network, `{"name":"x"}`, as)
	level("CHANGE")
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"x"}`, as)
	m.Refused(403, "AccessDenied", "requires the level ADD", "POST", "/api/v2/networks/"+network+"/addresses", address, as)
	m.Refused(403, "AccessDenied", "requires the level ADD", "POST", "/api/v2/networks/"+network+"/addresses", address, as,
		"x-portolan-dry-run: true")
	m.Refused(403, "AccessDenied", "requires the level ADD", "POST", "/api/v2/batch",
		`{"changes":[{"method":"POST","path":"networks/`+network+`/addresses","body":`+address+`}]}`, as)
	level("ADD")
	made := m.ID("/api/v2/networks/"+network+"/addresses", address, as)
	m.Refused(403, "AccessDenied", "requires the level FULL", "DELETE", "/api/v2/addresses/"+made, "", as)
	m.Refused(403, "AccessDenied", "requires the level FULL", "DELETE", "/api/v2/networks/"+network, "", as)
	level("FULL")
	m.Want(204, "DELETE", "/api/v2/addresses/"+made, "", as)

	// A nearer right with a lower level decides about its resource, also if a resource above is deleted.
	kept := m.Right(user, network, "VIEW", "")
	m.Refused(403, "AccessDenied", "requires the level FULL, but access right "+kept, "DELETE", "/api/v2/blocks/"+block, "", as)
	m.Want(204, "DELETE", "/api/v2/accessRights/"+kept, "")
	m.Refused(404, "ResourceNotFound", "", "PATCH", "/api/v2/networks/"+far, `{"name":"x"}`, as)
	m.Refused(404, "ResourceNotFound", "", "POST", "/api/v2/networks/"+far+"/addresses", `{"type":"IPv4Address","address":"192.168.0.1","state":"STATIC"}`, as)
	m.Refused(404, "ResourceNotFound", "", "DELETE", "/api/v2/addresses/"+farAddress, ``, as)

	// Changes of other resources are checked as well: the address of a host in a hidden network.
	m.Right(user, view, "FULL", "")
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"here","addresses":[{"address":"10.0.0.20"}]}`, as)
	m.Refused(404, "InlinedResourceNotFound", "192.168.0.20 is not in a network", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"there","addresses":[{"address":"192.168.0.20"}]}`, as)
	m.Refused(404, "InlinedResourceNotFound", "", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"there","addresses":[{"id":`+farAddress+`}]}`, as)

	// Adding a tag changes the resource. Deleting a tag removes it from its resources.
	tags := m.ID("/api/v2/tagGroups", `{"name":"colours"}`)
	tag := m.ID("/api/v2/tagGroups/"+tags+"/tags", `{"name":"red"}`)
	m.Right(user, tags, "FULL", "")
	m.Want(201, "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+tag+`}`, as)
	m.Want(201, "POST", "/api/v2/networks/"+far+"/tags", `{"id":`+tag+`}`)
	m.Right(user, far, "VIEW", "")
	m.Refused(403, "AccessDenied", "requires the level CHANGE", "DELETE", "/api/v2/networks/"+far+"/tags/"+tag, "", as)
	m.Want(204, "DELETE", "/api/v2/tags/"+tag, "", as)

	// A move deletes at the old place and adds at the new one.
	m.Refused(403, "AccessDenied", "", "POST", "/api/v2/networks/"+far+"/moves", `{"type":"IPMove","address":"10.9.0.0"}`, as)

	// An undo is checked like any other change.
	m.Want(200, "PATCH", "/api/v2/users/"+user, `{"historyPrivilege":"ADMINISTRATOR"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+far, `{"name":"theirs"}`)
	theirs := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)", "").Text("data.0.id")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/transactions/"+theirs, "", as)
	for _, row := range m.Want(200, "GET", "/api/v2/transactions?limit=1000", "", as).Get("data").([]any) {
		if name := fmt.Sprint(row.(map[string]any)["user"]); !strings.Contains(name, "ada") {
			t.Errorf("a user with partial rights sees a transaction of another user: %v", row)
		}
	}
	if r := m.Do("POST", "/api/v2/transactions", `{"transaction":{"id":`+theirs+`}}`, as); r.StatusCode < 400 {
		t.Errorf("it undoes what it may not change: %s", r.Body)
	}
	m.Refused(403, "AccessDenied", "", "GET", "/api/v2/changes?after=start", "", as)

	// Only administrators may change these.
	for _, c := range [][2]string{{"/api/v2/users", `{"name":"eve"}`}, {"/api/v2/groups", `{"name":"g"}`}, {"/api/v2/accessRights", `{}`},
		{"/api/v2/webhooks", `{}`}, {"/api/v2/groups/" + m.ID("/api/v2/groups", `{"name":"g"}`) + "/users", `{"id":` + user + `}`},
		{"/api/v2/userDefinedFieldDefinitions", `{}`}} {
		if r := m.Do("POST", c[0], c[1], as); r.StatusCode != 403 && r.StatusCode != 404 {
			t.Errorf("POST %s answers %d %s", c[0], r.StatusCode, r.Body)
		}
	}
	m.Right(user, "", "FULL", "")
	m.ID("/api/v2/configurations", `{"name":"theirs"}`, as)
	m.Refused(403, "AccessDenied", "", "POST", "/api/v2/groups", `{"name":"h"}`, as)
	m.Verify()
}

// TestGivingAccessRights checks that a user may grant rights only with the privilege, and only at resources with the own level FULL. A
// second right for the same subject and resource is rejected.
func TestGivingAccessRights(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	first, _ := m.User("first", "NO_ACCESS")
	second, as := m.User("second", "ADD_ACCESS_RIGHTS")
	const post = "/api/v2/accessRights"
	m.Refused(400, "MissingRequiredField", "userScope", "POST", post, `{"defaultAccessLevel":"VIEW"}`)
	m.Refused(404, "InlinedResourceNotFound", "userScope", "POST", post, `{"userScope":{"id":`+network+`},"defaultAccessLevel":"VIEW"}`)
	m.Refused(404, "InlinedResourceNotFound", "resource", "POST", post, `{"userScope":{"id":`+first+`},"resource":{"id":99999999},"defaultAccessLevel":"VIEW"}`)
	m.Refused(400, "InvalidResourceFieldValue", "resource", "POST", post, `{"userScope":{"id":`+first+`},"resource":{"id":`+second+`},"defaultAccessLevel":"VIEW"}`)
	m.Refused(400, "InvalidResourceFieldValue", "workflowLevel", "POST", post, `{"userScope":{"id":`+first+`},"defaultAccessLevel":"VIEW","workflowLevel":"RECOMMEND"}`)
	m.Refused(400, "InvalidResourceFieldValue", "workflowLevel", "POST", post, `{"userScope":{"id":`+first+`},"defaultAccessLevel":"FULL","workflowLevel":"DELETE"}`)
	m.Refused(400, "InvalidResourceFieldValue", "duplicate", "POST", post, `{"userScope":{"id":`+first+`},"defaultAccessLevel":"VIEW","accessOverrides":[`+
		`{"resourceType":"Zone","accessLevel":"HIDE"},{"resourceType":"Zone","accessLevel":"VIEW"}]}`)
	m.Right(first, block, "VIEW", "")
	m.Refused(409, "ResourceAlreadyExists", "already", "POST", post, `{"userScope":{"id":`+first+`},"resource":{"id":`+block+`},"defaultAccessLevel":"FULL"}`)
	m.Refused(400, "UnsupportedResourceFieldValue", "Report", "POST", post, `{"type":"AdministrativeAccessRight","userScope":{"id":`+first+
		`},"administrativeAccessRights":[{"resourceType":"Report","accessLevel":"VIEW"}]}`)

	give := func(at, level, more string) string {
		return `{"userScope":{"id":` + first + `},"resource":{"id":` + at + `},"defaultAccessLevel":"` + level + `"` + more + `}`
	}
	m.Refused(404, "InlinedResourceNotFound", "resource", "POST", post, give(network, "VIEW", ""), as)
	own := m.Right(second, block, "ADD", "")
	m.Refused(403, "AccessDenied", "own level is FULL", "POST", post, give(network, "VIEW", ""), as)
	m.Want(200, "PATCH", post+"/"+own, `{"defaultAccessLevel":"FULL"}`)
	m.Refused(403, "AccessDenied", "deploy", "POST", post, give(network, "VIEW", `,"deploymentsAllowed":true`), as)
	m.Refused(403, "AccessDenied", "everything", "POST", post, `{"userScope":{"id":`+second+`},"defaultAccessLevel":"FULL"}`, as)
	given := m.ID(post, give(network, "CHANGE", ""), as)
	m.Want(200, "PATCH", post+"/"+given, `{"defaultAccessLevel":"ADD"}`, as)
	m.Refused(403, "AccessDenied", "DELETE_ACCESS_RIGHTS", "DELETE", post+"/"+given, "", as)
	m.Refused(403, "AccessDenied", "deploy", "PATCH", post+"/"+own, `{"deploymentsAllowed":true}`, as)
	m.Refused(403, "AccessDenied", "ADMINISTRATOR", "POST", post, `{"type":"AdministrativeAccessRight","userScope":{"id":`+second+
		`},"administrativeAccessRights":[{"resourceType":"Event","accessLevel":"VIEW"}]}`, as)

	// The effective rights, and the right that decides.
	r := m.Want(200, "GET", "/api/v2/networks/"+network+"/effectiveRights", "", as)
	if r.Text("accessLevel") != "FULL" || r.Text("decidedBy.resource") != block || r.Text("decidedBy.accessRights.0") != own {
		t.Errorf("what decides is %s", r.Body)
	}
	r = m.Want(200, "GET", "/api/v2/networks/"+network+"/effectiveRights?user="+first, "", as)
	if r.Text("accessLevel") != "ADD" || r.Text("decidedBy.resource") != network || r.Text("user") != first {
		t.Errorf("the report about another user is %s", r.Body)
	}
	_, nobody := m.User("nobody", "VIEW_MY_ACCESS_RIGHTS")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+network+"/effectiveRights?user="+first, "", nobody)
	if r := m.Want(200, "GET", post, "", nobody); r.Count() != 0 {
		t.Errorf("who may see its own rights is shown %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"/effectiveRights", ""); r.Text("administrator") != "true" ||
		r.Text("accessLevel") != "FULL" {
		t.Errorf("an administrator may %s", r.Body)
	}

	// Events, and the deletion of rights with their user.
	if r := m.Want(200, "GET", "/api/v2/events", "", as); r.Count() != 0 {
		t.Errorf("a user with partial rights sees events: %s", r.Body)
	}
	m.ID(post, `{"type":"AdministrativeAccessRight","userScope":{"id":`+second+`},"administrativeAccessRights":[{"resourceType":"Event","accessLevel":"VIEW"}]}`)
	m.Want(200, "GET", "/api/v2/events", "", as)
	m.Want(204, "DELETE", "/api/v2/users/"+second, "")
	m.Refused(404, "ResourceNotFound", "", "GET", post+"/"+own, "")
	m.Verify()
}

// TestRightsToDeploy checks that a deployment requires a separate permission in a right at the resource.
func TestRightsToDeploy(t *testing.T) {
	m := start(t)
	configuration, view, zone, _, _ := m.Basics()
	server := m.ID("/api/v2/configurations/"+configuration+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"t","text":"x"}`)
	user, as := m.User("ada", "NO_ACCESS")
	right := m.Right(user, configuration, "FULL", "")
	at := "/api/v2/servers/" + server + "/deployments"
	for _, c := range [][3]string{{at, `{"type":"FullDeployment","service":"DNS"}`, "FullDeployment"},
		{at, `{"type":"DifferentialDeployment","service":"DNS"}`, "DifferentialDeployment"},
		{"/api/v2/zones/" + zone + "/deployments", `{"type":"QuickDeployment"}`, "QuickDeployment"},
		{"/api/v2/deployments", `{"type":"SelectiveDeployment","resources":[{"id":` + record + `}]}`, "SelectiveDeployment"}} {
		m.Refused(403, "AccessDenied", "by a "+c[2]+": access right "+right, "POST", c[0], c[1], as)
	}
	m.Refused(400, "DnsDeploymentValidationNotEnabled", "", "POST", at, `{"type":"ValidationDeployment","service":"DNS"}`, as)
	m.Want(200, "PATCH", "/api/v2/accessRights/"+right, `{"deploymentsAllowed":true,"quickDeploymentsAllowed":true}`)
	m.Refused(400, "ServerNotConnected", "", "POST", at, `{"type":"FullDeployment","service":"DNS"}`, as)
	m.Refused(400, "NoAssignedDnsDeploymentRoles", "", "POST", "/api/v2/zones/"+zone+"/deployments", `{"type":"QuickDeployment"}`, as)
	m.Right(user, view, "HIDE", "")
	m.Refused(404, "InlinedResourceNotFound", "resources", "POST", "/api/v2/deployments", `{"type":"SelectiveDeployment","resources":[{"id":`+record+`}]}`, as)
	m.Refused(404, "ResourceNotFound", "", "POST", "/api/v2/zones/"+zone+"/deployments", `{"type":"QuickDeployment"}`, as)
	m.Verify()
}

// TestRightsOfEarlierUsers checks that users of a database from before access rights keep their view of everything.
func TestRightsOfEarlierUsers(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	_, as := m.User("ada", "NO_ACCESS")
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+network, "", as)
	seed := func() {
		if err := m.Store.Update(t.Context(), store.Author{}, m.Address.Seed); err != nil {
			t.Fatal(err)
		}
	}
	seed() // has no effect, because it runs only once per database
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/networks/"+network, "", as)
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("DELETE FROM marker WHERE name = 'access rights of users'")
	}); err != nil {
		t.Fatal(err)
	}
	seed()
	m.Want(200, "GET", "/api/v2/networks/"+network, "", as)
	m.Refused(403, "AccessDenied", "CHANGE", "PATCH", "/api/v2/networks/"+network, `{"name":"x"}`, as)
	m.Verify()
}

// rightsModel is a simple evaluator of rights that walks up the tree.
type rightsModel struct {
	parent, kind, collection map[string]string
	// rights are by subject and resource.
	rights map[string]map[string]modelRight
}

type modelRight struct {
	id        string
	level     int
	overrides map[string]int
}

var modelLevels = []string{"HIDE", "VIEW", "CHANGE", "ADD", "FULL"}

func (m *rightsModel) level(subjects []string, id string) int {
	best := func(at string, below bool) (level int, found bool) {
		level = -1
		for _, s := range subjects {
			r, ok := m.rights[s][at]
			if !ok {
				continue
			}
			l := r.level
			if o, ok := r.overrides[m.kind[id]]; ok && below {
				l = o
			}
			level, found = max(level, l), true
		}
		return level, found
	}
	for at := id; at != ""; at = m.parent[at] {
		if l, ok := best(at, at != id); ok {
			return l
		}
	}
	if l, ok := best("", true); ok {
		return l
	}
	return 0
}

// TestRightsFollowTheTree checks that visibility follows the tree: conditions cached for one list are not used after a change of the tree.
func TestRightsFollowTheTree(t *testing.T) {
	m := start(t)
	configuration, _, _, block, _ := m.Basics()
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, block, "VIEW", "")
	other := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/12"}`)
	away := m.ID("/api/v2/blocks/"+other+"/networks", `{"type":"IPv4Network","range":"172.16.0.0/24","gateway":null}`)
	_ = m.ID("/api/v2/networks/"+away+"/addresses", `{"type":"IPv4Address","address":"172.16.0.9","state":"STATIC"}`)
	seen := func() [3]int {
		var n [3]int
		for i, c := range []string{"blocks", "networks", "addresses"} {
			n[i] = m.Want(200, "GET", "/api/v2/"+c+"?total=true&limit=1000", "", as).Count()
		}
		return n
	}
	before := seen()
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.7.0.0/16"}`)
	network := m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.7.0.0/24","gateway":null}`)
	if now := seen(); now != [3]int{before[0] + 1, before[1] + 1, before[2]} {
		t.Errorf("with a block and a network in it are seen %v, before %v", now, before)
	}
	_ = m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.7.0.9","state":"STATIC"}`)
	if now := seen(); now != [3]int{before[0] + 1, before[1] + 1, before[2] + 1} {
		t.Errorf("with an address in it are seen %v, before %v", now, before)
	}
	m.Right(user, inner, "HIDE", "")
	if now := seen(); now != before {
		t.Errorf("once it is hidden are seen %v, before %v", now, before)
	}
	m.Want(204, "DELETE", "/api/v2/blocks/"+inner, "")
	m.Right(user, other, "VIEW", "")
	if now := seen(); now != [3]int{before[0] + 1, before[1] + 1, before[2] + 1} {
		t.Errorf("with a right at another block are seen %v, before %v", now, before)
	}
}

// TestRightsModel compares the engine's decisions with those of rightsModel, for random trees, rights and queries.
func TestRightsModel(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	rounds := 25
	if os.Getenv(apitest.LongTests) != "" {
		rounds = 1600
	}
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 7)) //nolint:gosec // a test; failures report the seed
	model := &rightsModel{parent: map[string]string{}, kind: map[string]string{}, collection: map[string]string{},
		rights: map[string]map[string]modelRight{}}
	randomTree(m, model, random)
	var users, headers []string
	var groups []string
	for i := range 2 {
		groups = append(groups, m.ID("/api/v2/groups", fmt.Sprintf(`{"name":"g%d"}`, i)))
	}
	for i := range 3 {
		id, as := m.User(fmt.Sprintf("u%d", i), "NO_ACCESS")
		users, headers = append(users, id), append(headers, as)
		if i > 0 {
			m.Want(201, "POST", "/api/v2/groups/"+groups[i-1]+"/users", `{"id":`+id+`}`)
		}
	}
	subjects := func(i int) []string {
		if i > 0 {
			return []string{users[i], groups[i-1]}
		}
		return []string{users[i]}
	}
	var ids []string
	asked, made, gone := 0, 0, 0
	for round := range rounds {
		if round%5 == 0 {
			came, went := changeTree(m, model, random, round)
			made, gone = made+came, gone+went
			ids = slices.Sorted(maps.Keys(model.kind))
		}
		randomRights(m, model, random, append(slices.Clone(users), groups...), ids)
		i := random.IntN(len(users))
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = model.level(subjects(i), id) > 0
			asked++
		}
		for _, c := range []string{"configurations", "views", "zones", "resourceRecords", "blocks", "networks", "ranges", "addresses", ""} {
			var list struct {
				TotalCount int
				Data       []struct {
					ID     json.Number
					Type   string
					Parent any
				}
			}
			least, _ := strconv.Atoi(ids[random.IntN(len(ids))])
			question, fits := "", func(string) bool { return true }
			switch random.IntN(4) {
			case 0:
				question = "&orderBy=" + []string{"id", "desc(id)", "name", "desc(name)"}[random.IntN(4)]
			case 1:
				question = "&" + apitest.Filter(fmt.Sprintf("id:ge(%d)", least))
				fits = func(id string) bool { n, _ := strconv.Atoi(id); return n >= least }
			case 2:
				kind := model.kind[ids[random.IntN(len(ids))]]
				question = "&orderBy=desc(id)&" + apitest.Filter("type:'"+kind+"'")
				fits = func(id string) bool { return model.kind[id] == kind }
			}
			if c == "" && !strings.Contains(question, "filter") { // a page has room only for the resources of the test
				question += "&" + apitest.Filter("id:ge("+ids[0]+")")
			}
			r := m.Want(200, "GET", strings.TrimSuffix("/api/v2/"+c, "/")+"?limit=1000&total=true"+question, "", headers[i])
			if err := json.Unmarshal(r.Body, &list); err != nil {
				t.Fatal(err)
			}
			got, last := map[string]bool{}, int64(0)
			for k, row := range list.Data {
				got[row.ID.String()] = true
				n, err := row.ID.Int64()
				if k > 0 && (strings.Contains(question, "desc(id)") && n >= last || strings.Contains(question, "orderBy=id") && n <= last) {
					t.Fatalf("seed %d, round %d: %q%s is in another order: %s", os.Getpid(), round, c, question, r.Body)
				}
				if last = n; err != nil {
					t.Fatal(err)
				}
			}
			wanted := 0
			for _, id := range ids {
				if c != "" && model.collection[id] != c {
					continue
				}
				shown := seen[id] && fits(id)
				if shown {
					wanted++
				}
				if got[id] != shown {
					t.Fatalf("seed %d, round %d: %q%s shows u%d %s %s: %v, which is of level %s; rights %v", os.Getpid(), round, c, question, i,
						model.kind[id], id, got[id], modelLevels[model.level(subjects(i), id)], model.rights)
				}
			}
			if c != "" && list.TotalCount != wanted {
				t.Fatalf("seed %d, round %d: %q counts %d, expected %d", os.Getpid(), round, c, list.TotalCount, wanted)
			}
		}
		for range 6 {
			tryOne(m, t, model, random, subjects(i), headers[i], ids[random.IntN(len(ids))])
			tryNew(m, t, model, random, subjects(i), headers[i], ids[random.IntN(len(ids))])
			asked += 2
		}
	}
	t.Logf("%d questions, %d networks made, %d addresses deleted meanwhile", asked, made, gone)
	if made == 0 || gone == 0 {
		t.Error("the tree did not change")
	}
	m.Verify()
}

// tryOne reads a resource and its effective rights, and changes it.
func tryOne(m *apitest.API, t *testing.T, model *rightsModel, random *rand.Rand, subjects []string, as, id string) {
	t.Helper()
	level := model.level(subjects, id)
	path := "/api/v2/" + model.collection[id] + "/" + id
	r := m.Do("GET", path, "", as)
	if (r.StatusCode == 200) != (level > 0) || level == 0 && r.StatusCode != 404 {
		t.Errorf("GET %s of level %s answers %d", path, modelLevels[level], r.StatusCode)
	}
	if level > 0 {
		for _, ref := range []string{"configuration", "location"} {
			if at := r.Text(ref + ".id"); at != "" && model.kind[at] != "" && model.level(subjects, at) == 0 {
				t.Errorf("GET %s shows %s %s, which is hidden", path, ref, at)
			}
		}
		if r := m.Want(200, "GET", path+"/effectiveRights", "", as); r.Text("accessLevel") != modelLevels[level] {
			t.Errorf("%s: %s, expected %s", path, r.Body, modelLevels[level])
		}
	}
	r = m.Do("PATCH", path, fmt.Sprintf(`{"userDefinedFields":null,"name":%s}`, nameFor(model.kind[id], random)), as)
	switch {
	case level == 0 && r.StatusCode != 404, level == 1 && r.StatusCode != 403:
		t.Errorf("PATCH %s of level %s answers %d %s", path, modelLevels[level], r.StatusCode, r.Body)
	case level > 1 && r.StatusCode != 200 && r.StatusCode != 403 &&
		r.StatusCode != 409: // the name may be taken; records below may change as well
		t.Errorf("PATCH %s of level %s answers %d %s", path, modelLevels[level], r.StatusCode, r.Body)
	}
}

// tryNew creates a resource below another one and deletes it.
func tryNew(m *apitest.API, t *testing.T, model *rightsModel, random *rand.Rand, subjects []string, as, above string) {
	t.Helper()
	var kind, path, body string
	switch n := random.IntN(1_000_000); model.kind[above] {
	case "Zone":
		kind, path = "TXTRecord", "/api/v2/zones/"+above+"/resourceRecords"
		body = fmt.Sprintf(`{"type":"TXTRecord","name":"new%d","text":"x"}`, n)
	case "IPv4Network":
		kind, path = "IPv4Address", "/api/v2/networks/"+above+"/addresses"
		body = `{"type":"IPv4Address","state":"STATIC"}`
	default:
		return
	}
	const coming = "coming"
	model.parent[coming], model.kind[coming] = above, kind
	level := model.level(subjects, coming)
	delete(model.parent, coming)
	delete(model.kind, coming)
	r := m.Do("POST", path, body, as)
	want := 201
	switch {
	case model.level(subjects, above) == 0:
		want = 404
	case level < 3:
		want = 403
	}
	if r.StatusCode != want {
		t.Errorf("POST %s of level %s, below %s, answers %d %s", path, modelLevels[level], modelLevels[model.level(subjects, above)],
			r.StatusCode, r.Body)
	}
	if r.StatusCode != 201 {
		return
	}
	at := r.Header.Get("Location")
	if r := m.Do("DELETE", at, "", as); r.StatusCode != map[bool]int{true: 204, false: 403}[level == 4] {
		t.Errorf("DELETE %s of level %s answers %d %s", at, modelLevels[level], r.StatusCode, r.Body)
	}
	if r := m.Do("DELETE", at, ""); r.StatusCode != 204 && r.StatusCode != 404 {
		t.Errorf("DELETE %s by an administrator answers %d %s", at, r.StatusCode, r.Body)
	}
}

// changeTree creates a network with an address, and deletes another address, if possible. It returns the numbers of created and deleted
// resources.
func changeTree(m *apitest.API, model *rightsModel, random *rand.Rand, round int) (came, went int) {
	known := func(kind string) (ids []string) {
		for id, k := range model.kind {
			if k == kind {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	blocks := known("IPv4Block")
	block := blocks[random.IntN(len(blocks))]
	if r := m.Do("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/29","gateway":null}`); r.StatusCode == 201 {
		id := r.Text("id")
		model.parent[id], model.kind[id], model.collection[id] = block, "IPv4Network", "networks"
		address := m.ID("/api/v2/networks/"+id+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","name":"round %d"}`, round))
		model.parent[address], model.kind[address], model.collection[address] = id, "IPv4Address", "addresses"
		came++
	}
	addresses := known("IPv4Address")
	if len(addresses) == 1 { // the queries need one
		return came, went
	}
	if id := addresses[random.IntN(len(addresses))]; m.Do("DELETE", "/api/v2/addresses/"+id, "").StatusCode == 204 {
		for _, rights := range model.rights { // deleted with the address
			delete(rights, id)
		}
		went++
		delete(model.parent, id)
		delete(model.kind, id)
		delete(model.collection, id)
	}
	return came, went
}

func nameFor(kind string, random *rand.Rand) string {
	if kind == "Zone" || strings.HasSuffix(kind, "Record") {
		return fmt.Sprintf(`"n%d"`, random.IntN(1_000_000))
	}
	return fmt.Sprintf(`"name %d"`, random.IntN(1_000_000))
}

// randomTree creates a random tree of resources.
func randomTree(m *apitest.API, model *rightsModel, random *rand.Rand) {
	add := func(parent, collection, path, body string) string {
		r := m.Want(201, "POST", "/api/v2/"+path, body)
		id := r.Text("id")
		model.parent[id], model.kind[id], model.collection[id] = parent, r.Text("type"), collection
		return id
	}
	for c := range 2 {
		configuration := add("", "configurations", "configurations", fmt.Sprintf(`{"name":"c%d"}`, c))
		for b := range 2 {
			block := add(configuration, "blocks", "configurations/"+configuration+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.%d.0.0/16"}`, b))
			for range random.IntN(4) { // nested blocks with the same start
				bits := 17 + random.IntN(3)
				r := m.Do("POST", "/api/v2/blocks/"+block+"/blocks", fmt.Sprintf(`{"type":"IPv4Block","range":"10.%d.0.0/%d"}`, b, bits))
				if r.StatusCode != 201 {
					continue
				}
				id := r.Text("id")
				model.parent[id], model.kind[id], model.collection[id] = block, "IPv4Block", "blocks"
				block = id
			}
			for n := range 2 {
				network := add(block, "networks", "blocks/"+block+"/networks", fmt.Sprintf(`{"type":"IPv4Network","range":"10.%d.%d.0/24"}`, b, n))
				add(network, "ranges", "networks/"+network+"/ranges", fmt.Sprintf(`{"type":"IPv4DHCPRange","range":"10.%d.%d.100-10.%[1]d.%[2]d.120"}`, b, n))
				add(network, "addresses", "networks/"+network+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"10.%d.%d.9","state":"STATIC"}`, b, n))
			}
		}
		view := add(configuration, "views", "configurations/"+configuration+"/views", `{"name":"v"}`)
		zone := add(view, "zones", "views/"+view+"/zones", `{"type":"Zone","absoluteName":"example"}`)
		for z := range 2 {
			below := add(zone, "zones", "zones/"+zone+"/zones", fmt.Sprintf(`{"type":"Zone","name":"z%d"}`, z))
			add(below, "resourceRecords", "zones/"+below+"/resourceRecords", `{"type":"TXTRecord","name":"t","text":"x"}`)
			add(below, "resourceRecords", "zones/"+below+"/resourceRecords", `{"type":"GenericRecord","name":"g","recordType":"TXT","rdata":"x"}`)
		}
	}
	for _, c := range []string{"addresses", "blocks",
		"zones"} { // created implicitly, such as gateways, IPv6 blocks and zones of external hosts
		for _, made := range m.Want(200, "GET", "/api/v2/"+c+"?limit=1000", "").Get("data").([]any) {
			row := made.(map[string]any)
			if id := fmt.Sprint(row["id"]); model.kind[id] == "" {
				model.kind[id], model.collection[id] = fmt.Sprint(row["type"]), c
				up := row["_links"].(map[string]any)["up"].(map[string]any)["href"].(string)
				model.parent[id] = up[strings.LastIndexByte(up, '/')+1:]
			}
		}
	}
}

// randomRights creates, changes and deletes a few rights.
func randomRights(m *apitest.API, model *rightsModel, random *rand.Rand, subjects, ids []string) {
	kinds := []string{"IPv4Address", "IPv4Network", "Zone", "TXTRecord", "IPv4Block", "IPv4DHCPRange"}
	for range 1 + random.IntN(4) {
		subject, at := subjects[random.IntN(len(subjects))], ids[random.IntN(len(ids))]
		if random.IntN(6) == 0 {
			at = ""
		}
		if model.rights[subject] == nil {
			model.rights[subject] = map[string]modelRight{}
		}
		there, ok := model.rights[subject][at]
		if ok && random.IntN(2) == 0 || len(model.rights[subject]) > 6 {
			for where, r := range model.rights[subject] {
				m.Want(204, "DELETE", "/api/v2/accessRights/"+r.id, "")
				delete(model.rights[subject], where)
				break
			}
			continue
		}
		r := modelRight{id: there.id, level: random.IntN(5), overrides: map[string]int{}}
		text := ""
		for _, kind := range kinds {
			if random.IntN(8) == 0 {
				r.overrides[kind] = random.IntN(5)
				text += fmt.Sprintf(`,{"resourceType":"%s","accessLevel":"%s"}`, kind, modelLevels[r.overrides[kind]])
			}
		}
		more := `,"accessOverrides":[` + strings.TrimPrefix(text, ",") + `]`
		if ok {
			m.Want(200, "PATCH", "/api/v2/accessRights/"+there.id, `{"defaultAccessLevel":"`+modelLevels[r.level]+`"`+more+`}`)
		} else {
			r.id = m.Right(subject, at, modelLevels[r.level], more)
		}
		model.rights[subject][at] = r
	}
}

// TestPartsOfSplitInheritRights checks that the parts of a split resource get its rights, whoever splits it. Undo deletes these rights
// with the parts.
func TestPartsOfSplitInheritRights(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	person := func(name, level string) string {
		id := m.ID("/api/v2/users",
			`{"name":"`+name+`","email":"x@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
		m.ID("/api/v2/accessRights", `{"userScope":{"id":`+id+`},"resource":{"id":`+configuration+`},"defaultAccessLevel":"`+level+`"}`)
		return id
	}
	carol, dave := person("carol", "VIEW"), person("dave", "FULL")
	asCarol, asDave := apitest.BasicAuth("carol", "a-long-password"), apitest.BasicAuth("dave", "a-long-password")
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+carol+`},"resource":{"id":`+network+`},"defaultAccessLevel":"HIDE",
		"accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"VIEW"}]}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+dave+`},"resource":{"id":`+network+`},"defaultAccessLevel":"ADD","workflowLevel":"NONE"}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+dave+`},"resource":{"id":`+block+`},"defaultAccessLevel":"FULL","deploymentsAllowed":true}`)

	split := `{"type":"IPv4NetworkSplit","network":{"id":` + network + `},"networkCount":4}`
	m.Refused(403, "AccessDenied", "", "POST", "/api/v2/blocks/"+block+"/splits", split, asDave)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits", split)
	m.Want(200, "GET", "/api/v2/networks", "", asCarol).None(t)
	for _, part := range strings.Split("10.0.0.0/26 10.0.0.64/26 10.0.0.128/26 10.0.0.192/26", " ") {
		id := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("range:'"+part+"'"), "").Text("data.0.id")
		r := m.Want(200, "GET", "/api/v2/networks/"+id+"/accessRights?orderBy=asc(id)", "")
		if r.Count() != 2 || r.Text("data.0.userScope.name") != "carol" || r.Text("data.0.accessOverrides.0.accessLevel") != "VIEW" ||
			r.Text("data.1.userScope.name") != "dave" || r.Text("data.1.defaultAccessLevel") != "ADD" {
			t.Errorf("the rights of %s are %s", part, r.Body)
		}
		m.Refused(403, "AccessDenied", "", "DELETE", "/api/v2/networks/"+id, "", asDave)
	}
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"/accessRights", ""); r.Count() != 2 {
		t.Errorf("after undo the network has the rights %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/accessRights?total=true", ""); r.Text("totalCount") != "5" {
		t.Errorf("after undo there are the rights %s", r.Body)
	}

	// A user who may split does not need the privilege to grant rights, and does not see any.
	eve := person("eve", "FULL")
	asEve := apitest.BasicAuth("eve", "a-long-password")
	if r := m.Want(200, "POST", "/api/v2/blocks/"+block+"/splits", split, asEve, "x-portolan-dry-run: true"); strings.Contains(string(r.Body),
		"carol") {
		t.Errorf("eve, who sees no rights, is shown %s", r.Body)
	}
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits", split, asEve)
	m.Want(200, "GET", "/api/v2/networks", "", asCarol).None(t)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+eve+`},"resource":{"id":`+block+`},"defaultAccessLevel":"FULL"}`)
	halves := `{"type":"IPv4BlockSplit","block":{"id":` + block + `}}`
	m.Want(201, "POST", "/api/v2/configurations/"+configuration+"/splits", halves, asEve)
	blocks := m.Want(200, "GET", "/api/v2/blocks?"+apitest.Filter("type:'IPv4Block'"), "", asEve)
	if blocks.Count() != 2 {
		t.Errorf("there are the blocks %s", blocks.Body)
	}
	for i := range blocks.Count() {
		if r := m.Want(200, "GET", "/api/v2/blocks/"+blocks.Text(fmt.Sprintf("data.%d.id", i))+"/accessRights", ""); r.Count() != 2 {
			t.Errorf("%s has the rights %s", blocks.Text(fmt.Sprintf("data.%d.range", i)), r.Body)
		}
	}
	m.Verify()
}
