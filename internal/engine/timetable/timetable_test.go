package timetable

import (
	"testing"
	"time"
)

// TestNextAfterCenturies checks that the next run is also correct if the start is centuries in the past.
func TestNextAfterCenturies(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, year := range []int{2, 1700, 1969} {
		next := Times{Start: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), Interval: "P1D", Enabled: true}.nextTime(now)
		if want := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC); !next.Equal(want) {
			t.Errorf("from %d on: %s", year, next)
		}
	}
}

// TestNext checks that a schedule is due at its start and at each interval after it. A disabled schedule and a finished one are never due.
func TestNext(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	start := at("2026-03-01T02:00:00Z")
	for _, c := range []struct {
		interval, from, want string
		off                  bool
	}{
		{"", "2026-02-28T00:00:00Z", "2026-03-01T02:00:00Z", false},
		{"", "2026-03-01T02:00:00Z", "2026-03-01T02:00:00Z", false},
		{"", "2026-03-01T02:00:01Z", "", false},
		{"P1D", "2026-03-01T02:00:01Z", "2026-03-02T02:00:00Z", false},
		{"P1D", "2026-03-02T02:00:00Z", "2026-03-02T02:00:00Z", false},
		{"PT90M", "2027-03-01T00:00:00Z", "2027-03-01T00:30:00Z", false},
		{"P1D", "2026-03-01T02:00:01Z", "", true},
	} {
		got := Times{Start: start, Interval: c.interval, Enabled: !c.off}.nextTime(at(c.from))
		if want := c.want; want == "" && !got.IsZero() || want != "" && !got.Equal(at(want)) {
			t.Errorf("every %q behind %s: %s, want %q", c.interval, c.from, got, c.want)
		}
	}
}
