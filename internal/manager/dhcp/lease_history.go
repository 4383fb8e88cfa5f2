package dhcp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// The history of the number of leases of a DHCP range: a sample each quarter of an hour for a day, and one each hour for a week.
const (
	// SampleInterval is the time between two samples.
	SampleInterval = 15 * time.Minute
	// trendWindow is the time whose samples make the forecast. A day, so that the rhythm of a day does not look like a trend.
	trendWindow  = 24 * time.Hour
	keepSamples  = 7 * 24 * time.Hour
	sampleOctets = 8
)

// sample is the number of leases of a range at a time in Unix seconds.
type sample struct{ at, n uint32 }

func unpackSamples(packed []byte) (all []sample) {
	for part := range slices.Chunk(packed, sampleOctets) {
		if len(part) == sampleOctets {
			all = append(all, sample{binary.BigEndian.Uint32(part), binary.BigEndian.Uint32(part[4:])})
		}
	}
	return all
}

func packSamples(all []sample) []byte {
	packed := make([]byte, 0, len(all)*sampleOctets)
	for _, s := range all {
		packed = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(packed, s.at), s.n)
	}
	return packed
}

// thinSamples removes the samples that are too old, and all but the first of each hour from those older than a day.
func thinSamples(all []sample, now time.Time) []sample {
	oldest, fine := now.Add(-keepSamples).Unix(), now.Add(-trendWindow).Unix()
	hour := int64(-1)
	return slices.DeleteFunc(all, func(s sample) bool {
		at := int64(s.at)
		if at < oldest {
			return true
		}
		if at >= fine {
			return false
		}
		same := at/3600 == hour
		hour = at / 3600
		return same
	})
}

// trendOf returns the slope of the line with the least squares through the samples of the last day.
func trendOf(all []sample, now time.Time) (t ipam.Trend, ok bool) {
	since := now.Add(-trendWindow).Unix()
	var n, sx, sy, sxx, sxy, first, last float64
	for _, s := range all {
		if int64(s.at) < since || int64(s.at) > now.Unix() {
			continue
		}
		x, y := (float64(s.at)-float64(since))/3600, float64(s.n)
		if n == 0 {
			first = x
		}
		last = x
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	divisor := n*sxx - sx*sx
	if n < 3 || divisor <= 0 {
		return t, false
	}
	return ipam.Trend{PerHour: (n*sxy - sx*sy) / divisor, Hours: last - first}, true
}

// Trends returns how the numbers of leases of DHCP ranges have changed; a range without a history is missing.
func (*Leases) Trends(tx *store.Tx, ids []int64) (map[int64]ipam.Trend, error) {
	all := map[int64]ipam.Trend{}
	now := tx.Now()
	for part := range slices.Chunk(ids, countsAtOnce) {
		list, args := store.InList(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			var packed []byte
			if err := scan(&id, &packed); err != nil {
				return err
			}
			if t, ok := trendOf(unpackSamples(packed), now); ok {
				all[id] = t
			}
			return nil
		}, "SELECT container, samples FROM dhcp_lease_history WHERE container IN "+list, args...); err != nil {
			return nil, fmt.Errorf("read the history of leases: %w", err)
		}
	}
	return all, nil
}

// samplesAtOnce is the number of ranges that one transaction samples.
const samplesAtOnce = 500

// SampleRanges adds a sample to the history of each DHCP range with leases, unless the last one is newer than SampleInterval. It returns
// the number of samples.
func SampleRanges(ctx context.Context, update store.Updater, now time.Time) (sampled int, err error) {
	for last := int64(0); ; {
		var seen, n int // those of the last attempt: a transaction may be repeated
		next := last
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
			ranges, histories, err := readRangeCounts(tx, last)
			if err != nil {
				return err
			}
			n = 0
			for _, r := range ranges {
				wrote, err := r.sample(tx, histories[r.id], now)
				if err != nil {
					return err
				}
				if wrote {
					n++
				}
				next = r.id
			}
			seen = len(ranges)
			return nil
		}); err != nil {
			return sampled, err
		}
		last, sampled = next, sampled+n
		if seen < samplesAtOnce {
			return sampled, nil
		}
	}
}

// rangeCount is the number of leases of a range.
type rangeCount struct{ id, n int64 }

// readRangeCounts returns the numbers of leases and the histories of DHCP ranges after an id.
func readRangeCounts(tx *store.Tx, after int64) (ranges []rangeCount, histories map[int64][]byte, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var one rangeCount
		err := scan(&one.id, &one.n)
		ranges = append(ranges, one)
		return err
	}, "SELECT c.container, CAST(sum(CASE WHEN c.state IN ('DHCP_ALLOCATED', 'DHCP_ABANDONED') THEN c.n ELSE 0 END) AS BIGINT) "+
		"FROM dhcp_lease_count c JOIN resource r ON r.id = c.container AND r.collection = 'ranges' WHERE c.container > ? "+
		"GROUP BY c.container ORDER BY c.container LIMIT ?", after, samplesAtOnce)
	histories = map[int64][]byte{}
	if err != nil || len(ranges) == 0 {
		return ranges, histories, err
	}
	err = tx.Each(func(scan func(...any) error) error {
		var id int64
		var packed []byte
		err := scan(&id, &packed)
		histories[id] = packed
		return err
	}, "SELECT container, samples FROM dhcp_lease_history WHERE container >= ? AND container <= ?", ranges[0].id, ranges[len(ranges)-1].id)
	return ranges, histories, err
}

// addSample adds the number of leases at a time to a history, unless the last sample is newer than SampleInterval. Samples that are
// SampleInterval or more ahead of now are removed: they would prevent others until the clock reaches them. A clock that is behind for a
// shorter time removes nothing. Times before 1970 and after 2106 count as the first and the last second of that period.
func addSample(all []sample, n int64, now time.Time) (next []sample, added bool) {
	const interval = int64(SampleInterval / time.Second)
	at := min(max(0, now.Unix()), math.MaxUint32)
	all = slices.DeleteFunc(all, func(s sample) bool { return int64(s.at) >= at+interval })
	if last := len(all) - 1; last >= 0 && at-int64(all[last].at) < interval {
		return all, false
	}
	//nolint:gosec // within the bounds
	return thinSamples(append(all, sample{uint32(at), uint32(min(max(0, n), math.MaxUint32))}), now), true
}

// sample adds a sample to the history of a range.
func (r rangeCount) sample(tx *store.Tx, packed []byte, now time.Time) (wrote bool, err error) {
	all, added := addSample(unpackSamples(packed), r.n, now)
	if !added {
		return false, nil
	}
	return true, tx.Write("INSERT INTO dhcp_lease_history (container, samples) VALUES (?, ?) "+
		"ON CONFLICT (container) DO UPDATE SET samples = excluded.samples", r.id, packSamples(all))
}
