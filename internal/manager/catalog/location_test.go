package catalog_test

import (
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestLocodes checks that a location below its country has the UN/LOCODE of its code. Other locations have none.
func TestLocodes(t *testing.T) {
	m := start(t)
	norway := "/api/v2/locations/" + m.Want(200, "GET", "/api/v2/locations?"+apitest.Filter("code:'NO'"), "").Text("data.0.id") + "/locations"
	var oslo string
	for code, want := range map[string]string{"OSL": "NO OSL", "NOBGO": "NO BGO", "NO TRD": "NO TRD", "depot": "", "OSLO": "", "O1L": ""} {
		r := m.Want(201, "POST", norway, `{"name":"a place","code":"`+code+`"}`)
		if r.Text("locode") != want || r.Text("country") != "Norway" {
			t.Errorf("%s is %s", code, r.Body)
		}
		if code == "OSL" {
			oslo = r.Text("id")
		}
	}
	if r := m.Want(200, "GET", "/api/v2/locations?"+apitest.Filter("locode:'NO OSL'"), ""); r.Text("data.0.id") != oslo {
		t.Errorf("by its UN/LOCODE is found %s", r.Body)
	}
	if r := m.Want(201, "POST", "/api/v2/locations/"+oslo+"/locations", `{"name":"Hall 1","code":"HAL"}`); r.Get("locode") != nil {
		t.Errorf("a resource at a location has the UN/LOCODE %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/locations/"+oslo, `{"code":"depot 2"}`, apitest.MergePatch)
	if r := m.Want(200, "GET", "/api/v2/locations/"+oslo, ""); r.Get("locode") != nil {
		t.Errorf("another code leaves %s", r.Body)
	}
	m.Verify()
}
