// Package timetable computes and stores when schedules are due: at a start time and, optionally, at an interval from then on. It stores
// these times in a table beside the rows of the schedules. The packages that declare schedules call it; it does not know what a schedule
// does.
package timetable

import (
	"cmp"
	"context"
	"embed"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Extension returns the extension that stores the due times of schedules.
func Extension() *store.Extension {
	return &store.Extension{Name: "timetable", Migrations: migrations,
		Tables: []store.Table{{Name: "timetable", Columns: []string{"schedule", "version", "next", "last", "since"}, Key: 1}}}
}

// minInterval is the shortest interval of a schedule. startTolerance is the maximum age of the start of a schedule without an interval.
const (
	minInterval    = time.Minute
	startTolerance = time.Minute
)

// Times are the times at which a schedule is due: at Start, and then at each Interval (an ISO 8601 duration). An empty Interval means
// that the schedule is due once.
type Times struct {
	Start    time.Time
	Interval string
	Enabled  bool
	// IntervalField is the name of the interval field in the schedule. Empty means "interval".
	IntervalField string
}

// isSame reports whether two schedules have the same times. It is false if before is nil.
func (x Times) isSame(before *Times) bool {
	return before != nil && before.Start.Equal(x.Start) && before.Interval == x.Interval && before.Enabled == x.Enabled
}

// Check returns an error if the times are invalid or can never be reached. before holds the previous times; it is nil for a new schedule.
// Unchanged times are always valid.
func (x Times) Check(now time.Time, before *Times) error {
	if x.isSame(before) {
		return nil
	}
	date, _, _ := strings.Cut(x.Interval, "T")
	if strings.ContainsAny(date, "YM") {
		return problem.Field("DurationValueOutsideRange", cmp.Or(x.IntervalField, "interval"),
			"must not use years or months, whose lengths vary; give days, such as P7D")
	}
	if d := schema.LengthOf(x.Interval); x.Interval != "" && d < minInterval {
		return problem.Field("DurationValueOutsideRange", cmp.Or(x.IntervalField, "interval"), "must be at least one minute; null means once")
	}
	if x.Enabled && !x.Start.IsZero() && x.Interval == "" && x.Start.Before(now.Add(-startTolerance)) {
		return problem.Field("InvalidResourceFieldValue", "startDateTime", "is in the past; give a later time, or an interval")
	}
	return nil
}

// nextTime returns the first due time at or after from. It returns the zero time if there is none.
func (x Times) nextTime(from time.Time) time.Time {
	if !x.Enabled || x.Start.IsZero() {
		return time.Time{}
	}
	if !x.Start.Before(from) {
		return x.Start
	}
	every := schema.LengthOf(x.Interval).Milliseconds()
	if every <= 0 {
		return time.Time{}
	}
	start := x.Start.UnixMilli() // milliseconds, because a time.Duration holds at most 292 years
	steps := (from.UnixMilli() - start + every - 1) / every
	return time.UnixMilli(start + steps*every).UTC()
}

// Note records that the times of a schedule changed, in the transaction that writes the schedule. before holds the previous times; it is
// nil for a new schedule.
func (x Times) Note(c *resource.Change, before *Times) error {
	if x.isSame(before) {
		return nil
	}
	return c.Tx.Write("INSERT INTO timetable (schedule, version, next, last, since) VALUES (?, 0, 0, 0, ?) ON CONFLICT (schedule) DO UPDATE "+
		"SET since = excluded.since", schema.HeadOf(c.New).ID, c.Tx.Now().UnixMilli())
}

// Schedule is a resource that has due times.
type Schedule interface {
	schema.Object
	Times() Times
}

// entry is the stored state of a schedule: the version of the row that next was computed from, the next and the last run, and the time of
// the last change. Times are in Unix milliseconds; 0 means none.
type entry struct{ version, next, last, since int64 }

// readEntries returns the entries of all schedules by ID.
func readEntries(tx *store.Tx) (map[int64]entry, error) {
	all := map[int64]entry{}
	err := tx.Each(func(scan func(...any) error) error {
		var id int64
		var k entry
		err := scan(&id, &k.version, &k.next, &k.last, &k.since)
		all[id] = k
		return err
	}, "SELECT schedule, version, next, last, since FROM timetable")
	return all, err
}

// Complete sets the members nextDateTime and lastDateTime of schedules that are about to be shown.
func Complete(tx *store.Tx, rows []*store.Resource) error {
	all, err := readEntries(tx)
	if err != nil {
		return err
	}
	shown := func(at int64) []byte {
		if at == 0 {
			return []byte("null")
		}
		return []byte(strconv.Quote(time.UnixMilli(at).UTC().Format(time.RFC3339)))
	}
	for _, r := range rows {
		k := all[r.ID]
		if k.version != r.Version { // the row was changed and next is not yet recomputed
			k.next = 0
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"nextDateTime": shown(k.next), "lastDateTime": shown(k.last)}); err != nil {
			return err
		}
	}
	return nil
}

