package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/console"
	"portolan/console/browser"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/agenttest"
	"portolan/internal/testkit/apitest"

	"github.com/chromedp/chromedp/kb"
)

func TestHandler(t *testing.T) {
	missing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	h := console.Handler(missing)
	get := func(path string, headers ...string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Security-Policy"); got != console.Policy {
			t.Errorf("the policy of %s is %q", path, got)
		}
		return w.Result()
	}
	page, err := io.ReadAll(get("/ui/networks/1").Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(page), "style=") || strings.Contains(string(page), "<script>") || strings.Contains(string(page), "//") &&
		regexp.MustCompile(`https?://`).Match(page) {
		t.Errorf("the page has something inline, or from elsewhere: %s", page)
	}
	found := regexp.MustCompile(`/ui/assets/[^"]+`).FindAllString(string(page), -1)
	if len(found) != 4 {
		t.Fatalf("the page loads %q", found)
	}
	for _, path := range found {
		r := get(path)
		if r.StatusCode != 200 || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") || r.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
		if r := get(path, "If-None-Match", r.Header.Get("ETag")); r.StatusCode != 304 {
			t.Errorf("%s again: %d", path, r.StatusCode)
		}
		old, digest, _ := strings.Cut(path, "?")
		if (digest == "") != strings.Contains(path, "/chunk-") {
			t.Errorf("%s is read by two names, or kept for ever by one that stays", path)
		}
		if r := get(old + "?other"); digest != "" && r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s by another name is kept: %v", old, r.Header)
		}
	}
	if r := get("/ui/assets/../console.go"); r.StatusCode != 404 {
		t.Errorf("an unknown asset: %d", r.StatusCode)
	}
}

// stage is a manager with the sample data, and a browser.
type stage struct {
	*testing.T
	m     *server.Manager
	b     *browser.Browser
	token string
	// end stops the manager, once.
	end func() error
}

var one struct {
	sync.Mutex
	b *browser.Browser
}

func TestMain(m *testing.M) {
	agenttest.Application()
	code := m.Run()
	if one.b != nil {
		one.b.Close()
	}
	os.Exit(code)
}

// start starts a manager and a browser. Without a browser the test is skipped, but in CI it fails.
func start(t *testing.T) *stage {
	t.Helper()
	apitest.RunParallel(t)
	b := profile(t)
	m, err := server.Start(t.Context(), server.Options{Programs: all.Programs(),
		Data: t.TempDir(), Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0", Version: "test",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), AdminPassword: "harbour master",
		Sweep: true, Probe: answers,
		Resolver: netip.MustParseAddrPort("127.0.0.1:1")}) // a closed port: tests do not query foreign name servers
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceValue(m.Close)
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	if err := server.Sample(t.Context(), m.Address); err != nil {
		t.Fatal(err)
	}
	token, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "test", Role: authz.Administrator, User: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, m, b, token, end}
}

// profile returns the browser of this process with a profile for a test. Managers have one host, so tests would share its cookies.
func profile(t *testing.T) *browser.Browser {
	t.Helper()
	one.Lock()
	defer one.Unlock()
	if one.b == nil {
		b, err := browser.Start(context.Background())
		if errors.Is(err, browser.ErrNone) && os.Getenv("CI") != "true" {
			t.Skip("there is no Chromium on this machine")
		}
		if err != nil {
			t.Fatal(err)
		}
		one.b = b
	}
	b, err := one.b.NewProfile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// open opens the console, signed in by a link.
func (s *stage) open() *browser.Page {
	s.Helper()
	p := s.tab()
	code, err := s.m.Identity.NewLink(s.Context(), "admin")
	s.ok(err)
	s.ok(p.Go("/#sign-in=" + code))
	s.ok(p.Wait("document.querySelector('.side')"))
	return p
}

// tab opens an empty tab. Faults of its pages fail the test.
func (s *stage) tab() *browser.Page {
	s.Helper()
	p, err := s.b.Open(s.m.URL())
	s.ok(err)
	s.ok(p.Size(1280, 800, false))
	s.Cleanup(func() {
		for _, fault := range p.Faults() {
			s.Errorf("the page has a fault: %s", fault)
		}
		p.Close()
	})
	return p
}

func (s *stage) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// api sends a request to the API and returns the response.
func (s *stage) api(method, path, body string) (found map[string]any) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.m.URL()+path, strings.NewReader(body))
	s.ok(err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	s.ok(err)
	text, err := io.ReadAll(answer.Body)
	s.ok(err)
	s.ok(answer.Body.Close())
	if answer.StatusCode >= 300 {
		s.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	if len(text) > 0 && json.Unmarshal(text, &found) != nil {
		s.Fatalf("%s %s: %s", method, path, text)
	}
	return found
}

// id returns the ID of the first resource that matches a filter.
func (s *stage) id(collection, filter string) string {
	s.Helper()
	data, _ := s.api("GET", "/api/v2/"+collection+"?limit=1&fields=id&filter="+strings.ReplaceAll(filter, "'", "%27"), "")["data"].([]any)
	if len(data) == 0 {
		s.Fatalf("no %s with %s", collection, filter)
	}
	return fmt.Sprintf("%.0f", data[0].(map[string]any)["id"])
}

// press presses keys in order.
func (s *stage) press(p *browser.Page, keys ...string) {
	s.Helper()
	for _, k := range keys {
		s.ok(p.Keys(k))
	}
}

func TestSigningIn(t *testing.T) {
	s := start(t)
	p := s.tab()
	s.ok(p.Go("/ui/networks"))
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "admin", kb.Tab, "wrong", kb.Enter)
	s.ok(p.Text("The name or the password is wrong"))
	s.ok(p.Enter(`document.querySelector("[name=password]")`, ""))
	s.press(p, "harbour master", kb.Enter)
	s.ok(p.Text("10.0.0.0/24")) // the page requested before the sign-in
	if cookie, err := browser.Eval[string](p, "document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"); err != nil ||
		strings.Contains(cookie, "pts_") {
		t.Errorf("a script sees %q (%v)", cookie, err)
	}
	// Another tab is signed in as well, and signing out in one tab signs out both.
	other := s.tab()
	s.ok(other.Go("/"))
	s.ok(other.Text("Fullest networks"))
	s.ok(p.Click("document.querySelector('.account')"))
	s.ok(p.Click("[...document.querySelectorAll('dialog button')].find(b => b.innerText.includes('Sign out of all tabs'))"))
	s.ok(p.Wait("document.querySelector('.signin')"))
	s.ok(other.Go("/ui/space"))
	s.ok(other.Wait("document.querySelector('.signin')"))
}

