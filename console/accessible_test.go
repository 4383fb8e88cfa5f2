package console_test

import (
	"fmt"
	"os"
	"testing"

	"portolan/console/browser"
	"portolan/internal/testkit/apitest"
)

// accessible checks the page against WCAG 2.2 AA (axe-core) and reports violations.
func (s *stage) accessible(p *browser.Page, what string) {
	s.Helper()
	axe, err := os.ReadFile("testdata/axe.min.js")
	s.ok(err)
	_, err = browser.Eval[any](p, string(axe)+";0")
	s.ok(err)
	found, err := browser.Eval[string](p, `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then(r => r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " +
		n.failureSummary.split("\n").slice(1).join(" ")).join(" | ")).join("\n"))`)
	s.ok(err)
	if found != "" {
		s.Errorf("%s: %s", what, found)
	}
}

// TestScreensAreAccessible checks that every screen is accessible, in both colour schemes and both sizes. It also checks the content
// security policy and that no screen scrolls sideways. CI opens each screen again in each size, and checks it in two of the four
// combinations. Otherwise the size of an open screen changes, and each screen is checked in one combination.
func TestScreensAreAccessible(t *testing.T) {
	s := start(t)
	p := s.open()
	complete := os.Getenv(apitest.AllTests) != ""
	for i, path := range s.paths() {
		for n, variant := range []struct {
			width int64
			dark  bool
		}{{1280, i%2 == 0}, {390, i%2 != 0}, {320, false}} { // each screen in two of the four combinations, the next screen in the other two
			s.ok(p.Size(variant.width, 800, variant.dark))
			if n == 0 || complete {
				s.ok(p.Go(path))
			}
			if err := p.AwaitStill(); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if wide, err := browser.Eval[float64](p, "document.documentElement.scrollWidth"); err != nil || int64(wide) > variant.width {
				t.Errorf("%s scrolls sideways at %d px: %v (%v)", path, variant.width, wide, err)
			}
			if n < 2 && (complete || n == i/2%2) {
				s.accessible(p, fmt.Sprintf("%s at %d px, dark %v", path, variant.width, variant.dark))
			}
		}
	}
}

// TestWindowsAreAccessible checks the same for dialogs.
func TestWindowsAreAccessible(t *testing.T) {
	s := start(t)
	p := s.open()
	network, zone := s.id("networks", "range:'10.0.0.0/24'"), s.id("zones", "absoluteName:'harbour.example'")
	for i, w := range []struct{ path, press, shows string }{
		{"/ui/networks/" + network, "Assign address", "Apply now"}, {"/ui/networks/" + network, "Change", "Apply now"},
		{"/ui/networks/" + network, "More", "Split"}, {"/ui/zones/" + zone, "New record", "Reverse record"}, {"/ui/zones/" + zone, "Delete",
			"Delete now"},
		{"/ui/names", "New zone", "Fully qualified"}, {"/ui/fleet", "New service point", "Create"}, {"/ui/transactions", "Undo",
			"Undo this change?"},
		{"/ui/users", "New", "Apply now"}, {"/ui/tokens", "New token", "Create"}, {"/ui/fleet?rollouts=1", "New rollout", "Start"},
		{"/ui/accessRights", "New", "Apply now"}, {"/", "Search", "Search"}, {"/", "admin", "Theme"},
	} {
		s.ok(p.Size([]int64{1280, 390}[i%2], 800, i%3 == 0))
		s.ok(p.Go(w.path))
		s.ok(p.AwaitStill())
		_, err := browser.Eval[any](p, `[...document.querySelectorAll("button")].find(b => (b.innerText + " " + b.ariaLabel).includes("`+w.press+`")).click()`)
		s.ok(err)
		s.ok(p.Wait(`document.querySelector("dialog")?.innerText.includes("` + w.shows + `") && !document.querySelector("dialog .loading")`))
		s.accessible(p, w.press+" on "+w.path)
	}
}
