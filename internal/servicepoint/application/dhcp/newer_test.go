package dhcp

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewerJournal checks that a journal with entries of a newer version is not opened, that the service reports it, and that the journal
// stays as it is.
func TestNewerJournal(t *testing.T) {
	dir := t.TempDir()
	j, _, err := open(t, filepath.Join(dir, "leases"), journalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, j, []string{"?new"})
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := newService(dir, slog.New(slog.DiscardHandler))
		if conditions := s.Health(); !errors.Is(s.failed, errNewer) || len(conditions) != 1 || !strings.Contains(conditions[0], errNewer.Error()) {
			t.Errorf("%v %v", s.failed, conditions)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, all, err := open(t, filepath.Join(dir, "leases"), journalOptions{}); err != nil || len(all) != 1 {
		t.Errorf("the journal has %d records: %v", len(all), err)
	}
}
