package model_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// everything returns all resources, without versions, sessions and history.
func (m *manager) everything(configuration string) string {
	m.T.Helper()
	text := ""
	for _, list := range []string{"blocks", "networks", "addresses", "zones", "resourceRecords", "views"} {
		text += string(m.Want(200, "GET", "/api/v2/"+list+"?limit=1000&orderBy=asc(id)&filter=configuration.id:"+configuration, "").Body)
	}
	return text
}

// TestUndo checks that undoing any transaction restores the data before it, and that undoing the undo restores the data after it.
func TestUndo(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.20"}]}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"AliasRecord","name":"web","linkedRecord":{"id":`+host+`}}`)
	m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"sub"}`)
	patch := "Content-Type: application/merge-patch+json"
	for _, step := range []struct{ method, path, body string }{
		{"POST", "/networks/" + network + "/addresses",
			`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"new.example.com"}]}`},
		{"POST", "/blocks/" + block + "/networks", `{"type":"IPv4Network","range":"/24"}`},
		{"PATCH", "/zones/" + zone, `{"name":"other"}`},
		{"PATCH", "/networks/" + network, `{"gateway":"10.0.0.254","name":"changed"}`},
		{"DELETE", "/resourceRecords/" + host, ""},
		{"DELETE", "/networks/" + network, ""},
		{"DELETE", "/zones/" + zone, ""},
		{"DELETE", "/blocks/" + block, ""},
		{"POST", "/views/" + view + "/zones", `{"type":"Zone","absoluteName":"a.b.c.d"}`},
	} {
		before := m.everything(configuration)
		headers := []string{}
		if step.method == "PATCH" {
			headers = append(headers, patch)
		}
		if r := m.Do(step.method, "/api/v2"+step.path, step.body, headers...); r.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", step.method, step.path, r.StatusCode, r.Body)
		}
		done, after := m.LastTransaction(), m.everything(configuration)
		r := m.Undo(done)
		if r.StatusCode != 201 || r.Text("transactionType") != "UNDO" || r.Text("operation") != "UNDO" ||
			!strings.Contains(r.Text("description"), done) || r.Header.Get("Location") == "" {
			t.Fatalf("undoing %s %s: %d %s", step.method, step.path, r.StatusCode, r.Body)
		}
		if got := m.everything(configuration); got != before {
			t.Errorf("%s %s undone leaves\n%s\nnot\n%s", step.method, step.path, got, before)
		}
		m.Verify()
		if again := m.Undo(done); again.StatusCode != 409 || again.Text("code") != "UndoConflict" {
			t.Errorf("undoing %s %s twice: %d %s", step.method, step.path, again.StatusCode, again.Body)
		}
		if r := m.Undo(r.Text("id")); r.StatusCode != 201 {
			t.Fatalf("undoing the undo of %s %s: %d %s", step.method, step.path, r.StatusCode, r.Body)
		}
		if got := m.everything(configuration); got != after {
			t.Errorf("%s %s done again leaves\n%s\nnot\n%s", step.method, step.path, got, after)
		}
		m.Verify()
		if r := m.Undo(m.LastTransaction()); r.StatusCode != 201 {
			t.Fatalf("%d %s", r.StatusCode, r.Body)
		}
	}
}

// TestUndoRefusals checks that an undo that conflicts with later changes is refused with the reason, and changes nothing.
func TestUndoRefusals(t *testing.T) {
	m := start(t)
	configuration, view, _, block, network := m.Basics()
	patch := "Content-Type: application/merge-patch+json"
	refused := func(transaction, naming string, headers ...string) {
		t.Helper()
		before, count := m.everything(configuration), m.LastTransaction()
		if r := m.Undo(transaction, headers...); r.StatusCode != 409 || r.Text("code") != "UndoConflict" ||
			!strings.Contains(r.Text("message"), naming) {
			t.Errorf("undoing %s: %d %s, want %q", transaction, r.StatusCode, r.Body, naming)
		}
		if m.everything(configuration) != before || m.LastTransaction() != count {
			t.Error("a refused undo changed something")
		}
		m.Verify()
	}
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"one"}`, patch)
	first := m.LastTransaction()
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"two"}`, patch)
	refused(first, "was changed afterwards, by transaction "+m.LastTransaction())
	if r := m.Undo(first, "x-bcn-force-undo: true"); r.StatusCode != 201 {
		t.Errorf("forced: %d %s", r.StatusCode, r.Body)
	}
	if got := m.Want(200, "GET", "/api/v2/networks/"+network, "").Text("name"); got != "office" {
		t.Errorf("forced back, the name is %q", got)
	}
	// The created resource has a child.
	parent := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.8.0.0/16"}`)
	made := m.LastTransaction()
	m.ID("/api/v2/blocks/"+parent+"/networks", `{"type":"IPv4Network","range":"10.8.1.0/24"}`)
	refused(made, "was added to IPv4Block 10.8.0.0/16 ("+parent+")", "x-bcn-force-undo: true")
	// The space of what was deleted has been taken.
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.77"}`)
	m.Want(204, "DELETE", "/api/v2/addresses/"+address, "")
	deleted := m.LastTransaction()
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.77"}`)
	if r := m.Undo(deleted); r.StatusCode != 409 {
		t.Errorf("the address that is in use again: %d %s", r.StatusCode, r.Body)
	}
	// The same at the top.
	top := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.20.0.0/16"}`)
	m.Want(204, "DELETE", "/api/v2/blocks/"+top, "")
	deleted = m.LastTransaction()
	m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/12"}`)
	refused(deleted, "assigned to another resource afterwards")
	// The name is in use, and the parent is deleted.
	z := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","name":"gone"}`)
	m.Want(204, "DELETE", "/api/v2/zones/"+z, "")
	deleted = m.LastTransaction()
	m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","name":"gone"}`)
	refused(deleted, "is no longer valid")
	v := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"v2"}`)
	z = m.ID("/api/v2/views/"+v+"/zones", `{"type":"Zone","name":"below"}`)
	m.Want(204, "DELETE", "/api/v2/zones/"+z, "")
	deleted = m.LastTransaction()
	m.Want(204, "DELETE", "/api/v2/views/"+v, "")
	refused(deleted, "no longer exists", "x-bcn-force-undo: true")
	m.ID("/api/v2/users", `{"name":"u","password":"a long password","email":"u@example.com","securityPrivilege":"NO_ACCESS","historyPrivilege":"HIDE","accessType":"API"}`)
	refused(m.LastTransaction(), "cannot be undone")
	for body, code := range map[string]string{
		`{"transactionType":"UNDO"}`:                          "MissingRequiredField",
		`{"transactionType":"REDO","transactionId":1}`:        "InvalidEnumValue",
		`{"transactionType":"UNDO","transactionId":0}`:        "ValueLessThanMinimum",
		`{"transactionType":"UNDO","transactionId":99999999}`: "ResourceNotFound",
	} {
		if r := m.Do("POST", "/api/v2/transactions", body); r.Text("code") != code {
			t.Errorf("%s: %d %s, want %s", body, r.StatusCode, r.Body, code)
		}
	}
}

// TestDryRun checks that a dry run returns the effects of a change, and leaves nothing.
func TestDryRun(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, network := m.Basics()
	before, last := m.everything(configuration), m.LastTransaction()
	dry := "x-portolan-dry-run: true"
	for _, c := range []struct {
		method, path, body, resource string
		created, changed, deleted    int
	}{
		{"POST", "/networks/" + network + "/addresses", `{"type":"IPv4Address","state":"STATIC"}`, "IPv4Address", 1, 0, 0},
		{"POST", "/zones/" + zone + "/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}]}`, "HostRecord",
			2, 0, 0},
		{"PATCH", "/networks/" + network, `{"gateway":"10.0.0.9"}`, "IPv4Network", 1, 1, 1},
		{"DELETE", "/blocks/" + block, "", "", 0, 0, 3},
		{"POST", "/transactions", `{"transactionType":"UNDO","transactionId":` + last + `}`, "", 0, 0, 2},
	} {
		r := m.Want(200, c.method, "/api/v2"+c.path, c.body, dry, "Idempotency-Key: k")
		want := fmt.Sprintf(`"created":%d,"changed":%d,"deleted":%d,"operations":[`, c.created, c.changed, c.deleted)
		operations, _ := r.Get("operations").([]any)
		if len(operations) != c.created+c.changed+c.deleted {
			t.Errorf("%s %s shows %d operations: %s", c.method, c.path, len(operations), r.Body)
		}
		if !strings.Contains(string(r.Body), want) || r.Text("resource.type") != c.resource || r.Text("dryRun") != "true" {
			t.Errorf("%s %s: %s, want %s of %s", c.method, c.path, r.Body, want, c.resource)
		}
	}
	tried := m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"renamed"}`, dry)
	if tried.Text("operations.0.operationType") != "CHANGE" || tried.Text("operations.0.resourceId") != network ||
		tried.Text("operations.0.fieldUpdates.0.value") != "renamed" {
		t.Errorf("the operation that was tried: %s", tried.Body)
	}
	m.Refused(404, "InlinedResourceNotFound", "is not in a ", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"192.0.2.9"}]}`, dry)
	m.Refused(400, "InvalidHeaderValue", "x-portolan-dry-run", "DELETE", "/api/v2/blocks/"+block, "", "x-portolan-dry-run: perhaps")
	if m.everything(configuration) != before || m.LastTransaction() != last {
		t.Error("what was only tried has left something")
	}
	m.Verify()
}

