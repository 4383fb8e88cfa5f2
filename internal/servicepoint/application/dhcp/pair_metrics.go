package dhcp

import (
	"fmt"

	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"

	"github.com/prometheus/client_golang/prometheus"
)

// pairDiagnostics is the state of a pair in the diagnostics.
type pairDiagnostics struct {
	Name string `json:"name"`
	dhcplease.Pair
}

// pairStates returns the states of all pairs.
func (e *engine) pairStates() (all []pairDiagnostics) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.now()
	for _, p := range e.pairs {
		all = append(all, pairDiagnostics{p.settings.PartnerName, p.state(now)})
	}
	return all
}

// pairConditions returns the error conditions of the pairs.
func (e *engine) pairConditions() (all []string) {
	e.mu.Lock()
	if e.pairFailure != "" {
		all = append(all, "failover partners cannot connect: "+e.pairFailure)
	}
	e.mu.Unlock()
	for _, p := range e.pairStates() {
		switch p.State {
		case dhcppair.StateNormal, dhcppair.StateStartup, dhcppair.StateResolving:
		case dhcppair.StateWaiting:
			all = append(all, fmt.Sprintf("no client is served: the server has not met its failover partner %s yet", p.Name))
		case dhcppair.StateRecover, dhcppair.StateRecoverWait, dhcppair.StateRecoverDone:
			all = append(all, fmt.Sprintf("no client is served: the server recovers the leases of the pair with %s (%s)", p.Name, p.State))
		default:
			all = append(all, fmt.Sprintf("the failover partner %s is not connected (%s)", p.Name, p.State))
		}
	}
	return all
}

var (
	pairStateMetric = prometheus.NewDesc("portolan_dhcp_pair_state", "The state of a failover pair; the value is always 1.",
		[]string{"partner", "state"}, nil)
	pairConnectedMetric = prometheus.NewDesc("portolan_dhcp_pair_connected", "1 if the failover partner is connected; otherwise 0.",
		[]string{"partner"}, nil)
	pairPendingMetric = prometheus.NewDesc("portolan_dhcp_pair_pending", "Records that the failover partner has not acknowledged.",
		[]string{"partner"}, nil)
	pairSkewMetric = prometheus.NewDesc("portolan_dhcp_pair_skew_seconds", "The clock of the failover partner minus that of the server.",
		[]string{"partner"}, nil)
	pairConflictsMetric = prometheus.NewDesc("portolan_dhcp_pair_conflicts_total", "Addresses that both servers of a pair had leased.",
		[]string{"partner"}, nil)
)

// pairMetrics are the descriptions of the metrics of pairs.
func pairMetrics() []*prometheus.Desc {
	return []*prometheus.Desc{pairStateMetric, pairConnectedMetric, pairPendingMetric, pairSkewMetric, pairConflictsMetric}
}

// collectPairs collects the metrics of pairs.
func collectPairs(to chan<- prometheus.Metric, all []pairDiagnostics) {
	for _, p := range all {
		connected := 0.0
		if p.Connected {
			connected = 1
		}
		to <- prometheus.MustNewConstMetric(pairStateMetric, prometheus.GaugeValue, 1, p.Name, p.State)
		to <- prometheus.MustNewConstMetric(pairConnectedMetric, prometheus.GaugeValue, connected, p.Name)
		to <- prometheus.MustNewConstMetric(pairPendingMetric, prometheus.GaugeValue, float64(p.Pending), p.Name)
		to <- prometheus.MustNewConstMetric(pairSkewMetric, prometheus.GaugeValue, float64(p.SkewMillis)/1000, p.Name)
		to <- prometheus.MustNewConstMetric(pairConflictsMetric, prometheus.CounterValue, float64(p.Conflicts), p.Name)
	}
}
