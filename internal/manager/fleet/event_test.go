package fleet

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// TestStatusChangesAreLogged checks that each committed change has a log line, and that many equal changes have one line together.
// Changes that were not committed have none.
func TestStatusChangesAreLogged(t *testing.T) {
	h := newTestFleet(t, "", maxLoggedChanges+1)
	var log bytes.Buffer
	h.f.log = slog.New(slog.NewTextHandler(&log, nil))
	lines := func(parts ...string) (n int) {
		for line := range strings.Lines(log.String()) {
			all := true
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				n++
			}
		}
		return n
	}
	move := func(ids []string, fails error) {
		t.Helper()
		err := h.f.change(h.ctx, func(tx *store.Tx) error {
			return errors.Join(h.f.recordChanges(tx, ids, fieldUpdate, checkin.UpdateOK, checkin.UpdateQueued, "why not"), fails)
		})
		if !errors.Is(err, fails) {
			t.Fatal(err)
		}
	}
	undone := errors.New("undone")
	move(h.ids[:1], undone)
	if log.Len() > 0 {
		t.Errorf("what was not committed is logged: %s", log.String())
	}
	move(h.ids[:2], nil)
	for _, id := range h.ids[:2] {
		if n := lines("service point changed", "id="+id, "field=updateStatus", "from=OK", "to=UPDATE_QUEUED", "why not"); n != 1 {
			t.Errorf("of %s there are %d lines:\n%s", id, n, log.String())
		}
	}
	log.Reset()
	move(h.ids, nil)
	if lines("service points changed", "number=21", "field=updateStatus") != 1 || lines("service point changed") != 0 {
		t.Errorf("of many there is\n%s", log.String())
	}
	log.Reset()
	h.start(t, func(*Plan) {})
	if lines("rollout status changed", "to=RUNNING") != 1 {
		t.Errorf("of a rollout there is\n%s", log.String())
	}
}
