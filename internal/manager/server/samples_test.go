package server

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/discovery"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/authntest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/dhcplease"
)

// samples make resources of types that the sample data lacks, for TestWire and the tests of contracts. The order determines the ids.
var samples = []func(m *manager){
	makeAuthenticators,
	makeRights,
	makeCatalog,
	makeNames,
	makeImports,
	makeImportsAlso,
	makeServers,
	makeDeployments,
	makeFailoverPairs,
	makeDHCP,
	makePolicies,
	makeFiles,
	makeFleetRights,
	makeLater,
	makePeople,
	makeSchedules,
	makeVLANs,
	makeCertificates,
}

// makeAuthenticators makes samples: no user signs in with them.
func makeAuthenticators(m *manager) {
	const post = "/api/v2/authenticators"
	m.ID(post, `{"type":"LDAPAuthenticator","name":"people","hostname":"127.0.0.1","port":389,"startTlsEnabled":true,`+
		`"caCertificate":"","adminDn":"cn=searcher,dc=example,dc=net","adminPassword":"finds people","schemaType":"OPENLDAP",`+
		`"searchBase":"dc=example,dc=net","referralPolicy":"IGNORE","aliasDereferencePolicy":"NEVER"}`)
	m.ID(post, `{"type":"RADIUSAuthenticator","name":"dial-in","hostname":"127.0.0.1","timeout":"PT1S","sharedSecret":"s","authenticationProtocol":"PAP"}`)
	m.ID(post, `{"type":"TACACSPlusAuthenticator","name":"switches","hostname":"127.0.0.1","timeout":"PT1S","sharedSecret":"s",`+
		`"authenticationProtocol":"PAP","groupAttribute":"group","attributes":[{"name":"service","value":"shell"}]}`)
	m.ID(post, `{"type":"KerberosAuthenticator","name":"realm","hostname":"127.0.0.1","realm":"EXAMPLE.NET","keytab":"`+authntest.Keytab("EXAMPLE.NET")+`"}`)
	m.ID(post, `{"type":"OAuthAuthorizationServer","name":"sso","userClaim":"sub","groupClaim":"groups","emailClaim":"email",`+
		`"validationMethod":"LOCAL","issuer":"https://sso.example.net","audience":"portolan"}`)
}

// makeRights makes access rights of two kinds.
func makeRights(m *manager) {
	user, _ := m.User("reader", "NO_ACCESS")
	m.Right(user, "", "VIEW", `,"accessOverrides":[{"resourceType":"Server","accessLevel":"HIDE"}]`)
	m.ID("/api/v2/accessRights", `{"type":"AdministrativeAccessRight","userScope":{"id":`+user+`},"administrativeAccessRights":[`+
		`{"resourceType":"Event","accessLevel":"VIEW"}]}`)
}

// makeCatalog makes locations, devices, tags and fields.
func makeCatalog(m *manager) {
	configuration := m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	kind := m.ID("/api/v2/deviceTypes", `{"name":"Anchor"}`)
	model := m.ID("/api/v2/deviceTypes/"+kind+"/deviceSubtypes", `{"name":"Anchor 12"}`)
	m.ID("/api/v2/configurations/"+configuration+"/devices", `{"name":"bollard","deviceSubtype":{"id":`+model+`},`+
		`"addresses":[{"address":"10.0.0.77"}]}`)
}

// makeNames makes resources of DNS.
func makeNames(m *manager) {
	at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	m.ID(at+"/signingKeys", `{"type":"TSIGKey","name":"transfer","algorithm":"SHA256","length":256,"privateKey":"`+
		base64.StdEncoding.EncodeToString(make([]byte, 32))+`"}`)
	realm := m.ID(at+"/realms", `{"name":"EXAMPLE.NET","domain":"example.net"}`)
	m.ID("/api/v2/realms/"+realm+"/keyDistributionCenters", `{"name":"one","host":"kdc.example.net"}`)
	m.ID("/api/v2/realms/"+realm+"/servicePrincipals", `{"name":"DNS/ns.example.net","keyVersionNumber":1,"password":"x"}`)
}

