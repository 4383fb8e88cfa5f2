package servicepoint

import (
	"testing"

	"portolan/internal/wire/checkin"
)

// TestDiagnosticsURL checks that a node reports the listen address of its diagnostics, or its first address if the listener accepts all.
func TestDiagnosticsURL(t *testing.T) {
	node := checkin.Node{Addresses: []checkin.NodeAddress{{Type: checkin.Primary, IPAddress: "192.0.2.7"}}}
	v6 := checkin.Node{Addresses: []checkin.NodeAddress{{Type: checkin.Primary, IPAddress: "2001:db8::7"}}}
	for _, c := range []struct {
		at   string
		node checkin.Node
		want string
	}{
		{"127.0.0.2:8083", node, "http://127.0.0.2:8083/api/v1/diagnostics"},
		{"[::]:8083", node, "http://192.0.2.7:8083/api/v1/diagnostics"},
		{"[::]:9000", v6, "http://[2001:db8::7]:9000/api/v1/diagnostics"}, {"0.0.0.0:9000", v6, ""},
		{"[fe80::1%eth0]:80", node, "http://[fe80::1]:80/api/v1/diagnostics"},
		{"[::ffff:127.0.0.1]:80", node, "http://127.0.0.1:80/api/v1/diagnostics"},
		{"[::]:8083", checkin.Node{}, ""}, {"", node, ""},
	} {
		a := &Agent{diagnosticsAddr: c.at}
		if got := a.diagnosticsURL(c.node); got != c.want {
			t.Errorf("at %q it is %q, want %q", c.at, got, c.want)
		}
	}
}
