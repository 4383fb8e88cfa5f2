package server

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/ipam"
)

// A file of addresses is imported whole, as the rules would have made them, or not at all, with every
// faulty line named.
func TestImportAddresses(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, block, network := m.basics()
	m.id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/16"}`)
	six := m.id("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.id("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	m.id("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.50"}`)
	load := func(file string) error {
		t.Helper()
		lines, err := ipam.ReadAddresses(strings.NewReader(file))
		if err != nil {
			return err
		}
		_, err = ipam.ImportAddresses(t.Context(), m.Address, "main", lines, ipam.Import{})
		return err
	}
	transactions := func() string {
		return m.want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").text("totalCount")
	}
	before := transactions()
	for file, want := range map[string]string{
		"":                                          "header",
		"name\nx\n":                                 "address",
		"address,colour\n10.0.0.9,red\n":            "colour",
		"address\n10.0.0.9\n10.0.0.9\n":             "line 3: address: 10.0.0.9 stands in line 2, too",
		"address\nnonsense\n10.0.0.1000\n":          "line 3: address: \"10.0.0.1000\" is no IP address",
		"address\n192.0.2.1\n":                      "line 2: address: 192.0.2.1 lies in no network",
		"address\n10.0.0.255\n":                     "network or broadcast",
		"address,state\n10.0.0.9,GATEWAY\n":         "line 2: state",
		"address\n10.0.0.60\n10.0.0.50\n10.0.0.1\n": "line 4: address: 10.0.0.1 is in use",
		"address,state\n2001:db8::9,RESERVED\n":     "state",
		"address,name\n10.0.0.9,\"a\x01b\"\n":       "control character",
		"address\n10.0.0.60\n10.0.0.61,\"x\n":       "line",
	} {
		if err := load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %q", file, err, want)
		}
	}
	if transactions() != before {
		t.Error("a refused file left a transaction")
	}
	var file strings.Builder
	file.WriteString("\ufeffAddress , NAME,State\n2001:DB8::A,six,static\n")
	for i := range 21000 { // more than one step
		fmt.Fprintf(&file, " 10.2.%d.%d , h%d,\n", (i+1)>>8, (i+1)&255, i)
	}
	text := strings.ReplaceAll(file.String(), " 10.2.0.1 , h0,\n", "10.0.0.51,h0, reserved \n10.0.0.49,h1\n")
	if err := load(text); err != nil {
		t.Fatal(err)
	}
	m.verify()
	if transactions() == before {
		t.Error("the import left no transaction")
	}
	for path, want := range map[string]string{
		"/api/v2/addresses?total=true&limit=1":                                       `"totalCount":21005`,
		"/api/v2/addresses?filter=address:'10.0.0.51'&fields=state,name":             `{"state":"RESERVED","name":"h0"}`,
		"/api/v2/addresses?filter=address:'2001:db8::a'&fields=state,name":           `{"state":"STATIC","name":"six"}`,
		"/api/v2/transactions?limit=1&orderBy=desc(id)&fields=operation,description": "IMPORT_ADDRESSES",
	} {
		if r := m.want(200, "GET", path, ""); !strings.Contains(string(r.body), want) {
			t.Errorf("%s: %.300s, want %s", path, r.body, want)
		}
	}
	// An import is undone like any other transaction, and done again.
	for range 2 {
		if r := m.undo(m.last()); r.StatusCode != 201 {
			t.Fatalf("undoing the import: %d %s", r.StatusCode, r.body)
		}
		m.verify()
	}
	// The next one is the next free one.
	if r := m.want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`); r.text("address") != "10.0.0.2" {
		t.Errorf("the next address is %s", r.text("address"))
	}
	m.verify()
}
