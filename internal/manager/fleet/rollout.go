package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// States of a rollout. A HALTED rollout has stopped by itself. PAUSED and HALTED rollouts can be resumed.
const (
	RolloutRunning     = "RUNNING"
	RolloutPaused      = "PAUSED"
	RolloutHalted      = "HALTED"
	RolloutDone        = "DONE"
	RolloutRollingBack = "TAKING_BACK"
	RolloutRolledBack  = "TAKEN_BACK"
)

// States of a service point in a rollout. One that was not connected when its turn came is AWAY. It gets its order when it reconnects while
// the rollout runs, and the rollout does not wait for it.
const (
	memberWaiting   = "WAITING"
	memberUpdating  = "UPDATING"
	memberAway      = "AWAY"
	memberUpdated   = "UPDATED"
	memberFailed    = "FAILED"
	memberSkipped   = "SKIPPED"
	memberGoingBack = "GOING_BACK"
	memberWentBack  = "WENT_BACK"
)

// Plan describes a rollout.
type Plan struct {
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	// Filter selects the service points that take part. It is evaluated when the rollout starts.
	Filter Filter `json:"filter"`
	// Waves are the cumulative numbers of service points to be updated at the end of each wave. The rest forms the last wave.
	Waves []Amount `json:"waves"`
	// MaxUnavailable is the maximum number of service points that are being updated, or were lost since their update, at a time.
	MaxUnavailable Amount `json:"mostAway"`
	// MaxFailed is the number of failures allowed. One more halts the rollout.
	MaxFailed Amount `json:"mostFailed"`
	// Windows are the maintenance windows; without any, updates are always allowed. TimeZone is the time zone of the windows, such as
	// Europe/Oslo; empty means UTC.
	Windows  []Window `json:"windows,omitempty"`
	TimeZone string   `json:"timeZone,omitempty"`
	// GiveUpSeconds is the time after which a connected service point that was not updated counts as failed.
	GiveUpSeconds int `json:"giveUpSeconds"`
}

// NewPlan returns a plan with the default values.
func NewPlan() Plan {
	return Plan{Waves: []Amount{{N: 1}, {N: 5, Percent: true}, {N: 25, Percent: true}}, MaxUnavailable: Amount{10, true}, GiveUpSeconds: 900}
}

// Limits of a plan.
const (
	maxWaves   = 50
	maxWindows = 50
	minGiveUp  = 30
	maxGiveUp  = 7 * 24 * 3600
)

func (p *Plan) check() error {
	if err := p.Filter.check(); err != nil {
		return err
	}
	switch {
	case p.Version == "":
		return problem.Invalid("version", "is required")
	case utf8.RuneCountInString(p.Description) > maxDescription:
		return problem.Invalid("description", "has more than %d characters", maxDescription)
	case len(p.Waves) > maxWaves:
		return problem.Invalid("waves", "must have at most %d entries", maxWaves)
	case len(p.Windows) > maxWindows:
		return problem.Invalid("windows", "must have at most %d entries", maxWindows)
	case p.MaxUnavailable.N == 0:
		return problem.Invalid("mostAway", "must be 1 or more")
	case p.GiveUpSeconds < minGiveUp || p.GiveUpSeconds > maxGiveUp:
		return problem.Invalid("giveUpSeconds", "must be %d to %d", minGiveUp, maxGiveUp)
	}
	for i, w := range p.Waves {
		if w.N == 0 {
			return problem.Invalid("waves", "a wave must have at least 1 service point")
		}
		if i > 0 && w.Percent == p.Waves[i-1].Percent && w.N <= p.Waves[i-1].N {
			return problem.Invalid("waves", "entry %d: must be more than %s, not %s: the size of a wave includes the waves before it",
				i, p.Waves[i-1], w)
		}
	}
	for _, w := range p.Windows {
		if err := w.check(); err != nil {
			return err
		}
	}
	if _, err := time.LoadLocation(p.TimeZone); err != nil || p.TimeZone == "Local" {
		return problem.Invalid("timeZone", "%q is not a time zone, such as Europe/Oslo", p.TimeZone)
	}
	return nil
}

