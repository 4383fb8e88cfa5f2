package imports

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"portolan/internal/engine/store"
)

// TestPriorRows asks which earlier rows of a dry run a row needs.
func TestPriorRows(t *testing.T) {
	var w priorRows
	number := int64(0)
	read := func(text string) *row {
		number++
		one := &row{number: number}
		if err := json.Unmarshal([]byte(text), &one.members); err != nil {
			t.Fatal(err)
		}
		return one
	}
	add := func(text string, made store.Resource) { w.add(read(text), &made) }
	span := func(p string) (low, high []byte) {
		prefix := netip.MustParsePrefix(p)
		last := prefix.Addr()
		for a := last; prefix.Contains(a) && a.IsValid(); a = a.Next() {
			last = a
		}
		return store.AddrKey(prefix.Addr()), store.AddrKey(last)
	}
	resource := func(p, name, key string) (r store.Resource) {
		if p != "" {
			r.Low, r.High = span(p)
		}
		r.Name, r.Key = name, key
		return r
	}
	add(`{"type":"IPv4Block","range":"10.0.0.0/16"}`, resource("10.0.0.0/16", "", ""))                                   // 1
	add(`{"type":"IPv4Network","range":"10.0.1.0/24"}`, resource("10.0.1.0/24", "office", ""))                           // 2
	add(`{"type":"View","name":"internal"}`, resource("", "internal", ""))                                               // 3
	add(`{"type":"Zone","absoluteName":"Müller.example","view":"internal"}`, resource("", "x", "xn--mller-kva.example")) // 4
	add(`{"type":"IPv6Network","range":"2001:db8::/120"}`, resource("2001:db8::/120", "", ""))                           // 5
	add(`{"type":"IPv4Block","range":"10.0.0.0/16","configuration":"b"}`, resource("10.0.0.0/16", "", ""))               // 6
	for range 2 * samePrior {
		add(`{"type":"MACPool","name":"many"}`, resource("", "many", "")) // 7 to 14
	}
	for _, c := range []struct {
		row  string
		want []int64
	}{
		{`{"type":"IPv4Address","address":"10.0.1.7"}`, []int64{1, 2}},
		{`{"type":"IPv4DHCPRange","range":"10.0.1.7-10.0.1.9"}`, []int64{1, 2}},
		{`{"type":"IPv4Address","address":"10.0.2.7"}`, []int64{1}},
		{`{"type":"IPv4Address","address":"10.0.1.7","configuration":{"name":"b"}}`, []int64{6}},
		{`{"type":"IPv6Address","address":"2001:db8::7"}`, []int64{5}},
		{`{"type":"IPv6Address","address":"2001:db8:1::7"}`, nil},
		{`{"type":"HostRecord","absoluteName":"www.müller.example.","addresses":[{"address":"10.0.1.8"}]}`, []int64{1, 2, 3, 4}},
		{`{"type":"IPv4Address","network":"networks/office"}`, []int64{1, 2}},
		{`{"type":"IPv4Address","macPool":"many"}`, []int64{7, 8, 9, 10}},
		{`{"type":"Tag","name":"other"}`, nil},
	} {
		var got []int64
		for _, one := range w.neededBy([]*row{read(c.row)}) {
			got = append(got, one.number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s needs %v, want %v", c.row, got, c.want)
		}
	}
}
