package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestBatch checks that a batch applies all changes in one transaction, and that later changes can refer to resources of earlier ones.
func TestBatch(t *testing.T) {
	m := startAlone(t)
	configuration, view, _, _, network := m.Basics()
	body := `{"changes":[
		{"method":"POST","path":"configurations/` + configuration + `/blocks","body":{"type":"IPv4Block","range":"172.16.0.0/12"}},
		{"method":"POST","path":"/api/v2/blocks/$0/networks","body":{"type":"IPv4Network","range":"/24","name":"made"},
		 "headers":{"x-bcn-traversal-method":"DEPTH_FIRST"}},
		{"method":"POST","path":"networks/$1/addresses","body":{"type":"IPv4Address","address":"172.16.0.9","state":"STATIC"}},
		{"method":"POST","path":"views/` + view + `/zones?fields=id,name","body":{"type":"Zone","absoluteName":"batch.test"}},
		{"method":"POST","path":"zones/$3/resourceRecords","body":{"type":"HostRecord","name":"h","addresses":[{"id":"$2"}]}},
		{"method":"PATCH","path":"networks/$1","body":{"name":"changed","nothing":1}},
		{"method":"DELETE","path":"networks/` + network + `"}]}`
	tried := m.Want(200, "POST", "/api/v2/batch", body, "x-portolan-dry-run: true")
	if tried.Text("dryRun") != "true" || tried.Text("resource.count") != "7" || tried.Text("deleted") == "0" {
		t.Errorf("tried: %s", tried.Body)
	}
	m.Want(200, "GET", "/api/v2/networks/"+network, "")
	r := m.Want(200, "POST", "/api/v2/batch", body, "x-bcn-change-control-comment: all at once")
	of := m.Want(200, "GET", r.Text("results.4.location")+"/addresses", "")
	if got := of.Text("data.0.id"); got != r.Text("results.2.body.id") || got == "" {
		t.Errorf("the host has the addresses %s", of.Body)
	}
	for path, want := range map[string]string{"count": "7", "results.0.status": "201", "results.3.body.name": "batch",
		"results.3.body.type": "",
		"results.5.status":    "200", "results.5.body.name": "changed", "results.5.ignored.0": "nothing", "results.6.status": "204"} {
		if got := r.Text(path); got != want {
			t.Errorf("%s is %q, want %q: %s", path, got, want, r.Body)
		}
	}
	m.Want(200, "GET", r.Text("results.2.location"), "")
	m.Want(404, "GET", "/api/v2/networks/"+network, "")
	figures := string(m.Want(200, "GET", "/metrics", "").Body)
	for _, line := range []string{`portolan_batch_changes_count{result="made"} 1`, `portolan_batch_changes_sum{result="tried"} 7`,
		"portolan_texts_due "} {
		if !strings.Contains(figures, line) {
			t.Errorf("the metrics do not have %s", line)
		}
	}
	done := m.Want(200, "GET", "/api/v2/transactions/"+r.Text("transaction"), "")
	if done.Text("operation") != "BATCH" || done.Text("comment") != "all at once" || !strings.HasPrefix(done.Text("description"), "Added ") ||
		!strings.HasSuffix(done.Text("description"), ", and 6 more changes") {
		t.Errorf("the transaction: %s", done.Body)
	}
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+r.Text("transaction")+`}`)
	m.Want(200, "GET", "/api/v2/networks/"+network, "")
	m.Want(404, "GET", r.Text("results.0.location"), "")
	m.Verify()
}

