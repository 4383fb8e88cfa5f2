package imports_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// TestImportSkipsRows checks that a bad row of networks or addresses does not stop the others. Existing resources get the values of the
// file, a dry run changes nothing, and resources missing in the file are listed.
func TestImportSkipsRows(t *testing.T) {
	m := start(t)
	m.Basics()
	m.ID("/api/v2/configurations/"+m.Want(200, "GET", "/api/v2/configurations?filter=name:'main'", "").Text("data.0.id")+"/blocks",
		`{"type":"IPv4Block","range":"172.16.0.0/12"}`)
	networks := func(file string, how ipam.Import) (done ipam.Imported) {
		t.Helper()
		lines, skipped, err := ipam.ReadNetworks(strings.NewReader(file))
		if err == nil {
			done, err = ipam.ImportNetworks(t.Context(), m.Address, "main", lines, how)
		}
		if err != nil {
			t.Fatal(err)
		}
		done.Skipped = append(skipped, done.Skipped...)
		return done
	}
	addresses := func(file string, how ipam.Import) (done ipam.Imported) {
		t.Helper()
		lines, skipped, err := ipam.ReadAddresses(strings.NewReader(file))
		if err == nil {
			done, err = ipam.ImportAddresses(t.Context(), m.Address, "main", lines, how)
		}
		if err != nil {
			t.Fatal(err)
		}
		done.Skipped = append(skipped, done.Skipped...)
		return done
	}
	is := func(what string, done ipam.Imported, made, changed, there int, skipped ...string) {
		t.Helper()
		same := len(skipped) == len(done.Skipped)
		for i, want := range skipped {
			same = same && strings.Contains(done.Skipped[i], want)
		}
		if done.Created != made || done.Changed != changed || done.Existing != there || !same {
			t.Errorf("%s: %+v", what, done)
		}
	}
	const file = "network,name,gateway\n172.16.0.0/24,one,\nnonsense,x,\n172.16.1.0/24,caf\xe9,\n172.16.0.0/24,twice,\n192.0.2.0/24,out,\n" +
		"172.16.0.128/25,within,\n172.16.2.0/24,two,none\n172.16.3.0/24,\"x\" y,\n172.16.4.0/24,four,\n"
	bad := []string{"line 3: network", "line 4: name: is not valid UTF-8", "line 5: network: 172.16.0.0/24 is already in line 2",
		"line 9", "line 6",
		"line 7"}
	is("tried", networks(file, ipam.Import{Try: true}), 3, 0, 0, bad...)
	is("networks", networks(file, ipam.Import{}), 3, 0, 0, bad...)
	is("again", networks(file, ipam.Import{}), 0, 0, 3, bad...)
	done := networks("network,name,gateway\n172.16.0.0/24,ONE,172.16.0.9\n172.16.2.0/24,two,\n", ipam.Import{})
	is("changed", done, 0, 1, 1)
	if want := []string{`line 2: 172.16.0.0/24: name "one" -> "ONE", gateway 172.16.0.1 -> 172.16.0.9`}; !slices.Equal(done.Changes, want) {
		t.Errorf("the changes are %q", done.Changes)
	}
	kept := []string{"line 3: 172.16.2.0/24: gateway none kept, the cell is empty: write an address or the word none to change it"}
	if !slices.Equal(done.KeptGateways, kept) {
		t.Errorf("kept are %q", done.KeptGateways)
	}
	is("a link", networks("network,gateway\n172.16.9.0/31,\n", ipam.Import{}), 1, 0, 0)
	if done := networks("network,gateway\n172.16.9.0/31,\n", ipam.Import{}); len(done.KeptGateways) > 0 {
		t.Errorf("of a link are kept %q", done.KeptGateways)
	}
	is("a gateway of IPv6", networks("network,gateway\n2001:db8::/64,2001:db8::1\n", ipam.Import{}), 0, 0, 0,
		"line 2: gateway: leave the cell empty")
	if want := []string{"172.16.4.0/24 four"}; !slices.Equal(done.Differences, want) {
		t.Errorf("the differences are %q", done.Differences)
	}

	const hosts = "address,name,state\n172.16.0.10,a,\n172.16.0.11,b,RESERVED\n10.300.0.1,c,\n172.16.0.10,d,\n198.51.100.1,e,\n" +
		"172.16.0.255,f,\n172.16.2.5,g,GATEWAY\n172.16.2.6,h,\n"
	bad = []string{"line 4: address", "line 5: address: 172.16.0.10 is already in line 2", "line 8: state", "line 7: address",
		"line 6: address: 198.51.100.1 is not in a network"}
	is("addresses, tried", addresses(hosts, ipam.Import{Try: true}), 3, 0, 0, bad...)
	is("addresses", addresses(hosts, ipam.Import{}), 3, 0, 0, bad...)
	is("addresses, again", addresses(hosts, ipam.Import{}), 0, 0, 3, bad...)
	for _, tried := range []bool{true, true, false} { // a second trial finds what the first one found: it has changed nothing
		done = addresses("address,name,state\n172.16.0.10,A,RESERVED\n172.16.0.12,n,\n", ipam.Import{Try: tried})
		is("addresses, changed", done, 1, 1, 0)
		if want := []string{`line 2: 172.16.0.10: name "a" -> "A", state STATIC -> RESERVED`}; !slices.Equal(done.Changes, want) {
			t.Errorf("the changes are %q", done.Changes)
		}
	}
	if want := []string{"172.16.0.11 b"}; !slices.Equal(done.Differences, want) {
		t.Errorf("the differences are %q", done.Differences)
	}
	m.Verify()
}

