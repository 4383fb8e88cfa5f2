package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// nodeOf returns a node that runs a release, with an application in a state.
func nodeOf(number int64, connected bool, version string, update *checkin.UpdateReport, status string) node {
	return node{number: number, connected: connected, report: &checkin.Report{Version: version, Update: update, Applied: number,
		Nodes:        []checkin.Node{{Name: fmt.Sprintf("n%d", number)}},
		Applications: []checkin.Application{{ID: "a", Name: "x", Version: version, Status: status}}}}
}

// TestUpdateTurn checks that nodes are updated one after another. A service point has a release when all connected nodes have it.
func TestUpdateTurn(t *testing.T) {
	running := &checkin.UpdateReport{Update: checkin.Update{Version: "2"}, Status: checkin.UpdateRunning}
	failed := &checkin.UpdateReport{Update: checkin.Update{Version: "2"}, Status: checkin.UpdateFailed, Reason: "it burns"}
	for _, c := range []struct {
		what    string
		all     []node
		turn    int64
		may     []bool
		version string
		update  string
	}{
		{"at first", []node{nodeOf(1, true, "1", nil, "HEALTHY"), nodeOf(2, true, "1", nil, "HEALTHY")}, 1, []bool{true, false}, "1", ""},
		{"while one runs", []node{nodeOf(1, true, "1", running, "HEALTHY"), nodeOf(2, true, "1", nil, "HEALTHY")}, 1, []bool{true, false}, "1",
			checkin.UpdateRunning},
		{"behind the first", []node{nodeOf(1, true, "2", nil, "HEALTHY"), nodeOf(2, true, "1", nil, "HEALTHY")}, 2, []bool{true, true}, "1", ""},
		{"at the end", []node{nodeOf(1, true, "2", nil, "HEALTHY"), nodeOf(2, true, "2", nil, "HEALTHY")}, 0, []bool{true, true}, "2", ""},
		{"where one fails", []node{nodeOf(1, true, "1", failed, "HEALTHY"), nodeOf(2, true, "1", nil, "HEALTHY")}, 1, []bool{true, false}, "1",
			checkin.UpdateFailed},
		{"where the first is away", []node{nodeOf(1, false, "1", nil, "HEALTHY"), nodeOf(2, true, "1", nil, "HEALTHY")}, 2, []bool{false, true},
			"1", ""},
		{"where the first was away", []node{nodeOf(1, true, "1", nil, "HEALTHY"), nodeOf(2, true, "1", running, "HEALTHY")}, 2,
			[]bool{false, true}, "1", checkin.UpdateRunning},
		{"where the second is away", []node{nodeOf(1, true, "2", nil, "HEALTHY"), nodeOf(2, false, "1", nil, "HEALTHY")}, 0, []bool{true, true},
			"1", ""},
	} {
		if got := updateTurn(c.all, "2"); got != c.turn {
			t.Errorf("%s it is the turn of %d, want %d", c.what, got, c.turn)
		}
		for i, may := range c.may {
			if got := mayUpdate(c.all, int64(i+1), "2"); got != may {
				t.Errorf("%s node %d may update: %t", c.what, i+1, got)
			}
		}
		r := mergeReports(c.all, 2, "2")
		update := ""
		if r.Update != nil {
			update = r.Update.Status
		}
		if r.Version != c.version || update != c.update {
			t.Errorf("%s it has version %q and update %q, want %q and %q", c.what, r.Version, update, c.version, c.update)
		}
	}
}

