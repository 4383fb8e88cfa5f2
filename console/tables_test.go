package console_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"portolan/console/browser"
)

// eval runs a script in the page and returns its value as text.
func (s *stage) eval(p *browser.Page, script string) string {
	s.Helper()
	text, err := browser.Eval[string](p, "String("+script+")")
	s.ok(err)
	return text
}

// gridKey presses a key on the grid of the page, with the modifiers of the event's initializer.
func (s *stage) gridKey(p *browser.Page, key, modifiers string) {
	s.Helper()
	s.ok(p.Act(`document.querySelector("#main .grid")`,
		`e.dispatchEvent(new KeyboardEvent("keydown", {key: "`+key+`", bubbles: true, cancelable: true`+modifiers+`}))`))
}

// shot writes a screenshot to the directory PORTOLAN_SHOTS, if it is set.
func (s *stage) shot(p *browser.Page, name string) {
	s.Helper()
	dir := os.Getenv("PORTOLAN_SHOTS")
	if dir == "" {
		return
	}
	png, err := p.Shot()
	s.ok(err)
	s.ok(os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}

// transactions returns the number of transactions.
func (s *stage) transactions() float64 {
	s.Helper()
	n, _ := s.api("GET", "/api/v2/transactions?limit=1&total=true", "")["totalCount"].(float64)
	return n
}

// TestSelectedRows selects rows by keyboard and mouse and changes, tags, moves, exports and deletes all of them, each with one preview and
// one transaction.
func TestSelectedRows(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	s.api("POST", "/api/v2/tagGroups", `{"name":"owners"}`)
	s.api("POST", "/api/v2/tagGroups/"+s.id("tagGroups", "name:'owners'")+"/tags", `{"name":"harbour crew"}`)
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Text("crane-1-1-1"))
	selected := func(n int) {
		t.Helper()
		s.ok(p.Wait(fmt.Sprintf(`document.querySelectorAll("#main .row[aria-selected=true]").length === %d`, n)))
	}
	apply := func(action string) {
		t.Helper()
		before := s.transactions()
		s.click(p, action)
		s.ok(p.Wait(`!document.querySelector("dialog") && document.querySelector(".toast")`))
		if after := s.transactions(); after != before+1 {
			t.Errorf("%s: %v transactions", action, after-before)
		}
		s.eval(p, `document.querySelectorAll(".toast button[aria-label]").forEach(b => b.click())`)
		s.ok(p.Wait(`!document.querySelector(".selection")`))
	}
	bar := func(action string) {
		t.Helper()
		s.ok(p.Click(`[...document.querySelectorAll(".selection button")].find(b => b.innerText.trim() === "` + action + `")`))
	}
	// By keyboard: Space, Shift and arrows, Escape.
	s.gridKey(p, " ", "")
	selected(1)
	s.gridKey(p, "ArrowDown", ", shiftKey: true")
	s.gridKey(p, "ArrowDown", ", shiftKey: true")
	selected(3)
	s.ok(p.Text("3 rows selected"))
	s.shot(p, "selected")
	s.accessible(p, "selected rows")
	s.gridKey(p, "Escape", "")
	selected(0)
	s.gridKey(p, "ArrowDown", ", shiftKey: true")
	s.gridKey(p, "ArrowDown", ", shiftKey: true")
	selected(3)
	bar("Change")
	s.fill(p, "Names", "rack7-srv-[08-10]")
	s.fill(p, "Set a field", "state")
	s.fill(p, "State", "RESERVED")
	s.ok(p.Wait(`document.querySelector("dialog .operations")?.innerText.includes("rack7-srv-10")`))
	s.shot(p, "change-selected")
	s.accessible(p, "the change of selected rows")
	apply("Apply now")
	s.ok(p.Text("rack7-srv-08"))
	at := "/api/v2/addresses?limit=10&fields=name,state&filter=name:startsWith(%27rack7-srv-%27)"
	if data := s.api("GET", at, "")["data"].([]any); len(data) != 3 ||
		data[0].(map[string]any)["state"] != "RESERVED" {
		t.Errorf("changed addresses: %v", data)
	}
	// By mouse: a checkbox, a range with Shift.
	pick := func(row int, shift bool) {
		t.Helper()
		s.ok(p.Act(fmt.Sprintf(`document.querySelector("#row-%d .pick")`, row),
			fmt.Sprintf(`e.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, shiftKey: %v}))`, shift)))
	}
	pick(1, false)
	selected(1)
	pick(1, false)
	selected(0)
	pick(1, false)
	pick(5, true)
	selected(5)
	bar("Tag")
	s.fill(p, "Tag", "harbour crew")
	s.take(p, "harbour crew")
	apply("Apply now")
	tag := s.id("tags", "name:'harbour%20crew'")
	if n := s.api("GET", "/api/v2/tags/"+tag+"/taggedResources?total=true", "")["totalCount"]; n != 5.0 {
		t.Errorf("%v resources have the tag", n)
	}
	// All rows that match the filter, as CSV.
	s.ok(p.Go("/ui/addresses?filter=name:startsWith('crane-1-1-')"))
	s.ok(p.Text("crane-1-1-"))
	s.eval(p, `(() => { window.saved = []; URL.createObjectURL = b => { b.text().then(t => window.saved.push(t)); return "#" } })()`)
	s.gridKey(p, "a", ", ctrlKey: true")
	s.ok(p.Wait(`document.querySelector(".selection strong")`))
	all := s.eval(p, `document.querySelector(".selection strong").innerText.split(" ")[0]`)
	bar("Export")
	s.ok(p.Wait(`window.saved.length === 1`))
	if n := s.eval(p, `window.saved[0].trim().split("\n").length - 1`); n != all || all == "0" {
		t.Errorf("%s rows are selected, and %s are in the CSV file", all, n)
	}
	// A filter clears the selection, so that nothing is deleted that is not shown.
	s.ok(p.Click(`document.querySelector("#main form.filter button[type=button]")`))
	s.ok(p.Wait(`!document.querySelector(".selection") && document.querySelector("#row-0")`))
	s.ok(p.Go("/ui/addresses?filter=name:startsWith('rack7-srv-')"))
	s.ok(p.Text("rack7-srv-08"))
	s.ok(p.Click(`document.querySelector(".pick-all")`))
	selected(3)
	bar("Delete")
	s.ok(p.Text("This deletes 3 addresses"))
	apply("Delete now")
	s.ok(p.Text("No rows match the filter"))
	// Networks move in the tree of the space.
	block := s.id("blocks", "range:'10.0.0.0/8'")
	for _, r := range []string{"10.99.0.0/26", "10.99.0.64/26"} {
		s.api("POST", "/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"`+r+`"}`)
	}
	s.ok(p.Go("/ui/space?open=" + block))
	s.ok(p.Text("10.99.0.64/26"))
	for _, r := range []string{"10.99.0.0/26", "10.99.0.64/26"} {
		s.ok(p.Click(`document.querySelector(".pick[aria-label='Select ` + r + `']")`))
	}
	selected(2)
	bar("Move")
	s.fill(p, "New first address", "10.99.0.64")
	apply("Apply now")
	s.ok(p.Text("10.99.0.128/26"))
	s.id("networks", "range:'10.99.0.64/26'")
}

// TestTablesFollowTheUser checks that saved filters and columns are kept at the manager, and that all rows of a table are printed.
func TestTablesFollowTheUser(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Go("/ui/addresses"))
	s.ok(p.Text("Saved filters"))
	s.ok(p.Enter(`document.querySelector("form.filter input")`, "state:'GATEWAY'"))
	s.click(p, "Filter")
	s.ok(p.Wait(`location.search.includes("GATEWAY")`))
	s.ok(p.Act(`document.querySelectorAll("details.columns")[0]`, "e.open = true"))
	s.ok(p.Enter(`document.querySelector("details.columns form.saved input")`, "our gateways"))
	s.shot(p, "saved-filter")
	s.accessible(p, "saved filters")
	s.click(p, "Save this filter")
	s.ok(p.Text("Saved the filter “our gateways”."))
	s.eval(p, `localStorage.clear()`) // another browser
	s.ok(p.Go("/ui/addresses"))
	s.ok(p.Text("Saved filters (1)"))
	s.ok(p.Act(`document.querySelectorAll("details.columns")[0]`, "e.open = true"))
	s.click(p, "our gateways")
	s.ok(p.Wait(`location.search.includes("GATEWAY") && document.querySelector("form.filter input").value.includes("GATEWAY")`))
	s.ok(p.Act(`document.querySelectorAll("details.columns")[0]`, "e.open = true"))
	s.ok(p.Click(`document.querySelector("button[aria-label='Delete the filter our gateways']")`))
	s.ok(p.Wait(`!document.body.innerText.includes("Saved filters (1)")`))
	// Print draws all rows of a table, and nothing beside it.
	s.ok(p.Go("/ui/addresses"))
	s.ok(p.Wait(`document.querySelectorAll("#main .grid-body .row").length > 20`))
	total := s.api("GET", "/api/v2/addresses?limit=1&total=true", "")["totalCount"].(float64)
	s.eval(p, `(() => { window.printed = []; window.print = () => { dispatchEvent(new Event("beforeprint"));
		printed.push(document.querySelectorAll("#main .grid-body .row").length); dispatchEvent(new Event("afterprint")) } })()`)
	s.click(p, "Print")
	s.ok(p.Wait(`window.printed.length === 1`))
	if n := s.eval(p, "printed[0]"); n != fmt.Sprint(min(total, 5000)) {
		t.Errorf("%s of %v rows are printed", n, total)
	}
	s.ok(p.Wait(`document.querySelectorAll("#main .grid-body .row").length < 100`))
	if hidden := s.eval(p, `[...document.styleSheets].flatMap(f => [...f.cssRules]).flatMap(r => [...r.cssRules ?? []]).length > 0`); !strings.Contains(hidden, "true") {
		t.Errorf("no rule for print: %s", hidden)
	}
}