// makeImports makes an import.
func makeImports(m *manager) {
	body, kind := apitest.Form(map[string]string{"fileInfo": `{"name":"kept.csv","contentType":"text/csv"}`}, "type,name\r\n")
	m.ID("/api/v2/imports", body, kind)
	policy := m.Want(200, "GET", "/api/v2/responsePolicies", "").Text("data.0.id")
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"name":"names.txt"}`}, "ads.example\n")
	m.EndedImport(m.Want(201, "POST", "/api/v2/responsePolicies/"+policy+"/imports", body, kind).Text("id"))
}

// makeImportsAlso makes an import of another kind.
func makeImportsAlso(m *manager) {
	of := func(collection, kind string) string {
		return collection + "/" + m.Want(200, "GET", "/api/v2/"+collection+"?limit=1&"+filter("type:'"+kind+"'"), "").Text("data.0.id")
	}
	below := map[string]string{"IPv4Block": of("blocks", "IPv4Block"), "IPv4Network": of("blocks", "IPv4Block"),
		"IPv6Block": of("blocks", "IPv6Block"), "IPv6Network": of("blocks", "IPv6Block"), "IPv4Address": of("networks", "IPv4Network"),
		"IPv6Address": of("networks", "IPv6Network"), "Zone": of("views", "View"), "TXTRecord": of("zones", "Zone")}
	for _, kind := range slices.Sorted(maps.Keys(below)) {
		table := "type\n" + kind + "\n" // whose row is refused
		m.EndedImport(m.Want(201, "POST", "/api/v2/"+below[kind]+"/imports", table, "Content-Type: text/csv").Text("id"))
	}
}

// makeServers makes servers, options and roles.
func makeServers(m *manager) {
	at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	view := m.Want(200, "GET", at+"/views", "").Text("data.0.id")
	network := m.Want(200, "GET", "/api/v2/networks?"+filter("range:'10.0.0.0/24'"), "").Text("data.0.id")
	one := m.ID(at+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	two := m.ID(at+"/servers", apitest.ServerBody("ns2", "10.0.0.54"))
	three := m.ID(at+"/servers", apitest.ServerBody("ns3", "10.0.0.55"))
	m.ID(at+"/servers", `{"type":"HAServer","name":"pair","interfaces":[{"servicesIpv4Address":"10.0.0.60"}],"activeServer":{"id":`+two+
		`},"passiveServer":{"id":`+three+`}}`)
	m.ID(at+"/serverGroups", `{"name":"edge"}`)
	m.ID("/api/v2/servers/"+one+"/interfaces", `{"type":"PublishedInterface","name":"ns1.example.net","primaryAddress":"192.0.2.53"}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+one+"/interfaces?"+filter("type:'NetworkInterface'"), "").Text("data.0.id")
	m.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	m.ID("/api/v2/networks/"+network+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	tftp := m.ID(at+"/tftpGroups", `{"name":"boot"}`)
	m.ID("/api/v2/tftpGroups/"+tftp+"/deploymentRoles", `{"type":"TFTPDeploymentRole","server":{"id":`+one+`}}`)
	m.ID("/api/v2/servers/"+one+"/moves", `{"type":"DeploymentRoleMove","roleTypes":["DHCPDeploymentRole"],"destination":{"id":`+own+`}}`)
	profile := m.ID("/api/v2/vendorProfiles", `{"name":"phones","identifier":"phone","description":"phones"}`)
	vendor := m.ID("/api/v2/vendorProfiles/"+profile+"/deploymentOptionDefinitions",
		`{"type":"DHCPVendorOptionDefinition","name":"url","code":1,"displayName":"URL","description":"where","valueFormat":"<text>"}`)
	m.ID(at+"/deploymentOptionDefinitions",
		`{"type":"DHCPv4CustomClientOptionDefinition","name":"mine","code":222,"displayName":"Mine","description":"mine","valueFormat":["<integer_8>"]}`)
	options := "/api/v2/networks/" + network + "/deploymentOptions"
	for _, body := range []string{`{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"]}`,
		`{"type":"DHCPv4ServiceOption","name":"default-lease-time","value":3600}`,
		`{"type":"DHCPv4RawOption","name":"mine","value":"option x 1;"}`,
		`{"type":"DHCPVendorOption","definition":{"id":` + vendor + `},"value":"http://x/"}`,
		`{"type":"DNSOption","name":"allow-query","value":["any"]}`, `{"type":"DNSRawOption","name":"raw","value":"x 1;"}`,
		`{"type":"StartOfAuthority","value":[null,null,null,"auto",null,null,null,null]}`} {
		m.ID(options, body)
	}
	six := "/api/v2/networks/" + m.Want(200, "GET", "/api/v2/networks?"+filter("type:'IPv6Network'"), "").Text("data.0.id") +
		"/deploymentOptions"
	for _, body := range []string{`{"type":"DHCPv6ClientOption","name":"domain-search-list","value":["example.net"]}`,
		`{"type":"DHCPv6ServiceOption","name":"default-lease-time","value":3600}`, `{"type":"DHCPv6RawOption","name":"mine","value":"x 1;"}`} {
		m.ID(six, body)
	}
	policy := m.ID("/api/v2/signingPolicies", strings.Replace(apitest.PolicyBody, "NAME", "standard", 1))
	signed := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"signed.example"}`)
	m.ID("/api/v2/signingPolicies/"+policy+"/appliedResources", `{"id":`+signed+`}`)
}

// makeDeployments makes a deployment.
func makeDeployments(m *manager) {
	at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	d := m.deployment(strings.TrimPrefix(at, "/api/v2/configurations/"))
	d.Ends(`{"type":"ValidationDeployment","service":"DNS"}`, "COMPLETED")
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	// It stops being a service point and becomes one again: no deployment waits for it.
	m.Want(200, "PATCH", d.Server, `{"servicePoint":null}`)
	deploytest.Await(&m.Client, d.Last, "FAILED")
	m.Want(200, "PATCH", d.Server, `{"servicePoint":"`+d.Point+`"}`)
	d.Carries(d.Server+"/deployments", `{"type":"DifferentialDeployment","service":"DNS"}`)
	d.Carries(d.Zone+"/deployments", `{"type":"QuickDeployment"}`)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+d.Record, `{"text":"y"}`)
	d.Carries("/api/v2/deployments", `{"type":"SelectiveDeployment","resources":[{"id":`+d.Record+`}]}`)
}

// makeFailoverPairs makes a failover pair.
func makeFailoverPairs(m *manager) {
	configuration := m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	server, source := m.leaseServer(configuration, "pair1")
	partner, _ := m.leaseServer(configuration, "pair2")
	now := m.Store.Now()
	source.send(dhcplease.Record{At: now.UnixMilli(), Pair: &dhcplease.Pair{Partner: apitest.Number(m.T, partner),
		State: "COMMUNICATIONS-INTERRUPTED", Key: strings.Repeat("0", 64), MCLT: 3600, Since: now.Unix()}})
	m.Want(201, "POST", "/api/v2/servers/"+server+"/dhcpPartnerActions", `{"partner":{"id":`+partner+`},"action":"PARTNER_DOWN"}`)
}

// makeDHCP makes classes, pools, zone groups and leases.
func makeDHCP(m *manager) {
	at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	class := m.ID(at+"/clientClasses", `{"name":"phones","option":"vendor-class-identifier","matchOffset":0,"matchLength":5}`)
	m.ID("/api/v2/clientClasses/"+class+"/subclasses", `{"value":"snom1"}`)
	m.ID(at+"/macPools", `{"type":"MACPool","name":"guests"}`)
	group := m.ID(at+"/zoneGroups", `{"name":"updates"}`)
	m.ID("/api/v2/zoneGroups/"+group+"/zoneDeclarations",
		`{"type":"DHCPForwardZone","zone":{"absoluteName":"elsewhere.example"},"primaryDnsServerAddress":"10.0.0.53"}`)
	m.ID("/api/v2/zoneGroups/"+group+"/zoneDeclarations",
		`{"type":"DHCPReverseZone","prefix":{"range":"10.9.0.0/16"},"primaryDnsServerAddress":"10.0.0.53"}`)
	leased := m.ID(at+"/blocks", `{"type":"IPv4Block","range":"198.51.100.0/24"}`)
	leased = m.ID("/api/v2/blocks/"+leased+"/networks", `{"type":"IPv4Network","range":"198.51.100.0/25"}`)
	m.storeLease("198.51.100.9", leased)
	m.Want(201, "POST", "/api/v2/networks/"+leased+"/leaseActions", `{"address":"198.51.100.9","action":"END_LEASE"}`)
}

// makePolicies makes samples: a manager without --sweep runs no policy.
func makePolicies(m *manager) {
	configuration := m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	policy := apitest.Number(m.T, m.ID("/api/v2/configurations/"+configuration+"/reconciliationPolicies", `{"type":"IPv4ReconciliationPolicy",`+
		`"discoveryMethod":"PINGSWEEP","startDateTime":"2026-01-01T00:00:00Z","networkBoundaries":["10.0.0.0/24"]}`))
	if err := m.Store.Update(m.T.Context(), store.Author{}, func(tx *store.Tx) error {
		row, err := tx.Get(policy)
		if err != nil {
			return err
		}
		c := (&resource.Change{Tx: tx, API: m.Address}).Following()
		for _, o := range []schema.Object{&discovery.ReconciliationRun{State: "DONE", Pinged: 254, Seen: 3, Findings: 1, Messages: []string{}},
			&discovery.ReconciliationFinding{Kind: "UNKNOWN_ADDRESS", State: "OPEN", Address: "10.0.0.9", SeenMACAddress: "02-00-5E-00-53-09",
				Change: "Assign 10.0.0.9 as STATIC for 02-00-5E-00-53-09."}} {
			h := schema.HeadOf(o)
			h.Type, h.Parent, h.Config = strings.TrimPrefix(fmt.Sprintf("%T", o), "*discovery."), policy, row.Configuration
			if _, err := c.Create(m.Address.TypeNamed(h.Type), o); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		m.T.Fatal(err)
	}
}

// makeFiles makes files.
func makeFiles(m *manager) {
	group := m.Want(200, "GET", "/api/v2/tftpGroups", "").Text("data.0.id")
	at := "/api/v2/tftpGroups/" + group + "/files"
	m.ID(at, `{"type":"TFTPFolder","name":"images"}`)
	body, kind := apitest.Form(map[string]string{"fileInfo": `{"type":"TFTPFile","name":"pxe.0"}`}, "boot")
	m.ID(at, body, kind)
}

// makeFleetRights makes fleet rights.
func makeFleetRights(m *manager) {
	user := m.Want(200, "GET", "/api/v2/users?"+filter("name:'admin'"), "").Text("data.0.id")
	m.ID("/api/v2/fleetRights", `{"userScope":{"id":`+user+`},"labels":["site=north"],"accessLevel":"VIEW"}`)
}

// makeLater makes resources of release 9.6.
func makeLater(m *manager) {
	at := "/api/v2/configurations/" + m.ID("/api/v2/configurations", `{"name":"moved"}`)
	for _, f := range []struct{ family, whole, block, blockTo, network, networkTo, address, addressTo string }{
		{"IPv4", "10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "10.8.0.0/24", "10.9.0.0/24", "10.9.0.5", "10.9.0.6"},
		{"IPv6", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:2::/48", "2001:db8:8::/64", "2001:db8:9::/64", "2001:db8:9::5", "2001:db8:9::6"},
	} {
		below := "/api/v2/blocks/" + m.ID(at+"/blocks", `{"type":"`+f.family+`Block","range":"`+f.whole+`"}`)
		move := func(collection, id, kind, to string) {
			m.ID("/api/v2/"+collection+"/"+id+"/moves", `{"type":"`+f.family+kind+`Move","destination":{`+to+`}}`)
		}
		move("blocks", m.ID(below+"/blocks", `{"type":"`+f.family+`Block","range":"`+f.block+`"}`), "Block", `"range":"`+f.blockTo+`"`)
		network := m.ID(below+"/networks", `{"type":"`+f.family+`Network","range":"`+f.network+`"}`)
		move("networks", network, "Network", `"range":"`+f.networkTo+`"`)
		move("addresses", m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"`+f.family+`Address","state":"STATIC","address":"`+f.address+`"}`),
			"Address", `"address":"`+f.addressTo+`"`)
	}
	view := m.ID(at+"/views", `{"name":"moved"}`)
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"before.example"}`)
	record := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"a","text":"x"}`)
	m.ID("/api/v2/resourceRecords/"+record+"/moves", `{"type":"ResourceRecordMove","destination":{"absoluteName":"b.before.example"}}`)
	m.ID("/api/v2/zones/"+zone+"/moves", `{"type":"ZoneMove","destination":{"absoluteName":"after.example"}}`)
}

