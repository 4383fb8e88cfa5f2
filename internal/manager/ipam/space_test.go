package ipam_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestFirstSpace checks that a configuration starts with the IPv6 space, and that resources created directly below it get their place in
// it, also from a hardware address.
func TestFirstSpace(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"six"}`)
	blocks := "/api/v2/configurations/" + configuration + "/blocks"
	r := m.Want(200, "GET", blocks+"?orderBy=range", "")
	if got := r.Text("data.0.range") + r.Text("data.0.name") + r.Text("data.1.range") +
		r.Text("data.1.name"); got != "2000::/3Global Unicastfc00::/7Unique Local" {
		t.Errorf("it begins with %s", got)
	}
	local := r.Text("data.1.id")
	if b := m.Want(201, "POST", blocks,
		`{"type":"IPv6Block","range":"2001:db8::/32"}`); b.Text("_links.up.href") != "/api/v2/blocks/"+r.Text("data.0.id") {
		t.Errorf("a global block is %s", b.Body)
	}
	b := m.Want(201, "POST", blocks, `{"type":"IPv6Block","range":"00:00:5e:00:53:01"}`)
	if !strings.HasPrefix(b.Text("range"), "fd") || !strings.HasSuffix(b.Text("range"), "::/48") ||
		b.Text("_links.up.href") != "/api/v2/blocks/"+local {
		t.Errorf("from a hardware address it is %s", b.Body)
	}
	m.ID("/api/v2/blocks/"+local+"/blocks", `{"type":"IPv6Block","range":"0000.5e00.5302"}`)
	m.Refused(400, "IpRangeOutsideParent", "fd", "POST", "/api/v2/blocks/"+r.Text("data.0.id")+"/blocks",
		`{"type":"IPv6Block","range":"00-00-5e-00-53-01"}`)
	m.Refused(400, "InvalidResourceFieldValue", "hardware address", "POST", blocks, `{"type":"IPv4Block","range":"00:00:5e:00:53:01"}`)
	m.Refused(400, "InvalidResourceFieldValue", "hardware address", "PATCH", "/api/v2/blocks/"+local, `{"range":"00:00:5e:00:53:01"}`, apitest.MergePatch)
	m.Refused(400, "InvalidIpRangeValue", "range", "POST", blocks, `{"type":"IPv6Block","range":"00:00:5e:00:53"}`)
	m.Want(204, "DELETE", "/api/v2/configurations/"+configuration, "")
	m.Verify()
}

// TestTraversal checks that depth first finds space in the first block at any depth, and breadth first in the block nearest to the top.
func TestTraversal(t *testing.T) {
	m := start(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"t"}`)
	top := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	under := func(block, r string) string {
		return m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"`+r+`"}`)
	}
	first := under(top, "10.0.0.0/9")
	under(top, "10.128.0.0/9")
	under(first, "10.0.0.0/10")
	m.ID("/api/v2/blocks/"+first+"/networks", `{"type":"IPv4Network","range":"10.64.0.0/11"}`)
	for method, want := range map[string]string{"DEPTH_FIRST": "10.0.0.0/10", "BREADTH_FIRST": "10.128.0.0/10"} {
		if n := m.Want(201, "POST", "/api/v2/blocks/"+top+"/networks", `{"type":"IPv4Network","range":"/10"}`,
			"x-bcn-traversal-method: "+method); n.Text("range") != want {
			t.Errorf("%s finds %s", method, n.Text("range"))
		}
	}
	m.Refused(400, "InvalidHeaderValue", "BREADTH_FIRST", "POST", "/api/v2/blocks/"+top+"/networks", `{"type":"IPv4Network","range":"/10"}`,
		"x-bcn-traversal-method: SIDEWAYS")
	m.Refused(400, "NoSpaceForNetwork", "/9", "POST", "/api/v2/blocks/"+top+"/networks", `{"type":"IPv4Network","range":"/9"}`,
		"x-bcn-traversal-method: BREADTH_FIRST")
	m.Verify()
}
