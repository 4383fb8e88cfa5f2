package ipam

import (
	"encoding/json"
	"math"
	"math/big"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Utilization is the use of a DHCP range by clients, and a forecast.
type Utilization struct {
	// Addresses is the number of addresses without excluded ones; null if it exceeds 2^53.
	Addresses *int64 `api:"addresses" json:"addresses"`
	// Leased is the number of leases of clients without a reservation.
	Leased int64 `api:"leased" json:"leased"`
	// Reserved is the number of reserved addresses, with or without a lease.
	Reserved int64 `api:"reserved" json:"reserved"`
	// Abandoned is the number of addresses that another machine uses, or that a client declined.
	Abandoned int64 `api:"abandoned" json:"abandoned"`
	// Assigned is the number of other addresses that are not leased to clients: static addresses and the gateway.
	Assigned int64 `api:"assigned" json:"assigned"`
	// Excluded is the number of addresses in the exclusion ranges that are not in use.
	Excluded int64 `api:"excluded" json:"excluded"`
	// Free is the number of addresses that clients can get; null if it exceeds 2^53.
	Free *int64 `api:"free" json:"free"`
	// Percent is the used part of the addresses, rounded down.
	Percent int64 `api:"percent" json:"percent"`
	// LeasesPerHour is the average change of the number of leases per hour; null without an hour of history.
	LeasesPerHour *float64 `api:"leasesPerHour" json:"leasesPerHour"`
	// TrendHours is the number of hours of history behind the forecast, at most 24.
	TrendHours *float64 `api:"trendHours" json:"trendHours"`
	// FullDateTime is when the range is full if the change goes on; null if that is more than a year away.
	FullDateTime *string `api:"fullDateTime" json:"fullDateTime"`
	// FullInHours is the number of hours until then.
	FullInHours *float64 `api:"fullInHours" json:"fullInHours"`
}

// Limits of forecasts.
const (
	// minTrend is the shortest history for a forecast, in hours.
	minTrend = 1.0
	// maxForecast is the longest forecast, in hours.
	maxForecast = 366 * 24.0
	// maxExact is the largest number that every JSON parser reads exactly.
	maxExact = 1 << 53
)

// utilizationOf returns the utilization of a range with a size, from its usage, and the forecast at a time.
func utilizationOf(size *big.Int, u Usage, t Trend, now time.Time) Utilization {
	one := Utilization{Leased: u[allocated], Reserved: u["DHCP_RESERVED"], Abandoned: u[abandoned], Excluded: u[excluded]}
	used := u.Used() - one.Excluded
	one.Assigned = used - one.Leased - one.Reserved - one.Abandoned
	whole := new(big.Int).Sub(size, big.NewInt(one.Excluded))
	one.Percent = min(100, percent(used, whole))
	if whole.IsInt64() && whole.Int64() <= maxExact {
		n := whole.Int64()
		free := max(0, n-used)
		one.Addresses, one.Free = &n, &free
	}
	if t.Hours < minTrend {
		return one
	}
	perHour, hours := round(t.PerHour), round(t.Hours)
	one.LeasesPerHour, one.TrendHours = &perHour, &hours
	if one.Free == nil {
		return one
	}
	full := 0.0
	if *one.Free > 0 {
		if t.PerHour <= 0 {
			return one
		}
		full = float64(*one.Free) / t.PerHour
	}
	if full > maxForecast {
		return one
	}
	at := schema.FormatTime(now.Add(time.Duration(full * float64(time.Hour))).UTC().Truncate(time.Second))
	full = round(full)
	one.FullInHours, one.FullDateTime = &full, &at
	return one
}

// round returns a number with one decimal place.
func round(n float64) float64 { return math.Round(n*10) / 10 }

// completeUtilization adds the utilization to the bodies of DHCP ranges.
func completeUtilization(tx *store.Tx, rows []*store.Resource, wholes []space.Range, usages []Usage, bodies []store.Object) error {
	var trends map[int64]Trend
	if l := leasesIn(tx); l != nil {
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		var err error
		if trends, err = l.Trends(tx, ids); err != nil {
			return err
		}
	}
	sizes, err := clientSizes(tx, rows, wholes)
	if err != nil {
		return err
	}
	for i, r := range rows {
		text, err := json.Marshal(utilizationOf(sizes[i], usages[i], trends[r.ID], tx.Now()))
		if err != nil {
			return err
		}
		bodies[i].Set("utilization", text)
	}
	return nil
}

// RangeUtilization is the utilization of a DHCP range.
type RangeUtilization struct {
	ID, Configuration int64
	Name, Range       string
	Utilization
}

// UtilizationOf returns the utilization of DHCP ranges. Ranges that do not exist are missing.
func UtilizationOf(tx *store.Tx, ids []int64) (all []RangeUtilization, err error) {
	found, err := tx.Load(ids)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	var rows []*store.Resource
	var wholes []space.Range
	for _, id := range ids {
		if r := found[id]; r != nil && r.Collection == "ranges" {
			rows, wholes = append(rows, r), append(wholes, RangeOf(r))
		}
	}
	usages, err := rangeUsage(tx, rows, wholes)
	if err != nil {
		return nil, err
	}
	var trends map[int64]Trend
	if l := leasesIn(tx); l != nil {
		if trends, err = l.Trends(tx, ids); err != nil {
			return nil, err
		}
	}
	sizes, err := clientSizes(tx, rows, wholes)
	if err != nil {
		return nil, err
	}
	for i, r := range rows {
		all = append(all, RangeUtilization{ID: r.ID, Configuration: r.Configuration, Name: r.Name, Range: wholes[i].Dashed(),
			Utilization: utilizationOf(sizes[i], usages[i], trends[r.ID], tx.Now())})
	}
	return all, nil
}
