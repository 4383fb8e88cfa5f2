package figures

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Trend is the development of a line: the value at the end, and the change per day of the line with the least squares.
type Trend struct{ Last, PerDay float64 }

// FullIn returns the days until the value is 1; false if it does not grow, or takes longer than a year.
func (t Trend) FullIn() (days float64, ok bool) {
	if t.PerDay <= 0 {
		return 0, false
	}
	days = max(0, 1-t.Last) / t.PerDay
	return days, days <= 365
}

// minTrendPeriod is the shortest period with a trend.
const minTrendPeriod = 6 * time.Hour

// Trends returns the trends of a metric by object since a time. Objects with less than six hours of samples have none.
func (l *Local) Trends(ctx context.Context, metric string, since time.Time) (map[string]Trend, error) {
	at, _ := l.levelFor(Query{From: since, Step: levels[1].step})
	r, err := l.dbs[at].Querier(since.UnixMilli(), l.options.Now().UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	defer func() { _ = r.Close() }()
	all := map[string]Trend{}
	set := r.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchEqual, nameLabel, namePrefix+metric))
	var samples chunkenc.Iterator
	for set.Next() {
		samples = set.At().Iterator(samples)
		var s squares
		for samples.Next() == chunkenc.ValFloat {
			s.add(samples.At())
		}
		if err := samples.Err(); err != nil {
			return nil, fmt.Errorf("read figures: %w", err)
		}
		if t, ok := s.trend(); ok {
			all[set.At().Labels().Get(objectLabel)] = t
		}
	}
	return all, set.Err()
}

// squares are the sums of a regression. Times are days since the first sample.
type squares struct {
	first, end            int64
	n, x, y, xx, xy, last float64
}

func (s *squares) add(t int64, v float64) {
	if s.n == 0 {
		s.first = t
	}
	x := float64(t-s.first) / float64(day.Milliseconds())
	s.n, s.x, s.y, s.xx, s.xy, s.last, s.end = s.n+1, s.x+x, s.y+v, s.xx+x*x, s.xy+x*v, v, t
}

func (s *squares) trend() (Trend, bool) {
	d := s.n*s.xx - s.x*s.x
	if s.end-s.first < minTrendPeriod.Milliseconds() || d <= 0 {
		return Trend{}, false
	}
	return Trend{Last: s.last, PerDay: (s.n*s.xy - s.x*s.y) / d}, true
}
