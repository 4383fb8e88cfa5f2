package imports_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestImportSpreadsheet imports a table as people and other programs write it: each row finds its network, and the headers are guessed.
func TestImportSpreadsheet(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration, _, _, block, _ := m.Basics()
	for _, n := range []string{"10.20.0.0/24", "10.20.1.0/24"} {
		m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"`+n+`"}`)
	}
	into := `"contentType":"text/csv","into":"configurations/` + configuration + `"`
	var table strings.Builder
	table.WriteString("IP Address,Hostname,MAC,Status,Owner\n")
	for i := range 40 {
		fmt.Fprintf(&table, "10.20.%d.%d,host-%d,00:11:22:33:44:%02x,Active,me\n", i%2, 10+i, i, i)
	}
	table.WriteString("10.20.0.10,twice,,used,\n10.20.0.200/24,same mac,00-11-22-33-44-00,Reserved,\n10.20.0.201,,,broken,\n")
	made, log := m.Imported(into+`,"resourceType":"IPv4Address"`, table.String())
	if got := apitest.ImportCounts(made); got != "COMPLETED_WITH_WARNINGS: 43 rows, 41 created, 0 updated, 0 unchanged, 2 refused" {
		t.Fatalf("%s\n%s", got, log)
	}
	for _, want := range []string{`ignored columns: "Owner"`, "line 42: ResourceConflictsWithOther: line 2 is",
		"line 43: has the MAC address of line 2",
		"line 44: InvalidEnumValue: state"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	columns := m.Want(200, "GET", "/api/v2/imports/"+made.Text("id"), "")
	for header, field := range map[string]string{"IP Address": "address", "Hostname": "name", "MAC": "macAddress.address",
		"Status": "state", "Owner": ""} {
		if got := columns.Text("columns." + header); got != field {
			t.Errorf("%s is %q, want %q", header, got, field)
		}
	}
	one := m.Want(200, "GET", "/api/v2/addresses?"+apitest.Filter("address:'10.20.0.200'"), "")
	if one.Text("data.0.name") != "same mac" || one.Text("data.0.state") != "RESERVED" {
		t.Errorf("the address is %s", one.Body)
	}
	// The user's choice is stronger than the guess.
	made, log = m.Imported(into+`,"resourceType":"IPv4Address","columns":{"Hostname":"","Owner":"name"}`,
		"IP Address,Hostname,Owner\n10.20.1.250,wrong,right\n")
	if got := apitest.ImportCounts(made); got != "COMPLETED_WITH_WARNINGS: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused" {
		t.Fatalf("%s\n%s", got, log)
	}
	if one := m.Want(200, "GET", "/api/v2/addresses?"+apitest.Filter("address:'10.20.1.250'"), ""); one.Text("data.0.name") != "right" {
		t.Errorf("the address is %s", one.Body)
	}
	// Networks with masks, of both families.
	made, log = m.Imported(into+`,"resourceType":"IPv4Network"`, "Subnet;Mask;Description\n10.20.2.0;255.255.255.0;two\n10.20.3.0/24;;three\n"+
		"10.20.4.0;/24;four\n10.20.5.0;255.0.255.0;bad\n")
	if got := apitest.ImportCounts(made); got != "COMPLETED_WITH_WARNINGS: 4 rows, 3 created, 0 updated, 0 unchanged, 1 refused" {
		t.Errorf("%s\n%s", got, log)
	}
}

func TestImportRefusesColumns(t *testing.T) {
	m := start(t)
	into := `"contentType":"text/csv","state":"QUEUED"`
	for settings, want := range map[string]string{
		`"resourceType":"Nothing"`:                           "resourceType: resources of the type",
		`"resourceType":"IPv4Address","columns":{"a":"nam"}`: `columns: "a" is "nam", but the type IPv4Address has no such field`,
	} {
		body, kind := apitest.Form(map[string]string{"fileInfo": "{" + into + "," + settings + "}"}, "a,b\n1,2\n")
		if r := m.Want(400, "POST", "/api/v2/imports", body, kind); !strings.Contains(r.Text("message"), want) {
			t.Errorf("%s: %s", settings, r.Body)
		}
	}
	for settings, want := range map[string]string{
		`"resourceType":"IPv4Address"`:                        `no column describes a field of the type IPv4Address; the columns are "x", "y"`,
		`"resourceType":"IPv4Address","columns":{"z":"name"}`: `columns: the file has no column "z"`,
	} {
		made, _ := m.Imported(`"contentType":"text/csv",`+settings, "x,y\n1,2\n")
		if made.Text("state") != "FAILED" || !strings.Contains(made.Text("message"), want) {
			t.Errorf("%s: %s", settings, made.Body)
		}
	}
	made, _ := m.Imported(`"contentType":"text/csv","resourceType":"IPv4Address"`, "IP,IP Address\n1,2\n")
	if !strings.Contains(made.Text("message"), `the columns "IP" and "IP Address" both describe address`) {
		t.Errorf("%s", made.Body)
	}
}
