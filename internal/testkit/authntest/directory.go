// Package authntest provides servers for sign-in tests: an LDAP directory, Kerberos, TACACS+, an OpenID provider, and a SAML identity
// provider.
package authntest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"
)

// Program returns the path of an installed program. If it is not installed, the test is skipped, or fails with CI=true.
func Program(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("there is no %s", name)
	}
	t.Skipf("there is no %s", name)
	return ""
}

// Certificate creates a self-signed certificate for 127.0.0.1 in the files cert.pem and key.pem, and returns it in PEM.
func Certificate(t *testing.T, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "directory"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: keyDER})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return string(cert)
}

// Directory is an OpenLDAP server with the users carol ("carols password"), who is in the group cn=netops,dc=example,dc=net, and star*. The
// bind DN for searches is cn=searcher,dc=example,dc=net ("finds people"). Two entries are referrals: one to dc=branch,dc=org on the same
// host, with bob ("bobs password"), who is in cn=ops, and one to another host.
type Directory struct {
	// Port and Secure are its ports on 127.0.0.1, without and with TLS. Certificate is its certificate in PEM.
	Port, Secure int64
	Certificate  string
	stop         func()
}

// Stop stops the server.
func (d *Directory) Stop() { d.stop() }

// NewDirectory starts a directory that runs until the test ends.
func NewDirectory(t *testing.T) *Directory {
	t.Helper()
	slapd := Program(t, "slapd")
	dir := t.TempDir()
	cert := Certificate(t, dir)
	for _, name := range []string{"db", "branch"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := fmt.Sprintf(`include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile %[1]s/pid
TLSCertificateFile %[1]s/cert.pem
TLSCertificateKeyFile %[1]s/key.pem
database mdb
suffix dc=example,dc=net
rootdn cn=searcher,dc=example,dc=net
rootpw "finds people"
directory %[1]s/db
access to attrs=userPassword by anonymous auth by self write by * none
access to * by * read
database mdb
suffix dc=branch,dc=org
rootdn cn=searcher,dc=branch,dc=org
rootpw "finds people"
directory %[1]s/branch
access to attrs=userPassword by anonymous auth by self write by * none
access to * by * read
`, dir)
	port, secure := int64(freeport.Reserve(t).Port()), int64(freeport.Reserve(t).Port())
	people := fmt.Sprintf(`dn: dc=example,dc=net
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: uid=carol,dc=example,dc=net
objectClass: inetOrgPerson
uid: carol
cn: Carol
sn: C
mail: carol@example.net
userPassword: carols password

dn: uid=star*,dc=example,dc=net
objectClass: inetOrgPerson
uid: star*
cn: Star
sn: S
userPassword: a star

dn: cn=netops,dc=example,dc=net
objectClass: groupOfNames
cn: netops
member: uid=carol,dc=example,dc=net

dn: ou=branch,dc=example,dc=net
objectClass: referral
objectClass: extensibleObject
ou: branch
ref: ldap://127.0.0.1:%d/dc=branch,dc=org??sub

dn: ou=far,dc=example,dc=net
objectClass: referral
objectClass: extensibleObject
ou: far
ref: ldap://192.0.2.1/dc=branch,dc=org??sub
`, port)
	const branch = `dn: dc=branch,dc=org
objectClass: dcObject
objectClass: organization
o: Branch
dc: branch

dn: uid=bob,dc=branch,dc=org
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: B
userPassword: bobs password

dn: cn=ops,dc=branch,dc=org
objectClass: groupOfNames
cn: ops
member: uid=bob,dc=branch,dc=org
`
	for name, text := range map[string]string{"slapd.conf": config, "dc=example,dc=net": people, "dc=branch,dc=org": branch} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{"dc=example,dc=net", "dc=branch,dc=org"} {
		if out, err := exec.CommandContext(t.Context(), Program(t, "slapadd"), "-f", filepath.Join(dir, "slapd.conf"), "-b", suffix, "-l",
			filepath.Join(dir, suffix)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	c := exec.CommandContext(t.Context(), slapd, "-d", "0", "-f", filepath.Join(dir, "slapd.conf"), "-h",
		fmt.Sprintf("ldap://127.0.0.1:%d ldaps://127.0.0.1:%d", port, secure))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	t.Cleanup(stop)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.FormatInt(secure, 10))
		if err == nil {
			_ = conn.Close()
			return &Directory{port, secure, cert, stop}
		}
		if time.Now().After(deadline) {
			t.Fatalf("slapd does not listen: %v", err)
		}
	}
}