// TestAssignMany assigns addresses with names by a pattern, pasted hardware addresses, and host and PTR records, in one transaction. It
// creates blocks in free space, and follows the offer to create a range in the block that contains it.
func TestAssignMany(t *testing.T) {
	s := start(t)
	network, zone := s.id("networks", "range:'10.0.0.0/24'"), s.id("zones", "absoluteName:'harbour.example'")
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Wait(`document.querySelectorAll(".strip .cell.edge").length === 2`)) // the network and the broadcast address
	s.ok(p.Text("network and broadcast"))
	s.click(p, "Assign address")
	s.fill(p, "Names", "rack7-srv-[01-03]")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog input[type=number]")].some(i => i.value === "3")`))
	s.fill(p, "MAC addresses", "00:00:5e:00:53:01\n0000.5e00.5302")
	s.ok(p.Text("Enter one MAC address for each address: 2 MAC addresses given, 3 required."))
	s.fill(p, "MAC addresses", "00:00:5e:00:53:01\n0000.5e00.5302\n00-00-5E-00-53-03")
	s.fill(p, "Host records in zone", "harbour.example")
	s.take(p, "harbour.example")
	s.ok(p.Wait(`document.querySelector("dialog .operations")?.innerText.includes("rack7-srv-03")`))
	s.shot(p, "assign-many")
	s.accessible(p, "assign many")
	before := s.transactions()
	s.click(p, "Apply now")
	s.ok(p.Wait(`!document.querySelector("dialog")`))
	if after := s.transactions(); after != before+1 {
		t.Errorf("%v transactions assign three addresses", after-before)
	}
	records := "/api/v2/zones/" + zone + "/resourceRecords?fields=name,reverseRecord&filter=name:startsWith(%27rack7-%27)"
	if data := s.api("GET", records, "")["data"].([]any); len(data) != 3 ||
		data[2].(map[string]any)["reverseRecord"] != true {
		t.Errorf("the host records: %v", data)
	}
	s.id("addresses", "name:'rack7-srv-03'%20and%20macAddress.address:'00-00-5E-00-53-03'")
	// Several blocks in free space, in one transaction.
	block := s.id("blocks", "range:'10.0.0.0/8'")
	s.ok(p.Go("/ui/find?in=" + block + "&what=blocks&count=4&length=16"))
	s.ok(p.Text("Number of blocks"))
	before = s.transactions()
	s.click(p, "Create")
	s.fill(p, "Names", "site-##")
	s.shot(p, "find-blocks")
	s.click(p, "Apply now")
	s.ok(p.Wait(`location.pathname === "/ui/blocks/` + block + `"`))
	if after := s.transactions(); after != before+1 {
		t.Errorf("%v transactions create four blocks", after-before)
	}
	s.id("blocks", "name:'site-04'")
	// A range in another block: the error names the block, and the window creates it there.
	s.ok(p.Go("/ui/space"))
	s.click(p, "New block")
	s.fill(p, "Range", "10.200.0.0/16")
	s.ok(p.Text("create it in that block"))
	s.shot(p, "other-block")
	s.click(p, "Create it in 10.0.0.0/8")
	s.click(p, "Apply now")
	s.ok(p.Wait(`!document.querySelector("dialog")`))
	s.id("blocks", "range:'10.200.0.0/16'")
}