// isOpen reports whether updates are allowed at a time.
func (p *Plan) isOpen(now time.Time) bool {
	place, err := time.LoadLocation(p.TimeZone)
	if err != nil { // it was checked
		return false
	}
	return len(p.Windows) == 0 || slices.ContainsFunc(p.Windows, func(w Window) bool { return w.isOpen(now.In(place)) })
}

// wave returns the index of the wave of service point number, of all. Both indexes start at 0.
func (p *Plan) wave(number, all int) (wave int) {
	for _, w := range p.Waves {
		if number < w.count(all) {
			return wave
		}
		wave++
	}
	return wave
}

// Rollout is an update of many service points.
type Rollout struct {
	ID string `json:"id"`
	// Created is the time of creation, in Unix milliseconds.
	Created int64 `json:"created"`
	Plan
	Status string `json:"status"`
	// Reason is the reason of the status, if it is not obvious.
	Reason string `json:"reason,omitempty"`
	// Wave is the current wave, from 1 on. WaveCount is the number of waves.
	Wave      int `json:"wave"`
	WaveCount int `json:"waveCount"`
	// Total is the number of service points that take part. Counts is their number in each state.
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"`

	excused int
}

// Member is a service point in a rollout.
type Member struct {
	ServicePoint string `json:"servicePoint"`
	// Name is empty if the service point was deleted.
	Name string `json:"name"`
	// Wave is the wave of the service point, from 1 on.
	Wave  int    `json:"wave"`
	State string `json:"state"`
	// Before is the version before the rollout.
	Before string `json:"before"`
	Reason string `json:"reason,omitempty"`
}

// MemberStates are the states of a service point in a rollout, in the usual order.
var MemberStates = []string{memberWaiting, memberUpdating, memberUpdated, memberGoingBack, memberWentBack, memberFailed, memberAway,
	memberSkipped}

// CheckMemberState returns an error if a state does not exist. The empty state is accepted and means all.
func CheckMemberState(state string) error {
	if state != "" && !slices.Contains(MemberStates, state) {
		return problem.Query("state", "must be one of %s, not %q", strings.Join(MemberStates, ", "), state)
	}
	return nil
}

// rolloutMembers is the table of the members of rollouts.
var rolloutMembers = store.Table{Name: "rollout_member", Columns: []string{"rollout", "service_point", "wave", "state", "before", "ordered",
	"reason"}, Key: 2}

// verifyRollouts reports invalid rollouts and members to fault.
func verifyRollouts(tx *store.Tx, fault func(format string, args ...any)) error {
	if err := tx.Each(func(scan func(...any) error) error {
		r, err := scanRollout(scan)
		if err == nil && !slices.Contains(append(slices.Clone(activeStates), RolloutDone, RolloutRolledBack), any(r.Status)) {
			fault("rollout %s has the unknown status %q", r.ID, r.Status)
		}
		return err
	}, selectRollouts); err != nil {
		return fmt.Errorf("read the rollouts: %w", err)
	}
	return tx.Each(func(scan func(...any) error) error {
		var rollout, state string
		if err := scan(&rollout, &state); err != nil {
			return err
		}
		if !slices.Contains(MemberStates, state) {
			fault("rollout %s has service points in the unknown state %q", rollout, state)
		}
		return nil
	}, "SELECT DISTINCT rollout, state FROM rollout_member")
}

// activeMembers returns the members of unfinished rollouts, with the id of the rollout of each.
func activeMembers(tx *store.Tx) (by map[string]string, err error) {
	by = map[string]string{}
	return by, tx.Each(func(scan func(...any) error) error {
		var id, rollout string
		err := scan(&id, &rollout)
		by[id] = rollout
		return err
	}, "SELECT m.service_point, m.rollout FROM rollout r JOIN rollout_member m ON m.rollout = r.id WHERE r.status IN ("+
		placeholders(len(activeStates))+") AND m.state <> ?", append(slices.Clone(activeStates), memberSkipped)...)
}

// activeStates are the states of a rollout that has not ended.
var activeStates = []any{RolloutRunning, RolloutPaused, RolloutHalted, RolloutRollingBack}

const selectRollouts = "SELECT id, created, plan, status, reason, wave, excused FROM rollout "

