package catalog_test

import (
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestDevices checks that a device has a type, that a subtype implies its type, and that an address belongs to one device at most.
func TestDevices(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	kind := m.ID("/api/v2/deviceTypes", `{"name":"Anchor"}`)
	other := m.ID("/api/v2/deviceTypes", `{"name":"Buoy"}`)
	model := m.ID("/api/v2/deviceTypes/"+kind+"/deviceSubtypes", `{"name":"Anchor 12"}`)
	m.ID("/api/v2/deviceTypes/"+other+"/deviceSubtypes", `{"name":"Anchor 12"}`)
	m.Refused(409, "ResourceAlreadyExists", "Anchor", "POST", "/api/v2/deviceTypes", `{"name":"Anchor"}`)
	m.Refused(409, "ResourceAlreadyExists", "Anchor 12", "POST", "/api/v2/deviceTypes/"+kind+"/deviceSubtypes", `{"name":"Anchor 12"}`)
	m.Refused(400, "MissingRequiredField", "name", "POST", "/api/v2/deviceTypes", `{}`)

	devices := "/api/v2/configurations/" + configuration + "/devices"
	assigned := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.9","state":"STATIC"}`)
	device := m.ID(devices, `{"name":"core","deviceSubtype":{"id":`+model+`},"addresses":[{"id":`+assigned+`},{"address":"10.0.0.10"}]}`)
	got := m.Want(200, "GET", "/api/v2/devices/"+device, "")
	if got.Text("deviceType.name") != "Anchor" || got.Text("deviceSubtype.id") != model || got.Text("configuration.name") != "main" {
		t.Errorf("the device is %s", got.Body)
	}
	mine := m.Want(200, "GET", "/api/v2/devices/"+device+"/addresses?orderBy=asc(address)", "")
	if mine.Text("count") != "2" || mine.Text("data.0.device.name") != "core" || mine.Text("data.1.state") != "STATIC" {
		t.Errorf("its addresses are %s", mine.Body)
	}
	made := mine.Text("data.1.id")
	m.Refused(409, "ResourceAlreadyExists", "core", "POST", devices, `{"name":"core"}`)
	m.Refused(400, "InvalidResourceFieldValue", "deviceSubtype", "POST", devices,
		`{"name":"x","deviceType":{"id":`+other+`},"deviceSubtype":{"id":`+model+`}}`)
	m.Refused(404, "InlinedResourceNotFound", "deviceType", "POST", devices, `{"name":"x","deviceType":{"id":`+network+`}}`)
	m.Refused(404, "InlinedResourceNotFound", "deviceSubtype", "POST", devices, `{"name":"x","deviceSubtype":{"id":`+kind+`}}`)
	m.Refused(403, "ResourceInUse", "belongs to device "+device, "POST", devices, `{"name":"x","addresses":[{"address":"10.0.0.9"}]}`)
	m.Refused(400, "InvalidResourceFieldValue", "listed twice", "POST", devices,
		`{"name":"x","addresses":[{"address":"10.0.0.30"},{"address":"10.0.0.30"}]}`)
	m.Refused(404, "InlinedResourceNotFound", "not in a network", "POST", devices, `{"name":"x","addresses":[{"address":"192.0.2.1"}]}`)
	m.Refused(404, "InlinedResourceNotFound", "does not exist", "POST", devices, `{"name":"x","addresses":[{"id":`+network+`}]}`)
	elsewhere := m.ID("/api/v2/configurations", `{"name":"elsewhere"}`)
	m.Refused(400, "InvalidResourceFieldValue", "another configuration", "POST", "/api/v2/configurations/"+elsewhere+"/devices",
		`{"name":"x","addresses":[{"id":`+assigned+`}]}`)

	// A list of addresses replaces all of them; an omitted list changes none.
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"name":"core 1"}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/devices/"+device+"/addresses", ""); got.Text("count") != "2" {
		t.Errorf("after another name its addresses are %s", got.Body)
	}
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"addresses":[{"id":`+made+`}]}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/addresses/"+assigned, ""); got.Text("device.id") != "" {
		t.Errorf("the address that was left out is %s", got.Body)
	}
	m.Undo(m.LastTransaction())
	if got := m.Want(200, "GET", "/api/v2/addresses/"+assigned, ""); got.Text("device.id") != device {
		t.Errorf("after the undo the address is %s", got.Body)
	}
	// The subcollection links and unlinks.
	m.Want(204, "DELETE", "/api/v2/devices/"+device+"/addresses/"+made, "")
	m.Want(201, "POST", "/api/v2/devices/"+device+"/addresses", `{"id":`+made+`}`)
	// Another type alone takes no subtype of the one before along; another subtype brings its type.
	m.Refused(400, "ConflictingResourceFieldValues", "deviceType", "PATCH", "/api/v2/devices/"+device, `{"deviceType":{"id":`+other+`}}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"deviceType":{"id":`+other+`},"deviceSubtype":null}`, apitest.MergePatch)
	m.Want(200, "PATCH", "/api/v2/devices/"+device, `{"deviceSubtype":{"id":`+model+`}}`, apitest.MergePatch)
	if got := m.Want(200, "GET", "/api/v2/devices?"+apitest.Filter("deviceType.name:'Anchor'"), ""); got.Text("data.0.id") != device {
		t.Errorf("found by its type: %s", got.Body)
	}

	m.Refused(403, "ResourceInUse", "device", "DELETE", "/api/v2/deviceTypes/"+kind, "")
	m.Refused(403, "ResourceInUse", "device", "DELETE", "/api/v2/deviceSubtypes/"+model, "")
	for _, path := range []string{"deviceTypes/" + kind, "deviceSubtypes/" + model} { // as release 9.6 has them
		if r := m.Want(200, "GET", "/api/v2/"+path+"/devices", ""); r.Text("count") == "0" ||
			m.Want(200, "GET", "/api/v2/"+path+"/devices/"+r.Text("data.0.id"), "").Text("type") != "Device" {
			t.Errorf("%s has %s", path, r.Body)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/deviceTypes/"+other+"/devices", ""); r.Text("count") != "0" {
		t.Errorf("another type has %s", r.Body)
	}
	m.Want(405, "POST", "/api/v2/deviceTypes/"+kind+"/devices", `{"name":"x"}`)
	m.Want(204, "DELETE", "/api/v2/deviceTypes/"+other, "") // with the subtype below it
	m.Want(204, "DELETE", "/api/v2/devices/"+device, "")
	if got := m.Want(200, "GET", "/api/v2/addresses/"+assigned, ""); got.Text("device.id") != "" {
		t.Errorf("after its device the address is %s", got.Body)
	}
	m.Want(204, "DELETE", "/api/v2/deviceTypes/"+kind, "")
	m.Verify()
}
