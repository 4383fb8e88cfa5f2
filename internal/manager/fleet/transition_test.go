package fleet

import (
	"fmt"
	"testing"

	"portolan/internal/wire/checkin"
)

func TestWays(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{checkin.Deploying, checkin.Healthy, "[HEALTHY] true"},
		{checkin.Deploying, checkin.Unhealthy, "[HEALTHY UNHEALTHY] true"},
		{checkin.DeployFailed, checkin.Healthy, "[DEPLOYING HEALTHY] true"},
		{checkin.Healthy, checkin.Healthy, "[] true"},
		{checkin.Healthy, checkin.Deploying, "[] false"},
		{checkin.Unhealthy, checkin.DeployFailed, "[] false"},
		{checkin.Deleted, checkin.Healthy, "[] false"},
		{checkin.Healthy, "ELSE", "[] false"},
	} {
		steps, ok := statusPath(c.from, c.to)
		if got := fmt.Sprint(steps, ok); got != c.want {
			t.Errorf("from %s to %s: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// TestRequestsAfterReport checks that reports for the requested generation move applications along the transitions.
func TestRequestsAfterReport(t *testing.T) {
	report := func(applied int64, status, version string) *checkin.Report {
		r := &checkin.Report{Applied: applied}
		if status != "" {
			r.Applications = []checkin.Application{{ID: "a", Status: status, Version: version}}
		}
		return r
	}
	for name, c := range map[string]struct {
		status, update, target string
		acknowledged           int64
		r                      *checkin.Report
		want                   string
	}{
		"only acknowledged":             {checkin.Healthy, updateQueued, "2", 7, nil, "HEALTHY UPDATE_IN_PROGRESS 1 2"},
		"not yet acknowledged":          {checkin.Healthy, updateQueued, "2", 6, nil, "HEALTHY UPDATE_QUEUED 1 2"},
		"deployed":                      {checkin.Deploying, "", "", 7, report(7, checkin.Healthy, "1"), "HEALTHY  1 "},
		"of an earlier generation":      {checkin.Deploying, "", "", 7, report(6, checkin.Healthy, "1"), "DEPLOYING  1 "},
		"ill, of an earlier generation": {checkin.Healthy, "", "", 6, report(6, checkin.Unhealthy, "1"), "UNHEALTHY  1 "},
		"updated":                       {checkin.Healthy, updateRunning, "2", 7, report(7, checkin.Healthy, "2"), "HEALTHY  2 "},
		"not yet updated": {checkin.Healthy, updateRunning, "2", 7, report(7, checkin.Healthy, "1"),
			"HEALTHY UPDATE_IN_PROGRESS 1 2"},
		"another version, unasked":   {checkin.Healthy, "", "", 7, report(7, checkin.Healthy, "3"), "HEALTHY  3 "},
		"another one than was asked": {checkin.Healthy, updateRunning, "2", 7, report(7, checkin.Healthy, "3"), "HEALTHY  3 "},
		"another one, going":         {checkin.Healthy, deleteRunning, "", 7, report(6, checkin.Healthy, "3"), "HEALTHY DELETE_IN_PROGRESS 3 "},
		"one that never ran":         {checkin.Deploying, "", "", 7, report(7, checkin.DeployFailed, "3"), "DEPLOY_FAILED  3 "},
		"no version":                 {checkin.Healthy, "", "", 7, report(7, checkin.Healthy, ""), "HEALTHY  1 "},
		"an invalid version":         {checkin.Healthy, "", "", 7, report(7, checkin.Healthy, "a b"), "HEALTHY  1 "},
		"a move that there is not":   {checkin.Healthy, "", "", 7, report(7, checkin.DeployFailed, "1"), "UNHEALTHY  1 "},
		"a status that there is not": {checkin.Healthy, "", "", 7, report(7, "DELETED", "1"), "HEALTHY  1 "},
		"being deleted": {checkin.Healthy, deleteQueued, "", 7, report(6, checkin.Healthy, "1"),
			"HEALTHY DELETE_IN_PROGRESS 1 "},
		"gone":                             {checkin.Healthy, deleteRunning, "", 7, report(7, "", ""), "DELETED  1 "},
		"not named, and not to be deleted": {checkin.Healthy, "", "", 7, report(7, "", ""), "HEALTHY  1 "},
		"deleted already":                  {checkin.Deleted, "", "", 7, report(7, checkin.Healthy, "1"), "DELETED  1 "},
	} {
		d := deployed{generation: 7, conditions: "[]"}
		d.ID, d.Status, d.UpdateStatus, d.Version, d.TargetVersion = "a", c.status, c.update, "1", c.target
		d.conditions, d.ErrorConditions = `["old"]`, []string{"old"} // a deleted application has none
		now := d.afterReport(c.acknowledged, c.r)
		if got := fmt.Sprint(now.Status, " ", now.UpdateStatus, " ", now.Version, " ", now.TargetVersion); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if c.status != checkin.Deleted && now.Status == checkin.Deleted && (len(now.ErrorConditions) > 0 || now.conditions != "[]") {
			t.Errorf("%s: deleted with the conditions %q", name, now.ErrorConditions)
		}
	}
}
