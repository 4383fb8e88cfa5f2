package imports_test

import (
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestImportLinksReverseZone checks that a declaration of a reverse zone by a range refers to the network of the range after a repeated
// import if the network was created since, and that a third import changes nothing.
func TestImportLinksReverseZone(t *testing.T) {
	m := start(t)
	configuration, _, _, block, _ := m.Basics()
	group := m.ID("/api/v2/configurations/"+configuration+"/zoneGroups", `{"type":"DHCPZoneGroup","name":"g"}`)
	how := `"contentType":"application/json","into":"/api/v2/zoneGroups/` + group + `"`
	row := `[{"type":"DHCPReverseZone","prefix":{"range":"10.0.9.0/24"},"primaryDnsServerAddress":"10.0.0.53"}]`
	imported := func(want string) {
		t.Helper()
		if made, log := m.Imported(how, row); apitest.ImportCounts(made) != "COMPLETED: 1 rows, "+want+", 0 refused" {
			t.Fatalf("%s\n%s", apitest.ImportCounts(made), log)
		}
	}
	imported("1 created, 0 updated, 0 unchanged")
	imported("0 created, 0 updated, 1 unchanged")
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.9.0/24"}`)
	imported("0 created, 1 updated, 0 unchanged")
	zones := m.Want(200, "GET", "/api/v2/zoneGroups/"+group+"/zoneDeclarations", "")
	if zones.Count() != 1 || zones.Text("data.0.prefix.id") != network || zones.Text("data.0.prefixRange") != "" {
		t.Errorf("the declarations are %s", zones.Body)
	}
	imported("0 created, 0 updated, 1 unchanged")
	m.Verify()
}
