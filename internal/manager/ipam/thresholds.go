package ipam

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
)

// Water levels: the usage of blocks and networks against their marks. An event tells when it rises above
// the high one, falls below the low one, or comes back between them.
const (
	levelNormal = "NORMAL"
	levelHigh   = "HIGH"
	levelLow    = "LOW"
)

// Fields that say when somebody is told, and when an address is asked before it is assigned.
const (
	lowWaterMark     = "lowWaterMark"
	highWaterMark    = "highWaterMark"
	pingBeforeAssign = "pingBeforeAssignEnabled"
)

// marks looks after the water levels of blocks, networks and DHCP ranges.
type marks struct{ settings *inheritance }

// counted looks at the levels of networks and blocks, and of all above them, whose usage has changed.
func (m *marks) counted(tx *store.Tx, containers []int64) error {
	if used, err := m.settings.inUse(tx); err != nil || !used.marks {
		return err
	}
	rows, err := lineage(tx, containers)
	if err != nil {
		return err
	}
	ids := make([]int64, 0, len(rows))
	for id, r := range rows {
		if r.Low[0] == 4 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	holds, err := m.settings.holdIn(tx, ids)
	if err != nil {
		return err
	}
	usage, err := UsageOf(tx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		used, size, err := filled(tx, rows[id], usage[id])
		if err != nil {
			return err
		}
		if rows[id].Collection == "blocks" {
			if used, err = m.alone(tx, rows[id], holds[id], used, size); err != nil {
				return err
			}
		}
		if err := m.level(tx, rows[id], holds[id], used, size); err != nil {
			return err
		}
		if rows[id].Collection == "networks" {
			if err := m.ranges(tx, rows[id], holds[id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearMark is how many addresses from a mark on the usage of a block is near it: more than can be assigned at
// a time in its networks by all managers together.
const nearMark = 1024

// alone makes sure that nobody else looks at the level of a block at the same time, where its usage is near a
// mark: of changes in two of its networks that run side by side neither sees what the other one adds, and
// together they may pass the mark. It gives the usage as it is then. The blocks of a change are looked at in
// the order of their numbers, so that two changes never wait for each other.
func (m *marks) alone(tx *store.Tx, r *store.Resource, holds *Settings, used int64, size *big.Int) (int64, error) {
	near := false
	for _, name := range []string{lowWaterMark, highWaterMark} {
		if percent, ok := holds.number(name); ok {
			distance := new(big.Int).Sub(share(used), mark(size, percent))
			near = near || distance.CmpAbs(share(nearMark)) <= 0
		}
	}
	if !near {
		return used, nil
	}
	waited, err := tx.LockResource(r.ID)
	if err != nil || !waited {
		return used, err
	}
	usage, err := UsageOf(tx, []int64{r.ID})
	if err != nil {
		return used, err
	}
	used, _, err = filled(tx, r, usage[r.ID])
	return used, err
}

// ranges looks at the levels of a network's DHCP ranges, of what they hold but for their exclusions.
func (m *marks) ranges(tx *store.Tx, network *store.Resource, holds *Settings) error {
	found, err := tx.Below(network.ID, "ranges", network.Low, network.High)
	if err != nil {
		return err
	}
	wholes := make([]space.Range, len(found))
	for i, r := range found {
		wholes[i] = RangeOf(r)
	}
	usages, err := rangeUsage(tx, found, wholes)
	if err != nil {
		return err
	}
	for i, r := range found {
		own, err := m.settings.fields().below(holds, r)
		if err != nil {
			return err
		}
		out := usages[i][excluded]
		delete(usages[i], excluded)
		if err := m.level(tx, r, own, usages[i].Used(), new(big.Int).Sub(wholes[i].Size(), big.NewInt(out))); err != nil {
			return err
		}
	}
	return nil
}

// level looks at the level of one resource, of which so many addresses are used.
func (m *marks) level(tx *store.Tx, r *store.Resource, holds *Settings, used int64, size *big.Int) error {
	low, lows := holds.number(lowWaterMark)
	high, highs := holds.number(highWaterMark)
	before, err := levelOf(tx, r.ID)
	if err != nil || !lows && !highs && before == "" {
		return err
	}
	level := levelNormal
	switch {
	case highs && share(used).Cmp(mark(size, high)) > 0:
		level = levelHigh
	case lows && share(used).Cmp(mark(size, low)) < 0:
		level = levelLow
	}
	return m.move(tx, r, before, level, used, size)
}

// share and mark are n and a percentage of size, as they compare with each other.
func share(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(100)) }

func mark(size *big.Int, percent int64) *big.Int { return new(big.Int).Mul(size, big.NewInt(percent)) }

// filled gives how many addresses of a block or network count as used, and how many there are.
func filled(tx *store.Tx, r *store.Resource, u Usage) (used int64, size *big.Int, err error) {
	if r.Collection == "networks" {
		return u.Used(), space.Hosts(RangeOf(r)).Size(), nil
	}
	configuration, err := tx.Get(r.Configuration)
	if err != nil {
		return 0, nil, err
	}
	byNetworks := false
	err = store.Members(configuration.Body, func(name, raw []byte) error {
		if string(name) == "blockUsageCalculation" {
			byNetworks = string(raw) == `"NETWORK_ALLOCATION"`
		}
		return nil
	})
	if byNetworks {
		return u[networkSpace], RangeOf(r).Size(), err
	}
	return u.Used(), RangeOf(r).Size(), err
}

// levelOf gives the level of a resource when it was last looked at; empty where it never was.
func levelOf(tx *store.Tx, id int64) (level string, err error) {
	err = tx.Each(func(scan func(...any) error) error { return scan(&level) }, "SELECT level FROM water WHERE container = ?", id)
	if err != nil {
		return "", fmt.Errorf("reading a water level: %w", err)
	}
	return level, nil
}

// move writes a level where it is another one, and tells.
func (m *marks) move(tx *store.Tx, r *store.Resource, before, after string, used int64, size *big.Int) error {
	if before == after {
		return nil
	}
	if err := tx.Write("INSERT INTO water (container, level) VALUES (?, ?) ON CONFLICT (container) DO UPDATE SET level = excluded.level",
		r.ID, after); err != nil {
		return fmt.Errorf("writing a water level: %w", err)
	}
	if before == "" && after != levelHigh { // it has not fallen: it was never higher
		return nil
	}
	kind, how := "WARNING", "is above its high water mark"
	switch after {
	case levelLow:
		how = "is below its low water mark"
	case levelNormal:
		kind, how = "INFO", "is between its water marks again"
	}
	return event.Add(tx, event.Event{EventType: kind, Category: "DHCP_ALERT", Subcategory: "DHCPv4", SourceName: nameOf(r),
		Message: fmt.Sprintf("The usage of %s %s %s: %d of %s addresses, %d%%", r.Type, nameOf(r), how, used, size, percent(used, size))}, r.ID)
}

// nameOf names a block, a network or a range by its range, and its own name where it has one.
func nameOf(r *store.Resource) string {
	text := spanOf(r)
	if r.Collection == "ranges" {
		text = RangeOf(r).Dashed()
	}
	return strings.TrimSpace(text + " " + r.Name)
}