// paths returns the paths of the screens.
func (s *stage) paths() []string {
	block, inner := s.id("blocks", "range:'10.0.0.0/8'"), s.id("blocks", "range:'10.0.0.0/16'")
	network, zone := s.id("networks", "range:'10.0.0.0/24'"), s.id("zones", "absoluteName:'harbour.example'")
	address, six, lan := s.id("addresses", "address:'10.0.0.2'"), s.id("blocks", "type:'IPv6Block'"), s.id("networks", "type:'IPv6Network'")
	point := s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pier"}`)["fleetInstanceID"].(string)
	s.api("POST", "/api/v2/groups", `{"name":"crew"}`)
	s.api("PATCH", "/api/v2/addresses/"+address, `{"macAddress":{"address":"00:00:5e:00:53:77"}}`)
	return []string{"/ui/fleet/" + point, "/ui/users/" + s.id("users", "name:'admin'"), "/ui/groups/" + s.id("groups", "name:'crew'"),
		"/ui/views/" + s.id("views", "id:gt(0)"), "/ui/resourceRecords/" + s.id("resourceRecords", "type:'HostRecord'"),
		"/ui/macAddresses/" + s.id("macAddresses", "id:gt(0)"), "/ui/configurations/" + s.id("configurations", "id:gt(0)"),
		"/ui/servers?tab=deploymentOptions", "/ui/servers?tab=schedules",
		"/", "/ui/space?open=" + block + "." + inner, "/ui/blocks/" + inner, "/ui/blocks/" + inner + "/map",
		"/ui/blocks/" + inner + "/map?as=table", "/ui/blocks/" + block + "/map?prefix=10.0.0.0%2F16&by=tag", "/ui/blocks/" + inner +
			"/map?cells=4096&view=4,8,8&cell=600", "/ui/blocks/" + six + "/map", "/ui/blocks/" + six + "/map?as=cells",
		"/ui/networks/" + lan + "/map",
		"/ui/blocks/" + inner + "/map?by=location",
		"/ui/blocks/" + inner + "/fields", "/ui/find?in=" + block, "/ui/networks/" + network, "/ui/networks/" + network + "/map?by=state",
		"/ui/networks/" + network + "/ranges",
		"/ui/networks/" + network + "/transactions", "/ui/addresses/" + address, "/ui/names", "/ui/zones/" + zone,
		"/ui/zones/" + zone + "?tab=text",
		"/ui/zones/" + zone + "?tab=checks", "/ui/zones/" + zone + "?tab=deployed", "/ui/servers", "/ui/servers?tab=deployments",
		"/ui/servers?tab=deploymentRoles",
		"/ui/ranges", "/ui/dhcp", "/ui/dhcp?tab=marks", "/ui/dhcp?tab=leases", "/ui/dhcp?tab=history", "/ui/dhcp?tab=refused",
		"/ui/networks/" + network + "/dhcp", "/ui/networks/" + network + "/dhcp?part=refused", "/ui/networks/" + network + "/dhcp?part=history",
		"/ui/networks/" + network + "/dhcp?part=explain", "/ui/networks/" + network + "/deploymentOptions",
		"/ui/dhcp?tab=reservations", "/ui/fleet",
		"/ui/fleet?rollouts=1", "/ui/transactions", "/ui/transactions/2", "/ui/staged", "/ui/bulk", "/ui/events",
		"/ui/users", "/ui/tokens", "/ui/locations", "/ui/workflowRequests", "/ui/access", "/ui/access?tab=accessRights",
		"/ui/all", "/ui/vlans", "/ui/discovery", "/ui/discovery?tab=observations", "/ui/discovery?tab=policies",
		"/?wall=1", "/ui/settings", "/ui/setup", "/ui/status", "/ui/backups", "/ui/blocks/" + inner + "/deploymentRoles",
		"/ui/networks/" + network + "/tags", "/ui/zones/" + zone + "/tags", "/ui/zones/" + zone + "?tab=signing",
		"/api/docs", "/api/docs?q=post+zones+resourceRecords", "/ui/nowhere", "/ui/addresses/1"}
}

// tabTo presses Tab until an element with the word has the focus, inside an element that matches within.
func (s *stage) tabTo(p *browser.Page, word, within string) {
	s.Helper()
	for range 80 {
		s.press(p, kb.Tab)
		at, err := browser.Eval[string](p, `document.activeElement.closest("`+within+`") ? document.activeElement.innerText : ""`)
		s.ok(err)
		if strings.Contains(at, word) {
			return
		}
	}
	s.Fatalf("Tab does not lead to %s in %s", word, within)
}

// click clicks the first button that begins with the word: in the open dialog, otherwise on the page.
func (s *stage) click(p *browser.Page, word string) {
	s.Helper()
	s.ok(p.Click(`[...document.querySelectorAll(document.querySelector("dialog") ? "dialog button" : "#main button")]` +
		`.find(b => b.innerText.trim().startsWith("` + word + `") && !b.disabled)`))
}

// fill enters text into the field of the open dialog whose label begins with label.
func (s *stage) fill(p *browser.Page, label, text string) {
	s.Helper()
	s.ok(p.Enter(labelled("dialog label", label), text))
}

// labelled returns the script of the field whose label matches a selector and begins with a text.
func labelled(selector, label string) string {
	return `document.getElementById([...document.querySelectorAll("` + selector + `")].find(l => l.innerText.startsWith("` + label + `"))` +
		`?.htmlFor ?? "")`
}

// take waits for a result of a search that contains a text, and selects it.
func (s *stage) take(p *browser.Page, text string) {
	s.Helper()
	s.ok(p.Act(`[...document.querySelectorAll(document.querySelector("dialog") ? "dialog .hit" : ".hit")]`+
		`.find(h => h.innerText.includes("`+text+`"))`,
		`e.dispatchEvent(new MouseEvent("mousedown", {bubbles: true, cancelable: true}))`))
}

// TestKeyboardAlone uses only the keyboard to find an address, change it with a preview, and undo the change.
func TestKeyboardAlone(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.AwaitStill())
	s.press(p, "/")
	s.ok(p.Wait("document.activeElement.getAttribute('role') === 'combobox'"))
	s.press(p, "10.0.0.9")
	s.ok(p.Wait("document.querySelector('.hit.chosen')?.innerText.includes('10.0.0.9')"))
	s.press(p, kb.Enter)
	s.ok(p.Wait("document.querySelector('h1')?.innerText === '10.0.0.9'"))
	s.tabTo(p, "Change", ".head")
	s.press(p, kb.Enter)
	s.ok(p.Wait("document.activeElement.name === 'name'"))
	_, err := browser.Eval[any](p, "document.activeElement.select()")
	s.ok(err)
	s.press(p, "by-keyboard")
	s.ok(p.Text("1 changed"))
	if got := s.api("GET", "/api/v2/addresses/"+s.id("addresses", "address:'10.0.0.9'"), "")["name"]; got == "by-keyboard" {
		t.Error("it was made before it was applied")
	}
	s.press(p, kb.Enter)
	s.ok(p.Wait("document.querySelector('.toast button')?.innerText.includes('Undo')"))
	s.id("addresses", "name:'by-keyboard'")
	s.tabTo(p, "Undo", ".toasts")
	s.press(p, kb.Enter)
	s.ok(p.Text("Undone."))
	if n := s.api("GET", "/api/v2/addresses?total=true&filter=name:%27by-keyboard%27", "")["totalCount"]; n != 0.0 {
		t.Errorf("%v addresses are still called so", n)
	}
	// Enter works before the search has found the result.
	s.press(p, "/")
	s.ok(p.Wait("document.activeElement.getAttribute('role') === 'combobox'"))
	s.press(p, "10.0.0.12", kb.Enter)
	s.ok(p.Wait("document.querySelector('h1')?.innerText === '10.0.0.12'"))
	s.ok(p.Wait("document.title === '10.0.0.12 · Portolan'"))
	// A service point is found by a part of its name.
	s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"north-mast"}`)
	s.press(p, "/")
	s.ok(p.Wait("document.activeElement.getAttribute('role') === 'combobox'"))
	s.press(p, "TH-MA", kb.Enter)
	s.ok(p.Wait("document.querySelector('h1')?.innerText === 'north-mast'"))
	s.ok(p.Wait("location.search === ''"))
	// The search text is in the URL. Reloading the page restores it, and closing the search removes it.
	s.press(p, "/")
	s.ok(p.Wait("document.activeElement.getAttribute('role') === 'combobox'"))
	s.press(p, "10.0.0.9")
	s.ok(p.Wait("location.search === '?search=10.0.0.9'"))
	_, err = browser.Eval[any](p, "setTimeout(() => location.reload()), window.before = true")
	s.ok(err)
	s.ok(p.Wait("!window.before && document.querySelector('[role=combobox]')?.value === '10.0.0.9'"))
	s.ok(p.Wait("document.querySelector('.hit.chosen')?.innerText.includes('10.0.0.9')"))
	s.press(p, kb.Escape)
	s.ok(p.Wait("location.search === '' && !document.querySelector('dialog')"))
}

// TestForms checks that forms show lists and user-defined fields as fields, not as JSON.
func TestForms(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	s.api("POST", "/api/v2/userDefinedFieldDefinitions", `{"name":"rack","displayName":"Rack","dataType":"INTEGER","resourceType":"IPv4Network"}`)
	s.api("POST", "/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","name":"guests","range":"10.0.0.100-10.0.0.199"}`)
	p := s.open()
	fill, click := func(label, text string) { t.Helper(); s.fill(p, label, text) }, func(word string) { t.Helper(); s.click(p, word) }
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.AwaitStill())
	click("Change")
	click("All ")
	fill("Rack", "42")
	click("Apply now")
	s.ok(p.Wait("document.querySelector('.toast button')?.innerText.includes('Undo')"))
	if got := s.api("GET", "/api/v2/networks/"+network, "")["userDefinedFields"]; fmt.Sprint(got) != "map[rack:42]" {
		t.Errorf("its own fields are %v", got)
	}
	// Undo despite later changes, after a preview.
	s.api("PATCH", "/api/v2/networks/"+network, `{"userDefinedFields":{"rack":43}}`)
	s.ok(p.Go("/ui/networks/" + network + "/transactions"))
	s.ok(p.AwaitStill())
	s.ok(p.Click(`document.querySelectorAll("#main button[aria-label^='Undo: ']")[1]`))
	click("Preview undo despite later changes")
	s.ok(p.Text("1 changed"))
	click("Undo despite later changes")
	s.ok(p.Text("Undone."))
	if got := s.api("GET", "/api/v2/networks/"+network, "")["userDefinedFields"]; fmt.Sprint(got) != "map[rack:<nil>]" {
		t.Errorf("the undo despite later changes restored %v", got)
	}
	dhcp := s.id("ranges", "name:'guests'")
	s.ok(p.Go("/ui/ranges/" + dhcp))
	s.ok(p.AwaitStill())
	click("Change")
	fill("Exclusion ranges", "10.0.0.110-10.0.0.119\n10.0.0.130-10.0.0.139")
	click("Apply now")
	s.ok(p.Wait("document.querySelector('.toast button')?.innerText.includes('Undo')"))
	if got := s.api("GET", "/api/v2/ranges/"+dhcp, "")["exclusionRanges"]; fmt.Sprint(got) != "[10.0.0.110-10.0.0.119 10.0.0.130-10.0.0.139]" {
		t.Errorf("it excludes %v", got)
	}
	// An object in a list: a right with another level for a type.
	s.api("POST", "/api/v2/users", `{"name":"carol","email":"carol@example.net","password":"a long password","securityPrivilege":"NO_ACCESS","historyPrivilege":"HIDE","accessType":"API"}`)
	s.ok(p.Go("/ui/accessRights"))
	s.ok(p.AwaitStill())
	click("New")
	fill("Access level", "VIEW")
	s.ok(p.Click(`[...document.querySelectorAll("dialog .covers label")].find(l => l.innerText.trim() === "everything")`))
	fill("User or group", "carol")
	s.take(p, "carol")
	click("Add one")
	s.ok(p.Enter(labelled("dialog .members label", "Access level"), "FULL"))
	fill("Resource type", "IPv4Network")
	s.ok(p.Text("You cannot undo this."))
	click("Apply now")
	s.ok(p.Wait(`!document.querySelector("dialog") && document.querySelector(".toast") && ` +
		`!document.querySelector(".toasts").innerText.includes("Undo")`))
	list := s.api("GET", "/api/v2/accessRights", "")["data"]
	if text := fmt.Sprint(list); !strings.Contains(text, "accessLevel:FULL") || !strings.Contains(text, "resourceType:IPv4Network") {
		t.Errorf("the rights are %v", list)
	}
}

