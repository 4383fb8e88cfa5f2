package figures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// begin is the time of the first sample of tests.
var begin = time.Date(2025, 10, 1, 0, 0, 0, 0, time.UTC)

// clock is a clock for tests.
type clock struct{ now time.Time }

func open(t *testing.T, dir string, c *clock) *Local {
	t.Helper()
	l, err := Open(dir, LocalOptions{Series: 100, Bytes: 1 << 30, Now: func() time.Time { return c.now },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wave is a value that differs from sample to sample and from day to day.
func wave(at time.Time) float64 {
	return 10 + 5*math.Sin(float64(at.Unix())/86400/3) + float64(at.Unix()/60%7)
}

// TestFallingResolution checks the levels after 13 months. Figures of a year ago have the right mean and maximum in coarse steps, those of
// today have steps of a minute, and older ones are deleted. A query across the levels has neither gaps nor double steps.
func TestFallingResolution(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("15 months of samples take 16 s of CPU")
	}
	ctx, c := t.Context(), &clock{begin}
	dir := t.TempDir()
	l := open(t, dir, c)
	var stored []time.Time
	end := begin.AddDate(1, 3, 0) // two months longer than figures are kept
	for c.now.Before(end) {
		if err := l.Append(ctx, c.now, []Sample{{"changes", "networks/1", "", wave(c.now)}}); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, c.now)
		dense := end.Sub(c.now) < 5*day
		if c.now = c.now.Add(time.Minute); !dense && c.now.Hour() == 6 { // the first hours of one day in twenty, and all of the last days
			if c.now = c.now.Truncate(day).Add(20 * day); end.Sub(c.now) < 5*day {
				c.now = end.Add(-5 * day)
			}
			if err := l.Maintain(ctx); err != nil {
				t.Fatal(err)
			}
			if c.now.After(begin.AddDate(0, 6, 0)) && c.now.Before(begin.AddDate(0, 6, 21)) { // a restart changes nothing
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = open(t, dir, c)
			}
		}
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for range 2 { // before and after the last maintenance
		for name, one := range map[string]struct {
			from, to   time.Time
			step, want time.Duration // want is the step of the answer
		}{
			"last hour":    {end.Add(-time.Hour), end, time.Minute, time.Minute},
			"last days":    {end.AddDate(0, 0, -4), end, 15 * time.Minute, 15 * time.Minute},
			"last month":   {end.AddDate(0, -1, 0), end, time.Minute, 15 * time.Minute},
			"half year":    {end.AddDate(0, -6, 0), end, time.Minute, 3 * time.Hour},
			"whole year":   {end.AddDate(0, -13, 0), end, 3 * time.Hour, 3 * time.Hour},
			"year by days": {end.AddDate(0, -13, 0), end, day, day},
		} {
			want := map[int64]*bucket{}
			for _, at := range stored {
				if !at.Before(one.from) && at.Before(one.to) {
					start := floorTime(at.Unix(), int64(one.want.Seconds()))
					if want[start] == nil {
						want[start] = &bucket{}
					}
					want[start].add(wave(at), 1)
					want[start].peak = max(want[start].peak, wave(at))
				}
			}
			lines, err := l.Query(ctx, Query{Object: "networks/1", From: one.from, To: one.to, Step: one.step})
			if err != nil || len(lines) != 1 {
				t.Fatalf("%s: %d lines, %v", name, len(lines), err)
			}
			if len(lines[0].Points) != len(want) {
				t.Errorf("%s: %d points, not %d", name, len(lines[0].Points), len(want))
			}
			for _, p := range lines[0].Points {
				b := want[p.At]
				if b == nil || math.Abs(p.Mean-b.sum/b.weight) > 1e-9 || math.Abs(p.Max-b.peak) > 1e-9 {
					t.Fatalf("%s: at %s %v and %v, not %+v", name, time.Unix(p.At, 0).UTC(), p.Mean, p.Max, b)
				}
			}
		}
		if err := l.Maintain(ctx); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := l.Query(ctx, Query{Object: "networks/1", From: begin, To: begin.Add(day), Step: 3 * time.Hour})
	if err != nil || len(lines) != 0 {
		t.Errorf("figures of 15 months ago are there: %v, %v", lines, err)
	}
	all, _, refused := l.Usage()
	for _, one := range all {
		if one.Bytes > 1<<20 || one.Series > 2 || refused > 0 {
			t.Errorf("the level %s has %d bytes and %d series, and %d samples were refused", one.Level, one.Bytes, one.Series, refused)
		}
	}
}

// TestLimits checks that a line beyond the limit is refused and counted, and that the others continue, also after the clock was set back.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := &clock{begin}
	l := open(t, t.TempDir(), c)
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all []Sample
	for i := range 101 {
		all = append(all, Sample{"utilization", fmt.Sprintf("networks/%d", i), "", 0.5})
	}
	for _, after := range []time.Duration{0, time.Minute, -10 * day, 2 * time.Minute} {
		if err := l.Append(t.Context(), begin.Add(after), all); err != nil {
			t.Fatal(err)
		}
	}
	if _, stored, refused := l.Usage(); stored != 300 || refused != 104 {
		t.Errorf("%d samples are stored and %d refused, not 300 and 104", stored, refused)
	}
	c.now = begin.Add(time.Hour)
	lines, err := l.Query(t.Context(), Query{Object: "networks/7", From: begin, To: c.now, Step: time.Minute})
	if err != nil || len(lines) != 1 || len(lines[0].Points) != 3 {
		t.Errorf("%v, %v", lines, err)
	}
}

// TestDamaged checks that a level that cannot be read is set aside, and that the others stay.
func TestDamaged(t *testing.T) {
	t.Parallel()
	c := &clock{begin}
	dir := t.TempDir()
	l := open(t, dir, c)
	if err := l.Append(t.Context(), begin, []Sample{{"utilization", "networks/1", "", 0.5}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	coarse := filepath.Join(dir, levels[2].name)
	if err := errors.Join(os.RemoveAll(coarse), os.WriteFile(coarse, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, c)
	lines, err := l.Query(t.Context(), Query{Object: "networks/1", From: begin, To: begin.Add(time.Minute), Step: time.Minute})
	if err != nil || len(lines) != 1 {
		t.Errorf("%v, %v", lines, err)
	}
	if aside, err := filepath.Glob(coarse + ".damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("set aside are %v, %v", aside, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkSeries measures the memory and the disk of 10,000 lines over a day.
func BenchmarkSeries(b *testing.B) {
	const lines = 10000
	ctx, c := context.Background(), &clock{begin}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, err := Open(b.TempDir(), LocalOptions{Series: lines, Bytes: 1 << 40, Now: func() time.Time { return c.now },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	all := make([]Sample, lines)
	spent, n := time.Duration(0), 0
	for ; c.now.Before(begin.Add(6 * time.Hour)); c.now = c.now.Add(time.Minute) {
		for i := range all {
			all[i] = Sample{"utilization", fmt.Sprintf("networks/%d", 100000+i), "", float64(i%256+int(c.now.Unix()/3600)%9) / 256}
		}
		began := time.Now()
		if err := l.Append(ctx, c.now, all); err != nil {
			b.Fatal(err)
		}
		spent, n = spent+time.Since(began), n+1
		if c.now.Sub(begin)%(15*time.Minute) == 0 {
			if err := l.Maintain(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used, _, _ := l.Usage()
	b.Logf("%.0f KiB per 1000 lines, %v per 10,000 samples, %v", float64(after.HeapInuse-before.HeapInuse)/1024/lines*1000,
		spent/time.Duration(n), used)
	_ = l.Close()
}
