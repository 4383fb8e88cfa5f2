package server

import (
	"portolan/internal/manager/figures"

	"github.com/prometheus/client_golang/prometheus"
)

// figureMetrics are the metrics of the figures over time.
type figureMetrics struct {
	store                          figures.Store
	lines, bytes, samples, refused *prometheus.Desc
}

// observeFigures registers the metrics of the figures over time.
func (m *Manager) observeFigures() {
	if m.Figures == nil {
		return
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("portolan_figures_"+name, help, labels, nil)
	}
	m.registry.MustRegister(&figureMetrics{store: m.Figures,
		lines:   desc("lines", "Lines of figures over time, by resolution.", "resolution"),
		bytes:   desc("bytes", "Size of the figures over time on the disk, by resolution.", "resolution"),
		samples: desc("samples_total", "Samples of figures over time that were stored."),
		refused: desc("refused_samples_total", "Samples that were not stored: lines beyond the limit, or older than stored samples.")})
}

// Describe implements prometheus.Collector.
func (f *figureMetrics) Describe(all chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{f.lines, f.bytes, f.samples, f.refused} {
		all <- one
	}
}

// Collect implements prometheus.Collector.
func (f *figureMetrics) Collect(all chan<- prometheus.Metric) {
	levels, samples, refused := f.store.Usage()
	for _, u := range levels {
		all <- prometheus.MustNewConstMetric(f.lines, prometheus.GaugeValue, float64(u.Series), u.Level)
		all <- prometheus.MustNewConstMetric(f.bytes, prometheus.GaugeValue, float64(u.Bytes), u.Level)
	}
	all <- prometheus.MustNewConstMetric(f.samples, prometheus.CounterValue, float64(samples))
	all <- prometheus.MustNewConstMetric(f.refused, prometheus.CounterValue, float64(refused))
}
