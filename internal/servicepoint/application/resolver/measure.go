package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"portolan/internal/base/fairlisten"
)

// metricsPlugin is the name of the plugin that counts queries and answers. It replaces CoreDNS's own plugin, which would open a listener
// without connection limits.
const metricsPlugin = "measures"

// Limits of the metrics endpoint.
const (
	maxScrapers = 64
	scrapeTime  = 10 * time.Second
)

// metricsEndpoint is the metrics endpoint at an address.
type metricsEndpoint struct {
	address string
	server  *http.Server
}

// startMetrics starts the metrics endpoint with connection limits per client network; nil if the address is empty.
func startMetrics(address string) (*metricsEndpoint, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // metrics are disabled
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for metrics: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.DefaultGatherer, promhttp.HandlerOpts{}))
	m := &metricsEndpoint{address: address, server: &http.Server{Handler: mux, ReadHeaderTimeout: scrapeTime, ReadTimeout: scrapeTime,
		WriteTimeout: 3 * scrapeTime, IdleTimeout: 3 * scrapeTime, MaxHeaderBytes: 64 << 10}}
	fair := fairlisten.New(l, fairlisten.Limits{Max: fairlisten.ShareLimit(1, maxScrapers), PerNetwork: maxScrapers / 4})
	go func() { _ = m.server.Serve(fair) }() // it ends with close
	return m, nil
}

// close stops the endpoint.
func (m *metricsEndpoint) close() error {
	if m == nil {
		return nil
	}
	if err := m.server.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// metricsAt returns the metrics endpoint for an address: the running one or a new one.
func (r *resolver) metricsAt(address string) (*metricsEndpoint, error) {
	if r.metrics != nil && r.metrics.address == address {
		return r.metrics, nil
	}
	return startMetrics(address)
}
