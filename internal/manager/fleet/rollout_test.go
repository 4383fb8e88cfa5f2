package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// testFleet is a fleet with simulated service points.
type testFleet struct {
	f   *Service
	ctx context.Context
	now *testClock
	// points are the service points by their ids.
	points map[string]*point
	// ids are the ids of the service points in the order of creation.
	ids []string
}

// testClock is the clock of a fleet, set by the test. The store reads it concurrently.
type testClock struct{ at atomic.Int64 }

func newClock(at time.Time) *testClock {
	c := &testClock{}
	c.at.Store(at.UnixNano())
	return c
}

func (c *testClock) time() time.Time { return time.Unix(0, c.at.Load()).UTC() }

func (c *testClock) pass(d time.Duration) { c.at.Add(int64(d)) }

// point is a simulated service point with its next report.
type point struct {
	checkin.Report
	connected bool
	// seen means that the manager has it as connected.
	seen bool
	// fails means that updates fail, slow that they do not finish for now.
	fails, slow bool
}

type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func newTestFleet(t *testing.T, database string, n int) *testFleet {
	t.Helper()
	h := &testFleet{ctx: t.Context(), now: newClock(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)), points: map[string]*point{}}
	o := store.Options{Database: database, Exclusive: true, Layout: &store.Layout{Scopes: "none", Extensions: []*store.Extension{Extension()}},
		Now: h.now.time}
	if database == "" {
		o.Dir = t.TempDir()
	}
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	a, err := LoadAuthority(t.Context(), s, plainSealer{})
	if err != nil {
		t.Fatal(err)
	}
	releases := func() (release.State, error) {
		all := []string{"linux/amd64"}
		return release.State{Expires: h.now.time().Add(time.Hour), Releases: []release.Release{{Version: "2", Platforms: all},
			{Version: "1", Platforms: all}}}, nil
	}
	h.f = New(s, a, slog.New(slog.NewTextHandler(io.Discard, nil)), 0, nil, releases)
	h.populate(t, n)
	return h
}

// populate creates service points of version 1.
func (h *testFleet) populate(t fatal, n int) {
	t.Helper()
	for i := range n {
		created, err := h.f.Create(h.ctx, Wanted{Name: fmt.Sprintf("sp-%03d-%d", i, len(h.points))})
		if err != nil {
			t.Fatalf("%v", err)
		}
		h.ids = append(h.ids, created.FleetInstanceID)
		h.points[created.FleetInstanceID] = &point{connected: true, Report: checkin.Report{Version: "1", BaseVersion: "0",
			Platform: "linux/amd64"}}
	}
	h.report(t)
}

