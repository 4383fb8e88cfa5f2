package server

import (
	"net/http"
	"slices"

	"portolan/internal/engine/resource"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// seesAll reports whether a caller may see everything.
func seesAll(c resource.Caller) bool { return !c.MustReset && !c.Limited() }

// showMetrics answers the metrics. On the listener of the APIs, metrics that name resources are shown to callers that may see everything; a
// separate listener shows all of them to every client.
func (m *Manager) showMetrics(w http.ResponseWriter, r *http.Request) error {
	shown := prometheus.Gatherer(m.registry)
	if m.figures == nil {
		whole := false
		if r.Header.Get("Authorization") != "" {
			caller, err := m.addressAPI.Caller(r)
			if err != nil {
				return err
			}
			whole = seesAll(caller)
		}
		if !whole {
			shown = prometheus.GathererFunc(m.nameless)
		}
	}
	promhttp.HandlerFor(shown, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

// nameless gathers the metrics that name no resources.
func (m *Manager) nameless() ([]*dto.MetricFamily, error) {
	families, err := m.registry.Gather()
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
		return slices.ContainsFunc(f.GetMetric(), func(one *dto.Metric) bool {
			return slices.ContainsFunc(one.GetLabel(), func(l *dto.LabelPair) bool { return slices.Contains(namesOthers, l.GetName()) })
		})
	}), err
}

// namesOthers are the labels of metrics with names of resources.
var namesOthers = []string{"configuration", "network", "server", "range"}
