package fleet

import (
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"
)

// An order on PostgreSQL writes no index of service_point: neither is there one of what it changes, nor is a page without room for its rows
// once more.
func TestOrdersWriteNoIndex(t *testing.T) {
	h := newHarbour(t, pgtest.URL(t), 60)
	refused := map[string]error{}
	var updated, hot int
	if err := h.f.change(h.ctx, func(tx *store.Tx) error {
		written := func() (all, hot int, err error) {
			err = tx.QueryRow("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'service_point'").Scan(&all, &hot)
			return all, hot, err
		}
		before, hotBefore, err := written()
		if err != nil {
			return err
		}
		if err := h.f.orderMany(tx, h.ids, "2", refused); err != nil {
			return err
		}
		updated, hot, err = written()
		updated, hot = updated-before, hot-hotBefore
		return err
	}); err != nil || len(refused) > 0 {
		t.Fatalf("%v, %v", err, refused)
	}
	if updated < len(h.ids) || hot != updated {
		t.Errorf("of %d rows that were written the indexes of %d were, too", updated, updated-hot)
	}
}
