package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// pendingReport is what a service point says in a check-in, as it is to be written.
type pendingReport struct {
	rq checkin.Request
	// generation is that of the certificate that was shown; text is the report in JSON, status what it makes of the service point. Without a
	// report both are empty.
	generation   int64
	text, status string
	// known is what is kept of the service point from then on.
	known *row
	// condition is what the manager itself has to say of the service point.
	condition string
	// alone says that its service point was locked, or is not there: it is written by itself. Guarded by Service.mu.
	alone bool
	// refused says why it is not written while others are, err why none is; done is closed behind that.
	refused, err error
	done         chan struct{}
}

func (w *pendingReport) id() string { return w.known.at.id }

// reports are what service points say and is to be written. As many as wait are written together, and those of one service point one after
// another.
type reports struct {
	// waiting are those that nobody writes yet, in the order in which they came; busy are the service points of which one is being
	// written, writers how many goroutines write, and alone how many of them one by itself, which may wait for a lock. Guarded by
	// Service.mu.
	waiting        []*pendingReport
	busy           map[string]bool
	writers, alone int
}

// mostWriters is how many goroutines write reports where changes are made side by side.
const maxWriters = 4

// writers is how many goroutines write reports at the most.
func (s *Service) writers() int {
	if s.store.OneWriter() {
		return 1
	}
	return maxWriters
}

// write writes a report through, with the move of the status it makes, and the generation of the certificate that was used. known is
// what is kept from then on. A report that is no later than the one that is kept is left.
func (s *Service) writeReport(ctx context.Context, generation int64, known *row, rq checkin.Request) error {
	w := &pendingReport{rq: rq, generation: generation, known: known, done: make(chan struct{})}
	if r := rq.Report; r != nil {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if err := checkReport(r, text); err != nil {
			return err
		}
		w.text, w.status = string(text), statusOf(r)
		if err := s.waitForPace(ctx, reportSource{known.at, generation}); err != nil {
			return err
		}
	}
	s.queue(w)
	select {
	case <-w.done:
	case <-ctx.Done():
		if s.withdraw(w) {
			return ctx.Err()
		}
		<-w.done // within lookTime: it is being written
	}
	return w.err
}

// queue has it written.
func (s *Service) queue(w *pendingReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports.waiting = append(s.reports.waiting, w)
	s.moreWriters()
}

// moreWriters lets another goroutine write where those that do could all be waiting for a lock, or have much before them. mu is held.
func (s *Service) moreWriters() {
	r := &s.reports
	if len(r.waiting) > 0 && r.writers < s.writers() && (r.writers == r.alone || r.writers*maxBatch < len(r.waiting)) {
		r.writers++
		go s.writeWaiting()
	}
}

// withdraw takes out of the queue what is not being written yet.
func (s *Service) withdraw(w *pendingReport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.reports.waiting, w)
	if at >= 0 {
		s.reports.waiting = slices.Delete(s.reports.waiting, at, at+1)
	}
	return at >= 0
}

// writeWaiting writes what waits, until there is nothing that could be written.
func (s *Service) writeWaiting() {
	for {
		s.BehindOrders(context.Background()) // when a whole fleet reports at the same time, orders to it go first
		some := s.nextReports()
		if len(some) == 0 {
			return
		}
		s.writeTogether(some)
	}
}

// nextReports takes up to mostTogether of those that wait, in the order of their service points: none of one of which another one is being
// written, and one that is to be written alone by itself. Where there is none the writer that asks ends.
func (s *Service) nextReports() (some []*pendingReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.reports
	r.waiting = slices.DeleteFunc(r.waiting, func(w *pendingReport) bool {
		takes := !r.busy[w.id()] && (len(some) == 0 || len(some) < maxBatch && !w.alone && !some[0].alone)
		if takes {
			r.busy[w.id()] = true
			some = append(some, w)
		}
		return takes
	})
	switch {
	case len(some) == 0:
		r.writers--
	case some[0].alone:
		r.alone++
		s.moreWriters()
	}
	slices.SortFunc(some, func(a, b *pendingReport) int { return strings.Compare(a.id(), b.id()) })
	return some
}

