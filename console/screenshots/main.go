// The program screenshots takes a picture of every screen of the console with the sample data, light and dark, wide and narrow: make
// screenshots. It writes the pictures into the directory given.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"portolan/console/browser"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/dhcptest"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: screenshots DIRECTORY [BEGINNING OF NAMES]")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], strings.Join(os.Args[2:], "")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// screen is a screen to capture. A part of path in braces, such as {networks:range:'10.0.0.0/24'}, is replaced by the ID of the resource.
// script is run first, and the picture is taken when there is true.
type screen struct{ name, path, script, there string }

// press returns a script that clicks the first button with a word.
func press(word string) string {
	return `[...document.querySelectorAll("button")].find(b => (b.innerText + " " + b.ariaLabel).includes("` + word + `")).click()`
}

const network, zone = "/ui/networks/{networks:range:'10.0.0.0/24'}", "/ui/zones/{zones:absoluteName:'harbour.example'}"

var screens = []screen{
	{"overview", "/", "", ""}, {"space", "/ui/space?open={blocks:range:'10.0.0.0/8'}.{blocks:range:'10.0.0.0/16'}", "", ""},
	{"block", "/ui/blocks/{blocks:range:'10.0.0.0/16'}", "", ""}, {"map", "/ui/blocks/{blocks:range:'10.0.0.0/16'}/map?cell=4", "", ""},
	{"map-hilbert", "/ui/blocks/{blocks:range:'10.0.0.0/8'}/map?order=hilbert&cells=4096", "", ""},
	{"map-zoomed", "/ui/blocks/{blocks:range:'10.0.0.0/8'}/map?prefix=10.0.0.0%2F14&cells=4096&view=4,0,0&cell=3", "", ""},
	{"map-ipv6", "/ui/blocks/{blocks:type:'IPv6Block'}/map", "", ""}, {"map-ipv6-network",
		"/ui/networks/{networks:type:'IPv6Network'}/map", "", ""},
	{"find-many", "/ui/find?in={blocks:range:'10.0.0.0/8'}&count=12&length=17", "", ""}, {"rollouts", "/ui/fleet?rollouts=1", press("New rollout"), `document.querySelector("dialog .fields")`},
	{"lists", "/ui/accessRights", press("New"), `document.querySelector("dialog .fields")`},
	{"map-network", network + "/map?by=state", "", ""}, {"find", "/ui/find?in={blocks:range:'10.0.0.0/8'}&count=3&length=26", "", ""},
	{"network", network, "", ""}, {"assign", network, press("Assign address"), `document.querySelector("dialog .fields")`},
	{"address", "/ui/addresses/{addresses:address:'10.0.0.2'}", "", ""}, {"names", "/ui/names", "", ""}, {"zone", zone, "", ""},
	{"zone-text", zone + "?tab=text", `(() => { const t = document.querySelector("#zone-text"); t.value = t.value.replace("10.0.0.12", "10.0.0.200") + "www - CNAME ` +
		`crane-1-1-1.harbour.example.\n"; t.dispatchEvent(new Event("input", {bubbles: true})) })()`, `document.querySelector(".difference")`},
	{"record", zone, press("New record"), `document.querySelector("dialog .fields")`},
	{"delete", "/ui/blocks/{blocks:range:'10.0.0.0/16'}", press("More"), `document.querySelector("dialog .menu")`},
	{"servers", "/ui/servers", "", ""}, {"dhcp", "/ui/dhcp", "", ""},
	{"dhcp-network", network + "/dhcp", "", ""}, {"dhcp-refused", network + "/dhcp?part=refused", "", ""},
	{"dhcp-history", network + "/dhcp?part=history", "", ""}, {"dhcp-explain", network + "/dhcp?part=explain", "", ""},
	{"dhcp-leases", "/ui/dhcp?tab=leases", "", ""}, {"dhcp-options", network + "/deploymentOptions", "", ""},
	{"dhcp-lease", network + "/dhcp", press("10.0.0.102"), `document.querySelector("dialog .spans")`}, {"fleet", "/ui/fleet", "", ""},
	{"enrol", "/ui/fleet", press("New service point"), `document.querySelector("dialog .fields")`},
	{"changes", "/ui/transactions", "", ""}, {"change", "/ui/transactions/4", "", ""},
	{"undo", "/ui/transactions", press("Undo"), `document.querySelector("dialog .operations, dialog .box")`},
	{"search", "/", `document.querySelector(".searchbox").click(); setTimeout(() => { const i = document.querySelector(".search input"); i.value = "crane-1"; ` +
		`i.dispatchEvent(new Event("input", {bubbles: true})) }, 50)`, `document.querySelector(".hit")`},
	{"staged", "/ui/staged", "", ""}, {"bulk", "/ui/bulk", `(() => { const t = document.querySelector("#rows"); t.value = "type,name,range\nIPv4Block,lab,` +
		`192.168.0.0/16\nIPv4Block,again,10.0.0.0/8\nIPv4Block,odd,10.x\n"; t.dispatchEvent(new Event("input", {bubbles: true})); ` +
		`setTimeout(() => [...document.querySelectorAll("button")].find(b => b.innerText.startsWith("Preview all")).click(), 200) })()`,
		`document.querySelector(".sheet td.faulty")`},
	{"events", "/ui/events", "", ""}, {"users", "/ui/users", "", ""}, {"user-new", "/ui/users", press("New"), `document.querySelector("dialog .fields")`},
	{"tokens", "/ui/tokens", "", ""}, {"locations", "/ui/locations", "", ""}, {"everything", "/ui/all", "", ""}, {"api",
		"/api/docs?q=networks+addresses", "", ""},
	{"tag-groups", "/ui/tagGroups", "", ""}, {"long-name", "/ui/networks/{networks:range:'10.0.9.0/24'}", "", ""}, {"error",
		"/ui/networks/1", "", ""},
	{"nowhere", "/ui/nowhere", "", ""},
	{"setup", "/ui/setup", "", ""}, {"status", "/ui/status", "", ""}, {"backups", "/ui/backups", "", ""}, {"vlans", "/ui/vlans", "", ""},
	{"approvals", "/ui/workflowRequests", "", ""}, {"access", "/ui/access", "", ""}, {"figures", network + "/figures", "", ""},
	{"wall", "/?wall=1", "", ""},
}

