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

// States of a rollout. One that is Halted has stopped by itself; both that and a Paused one can be resumed.
const (
	RolloutRunning    = "RUNNING"
	RolloutPaused     = "PAUSED"
	RolloutHalted     = "HALTED"
	RolloutDone       = "DONE"
	RolloutTakingBack = "TAKING_BACK"
	RolloutTakenBack  = "TAKEN_BACK"
)

// States of a service point in a rollout. One that was not connected when its turn came is away: it gets its order when it is back, if the
// rollout still runs then, and nobody waits for it.
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

// Plan is what a rollout is to do.
type Plan struct {
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	// Filter names the service points that take part: those that there are when the rollout begins.
	Filter Filter `json:"filter"`
	// Waves are how many are to have the version when a wave is over, the ones before counted. What is left is the last wave.
	Waves []Amount `json:"waves"`
	// MostAway is how many may be away at once: being updated, or lost since they were.
	MostAway Amount `json:"mostAway"`
	// MostFailed is how many may fail before the rollout is halted.
	MostFailed Amount `json:"mostFailed"`
	// Windows are when service points may be updated; none is always. TimeZone is where the clock of the windows hangs, such as
	// Europe/Oslo; empty is UTC.
	Windows  []Window `json:"windows,omitempty"`
	TimeZone string   `json:"timeZone,omitempty"`
	// GiveUpSeconds is how long a service point that was connected may take before it counts as failed.
	GiveUpSeconds int `json:"giveUpSeconds"`
}

// NewPlan is a plan with what holds where nothing else is said.
func NewPlan() Plan {
	return Plan{Waves: []Amount{{N: 1}, {N: 5, Percent: true}, {N: 25, Percent: true}}, MostAway: Amount{10, true}, GiveUpSeconds: 900}
}

// Bounds of a plan.
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
		return problem.Invalid("version", "is needed")
	case utf8.RuneCountInString(p.Description) > maxDescription:
		return problem.Invalid("description", "has more than %d characters", maxDescription)
	case len(p.Waves) > maxWaves:
		return problem.Invalid("waves", "there are more than %d", maxWaves)
	case len(p.Windows) > maxWindows:
		return problem.Invalid("windows", "there are more than %d", maxWindows)
	case p.MostAway.N == 0:
		return problem.Invalid("mostAway", "must be 1 or more, or nobody is ever updated")
	case p.GiveUpSeconds < minGiveUp || p.GiveUpSeconds > maxGiveUp:
		return problem.Invalid("giveUpSeconds", "must be %d to %d", minGiveUp, maxGiveUp)
	}
	for i, w := range p.Waves {
		if w.N == 0 {
			return problem.Invalid("waves", "a wave of none is no wave")
		}
		if i > 0 && w.Percent == p.Waves[i-1].Percent && w.N <= p.Waves[i-1].N {
			return problem.Invalid("waves", "%s does not come behind %s: a wave counts those before", w, p.Waves[i-1])
		}
	}
	for _, w := range p.Windows {
		if err := w.check(); err != nil {
			return err
		}
	}
	if _, err := time.LoadLocation(p.TimeZone); err != nil || p.TimeZone == "Local" {
		return problem.Invalid("timeZone", "%q is no time zone, such as Europe/Oslo", p.TimeZone)
	}
	return nil
}

// open reports whether service points may be updated at a moment.
func (p *Plan) isOpen(now time.Time) bool {
	place, err := time.LoadLocation(p.TimeZone)
	if err != nil { // it was checked
		return false
	}
	return len(p.Windows) == 0 || slices.ContainsFunc(p.Windows, func(w Window) bool { return w.isOpen(now.In(place)) })
}

// wave is the wave, from 0 on, of the service point of a number among all.
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
	// Created is when it was, in Unix milliseconds.
	Created int64 `json:"created"`
	Plan
	Status string `json:"status"`
	// Reason says why it is what it is, where that is not plain.
	Reason string `json:"reason,omitempty"`
	// Wave is the wave that is under way, from 1 on, of so many.
	Wave      int `json:"wave"`
	WaveCount int `json:"waveCount"`
	// Total is how many service points take part, Counts how many of them are in which state.
	Total  int            `json:"total"`
	Counts map[string]int `json:"counts"`

	excused int
}

// Member is a service point in a rollout.
type Member struct {
	ServicePoint string `json:"servicePoint"`
	// Name is empty where the service point was deleted.
	Name string `json:"name"`
	// Wave is the one that it belongs to, from 1 on.
	Wave  int    `json:"wave"`
	State string `json:"state"`
	// Before is the version from before.
	Before string `json:"before"`
	Reason string `json:"reason,omitempty"`
}

// MemberStates are the states of a service point in a rollout, in the order in which it may come to them.
var MemberStates = []string{memberWaiting, memberUpdating, memberUpdated, memberGoingBack, memberWentBack, memberFailed, memberAway,
	memberSkipped}

// CheckMemberState refuses a state that there is not; an empty one is any.
func CheckMemberState(state string) error {
	if state != "" && !slices.Contains(MemberStates, state) {
		return problem.Query("state", "%q is none of %s", state, strings.Join(MemberStates, ", "))
	}
	return nil
}

// rolloutMembers is the table of who takes part.
var rolloutMembers = store.Table{Name: "rollout_member", Columns: []string{"rollout", "service_point", "wave", "state", "before", "ordered",
	"reason"}, Key: 2}