// TestColumns checks that user-defined fields appear on pages and as optional columns of tables. The selected columns are in the URL and
// are remembered.
func TestColumns(t *testing.T) {
	s := start(t)
	network, address := s.id("networks", "range:'10.0.0.0/24'"), s.id("addresses", "address:'10.0.0.2'")
	for _, d := range []string{`"name":"owner","displayName":"Belongs to","dataType":"TEXT"`, `"name":"ticket","displayName":"Ticket","dataType":"URL"`} {
		s.api("POST", "/api/v2/userDefinedFieldDefinitions", `{`+d+`,"resourceType":"IPv4Address"}`)
	}
	s.api("PATCH", "/api/v2/addresses/"+address, `{"userDefinedFields":{"owner":"pilots","ticket":"https://tickets.example.net/7","free":"as ever"}}`)
	p := s.open()
	s.ok(p.Go("/ui/addresses/" + address))
	for _, text := range []string{"Belongs to", "pilots", "as ever"} {
		s.ok(p.Text(text))
	}
	s.ok(p.Wait(`document.querySelector("#main a[href='https://tickets.example.net/7']")?.rel.includes("noopener")`))
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Text("crane-1-1-1"))
	toggle := func(label string) {
		t.Helper()
		s.ok(p.Click(`[...document.querySelectorAll("details.columns label")].find(l => l.textContent.trim() === "` + label + `")` +
			`?.querySelector("input")`))
	}
	heads := `[...document.querySelectorAll("#main [role=columnheader]")].map(h => h.innerText.trim()).filter(x => x && x !== "Actions").join()`
	toggle("Belongs to")
	s.ok(p.Wait(heads + `.includes("Belongs to") && new URLSearchParams(location.search).get("columns").endsWith("userDefinedFields.owner")`))
	s.ok(p.Text("pilots"))
	toggle("Location")
	s.ok(p.Wait(`!` + heads + `.includes("Location")`))
	s.ok(p.Go("/ui/networks/" + network)) // a later visit
	s.ok(p.Wait(heads + ` === "Address,Name,State,Hardware,Free after this,Belongs to"`))
	s.ok(p.Go("/ui/networks/" + network + "?columns=address,userDefinedFields.ticket,nonsense")) // a link from another user
	s.ok(p.Wait(heads + ` === "Address,Ticket"`))
	s.ok(p.Click(`document.querySelector("details.columns:not(.saved-filters) summary")`))
	s.click(p, "Default columns")
	s.ok(p.Wait(heads + ` === "Address,Name,State,Hardware,Location,Free after this" && !location.search`))
	s.ok(p.Go("/ui/addresses?columns=address,userDefinedFields.owner&filter=userDefinedFields.owner:'pilots'"))
	s.ok(p.Text("pilots"))
	s.ok(p.Wait(heads + ` === "Address,Belongs to"`))
	// The tree of the space and the records of a zone have columns as well. Free space has no value.
	s.api("POST", "/api/v2/userDefinedFieldDefinitions", `{"name":"vlan","displayName":"VLAN","dataType":"INTEGER","resourceType":"IPv4Network"}`)
	s.api("PATCH", "/api/v2/networks/"+network, `{"userDefinedFields":{"vlan":4021}}`)
	s.ok(p.Go("/ui/space?open=" + s.id("blocks", "range:'10.0.0.0/8'") + "." + s.id("blocks", "range:'10.0.0.0/16'")))
	s.ok(p.Text("10.0.0.0/24"))
	toggle("VLAN")
	s.ok(p.Text("4021"))
	s.ok(p.Wait(heads + ` === "Range,Name,Use,Addresses,Location,VLAN"`))
	s.ok(p.Wait(`[...document.querySelectorAll("#main button")].some(b => b.getAttribute("aria-label")?.startsWith("Create here"))`))
	s.ok(p.Go("/ui/zones/" + s.id("zones", "absoluteName:'harbour.example'") + "?columns=name,data,absoluteName&name=crane-1-1-1"))
	s.ok(p.Wait(heads + ` === "Name,Data,Absolute name"`))
	s.ok(p.Text("crane-1-1-1.harbour.example"))
}

