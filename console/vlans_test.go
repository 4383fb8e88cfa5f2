package console_test

import (
	"fmt"
	"testing"
)

// TestVLANs creates a group and two VLANs, the second with the next free number, and assigns one to a network.
func TestVLANs(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Go("/ui/vlans"))
	s.ok(p.Text("No VLAN groups yet."))
	s.click(p, "New group")
	s.fill(p, "Name", "quay")
	s.fill(p, "First number", "20")
	s.click(p, "Apply now")
	s.ok(p.Text("Next free number 20"))
	for i, name := range []string{"office", "voice"} {
		s.click(p, "New VLAN")
		s.fill(p, "Name", name)
		s.click(p, "Apply now")
		s.ok(p.Text(fmt.Sprintf("Next free number %d", 21+i)))
		s.ok(p.Wait(`!document.querySelector("dialog")`))
	}
	vlan := s.id("vlans", "name:'voice'")
	s.api("PATCH", "/api/v2/networks/"+s.id("networks", "range:'10.0.0.0/24'"), `{"vlan":{"id":`+vlan+`}}`)
	s.ok(p.Wait(`document.querySelector("#main [role=grid]")?.innerText.match(/21\s+voice\s+10\.0\.0\.0\/24/)`)) // live
	s.accessible(p, "the VLANs")
	s.ok(p.Go("/ui/vlans/" + vlan))
	s.ok(p.Text("VLAN group"))
	// The page of a group has its VLANs as a tab, with their numbers.
	s.ok(p.Go("/ui/vlanGroups/" + s.id("vlanGroups", "name:'quay'")))
	s.click(p, "VLANs")
	s.ok(p.Wait(`document.querySelector("#main [role=tab][aria-selected=true]")?.innerText === "VLANs"`))
	s.ok(p.Wait(`document.querySelector("#main [role=grid]")?.innerText.match(/Number[\s\S]*21\s+voice/)`))
}
