package fleet

import (
	"context"
	"encoding/json"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"

	"github.com/google/uuid"
)

// StartRollout starts a rollout and returns its id.
func (s *Service) StartRollout(ctx context.Context, p Plan) (id string, err error) {
	if err := p.check(); err != nil {
		return "", err
	}
	if err := s.checkOrderable("version", p.Version, "", ""); err != nil {
		return "", err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	candidates, err := s.candidates(ctx, &p.Filter)
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		return "", problem.Conflict("NoServicePoints", "filter: no service point matches")
	}
	id = uuid.NewString()
	// The transaction locks all own tables, so that two rollouts started at the same time do not take the same service points.
	err = s.changingRows(func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		return s.store.UpdateIn(ctx, store.ExtensionScope(), author, fn)
	})(ctx, authorOf(ctx), func(tx *store.Tx) error {
		if err := addHistory(tx, "ADD_ROLLOUT", "Started the rollout %s of %s: its filter matches %s", id, p.Version,
			plural.Count(len(candidates), "service point")); err != nil {
			return err
		}
		rows, err := memberRows(tx, candidates, id, &p)
		if err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO rollout (id, created, version, plan, status) VALUES (?,?,?,?,?)", id, s.now().UnixMilli(), p.Version,
			string(text), RolloutRunning); err != nil {
			return err
		}
		s.recordRolloutChange(tx, id, "", RolloutRunning, "")
		return tx.Bulk(&rolloutMembers, rows)
	})
	if err == nil {
		s.triggerRollouts()
	}
	return id, err
}

// candidate is a service point that a filter selects.
type candidate struct{ id, version, status, update string }

// RolloutChanges returns a channel that receives a token when a request to this manager has started or resumed a rollout, or changed it
// otherwise. The rollouts then have to be advanced at once.
func (s *Service) RolloutChanges() <-chan struct{} { return s.advanceNow }

// Ended returns a channel that receives a token when a change at this manager has set the updateStatus of a service point to OK or
// UPDATE_FAILED. A rollout may be waiting for that.
func (s *Service) Ended() <-chan struct{} { return s.ended }

// triggerRollouts requests that rollouts are advanced at once.
func (s *Service) triggerRollouts() { notify(s.advanceNow) }

// notify puts a token into a channel with a buffer of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // the receiver has not taken the last token yet
	}
}

// candidates returns the service points that a filter selects, in the order of their names.
func (s *Service) candidates(ctx context.Context, f *Filter) (all []candidate, err error) {
	if f.rowSuffices() {
		return all, s.store.View(ctx, func(tx *store.Tx) error {
			all = nil
			now := s.now()
			where, args := f.whereClause()
			return tx.Each(func(scan func(...any) error) error {
				var one candidate
				var expires int64
				if err := scan(&one.id, &one.version, &one.status, &one.update, &expires); err != nil {
					return err
				}
				one.status = statusAt(one.status, expires, now)
				if f.Status == "" || f.Status == one.status {
					all = append(all, one)
				}
				return nil
			}, "SELECT s.id, s.version, s.status, s.update_status, s.key_expires FROM service_point s "+where+" ORDER BY s.name", args...)
		})
	}
	return all, s.List(ctx, *f, func(i Instance) error {
		all = append(all, candidate{i.ID, i.Version, i.Status, i.UpdateStatus})
		return nil
	})
}

// memberRows returns the rows of the members of a new rollout. Waves only count members that are to be updated.
func memberRows(tx *store.Tx, all []candidate, rollout string, p *Plan) (rows [][]any, err error) {
	elsewhere, err := activeMembers(tx)
	if err != nil {
		return nil, err
	}
	waiting := 0
	for _, c := range all {
		state, reason := memberWaiting, ""
		switch {
		case elsewhere[c.id] != "":
			state, reason = memberSkipped, "it takes part in rollout "+elsewhere[c.id]
		case c.version == p.Version && c.update == checkin.UpdateOK:
			state, reason = memberSkipped, "it has the version already"
		case c.status == Waiting || c.status == Expired:
			state, reason = memberSkipped, "it is not registered"
		default:
			waiting++
		}
		rows = append(rows, []any{rollout, c.id, 0, state, c.version, 0, reason})
	}
	number, wave, last := 0, 0, p.wave(0, waiting)
	for _, row := range rows {
		if row[3] != memberWaiting {
			continue
		}
		if now := p.wave(number, waiting); now != last { // empty waves are not counted
			wave, last = wave+1, now
		}
		row[2] = wave
		number++
	}
	return rows, nil
}
