package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Number of service points of a rollout handled in one step, and changed in one transaction; other transactions run in between. With
// concurrent writers one transaction changes all of a step: the answers to the first orders would otherwise delay the next ones.
const (
	maxMoved    = 10_000
	movedAtOnce = 2500
)

// IsRolling reports whether a rollout is running or being rolled back, or still has service points being updated.
func (s *Service) IsRolling(ctx context.Context) (bool, error) {
	all, err := s.active(ctx)
	return len(all) > 0, err
}

// active returns the ids of the rollouts that are running or being rolled back, or still have service points being updated.
func (s *Service) active(ctx context.Context) (ids []string, err error) {
	return ids, s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT r.id FROM rollout r WHERE r.status IN (?,?) OR r.status IN (?,?) AND EXISTS (SELECT 1 FROM rollout_member m "+
			"WHERE m.rollout = r.id AND m.state = ?) ORDER BY r.id", RolloutRunning, RolloutRollingBack, RolloutPaused, RolloutHalted,
			memberUpdating)
	})
}

// AdvanceRollouts advances every rollout by one step, or by two if updates have ended, as the first step only records that. One manager
// runs it, about every second and when updates have ended: update is the updater of its lease. The next step is computed from a snapshot,
// so that nothing waits for a lock.
func (s *Service) AdvanceRollouts(ctx context.Context, update store.Updater) error {
	ids, err := s.active(ctx)
	if err != nil {
		return err
	}
	// Check-ins of service points with new orders are woken a little later: their answers would delay the next orders.
	waiting := pendingWakes{wake: s.Wake}
	defer waiting.wakeAll()
	for _, id := range ids {
		for again, ended := true, false; again; {
			var next step
			e := s.store.View(ctx, func(tx *store.Tx) (err error) {
				next, err = s.nextStep(tx, id)
				return err
			})
			if e == nil && !next.isEmpty() {
				e = s.applyStep(ctx, update, next, waiting.add)
			}
			if e != nil {
				err = errors.Join(err, fmt.Errorf("advance rollout %s: %w", id, e))
			}
			// Members that follow those that ended are ordered once here, and otherwise by the next call.
			again = e == nil && (len(next.members) >= s.maxMoved || !ended && next.endsAny())
			ended = ended || next.endsAny()
		}
	}
	return err
}

// pendingWakes are service points with an order whose check-ins are not woken yet.
type pendingWakes struct {
	wake func(servicePoint string)
	mu   sync.Mutex
	// points are their ids. timer calls wakeAll after maxWakeDelay at the latest. Guarded by mu.
	points []string
	timer  *time.Timer
}

// add enqueues service points to be woken within maxWakeDelay.
func (u *pendingWakes) add(points []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.points) == 0 && len(points) > 0 {
		u.timer = time.AfterFunc(maxWakeDelay, u.wakeAll)
	}
	u.points = append(u.points, points...)
}

// wakeAll wakes the check-ins of the enqueued service points.
func (u *pendingWakes) wakeAll() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		u.timer.Stop()
	}
	for _, id := range u.points {
		u.wake(id)
	}
	u.points = nil
}

// step is the next step of a rollout.
type step struct {
	rollout Rollout
	// become and reason are the new status and its reason; wave is the current wave.
	become, reason string
	wave           int
	members        []memberStep
}

// endsAny reports whether the step ends the update of a member, so that another may be ordered.
func (n *step) endsAny() bool {
	return slices.ContainsFunc(n.members, func(m memberStep) bool { return m.order == "" })
}

// memberStep changes the state of a member. order is the version that it must run; empty if there is no order.
type memberStep struct{ id, state, reason, order string }

func (n *step) isEmpty() bool {
	r := &n.rollout
	return n.become == r.Status && n.reason == r.Reason && len(n.members) == 0 && n.wave == r.Wave-1
}

// reasonDeleted is the reason for skipping a service point that no longer exists.
const reasonDeleted = "it was deleted"

// member is a service point in a rollout, in its current state.
type member struct {
	id, state, before string
	ordered           int64
	// deleted means that the service point was deleted, connected that it is connected.
	deleted, connected bool
	now                updatable
}

const selectMembers = "SELECT m.service_point, m.state, m.before, m.ordered, CASE WHEN s.id IS NULL THEN 1 ELSE 0 END, " +
	"coalesce(p.connected, 0), coalesce(s.version, ''), coalesce(s.target_version, ''), coalesce(s.update_status, ''), " +
	"coalesce(s.update_reason, ''), coalesce(s.platform, ''), coalesce(s.base_version, '') FROM rollout_member m " +
	"LEFT JOIN service_point s ON s.id = m.service_point LEFT JOIN presence p ON p.service_point = m.service_point WHERE m.rollout = ? "

