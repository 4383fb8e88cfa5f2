package server

import (
	"context"

	"portolan/internal/manager/telemetry"
	"portolan/internal/manager/webhook"
)

// startSenders starts the work that sends changes to webhooks, and events of servers to the destinations of their services.
func (m *Manager) startSenders(ctx context.Context) {
	agent := "Portolan/" + m.options.Version
	changes := webhook.NewSender(m.Address, m.REST.FeedEntry, m.log, agent)
	changes.Sent = m.metrics.webhookSent
	m.background.Go(func() { changes.Run(ctx) })
	events := telemetry.NewSender(m.Address, m.log, agent)
	events.Counted = m.metrics.telemetrySent
	m.background.Go(func() { events.Run(ctx) })
}