// TestHistoryOfContent checks that the history of a network has the changes of its addresses with their fields, that a period limits it,
// and that a refused undo names the resources.
func TestHistoryOfContent(t *testing.T) {
	s := start(t)
	network, address := s.id("networks", "range:'10.0.0.0/24'"), s.id("addresses", "address:'10.0.0.2'")
	s.api("PATCH", "/api/v2/addresses/"+address, `{"name":"crane-of-today"}`)
	s.api("PATCH", "/api/v2/addresses/"+address, `{"name":"crane-of-tonight"}`)
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network + "/transactions"))
	s.ok(p.Text("crane-of-today"))
	s.ok(p.Wait(`[...document.querySelectorAll("#main .row del")].some(d => d.innerText === "crane-of-today")`)) // the change in its row
	s.shot(p, "history")
	s.accessible(p, "history of a network")
	choose := func(period string) {
		t.Helper()
		s.ok(p.Enter(`[...document.querySelectorAll("#main .tools select")].find(x => x.closest("label")?.innerText.includes("Period"))`, period))
	}
	choose("hour")
	s.ok(p.Wait(`location.search.includes("period=hour") && document.body.innerText.includes("crane-of-tonight")`))
	s.ok(p.Go("/ui/networks/" + network + "/transactions?period=own&to=2001-01-01T00:00"))
	s.ok(p.Text("No changes match."))
	s.ok(p.Go("/ui/networks/" + network + "/transactions?content=0"))
	s.ok(p.Wait(`document.querySelectorAll("#main .grid-body .row").length > 0`))
	if shows := s.eval(p, `document.querySelector("#main").innerText.includes("crane-of-tonight")`); shows != "false" {
		t.Error("the history of the network alone shows changes of its addresses")
	}
	s.ok(p.Go("/ui/transactions"))
	s.ok(p.Text("crane-of-tonight"))
	s.ok(p.Click(`[...document.querySelectorAll("#main .row button")].filter(b => b.innerText === "Undo")[1]`))
	s.ok(p.Text("10.0.0.2 crane-of-tonight (" + address + ") was changed afterwards"))
	s.shot(p, "undo-refused")
}

