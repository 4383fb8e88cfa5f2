package ipam_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"portolan/internal/base/space"
	"portolan/internal/testkit/apitest"
)

// prefixIn gives some prefix of a length within another one.
func prefixIn(random *rand.Rand, within netip.Prefix, bits int) netip.Prefix {
	low := within.Addr().AsSlice()
	for bit := within.Bits(); bit < bits; bit++ {
		if random.IntN(2) == 1 {
			low[bit/8] |= 128 >> (bit % 8)
		}
	}
	addr, _ := netip.AddrFromSlice(low)
	return netip.PrefixFrom(addr, bits)
}

// tops are the top-level ranges that divide divides.
var tops = map[string]netip.Prefix{"4": netip.MustParsePrefix("10.0.0.0/16"), "6": netip.MustParsePrefix("2001:db8::/112")}

// divide creates random blocks in blocks, and networks, ranges and groups in them. It skips refused ones, because they overlap others.
func divide(m *apitest.API, random *rand.Rand, configuration, version string) {
	add := func(path, body string) string {
		r := m.Do("POST", "/api/v2/"+path, body)
		switch r.StatusCode {
		case 201:
			return r.Text("id")
		case 400, 409:
			return ""
		}
		m.T.Fatalf("POST %s %s: %d %s", path, body, r.StatusCode, r.Body)
		return ""
	}
	whole, blocks, ranges := tops[version], []string{}, []netip.Prefix{}
	block := func(path string, p netip.Prefix) {
		if id := add(path+"/blocks", `{"type":"IPv`+version+`Block","range":"`+p.String()+`"}`); id != "" {
			blocks, ranges = append(blocks, id), append(ranges, p)
		}
	}
	block("configurations/"+configuration, whole)
	for range 8 {
		at := random.IntN(len(blocks))
		block("blocks/"+blocks[at], prefixIn(random, ranges[at], min(ranges[at].Bits()+1+random.IntN(4), whole.Bits()+9)))
	}
	for range 16 {
		at := random.IntN(len(blocks))
		p := prefixIn(random, ranges[at], max(whole.Bits()+10, ranges[at].Bits()+1))
		network := add("blocks/"+blocks[at]+"/networks", `{"type":"IPv`+version+`Network","range":"`+p.String()+`"}`)
		if network == "" || version == "6" {
			continue
		}
		low := space.FromPrefix(p).Low
		for range 3 {
			low = low.Next().Next()
		}
		span := fmt.Sprintf("%s-%s", low, low.Next().Next())
		add("networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"`+span+`"}`)
		add("networks/"+network+"/ipGroups", `{"type":"IPv4Group","name":"g","range":"`+span+`"}`)
	}
}

// TestSearchAroundAddresses checks that the search around an address or a prefix finds the resources whose range contains it, in each
// collection with space and in every configuration.
func TestSearchAroundAddresses(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // to be had again
	for _, name := range []string{"one", "two"} {
		configuration := m.ID("/api/v2/configurations", `{"name":"`+name+`"}`)
		for _, version := range []string{"4", "6"} {
			divide(m, random, configuration, version)
		}
	}
	found := 0
	for _, of := range []string{"blocks", "networks", "ranges", "ipGroups"} {
		all := map[string]space.Range{}
		for _, one := range m.Want(200, "GET", "/api/v2/"+of+"?limit=1000", "").Get("data").([]any) {
			row := one.(map[string]any)
			r, err := space.Parse(row["range"].(string))
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprint(row["id"])] = r
		}
		for range 60 {
			within := tops[[]string{"4", "6"}[random.IntN(2)]]
			p := prefixIn(random, within, within.Bits()+random.IntN(within.Addr().BitLen()-within.Bits()+1))
			asked, want, got := space.FromPrefix(p), []string{}, []string{}
			for id, r := range all {
				if r.Low.Is4() == p.Addr().Is4() && !asked.Low.Less(r.Low) && !r.High.Less(asked.High) {
					want = append(want, id)
				}
			}
			for _, one := range m.Want(200, "GET", "/api/v2/"+of+"?"+apitest.Filter("range:contains('"+p.String()+"')"), "").Get("data").([]any) {
				got = append(got, fmt.Sprint(one.(map[string]any)["id"]))
			}
			slices.Sort(want)
			slices.Sort(got)
			if found += len(got); !slices.Equal(got, want) {
				t.Errorf("around %s are the %s %v, and not %v", p, of, want, got)
			}
		}
	}
	if found < 100 {
		t.Errorf("there was something around %d times", found)
	}
}
