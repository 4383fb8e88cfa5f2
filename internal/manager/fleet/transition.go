package fleet

import (
	"encoding/json"
	"slices"
	"strings"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// nextStatuses are the transitions of an application's status (spec.md section 3, and the design's transitions). Each transition is an
// event.
var nextStatuses = map[string][]string{
	checkin.Deploying:    {checkin.Healthy, checkin.DeployFailed, checkin.Deleted},
	checkin.Healthy:      {checkin.Unhealthy, checkin.Deleted},
	checkin.Unhealthy:    {checkin.Healthy, checkin.Deleted},
	checkin.DeployFailed: {checkin.Deploying, checkin.Deleted},
	checkin.Deleted:      {},
}

// statusPath returns the shortest path of transitions from one status to another, without from; ok is false if there is none. The
// transitions in between happened at the service point and were not reported.
func statusPath(from, to string) (steps []string, ok bool) {
	before := map[string]string{from: ""}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if next[0] == to {
			for at := to; at != from; at = before[at] {
				steps = append(steps, at)
			}
			slices.Reverse(steps)
			return steps, true
		}
		for _, one := range nextStatuses[next[0]] {
			if _, seen := before[one]; !seen {
				before[one] = next[0]
				next = append(next, one)
			}
		}
	}
	return nil, false
}

// fieldOf returns the name of an application's field in events.
func fieldOf(name, application, field string) string {
	return "applications/" + name + "/" + application + "/" + field
}

// recordApplicationChange records the transitions of an application to a new status, with the reasons for the last one, and the change of
// its updateStatus.
func (s *Service) recordApplicationChange(tx *store.Tx, d deployed, status, update, updateBefore string, reasons ...string) error {
	steps, _ := statusPath(d.Status, status)
	before := d.Status
	for _, next := range steps {
		var why []string
		if next == status {
			why = reasons
		}
		if err := s.recordChange(tx, d.servicePoint, fieldOf(d.Name, d.ID, fieldStatus), before, next, why...); err != nil {
			return err
		}
		before = next
	}
	if update == updateBefore {
		return nil
	}
	return s.recordChange(tx, d.servicePoint, fieldOf(d.Name, d.ID, fieldUpdate), updateBefore, update)
}

// applyApplicationReports applies a report to the applications of a service point. r is nil if the service point has only acknowledged a
// generation.
func (s *Service) applyApplicationReports(tx *store.Tx, is *pointState, r *checkin.Report) error {
	if err := s.recordAnycastChange(tx, is.id, is.applications, r); err != nil {
		return err
	}
	for _, d := range is.applications {
		now := d.afterReport(is.acknowledged, r)
		if now.Status == d.Status && now.UpdateStatus == d.UpdateStatus && now.conditions == d.conditions && now.Version == d.Version &&
			now.TargetVersion == d.TargetVersion {
			continue
		}
		tx.Touch(rowsTopic)
		if err := s.recordApplicationChange(tx, d, now.Status, now.UpdateStatus, d.UpdateStatus, now.ErrorConditions...); err != nil {
			return err
		}
		deleted := int64(0)
		if now.Status == checkin.Deleted {
			deleted = s.now().UnixMilli()
		}
		if err := tx.Write("UPDATE application SET status = ?, update_status = ?, conditions = ?, version = ?, target_version = ?, deleted = ? "+
			"WHERE id = ?", now.Status, now.UpdateStatus, now.conditions, now.Version, now.TargetVersion, deleted, d.ID); err != nil {
			return err
		}
		if now.Version != d.Version {
			if s.desiredOf(now).Version != s.desiredOf(d).Version { // the desired version has changed
				s.renewDesired(tx, is)
			}
			all := s.changesIn(tx)
			all.logged = append(all.logged, func() {
				s.log.Info("application version changed", "servicePoint", is.id, "application", d.ID, "name", d.Name, "from", d.Version,
					"to", now.Version)
			})
		}
	}
	return nil
}

// afterReport returns the application after a report of its service point. r is nil if the service point has only acknowledged a
// generation.
func (d deployed) afterReport(acknowledged int64, r *checkin.Report) deployed {
	if d.Status == checkin.Deleted {
		return d
	}
	if acknowledged >= d.generation {
		switch d.UpdateStatus {
		case updateQueued:
			d.UpdateStatus = updateRunning
		case deleteQueued:
			d.UpdateStatus = deleteRunning
		}
	}
	if r == nil {
		return d
	}
	i := slices.IndexFunc(r.Applications, func(a checkin.Application) bool { return a.ID == d.ID })
	if i < 0 {
		if r.Applied >= d.generation && strings.HasPrefix(d.UpdateStatus, "DELETE_") {
			d.Status, d.UpdateStatus, d.TargetVersion, d.conditions, d.ErrorConditions = checkin.Deleted, "", "", "[]", nil
		}
		return d
	}
	a := r.Applications[i]
	if r.Applied < d.generation && d.Status == checkin.Deploying { // the report is about the generation before
		return d
	}
	_, ok := statusPath(d.Status, a.Status)
	switch {
	case ok && a.Status != checkin.Deleted:
		d.Status = a.Status
	case a.Status == checkin.Deploying || a.Status == checkin.DeployFailed: // it is deployed anew on a machine that has lost its state
		d.Status = checkin.Unhealthy
	}
	if text, err := json.Marshal(append([]string{}, a.ErrorConditions...)); err == nil {
		d.conditions, d.ErrorConditions = string(text), a.ErrorConditions
	}
	if a.Version != d.Version && checkVersion("version", a.Version) == nil { // it was installed with a release of the service point
		d.Version = a.Version
		if d.TargetVersion != "" { // the update has reached its target, or was superseded
			d.TargetVersion, d.UpdateStatus = "", ""
		}
	}
	return d
}
