package figures

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Maintain rolls samples up to the coarser levels, writes blocks and deletes old ones. It continues where an earlier one has ended, also
// after a crash: the next step of a level follows its last sample.
func (l *Local) Maintain(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	for i := 1; i < len(levels); i++ {
		if err := l.rollUp(ctx, i); err != nil {
			return fmt.Errorf("aggregate figures to %s: %w", levels[i].name, err)
		}
	}
	for i, db := range l.dbs {
		if err := db.Compact(ctx); err != nil {
			return fmt.Errorf("compact the figures of %s: %w", levels[i].name, err)
		}
	}
	return nil
}

// rollUp appends the complete steps of a level that are missing. The caller holds l.writing.
func (l *Local) rollUp(ctx context.Context, at int) error {
	step, finer := levels[at].step.Milliseconds(), levels[at-1]
	// A step is complete when the finer level has a sample behind it.
	end := floorTime(l.rolled[at-1].Load(), step)
	if at > 1 {
		end = floorTime(l.rolled[at-1].Load()+finer.step.Milliseconds(), step)
	}
	from := l.rolled[at].Load() + step
	if first, ok := l.firstTime(at - 1); !ok {
		return nil
	} else if from = max(from, floorTime(first, step)); from < 0 {
		from = 0
	}
	part := levels[at].block.Milliseconds() / 4 / step * step // the head of a level accepts samples of half a block
	for ; from < end; from += part {
		if err := l.rollUpPart(ctx, at, from, min(from+part, end)); err != nil {
			return err
		}
	}
	return nil
}

// firstTime returns the time of the first sample of a level.
func (l *Local) firstTime(at int) (int64, bool) {
	first := l.dbs[at].Head().MinTime()
	for _, b := range l.dbs[at].Blocks() {
		first = min(first, b.MinTime())
	}
	return first, first != math.MaxInt64
}

// rollUpPart appends the steps from a time until before another one, with one commit.
func (l *Local) rollUpPart(ctx context.Context, at int, from, end int64) (err error) {
	r, err := l.dbs[at-1].Querier(from, end-1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	a := l.dbs[at].Appender(ctx)
	step := levels[at].step.Milliseconds()
	set := r.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchNotEqual, objectLabel, ""))
	var samples chunkenc.Iterator
	for set.Next() && err == nil {
		name := set.At().Labels()
		samples = set.At().Iterator(samples)
		err = l.rollUpSeries(a, name, samples, at, step)
	}
	if err = errors.Join(err, set.Err()); err != nil {
		return errors.Join(err, a.Rollback())
	}
	if err := a.Commit(); err != nil {
		return err
	}
	l.rolled[at].Store(max(l.rolled[at].Load(), end-step))
	return nil
}

// rollUpSeries appends the steps of a series: the mean, and of the finest level also the maximum of a rate.
func (l *Local) rollUpSeries(a storage.Appender, name labels.Labels, samples chunkenc.Iterator, at int, step int64) error {
	peak := name.Get(aggregateLabel) == maximum
	split, peakName := at == 1 && hasPeak(strings.TrimPrefix(name.Get(nameLabel), namePrefix)), name
	if split {
		peakName = labels.NewBuilder(name).Set(aggregateLabel, maximum).Labels()
	}
	start, b := int64(math.MinInt64), bucket{}
	flush := func() error {
		if b.weight == 0 {
			return nil
		}
		if !peak {
			if err := l.add(a, name, start, b.sum/b.weight); err != nil {
				return err
			}
		}
		if peak || split {
			return l.add(a, peakName, start, b.peak)
		}
		return nil
	}
	for samples.Next() == chunkenc.ValFloat {
		t, v := samples.At()
		if s := floorTime(t, step); s != start {
			if err := flush(); err != nil {
				return err
			}
			start, b = s, bucket{peak: math.Inf(-1)}
		}
		b.add(v, 1)
		b.peak = max(b.peak, v)
	}
	if err := samples.Err(); err != nil {
		return err
	}
	return flush()
}
