package fleet

import (
	"testing"

	"portolan/internal/engine/store"

	"pgregory.net/rapid"
)

// TestRandomRollouts changes service points and rollouts at random: at most mostAway service points are away, and no wave starts before the
// earlier ones are over.
func TestRandomRollouts(t *testing.T) {
	t.Parallel()
	s := newTestFleet(t, "", 0)
	rapid.Check(t, func(t *rapid.T) {
		h := &testFleet{f: s.f, ctx: s.ctx, now: s.now, points: map[string]*point{}}
		defer func() { // restore the initial state
			if err := h.f.change(h.ctx, func(tx *store.Tx) error {
				for _, table := range []string{"service_point", "presence", "rollout", "rollout_member", "fleet_event"} {
					if err := tx.Write("DELETE FROM " + table); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatalf("%v", err)
			}
		}()
		n := rapid.IntRange(1, 15).Draw(t, "service points")
		h.populate(t, n)
		bound := rapid.IntRange(1, 4).Draw(t, "may be away")
		id := h.start(t, func(p *Plan) {
			p.Waves = []Amount{{N: rapid.IntRange(1, 3).Draw(t, "first wave")}, {50, true}}
			p.MaxUnavailable, p.MaxFailed = Amount{N: bound}, Amount{N: rapid.IntRange(0, 3).Draw(t, "may fail")}
		})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for _, at := range h.ids {
				p := h.points[at]
				switch rapid.IntRange(0, 30).Draw(t, "happens") {
				case 0:
					p.connected = !p.connected
				case 1:
					p.fails = true
				case 2:
					p.slow = !p.slow
				}
			}
			switch rapid.IntRange(0, 15).Draw(t, "somebody") {
			case 0:
				_ = h.f.Act(h.ctx, id, "pause") // rejected if it is not running
			case 1, 2:
				_ = h.f.Act(h.ctx, id, "resume")
			case 3:
				_ = h.f.Act(h.ctx, id, "takeBack")
			}
			before := h.rollout(t, id)
			ordered := before.Counts[memberUpdating]
			h.advance(t)
			r := h.rollout(t, id)
			away := 0
			for _, m := range h.members(t, id) {
				if m.State == memberUpdating || (m.State == memberUpdated || m.State == memberFailed) && !h.points[m.ServicePoint].seen {
					away++
				}
			}
			if now := r.Counts[memberUpdating]; away > bound && now > ordered {
				t.Fatalf("%d are away, and %d may be; %d are updated, and %d were before", away, bound, now, ordered)
			}
			lowest, highest := 1<<30, 0
			for _, m := range h.members(t, id) {
				switch m.State {
				case memberWaiting:
					lowest = min(lowest, m.Wave)
				case memberUpdating, memberUpdated:
					highest = max(highest, m.Wave)
				}
			}
			if highest > lowest {
				t.Fatalf("wave %d has begun, and %d still waits: %+v", highest, lowest, h.members(t, id))
			}
			h.report(t)
		}
	})
}