// writeTogether writes some in one transaction. What is wrong with one of them is not the others' fault: then each is written alone. Those
// whose service points somebody else has locked wait again.
func (s *Service) writeTogether(some []*pendingReport) {
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	var left map[*pendingReport]bool
	err := catchPanic(func() (err error) {
		left, err = s.writeAll(ctx, some)
		return err
	})
	if len(some) > 1 && mayConcernOne(ctx, err) {
		for _, w := range some {
			s.writeTogether([]*pendingReport{w})
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var again []*pendingReport
	if some[0].alone {
		s.reports.alone--
	}
	for _, w := range some {
		delete(s.reports.busy, w.id())
		if err == nil && left[w] {
			w.alone = true
			again = append(again, w)
			continue
		}
		if w.err = err; err == nil {
			w.err = w.refused
		}
		close(w.done)
	}
	s.reports.waiting = append(again, s.reports.waiting...) // before what the same service points have said since
}

// writeAll writes some in a transaction. left are those whose service points somebody else has locked, or that are not there; one that is
// alone waits for that.
func (s *Service) writeAll(ctx context.Context, some []*pendingReport) (left map[*pendingReport]bool, err error) {
	return left, s.withEvents(s.ownRows)(ctx, store.Author{}, func(tx *store.Tx) error {
		left = map[*pendingReport]bool{}
		ids := make([]string, len(some))
		for i, w := range some {
			ids[i] = w.id()
		}
		all, err := s.lockStates(tx, ids, some[0].alone)
		if err != nil {
			return err
		}
		families, err := lineages(tx, ids)
		if err != nil {
			return err
		}
		for _, w := range some {
			is, there := all[w.id()]
			if !there && !w.alone {
				left[w] = true
				continue
			}
			if w.refused = nil; !there {
				if w.refused = unknown(tx, w.id()); !isProblem(w.refused) {
					return w.refused
				}
				continue
			}
			if !is.several && (w.generation < is.generation || w.known.at.node != 1) {
				w.refused = errUnknown // nothing was written for it, and the others go on
				continue
			}
			at := w.known.at
			if w.refused, err = s.updateLineage(tx, w, is, families[at]); err != nil || w.refused != nil {
				if err != nil {
					return err
				}
				continue
			}
			*w.known = is.rowFor(at)
			if w.rq.Process != nil {
				w.known.process = w.rq.Process.ID
			}
			if is.several {
				w.refused, err = s.writeNode(tx, w, is)
			} else {
				err = s.writeSingleNode(tx, w, is)
			}
			if err == nil && w.refused == nil && !is.connected { // a rollout need not wait until WritePresence tells of it
				tx.Touch(rowsTopic)
				err = s.markConnected(tx, w.id(), s.now().UnixMilli())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// says gives the report with what the manager itself has to say, its text, and the status that it makes of the service point; nil and
// empty texts where there is no report.
func (w *pendingReport) withCondition() (r *checkin.Report, text, status string, err error) {
	if r = w.rq.Report; r == nil || w.condition == "" {
		return r, w.text, w.status, nil
	}
	with := *r
	with.ErrorConditions = append(slices.Clone(r.ErrorConditions), w.condition)
	body, err := json.Marshal(&with)
	return &with, string(body), statusOf(&with), err
}

// isProblem reports whether an error is a refusal, and not one of the database.
func isProblem(err error) bool {
	_, is := problem.As(err)
	return is
}

// writeOnly writes what a service point with one node says.
func (s *Service) writeSingleNode(tx *store.Tx, w *pendingReport, is *pointState) error {
	known, now := w.known, *is
	r, text, status, err := w.withCondition()
	if err != nil {
		return err
	}
	known.generation = w.generation
	if acknowledges(w.rq, *known) {
		known.acknowledged = w.rq.Desired
	}
	now.generation, now.acknowledged = known.generation, known.acknowledged
	if w.rq.Sequence != 0 && w.rq.Sequence <= is.sequence || is.body == text && is.status == status &&
		w.generation == is.generation && is.digest == w.rq.Digest {
		r = nil
	}
	if r != nil {
		known.sequence, known.digest, known.status, known.reported = max(is.sequence, w.rq.Sequence), w.rq.Digest, status, true
		now.sequence, now.digest, now.body = known.sequence, known.digest, text
	}
	if err := s.applyReport(tx, &now, r); err != nil {
		return err
	}
	known.desired = now.desired
	return s.writeState(tx, is, &now)
}

// applyReport takes over what a service point says of itself, of its applications and of its update; r is nil where it has only
// acknowledged a generation.
func (s *Service) applyReport(tx *store.Tx, now *pointState, r *checkin.Report) error {
	if err := s.applyApplicationReports(tx, now, r); err != nil || r == nil {
		return err
	}
	if before := now.status; before != statusOf(r) {
		now.status = statusOf(r)
		if err := s.recordMove(tx, now.id, fieldStatus, before, now.status, r.ErrorConditions...); err != nil {
			return err
		}
	}
	now.variant = r.Variant
	return s.applyUpdateReport(tx, now, r)
}

// writeNode writes what a node of several says, and makes the report of its service point anew. Where that is refused nothing is
// written.
func (s *Service) writeNode(tx *store.Tx, w *pendingReport, is *pointState) (refused, err error) {
	known, rq, at := w.known, w.rq, w.known.at
	var goodFrom, connected int64
	var body string
	err = tx.QueryRow("SELECT generation, acknowledged, sequence, digest, body, connected FROM node WHERE service_point = ? AND number = ?",
		at.id, at.node).Scan(&goodFrom, &known.acknowledged, &known.sequence, &known.digest, &body, &connected)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return errUnknown, nil
	case err != nil:
		return nil, err
	case w.generation < is.generation:
		return errUnknown, nil
	case w.generation < goodFrom:
		return errNodeRemoved, nil
	case rq.Report != nil && rq.Report.Variant != checkin.Fleet:
		return problem.Invalid("variant", "a service point with several nodes is of the %s kind", checkin.Fleet), nil
	}
	known.generation = w.generation
	if acknowledges(rq, *known) {
		known.acknowledged = rq.Desired
	}
	_, text, _, err := w.withCondition()
	if err != nil {
		return nil, err
	}
	if rq.Report != nil && (rq.Sequence == 0 || rq.Sequence > known.sequence) {
		known.sequence, known.digest, body = max(known.sequence, rq.Sequence), rq.Digest, text
	}
	known.reported = body != ""
	return nil, s.updateNodes(tx, at.id, func() error {
		if err := tx.Write("UPDATE node SET generation = ?, acknowledged = ?, sequence = ?, digest = ?, body = ?, last_seen = ?, connected = 1 "+
			"WHERE service_point = ? AND number = ?", w.generation, known.acknowledged, known.sequence, known.digest, body, s.now().UnixMilli(),
			at.id, at.node); err != nil || connected == 1 {
			return err
		}
		return s.recordMove(tx, at.id, fieldNode, NotConnected, Connected, at.String())
	})
}
