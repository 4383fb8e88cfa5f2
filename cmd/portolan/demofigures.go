package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/figures"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/server"
)

// demoPeriod is the period of the figures of the demo.
const demoPeriod = 28 * 24 * time.Hour

// demoFigures stores four weeks of figures of a new demo: networks that have filled up to their present utilization, and the load of a
// small organization. The same data gives the same figures. A demo with figures keeps them.
func demoFigures(ctx context.Context, m *server.Manager) error {
	if all, _, _ := m.Figures.Usage(); len(all) == 0 || all[len(all)-1].Series > 0 {
		return nil
	}
	var used []ipam.SpaceUsage
	if err := m.Store.View(ctx, func(tx *store.Tx) error {
		return ipam.SpaceUsages(tx, func(u ipam.SpaceUsage) error {
			used = append(used, u)
			return nil
		})
	}); err != nil {
		return err
	}
	now := m.Store.Now()
	return m.FillFigures(ctx, demoPeriod, func(at time.Time) (all []figures.Sample) {
		left := now.Sub(at).Hours() / 24 // days before now
		for _, u := range used {
			object := fmt.Sprintf("%s/%d", u.Collection, u.ID)
			share := demoGrowth(u.ID, left)
			switch {
			case u.Size > 0 && u.Collection == figures.Networks:
				all = append(all, figures.Sample{Metric: "utilization", Object: object, Value: math.Round(u.Used*share) / u.Size})
			case u.Size > 0:
				all = append(all, figures.Sample{Metric: "addresses", Object: object, Value: math.Round(u.Used * share)},
					figures.Sample{Metric: "allocated", Object: object, Value: u.Networks / u.Size})
			default:
				all = append(all, figures.Sample{Metric: "addresses", Object: object, Value: math.Round(u.Used * share)})
			}
		}
		return append(all, demoLoad(at, left)...)
	})
}

// demoGrowth returns the part of a network's present utilization that it had some days ago. Networks fill at different speeds.
func demoGrowth(id int64, daysAgo float64) float64 {
	perDay := float64(id%7) / 200
	return max(0.05, 1-perDay*daysAgo)
}

// demoLoad returns the load of a small organization: busy by day, quiet at night and on weekends.
func demoLoad(at time.Time, daysAgo float64) (all []figures.Sample) {
	add := func(metric, by string, value float64) {
		all = append(all, figures.Sample{Metric: metric, Object: figures.Manager, By: by, Value: value})
	}
	hour := float64(at.Hour()) + float64(at.Minute())/60
	busy := 0.15 + max(0, math.Sin((hour-6)/24*2*math.Pi))
	if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
		busy /= 3
	}
	noise := 1 + 0.1*math.Sin(float64(at.Unix()/600)*1.7)
	for by, rate := range map[string]float64{"NOERROR": 180, "NXDOMAIN": 22, "SERVFAIL": 0.6, "REFUSED": 1.1} {
		add("queries", by, rate*busy*noise)
	}
	for by, rate := range map[string]float64{"DISCOVER": 0.4, "REQUEST": 2.2} {
		add("dhcpReceived", by, rate*busy)
	}
	add("dhcpSent", "OFFER", 0.4*busy)
	add("dhcpSent", "ACK", 2.2*busy)
	for by, rate := range map[string]float64{"address": 3.5, "fleet": 0.7, "console": 0.5} {
		add("requests", by, rate*busy*noise)
	}
	add("changes", "", 0.01*busy*noise)
	add("databaseBytes", "", (14-daysAgo/7)*(1<<20))
	healthy := 2.0
	if daysAgo > 9.2 && daysAgo < 9.6 { // an outage of some hours
		healthy = 1
	}
	add("servicePoints", "HEALTHY", healthy)
	add("servicePoints", "UNHEALTHY", 2-healthy)
	add("connected", "", healthy)
	add("alarms", "warning", 2+2-healthy)
	add("alarms", "critical", 0)
	return all
}
