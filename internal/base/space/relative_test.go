package space

import "testing"

func TestRelative(t *testing.T) {
	for _, c := range []struct{ text, network, want string }{
		{"10,20", "10.0.0.0/24", "10.0.0.10-10.0.0.29"}, {" 1 , 254 ", "10.0.0.0/24", "10.0.0.1-10.0.0.254"},
		{"10,50%", "10.0.0.0/24", "10.0.0.10-10.0.0.136"},
		{"1,100%", "10.0.0.0/30", "10.0.0.1-10.0.0.2"}, {"1,1%", "10.0.0.0/30", "10.0.0.1-10.0.0.1"},
		{"16,256", "2001:db8::/64", "2001:db8::10-2001:db8::10f"},
		{"1,255", "10.0.0.0/24", ""}, {"255,1", "10.0.0.0/24", ""}, {"0,1", "10.0.0.0/24", ""}, {"1,0", "10.0.0.0/24", ""},
		{"1,101%", "10.0.0.0/24", ""},
		{"1", "10.0.0.0/24", ""}, {"a,1", "10.0.0.0/24", ""}, {"1,b", "10.0.0.0/24", ""}, {"-1,1", "10.0.0.0/24", ""},
		{"-2,1", "10.0.0.0/24", "10.0.0.254-10.0.0.254"}, {"-40,30", "10.0.0.0/24", "10.0.0.216-10.0.0.245"}, {"-40,40", "10.0.0.0/24", ""},
		{"-255,1", "10.0.0.0/24", "10.0.0.1-10.0.0.1"}, {"-256,1", "10.0.0.0/24", ""}, {"-300,1", "10.0.0.0/24", ""},
		{"-1,1", "2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff-2001:db8::ffff:ffff:ffff:ffff"},
		{"-128,50%", "10.0.0.0/24", "10.0.0.128-10.0.0.254"}, {"-9223372036854775808,1", "10.0.0.0/24", ""},
		{"9223372036854775807,1", "10.0.0.0/24", ""},
	} {
		network, err := Parse(c.network)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if r, err := ParseRelative(c.text); err == nil {
			if in, err := r.Resolve(network); err == nil {
				got = in.Dashed()
			}
		}
		if got != c.want {
			t.Errorf("%q in %s is %q, want %q", c.text, c.network, got, c.want)
		}
	}
}

// FuzzWithout checks that the results of Without and Intersect together are exactly the range, in order.
func FuzzWithout(f *testing.F) {
	f.Add(uint32(0), uint32(255), uint32(10), uint32(20))
	f.Add(uint32(10), uint32(20), uint32(0), uint32(255))
	f.Fuzz(func(t *testing.T, a, b, c, d uint32) {
		r, o := Range{addr4(min(a, b)), addr4(max(a, b))}, Range{addr4(min(c, d)), addr4(max(c, d))}
		pieces := r.Subtract(o)
		if both, ok := r.Intersect(o); ok {
			pieces = append(pieces, both)
		}
		total := uint64(0)
		for i, p := range pieces {
			if !r.Contains(p) {
				t.Fatalf("%s without %s has %s", r, o, p)
			}
			total += p.Size().Uint64()
			for _, q := range pieces[i+1:] {
				if _, meet := p.Intersect(q); meet {
					t.Fatalf("%s and %s meet", p, q)
				}
			}
		}
		if total != r.Size().Uint64() {
			t.Fatalf("%s without %s, and both: %d of %s addresses", r, o, total, r.Size())
		}
	})
}