// membersOf reads the members of a rollout that match a condition, in the order of their ids.
func membersOf(tx *store.Tx, rollout, condition string, args ...any) (all []member, err error) {
	return all, tx.Each(func(scan func(...any) error) error {
		var m member
		var gone, connected int
		err := scan(&m.id, &m.state, &m.before, &m.ordered, &gone, &connected, &m.now.version, &m.now.target, &m.now.status, &m.now.reason,
			&m.now.platform, &m.now.base)
		m.deleted, m.connected = gone == 1, connected == 1
		all = append(all, m)
		return err
	}, selectMembers+condition, append([]any{rollout}, args...)...)
}

// nextStep computes the next step of a rollout: first the results of the members that have an order, then the consequences.
func (s *Service) nextStep(tx *store.Tx, id string) (n step, err error) {
	r, err := readRollout(tx, id, "")
	if err != nil {
		return n, err
	}
	if err := r.count(tx); err != nil {
		return n, err
	}
	n = step{rollout: r, become: r.Status, reason: r.Reason, wave: r.Wave - 1}
	ordered, err := membersOf(tx, r.ID, "AND m.state IN (?,?) AND m.ordered > 0 AND (s.id IS NULL OR s.update_status IN (?,?) OR "+
		"s.target_version <> CASE WHEN m.state = ? THEN m.before ELSE ? END OR m.ordered < ?) ORDER BY m.service_point LIMIT ?",
		memberUpdating, memberGoingBack, checkin.UpdateOK, checkin.UpdateFailed, memberGoingBack, r.Version,
		s.now().Add(-time.Duration(r.GiveUpSeconds)*time.Second).UnixMilli(), s.maxMoved)
	if err != nil {
		return n, err
	}
	counts := maps.Clone(r.Counts)
	for _, m := range ordered {
		if state, reason := m.nextState(&r, s.now()); state != m.state {
			n.members = append(n.members, memberStep{id: m.id, state: state, reason: reason})
			counts[m.state]--
			counts[state]++
		}
	}
	switch r.Status {
	case RolloutRunning:
		return n, s.advanceRunning(tx, &n, counts)
	case RolloutHalted: // members with an order may still fail
		if r.Reason != "" && r.Reason == r.failureReason(r.Counts) {
			n.reason = r.failureReason(counts)
		}
	case RolloutRollingBack:
		if counts[memberGoingBack] == 0 {
			n.become, n.reason = RolloutRolledBack, ""
			return n, nil
		}
		return n, s.orderMore(tx, &n, memberGoingBack, "AND m.state = ? AND m.ordered = 0", memberGoingBack)
	}
	return n, nil
}

// failureReason returns the reason to halt a rollout: more service points failed than allowed, by the counts of each state. It is empty if
// the limit is not exceeded.
func (r *Rollout) failureReason(counts map[string]int) string {
	failed := counts[memberFailed] - r.excused
	if failed <= r.MaxFailed.count(r.Total) {
		return ""
	}
	since := ""
	if r.excused > 0 {
		since = " since it was resumed"
	}
	return fmt.Sprintf("%d of %d service points failed%s, and at most %s may", failed, r.Total, since, r.MaxFailed)
}

// advanceRunning computes the next step of a running rollout from the counts of each state.
func (s *Service) advanceRunning(tx *store.Tx, n *step, counts map[string]int) error {
	r := &n.rollout
	if why := r.failureReason(counts); why != "" {
		n.become, n.reason = RolloutHalted, why
		return nil
	}
	if counts[memberWaiting]+counts[memberUpdating] == 0 {
		back, err := membersOf(tx, r.ID, "AND m.state = ? AND p.connected = 1 LIMIT 1", memberAway)
		if err != nil {
			return err
		}
		if len(back) == 0 {
			n.become, n.reason = RolloutDone, ""
			switch {
			case counts[memberUpdated] > 0:
			case counts[memberSkipped] == r.Total:
				n.reason = fmt.Sprintf("nothing to do: all %d service points were skipped", r.Total)
			default:
				n.reason = fmt.Sprintf("none of %d service points was updated", r.Total)
			}
			return nil
		}
	}
	if !r.isOpen(s.now()) {
		n.reason = "it waits for its window"
		return nil
	}
	if err := s.checkOrderable("version", r.Version, "", ""); err != nil {
		if p, refused := problem.As(err); refused {
			n.become, n.reason = RolloutHalted, p.Message
			return nil
		}
		return err
	}
	return s.advanceWave(tx, n, counts)
}

