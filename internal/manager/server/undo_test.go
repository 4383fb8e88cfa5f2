package server

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// last gives the number of the latest transaction.
func (m *manager) last() string {
	m.t.Helper()
	return m.want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)&fields=id", "").text("data.0.id")
}

func (m *manager) undo(transaction string, headers ...string) reply {
	m.t.Helper()
	return m.do("POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+transaction+`}`, headers...)
}

// everything shows all there is, but for versions and what sessions and history show.
func (m *manager) everything(configuration string) string {
	m.t.Helper()
	text := ""
	for _, list := range []string{"blocks", "networks", "addresses", "zones", "resourceRecords", "views"} {
		text += string(m.want(200, "GET", "/api/v2/"+list+"?limit=1000&orderBy=asc(id)&filter=configuration.id:"+configuration, "").body)
	}
	return text
}

// Whatever a transaction did, undoing it leaves what was there before, and undoing that what was
// there after.
func TestUndo(t *testing.T) {
	slow(t)
	m := startAlone(t)
	configuration, view, zone, block, network := m.basics()
	host := m.id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"www","addresses":[{"address":"10.0.0.20"}]}`)
	m.id("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"AliasRecord","name":"web","linkedRecord":{"id":`+host+`}}`)
	m.id("/api/v2/zones/"+zone+"/zones", `{"type":"Zone","name":"sub"}`)
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
		if r := m.do(step.method, "/api/v2"+step.path, step.body, headers...); r.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", step.method, step.path, r.StatusCode, r.body)
		}
		done, after := m.last(), m.everything(configuration)
		r := m.undo(done)
		if r.StatusCode != 201 || r.text("transactionType") != "UNDO" || r.text("operation") != "UNDO" ||
			!strings.Contains(r.text("description"), done) || r.Header.Get("Location") == "" {
			t.Fatalf("undoing %s %s: %d %s", step.method, step.path, r.StatusCode, r.body)
		}
		if got := m.everything(configuration); got != before {
			t.Errorf("%s %s undone leaves\n%s\nnot\n%s", step.method, step.path, got, before)
		}
		m.verify()
		if again := m.undo(done); again.StatusCode != 409 || again.text("code") != "UndoConflict" {
			t.Errorf("undoing %s %s twice: %d %s", step.method, step.path, again.StatusCode, again.body)
		}
		if r := m.undo(r.text("id")); r.StatusCode != 201 {
			t.Fatalf("undoing the undo of %s %s: %d %s", step.method, step.path, r.StatusCode, r.body)
		}
		if got := m.everything(configuration); got != after {
			t.Errorf("%s %s done again leaves\n%s\nnot\n%s", step.method, step.path, got, after)
		}
		m.verify()
		if r := m.undo(m.last()); r.StatusCode != 201 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
}

// An undo that later changes stand in the way of is refused with the reason, and changes nothing.
func TestUndoRefusals(t *testing.T) {
	m := startAlone(t)
	configuration, view, _, block, network := m.basics()
	patch := "Content-Type: application/merge-patch+json"
	refused := func(transaction, naming string, headers ...string) {
		t.Helper()
		before, count := m.everything(configuration), m.last()
		if r := m.undo(transaction, headers...); r.StatusCode != 409 || r.text("code") != "UndoConflict" ||
			!strings.Contains(r.text("message"), naming) {
			t.Errorf("undoing %s: %d %s, want %q", transaction, r.StatusCode, r.body, naming)
		}
		if m.everything(configuration) != before || m.last() != count {
			t.Error("a refused undo changed something")
		}
		m.verify()
	}
	m.want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"one"}`, patch)
	first := m.last()
	m.want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"two"}`, patch)
	refused(first, "was changed by transaction "+m.last()+" since")
	if r := m.undo(first, "x-bcn-force-undo: true"); r.StatusCode != 201 {
		t.Errorf("forced: %d %s", r.StatusCode, r.body)
	}
	if got := m.want(200, "GET", "/api/v2/networks/"+network, "").text("name"); got != "office" {
		t.Errorf("forced back, the name is %q", got)
	}
	// Something lies below what was made.
	parent := m.id("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.8.0.0/16"}`)
	made := m.last()
	m.id("/api/v2/blocks/"+parent+"/networks", `{"type":"IPv4Network","range":"10.8.1.0/24"}`)
	refused(made, "lies below IPv4Block "+parent, "x-bcn-force-undo: true")
	// The space of what was deleted has been taken.
	address := m.id("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.77"}`)
	m.want(204, "DELETE", "/api/v2/addresses/"+address, "")
	deleted := m.last()
	m.id("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.77"}`)
	if r := m.undo(deleted); r.StatusCode != 409 {
		t.Errorf("the address that is in use again: %d %s", r.StatusCode, r.body)
	}
	// At the top, too.
	top := m.id("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.20.0.0/16"}`)
	m.want(204, "DELETE", "/api/v2/blocks/"+top, "")
	deleted = m.last()
	m.id("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/12"}`)
	refused(deleted, "has been taken since")
	// The name has been taken, and what it lay below is gone.
	z := m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","name":"gone"}`)
	m.want(204, "DELETE", "/api/v2/zones/"+z, "")
	deleted = m.last()
	m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","name":"gone"}`)
	refused(deleted, "does not fit any more")
	v := m.id("/api/v2/configurations/"+configuration+"/views", `{"name":"v2"}`)
	z = m.id("/api/v2/views/"+v+"/zones", `{"type":"Zone","name":"below"}`)
	m.want(204, "DELETE", "/api/v2/zones/"+z, "")
	deleted = m.last()
	m.want(204, "DELETE", "/api/v2/views/"+v, "")
	refused(deleted, "is not there any more", "x-bcn-force-undo: true")
	m.id("/api/v2/users", `{"name":"u","password":"a long password","email":"u@example.com","securityPrivilege":"NO_ACCESS","historyPrivilege":"HIDE","accessType":"API"}`)
	refused(m.last(), "cannot be taken back")
	for body, code := range map[string]string{
		`{"transactionType":"UNDO"}`:                          "MissingRequiredField",
		`{"transactionType":"REDO","transactionId":1}`:        "InvalidEnumValue",
		`{"transactionType":"UNDO","transactionId":0}`:        "ValueLessThanMinimum",
		`{"transactionType":"UNDO","transactionId":99999999}`: "ResourceNotFound",
	} {
		if r := m.do("POST", "/api/v2/transactions", body); r.text("code") != code {
			t.Errorf("%s: %d %s, want %s", body, r.StatusCode, r.body, code)
		}
	}
}

