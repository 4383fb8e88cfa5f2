package server

import (
	"net/http"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
)

func (m *Manager) healthz(w http.ResponseWriter, _ *http.Request) error {
	family.WriteJSON(w, http.StatusOK, map[string]string{"status": "alive"})
	return nil
}

// readyTime limits the answer of the database.
const readyTime = 5 * time.Second

func (m *Manager) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := m.answers(r.Context()); err != nil {
		if p, ok := problem.As(err); ok && p.Code == "DatabaseDamaged" {
			return p
		}
		return problem.New(http.StatusServiceUnavailable, "DatabaseUnavailable", "the database does not answer")
	}
	is, _, _ := m.Store.Condition()
	family.WriteJSON(w, http.StatusOK, map[string]string{"status": "ready", "database": string(is)})
	return nil
}