// nextState returns the new state of a member that has an order, and its reason.
func (m *member) nextState(r *Rollout, now time.Time) (state, reason string) {
	goal, done := r.Version, memberUpdated
	if r.Status == RolloutRollingBack {
		goal, done = m.before, memberWentBack
	}
	late := now.UnixMilli()-m.ordered > int64(r.GiveUpSeconds)*1000
	switch {
	case m.deleted:
		return memberSkipped, reasonDeleted
	case m.now.status == checkin.UpdateOK && m.now.version == goal:
		return done, ""
	case m.now.status == checkin.UpdateOK || m.now.target != goal:
		return memberSkipped, reasonOtherOrder
	case m.now.status == checkin.UpdateFailed:
		return memberFailed, m.now.reason
	case late:
		return memberFailed, fmt.Sprintf("still %s after %d s", m.now.status, r.GiveUpSeconds)
	}
	return m.state, ""
}

// reasonOtherOrder is the reason for skipping a service point that received another order.
const reasonOtherOrder = "it was given another order meanwhile"

// orderedElsewhere reports whether a service point runs, or was ordered to run, a version other than the given one and its previous one.
func (m *member) orderedElsewhere(version string) bool {
	is := m.now.target
	if is == "" {
		is = m.now.version
	}
	return is != version && is != m.before
}

// advanceWave continues the current wave or starts the next one. A later wave starts only after at least one service point was updated.
func (s *Service) advanceWave(tx *store.Tx, n *step, counts map[string]int) error {
	id := n.rollout.ID
	var open int
	if err := tx.QueryRow("SELECT count(*) FROM rollout_member WHERE rollout = ? AND state IN (?,?) AND wave <= ?", id, memberWaiting,
		memberUpdating, n.wave).Scan(&open); err != nil {
		return err
	}
	if open == 0 && counts[memberWaiting] > 0 {
		var next int
		if err := tx.QueryRow("SELECT min(wave) FROM rollout_member WHERE rollout = ? AND state = ?", id, memberWaiting).Scan(&next); err != nil {
			return err
		}
		if next > n.wave && counts[memberUpdated] == 0 {
			n.become, n.reason = RolloutHalted, fmt.Sprintf("no service point was updated by the end of wave %d: version %s is unproven", n.wave+1,
				n.rollout.Version)
			return nil
		}
		n.wave = max(n.wave, next)
	}
	return s.orderMore(tx, n, memberUpdating, "AND (m.state = ? AND m.wave <= ? OR m.state = ? AND p.connected = 1)", memberWaiting,
		n.wave, memberAway)
}

// orderMore orders members that match a condition, as many as may be away at once.
func (s *Service) orderMore(tx *store.Tx, n *step, state, condition string, args ...any) error {
	r := &n.rollout
	// Members lost after their order count as away. A rollback does not wait for lost members: the release may be the cause.
	lost, states := "OR m.state IN (?,?) AND coalesce(p.connected, 0) = 0", []any{state, memberUpdated, memberFailed}
	if r.Status == RolloutRollingBack {
		lost, states = "AND p.connected = 1", []any{state}
	}
	var all, away int
	if err := tx.QueryRow("SELECT count(*), coalesce(sum(CASE WHEN m.state = ? AND m.ordered > 0 "+lost+" THEN 1 ELSE 0 END), 0) "+
		"FROM rollout_member m LEFT JOIN presence p ON p.service_point = m.service_point WHERE m.rollout = ? AND "+
		"(m.state <> ? OR m.reason = ?)", append(states, r.ID, memberSkipped, reasonRolledBack)...).Scan(&all, &away); err != nil {
		return err
	}
	bound := max(r.MaxUnavailable.count(all), 1)
	free := bound - away
	turns, err := membersOf(tx, r.ID, condition+" ORDER BY coalesce(p.connected, 0), m.wave, s.name, m.service_point LIMIT ?",
		append(args, s.maxMoved)...)
	if err != nil {
		return err
	}
	n.reason = ""
	for _, m := range turns {
		switch back := r.Status == RolloutRollingBack; {
		case m.deleted:
			n.members = append(n.members, memberStep{id: m.id, state: memberSkipped, reason: reasonDeleted})
		case back && m.before == "":
			n.members = append(n.members, memberStep{id: m.id, state: memberSkipped, reason: "nothing is known of the version from before"})
		case back && m.orderedElsewhere(r.Version):
			n.members = append(n.members, memberStep{id: m.id, state: memberSkipped, reason: reasonOtherOrder})
		case !m.connected && back: // it must not run the release when it reconnects
			n.members = append(n.members, memberStep{id: m.id, state: state, reason: "it was not connected when its turn came", order: m.before})
		case !m.connected:
			n.members = append(n.members, memberStep{id: m.id, state: memberAway, reason: "it was not connected when its turn came"})
		case free <= 0:
			if away >= bound {
				n.reason = fmt.Sprintf("%s away, and at most %d may be", plural.Count(away, "service point")+plural.Verb(away, " is", " are"), bound)
			}
		default:
			one := memberStep{id: m.id, state: state, order: r.Version}
			if back {
				one.order = m.before
			}
			n.members = append(n.members, one)
			free--
		}
	}
	return nil
}
