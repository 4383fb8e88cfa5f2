package convert

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestNetboxVLANs checks the groups and names of VLANs, and the VLANs of prefixes.
func TestNetboxVLANs(t *testing.T) {
	list := func(text string) (all []json.RawMessage) {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	d, err := Netbox([][]json.RawMessage{nil, list(`[{"id":1,"prefix":"10.1.0.0/24","vrf":{"id":9,"name":"red"},"vlan":{"id":11,"vid":20}},
		{"id":2,"prefix":"10.2.0.0/24","vrf":{"id":9,"name":"red"},"vlan":{"id":99,"vid":30}}]`), nil, nil,
		list(`[{"id":1,"name":"quay","description":"the cranes"}]`),
		list(`[{"id":11,"vid":20,"name":"office","group":{"id":1,"name":"quay"}},{"id":12,"vid":21,"name":"office","group":{"id":1,"name":"quay"}},
			{"id":13,"vid":20,"name":"again","group":{"id":1,"name":"quay"}},{"id":14,"vid":5,"name":"far","site":{"name":"mole"}},
			{"id":15,"vid":6,"name":"alone"},{"id":16,"vid":7,"name":""}]`)}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := d.JSON(false)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, one := range all {
		texts = append(texts, string(one))
	}
	for _, want := range []string{`{"description":"the cranes","name":"quay","type":"VLANGroup"}`, `{"name":"mole","type":"VLANGroup"}`,
		`{"name":"VLANs","type":"VLANGroup"}`, `{"name":"office","number":20,"type":"VLAN","vlanGroup":"quay"}`,
		`{"name":"office 21","number":21,"type":"VLAN","vlanGroup":"quay"}`, `{"name":"far","number":5,"type":"VLAN","vlanGroup":"mole"}`,
		`{"name":"alone","number":6,"type":"VLAN","vlanGroup":"VLANs"}`} {
		if !slices.Contains(texts, want) {
			t.Errorf("there is no %s in\n%s", want, strings.Join(texts, "\n"))
		}
	}
	if !strings.Contains(texts[len(texts)-2], `"vlan":"vlanGroups/quay/vlans/office"`) || strings.Contains(texts[len(texts)-1], "vlan") {
		t.Errorf("the networks are\n%s", strings.Join(texts, "\n"))
	}
	if len(d.Skipped) != 2 { // a second VLAN 20, and one without a name
		t.Errorf("skipped: %v", d.Skipped)
	}
}
