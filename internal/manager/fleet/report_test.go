package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/checkin"
)

// manyWriters is more than the maximum number of writers.
const manyWriters = 9

// submit submits reports at the same time: all are queued before the first one is written. It returns the errors.
func (h *testFleet) submit(t *testing.T, all ...*pendingReport) []error {
	t.Helper()
	h.f.mu.Lock()
	h.f.reports.writers = manyWriters // no writer starts
	h.f.mu.Unlock()
	errs := make([]error, len(all))
	ended := make(chan struct{})
	for i, w := range all {
		go func() {
			errs[i] = h.f.writeReport(h.ctx, w.generation, w.known, w.rq)
			ended <- struct{}{}
		}()
		h.waitQueued(t, i+1)
	}
	h.f.mu.Lock()
	h.f.reports.writers = 1
	h.f.mu.Unlock()
	h.f.writeWaiting()
	for range all {
		<-ended
	}
	h.waitFor(t, func(r *reports) bool {
		return len(r.busy) == 0 && len(r.waiting) == 0 && r.writers == 0 && r.separate == 0
	})
	return errs
}

// waitFor waits until a condition on the reports holds.
func (h *testFleet) waitFor(t *testing.T, is func(*reports) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		h.f.mu.Lock()
		r := &h.f.reports
		ok, now := is(r), fmt.Sprintf("%d are busy, %d wait, %d write, %d of them alone", len(r.busy), len(r.waiting), r.writers,
			r.separate)
		h.f.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal(now)
		}
	}
}

// waitQueued waits until n reports are queued.
func (h *testFleet) waitQueued(t *testing.T, n int) {
	t.Helper()
	h.waitFor(t, func(r *reports) bool { return len(r.waiting) == n })
}

// newReport returns a report of a service point with a version.
func (h *testFleet) newReport(id string, sequence int64, version string) *pendingReport {
	h.f.mu.Lock()
	clear(h.f.paces) // no report has to wait for its pace
	h.f.mu.Unlock()
	return &pendingReport{known: &row{at: nodeID{id, 1}}, rq: checkin.Request{Sequence: sequence, Desired: sequence, Digest: version,
		Report: &checkin.Report{Variant: checkin.Fleet, Version: version}}}
}

func (h *testFleet) state(t *testing.T, id string) (is *pointState) {
	t.Helper()
	if err := h.f.change(h.ctx, func(tx *store.Tx) (err error) {
		is, err = h.f.lockState(tx, id)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return is
}

// TestReportsTogether checks that simultaneous reports are written together: the last report of each service point stays, and a rejected
// one does not affect the others.
func TestReportsTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 5)
		if err := h.f.change(h.ctx, func(tx *store.Tx) error {
			return errors.Join(tx.Write("UPDATE service_point SET desired = 5"),
				tx.Write("UPDATE service_point SET generation = 7 WHERE id = ?", h.ids[3]))
		}); err != nil {
			t.Fatal(err)
		}
		last, late := h.newReport(h.ids[0], 2, "3"), h.newReport(h.ids[0], 1, "4")
		last.generation, late.generation = 1, 1
		acknowledged := h.newReport(h.ids[4], 3, "")
		acknowledged.rq.Report = nil
		errs := h.submit(t, h.newReport(h.ids[0], 1, "2"), h.newReport(h.ids[1], 1, "2"), last, late, h.newReport("gone", 1, "2"),
			h.newReport(h.ids[3], 1, "2"), h.newReport(h.ids[2], 1, "2"), acknowledged)
		want := []error{nil, nil, nil, nil, errUnknown, errUnknown, nil, nil}
		for i := range errs {
			if !errors.Is(errs[i], want[i]) {
				t.Errorf("%d: %v, want %v", i, errs[i], want[i])
			}
		}
		for i, want := range []string{"3 1 2 2 true", "2 0 1 1 true", "2 0 1 1 true", "1 7 0 0 true", "1 0 0 3 true"} {
			is := h.state(t, h.ids[i])
			got := fmt.Sprint(is.update.version, " ", is.generation, " ", is.sequence, " ", is.acknowledged, " ", is.connected)
			if got != want {
				t.Errorf("%d: %s, want %s", i, got, want)
			}
		}
		if last.known.digest != "3" || last.known.sequence != 2 || !last.known.reported || last.known.generation != 1 {
			t.Errorf("of the last one is known %+v", last.known)
		}
		h.compareLists(t, Filter{})
	})
}

