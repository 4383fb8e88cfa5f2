package console_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"portolan/console/browser"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/testkit/dhcptest"
	"portolan/internal/wire/dhcplease"

	"github.com/chromedp/chromedp/kb"
)

// dhcpNetwork creates a range with leases and refused clients in the network 10.0.0.0/24, and returns the id of the network, of the block
// above it and of the service point of the server.
func (s *stage) dhcpNetwork() (network, block, point string) {
	s.Helper()
	network, block = s.id("networks", "range:'10.0.0.0/24'"), s.id("blocks", "range:'10.0.0.0/16'")
	at := "/api/v2/networks/" + network
	s.api("POST", at+"/ranges", `{"type":"IPv4DHCPRange","name":"guests","range":"10.0.0.100-10.0.0.199"}`)
	point = s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"dhcp-edge"}`)["fleetInstanceID"].(string)
	configuration := s.id("configurations", "type:'Configuration'")
	server := s.api("POST", "/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"dhcp-edge",`+
		`"profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point+`","interfaces":[{"managementAddress":"10.0.0.5"}]}`)
	of := fmt.Sprintf("/api/v2/servers/%.0f/interfaces", server["id"])
	found := s.api("GET", of, "")["data"].([]any)[0].(map[string]any)
	s.api("POST", at+"/deploymentRoles", fmt.Sprintf(`{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":%.0f,`+
		`"deploymentRoleInterfaceType":"PRIMARY"}]}`, found["id"]))
	id, err := strconv.ParseInt(network, 10, 64)
	s.ok(err)
	s.ok(dhcptest.Fill(s.Context(), s.m.Address, point, id, netip.MustParseAddr("10.0.0.100"), 30))
	return network, block, point
}

// enter enters text into the input whose label or accessible name begins with label.
func (s *stage) enter(p *browser.Page, label, text string) {
	s.Helper()
	script := `[...document.querySelectorAll("input, textarea")].find(e => (e.ariaLabel ?? e.labels?.[0]?.innerText ?? "").startsWith("` +
		label + `"))`
	s.ok(p.Enter(script, text))
}

