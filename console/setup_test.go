package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"portolan/console/browser"
	"portolan/internal/testkit/agenttest"
	"portolan/internal/testkit/freeport"
)

// shoot saves pictures of the page in light, dark and narrow form, if the variable PORTOLAN_SHOTS names a directory.
func (s *stage) shoot(p *browser.Page, name string) {
	s.Helper()
	dir := os.Getenv("PORTOLAN_SHOTS")
	if dir == "" {
		return
	}
	for _, v := range []struct {
		name  string
		width int64
		dark  bool
	}{{"light", 1280, false}, {"dark", 1280, true}, {"phone", 390, false}} {
		s.ok(p.Size(v.width, 1000, v.dark))
		s.eval(p, `[...document.querySelectorAll(".toasts button[aria-label]")].forEach(b => b.click())`) // messages would cover the page
		s.ok(p.Wait(`!document.querySelector(".toasts")?.innerText.trim()`))
		s.ok(p.AwaitStill())
		picture, err := p.Shot()
		s.ok(err)
		s.ok(os.WriteFile(filepath.Join(dir, name+"-"+v.name+".png"), picture, 0o600))
	}
	s.ok(p.Size(1280, 800, false))
}

// TestFirstDNSServer sets up a DNS server in the console, from the enrolment of its service point to an answered query, and then signs its
// zone.
func TestFirstDNSServer(t *testing.T) {
	s := start(t)
	p := s.open()
	s.ok(p.Go("/ui/setup"))
	s.enter(p, "Name of the new service point", "buoy")
	s.click(p, "Create")
	s.ok(p.Text("Waiting for its first check-in"))
	s.accessible(p, "setup")
	command, err := browser.Eval[string](p, "document.querySelector('.command').innerText")
	s.ok(err)
	agenttest.Start(t, s.m.RegistrationEndpoint(), regexp.MustCompile(`PORTOLAN_REGISTRATION_KEY=(\S+)`).FindStringSubmatch(command)[1])
	s.ok(p.Text("Connected:"))
	s.click(p, "Deploy the DNS server")
	port := strconv.Itoa(int(freeport.Reserve(t).Port()))
	s.fill(p, "Address", "127.0.0.1")
	s.fill(p, "Port", port)
	s.accessible(p, "the form of an application")
	s.shoot(p, "application")
	s.click(p, "Deploy")
	s.ok(p.Wait(`[...document.querySelectorAll(".setup > li")][1].innerText.includes("healthy")`))
	s.enter(p, "Name of the new zone", "quay.example")
	s.click(p, "Create")
	s.enter(p, "Address *", "127.0.0.1")
	s.click(p, "Create server and role")
	s.ok(p.Text("has a role for quay.example"))
	s.click(p, "Deploy")
	s.ok(p.Wait(`[...document.querySelectorAll(".setup > li")][4].innerText.includes("completed")`))
	s.click(p, "Ask the server")
	for _, text := range []string{"status: NOERROR, flags: qr aa", "SERVER: 127.0.0.1:" + port, "buoy answers for quay.example"} {
		s.ok(p.Text(text))
	}
	s.shoot(p, "setup")
	// The page continues after a reload, and the first deployment of a server is a full one. A deployment of DHCP is not that of the zone.
	server := s.id("servers", "name:'buoy'")
	s.api("POST", "/api/v2/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`)
	s.ok(p.Go(s.path(p)))
	s.ok(p.Text("has a role for quay.example"))
	s.ok(p.Wait(`/completed[\s\S]*1 zone/.test([...document.querySelectorAll(".setup > li")][4]?.innerText)`))
	s.ok(p.Go("/ui/servers"))
	s.ok(p.Click(`document.querySelector("[aria-label='Deploy to buoy']")`))
	s.ok(p.Wait(`document.querySelector("dialog form select:last-of-type") && ` +
		`[...document.querySelectorAll("dialog select")].at(-1).value === "DifferentialDeployment"`))

	zone := "/ui/zones/" + s.id("zones", "absoluteName:'quay.example'")
	s.ok(p.Go(zone + "?tab=signing"))
	s.click(p, "Sign this zone")
	s.click(p, "Sign")
	s.ok(p.Text("Signed by the policy Default (ECDSA P-256)"))
	s.ok(p.Text("DS record for the parent zone"))
	s.accessible(p, "keys")
	s.shoot(p, "dnssec")
	s.api("POST", "/api/v2/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	s.ok(p.Wait(`/IN\s+DS\s+\d+ 13 2 /.test(document.body.innerText)`))
	s.click(p, "Check the parent zone")
	s.ok(p.Text("The name server of the manager, 127.0.0.1:1, does not answer"))
	s.shoot(p, "dnssec-deployed")
	if got := s.api("GET", "/api/v2/zones/"+strings.TrimPrefix(zone, "/ui/zones/"), "")["signed"]; got != true {
		t.Errorf("the zone is signed: %v", got)
	}
	// A server with a role that was never deployed is named beside the one that serves the zone.
	point := s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pier"}`)["fleetInstanceID"].(string)
	other := s.api("POST", "/api/v2/configurations/"+s.id("configurations", "id:gt(0)")+"/servers", `{"type":"Server","name":"pier",`+
		`"profile":"PORTOLAN_SERVICE_POINT","servicePoint":"`+point+`","interfaces":[{"managementAddress":"127.0.0.9"}]}`)
	face := s.api("GET", fmt.Sprintf("/api/v2/servers/%.0f/interfaces?fields=id", other["id"]), "")["data"].([]any)[0].(map[string]any)["id"]
	s.api("POST", "/api/v2/zones/"+strings.TrimPrefix(zone, "/ui/zones/")+"/deploymentRoles",
		fmt.Sprintf(`{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":%.0f}]}`, face))
	s.ok(p.Go(zone + "?tab=deployed"))
	s.ok(p.Text("pier has a role for this zone and does not serve it."))
}

// TestDayOfAnOperator checks pages that an operator needs beside the resources: a broken application and its alarm, the status, the further
// lists of a network, the secret of a webhook, backups, and the own password.
func TestDayOfAnOperator(t *testing.T) {
	s := start(t)
	p := s.open()
	made := s.api("POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"pier"}`)
	point := made["fleetInstanceID"].(string)
	agenttest.Start(t, s.m.RegistrationEndpoint(), made["registrationKey"].(string))
	at := "/user/api/v1/fleetInstances/" + point
	s.api("POST", at+"/applications", `{"name":"dns-authoritative-service","configuration":{"listen":[{"address":"192.0.2.1","port":5353}]}}`)
	s.ok(p.Go("/ui/fleet"))
	s.ok(p.Text("application unhealthy"))
	s.shoot(p, "fleet")
	s.ok(p.Go("/ui/status"))
	link := `document.querySelector("#main a[href='/ui/fleet/` + point + `']")`
	s.ok(p.Wait(link + ` && document.body.innerText.includes("Certificates")`))
	s.accessible(p, "status")
	s.shoot(p, "status")
	s.ok(p.Go("/"))
	s.ok(p.Wait(link))
	// A second application of a kind asks first.
	s.ok(p.Go("/ui/fleet/" + point))
	s.click(p, "Deploy application")
	s.fill(p, "Application", "dns-authoritative-service")
	s.ok(p.Text("already runs dns-authoritative-service"))
	s.ok(p.Wait(`document.querySelector("dialog button[type=submit]").disabled`))
	s.ok(p.Click(`document.querySelector("dialog input[type=checkbox]")`))
	s.ok(p.Wait(`!document.querySelector("dialog button[type=submit]").disabled`))

	network := "/ui/networks/" + s.id("networks", "range:'10.0.0.0/24'")
	s.ok(p.Go(network))
	s.click(p, "More") // the button
	s.ok(p.Wait(`document.querySelector("dialog")`))
	s.ok(p.Go(network + "/tags"))
	for _, text := range []string{"Assign address", "Addresses", "Access rights", "No tags yet."} {
		s.ok(p.Text(text))
	}
	s.accessible(p, "the further lists of a network")
	s.shoot(p, "further")

	s.ok(p.Go("/ui/webhooks"))
	s.click(p, "New")
	s.fill(p, "Name", "pager")
	s.fill(p, "URL", "https://hooks.example.net/x")
	s.click(p, "Generate")
	s.ok(p.Wait(`/^whsec_.{44}$/.test([...document.querySelectorAll("dialog input")].find(i => i.name === "secret").value)`))
	s.shoot(p, "webhook")
	s.click(p, "Apply now")
	s.ok(p.Wait("!document.querySelector('dialog')"))

	s.ok(p.Go("/ui/backups"))
	s.click(p, "New schedule")
	s.click(p, "Create")
	s.ok(p.Text("keeps 7 files"))
	s.click(p, "Back up now")
	s.ok(p.Text("daily-2"))
	s.click(p, "Rehearse")
	s.ok(p.Text("no faults found"))
	s.accessible(p, "backups")
	s.shoot(p, "backups")

	s.ok(p.Click("document.querySelector('.account')"))
	s.click(p, "Change password")
	s.fill(p, "New password *", "quay of the north")
	s.fill(p, "New password again", "quay of the north")
	s.accessible(p, "change password")
	s.click(p, "Change password")
	s.ok(p.Text("Changed your password."))
	s.ok(p.Go("/ui/networks"))
	s.ok(p.Text("10.0.0.0/24"))
}

// path returns the path and query of a page.
func (s *stage) path(p *browser.Page) string {
	s.Helper()
	path, err := browser.Eval[string](p, "location.pathname + location.search")
	s.ok(err)
	return path
}
