package fleet

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// Releases returns the releases that service points can be updated to; release.ErrNone if nothing was published.
type Releases func() (release.State, error)

// InstanceChange is a requested change of a service point. A nil field stays unchanged.
type InstanceChange struct {
	Name *string
	// Description is the new description; an empty text deletes it.
	Description *string
	// TargetVersion is the release to run; an empty text cancels an update.
	TargetVersion *string
	// Labels are the labels to change; nil deletes a label.
	Labels map[string]*string
	// NTPServers are the time servers; nil leaves them unchanged.
	NTPServers []string
	// Anycast replaces the anycast settings; nil leaves them unchanged.
	Anycast *AnycastChange
	// NodeCount is the number of nodes that it may have.
	NodeCount *int64
}

// Modify changes a service point.
func (s *Service) Modify(ctx context.Context, id string, c InstanceChange) error {
	if c.Name != nil {
		if err := checkName(*c.Name); err != nil {
			return err
		}
	}
	if d := c.Description; d != nil && (utf8.RuneCountInString(*d) > maxDescription || strings.ContainsRune(*d, 0)) {
		return problem.Invalid("description", "has more than %d characters, or a NUL", maxDescription)
	}
	change := func(tx *store.Tx) error {
		if c.Name != nil {
			if err := rename(tx, id, *c.Name); err != nil {
				return err
			}
		}
		if c.Description != nil {
			if err := tx.Write("UPDATE service_point SET description = nullif(?, '') WHERE id = ?", *c.Description, id); err != nil {
				return err
			}
		}
		if c.NodeCount != nil {
			if err := s.changeNodeCount(tx, id, *c.NodeCount); err != nil {
				return err
			}
		}
		return relabel(tx, id, c.Labels)
	}
	if c.TargetVersion == nil && c.NTPServers == nil && c.Anycast == nil {
		return s.change(ctx, func(tx *store.Tx) error {
			if err := lockPoint(tx, id); err != nil {
				return err
			}
			return withHistory(tx, id, c, func() error { return change(tx) })
		})
	}
	return s.changeDesired(ctx, id, func(tx *store.Tx, generation int64) error {
		return withHistory(tx, id, c, func() error { return s.applyDesiredChange(tx, id, c, generation, change) })
	})
}

// applyDesiredChange applies a change of the desired state of a service point, in a new generation. It first calls change.
func (s *Service) applyDesiredChange(tx *store.Tx, id string, c InstanceChange, generation int64, change func(*store.Tx) error) error {
	if err := change(tx); err != nil {
		return err
	}
	if c.NTPServers != nil {
		if err := configureNTP(tx, id, c.NTPServers); err != nil {
			return err
		}
	}
	if c.Anycast != nil {
		if err := configureAnycast(tx, id, *c.Anycast); err != nil {
			return err
		}
	}
	if c.TargetVersion == nil {
		return nil
	}
	return s.order(tx, id, *c.TargetVersion, generation)
}

// lockPoint locks a service point. It returns an error if the service point does not exist.
func lockPoint(tx *store.Tx, id string) error {
	var one int
	err := tx.QueryRow("SELECT 1 FROM service_point WHERE id = ?"+tx.Locking(), id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return UnknownProblem(id)
	}
	return err
}