// TestShownTables saves a table that is no list of the address API as CSV, prints a table without its buttons, and shows in the map of a
// block the addresses that hosts cannot have.
func TestShownTables(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Go("/ui/tokens"))
	s.ok(p.Wait(`document.querySelector("#main .grid .row[aria-rowindex='2']")`))
	s.eval(p, `URL.createObjectURL = b => { b.text().then(t => { window.saved = t }); return "#" }`)
	s.ok(p.Click(`[...document.querySelectorAll("#main button")].find(b => b.innerText.trim() === "CSV")`))
	s.ok(p.Wait(`window.saved?.startsWith("Name,Kind,User,Role,Scopes,Last used,Expires\n") && window.saved.includes(",token,admin,")`))

	network := s.id("networks", "range:'10.0.0.0/24'")
	s.ok(p.Go("/ui/networks/" + network))
	s.ok(p.Text("crane-1-1-1"))
	s.eval(p, `dispatchEvent(new Event("beforeprint"))`)
	s.ok(p.Wait(`[...document.querySelectorAll("#main .headrow > div")].map(d => d.innerText.trim()).join() === ` +
		`"Address,Name,State,Hardware,Location,Free after this"`))
	s.eval(p, `dispatchEvent(new Event("afterprint"))`)
	s.ok(p.Wait(`document.querySelector("#main .headrow .pick-all")`))

	s.ok(p.Go("/ui/blocks/" + s.id("blocks", "range:'10.0.0.0/16'") + "/map?prefix=10.0.0.0%2F24&cells=256&cell=255"))
	s.ok(p.Text("10.0.0.255/32 · network or broadcast address, not for hosts"))
	s.ok(p.Wait(`![...document.querySelectorAll("#main button")].some(b => b.innerText === "Create here")`))
}

// TestChangedFieldsTogether reads the changed fields of all visible transactions of single resources with one request.
func TestChangedFieldsTogether(t *testing.T) {
	s := start(t)
	for _, name := range []string{"one", "two", "three", "four"} {
		s.api("PATCH", "/api/v2/networks/"+s.id("networks", "range:'10.0.0.0/24'"), `{"name":"`+name+`"}`)
	}
	p := s.open()
	s.ok(p.Go("/ui/transactions"))
	s.ok(p.Text("Name three → four"))
	s.ok(p.Text("Name one → two"))
	if got := s.eval(p, `performance.getEntriesByType("resource").filter(e => /embed\(operations\)/.test(decodeURIComponent(e.name))).length`); got != "1" && got != "2" {
		t.Errorf("%s requests for the changes of all rows", got)
	}
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

// TestUnchosenReference checks that Enter in a reference field without a choice does not apply the form, and that a text without a choice
// is reported when the user leaves the field.
func TestUnchosenReference(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network))
	s.click(p, "Assign address")
	s.fill(p, "Names", "crane-9")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button[type=submit]")].some(b => !b.disabled)`))
	s.fill(p, "Location", "nowhere at all")
	s.ok(p.Text("No results for “nowhere at all”."))
	s.ok(p.Act(`[...document.querySelectorAll("dialog .reference input")].find(i => i.value === "nowhere at all")`,
		`e.focus(); window.applies = e.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}))`))
	if s.eval(p, "window.applies") != "false" {
		t.Error("Enter applies the form")
	}
	s.press(p, kb.Tab)
	s.ok(p.Text("“nowhere at all” was not used: choose a result."))
}

