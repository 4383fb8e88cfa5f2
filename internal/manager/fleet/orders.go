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

// mostUntold is how long at the most somebody who has an order is not told while others get theirs.
const maxWakeDelay = time.Second

// take takes a step, as long as the rollout is what it was, in as many transactions as that takes, and gives those that have got an order
// to woken. The status of the rollout moves with the last of them, its wave with the first: they are of that wave.
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
				s.recordRolloutMove(tx, r.ID, r.Status, become, reason)
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

// takeMembers moves those that take part, and gives those that have got an order. What is the same for many is written at once: a rollout
// is not to wait for as many round trips as there are service points.
func (s *Service) applyMembers(tx *store.Tx, r *Rollout, members []memberStep) (woken []string, err error) {
	orders := map[string][]string{} // ids by the version that they are ordered
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
	states := map[memberStep][]string{} // ids by what they move to, their own id left out
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
			if err := s.orderMany(tx, []string{m.id}, "", refused); err != nil { // it stays with what it runs
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
		if to.reason != "" { // without a reason the one before stays
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

// lockAll locks service points in the order of their ids, as all do: version by version it would be another one.
func lockAll(tx *store.Tx, ids []string) error {
	in, args := idCondition(tx, ids)
	return tx.Each(func(scan func(...any) error) error { return scan(new(string)) },
		"SELECT id FROM service_point WHERE id "+in+" ORDER BY id"+tx.Locking(), args...)
}

// among gives a condition that names ids, and its arguments. On PostgreSQL they are one argument: thousands of them take longer to read
// than what they are for.
func idCondition(tx *store.Tx, ids []string) (condition string, args []any) {
	if tx.RoundTrips() {
		return "= ANY (?)", []any{ids}
	}
	return "IN (" + placeholders(len(ids)) + ")", toArgs(ids)
}

// anys gives texts as arguments.
func toArgs(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

// orderMany lets service points run a release; an empty version lets each run what it runs. Those that cannot, or are not there, are
// noted as refused.
func (s *Service) orderMany(tx *store.Tx, ids []string, version string, refused map[string]error) error {
	known := map[string]updatable{}
	in, args := idCondition(tx, ids)
	if err := tx.Each(func(scan func(...any) error) error {
		var id string
		var u updatable
		err := scan(append([]any{&id}, u.into()...)...)
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
			refused[id] = Unknown(id)
			continue
		}
		now, err := s.ordered(u, version)
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
		if err := s.recordMoves(tx, some, fieldUpdate, to.before, to.after, to.reason); err != nil {
			return err
		}
	}
	now := s.now().UnixMilli()
	for to, some := range goals {
		in, args := idCondition(tx, some)
		if err := tx.Write("UPDATE service_point SET target_version = ?, update_status = ?, update_reason = '', update_asked = "+later+
			", desired = "+later+", revision = revision + 1 WHERE id "+in,
			append([]any{to.target, to.status, now, now, now, now}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// list gives so many placeholders for a list.
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
