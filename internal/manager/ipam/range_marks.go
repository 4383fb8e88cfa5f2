package ipam

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"slices"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// alertSettings is the type of the settings of the manager with default water marks, in settingsTopic.
const (
	alertSettings = "DHCPAlertSettings"
	settingsTopic = "settings"
)

// defaultMarks are the water marks of the settings of the manager, as JSON numbers; empty if they are not set. They apply to IPv4 DHCP
// ranges without such a mark of their own, of their network or of a block above. every is the interval of RangeChecker.
type defaultMarks struct {
	low, high string
	every     time.Duration
}

// alertBody is the stored form of alertSettings.
type alertBody struct {
	LowWaterMark, HighWaterMark *json.Number
	PollingInterval             string
}

// defaultInterval is the interval of RangeChecker without a pollingInterval.
const defaultInterval = 5 * time.Minute

// isSet reports whether there is a mark.
func (d defaultMarks) isSet() bool { return d.low != "" || d.high != "" }

// apply adds the marks to the settings of a range.
func (d defaultMarks) apply(s *Settings) {
	for field, mark := range map[string]string{lowWaterMark: d.low, highWaterMark: d.high} {
		if _, there := s.Values[field]; !there && mark != "" {
			s.Values[field] = mark
		}
	}
}

// rangeDefaults returns the default marks.
func (p *inheritance) rangeDefaults(tx *store.Tx) (d defaultMarks, err error) {
	if known, ok := p.defaults.Get(tx, struct{}{}); ok {
		return known, nil
	}
	d.every = defaultInterval
	row, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection(settingsTopic),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: alertSettings}}})
	if err != nil {
		return d, err
	}
	if row != nil {
		var x alertBody
		if err := json.Unmarshal(row.Body, &x); err != nil {
			return d, fmt.Errorf("read %s: %w", alertSettings, err)
		}
		if x.LowWaterMark != nil {
			d.low = x.LowWaterMark.String()
		}
		if x.HighWaterMark != nil {
			d.high = x.HighWaterMark.String()
		}
		if x.PollingInterval != "" {
			d.every = schema.LengthOf(x.PollingInterval)
		}
	}
	p.defaults.Put(tx, struct{}{}, d)
	return d, nil
}

// RangeChecker applies changed default marks: it compares the usage of all IPv4 DHCP ranges with their marks when the settings change, and
// at their interval. Changes of usage are compared at once, in their transaction.
type RangeChecker struct {
	store *store.Store
	log   *slog.Logger
	lease *store.Lease
	// marks are those of the last pass, which began at checked. They are used by Run only.
	marks   defaultMarks
	checked time.Time
}

// Times of a RangeChecker: the time between two looks at the settings, and the lifetime of its lease.
const (
	checkerPause = time.Minute
	checkerLease = 5 * time.Minute
)

// rangesAtOnce is the number of ranges that a RangeChecker reads in one snapshot.
const rangesAtOnce = 500

// NewRangeChecker returns a RangeChecker. Run starts it.
func NewRangeChecker(s *store.Store, log *slog.Logger) *RangeChecker {
	return &RangeChecker{store: s, log: log, lease: s.NewLease("range-marks", checkerLease)}
}

// Run checks ranges until ctx ends. One manager of a database at a time does so.
func (c *RangeChecker) Run(ctx context.Context) {
	c.store.WorkOn(ctx, []string{settingsTopic}, checkerPause, c.log, "water marks of ranges", c.runOnce, c.lease)
}

// runOnce checks all ranges if the marks have changed or the interval has passed. Without marks, there is nothing to check.
func (c *RangeChecker) runOnce(ctx context.Context) error {
	var now defaultMarks
	if err := c.store.View(ctx, func(tx *store.Tx) (err error) {
		now, err = settingsOf(tx).rangeDefaults(tx)
		return err
	}); err != nil || !now.isSet() && !c.marks.isSet() || now == c.marks && time.Since(c.checked) < c.store.ShortenPause(now.every) {
		return err
	}
	if held, err := c.lease.Acquire(ctx); err != nil || !held {
		return err
	}
	began := time.Now()
	for last, more := int64(0), true; more; {
		var networks []int64
		var err error
		if last, networks, more, err = c.changedNetworks(ctx, last); err != nil {
			return err
		}
		for _, network := range networks {
			if err := c.update(ctx, network); err != nil {
				return err
			}
		}
	}
	c.marks, c.checked = now, began
	return nil
}

// changedNetworks returns the networks of the ranges after an id whose water level is another one than the stored one, among the next
// rangesAtOnce ranges. last is the id of the last of these; more is false if there are no others.
func (c *RangeChecker) changedNetworks(ctx context.Context, after int64) (last int64, networks []int64, more bool, err error) {
	err = c.store.View(ctx, func(tx *store.Tx) error {
		last = after
		var ids []int64
		if err := tx.Each(func(scan func(...any) error) error {
			err := scan(&last)
			ids = append(ids, last)
			return err
		}, "SELECT id FROM resource WHERE collection = 'ranges' AND id > ? ORDER BY id LIMIT ?", after, rangesAtOnce); err != nil {
			return err
		}
		more = len(ids) == rangesAtOnce
		found, err := tx.Load(ids)
		if err != nil {
			return err
		}
		byNetwork := map[int64][]*store.Resource{}
		for _, id := range ids {
			if r := found[id]; r != nil && r.Low[0] == 4 {
				byNetwork[r.Parent] = append(byNetwork[r.Parent], r)
			}
		}
		m := marks{settings: settingsOf(tx)}
		above, err := m.settings.resolve(tx, slices.Sorted(maps.Keys(byNetwork)))
		if err != nil {
			return err
		}
		for network, ranges := range byNetwork {
			changed := false
			if err := m.eachRange(tx, ranges, above[network], func(r *store.Resource, own *Settings, used int64, size *big.Int) error {
				before, err := readLevel(tx, r.ID)
				changed = changed || before != levelOf(own, used, size) && (before != "" || levelOf(own, used, size) != levelNormal)
				return err
			}); err != nil {
				return err
			}
			if changed {
				networks = append(networks, network)
			}
		}
		slices.Sort(networks)
		return nil
	})
	return last, networks, more, err
}

// update updates the water levels of the ranges of a network.
func (c *RangeChecker) update(ctx context.Context, network int64) error {
	return c.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		row, err := tx.Get(network)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		m := marks{settings: settingsOf(tx)}
		above, err := m.settings.resolve(tx, []int64{network})
		if err != nil {
			return err
		}
		return m.updateRangeLevels(tx, row, above[network])
	})
}

// eachRange calls fn for DHCP ranges of a network with their effective settings, the number of used addresses and the size, both without
// excluded addresses. above are the settings of the network.
func (m *marks) eachRange(tx *store.Tx, ranges []*store.Resource, above *Settings,
	fn func(r *store.Resource, own *Settings, used int64, size *big.Int) error,
) error {
	wholes := make([]space.Range, len(ranges))
	for i, r := range ranges {
		wholes[i] = RangeOf(r)
	}
	usages, err := rangeUsage(tx, ranges, wholes)
	if err != nil {
		return err
	}
	defaults, err := m.settings.rangeDefaults(tx)
	if err != nil {
		return err
	}
	for i, r := range ranges {
		own, err := m.settings.fields().derive(above, r)
		if err != nil {
			return err
		}
		defaults.apply(own)
		out := usages[i][excluded]
		delete(usages[i], excluded)
		if err := fn(r, own, usages[i].Used(), new(big.Int).Sub(wholes[i].Size(), big.NewInt(out))); err != nil {
			return err
		}
	}
	return nil
}
