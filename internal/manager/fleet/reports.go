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

// pendingReport is a service point's report that waits to be written.
type pendingReport struct {
	rq checkin.Request
	// generation is the generation of the client certificate. text is the report in JSON and status the status that follows from it; both
	// are empty without a report.
	generation   int64
	text, status string
	// known receives the state of the service point after the write.
	known *row
	// condition is an error condition that the manager adds to the report.
	condition string
	// isSeparate means that the row was locked or absent, so that the report is written in a transaction of its own. Guarded by Service.mu.
	isSeparate bool
	// refused is the reason why this report alone was rejected, err the error of the whole transaction. done is closed after both are set.
	refused, err error
	done         chan struct{}
}

func (w *pendingReport) id() string { return w.known.at.id }

// reports is the queue of reports. The reports of several service points are written in one transaction, those of one service point one
// after another.
type reports struct {
	// waiting are the queued reports in the order of arrival. busy are the service points with a report being written. writers is the
	// number of writing goroutines, and separate the number of those that write a single report and may wait for a lock. Guarded by
	// Service.mu.
	waiting           []*pendingReport
	busy              map[string]bool
	writers, separate int
}

// maxWriters is the number of goroutines that write reports where the database allows concurrent writers.
const maxWriters = 4

// writers returns the maximum number of goroutines that write reports.
func (s *Service) writers() int {
	if s.store.HasOneWriter() {
		return 1
	}
	return maxWriters
}

// writeReport writes a report, the status that follows from it and the generation of the certificate, and waits until this is committed.
// known receives the state after the write. A report that is not later than the stored one is ignored.
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
		<-w.done // within batchTimeout: it is being written
	}
	return w.err
}

// queue enqueues a report.
func (s *Service) queue(w *pendingReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports.waiting = append(s.reports.waiting, w)
	s.moreWriters()
}

// moreWriters starts another writer if all writers may be waiting for locks or the queue is long. mu is held.
func (s *Service) moreWriters() {
	r := &s.reports
	if len(r.waiting) > 0 && r.writers < s.writers() && (r.writers == r.separate || r.writers*maxBatch < len(r.waiting)) {
		r.writers++
		go s.writeWaiting()
	}
}

// withdraw removes a report from the queue. It reports false if the report is being written already.
func (s *Service) withdraw(w *pendingReport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.reports.waiting, w)
	if at >= 0 {
		s.reports.waiting = slices.Delete(s.reports.waiting, at, at+1)
	}
	return at >= 0
}

// writeWaiting writes queued reports until none can be written.
func (s *Service) writeWaiting() {
	for {
		s.AwaitOrders(context.Background()) // orders go first when a whole fleet reports at the same time
		some := s.nextReports()
		if len(some) == 0 {
			return
		}
		s.writeTogether(some)
	}
}

// nextReports takes up to maxBatch queued reports and returns them sorted by service point. It skips service points with a report being
// written, and returns a report marked alone by itself. If it returns none, the calling writer must end.
func (s *Service) nextReports() (some []*pendingReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.reports
	r.waiting = slices.DeleteFunc(r.waiting, func(w *pendingReport) bool {
		takes := !r.busy[w.id()] && (len(some) == 0 || len(some) < maxBatch && !w.isSeparate && !some[0].isSeparate)
		if takes {
			r.busy[w.id()] = true
			some = append(some, w)
		}
		return takes
	})
	switch {
	case len(some) == 0:
		r.writers--
	case some[0].isSeparate:
		r.separate++
		s.moreWriters()
	}
	slices.SortFunc(some, func(a, b *pendingReport) int { return strings.Compare(a.id(), b.id()) })
	return some
}

// writeTogether writes reports in one transaction. If this fails because of one of them, it writes each in a transaction of its own.
// Reports whose rows are locked by others are queued again.
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
	if some[0].isSeparate {
		s.reports.separate--
	}
	for _, w := range some {
		delete(s.reports.busy, w.id())
		if err == nil && left[w] {
			w.isSeparate = true
			again = append(again, w)
			continue
		}
		if w.err = err; err == nil {
			w.err = w.refused
		}
		close(w.done)
	}
	s.reports.waiting = append(again, s.reports.waiting...) // before later reports of the same service points
}

// writeAll writes reports in a transaction. left are the reports whose rows are locked by others or do not exist. A single report marked
// alone waits for the lock instead.
func (s *Service) writeAll(ctx context.Context, some []*pendingReport) (left map[*pendingReport]bool, err error) {
	return left, s.withEvents(s.ownRows)(ctx, store.Author{}, func(tx *store.Tx) error {
		left = map[*pendingReport]bool{}
		ids := make([]string, len(some))
		for i, w := range some {
			ids[i] = w.id()
		}
		all, err := s.lockStates(tx, ids, some[0].isSeparate)
		if err != nil {
			return err
		}
		families, err := lineages(tx, ids)
		if err != nil {
			return err
		}
		for _, w := range some {
			is, there := all[w.id()]
			if !there && !w.isSeparate {
				left[w] = true
				continue
			}
			if w.refused = nil; !there {
				if w.refused = unknownError(tx, w.id()); !isProblem(w.refused) {
					return w.refused
				}
				continue
			}
			if !is.mayHaveNodes && (w.generation < is.generation || w.known.at.node != 1) {
				w.refused = errUnknown // nothing was written for it, and the others continue
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
			if is.mayHaveNodes {
				w.refused, err = s.writeNode(tx, w, is)
			} else {
				err = s.writeSingleNode(tx, w, is)
			}
			if err == nil && w.refused == nil && !is.connected { // a rollout need not wait until WritePresence writes it
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

// withCondition returns the report with the manager's condition added, its JSON text and the resulting status. Without a report it returns
// nil and empty texts.
func (w *pendingReport) withCondition() (r *checkin.Report, text, status string, err error) {
	if r = w.rq.Report; r == nil || w.condition == "" {
		return r, w.text, w.status, nil
	}
	with := *r
	with.ErrorConditions = append(slices.Clone(r.ErrorConditions), w.condition)
	body, err := json.Marshal(&with)
	return &with, string(body), statusOf(&with), err
}

// isProblem reports whether an error is a refusal, as opposed to a failure of the database.
func isProblem(err error) bool {
	_, is := problem.As(err)
	return is
}

// writeSingleNode writes the report of a service point with one node.
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

// applyReport applies a report to the applications, the status and the update of a service point. r is nil if the service point has only
// acknowledged a generation.
func (s *Service) applyReport(tx *store.Tx, now *pointState, r *checkin.Report) error {
	if err := s.applyApplicationReports(tx, now, r); err != nil || r == nil {
		return err
	}
	if before := now.status; before != statusOf(r) {
		now.status = statusOf(r)
		if err := s.recordChange(tx, now.id, fieldStatus, before, now.status, r.ErrorConditions...); err != nil {
			return err
		}
	}
	now.variant = r.Variant
	return s.applyUpdateReport(tx, now, r)
}

// writeNode writes the report of one node of several and recomputes the report of its service point. If it refuses the report, it writes
// nothing.
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
		return problem.Invalid("variant", "a service point with several nodes must be of the %s kind", checkin.Fleet), nil
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
		return s.recordChange(tx, at.id, fieldNode, NotConnected, Connected, at.String())
	})
}