// Clock finds the due schedules of a collection.
type Clock struct {
	api        *resource.API
	collection string
	// earliest is the time at which the next schedule is due. The zero time means that none is.
	earliest *store.Cache[struct{}, time.Time]
}

// NewClock returns the clock of a collection. The resources of the collection must implement Schedule.
func NewClock(a *resource.API, collection string) *Clock {
	return &Clock{api: a, collection: collection,
		earliest: store.NewCache[struct{}](a.Store, store.CacheOptions[time.Time]{Topics: []string{collection}})}
}

// IsDue reports whether a schedule is due or was changed, so that Turn has work to do.
func (k *Clock) IsDue(ctx context.Context) (bool, error) {
	first, known := k.earliest.Now(struct{}{})
	if known {
		return k.isPast(first), nil
	}
	err := k.api.Store.View(ctx, func(tx *store.Tx) error {
		first = time.Time{}
		all, err := readEntries(tx)
		if err != nil {
			return err
		}
		if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection(k.collection)}, func(r *store.Resource) error {
			next := time.UnixMilli(all[r.ID].next)
			if all[r.ID].version != r.Version {
				next = k.api.Store.Now()
			} else if all[r.ID].next == 0 {
				return nil
			}
			if first.IsZero() || next.Before(first) {
				first = next
			}
			return nil
		}); err != nil {
			return err
		}
		k.earliest.Put(tx, struct{}{}, first)
		return nil
	})
	return k.isPast(first), err
}

func (k *Clock) isPast(first time.Time) bool {
	return !first.IsZero() && !first.After(k.api.Store.Now())
}

// Turn calls do for each due schedule, in the transaction that also stores the next due time. A schedule that was due several times since
// the last call runs once.
func (k *Clock) Turn(c *resource.Change, do func(row *store.Resource, s Schedule) error) error {
	before, err := readEntries(c.Tx)
	if err != nil {
		return err
	}
	var rows []*store.Resource
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection(k.collection)}, func(r *store.Resource) error {
		rows = append(rows, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	for _, row := range rows {
		o, err := k.api.Object(row)
		if err != nil {
			return err
		}
		was := before[row.ID]
		if err := k.runSchedule(c, row, o.(Schedule), was, do); err != nil {
			return err
		}
	}
	// The entry of a deleted schedule is kept: an undo restores the schedule, and it must not run twice.
	c.Tx.Touch(k.collection)
	return nil
}

// runSchedule calls do if the schedule is due, and stores its new entry. was is the stored entry.
func (k *Clock) runSchedule(c *resource.Change, row *store.Resource, s Schedule, was entry,
	do func(row *store.Resource, s Schedule) error) error {
	now, is, times := c.Tx.Now(), was, s.Times()
	if is.version != row.Version {
		if is.since == 0 {
			is.since = now.UnixMilli()
		}
		from := is.since - startTolerance.Milliseconds() // a start shortly before the change counts
		if is.last <= now.UnixMilli() {                  // false if the last run is in the future because the clock was ahead
			from = max(from, is.last+1)
		}
		is.version, is.next = row.Version, unixMillis(times.nextTime(time.UnixMilli(from)))
	}
	if is.next > 0 && is.next <= now.UnixMilli() {
		if err := do(row, s); err != nil {
			return err
		}
		is.last, is.next = now.UnixMilli(), unixMillis(times.nextTime(now.Add(time.Millisecond)))
	}
	if is == was {
		return nil
	}
	return c.Tx.Write("INSERT INTO timetable (schedule, version, next, last, since) VALUES (?, ?, ?, ?, ?) ON CONFLICT (schedule) DO UPDATE "+
		"SET version = excluded.version, next = excluded.next, last = excluded.last", row.ID, is.version, is.next, is.last, is.since)
}

// unixMillis returns a time in Unix milliseconds, or 0 for the zero time.
func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
