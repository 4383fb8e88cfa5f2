package servicepoint

import (
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portolan/internal/wire/checkin"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDefaultRoutes checks that the default route with the lowest metric is used, and that other routes and those without a gateway are
// ignored.
func TestDefaultRoutes(t *testing.T) {
	h := host{
		route4: file(t, "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"+
			"eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"+
			"wlan0\t00000000\t0100A8C0\t0003\t0\t0\t50\t00000000\t0\t0\t0\n"+
			"tun0\t00000000\t00000000\t0001\t0\t0\t1\t00000000\t0\t0\t0\n"+
			"eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"),
		route6: file(t, "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 "+
			"00000001 00000000 00000003     eth0\n"+
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 20010db8000000000000000000000001 00000400 00000001 "+
			"00000000 00000003     eth0\n"+
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 "+
			"00000000 00200200       lo\n"),
		resolv: file(t, "# made by hand\nnameserver 192.0.2.53\nnameserver 2001:db8::53\nsearch example\n"),
	}
	if r, ok := h.gateway4(); !ok || r.via != netip.MustParseAddr("192.168.0.1") || r.device != "wlan0" {
		t.Errorf("the IPv4 gateway is %v, %v", r, ok)
	}
	if r, ok := h.gateway6(); !ok || r.via != netip.MustParseAddr("2001:db8::1") || r.device != "eth0" {
		t.Errorf("the IPv6 gateway is %v, %v", r, ok)
	}
	if got := h.resolvers(); len(got) != 2 || got[0] != "192.0.2.53" {
		t.Errorf("the resolvers are %v", got)
	}
	none := host{route4: "/nowhere", route6: file(t, "garbage\n\n"), resolv: "/nowhere"}
	if _, ok := none.gateway4(); ok {
		t.Error("a gateway out of nowhere")
	}
	if _, ok := none.gateway6(); ok {
		t.Error("a gateway out of garbage")
	}
	if got := none.resolvers(); got == nil || len(got) != 0 {
		t.Errorf("no resolvers are %#v, want an empty array", got)
	}
}

func TestPrimaryAddress(t *testing.T) {
	all := []linkAddress{
		{"lo", netip.MustParsePrefix("127.0.0.1/8"), true, true},
		{"eth0", netip.MustParsePrefix("192.0.2.9/24"), false, true},
		{"eth1", netip.MustParsePrefix("198.51.100.9/24"), false, true},
	}
	for device, want := range map[string]string{"": "192.0.2.9/24", "eth1": "198.51.100.9/24", "gone": "192.0.2.9/24"} {
		if got, ok := primary(all, true, device); !ok || got.prefix.String() != want {
			t.Errorf("with the route by %q the primary address is %v, want %s", device, got.prefix, want)
		}
	}
	if got, ok := primary(all[:1], true, ""); !ok || !got.loopback {
		t.Errorf("with loopback alone the primary address is %v", got.prefix)
	}
	if _, ok := primary(all, false, ""); ok {
		t.Error("an IPv6 address out of nowhere")
	}
}

// TestShownAddresses checks that a node reports one primary address of each family and the others except loopback as aliases.
func TestShownAddresses(t *testing.T) {
	lo4 := linkAddress{"lo", netip.MustParsePrefix("127.0.0.1/8"), true, true}
	lo6 := linkAddress{"lo", netip.MustParsePrefix("::1/128"), true, true}
	first := linkAddress{"eth0", netip.MustParsePrefix("192.0.2.9/24"), false, true}
	second := linkAddress{"eth0", netip.MustParsePrefix("192.0.2.10/24"), false, true}
	other := linkAddress{"eth1", netip.MustParsePrefix("198.51.100.9/24"), false, true}
	six := linkAddress{"eth1", netip.MustParsePrefix("2001:db8::9/64"), false, true}
	for name, c := range map[string]struct {
		all              []linkAddress
		device4, device6 string
		cidr4, cidr6     string
		want             string
	}{
		"all": {[]linkAddress{lo4, lo6, first, second, other, six}, "eth0", "eth1", "192.0.2.9/24", "2001:db8::9/64",
			"PRIMARY 192.0.2.9, ALIAS 192.0.2.10, ALIAS 198.51.100.9, PRIMARY 2001:db8::9"},
		"another default route": {[]linkAddress{lo4, first, second, other}, "eth1", "", "198.51.100.9/24", "",
			"ALIAS 192.0.2.9, ALIAS 192.0.2.10, PRIMARY 198.51.100.9"},
		"loopback alone": {[]linkAddress{lo4, lo6}, "", "", "127.0.0.1/8", "", "PRIMARY 127.0.0.1"},
		"IPv6 alone":     {[]linkAddress{lo4, lo6, six}, "", "eth1", "", "2001:db8::9/64", "PRIMARY 2001:db8::9"},
		"nothing":        {nil, "", "", "", "", ""},
	} {
		cidr4, cidr6, shown := reportedAddresses(c.all, c.device4, c.device6)
		var got []string
		for _, a := range shown {
			got = append(got, a.Type+" "+a.IPAddress)
		}
		if cidr4 != c.cidr4 || cidr6 != c.cidr6 || strings.Join(got, ", ") != c.want || shown == nil {
			t.Errorf("%s: %q %q %q", name, cidr4, cidr6, got)
		}
	}
}

// TestPasswordIsHidden checks that the password is removed from errors in every encoding.
func TestPasswordIsHidden(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy:3128", User: url.UserPassword("u", "p@ss/w?rd &")}
	p := &probes{targets: Targets{Proxy: proxy}}
	for _, text := range []string{proxy.String(), "proxy says p@ss/w?rd & no", url.QueryEscape("p@ss/w?rd &"), url.PathEscape("p@ss/w?rd &")} {
		if got := p.redactPassword(text); got == text || got == "" {
			t.Errorf("%q shows as %q", text, got)
		}
	}
}

// TestApplicationsInheritProxy checks the proxy variables in the environment of applications.
func TestApplicationsInheritProxy(t *testing.T) {
	if env := (Targets{NoProxy: "10.0.0.0/8"}).environment(); len(env) != 0 {
		t.Errorf("without a proxy their environment has %q", env)
	}
	told := Targets{Proxy: &url.URL{Scheme: "http", Host: "proxy:3128", User: url.UserPassword("u", "p@ss")},
		NoProxy: "10.0.0.0/8,.quay.example"}
	want := []string{"HTTP_PROXY=http://u:p%40ss@proxy:3128", "HTTPS_PROXY=http://u:p%40ss@proxy:3128", "NO_PROXY=10.0.0.0/8,.quay.example"}
	if env := told.environment(); !slices.Equal(env, want) {
		t.Errorf("they are told %q", env)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	key := checkin.RegistrationKey{}.String()
	for what, o := range map[string]Options{
		"no key":                   {Variant: checkin.Fleet},
		"a damaged key":            {Variant: checkin.Fleet, Endpoint: "https://127.0.0.1:1/enrol/v1", Key: key + "x"},
		"another variant":          {Variant: "v5", Endpoint: "https://127.0.0.1:1/enrol/v1", Key: key},
		"an endpoint in the clear": {Variant: checkin.V4, Endpoint: "http://127.0.0.1:1/enrol/v1", Key: key},
		"no endpoint":              {Variant: checkin.V4, Endpoint: "127.0.0.1", Key: key},
	} {
		o.State = t.TempDir()
		if _, err := New(o); err == nil {
			t.Errorf("%s passes", what)
		}
	}
}

// TestStateIsWhole checks that an incomplete identity file causes an error.
func TestStateIsWhole(t *testing.T) {
	dir := t.TempDir()
	s := state{dir}
	if id, err := s.load(); id != nil || err != nil {
		t.Errorf("an empty directory gives %v, %v", id, err)
	}
	if err := s.save(&identity{ID: "x"}); err != nil {
		t.Fatal(err)
	}
	if id, err := s.load(); err != nil || id.ID != "x" {
		t.Errorf("read back: %v, %v", id, err)
	}
	if err := os.WriteFile(filepath.Join(dir, identityFile), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.load(); err == nil {
		t.Error("half a file passes")
	}
	first, err := s.enrolmentKey()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.enrolmentKey(); err != nil || !first.Equal(again) {
		t.Errorf("the second enrolment key is another one: %v", err)
	}
}
