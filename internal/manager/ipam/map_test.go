package ipam_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"go4.org/netipx"

	"portolan/internal/testkit/apitest"
)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// cellOf gives the kind and the level of a cell of a map.
func cellOf(t *testing.T, text string, i int) (kind, level int) {
	t.Helper()
	if i >= len(text) {
		t.Fatalf("the map has %d cells", len(text))
	}
	if text[i] == '.' {
		return -1, -1
	}
	n := strings.IndexByte(letters, text[i])
	return n / 16, n % 16
}

// cellAt gives the cell of an address in a prefix.
func cellAt(prefix netip.Prefix, a netip.Addr, cells int) int {
	four, base := a.As4(), prefix.Addr().As4()
	at := int(binary.BigEndian.Uint32(four[:]) - binary.BigEndian.Uint32(base[:]))
	return at / (1 << (32 - prefix.Bits()) / cells)
}

func levelOf(used, size float64) int {
	switch {
	case used == 0:
		return 0
	case used >= size:
		return 15
	}
	return 1 + min(13, int(used/size*14))
}

// TestSpaceMap compares each cell of a map with an address by address count.
func TestSpaceMap(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration, _, _, block, network := m.Basics()
	for i := range 40 {
		m.ID("/api/v2/networks/"+network+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"10.0.0.%d","state":"STATIC"}`, 10+i*3))
	}
	inner := m.ID("/api/v2/blocks/"+block+"/blocks", `{"type":"IPv4Block","range":"10.64.0.0/10"}`)
	wide := m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.64.0.0/15"}`)
	for _, a := range []string{"10.64.0.9", "10.64.255.255", "10.65.0.0", "10.65.0.1", "10.65.255.254"} {
		m.ID("/api/v2/networks/"+wide+"/addresses", `{"type":"IPv4Address","state":"RESERVED","address":"`+a+`"}`)
	}
	m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.66.0.0/24"}`)
	full := m.ID("/api/v2/blocks/"+inner+"/networks", `{"type":"IPv4Network","range":"10.66.1.0/24"}`)
	m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.200-10.0.0.220"}`)

	for i := 2; i < 255; i++ { // a network that is full
		m.ID("/api/v2/networks/"+full+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`)
	}
	used := map[netip.Addr]bool{}
	list := m.Want(200, "GET", "/api/v2/addresses?limit=1000&fields=address", "")
	for i := 0; list.Text(fmt.Sprintf("data.%d.address", i)) != ""; i++ {
		used[netip.MustParseAddr(list.Text(fmt.Sprintf("data.%d.address", i)))] = true
	}
	for path, of := range map[string]string{"blocks/" + block: "10.0.0.0/8", "blocks/" + inner: "10.64.0.0/10",
		"networks/" + wide:    "10.64.0.0/15",
		"networks/" + network: "10.0.0.0/24",
		// Parts: a block's, one that a network reaches into from before, half a network, and one in it.
		"blocks/" + block + "?prefix=10.64.0.0/10": "10.64.0.0/10", "blocks/" + block + "?prefix=10.65.0.0/16": "10.65.0.0/16",
		"blocks/" + inner + "?prefix=10.66.1.128/25": "10.66.1.128/25", "blocks/" + block + "?prefix=10.0.0.128/25": "10.0.0.128/25",
		"networks/" + wide + "?prefix=10.65.255.0/24": "10.65.255.0/24"} {
		for _, n := range []int{256, 4096, 65536} {
			at, query, _ := strings.Cut(path, "?")
			r := m.Want(200, "GET", fmt.Sprintf("/api/v2/%s/map?cells=%d&%s", at, n, query), "")
			prefix := netip.MustParsePrefix(of)
			size := math.Ldexp(1, 32-prefix.Bits())
			cells := min(n, int(size))
			if r.Text("cells") != fmt.Sprint(cells) || r.Text("prefix") != of || r.Text("range") != of {
				t.Fatalf("%s: %.300s", path, r.Body)
			}
			want := make([]float64, cells)
			for a := range used {
				if prefix.Contains(a) {
					want[cellAt(prefix, a, cells)]++
				}
			}
			lost := make([]float64, cells)
			for _, one := range []string{"10.0.0.0/24", "10.64.0.0/15", "10.66.0.0/24", "10.66.1.0/24"} {
				in := netip.MustParsePrefix(one)
				for _, a := range []netip.Addr{in.Addr(), netipx.PrefixLastIP(in)} {
					if prefix.Contains(a) {
						lost[cellAt(prefix, a, cells)]++
					}
				}
			}
			text := r.Text("map")
			for i, u := range want {
				if _, level := cellOf(t, text, i); level != levelOf(u, size/float64(cells)-lost[i]) {
					t.Errorf("%s, %d cells: cell %d, with %v of %v in use, has level %d", path, cells, i, u, size/float64(cells), level)
				}
			}
		}
	}
	all := m.Want(200, "GET", "/api/v2/blocks/"+block+"/map?cells=65536", "").Text("map")
	if _, level := cellOf(t, all, 0x4201); level != 15 {
		t.Errorf("a full network has level %d", level)
	}
	part := m.Want(200, "GET", "/api/v2/blocks/"+block+"/map?cells=256&prefix=10.65.128.0/17", "").Text("map")
	if kind, _ := cellOf(t, part, 0); kind != 2 {
		t.Errorf("in a network that reaches into the part lies %d", kind)
	}
	for _, wrong := range []string{"10.64.0.1/10", "x", "11.0.0.0/8", "2001:db8::/32"} {
		m.Refused(400, "InvalidQueryParameterValue", "prefix", "GET", "/api/v2/blocks/"+block+"/map?prefix="+wrong, "")
	}
	kinds := m.Want(200, "GET", "/api/v2/blocks/"+block+"/map", "").Text("map")
	for cell, want := range map[int]int{0: 2, 1: 0, 63: 0, 64: 2, 65: 2, 66: 3, 67: 1, 127: 1, 128: 0} {
		if kind, _ := cellOf(t, kinds, cell); kind != want {
			t.Errorf("in cell %d lies %d, want %d", cell, kind, want)
		}
	}
	ranges := m.Want(200, "GET", "/api/v2/networks/"+network+"/map", "").Text("map")
	for cell, want := range map[int]int{199: 0, 200: 1, 220: 1, 221: 0} {
		if kind, _ := cellOf(t, ranges, cell); kind != want {
			t.Errorf("in address %d lies %d, want %d", cell, kind, want)
		}
	}
	odd := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.16-172.16.0.99"}`)
	r := m.Want(200, "GET", "/api/v2/blocks/"+odd+"/map", "")
	if r.Text("prefix") != "172.16.0.0/25" || r.Text("cells") != "128" || r.Text("map") != strings.Repeat(".", 16)+strings.Repeat("A", 84)+
		strings.Repeat(".", 28) {
		t.Errorf("a block that is not a prefix: %s", r.Body)
	}
	six := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv6Block","range":"2001:db8::/32"}`)
	lan := m.ID("/api/v2/blocks/"+six+"/networks", `{"type":"IPv6Network","range":"2001:db8:ffff:ffff::/64"}`)
	m.ID("/api/v2/networks/"+lan+"/addresses", `{"type":"IPv6Address","address":"2001:db8:ffff:ffff::99","state":"STATIC"}`)
	for path, want := range map[string]int{"blocks/" + six: 65535, "networks/" + lan: 0} {
		text := m.Want(200, "GET", "/api/v2/"+path+"/map?cells=65536", "").Text("map")
		for i := range 65536 {
			if _, level := cellOf(t, text, i); (level > 0) != (i == want) {
				t.Fatalf("%s: cell %d has level %d", path, i, level)
			}
		}
	}
	for query, want := range map[string]string{"cells=255": "cells:", "cells=300": "cells:", "cells=131072": "cells:",
		"cells=x": "cells:", "q=1": "q:"} {
		if r := m.Want(400, "GET", "/api/v2/blocks/"+block+"/map?"+query, ""); !strings.HasPrefix(r.Text("message"), want) {
			t.Errorf("?%s: %s", query, r.Body)
		}
	}
	m.Want(404, "GET", "/api/v2/blocks/999999/map", "")
	m.Want(404, "GET", "/api/v2/networks/"+block+"/map", "")
	m.Want(405, "POST", "/api/v2/blocks/"+block+"/map", "{}")
}
