package fleet

import (
	"context"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5"
)

// TestOrdersWriteNoIndex checks that an order on PostgreSQL writes no index of service_point: the changed columns have no index, and each
// page has space for the new row versions.
func TestOrdersWriteNoIndex(t *testing.T) {
	url := pgtest.URL(t)
	h := newTestFleet(t, url, 60)
	// Remove the row versions of earlier reports: an update in place needs space in the page of the row.
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "VACUUM FULL service_point"); err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("of %d written rows the indexes of %d were written", updated, updated-hot)
	}
}