func run(ctx context.Context, dir, only string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // readable by all users
		return err
	}
	data, err := os.MkdirTemp("", "portolan-screenshots-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	m, err := server.Start(ctx, server.Options{Programs: all.Programs(),
		Data: data, Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0", Version: "screenshots",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	if err := server.Sample(ctx, m.Address); err != nil {
		return err
	}
	token, err := m.Identity.CreateToken(ctx, identity.Grant{Name: "screenshots", Role: authz.Administrator, User: "admin"})
	if err != nil {
		return err
	}
	if err := addData(m.URL(), token); err != nil {
		return err
	}
	if err := furnishDHCP(ctx, m, token); err != nil {
		return err
	}
	link, err := m.Identity.NewLink(ctx, "admin")
	if err != nil {
		return err
	}
	b, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	p, err := b.Open(m.URL())
	if err != nil {
		return err
	}
	if err := picture(p, dir, screen{name: "signin", path: "/"}); err != nil {
		return err
	}
	if err := p.Go("/?#sign-in=" + link); err != nil {
		return err
	}
	if err := p.Wait("document.querySelector('.side')"); err != nil {
		return err
	}
	for _, s := range screens {
		if !strings.HasPrefix(s.name, only) {
			continue
		}
		var err error
		if s.path, err = filled(m.URL(), token, s.path); err == nil {
			err = picture(p, dir, s)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// furnishDHCP adds a DHCP server with leases and refused clients.
func furnishDHCP(ctx context.Context, m *server.Manager, token string) error {
	text, err := send(m.URL(), token, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"dhcp-edge"}`)
	if err != nil {
		return err
	}
	var point struct{ FleetInstanceID string }
	if err := json.Unmarshal(text, &point); err != nil {
		return err
	}
	if _, err := send(m.URL(), token, "POST", "/api/v2/configurations/{configurations:type:'Configuration'}/servers",
		`{"type":"Server","name":"dhcp-edge","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point.FleetInstanceID+`",`+
			`"interfaces":[{"managementAddress":"10.0.0.5"}]}`); err != nil {
		return err
	}
	for _, one := range [][2]string{
		{"/api/v2/blocks/{blocks:range:'10.0.0.0/8'}", `{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":86400}`},
		{"/api/v2/blocks/{blocks:range:'10.0.0.0/16'}", `{"type":"DHCPv4ClientOption","name":"domain-name","value":"harbour.example"}`},
		{"/api/v2/networks/{networks:range:'10.0.0.0/24'}", `{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":3600}`},
		{"/api/v2/networks/{networks:range:'10.0.0.0/24'}", `{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"]}`},
	} {
		if _, err := send(m.URL(), token, "POST", one[0]+"/deploymentOptions", one[1]); err != nil {
			return err
		}
	}
	network, err := filled(m.URL(), token, "{networks:range:'10.0.0.0/24'}")
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(network, 10, 64)
	if err != nil {
		return err
	}
	return dhcptest.Fill(ctx, m.Address, point.FleetInstanceID, id, netip.MustParseAddr("10.0.0.100"), 100)
}

// addData adds data that the sample does not contain: service points, ranges, reservations, a water mark, a long name.
func addData(origin, token string) error {
	for _, one := range [][3]string{
		{"POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"lighthouse","description":"at the end of the mole"}`},
		{"POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"harbour-master"}`},
		{"PATCH", "/api/v2/networks/{networks:range:'10.0.9.0/24'}", `{"name":"` + strings.Repeat("a-name-without-any-end-", 11) + `"}`},
		{"PATCH", "/api/v2/networks/{networks:range:'10.0.1.0/24'}", `{"highWaterMark":20,"lowWaterMark":5}`},
		{"POST", "/api/v2/networks/{networks:range:'10.0.0.0/24'}/ranges", `{"type":"IPv4DHCPRange","name":"guests","range":"10.0.0.100-10.0.0.199"}`},
		{"POST", "/api/v2/networks/{networks:range:'10.0.0.0/24'}/addresses",
			`{"type":"IPv4Address","state":"DHCP_RESERVED","name":"printer","address":"10.0.0.90","macAddress":{"address":"00:00:5e:00:53:01"}}`},
		{"POST", "/api/v2/zones/{zones:absoluteName:'harbour.example'}/resourceRecords", `{"type":"TXTRecord","name":"@","text":"v=spf1 -all"}`},
	} {
		if _, err := send(origin, token, one[0], one[1], one[2]); err != nil {
			return err
		}
	}
	return nil
}

// send sends a request and returns the answer. Parts of the path in braces are replaced by IDs.
func send(origin, token, method, path, body string) ([]byte, error) {
	path, err := filled(origin, token, path)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(method, origin+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if e := answer.Body.Close(); err == nil {
		err = e
	}
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s", method, path, text)
	}
	return text, err
}

// picture captures a screen in both sizes and both colour schemes.
func picture(p *browser.Page, dir string, s screen) error {
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1280, 800}, {"narrow", 390, 844}} {
		for _, dark := range []bool{false, true} {
			if err := p.Size(size.width, size.height, dark); err != nil {
				return err
			}
			if err := p.Go(s.path); err != nil {
				return err
			}
			if err := p.AwaitStill(); err != nil {
				return err
			}
			if s.script != "" {
				if _, err := browser.Eval[any](p, s.script+"; 0"); err != nil {
					return err
				}
				if err := p.Wait(s.there); err != nil {
					return err
				}
			}
			shot, err := p.Shot()
			if err != nil {
				return err
			}
			file := s.name + "-" + size.name
			if dark {
				file += "-dark"
			}
			if err := os.WriteFile(filepath.Join(dir, file+".png"), shot, 0o644); err != nil { //nolint:gosec // readable by all users
				return err
			}
			for _, fault := range p.Faults() {
				fmt.Fprintln(os.Stderr, file+":", fault)
			}
			if wide, err := browser.Eval[float64](p, "document.documentElement.scrollWidth"); err != nil || int64(wide) > size.width {
				fmt.Fprintf(os.Stderr, "%s: %v px wide (%v)\n", file, wide, err)
			}
		}
	}
	return nil
}

// filled replaces the parts in braces by IDs.
func filled(origin, token, path string) (string, error) {
	for {
		start := strings.Index(path, "{")
		if start < 0 {
			return path, nil
		}
		end := start + strings.Index(path[start:], "}")
		collection, filter, _ := strings.Cut(path[start+1:end], ":")
		r, err := http.NewRequest(http.MethodGet, origin+"/api/v2/"+collection+"?limit=1&fields=id&filter="+strings.ReplaceAll(filter, "'",
			"%27"), nil)
		if err != nil {
			return "", err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		var page struct{ Data []struct{ ID int64 } }
		err = json.NewDecoder(answer.Body).Decode(&page)
		_ = answer.Body.Close()
		if err != nil || len(page.Data) == 0 {
			return "", fmt.Errorf("nothing is at %s (%w)", path[start:end+1], err)
		}
		path = path[:start] + fmt.Sprint(page.Data[0].ID) + path[end+1:]
	}
}
