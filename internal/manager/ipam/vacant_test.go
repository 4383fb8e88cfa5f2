package ipam_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
)

// TestUnassigned checks that the free addresses of a network are listed from its intervals, with filters, pages and counts like other
// lists.
func TestUnassigned(t *testing.T) {
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	addresses := "/api/v2/networks/" + network + "/addresses"
	for _, a := range []string{"10.0.0.4", "10.0.0.6", "10.0.0.7", "10.0.0.200"} {
		m.ID(addresses, `{"type":"IPv4Address","state":"STATIC","address":"`+a+`"}`)
	}
	list := func(query, want string) apitest.Reply {
		t.Helper()
		r := m.Want(200, "GET", addresses+"?"+query, "")
		var got []string
		for i := range 300 {
			if a := r.Text(fmt.Sprintf("data.%d.address", i)); a != "" {
				got = append(got, strings.TrimPrefix(a, "10.0.0."))
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s lists %s, want %s", query, text, want)
		}
		return r
	}
	r := list(apitest.Filter("state:'UNASSIGNED'")+"&limit=4&total=true", "2 3 5 8")
	if r.Text("totalCount") != "249" || r.Get("data.0.id") != nil || r.Text("data.0.state") != "UNASSIGNED" ||
		r.Text("data.0.configuration.id") != configuration ||
		r.Text("data.0._links.up.href") != "/api/v2/networks/"+network {
		t.Errorf("the page is %s", r.Body)
	}
	next := m.Want(200, "GET", r.Text("_links.next.href"), "")
	if next.Text("data.0.address") != "10.0.0.9" || next.Text("count") != "4" || next.Text("_links.prev.href") == "" {
		t.Errorf("the next page is %s", next.Body)
	}
	list(apitest.Filter("state:'UNASSIGNED' and address:ge('10.0.0.199') and address:lt('10.0.0.203')"), "199 201 202")
	list(apitest.Filter("state:'UNASSIGNED' and address:in('10.0.0.3','10.0.0.4','10.0.0.5')"), "3 5")
	list(apitest.Filter("state:in('UNASSIGNED','GATEWAY') and address:lt('10.0.0.4')"), "1 2 3")
	list(apitest.Filter("state:in('UNASSIGNED','STATIC') and address:lt('10.0.0.9')")+"&offset=2&limit=3", "7 2 3")
	list(apitest.Filter("(state:'UNASSIGNED' or name:'x') and (address:'10.0.0.9' or address:'10.0.0.200')"), "9")
	list(apitest.Filter("state:'UNASSIGNED' and name:null and address:le('10.0.0.3') and id:null"), "2 3")
	list(apitest.Filter("state:'UNASSIGNED' and name:'x'"), "")
	list(apitest.Filter("state:'UNASSIGNED' and configuration.id:"+configuration)+"&orderBy=desc(address)&limit=2", "254 253")
	list(apitest.Filter("state:ne('STATIC')"), "1")
	list(apitest.Filter("state:'UNASSIGNED'")+"&offset=247&limit=9", "253 254")
	if text := string(m.Want(200, "GET", addresses+"?"+apitest.Filter("state:'UNASSIGNED'")+"&limit=2&fields=id,address", "",
		"Accept: text/csv").Body); text != "id,address\r\n,10.0.0.2\r\n,10.0.0.3\r\n" {
		t.Errorf("as CSV it is %q", text)
	}
	list("limit=3&"+apitest.Filter("state:'GATEWAY'"), "1")
	list("limit=3&offset=1&"+apitest.Filter("state:'GATEWAY'"), "")
	list("limit=2&"+apitest.Filter("state:'STATIC' and address:gt('10.0.0.4')"), "6 7")
	list("limit=9&"+apitest.Filter("state:'STATIC' or address:'10.0.0.1'"), "1 4 6 7 200")
	list("limit=9&"+apitest.Filter("state:'NONSENSE' or address:'10.0.0.1'"), "1")
	list("limit=9&"+apitest.Filter("state:'NONSENSE'"), "")
	list("limit=9&"+apitest.Filter("state:'RESERVED'"), "")
	for text, total := range map[string]string{"state:'STATIC'": "4", "state:in('STATIC','STATIC')": "4", "state:'RESERVED'": "0",
		"state:in('UNASSIGNED','STATIC')": "253", "state:'UNASSIGNED' and address:le('10.0.0.10')": "6", "state:'STATIC' and name:null": "4"} {
		if r := m.Want(200, "GET", addresses+"?limit=2&total=true&"+apitest.Filter(text), ""); r.Text("totalCount") != total {
			t.Errorf("%s matches %s, want %s", text, r.Text("totalCount"), total)
		}
	}
	r = m.Want(200, "GET", addresses+"?limit=2&"+apitest.Filter("state:'STATIC'"), "")
	if r = m.Want(200, "GET", r.Text("_links.next.href"), ""); r.Text("data.1.address") != "10.0.0.200" || r.Get("_links.next") != nil {
		t.Errorf("the second page of STATIC is %s", r.Body)
	}
	// A page of more than is put together at a time, with a group among it.
	large := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.4.0.0/22"}`)
	m.ID("/api/v2/networks/"+large+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.4.1.7"}`)
	m.ID("/api/v2/networks/"+large+"/ipGroups", `{"type":"IPv4Group","name":"g","range":"10.4.1.1-10.4.1.20"}`)
	r = m.Want(200, "GET", "/api/v2/networks/"+large+"/addresses?limit=5000&total=true&"+apitest.Filter("state:'UNASSIGNED'"), "")
	if r.Text("count") != "1020" || r.Text("totalCount") != "1020" || r.Text("data.1019.configuration.name") != "main" {
		t.Errorf("a long page has %s of %s", r.Text("count"), r.Text("totalCount"))
	}
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	wide := m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8::/64"}`)
	m.ID("/api/v2/networks/"+wide+"/addresses", `{"type":"IPv6Address","state":"STATIC","address":"2001:db8::2"}`)
	began := time.Now()
	r = m.Want(200, "GET", "/api/v2/networks/"+wide+"/addresses?"+apitest.Filter("state:'UNASSIGNED'")+"&limit=3&offset=1&total=true", "")
	if r.Text("data.0.address") == "2001:db8::2" || r.Text("data.1.address") != "2001:db8::4" ||
		r.Text("totalCount") != "18446744073709551614" || r.Text("data.0.type") != "IPv6Address" {
		t.Errorf("of a /64 it is %s", r.Body)
	}
	t.Logf("the first page of a /64 took %v", time.Since(began))
	// Walked page by page, what is free and what is used are all of the network.
	seen := map[netip.Addr]bool{}
	for at := addresses + "?" + apitest.Filter("state:in('UNASSIGNED','STATIC','GATEWAY')") + "&limit=37"; at != ""; {
		r := m.Want(200, "GET", at, "")
		for i := range 37 {
			if a, err := netip.ParseAddr(r.Text(fmt.Sprintf("data.%d.address", i))); err == nil {
				if seen[a] {
					t.Errorf("%s comes twice", a)
				}
				seen[a] = true
			}
		}
		at = r.Text("_links.next.href")
	}
	if len(seen) != 254 {
		t.Errorf("%d addresses in all", len(seen))
	}
}
