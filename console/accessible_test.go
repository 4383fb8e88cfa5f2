package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"portolan/console/browser"
	"portolan/internal/testkit/apitest"
)

// accessible checks the page against WCAG 2.2 AA (axe-core) and reports violations. The page keeps axe-core until it is loaded again.
func (s *stage) accessible(p *browser.Page, what string) {
	s.Helper()
	if there, err := browser.Eval[bool](p, `!!window.axe`); err != nil || !there {
		s.ok(err)
		axe, err := os.ReadFile("testdata/axe.min.js")
		s.ok(err)
		_, err = browser.Eval[any](p, string(axe)+";0")
		s.ok(err)
	}
	found, err := browser.Eval[string](p, `axe.run({resultTypes: ["violations"], preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a",
		"wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n =>
		n.target.join(" ") + " " + n.failureSummary.split("\n").slice(1).join(" ")).join(" | ")).join("\n"))`)
	s.ok(err)
	if found != "" {
		s.Errorf("%s: %s", what, found)
	}
}

// TestScreens checks every screen with names that contain markup: no screen runs a script or inserts an element from a name. It checks that
// the screens are accessible, in both colour schemes and both sizes, that none scrolls sideways, and the content security policy. CI opens
// each screen again in each size, and checks it in two of the four combinations. Otherwise the size of an open screen changes, and each
// screen is checked in one combination.
func TestScreens(t *testing.T) {
	s := start(t)
	network, zone := s.addHostileNames()
	p := s.open()
	complete := os.Getenv(apitest.AllTests) != ""
	for i, path := range append(s.paths(), "/ui/tagGroups", "/ui/configurations", "/ui/zones/"+zone+"?name=evil") {
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
		if bad, err := browser.Eval[bool](p, `!!window.owned || !!document.querySelector("#main img, #main b[onerror]")`); err != nil || bad {
			t.Errorf("%s runs a script from a name (%v)", path, err)
		}
	}
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Text(`<img src=x onerror=`))
}

// addHostileNames gives resources names and texts that contain markup, and returns the network and the zone among them.
func (s *stage) addHostileNames() (network, zone string) {
	const evil = `<img src=x onerror="window.owned=true"><b>'\"&`
	quoted, err := json.Marshal(evil)
	s.ok(err)
	network = s.id("networks", "range:'10.0.0.0/24'")
	s.api("PATCH", "/api/v2/networks/"+network, `{"name":`+string(quoted)+`}`)
	s.api("PATCH", "/api/v2/addresses/"+s.id("addresses", "address:'10.0.0.2'"), `{"name":"plain"}`)
	s.api("PATCH", "/api/v2/configurations/"+s.id("configurations", "id:gt(0)"), `{"name":`+string(quoted)+`,"description":`+string(quoted)+`}`)
	s.api("POST", "/api/v2/tagGroups", `{"name":`+string(quoted)+`}`)
	zone = s.id("zones", "absoluteName:'harbour.example'")
	s.api("POST", "/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"evil","text":`+string(quoted)+`}`)
	return network, zone
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
		s.ok(p.Click(`[...document.querySelectorAll("button")].find(b => (b.innerText + " " + b.ariaLabel).includes("` + w.press + `"))`))
		s.ok(p.Wait(`document.querySelector("dialog")?.innerText.includes("` + w.shows + `") && !document.querySelector("dialog .loading")`))
		s.accessible(p, w.press+" on "+w.path)
	}
}