// TestApplicationsOfNodes checks that an application has the worst state of the connected nodes, and that its error conditions name the
// node.
func TestApplicationsOfNodes(t *testing.T) {
	for _, c := range []struct {
		first, second string
		away          bool
		status        string
		applied       int64
	}{
		{"HEALTHY", "HEALTHY", false, "HEALTHY", 1}, {"HEALTHY", "UNHEALTHY", false, "UNHEALTHY", 1}, {"DEPLOYING", "HEALTHY", false,
			"DEPLOYING", 1},
		{"DEPLOY_FAILED", "UNHEALTHY", false, "DEPLOY_FAILED", 1}, {"HEALTHY", "UNHEALTHY", true, "HEALTHY", 1},
	} {
		r := mergeReports([]node{nodeOf(1, true, "1", nil, c.first), nodeOf(2, !c.away, "1", nil, c.second)}, 2, "")
		if len(r.Applications) != 1 || r.Applications[0].Status != c.status || r.Applied != c.applied {
			t.Errorf("%s and %s are %+v", c.first, c.second, r)
		}
		if well := len(r.Applications[0].ErrorConditions) == 0; well != (c.status == "HEALTHY") {
			t.Errorf("%s and %s have the conditions %v", c.first, c.second, r.Applications[0].ErrorConditions)
		}
		if c.away != (len(r.ErrorConditions) == 1) {
			t.Errorf("with one away: %v", r.ErrorConditions)
		}
	}
	if r := mergeReports([]node{nodeOf(1, false, "1", nil, "HEALTHY"), nodeOf(2, false, "1", nil, "UNHEALTHY")}, 2,
		""); len(r.ErrorConditions) > 0 ||
		r.Applications[0].Status != "UNHEALTHY" {
		t.Errorf("with all nodes disconnected the status is %+v", r)
	}
	if mergeReports([]node{{number: 1}}, 2, "") != nil {
		t.Error("who has not reported has a report")
	}
}

// TestUpdateTurnContinues checks that the next node gets its turn to be updated when the node before it stops, falls silent or is removed.
func TestUpdateTurnContinues(t *testing.T) {
	for what, goes := range map[string]func(h *testFleet, at nodeID) error{
		"it ends": func(h *testFleet, at nodeID) error {
			return h.f.change(h.ctx, func(tx *store.Tx) error { _, err := h.f.markNodeStopped(tx, at); return err })
		},
		"it falls silent": func(h *testFleet, _ nodeID) error {
			h.now.pass(time.Hour)
			if err := h.f.change(h.ctx, func(tx *store.Tx) error {
				return tx.Write("UPDATE node SET last_seen = ? WHERE number = 2", h.now.time().UnixMilli())
			}); err != nil {
				return err
			}
			return h.f.markSilentNodes(h.ctx, h.f.store.Update)
		},
		"it is taken away": func(h *testFleet, at nodeID) error { return h.f.RemoveNode(h.ctx, at.id, at.String()) },
	} {
		t.Run(what, func(t *testing.T) {
			h := newTestFleet(t, "", 1)
			id := h.ids[0]
			text, err := json.Marshal(nodeOf(1, true, "1", nil, "HEALTHY").report)
			if err != nil {
				t.Fatal(err)
			}
			told := func(number int64) (d *checkin.Desired) {
				at := nodeID{id, number}
				if err := h.f.store.View(h.ctx, func(tx *store.Tx) error {
					states, err := h.f.desiredOfNode(tx, at)
					d = states[at]
					return err
				}); err != nil {
					t.Fatal(err)
				}
				return d
			}
			if err := h.f.change(h.ctx, func(tx *store.Tx) error {
				return errors.Join(tx.Write("UPDATE service_point SET several = 1, node_count = 2, status = 'HEALTHY', target_version = '2', "+
					"update_status = 'UPDATE_QUEUED' WHERE id = ?", id),
					tx.Write("INSERT INTO node (service_point, number, key_public, connected, last_seen, body) VALUES (?, 1, 'a', 1, 1, ?), "+
						"(?, 2, 'b', 1, 1, ?)",
						id, string(text), id, string(text)))
			}); err != nil {
				t.Fatal(err)
			}
			before := told(2)
			if told(1).Update == nil || before.Update != nil {
				t.Errorf("the first gets %+v, the second %+v", told(1), before)
			}
			if err := goes(h, nodeID{id, 1}); err != nil {
				t.Fatal(err)
			}
			if now := told(2); now.Update == nil || now.Generation <= before.Generation {
				t.Errorf("the second gets %+v, before it was %+v", now, before)
			}
		})
	}
}
