package fleet

import (
	"testing"

	"portolan/internal/engine/store"
)

// TestRollbackKeepsOtherOrders checks that a rollback skips service points that have received another order meanwhile, and those without a
// known previous version. It does not wait for them.
func TestRollbackKeepsOtherOrders(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 4)
		write := func(query string, args ...any) {
			t.Helper()
			if err := h.f.change(h.ctx, func(tx *store.Tx) error { return tx.Write(query, args...) }); err != nil {
				t.Fatal(err)
			}
		}
		id := h.start(t, func(p *Plan) { p.Waves = nil })
		h.advanceUntil(t, id, RolloutDone)
		later, ordered, unknown := h.ids[0], h.ids[1], h.ids[2]
		write("UPDATE service_point SET version = '9' WHERE id = ?", later)
		h.points[later].Version = "9"
		write("UPDATE service_point SET target_version = '9', update_status = 'UPDATE_QUEUED' WHERE id = ?", ordered)
		write("UPDATE rollout_member SET before = '' WHERE service_point = ?", unknown)
		h.act(t, id, "takeBack")
		h.advance(t)
		states := map[string]Member{}
		for _, m := range h.members(t, id) {
			states[m.ServicePoint] = m
		}
		for at, want := range map[string]string{later: reasonOtherOrder, ordered: reasonOtherOrder,
			unknown: "nothing is known of the version from before"} {
			if m := states[at]; m.State != memberSkipped || m.Reason != want {
				t.Errorf("%s is %+v, want %s", at, m, want)
			}
		}
		if m := states[h.ids[3]]; m.State != memberGoingBack {
			t.Errorf("the one that is to go back is %+v", m)
		}
		if r := h.advanceUntil(t, id, RolloutRolledBack); r.Counts[memberWentBack] != 1 || r.Counts[memberSkipped] != 3 {
			t.Errorf("it ends as %+v", r)
		}
	})
}
