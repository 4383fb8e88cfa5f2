package figures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/compression"
)

// level is a resolution. Its database has a sample for each step and keeps them for keep. block is the period of its blocks, room its part
// of the size limit in percent.
type level struct {
	name              string
	step, keep, block time.Duration
	room              int64
}

const day = 24 * time.Hour

// levels are the resolutions, the finest first. 400 days are 13 months.
var levels = []level{
	{"1m", time.Minute, 2 * day, 6 * time.Hour, 30},
	{"15m", 15 * time.Minute, 60 * day, day, 30},
	{"3h", 3 * time.Hour, 400 * day, 24 * day, 40},
}

// Interval is the interval of samples.
const Interval = time.Minute

// namePrefix begins the names of series, the others are their labels. At the coarse levels, a rate has a second series with aggregateLabel
// maximum.
const (
	namePrefix     = "portolan_figure_"
	nameLabel      = "__name__"
	objectLabel    = "object"
	byLabel        = "by"
	aggregateLabel = "aggregate"
	maximum        = "max"
)

// LocalOptions are the limits of a Local. Series is the maximum number of lines, Bytes about the maximum size on the disk.
type LocalOptions struct {
	Series int64
	Bytes  int64
	Now    func() time.Time
	Log    *slog.Logger
}

// Local keeps figures in a folder. After Append has returned, the samples survive the end of the process; a power failure can lose the last
// seconds. Its methods are safe for concurrent use.
type Local struct {
	options LocalOptions
	dbs     []*tsdb.DB
	counts  []*seriesCount
	// samples and refused count samples.
	samples, refused atomic.Int64

	// writing is held while samples are appended or rolled up. rolled are the times of the last samples of the levels in Unix milliseconds.
	writing sync.Mutex
	rolled  []atomic.Int64
}

// seriesCount limits the series of a level.
type seriesCount struct{ n, limit atomic.Int64 }

// errSeries reports a new line beyond the limit.
var errSeries = errors.New("the maximum number of lines of figures is reached (--figures-lines)")

// PreCreation implements tsdb.SeriesLifecycleCallback.
func (c *seriesCount) PreCreation(labels.Labels) error {
	if c.n.Load() >= c.limit.Load() {
		return errSeries
	}
	return nil
}

// PostCreation implements tsdb.SeriesLifecycleCallback.
func (c *seriesCount) PostCreation(labels.Labels) { c.n.Add(1) }

// PostDeletion implements tsdb.SeriesLifecycleCallback.
func (c *seriesCount) PostDeletion(gone map[chunks.HeadSeriesRef]labels.Labels) {
	c.n.Add(-int64(len(gone)))
}

// Open opens the figures in a folder, and creates it if it does not exist. A level that cannot be read is renamed and begins anew: figures
// never prevent the start of a manager.
func Open(dir string, o LocalOptions) (*Local, error) {
	l := &Local{options: o, rolled: make([]atomic.Int64, len(levels))}
	for i, one := range levels {
		c := &seriesCount{}
		c.limit.Store(math.MaxInt64) // the series of the log are read in any case
		at := filepath.Join(dir, one.name)
		db, err := openLevel(at, one, o, c)
		if err != nil {
			o.Log.Error("figures unreadable, starting without them", "folder", at, "error", err)
			aside := fmt.Sprintf("%s.damaged-%d", at, o.Now().Unix())
			if err := os.Rename(at, aside); err != nil { //nolint:gosec // below the data directory
				return nil, errors.Join(fmt.Errorf("move damaged figures away: %w", err), l.Close())
			}
			c.n.Store(0)
			if db, err = openLevel(at, one, o, c); err != nil {
				return nil, errors.Join(err, l.Close())
			}
		}
		if c.limit.Store(o.Series); i > 0 {
			c.limit.Store(2 * o.Series) // the mean and the maximum
		}
		db.DisableCompactions() // Maintain compacts
		l.dbs, l.counts = append(l.dbs, db), append(l.counts, c)
		l.rolled[i].Store(lastTime(db, one))
	}
	return l, nil
}

