package catalog_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestTags creates tags in groups and below other tags, and adds them to and removes them from resources. A resource keeps its tags when it
// changes.
func TestTags(t *testing.T) {
	m := start(t)
	configuration, _, zone, _, network := m.Basics()
	group := m.ID("/api/v2/tagGroups", `{"name":"sites"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"quay"}`)
	below := m.ID("/api/v2/tags/"+tag+"/tags", `{"name":"floor 1"}`)
	m.Refused(409, "ResourceAlreadyExists", "sites", "POST", "/api/v2/tagGroups", `{"name":"sites"}`)
	m.Refused(409, "ResourceAlreadyExists", "quay", "POST", "/api/v2/tagGroups/"+group+"/tags", `{"name":"quay"}`)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+tag+`}`)
	m.Want(201, "POST", "/api/v2/tags/"+tag+"/taggedResources", `{"id":`+zone+`}`)
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=2&orderBy=desc(id)", ""); r.Text("data.0.description") !=
		"Linked Tag quay to Zone example.com" || r.Text("data.1.description") != "Linked Tag quay to IPv4Network 10.0.0.0/24 office" {
		t.Errorf("the history has %s", r.Body)
	}
	m.Want(201, "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+below+`}`)
	m.Refused(409, "ResourceAlreadyExists", "already linked", "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+tag+`}`)
	m.Refused(400, "InvalidResourceFieldValue", "cannot be linked", "POST", "/api/v2/networks/"+network+"/tags", `{"id":`+zone+`}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, `{"name":"renamed"}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/networks/"+network+"/tags?orderBy=asc(id)", ""); got.Text("count") != "2" ||
		got.Text("data.0.name") != "quay" {
		t.Errorf("the network's tags are %s", got.Body)
	}
	if got := m.Want(200, "GET", "/api/v2/tags/"+tag+"/taggedResources?orderBy=asc(id)", ""); got.Text("count") != "2" ||
		got.Text("data.0.id") != zone {
		t.Errorf("what is tagged is %s", got.Body)
	}
	m.Want(204, "DELETE", "/api/v2/tags/"+tag+"/taggedResources/"+zone, "")
	m.Want(204, "DELETE", "/api/v2/networks/"+network+"/tags/"+below, "")
	if got := m.Want(200, "GET", "/api/v2/tagGroups/"+group+"/tags/"+tag, "").Text("name"); got != "quay" {
		t.Errorf("the tag of its group is %s", got)
	}
	m.Want(404, "GET", "/api/v2/tagGroups/"+group+"/tags/"+below, "")
	m.Want(204, "DELETE", "/api/v2/tagGroups/"+group+"/tags/"+tag, "") // with the tag below it
	if got := m.Want(200, "GET", "/api/v2/networks/"+network+"/tags", ""); got.Text("count") != "0" {
		t.Errorf("the network's tags are %s", got.Body)
	}
	m.Undo(m.LastTransaction())
	if got := m.Want(200, "GET", "/api/v2/networks/"+network+"/tags", ""); got.Text("data.0.id") != tag {
		t.Errorf("after the undo the network's tags are %s", got.Body)
	}
	// The answer to a link is the linked resource in its new state.
	linked := m.Want(201, "POST", "/api/v2/tags/"+tag+"/taggedResources", `{"id":`+zone+`}`)
	m.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"signed":false}`, apitest.MergePatch, "If-Match: "+linked.Header.Get("ETag"))
	// Networks on one wire.
	share := `{"sharedNetworkTag":{"id":` + tag + `}}`
	m.Refused(409, "NoSharedNetworks", "sharedNetworkTagGroup", "PATCH", "/api/v2/networks/"+network, share, apitest.MergePatch)
	m.Refused(409, "NoSharedNetworks", "sharedNetworkTagGroup", "POST", "/api/v2/tags/"+tag+"/sharedResources", `{"id":`+network+`}`)
	m.Want(200, "PATCH", "/api/v2/configurations/"+configuration, `{"sharedNetworkTagGroup":{"id":`+group+`}}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/networks/"+network, share, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/tags/"+tag+"/sharedResources", ""); got.Text("data.0.id") != network {
		t.Errorf("the shared networks are %s", got.Body)
	}
	m.Refused(400, "InvalidResourceFieldValue", "is not in", "PATCH", "/api/v2/networks/"+network, `{"sharedNetworkTag":{"id":`+below+`}}`,
		apitest.MergePatch)
	m.Verify()
}

