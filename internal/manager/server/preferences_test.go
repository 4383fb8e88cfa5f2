package server

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// TestPreferences checks that preferences belong to the caller, are limited, are not part of the history, and are deleted with the user.
func TestPreferences(t *testing.T) {
	m := startAlone(t)
	const at = "/api/v2/preferences"
	id, ada := m.User("ada", "NO_ACCESS")
	_, bob := m.User("bob", "NO_ACCESS")
	before := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	r := m.Want(200, "PUT", at+"/table.networks", `{"value": {"columns": ["name", "range"]}}`, ada)
	if r.Text("name") != "table.networks" || r.Text("value.columns.1") != "range" || r.Text("changed") == "" {
		t.Errorf("a stored preference: %s", r.Body)
	}
	m.Want(200, "PUT", at+"/overview", `{"value":{"cards":[]}}`, ada)
	m.Want(200, "PUT", at+"/overview", `{"value":{"cards":["alarms"]}}`, ada)
	if r := m.Want(200, "GET", at, "", ada); r.Count() != 2 || r.Text("data.0.name") != "overview" ||
		r.Text("data.0.value.cards.0") != "alarms" {
		t.Errorf("ada's preferences: %s", r.Body)
	}
	if r := m.Want(200, "GET", at+"/table.networks", "", ada); r.Text("value.columns.0") != "name" {
		t.Errorf("one preference: %s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", "", "GET", at+"/table.networks", "", bob)
	if r := m.Want(200, "GET", at, "", bob); r.Count() != 0 {
		t.Errorf("bob's preferences: %s", r.Body)
	}
	if after := m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount"); after != before {
		t.Errorf("the history had %s transactions, and %s after changes of preferences", before, after)
	}
	largest := `{"value":{"a":"` + strings.Repeat("x", 8<<10-len(`{"a":""}`)) + `"}}`
	m.Want(200, "PUT", at+"/large", largest, ada)
	for _, c := range []struct {
		status                   int
		code, naming, name, body string
	}{
		{400, "InvalidResourceFieldValue", "value", "large", strings.Replace(largest, "xx", "xxx", 1)},
		{400, "InvalidResourceFieldValue", "value", "a", `{"value":[1]}`}, {400, "InvalidResourceFieldValue", "value", "a", `{"value":null}`},
		{400, "MissingRequiredField", "value", "a", `{}`}, {400, "InvalidResourceFieldValue", "name", "Upper", `{"value":{}}`},
		{400, "InvalidResourceFieldValue", "name", strings.Repeat("a", 65), `{"value":{}}`},
	} {
		m.Refused(c.status, c.code, c.naming, "PUT", at+"/"+c.name, c.body, ada)
	}
	m.Refused(405, "MethodNotAllowed", "", "POST", at, `{}`, ada)
	m.Refused(400, "InvalidHeaderValue", "does not support a dry run", "PUT", at+"/a", `{"value":{}}`, ada, "x-portolan-dry-run: true")
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", at, "", "Authorization: Bearer ptl_none")
	token := func(body string) string {
		return "Authorization: Bearer " + m.Want(201, "POST", "/api/v2/tokens", body, ada).Text("token")
	}
	reads, limited, whole := token(`{"name":"a"}`), token(`{"name":"b","role":"administrator","scopes":["networks"]}`),
		token(`{"name":"c","role":"administrator"}`)
	m.Refused(403, "ReadOnlySession", "", "PUT", at+"/a", `{"value":{}}`, reads)
	m.Refused(403, "AccessDenied", "scopes", "DELETE", at+"/overview", "", limited)
	if r := m.Want(200, "GET", at, "", reads); r.Count() != 3 {
		t.Errorf("by a token that reads: %s", r.Body)
	}
	m.Want(204, "DELETE", at+"/large", "", whole)
	m.Want(204, "DELETE", at+"/large", "", whole)
	nobody, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "of a program", Role: authz.Administrator})
	if err != nil {
		t.Fatal(err)
	}
	m.Refused(403, "AccessDenied", "does not belong to a user", "GET", at, "", "Authorization: Bearer "+nobody)
	for n := 2; n < 100; n++ {
		m.Want(200, "PUT", fmt.Sprint(at, "/n", n), `{"value":{}}`, ada)
	}
	m.Refused(409, "TooManyPreferences", "100", "PUT", at+"/more", `{"value":{}}`, ada)
	m.Want(200, "PUT", at+"/overview", `{"value":{}}`, ada) // which exists
	m.Want(204, "DELETE", "/api/v2/users/"+id, "")
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		var left int
		if err := tx.QueryRow("SELECT count(*) FROM user_preference").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d preferences are left of a deleted user: %v", left, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if r := m.Want(200, "GET", at, "", apitest.BasicAuth("admin", adminPassword)); r.Count() != 0 {
		t.Errorf("the administrator's preferences: %s", r.Body)
	}
}
