// Package timetable knows when resources that are schedules are due: from a start on, at an interval. It keeps that beside their rows, and
// knows nothing of what is done then: rooms with schedules come in, and nobody else.
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

// Extension keeps when schedules are due.
func Extension() *store.Extension {
	return &store.Extension{Name: "timetable", Migrations: migrations,
		Tables: []store.Table{{Name: "timetable", Columns: []string{"schedule", "version", "next", "last", "since"}, Key: 1}}}
}

// Times of schedules: how often one is due at the most, and how far in the past the start of one may lie that is due once.
const (
	leastInterval = time.Minute
	lateStart     = time.Minute
)

// Times are when a schedule is due: at Start, and each Interval (ISO 8601) from then on; an empty one means once.
type Times struct {
	Start    time.Time
	Interval string
	Enabled  bool
	// IntervalField is what the schedule calls its interval; empty means interval.
	IntervalField string
}

// same reports whether two schedules are due alike; no schedule is due like none.
func (x Times) same(before *Times) bool {
	return before != nil && before.Start.Equal(x.Start) && before.Interval == x.Interval && before.Enabled == x.Enabled
}

// Check refuses times that never come, of a schedule that was at other times before; before is nil of a new one.
func (x Times) Check(now time.Time, before *Times) error {
	if x.same(before) {
		return nil
	}
	date, _, _ := strings.Cut(x.Interval, "T")
	if strings.ContainsAny(date, "YM") {
		return problem.Field("DurationValueOutsideRange", cmp.Or(x.IntervalField, "interval"),
			"years and months are not all of one length: give days, such as P7D")
	}
	if d := schema.LengthOf(x.Interval); x.Interval != "" && d < leastInterval {
		return problem.Field("DurationValueOutsideRange", cmp.Or(x.IntervalField, "interval"), "must be a minute or more, or null for once")
	}
	if x.Enabled && !x.Start.IsZero() && x.Interval == "" && x.Start.Before(now.Add(-lateStart)) {
		return problem.Field("InvalidResourceFieldValue", "startDateTime", "lies in the past, and without an interval it does not come again")
	}
	return nil
}

// next gives when it is due at or behind a time; the zero time is never.
func (x Times) next(from time.Time) time.Time {
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
	start := x.Start.UnixMilli() // a time.Duration would hold no more than 292 years
	steps := (from.UnixMilli() - start + every - 1) / every
	return time.UnixMilli(start + steps*every).UTC()
}

// Note keeps, in the transaction that writes a schedule, that it is due otherwise from now on; before is nil of a new one.
func (x Times) Note(c *resource.Change, before *Times) error {
	if x.same(before) {
		return nil
	}
	return c.Tx.Write("INSERT INTO timetable (schedule, version, next, last, since) VALUES (?, 0, 0, 0, ?) ON CONFLICT (schedule) DO UPDATE "+
		"SET since = excluded.since", schema.HeadOf(c.New).ID, c.Tx.Now().UnixMilli())
}

// Schedule is a resource that is due at times.
type Schedule interface {
	schema.Object
	Times() Times
}

// kept is when a schedule is due, as it is kept.
type kept struct{ version, next, last, since int64 }

// read gives when schedules are due, by their ids.
func read(tx *store.Tx) (map[int64]kept, error) {
	all := map[int64]kept{}
	err := tx.Each(func(scan func(...any) error) error {
		var id int64
		var k kept
		err := scan(&id, &k.version, &k.next, &k.last, &k.since)
		all[id] = k
		return err
	}, "SELECT schedule, version, next, last, since FROM timetable")
	return all, err
}

// Complete shows when schedules are due, in their members nextDateTime and lastDateTime.
func Complete(tx *store.Tx, rows []*store.Resource) error {
	all, err := read(tx)
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
		if k.version != r.Version { // it was changed just now, and is about to be seen to
			k.next = 0
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"nextDateTime": shown(k.next), "lastDateTime": shown(k.last)}); err != nil {
			return err
		}
	}
	return nil
}

// Clock says when the schedules of a collection are due.
type Clock struct {
	api        *resource.API
	collection string
	// first is when the first of them is due; the zero time is never.
	first *store.Cache[struct{}, time.Time]
}

// NewClock makes the clock of a collection, whose resources are Schedules.
func NewClock(a *resource.API, collection string) *Clock {
	return &Clock{api: a, collection: collection,
		first: store.NewCache[struct{}](a.Store, store.CacheOptions[time.Time]{Topics: []string{collection}})}
}

// Due reports whether a schedule is due, or was changed, so that Turn has something to do.
func (k *Clock) Due(ctx context.Context) (bool, error) {
	first, known := k.first.Now(struct{}{})
	if known {
		return k.over(first), nil
	}
	err := k.api.Store.View(ctx, func(tx *store.Tx) error {
		first = time.Time{}
		all, err := read(tx)
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
		k.first.Put(tx, struct{}{}, first)
		return nil
	})
	return k.over(first), err
}

func (k *Clock) over(first time.Time) bool { return !first.IsZero() && !first.After(k.api.Store.Now()) }

// Turn calls do for each schedule that is due, in the transaction that notes when it is due next. What was due while nobody looked is done
// once.
func (k *Clock) Turn(c *resource.Change, do func(row *store.Resource, s Schedule) error) error {
	before, err := read(c.Tx)
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
		if err := k.turn(c, row, o.(Schedule), was, do); err != nil {
			return err
		}
	}
	c.Tx.Touch(k.collection) // what is kept of a schedule that is deleted stays: an undo brings it back, and it is not to be done twice
	return nil
}

// turn does what one schedule says, of which was is kept.
func (k *Clock) turn(c *resource.Change, row *store.Resource, s Schedule, was kept, do func(row *store.Resource, s Schedule) error) error {
	now, is, times := c.Tx.Now(), was, s.Times()
	if is.version != row.Version {
		if is.since == 0 {
			is.since = now.UnixMilli()
		}
		from := is.since - lateStart.Milliseconds() // a start that was just before counts
		if is.last <= now.UnixMilli() {             // not where the clock was ahead
			from = max(from, is.last+1)
		}
		is.version, is.next = row.Version, milliseconds(times.next(time.UnixMilli(from)))
	}
	if is.next > 0 && is.next <= now.UnixMilli() {
		if err := do(row, s); err != nil {
			return err
		}
		is.last, is.next = now.UnixMilli(), milliseconds(times.next(now.Add(time.Millisecond)))
	}
	if is == was {
		return nil
	}
	return c.Tx.Write("INSERT INTO timetable (schedule, version, next, last, since) VALUES (?, ?, ?, ?, ?) ON CONFLICT (schedule) DO UPDATE "+
		"SET version = excluded.version, next = excluded.next, last = excluded.last", row.ID, is.version, is.next, is.last, is.since)
}

// milliseconds gives a time in Unix milliseconds; 0 for the zero time.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
