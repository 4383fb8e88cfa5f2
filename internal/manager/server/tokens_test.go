package server

import (
	"testing"
	"time"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// TestLastUseOfTokens checks that the last use of a token is stored, to the hour.
func TestLastUseOfTokens(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	if _, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "never used", Role: authz.Analyst}); err != nil {
		t.Fatal(err)
	}
	last := func(name string) time.Time {
		t.Helper()
		all, err := m.Identity.Tokens(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Name == name {
				return one.LastUsed
			}
		}
		t.Fatalf("the token %s does not exist", name)
		return time.Time{}
	}
	// used lets the token be used until that was noted behind a moment: a request that would wait for long leaves it to the next one.
	used := func(behind time.Time) (at time.Time) {
		t.Helper()
		apitest.Eventually(t, "it is noted that the token is used", func() bool {
			m.Want(200, "GET", "/api/v2/configurations", "")
			at = last("test")
			return at.After(behind)
		})
		return at
	}
	first := used(time.Time{})
	if !last("never used").IsZero() {
		t.Errorf("the other one was used at %v", last("never used"))
	}
	c.advance(30 * time.Minute)
	m.Want(200, "GET", "/api/v2/configurations", "")
	if again := last("test"); !again.Equal(first) {
		t.Errorf("half an hour later it is noted again, at %v", again)
	}
	c.advance(31 * time.Minute)
	if again := used(first); again.Sub(first) < time.Hour {
		t.Errorf("an hour later it was used at %v", again)
	}
}
