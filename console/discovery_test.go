package console_test

import (
	"context"
	"net/netip"
	"testing"
	"time"
)

// answers reports that two addresses answer pings. The tests ping no host.
func answers(_ context.Context, a netip.Addr) (bool, error) {
	return a == netip.MustParseAddr("10.0.0.77") || a == netip.MustParseAddr("10.0.0.78"), nil
}

// TestDiscovery runs a policy, accepts one of its findings, rejects the other one, and finds the observed addresses.
func TestDiscovery(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	s.api("POST", "/api/v2/networks/"+network+"/reconciliationPolicies", `{"type":"IPv4ReconciliationPolicy","name":"quay sweep","enabled":true,`+
		`"discoveryMethod":"PINGSWEEP","startDateTime":"`+time.Now().UTC().Add(time.Hour).Format(time.RFC3339)+`","packetsPerSecond":10000}`)
	p := s.open()
	s.ok(p.Go("/ui/discovery?tab=policies"))
	s.ok(p.Text("quay sweep"))
	s.accessible(p, "the policies")
	s.click(p, "Run now")
	s.ok(p.Text("2 addresses seen, 2 findings open"))
	s.click(p, "Findings")
	s.ok(p.Text("Assign 10.0.0.77 as STATIC."))
	s.accessible(p, "the findings")
	for _, step := range []struct{ address, button string }{{"10.0.0.77", "Accept"}, {"10.0.0.78", "Reject"}} {
		s.ok(p.Wait(`(x => { x?.click(); return !!x })([...document.querySelectorAll("input.pick")].` +
			`find(x => x.closest("[role=row]").innerText.includes("` + step.address + `")))`))
		s.click(p, step.button)
		s.click(p, "Apply now")
		s.ok(p.Wait(`!document.querySelector("dialog")`))
	}
	if s.id("addresses", "address:'10.0.0.77'") == "" {
		t.Error("the accepted address does not exist")
	}
	s.ok(p.Text("No findings."))
	s.click(p, "Seen addresses")
	s.ok(p.Text("10.0.0.78"))
	s.ok(p.Go("/ui/discovery?tab=observations&filter=10.0.0.77"))
	s.ok(p.Text("10.0.0.77"))
	s.ok(p.Wait(`!document.querySelector("#main [role=grid]").innerText.includes("10.0.0.78")`))
	s.accessible(p, "the seen addresses")
}