// report writes the reports of all connected service points.
func (h *testFleet) report(t fatal) {
	t.Helper()
	if err := h.f.change(h.ctx, func(tx *store.Tx) error {
		for id, p := range h.points {
			if err := tx.Write("INSERT INTO presence (service_point, last_seen, connected) SELECT id, 1, ? FROM service_point WHERE id = ? "+
				"ON CONFLICT (service_point) DO UPDATE SET connected = excluded.connected", boolean(p.connected), id); err != nil {
				return err
			}
			p.seen = p.connected
			if !p.connected {
				continue
			}
			if err := tx.Write("UPDATE service_point SET status = ? WHERE id = ?", Healthy, id); err != nil {
				return err
			}
			states, err := h.f.desiredOfNode(tx, nodeID{id, 1})
			if err != nil {
				return err
			}
			p.applyOrder(states[nodeID{id, 1}].Update)
			is, err := h.f.lockState(tx, id)
			if err != nil {
				return err
			}
			now := *is
			if err := errors.Join(h.f.applyUpdateReport(tx, &now, &p.Report), h.f.writeState(tx, is, &now)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatalf("reporting: %v", err)
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// applyOrder applies an update order: the first call starts the update, the next one finishes it.
func (p *point) applyOrder(u *checkin.Update) {
	running := p.Update
	switch p.Update = nil; {
	case u == nil || u.Version == p.Version:
	case running == nil || running.Update != *u || p.slow && !p.fails:
		p.Update = &checkin.UpdateReport{Update: *u, Status: checkin.UpdateRunning}
	case p.fails && u.Version == "2":
		p.Update = &checkin.UpdateReport{Update: *u, Status: checkin.UpdateFailed, Reason: "it did not start"}
	default:
		p.Version = u.Version
	}
}

func (h *testFleet) advance(t fatal) {
	t.Helper()
	if err := h.f.AdvanceRollouts(h.ctx, h.f.store.Update); err != nil {
		t.Fatalf("advancing: %v", err)
	}
}

func (h *testFleet) start(t fatal, change func(*Plan)) string {
	t.Helper()
	p := NewPlan()
	p.Version = "2"
	if change != nil {
		change(&p)
	}
	id, err := h.f.StartRollout(h.ctx, p)
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	return id
}

func (h *testFleet) rollout(t fatal, id string) Rollout {
	t.Helper()
	r, err := h.f.Rollout(h.ctx, id)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return r
}

// advanceUntil advances until a rollout has a status.
func (h *testFleet) advanceUntil(t fatal, id, status string) Rollout {
	t.Helper()
	for range 100 {
		h.advance(t)
		h.report(t)
		if r := h.rollout(t, id); r.Status == status {
			return r
		}
	}
	t.Fatalf("the rollout is %+v, and never %s", h.rollout(t, id), status)
	return Rollout{}
}

func (h *testFleet) act(t fatal, id, action string) {
	t.Helper()
	if err := h.f.Act(h.ctx, id, action); err != nil {
		t.Fatalf("%s: %v", action, err)
	}
}

// members returns the service points of a rollout in the order of their turns.
func (h *testFleet) members(t fatal, id string) (all []Member) {
	t.Helper()
	if err := h.f.Members(h.ctx, id, "", func(m Member) error {
		all = append(all, m)
		return nil
	}); err != nil {
		t.Fatalf("%v", err)
	}
	return all
}

func onBoth(t *testing.T, run func(t *testing.T, database string)) {
	t.Run("SQLite", func(t *testing.T) { run(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { run(t, pgtest.URL(t)) })
}

func TestRolloutInWaves(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 20)
		id := h.start(t, nil) // waves of 1, 5 %, 25 % and the rest: 1, 1 (done already), 5, 20
		r := h.advanceUntil(t, id, RolloutDone)
		if r.Counts[memberUpdated] != 20 || r.Total != 20 || r.WaveCount != 3 {
			t.Errorf("done: %+v", r)
		}
		for at, p := range h.points {
			if p.Version != "2" {
				t.Errorf("%s has version %s", at, p.Version)
			}
		}
		h.act(t, id, "takeBack")
		r = h.advanceUntil(t, id, RolloutRolledBack)
		if r.Counts[memberWentBack] != 20 {
			t.Errorf("taken back: %+v", r)
		}
		for at, p := range h.points {
			if p.Version != "1" {
				t.Errorf("%s has version %s", at, p.Version)
			}
		}
		for _, action := range []string{"pause", "resume", "takeBack"} {
			if err := h.f.Act(h.ctx, id, action); !problem.Is(err, "RolloutState") {
				t.Errorf("%s of a rolled back rollout: %v", action, err)
			}
		}
		if err := h.f.DeleteRollout(h.ctx, id); err != nil {
			t.Error(err)
		}
		if _, err := h.f.Rollout(h.ctx, id); !problem.Is(err, "ResourceNotFound") {
			t.Errorf("a rollout that was deleted: %v", err)
		}
	})
}

// TestHaltedRolloutCountsFailures fails service points that were being updated when the rollout was halted: the reason counts them.
func TestHaltedRolloutCountsFailures(t *testing.T) {
	h := newTestFleet(t, "", 12)
	id := h.start(t, func(p *Plan) { p.MaxUnavailable, p.Waves = Amount{N: 12}, nil })
	first, second := h.points[h.ids[0]], h.points[h.ids[1]]
	first.fails, second.slow = true, true
	if r := h.advanceUntil(t, id, RolloutHalted); !strings.Contains(r.Reason, "1 of 12 service points failed") {
		t.Fatalf("halted: %+v", r)
	}
	second.fails = true
	for range 3 {
		h.report(t)
		h.advance(t)
	}
	if r := h.rollout(t, id); r.Counts[memberFailed] != 2 || !strings.Contains(r.Reason, "2 of 12 service points failed") {
		t.Errorf("halted, with another one that failed: %+v", r)
	}
}

// TestRolloutHalts checks that the first failure beyond the limit halts a rollout. No more orders are given until it is resumed.
func TestRolloutHalts(t *testing.T) {
	h := newTestFleet(t, "", 12)
	first := h.members(t, h.startPaused(t))[0].ServicePoint
	id := h.only(t)
	h.points[first].fails = true
	h.act(t, id, "resume")
	r := h.advanceUntil(t, id, RolloutHalted)
	if r.Counts[memberFailed] != 1 || r.Counts[memberWaiting] != 11 || !strings.Contains(r.Reason, "1 of 12 service points failed") {
		t.Errorf("halted: %+v", r)
	}
	for range 3 {
		h.advance(t)
		h.report(t)
	}
	if r := h.rollout(t, id); r.Counts[memberWaiting] != 11 {
		t.Errorf("it went on: %+v", r)
	}
	h.act(t, id, "resume")
	if r := h.advanceUntil(t, id, RolloutDone); r.Counts[memberUpdated] != 11 || r.Counts[memberFailed] != 1 {
		t.Errorf("done: %+v", r)
	}
	i, err := h.f.Get(h.ctx, first)
	if err != nil || i.UpdateStatus != checkin.UpdateFailed || !strings.Contains(i.UpdateError, "it did not start") ||
		len(i.ErrorConditions) > 0 {
		t.Errorf("who failed is %+v, %v", i, err)
	}
}

func (h *testFleet) startPaused(t fatal) string {
	t.Helper()
	id := h.start(t, nil)
	h.act(t, id, "pause")
	return id
}

func (h *testFleet) only(t fatal) string {
	t.Helper()
	all, err := h.f.Rollouts(h.ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("there are %d rollouts: %v", len(all), err)
	}
	return all[0].ID
}

// TestRolloutSkipsLostMembers checks that a rollout does not wait for disconnected or slow service points. Deleted ones, and those with
// another order, are skipped.
func TestRolloutSkipsLostMembers(t *testing.T) {
	h := newTestFleet(t, "", 6)
	id := h.start(t, func(p *Plan) { p.MaxFailed, p.MaxUnavailable = Amount{N: 6}, Amount{N: 6} })
	all := h.members(t, id)
	away, slow, deleted, other := all[1].ServicePoint, all[2].ServicePoint, all[3].ServicePoint, all[4].ServicePoint
	h.points[away].connected = false
	h.points[slow].slow = true
	h.points[other].slow = true
	h.report(t)
	delete(h.points, deleted)
	if err := h.f.Delete(h.ctx, deleted); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		h.advance(t)
		h.report(t)
	}
	none := ""
	if err := h.f.Modify(h.ctx, other, InstanceChange{TargetVersion: &none}); err != nil {
		t.Fatal(err)
	}
	h.now.pass(16 * time.Minute) // longer than GiveUpSeconds
	r := h.advanceUntil(t, id, RolloutDone)
	if r.Counts[memberUpdated] != 2 || r.Counts[memberAway] != 1 || r.Counts[memberFailed] != 1 || r.Counts[memberSkipped] != 2 {
		t.Errorf("done: %+v; %+v", r.Counts, h.members(t, id))
	}
	if i, err := h.f.Get(h.ctx, away); err != nil || i.TargetVersion != "" || i.UpdateStatus != checkin.UpdateOK {
		t.Errorf("who is away has an order: %+v, %v", i, err)
	}
	// Resume it for the service point that was away.
	h.points[away].connected = true
	h.report(t)
	h.act(t, id, "resume")
	if r := h.advanceUntil(t, id, RolloutDone); r.Counts[memberUpdated] != 3 || r.Counts[memberAway] != 0 {
		t.Errorf("resumed: %+v; %+v", r.Counts, h.members(t, id))
	}
	if err := h.f.Act(h.ctx, id, "resume"); !problem.Is(err, "RolloutState") {
		t.Errorf("resumed without disconnected members: %v", err)
	}
}

// TestFirstWaveWithoutUpdates checks that the next wave does not start by itself if no service point of the first wave was updated.
func TestFirstWaveWithoutUpdates(t *testing.T) {
	h := newTestFleet(t, "", 5)
	id := h.startPaused(t)
	h.points[h.members(t, id)[0].ServicePoint].connected = false
	h.report(t)
	h.act(t, id, "resume")
	if r := h.advanceUntil(t, id, RolloutHalted); !strings.Contains(r.Reason, "no service point was updated by the end of wave 1") ||
		r.Counts[memberWaiting] != 4 {
		t.Errorf("halted: %+v", r)
	}
	h.act(t, id, "resume")
	h.advanceUntil(t, id, RolloutDone)
}

// TestRolloutOmitsUpdatedMembers checks that service points that have the version already are in no wave.
func TestRolloutOmitsUpdatedMembers(t *testing.T) {
	h := newTestFleet(t, "", 4)
	for _, p := range h.points {
		p.Version = "2"
		break
	}
	h.report(t)
	id := h.start(t, nil)
	for _, m := range h.members(t, id) {
		if m.State == memberSkipped && (m.Before != "2" || m.Reason != "it has the version already") {
			t.Errorf("left out: %+v", m)
		}
	}
	if r := h.advanceUntil(t, id, RolloutDone); r.Counts[memberUpdated] != 3 || r.Counts[memberSkipped] != 1 {
		t.Errorf("done: %+v", r)
	}
}

// TestRolloutWithoutUpdates checks the message of a rollout without any update.
func TestRolloutWithoutUpdates(t *testing.T) {
	h := newTestFleet(t, "", 2)
	for _, p := range h.points {
		p.Version = "2"
	}
	h.report(t)
	if r := h.advanceUntil(t, h.start(t, nil), RolloutDone); r.Reason != "nothing to do: all 2 service points were skipped" {
		t.Errorf("where all have the version it is %+v", r)
	}
	for _, p := range h.points {
		p.Version, p.fails = "1", true
	}
	h.report(t)
	r := h.advanceUntil(t, h.start(t, func(p *Plan) { p.Waves, p.MaxFailed = []Amount{{100, true}}, Amount{N: 2} }), RolloutDone)
	if r.Reason != "none of 2 service points was updated" {
		t.Errorf("where all fail it is %+v", r)
	}
}

// TestRollbackWithManyLost checks that a rollout can be rolled back even if more service points are disconnected than mostAway, and if the
// releases are missing.
func TestRollbackWithManyLost(t *testing.T) {
	h := newTestFleet(t, "", 8)
	id := h.start(t, func(p *Plan) { p.MaxUnavailable = Amount{N: 2} })
	h.advanceUntil(t, id, RolloutDone)
	lost := 0
	for _, p := range h.points {
		if lost < 4 {
			p.connected = false
			lost++
		}
	}
	h.report(t)
	h.act(t, id, "takeBack")
	for range 20 {
		h.advance(t)
		h.report(t)
	}
	if r := h.rollout(t, id); r.Counts[memberWentBack] != 4 || r.Counts[memberGoingBack] != 4 {
		t.Errorf("going back: %+v", r)
	}
	for at := range h.points {
		if i, err := h.f.Get(h.ctx, at); err != nil || i.Version == "2" && i.TargetVersion != "1" {
			t.Errorf("who is lost is to come back as %+v, %v", i, err)
		}
	}
	h.now.pass(16 * time.Minute)
	if r := h.advanceUntil(t, id, RolloutRolledBack); r.Counts[memberFailed] != 4 {
		t.Errorf("taken back: %+v", r)
	}
}

func TestRollbackWithoutReleases(t *testing.T) {
	h := newTestFleet(t, "", 3)
	for _, p := range h.points {
		p.slow = true
	}
	id := h.start(t, func(p *Plan) { p.MaxUnavailable, p.Waves = Amount{N: 3}, []Amount{{N: 3}} })
	h.advance(t)
	h.f.releases = func() (release.State, error) { return release.State{}, release.ErrNone }
	h.act(t, id, "takeBack")
	if r := h.advanceUntil(t, id, RolloutRolledBack); r.Counts[memberWentBack] != 3 {
		t.Errorf("after the rollback: %+v; %+v", r, h.members(t, id))
	}
	for at := range h.points {
		if i, err := h.f.Get(h.ctx, at); err != nil || i.TargetVersion != "" || i.UpdateStatus != checkin.UpdateOK {
			t.Errorf("after the rollback it is %+v, %v", i, err)
		}
	}
}

func TestRolloutInWindows(t *testing.T) {
	h := newTestFleet(t, "", 3)
	id := h.start(t, func(p *Plan) { p.Windows = []Window{{From: "22:00", To: "23:00"}} })
	for range 5 {
		h.advance(t)
		h.report(t)
	}
	if r := h.rollout(t, id); r.Counts[memberWaiting] != 3 {
		t.Errorf("outside of its window it went on: %+v", r)
	}
	h.now.pass(13*time.Hour + 10*time.Minute)
	h.advanceUntil(t, id, RolloutDone)
}

func TestRefusedRollouts(t *testing.T) {
	h := newTestFleet(t, "", 2)
	for why, change := range map[string]func(*Plan){
		"does not exist":                      func(p *Plan) { p.Version = "3" },
		"version: is required":                func(p *Plan) { p.Version = "" },
		"no service point matches":            func(p *Plan) { p.Filter.Version = "7" },
		", not \"WELL\"":                      func(p *Plan) { p.Filter.Status = "WELL" },
		"at least 1 service point":            func(p *Plan) { p.Waves = []Amount{{}} },
		"mostAway: must be":                   func(p *Plan) { p.MaxUnavailable = Amount{} },
		"giveUpSeconds: must be":              func(p *Plan) { p.GiveUpSeconds = 1 },
		"is not a time zone":                  func(p *Plan) { p.TimeZone = "Mars/Olympus" },
		"is not a time of day":                func(p *Plan) { p.Windows = []Window{{From: "25:00", To: "1:00"}} },
		", not \"FRIDAY\"":                    func(p *Plan) { p.Windows = []Window{{Days: []string{"FRIDAY"}, From: "10:00", To: "11:00"}} },
		"from 10:00 to 10:00 is":              func(p *Plan) { p.Windows = []Window{{From: "10:00", To: "10:00"}} },
		"is not a label name":                 func(p *Plan) { p.Filter.Labels = map[string]string{"a b": ""} },
		"at most 50":                          func(p *Plan) { p.Waves = make([]Amount, 51) },
		"entry 1: must be more than 7, not 5": func(p *Plan) { p.Waves = []Amount{{N: 7}, {N: 5}} },
	} {
		p := NewPlan()
		p.Version = "2"
		change(&p)
		if _, err := h.f.StartRollout(h.ctx, p); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("want a refusal with %q, got %v", why, err)
		}
	}
	if all, err := h.f.Rollouts(h.ctx); err != nil || len(all) != 0 {
		t.Errorf("refused, and there are %d: %v", len(all), err)
	}
	// One at a time.
	one := h.start(t, nil)
	two := h.start(t, nil)
	for _, m := range h.members(t, two) {
		if m.State != memberSkipped || !strings.Contains(m.Reason, one) {
			t.Errorf("in two rollouts: %+v", m)
		}
	}
}

// TestRolloutsStartImmediately checks that a new or resumed rollout is handled immediately.
func TestRolloutsStartImmediately(t *testing.T) {
	t.Parallel()
	h := newTestFleet(t, "", 3)
	begun := func(want bool, what string) {
		t.Helper()
		select {
		case <-h.f.RolloutChanges():
			if !want {
				t.Errorf("%s lets rollouts go on", what)
			}
		default:
			if want {
				t.Errorf("%s does not let rollouts go on", what)
			}
		}
	}
	begun(false, "nothing")
	id := h.start(t, nil)
	begun(true, "a beginning")
	if err := h.f.Act(h.ctx, id, "pause"); err != nil {
		t.Fatal(err)
	}
	if err := h.f.Act(h.ctx, id, "resume"); err != nil {
		t.Fatal(err)
	}
	begun(true, "resuming")
	begun(false, "nothing more")
}

// TestUpdatesEnd checks that a finished update, successful or not, triggers the rollouts. Other moves do not.
func TestUpdatesEnd(t *testing.T) {
	t.Parallel()
	h := newTestFleet(t, "", 2)
	for _, one := range []struct {
		field, after string
		want         bool
	}{
		{fieldUpdate, checkin.UpdateQueued, false}, {fieldUpdate, checkin.UpdateRunning, false}, {fieldStatus, checkin.UpdateOK, false},
		{fieldUpdate, checkin.UpdateOK, true}, {fieldUpdate, checkin.UpdateFailed, true},
	} {
		for _, wrong := range []error{errors.New("it is taken back"), nil} {
			err := h.f.change(h.ctx, func(tx *store.Tx) error {
				return errors.Join(h.f.recordChange(tx, h.ids[0], one.field, "", one.after), wrong)
			})
			if !errors.Is(err, wrong) {
				t.Fatal(err)
			}
			ended := len(h.f.Ended()) > 0
			if ended {
				<-h.f.Ended()
			}
			if ended != (one.want && wrong == nil) {
				t.Errorf("%+v, %v: an update has ended: %v", one, wrong, ended)
			}
		}
	}
}

// TestOrdersWakeCheckIns checks that check-ins of service points with orders are woken after all orders are written, and at the latest a
// while after the first one.
func TestOrdersWakeCheckIns(t *testing.T) {
	t.Parallel()
	told := make(chan string, 10)
	u := pendingWakes{wake: func(id string) { told <- id }}
	u.add(nil)
	u.add([]string{"a", "b"})
	u.add([]string{"c"})
	select {
	case id := <-told:
		t.Errorf("%s is woken immediately", id)
	default:
	}
	for _, want := range []string{"a", "b", "c"} { // woken by the timer
		if id := <-told; id != want {
			t.Errorf("%s is woken, want %s", id, want)
		}
	}
	u.add([]string{"d"})
	u.wakeAll()
	u.wakeAll()
	if id := <-told; id != "d" || len(told) > 0 {
		t.Errorf("%s is woken, and %d more", id, len(told))
	}
}

// TestCandidatesMatchList checks that the members of a rollout are the service points in the list with the same filter.
func TestCandidatesMatchList(t *testing.T) {
	t.Parallel()
	h := newTestFleet(t, "", 6)
	h.points[h.ids[1]].connected = false
	h.report(t)
	if err := h.f.change(h.ctx, func(tx *store.Tx) error {
		return tx.Write("INSERT INTO label (service_point, name, value) VALUES (?, 'site', 'oslo')", h.ids[2])
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.f.Create(h.ctx, Wanted{Name: "waiting"}); err != nil {
		t.Fatal(err)
	}
	for _, later := range []time.Duration{0, 1000 * time.Hour} { // also after the registration keys have expired
		h.now.pass(later)
		for _, f := range []Filter{{}, {Status: Healthy}, {Status: Waiting}, {Status: Expired}, {Version: "1"}, {NameContains: "SP-00"},
			{Labels: map[string]string{"site": "oslo"}}, {Labels: map[string]string{"site": ""}, Status: Healthy}, {Name: "waiting", Named: true},
			{ConnectionStatus: NotConnected}, {Application: "none"}, {Within: []map[string]string{{"site": "oslo"}}}} {
			var want []candidate
			if err := h.f.List(h.ctx, f, func(i Instance) error {
				want = append(want, candidate{i.ID, i.Version, i.Status, i.UpdateStatus})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			got, err := h.f.candidates(h.ctx, &f)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v: %v, and listed are %v (%v)", f, got, want, err)
			}
		}
	}
}

// TestMaxUnavailableInRollback checks that a percentage of mostAway is of all members, even if most had not had their turn before the
// rollback.
func TestMaxUnavailableInRollback(t *testing.T) {
	t.Parallel()
	h := newTestFleet(t, "", 40)
	for _, p := range h.points {
		p.slow = true
	}
	id := h.start(t, func(p *Plan) { p.Waves, p.MaxUnavailable = []Amount{{N: 8}}, Amount{N: 20, Percent: true} })
	h.advance(t)
	if n := h.rollout(t, id).Counts[memberUpdating]; n != 8 {
		t.Fatalf("%d have an order", n)
	}
	h.act(t, id, "takeBack")
	h.advance(t)
	h.advance(t)
	if r := h.rollout(t, id); r.Counts[memberGoingBack] != 8 || strings.Contains(r.Reason, "at most 1") {
		t.Errorf("going back: %+v, %s", r.Counts, r.Reason)
	}
}

// TestStepInSeveralTransactions checks that a step is applied in several transactions while the rollout is unchanged. The last one changes
// its status.
func TestStepInSeveralTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 5)
		h.f.movedAtOnce = 2
		id := h.start(t, func(p *Plan) { p.Waves, p.MaxUnavailable = []Amount{{100, true}}, Amount{100, true} })
		var sizes []int
		status := ""
		counted := func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
			err := h.f.store.Update(ctx, author, fn)
			r, e := h.f.Rollout(h.ctx, id)
			if sizes, status = append(sizes, r.Counts[memberUpdating]), r.Status; e == nil && len(sizes) == 2 {
				e = h.f.Act(h.ctx, id, "pause")
			}
			return errors.Join(err, e)
		}
		if err := h.f.AdvanceRollouts(h.ctx, counted); err != nil {
			t.Fatal(err)
		}
		// The third transaction finds the rollout paused, and changes nothing.
		if fmt.Sprint(sizes) != "[2 4 4]" || status != RolloutPaused {
			t.Errorf("the batches have the sizes %v, and the rollout is %s", sizes, status)
		}
	})
}
