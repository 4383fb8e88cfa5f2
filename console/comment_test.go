package console_test

import (
	"net/url"
	"testing"
)

// TestMandatoryComments checks that a preview needs no comment where comments are mandatory, that the window for it opens when the change
// is applied, and that the change has the comment.
func TestMandatoryComments(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	settings := "/api/v2/settings/" + s.id("settings", "type:'GlobalSettings'")
	s.api("PATCH", settings, `{"mandatoryCommentsEnabled":true}`)
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.AwaitStill())
	s.click(p, "Change")
	s.fill(p, "Name", "with a comment")
	s.ok(p.Wait(`document.querySelector("dialog .operations ins")?.innerText === "with a comment"`))
	s.click(p, "Apply now")
	s.ok(p.Text("Every change requires a comment."))
	s.accessible(p, "comment")
	s.click(p, "Back")
	s.ok(p.Text("every change requires a comment"))
	s.ok(p.Wait(`!document.body.innerText.includes("x-bcn-")`))
	s.fill(p, "Name", "with the comment")
	s.ok(p.Wait(`document.querySelector("dialog .operations ins")?.innerText === "with the comment"`))
	s.click(p, "Apply now")
	s.fill(p, "Comment", "ticket-4711")
	s.click(p, "Apply with this comment")
	s.ok(p.Wait("!document.querySelector('dialog')"))
	if got := s.api("GET", "/api/v2/networks/"+network, "")["name"]; got != "with the comment" {
		t.Errorf("the network is called %v", got)
	}
	s.id("transactions", "comment:'ticket-4711'")
}

// TestFiltersOfNames checks that the filters of zones and of records accept a part of a name and a filter, and that a malformed filter
// shows its error.
func TestFiltersOfNames(t *testing.T) {
	s := start(t)
	zone := s.id("zones", "absoluteName:'harbour.example'")
	s.api("POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"filtered","addresses":[{"address":"10.0.0.77"}]}`)
	p := s.open()
	for _, one := range []struct{ page, text, shown string }{
		{"/ui/names", "harbour.ex", "harbour.example"},
		{"/ui/names", "absoluteName:'harbour.example'", "harbour.example"},
		{"/ui/names", "absoluteName:'harbour", "Invalid"},
		{"/ui/zones/" + zone, "filter", "filtered"},
		{"/ui/zones/" + zone, "name:'filtered' or ttl:1", "filtered"},
		{"/ui/zones/" + zone, "type:'HostRecord", "Invalid"},
	} {
		s.ok(p.Go(one.page + "?name=" + url.QueryEscape(one.text)))
		if one.shown == "Invalid" {
			s.ok(p.Wait(`document.querySelector("#main [role=alert]")?.innerText.length > 0`))
			continue
		}
		s.ok(p.Wait(`[...document.querySelectorAll("#main [role=row] a")].some(a => a.innerText === "` + one.shown + `")`))
	}
}

// TestAssignInANetworkWithADefaultZone checks that the default zone of a network requires no name. Only a zone that the user chose does.
func TestAssignInANetworkWithADefaultZone(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	s.api("POST", "/api/v2/networks/"+network+"/defaultZones", `{"id":`+s.id("zones", "absoluteName:'harbour.example'")+`}`)
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.AwaitStill())
	s.click(p, "Assign address")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button")].some(b => b.innerText === "Apply now" && !b.disabled)`))
	s.click(p, "Apply now")
	s.ok(p.Text("Created IPv4 address 10.0.0."))
}