// TestReportsAreBatched checks that reports of one service point are written one at a time, and never more than maxBatch together. A
// cancelled report is not written.
func TestReportsAreBatched(t *testing.T) {
	h := newTestFleet(t, "", 1)
	h.f.mu.Lock()
	h.f.reports.writers = manyWriters
	h.f.mu.Unlock()
	ctx, cancel := context.WithCancel(h.ctx)
	gaveUp := make(chan error)
	given := h.newReport(h.ids[0], 9, "9")
	go func() { gaveUp <- h.f.writeReport(ctx, 0, given.known, given.rq) }()
	h.waitQueued(t, 1)
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	h.waitQueued(t, 0)
	h.f.mu.Lock()
	for i := range maxBatch + 2 {
		h.f.reports.waiting = append(h.f.reports.waiting, h.unpacedReport(fmt.Sprint("b", i)), h.unpacedReport("a"))
	}
	h.f.mu.Unlock()
	for _, want := range []int{maxBatch, 3, 0} { // only one of a until it is written
		some := h.f.nextReports()
		if len(some) != want {
			t.Errorf("%d are taken, want %d", len(some), want)
		}
		for i := range some {
			if i > 0 && some[i-1].id() >= some[i].id() {
				t.Errorf("%s is taken before %s", some[i-1].id(), some[i].id())
			}
		}
	}
	if h.f.reports.writers != manyWriters-1 {
		t.Errorf("%d write on", h.f.reports.writers)
	}
	h.f.mu.Lock()
	delete(h.f.reports.busy, "a")
	h.f.mu.Unlock()
	if some := h.f.nextReports(); len(some) != 1 || some[0].id() != "a" {
		t.Errorf("%d are taken behind the first of a", len(some))
	}
}

// unpacedReport returns a report that does not wait for its pace.
func (h *testFleet) unpacedReport(id string) *pendingReport {
	return &pendingReport{known: &row{at: nodeID{id, 1}}}
}

// TestReportsOfNodes checks that reports of nodes are written with those of others. Reports of unknown or removed nodes, and invalid ones,
// are rejected alone. The first report connects the service point.
func TestReportsOfNodes(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 2)
		id, two := h.ids[0], int64(2)
		write := func(query string) {
			t.Helper()
			if err := h.f.change(h.ctx, func(tx *store.Tx) error { return tx.Write(query, id) }); err != nil {
				t.Fatal(err)
			}
		}
		write("UPDATE service_point SET key_public = 'k' WHERE id = ?")
		if err := h.f.Modify(h.ctx, id, InstanceChange{NodeCount: &two}); err != nil {
			t.Fatal(err)
		}
		write("DELETE FROM presence WHERE service_point = ?")
		if h.state(t, id).connected {
			t.Error("it is there before it has said anything")
		}
		stranger := h.newReport(id, 1, "2")
		stranger.known.at.node = 2
		for i, c := range []struct {
			w    *pendingReport
			want error
		}{{h.newReport(id, 1, "2"), nil}, {stranger, errUnknown}} {
			if errs := h.submit(t, c.w, h.newReport(h.ids[1], int64(i+1), "2")); !errors.Is(errs[0], c.want) || errs[1] != nil {
				t.Errorf("%d: %v, want %v", i, errs, c.want)
			}
		}
		write("UPDATE node SET generation = 5 WHERE service_point = ?")
		other := h.newReport(id, 2, "2")
		other.generation, other.rq.Report.Variant = 5, checkin.V4
		if errs := h.submit(t, other, h.newReport(h.ids[1], 3, "3")); errs[0] == nil || errs[1] != nil {
			t.Errorf("as a v4: %v", errs)
		}
		if errs := h.submit(t, h.newReport(id, 2, "2"), h.newReport(h.ids[1], 4, "4")); !errors.Is(errs[0], errNodeRemoved) || errs[1] != nil {
			t.Errorf("with a certificate from before: %v", errs)
		}
		if is := h.state(t, id); !is.connected || is.update.version != "2" {
			t.Errorf("it stands %+v", is)
		}
		if is := h.state(t, h.ids[1]); is.update.version != "4" {
			t.Errorf("the other one has %s", is.update.version)
		}
	})
}