// TestNewZoneIsDeployed checks that a zone of the console is deployed unless the user chooses otherwise.
func TestNewZoneIsDeployed(t *testing.T) {
	s := start(t)
	p := s.open()
	for name, deploy := range map[string]string{"served.example": "true", "planned.example": "false"} {
		s.ok(p.Go("/ui/names"))
		s.ok(p.Text("harbour.example"))
		s.click(p, "New zone")
		s.fill(p, "Name", name)
		s.fill(p, "Deploy this zone", deploy)
		s.ok(p.Wait(`[...document.querySelectorAll("dialog button[type=submit]")].some(b => !b.disabled)`))
		s.click(p, "Apply now")
		s.ok(p.Wait(`!document.querySelector("dialog")`))
		if got := fmt.Sprint(s.api("GET", "/api/v2/zones/"+s.id("zones", "absoluteName:'"+name+"'"), "")["deploymentEnabled"]); got != deploy {
			t.Errorf("%s: deploymentEnabled is %s", name, got)
		}
	}
}

// TestFilteredDHCP checks the filters of DHCP ranges, reservations and VLANs.
func TestFilteredDHCP(t *testing.T) {
	s := start(t)
	network := s.id("networks", "range:'10.0.0.0/24'")
	s.api("POST", "/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.200-10.0.0.220","name":"visitors"}`)
	s.api("POST", "/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.230","state":"DHCP_RESERVED","name":"printer-9",`+
		`"macAddress":{"address":"00:00:5e:00:53:99"}}`)
	p := s.open()
	rows := func(want string) {
		t.Helper()
		s.ok(p.Wait(`[...document.querySelectorAll("#main [role=row] a")].map(a => a.innerText).join(" ").includes("` + want + `")`))
	}
	filter := func(text string) {
		t.Helper()
		s.ok(p.Enter(`document.querySelector("form.filter input")`, text))
		s.press(p, kb.Enter)
	}
	s.ok(p.Go("/ui/dhcp"))
	rows("10.0.0.200")
	filter("visi")
	rows("10.0.0.200")
	filter("10.0.0.210")
	rows("10.0.0.200")
	filter("crew")
	s.ok(p.Text("No ranges match."))
	s.ok(p.Go("/ui/dhcp?tab=reservations"))
	rows("10.0.0.230")
	for _, text := range []string{"printer", "00-00-5e-00-53-99", "0000.5e00.5399", "10.0.0.224/27"} {
		filter(text)
		rows("10.0.0.230")
	}
	filter("crew")
	s.ok(p.Text("No reservations match."))
	// The columns of these tables can be chosen.
	configuration := "/api/v2/configurations/" + s.id("configurations", "id:gt(0)")
	s.api("POST", configuration+"/servers", `{"type":"Server","name":"buoy","profile":"PORTOLAN_SERVICE_POINT",`+
		`"interfaces":[{"managementAddress":"127.0.0.9"}]}`)
	s.api("POST", configuration+"/vlanGroups", `{"name":"campus","firstNumber":10,"lastNumber":99}`)
	s.api("POST", "/api/v2/vlanGroups/"+s.id("vlanGroups", "name:'campus'")+"/vlans", `{"name":"office","number":20}`)
	for _, path := range []string{"/ui/dhcp", "/ui/dhcp?tab=reservations", "/ui/names", "/ui/vlans", "/ui/servers"} {
		s.ok(p.Go(path))
		s.ok(p.Click(`document.querySelector("#main details.columns summary")`))
		choose := `[...document.querySelectorAll("#main details.columns label")].find(l => !l.querySelector("input").checked)`
		s.ok(p.Wait(choose))
		name := s.eval(p, choose+`.innerText.trim()`)
		s.ok(p.Click(choose + `.querySelector("input")`))
		s.ok(p.Wait(`[...document.querySelectorAll("#main [role=columnheader]")].some(h => h.innerText.trim() === "` + name + `")`))
	}
}
