package servicepoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
)

// TestUpdateWithWrongClock checks that the expiry of releases is judged by the manager's time: an update succeeds with a clock that
// is a year ahead, and expired releases are rejected with one that is a year behind.
func TestUpdateWithWrongClock(t *testing.T) {
	year := 365 * 24 * time.Hour
	for what, c := range map[string]struct {
		signed, manager time.Duration // relative to this machine's time
		told            bool
		wrong           string
	}{
		"a clock that is right":                                  {0, 0, true, ""},
		"a clock that is ahead":                                  {-year, -year, true, ""},
		"a clock that is ahead, not told so":                     {-year, -year, false, "expired"},
		"a clock that is behind":                                 {year, year, true, ""},
		"a clock that is behind, and releases that have expired": {0, year, true, "expired"},
	} {
		state, served := t.TempDir(), t.TempDir()
		root := filepath.Join(t.TempDir(), "root.json")
		if err := os.WriteFile(root, serveReleases(t, served, "/dev/null", time.Now().Add(c.signed)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := TrustRoot(state, root); err != nil {
			t.Fatal(err)
		}
		a := agentOf(state, served, "1")
		a.identity = &identity{}
		if c.told {
			a.handleAnswer(checkin.Answer{TimeMillis: time.Now().Add(c.manager).UnixMilli()})
		}
		a.updateTo(t.Context(), checkin.Update{Version: "2", Asked: 1})
		switch failed := a.update.failed; {
		case c.wrong == "" && failed != nil:
			t.Errorf("with %s the update fails: %s", what, failed.Reason)
		case c.wrong != "" && (failed == nil || !strings.Contains(failed.Reason, c.wrong)):
			t.Errorf("with %s the update fails as %+v", what, failed)
		}
	}
}