// makePeople makes providers of sign-in.
func makePeople(m *manager) {
	m.ID("/api/v2/groups", `{"name":"operators"}`)
	m.ID("/api/v2/userDefinedFieldDefinitions", `{"name":"owner","displayName":"Owner","resourceType":"Device","dataType":"TEXT"}`)
	m.ID("/api/v2/userDefinedLinkDefinitions",
		`{"name":"uplink","displayName":"Uplink","sourceTypes":["Device"],"destinationTypes":["IPv4Network"]}`)
	at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	m.ID(at+"/reconciliationPolicies", `{"type":"IPv4ReconciliationPolicy","discoveryMethod":"PINGSWEEP","startDateTime":"2026-01-01T00:00:00Z",`+
		`"networkBoundaries":["10.0.0.0/24"]}`)
	m.ID("/api/v2/networks/"+m.Want(200, "GET", "/api/v2/networks?"+filter("type:'IPv6Network'"),
		"").Text("data.0.id")+"/reconciliationPolicies",
		`{"type":"IPv6ReconciliationPolicy","discoveryMethod":"NO_DISCOVERY","startDateTime":"2026-01-01T00:00:00Z"}`)
}

// makeSchedules makes schedules.
func makeSchedules(m *manager) {
	at := "/api/v2/configurations/" + m.Want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").Text("data.0.id")
	server := m.Want(200, "GET", at+"/servers?"+filter("name:'wire'"), "").Text("data.0.id")
	m.ID(at+"/schedules", `{"type":"DeploymentSchedule","name":"nightly","startDateTime":"2999-01-01T02:00:00Z","interval":"P1D",`+
		`"deploymentServices":["DNS"],"servers":[{"id":`+server+`}]}`)
	m.ID("/api/v2/notificationGroups", `{"name":"on call","notificationType":"SMTP_SERVICE","eventSubscriptions":[{"category":"MIGRATION","eventTypes":["FAILED"]}]}`)
	schedules := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id") + "/schedules"
	m.ID(schedules, `{"type":"DatabaseBackupSchedule","name":"nightly","startDateTime":"2999-01-01T03:00:00Z","interval":"P1D"}`)
}

// makeVLANs makes a VLAN of a network for the golden bytes.
func makeVLANs(m *manager) {
	network := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("range:'10.0.0.0/24'"), "")
	group := m.ID("/api/v2/configurations/"+network.Text("data.0.configuration.id")+"/vlanGroups", `{"type":"VLANGroup","name":"quay"}`)
	vlan := m.ID("/api/v2/vlanGroups/"+group+"/vlans", `{"type":"VLAN","name":"office","number":20}`)
	m.Want(200, "PATCH", "/api/v2/networks/"+network.Text("data.0.id"), `{"vlan":{"id":`+vlan+`}}`)
}

// makeCertificates makes an authenticator of certificates.
func makeCertificates(m *manager) {
	m.ID("/api/v2/authenticators", `{"type":"X509Authenticator","name":"cards","ldapUserMatchOption":"NONE","primaryServerUrl":"http://ocsp.example",`+
		`"caCertificates":["`+anIssuer+`"]}`)
	m.ID("/api/v2/authenticators", `{"type":"SAMLIdentityProvider","name":"idp","signOnUrl":"https://idp.example/sso",`+
		`"entityId":"https://idp.example/metadata","signingCertificate":"`+anIssuer+`"}`)
}