func rename(tx *store.Tx, id, name string) error {
	var other string
	err := tx.QueryRow("SELECT id FROM service_point WHERE name = ? AND id <> ?", name, id).Scan(&other)
	switch {
	case err == nil:
		return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as fleet service point %s", name, other)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	// not Write: another request may have taken the name meanwhile
	_, err = tx.Exec("UPDATE service_point SET name = ? WHERE id = ?", name, id)
	return err
}

// updatable is the state of a service point that an update needs.
type updatable struct {
	version, target, status, reason, platform, base string
	asked                                           int64
}

const selectUpdatable = "version, target_version, update_status, update_reason, platform, base_version, update_asked"

// destinations returns the destinations of the columns of selectUpdatable.
func (u *updatable) destinations() []any {
	return []any{&u.version, &u.target, &u.status, &u.reason, &u.platform, &u.base, &u.asked}
}

func readUpdatable(tx *store.Tx, id string) (u updatable, err error) {
	err = tx.QueryRow("SELECT "+selectUpdatable+" FROM service_point WHERE id = ?", id).Scan(u.destinations()...)
	if errors.Is(err, sql.ErrNoRows) {
		err = UnknownProblem(id)
	}
	return u, err
}

// checkOrderable returns an error, about a field, if a service point on a platform cannot be updated to a version. base is the version that
// was installed on its machine first.
func (s *Service) checkOrderable(field, version, platform, base string) error {
	if err := checkVersion(field, version); err != nil {
		return err
	}
	if version == base { // the machine has it
		return nil
	}
	published, err := s.releases()
	switch {
	case errors.Is(err, release.ErrNone):
		return problem.Conflict("NoReleases", field+": this manager has no releases: %v", err)
	case err != nil:
		s.log.Error("releases not readable", "reason", err)
		return problem.Conflict("ReleasesUnreadable", field+": %s", "the releases of this manager cannot be read; see its log")
	case !published.Has(version, platform):
		there := "none"
		if names := versionsOf(published.Releases); len(names) > 0 {
			there = strings.Join(names[:min(len(names), 10)], ", ")
		}
		on := ""
		if platform != "" {
			on = " for " + platform
		}
		return problem.Invalid(field, "release %q%s does not exist; the newest are: %s", version, on, there)
	case s.now().After(published.Expires):
		return problem.Conflict("ReleasesExpired", field+": the releases of this manager expired on %s and service points would reject them; "+
			"renew them with portolan release publish", published.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

func versionsOf(all []release.Release) (names []string) {
	for _, r := range all {
		names = append(names, r.Version)
	}
	return names
}

// order orders a service point to run a release; an empty version cancels the update. The transaction changes the desired state to the
// given generation.
func (s *Service) order(tx *store.Tx, id, version string, generation int64) error {
	u, err := readUpdatable(tx, id)
	if err != nil {
		return err
	}
	now, err := s.applyOrder(u, version)
	if err != nil {
		return err
	}
	if now != u {
		if err := s.recordChange(tx, id, fieldUpdate, u.status, now.status, orderReason(now.target, u.version)); err != nil {
			return err
		}
	}
	return tx.Write("UPDATE service_point SET target_version = ?, update_status = ?, update_reason = '', update_asked = ? WHERE id = ?",
		now.target, now.status, generation, id)
}

// applyOrder returns the state of an update after an order: with another target and status. An empty version cancels the update.
func (s *Service) applyOrder(u updatable, version string) (updatable, error) {
	switch {
	case version == "", version == u.version && u.status == checkin.UpdateOK:
		u.target, u.status = "", checkin.UpdateOK
		return u, nil
	case version == u.version: // a running update is to end with the version that it started from
	default:
		if err := s.checkOrderable("targetVersion", version, u.platform, u.base); err != nil {
			return u, err
		}
	}
	u.target, u.status = version, checkin.UpdateQueued
	return u, nil
}

// orderReason describes an order, for an event.
func orderReason(version, runs string) string {
	if version == "" {
		return "version " + runs + " is to go on"
	}
	return "from version " + runs + " to " + version
}

// afterReport returns the state of an update after a report.
func (u updatable) afterReport(r *checkin.Report) updatable {
	u.version, u.platform, u.base = r.Version, r.Platform, r.BaseVersion
	switch {
	case u.target == "":
	case r.Update == nil && r.Version == u.target:
		u.target, u.status, u.reason = "", checkin.UpdateOK, ""
	case r.Update == nil || r.Update.Version != u.target || r.Update.Asked != u.asked: // the report is about another order
	case r.Update.Status == checkin.UpdateRunning && u.status == checkin.UpdateQueued:
		u.status = checkin.UpdateRunning
	case r.Update.Status == checkin.UpdateFailed:
		u.status, u.reason = checkin.UpdateFailed, r.Update.Reason
	}
	return u
}

// applyUpdateReport applies a report to the update of a service point.
func (s *Service) applyUpdateReport(tx *store.Tx, is *pointState, r *checkin.Report) error {
	before := is.update
	now := before.afterReport(r)
	if now == before {
		return nil
	}
	if now.status != before.status {
		from := before.status
		if from == checkin.UpdateQueued { // an update that has ended was running before
			if err := s.recordChange(tx, is.id, fieldUpdate, from, checkin.UpdateRunning); err != nil {
				return err
			}
			from = checkin.UpdateRunning
		}
		if now.status != from {
			if err := s.recordChange(tx, is.id, fieldUpdate, from, now.status, now.reasons()...); err != nil {
				return err
			}
		}
	}
	if is.update = now; now.target != before.target {
		// The order is complete. It must not apply again when another version is installed by hand.
		s.renewDesired(tx, is)
	}
	return nil
}

// reasons describes the result of an update, for an event.
func (u updatable) reasons() []string {
	if u.status == checkin.UpdateOK {
		return []string{"version " + u.version + " runs"}
	}
	return []string{u.reason}
}
