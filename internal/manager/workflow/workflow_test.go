package workflow_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestWorkflow checks that a change by a user with the workflow level RECOMMEND becomes a request, and is applied when another user
// approves it.
func TestWorkflow(t *testing.T) {
	m := start(t)
	configuration, _, zone, block, network := m.Basics()
	carol, asCarol := m.User("carol", "NO_ACCESS")
	dave, asDave := m.User("dave", "NO_ACCESS")
	eve, asEve := m.User("eve", "NO_ACCESS")
	m.Right(carol, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	m.Right(dave, configuration, "FULL", `,"workflowLevel":"APPROVE"`)
	m.Right(eve, configuration, "FULL", "")
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"/effectiveRights", "", asCarol); r.Text("workflowLevel") != "RECOMMEND" {
		t.Errorf("carol's rights are %s", r.Body)
	}

	// A dry run reports whether an approval is required.
	for header, want := range map[string]any{asCarol: true, asEve: nil} {
		if r := m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"tried"}`, header, apitest.MergePatch, "x-portolan-dry-run: true"); r.Get("approval") != want {
			t.Errorf("a trial with %s says %s", header, r.Body)
		}
	}

	// A requested network does not exist before the approval, and its range is reserved.
	request, would := m.Requested("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.7.0.0/24","name":"lab"}`, asCarol,
		"x-bcn-change-control-comment: ticket 12")
	if would.Text("range") != "10.7.0.0/24" || would.Get("id") != nil || would.Text("_links.workflowRequest.href") != request {
		t.Errorf("it would be %s", would.Body)
	}
	m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'lab'"), "").None(t)
	for who, as := range map[string]string{"carol": asCarol, "dave": asDave, "admin": "Accept: application/hal+json"} {
		r := m.Want(200, "GET", request, "", as)
		if r.Text("state") != "PENDING" || r.Text("requestType") != "ADD_IPV4_NETWORK" || r.Text("principal") != "carol" ||
			r.Text("comment") != "ticket 12" || r.Text("resource.id") != block || !strings.Contains(string(r.Body), `"value":"10.7.0.0/24"`) {
			t.Errorf("%s sees %s", who, r.Body)
		}
		for _, list := range []string{"/api/v2/workflowRequests", "/api/v2/configurations/" + configuration + "/workflowRequests"} {
			if r := m.Want(200, "GET", list, "", as); r.Count() != 1 {
				t.Errorf("%s lists %s", who, r.Body)
			}
		}
	}
	m.Refused(404, "ResourceNotFound", "", "GET", request, "", asEve)
	m.Want(200, "GET", "/api/v2/workflowRequests", "", asEve).None(t)
	m.Refused(409, "ResourceConflictsWithOther", "", "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.7.0.0/24"}`,
		asEve)
	m.Refused(404, "ResourceNotFound", "", "PATCH", request, `{"state":"APPROVED"}`, asEve)
	m.Refused(403, "WorkflowRequestApproveDenyNotAllowed", "cannot approve an own request", "PATCH", request, `{"state":"APPROVED"}`, asCarol)
	m.Refused(400, "InvalidResourceFieldValue", "state", "PATCH", request, `{"state":"PENDING"}`, asDave)
	if r := m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asDave); r.Text("state") != "APPROVED" || r.Text("modifier.name") != "dave" ||
		r.Text("resource.name") != "lab" {
		t.Errorf("the approval answers %s", r.Body)
	}
	m.Refused(400, "WorkflowRequestNotPending", "APPROVED", "PATCH", request, `{"state":"DENIED"}`, asDave)
	if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'lab'"), ""); r.Count() != 1 {
		t.Errorf("after the approval there is %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=2&orderBy=desc(id)",
		""); r.Text("data.0.operation") != "APPROVE_ADD_IPV4_NETWORK" ||
		r.Text("data.0.user.name") != "dave" || r.Text("data.1.operation") != "REQUEST_ADD_IPV4_NETWORK" ||
		r.Text("data.1.user.name") != "carol" {
		t.Errorf("the history has %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'WORKFLOW_REQUEST'"), ""); r.Count() != 2 {
		t.Errorf("the events are %s", r.Body)
	}
	// An approved change can be undone as any other; the request keeps its state.
	approval := m.LastTransaction()
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+approval+`}`)
	m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'lab'"), "").None(t)
	if r := m.Want(200, "GET", request, ""); r.Text("state") != "APPROVED" || r.Get("resource") != nil {
		t.Errorf("the request is then %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=2&orderBy=desc(id)",
		""); r.Text("data.0.description") != "Undid transaction "+approval+": "+r.Text("data.1.description") {
		t.Errorf("the history has %s", r.Body)
	}
	undo := m.LastTransaction()
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+undo+`}`)
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)",
		""); r.Text("data.0.description") != "Undid transaction "+undo {
		t.Errorf("the history has %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'lab'"), ""); r.Count() != 1 {
		t.Errorf("after undoing the undo there is %s", r.Body)
	}

	// A requested next free address is reserved until the request is denied.
	request, would = m.Requested("POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`, asCarol)
	first := would.Text("address")
	m.Refused(409, "ResourceConflictsWithOther", "workflow request", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC","address":"`+first+`"}`)
	if next := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`).Text("address"); next == first {
		t.Errorf("%s is requested, and was assigned to another user", next)
	}
	m.Want(200, "PATCH", request, `{"state":"DENIED"}`, asDave, "x-bcn-change-control-comment: not now")
	if r := m.Want(200, "GET", request, "", asCarol); r.Text("decisionComment") != "not now" || r.Text("state") != "DENIED" ||
		r.Text("decider") != "dave" {
		t.Errorf("denied: %s", r.Body)
	}
	if next := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`).Text("address"); next != first {
		t.Errorf("%s is assigned, although %s is free", next, first)
	}

	// A requested change can be applied until the same field is changed.
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"one"}`)
	request, _ = m.Requested("PATCH", "/api/v2/resourceRecords/"+record, `{"text":"two"}`, asCarol)
	m.Refused(409, "WorkflowRequestAlreadyPending", "carol", "PATCH", "/api/v2/resourceRecords/"+record, `{"text":"three"}`, asCarol)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+record, `{"comment":"by another user"}`)
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asDave)
	if r := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, ""); r.Text("text") != "two" || r.Text("comment") != "by another user" {
		t.Errorf("after the approval the record is %s", r.Body)
	}
	request, _ = m.Requested("PATCH", "/api/v2/resourceRecords/"+record, `{"text":"three"}`, asCarol)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+record, `{"text":"four"}`)
	m.Refused(409, "StaleResourceState", "text of TXTRecord", "PATCH", request, `{"state":"APPROVED"}`, asDave)
	if r := m.Want(200, "GET", request, "", asDave); r.Text("state") != "PENDING" {
		t.Errorf("what does not fit is %s", r.Body)
	}
	m.Refused(403, "AccessDenied", "carol", "DELETE", request, "", asDave)
	m.Want(204, "DELETE", request, "", asCarol)

	// Deleting.
	request, r := m.Requested("DELETE", "/api/v2/resourceRecords/"+record, "", asCarol)
	if r.Text("type") != "WorkflowRequest" || r.Text("requestType") != "DELETE_RESOURCE" || r.Text("resource.id") != record {
		t.Errorf("a deletion that is asked for answers %s", r.Body)
	}
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/resourceRecords/"+record, "")
	m.Want(204, "DELETE", request, "", asDave)

	// The approver sees the requested and the current addresses of a host, and the extent of a deletion.
	request, _ = m.Requested("POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"cam","addresses":[{"address":"10.0.0.77"}]}`, asCarol)
	if r := m.Want(200, "GET", request, "", asDave); !strings.Contains(string(r.Body),
		`{"name":"addresses","value":[{"id":null,"type":"IPv4Address","address":"10.0.0.77"}],"previousValue":null}`) {
		t.Errorf("the request is %s", r.Body)
	}
	m.Refused(409, "ResourceConflictsWithOther", "10.0.0.77", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC","address":"10.0.0.77"}`)
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asDave)
	host := m.Want(200, "GET", "/api/v2/resourceRecords?"+apitest.Filter("name:'cam'"), "").Text("data.0.id")
	request, _ = m.Requested("PATCH", "/api/v2/resourceRecords/"+host, `{"addresses":[{"address":"10.0.0.78"}]}`, asCarol)
	if r := m.Want(200, "GET", request, "", asDave); !strings.Contains(string(r.Body), `"address":"10.0.0.78"}],"previousValue":[{"id":`) ||
		!strings.Contains(string(r.Body), `"address":"10.0.0.77"}]}`) {
		t.Errorf("the request is %s", r.Body)
	}
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asDave)
	much := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.9.0/24"}`)
	m.Want(201, "POST", "/api/v2/networks/"+much+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+much, `{"location":{"id":`+
		m.Want(200, "GET", "/api/v2/locations?"+apitest.Filter("code:'CH'"), "").Text("data.0.id")+`}}`)
	request, _ = m.Requested("DELETE", "/api/v2/networks/"+much, "", asCarol)
	if r := m.Want(200, "GET", request, "", asDave); !strings.Contains(r.Text("description"), ", and with it ") ||
		!strings.Contains(r.Text("description"), " IPv4Address") || strings.Contains(string(r.Body), "Switzerland") ||
		!strings.Contains(string(r.Body), `{"name":"location","value":null,"previousValue":null}`) { // which carol does not see
		t.Errorf("the request is %s", r.Body)
	}
	m.Want(204, "DELETE", request, "", asCarol)

	// Invalid requests are refused immediately. Several changes in one request cannot be sent for approval. Changes of an approver are
	// applied.
	m.Refused(400, "IpRangeOverlapsSiblings", "10.0.0.0/24", "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24"}`,
		asCarol)
	m.Refused(403, "AccessDenied", "without approval", "POST", "/api/v2/batch",
		`{"changes":[{"method":"POST","path":"/api/v2/blocks/`+block+`/networks","body":{"type":"IPv4Network","range":"10.8.0.0/24"}}]}`, asCarol)
	m.Refused(403, "AccessDenied", "without approval", "POST", "/api/v2/blocks/"+block+"/networks", `[{"type":"IPv4Network","range":"10.8.0.0/24"}]`,
		asCarol)
	if r := m.Want(200, "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.8.0.0/24"}`, asCarol,
		"x-portolan-dry-run: true"); r.Text("created") == "0" {
		t.Errorf("a dry run says %s", r.Body)
	}
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.8.0.0/24"}`, asDave)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.9.0.0/24"}`, asEve)
	m.Verify()
}

// TestDependentRequests checks that a request below a requested zone waits for the request of the zone.
func TestDependentRequests(t *testing.T) {
	m := start(t)
	configuration, view, _, _, _ := m.Basics()
	carol, asCarol := m.User("carol", "NO_ACCESS")
	m.Right(carol, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	zone, _ := m.Requested("POST", "/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"new.example"}`, asCarol)
	below, r := m.Requested("POST", zone+"/zones", `{"type":"Zone","name":"sub"}`, asCarol)
	if r.Text("absoluteName") != "sub.new.example" {
		t.Errorf("the zone below would be %s", r.Body)
	}
	record, r := m.Requested("POST", below+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"x"}`, asCarol)
	if r.Text("absoluteName") != "note.sub.new.example" {
		t.Errorf("the record would be %s", r.Body)
	}
	m.Refused(400, "WrongResourceType", "does not request a zone", "POST", record+"/resourceRecords", `{"type":"TXTRecord","name":"y","text":"x"}`, asCarol)
	m.Refused(403, "WorkflowRequestApproveDenyNotAllowed", "which is not approved", "PATCH", record, `{"state":"APPROVED"}`)
	m.Want(200, "PATCH", zone, `{"state":"APPROVED"}`)
	m.Want(200, "PATCH", below, `{"state":"APPROVED"}`)
	m.Want(200, "PATCH", record, `{"state":"APPROVED"}`)
	if r := m.Want(200, "GET", "/api/v2/resourceRecords?"+apitest.Filter("absoluteName:'note.sub.new.example'"), ""); r.Count() != 1 {
		t.Errorf("after all approvals there is %s", r.Body)
	}

	// With a zone that is denied goes what waits for it.
	zone, _ = m.Requested("POST", "/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"other.example"}`, asCarol)
	record, _ = m.Requested("POST", zone+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"x"}`, asCarol)
	m.Want(200, "PATCH", zone, `{"state":"DENIED"}`)
	if r := m.Want(200, "GET", record, "", asCarol); r.Text("state") != "DENIED" || !strings.Contains(r.Text("decisionComment"),
		"prerequisite") {
		t.Errorf("it waits for what was denied: %s", r.Body)
	}
	m.Verify()
}

// TestFourEyes checks that a configuration's types with four-eyes approval cannot be changed by one user alone.
func TestFourEyes(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, _ := m.Basics()
	m.Refused(400, "InvalidResourceFieldValue", "fourEyesTypes", "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":["View"]}`)
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":["Zone"]}`)
	request, _ := m.Requested("POST", "/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"four.example"}`)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.8.0.0/24"}`)
	m.Refused(403, "WorkflowRequestApproveDenyNotAllowed", "cannot approve an own request", "PATCH", request, `{"state":"APPROVED"}`)
	m.Refused(403, "AccessDenied", "the configuration requires it", "DELETE", "/api/v2/views/"+view, "")
	other, asOther := m.User("other", "ADMINISTRATOR")
	if other == "" {
		t.Fatal("the second administrator does not exist")
	}
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asOther)
	if r := m.Want(200, "GET", "/api/v2/zones?"+apitest.Filter("absoluteName:'four.example'"), ""); r.Count() != 1 {
		t.Errorf("after the approval there is %s", r.Body)
	}
	m.Requested("DELETE", "/api/v2/zones/"+zone, "", asOther)
	m.Verify()
}

// TestApprovalsApplyOnlyTheRequest checks that an approval applies exactly the requested change, within the rights of the requester, and
// that an approver needs the rights as well.
func TestApprovalsApplyOnlyTheRequest(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	carol, asCarol := m.User("carol", "NO_ACCESS")
	dave, asDave := m.User("dave", "NO_ACCESS")
	m.Right(carol, configuration, "FULL", `,"workflowLevel":"RECOMMEND"`)
	m.Right(dave, configuration, "FULL", `,"workflowLevel":"APPROVE"`)

	// A batch with an approval approves nothing else.
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":["Zone"]}`)
	request, _ := m.Requested("POST", "/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"one.example"}`, asCarol)
	m.Refused(403, "AccessDenied", "the configuration requires it", "POST", "/api/v2/batch", `{"changes":[{"method":"PATCH","path":"`+request+
		`","body":{"state":"APPROVED"}},{"method":"DELETE","path":"/api/v2/zones/`+zone+`"}]}`, asDave)
	m.Want(200, "GET", "/api/v2/zones/"+zone, "")

	// Below a request nothing is made but by asking for it.
	for _, body := range []string{`[{"type":"TXTRecord","name":"li","text":"x"}]`} {
		if r := m.Do("POST", request+"/resourceRecords", body); r.StatusCode < 400 {
			t.Errorf("a list below a request: %d %s", r.StatusCode, r.Body)
		}
	}
	m.Refused(400, "InvalidResourceFieldValue", "cannot be created in a batch", "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"`+request+
		`/resourceRecords","body":{"type":"TXTRecord","name":"x","text":"x"}}]}`)
	m.Refused(403, "OperationNotPermitted", "dry run", "POST", request+"/resourceRecords", `{"type":"TXTRecord","name":"x","text":"x"}`,
		"x-portolan-dry-run: true")
	m.Want(200, "PATCH", request, `{"state":"DENIED"}`, asDave)
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"fourEyesTypes":[]}`)

	// An approval changes only the fields that the request shows.
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"one","comment":"first"}`)
	whole := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, "", "Accept: application/json")
	request, _ = m.Requested("PUT", "/api/v2/resourceRecords/"+record, strings.Replace(string(whole.Body), `"one"`, `"two"`, 1), asCarol)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+record, `{"comment":"by another user"}`)
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asDave)
	if r := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, ""); r.Text("text") != "two" || r.Text("comment") != "by another user" {
		t.Errorf("the record is %s", r.Body)
	}

	// The shown range is reserved and created: the next free one is another one, and none overlaps it.
	request, would := m.Requested("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/24"}`, asCarol)
	shown := would.Text("range")
	if next := m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"/24"}`).Text("range"); next == shown {
		t.Errorf("%s is requested, and was assigned to another user", next)
	}
	m.Refused(409, "ResourceConflictsWithOther", "workflow request", "POST", "/api/v2/blocks/"+block+"/networks",
		`{"type":"IPv4Network","range":"`+strings.Replace(shown, ".0/24", ".64/26", 1)+`"}`)
	m.Want(200, "PATCH", request, `{"state":"APPROVED"}`, asDave)
	if r := m.Want(200, "GET", request, ""); r.Text("resource.range") != "" && r.Text("resource.range") != shown {
		t.Errorf("%s was shown, and %s was created", shown, r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("range:'"+shown+"'"), ""); r.Count() != 1 {
		t.Errorf("%s was shown, and does not exist", shown)
	}

	// A requested record at an existing name does not reserve the name; a record with a new name does.
	request, _ = m.Requested("POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"second"}`, asCarol)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"note","text":"third"}`)
	m.Want(204, "DELETE", request, "", asCarol)
	request, _ = m.Requested("PATCH", "/api/v2/resourceRecords/"+record, `{"name":"renamed"}`, asCarol)
	m.Refused(409, "ResourceConflictsWithOther", "workflow request", "POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"TXTRecord","name":"renamed","text":"x"}`)
	m.Want(204, "DELETE", request, "", asCarol)

	// An approval fails if the requester has lost the right, also at a place outside of the request's parent.
	other := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.99.0.0/24"}`)
	request, _ = m.Requested("POST", "/api/v2/zones/"+zone+"/resourceRecords",
		`{"type":"HostRecord","name":"far","reverseRecord":false,"addresses":[{"address":"10.99.0.9"}]}`, asCarol)
	m.Right(carol, other, "VIEW", "")
	m.Refused(403, "AccessDenied", "carol", "PATCH", request, `{"state":"APPROVED"}`, asDave)
	m.Want(200, "PATCH", request, `{"state":"DENIED"}`, asDave)

	// Moving into a place, or growing in it, requires an approval if changes there do.
	erin, asErin := m.User("erin", "NO_ACCESS")
	m.Right(erin, block, "FULL", `,"workflowLevel":"RECOMMEND"`)
	m.Right(erin, network, "FULL", "")
	m.Refused(403, "AccessDenied", "without approval", "POST", "/api/v2/networks/"+network+"/moves", `{"type":"IPMove","address":"10.50.0.0"}`, asErin)
	if r := m.Do("PATCH", "/api/v2/networks/"+network, `{"range":"10.0.0.0/23"}`, asErin); r.StatusCode == 200 {
		t.Errorf("a network grows without an approval: %s", r.Body)
	}

	// An approver sees and decides only requests for resources that the approver may change.
	frank, asFrank := m.User("frank", "NO_ACCESS")
	m.Right(frank, configuration, "VIEW", `,"workflowLevel":"APPROVE","accessOverrides":[{"resourceType":"Tag","accessLevel":"CHANGE"}]`)
	request, _ = m.Requested("PATCH", "/api/v2/resourceRecords/"+record, `{"text":"a secret"}`, asCarol)
	m.Refused(404, "ResourceNotFound", "", "GET", request, "", asFrank)
	m.Want(200, "GET", "/api/v2/workflowRequests?"+apitest.Filter("state:'PENDING'"), "", asFrank).None(t)
	m.Verify()
}
