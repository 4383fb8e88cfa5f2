package console_test

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
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

	// The end of the session ends the wait: the next user is not asked for the comment of this change.
	s.ok(p.AwaitStill())
	s.click(p, "Change")
	s.fill(p, "Name", "of a session that ends")
	s.ok(p.Wait(`document.querySelector("dialog .operations ins")?.innerText === "of a session that ends"`))
	s.click(p, "Apply now")
	s.ok(p.Text("Every change requires a comment."))
	s.shoot(p, "comment")
	other := s.tab()
	s.ok(other.Go("/"))
	s.ok(other.Click("document.querySelector('.account')"))
	s.ok(other.Click("[...document.querySelectorAll('dialog button')].find(b => b.innerText.includes('Sign out of all tabs'))"))
	s.ok(p.Wait("document.querySelector('.signin') && !document.querySelector('dialog')"))
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "admin", kb.Tab, "harbour master", kb.Enter)
	s.ok(p.Text("with the comment"))
	s.ok(p.AwaitStill())
	s.ok(p.Wait("!document.querySelector('dialog')"))
}