// TestBatchIsAtomic checks that one failed change undoes the whole batch, and that the answer names the change.
func TestBatchIsAtomic(t *testing.T) {
	m := startAlone(t)
	_, _, _, block, network := m.Basics()
	add := `{"method":"POST","path":"networks/` + network + `/addresses","body":{"type":"IPv4Address","address":"10.0.0.50","state":"STATIC"}}`
	before := m.Want(200, "GET", "/api/v2/addresses?total=true", "").Text("totalCount")
	for _, c := range []struct {
		status               int
		code, named, changes string
	}{
		{409, "ResourceAlreadyExists", "changes[1]", add + "," + add},
		{404, "ResourceNotFound", "changes[1]", add + `,{"method":"DELETE","path":"networks/999999"}`},
		{400, "InvalidResourceFieldValue", "changes[1].method", add + `,{"method":"GET","path":"networks"}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"POST","path":"https://example.com/api/v2/networks","body":{}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"POST","path":"/healthz","body":{}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"DELETE","path":"networks/$1"}`},
		{400, "InvalidResourceFieldValue", "changes[2].path", add + `,{"method":"DELETE","path":"networks/` + network +
			`"},{"method":"DELETE","path":"networks/$1"}`},
		{400, "InvalidResourceFieldValue", "changes[1].location", add + `,{"method":"PATCH","path":"networks/` + network +
			`","body":{"location":{"id":"$9"}}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"POST","path":"sessions","body":{"username":"admin","password":"x"}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add +
			`,{"method":"POST","path":"transactions","body":{"transactionType":"UNDO","transactionId":1}}`},
		{400, "InvalidResourceFieldValue", "changes[1].headers.x-portolan-dry-run", add + `,{"method":"DELETE","path":"networks/` + network +
			`","headers":{"x-portolan-dry-run":"true"}}`},
		{400, "InvalidResourceFieldValue", "changes[1].headers.Cookie", add + `,{"method":"DELETE","path":"networks/` + network +
			`","headers":{"Cookie":"a"}}`},
		{400, "InvalidResourceFieldValue", "changes[1].url", add + `,{"method":"DELETE","url":"networks/` + network + `"}`},
		{400, "InvalidResourceFieldValue", "changes[1].method", add + `,{"method":7,"path":"networks/1"}`},
		{400, "JsonDeserializationError", "changes[1]", add + `,7`},
		{400, "InvalidRequestBody", "changes", ""},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"DELETE","path":"networks"}`},
		{404, "ResourceNotFound", "changes[1]", add + `,{"method":"POST","path":"batch","body":{"changes":[]}}`},
		{400, "InvalidResourceFieldValue", "changes[1].addresses", add + `,{"method":"POST","path":"networks/` + network +
			`/addresses","body":{"addresses":[{"id":"$99999"}]}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"PATCH","path":"users/100000","body":{"description":"x"}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"PATCH","path":"sessions/100001","body":{"state":"LOGGED_OUT"}}`},
		{400, "InvalidResourceFieldValue", "changes[1].headers.if-match", add + `,{"method":"DELETE","path":"networks/` + network +
			`","headers":{"If-Match":"*","if-match":"\"1.1\""}}`},
		{400, "InvalidResourceFieldValue", "changes[1].path", add + `,{"method":"DELETE","path":"` + strings.Repeat("x/", 20_000) + `"}`},
		{400, "InvalidQueryParameterValue", "changes[1].fields", add + `,{"method":"PATCH","path":"networks/` + network +
			`?fields=embed(addresses)","body":{"name":"x"}}`},
		{412, "PreconditionFailed", "changes[1]", add + `,{"method":"DELETE","path":"networks/` + network +
			`","headers":{"If-Match":"\"1.1\""}}`},
		{403, "OperationNotPermitted", "changes[1]", add + `,{"method":"POST","path":"patches","body":{"publicKey":"x"}}`},
		{400, "InvalidIpRangeValue", "changes[1].range", add + `,{"method":"POST","path":"blocks/` + block +
			`/networks","body":{"type":"IPv4Network","range":"x"}}`},
	} {
		at, _, _ := strings.Cut(c.named, ".")
		m.Refused(c.status, c.code, at, "POST", "/api/v2/batch", `{"changes":[`+c.changes+`]}`)
		r := m.Do("POST", "/api/v2/batch", `{"changes":[`+c.changes+`]}`)
		if fields := fmt.Sprint(r.Get("fields")); !strings.Contains(fields, c.named) {
			t.Errorf("%s names the fields %s, want %s", r.Body, fields, c.named)
		}
	}
	// The faults that are found before it begins are all named.
	r := m.Do("POST", "/api/v2/batch", `{"changes":[{"method":"X","path":"a"},`+add+`,{"method":"POST","path":"nowhere"}]}`)
	if text := r.Text("message"); r.StatusCode != 400 || !strings.Contains(text, "changes[0].method") &&
		!strings.Contains(text, "changes[0]: method") ||
		!strings.Contains(text, "changes[2]") {
		t.Errorf("two faults: %d %s", r.StatusCode, r.Body)
	}
	// So are those that are found in the data, but for changes that name one that was refused.
	network2 := `{"method":"POST","path":"blocks/` + block + `/networks","body":{"type":"IPv4Network","range":"10.0.9.0/`
	r = m.Do("POST", "/api/v2/batch", `{"changes":[`+strings.Join([]string{add, add, network2 + `31"}}`, network2 + `33"}}`,
		`{"method":"POST","path":"networks/$1/addresses","body":{"type":"IPv4Address","state":"STATIC"}}`,
		`{"method":"DELETE","path":"addresses/$4"}`,
		`{"method":"DELETE","path":"networks/999999"}`,
		`{"method":"DELETE","path":"addresses/$0"}`,
		`{"method":"PATCH","path":"networks/` + network + `","body":{"name":"x"},"headers":{"If-Match":"\"1.1\""}}`}, ",")+`]}`)
	if got := fmt.Sprint(r.Get("fields")); r.StatusCode != 409 || got != "[changes[1].address changes[3].range changes[6] changes[8]]" &&
		got != "[changes[1] changes[3].range changes[6] changes[8]]" {
		t.Errorf("faults in the data: %d %s", r.StatusCode, r.Body)
	}
	r = m.Do("POST", "/api/v2/batch", `{"changes":[`+strings.Repeat(add+",", 300)+add+`]}`)
	if n := strings.Count(r.Text("message"), "changes["); r.StatusCode != 409 || n != 100 {
		t.Errorf("%d faults are named of 300: %d %.300s", n, r.StatusCode, r.Body)
	}
	// A dry run refuses the same requests, and those that are too large to try.
	m.Refused(404, "ResourceNotFound", "changes[0]", "POST", "/api/v2/batch", `{"changes":[{"method":"DELETE","path":"networks/999999"}`+
		strings.Repeat(`,{"method":"POST","path":"networks/`+network+`/addresses","body":{"type":"IPv4Address","state":"STATIC"}}`, 200)+
		strings.Repeat(`,{"method":"PATCH","path":"networks/`+network+`","body":{"name":"a"}},{"method":"PATCH","path":"networks/`+network+
			`","body":{"name":"b"}}`, 500)+`]}`, "x-portolan-dry-run: true")
	m.Refused(400, "MissingRequiredField", "changes", "POST", "/api/v2/batch", `{}`)
	m.Refused(400, "InvalidHeaderValue", "If-Match", "POST", "/api/v2/batch", `{"changes":[`+add+`]}`, "If-Match: *")
	m.Refused(405, "MethodNotAllowed", "batch", "GET", "/api/v2/batch", "")
	many := strings.Repeat(add+",", 10_000) + add
	m.Refused(400, "InvalidRequestBody", "10000", "POST", "/api/v2/batch", `{"changes":[`+many+`]}`)
	if after := m.Want(200, "GET", "/api/v2/addresses?total=true", "").Text("totalCount"); after != before {
		t.Errorf("%s addresses, before %s", after, before)
	}
}