// TestDHCPOfNetwork follows a day with DHCP: ranges with their forecast, leases that appear without a reload, a search, a reservation of a
// lease, one by a drag and one by keyboard, the end of a lease, and refused clients.
func TestDHCPOfNetwork(t *testing.T) {
	s := start(t)
	network, _, point := s.dhcpNetwork()
	p := s.open()
	at := "/ui/networks/" + network + "/dhcp"
	s.ok(p.Go(at))
	for _, text := range []string{"guests", "full in", "10.0.0.101", "20 leases"} {
		s.ok(p.Text(text))
	}
	id, err := strconv.ParseInt(network, 10, 64)
	s.ok(err)
	now := s.m.Address.Store.Now()
	s.ok(s.m.Address.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return dhcp.NewReporter(s.m.Address).Apply(tx, point, 2, []any{dhcplease.Record{Journal: "k", Sequence: 1, At: now.UnixMilli(),
			Event: &dhcplease.Event{Kind: dhcplease.Begin, Lease: dhcplease.Lease{Network: id, Address: netip.MustParseAddr("10.0.0.150"),
				Start: now.Unix(), Expires: now.Add(time.Hour).Unix(), MAC: "00005e00530a", HostName: "late-comer"}}}})
	}))
	s.ok(p.Text("late-comer")) // without a reload
	for search, shows := range map[string]string{"10.0.0.150": "\\n1 lease", "00:00:5e:00:53:0a": "late-comer", "late": "\\n1 lease",
		"10.0.0.": "21 leases", "10.0.0.96/28": "12 leases",
		"2001:db8::/64": "No leases match"} {
		s.enter(p, "Search leases", search)
		s.click(p, "Filter")
		s.ok(p.Wait(`document.querySelector("#main").innerText.includes("` + shows + `")`))
	}
	s.ok(p.Go(at + "?q=10.0.0.150"))
	s.ok(p.Text("1 lease"))
	// The lease becomes a reservation.
	s.click(p, "10.0.0.150")
	s.ok(p.Text("History of this address"))
	s.click(p, "Reserve this address")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button")].some(b => b.innerText.includes("Apply now") && !b.disabled)`))
	s.click(p, "Apply now")
	s.ok(p.Text("Reserved 10.0.0.150"))
	if got := s.api("GET", "/api/v2/addresses/"+s.id("addresses", "address:'10.0.0.150'"), "")["state"]; got != "DHCP_RESERVED" {
		t.Errorf("the state of the address is %v", got)
	}
	// A client is dragged to a free address.
	s.ok(p.Go(at + "?q=10.0.0.102"))
	s.ok(p.Act(`document.querySelector(".strip rect.leased") && document.querySelector(".row[draggable=true]")`, `
		const data = new DataTransfer(), row = e, strip = document.querySelector(".strip svg")
		row.dispatchEvent(new DragEvent("dragstart", {dataTransfer: data, bubbles: true}))
		const cell = strip.querySelectorAll("rect")[240].getBoundingClientRect()
		const where = {dataTransfer: data, bubbles: true, cancelable: true, clientX: cell.x + cell.width / 2, clientY: cell.y + cell.height / 2}
		strip.dispatchEvent(new DragEvent("dragover", where))
		strip.dispatchEvent(new DragEvent("drop", where))`))
	s.ok(p.Wait(`document.querySelector("dialog input")?.value === "10.0.0.240"`))
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button")].some(b => b.innerText.includes("Apply now") && !b.disabled)`))
	s.click(p, "Apply now")
	s.ok(p.Text("Created IPv4 address 10.0.0.240"))
	// The same with the keyboard, from the refused clients.
	s.ok(p.Go(at + "?part=refused"))
	s.ok(p.Text("no-free-address"))
	s.ok(p.Text("No address of the ranges is free."))
	s.ok(p.Act(`document.querySelector(".grid .row[aria-selected=true][draggable=true]") && document.querySelector(".grid")`, "e.focus()"))
	s.ok(p.Act("document.activeElement", `e.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}))`))
	s.ok(p.Wait(`document.querySelector("dialog input")?.value.startsWith("10.0.0.") && document.querySelectorAll("dialog input")[1].value.length === 17`))
	s.ok(p.Go(at + "?q=10.0.0.103"))
	s.ok(p.Wait(`document.querySelector(".grid .row[aria-selected=true] button")`))
	s.ok(p.Act(`document.querySelector(".grid")`, "e.focus()"))
	// Only the event: the character that Chromium's debugger sends after it would press the button that the window focuses.
	_, err = browser.Eval[any](p, `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}))`)
	s.ok(err)
	s.ok(p.Text("Lease of 10.0.0.103"))
	s.tabTo(p, "Reserve another address", "dialog")
	s.press(p, kb.Enter)
	s.ok(p.Wait(`document.querySelector("dialog input")?.value.startsWith("10.0.0.")`))
	// A lease is ended.
	s.ok(p.Go(at + "?q=10.0.0.104"))
	s.ok(p.Text("1 lease"))
	s.click(p, "10.0.0.104")
	s.ok(p.Text("History of this address"))
	s.click(p, "End lease")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button")].some(b => b.innerText.includes("Apply now") && !b.disabled)`))
	s.click(p, "Apply now")
	s.ok(p.Text("Requested: end lease (10.0.0.104)"))
	// The former clients of an address.
	s.ok(p.Go("/ui/dhcp?tab=history&q=10.0.0.104"))
	s.ok(p.Text("2 entries"))
	s.ok(p.Go("/ui/dhcp?tab=refused"))
	s.ok(p.Text("no-network"))
	// The addresses of a client, at its MAC address.
	s.ok(p.Go("/ui/macAddresses/" + s.id("macAddresses", "address:'00-00-5E-00-53-0A'") + "/leaseSpans"))
	s.ok(p.Wait(`document.querySelector("#main [role=grid]")?.innerText.includes("10.0.0.150")`))
}

