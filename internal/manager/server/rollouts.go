package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
)

// Rollouts (ours): updates of many service points, in waves.

// planFields are the fields of the body that begins a rollout.
var planFields = []string{"version", "description", "filter", "waves", "mostAway", "mostFailed", "windows", "timeZone", "giveUpSeconds"}

func (m *Manager) startRollout(w http.ResponseWriter, r *http.Request) error {
	members, body, err := readJSON(w, r, rest.ReportBody)
	if err != nil {
		return err
	}
	rest.Note(w, r, members, planFields...)
	p := fleet.NewPlan()
	for name, raw := range members { // one by one, so that a refusal names its field
		if string(raw) == "null" {
			continue
		}
		one, err := json.Marshal(map[string]json.RawMessage{name: raw})
		if err != nil {
			return err
		}
		if name == "waves" {
			p.Waves = nil
		}
		if err := json.Unmarshal(one, &p); err != nil {
			if _, refused := problem.As(err); refused {
				return err
			}
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				return problem.Invalid(wrong.Field, "must not be a JSON %s", wrong.Value)
			}
			return problem.Invalid(name, "%v", err)
		}
	}
	if len(body) == 0 || p.Version == "" {
		return missing("version")
	}
	id, err := m.Fleet.StartRollout(r.Context(), p)
	if err != nil {
		return err
	}
	started, err := m.Fleet.Rollout(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/user/api/v1/rollouts/"+id)
	writeJSON(w, http.StatusCreated, started)
	return nil
}

func (m *Manager) listRollouts(w http.ResponseWriter, r *http.Request) error {
	all, err := m.Fleet.Rollouts(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Data []fleet.Rollout `json:"data"`
	}{all})
	return nil
}

func (m *Manager) getRollout(w http.ResponseWriter, r *http.Request) error {
	one, err := m.Fleet.Rollout(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, one)
	return nil
}

func (m *Manager) deleteRollout(w http.ResponseWriter, r *http.Request) error {
	if err := m.Fleet.DeleteRollout(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listMembers lists who takes part in a rollout; state narrows it.
func (m *Manager) listMembers(w http.ResponseWriter, r *http.Request) error {
	state := r.URL.Query().Get("state")
	if err := fleet.CheckMemberState(state); err != nil {
		return err
	}
	rest.Note(w, r, nil, "state")
	list := newList(w)
	err := m.Fleet.Members(r.Context(), r.PathValue("id"), state, func(one fleet.Member) error { return list.add(one) })
	if err != nil && !list.begun {
		return err
	}
	return list.end(err)
}

// actOnRollout pauses, resumes or takes back a rollout.
func (m *Manager) actOnRollout(w http.ResponseWriter, r *http.Request) error {
	if err := m.Fleet.Act(r.Context(), r.PathValue("id"), r.PathValue("action")); err != nil {
		return err
	}
	one, err := m.Fleet.Rollout(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, one)
	return nil
}

// rolloutEvery is how often rollouts go on. Where updates end in between, as this manager hears, they go on sooner: rolloutPause behind
// that, or later where looking at them takes long, so that it would not take more than a tenth of the time.
const (
	rolloutEvery = time.Second
	rolloutPause = 100 * time.Millisecond
)

// roll lets rollouts go on until ctx ends, if that is this manager's to do.
func (m *Manager) roll(ctx context.Context) {
	lease := m.Store.NewLease("rollouts", 3*sweepEvery)
	defer func() {
		if err := lease.Release(context.WithoutCancel(ctx)); err != nil {
			m.log.Error("giving back a lease", "error", err)
		}
	}()
	tick := time.NewTicker(cmp.Or(m.options.RolloutEvery, rolloutEvery))
	defer tick.Stop()
	var held time.Time
	took := time.Duration(0)
	var soon <-chan time.Time // nil while no update has ended since it was looked
	for {
		ended := m.Fleet.Ended()
		if soon != nil || held.IsZero() { // they are about to go on, or somebody else sees to them
			ended = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
			soon = time.After(max(rolloutPause, 9*took))
			continue
		case <-tick.C:
			m.Fleet.BehindOrders(ctx) // what becomes of them is not known before they are told
		case <-soon:
			m.Fleet.BehindOrders(ctx)
		case <-m.Fleet.Begun():
		}
		soon = nil
		began := time.Now()
		err := m.rollOnce(ctx, lease, &held)
		took = time.Since(began)
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLeaseLost) {
			m.log.Error("advancing rollouts", "error", err)
		}
	}
}

// rollOnce takes each rollout one step further. The lease, which was taken at held, is taken for longer when a third of it has gone; while
// there is no rollout nobody needs it.
func (m *Manager) rollOnce(ctx context.Context, lease *store.Lease, held *time.Time) error {
	there, err := m.Fleet.Rolling(ctx)
	if err != nil || !there {
		return err
	}
	if time.Since(*held) > sweepEvery {
		mine, err := lease.Take(ctx)
		if err != nil || !mine {
			return err
		}
		*held = time.Now()
	}
	if err := m.Fleet.WritePresence(ctx, false); err != nil { // so that who has just come is no more away
		return err
	}
	err = m.Fleet.AdvanceRollouts(ctx, lease.Update)
	if errors.Is(err, store.ErrLeaseLost) {
		*held = time.Time{}
	}
	return err
}
