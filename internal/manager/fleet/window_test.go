package fleet

import (
	"encoding/json"
	"testing"
	"time"
)

func TestWindows(t *testing.T) {
	night, weekend := Window{From: "22:00", To: "04:00"}, Window{Days: []string{"SAT", "SUN"}, From: "06:00", To: "20:00"}
	friday := Window{Days: []string{"FRI"}, From: "23:00", To: "02:00"}
	for _, c := range []struct {
		w    Window
		at   string // 2026-11-23 is a Monday
		open bool
	}{
		{night, "2026-11-23 21:59", false}, {night, "2026-11-23 22:00", true}, {night, "2026-11-23 03:59", true},
		{night, "2026-11-23 04:00", false},
		{weekend, "2026-11-21 06:00", true}, {weekend, "2026-11-22 19:59", true}, {weekend, "2026-11-22 20:00", false},
		{weekend, "2026-11-23 12:00", false},
		{friday, "2026-11-20 23:30", true}, {friday, "2026-11-21 01:59", true}, {friday, "2026-11-21 02:00", false},
		{friday, "2026-11-20 01:00", false}, // Thursday's night
	} {
		at, err := time.Parse("2006-01-02 15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.w.isOpen(at); got != c.open {
			t.Errorf("%+v at %s: %v", c.w, c.at, got)
		}
	}
	// The plan sets the time zone.
	p := NewPlan()
	p.Windows, p.TimeZone = []Window{night}, "America/New_York"
	if at := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC); !p.isOpen(at) || p.isOpen(at.Add(-2*time.Hour)) {
		t.Error("23:00 in New York is not in the window, or 21:00 is")
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]int{`5`: 5, `"5"`: 5, `"5%"`: 2, `"0"`: 0, `"100%"`: 21, `1000`: 21} {
		var a Amount
		if err := json.Unmarshal([]byte(text), &a); err != nil || a.count(21) != want {
			t.Errorf("%s of 21 is %d (%v), want %d", text, a.count(21), err, want)
		}
	}
	for _, text := range []string{`"5.5%"`, `-1`, `"101%"`, `"x"`, `true`, `""`, `"%"`} {
		if err := json.Unmarshal([]byte(text), new(Amount)); err == nil {
			t.Errorf("%s is an amount", text)
		}
	}
}

func TestWaves(t *testing.T) {
	p := NewPlan()
	sizes := map[int]int{}
	for n := range 200 {
		sizes[p.wave(n, 200)]++
	}
	if sizes[0] != 1 || sizes[1] != 9 || sizes[2] != 40 || sizes[3] != 150 {
		t.Errorf("the waves have %v", sizes)
	}
	if p.wave(0, 1) != 0 {
		t.Error("one alone is not in the first wave")
	}
}