// TestOptionsWithInheritance overrides an inherited option, and resets it.
func TestOptionsWithInheritance(t *testing.T) {
	s := start(t)
	network, block, _ := s.dhcpNetwork()
	s.api("POST", "/api/v2/blocks/"+block+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"domain-name","value":"harbour.example"}`)
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network + "/deploymentOptions"))
	s.ok(p.Text("harbour.example"))
	s.ok(p.Text("inherited"))
	s.click(p, "Override")
	s.ok(p.Wait(`document.querySelector("dialog input")?.value === "harbour.example"`))
	s.enter(p, "Value", "quay.example")
	s.ok(p.Wait(`[...document.querySelectorAll("dialog button")].some(b => b.innerText.includes("Apply now") && !b.disabled)`))
	s.click(p, "Apply now")
	s.ok(p.Text("instead of"))
	s.ok(p.Text("overrides"))
	s.click(p, "Reset")
	s.ok(p.Text("The value becomes"))
	s.ok(p.Click(`[...document.querySelectorAll("dialog button")].find(b => /Delete now|Apply now/.test(b.innerText))`))
	s.ok(p.Wait(`!document.querySelector("#main").innerText.includes("instead of")`))
	// A value that the option cannot have is refused at its field.
	s.click(p, "Set option")
	s.ok(p.Act(`[...document.querySelector("dialog select")?.options ?? []].find(o => o.text.startsWith("router "))`,
		`const l = e.closest("select"); l.value = e.value; l.dispatchEvent(new Event("change", {bubbles: true}))`))
	s.enter(p, "Value", "not an address")
	s.ok(p.Wait(`document.querySelector("dialog .field.wrong textarea, dialog .field.wrong input")`))
}

// TestExplainForm asks what a client would get. An invalid value is shown at its field.
func TestExplainForm(t *testing.T) {
	s := start(t)
	network, _, _ := s.dhcpNetwork()
	p := s.open()
	s.ok(p.Go("/ui/networks/" + network + "/dhcp?part=explain"))
	s.ok(p.Text("Circuit ID"))
	s.enter(p, "MAC address", "nonsense")
	press := func() { t.Helper(); s.ok(p.Click(`document.querySelector(".explain button.primary")`)) }
	press()
	s.ok(p.Wait(`document.querySelector(".field.wrong input")`))
	s.enter(p, "MAC address", "00:00:5e:00:53:77")
	s.ok(p.Enter(`document.querySelector(".explain select")`, "true"))
	press()
	s.ok(p.Text("dhcp-edge"))
	s.ok(p.Text("Rules in order"))
	s.accessible(p, "an explanation")
}

// dhcp6Network creates a network whose clients get addresses, and prefixes of a second range. It stores a lease of each kind. It returns the
// id of the network.
func (s *stage) dhcp6Network() string {
	s.Helper()
	configuration := s.id("configurations", "type:'Configuration'")
	id := func(path, body string) string {
		s.Helper()
		return fmt.Sprintf("%.0f", s.api("POST", "/api/v2/"+path, body)["id"])
	}
	block := id("configurations/"+configuration+"/blocks", `{"type":"IPv6Block","name":"homes","range":"2001:db9::/32"}`)
	network := id("blocks/"+block+"/networks", `{"type":"IPv6Network","name":"homes","range":"2001:db9:100::/48"}`)
	point := s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"dhcp6-edge"}`)["fleetInstanceID"].(string)
	server := id("configurations/"+configuration+"/servers", `{"type":"Server","name":"dhcp6-edge","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+point+`","interfaces":[{"managementAddress":"2001:db9:100::5"}]}`)
	own := s.api("GET", "/api/v2/servers/"+server+"/interfaces", "")["data"].([]any)[0].(map[string]any)["id"]
	id("blocks/"+block+"/deploymentRoles", fmt.Sprintf(`{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":%.0f}]}`, own))
	id("networks/"+network+"/ranges", `{"type":"IPv6DHCPRange","range":"2001:db9:100::100-2001:db9:100::1ff"}`)
	prefixes := id("networks/"+network+"/ranges", `{"type":"IPv6DHCPRange","name":"prefixes",`+
		`"range":"2001:db9:100:8000::-2001:db9:100:83ff:ffff:ffff:ffff:ffff"}`)
	id("ranges/"+prefixes+"/deploymentOptions", `{"type":"DHCPv6ServiceOption","name":"delegated-prefix-length","value":56}`)
	n, err := strconv.ParseInt(network, 10, 64)
	s.ok(err)
	now := s.m.Address.Store.Now()
	begin := func(sequence uint64, address string, length int) dhcplease.Record {
		return dhcplease.Record{Journal: "six", Sequence: sequence, At: now.UnixMilli(), Event: &dhcplease.Event{Kind: dhcplease.Begin,
			Lease: dhcplease.Lease{Network: n, Address: netip.MustParseAddr(address), PrefixLength: length, IAID: 1, Start: now.Unix(),
				Expires: now.Add(time.Hour).Unix(), DUID: "0003000100005e005311", MAC: "00005e005311", HostName: "home-router"}}}
	}
	s.ok(s.m.Address.Store.Update(s.Context(), store.Author{}, func(tx *store.Tx) error {
		return dhcp.NewReporter(s.m.Address).Apply(tx, point, 1, []any{begin(1, "2001:db9:100:8100::", 56), begin(2, "2001:db9:100::150", 0)})
	}))
	return network
}

