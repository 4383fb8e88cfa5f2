package server

import (
	"context"

	"portolan/internal/manager/discovery"
)

// RecordScan stores the result of a scan as a run of a reconciliation policy, without sending a packet. The demo uses it.
func (m *Manager) RecordScan(ctx context.Context, policy int64, scan discovery.Scan) error {
	return discovery.NewSweeper(m.Address, m.options.Probe, m.log).Record(ctx, policy, scan)
}