// TestImportAddresses checks that a strict file of addresses is imported completely, with the same result as single requests, or not at
// all. The error names the faulty line.
func TestImportAddresses(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/16"}`)
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.50"}`)
	load := func(file string) error {
		t.Helper()
		lines, skipped, err := ipam.ReadAddresses(strings.NewReader(file))
		if len(skipped) > 0 {
			err = errors.New(strings.Join(skipped, "\n"))
		}
		if err == nil {
			_, err = ipam.ImportAddresses(t.Context(), m.Address, "main", lines, ipam.Import{Strict: true})
		}
		return err
	}
	transactions := func() string {
		return m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	}
	before := transactions()
	for file, want := range map[string]string{
		"":                                      "the file is empty",
		"name\nx\n":                             "address",
		"address,colour\n10.0.0.9,red\n":        "colour",
		"address\n10.0.0.9\n10.0.0.9\n":         "line 3: address: 10.0.0.9 is already in line 2",
		"address\nnonsense\n10.0.0.1000\n":      "line 3: address: \"10.0.0.1000\" is not an IP address",
		"address\n192.0.2.1\n":                  "line 2: address: 192.0.2.1 is not in a network",
		"address\n10.0.0.255\n":                 "network or broadcast",
		"address,state\n10.0.0.9,GATEWAY\n":     "line 2: state",
		"address,state\n2001:db8::9,RESERVED\n": "state",
		"address,name\n10.0.0.9,\"a\x01b\"\n":   "control character",
		"address\n10.0.0.60\n10.0.0.61,\"x\n":   "line",
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
	m.Verify()
	if transactions() == before {
		t.Error("the import left no transaction")
	}
	for path, want := range map[string]string{
		"/api/v2/addresses?total=true&limit=1":                                       `"totalCount":21005`,
		"/api/v2/addresses?filter=address:'10.0.0.51'&fields=state,name":             `{"state":"RESERVED","name":"h0"}`,
		"/api/v2/addresses?filter=address:'2001:db8::a'&fields=state,name":           `{"state":"STATIC","name":"six"}`,
		"/api/v2/transactions?limit=1&orderBy=desc(id)&fields=operation,description": "IMPORT_ENTITIES",
	} {
		if r := m.Want(200, "GET", path, ""); !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %.300s, want %s", path, r.Body, want)
		}
	}
	// An import is undone like any other transaction, and done again.
	for range 2 {
		if r := m.Undo(m.LastTransaction()); r.StatusCode != 201 {
			t.Fatalf("undoing the import: %d %s", r.StatusCode, r.Body)
		}
		m.Verify()
	}
	// The next one is the next free one.
	if r := m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses",
		`{"type":"IPv4Address","state":"STATIC"}`); r.Text("address") != "10.0.0.2" {
		t.Errorf("the next address is %s", r.Text("address"))
	}
	m.Verify()
}
