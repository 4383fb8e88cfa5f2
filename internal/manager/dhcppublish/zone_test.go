package dhcppublish_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/dhcpdata"

	"github.com/klauspost/compress/zstd"
)

// option creates a DHCP service option.
func (p *dhcpPlan) option(at, name, value string) string {
	p.T.Helper()
	return p.ID("/api/v2/"+at+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"`+name+`","value":`+value+`}`)
}

// TestDHCPZones checks that a deployment contains the zones of the server's zone groups, and names each reason why names of clients cannot
// be updated.
func TestDHCPZones(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/configurations/" + p.configuration
	m.ID("/api/v2/networks/"+p.network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110"}`)
	fails := func(text string) {
		t.Helper()
		if got := p.fails(); !strings.Contains(got, text) {
			t.Errorf("the deployment fails with %s, not with %s", got, text)
		}
	}
	p.option("networks/"+p.network, "ddns-updates", "true")
	fails("ddns-updates has no domain for the names of clients: set ddns-domainname")
	p.option("networks/"+p.network, "ddns-domainname", `"Lab.example"`)
	fails("the names of clients in Lab.example cannot be updated: no zone contains lab.example")
	group := m.ID(at+"/zoneGroups", `{"name":"updates"}`)
	all := "/api/v2/zoneGroups/" + group + "/zoneDeclarations"
	forward := `{"type":"DHCPForwardZone","primaryDnsServerAddress":"10.0.0.53","secondaryDnsServerAddress":"10.0.0.54",` +
		`"zone":{"absoluteName":"lab.example"},"dynamicUpdateSigningKeyType":`
	key := m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"K1","algorithm":"SHA256","length":256,"state":"NOT_GENERATED"}`)
	declaration := m.ID(all, forward+`"TSIG","dynamicUpdateSigningKey":{"id":`+key+`}}`)
	fails("no zone contains lab.example") // the group is not that of the server
	m.Want(201, "POST", "/api/v2/zoneGroups/"+group+"/servers", `{"id":`+p.server+`}`)
	fails("the key K1 of zone lab.example has no secret: generate it")
	m.Want(204, "DELETE", "/api/v2/zoneDeclarations/"+declaration, "")
	weak := m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"weak","algorithm":"MD5","length":128}`)
	declaration = m.ID(all, forward+`"TSIG","dynamicUpdateSigningKey":{"id":`+weak+`}}`)
	fails("the key weak of zone lab.example has the algorithm MD5")
	m.Want(204, "DELETE", "/api/v2/zoneDeclarations/"+declaration, "")
	realm := m.ID(at+"/realms", `{"name":"EXAMPLE.NET","domain":"EXAMPLE.NET"}`)
	m.ID("/api/v2/realms/"+realm+"/keyDistributionCenters", `{"name":"kdc","host":"kdc.example.net","port":88}`)
	declaration = m.ID(all, forward+`"GSS_TSIG","dynamicUpdateSigningKeyRealm":{"id":`+realm+`}}`)
	fails("uses GSS_TSIG with the realm EXAMPLE.NET, which is not supported: use TSIG")
	m.Want(204, "DELETE", "/api/v2/zoneDeclarations/"+declaration, "")
	secret := strings.Repeat("portolan", 4)
	good := m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"K2","algorithm":"SHA256","length":256,"privateKey":"`+
		base64.StdEncoding.EncodeToString([]byte(secret))+`"}`)
	declaration = m.ID(all, forward+`"TSIG","dynamicUpdateSigningKey":{"id":`+good+`}}`)
	validates := func() string {
		t.Helper()
		return deploytest.Await(&m.Client, m.ID("/api/v2/servers/"+p.server+"/deployments", `{"type":"ValidationDeployment","service":"DHCPv4"}`),
			"COMPLETED_WITH_WARNINGS")
	}
	if got := validates(); !strings.Contains(got, "PTR records of clients are not updated: no zone contains 0.0.10.in-addr.arpa") {
		t.Errorf("the deployment says %s", got)
	}
	m.ID(all, `{"type":"DHCPReverseZone","primaryDnsServerAddress":"10.0.0.53","prefix":{"range":"10.0.0.0/16"}}`)
	if got := validates(); !strings.Contains(got, "are not signed") || strings.Contains(got, "PTR records") {
		t.Errorf("the deployment says %s", got)
	}
	for domain, missing := range map[string]bool{"in-addr.arpa": false, "rev.example.": true} { // the octets of an address precede it
		rule := p.option("networks/"+p.network, "ddns-rev-domainname", `"`+domain+`"`)
		got := validates()
		if strings.Contains(got, "no zone contains 0.0.10.rev.example") != missing || !missing && strings.Contains(got, "PTR records") {
			t.Errorf("with PTR records in %s the deployment says %s", domain, got)
		}
		m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+rule, "")
	}
	twice := m.ID(all, forward+`"NONE"}`)
	fails("zone lab.example. is declared twice for server dhcp1")
	m.Want(204, "DELETE", "/api/v2/zoneDeclarations/"+twice, "")
	rule := p.option("networks/"+p.network, "ddns-hostname", `["MAC","h-"]`)
	fails("it must be [IP or MAC (DHCPv6: DUID), PREPEND or APPEND, text]")
	m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+rule, "")
	p.deploys()
	p.has(dhcpdata.ServerUnit, `"name":"lab.example.","primary":"10.0.0.53","secondary":"10.0.0.54","keyName":"k2.","keyAlgorithm":"hmac-sha256.",`+
		`"keySecret":"`+dhcpdata.Hex(secret).String()+`"`, `"name":"0.10.in-addr.arpa."`)
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error { // the secret is encrypted in the database
		var packed []byte
		if err := tx.QueryRow("SELECT records FROM dhcp_unit WHERE unit = ?", dhcpdata.ServerUnit).Scan(&packed); err != nil {
			return err
		}
		decoder, err := zstd.NewReader(nil)
		if err != nil {
			return err
		}
		defer decoder.Close()
		text, err := decoder.DecodeAll(packed, nil)
		if err == nil && strings.Contains(decodedRecords(t, text), dhcpdata.Hex(secret).String()) {
			t.Error("the database contains the secret of the key")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// Keys and servers of deployed zones follow without a deployment; a key that cannot be used does not, and other zones wait.
	m.ID(all, `{"type":"DHCPForwardZone","primaryDnsServerAddress":"10.0.0.53","zone":{"absoluteName":"later.example"}}`)
	other := m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"K3","algorithm":"SHA512","length":256,"privateKey":"`+
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("harbours", 4)))+`"}`)
	m.Want(200, "PATCH", "/api/v2/zoneDeclarations/"+declaration, `{"primaryDnsServerAddress":"10.0.0.55","dynamicUpdateSigningKey":{"id":`+
		other+`}}`, apitest.MergePatch)
	p.follows(dhcpdata.ServerUnit, `"primary":"10.0.0.55","secondary":"10.0.0.54","keyName":"k3.","keyAlgorithm":"hmac-sha512."`, true)
	m.Want(200, "PATCH", "/api/v2/zoneDeclarations/"+declaration, `{"primaryDnsServerAddress":"10.0.0.56","dynamicUpdateSigningKey":{"id":`+
		weak+`}}`, apitest.MergePatch)
	apitest.Eventually(t, "the event", func() bool {
		r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'NOT_DEPLOYED'"), "")
		return strings.Contains(r.Text("data.0.message"), "the key weak of zone lab.example has the algorithm MD5")
	})
	p.fetch()
	p.has(dhcpdata.ServerUnit, `"primary":"10.0.0.55"`, `"keyName":"k3."`)
	if items := strings.Join(p.items(dhcpdata.ServerUnit), "\n"); strings.Contains(items, "later.example") {
		t.Errorf("a zone that was not deployed is in the content:\n%s", items)
	}
	m.Verify()
}

// decodedRecords returns stored records as text.
func decodedRecords(t *testing.T, text []byte) string {
	t.Helper()
	var records []dhcpdata.Record
	if err := json.Unmarshal(text, &records); err != nil || len(records) == 0 {
		t.Fatalf("%s: %v", text, err)
	}
	var all strings.Builder
	for _, r := range records {
		all.Write(r)
	}
	return all.String()
}