func scanRollout(scan func(...any) error) (r Rollout, err error) {
	var plan string
	if err := scan(&r.ID, &r.Created, &plan, &r.Status, &r.Reason, &r.Wave, &r.excused); err != nil {
		return r, err
	}
	r.Wave++
	return r, json.Unmarshal([]byte(plan), &r.Plan)
}

// count fills in the numbers of members and waves.
func (r *Rollout) count(tx *store.Tx) error {
	r.Counts = map[string]int{}
	r.WaveCount = 1
	return tx.Each(func(scan func(...any) error) error {
		var state string
		var n, wave int
		err := scan(&state, &n, &wave)
		r.Counts[state] = n
		r.Total += n
		r.WaveCount = max(r.WaveCount, wave+1)
		return err
	}, "SELECT state, count(*), max(wave) FROM rollout_member WHERE rollout = ? GROUP BY state", r.ID)
}

// Rollouts returns all rollouts, the latest first.
func (s *Service) Rollouts(ctx context.Context) (all []Rollout, err error) {
	all = []Rollout{}
	return all, s.store.View(ctx, func(tx *store.Tx) error {
		if err := tx.Each(func(scan func(...any) error) error {
			r, err := scanRollout(scan)
			all = append(all, r)
			return err
		}, selectRollouts+"ORDER BY created DESC, id"); err != nil {
			return err
		}
		for i := range all {
			if err := all[i].count(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rollout returns one rollout.
func (s *Service) Rollout(ctx context.Context, id string) (r Rollout, err error) {
	return r, s.store.View(ctx, func(tx *store.Tx) error {
		if r, err = readRollout(tx, id, ""); err != nil {
			return err
		}
		return r.count(tx)
	})
}

func readRollout(tx *store.Tx, id, locking string) (Rollout, error) {
	r, err := scanRollout(tx.QueryRow(selectRollouts+"WHERE id = ?"+locking, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = problem.NotFound("rollout %q does not exist", id)
	}
	return r, err
}

// Members calls fn for the members of a rollout, in the order of their turns. state selects members by state; empty selects all.
func (s *Service) Members(ctx context.Context, rollout, state string, fn func(Member) error) error {
	return s.store.View(ctx, func(tx *store.Tx) error {
		if _, err := readRollout(tx, rollout, ""); err != nil {
			return err
		}
		where, args := "", []any{rollout}
		if state != "" {
			where, args = " AND m.state = ?", append(args, state)
		}
		return tx.Stream(func(scan func(...any) error) error {
			var m Member
			if err := scan(&m.ServicePoint, &m.Name, &m.Wave, &m.State, &m.Before, &m.Reason); err != nil {
				return err
			}
			m.Wave++
			return fn(m)
		}, "SELECT m.service_point, coalesce(s.name, ''), m.wave, m.state, m.before, m.reason FROM rollout_member m LEFT JOIN service_point s "+
			"ON s.id = m.service_point WHERE m.rollout = ?"+where+" ORDER BY m.wave, s.name, m.service_point", args...)
	})
}

// actions are the actions on a rollout: the states that allow the action, and the state after it. A rollout that is DONE can be resumed for
// the members that were away.
var actions = map[string]struct {
	from []string
	to   string
}{
	"pause":    {[]string{RolloutRunning}, RolloutPaused},
	"resume":   {[]string{RolloutPaused, RolloutHalted, RolloutDone}, RolloutRunning},
	"takeBack": {[]string{RolloutRunning, RolloutPaused, RolloutHalted, RolloutDone}, RolloutRollingBack},
}

// Act pauses, resumes or rolls back a rollout.
func (s *Service) Act(ctx context.Context, id, action string) error {
	a, ok := actions[action]
	if !ok {
		return problem.NotFound("a rollout does not support the action %q", action)
	}
	defer s.triggerRollouts()
	return s.change(ctx, func(tx *store.Tx) error {
		r, err := readRollout(tx, id, tx.Locking())
		if err != nil {
			return err
		}
		if !slices.Contains(a.from, r.Status) {
			return problem.Conflict("RolloutState", "rollout %s is %s: %s is not allowed in this state", id, r.Status, action)
		}
		if a.to == RolloutRollingBack {
			if err := s.markGoingBack(tx, r); err != nil {
				return err
			}
		}
		if err := r.count(tx); err != nil {
			return err
		}
		if a.to == RolloutRunning {
			if err := s.checkOrderable("version", r.Version, "", ""); err != nil {
				return err
			}
		}
		if r.Status == RolloutDone && a.to == RolloutRunning && r.Counts[memberAway] == 0 {
			return problem.Conflict("RolloutState", "rollout %s is %s and no service point was away: %s is not allowed", id, r.Status, action)
		}
		s.recordRolloutChange(tx, id, r.Status, a.to, "")
		if err := addHistory(tx, "UPDATE_ROLLOUT", "Rollout %s of %s: %s, previously %s", id, r.Version, action, r.Status); err != nil {
			return err
		}
		if r.Status == RolloutHalted && a.to == RolloutRunning { // the user who resumes has inspected the finished wave
			if err := tx.Write("UPDATE rollout SET wave = coalesce((SELECT min(m.wave) FROM rollout_member m WHERE m.rollout = rollout.id "+
				"AND m.state = ?), wave) WHERE id = ?", memberWaiting, id); err != nil {
				return err
			}
		}
		return tx.Write("UPDATE rollout SET status = ?, reason = '', excused = ? WHERE id = ?", a.to, r.Counts[memberFailed], id)
	})
}

// reasonRolledBack is the reason for skipping a service point whose turn had not come when the rollout was rolled back.
const reasonRolledBack = "the rollout was rolled back before its turn"

// markGoingBack sets the members that have received the order of a rollout to GOING_BACK, and skips the others.
func (s *Service) markGoingBack(tx *store.Tx, r Rollout) error {
	if err := tx.Write("UPDATE rollout_member SET state = ?, reason = ? WHERE rollout = ? AND state IN (?,?)", memberSkipped,
		reasonRolledBack, r.ID, memberWaiting, memberAway); err != nil {
		return err
	}
	ours := []any{memberUpdating, memberUpdated, memberFailed}
	if err := tx.Write("UPDATE rollout_member SET state = ?, reason = ? WHERE rollout = ? AND state IN ("+placeholders(len(ours))+") "+
		"AND service_point IN (SELECT m.service_point FROM rollout o JOIN rollout_member m ON m.rollout = o.id WHERE o.status IN ("+
		placeholders(len(activeStates))+") AND o.id <> ? AND m.state <> ?)",
		slices.Concat([]any{memberSkipped, "it takes part in another rollout by now", r.ID}, ours, activeStates,
			[]any{r.ID, memberSkipped})...); err != nil {
		return err
	}
	return tx.Write("UPDATE rollout_member SET state = ?, ordered = 0 WHERE rollout = ? AND state IN (?,?,?)",
		memberGoingBack, r.ID, memberUpdating, memberUpdated, memberFailed)
}

// DeleteRollout deletes a rollout that has ended.
func (s *Service) DeleteRollout(ctx context.Context, id string) error {
	return s.change(ctx, func(tx *store.Tx) error {
		r, err := readRollout(tx, id, tx.Locking())
		if err != nil {
			return err
		}
		if slices.Contains(activeStates, any(r.Status)) {
			return problem.Conflict("RolloutState", "rollout %s is %s: it can only be deleted after it has ended", id, r.Status)
		}
		if err := tx.Write("DELETE FROM rollout_member WHERE rollout = ?", id); err != nil {
			return err
		}
		if err := addHistory(tx, "DELETE_ROLLOUT", "Deleted the rollout %s of %s", id, r.Version); err != nil {
			return err
		}
		return tx.Write("DELETE FROM rollout WHERE id = ?", id)
	})
}

// recordRolloutChange counts and logs the new status of a rollout after the commit.
func (s *Service) recordRolloutChange(tx *store.Tx, id, before, after, reason string) {
	all := s.changesIn(tx)
	all.counted = append(all.counted, StatusChange{"rollout status", after})
	all.logged = append(all.logged, func() {
		s.log.Info("rollout status changed", "rollout", id, "from", before, "to", after, "reason", reason)
	})
}