// openLevel opens the database of a level, with small buffers.
func openLevel(dir string, of level, o LocalOptions, c *seriesCount) (*tsdb.DB, error) {
	options := tsdb.DefaultOptions()
	options.NoLockfile = true // the data directory is locked
	options.RetentionDuration = of.keep.Milliseconds()
	options.MinBlockDuration, options.MaxBlockDuration = of.block.Milliseconds(), max(of.block, of.keep/10).Milliseconds()
	options.MaxBytes = o.Bytes * of.room / 100
	options.WALSegmentSize, options.WALCompression = 4<<20, compression.Snappy
	options.StripeSize, options.HeadChunksWriteBufferSize = 256, 64<<10
	options.WALReplayConcurrency = 1
	options.SeriesLifecycleCallback = c
	return tsdb.Open(dir, slog.New(quiet{o.Log.Handler()}), nil, options, nil)
}

// quiet passes on warnings and errors: the database logs each block as information.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, at slog.Level) bool {
	return at >= slog.LevelWarn && q.Handler.Enabled(ctx, at)
}

// lastTime returns the time of the last sample of a database; the least time without one.
func lastTime(db *tsdb.DB, of level) int64 {
	last := db.Head().MaxTime()
	for _, b := range db.Blocks() {
		last = max(last, b.MaxTime()-of.step.Milliseconds())
	}
	return last
}

// Append stores samples of a time. Samples that are older than stored ones are refused and counted, for example after the clock was set
// back, and lines beyond the limit.
func (l *Local) Append(ctx context.Context, at time.Time, all []Sample) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	a := l.dbs[0].Appender(ctx)
	for _, s := range all {
		if err := l.add(a, labelsOf(s.Metric, s.Object, s.By, ""), at.UnixMilli(), s.Value); err != nil {
			return errors.Join(err, a.Rollback())
		}
	}
	if err := a.Commit(); err != nil {
		return fmt.Errorf("store figures: %w", err)
	}
	l.rolled[0].Store(max(l.rolled[0].Load(), at.UnixMilli()))
	return nil
}

// add appends a sample.
func (l *Local) add(a storage.Appender, name labels.Labels, at int64, value float64) error {
	_, err := a.Append(0, name, at, value)
	switch {
	case err == nil:
		l.samples.Add(1)
	case errors.Is(err, storage.ErrOutOfBounds), errors.Is(err, storage.ErrOutOfOrderSample), errors.Is(err, errSeries),
		errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		l.refused.Add(1)
	default:
		return fmt.Errorf("store a figure of %s: %w", name.Get(objectLabel), err)
	}
	return nil
}

// labelsOf returns the labels of a series.
func labelsOf(metric, object, by, aggregate string) labels.Labels {
	all := []string{nameLabel, namePrefix + metric, objectLabel, object}
	if by != "" {
		all = append(all, byLabel, by)
	}
	if aggregate != "" {
		all = append(all, aggregateLabel, aggregate)
	}
	return labels.FromStrings(all...)
}

// Query returns the lines of an object, from the coarsest level that has the step, and from finer ones what is not rolled up yet.
func (l *Local) Query(ctx context.Context, q Query) (all []Line, err error) {
	at, step := l.levelFor(q)
	found := map[[2]string]*buckets{}
	from := floorTime(q.From.UnixMilli(), step)
	for i := at; i >= 0; i-- {
		until := min(q.To.UnixMilli(), l.rolled[i].Load()+levels[i].step.Milliseconds()-1)
		if i == 0 {
			until = q.To.UnixMilli()
		}
		if until < from {
			continue
		}
		if err := l.read(ctx, i, from, until, q, step, found); err != nil {
			return nil, err
		}
		from = until + 1
	}
	for key, b := range found {
		all = append(all, Line{Metric: key[0], By: key[1], Points: b.points()})
	}
	sortLines(all)
	return all, nil
}

// sortLines sorts lines in the order of the declared metrics.
func sortLines(all []Line) {
	slices.SortFunc(all, func(a, b Line) int { return cmp.Or(order(a.Metric)-order(b.Metric), strings.Compare(a.By, b.By)) })
}

