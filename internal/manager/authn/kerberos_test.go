package authn

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/authntest"
)

// TestKerberos checks that a Kerberos realm verifies passwords, and is trusted only if it knows the key of the keytab.
func TestKerberos(t *testing.T) {
	realm := authntest.Kerberos(t, "carols password")
	keys, err := ParseKeytab(realm.Keytab)
	if err != nil || keys.Realm() != realm.Name {
		t.Fatalf("the keytab: %v", err)
	}
	k := Kerberos{Host: realm.At.String(), Realm: realm.Name, Keytab: keys}
	if id, err := k.Check(t.Context(), "carol", "carols password"); err != nil || id.Name != "carol" {
		t.Errorf("%+v, %v", id, err)
	}
	for _, pair := range [][2]string{{"carol", "wrong"}, {"nobody", "carols password"}, {"", ""}, {"carol", ""},
		{"HTTP/portolan.example.net", "x"},
		{"carol@EXAMPLE.ORG", "carols password"}} {
		if _, err := k.Check(t.Context(), pair[0], pair[1]); !errors.Is(err, ErrWrong) {
			t.Errorf("%q with %q: %v", pair[0], pair[1], err)
		}
	}
	// A center that does not know the service's key may be an impostor.
	if k.Keytab, err = ParseKeytab(realm.Stale); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with another key: %v", err)
	}
	silent, came := counted(t)
	k.Host = silent.String()
	ctx, end := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer end()
	if _, err := k.Check(ctx, "carol", "carols password"); !errors.Is(err, ErrUnavailable) || came.Load() == 0 {
		t.Errorf("a center that answers nothing: %v, %d connections", err, came.Load())
	}
	k.Host = "127.0.0.1:1"
	if _, err := k.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a listener: %v", err)
	}
	whole, _ := base64.StdEncoding.DecodeString(realm.Keytab)
	for cut := range len(whole) {
		_, _ = ParseKeytab(base64.StdEncoding.EncodeToString(whole[:cut])) // returns an error, or reads the complete entries; does not panic
	}
	for _, text := range []string{"", "!", "AAAA", base64.StdEncoding.EncodeToString(whole[:2])} {
		if _, err := ParseKeytab(text); err == nil {
			t.Errorf("%q is read as a keytab", text)
		}
	}
}

// TestLongKerberosAnswers checks that an answer that announces an impossible length returns ErrUnavailable, and that nothing of that length
// is allocated.
func TestLongKerberosAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{0x40, 0, 0, 0, 0x7e})
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	keys, err := ParseKeytab(authntest.Keytab("EXAMPLE.NET"))
	if err != nil {
		t.Fatal(err)
	}
	k := Kerberos{Host: l.Addr().String(), Realm: "EXAMPLE.NET", Keytab: keys}
	if _, err := k.Check(t.Context(), "carol", "x"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "more than 131072") {
		t.Errorf("an answer of 1 GiB: %v", err)
	}
}
