package dhcp

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// maxSamples is the largest history: a sample each quarter of an hour for a day, and one each hour before.
const maxSamples = 24*4 + 7*24 + 2

// TestHistoryOfLeases checks that any sequence of clock readings, also with steps of years in both directions, leaves a history that is in
// order, bounded and at most SampleInterval in the future, and that sampling never stops for longer than twice SampleInterval.
func TestHistoryOfLeases(t *testing.T) {
	const interval = int64(SampleInterval / time.Second)
	steps := rapid.OneOf(rapid.Int64Range(0, 1800), rapid.Int64Range(-3600, 7*86400), rapid.Int64Range(-10*366*86400, 10*366*86400))
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		var all []sample
		for range rapid.IntRange(1, 400).Draw(t, "readings") {
			now = now.Add(time.Duration(steps.Draw(t, "step")) * time.Second)
			n := rapid.Int64Range(-5, 1<<34).Draw(t, "leases")
			before := len(all)
			var added bool
			at := min(max(0, now.Unix()), math.MaxUint32)
			if all, added = addSample(all, n, now); !added {
				if last := int64(all[len(all)-1].at); at-last >= interval || last-at >= interval {
					t.Fatalf("at %d no sample is added after %d", at, last)
				}
			}
			if len(all) == 0 || len(all) > maxSamples || len(all) > before+1 {
				t.Fatalf("%d samples after %d", len(all), before)
			}
			for i, s := range all {
				if int64(s.at) >= at+interval || i > 0 && s.at <= all[i-1].at {
					t.Fatalf("the samples are %v at %d", all, at)
				}
			}
			checkTrend(t, all, now)
		}
	})
}

// checkTrend checks that a trend is a number within the bounds of its samples.
func checkTrend(t *rapid.T, all []sample, now time.Time) {
	trend, ok := trendOf(all, now)
	if !ok {
		return
	}
	if math.IsNaN(trend.PerHour) || math.IsInf(trend.PerHour, 0) || trend.Hours <= 0 || trend.Hours > trendWindow.Hours() {
		t.Fatalf("the trend is %+v of %v", trend, all)
	}
	steepest := 0.0
	for i := 1; i < len(all); i++ {
		hours := float64(all[i].at-all[i-1].at) / 3600
		steepest = max(steepest, math.Abs(float64(all[i].n)-float64(all[i-1].n))/hours)
	}
	if math.Abs(trend.PerHour) > steepest*(1+1e-6)+1e-3 {
		t.Fatalf("the trend %+v is steeper than the samples, at most %v: %v", trend, steepest, all)
	}
}

// TestTrends checks the trend of histories with a known slope: constant, rising and falling ones, with gaps, with samples in the future,
// and with too few samples.
func TestTrends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_800_000_000, 0)
		slope := rapid.Int64Range(-100, 100).Draw(t, "slope") // leases per hour
		hours := rapid.SliceOfNDistinct(rapid.Int64Range(0, 24), 0, 20, rapid.ID).Draw(t, "hours")
		var all []sample
		for h := int64(24); h >= 0; h-- {
			for _, one := range hours {
				if one == h {
					all = append(all, sample{uint32(now.Unix() - h*3600), uint32(5000 - slope*h)}) //nolint:gosec // positive
				}
			}
		}
		future := append(append([]sample{}, all...), sample{uint32(now.Unix() + 60), 1 << 31}) //nolint:gosec // positive
		for _, history := range [][]sample{all, future} {
			trend, ok := trendOf(history, now)
			if ok != (len(all) >= 3) || ok && math.Abs(trend.PerHour-float64(slope)) > 1e-6 {
				t.Fatalf("the trend is %+v %v, not %d: %v", trend, ok, slope, history)
			}
		}
	})
}

// TestSampleTimesAfterClockStep checks that a clock that is behind for less than SampleInterval keeps the history, and that one that was
// ahead for longer loses only the samples of the future.
func TestSampleTimesAfterClockStep(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var all []sample
	for i := range 8 {
		all, _ = addSample(all, int64(i), now.Add(time.Duration(i)*SampleInterval))
	}
	last := now.Add(7 * SampleInterval)
	if got, added := addSample(slices.Clone(all), 9, last.Add(-time.Second)); added || !slices.Equal(got, all) {
		t.Errorf("a second behind: %v %v of %v", got, added, all)
	}
	if got, added := addSample(slices.Clone(all), 9, last.Add(-2*SampleInterval)); added || !slices.Equal(got, all[:6]) {
		t.Errorf("two intervals behind: %v %v of %v", got, added, all)
	}
}
