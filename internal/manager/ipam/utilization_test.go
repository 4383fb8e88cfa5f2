package ipam

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestForecasts checks that a range has a forecast only if its leases increase or it is full, that the forecast is that of the increase, and
// that it is at most a year.
func TestForecasts(t *testing.T) {
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 1<<40).Draw(t, "size")
		u := Usage{allocated: rapid.Int64Range(0, size+10).Draw(t, "leased")}
		trend := Trend{PerHour: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e9, 1e9), rapid.Float64Range(-0.1, 0.1)).Draw(t, "slope"),
			Hours: rapid.Float64Range(0, 24).Draw(t, "hours")}
		one := utilizationOf(big.NewInt(size), u, trend, now)
		free := *one.Free
		if free < 0 || one.Percent < 0 || one.Percent > 100 || (one.FullInHours == nil) != (one.FullDateTime == nil) {
			t.Fatalf("%+v", one)
		}
		want := trend.Hours >= minTrend && (free == 0 || trend.PerHour > 0 && float64(free)/trend.PerHour <= maxForecast)
		if want != (one.FullInHours != nil) {
			t.Fatalf("%d free with %+v: %+v", free, trend, one)
		}
		if !want {
			return
		}
		at, err := time.Parse(time.RFC3339, *one.FullDateTime)
		if hours := at.Sub(now).Hours(); err != nil || *one.FullInHours < 0 || *one.FullInHours > maxForecast ||
			hours < *one.FullInHours-0.1 || hours > *one.FullInHours+0.1 {
			t.Fatalf("full in %v hours, at %v: %v", *one.FullInHours, at, err)
		}
	})
}