// TestOneNetwork checks that a user with access to one network finds it in the space, with and without access to its configuration.
func TestOneNetwork(t *testing.T) {
	s := start(t)
	network, configuration := s.id("networks", "range:'10.0.0.0/24'"), s.id("configurations", "id:gt(0)")
	s.api("POST", "/api/v2/users", `{"name":"carol","email":"c@example.net","securityPrivilege":"NO_ACCESS","accessType":"GUI","password":"a long password"}`)
	right := func(at, level string) {
		s.api("POST", "/api/v2/accessRights", `{"userScope":{"id":`+s.id("users", "name:'carol'")+`},"resource":{"id":`+at+
			`},"defaultAccessLevel":"`+level+`"}`)
	}
	right(network, "FULL")
	p := s.tab()
	s.ok(p.Go("/ui/space"))
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "carol", kb.Tab, "a long password", kb.Enter)
	s.ok(p.Text("10.0.0.0/24"))
	s.ok(p.Text("You have access to parts of this configuration"))
	s.ok(p.Go("/")) // the overview shows it as well
	s.ok(p.Wait(`[...document.querySelectorAll(".card")].some(c => c.innerText.startsWith("Your networks") && c.innerText.includes("10.0.0.0/24"))`))
	for _, block := range []string{"range:'10.0.0.0/8'", "range:'2001:db8::/32'"} {
		if data, _ := s.api("GET", "/api/v2/blocks?fields=id&filter="+strings.ReplaceAll(block, "'", "%27"), "")["data"].([]any); len(data) > 0 {
			right(s.id("blocks", block), "HIDE")
		}
	}
	right(configuration, "VIEW")
	s.ok(p.Go("/ui/space"))
	s.ok(p.Wait(`document.querySelector("#main h1 + .kind, #main .kind")`))
	s.ok(p.Text("10.0.0.0/24"))
}

// TestChangeList checks that the change list survives a reload, is the same in all tabs, is applied as one change, and is deleted at
// sign-out. Secrets are not stored.
func TestChangeList(t *testing.T) {
	s := start(t)
	p, other := s.open(), s.tab()
	dialog := func(label, text, word string) {
		t.Helper()
		s.fill(p, label, text)
		s.click(p, word)
	}
	press := func(page *browser.Page, button string) {
		t.Helper()
		s.ok(page.Click(`[...document.querySelectorAll("button")].find(b => b.innerText.trim().startsWith("` + button + `") && !b.disabled)`))
	}
	network, count := s.id("networks", "range:'10.0.0.0/24'"), `document.querySelector("a.staged")?.innerText.trim()`
	s.ok(other.Go("/ui/staged"))
	s.ok(other.Text("The change list is empty."))
	// A change added during an apply stays in the list. A list that two tabs apply at the same time is applied once.
	held := `{ const f = window.fetch; window.fetch = (u, o) => { if (o?.method !== "POST" || !String(u).endsWith("/batch") || o.headers["x-portolan-dry-run"]) return f(u, o);
		window.held = true; return new Promise(done => { window.go = () => done(f(u, o)) }) } }; 0`
	next := func(page *browser.Page) {
		t.Helper()
		s.ok(page.Go("/ui/networks/" + network + "/ranges"))
		s.ok(page.AwaitStill())
	}
	next(p)
	press(p, "New")
	dialog("Range", "10.0.0.200-10.0.0.209", "Add to change list")
	s.ok(p.Go("/ui/staged"))
	s.ok(other.Go("/ui/staged"))
	s.ok(p.Text("10.0.0.200-10.0.0.209"))
	s.ok(other.Text("10.0.0.200-10.0.0.209"))
	_, err := browser.Eval[any](p, held)
	s.ok(err)
	press(p, "Apply change")
	s.ok(p.Wait("window.held"))
	press(other, "Apply change")
	for deadline := time.Now().Add(browser.Patience); ; {
		waits, err := browser.Eval[bool](other, `navigator.locks.query().then(q => q.pending.some(l => l.name === "portolan-staged"))`)
		s.ok(err)
		if waits {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the other tab does not wait for the first")
		}
	}
	third := s.tab()
	s.ok(third.Go("/ui/networks/" + network))
	s.ok(third.AwaitStill())
	press(third, "Change")
	s.ok(third.Enter(`document.querySelector("dialog [name=name]")`, "later"))
	press(third, "Add to change list")
	_, err = browser.Eval[any](p, "window.go(), 0")
	s.ok(err)
	s.ok(p.Text("All changes applied."))
	// The second tab reports that another tab applied the list. If it has not been notified yet, it shows the result of the same request.
	s.ok(other.Wait(`["in another tab", "All changes applied."].some(t => document.body.innerText.includes(t))`))
	s.ok(other.Go("/ui/staged")) // clears the notification
	s.ok(third.Wait(count + ` === "1"`))
	const made = "/ranges?total=true&filter=range:%2710.0.0.200-10.0.0.209%27"
	if n := s.api("GET", "/api/v2/networks/"+network+made, "")["totalCount"]; n != 1.0 {
		t.Errorf("%v ranges were made", n)
	}
	s.ok(third.Go("/ui/staged"))
	press(third, "Clear the list")
	third.Close()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.AwaitStill())
	press(p, "Change")
	dialog("Name", "quay", "Add to change list")
	s.ok(other.Text("quay"))
	s.ok(p.Go("/ui/networks/" + network)) // reloads the page
	s.ok(p.Wait(count + ` === "1"`))
	if got := s.api("GET", "/api/v2/networks/"+network, "")["name"]; got == "quay" {
		t.Error("a staged change was applied")
	}
	// A password is not stored outside of the page.
	ada := s.api("POST", "/api/v2/users", `{"name":"ada","email":"ada@example.net","password":"a long password","securityPrivilege":"NO_ACCESS","historyPrivilege":"HIDE","accessType":"API"}`)["id"]
	s.ok(p.Go("/ui/users/" + fmt.Sprint(ada)))
	s.ok(p.AwaitStill())
	press(p, "Change")
	dialog("Password", "hidden-from-all", "Add to change list")
	s.ok(p.Wait(count + ` === "2"`))
	if kept, err := browser.Eval[string](p, "JSON.stringify(localStorage) + JSON.stringify(sessionStorage)"); err != nil ||
		strings.Contains(kept, "hidden-from-all") || !strings.Contains(kept, "quay") {
		t.Errorf("the browser keeps %s (%v)", kept, err)
	}
	s.ok(other.Wait(count + ` === "1"`))
	press(other, "Apply change")
	s.ok(other.Text("All changes applied."))
	s.ok(p.Wait(count + ` === "1"`)) // the password's count
	if got := s.api("GET", "/api/v2/networks/"+network, "")["name"]; got != "quay" {
		t.Errorf("what was applied is %v", got)
	}
	press(other, "Undo")
	s.ok(other.Text("Undone."))
	// Another user does not see the list.
	s.ok(other.Act(`document.querySelector(".account")`, `localStorage.setItem("portolan-staged-1", "[]"); e.click()`))
	press(other, "Sign out of all tabs")
	s.ok(other.Wait("document.querySelector('.signin')"))
	if kept, err := browser.Eval[string](other, "JSON.stringify(localStorage)"); err != nil || strings.Contains(kept, "staged") {
		t.Errorf("after signing out the browser keeps %s (%v)", kept, err)
	}
}

// TestStagedBelowStaged checks that a change can be added below a block in the change list, and is removed together with the block.
func TestStagedBelowStaged(t *testing.T) {
	s := start(t)
	p := s.open()
	fill, press := func(label, text string) { t.Helper(); s.fill(p, label, text) }, func(word string) { t.Helper(); s.click(p, word) }
	count := `document.querySelector("a.staged")?.innerText.trim()`
	for _, name := range []string{"goes", "stays"} {
		s.ok(p.Go("/ui/space"))
		s.ok(p.AwaitStill())
		press("New block")
		fill("Range", map[string]string{"goes": "172.24.0.0/16", "stays": "172.25.0.0/16"}[name])
		fill("Name", name)
		press("Add to change list")
	}
	s.ok(p.Go("/ui/staged"))
	for i, size := range []string{"/24", "/26"} {
		s.ok(p.Click(fmt.Sprintf(`[...document.querySelectorAll("button")].filter(b => b.innerText.trim() === "Add a resource in it")[%d]`, i)))
		fill("Range", size)
		fill("Name", "inside"+size)
		press("Add to change list")
		s.ok(p.Wait(count + fmt.Sprintf(` === "%d"`, 3+i)))
	}
	// Removing the block from the list removes the changes below it.
	s.ok(p.Click(`[...document.querySelectorAll(".staged-list li")].find(l => l.innerText.includes("172.24"))` +
		`?.querySelector("button[aria-label^='Remove from the list']")`))
	s.ok(p.Wait(count + ` === "2"`))
	press("Apply all 2")
	s.ok(p.Text("All changes applied."))
	network := s.api("GET", "/api/v2/networks/"+s.id("networks", "name:'inside/26'"), "")
	if network["range"] != "172.25.0.0/26" {
		t.Errorf("the network is %v", network["range"])
	}
	if n := s.api("GET", "/api/v2/blocks?total=true&filter=name:%27goes%27", "")["totalCount"]; n != 0.0 {
		t.Error("a change that was removed from the list was applied")
	}
}

