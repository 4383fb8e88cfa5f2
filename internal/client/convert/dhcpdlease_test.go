package convert

import (
	"fmt"
	"slices"
	"testing"
)

// TestLeaseTimesAreLimited checks that a block whose limits exclude the default lease time gets a default within them, as dhcpd limits the
// time of a lease.
func TestLeaseTimesAreLimited(t *testing.T) {
	d, err := Dhcpd([]byte(`default-lease-time 21600; max-lease-time 86400;
subnet 10.0.0.0 netmask 255.255.255.0 {
  range 10.0.0.10 10.0.0.19;
  pool { max-lease-time 1800; range 10.0.0.20 10.0.0.29; }
  pool { min-lease-time 43200; range 10.0.0.30 10.0.0.39; }
  pool { max-lease-time 43200; range 10.0.0.40 10.0.0.49; }
}
subnet 10.0.1.0 netmask 255.255.255.0 { max-lease-time 600; pool { default-lease-time 7200; range 10.0.1.20 10.0.1.29; } }
key old { algorithm hmac-md5; secret "c2VjcmV0c2VjcmV0MTY="; }
zone lab.example. { primary 192.0.2.53; key old; }
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, r := range d.Resources {
		if r["type"] == "TSIGKey" && r["length"] != 112 {
			t.Errorf("the key is %v", r)
		}
		if r["name"] == "default-lease-time" {
			all = append(all, fmt.Sprint(r["in"], " ", r["value"]))
		}
	}
	slices.Sort(all)
	want := []string{"<nil> 21600", "networks/10.0.1.0/24 600", "ranges/10.0.0.20-10.0.0.29 1800", "ranges/10.0.0.30-10.0.0.39 43200",
		"ranges/10.0.1.20-10.0.1.29 600"}
	if !slices.Equal(all, want) {
		t.Errorf("the default lease times are %q", all)
	}
}
