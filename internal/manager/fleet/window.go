package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
)

// days are the names of the days of a window, in the order of time.Weekday.
var days = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// Window is a maintenance window: a time of day on some or all days. A window that ends before its start time ends on the next day.
type Window struct {
	// Days are the days on which the window starts, such as MON; empty means every day.
	Days []string `json:"days,omitempty"`
	// From and To are times of day, such as 22:00.
	From string `json:"from"`
	To   string `json:"to"`
}

// UnmarshalJSON decodes a window. It rejects unknown fields, because a misspelt one would leave out days or times.
func (w *Window) UnmarshalJSON(text []byte) error {
	type plain Window
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(w)); err != nil {
		return problem.Invalid("windows", "each window must be an object with days, from and to: %v", err)
	}
	return nil
}

// clock parses a time of day and returns it in minutes since midnight.
func clock(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day, such as 22:00", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}

func (w Window) check() error {
	for _, day := range w.Days {
		if !slices.Contains(days, day) {
			return problem.Invalid("windows.days", "must be one of %s, not %q", strings.Join(days, ", "), day)
		}
	}
	from, err := clock(w.From)
	if err != nil {
		return problem.Invalid("windows.from", "%v", err)
	}
	to, err := clock(w.To)
	if err != nil {
		return problem.Invalid("windows.to", "%v", err)
	}
	if from == to {
		return problem.Invalid("windows", "a window from %s to %s is empty: omit it for the whole day", w.From, w.To)
	}
	return nil
}

// isOpen reports whether a time, in the time zone of the window, is in the window.
func (w Window) isOpen(at time.Time) bool {
	from, err := clock(w.From)
	to, e := clock(w.To)
	if err != nil || e != nil { // it was checked
		return false
	}
	now := at.Hour()*60 + at.Minute()
	begins := func(day time.Weekday) bool { return len(w.Days) == 0 || slices.Contains(w.Days, days[day]) }
	if from < to {
		return begins(at.Weekday()) && from <= now && now < to
	}
	return begins(at.Weekday()) && now >= from || begins((at.Weekday()+6)%7) && now < to
}

// Amount is a number of service points, or a percentage of them.
type Amount struct {
	N       int
	Percent bool
}

// UnmarshalJSON decodes 5, "5" or "5%".
func (a *Amount) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) != nil {
		s = string(text)
	}
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 {
		return fmt.Errorf("%s must be a number or a percentage, such as 5 or \"5%%\"", text)
	}
	*a = Amount{n, percent}
	return nil
}

// String returns the amount in the form that UnmarshalJSON accepts.
func (a Amount) String() string {
	if a.Percent {
		return strconv.Itoa(a.N) + "%"
	}
	return strconv.Itoa(a.N)
}

// MarshalJSON encodes the amount as a string.
func (a Amount) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// count returns the number of service points of a total. A percentage is rounded up.
func (a Amount) count(all int) int {
	if a.Percent {
		return (all*a.N + 99) / 100
	}
	return min(a.N, all)
}
