package authn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"portolan/internal/authn/authntest"
	"portolan/internal/freeport"
)

// A directory says who somebody is, over every kind of connection; nothing that is sent as a name or a password is more than that.
func TestLDAP(t *testing.T) {
	d := authntest.NewDirectory(t)
	plain := LDAP{Host: "127.0.0.1", Port: d.Port, Certificates: d.Certificate, BindDN: "cn=searcher,dc=example,dc=net",
		BindPassword: "finds people",
		Base:         "dc=example,dc=net", UserClass: "inetOrgPerson", GroupClass: "groupOfNames", NameAttribute: "uid", EmailAttribute: "mail",
		GroupsAttribute: "memberOf", Aliases: "NEVER"}
	starting, tls, distrustful, elsewhere, stranger := plain, plain, plain, plain, plain
	starting.StartTLS = true
	tls.TLS, tls.Port = true, d.Secure
	distrustful.StartTLS, distrustful.Certificates = true, authntest.Certificate(t, t.TempDir())
	elsewhere.Port = int64(freeport.For(t).Port())
	stranger.BindPassword = "wrong"
	for name, l := range map[string]LDAP{"plain": plain, "StartTLS": starting, "LDAPS": tls} {
		id, err := l.Check(t.Context(), "carol", "carols password")
		if err != nil || id.Name != "carol" || id.Email != "carol@example.net" || !slices.Contains(id.Groups, "cn=netops,dc=example,dc=net") {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
		if id, err := l.Check(t.Context(), "CAROL", "carols password"); err != nil || id.Name != "carol" {
			t.Errorf("%s: CAROL is %+v, %v", name, id, err)
		}
		for _, pair := range [][2]string{{"carol", "wrong"}, {"carol", ""}, {"nobody", "x"}, {"*", "carols password"}, {"car*",
			"carols password"},
			{"carol)(uid=*", "carols password"}, {"carol)(|(uid=*", "a star"}, {"\x00carol", "carols password"}, {"star", "a star"},
			{"", "carols password"}, {"uid=carol,dc=example,dc=net", "carols password"}, {strings.Repeat("a", 5000), "x"}} {
			if id, err := l.Check(t.Context(), pair[0], pair[1]); !errors.Is(err, ErrWrong) {
				t.Errorf("%s: %q with %q: %+v, %v", name, pair[0], pair[1], id, err)
			}
		}
		if id, err := l.Check(t.Context(), "star*", "a star"); err != nil || id.Name != "star*" {
			t.Errorf("%s: a name with a star: %+v, %v", name, id, err)
		}
	}
	for name, l := range map[string]LDAP{"another certificate": distrustful, "nobody listens": elsewhere,
		"the searcher is refused": stranger} {
		if _, err := l.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for dn, want := range map[string]bool{"cn=netops,dc=example,dc=net": true, "CN=NetOps, DC=example,DC=net": true,
		"cn=none,dc=example,dc=net":   false,
		"uid=carol,dc=example,dc=net": false, "no name": false} {
		if there, err := plain.HasGroup(t.Context(), dn); err != nil || there != want {
			t.Errorf("%s is there: %v, %v", dn, there, err)
		}
	}
	if !SameDN("CN=netops, dc=example,dc=net", "cn=NETOPS,dc=example,dc=net") || SameDN("cn=a", "cn=b") || SameDN("a", "a") {
		t.Error("distinguished names are compared wrong")
	}
}
