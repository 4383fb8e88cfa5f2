package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"portolan/internal/base/fairlisten"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

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

// metricsAt returns the metrics endpoint for an address: the running one, a new one, or nil if the address is empty.
func (s *service) metricsAt(address string) (*metricsEndpoint, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // metrics are disabled
	}
	if s.metrics != nil && s.metrics.address == address {
		return s.metrics, nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s for metrics: %w", address, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
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

// collector collects the metrics of the service.
type collector struct{ s *service }

var (
	receivedMetric = prometheus.NewDesc("portolan_dhcp_received_total", "Messages of clients by type.", []string{"type"}, nil)
	sentMetric     = prometheus.NewDesc("portolan_dhcp_sent_total", "Replies by type.", []string{"type"}, nil)
	refusedMetric  = prometheus.NewDesc("portolan_dhcp_refused_total", "Messages without a reply, or with a NAK, by reason.",
		[]string{"reason"}, nil)
	leasesMetric = prometheus.NewDesc("portolan_dhcp_addresses", "Addresses by state.", []string{"state"}, nil)
	usedMetric   = prometheus.NewDesc("portolan_dhcp_range_leases", "Leases of a range.", []string{"range"}, nil)
	namesMetric  = prometheus.NewDesc("portolan_dhcp_names_total", "Updates of the names of clients in DNS by result.",
		[]string{"result"}, nil)
	namesPendingMetric = prometheus.NewDesc("portolan_dhcp_names_pending", "Pending updates of the names of clients in DNS.", nil, nil)
	pendingMetric      = prometheus.NewDesc("portolan_dhcp_journal_pending", "Records not yet stored on the disk.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, one := range append(pairMetrics(), receivedMetric, sentMetric, refusedMetric, leasesMetric, usedMetric, pendingMetric, namesMetric,
		namesPendingMetric) {
		to <- one
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	d := c.s.diagnose()
	for desc, all := range map[*prometheus.Desc]map[string]int64{receivedMetric: d.Received, sentMetric: d.Sent, refusedMetric: d.Refused} {
		for label, n := range all {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), label)
		}
	}
	for state, n := range d.Addresses {
		to <- prometheus.MustNewConstMetric(leasesMetric, prometheus.GaugeValue, float64(n), state)
	}
	for id, n := range d.ranges {
		to <- prometheus.MustNewConstMetric(usedMetric, prometheus.GaugeValue, float64(n), fmt.Sprint(id))
	}
	for result, n := range d.Names.Outcomes {
		to <- prometheus.MustNewConstMetric(namesMetric, prometheus.CounterValue, float64(n), string(result))
	}
	to <- prometheus.MustNewConstMetric(namesPendingMetric, prometheus.GaugeValue, float64(d.Names.Pending))
	collectPairs(to, d.Pairs)
	to <- prometheus.MustNewConstMetric(pendingMetric, prometheus.GaugeValue, float64(len(c.s.engine.commits)))
}

// diagnostics are the diagnostics of the service.
type diagnostics struct {
	Revision string `json:"revision,omitempty"`
	// Addresses are the numbers of addresses by state: leased, offered, and abandoned.
	Addresses map[string]int64 `json:"addresses"`
	// Received and Sent count messages by type. Refused counts clients without a reply, or with a NAK, by reason, and RefusedByNetwork the
	// same by the id of the network.
	Received         map[string]int64           `json:"received"`
	Sent             map[string]int64           `json:"sent"`
	Refused          map[string]int64           `json:"refused"`
	RefusedByNetwork map[int64]map[string]int64 `json:"refusedByNetwork,omitempty"`
	// Interfaces are the interfaces whose clients are served without a relay.
	Interfaces []string `json:"interfaces"`
	// Names describes the names of clients in DNS.
	Names nameState `json:"names"`
	// Pairs are the failover pairs.
	Pairs  []pairDiagnostics `json:"pairs,omitempty"`
	ranges map[int64]uint64
}

// maxShownNetworks is the maximum number of networks in the diagnostics, so that they fit into a report.
const maxShownNetworks = 100

// Diagnostics implements application.Application.
func (s *service) Diagnostics() any {
	if s.engine == nil {
		return diagnostics{}
	}
	d := s.diagnose()
	if len(d.RefusedByNetwork) > maxShownNetworks {
		shown := map[int64]map[string]int64{}
		for id, one := range d.RefusedByNetwork {
			if len(shown) < maxShownNetworks {
				shown[id] = one
			}
		}
		d.RefusedByNetwork = shown
	}
	return d
}

func (s *service) diagnose() diagnostics {
	d := diagnostics{Revision: s.engine.revision(), Addresses: map[string]int64{}, Interfaces: []string{}, ranges: map[int64]uint64{}}
	d.Pairs = s.engine.pairStates()
	d.Received, d.Sent, d.Refused, d.RefusedByNetwork = s.engine.counters.copy()
	d.Names = s.engine.names.state()
	s.engine.mu.Lock()
	for id, p := range s.engine.table.pools {
		d.ranges[id] = p.used
		d.Addresses["leased"] += int64(p.used)
		d.Addresses["abandoned"] += int64(p.lists[inAbandoned].length)
	}
	d.Addresses["offered"] = int64(s.engine.table.offers.all.Len())
	s.engine.mu.Unlock()
	s.linkLock.RLock()
	for _, l := range s.linksByIndex {
		d.Interfaces = append(d.Interfaces, l.interfaceName())
	}
	s.linkLock.RUnlock()
	return d
}
