package server

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
)

// TestGroups checks that the members of a group can be set at the group and at the user. Group settings without an effect are refused.
func TestGroups(t *testing.T) {
	m := startAlone(t)
	user := m.ID("/api/v2/users", `{"type":"User","name":"ada","password":"`+adminPassword+
		`","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS"}`)
	group := m.ID("/api/v2/groups", `{"name":"operators","description":"at night"}`)
	m.Refused(409, "ResourceAlreadyExists", "operators", "POST", "/api/v2/groups", `{"name":"operators"}`)
	m.Refused(400, "MissingRequiredField", "authenticator", "POST", "/api/v2/groups", `{"name":"x","groupType":"TACACS_PLUS"}`)
	m.Refused(400, "InvalidEnumValue", "groupType", "POST", "/api/v2/groups", `{"name":"x","groupType":"X"}`)
	m.Want(201, "POST", "/api/v2/users/"+user+"/groups", `{"id":`+group+`}`)
	if r := m.Want(200, "GET", "/api/v2/groups/"+group+"/users", ""); r.Text("data.0.id") != user {
		t.Errorf("its members are %s", r.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", user, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+user+`}`)
	m.Want(204, "DELETE", "/api/v2/groups/"+group+"/users/"+user, "")
	m.Want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+user+`,"type":"User"}`)
	if r := m.Want(200, "GET", "/api/v2/users/"+user+"/groups/"+group, ""); r.Text("name") != "operators" {
		t.Errorf("the group is %s", r.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "cannot be linked", "POST", "/api/v2/groups/"+group+"/users", `{"id":`+group+`}`)
	m.Want(204, "DELETE", "/api/v2/groups/"+group, "")
	m.Want(200, "GET", "/api/v2/users/"+user, "")
	m.Verify()
}

// TestUnsupportedSettingsAreRefused checks that settings that are not yet supported are refused with that reason.
func TestUnsupportedSettingsAreRefused(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	own := m.Want(200, "GET", "/api/v2/authenticators", "")
	if own.Text("count") != "1" || own.Text("data.0.type") != "AddressManagerAuthenticator" {
		t.Errorf("the authenticators are %s", own.Body)
	}
	m.Refused(400, "UnsupportedResourceFieldValue", "enabled", "POST", "/api/v2/configurations/"+configuration+"/reconciliationPolicies",
		`{"type":"IPv4ReconciliationPolicy","enabled":true,"discoveryMethod":"PINGSWEEP","startDateTime":"2026-01-01T00:00:00Z",`+
			`"networkBoundaries":["10.0.0.0/24"]}`)
	for _, path := range []string{"accessRights", "workflowRequests", "networks/" + network + "/accessRights", "networks/" + network +
		"/workflowRequests",
		"users/100000/accessRights"} {
		if r := m.Want(200, "GET", "/api/v2/"+path, ""); r.Text("count") != "0" {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
}

// TestTasksAndFavorites checks that tasks and favorites belong to a user.
func TestTasksAndFavorites(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	me := m.Want(200, "GET", "/api/v2/users?"+filter("name:'admin'"), "").Text("data.0.id")
	tasks := "/api/v2/users/" + me + "/tasks"
	body := `{"name":"move","priority":"HIGH","state":"NOT_STARTED","percentComplete":0,"startDateTime":"2026-02-01T00:00:00Z"}`
	task := m.Want(201, "POST", tasks, body)
	at := tasks + "/" + task.Text("id")
	if task.Text("_links.self.href") != at {
		t.Errorf("a task is %s", task.Body)
	}
	m.Want(200, "PUT", at, strings.Replace(body, "NOT_STARTED", "COMPLETED", 1))
	if r := m.Want(200, "PATCH", at, `{"percentComplete":100}`, apitest.MergePatch); r.Text("state") != "COMPLETED" || r.Text("percentComplete") != "100" {
		t.Errorf("it is %s", r.Body)
	}
	m.Refused(400, "InvalidEnumValue", "priority", "POST", tasks, strings.Replace(body, "HIGH", "ALL", 1))
	m.Refused(400, "ValueOutsideRange", "percentComplete", "POST", tasks, strings.Replace(body, ":0,", ":101,", 1))
	m.Refused(400, "InvalidStartEndDates", "dueDateTime", "PATCH", at, `{"dueDateTime":"2026-01-01T00:00:00Z"}`, apitest.MergePatch)
	m.Want(404, "GET", "/api/v2/tasks", "")
	if r := m.Want(200, "GET", "/api/v2/tasks/"+task.Text("id")+"/transactions", ""); r.Text("count") != "3" {
		t.Errorf("its history is %s", r.Body)
	}
	m.Want(204, "DELETE", at, "")
	m.Want(404, "GET", at, "")
	favorites := "/api/v2/users/" + me + "/favorites"
	if r := m.Want(201, "POST", favorites, `{"id":`+network+`,"type":"IPv4Network"}`); r.Text("range") != "10.0.0.0/24" {
		t.Errorf("a favorite is %s", r.Body)
	}
	m.Refused(409, "ResourceAlreadyExists", network, "POST", favorites, `{"id":`+network+`}`)
	m.Refused(404, "InlinedResourceNotFound", "id", "POST", favorites, `{"id":999999}`)
	if r := m.Want(200, "GET", favorites, ""); r.Text("data.0.id") != network || r.Text("count") != "1" {
		t.Errorf("the favorites are %s", r.Body)
	}
	m.Want(204, "DELETE", favorites+"/"+network, "")
	ada := m.ID("/api/v2/users", `{"type":"User","name":"ada","password":"`+adminPassword+
		`","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS"}`)
	as := apitest.BasicAuth("ada", adminPassword)
	m.refusedAs(as, 404, "InlinedResourceNotFound", "id", "POST", "/api/v2/users/"+ada+"/favorites", `{"id":`+network+`}`)
	m.Right(ada, network, "VIEW", "")
	m.Want(201, "POST", "/api/v2/users/"+ada+"/tasks", body, as, "Content-Type: application/json")
	m.Want(201, "POST", "/api/v2/users/"+ada+"/favorites", `{"id":`+network+`}`, as, "Content-Type: application/json")
	m.refusedAs(as, 403, "AccessDenied", "", "POST", tasks, body)
	m.refusedAs(as, 403, "AccessDenied", "", "POST", favorites, `{"id":`+network+`}`)
	m.Want(200, "GET", "/api/v2/networks/"+network, "")
	m.Verify()
}

// TestUserDefinedFields checks that user-defined fields have a type, and that resources without a value show the default.
func TestUserDefinedFields(t *testing.T) {
	m := startAlone(t)
	configuration, _, zone, _, network := m.Basics()
	definitions := "/api/v2/userDefinedFieldDefinitions"
	define := func(body string) string { return m.ID(definitions, body) }
	owner := define(`{"name":"owner","displayName":"Owner","resourceType":"IPv4Prefix","dataType":"TEXT","defaultValue":"nobody",` +
		`"validationProperties":{"minLength":2,"maxLength":10}}`)
	define(`{"name":"floor","displayName":"Floor","resourceType":"IPv4Network","dataType":"INTEGER","validationProperties":{"min":-2,"max":40}}`)
	since := define(`{"name":"since","displayName":"Since","resourceType":"Zone","dataType":"DATE"}`)
	kind := define(`{"name":"kind","displayName":"Kind","resourceType":"Zone","dataType":"TEXT","predefinedValues":["lab","office"]}`)
	define(`{"name":"mail","displayName":"Mail","resourceType":"ResourceRecord","dataType":"EMAIL"}`)
	for _, c := range [][2]string{
		{`{"name":"a b","displayName":"x","resourceType":"Zone","dataType":"TEXT"}`, "InvalidResourceFieldValue"},
		{`{"name":"x","displayName":"x","resourceType":"Nothing","dataType":"TEXT"}`, "InvalidEnumValue"},
		{`{"name":"x","displayName":"x","resourceType":"HSMServer","dataType":"TEXT"}`, "UnsupportedResourceType"},
		{`{"name":"x","displayName":"x","resourceType":"Zone","dataType":"BOOLEAN","defaultValue":"true"}`, "InvalidUdfDefaultValue"},
		{`{"name":"x","displayName":"x","resourceType":"Zone","dataType":"INTEGER","defaultValue":"x"}`, "InvalidUdfDefaultValue"},
		{`{"name":"x","displayName":"x","resourceType":"Zone","dataType":"TEXT","defaultValue":"c","predefinedValues":["a","b"]}`, "InvalidUdfDefaultValue"},
		{`{"name":"x","displayName":"x","resourceType":"Zone","dataType":"INTEGER","predefinedValues":["1","01"]}`, "InvalidUdfPredefinedValues"},
		{`{"name":"x","displayName":"x","resourceType":"Zone","dataType":"TEXT","validationProperties":{"min":1}}`, "InvalidUdfValidationProperties"},
		{`{"name":"x","displayName":"x","resourceType":"Zone","dataType":"TEXT","validationProperties":{"minLength":3,"maxLength":1}}`, "InvalidResourceFieldValue"},
	} {
		m.Refused(400, c[1], "", "POST", definitions, c[0])
	}
	m.Refused(409, "ResourceAlreadyExists", "owner", "POST", definitions, `{"name":"owner","displayName":"x","resourceType":"IPv4Network","dataType":"TEXT"}`)
	m.Refused(400, "InvalidResourceFieldValue", "$", "POST", definitions, `{"name":"$sealed","displayName":"x","resourceType":"Zone","dataType":"TEXT"}`)
	m.Refused(400, "UnsupportedResourceFieldValue", "WORKFLOW", "POST", definitions, `{"name":"x","displayName":"x","resourceType":"Zone","dataType":"WORKFLOW"}`)
	if r := m.Want(200, "GET", definitions+"/"+owner, ""); r.Text("resourceTypes.0")+r.Text("resourceTypes.1")+r.Text("resourceTypes.2") !=
		"IPv4BlockIPv4Network" {
		t.Errorf("the definition of a kind of types is %s", r.Body)
	}
	at := "/api/v2/networks/" + network
	if r := m.Want(200, "GET", at, ""); r.Text("userDefinedFields.owner") != "nobody" || !strings.Contains(string(r.Body), `"floor":null`) {
		t.Errorf("a network that sets none shows %s", r.Body)
	}
	for _, c := range [][3]string{
		{at, `{"floor":"x"}`, "InvalidUdfNumberValue"}, {at, `{"floor":-3}`, "UdfValueLessThanMinimum"}, {at, `{"floor":41}`, "UdfValueOutsideRange"},
		{at, `{"owner":"x"}`, "UdfValueLessThanMinimumLength"}, {at, `{"owner":"12345678901"}`, "UdfValueExceedsMaximumLength"},
		{"/api/v2/zones/" + zone, `{"since":"tomorrow"}`, "InvalidUdfDateValue"}, {"/api/v2/zones/" + zone, `{"kind":"house"}`, "InvalidUdfPredefinedValue"},
	} {
		m.Refused(400, c[2], "userDefinedFields.", "PATCH", c[0], `{"userDefinedFields":`+c[1]+`}`, apitest.MergePatch)
	}
	m.Refused(400, "InvalidUdfEmailValue", "mail", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"TXTRecord","name":"a","text":"x","userDefinedFields":{"mail":"nobody"}}`)
	if r := m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"userDefinedFields":{"since":"31-Jan-2026","kind":"lab"}}`, apitest.MergePatch); r.Text(
		"userDefinedFields.since") != "2026-01-31" {
		t.Errorf("a date is %s", r.Body)
	}
	m.Want(200, "PATCH", at, `{"userDefinedFields":{"floor":7,"free":"as ever"}}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "$sealed", "PATCH", at, `{"userDefinedFields":{"$sealed":"x"}}`, apitest.MergePatch)
	m.Refused(400, "UdfValidationPropertiesInUse", "as ever", "POST", definitions,
		`{"name":"free","displayName":"x","resourceType":"IPv4Network","dataType":"INTEGER"}`)
	if r := m.Want(200, "GET", "/api/v2/networks?"+filter("userDefinedFields.floor:'7'"), ""); r.Text("data.0.id") != network ||
		r.Text("data.0.userDefinedFields.free") != "as ever" {
		t.Errorf("found by its field: %s", r.Body)
	}
	// New resources require the required fields.
	m.Want(200, "PUT", definitions+"/"+since, `{"name":"since","displayName":"Since","resourceType":"Zone","required":true}`)
	view := m.Want(200, "GET", "/api/v2/configurations/"+configuration+"/views", "").Text("data.0.id")
	m.Refused(400, "MissingRequiredField", "since", "POST", "/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"new.example"}`)
	m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"new.example","userDefinedFields":{"since":"2026-01-01"}}`)
	m.Refused(400, "UdfPredefinedValueInUse", "lab", "PUT", definitions+"/"+kind,
		`{"name":"kind","displayName":"Kind","resourceType":"Zone","predefinedValues":["office"]}`)
	m.Refused(403, "FieldUpdateNotAllowed", "name", "PATCH", definitions+"/"+kind, `{"name":"sort"}`, apitest.MergePatch)
	m.Want(204, "DELETE", definitions+"/"+kind, "")
	if r := m.Want(200, "GET", "/api/v2/zones/"+zone, ""); strings.Contains(string(r.Body), "lab") {
		t.Errorf("without the definition the zone is %s", r.Body)
	}
	m.Want(204, "DELETE", definitions+"/"+owner, "")
	if r := m.Want(200, "GET", at, ""); strings.Contains(string(r.Body), "nobody") {
		t.Errorf("without the definition the network is %s", r.Body)
	}
	m.Verify()
}

// TestUserDefinedLinkDefinitions checks that user-defined links are defined by the types at both ends.
func TestUserDefinedLinkDefinitions(t *testing.T) {
	m := startAlone(t)
	definitions := "/api/v2/userDefinedLinkDefinitions"
	body := `{"name":"uplink","displayName":"Uplink","sourceTypes":["Device"],"destinationTypes":["IPv4Network"]}`
	id := m.ID(definitions, body)
	m.Refused(409, "ResourceAlreadyExists", "uplink", "POST", definitions, strings.Replace(body, "uplink", "UPLINK", 1))
	m.Refused(400, "InvalidStringFieldPrefix", "BCN_", "POST", definitions, strings.Replace(body, "uplink", "bcn_x", 1))
	m.Refused(400, "EmptyFieldValue", "sourceTypes", "POST", definitions, strings.Replace(strings.Replace(body, "uplink", "x", 1), `["Device"]`, `[]`, 1))
	m.Refused(400, "InvalidEnumValue", "entry 0", "POST", definitions, strings.Replace(strings.Replace(body, "uplink", "x", 1), `"Device"`, `"User"`, 1))
	m.Refused(400, "DuplicateFieldValue", "twice", "POST", definitions, strings.Replace(strings.Replace(body, "uplink", "x", 1), `"Device"`, `"View","View"`, 1))
	m.Want(200, "PUT", definitions+"/"+id, strings.Replace(body, "Uplink", "Up", 1))
	m.Want(204, "DELETE", definitions+"/"+id, "")
}

// TestUserDefinedLinks checks that each end of a link shows the resource at the other end.
func TestUserDefinedLinks(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, block, network := m.Basics()
	definition := m.ID("/api/v2/userDefinedLinkDefinitions",
		`{"name":"uplink","displayName":"Uplink","sourceTypes":["Device"],"destinationTypes":["IPv4Network","Device"]}`)
	device := m.ID("/api/v2/configurations/"+configuration+"/devices", `{"name":"core"}`)
	links := "/api/v2/networks/" + network + "/userDefinedLinks"
	made := m.Want(201, "POST", links, `{"id":`+device+`,"linkDefinition":{"name":"uplink"},"linkDescription":"port 7"}`)
	if made.Text("id") != device || made.Text("name") != "core" || made.Text("type") != "UserDefinedLinkedResource" ||
		made.Text("linkDefinition.id") != definition || made.Text("linkDescription") != "port 7" || made.Header.Get("Location") != links+"/"+
		device ||
		made.Text("_links.self.href") != links+"/"+device {
		t.Errorf("a link is %s %s", made.Body, made.Header)
	}
	other := "/api/v2/devices/" + device + "/userDefinedLinks"
	if r := m.Want(200, "GET", other, ""); r.Text("count") != "1" || r.Text("data.0.id") != network {
		t.Errorf("from the other end: %s", r.Body)
	}
	m.Want(200, "GET", links+"/"+device, "")
	m.Want(404, "GET", links+"/"+block, "")
	if r := m.Want(200, "GET", "/api/v2?"+filter("type:'UserDefinedLink'"), "", "Accept: application/json"); r.Text("count") != "0" {
		t.Errorf("among all resources: %s", r.Body)
	}
	for _, c := range [][3]string{
		{`{"linkDefinition":{"name":"uplink"}}`, "400 MissingRequiredField", "id"},
		{`{"id":` + device + `}`, "400 MissingRequiredField", "linkDefinition"},
		{`{"id":` + device + `,"linkDefinition":{"name":"none"}}`, "404 InlinedResourceNotFound", "linkDefinition"},
		{`{"id":` + device + `,"linkDefinition":{"id":` + network + `}}`, "404 InlinedResourceNotFound", "linkDefinition"},
		{`{"id":999999,"linkDefinition":{"id":` + definition + `}}`, "404 InlinedResourceNotFound", "id"},
		{`{"id":` + block + `,"linkDefinition":{"id":` + definition + `}}`, "400 WrongResourceType", "id"},
		{`{"id":` + device + `,"linkDefinition":{"id":` + definition + `}}`, "409 ResourceAlreadyExists", "uplink"},
	} {
		status, code, _ := strings.Cut(c[1], " ")
		m.Refused(map[string]int{"400": 400, "404": 404, "409": 409}[status], code, c[2], "POST", links, c[0])
	}
	m.Refused(400, "WrongResourceType", "linkDefinition", "POST", "/api/v2/blocks/"+block+"/userDefinedLinks",
		`{"id":`+device+`,"linkDefinition":{"id":`+definition+`}}`)
	m.Refused(400, "ConflictingResourceFieldValues", "itself", "POST", other, `{"id":`+device+`,"linkDefinition":{"id":`+definition+`}}`)
	m.Refused(403, "ResourceInUse", "sourceTypes", "PUT", "/api/v2/userDefinedLinkDefinitions/"+definition,
		`{"name":"uplink","displayName":"Uplink","sourceTypes":["Zone"],"destinationTypes":["IPv4Network","Device"]}`)
	m.Refused(403, "ResourceInUse", "", "DELETE", "/api/v2/userDefinedLinkDefinitions/"+definition, "")
	m.Want(204, "DELETE", other+"/"+network, "")
	m.Want(404, "DELETE", other+"/"+network, "")
	if r := m.Want(200, "GET", links, ""); r.Text("count") != "0" {
		t.Errorf("after it was taken away: %s", r.Body)
	}
	m.Undo(m.LastTransaction())
	if r := m.Want(200, "GET", links, ""); r.Text("count") != "1" {
		t.Errorf("after the undo: %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/devices/"+device, "")
	if r := m.Want(200, "GET", links, ""); r.Text("count") != "0" {
		t.Errorf("without the device: %s", r.Body)
	}
	m.Verify()
}

// TestSettings checks that the settings of the manager have an effect, or are refused.
func TestSettings(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, _ := m.Basics()
	of := func(kind string) (string, reply) {
		r := m.Want(200, "GET", "/api/v2/settings?"+filter("type:'"+kind+"'"), "")
		return "/api/v2/settings/" + r.Text("data.0.id"), m.Want(200, "GET", "/api/v2/settings/"+r.Text("data.0.id"), "")
	}
	if r := m.Want(200, "GET", "/api/v2/settings", ""); r.Text("count") != "11" {
		t.Errorf("the settings are %s", r.Body)
	}
	if _, r := of("SystemSettings"); r.Text("version") != "9.6.0" || r.Text("hostname") == "" {
		t.Errorf("the system is %s", r.Body)
	}
	global, body := of("GlobalSettings")
	text := strings.Replace(string(body.Body), `"mandatoryCommentsEnabled":false`, `"mandatoryCommentsEnabled":true`, 1)
	m.Want(200, "PUT", global, text)
	m.Refused(400, "MissingMandatoryChangeControlComment", "x-bcn-change-control-comment", "POST", "/api/v2/configurations", `{"name":"x"}`)
	m.Refused(400, "MissingMandatoryChangeControlComment", "", "POST", "/api/v2/batch", `{"changes":[{"method":"DELETE","path":"configurations/`+configuration+`"}]}`)
	m.Want(200, "POST", "/api/v2/configurations", `{"name":"x"}`, "x-portolan-dry-run: true") // a preview changes nothing
	m.ID("/api/v2/configurations", `{"name":"x"}`, "x-bcn-change-control-comment: a new site")
	m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`)
	m.Want(200, "PATCH", global, `{"mandatoryCommentsEnabled":false}`, apitest.MergePatch, "x-bcn-change-control-comment: enough")
	m.ID("/api/v2/configurations", `{"name":"y"}`)
	for _, change := range []string{`{"rememberLastAddressEnabled":true}`, `{"customReverseZoneFormatsAllowed":true}`} {
		m.Refused(400, "UnsupportedResourceFieldValue", "", "PATCH", global, change, apitest.MergePatch)
	}
	passwords, _ := of("PasswordPolicySettings")
	m.Want(200, "PATCH", passwords, `{"enabled":true,"minLength":12,"digitRequired":true,"mixedCaseRequired":true,"specialCharacterRequired":true}`, apitest.MergePatch)
	user := func(password string) string {
		return `{"type":"User","name":"ada","password":"` + password + `","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS"}`
	}
	m.Refused(400, "PasswordFailedRequirements", "a digit, small and capital", "POST", "/api/v2/users", user("all small and long"))
	m.ID("/api/v2/users", user("Long enough, 1"))
	m.Refused(400, "ConflictingResourceFieldValues", "maxLength", "PATCH", passwords, `{"maxLength":10}`, apitest.MergePatch)
	if at, r := of("SAMLServiceProviderSettings"); m.Do("PUT", at, string(r.Body)).StatusCode != 200 {
		t.Error("settings that are written back as they were shown are refused")
	}
	audit, _ := of("AuditDataSettings")
	m.Want(200, "PATCH", audit, `{"administrativeHistoryRetentionPeriod":"P30D"}`, apitest.MergePatch)
	for change, code := range map[string]string{`{"sessionAndEventsRetentionPeriod":"PT1H"}`: "DurationValueOutsideRange",
		`{"sessionAndEventsRetentionPeriod":"PT25H"}`: "DurationValueNotDivisibleBy", `{"sessionAndEventsRetentionPeriod":"long"}`: "InvalidDurationValue"} {
		m.Refused(400, code, "sessionAndEventsRetentionPeriod", "PATCH", audit, change, apitest.MergePatch)
	}
	sso, _ := of("SSOEnforcementSettings")
	m.Refused(400, "CannotEnableSso", "enabled", "PATCH", sso, `{"enabled":true}`, apitest.MergePatch)
	for _, wrong := range []string{"PT59S", "PT25H", "P2D"} {
		m.Refused(400, "DurationValueOutsideRange", "sessionTimeout", "PATCH", global, `{"sessionTimeout":"`+wrong+`"}`, apitest.MergePatch)
	}
	guesses, _ := of("LoginPolicySettings")
	m.Refused(400, "DurationValueOutsideRange", "delayDuration", "PATCH", guesses, `{"enabled":true,"delayDuration":"PT0S"}`, apitest.MergePatch)
	m.Refused(400, "ValueOutsideRange", "failureLimit", "PATCH", guesses, `{"failureLimit":101}`, apitest.MergePatch)
	for kind, change := range map[string]string{
		"LogLevelSettings":   `{"addressManager":"DEBUG"}`,
		"MonitoringSettings": `{"serverMonitoring":{"enabled":true,"pollingInterval":"PT1M","statusRefreshInterval":"PT1M","failureDetectionThreshold":3}}`} {
		at, _ := of(kind)
		m.Refused(400, "UnsupportedResourceFieldValue", "", "PATCH", at, change, apitest.MergePatch)
	}
	m.Want(405, "POST", "/api/v2/settings", "{}")
	m.Want(405, "DELETE", audit, "")
	m.Verify()
}

// TestDatabases checks that the only database shows its size, and that it is not replicated.
func TestDatabases(t *testing.T) {
	m := startAlone(t)
	m.Basics()
	all := m.Want(200, "GET", "/api/v2?limit=1&total=true", "").Text("totalCount")
	r := m.Want(200, "GET", "/api/v2/databases", "")
	at := "/api/v2/databases/" + r.Text("data.0.id")
	if r.Text("count") != "1" || r.Text("data.0.state") != "STANDALONE" || r.Text("data.0.entityCount") != all ||
		len(r.Text("data.0.size")) < 5 {
		t.Errorf("the database, with %s resources, is %s", all, r.Body)
	}
	if r := m.Want(200, "GET", at+"/servers", ""); r.Text("count") != "0" {
		t.Errorf("its copies are %s", r.Body)
	}
	m.Refused(400, "ReplicationOperationNotAllowed", "", "PUT", at, `{"type":"AddressManagerDatabase","replicationEnabled":true,"servers":[{"address":"10.0.0.1"}]}`)
	m.Refused(400, "DatabaseNotInReplicatedState", "state", "PATCH", at, `{"state":"BREAK"}`, apitest.MergePatch)
	m.Refused(400, "ReplicationOperationNotAllowed", "", "POST", at+"/servers", `{"address":"10.0.0.1"}`)
	m.Refused(400, "ReplicationOperationNotAllowed", "", "POST", "/api/v2/trustRelationships", `{"address":"10.0.0.1","username":"a","password":"b"}`)
}

// TestPingSweeps checks that an enabled policy compares answering hosts with stored addresses. It lists the hosts, and creates and releases
// addresses after they have differed long enough, except for the excluded ones.
func TestPingSweeps(t *testing.T) {
	apitest.Slow(t)
	var mu sync.Mutex
	ahead, answering := time.Duration(0), map[string]bool{}
	var refusal error
	m := startOnce(t, func(o *Options) {
		o.Sweep = true
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
		o.Probe = func(_ context.Context, a netip.Addr) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return answering[a.String()], refusal
		}
	})
	_, _, _, _, network := m.Basics()
	assign := func(address, state string) string {
		return m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"`+address+`","state":"`+state+`"}`)
	}
	assign("10.0.0.10", "STATIC") // which answers
	assign("10.0.0.11", "STATIC") // which is silent
	assign("10.0.0.12", "STATIC") // which is silent, and left alone
	assign("10.0.0.13", "RESERVED")
	answering["10.0.0.10"], answering["10.0.0.20"], answering["10.0.0.30"] = true, true, true
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"pingBeforeAssignEnabled":true}`, apitest.MergePatch)
	m.Refused(409, "AddressAnswers", "10.0.0.20", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","address":"10.0.0.20","state":"STATIC"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"pingBeforeAssignEnabled":false}`, apitest.MergePatch)
	body := `{"type":"IPv4ReconciliationPolicy","enabled":true,"discoveryMethod":"PINGSWEEP","startDateTime":"` +
		time.Now().UTC().Format(time.RFC3339) + `","frequency":"PT1H","reclaimAcceptanceAge":"PT90M","unknownAcceptanceAge":"PT90M",` +
		`"overrides":["10.0.0.12"],"pingSweepNetworkGaps":["10.0.0.28/30"]}`
	id := m.ID("/api/v2/networks/"+network+"/reconciliationPolicies", body)
	event := func(n int) string {
		var text string
		apitest.Eventually(t, "the policy is worked off", func() bool {
			r := m.Want(200, "GET", "/api/v2/events?"+filter("category:'IP_RECONCILIATION'")+"&orderBy=desc(id)", "")
			text = r.Text("data.0.message")
			return r.Count() == n
		})
		return text
	}
	if text := event(1); !strings.Contains(text, "2 responded; 1 not known here: 10.0.0.20; 1 known and silent: 10.0.0.11") {
		t.Errorf("it says %q", text)
	}
	if r := m.Want(200, "GET", "/api/v2/reconciliationPolicies/"+id+"/discoveredDevices", ""); r.Count() != 2 ||
		r.Text("data.0.type") != "DiscoveredHost" {
		t.Errorf("it found %s", r.Body)
	}
	mu.Lock()
	ahead = 61 * time.Minute
	mu.Unlock()
	event(2) // not long enough
	has := func(address string) bool {
		return m.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?"+filter("address:'"+address+"'"), "").Count() == 1
	}
	if !has("10.0.0.11") || has("10.0.0.20") {
		t.Error("it did not wait")
	}
	mu.Lock()
	ahead = 122 * time.Minute
	mu.Unlock()
	if text := event(3); !strings.Contains(text, "1 added: 10.0.0.20; 1 given back: 10.0.0.11") {
		t.Errorf("it says %q", text)
	}
	if has("10.0.0.11") || !has("10.0.0.20") || !has("10.0.0.12") || !has("10.0.0.13") || has("10.0.0.30") {
		t.Error("it did something else")
	}
	// If no host answers, no address is released: the network itself may be down.
	mu.Lock()
	clear(answering)
	ahead = 10 * time.Hour
	mu.Unlock()
	if text := event(4); !strings.Contains(text, "0 responded") || strings.Contains(text, "silent") || !has("10.0.0.10") {
		t.Errorf("it says %q", text)
	}
	// If the probes fail, one event is raised until the policy is due again.
	mu.Lock()
	refusal = errors.New("asking is forbidden")
	ahead = 20 * time.Hour
	mu.Unlock()
	if text := event(5); !strings.Contains(text, "failed to probe its addresses: asking is forbidden") || !has("10.0.0.10") {
		t.Errorf("it says %q", text)
	}
	mu.Lock()
	refusal = nil
	ahead = 30 * time.Hour
	mu.Unlock()
	if text := event(6); !strings.Contains(text, "0 responded") {
		t.Errorf("it says %q", text)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions?"+filter("comment:'reconciliation policy "+id+"'"), ""); r.Count() == 0 {
		t.Error("the history does not say why")
	}
	m.Refused(400, "UnsupportedResourceFieldValue", "mismatchAcceptanceAge", "PATCH", "/api/v2/reconciliationPolicies/"+id,
		`{"mismatchAcceptanceAge":"PT1H"}`, apitest.MergePatch)
	m.Refused(400, "DurationValueOutsideRange", "frequency", "PATCH", "/api/v2/reconciliationPolicies/"+id, `{"frequency":"PT1S"}`, apitest.MergePatch)
	m.Verify()
}

