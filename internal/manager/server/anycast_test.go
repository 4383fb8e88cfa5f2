package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
)

// TestAnycastSettings checks that routing settings are stored with their defaults and shown without passwords. Invalid settings are refused
// and change nothing. An address belongs to one application, and requires a router that announces it.
func TestAnycastSettings(t *testing.T) {
	m := startAlone(t)
	id, _ := m.create("edge")
	path := "/user/api/v1/fleetInstances/" + id
	apps := path + "/applications"
	resolver := func(listen string) string {
		return `{"name":"dns-resolver-service","configuration":{"listen":[` + listen + `],"upstreams":[{"address":"192.0.2.99"}]}`
	}
	probe := resolver(`{"address":"0.0.0.0"}`)
	m.Refused(400, "InvalidResourceFieldValue", "anycastAddresses", "POST", apps, probe+`,"anycastAddresses":["198.51.100.53"]}`)
	neighbor := `{"address":"192.0.2.1","autonomousSystemNumber":65000}`
	for naming, settings := range map[string]string{
		"protocol":                          `{"protocol":"OSPF","autonomousSystemNumber":1,"neighbors":[` + neighbor + `]}`,
		"RIPng":                             `{"protocol":"RIPng","autonomousSystemNumber":1,"neighbors":[` + neighbor + `]}`,
		"autonomousSystemNumber":            `{"protocol":"BGP","neighbors":[` + neighbor + `]}`,
		"anycast.autonomousSystemNumber":    `{"protocol":"BGP","autonomousSystemNumber":4294967296,"neighbors":[` + neighbor + `]}`,
		"routerId":                          `{"protocol":"BGP","autonomousSystemNumber":1,"routerId":"::1","neighbors":[` + neighbor + `]}`,
		"holdTimeInterval":                  `{"protocol":"BGP","autonomousSystemNumber":1,"holdTimeInterval":2,"neighbors":[` + neighbor + `]}`,
		"keepAliveInterval":                 `{"protocol":"BGP","autonomousSystemNumber":1,"keepAliveInterval":9,"holdTimeInterval":9,"neighbors":[` + neighbor + `]}`,
		"anycast.neighbors":                 `{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[]}`,
		"neighbors[0].address":              `{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[{"address":"router","autonomousSystemNumber":1}]}`,
		"neighbors[1].address":              `{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[` + neighbor + `,` + neighbor + `]}`,
		"neighbors[0].port":                 `{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[{"address":"192.0.2.1","autonomousSystemNumber":1,"port":65536}]}`,
		"neighbors[0].hopLimit":             `{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[{"address":"192.0.2.1","autonomousSystemNumber":1,"hopLimit":7}]}`,
		"neighbors[0].authenticationPasswo": `{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[{"address":"192.0.2.1","autonomousSystemNumber":2,"authenticationPassword":"` + strings.Repeat("p", 81) + `"}]}`,
		"prefixFilters":                     `{"protocol":"BGP","autonomousSystemNumber":1,"prefixFilters":[],"neighbors":[` + neighbor + `]}`,
	} {
		m.Refused(400, "InvalidResourceFieldValue", naming, "PATCH", path, `{"anycast":`+settings+`}`)
	}
	if got := m.Want(200, "GET", path, ""); got.Get("anycast") != nil {
		t.Errorf("what was refused is there: %s", got.Body)
	}
	set := func(password string) reply {
		return m.Want(200, "PATCH", path, `{"anycast":{"protocol":"bgp","autonomousSystemNumber":65001,"neighbors":[{"address":"192.0.2.1",`+
			`"autonomousSystemNumber":65000`+password+`}]}}`)
	}
	for _, r := range []reply{set(`,"authenticationPassword":"s3cret"`), set(`,"authenticationPasswordIsSet":true`), m.Want(200, "GET", path, "")} {
		if strings.Contains(string(r.Body), "s3cret") || r.Text("anycast.neighbors.0.authenticationPasswordIsSet") != "true" ||
			r.Text("anycast.holdTimeInterval") != "9" || r.Text("anycast.keepAliveInterval") != "3" || r.Text("anycast.protocol") != "BGP" {
			t.Errorf("the settings are %s", r.Body)
		}
	}
	if r := set(`,"authenticationPassword":""`); strings.Contains(string(r.Body), "IsSet") {
		t.Errorf("a password that was taken away is there: %s", r.Body)
	}

	for naming, addresses := range map[string]string{"anycastAddresses": `"198.51.100.53"`, "anycastAddresses[0]": `["127.0.0.1"]`,
		"anycastAddresses[1]": `["198.51.100.53","198.51.100.53"]`, "anycastAddresses[0]: \"198.51.100.53/32\" is a prefix": `["198.51.100.53/32"]`,
		"is the address of a neighbor": `["192.0.2.1"]`} {
		m.Refused(400, "InvalidResourceFieldValue", naming, "POST", apps, probe+`,"anycastAddresses":`+addresses+`}`)
	}
	m.Refused(400, "InvalidResourceFieldValue", "no neighbor of its address family", "POST", apps,
		resolver(`{"address":"::","port":54}`)+`,"anycastAddresses":["2001:db8::53"]}`)
	m.Refused(400, "InvalidResourceFieldValue", "does not listen", "POST", apps,
		resolver(`{"address":"192.0.2.9"}`)+`,"anycastAddresses":["198.51.100.53"]}`)
	m.Refused(400, "InvalidResourceFieldValue", "does not listen", "POST", apps,
		`{"name":"http-probe-service","configuration":{"targets":[{"address":"127.0.0.1"}]},"anycastAddresses":["198.51.100.53"]}`)
	one := m.Want(202, "POST", apps, probe+`,"anycastAddresses":["198.51.100.53"],"limits":{"memoryMiB":128,"cpuPercent":50}}`).Text("id")
	m.Refused(400, "InvalidResourceFieldValue", one, "POST", apps, resolver(`{"address":"0.0.0.0","port":54}`)+`,"anycastAddresses":["198.51.100.53"]}`)
	m.Refused(400, "InvalidResourceFieldValue", "does not listen", "PATCH", apps+"/"+one,
		`{"configuration":{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.9"}]}}`)
	got := m.Want(200, "GET", apps+"/"+one, "")
	if got.Text("anycastIPAddress.0.ipAddress") != "198.51.100.53" || got.Text("anycastIPAddress.0.isUp") != "false" ||
		got.Text("anycastIPAddress.0.isUseByAppId") != one || got.Text("limits.memoryMiB") != "128" || got.Text("limits.cpuPercent") != "50" {
		t.Errorf("the application is %s", got.Body)
	}
	m.Refused(409, "AnycastInUse", "198.51.100.53", "PATCH", path, `{"anycast":null}`)
	m.Refused(409, "AnycastInUse", "198.51.100.53", "PATCH", path,
		`{"anycast":{"protocol":"BGP","autonomousSystemNumber":1,"neighbors":[{"address":"2001:db8::1","autonomousSystemNumber":1}]}}`)
	for naming, limits := range map[string]string{"limits.memoryMiB": `{"memoryMiB":3}`, "limits.cpuPercent": `{"cpuPercent":-1}`,
		"memory": `{"memory":3}`, "limits": `7`, "must be an object": `null`} {
		m.Refused(400, "InvalidResourceFieldValue", naming, "PATCH", apps+"/"+one, `{"limits":`+limits+`}`)
	}
	m.Want(202, "PATCH", apps+"/"+one, `{"anycastAddresses":[],"limits":{}}`)
	if got := m.Want(200, "GET", apps+"/"+one, ""); got.Get("anycastIPAddress.0") != nil || got.Get("limits") != nil {
		t.Errorf("the application is %s", got.Body)
	}
	if r := m.Want(200, "PATCH", path, `{"anycast":null}`); r.Get("anycast") != nil {
		t.Errorf("what was taken away is there: %s", r.Body)
	}
}

