package ipam_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestIPv4Templates applies a template to networks. Resources in its way are listed, kept, deleted, or a reason to refuse.
func TestIPv4Templates(t *testing.T) {
	m := start(t)
	configuration, view, _, block, network := m.Basics()
	templates := "/api/v2/configurations/" + configuration + "/templates"
	id := m.ID(templates, `{"type":"IPv4Template","name":"office"}`)
	m.Refused(409, "ResourceAlreadyExists", "office", "POST", templates, `{"type":"IPv4Template","name":"office"}`)
	m.Refused(400, "InvalidResourceType", "ZoneTemplate", "POST", "/api/v2/views/"+view+"/templates", `{"type":"IPv4Template","name":"x"}`)
	items := "/api/v2/templates/" + id + "/templateItems"
	gateway := m.Want(200, "GET", items, "").Text("data.0.id")
	m.Want(200, "PATCH", "/api/v2/templateItems/"+gateway, `{"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END"}`, apitest.MergePatch)
	m.ID(items, `{"type":"IPv4ReservedRangeTemplateItem","startOffset":2,"size":3,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_START","name":"switches"}`)
	m.ID(items, `{"type":"IPv4DHCPRangeTemplateItem","startOffset":10,"size":50,"rangeDefinitionFormat":"OFFSET_PERCENTAGE_FROM_START","name":"clients"}`)
	m.ID(items, `{"type":"IPv4GroupTemplateItem","startOffset":10,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END","name":"printers"}`)
	m.Refused(400, "InvalidResourceFieldValue", "endOffset", "POST", items,
		`{"type":"IPv4DHCPRangeTemplateItem","startOffset":10,"rangeDefinitionFormat":"OFFSETS"}`)
	m.Refused(400, "InvalidResourceFieldValue", "size", "POST", items,
		`{"type":"IPv4DHCPRangeTemplateItem","startOffset":10,"size":101,"rangeDefinitionFormat":"OFFSET_PERCENTAGE_FROM_END"}`)
	m.Refused(400, "ValueLessThanMinimum", "startOffset", "POST", items,
		`{"type":"IPv4GroupTemplateItem","startOffset":0,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END","name":"x"}`)
	apply := "/api/v2/networks/" + network + "/templateApplications"
	m.Refused(400, "TemplateNotAssigned", network, "POST", apply, `{"type":"IPv4TemplateApplication"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"template":{"id":`+id+`}}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/templates/"+id+"/appliedResources", ""); r.Text("data.0.id") != network {
		t.Errorf("applied are %s", r.Body)
	}

	// In the way: the gateway of before, and a host where addresses are reserved.
	host := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.3"}`)
	r := m.Want(200, "GET", "/api/v2/templates/"+id+"/conflictingResources?orderBy=address", "")
	if got := r.Text("data.0.address") + " " + r.Text("data.1.address") + " " + r.Text("count"); got != "10.0.0.1 10.0.0.3 2" {
		t.Errorf("in the way are %s", got)
	}
	m.Want(200, "GET", "/api/v2/templates/"+id+"/conflictingResources/"+host, "")
	m.Want(404, "GET", "/api/v2/templates/"+id+"/conflictingResources/"+network, "")
	m.Refused(409, "TemplateConflict", "10.0.0.3", "POST", apply, `{"type":"IPv4TemplateApplication","conflictResolutionStrategy":"ABORT"}`)
	before := m.Tree(configuration)
	done := m.Want(201, "POST", apply, `{"type":"IPv4TemplateApplication"}`)
	if done.Text("state") != "COMPLETED_WITH_WARNINGS" || done.Text("completionDateTime") == "" {
		t.Errorf("the application is %s", done.Body)
	}
	if e := m.Want(200, "GET", "/api/v2/events?filter=category:'IP_TEMPLATE'", ""); !strings.Contains(e.Text("data.0.message"),
		"10.0.0.3") || e.Text("data.0.source.id") != network {
		t.Errorf("told is %s", e.Body)
	}
	laid := func(network, want string) {
		t.Helper()
		got := m.Want(200, "GET", "/api/v2/networks/"+network, "").Text("gateway")
		for _, list := range []string{"ranges", "ipGroups"} {
			r := m.Want(200, "GET", "/api/v2/networks/"+network+"/"+list, "")
			got += " " + r.Text("data.0.name") + " " + r.Text("data.0.range")
		}
		r := m.Want(200, "GET", "/api/v2/networks/"+network, "")
		if got += " " + r.Text("usage.RESERVED"); got != want {
			t.Errorf("laid out it is %s, want %s", got, want)
		}
	}
	laid(network, "10.0.0.1 clients 10.0.0.10-10.0.0.136 printers 10.0.0.241-10.0.0.245 2")
	m.Undoable(configuration, before)
	m.Want(201, "POST", apply, `{"type":"IPv4TemplateApplication","gatewayItemApplied":false,"reservedRangeItemsApplied":false,"ipGroupItemsApplied":false}`)
	laid(network, "10.0.0.1 clients 10.0.0.10-10.0.0.136 printers 10.0.0.241-10.0.0.245 2")
	if done := m.Want(201, "POST", apply,
		`{"type":"IPv4TemplateApplication","conflictResolutionStrategy":"OVERWRITE"}`); done.Text("state") != "COMPLETED" {
		t.Errorf("written over it is %s", done.Body)
	}
	laid(network, "10.0.0.254 clients 10.0.0.10-10.0.0.136 printers 10.0.0.241-10.0.0.245 3")
	m.Want(201, "POST", apply, `{"type":"IPv4TemplateApplication","conflictResolutionStrategy":"ABORT"}`)

	// All networks of a template at once, and the parts of a split. Networks that are too small are reported.
	second := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/24","template":{"id":`+id+`}}`)
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/29","template":{"id":`+id+`}}`)
	if done := m.Want(201, "POST", "/api/v2/templates/"+id+"/templateApplications",
		`{"type":"IPv4TemplateApplication","conflictResolutionStrategy":"OVERWRITE"}`); done.Text("state") != "COMPLETED_WITH_WARNINGS" {
		t.Errorf("applied to all it is %s", done.Body)
	}
	laid(second, "10.1.0.254 clients 10.1.0.10-10.1.0.136 printers 10.1.0.241-10.1.0.245 3")
	third := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.3.0.0/24"}`)
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/splits",
		`{"type":"IPv4NetworkSplit","network":{"id":`+third+`},"networkCount":2,"template":{"id":`+id+`},"conflictResolutionStrategy":"OVERWRITE"}`)
	laid(third, "10.3.0.126 clients 10.3.0.10-10.3.0.72 printers 10.3.0.113-10.3.0.117 3")
	laid(m.Want(200, "GET", "/api/v2/networks?filter=range:'10.3.0.128/25'", "").Text("data.0.id"),
		"10.3.0.254 clients 10.3.0.138-10.3.0.200 printers 10.3.0.241-10.3.0.245 3")
	// A block stands for the networks below it; a range or an address for its network.
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.8.0.0/16"}`)
	m.Refused(400, "TemplateNotAssigned", "no network in", "POST", "/api/v2/blocks/"+inner+"/templateApplications", `{"type":"IPv4TemplateApplication"}`)
	fourth := m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.8.1.0/24"}`)
	plain := m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.8.2.0/24"}`)
	pool := m.ID("/api/v2/networks/"+fourth+"/ranges", `{"type":"IPv4DHCPRange","range":"10.8.1.200-10.8.1.210","name":"old"}`)
	address := m.ID("/api/v2/networks/"+plain+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.8.2.20"}`)
	m.Refused(400, "TemplateNotAssigned", plain, "POST", "/api/v2/addresses/"+address+"/templateApplications", `{"type":"IPv4TemplateApplication"}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+fourth, `{"template":{"id":`+id+`}}`, apitest.MergePatch)
	const parts = `{"type":"IPv4TemplateApplication","conflictResolutionStrategy":"OVERWRITE","reservedRangeItemsApplied":false,"gatewayItemApplied":false,` +
		`"dhcpRangeItemsApplied":`
	m.Want(201, "POST", "/api/v2/ranges/"+pool+"/templateApplications", parts+`false}`)
	laid(fourth, "10.8.1.1 old 10.8.1.200-10.8.1.210 printers 10.8.1.241-10.8.1.245 0")
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/templateApplications", parts+`true}`)
	r = m.Want(200, "GET", "/api/v2/networks/"+fourth+"/ranges?"+apitest.Filter("name:'clients'"), "")
	if r.Text("data.0.range") != "10.8.1.10-10.8.1.136" {
		t.Errorf("by its block it has the ranges %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks/"+plain+"/ranges", ""); r.Count() != 0 {
		t.Errorf("a network without a template has %s", r.Body)
	}
	m.Want(204, "DELETE", "/api/v2/templates/"+id, "")
	if r := m.Want(200, "GET", "/api/v2/networks/"+second, ""); r.Get("template") != nil {
		t.Errorf("without its template it is %s", r.Body)
	}
	m.Verify()
}

// TestZoneTemplates checks that a zone template creates its records in zones.
func TestZoneTemplates(t *testing.T) {
	m := start(t)
	_, view, zone, _, _ := m.Basics()
	id := m.ID("/api/v2/views/"+view+"/templates", `{"type":"ZoneTemplate","name":"mail"}`)
	records := "/api/v2/templates/" + id + "/resourceRecords"
	m.ID(records, `{"type":"TXTRecord","name":null,"text":"v=spf1 -all"}`)
	m.ID(records, `{"type":"GenericRecord","name":"ca","recordType":"CAA","rdata":"0 issue \"ca.example.net\""}`)
	m.Refused(409, "ResourceAlreadyExists", "ca", "POST", records,
		`{"type":"GenericRecord","name":"ca","recordType":"CAA","rdata":"0 issue \"ca.example.net\""}`)
	m.Refused(400, "InvalidResourceType", "HostRecord", "POST", records, `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.9"}]}`)
	other := m.ID("/api/v2/views/"+view+"/templates", `{"type":"ZoneTemplate","name":"other"}`)
	m.ID("/api/v2/templates/"+other+"/resourceRecords",
		`{"type":"GenericRecord","name":"ca","recordType":"CAA","rdata":"0 issue \"ca.example.net\""}`)
	m.Refused(400, "InvalidResourceFieldValue", "IPv4Template", "POST", "/api/v2/templates/"+id+"/templateItems",
		`{"type":"IPv4GroupTemplateItem","startOffset":1,"size":5,"rangeDefinitionFormat":"OFFSET_SIZE_FROM_END","name":"x"}`)
	m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"template":{"id":`+id+`}}`, apitest.MergePatch)
	spf := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":null,"text":"v=spf1 +all"}`)
	if r := m.Want(200, "GET", "/api/v2/templates/"+id+"/conflictingResources", ""); r.Text("data.0.id") != spf || r.Text("count") != "1" {
		t.Errorf("in the way are %s", r.Body)
	}
	apply := "/api/v2/zones/" + zone + "/templateApplications"
	m.Refused(409, "TemplateConflict", spf, "POST", apply, `{"type":"ZoneTemplateApplication","conflictResolutionStrategy":"ABORT"}`)
	if done := m.Want(201, "POST", apply, `{"type":"ZoneTemplateApplication"}`); done.Text("state") != "COMPLETED_WITH_WARNINGS" {
		t.Errorf("the application is %s", done.Body)
	}
	has := func(want string) {
		t.Helper()
		r, got := m.Want(200, "GET", "/api/v2/zones/"+zone+"/resourceRecords?orderBy=type", ""), ""
		for _, i := range []string{"0", "1", "2"} {
			got += r.Text("data."+i+".absoluteName") + r.Text("data."+i+".text") + " "
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("the zone has %s, want %s", got, want)
		}
	}
	has("ca.example.com example.comv=spf1 +all")
	if done := m.Want(201, "POST", "/api/v2/templates/"+id+"/templateApplications",
		`{"type":"ZoneTemplateApplication","conflictResolutionStrategy":"OVERWRITE"}`); done.Text("state") != "COMPLETED" {
		t.Errorf("written over it is %s", done.Body)
	}
	has("ca.example.com example.comv=spf1 -all")
	m.Want(201, "POST", apply, `{"type":"ZoneTemplateApplication","conflictResolutionStrategy":"ABORT"}`)
	has("ca.example.com example.comv=spf1 -all")
	m.Verify()
}