// TestFailedReportsAreSeparated checks that an error of one report does not affect the others: each is then written alone.
func TestFailedReportsAreSeparated(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 3)
		broken := errors.New("broken")
		h.f.SetChangeObserver(func(_ *store.Tx, ids []string, _, _ string, _ []string) error {
			if ids[0] == h.ids[1] {
				return broken
			}
			return nil
		})
		var all []*pendingReport
		for _, id := range h.ids {
			w := h.newReport(id, 1, "2")
			w.rq.Report.ErrorConditions = []string{"ill"}
			all = append(all, w)
		}
		if errs := h.submit(t, all...); errs[0] != nil || !errors.Is(errs[1], broken) || errs[2] != nil {
			t.Errorf("%v", errs)
		}
		for i, want := range []string{Unhealthy, Healthy, Unhealthy} {
			if is := h.state(t, h.ids[i]); is.status != want {
				t.Errorf("%d is %s", i, is.status)
			}
		}
	})
}

// TestReportsWaitForOrders checks that reports wait while orders are in progress.
func TestReportsWaitForOrders(t *testing.T) {
	h := newTestFleet(t, "", 1)
	h.f.ordering.start()
	w := h.newReport(h.ids[0], 1, "2")
	ended := make(chan error)
	go func() { ended <- h.f.writeReport(h.ctx, 0, w.known, w.rq) }()
	h.waitQueued(t, 1)
	select {
	case <-ended:
		t.Error("it was written before the order was sent")
	case <-time.After(50 * time.Millisecond):
	}
	h.f.ordering.done()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestReplacedSenderIsSlowed checks that only the sender with a replaced certificate is slowed down, and that its pace is forgotten when
// it has expired.
func TestReplacedSenderIsSlowed(t *testing.T) {
	h := newTestFleet(t, "", 1)
	h.f.interval = time.Hour
	w := h.newReport(h.ids[0], 1, "2")
	if err := h.f.change(h.ctx, func(tx *store.Tx) error { return tx.Write("UPDATE service_point SET generation = 7") }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(h.ctx, 20*time.Second) // the next report of either would wait for two minutes
	defer cancel()
	for generation, want := range map[int64]error{1: errUnknown, 7: nil} {
		if err := h.f.writeReport(ctx, generation, w.known, w.rq); !errors.Is(err, want) {
			t.Errorf("of generation %d: %v, want %v", generation, err, want)
		}
	}
	given, giveUp := context.WithCancel(h.ctx)
	giveUp()
	if err := h.f.writeReport(given, 1, w.known, w.rq); !errors.Is(err, context.Canceled) {
		t.Errorf("who comes too soon does not wait: %v", err)
	}
	if err := h.f.WritePresence(h.ctx, false); err != nil || len(h.f.paces) != 2 {
		t.Errorf("%d paces are remembered, want 2 (%v)", len(h.f.paces), err)
	}
	for one := range h.f.paces {
		h.f.paces[one] = time.Now().Add(-time.Second)
	}
	if err := h.f.WritePresence(h.ctx, false); err != nil || len(h.f.paces) != 0 {
		t.Errorf("%d paces are remembered, want none (%v)", len(h.f.paces), err)
	}
}

// TestAppliedChangesNoList checks that reports are compared without the applied generation, so that it does not invalidate cached queries.
func TestAppliedChangesNoList(t *testing.T) {
	h := newTestFleet(t, "", 2)
	f := Filter{Status: Healthy}
	where, args := f.whereClause()
	kept := func() bool {
		t.Helper()
		_, ok := h.f.keyCache.Now(fmt.Sprintf("%s %q", where, args))
		return ok
	}
	first := h.newReport(h.ids[0], 1, "2")
	first.rq.Report.Applied = 5
	if errs := h.submit(t, first); errs[0] != nil {
		t.Fatal(errs)
	}
	h.compareLists(t, f)
	again := h.newReport(h.ids[0], 2, "2")
	again.rq.Report.Applied = 61
	if errs := h.submit(t, again); errs[0] != nil || !kept() {
		t.Errorf("what was found is kept: %v (%v)", kept(), errs)
	}
	h.compareLists(t, Filter{})
	h.compareLists(t, f)
	if errs := h.submit(t, h.newReport(h.ids[0], 3, "3")); errs[0] != nil || kept() {
		t.Errorf("behind another version it is kept: %v (%v)", kept(), errs)
	}
	h.compareLists(t, f)
}

// TestKeptEvents checks that the last events of each service point are kept, even if one transaction writes many.
func TestKeptEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 2)
		n := 0
		for _, many := range []int{keptEvents - 1, 5, 1} {
			if err := h.f.change(h.ctx, func(tx *store.Tx) error {
				for range many {
					n++
					if err := h.f.recordChanges(tx, h.ids, "status", fmt.Sprint(n-1), fmt.Sprint(n)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range h.ids {
			events, err := h.f.Events(h.ctx, id)
			if err != nil || len(events) != keptEvents || events[keptEvents-1].After != fmt.Sprint(n) ||
				events[0].After != fmt.Sprint(n-keptEvents+1) {
				t.Errorf("%d events are kept, the first is %+v, the last %+v (%v)", len(events), events[0], events[len(events)-1], err)
			}
		}
	})
}

// lockPoint locks a service point until the returned function is called.
func (h *testFleet) lockPoint(t *testing.T, id string) (release func()) {
	held, let, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- h.f.change(h.ctx, func(tx *store.Tx) error {
			err := lockPoint(tx, id)
			close(held)
			<-let
			return err
		})
	}()
	<-held
	return func() {
		close(let)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestReportsWithLockedPoint checks that a locked service point delays only its own reports.
func TestReportsWithLockedPoint(t *testing.T) {
	h := newTestFleet(t, pgtest.URL(t), 6)
	release := h.lockPoint(t, h.ids[2])
	type result struct {
		id  string
		err error
	}
	results := make(chan result)
	for _, id := range h.ids {
		w := h.newReport(id, 1, "2")
		go func() { results <- result{id, h.f.writeReport(h.ctx, 0, w.known, w.rq)} }()
	}
	for range len(h.ids) - 1 {
		if r := <-results; r.err != nil || r.id == h.ids[2] {
			t.Errorf("%s: %v", r.id, r.err)
		}
	}
	w := h.newReport(h.ids[0], 2, "3") // also after it
	if err := h.f.writeReport(h.ctx, 0, w.known, w.rq); err != nil {
		t.Error(err)
	}
	release()
	if r := <-results; r.err != nil || r.id != h.ids[2] {
		t.Errorf("%s: %v", r.id, r.err)
	}
}

// TestOrdersLockInOrder checks that orders of several versions lock service points in the order of their ids, as reports do.
func TestOrdersLockInOrder(t *testing.T) {
	h := newTestFleet(t, pgtest.URL(t), 2)
	slices.Sort(h.ids)
	release, ended := h.lockPoint(t, h.ids[0]), make(chan error)
	go func() {
		ended <- h.f.change(h.ctx, func(tx *store.Tx) error { // the later service point has the earlier version
			_, err := h.f.applyMembers(tx, &Rollout{}, []memberStep{{id: h.ids[0], order: "2"}, {id: h.ids[1], order: "1"}})
			return err
		})
	}()
	for waiting := 0; waiting == 0; {
		if err := h.f.store.View(h.ctx, func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").
				Scan(&waiting)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if errs := h.submit(t, h.newReport(h.ids[1], 1, "2")); errs[0] != nil { // otherwise it would deadlock with the orders
		t.Error(errs)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPending checks that pending is shown while a service point, or one of its nodes, has not stored its desired state.
func TestPending(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 1)
		id := h.ids[0]
		pending := func(want bool, when string) {
			t.Helper()
			if d, err := h.f.Get(h.ctx, id); err != nil || d.Pending != want {
				t.Errorf("%s it is pending: %v, %v", when, d.Pending, err)
			}
		}
		order := func() {
			t.Helper()
			if err := h.f.changeDesired(h.ctx, id, func(*store.Tx, int64) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for sequence := range int64(2) {
			order()
			pending(true, "when it is ordered something")
			w := h.newReport(id, sequence+1, "2")
			w.rq.Desired = h.state(t, id).desired
			if err := h.f.writeReport(h.ctx, 0, w.known, w.rq); err != nil {
				t.Fatal(err)
			}
			pending(false, "when it has said that it has that")
		}
	})
}
