package authn

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"portolan/internal/testkit/authntest"
	"portolan/internal/testkit/freeport"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// TestLDAP checks that a directory verifies users over plain, StartTLS and TLS connections. Special characters in names and passwords have
// no effect.
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
	elsewhere.Port = int64(freeport.Reserve(t).Port())
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
		if _, err := l.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrUnavailable) {
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
	// A referral to the same host is followed if enabled, over a connection as secure as the first. Other referrals are not followed.
	following, followingTLS := plain, plain
	following.FollowReferrals = true
	followingTLS.FollowReferrals, followingTLS.StartTLS = true, true
	for name, l := range map[string]LDAP{"plain": following, "StartTLS": followingTLS} {
		id, err := l.Check(t.Context(), "bob", "bobs password")
		if err != nil || id.Name != "bob" || !slices.Contains(id.Groups, "cn=ops,dc=branch,dc=org") {
			t.Errorf("%s: behind a referral: %+v, %v", name, id, err)
		}
		if _, err := l.Check(t.Context(), "bob", "wrong"); !errors.Is(err, ErrWrong) {
			t.Errorf("%s: behind a referral: %v", name, err)
		}
		if id, err := l.Check(t.Context(), "carol", "carols password"); err != nil || id.Name != "carol" {
			t.Errorf("%s: beside referrals: %+v, %v", name, id, err)
		}
	}
	if _, err := plain.Check(t.Context(), "bob", "bobs password"); !errors.Is(err, ErrWrong) {
		t.Errorf("a referral that is passed over: %v", err)
	}
	for dn, want := range map[string]bool{"cn=ops,dc=branch,dc=org": true, "cn=none,dc=branch,dc=org": false} {
		if there, err := following.HasGroup(t.Context(), dn); err != nil || there != want {
			t.Errorf("behind a referral %s is there: %v, %v", dn, there, err)
		}
	}
	throwing := plain
	throwing.RefuseReferrals = true
	if _, err := throwing.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a referral that is refused: %v", err)
	}
	for text, want := range map[string]string{"ldap://127.0.0.1/dc=a": "127.0.0.1 389 true false dc=a",
		"ldaps://127.0.0.1/": "127.0.0.1 636 false true dc=example,dc=net", "ldap://127.0.0.2/dc=a": "", "https://127.0.0.1/": "",
		"ldap://127.0.0.1/dc=a??base": "", "ldap://127.0.0.1/dc=a??sub?(uid=x)": "",
		"ldap:///dc=b??sub": "127.0.0.1 " + strconv.FormatInt(d.Port, 10) + " true false dc=b", "elsewhere": ""} {
		got := ""
		if at, ok := followingTLS.referredTo(text); ok {
			got = fmt.Sprint(at.Host, " ", at.Port, " ", at.StartTLS, " ", at.TLS, " ", at.Base)
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", text, got, want)
		}
	}
	if !SameDN("CN=netops, dc=example,dc=net", "cn=NETOPS,dc=example,dc=net") || SameDN("cn=a", "cn=b") || SameDN("a", "a") {
		t.Error("distinguished names are compared wrong")
	}
}

// fakeDirectory answers binds with success, and searches with the given function, until the test ends. It returns its port.
func fakeDirectory(t *testing.T, search func(c net.Conn, number int64)) int64 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	serve := func(c net.Conn) {
		defer func() { _ = c.Close() }()
		for {
			p, err := ber.ReadPacket(c)
			if err != nil || len(p.Children) < 2 {
				return
			}
			number, _ := p.Children[0].Value.(int64)
			switch p.Children[1].Tag {
			case ldap.ApplicationBindRequest:
				_, _ = c.Write(directoryResult(number, ldap.ApplicationBindResponse).Bytes())
			case ldap.ApplicationSearchRequest:
				search(c, number)
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return int64(l.Addr().(*net.TCPAddr).Port)
}

// directoryResult is a successful answer of a kind.
func directoryResult(number int64, kind ber.Tag) *ber.Packet {
	p := directoryMessage(number)
	r := ber.Encode(ber.ClassApplication, ber.TypeConstructed, kind, nil, "")
	r.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, 0, ""))
	for range 2 {
		r.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, "", ""))
	}
	p.AppendChild(r)
	return p
}