// TestMap zooms into a map, drags it, and opens it down to single addresses. Each state has its own URL.
func TestMap(t *testing.T) {
	s := start(t)
	block := s.id("blocks", "range:'10.0.0.0/8'")
	p := s.open()
	s.ok(p.Go("/ui/blocks/" + block + "/map?cells=4096"))
	s.ok(p.Wait(`document.querySelector("canvas")?.dataset.drawn === "4096"`))
	do := func(script string) {
		t.Helper()
		_, err := browser.Eval[any](p, script+";0")
		s.ok(err)
	}
	press := func(word string) {
		t.Helper()
		s.ok(p.Click(`[...document.querySelectorAll("button")].find(b => b.innerText === "` + word + `")`))
	}
	press("Zoom in")
	s.ok(p.Wait(`new URLSearchParams(location.search).get("view")?.startsWith("2,")`))
	s.ok(p.Wait(`document.querySelector("canvas.drags")`))
	before, err := browser.Eval[string](p, `new URLSearchParams(location.search).get("view")`)
	s.ok(err)
	do(`{ const c = document.querySelector("canvas"), b = c.getBoundingClientRect(); c.setPointerCapture = () => {}; const at = (type, n) => c.dispatchEvent(new PointerEvent(type,
		{bubbles: true, pointerId: 1, button: 0, clientX: b.left + b.width / 2 + n, clientY: b.top + b.height / 2 + n})); at("pointerdown", 0); at("pointermove", 60); at("pointermove", 120) }`)
	do(`new Promise(requestAnimationFrame)`)
	s.ok(p.Act(`document.querySelector("canvas")`, `e.dispatchEvent(new PointerEvent("pointerup", {bubbles: true, pointerId: 1, button: 0}))`))
	s.ok(p.Wait(`new URLSearchParams(location.search).get("view")?.startsWith("2,") && new URLSearchParams(location.search).get("view") !== "` + before + `"`))
	press("Zoom out")
	s.ok(p.Wait(`!new URLSearchParams(location.search).has("view")`))
	s.ok(p.Act(`document.querySelector("canvas")`, "e.focus()"))
	s.press(p, kb.Home, kb.Enter) // opens the first cell, 10.0.0.0/20
	s.ok(p.Wait(`document.querySelector("canvas")?.dataset.drawn === "4096" && new URLSearchParams(location.search).get("prefix") === "10.0.0.0/20"`))
	s.press(p, kb.Home)
	s.ok(p.Text("each cell is a /32, one address"))
	press("Parent range")
	s.ok(p.Wait(`new URLSearchParams(location.search).get("prefix") === "10.0.0.0/16"`))
	press("Next range")
	s.ok(p.Wait(`new URLSearchParams(location.search).get("prefix") === "10.1.0.0/16"`))
	do("history.back()")
	s.ok(p.Wait(`new URLSearchParams(location.search).get("prefix") === "10.0.0.0/16"`))
}

// TestLiveAndPlaces checks that changes of other users appear within a second, and that the browser's back button restores the page.
func TestLiveAndPlaces(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Wait("document.querySelector('.live.live')"))
	s.ok(p.Text("crane-1-1-1"))
	s.api("PATCH", "/api/v2/addresses/"+s.id("addresses", "address:'10.0.0.2'"), `{"name":"changed-elsewhere"}`)
	start := time.Now()
	s.ok(p.Text("changed-elsewhere"))
	t.Logf("shown after %s", time.Since(start).Round(time.Millisecond))

	// All tabs share one stream.
	for range 7 {
		tab := s.tab()
		s.ok(tab.Go("/ui/space"))
		s.ok(tab.Wait("document.querySelector('.live.live')"))
	}
	n := s.m.REST.Followers()
	for deadline := time.Now().Add(browser.Patience); n != 1 && time.Now().Before(deadline); n = s.m.REST.Followers() {
		time.Sleep(10 * time.Millisecond) // streams of pages that were left end after a moment
	}
	if n != 1 {
		t.Errorf("eight tabs hold %d streams", n)
	}

	const filtered = "document.querySelectorAll('.grid-body .row').length > 0 && " +
		"[...document.querySelectorAll('.grid-body .row')].every(r => r.innerText.includes('scale'))"
	// A filter entered on the page and a column clicked for sorting take effect.
	s.ok(p.Go("/ui/networks"))
	s.ok(p.AwaitStill())
	s.press(p, kb.Tab, kb.Tab)
	s.ok(p.Act("document.querySelector('.filter input')", "e.focus()"))
	s.press(p, "floor 12", kb.Enter)
	s.ok(p.Wait("document.querySelectorAll('.grid-body .row').length === 10 && " +
		"[...document.querySelectorAll('.grid-body .row')].every(r => r.innerText.includes('floor 12'))"))
	s.ok(p.Click("[...document.querySelectorAll('.sort')].find(b => b.innerText.startsWith('Name'))"))
	s.ok(p.Wait("document.querySelector('.grid-body .row')?.innerText.includes('Customs 4 floor 12')"))

	// Navigation: a filter, an opened page, back and forward, and a reload.
	s.ok(p.Go("/ui/networks/" + network + "?filter=" + "name:contains('scale')"))
	s.ok(p.Wait(filtered))
	s.ok(p.Click("document.querySelector('.grid-body a')"))
	s.ok(p.Wait("location.pathname.startsWith('/ui/addresses/') && document.querySelector('h1')?.innerText.startsWith('10.0.0.')"))
	_, err := browser.Eval[any](p, "history.back()")
	s.ok(err)
	s.ok(p.Wait("location.search.includes('scale') && " + filtered))

	// The page reports that the manager is gone.
	s.ok(p.Wait("document.querySelector('.live.live')"))
	s.ok(s.end())
	start = time.Now()
	s.ok(p.Wait("document.querySelector('.live.stale')"))
	t.Logf("stale after %s", time.Since(start).Round(time.Millisecond))
}

// TestConfigurationInURL checks that the URL contains the selected configuration. A pasted URL selects it, and Back selects the previous
// one.
func TestConfigurationInURL(t *testing.T) {
	s := start(t)
	first := s.id("blocks", "range:'10.0.0.0/8'")
	other := fmt.Sprint(s.api("POST", "/api/v2/configurations", `{"name":"lab"}`)["id"])
	s.api("POST", "/api/v2/configurations/"+other+"/blocks", `{"type":"IPv4Block","range":"198.18.0.0/15"}`)
	p := s.open()
	s.ok(p.Go("/ui/space?configuration=" + other))
	s.ok(p.Text("198.18.0.0/15"))
	s.ok(p.Wait(`document.querySelector(".configuration select").value === "` + other + `"`))
	choose := func(n int) {
		s.ok(p.Act(`document.querySelector(".configuration select")`,
			fmt.Sprintf(`e.selectedIndex = %d; e.dispatchEvent(new Event("change", {bubbles: true}))`, n)))
	}
	choose(0)
	s.ok(p.Text("10.0.0.0/8"))
	s.ok(p.Wait(`!location.search.includes("configuration=` + other + `") && location.search.includes("configuration=")`))
	_, err := browser.Eval[any](p, "history.back()")
	s.ok(err)
	s.ok(p.Text("198.18.0.0/15"))
	s.ok(p.Go("/ui/blocks/" + first)) // switching on a block's page leads to the space of the selected configuration
	s.ok(p.Text("10.0.0.0/8"))
	choose(1)
	s.ok(p.Wait(`location.pathname === "/ui/space" && location.search === "?configuration=` + other + `"`))
	s.ok(p.Go("/ui/find?in=" + first)) // other parameters are kept
	s.ok(p.Wait(`location.search === "?in=` + first + `&configuration=` + other + `"`))
	s.ok(p.Go("/ui/names"))
	s.ok(p.Wait(`location.search === "?configuration=` + other + `"`))
}

