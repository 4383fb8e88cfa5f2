package model_test

import (
	"encoding/json"
	"testing"

	"portolan/internal/manager/authz"
)

// access returns the report of a user's access, by collection and by type.
func (m *manager) access(user string, headers ...string) (x authz.UserAccess, collections map[string]authz.CollectionAccess,
	types map[string]authz.TypeAccess) {
	m.T.Helper()
	if err := json.Unmarshal(m.Want(200, "GET", "/api/v2/users/"+user+"/access", "", headers...).Body, &x); err != nil {
		m.T.Fatal(err)
	}
	collections, types = map[string]authz.CollectionAccess{}, map[string]authz.TypeAccess{}
	for _, c := range x.Collections {
		collections[c.Collection] = c
	}
	for _, t := range x.Types {
		types[t.ResourceType] = t
	}
	return x, collections, types
}

// TestUserAccess checks that the report of a user's access agrees with the answers to the requests of that user.
func TestUserAccess(t *testing.T) {
	m := start(t)
	_, _, zone, block, network := m.Basics()
	admin := m.Want(200, "GET", "/api/v2/users?filter=name:%27admin%27&fields=id", "").Text("data.0.id")
	user, as := m.User("team", "NO_ACCESS")
	m.Right(user, block, "FULL", `,"workflowLevel":"RECOMMEND","accessOverrides":[{"resourceType":"IPv4Address","accessLevel":"VIEW"},`+
		`{"resourceType":"IPv6Address","accessLevel":"VIEW"}]`)
	x, collections, types := m.access(user, as)
	for name, c := range collections {
		r := m.Do("GET", "/api/v2/"+name+"?limit=1&fields=id", "", as)
		switch { // logs and lists of other forms have no count
		case c.Visible == "NONE" && r.StatusCode == 200 && r.Count() > 0:
			t.Errorf("%s is reported as hidden, and the list has %s", name, r.Body)
		case c.Visible != "NONE" && r.StatusCode == 403:
			t.Errorf("%s is reported as %s, and the list is refused: %s", name, c.Visible, r.Body)
		}
	}
	for name, want := range map[string]authz.CollectionAccess{
		"blocks": {Visible: "SOME", Changeable: true}, "networks": {Visible: "SOME", Changeable: true},
		"addresses": {Visible: "SOME"}, "zones": {Visible: "NONE"}, "servers": {Visible: "NONE"},
		"configurations": {Visible: "NONE"}, "webhooks": {Visible: "NONE"}, "events": {Visible: "NONE"},
	} {
		if want.Collection = name; collections[name] != want {
			t.Errorf("%s: %+v", name, collections[name])
		}
	}
	m.Want(404, "GET", "/api/v2/zones/"+zone, "", as)
	if got := types["IPv4Network"]; got.DefaultLevel != "HIDE" || got.HighestLevel != "FULL" {
		t.Errorf("networks: %+v", got)
	}
	if got := types["IPv4Address"]; got.HighestLevel != "VIEW" {
		t.Errorf("addresses: %+v", got)
	}
	if x.Everything || x.Fleet != "NONE" || x.Administrator || len(x.Places) != 1 || x.Places[0].Resource == nil ||
		x.Places[0].Resource.Label != "10.0.0.0/8" || x.Places[0].WorkflowLevel != "RECOMMEND" || x.Places[0].AccessLevel != "FULL" {
		t.Errorf("the access is %+v", x)
	}
	m.Want(404, "GET", "/api/v2/users/"+admin+"/access", "", as)

	// A hidden place is not named to another user, and the default rights come first.
	watcher, watching := m.User("watcher", "VIEW_OTHERS_ACCESS_RIGHTS")
	m.Right(watcher, network, "VIEW", "")
	m.Right(user, "", "VIEW", "")
	if x, _, _ = m.access(user, watching); len(x.Places) != 2 || !x.Places[0].Default || x.Places[1].Resource != nil || !x.Everything ||
		x.Fleet != "ALL" {
		t.Errorf("the access is %+v", x)
	}
	nosy, asking := m.User("nosy", "VIEW_MY_ACCESS_RIGHTS")
	m.Right(nosy, "", "VIEW", "")
	m.Refused(403, "AccessDenied", "requires the securityPrivilege VIEW_OTHERS_ACCESS_RIGHTS", "GET", "/api/v2/users/"+admin+
		"/access", "", asking)
	if x, collections, _ = m.access(admin); !x.Administrator || collections["webhooks"].Visible != "ALL" {
		t.Errorf("the administrator's access is %+v", x)
	}
}
