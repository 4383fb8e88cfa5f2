package ipam_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestNextLinksEverywhere checks that every list with more than one page continues after the first one, whatever the source of its rows.
func TestNextLinksEverywhere(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.9.0/24"}`)
	lists := []string{"transactions", "networks/" + network + "/transactions"}
	history := m.Want(200, "GET", "/api/v2/transactions?fields=id&limit=50", "")
	for i := 0; history.Text(fmt.Sprintf("data.%d.id", i)) != ""; i++ {
		lists = append(lists, "transactions/"+history.Text(fmt.Sprintf("data.%d.id", i))+"/operations")
	}
	for _, c := range m.Address.Collections() {
		if !c.Inner {
			lists = append(lists, c.Name)
		}
	}
	walked := 0
	for _, list := range lists {
		for _, order := range []string{"", "&orderBy=id", "&orderBy=desc(id)"} {
			first := m.Do("GET", "/api/v2/"+list+"?limit=1&fields=id"+order, "")
			next := first.Text("_links.next.href")
			if first.StatusCode != 200 || next == "" {
				continue
			}
			walked++
			second := m.Want(200, "GET", next, "")
			if id := second.Text("data.0.id"); id == "" || id == first.Text("data.0.id") {
				t.Errorf("%s%s: behind %s comes %s by %s", list, order, first.Body, second.Body, strings.TrimPrefix(next, "/api/v2/"))
			}
		}
	}
	if walked < 20 {
		t.Errorf("%d lists had a second page", walked)
	}
}