// TestPrivateKeyOfAResolver checks that the private key of a resolver's certificate is never shown, and stays if a client sends the
// configuration back without it.
func TestPrivateKeyOfAResolver(t *testing.T) {
	m := startAlone(t)
	id, _ := m.create("edge")
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"dns.example"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	configuration := func(key string) string {
		return fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","tls":true}],"upstreams":[{"address":"127.0.0.9"}],"tls":{"certificate":%q%s}}`,
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key)
	}
	path := "/user/api/v1/fleetInstances/" + id + "/applications"
	m.Refused(400, "InvalidResourceFieldValue", "tls.key", "POST", path, `{"name":"dns-resolver-service","configuration":`+configuration("")+`}`)
	given := fmt.Sprintf(`,"key":%q`, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	app := m.Want(202, "POST", path, `{"name":"dns-resolver-service","configuration":`+configuration(given)+`}`).Text("id")
	for _, at := range []string{path, path + "/" + app, "/user/api/v1/fleetInstances/" + id, "/user/api/v1/fleetInstances"} {
		if r := m.Want(200, "GET", at, ""); strings.Contains(string(r.Body), "PRIVATE KEY") {
			t.Errorf("%s shows %s", at, r.Body)
		}
	}
	m.Want(202, "PATCH", path+"/"+app, `{"configuration":`+configuration("")+`}`)
	m.Want(202, "PATCH", path+"/"+app, `{"configuration":`+strings.Replace(configuration(given), `"tls":{`, `"TLS":{`, 1)+`}`)
	var kept string
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT configuration FROM application WHERE id = ?", app).Scan(&kept)
	}); err != nil || !strings.Contains(kept, "PRIVATE KEY") {
		t.Errorf("what is kept is %s, %v", kept, err)
	}
	if r := m.Want(200, "GET", path, ""); strings.Contains(string(r.Body), "PRIVATE KEY") {
		t.Errorf("by another spelling it shows %s", r.Body)
	}
}
