package dhcppublish_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// importLeases imports a lease file, and returns the import with its log.
func (p *dhcpPlan) importLeases(file string) (one apitest.Reply, log string) {
	p.T.Helper()
	body, kind := apitest.Form(map[string]string{"fileInfo": `{"contentType":"text/plain","resourceType":"DHCPv4Lease","state":"QUEUED","into":` +
		`"configurations/` + p.configuration + `"}`}, file)
	return p.EndedImport(p.ID("/api/v2/imports", body, kind))
}

// restores returns the orders to restore leases of a network that the content has.
func (p *dhcpPlan) restores(network string) (all []dhcpdata.Order) {
	p.T.Helper()
	p.fetch()
	for _, text := range p.items(dhcpdata.NetworkUnit(apitest.Number(p.T, network))) {
		var o dhcpdata.Order
		if strings.HasPrefix(text, "Q") {
			if err := json.Unmarshal([]byte(text[1:]), &o); err != nil {
				p.T.Fatal(err)
			}
			all = append(all, o)
		}
	}
	return all
}

const kea4Head = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id\n"

// TestKeaLeasesAreImported checks that leases of Kea are given to the server once. A lease that the server has given later stays, and the
// orders end when the server has confirmed them.
func TestKeaLeasesAreImported(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.199","exclusionRanges":["10.0.0.150-10.0.0.151"]}`)
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.30","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:30"}}`)
	m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.160","name":"scale","state":"STATIC"}`)
	now := m.Store.Now().Truncate(time.Second)
	line := func(address, mac string, age, rest time.Duration, state int) string {
		return fmt.Sprintf("%s,%s,,%d,%d,1,0,0,h%s,%d,,0\n", address, mac, int((age + rest).Seconds()), now.Add(rest).Unix(), mac[15:], state)
	}
	file := kea4Head + line("10.0.0.101", "00:00:5e:00:53:01", time.Hour, time.Hour, 0) +
		line("10.0.0.102", "00:00:5e:00:53:02", time.Hour, -time.Minute, 0) + line("10.0.0.103", "00:00:5e:00:53:03", time.Hour, time.Hour, 2) +
		line("10.0.0.104", "00:00:5e:00:53:04", time.Hour, time.Hour, 1) + line("10.0.0.150", "00:00:5e:00:53:05", time.Hour, time.Hour, 0) +
		line("10.0.0.160", "00:00:5e:00:53:06", time.Hour, time.Hour, 0) + line("10.0.0.30", "00:00:5e:00:53:30", time.Hour, time.Hour, 0)
	one, log := p.importLeases(file)
	if one.Text("created") != "3" || one.Text("unchanged") != "2" || one.Text("refused") != "2" ||
		one.Text("state") != "COMPLETED_WITH_WARNINGS" ||
		!strings.Contains(log, "line 6: LeaseNotImported: 10.0.0.150 is excluded") || !strings.Contains(log, "in use as STATIC address") {
		t.Fatalf("the import is %s\n%s", one.Text("state"), log)
	}
	if again, _ := p.importLeases(file); again.Text("unchanged") != "5" || again.Text("created") != "0" {
		t.Errorf("the second import creates %s and leaves %s", again.Text("created"), again.Text("unchanged"))
	}
	m.Want(200, "GET", at+"/leases?"+apitest.Filter("state:'DHCP_LEASED'"), "").Shows(t, map[string]string{"data.0.address": "10.0.0.30"})
	p.deploys()
	p.confirms(p.revision)
	orders := p.restores(p.network)
	if len(orders) != 3 {
		t.Fatalf("the content has %d orders", len(orders))
	}
	source := m.SourceOf(p.point)
	for _, o := range orders {
		e := dhcplease.Event{Kind: dhcplease.Begin, Order: o.ID, Lease: dhcplease.Lease{Network: apitest.Number(t, p.network),
			Address: o.Address,
			Start:   o.Lease.Start, Expires: o.Lease.Expires, MAC: o.Lease.Hardware.String()}}
		switch o.Address.String() {
		case "10.0.0.104":
			e.Kind = dhcplease.Abandon
		case "10.0.0.30":
			e.Kind = dhcplease.Ordered
		}
		source.Send(dhcplease.Record{At: now.UnixMilli(), Event: &e})
	}
	apitest.Eventually(t, "the orders are over", func() bool { return len(p.restores(p.network)) == 0 })
	m.Want(200, "GET", at+"/leases?"+apitest.Filter("address:'10.0.0.101'"), "").Shows(t, map[string]string{"data.0.server.id": p.server})
	m.Want(200, "GET", at+"/leases?"+apitest.Filter("address:'10.0.0.30'"), "").Shows(t, map[string]string{"data.0.state": "DHCP_FREE"})
	// The server has given another address since; the file has an older lease of it.
	source.Event(dhcplease.Begin, now, dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr("10.0.0.110"),
		Start: now.Unix(), Expires: now.Add(time.Hour).Unix(), MAC: "00005e005377"})
	_, log = p.importLeases(kea4Head + line("10.0.0.110", "00:00:5e:00:53:10", time.Hour, time.Hour, 0))
	if !strings.Contains(log, "10.0.0.110 belongs to 00-00-5E-00-53-77 since") || !strings.Contains(log, "by server dhcp1") {
		t.Errorf("the log is %s", log)
	}
	m.Verify()
}

