package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/checkin"
	"portolan/internal/problem"
	"portolan/internal/store"

	"github.com/google/uuid"
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

// States of a service point in a rollout. One that was away when its turn came has its order, and nobody waits for it.
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
	// MostAway is how many may be away at once: being updated, or not connected.
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
	maxWaves    = 50
	maxWindows  = 50
	leastGiveUp = 30
	mostGiveUp  = 7 * 24 * 3600
)

func (p *Plan) check() error {
	if err := p.Filter.check(); err != nil {
		if wrong, ok := problem.As(err); ok {
			return problem.Invalid("filter", "%s", wrong.Message)
		}
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
	case p.GiveUpSeconds < leastGiveUp || p.GiveUpSeconds > mostGiveUp:
		return problem.Invalid("giveUpSeconds", "must be %d to %d", leastGiveUp, mostGiveUp)
	}
	for _, w := range p.Waves {
		if w.N == 0 {
			return problem.Invalid("waves", "a wave of none is no wave")
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
func (p *Plan) open(now time.Time) bool {
	place, err := time.LoadLocation(p.TimeZone)
	if err != nil { // it was checked
		return false
	}
	return len(p.Windows) == 0 || slices.ContainsFunc(p.Windows, func(w Window) bool { return w.open(now.In(place)) })
}

// wave is the wave, from 0 on, of the service point of a number among all.
func (p *Plan) wave(number, all int) (wave int) {
	for _, w := range p.Waves {
		if number < w.of(all) {
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

// memberStates are the states of a service point in a rollout.
var memberStates = []string{memberWaiting, memberUpdating, memberAway, memberUpdated, memberFailed, memberSkipped, memberGoingBack,
	memberWentBack}

// CheckMemberState refuses a state that there is not; an empty one is any.
func CheckMemberState(state string) error {
	if state != "" && !slices.Contains(memberStates, state) {
		return problem.Query("state", "%q is none of %s", state, strings.Join(memberStates, ", "))
	}
	return nil
}

// rolloutMembers is the table of who takes part.
var rolloutMembers = store.Table{Name: "rollout_member", Columns: []string{"rollout", "service_point", "wave", "state", "before", "ordered",
	"reason"}, Key: 2}

// StartRollout begins a rollout.
func (s *Service) StartRollout(ctx context.Context, p Plan) (id string, err error) {
	if err := p.check(); err != nil {
		return "", err
	}
	if err := s.orderable("version", p.Version, "", ""); err != nil {
		return "", err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	id = uuid.NewString()
	scanner := s.scanner()
	return id, s.change(ctx, func(tx *store.Tx) error {
		rows, err := s.members(tx, scanner, id, &p)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return problem.Conflict("NoServicePoints", "filter: no service point is so")
		}
		if err := tx.Write("INSERT INTO rollout (id, created, version, plan, status) VALUES (?,?,?,?,?)", id, s.now().UnixMilli(), p.Version,
			string(text), RolloutRunning); err != nil {
			return err
		}
		s.movedRollout(tx, id, "", RolloutRunning, "")
		return tx.Bulk(&rolloutMembers, rows)
	})
}

// members gives the rows of those that take part.
func (s *Service) members(tx *store.Tx, c scanner, rollout string, p *Plan) (rows [][]any, err error) {
	ids, err := p.Filter.match(tx)
	if err != nil {
		return nil, err
	}
	var all []Instance
	for part := range slices.Chunk(ids, atOnce) {
		page, err := c.read(tx, "WHERE s.id IN ("+list(len(part))+") ORDER BY s.name", part)
		if err != nil {
			return nil, err
		}
		for _, i := range page {
			if p.Filter.keeps(&i) {
				all = append(all, i)
			}
		}
	}
	elsewhere, err := takingPart(tx)
	if err != nil {
		return nil, err
	}
	for n, i := range all {
		state, reason := memberWaiting, ""
		switch {
		case elsewhere[i.ID] != "":
			state, reason = memberSkipped, "it takes part in rollout "+elsewhere[i.ID]
		case i.Version == p.Version && i.UpdateStatus == checkin.UpdateOK:
			state, reason = memberSkipped, "it has the version already"
		case i.Status == Waiting || i.Status == Expired:
			state, reason = memberSkipped, "it is not registered"
		}
		rows = append(rows, []any{rollout, i.ID, p.wave(n, len(all)), state, i.Version, 0, reason})
	}
	return rows, nil
}

// takingPart gives, of the service points that take part in a rollout that has not ended, which one that is.
func takingPart(tx *store.Tx) (by map[string]string, err error) {
	by = map[string]string{}
	return by, tx.Each(func(scan func(...any) error) error {
		var id, rollout string
		err := scan(&id, &rollout)
		by[id] = rollout
		return err
	}, "SELECT m.service_point, m.rollout FROM rollout r JOIN rollout_member m ON m.rollout = r.id WHERE r.status IN ("+list(len(unended))+
		") AND m.state <> ?", append(slices.Clone(unended), memberSkipped)...)
}

// unended are the states of a rollout that goes on, or may.
var unended = []any{RolloutRunning, RolloutPaused, RolloutHalted, RolloutTakingBack}

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
	if err := tx.Each(func(scan func(...any) error) error {
		var state string
		var n int
		err := scan(&state, &n)
		r.Counts[state] = n
		r.Total += n
		return err
	}, "SELECT state, count(*) FROM rollout_member WHERE rollout = ? GROUP BY state", r.ID); err != nil {
		return err
	}
	r.WaveCount = r.wave(r.Total-1, r.Total) + 1
	r.Wave = min(r.Wave, r.WaveCount)
	return nil
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

// Actions on a rollout: from which states, and what it then is.
var actions = map[string]struct {
	from []string
	to   string
}{
	"pause":    {[]string{RolloutRunning}, RolloutPaused},
	"resume":   {[]string{RolloutPaused, RolloutHalted}, RolloutRunning},
	"takeBack": {[]string{RolloutRunning, RolloutPaused, RolloutHalted, RolloutDone}, RolloutTakingBack},
}

// Act pauses, resumes or takes back a rollout.
func (s *Service) Act(ctx context.Context, id, action string) error {
	a, ok := actions[action]
	if !ok {
		return problem.NotFound("a rollout has no action %q", action)
	}
	return s.change(ctx, func(tx *store.Tx) error {
		r, err := readRollout(tx, id, tx.Locking())
		if err != nil {
			return err
		}
		if !slices.Contains(a.from, r.Status) {
			return problem.Conflict("RolloutState", "rollout %s is %s: that allows no %s", id, r.Status, action)
		}
		if a.to == RolloutTakingBack {
			if err := s.turnBack(tx, r); err != nil {
				return err
			}
		}
		if err := r.count(tx); err != nil {
			return err
		}
		s.movedRollout(tx, id, r.Status, a.to, "")
		return tx.Write("UPDATE rollout SET status = ?, reason = '', excused = ? WHERE id = ?", a.to, r.Counts[memberFailed], id)
	})
}

// turnBack lets everybody go back who has got the order of a rollout.
func (s *Service) turnBack(tx *store.Tx, r Rollout) error {
	if err := tx.Write("UPDATE rollout_member SET state = ?, reason = ? WHERE rollout = ? AND state = ?", memberSkipped,
		"the rollout was taken back before its turn", r.ID, memberWaiting); err != nil {
		return err
	}
	return tx.Write("UPDATE rollout_member SET state = ?, ordered = 0, reason = '' WHERE rollout = ? AND state IN (?,?,?,?)",
		memberGoingBack, r.ID, memberUpdating, memberAway, memberUpdated, memberFailed)
}

// DeleteRollout forgets a rollout that has ended.
func (s *Service) DeleteRollout(ctx context.Context, id string) error {
	return s.change(ctx, func(tx *store.Tx) error {
		r, err := readRollout(tx, id, tx.Locking())
		if err != nil {
			return err
		}
		if slices.Contains(unended, any(r.Status)) {
			return problem.Conflict("RolloutState", "rollout %s is %s: it can be deleted once it has ended", id, r.Status)
		}
		if err := tx.Write("DELETE FROM rollout_member WHERE rollout = ?", id); err != nil {
			return err
		}
		return tx.Write("DELETE FROM rollout WHERE id = ?", id)
	})
}

// movedRollout notes that a rollout moved.
func (s *Service) movedRollout(tx *store.Tx, id, before, after, reason string) {
	s.mu.Lock()
	s.movesOf[tx] = append(s.movesOf[tx], Move{"rollout status", after})
	s.mu.Unlock()
	s.log.Info("a rollout moved", "rollout", id, "from", before, "to", after, "reason", reason)
}
