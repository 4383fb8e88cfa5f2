package authntest

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
)

// Realm is a Kerberos realm with its key distribution center.
type Realm struct {
	// Name is EXAMPLE.NET. At is the listen address of the center.
	Name string
	At   netip.AddrPort
	// Keytab has the key of HTTP/portolan.example.net, in base64. Stale has an older key of it.
	Keytab, Stale string
}

// Kerberos starts MIT Kerberos with the users carol and dave, who have the given password. It runs until the test ends.
func Kerberos(t *testing.T, password string) Realm {
	t.Helper()
	center, admin, util := Program(t, "krb5kdc"), Program(t, "kadmin.local"), Program(t, "kdb5_util")
	dir := t.TempDir()
	r := Realm{Name: "EXAMPLE.NET", At: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), freeport.Reserve(t).Port())}
	files := map[string]string{
		"krb5.conf": fmt.Sprintf("[libdefaults]\n default_realm = %[1]s\n dns_lookup_kdc = false\n[realms]\n %[1]s = {\n kdc = %[2]s\n }\n",
			r.Name, r.At),
		"kdc.conf": fmt.Sprintf("[kdcdefaults]\n kdc_listen = %[3]s\n kdc_tcp_listen = %[3]s\n"+
			"[realms]\n %[1]s = {\n database_name = %[2]s/principal\n key_stash_file = %[2]s/stash\n acl_file = %[2]s/acl\n}\n"+
			"[logging]\n kdc = FILE:%[2]s/kdc.log\n", r.Name, dir, r.At),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := func(name string, args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Env = append(os.Environ(), "KRB5_CONFIG="+filepath.Join(dir, "krb5.conf"), "KRB5_KDC_PROFILE="+filepath.Join(dir, "kdc.conf"))
		return c
	}
	run := func(name string, args ...string) {
		t.Helper()
		if text, err := program(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, text)
		}
	}
	const service = "HTTP/portolan.example.net"
	run(util, "create", "-s", "-r", r.Name, "-P", "the master key")
	for _, user := range []string{"carol", "dave"} {
		run(admin, "-q", "addprinc +requires_preauth -pw \""+password+"\" "+user)
	}
	run(admin, "-q", "addprinc -randkey "+service)
	for _, into := range []*string{&r.Stale, &r.Keytab} { // ktadd creates a new key each time
		file := filepath.Join(dir, "keytab")
		_ = os.Remove(file)
		run(admin, "-q", "ktadd -k "+file+" "+service)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		*into = base64.StdEncoding.EncodeToString(raw)
	}
	c := program(center, "-n", "-r", r.Name)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("tcp", r.At.String())
		if err == nil {
			_ = conn.Close()
			return r
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(dir, "kdc.log"))
			t.Fatalf("the key distribution center does not listen: %v\n%s", err, text)
		}
	}
}

// Keytab returns a keytab with a key of HTTP/portolan.example.net in a realm, in base64. No center knows the key.
func Keytab(realm string) string {
	keys := keytab.New()
	const kind = etypeID.AES256_CTS_HMAC_SHA1_96
	if err := keys.AddEntry("HTTP/portolan.example.net", realm, "a password", time.Unix(0, 0), 1, kind); err != nil {
		panic("a keytab: " + err.Error())
	}
	raw, err := keys.Marshal()
	if err != nil {
		panic("a keytab: " + err.Error())
	}
	return base64.StdEncoding.EncodeToString(raw)
}
