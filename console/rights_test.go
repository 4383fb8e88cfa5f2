package console_test

import (
	"testing"

	"portolan/console/browser"

	"github.com/chromedp/chromedp/kb"
)

// choose types into a reference field of the page or dialog, and takes the first result that has the text.
func (s *stage) choose(p *browser.Page, label, text, result string) {
	s.Helper()
	s.ok(p.Enter(labelled("dialog label, #main label", label), text))
	s.take(p, result)
}

// TestUsersAndRights grants a right at a network from the network's page, grants a right to everything by an explicit choice, and shows
// what the user may see and do. The user sees only its pages in the navigation, and a direct link to another page says why.
func TestUsersAndRights(t *testing.T) {
	s := start(t)
	s.api("POST", "/api/v2/users", `{"name":"junior","email":"j@example.net","securityPrivilege":"NO_ACCESS","accessType":"GUI","password":"a long password"}`)
	junior, network := s.id("users", "name:'junior'"), s.id("networks", "range:'10.0.0.0/24'")
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network + "/accessRights"))
	s.click(p, "New")
	// A user who leaves the field and comes back at once keeps the text.
	s.ok(p.Act(labelled("dialog label", "User or group"), `const real = window.setTimeout
		window.setTimeout = (run, ms, ...rest) => ms === 150 ? (window.leave = run, 0) : real(run, ms, ...rest)
		e.focus(); e.blur(); window.setTimeout = real`))
	s.ok(p.Enter(labelled("dialog label", "User or group"), "junior"))
	s.ok(p.Wait(`document.querySelector("dialog .hit")`))
	_, err := browser.Eval[any](p, "window.leave(), new Promise(requestAnimationFrame)")
	s.ok(err)
	s.take(p, "junior")
	s.fill(p, "Access level", "FULL")
	s.fill(p, "Approval", "RECOMMEND")
	s.click(p, "Apply now")
	s.ok(p.Wait(`document.querySelector("#main .grid, #main [role=grid]")?.innerText.includes("junior")`))

	// A right cannot be applied before its scope is selected. The scope of everything shows a warning.
	s.ok(p.Go("/ui/users/" + junior + "/accessRights"))
	s.click(p, "New")
	s.fill(p, "Access level", "HIDE")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button")].find(b => b.innerText.startsWith("Apply now"))?.disabled`))
	s.accessible(p, "a new access right")
	s.ok(p.Click(`document.querySelectorAll("dialog [name=covers]")[1]`))
	s.ok(p.Text("also future ones"))
	s.click(p, "Apply now")
	s.ok(p.Wait(`!document.querySelector("dialog")`))

	s.ok(p.Go("/ui/access"))
	s.ok(p.Text("junior"))
	s.ok(p.Go("/ui/access?tab=check&user=" + junior))
	s.ok(p.Wait(`document.querySelector("#main .places")?.innerText.match(/10\.0\.0\.0\/24\s+Full: also delete[^]*required/)`))
	s.choose(p, "Check one resource", "10.0.1.0/24", "10.0.1.0/24")
	s.ok(p.Text("10.0.1.0/24: Hide: not visible at all"))
	s.accessible(p, "what a user may do")

	s.ok(p.Go("/"))
	s.ok(p.Click("document.querySelector('.account')"))
	s.click(p, "Sign out")
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "junior", kb.Tab, "a long password", kb.Enter)
	s.ok(p.Wait(`(() => { const all = [...document.querySelectorAll(".side a")].map(a => a.innerText.trim()).join()
		return all === "Overview,Space,DHCP,Discovery,Approvals,Change list,Bulk and CSV,All objects" })()`))
	for path, why := range map[string]string{"/ui/fleet": "The fleet requires", "/ui/names": "have an access right for this page",
		"/ui/access": "privilege to view", "/ui/transactions": "history privilege"} {
		s.ok(p.Go(path))
		s.ok(p.Text(why))
	}
	s.accessible(p, "a page without access")
	s.ok(p.Go("/ui/users/" + junior + "/access"))
	s.ok(p.Text("Full: also delete"))
}