// verifyRollouts lists what is wrong with rollouts and those that take part.
func verifyRollouts(tx *store.Tx, fault func(format string, args ...any)) error {
	if err := tx.Each(func(scan func(...any) error) error {
		r, err := scanRollout(scan)
		if err == nil && !slices.Contains(append(slices.Clone(activeStates), RolloutDone, RolloutTakenBack), any(r.Status)) {
			fault("rollout %s has the status %q, which there is not", r.ID, r.Status)
		}
		return err
	}, selectRollouts); err != nil {
		return fmt.Errorf("reading the rollouts: %w", err)
	}
	return tx.Each(func(scan func(...any) error) error {
		var rollout, state string
		if err := scan(&rollout, &state); err != nil {
			return err
		}
		if !slices.Contains(MemberStates, state) {
			fault("rollout %s has service points in the state %q, which there is not", rollout, state)
		}
		return nil
	}, "SELECT DISTINCT rollout, state FROM rollout_member")
}

// takingPart gives, of the service points that take part in a rollout that has not ended, which one that is.
func activeMembers(tx *store.Tx) (by map[string]string, err error) {
	by = map[string]string{}
	return by, tx.Each(func(scan func(...any) error) error {
		var id, rollout string
		err := scan(&id, &rollout)
		by[id] = rollout
		return err
	}, "SELECT m.service_point, m.rollout FROM rollout r JOIN rollout_member m ON m.rollout = r.id WHERE r.status IN ("+placeholders(len(activeStates))+
		") AND m.state <> ?", append(slices.Clone(activeStates), memberSkipped)...)
}

// unended are the states of a rollout that goes on, or may.
var activeStates = []any{RolloutRunning, RolloutPaused, RolloutHalted, RolloutTakingBack}

const selectRollouts = "SELECT id, created, plan, status, reason, wave, excused FROM rollout "

func scanRollout(scan func(...any) error) (r Rollout, err error) {
	var plan string
	if err := scan(&r.ID, &r.Created, &plan, &r.Status, &r.Reason, &r.Wave, &r.excused); err != nil {
		return r, err
	}
	r.Wave++
	return r, json.Unmarshal([]byte(plan), &r.Plan)
}

// count counts who takes part.
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

// Rollouts gives all rollouts, the latest first.
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

// Rollout gives one.
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
		err = problem.NotFound("there is no rollout %q", id)
	}
	return r, err
}

// Members gives those that take part in a rollout, in the order in which they have their turns; state narrows it where it is not empty.
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

// Actions on a rollout: from which states, and what it then is. One that is done is resumed for those that were away.
var actions = map[string]struct {
	from []string
	to   string
}{
	"pause":    {[]string{RolloutRunning}, RolloutPaused},
	"resume":   {[]string{RolloutPaused, RolloutHalted, RolloutDone}, RolloutRunning},
	"takeBack": {[]string{RolloutRunning, RolloutPaused, RolloutHalted, RolloutDone}, RolloutTakingBack},
}

// Act pauses, resumes or takes back a rollout.
func (s *Service) Act(ctx context.Context, id, action string) error {
	a, ok := actions[action]
	if !ok {
		return problem.NotFound("a rollout has no action %q", action)
	}
	defer s.triggerRollouts()
	return s.change(ctx, func(tx *store.Tx) error {
		r, err := readRollout(tx, id, tx.Locking())
		if err != nil {
			return err
		}
		if !slices.Contains(a.from, r.Status) {
			return problem.Conflict("RolloutState", "rollout %s is %s: that allows no %s", id, r.Status, action)
		}
		if a.to == RolloutTakingBack {
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
			return problem.Conflict("RolloutState", "rollout %s is %s, and nobody was away: that allows no %s", id, r.Status, action)
		}
		s.recordRolloutMove(tx, id, r.Status, a.to, "")
		if err := addHistory(tx, "UPDATE_ROLLOUT", "Rollout %s of %s: %s, it was %s", id, r.Version, action, r.Status); err != nil {
			return err
		}
		if r.Status == RolloutHalted && a.to == RolloutRunning { // whoever resumes it has looked at the wave that is over
			if err := tx.Write("UPDATE rollout SET wave = coalesce((SELECT min(m.wave) FROM rollout_member m WHERE m.rollout = rollout.id "+
				"AND m.state = ?), wave) WHERE id = ?", memberWaiting, id); err != nil {
				return err
			}
		}
		return tx.Write("UPDATE rollout SET status = ?, reason = '', excused = ? WHERE id = ?", a.to, r.Counts[memberFailed], id)
	})
}

// beforeItsTurn is why somebody is SKIPPED whose turn had not come when its rollout was taken back.
const reasonTakenBack = "the rollout was taken back before its turn"

// turnBack lets everybody go back who has got the order of a rollout.
func (s *Service) markGoingBack(tx *store.Tx, r Rollout) error {
	if err := tx.Write("UPDATE rollout_member SET state = ?, reason = ? WHERE rollout = ? AND state IN (?,?)", memberSkipped,
		reasonTakenBack, r.ID, memberWaiting, memberAway); err != nil {
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

// DeleteRollout forgets a rollout that has ended.
func (s *Service) DeleteRollout(ctx context.Context, id string) error {
	return s.change(ctx, func(tx *store.Tx) error {
		r, err := readRollout(tx, id, tx.Locking())
		if err != nil {
			return err
		}
		if slices.Contains(activeStates, any(r.Status)) {
			return problem.Conflict("RolloutState", "rollout %s is %s: it can be deleted once it has ended", id, r.Status)
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

// movedRollout notes that a rollout moved.
func (s *Service) recordRolloutMove(tx *store.Tx, id, before, after, reason string) {
	all := s.movesIn(tx)
	all.counted = append(all.counted, Move{"rollout status", after})
	all.logged = append(all.logged, func() {
		s.log.Info("a rollout moved", "rollout", id, "from", before, "to", after, "reason", reason)
	})
}
