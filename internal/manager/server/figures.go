package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/figures"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/ipam"

	dto "github.com/prometheus/client_model/go"
)

// Defaults of the limits of figures: about 3.2 KiB of memory for a line, and the disk for 13 months.
const (
	DefaultFigureLines = 20000
	DefaultFigureBytes = 2 << 30
)

// figuresTimeout is the timeout of a request to the server of figures.
const figuresTimeout = 20 * time.Second

// openFigures opens the figures over time: at a server, in the data directory, or none.
func (m *Manager) openFigures() (err error) {
	o := m.options
	switch {
	case o.FiguresURL != nil:
		m.Figures = figures.NewRemote(o.FiguresURL, hostName(), &http.Client{Timeout: figuresTimeout}, m.now)
		return nil
	case o.Data == "" || o.FigureBytes < 0:
		return nil
	}
	local, err := figures.Open(filepath.Join(o.Data, "figures"), figures.LocalOptions{Now: m.now, Log: m.log,
		Series: cmp.Or(o.FigureLines, DefaultFigureLines), Bytes: cmp.Or(o.FigureBytes, DefaultFigureBytes)})
	if err != nil {
		return fmt.Errorf("open the figures over time: %w", err)
	}
	m.Figures = local
	return nil
}

// FillFigures stores figures of the demo for a period before now, if there are none. It reports whether it did.
func (m *Manager) FillFigures(ctx context.Context, period time.Duration, samples func(at time.Time) []figures.Sample) error {
	local, is := m.Figures.(*figures.Local)
	if !is {
		return errors.New("the figures are not in the data directory")
	}
	return local.Fill(ctx, period, samples)
}

// seesServicePoint returns an error if a user sees neither the whole fleet nor a service point by its labels.
func (m *Manager) seesServicePoint(ctx context.Context, p authz.Principal, caller resource.Caller, id string) error {
	labels, err := m.Fleet.Labels(ctx, id)
	if err != nil || !caller.Limited() {
		return err
	}
	scopes, err := authz.PolicyOf(m.Store).FleetScopes(ctx, p)
	if err != nil {
		return err
	}
	for _, one := range scopes {
		if one.Level >= authz.View && one.Covers(labels) {
			return nil
		}
	}
	return fleet.UnknownProblem(id)
}

// figureSampler measures the figures of a manager.
type figureSampler struct {
	m *Manager
	// measured is when networks, blocks and ranges were measured last.
	measured time.Time
	// counters are the last values of counters, to derive rates.
	counters map[counterKey]counterValue
}

// counterKey identifies a counter.
type counterKey struct{ object, source, metric, by string }

// counterValue is the value of a counter at a time.
type counterValue struct {
	at    time.Time
	value float64
}

// rate returns the growth of a counter per second since its last value; false for the first value, or without a newer one. A counter that
// has begun anew counts from 0.
func (s *figureSampler) rate(key counterKey, at time.Time, value float64) (float64, bool) {
	before, there := s.counters[key]
	passed := at.Sub(before.at).Seconds()
	if there && passed <= 0 {
		return 0, false
	}
	if s.counters[key] = (counterValue{at, value}); !there {
		return 0, false
	}
	if value < before.value {
		before.value = 0
	}
	return (value - before.value) / passed, true
}

// wideInterval is the interval of the figures of networks, blocks and ranges, which change slowly and are many.
const wideInterval = 5 * time.Minute

// keepFigures measures once a minute until ctx ends, and maintains the figures. Each manager keeps the figures in its own data directory.
// At a server, the manager with the lease sends what all have in common, and each sends what is of its process.
func (m *Manager) keepFigures(ctx context.Context) {
	if m.Figures == nil {
		return
	}
	s := &figureSampler{m: m, counters: map[counterKey]counterValue{}}
	lease := m.Store.NewLease("figures", 3*figures.Interval)
	defer func() {
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			m.log.Error("lease release failed", "error", err)
		}
	}()
	tick := time.NewTicker(figures.Interval)
	defer tick.Stop()
	for next := m.now().Add(figures.MaintainEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		shared := true
		if m.options.FiguresURL != nil {
			held, err := lease.Acquire(ctx)
			if shared = held; err != nil {
				m.figureFault(ctx, err)
			}
		}
		if err := s.measure(ctx, m.now(), shared); err != nil {
			m.figureFault(ctx, err)
		}
		if m.now().After(next) {
			if err := m.Figures.Maintain(ctx); err != nil {
				m.figureFault(ctx, err)
			}
			next = m.now().Add(figures.MaintainEvery)
		}
	}
}

