package server

import (
	"context"

	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server/middleware"
)

// logUnreachable logs that an authenticator is unreachable.
func (m *Manager) logUnreachable(authenticator string, err error) {
	m.log.Warn("authenticator unreachable", "authenticator", authenticator, "error", err)
}

// logRejectedResponse logs that the response of an authenticator was rejected.
func (m *Manager) logRejectedResponse(authenticator string, err error) {
	text := err.Error()
	m.log.Warn("authenticator response rejected", "authenticator", authenticator, "error", text[:min(len(text), maxErrorLogged)])
}

// maxErrorLogged is the maximum length in bytes of such an error in the log, because an authenticator may choose its text.
const maxErrorLogged = 400

// logUnknownUser logs an accepted person without a user or a known group.
func (m *Manager) logUnknownUser(authenticator, name string, groups []string) {
	m.log.Warn("authenticated person has no user and no known group", "authenticator", authenticator,
		"name", name[:min(len(name), maxLogged)], "groups", groups[:min(len(groups), maxGroupsLogged)])
}

// maxGroupsLogged is the maximum number of groups of a person in the log.
const maxGroupsLogged = 10

// recordSignIn counts a sign-in and logs a refused one.
func (m *Manager) recordSignIn(result, name, remote string) {
	name = name[:min(len(name), maxLogged)]
	m.metrics.signIns.WithLabelValues(result).Inc()
	m.chain.Record(middleware.AuditLine{Event: "sign-in", Result: result, User: name, Remote: remote})
	if result == identity.Refused {
		m.log.Warn("sign-in refused", "name", name, "remote", remote)
	}
}

// reportGuessing logs too many failed sign-ins and stores an event in the background.
func (m *Manager) reportGuessing(name, remote string, failures int) {
	m.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		shown := "unknown"
		if err := m.Store.Update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
			shown, err = m.Identity.GuessingEvent(tx, name, remote, failures)
			return err
		}); err != nil {
			m.log.Error("event not stored", "error", err)
		}
		m.log.Warn("too many failed sign-ins", "name", shown, "remote", remote, "failures", failures)
	})
}