// A change that is only tried answers what would come of it, and leaves nothing.
func TestDryRun(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, block, network := m.basics()
	before, last := m.everything(configuration), m.last()
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
		r := m.want(200, c.method, "/api/v2"+c.path, c.body, dry, "Idempotency-Key: k")
		want := fmt.Sprintf(`"created":%d,"changed":%d,"deleted":%d,"operations":[`, c.created, c.changed, c.deleted)
		operations, _ := r.get("operations").([]any)
		if len(operations) != c.created+c.changed+c.deleted {
			t.Errorf("%s %s shows %d operations: %s", c.method, c.path, len(operations), r.body)
		}
		if !strings.Contains(string(r.body), want) || r.text("resource.type") != c.resource || r.text("dryRun") != "true" {
			t.Errorf("%s %s: %s, want %s of %s", c.method, c.path, r.body, want, c.resource)
		}
	}
	tried := m.want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"renamed"}`, dry)
	if tried.text("operations.0.operationType") != "CHANGE" || tried.text("operations.0.resourceId") != network ||
		tried.text("operations.0.fieldUpdates.0.value") != "renamed" {
		t.Errorf("the operation that was tried: %s", tried.body)
	}
	m.refused(404, "InlinedResourceNotFound", "no network", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"192.0.2.9"}]}`, dry)
	m.refused(400, "InvalidHeaderValue", "x-portolan-dry-run", "DELETE", "/api/v2/blocks/"+block, "", "x-portolan-dry-run: perhaps")
	if m.everything(configuration) != before || m.last() != last {
		t.Error("what was only tried has left something")
	}
	m.verify()
}