// TestDelegatedPrefixes finds the lease of a delegated prefix by an address in it, opens it with its client's other addresses, and explains
// the address and the prefix that a client gets.
func TestDelegatedPrefixes(t *testing.T) {
	s := start(t)
	network := s.dhcp6Network()
	p := s.open()
	at := "/ui/networks/" + network + "/dhcp"
	s.ok(p.Go(at))
	for _, text := range []string{"2001:db9:100:8100::/56", "2001:db9:100::150", "2 leases", "not connected"} {
		s.ok(p.Text(text))
	}
	for search, shows := range map[string]string{"2001:db9:100:81ff::9": "2001:db9:100:8100::/56", "2001:db9:100:8100::/60": "2001:db9:100:8100::/56",
		"2001:db9:100::150": "2001:db9:100::150"} {
		s.enter(p, "Search leases", search)
		s.click(p, "Filter")
		s.ok(p.Wait(`/\n1 lease/.test(document.querySelector("#main").innerText) && document.querySelector(".grid-body .row").innerText.startsWith("` +
			shows + `")`))
	}
	s.ok(p.Go(at + "?q=2001:db9:100:8100::"))
	s.click(p, "2001:db9:100:8100::/56")
	for _, text := range []string{"Lease of 2001:db9:100:8100::/56", "History of this prefix", "Addresses of this client", "Connection of the server"} {
		s.ok(p.Text(text))
	}
	s.ok(p.Wait(`[...document.querySelectorAll("dialog .spans")].at(-1)?.innerText.includes("2001:db9:100::150")`))
	s.ok(p.Wait(`![...document.querySelectorAll("dialog button")].some(b => b.innerText.startsWith("Reserve this"))`)) // a prefix cannot be reserved
	s.accessible(p, "the lease of a prefix")
	// The history of the client, and from it that of one address.
	s.ok(p.Go(at + "?part=history"))
	s.ok(p.Click(`[...document.querySelectorAll(".grid-body a")].find(a => /53.11$/.test(a.innerText))`))
	s.ok(p.Wait(`/53.11$/.test(new URLSearchParams(location.search).get("q"))`))
	s.ok(p.Text("2 entries"))
	s.ok(p.Click(`[...document.querySelectorAll(".grid-body a")].find(a => a.innerText === "2001:db9:100::150")`))
	s.ok(p.Text("1 entry"))
	// The answer to a client that requests an address, and a prefix.
	s.ok(p.Go(at + "?part=explain"))
	s.enter(p, "DUID", "0003000100005e005377")
	s.ok(p.Enter(labelled("#main label", "Settings"), "true"))
	s.ok(p.Click(`document.querySelector(".explain button.primary")`))
	s.ok(p.Text("offers 2001:db9:100::1"))
	s.ok(p.Enter(labelled("#main label", "Client requests"), "true"))
	s.enter(p, "Requested prefix", "::/56")
	s.ok(p.Click(`document.querySelector(".explain button.primary")`))
	s.ok(p.Wait(`/delegates 2001:db9:100:8[0-9a-f]+::\/56/.test(document.querySelector("#main").innerText)`))
	s.accessible(p, "an explanation of a prefix")
	s.enter(p, "Requested prefix", "nonsense")
	s.ok(p.Click(`document.querySelector(".explain button.primary")`))
	s.ok(p.Wait(`document.querySelector(".field.wrong input")?.value === "nonsense"`))
}

// TestFailoverState shows the state of a failover pair at the page of a server.
func TestFailoverState(t *testing.T) {
	s := start(t)
	s.dhcpNetwork()
	server, configuration := s.id("servers", "name:'dhcp-edge'"), s.id("configurations", "type:'Configuration'")
	partner := fmt.Sprintf("%.0f", s.api("POST", "/api/v2/configurations/"+configuration+"/servers",
		`{"type":"Server","name":"dhcp-twin","profile":"DNS_DHCP_SERVER_20","interfaces":[{"managementAddress":"10.0.0.6"}]}`)["id"])
	ids := make([]int64, 2)
	for i, text := range []string{server, partner} {
		n, err := strconv.ParseInt(text, 10, 64)
		s.ok(err)
		ids[i] = n
	}
	a := s.m.Address
	s.ok(a.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: a, SetFields: map[string]bool{}, Extra: map[string]string{}}
		at, err := tx.Get(ids[0])
		if err != nil {
			return err
		}
		x := &dhcp.DHCPPartner{State: "COMMUNICATIONS-INTERRUPTED", StateDateTime: tx.Now(), ReportDateTime: tx.Now(), PendingUpdates: 7}
		x.Type, x.Parent, x.Config, x.Partner.ID = "DHCPPartner", ids[0], at.Configuration, ids[1]
		_, err = c.Following().Create(a.TypeNamed(x.Type), x)
		return err
	}))
	p := s.open()
	s.ok(p.Go("/ui/servers/" + server))
	for _, text := range []string{"DHCP failover with", "dhcp-twin", "not connected"} {
		s.ok(p.Text(text))
	}
	s.accessible(p, "a server with a partner")
	s.shoot(p, "failover")
	s.click(p, "Declare partner down")
	s.ok(p.Text("Declare dhcp-twin down"))
}
