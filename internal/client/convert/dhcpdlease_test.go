package convert

import (
	"fmt"
	"slices"
	"strings"
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

// TestLeaseTimesOfClientsAreLimited checks that hosts and classes whose limits exclude the default lease time of their networks get a
// default within them, also a host before its subnet, and that the others get none. Levels with several results are listed.
func TestLeaseTimesOfClientsAreLimited(t *testing.T) {
	for _, one := range []struct {
		file string
		want []string
		note string
	}{
		{`default-lease-time 21600;
host before { hardware ethernet 00:00:5e:00:53:01; fixed-address 10.0.0.5; max-lease-time 1800; }
group { max-lease-time 3600;
  host in { hardware ethernet 00:00:5e:00:53:02; fixed-address 10.0.1.6; }
  host own { hardware ethernet 00:00:5e:00:53:03; fixed-address 10.0.0.6; default-lease-time 7200; } }
class "short" { match if option user-class = "a"; max-lease-time 600; }
class "long" { match if option user-class = "b"; min-lease-time 43200; }
class "free" { match if option user-class = "c"; max-lease-time 86400; }
subnet 10.0.0.0 netmask 255.255.255.0 { range 10.0.0.10 10.0.0.19; }
subnet 10.0.1.0 netmask 255.255.255.0 { default-lease-time 900; range 10.0.1.10 10.0.1.19; }
`, []string{"<nil> 21600", "addresses/10.0.0.5 1800", "addresses/10.0.0.6 3600", "clientClasses/long 43200", "clientClasses/short 600",
			"networks/10.0.1.0/24 900"}, ""},
		{`class "a" { match hardware; default-lease-time 7200; }
subclass "a" 1:00:00:5e:00:53:01 { max-lease-time 300; }
host h { hardware ethernet 00:00:5e:00:53:02; max-lease-time 60; }
subnet 10.0.0.0 netmask 255.255.255.0 { max-lease-time 600; range 10.0.0.10 10.0.0.19;
  pool { max-lease-time 50000; range 10.0.0.20 10.0.0.29; } }
`, []string{"<nil> 43200", "clientClasses/a 600", "macAddresses/00-00-5E-00-53-02 60", "networks/10.0.0.0/24 600",
			"ranges/10.0.0.20-10.0.0.29 43200", "subclasses/0x0100005E005301 300"},
			"the default lease times of clientClasses/a that differ by network: it is 600 in all networks"},
	} {
		d, err := Dhcpd([]byte(one.file), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range d.Resources {
			if r["name"] == "default-lease-time" {
				all = append(all, fmt.Sprint(r["in"], " ", r["value"]))
			}
		}
		if slices.Sort(all); !slices.Equal(all, one.want) {
			t.Errorf("the default lease times are %q, want %q", all, one.want)
		}
		notes := fmt.Sprint(d.notes)
		if strings.Contains(notes, "differ by network") != (one.note != "") || !strings.Contains(notes, one.note) {
			t.Errorf("the notes are %s", notes)
		}
	}
}