// What a large deletion would take is told by the numbers that are kept, and nobody waits for it.
func TestDryRunOfALargeDeletion(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, block, network := m.basics()
	var list []string
	for i := range 1100 {
		list = append(list, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.0.%d.%d"}`, 16+i/200, 1+i%200))
	}
	wide := m.id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.16.0/20"}`)
	addresses := "/api/v2/networks/" + wide + "/addresses"
	m.want(201, "POST", addresses+"?fields=id", "["+strings.Join(list[1:], ",")+"]") // the first is the gateway
	dry := "x-portolan-dry-run: true"
	all := m.want(200, "GET", "/api/v2/addresses?total=true&limit=1", "").text("totalCount")
	inside := m.want(200, "GET", addresses+"?total=true&limit=1", "").text("totalCount")
	for path, want := range map[string]string{"networks/" + wide: inside, "blocks/" + block: all} {
		r := m.want(200, "DELETE", "/api/v2/"+path, "", dry)
		var below, deleted int
		_, _ = fmt.Sscan(want, &below)
		_, _ = fmt.Sscan(r.text("deleted"), &deleted)
		itself := map[bool]int{true: 3, false: 1}[strings.HasPrefix(path, "blocks")] // with its two networks
		shown, _ := r.get("operations").([]any)
		if r.text("estimate") != "true" || r.text("dryRun") != "true" || deleted != below+itself || len(shown) != 100 {
			t.Errorf("%s: %s, want %d deleted", path, r.body, below+itself)
		}
	}
	if r := m.want(200, "DELETE", "/api/v2/networks/"+network, "", dry); r.text("estimate") != "" ||
		r.text("operations.0.operationType") != "DELETE" {
		t.Errorf("a small one: %s", r.body)
	}
	m.refused(404, "ResourceNotFound", "999999", "DELETE", "/api/v2/networks/999999", "", dry)
	m.refused(412, "PreconditionFailed", "If-Match", "DELETE", "/api/v2/networks/"+wide, "", dry, `If-Match: "1.1"`)
	if r := m.want(200, "DELETE", "/api/v2/configurations/"+configuration, "", dry); r.text("estimate") != "true" {
		t.Errorf("the configuration: %s", r.body)
	}
	m.want(204, "DELETE", "/api/v2/networks/"+wide, "")
	m.verify()
}

// What would change much is told by what is kept, or tried until it gets large: nobody waits long for it, and nothing of it stays.
func TestDryRunOfMuch(t *testing.T) {
	slow(t)
	m := startAlone(t)
	configuration, view, zone, block, _ := m.basics()
	wide := m.id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.16.0/20"}`)
	var addresses, records []string
	for i := range 1100 {
		addresses = append(addresses, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.0.%d.%d"}`, 16+i/200, 2+i%200))
		records = append(records, fmt.Sprintf(`{"type":"TXTRecord","name":"n%d","text":"t"}`, i))
	}
	dry := "x-portolan-dry-run: true"
	before := m.everything(configuration)
	// A list that is too long is tried in part.
	list := "[" + strings.Join(addresses, ",") + "]"
	r := m.want(200, "POST", "/api/v2/networks/"+wide+"/addresses", list, dry)
	shown, _ := r.get("operations").([]any)
	if n, err := strconv.Atoi(r.text("created")); r.text("estimate") != "true" || r.text("atLeast") != "true" || err != nil || n < 100 ||
		n > 1000 || len(shown) != min(n, 100) || r.get("resource") != nil {
		t.Errorf("a long list: %.500s", r.body)
	}
	if m.everything(configuration) != before {
		t.Error("what was only tried has left something")
	}
	m.want(201, "POST", "/api/v2/networks/"+wide+"/addresses?fields=id", list)
	made := m.last()
	m.want(201, "POST", "/api/v2/zones/"+zone+"/resourceRecords?fields=id", "["+strings.Join(records, ",")+"]")
	for _, c := range []struct {
		path, body            string
		created, changed, del int
	}{
		{"transactions", `{"transactionType":"UNDO","transactionId":` + made + `}`, 0, 0, 1100},
		{"blocks/" + block + "/splits", `{"type":"IPv4NetworkSplit","network":{"id":` + wide + `},"networkCount":4}`, 0, 1102, 0},
		{"networks/" + wide + "/moves", `{"type":"IPMove","address":"10.0.32.0"}`, 0, 1102, 0},
		{"zones/" + zone + "/moves", `{"type":"DNSMove","absoluteName":"elsewhere"}`, 0, 1101, 0},
	} {
		r := m.want(200, "POST", "/api/v2/"+c.path, c.body, dry)
		want := fmt.Sprintf(`{"dryRun":true,"estimate":true,"resource":null,"created":%d,"changed":%d,"deleted":%d,"operations":[]}`, c.created,
			c.changed, c.del)
		if strings.TrimSpace(string(r.body)) != want {
			t.Errorf("%s: %s, want %s", c.path, r.body, want)
		}
	}
	// A new name of a zone goes down to all its records.
	r = m.want(200, "PATCH", "/api/v2/zones/"+zone, `{"name":"other"}`, dry)
	if n, err := strconv.Atoi(r.text("changed")); r.text("estimate") != "true" || r.text("atLeast") != "true" || err != nil || n < 1 {
		t.Errorf("a new name: %.500s", r.body)
	}
	m.refused(404, "ResourceNotFound", "999999", "POST", "/api/v2/zones/999999/moves", `{"type":"DNSMove","absoluteName":"elsewhere"}`, dry)
	if got := m.want(200, "GET", "/api/v2/views/"+view+"/recordCounts", "").text("totalCount"); got != "1100" {
		t.Errorf("there are %s records then", got)
	}
	m.verify()
}

// What was deleted does not come back where it does not fit any more: its network has moved, or a sibling has its place.
func TestUndoOfARangeThatDoesNotFit(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.basics()
	list := "/api/v2/networks/" + network + "/"
	for _, c := range []struct{ collection, body string }{{"ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.150"}`},
		{"ipGroups", `{"type":"IPv4Group","name":"g","range":"10.0.0.10-10.0.0.20"}`}} {
		m.want(204, "DELETE", "/api/v2/"+c.collection+"/"+m.id(list+c.collection, c.body), "")
		deleted := m.last()
		other := m.id(list+c.collection, strings.NewReplacer(`"g"`, `"other"`, "0-10", "1-10").Replace(c.body))
		m.refused(409, "UndoConflict", "overlaps", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
		m.want(204, "DELETE", "/api/v2/"+c.collection+"/"+other, "")
		m.want(201, "POST", list+"moves", `{"type":"IPMove","address":"10.0.64.0"}`)
		m.refused(409, "UndoConflict", "within", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
		m.want(201, "POST", list+"moves", `{"type":"IPMove","address":"10.0.0.0"}`)
		m.want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
	}
	m.verify()
}

// Changes of one resource are undone one behind the other, the last one first; what was changed in between and stays is in the way.
func TestUndoBackwards(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.basics()
	path := "/api/v2/networks/" + network
	name := func() string { return m.want(200, "GET", path, "").text("name") }
	var made []string
	first := name()
	for _, to := range []string{"one", "two", "three"} {
		m.want(200, "PATCH", path, `{"name":"`+to+`"}`, mergePatch)
		made = append(made, m.last())
	}
	if r := m.undo(made[1]); r.StatusCode != 409 || name() != "three" {
		t.Fatalf("the one before the last: %d %s", r.StatusCode, r.body)
	}
	before := []string{first, "one", "two"}
	for i := 2; i >= 0; i-- {
		want := before[i]
		if r := m.undo(made[i]); r.StatusCode != 201 || name() != want {
			t.Fatalf("undoing %d: %d %s, and it is %q", i, r.StatusCode, r.body, name())
		}
	}
	m.verify()
}

// Each change says which transaction it is, so that whoever made it can take back that one and no other.
func TestChangesTellTheirTransaction(t *testing.T) {
	m := startAlone(t)
	const header = "X-Portolan-Transaction"
	made := m.want(201, "POST", "/api/v2/configurations", `{"name":"told"}`)
	at := "/api/v2/configurations/" + made.text("id")
	changed := m.want(200, "PATCH", at, `{"description":"x"}`)
	listed := m.want(201, "POST", "/api/v2/configurations", `[{"name":"one"},{"name":"two"}]`)
	batch := m.want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"configurations","body":{"name":"three"}}]}`)
	if got := batch.Header.Get(header); got != batch.text("transaction") {
		t.Errorf("the batch is %s and tells %q", batch.text("transaction"), got)
	}
	gone := m.want(204, "DELETE", at, "")
	last := ""
	for _, r := range []reply{made, changed, listed, gone} {
		number := r.Header.Get(header)
		if number == "" || number == last {
			t.Errorf("%s tells %q behind %q", r.body, number, last)
		}
		last = number
	}
	if got := m.want(200, "PATCH", "/api/v2/configurations/"+listed.text("data.0.id"), `{"name":"tried"}`,
		"x-portolan-dry-run: true").Header.Get(header); got != "" {
		t.Errorf("what is only tried tells %q", got)
	}
	m.want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+gone.Header.Get(header)+`}`)
	m.want(200, "GET", at, "")
}

// TestUndoOfAMoveBehindOthers refuses to give a zone its former name while zones lie below it that were created since, also by force.
func TestUndoOfAMoveBehindOthers(t *testing.T) {
	m := startAlone(t)
	configuration := m.id("/api/v2/configurations", `{"name":"main"}`)
	view := m.id("/api/v2/configurations/"+configuration+"/views", `{"name":"v"}`)
	zone := m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"d"}`)
	m.want(201, "POST", "/api/v2/zones/"+zone+"/moves", `{"type":"DNSMove","absoluteName":"b.a"}`)
	move := m.want(200, "GET", "/api/v2/transactions?orderBy=desc(id)&limit=1", "").text("data.0.id")
	child := m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"c.b.a"}`)
	undo := `{"transactionType":"UNDO","transactionId":` + move + `}`
	m.refused(409, "UndoConflict", "was created below Zone "+zone+" since", "POST", "/api/v2/transactions", undo, "x-bcn-force-undo: true")
	m.verify()
	m.want(204, "DELETE", "/api/v2/zones/"+child, "")
	m.want(201, "POST", "/api/v2/transactions", undo, "x-bcn-force-undo: true")
	if name := m.want(200, "GET", "/api/v2/zones/"+zone, "").text("absoluteName"); name != "d" {
		t.Errorf("the zone is called %s", name)
	}
	m.verify()
}
