package model_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestSearch checks that a search finds resources of every type by a text, the best match first, with their place.
func TestSearch(t *testing.T) {
	m := start(t)
	configuration, view, zone, block, network := m.Basics()
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.77","state":"STATIC","name":"scope-Lab",
		"macAddress":{"address":"00:00:5E:00:53:77"}}`)
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"scope","addresses":[{"id":`+address+`}]}`)
	mac := m.Want(200, "GET", "/api/v2/addresses/"+address, "").Text("macAddress.id")
	absolute := m.Want(200, "GET", "/api/v2/resourceRecords/"+record, "").Text("absoluteName")
	hits := func(q, query string) []string {
		r := m.Want(200, "GET", "/api/v2/search?q="+url.QueryEscape(q)+query, "")
		var found []string
		for i := 0; r.Text("data."+strconv.Itoa(i)+".match") != ""; i++ {
			found = append(found, r.Text("data."+strconv.Itoa(i)+".match")+" "+r.Text("data."+strconv.Itoa(i)+".resource.id"))
		}
		if r.Text("count") != strconv.Itoa(len(found)) || r.Text("complete") != "true" {
			t.Errorf("q=%s: %s", q, r.Body)
		}
		return found
	}
	for _, c := range []struct {
		q    string
		want []string // the first ones
	}{
		{address, []string{"id " + address}},
		{"10.0.0.77", []string{"address " + address, "refers " + record, "around " + network, "around " + block}},
		{"::ffff:10.0.0.77", []string{"address " + address}},
		{"10.0.0.77/24", []string{"address " + network, "address " + address}},
		{"10.0.0.0/24", []string{"address " + network, "around "}},
		{"0000.5e00.5377", []string{"key " + mac, "refers " + address}},
		{"00-00-5e-00-53-77", []string{"key " + mac, "refers " + address}},
		{"00005E005377", []string{"key " + mac, "refers " + address}},
		{absolute, []string{"key " + record}},
		{strings.ToUpper(absolute) + ".", []string{"key " + record}},
		{"scope", []string{"name " + record, "begins " + address}},
		{"SCOPE-LAB", []string{"name " + address}},
		{"ope-l", []string{"contains " + address}},
		{"0.0.77", []string{"contains " + address}},
		{"5e-00-53", []string{"contains " + mac}},
		{"00:5e:00:53", []string{"contains " + mac}},
		{"424242", nil},
		{"00:50:56:12:34:56", nil},
		{"005056123456", nil},
		{"OFFICE", []string{"name " + network}},
		{"nothing like it", nil},
	} {
		got := hits(c.q, "")
		for i, want := range c.want {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("q=%s gives %q, want first %q", c.q, got, c.want)
				break
			}
		}
		if c.want == nil && len(got) > 0 {
			t.Errorf("q=%s gives %q", c.q, got)
		}
	}
	r := m.Want(200, "GET", "/api/v2/search?q="+absolute, "")
	for path, want := range map[string]string{"data.0.path.0.id": configuration, "data.0.path.1.id": view, "data.0.path.2.type": "Zone",
		"data.0.path.3.type":         "Zone",
		"data.0.path.2.absoluteName": "com", "data.0.path.3.absoluteName": "example.com",
		"data.0.resource._links.self.href": "/api/v2/resourceRecords/" + record} {
		if got := r.Text(path); got != want {
			t.Errorf("%s is %q, want %q: %s", path, got, want, r.Body)
		}
	}
	for _, q := range []string{"10.0.0.77", "10.0.0.0/24"} {
		for _, hit := range hits(q, "") {
			if strings.HasSuffix(hit, " "+configuration) {
				t.Errorf("q=%s gives the configuration: %s", q, hit)
			}
		}
	}
	if one := m.Want(200, "GET", "/api/v2/search?limit=1&q=10.0.0.77", ""); one.Text("count") != "1" || one.Text("more") != "true" {
		t.Errorf("one of many: %s", one.Body)
	}
	for _, part := range []string{"contains('5e:00')", "startsWith('00:00:5e')", "endsWith('53-77')"} {
		if r := m.Want(200, "GET", "/api/v2/macAddresses?fields=id&"+apitest.Filter("address:"+part), ""); r.Text("data.0.id") != mac {
			t.Errorf("address:%s: %s", part, r.Body)
		}
	}
	if options := m.Want(204, "OPTIONS", "/api/v2/search", ""); options.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("a search allows %s", options.Header.Get("Allow"))
	}
	// A changed resource is found immediately, and a deleted one is not.
	m.Want(200, "PATCH", "/api/v2/addresses/"+address, `{"name":"renamed"}`)
	if got := hits("ename", ""); len(got) != 1 {
		t.Errorf("the new name gives %q", got)
	}
	if got := hits("pe-la", ""); len(got) != 0 {
		t.Errorf("the old name gives %q", got)
	}
	m.Want(204, "DELETE", "/api/v2/addresses/"+address, "")
	if got := hits("renamed", ""); len(got) != 0 {
		t.Errorf("what is deleted gives %q", got)
	}
	for query, want := range map[string]string{"": "q:", "q=": "q:", "q=x&q=y": "q:", "q=x&limit=0": "limit:", "q=x&limit=101": "limit:",
		"q=x&z=1":                       "z:",
		"q=" + strings.Repeat("x", 300): "q:", "q=%01abc&q=": "q:", "q=%ff": "q:"} {
		if r := m.Want(400, "GET", "/api/v2/search?"+query, ""); !strings.HasPrefix(r.Text("message"), want) {
			t.Errorf("?%s: %s", query, r.Body)
		}
	}
	m.Want(405, "POST", "/api/v2/search?q=x", "{}")
	m.Verify()
}