// TestBulkSpreadsheet imports a table with the headers of a spreadsheet: the columns are guessed, each row finds its network, and one
// message names the rows of a cause.
func TestBulkSpreadsheet(t *testing.T) {
	s := start(t)
	block := s.id("blocks", "range:'10.0.0.0/8'")
	for _, n := range []string{"10.210.0.0/24", "10.210.1.0/24"} {
		s.api("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"`+n+`"}`)
	}
	text := "IP Address,Hostname,MAC,Status,Owner\n"
	for i := range 60 {
		text += fmt.Sprintf("10.210.%d.%d,host-%d,00:11:22:33:55:%02x,Active,me\n", i%3, 10+i, i, i)
	}
	p := s.open()
	s.ok(p.Go("/ui/bulk"))
	s.ok(p.AwaitStill())
	s.ok(p.Enter(`document.querySelector("#rows")`, text))
	for i, field := range []string{"address", "name", "macAddress.address", "state", ""} {
		s.ok(p.Wait(fmt.Sprintf(`document.querySelector("select#col%d")?.value === %q`, i, field)))
	}
	click := func(word string) { t.Helper(); s.click(p, word) }
	click("Preview all")
	s.ok(p.Text("20 errors. Nothing will be applied."))
	s.ok(p.Text("20 rows: 3, 6, 9"))
	s.ok(p.Wait(`document.querySelectorAll(".causes li").length === 1`))
	click("Download the rows with errors")
	edit := func(change string) {
		s.ok(p.Act(`document.querySelector("#rows")`, `e.value = e.value`+change+`; e.dispatchEvent(new Event("input", {bubbles: true}))`))
		click("Preview all")
	}
	edit(`.replaceAll("10.210.2.", "10.210.1.") + "10.210.0.10,again,,Active,me\n"`) // a key that the file repeats
	s.ok(p.Wait(`/row 1 is about the same IPv4Address.*\(row 61\)/s.test(document.querySelector(".causes")?.innerText)`))
	edit(`.replace(/.*again.*\n/, "")`)
	s.ok(p.Text("60 new"))
	click("Apply all")
	s.ok(p.Text("60 created"))
	found := s.api("GET", "/api/v2/addresses?total=true&limit=1&filter=name:contains(%27host-%27)", "")
	if n := found["totalCount"]; n != 60.0 {
		t.Errorf("%v addresses were created", n)
	}
}

// TestBulk pastes a thousand rows. Each fault is shown at its cell and nothing is created. After corrections all rows are created, and one
// Undo deletes them.
func TestBulk(t *testing.T) {
	s := start(t)
	block := s.id("blocks", "range:'10.0.0.0/8'")
	s.api("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.200.0.0/16","name":"bulk"}`)
	bulk := s.id("networks", "name:'bulk'")
	rows := func(bad bool) string {
		text := "type,name,address,state\n"
		for i := range 1000 {
			address := fmt.Sprintf("10.200.%d.%d", 1+i/200, 1+i%200)
			if bad && (i == 7 || i == 100 || i == 150) {
				address = "10.201.0.1"
			}
			text += fmt.Sprintf("IPv4Address,row-%d,%s,STATIC\n", i, address)
		}
		return text
	}
	p := s.open()
	s.ok(p.Go("/ui/bulk"))
	s.ok(p.AwaitStill())
	fill := func(selector, text string) { t.Helper(); s.ok(p.Enter(`document.querySelector("`+selector+`")`, text)) }
	click := func(word string) { t.Helper(); s.click(p, word) }
	count := func() any {
		return s.api("GET", "/api/v2/networks/"+bulk+"/addresses?total=true&limit=1&filter=state:%27STATIC%27", "")["totalCount"]
	}
	fill(".field input.mono", "10.200.0.0/16")
	s.ok(p.Text("Rows are imported into networks/" + bulk))
	fill("#rows", rows(true))
	click("Preview all")
	s.ok(p.Text("3 errors. Nothing will be applied.")) // a slow dry run tries at least 200 rows
	for _, row := range []string{"8", "101", "151"} {
		s.ok(p.Wait(`[...document.querySelectorAll(".sheet tbody tr")].some(r => r.cells[0].innerText === "` + row +
			`" && r.querySelector("td.faulty")?.innerText === "10.201.0.1")`))
	}
	if n := count(); n != 0.0 {
		t.Errorf("%v rows were made", n)
	}
	// All kinds of faults are reported together: in one row, with existing resources, and between rows.
	fill("#rows", "type,name,address,state,location\nIPv4Address,a,10.200.0.1,ODD,\nIPv4Address,b,10.200.0.2,STATIC,QQ\n"+
		"IPv4Address,c,10.200.0.3,STATIC,\n"+
		"IPv4Address,d,10.200.0.3,STATIC,\nIPv4Address,e,10.201.0.1,STATIC,\nIPv4Address,f,nonsense,STATIC,\n")
	click("Preview all")
	s.ok(p.Text("5 errors. Nothing will be applied."))
	for _, cell := range []string{"ODD", "QQ", "10.200.0.3", "10.201.0.1", "nonsense"} {
		s.ok(p.Wait(`[...document.querySelectorAll(".sheet td.faulty")].some(c => c.innerText === "` + cell + `")`))
	}
	fill("#rows", rows(false))
	click("Preview all")
	s.ok(p.Text("rows are valid: "))
	click("Apply all")
	s.ok(p.Text("rows created."))
	if n := count(); n != 1000.0 {
		t.Errorf("%v rows were made", n)
	}
	s.ok(p.Click("document.querySelector('.toast button')"))
	s.ok(p.Text("Undone."))
	if n := count(); n != 0.0 {
		t.Errorf("%v rows are left", n)
	}
	// A location is entered by its code. An unknown code is marked at its cell.
	fill(".field input.mono", "10.200.0.0/16")
	fill("#rows", "name,address,state,location\nat-home,10.200.0.9,STATIC,NO\nlost,10.200.0.10,STATIC,QQ\n")
	click("Preview all")
	s.ok(p.Wait(`[...document.querySelectorAll(".sheet td.faulty")].some(c => c.innerText === "QQ")`))
	s.ok(p.Text("No location has the code QQ."))
	fill("#rows", "name,address,state,location\nat-home,10.200.0.9,STATIC,NO\n")
	click("Preview all")
	s.ok(p.Text("All rows are valid"))
	click("Apply all")
	s.ok(p.Text("1 row created."))
	s.id("addresses", "name:'at-home'%20and%20location.code:'NO'")
	// Exported rows can be changed and imported again. A fault is marked at its cell as well.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.m.URL()+"/api/v2/networks/"+s.id("networks", "range:'10.0.0.0/24'")+
		"/addresses?orderBy=address&limit=5", nil)
	s.ok(err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Accept", "text/csv")
	answer, err := http.DefaultClient.Do(r)
	s.ok(err)
	exported, err := io.ReadAll(answer.Body)
	s.ok(err)
	s.ok(answer.Body.Close())
	fill(".field input.mono", "10.0.0.0/24")
	fill("#rows", strings.Replace(strings.Replace(string(exported), "crane-1-1-1", "crane-from-csv", 1), "STATIC", "NOWHERE", 1))
	click("Preview all")
	s.ok(p.Wait(`[...document.querySelectorAll(".sheet td.faulty")].some(c => c.innerText === "NOWHERE")`))
	fill("#rows", strings.Replace(string(exported), "crane-1-1-1", "crane-from-csv", 1))
	click("Preview all")
	s.ok(p.Text("0 new, 1 changed"))
	click("Apply all")
	s.ok(p.Text("0 created, 1 updated."))
	s.id("addresses", "name:'crane-from-csv'")
}