// TestPostOfAList checks that a list as the body of a POST creates all of its resources or none. A repetition with the same key creates
// nothing.
func TestPostOfAList(t *testing.T) {
	m := startAlone(t)
	_, _, _, block, network := m.Basics()
	list := `[{"type":"IPv4Network","range":"10.0.4.0/24","name":"four"},{"type":"IPv4Network","range":"10.0.5.0/24","name":"five"}]`
	first := m.Want(http.StatusCreated, "POST", "/api/v2/blocks/"+block+"/networks", list, "Idempotency-Key: a list")
	if first.Text("count") != "2" || first.Text("data.1.name") != "five" {
		t.Errorf("the networks: %s", first.Body)
	}
	again := m.Want(http.StatusCreated, "POST", "/api/v2/blocks/"+block+"/networks", list, "Idempotency-Key: a list")
	if string(again.Body) != string(first.Body) {
		t.Errorf("again: %s", again.Body)
	}
	m.Refused(400, "IpRangeOverlapsSiblings", "[0]", "POST", "/api/v2/blocks/"+block+"/networks", list)
	m.Refused(400, "InvalidRequestBody", "list", "POST", "/api/v2/blocks/"+block+"/networks", `[]`)
	m.Refused(400, "InvalidRequestBody", "JSON", "POST", "/api/v2/blocks/"+block+"/networks", `[{"type":"IPv4Network","range":"/28"}],"":[]`)
	own := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", `[{"type":"IPv4Address","state":"STATIC"},
		{"type":"IPv4Address","state":"STATIC","userDefinedFields":{"id":"$0"},"nothing":1}]`)
	if own.Text("data.1.userDefinedFields.id") != "$0" || own.Header.Get("x-portolan-ignored") != "nothing" {
		t.Errorf("what is the client's own: %s %s", own.Header.Get("x-portolan-ignored"), own.Body)
	}
	m.Refused(400, "InvalidIpRangeValue", "[1]: range", "POST", "/api/v2/blocks/"+block+"/networks",
		`[{"type":"IPv4Network","range":"10.0.6.0/24"},{"type":"IPv4Network","range":"nothing"}]`)
	m.Refused(400, "JsonDeserializationError", "object", "POST", "/api/v2/sessions", `[{"username":"admin"}]`)
	m.Refused(400, "JsonDeserializationError", "object", "PATCH", "/api/v2/networks/"+network, `[{"name":"x"}]`, apitest.MergePatch)
	var addresses []string
	for i := range 500 {
		addresses = append(addresses, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","name":"a%d"}`, i%200))
	}
	m.Refused(400, "NoSpaceForAddress", "", "POST", "/api/v2/networks/"+network+"/addresses", "["+strings.Join(addresses, ",")+"]")
	made := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses?fields=id", "["+strings.Join(addresses[:200], ",")+"]")
	if made.Text("count") != "200" {
		t.Errorf("the addresses: %s", made.Body)
	}
	m.Verify()
}