// TestSearchWithinRights checks that hidden resources do not displace visible ones from a result.
func TestSearchWithinRights(t *testing.T) {
	m := start(t)
	m.Basics()
	user := func(name string) {
		m.ID("/api/v2/users", `{"type":"User","name":"`+name+`","password":"`+apitest.AdminPassword+
			`","email":"e@x","accessType":"API","securityPrivilege":"NO_ACCESS"}`)
	}
	for i := range 12 {
		user("corpx" + strconv.Itoa(i))
	}
	user("low")
	m.Right(m.Want(200, "GET", "/api/v2/users?"+apitest.Filter("name:'low'"), "").Text("data.0.id"), "", "VIEW", "")
	m.ID("/api/v2/configurations", `{"name":"z-corpx"}`)
	as := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("low:"+apitest.AdminPassword))
	r := m.Want(200, "GET", "/api/v2/search?limit=1&q=corpx", "", as)
	if r.Text("data.0.resource.name") != "z-corpx" || r.Text("more") != "false" || r.Text("complete") != "true" {
		t.Errorf("who sees no users finds %s", r.Body)
	}
}

// TestNamesByTheirBeginning checks that names are found by their beginning as written, also if a label continues with non-ASCII letters,
// which have another form in its key.
func TestNamesByTheirBeginning(t *testing.T) {
	m := start(t)
	_, view, _, _, _ := m.Basics()
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"büro.example"}`)
	plain := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"buro.example"}`)
	for _, name := range []string{"www", "wüste", "WWW2", "xn--kste-0ra"} {
		m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","text":"x","name":"`+name+`"}`)
		m.ID("/api/v2/zones/"+plain+"/resourceRecords", `{"type":"TXTRecord","text":"x","name":"`+name+`"}`)
	}
	m.ID("/api/v2/zones/"+plain+"/resourceRecords", `{"type":"TXTRecord","text":"x","name":"_sip._tcp"}`)
	every := m.Want(200, "GET", "/api/v2/resourceRecords?limit=100", "")
	var names []string
	for i := range every.Count() {
		names = append(names, every.Text(fmt.Sprintf("data.%d.absoluteName", i)))
	}
	for _, text := range []string{"w", "W", "wü", "www", "www.", "www.b", "www.bu", "www.bü", "www.büro.e",
		"www.xn--", "wüste.b", "wüste.buro.ex", "x",
		"xn--",
		"xn--kste-0ra.bür", "WWW2.b", "www2.b", "www.buro.example", "www.buro.example.", "_sip._", "_", ".", "\\\\", "www.c", ""} {
		want := 0
		for _, name := range names {
			if strings.HasPrefix(name, text) {
				want++
			}
		}
		r := m.Want(200, "GET", "/api/v2/resourceRecords?limit=100&"+apitest.Filter("absoluteName:startsWith('"+text+"')"), "")
		if r.Count() != want {
			t.Errorf("with %q begin %d of %q, and found are %s", text, want, names, r.Body)
		}
	}
}
