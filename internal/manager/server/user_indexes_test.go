package server

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestIndexesOfUserFields checks that a user-defined field has an index while its definition demands one (TestPlansOfQuestions uses it).
// The index is deleted with the demand or the definition.
func TestIndexesOfUserFields(t *testing.T) {
	apitest.Slow(t)
	m := startManager(t)
	_, _, _, _, network := m.Basics()
	for i := range 30 {
		m.ID("/api/v2/networks/"+network+"/addresses", fmt.Sprintf(
			`{"type":"IPv4Address","state":"STATIC","address":"10.0.0.%d","userDefinedFields":{"asset":"A-%d"}}`, 20+i, i))
	}
	const definitions = "/api/v2/userDefinedFieldDefinitions"
	field := func(name, more string) string {
		return `{"name":"` + name + `","displayName":"x","resourceType":"IPv4Address","dataType":"TEXT"` + more + `}`
	}
	const question = "/api/v2/addresses?filter=userDefinedFields.asset:'A-7'"
	finds := func(want string) {
		t.Helper()
		if r := m.Want(200, "GET", question, ""); r.Text("data.0.address") != "10.0.0.27" || r.Text("count") != "1" {
			t.Errorf("%s: it finds %s", want, r.Body)
		}
	}
	indexed := func() bool { return m.Address.UserFields.Indexed("addresses", "asset") }
	finds("without a definition")
	one := m.ID(definitions, field("asset", `,"indexed":true`))
	apitest.Eventually(t, "the index is there", indexed)
	finds("with an index")
	m.ID("/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC","address":"10.0.0.99","userDefinedFields":{"asset":"A-77"}}`)
	if r := m.Want(200, "GET", "/api/v2/addresses?filter=userDefinedFields.asset:startsWith('A-7')", ""); r.Text("count") != "2" {
		t.Errorf("a beginning finds %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/addresses?filter=userDefinedFields.asset:in('A-1','A-2','B')", ""); r.Text("count") != "2" {
		t.Errorf("several find %s", r.Body)
	}
	m.Verify()

	undone := m.Want(200, "PATCH", definitions+"/"+one, `{"indexed":false}`, apitest.MergePatch).Header.Get("x-portolan-transaction")
	apitest.Eventually(t, "the index is gone", func() bool { return !indexed() })
	finds("without it any more")
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+undone+`}`)
	apitest.Eventually(t, "the index is there again", indexed)
	m.Want(204, "DELETE", definitions+"/"+one, "")
	apitest.Eventually(t, "it went with its definition", func() bool {
		there, err := m.Store.HasIndexes(t.Context(), []store.Index{{Collection: "addresses", Field: "userDefinedFields.asset"}})
		return err == nil && len(there) == 0 && !indexed()
	})

	// One comes as another one goes.
	x, y := m.ID(definitions, field("x", `,"indexed":true`)), m.ID(definitions, field("y", ""))
	apitest.Eventually(t, "x has an index", func() bool { return m.Address.UserFields.Indexed("addresses", "x") })
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"PATCH","path":"userDefinedFieldDefinitions/`+x+`","body":{"indexed":false}},`+
		`{"method":"PATCH","path":"userDefinedFieldDefinitions/`+y+`","body":{"indexed":true}}]}`)
	apitest.Eventually(t, "y has one, and x has none", func() bool {
		return m.Address.UserFields.Indexed("addresses", "y") && !m.Address.UserFields.Indexed("addresses", "x")
	})
	m.Want(200, "PATCH", definitions+"/"+y, `{"indexed":false}`, apitest.MergePatch)

	// A value that does not fit into an index is refused, of whatever type; so is an index where there is one.
	long := strings.Repeat("x", 501)
	wide := m.ID(definitions, field("wide", `,"indexed":true`))
	m.Refused(400, "UdfValueExceedsMaximumLength", "userDefinedFields.wide", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC","userDefinedFields":{"wide":"`+long+`"}}`)
	m.Want(200, "PATCH", definitions+"/"+wide, `{"indexed":false}`, apitest.MergePatch)
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","userDefinedFields":{"wide":"`+long+`"}}`)
	m.Refused(400, "InvalidResourceFieldValue", "501 bytes", "PATCH", definitions+"/"+wide, `{"indexed":true}`, apitest.MergePatch)

	m.Refused(400, "InvalidResourceFieldValue", "indexed", "POST", definitions, field("two-words", `,"indexed":true`))
	for i := range 16 {
		m.ID(definitions, field(fmt.Sprint("f", i), `,"indexed":true`))
	}
	m.Refused(400, "InvalidResourceFieldValue", "16 fields", "POST", definitions, field("one_more", `,"indexed":true`))
}