// order returns the place of a metric among the declared ones.
func order(metric string) int {
	return slices.IndexFunc(declared, func(m Metric) bool { return m.Name == metric })
}

// hasPeak reports whether the coarse levels keep the maximum of a metric. That of other metrics is close to the mean.
func hasPeak(metric string) bool {
	at := order(metric)
	return at >= 0 && declared[at].Unit == PerSecond
}

// levelFor returns the level for a query and the step in milliseconds.
func (l *Local) levelFor(q Query) (at int, step int64) {
	for at+1 < len(levels) && (levels[at+1].step <= q.Step || q.From.Before(l.options.Now().Add(-levels[at].keep))) {
		at++
	}
	least := levels[at].step.Milliseconds()
	return at, max(1, (q.Step.Milliseconds()+least-1)/least) * least
}

// read adds the samples of a level from a period to the buckets of their lines.
func (l *Local) read(ctx context.Context, at int, from, until int64, q Query, step int64, found map[[2]string]*buckets) error {
	r, err := l.dbs[at].Querier(from, until)
	if err != nil {
		return fmt.Errorf("read figures: %w", err)
	}
	defer func() { _ = r.Close() }()
	match := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, objectLabel, q.Object)}
	set := r.Select(ctx, false, nil, match...)
	var samples chunkenc.Iterator
	for set.Next() {
		name := set.At().Labels()
		metric := strings.TrimPrefix(name.Get(nameLabel), namePrefix)
		if len(q.Metrics) > 0 && !slices.Contains(q.Metrics, metric) || order(metric) < 0 {
			continue
		}
		key := [2]string{metric, name.Get(byLabel)}
		if found[key] == nil {
			found[key] = &buckets{step: step, all: map[int64]*bucket{}}
		}
		fine, peak := at == 0, name.Get(aggregateLabel) == maximum
		samples = set.At().Iterator(samples)
		for samples.Next() == chunkenc.ValFloat {
			t, v := samples.At()
			b := found[key].bucketAt(t)
			if !peak {
				b.add(v, levels[at].step.Seconds())
			}
			if fine || peak || !hasPeak(metric) {
				b.peak = max(b.peak, v)
			}
		}
		if err := samples.Err(); err != nil {
			return fmt.Errorf("read figures: %w", err)
		}
	}
	return set.Err()
}

// buckets are the steps of a line, by their start in Unix milliseconds.
type buckets struct {
	step int64
	all  map[int64]*bucket
}

// bucket is a step of a line.
type bucket struct{ sum, weight, peak float64 }

func (b *bucket) add(value, weight float64) { b.sum, b.weight = b.sum+value*weight, b.weight+weight }

// bucketAt returns the bucket of a time.
func (b *buckets) bucketAt(t int64) *bucket {
	start := floorTime(t, b.step)
	if b.all[start] == nil {
		b.all[start] = &bucket{peak: math.Inf(-1)}
	}
	return b.all[start]
}

// points returns the steps in order.
func (b *buckets) points() (all []Point) {
	for start, one := range b.all {
		if one.weight > 0 {
			mean := one.sum / one.weight
			all = append(all, Point{At: start / 1000, Mean: mean, Max: max(mean, one.peak)})
		}
	}
	slices.SortFunc(all, func(a, b Point) int { return int(a.At - b.At) })
	return all
}

// floorTime returns the start of the step of a time.
func floorTime(t, step int64) int64 { return t - ((t%step)+step)%step }

// Usage is the size of a level.
type Usage struct {
	Level         string
	Series, Bytes int64
}

// Usage returns the sizes of the levels, and the numbers of stored and refused samples.
func (l *Local) Usage() (all []Usage, samples, refused int64) {
	for i, db := range l.dbs {
		u := Usage{Level: levels[i].name, Series: l.counts[i].n.Load(), Bytes: db.Head().Size()}
		for _, b := range db.Blocks() {
			u.Bytes += b.Size()
		}
		all = append(all, u)
	}
	return all, l.samples.Load(), l.refused.Load()
}

// Close closes the files.
func (l *Local) Close() error {
	var errs []error
	for _, db := range l.dbs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}