// TestReconciliationPolicies checks that reconciliation policies can be stored.
func TestReconciliationPolicies(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, block, network := m.Basics()
	body := `{"type":"IPv4ReconciliationPolicy","discoveryMethod":"PINGSWEEP","startDateTime":"2026-01-01T00:00:00Z","frequency":"P1D"`
	below := "/api/v2/configurations/" + configuration + "/reconciliationPolicies"
	m.Refused(400, "MissingRequiredField", "networkBoundaries", "POST", below, body+`}`)
	m.Refused(400, "InvalidResourceFieldValue", "networkBoundaries", "POST", below, body+`,"networkBoundaries":["2001:db8::/32"]}`)
	m.Refused(400, "MissingRequiredField", "seedRouterAddresses", "POST", "/api/v2/networks/"+network+"/reconciliationPolicies",
		strings.Replace(body, "PINGSWEEP", "SNMP", 1)+`}`)
	m.Refused(400, "InvalidEnumValue", "snmp.securityLevel", "POST", "/api/v2/networks/"+network+"/reconciliationPolicies",
		body+`,"snmp":{"version":"v3","securityLevel":"HIGH"}}`)
	m.Refused(400, "InvalidResourceType", "type", "POST", "/api/v2/blocks/"+block+"/reconciliationPolicies",
		`{"type":"IPv6ReconciliationPolicy","discoveryMethod":"NO_DISCOVERY","startDateTime":"2026-01-01T00:00:00Z"}`)
	id := m.ID("/api/v2/networks/"+network+"/reconciliationPolicies", body+`,"overrides":["10.0.0.1","10.0.0.8/29","10.0.0.20-10.0.0.30"]}`)
	m.Refused(409, "ResourceAlreadyExists", id, "POST", "/api/v2/networks/"+network+"/reconciliationPolicies", body+`}`)
	if r := m.Want(200, "GET", "/api/v2/reconciliationPolicies/"+id+"/discoveredDevices?"+filter("type:'DiscoveredHost'"),
		""); r.Text("count") != "0" {
		t.Errorf("what was found is %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/reconciliationPolicies/"+id, "")
	m.Verify()
}
