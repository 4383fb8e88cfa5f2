package console_test

import (
	"context"
	"net/netip"
	"testing"
)

// answers reports that two addresses answer pings. The tests ping no host.
func answers(_ context.Context, a netip.Addr) (bool, error) {
	return a == netip.MustParseAddr("10.0.0.77") || a == netip.MustParseAddr("10.0.0.78"), nil
}

// TestDiscovery creates a policy by its form, runs it, accepts one of its findings, rejects the other one, and finds the observed
// addresses.
func TestDiscovery(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Go("/ui/discovery?tab=policies"))
	s.click(p, "New policy")
	s.choose(p, "Scan", "10.0.0.0/24", "10.0.0.0/24")
	s.fill(p, "Method", "SNMP")
	s.fill(p, "SNMP version", "v3")
	s.ok(p.Text("Encryption passphrase"))
	s.ok(p.Text("required and missing: seedRouterAddresses"))
	s.accessible(p, "the form of a policy")
	s.fill(p, "Method", "PINGSWEEP")
	s.fill(p, "Name", "quay sweep")
	s.fill(p, "Packets per second", "10000")
	s.click(p, "Apply now")
	s.ok(p.Wait(`!document.querySelector("dialog")`))
	s.ok(p.Text("quay sweep"))
	s.accessible(p, "the policies")
	s.click(p, "Run now")
	s.ok(p.Text("2 addresses seen, 2 findings open"))
	s.click(p, "Findings")
	s.ok(p.Text("Assign as static"))
	s.accessible(p, "the findings")
	for _, step := range []struct{ address, button string }{{"10.0.0.77", "Accept"}, {"10.0.0.78", "Reject"}} {
		s.ok(p.Click(`[...document.querySelectorAll("input.pick")]` +
			`.find(x => x.closest("[role=row]")?.innerText.includes("` + step.address + `"))`))
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
