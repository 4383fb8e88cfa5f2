package dnspublish_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
)

// TestChangesOfManyConfigurations checks that the changes of many zones in one transaction do not hide that of a zone in another
// configuration.
func TestChangesOfManyConfigurations(t *testing.T) {
	v := start(t).liveView("a.test")
	last := v.zone("b.test")
	apitest.Eventually(t, "b.test is served", func() bool { return v.serves("b.test") })
	other := v.ID("/api/v2/configurations", `{"name":"other"}`)
	view := v.ID("/api/v2/configurations/"+other+"/views", `{"name":"idle"}`)
	var changes []string
	disable := func(zone string) {
		changes = append(changes, fmt.Sprintf(`{"method":"PATCH","path":"zones/%s","body":{"deploymentEnabled":false}}`, zone))
	}
	for i := range 25 {
		disable(v.ID("/api/v2/views/"+view+"/zones", fmt.Sprintf(`{"type":"Zone","absoluteName":"z%d.test","deploymentEnabled":true}`, i)))
	}
	disable(last)
	v.Want(200, "POST", "/api/v2/batch", `{"changes":[`+strings.Join(changes, ",")+`]}`)
	apitest.Eventually(t, "b.test is not served", func() bool { return !v.serves("b.test") })
	changes = nil
	for i := range 25 { // more than are queued by name
		changes = append(changes, fmt.Sprintf(`{"method":"POST","path":"views/%s/zones","body":{"type":"Zone","absoluteName":"n%d.test",`+
			`"deploymentEnabled":true}}`, v.view, i))
	}
	v.Want(200, "POST", "/api/v2/batch", `{"changes":[`+strings.Join(changes, ",")+`]}`)
	apitest.Eventually(t, "the new zones are served", func() bool { return v.serves("n0.test") && v.serves("n24.test") })
}

// TestBranchesOfImpliedZones checks that a zone with any name below a reverse zone affects implied reverse zones.
func TestBranchesOfImpliedZones(t *testing.T) {
	for changed, want := range map[string]bool{"x.2.0.192.in-addr.arpa": true, "7-x.2.0.192.in-addr.arpa": true,
		"3.2.0.192.in-addr.arpa": true, "192.in-addr.arpa": true, "in-addr.arpa": true, "1.0.0.2.ip6.arpa": true, "b.test": false} {
		if got := dnspublish.AffectsImplied(changed, "2.0.192.in-addr.arpa"); got != want {
			t.Errorf("%s: %v", changed, got)
		}
	}
}

// TestDelegationsOfImpliedZones checks that an implied reverse zone delegates a zone below it whose name is not that of a network.
func TestDelegationsOfImpliedZones(t *testing.T) {
	v := start(t).liveView("p.test")
	block := v.ID("/api/v2/configurations/"+v.configuration+"/blocks", `{"type":"IPv4Block","name":"b","range":"192.0.2.0/24"}`)
	v.ID("/api/v2/blocks/"+block+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":`+v.view+
		`},"interfaces":[{"id":`+v.faces+`}]}`)
	v.deployed()
	for _, name := range []string{"x", "y"} {
		v.zone(name + ".2.0.192.in-addr.arpa")
		apitest.Eventually(t, name+" is served", func() bool { return v.serves(name + ".2.0.192.in-addr.arpa") })
		if all := v.deployed(); len(all) > 0 {
			t.Errorf("after %s was added: %q", name, all)
		}
	}
}

// TestLongNameFailsItsZone checks that a delegation whose names are too long is a fault of its zone, and that the other zones of the
// configuration are deployed.
func TestLongNameFailsItsZone(t *testing.T) {
	v := start(t).liveView("p.test")
	other := v.ID("/api/v2/configurations/"+v.configuration+"/servers", `{"type":"Server","name":"forwarder","profile":"OTHER_DNS_SERVER",`+
		`"interfaces":[{"managementAddress":"192.0.2.77"}]}`)
	faces := v.Want(200, "GET", "/api/v2/servers/"+other+"/interfaces", "").Text("data.0.id")
	above := strings.Repeat(strings.Repeat("a", 59)+".", 3) + "p.test"
	v.zone(above)
	v.deployed()
	child := v.zone(strings.Repeat("a", 59) + "." + above) // of 246 characters
	v.deployed()
	v.ID("/api/v2/zones/"+child+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"FORWARDING","interfaces":[{"id":`+v.faces+
		`},{"id":`+faces+`,"deploymentRoleInterfaceType":"TARGET"}]}`)
	v.zone("other.example")
	apitest.Eventually(t, "another zone is served", func() bool { return v.serves("other.example") })
	v.zone("later.example")
	apitest.Eventually(t, "a later zone is served", func() bool { return v.serves("later.example") })
}
