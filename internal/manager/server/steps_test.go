package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/client"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// TestDeleteInSteps checks that a large deletion can run in steps: each is a transaction, other requests run in between, and the next step
// continues.
func TestDeleteInSteps(t *testing.T) {
	m := startAlone(t)
	configuration, view, zone, block, network := m.Basics()
	wide := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.16.0/20"}`)
	var addresses []string
	for i := range 300 {
		addresses = append(addresses, fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","address":"10.0.%d.%d"}`, 16+i/200, 2+i%200))
	}
	m.Want(201, "POST", "/api/v2/networks/"+wide+"/addresses?fields=id", "["+strings.Join(addresses, ",")+"]")
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.16.9"}]}`)
	step := "x-portolan-at-most: 90"
	r := m.Want(200, "DELETE", "/api/v2/blocks/"+block, "", step)
	if r.Text("done") != "false" || r.Text("deleted") != "91" { // with the host that has no address any more
		t.Errorf("a step is %s", r.Body)
	}
	m.Want(404, "GET", "/api/v2/resourceRecords/"+host, "")
	m.Verify() // the released space is free
	c := &client.Client{Base: m.URL(), Token: m.Token}
	left := m.Want(200, "GET", "/api/v2/networks/"+wide+"/addresses?total=true&limit=1", "").Text("totalCount")
	// Somebody else works in between.
	m.ID("/api/v2/networks/"+wide+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	said := []int{}
	deleted, err := c.DeleteInSteps(t.Context(), "blocks/"+block, client.DeleteOptions{AtMost: 100,
		Progress: func(n int) { said = append(said, n) }})
	if err != nil || deleted != 305-90+1 || len(said) != 3 || said[2] != deleted {
		t.Errorf("the rest: %d, %v, %v; %s addresses were left", deleted, said, err, left)
	}
	m.Want(404, "GET", "/api/v2/blocks/"+block, "")
	m.Want(404, "GET", "/api/v2/networks/"+network, "")
	m.Verify()
	if _, err := c.DeleteInSteps(t.Context(), "blocks/"+block, client.DeleteOptions{}); err == nil {
		t.Error("what is not there is deleted")
	}
	// One step is undone as any transaction is.
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	m.Verify()
	// A small one is done at once; what refers to it from elsewhere still refuses.
	if r := m.Want(200, "DELETE", "/api/v2/views/"+view, "", step); r.Text("done") != "true" {
		t.Errorf("a small one is %s", r.Body)
	}
	for _, value := range []string{"0", "10001", "many", "-1"} {
		m.Refused(400, "InvalidHeaderValue", "x-portolan-at-most", "DELETE", "/api/v2/configurations/"+configuration, "",
			"x-portolan-at-most: "+value)
	}
	m.Refused(400, "InvalidHeaderValue", "x-portolan-at-most", "DELETE", "/api/v2/configurations/"+configuration, "", step,
		"x-portolan-dry-run: true")
	m.Refused(400, "InvalidHeaderValue", "x-portolan-at-most", "PATCH", "/api/v2/configurations/"+configuration, `{"name":"x"}`, step, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "x-portolan-at-most", "POST", "/api/v2/batch", `{"changes":[{"method":"DELETE","path":"configurations/`+
		configuration+`","headers":{"x-portolan-at-most":"5"}}]}`)
	m.Verify()
}

// TestImportInSteps checks that a long file is imported in steps: each is stored when it ends, and the same file continues where an import
// was cut off.
func TestImportInSteps(t *testing.T) {
	m := startManager(t)
	_, _, _, block, _ := m.Basics()
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.16.0.0/16"}`)
	transactions := func() string {
		return m.Want(200, "GET", "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	}
	addresses, networks, zone := "address,name,state\n", "network,name\n", "$ORIGIN z.test.\n@ 300 IN SOA a b 1 1 1 1 1\n"
	for i := range 130 {
		addresses += fmt.Sprintf("10.16.%d.%d,a%d,RESERVED\n", 1+i/250, i%250, i)
		networks += fmt.Sprintf("10.32.%d.%d/28,n%d\n", i/16, i%16*16, i)
		zone += fmt.Sprintf("h%d 300 IN A 10.16.%d.%d\nc%d 300 IN CNAME h%d\n", i, 1+i/250, i%250, i, i)
	}
	kinds := map[string]func(ctx context.Context, how ipam.Import) (there int, err error){
		"addresses": func(ctx context.Context, how ipam.Import) (int, error) {
			lines, _, err := ipam.ReadAddresses(strings.NewReader(addresses))
			if err != nil {
				t.Fatal(err)
			}
			done, err := ipam.ImportAddresses(ctx, m.Address, "main", lines, how)
			return done.Existing, err
		},
		"networks": func(ctx context.Context, how ipam.Import) (int, error) {
			lines, _, err := ipam.ReadNetworks(strings.NewReader(networks))
			if err != nil {
				t.Fatal(err)
			}
			done, err := ipam.ImportNetworks(ctx, m.Address, "main", lines, how)
			return done.Existing, err
		},
		"resourceRecords": func(ctx context.Context, how ipam.Import) (int, error) {
			name, records, err := readZone(zone, "")
			if err != nil {
				t.Fatal(err)
			}
			done, err := transfer.ImportZone(ctx, m.Address, "main", "", name, records, how)
			return done.Existing, err
		},
	}
	for _, kind := range []string{"addresses", "networks", "resourceRecords"} {
		count := func() int {
			n, _ := strconv.Atoi(m.Want(200, "GET", "/api/v2/"+kind+"?limit=1&total=true", "").Text("totalCount"))
			return n
		}
		before := count()
		ctx, cut := context.WithCancel(t.Context())
		_, err := kinds[kind](ctx, ipam.Import{InSteps: true, StepSize: 100, Progress: func(done int64) {
			if done >= 100 && count()-before >= 100 { // the step is committed
				cut()
			}
		}})
		if got := count() - before; err == nil || !strings.Contains(err.Error(), "interrupted after 100 lines") || got < 100 || got >= 260 {
			t.Fatalf("%s, cut off: %v, %d are there", kind, err, got)
		}
		there, err := kinds[kind](t.Context(), ipam.Import{InSteps: true, StepSize: 100})
		if want := map[string]int{"resourceRecords": 260}[kind]; err != nil || there != 100 || want > 0 && count()-before != want {
			t.Errorf("%s, again: %d were there, %v; %d are", kind, there, err, count()-before)
		}
		last := transactions()
		if _, err := kinds[kind](t.Context(), ipam.Import{InSteps: true, StepSize: 100}); err != nil || transactions() != last {
			t.Errorf("%s, once more: %v", kind, err)
		}
		m.Verify()
	}
	zone = strings.Replace(zone, "h7 300 IN A 10.16.1.7", "h7 300 IN A 10.16.200.7", 1)
	name, records, err := readZone(zone, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, prune := range []bool{false, true} { // the address of before is a difference, or goes
		done, err := transfer.ImportZone(t.Context(), m.Address, "main", "", name, records, ipam.Import{Prune: prune})
		if want := []string{"h7.z.test. 300 IN A 10.16.1.7"}; err != nil || !slices.Equal(done.Differences, want) || done.Changed != 1 ||
			done.Created != 0 {
			t.Errorf("another address: %+v %v", done, err)
		}
		want := map[bool]string{false: "2", true: "1"}[prune]
		r := m.Want(200, "GET", "/api/v2/resourceRecords?"+filter("absoluteName:'h7.z.test'"), "")
		if id := r.Text("data.0.id"); r.Text("count") != "1" || m.Want(200, "GET", "/api/v2/resourceRecords/"+id+"/addresses",
			"").Text("count") != want {
			t.Errorf("the host is %s", r.Body)
		}
	}
	m.Verify()
}

// TestImportComparesCase checks that names compare without regard to case and texts with regard to it: an import of a zone file does not
// omit a different text.
func TestImportComparesCase(t *testing.T) {
	m := startAlone(t)
	m.Basics()
	name, records, err := readZone("$ORIGIN c.test.\n@ 300 IN SOA a b 1 1 1 1 1\nT 300 IN TXT \"x\"\n"+
		"t 300 IN TXT \"X\"\nt 300 IN TXT \"x\"\nm 300 IN MX 5 A.other.test.\nM 300 IN MX 5 a.OTHER.test.\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.ImportZone(t.Context(), m.Address, "main", "", name, records, ipam.Import{}); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"TXTRecord": "2", "MXRecord": "1"} {
		if r := m.Want(200, "GET", "/api/v2/resourceRecords?"+filter("type:'"+kind+"'"), ""); r.Text("count") != want {
			t.Errorf("of %s there are %s", kind, r.Body)
		}
	}
}
