package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// closeTime is the time limit for requests in flight at shutdown.
const closeTime = 10 * time.Second

// Close stops the manager. It closes the listeners, waits up to closeTime for requests in flight, and stops background work. It then writes
// presence, and closes the figures, the database and the logs. It returns the joined errors; an unreachable trace collector is only logged.
func (m *Manager) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	m.parking.End()
	m.Fleet.EndCheckins()
	m.REST.EndFollowing()
	var errs []error
	// Close all listeners at the same time: a slow client of one must not keep another open.
	ended := make(chan error)
	for _, s := range m.servers {
		go func() {
			err := s.Shutdown(ctx)
			if err != nil {
				err = s.Close()
			}
			ended <- err
		}()
	}
	for range m.servers {
		errs = append(errs, <-ended)
	}
	errs = append(errs, m.REST.WaitForFollowers(ctx), m.parking.Wait(ctx))
	m.stop()
	m.background.Wait()
	writing, done := context.WithTimeout(context.Background(), closeTime) // whatever the requests took
	defer done()
	if err := m.Fleet.WritePresence(writing, true); err != nil {
		errs = append(errs, fmt.Errorf("write presence: %w", err))
	}
	if m.Figures != nil {
		errs = append(errs, m.Figures.Close())
	}
	errs = append(errs, m.Store.Close())
	if err := m.chain.Traces.Close(ctx); err != nil { // an unreachable collector must not prevent the shutdown
		m.log.Warn("last traces not sent", "error", err)
	}
	m.chain.Access.Close()
	m.chain.Audit.Close()
	m.ownLog.Close()
	return errors.Join(errs...)
}