// TestImportedLeasesExpire checks that leases of an import that no server takes end by time. Settings and files that leases do not have are
// refused.
func TestImportedLeasesExpire(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.199"}`)
	soon := m.Store.Now().Add(8 * time.Second).Unix()
	lease := fmt.Sprintf("10.0.0.101,00:00:5e:00:53:01,,3600,%d,1,0,0,,0,,0\n", soon)
	if one, log := p.importLeases(kea4Head + lease); one.Text("created") != "1" {
		t.Fatal(log)
	}
	apitest.Eventually(t, "the lease ends", func() bool {
		if _, err := dhcp.EndExpired(t.Context(), m.Address, m.Store.Update); err != nil {
			t.Fatal(err)
		}
		return m.Want(200, "GET", at+"/leases", "").Text("data.0.state") == "DHCP_FREE"
	})
	m.Want(200, "GET", at+"/leaseSpans", "").Shows(t, map[string]string{"data.0.endReason": "EXPIRED"})
	left := 0
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM dhcp_lease_import").Scan(&left)
	}); err != nil || left != 0 {
		t.Errorf("%d orders are left: %v", left, err)
	}
	for more, want := range map[string]string{`,"tag":"tags/x"`: "leases have no tags", `,"action":"CREATE"`: "leases are imported with",
		`,"into":"networks/` + p.network + `"`: "must be a configuration", `,"columns":{"a":"b"}`: "are fixed"} {
		body, kind := apitest.Form(map[string]string{"fileInfo": `{"contentType":"text/plain","resourceType":"DHCPv6Lease"` + more + `}`}, "x")
		if got := m.Want(400, "POST", "/api/v2/imports", body, kind).Text("message"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", more, got)
		}
	}
	if one, _ := p.importLeases("hello"); one.Text("state") != "FAILED" || !strings.Contains(one.Text("message"), "contains no leases") {
		t.Errorf("a text is %s: %s", one.Text("state"), one.Text("message"))
	}
	m.Verify()
}

// TestLeases6AreImported checks that addresses and prefixes of DHCPv6 keep their DUID and IAID, and temporary addresses are refused.
func TestLeases6AreImported(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	block := m.ID("/api/v2/configurations/"+p.configuration+"/blocks", `{"type":"IPv6Block","name":"six","range":"2001:db8::/32"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv6Network","name":"quay6","range":"2001:db8:1::/48"}`)
	m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv6DHCPRange","range":"2001:db8:1::100-2001:db8:1::ffff"}`)
	delegating := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv6DHCPRange","range":"2001:db8:1:8000::-2001:db8:1:ffff:ffff:ffff:ffff:ffff"}`)
	m.ID("/api/v2/ranges/"+delegating+"/deploymentOptions", `{"type":"DHCPv6ServiceOption","name":"delegated-prefix-length","value":60}`)
	end := m.Store.Now().Add(time.Hour).UTC().Format("1 2006/01/02 15:04:05")
	one, log := p.importLeases(strings.ReplaceAll(`authoring-byte-order little-endian;
ia-na "\007\000\000\000\000\003\000\001\000\000^\000S\001" {
  iaaddr 2001:db8:1::101 { binding state active; max-life 3600; ends END; }
}
ia-pd "\010\000\000\000\000\003\000\001\000\000^\000S\001" {
  iaprefix 2001:db8:1:8000::/60 { binding state active; max-life 3600; ends END; }
}
ia-pd "\011\000\000\000\000\003\000\001\000\000^\000S\001" {
  iaprefix 2001:db8:1:9000::/64 { binding state active; max-life 3600; ends END; }
}
ia-na "\012\000\000\000\000\003\000\001\000\000^\000S\001" {
  iaaddr 2001:db8:1:9000::1 { binding state active; max-life 3600; ends END; }
}
ia-ta "\010\000\000\000\000\003\000\001\000\000^\000S\001" {
  iaaddr 2001:db8:1::102 { binding state active; ends END; }
}
`, "END", end))
	if one.Text("created") != "2" || one.Text("refused") != "3" || !strings.Contains(log, "2001:db8:1::102 is a temporary address") ||
		!strings.Contains(log, "without delegated-prefix-length 64") || !strings.Contains(log, "delegates prefixes of the length 60") {
		t.Fatalf("the import is %s\n%s", one.Text("state"), log)
	}
	all := m.Want(200, "GET", "/api/v2/networks/"+network+"/leases?orderBy=asc(address)", "")
	all.Shows(t, map[string]string{"data.0.identityAssociationIdentifier": "7", "data.0.clientIdentifier": "00030001" + "00005E005301",
		"data.1.prefixLength": "60", "data.1.identityAssociationIdentifier": "8", "data.1.address": "2001:db8:1:8000::"})
	m.Verify()
}