// TestDryRunReportsIrreversibleChanges checks that a dry run reports that a change cannot be undone, also within a batch.
func TestDryRunReportsIrreversibleChanges(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	user := m.ID("/api/v2/users", `{"name":"carol","email":"carol@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	const dry = "x-portolan-dry-run: true"
	group := m.ID("/api/v2/groups", `{"name":"crew"}`)
	other := m.ID("/api/v2/groups", `{"name":"guests"}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+group+`},"resource":{"id":`+configuration+`},"defaultAccessLevel":"VIEW"}`)
	for _, c := range []struct{ method, path, body, want string }{
		{"DELETE", "groups/" + group, "", "true"}, // with its access right
		{"DELETE", "groups/" + other, "", ""},
		{"POST", "groups/" + other + "/users", `{"id":` + user + `}`, "true"},
		{"PATCH", "networks/" + network, `{"name":"x"}`, ""},
		{"DELETE", "networks/" + network, "", ""},
		{"DELETE", "users/" + user, "", "true"},
		{"POST", "accessRights", `{"userScope":{"id":` + user + `},"resource":{"id":` + configuration + `},"defaultAccessLevel":"VIEW"}`, "true"},
		{"POST", "batch", `{"changes":[{"method":"PATCH","path":"networks/` + network + `","body":{"name":"x"}}]}`, ""},
		{"POST", "batch", `{"changes":[{"method":"PATCH","path":"networks/` + network + `","body":{"name":"x"}},{"method":"DELETE","path":"users/` + user + `"}]}`, "true"},
	} {
		if got := m.Want(200, c.method, "/api/v2/"+c.path, c.body, dry).Text("irreversible"); got != c.want {
			t.Errorf("%s %s: irreversible is %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

// TestDryRunOfALargeDeletion checks that a dry run of a large deletion returns the stored counters, and delays no other request.
func TestDryRunOfALargeDeletion(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	var list []string
	for i := range 1100 {
		list = append(list, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.0.%d.%d"}`, 16+i/200, 1+i%200))
	}
	wide := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.16.0/20"}`)
	addresses := "/api/v2/networks/" + wide + "/addresses"
	m.Want(201, "POST", addresses+"?fields=id", "["+strings.Join(list[1:], ",")+"]") // the first is the gateway
	dry := "x-portolan-dry-run: true"
	all := m.Want(200, "GET", "/api/v2/addresses?total=true&limit=1", "").Text("totalCount")
	inside := m.Want(200, "GET", addresses+"?total=true&limit=1", "").Text("totalCount")
	for path, want := range map[string]string{"networks/" + wide: inside, "blocks/" + block: all} {
		r := m.Want(200, "DELETE", "/api/v2/"+path, "", dry)
		var below, deleted int
		_, _ = fmt.Sscan(want, &below)
		_, _ = fmt.Sscan(r.Text("deleted"), &deleted)
		itself := map[bool]int{true: 3, false: 1}[strings.HasPrefix(path, "blocks")] // with its two networks
		shown, _ := r.Get("operations").([]any)
		if r.Text("estimate") != "true" || r.Text("dryRun") != "true" || deleted != below+itself || len(shown) != 100 {
			t.Errorf("%s: %s, want %d deleted", path, r.Body, below+itself)
		}
	}
	if r := m.Want(200, "DELETE", "/api/v2/networks/"+network, "", dry); r.Text("estimate") != "" ||
		r.Text("operations.0.operationType") != "DELETE" {
		t.Errorf("a small one: %s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", "999999", "DELETE", "/api/v2/networks/999999", "", dry)
	m.Refused(412, "PreconditionFailed", "If-Match", "DELETE", "/api/v2/networks/"+wide, "", dry, `If-Match: "1.1"`)
	if r := m.Want(200, "DELETE", "/api/v2/configurations/"+configuration, "", dry); r.Text("estimate") != "true" {
		t.Errorf("the configuration: %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/networks/"+wide, "")
	m.Verify()
}

// TestDryRunOfMuch checks that a dry run of a large change returns stored counters, or is tried until it becomes large. It does not delay
// others for long, and leaves nothing.
func TestDryRunOfMuch(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration, view, zone, block, _ := m.Basics()
	wide := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.16.0/20"}`)
	var addresses, records []string
	for i := range 1100 {
		addresses = append(addresses, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.0.%d.%d"}`, 16+i/200, 2+i%200))
		records = append(records, fmt.Sprintf(`{"type":"TXTRecord","name":"n%d","text":"t"}`, i))
	}
	dry := "x-portolan-dry-run: true"
	before := m.everything(configuration)
	// A list that is too long is tried in part.
	list := "[" + strings.Join(addresses, ",") + "]"
	r := m.Want(200, "POST", "/api/v2/networks/"+wide+"/addresses", list, dry)
	shown, _ := r.Get("operations").([]any)
	if n, err := strconv.Atoi(r.Text("created")); r.Text("estimate") != "true" || r.Text("atLeast") != "true" || err != nil || n < 100 ||
		n > 1000 || len(shown) != min(n, 100) || r.Get("resource") != nil {
		t.Errorf("a long list: %.500s", r.Body)
	}
	if m.everything(configuration) != before {
		t.Error("what was only tried has left something")
	}
	m.Want(201, "POST", "/api/v2/networks/"+wide+"/addresses?fields=id", list)
	made := m.LastTransaction()
	m.Want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords?fields=id", "["+strings.Join(records, ",")+"]")
	for _, c := range []struct {
		path, body            string
		created, changed, del int
	}{
		{"transactions", `{"transactionType":"UNDO","transactionId":` + made + `}`, 0, 0, 1100},
		{"blocks/" + block + "/splits", `{"type":"IPv4NetworkSplit","network":{"id":` + wide + `},"networkCount":4}`, 0, 1102, 0},
		{"networks/" + wide + "/moves", `{"type":"IPMove","address":"10.0.32.0"}`, 0, 1102, 0},
		{"zones/" + zone + "/moves", `{"type":"DNSMove","absoluteName":"elsewhere"}`, 0, 1101, 0},
	} {
		r := m.Want(200, "POST", "/api/v2/"+c.path, c.body, dry)
		want := fmt.Sprintf(`{"dryRun":true,"estimate":true,"resource":null,"created":%d,"changed":%d,"deleted":%d,"operations":[]}`, c.created,
			c.changed, c.del)
		if strings.TrimSpace(string(r.Body)) != want {
			t.Errorf("%s: %s, want %s", c.path, r.Body, want)
		}
	}
	// A new name of a zone goes down to all its records.
	r = m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"other"}`, dry)
	if n, err := strconv.Atoi(r.Text("changed")); r.Text("estimate") != "true" || r.Text("atLeast") != "true" || err != nil || n < 1 {
		t.Errorf("a new name: %.500s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", "999999", "POST", "/api/v2/zones/999999/moves", `{"type":"DNSMove","absoluteName":"elsewhere"}`, dry)
	if got := m.Want(200, "GET", "/api/v2/views/"+view+"/recordCounts", "").Text("totalCount"); got != "1100" {
		t.Errorf("there are %s records then", got)
	}
	m.Verify()
}

// TestUndoOfARangeThatDoesNotFit checks that a deleted range is not restored if it no longer fits: its network has moved, or a sibling
// occupies its place.
func TestUndoOfARangeThatDoesNotFit(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	list := "/api/v2/networks/" + network + "/"
	for _, c := range []struct{ collection, body string }{{"ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.150"}`},
		{"ipGroups", `{"type":"IPv4Group","name":"g","range":"10.0.0.10-10.0.0.20"}`}} {
		m.Want(204, "DELETE", "/api/v2/"+c.collection+"/"+m.ID(list+c.collection, c.body), "")
		deleted := m.LastTransaction()
		other := m.ID(list+c.collection, strings.NewReplacer(`"g"`, `"other"`, "0-10", "1-10").Replace(c.body))
		m.Refused(409, "UndoConflict", "overlaps", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
		m.Want(204, "DELETE", "/api/v2/"+c.collection+"/"+other, "")
		m.Want(201, "POST", list+"moves", `{"type":"IPMove","address":"10.0.64.0"}`)
		m.Refused(409, "UndoConflict", "within", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
		m.Want(201, "POST", list+"moves", `{"type":"IPMove","address":"10.0.0.0"}`)
		m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
	}
	m.Verify()
}

// TestUndoBackwards checks that the changes of a resource are undone one after another, the last one first. A change in between that
// remains is a conflict.
func TestUndoBackwards(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	path := "/api/v2/networks/" + network
	name := func() string { return m.Want(200, "GET", path, "").Text("name") }
	var made []string
	first := name()
	for _, to := range []string{"one", "two", "three"} {
		m.Want(200, "PATCH", path, `{"name":"`+to+`"}`, apitest.MergePatch)
		made = append(made, m.LastTransaction())
	}
	if r := m.Undo(made[1]); r.StatusCode != 409 || name() != "three" {
		t.Fatalf("the one before the last: %d %s", r.StatusCode, r.Body)
	}
	before := []string{first, "one", "two"}
	for i := 2; i >= 0; i-- {
		want := before[i]
		if r := m.Undo(made[i]); r.StatusCode != 201 || name() != want {
			t.Fatalf("undoing %d: %d %s, and it is %q", i, r.StatusCode, r.Body, name())
		}
	}
	m.Verify()
}

// TestChangesNameTheirTransaction checks that the answer to each change names its transaction, so that its user can undo exactly this one.
func TestChangesNameTheirTransaction(t *testing.T) {
	m := start(t)
	const header = "X-Portolan-Transaction"
	made := m.Want(201, "POST", "/api/v2/configurations", `{"name":"told"}`)
	at := "/api/v2/configurations/" + made.Text("id")
	changed := m.Want(200, "PATCH", at, `{"description":"x"}`)
	listed := m.Want(201, "POST", "/api/v2/configurations", `[{"name":"one"},{"name":"two"}]`)
	batch := m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"configurations","body":{"name":"three"}}]}`)
	if got := batch.Header.Get(header); got != batch.Text("transaction") {
		t.Errorf("the batch is %s and tells %q", batch.Text("transaction"), got)
	}
	gone := m.Want(204, "DELETE", at, "")
	last := ""
	for _, r := range []apitest.Reply{made, changed, listed, gone} {
		number := r.Header.Get(header)
		if number == "" || number == last {
			t.Errorf("%s tells %q behind %q", r.Body, number, last)
		}
		last = number
	}
	if got := m.Want(200, "PATCH", "/api/v2/configurations/"+listed.Text("data.0.id"), `{"name":"tried"}`,
		"x-portolan-dry-run: true").Header.Get(header); got != "" {
		t.Errorf("what is only tried tells %q", got)
	}
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+gone.Header.Get(header)+`}`)
	m.Want(200, "GET", at, "")
}

// TestUndoOfAMoveIsRefused refuses to restore the former name of a zone while it contains zones that were created since, also by force.
func TestUndoOfAMoveIsRefused(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	view := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"v"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"d"}`)
	m.Want(201, "POST", "/api/v2/zones/"+zone+"/moves", `{"type":"DNSMove","absoluteName":"b.a"}`)
	move := m.Want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "").Text("data.0.id")
	child := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"c.b.a"}`)
	undo := `{"transactionType":"UNDO","transactionId":` + move + `}`
	m.Refused(409, "UndoConflict", "c.b.a ("+child+") was created in Zone b.a ("+zone+") afterwards",
		"POST", "/api/v2/transactions", undo, "x-bcn-force-undo: true")
	m.Verify()
	m.Want(204, "DELETE", "/api/v2/zones/"+child, "")
	m.Want(201, "POST", "/api/v2/transactions", undo, "x-bcn-force-undo: true")
	if name := m.Want(200, "GET", "/api/v2/zones/"+zone, "").Text("absoluteName"); name != "d" {
		t.Errorf("the zone is called %s", name)
	}
	m.Verify()
}

// TestUndoInARenamedZoneIsRefused refuses to restore a record or a zone below a zone that was renamed since, also by force. The restored
// absolute name would end in the former name of that zone.
func TestUndoInARenamedZoneIsRefused(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	view := m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"v"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"d"}`)
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"t","text":"x"}`)
	below := m.ID("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"below"}`)
	undo := func(of apitest.Reply) string {
		return `{"transactionType":"UNDO","transactionId":` + of.Header.Get("x-portolan-transaction") + `}`
	}
	changed := undo(m.Want(200, "PATCH", "/api/v2/resourceRecords/"+record, `{"text":"y"}`, apitest.MergePatch))
	zoneGone := undo(m.Want(204, "DELETE", "/api/v2/zones/"+below, ""))
	recordGone := undo(m.Want(204, "DELETE", "/api/v2/resourceRecords/"+record, ""))
	renamed := undo(m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"n"}`, apitest.MergePatch))
	refused := func(undo, name string) {
		t.Helper()
		m.Refused(409, "UndoConflict", "Zone n ("+zone+"), the parent of "+name+", was renamed afterwards", "POST", "/api/v2/transactions", undo,
			"x-bcn-force-undo: true")
		m.Verify()
	}
	refused(recordGone, "TXTRecord t.d ("+record+")")
	refused(zoneGone, "Zone below.d ("+below+")")
	m.Want(201, "POST", "/api/v2/transactions", renamed)
	m.Want(201, "POST", "/api/v2/transactions", recordGone)
	renamed = undo(m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"n"}`, apitest.MergePatch))
	refused(changed, "TXTRecord t.d ("+record+")")
	m.Want(201, "POST", "/api/v2/transactions", renamed)
	m.Want(201, "POST", "/api/v2/transactions", zoneGone)
	m.Verify()
}