// TestBatchOnce checks that a batch with a key is applied once. The answer to a batch that contains a password states that the key is
// ignored.
func TestBatchOnce(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	add := `{"method":"POST","path":"networks/` + network + `/addresses","body":{"type":"IPv4Address","state":"STATIC"}}`
	first := m.Want(200, "POST", "/api/v2/batch", `{"changes":[`+add+`]}`, "Idempotency-Key: k")
	again := m.Want(200, "POST", "/api/v2/batch", `{"changes":[`+add+`]}`, "Idempotency-Key: k")
	if string(first.Body) != string(again.Body) {
		t.Errorf("again: %s, first %s", again.Body, first.Body)
	}
	m.Refused(409, "IdempotencyKeyReused", "Idempotency-Key", "POST", "/api/v2/batch", `{"changes":[`+add+`,`+add+`]}`, "Idempotency-Key: k")
	user := func(n int) string {
		return fmt.Sprintf(`{"method":"POST","path":"users","body":{"name":"u%d","password":"a-password-of-%d","type":"User","email":"u@example.com"}}`, n, n)
	}
	with := m.Do("POST", "/api/v2/batch", `{"changes":[`+user(0)+`]}`, "Idempotency-Key: secret")
	if with.Header.Get("x-portolan-ignored") != "Idempotency-Key" {
		t.Errorf("a batch with a password: %d %s %s", with.StatusCode, with.Header.Get("x-portolan-ignored"), with.Body)
	}
	users := make([]string, 17)
	for i := range users {
		users[i] = user(i + 1)
	}
	m.Refused(400, "InvalidRequestBody", "changes[16]", "POST", "/api/v2/batch", `{"changes":[`+strings.Join(users, ",")+`]}`)
}

// TestBatchIsWithinRights checks that a user without the right to one of the changes cannot apply the others in the same batch.
func TestBatchIsWithinRights(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	reader := m.analyst()
	body := `{"changes":[{"method":"PATCH","path":"networks/` + network + `","body":{"name":"mine"}}]}`
	r := m.Do("POST", "/api/v2/batch", body, "Authorization: Bearer "+reader)
	if r.StatusCode != http.StatusForbidden || !strings.Contains(r.Text("message"), "changes[0]") {
		t.Errorf("a reader is answered %d %s", r.StatusCode, r.Body)
	}
	r = m.Do("POST", "/api/v2/networks/"+network+"/addresses", `[{"type":"IPv4Address","state":"STATIC"}]`, "Authorization: Bearer "+reader)
	if r.StatusCode != http.StatusForbidden {
		t.Errorf("a reader is answered %d %s", r.StatusCode, r.Body)
	}
}

// TestSlowBatch checks that a client that sends a batch slowly does not delay other clients.
func TestSlowBatch(t *testing.T) {
	m := startManager(t)
	_, _, _, _, network := m.Basics()
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(m.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintf(conn, "POST /api/v2/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Content-Length: 1000\r\n\r\n{", m.Token); err != nil {
			t.Fatal(err)
		}
	}
	m.quickly(200, "POST", "/api/v2/batch", `{"changes":[{"method":"PATCH","path":"networks/`+network+`","body":{"name":"x"}}]}`)
}