func directoryMessage(number int64) *ber.Packet {
	p := ber.NewSequence("")
	p.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, number, ""))
	return p
}

// directoryEntry is an entry of a search, without attributes or with a uid.
func directoryEntry(number int64, dn, uid string) *ber.Packet {
	p := directoryMessage(number)
	e := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultEntry, nil, "")
	e.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, dn, ""))
	attributes := ber.NewSequence("")
	if uid != "" {
		one, values := ber.NewSequence(""), ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSet, nil, "")
		one.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, "uid", ""))
		values.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, uid, ""))
		one.AppendChild(values)
		attributes.AppendChild(one)
	}
	e.AppendChild(attributes)
	p.AppendChild(e)
	return p
}

// TestDirectoryEntriesAreLimited checks that a sign-in fails as soon as the directory has sent more entries than the limit.
func TestDirectoryEntriesAreLimited(t *testing.T) {
	var sent atomic.Int64
	port := fakeDirectory(t, func(c net.Conn, number int64) {
		for entry := directoryEntry(number, "cn="+strings.Repeat("x", 1<<20), "").Bytes(); ; {
			n, err := c.Write(entry)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	l := LDAP{Host: "127.0.0.1", Port: port, BindDN: "cn=a", BindPassword: "b", Base: "dc=x", UserClass: "person", NameAttribute: "uid",
		Aliases: "NEVER"}
	if _, err := l.Check(t.Context(), "carol", "x"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an endless directory: %v", err)
	}
	// The socket buffers take up to 36 MiB more (tcp_rmem, tcp_wmem).
	if most := int64(maxDirectoryBytes + 64<<20); sent.Load() > most {
		t.Errorf("%d bytes were taken, more than %d", sent.Load(), most)
	}
}

// TestFailedReferrals checks that a user who is found in the directory signs in even if a referral fails, or returns the same entry.
func TestFailedReferrals(t *testing.T) {
	copied := fakeDirectory(t, func(c net.Conn, number int64) {
		_, _ = c.Write(directoryEntry(number, "UID=carol,dc=x", "carol").Bytes())
		_, _ = c.Write(directoryResult(number, ldap.ApplicationSearchResultDone).Bytes())
	})
	dead := freeport.Reserve(t).Port()
	refers := func(c net.Conn, number int64, port any) {
		p := directoryMessage(number)
		r := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultReference, nil, "")
		to := fmt.Sprintf("ldap://127.0.0.1:%v/DC=X??sub", port)
		r.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, to, ""))
		p.AppendChild(r)
		_, _ = c.Write(p.Bytes())
	}
	port := fakeDirectory(t, func(c net.Conn, number int64) {
		_, _ = c.Write(directoryEntry(number, "uid=carol,dc=x", "carol").Bytes())
		refers(c, number, copied)
		refers(c, number, dead)
		_, _ = c.Write(directoryResult(number, ldap.ApplicationSearchResultDone).Bytes())
	})
	l := LDAP{Host: "127.0.0.1", Port: port, BindDN: "cn=a", BindPassword: "b", Base: "dc=x", UserClass: "person", NameAttribute: "uid",
		Aliases: "NEVER", FollowReferrals: true}
	if id, err := l.Check(t.Context(), "carol", "x"); err != nil || id.Name != "carol" {
		t.Errorf("beside referrals: %+v, %v", id, err)
	}
	// A user who is not found may be at the unreachable target of the referral.
	if _, err := l.Check(t.Context(), "dave", "x"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a user in another directory: %v", err)
	}
}
