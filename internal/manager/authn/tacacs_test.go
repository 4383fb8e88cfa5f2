package authn

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/authntest"
)

// TestTACACS checks that a TACACS+ server verifies passwords by PAP and by CHAP, and returns the groups.
func TestTACACS(t *testing.T) {
	server := authntest.TACACS{Secret: "shared here", Name: "carol", Password: "carols password",
		Groups: []string{"group=netops,ops", "priv-lvl=15", "group*guests"}}
	at := server.Start(t)
	for _, chap := range []bool{false, true} {
		a := TACACS{Host: at.Addr().String(), Port: int64(at.Port()), Secret: server.Secret, CHAP: chap, Timeout: 5 * time.Second,
			GroupAttribute: "group"}
		id, err := a.Check(t.Context(), "carol", "carols password")
		if err != nil || id.Name != "carol" || !slices.Equal(id.Groups, []string{"netops", "ops", "guests"}) {
			t.Errorf("CHAP %v: %+v, %v", chap, id, err)
		}
		for _, pair := range [][2]string{{"carol", "wrong"}, {"nobody", "carols password"}, {"carol", strings.Repeat("x", 300)}, {"", "x"},
			{"cärol", "carols password"}} {
			if _, err := a.Check(t.Context(), pair[0], pair[1]); !errors.Is(err, ErrWrong) {
				t.Errorf("CHAP %v: %q with %.9q: %v", chap, pair[0], pair[1], err)
			}
		}
		refused := a
		refused.Arguments = []string{"service=shell"}
		if _, err := refused.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrWrong) {
			t.Errorf("without an authorization: %v", err)
		}
		stranger := a
		stranger.Secret = "another"
		if _, err := stranger.Check(t.Context(), "carol", "carols password"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("with another secret: %v", err)
		}
	}
	server.Plain = true
	at = server.Start(t)
	a := TACACS{Host: at.Addr().String(), Port: int64(at.Port()), Secret: server.Secret, Timeout: 5 * time.Second}
	if id, err := a.Check(t.Context(), "carol", "wrong"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an answer without the secret: %+v, %v", id, err)
	}
}

// TestSilentTACACS checks that a server that accepts a connection and does not answer is unavailable after the timeout.
func TestSilentTACACS(t *testing.T) {
	at, came := counted(t)
	a := TACACS{Host: at.Addr().String(), Port: int64(at.Port()), Secret: "s", Timeout: 200 * time.Millisecond}
	if _, err := a.Check(t.Context(), "carol", "x"); !errors.Is(err, ErrUnavailable) || came.Load() == 0 {
		t.Errorf("%v, %d connections", err, came.Load())
	}
}