// TestPlainPagesFitAPhone checks that the HTML pages of the API fit a phone.
func TestPlainPagesFitAPhone(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Size(390, 800, false))
	for _, path := range []string{"/api/v2", "/api/v2/networks", "/api/v2/networks/" + s.id("networks", "range:'10.0.0.0/24'")} {
		s.ok(p.Go(path))
		if wide, err := browser.Eval[float64](p, "document.documentElement.scrollWidth"); err != nil || wide > 390 {
			t.Errorf("%s is %v px wide (%v)", path, wide, err)
		}
	}
}

// TestChosenTabIsInSight checks that the selected tab is visible on a phone, where not all tabs fit.
func TestChosenTabIsInSight(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Size(390, 800, false))
	s.ok(p.Go("/ui/zones/" + s.id("zones", "absoluteName:'harbour.example'") + "?tab=deployed"))
	s.ok(p.Wait(`document.querySelector("#main [role=tab][aria-selected=true]") !== null`))
	s.ok(p.Wait(`(() => { const tab = document.querySelector("#main [role=tab][aria-selected=true]")
		const all = tab.parentElement.getBoundingClientRect(), one = tab.getBoundingClientRect()
		return tab.innerText === "Deployed" && one.left >= all.left - 1 && one.right <= all.right + 1 && tab.parentElement.scrollLeft > 0 })()`))
}

// TestViewersSeeNoChangeButtons checks that a user with view rights sees no buttons for changes that would be rejected.
func TestViewersSeeNoChangeButtons(t *testing.T) {
	s := start(t)
	s.api("POST", "/api/v2/users", `{"name":"auditor","email":"a@example.net","securityPrivilege":"NO_ACCESS","accessType":"GUI","password":"a long password"}`)
	s.api("POST", "/api/v2/accessRights", `{"userScope":{"id":`+s.id("users", "name:'auditor'")+`},"defaultAccessLevel":"VIEW"}`)
	p := s.tab()
	s.ok(p.Go("/ui/networks/" + s.id("networks", "range:'10.0.0.0/24'")))
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "auditor", kb.Tab, "a long password", kb.Enter)
	s.ok(p.Text("crane-1-1-1"))
	s.ok(p.Wait(`![...document.querySelectorAll("#main button:not([role=tab])")].some(b => /^(Change|More|Assign|Delete)/.test(b.innerText + b.ariaLabel))`))
	for _, path := range []string{"/ui/users", "/ui/fleet", "/ui/names", "/ui/servers", "/ui/accessRights",
		"/ui/networks/" + s.id("networks", "range:'10.0.0.0/24'") + "/ranges"} {
		s.ok(p.Go(path))
		s.ok(p.AwaitStill())
		s.ok(p.Wait(`![...document.querySelectorAll("#main button:not([role=tab])")].some(b => /^(New|Deploy|Add$|Create)/.test(b.innerText))`))
	}
	s.ok(p.Go("/ui/transactions"))
	s.ok(p.Text("You do not have permission to view this page."))
	s.ok(p.Text("history privilege"))
	s.ok(p.Go("/ui/space"))
	s.ok(p.Text("10.0.0.0/8"))
}

// TestApprovals checks that the form announces a required approval before the change is sent. The approver sees the number of requests next
// to Approvals, reviews the request field by field, and approves it. A request cannot be undone.
func TestApprovals(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	configuration := fmt.Sprintf("%.0f", s.api("GET", "/api/v2/networks/"+network, "")["configuration"].(map[string]any)["id"])
	s.api("POST", "/api/v2/users", `{"name":"junior","email":"j@example.net","securityPrivilege":"NO_ACCESS","accessType":"GUI","password":"a long password"}`)
	s.api("POST", "/api/v2/accessRights", `{"userScope":{"id":`+s.id("users", "name:'junior'")+`},"resource":{"id":`+configuration+
		`},"defaultAccessLevel":"FULL","workflowLevel":"RECOMMEND"}`)
	p := s.tab()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "junior", kb.Tab, "a long password", kb.Enter)
	ask := func() {
		s.ok(p.AwaitStill())
		s.click(p, "Change")
		s.fill(p, "Name", "renamed by junior")
		s.ok(p.Text("This change needs an approval"))
		s.ok(p.Wait(`document.querySelector("dialog .operations ins")?.innerText === "renamed by junior"`))
		s.click(p, "Request approval")
		s.ok(p.Text("Sent for approval"))
		s.ok(p.Wait(`document.querySelector('.side a[href="/ui/workflowRequests"] .count')?.innerText === "1"`))
	}
	ask()
	if got := s.api("GET", "/api/v2/networks/"+network, "")["name"]; got == "renamed by junior" {
		t.Error("the change was applied without an approval")
	}

	s.ok(p.Go("/ui/workflowRequests"))
	s.ok(p.Text("You cannot approve your own request."))
	s.ok(p.Wait(`![...document.querySelectorAll("#main button")].some(b => b.innerText.startsWith("Approve"))`))
	s.api("PATCH", "/api/v2/workflowRequests/"+s.id("workflowRequests", "state:'PENDING'"), `{"state":"DENIED"}`)
	_, err := browser.Eval[any](p, `window.dispatchEvent(new Event("focus"))`) // the requester may not follow the change feed
	s.ok(err)
	s.ok(p.Text("No requests are waiting for approval."))
	s.ok(p.Go("/ui/networks/" + network))
	ask()

	approver := *s // another browser: the tabs of one share their session
	approver.b = profile(t)
	q := approver.open()
	s.ok(q.Wait(`document.querySelector('.side a[href="/ui/workflowRequests"] .count')?.innerText === "1"`))
	s.ok(q.Wait(`document.querySelector("#main .waiting")?.innerText.includes("junior")`))
	s.ok(q.Go("/ui/transactions"))
	s.ok(q.Text("Asked for: "))
	s.ok(q.Wait(`![...document.querySelectorAll("#main button[aria-label^='Undo: ']")].some(b => b.ariaLabel.includes("Asked for"))`))
	request := s.id("workflowRequests", "state:'PENDING'")
	s.ok(q.Go("/ui/workflowRequests/" + request))
	s.ok(q.Wait(`document.querySelector("#main .field-changes ins")?.innerText === "renamed by junior"`))
	s.ok(q.Go("/ui/workflowRequests"))
	s.ok(q.Wait(`document.querySelector("#main .field-changes")?.innerText.match(/Name\s+.*\s+renamed by junior/)`))
	s.accessible(q, "a request on /ui/workflowRequests")
	s.ok(q.Enter(`document.querySelector("#comment-`+request+`")`, "as planned"))
	s.click(q, "Approve")
	s.ok(q.Text("Approved and applied."))
	s.ok(q.Wait(`!document.querySelector('.side a[href="/ui/workflowRequests"] .count')`))
	if got := s.api("GET", "/api/v2/networks/"+network, "")["name"]; got != "renamed by junior" {
		t.Errorf("the network is called %v", got)
	}
	s.ok(q.Go("/ui/workflowRequests?state=decided"))
	s.ok(q.Text("as planned"))
	// A field that was changed after the request has its current value and a mark, and the approval is refused.
	s.api("PATCH", "/api/v2/networks/"+network, `{"name":"quay"}`)
	s.ok(p.Go("/ui/networks/" + network))
	ask()
	s.ok(q.Go("/ui/workflowRequests"))
	s.ok(q.Wait(`document.querySelector("#main .field-changes del")?.innerText === "quay"`))
	s.api("PATCH", "/api/v2/networks/"+network, `{"name":"renamed meanwhile"}`)
	s.ok(q.Wait(`document.querySelector("#main .field-changes del")?.innerText === "renamed meanwhile"`)) // live
	s.ok(q.Text("changed since the request, was quay"))
	s.click(q, "Approve")
	s.ok(q.Text("the request is outdated: name of"))
}

