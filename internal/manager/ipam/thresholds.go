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

// Water levels compare the usage of blocks and networks with their marks. An event is raised when usage rises above the high mark, falls
// below the low mark, or returns to the range between them.
const (
	levelNormal = "NORMAL"
	levelHigh   = "HIGH"
	levelLow    = "LOW"
)

// Names of the fields for the water marks and for the ping before an address is assigned.
const (
	lowWaterMark     = "lowWaterMark"
	highWaterMark    = "highWaterMark"
	pingBeforeAssign = "pingBeforeAssignEnabled"
)

// marks updates the water levels of blocks, networks and DHCP ranges.
type marks struct{ settings *inheritance }

// updateLevels updates the water levels of IPv4 containers whose usage changed, and of all blocks above them.
func (m *marks) updateLevels(tx *store.Tx, containers []int64) error {
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
	settings, err := m.settings.resolve(tx, ids)
	if err != nil {
		return err
	}
	usage, err := UsageOf(tx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		used, size, err := usedAndSize(tx, rows[id], usage[id])
		if err != nil {
			return err
		}
		if rows[id].Collection == "blocks" {
			if used, err = m.lockNearMark(tx, rows[id], settings[id], used, size); err != nil {
				return err
			}
		}
		if err := m.updateLevel(tx, rows[id], settings[id], used, size); err != nil {
			return err
		}
		if rows[id].Collection == "networks" {
			if err := m.updateRangeLevels(tx, rows[id], settings[id]); err != nil {
				return err
			}
		}
	}
	return nil
}

// nearMark is the distance, in addresses, within which the usage of a block counts as near a mark. It is more than all managers together
// can assign at a time in the networks of the block.
const nearMark = 1024

// lockNearMark locks the row of a block whose usage is near a mark, and returns its usage read under the lock. Without the lock, concurrent
// changes in two networks of the block could pass the mark together without either seeing it. The blocks of a change are locked in the
// order of their ids, which prevents deadlocks.
func (m *marks) lockNearMark(tx *store.Tx, r *store.Resource, settings *Settings, used int64, size *big.Int) (int64, error) {
	near := false
	for _, name := range []string{lowWaterMark, highWaterMark} {
		if percent, ok := settings.number(name); ok {
			distance := new(big.Int).Sub(scaledCount(used), scaledMark(size, percent))
			near = near || distance.CmpAbs(scaledCount(nearMark)) <= 0
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
	used, _, err = usedAndSize(tx, r, usage[r.ID])
	return used, err
}

// updateRangeLevels updates the water levels of the DHCP ranges of a network. Excluded addresses are not counted.
func (m *marks) updateRangeLevels(tx *store.Tx, network *store.Resource, settings *Settings) error {
	found, err := tx.ListBelow(network.ID, "ranges", network.Low, network.High)
	if err != nil {
		return err
	}
	return m.eachRange(tx, found, settings, func(r *store.Resource, own *Settings, used int64, size *big.Int) error {
		return m.updateLevel(tx, r, own, used, size)
	})
}

// updateLevel updates the water level of one resource with the given number of used addresses.
func (m *marks) updateLevel(tx *store.Tx, r *store.Resource, settings *Settings, used int64, size *big.Int) error {
	_, hasLow := settings.number(lowWaterMark)
	_, hasHigh := settings.number(highWaterMark)
	before, err := readLevel(tx, r.ID)
	if err != nil || !hasLow && !hasHigh && before == "" {
		return err
	}
	return m.setLevel(tx, r, before, levelOf(settings, used, size), used, size)
}

// levelOf returns the water level of a resource with effective settings and a number of used addresses.
func levelOf(settings *Settings, used int64, size *big.Int) string {
	low, hasLow := settings.number(lowWaterMark)
	high, hasHigh := settings.number(highWaterMark)
	switch {
	case hasHigh && scaledCount(used).Cmp(scaledMark(size, high)) > 0:
		return levelHigh
	case hasLow && scaledCount(used).Cmp(scaledMark(size, low)) < 0:
		return levelLow
	}
	return levelNormal
}

// scaledCount and mark return a number of addresses and a percentage of size in the same unit, so that they can be compared.
func scaledCount(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(100)) }

func scaledMark(size *big.Int, percent int64) *big.Int {
	return new(big.Int).Mul(size, big.NewInt(percent))
}

// usedAndSize returns the number of used addresses of a block or network and its total number of addresses. In a configuration with
// blockUsageCalculation NETWORK_ALLOCATION, the addresses of networks count as used in a block.
func usedAndSize(tx *store.Tx, r *store.Resource, u Usage) (used int64, size *big.Int, err error) {
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

// readLevel returns the stored water level of a resource; empty if it was never computed.
func readLevel(tx *store.Tx, id int64) (level string, err error) {
	err = tx.Each(func(scan func(...any) error) error { return scan(&level) }, "SELECT level FROM water WHERE container = ?", id)
	if err != nil {
		return "", fmt.Errorf("read a utilization threshold: %w", err)
	}
	return level, nil
}

// setLevel stores a changed water level and raises an event.
func (m *marks) setLevel(tx *store.Tx, r *store.Resource, before, after string, used int64, size *big.Int) error {
	if before == after {
		return nil
	}
	if err := tx.Write("INSERT INTO water (container, level) VALUES (?, ?) ON CONFLICT (container) DO UPDATE SET level = excluded.level",
		r.ID, after); err != nil {
		return fmt.Errorf("write a utilization threshold: %w", err)
	}
	if before == "" && after != levelHigh { // it has not fallen below a mark: this is the first level
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

// nameOf returns the range of a block, network or DHCP range, followed by its name if it has one.
func nameOf(r *store.Resource) string {
	text := spanOf(r)
	if r.Collection == "ranges" {
		text = RangeOf(r).Dashed()
	}
	return strings.TrimSpace(text + " " + r.Name)
}