// figureFault logs and counts a failure of the figures, which stops nothing else.
func (m *Manager) figureFault(ctx context.Context, err error) {
	if ctx.Err() == nil {
		m.metrics.figureFaults.Inc()
		m.log.Warn("figures not stored", "error", err)
	}
}

// measure stores the samples of a time. shared includes what all managers of the database have in common.
func (s *figureSampler) measure(ctx context.Context, now time.Time, shared bool) error {
	all, errs := s.process(now, shared)
	if shared {
		errs = errors.Join(errs, s.m.Store.Lists(ctx, func(tx *store.Tx) error {
			some, err := s.sampleStored(tx, now)
			all = append(all, some...)
			return err
		}))
	}
	return errors.Join(errs, s.m.Figures.Append(ctx, now, all))
}

// process returns the samples of the declared metrics that follow from those of /metrics.
func (s *figureSampler) process(now time.Time, shared bool) (all []figures.Sample, err error) {
	families, err := s.m.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather the metrics: %w", err)
	}
	for _, metric := range figures.Declared(figures.Manager) {
		if !shared && !metric.OfProcess {
			continue
		}
		for _, family := range families {
			if metric.Source == "" || family.GetName() != metric.Source {
				continue
			}
			sums := map[string]float64{}
			for _, one := range family.GetMetric() {
				sums[labelOf(one, metric.Label)] += one.GetCounter().GetValue() + one.GetGauge().GetValue()
			}
			for by, value := range sums {
				if metric.Unit == figures.PerSecond {
					rate, ok := s.rate(counterKey{figures.Manager, metric.Source, metric.Name, by}, now, value)
					if !ok {
						continue
					}
					value = rate
				}
				all = append(all, figures.Sample{Metric: metric.Name, Object: figures.Manager, By: by, Value: value})
			}
		}
	}
	return all, nil
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// sampleStored returns samples of the counts in the tables of the database.
func (s *figureSampler) sampleStored(tx *store.Tx, now time.Time) (all []figures.Sample, err error) {
	add := func(metric, object, by string, value float64) {
		all = append(all, figures.Sample{Metric: metric, Object: object, By: by, Value: value})
	}
	if now.Sub(s.measured) > wideInterval-figures.Interval/2 {
		s.measured = now
		if err := ipam.SpaceUsages(tx, func(u ipam.SpaceUsage) error {
			object := objectOf(u.Collection, u.ID)
			if add("addresses", object, "", u.Used); u.Size > 0 && u.Collection == figures.Networks {
				all[len(all)-1] = figures.Sample{Metric: "utilization", Object: object, Value: u.Used / u.Size}
			} else if u.Size > 0 {
				add("allocated", object, "", u.Networks/u.Size)
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read the usage of networks: %w", err)
		}
		ranges, err := dhcp.LeasedRanges(tx)
		if err != nil {
			return nil, err
		}
		for _, r := range ranges {
			add("utilization", objectOf(figures.Ranges, r.ID), "", r.Share())
		}
	}
	servers, err := dhcp.CountServers(tx)
	if err != nil {
		return nil, err
	}
	for id, states := range servers {
		for state, n := range states {
			add("leases", objectOf(figures.Servers, id), state, float64(n))
		}
	}
	if err := fleet.Availability(tx, func(id string, available bool) error {
		value := 0.0
		if available {
			value = 1
		}
		add("available", figures.ServicePoints+"/"+id, "", value)
		return nil
	}); err != nil {
		return nil, err
	}
	some, err := s.rates(tx)
	return append(all, some...), err
}

// objectOf returns the object of figures for a resource.
func objectOf(collection string, id int64) string {
	return collection + "/" + strconv.FormatInt(id, 10)
}

// lineKey identifies a line.
type lineKey struct{ metric, object, by string }

// rates returns the rates of the counters of service points, and their sums over the fleet.
func (s *figureSampler) rates(tx *store.Tx) (all []figures.Sample, err error) {
	sums := map[lineKey]float64{}
	if err := fleet.CounterReports(tx, func(r fleet.CounterReport) error {
		for _, c := range r.Counters {
			key := counterKey{r.ServicePoint, fmt.Sprint(r.Node, "/", c.Application), c.Metric, c.By}
			if rate, ok := s.rate(key, r.At, float64(c.Count)); ok {
				sums[lineKey{c.Metric, figures.ServicePoints + "/" + r.ServicePoint, c.By}] += rate
				sums[lineKey{c.Metric, figures.Manager, c.By}] += rate
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for key, value := range sums {
		all = append(all, figures.Sample{Metric: key.metric, Object: key.object, By: key.by, Value: value})
	}
	return all, nil
}
