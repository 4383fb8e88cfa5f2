package figures

import (
	"context"
	"fmt"
	"math"
	"time"
)

// fillSteps are the levels that Fill writes: their steps, and their periods before the end. They are coarser than measured figures, so that
// weeks take a moment.
var fillSteps = []struct{ step, period time.Duration }{{10 * time.Minute, day}, {time.Hour, 60 * day}, {3 * time.Hour, 400 * day}}

// Fill stores the samples that a function returns for times of a period before now. It is for demos: it refuses a folder with figures.
func (l *Local) Fill(ctx context.Context, period time.Duration, samples func(at time.Time) []Sample) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	now := l.options.Now()
	for i, one := range fillSteps {
		if l.rolled[i].Load() != math.MinInt64 {
			return fmt.Errorf("the level %s contains figures already", levels[i].name)
		}
		at := now.Add(-min(period, one.period)).Truncate(one.step)
		for at.Before(now.Add(-levels[i].step)) {
			a := l.dbs[i].Appender(ctx)
			for n := 0; n < 50 && at.Before(now.Add(-levels[i].step)); n, at = n+1, at.Add(one.step) {
				for _, s := range samples(at) {
					if err := l.add(a, labelsOf(s.Metric, s.Object, s.By, ""), at.UnixMilli(), s.Value); err != nil {
						return err
					}
				}
				l.rolled[i].Store(at.UnixMilli())
			}
			if err := a.Commit(); err != nil {
				return fmt.Errorf("store figures: %w", err)
			}
		}
	}
	return nil
}
