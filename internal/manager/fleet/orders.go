package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// maxWakeDelay is the longest time that a service point with a new order waits until its check-in is woken, while others get theirs.
const maxWakeDelay = time.Second

// applyStep applies a step of a rollout in as many transactions as needed, and calls woken with the service points that received an order.
// It stops if the rollout's status has changed in the meantime. The first transaction sets the wave, since the members belong to it; the
// last one sets the rollout's status.
func (s *Service) applyStep(ctx context.Context, update store.Updater, next step, woken func([]string)) error {
	s.ordering.start()
	defer s.ordering.done()
	r := &next.rollout
	for left := next.members; ; {
		some := left[:min(len(left), s.movedAtOnce)]
		left = left[len(some):]
		var ordered []string
		same := false
		if err := s.changingRows(update)(ctx, store.Author{}, func(tx *store.Tx) error {
			now, err := readRollout(tx, r.ID, tx.Locking())
			if same = err == nil && now.Status == r.Status; problem.Is(err, "ResourceNotFound") {
				return nil
			}
			if !same {
				return err
			}
			if ordered, err = s.applyMembers(tx, r, some); err != nil {
				return err
			}
			become, reason := r.Status, r.Reason
			if len(left) == 0 {
				become, reason = next.become, next.reason
			}
			if become != r.Status {
				s.recordRolloutChange(tx, r.ID, r.Status, become, reason)
			}
			return tx.Write("UPDATE rollout SET status = ?, reason = ?, wave = ? WHERE id = ?", become, reason, next.wave, r.ID)
		}); err != nil {
			return err
		}
		if !same {
			return nil
		}
		if woken(ordered); len(left) == 0 {
			return nil
		}
	}
}

// applyMembers applies the steps of some members and returns the ids that received an order. It groups equal changes into one statement, so
// that the number of round trips does not grow with the number of service points.
func (s *Service) applyMembers(tx *store.Tx, r *Rollout, members []memberStep) (woken []string, err error) {
	orders := map[string][]string{} // ids by the version ordered
	for _, m := range members {
		if m.order != "" {
			orders[m.order] = append(orders[m.order], m.id)
		}
	}
	refused := map[string]error{}
	if len(orders) > 1 {
		if err := lockAll(tx, slices.Concat(slices.Collect(maps.Values(orders))...)); err != nil {
			return nil, err
		}
	}
	for _, version := range slices.Sorted(maps.Keys(orders)) {
		if err := s.orderMany(tx, orders[version], version, refused); err != nil {
			return nil, err
		}
	}
	states := map[memberStep][]string{} // ids by their new state; the id of the key is empty
	for _, m := range members {
		one := memberStep{state: m.state, reason: m.reason, order: m.order}
		p, wrong := problem.As(refused[m.id])
		switch {
		case refused[m.id] == nil && m.order != "":
			woken = append(woken, m.id)
		case refused[m.id] == nil:
		case problem.Is(refused[m.id], "ResourceNotFound"):
			one = memberStep{state: memberSkipped, reason: reasonDeleted}
		case wrong && p.Status < 500:
			one = memberStep{state: memberFailed, reason: p.Message}
			if err := s.orderMany(tx, []string{m.id}, "", refused); err != nil { // it keeps the version that it runs
				return nil, err
			}
		default:
			return nil, refused[m.id]
		}
		states[one] = append(states[one], m.id)
	}
	now := s.now().UnixMilli()
	for to, ids := range states {
		set, args := "state = ?", []any{to.state}
		if to.reason != "" { // without a reason the previous one stays
			set, args = set+", reason = ?", append(args, to.reason)
		}
		if to.order != "" {
			set, args = set+", ordered = ?", append(args, now)
		}
		in, some := idCondition(tx, ids)
		if err := tx.Write("UPDATE rollout_member SET "+set+" WHERE rollout = ? AND service_point "+in,
			append(append(args, r.ID), some...)...); err != nil {
			return nil, err
		}
	}
	return woken, nil
}

// lockAll locks service points in the order of their ids, as all transactions do. Locking version by version would be in another order.
func lockAll(tx *store.Tx, ids []string) error {
	in, args := idCondition(tx, ids)
	return tx.Each(func(scan func(...any) error) error { return scan(new(string)) },
		"SELECT id FROM service_point WHERE id "+in+" ORDER BY id"+tx.Locking(), args...)
}

// idCondition returns a condition on ids and its arguments. On PostgreSQL the ids are one array argument, because parsing thousands of
// arguments takes longer than the statement itself.
func idCondition(tx *store.Tx, ids []string) (condition string, args []any) {
	if tx.RoundTrips() {
		return "= ANY (?)", []any{ids}
	}
	return "IN (" + placeholders(len(ids)) + ")", toArgs(ids)
}

// toArgs converts texts to arguments.
func toArgs(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// orderMany orders service points to run a release; an empty version cancels their updates. It adds the service points that cannot run it,
// or do not exist, to refused.
func (s *Service) orderMany(tx *store.Tx, ids []string, version string, refused map[string]error) error {
	known := map[string]updatable{}
	in, args := idCondition(tx, ids)
	if err := tx.Each(func(scan func(...any) error) error {
		var id string
		var u updatable
		err := scan(append([]any{&id}, u.destinations()...)...)
		known[id] = u
		return err
	}, "SELECT id, "+selectUpdatable+" FROM service_point WHERE id "+in+" ORDER BY id"+tx.Locking(), args...); err != nil {
		return err
	}
	type goal struct{ target, status string }
	type move struct{ before, after, reason string }
	goals, moves := map[goal][]string{}, map[move][]string{}
	for _, id := range ids {
		u, there := known[id]
		if !there {
			refused[id] = UnknownProblem(id)
			continue
		}
		now, err := s.applyOrder(u, version)
		if err != nil {
			refused[id] = err
			continue
		}
		if now != u {
			to := move{u.status, now.status, orderReason(now.target, u.version)}
			moves[to] = append(moves[to], id)
		}
		to := goal{now.target, now.status}
		goals[to] = append(goals[to], id)
		tx.Touch(store.Detail(topic, id))
	}
	for to, some := range moves {
		if err := s.recordChanges(tx, some, fieldUpdate, to.before, to.after, to.reason); err != nil {
			return err
		}
	}
	now := s.now().UnixMilli()
	for to, some := range goals {
		in, args := idCondition(tx, some)
		if err := tx.Write("UPDATE service_point SET target_version = ?, update_status = ?, update_reason = '', update_asked = "+
			nextGenerationSQL+", desired = "+nextGenerationSQL+", revision = revision + 1 WHERE id "+in,
			append([]any{to.target, to.status, now, now, now, now}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// placeholders returns n placeholders of a list, separated by commas.
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
