package dhcp

// logThresholds logs the ranges whose use has passed log-threshold-high. A range is logged again after its use was below log-threshold-low.
func (e *engine) logThresholds() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, t := range e.content.Load().thresholds {
		p := e.table.pool(id)
		percent := float64(p.used) * 100 / float64(t.Size)
		switch {
		case !p.logged && percent > float64(t.High):
			p.logged = true
			e.log.Warn("range nearly full", "range", id, "network", t.Network, "leases", p.used, "addresses", t.Size)
		case p.logged && percent < float64(t.Low):
			p.logged = false
			e.log.Info("range below the threshold again", "range", id, "network", t.Network, "leases", p.used, "addresses", t.Size)
		}
	}
}