// TestApprovalOfSelectedRows checks that changes of several rows that need an approval become one request each, and that a host record for
// a new address cannot be requested with it.
func TestApprovalOfSelectedRows(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	configuration := fmt.Sprintf("%.0f", s.api("GET", "/api/v2/networks/"+network, "")["configuration"].(map[string]any)["id"])
	s.api("POST", "/api/v2/users", `{"name":"junior","email":"j@example.net","securityPrivilege":"NO_ACCESS","accessType":"GUI","password":"a long password"}`)
	s.api("POST", "/api/v2/accessRights", `{"userScope":{"id":`+s.id("users", "name:'junior'")+`},"resource":{"id":`+configuration+
		`},"defaultAccessLevel":"FULL","workflowLevel":"RECOMMEND"}`)
	p := s.tab()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Wait("document.activeElement.name === 'username'"))
	s.press(p, "junior", kb.Tab, "a long password", kb.Enter)
	s.ok(p.Text("crane-1-1-1"))
	for range 2 {
		s.gridKey(p, "ArrowDown", ", shiftKey: true")
	}
	s.ok(p.Text("3 rows selected"))
	s.ok(p.Click(`[...document.querySelectorAll(".selection button")].find(b => b.innerText.trim() === "Change")`))
	s.fill(p, "Names", "rack7-srv-[08-10]")
	s.ok(p.Text("3 changes need an approval before they are applied. Each is a request of its own."))
	s.ok(p.Wait(`document.querySelector("dialog .operations")?.innerText.includes("rack7-srv-10")`))
	s.ok(p.Wait(`![...document.querySelectorAll("dialog button")].some(b => b.innerText.includes("Add to change list"))`))
	s.click(p, "Request approval")
	s.ok(p.Text("Sent 3 changes for approval."))
	pending := "/api/v2/workflowRequests?total=true&filter=state:%27PENDING%27"
	if n := s.api("GET", pending, "")["totalCount"]; n != 3.0 {
		t.Errorf("%v requests are pending", n)
	}
	s.click(p, "Assign address")
	s.fill(p, "Names", "crane-9")
	s.fill(p, "Host records in zone", "harbour.example")
	s.take(p, "harbour.example")
	s.ok(p.Text("Assign the addresses without a zone, and create the host records once the addresses are approved."))
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button[type=submit]")].every(b => b.disabled)`))
}

// TestServicePoint changes a service point, adds a node with a new key, and changes and removes an application.
func TestServicePoint(t *testing.T) {
	s := start(t)
	point := s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pier"}`)["fleetInstanceID"].(string)
	at := "/user/api/v1/fleetInstances/" + point
	s.api("PATCH", at, `{"labels":{"site":"north","floor":"2"}}`)
	s.api("POST", at+"/applications", `{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]}}`)
	s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"breakwater"}`)
	p := s.open()
	s.ok(p.Go("/ui/fleet"))
	rows := `[...document.querySelectorAll("#main [role=row] a")].map(a => a.innerText).join(" ")`
	s.ok(p.Wait(rows + ` === "breakwater pier"`))
	for text, want := range map[string]string{"site=north": "pier", "WATER": "breakwater", "site=oslo": ""} {
		s.ok(p.Enter(`document.querySelector("form.filter input")`, text))
		s.press(p, kb.Enter)
		if want == "" {
			s.ok(p.Text("No service points match."))
		}
		s.ok(p.Wait(rows + ` === "` + want + `" && new URLSearchParams(location.search).get("find") === "` + text + `"`))
	}
	s.click(p, "Clear filter")
	s.ok(p.Wait(rows + ` === "breakwater pier"`))
	s.ok(p.Go("/ui/fleet/" + point))
	s.ok(p.Text("http-probe-service"))
	s.click(p, "Change")
	s.fill(p, "Labels", "site=south")
	s.fill(p, "Description", "by the lighthouse")
	dialog := func(word string) {
		t.Helper()
		s.ok(p.Click(`[...document.querySelectorAll("dialog button")].find(b => b.innerText.trim() === "` + word + `" && !b.disabled)`))
		s.ok(p.Wait("!document.querySelector('dialog')"))
	}
	dialog("Save")
	s.ok(p.Text("by the lighthouse"))
	if got := fmt.Sprint(s.api("GET", at, "")["labels"]); got != "map[site:south]" {
		t.Errorf("its labels are %s", got)
	}
	application := `[...document.querySelectorAll(".card li")].find(l => l.innerText.includes("http-probe-service"))`
	press := func(word string) {
		t.Helper()
		s.ok(p.Click(`[...` + application + `?.querySelectorAll("button") ?? []].find(b => b.innerText === "` + word + `")`))
	}
	press("Change")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog input")].some(i => i.value === "127.0.0.1")`))
	s.fill(p, "Memory, MiB", "256")
	dialog("Save")
	if got := fmt.Sprint(s.api("GET", at+"/applications", "")["data"]); !strings.Contains(got, "memoryMiB:256") {
		t.Errorf("the application is %s", got)
	}
	s.click(p, "Add node")
	s.click(p, "Create key")
	s.ok(p.Text("PORTOLAN_REGISTRATION_KEY="))
	dialog("Close")
	if got := s.api("GET", at, "")["nodeCount"]; got != 2.0 {
		t.Errorf("it may have %v nodes", got)
	}
	press("Remove")
	dialog("Remove")
	if got := fmt.Sprint(s.api("GET", at+"/applications", "")["data"]); !strings.Contains(got, "DELETE_QUEUED") {
		t.Errorf("the applications are %s", got)
	}
}

// TestStagedTogether checks that several changes of one dialog are added to the change list one by one. It also checks the tabs of a
// network.
func TestStagedTogether(t *testing.T) {
	s := start(t)
	s.api("POST", "/api/v2/blocks/"+s.id("blocks", "range:'10.0.0.0/8'")+"/networks", `{"type":"IPv4Network","range":"10.201.0.0/24","gateway":null}`)
	network := s.id("networks", "range:'10.201.0.0/24'")
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.click(p, "Assign the first")
	s.fill(p, "Number of addresses", "3")
	s.fill(p, "Name", "together")
	s.click(p, "Add to change list")
	s.ok(p.Wait(`document.querySelector("a.staged")?.innerText.trim() === "3"`))
	s.ok(p.Go("/ui/staged"))
	s.ok(p.Text("3 new"))
	s.click(p, "Apply all 3")
	s.ok(p.Text("All changes applied."))
	s.id("addresses", "name:'together-3'")
	for _, tab := range []string{"ranges", "deploymentOptions", "fields", "transactions"} {
		s.ok(p.Go("/ui/networks/" + network + "/" + tab))
		s.ok(p.Wait(`[...document.querySelectorAll("#main [role=tab]")].some(b => b.innerText === "Addresses") && [...document.querySelectorAll("#main button")].some(b => b.innerText.startsWith("Assign address"))`))
	}
	s.ok(p.Go("/ui/networks/" + network + "/tags")) // subcollections without a tab are shown below the tab More
	s.ok(p.Wait(`document.querySelector("nav.further a[href$='/defaultZones']") &&
		[...document.querySelectorAll("#main button")].some(b => b.innerText.startsWith("Assign address"))`))
	s.ok(p.Go("/ui/zones/" + s.id("zones", "absoluteName:'harbour.example'") + "?tab=text"))
	s.ok(p.Wait(`document.querySelector("#zone-text")?.value.includes("crane-1-1-1")`))
	s.ok(p.Act(`document.querySelector("#zone-text")`, `e.value += "bad line here x\n"; e.dispatchEvent(new Event("input", {bubbles: true}))`))
	s.ok(p.Text("LINE is not a record type"))
}