// TestClients checks that clients are identified by hardware address or identifier in any notation. An address that names a client finds or
// creates it.
func TestClients(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	macs := "/api/v2/configurations/" + configuration + "/macAddresses"
	mac := m.ID(macs, `{"address":"00:00:5e:00:53:01","name":"printer"}`)
	if got := m.Want(200, "GET", "/api/v2/macAddresses/"+mac, "").Text("address"); got != "00-00-5E-00-53-01" {
		t.Errorf("the address is kept as %s", got)
	}
	for _, same := range []string{"00-00-5E-00-53-01", "0000.5e00.5301", "00005E005301"} {
		m.Refused(409, "ResourceAlreadyExists", "MACAddress "+mac, "POST", macs, `{"address":"`+same+`"}`)
	}
	for _, bad := range []string{"", "00:00:5e:00:53", "00:00:5e:00:53:zz", "12345"} {
		if r := m.Do("POST", macs, `{"address":"`+bad+`"}`); r.StatusCode != 400 || !strings.Contains(r.Text("message"), "address") {
			t.Errorf("%q: %d %s", bad, r.StatusCode, r.Body)
		}
	}
	a := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"DHCP_RESERVED","macAddress":{"address":"0000.5E00.5301"}}`)
	if a.Text("macAddress.id") != mac {
		t.Errorf("the address is %s", a.Body)
	}
	b := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:02"}}`)
	if b.Text("macAddress.id") == "" || b.Text("macAddress.id") == mac {
		t.Errorf("the address is %s", b.Body)
	}
	m.Refused(400, "InvalidMacAddressValue", "macAddress", "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"DHCP_RESERVED","macAddress":{"address":"nonsense"}}`)
	if got := m.Want(200, "GET", "/api/v2/macAddresses/"+mac+"/addresses", "").Text("data.0.id"); got != a.Text("id") {
		t.Errorf("the client's address is %s", got)
	}
	// The same from the client's side: linked, not made.
	client := "/api/v2/macAddresses/" + mac + "/addresses"
	m.Want(201, "POST", client, `{"id":`+b.Text("id")+`}`)
	m.Refused(409, "ResourceAlreadyExists", "already linked", "POST", client, `{"id":`+b.Text("id")+`}`)
	m.Refused(400, "InvalidResourceFieldValue", "cannot be linked", "POST", client, `{"id":`+network+`}`)
	m.Refused(400, "MissingRequiredField", "id", "POST", client, `{"type":"IPv4Address","address":"10.0.1.77"}`)
	if got := m.Want(200, "GET", client+"/"+b.Text("id"), "").Text("macAddress.id"); got != mac {
		t.Errorf("the client linked is %s", got)
	}
	m.Refused(400, "InvalidResourceFieldValue", "DHCP_RESERVED", "DELETE", client+"/"+b.Text("id"), "")
	m.Want(200, "PATCH", "/api/v2/addresses/"+b.Text("id"), `{"state":"STATIC"}`, apitest.MergePatch)
	m.Want(204, "DELETE", client+"/"+b.Text("id"), "")
	if got := m.Want(200, "GET", "/api/v2/addresses/"+b.Text("id"), ""); got.Get("macAddress") != nil {
		t.Errorf("the address whose client was unlinked is %s", got.Body)
	}
	// It is not deleted while an address is reserved for it alone.
	m.Refused(403, "ResourceInUse", "reserved", "DELETE", "/api/v2/macAddresses/"+mac, "")
	m.Want(200, "PATCH", "/api/v2/addresses/"+a.Text("id"), `{"state":"STATIC"}`, apitest.MergePatch)
	m.Want(204, "DELETE", "/api/v2/macAddresses/"+mac, "")
	if got := m.Want(200, "GET", "/api/v2/addresses/"+a.Text("id"), ""); got.Get("macAddress") != nil {
		t.Errorf("the address without its client is %s", got.Body)
	}
	m.Verify()
}
