package servicepoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// fetchLimit is the time limit for fetching a release, including retries while the manager is unreachable.
const fetchLimit = 30 * time.Minute

// updating is the state of the agent's updates. It is guarded by Agent.mu.
type updating struct {
	// wanted is the release that the manager requests; nil if it requests none.
	wanted *checkin.Update
	// running is the update in progress, failed the last failed update.
	running *checkin.Update
	failed  *failure
	// stop cancels the update in progress.
	stop context.CancelFunc
	// abandoned explains which release was replaced by this one, its predecessor, and why; empty if none was.
	abandoned string
	// isTrial reports that this release is still on trial.
	isTrial bool
	// clockOffset is the offset of the manager's clock from this machine's clock.
	clockOffset time.Duration
}

// loadUpdates loads the state of the releases.
func (a *Agent) loadUpdates(wanted *checkin.Update) {
	s, err := a.releases.load()
	if err != nil {
		a.log.Error("release state unreadable", "reason", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.update.wanted, a.update.failed, a.update.abandoned = wanted, s.Failed, s.Left
	a.update.isTrial = s.Trying != nil && s.Trying.Version == a.releases.running
}

// updateReport returns the report of the requested update; nil if it neither runs nor has failed.
func (a *Agent) updateReport() *checkin.UpdateReport {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := &a.update
	switch {
	case u.wanted == nil:
		return nil
	case u.failed != nil && u.failed.Update == *u.wanted:
		return &checkin.UpdateReport{Update: *u.wanted, Status: checkin.UpdateFailed, Reason: shortenText(u.failed.Reason)}
	case u.isTrial || u.running != nil && *u.running == *u.wanted:
		return &checkin.UpdateReport{Update: *u.wanted, Status: checkin.UpdateRunning}
	}
	return nil
}

// updateStatus returns the status of the update (spec.md section 3).
func (a *Agent) updateStatus() string {
	if r := a.updateReport(); r != nil {
		return r.Status
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if u := a.update.wanted; u != nil && u.Version != a.options.Version {
		return checkin.UpdateQueued
	}
	return checkin.UpdateOK
}

// shortenText cuts a text to maxConditionLength bytes of valid UTF-8 without NUL, as a manager requires.
func shortenText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), maxConditionLength)], ""), "\x00", "")
}

// setUpdate sets the requested release. It cancels an update to another release.
func (a *Agent) setUpdate(wanted *checkin.Update) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.update.wanted = wanted
	if a.update.running != nil && (wanted == nil || *wanted != *a.update.running) {
		a.update.stop()
	}
}

// startUpdate starts the requested update, unless one runs or it has failed before.
func (a *Agent) startUpdate(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := &a.update
	if u.wanted == nil || u.isTrial || u.running != nil || u.wanted.Version == a.options.Version ||
		u.failed != nil && u.failed.Update == *u.wanted {
		return
	}
	runs := *u.wanted
	ctx, u.stop = context.WithCancel(ctx)
	u.running = &runs
	a.notifyChange()
	stop := u.stop
	a.updates.Go(func() {
		defer stop()
		a.updateTo(ctx, runs)
	})
}

// updateTo downloads a release and ends the agent, so that the launcher starts the release on trial.
func (a *Agent) updateTo(ctx context.Context, u checkin.Update) {
	a.log.Info("update started", "from", a.options.Version, "to", u.Version)
	err := a.prepare(ctx, u)
	before, e := a.releases.load()
	if err = errors.Join(err, e); err == nil {
		s := before
		s.Trying, s.Failed = &trial{Update: u, Unwell: a.supervisor.unhealthy()}, nil
		if u.Version == a.releases.base { // the base was healthy before any update, so it needs no trial
			s.Previous, s.Current, s.Trying, s.Left = s.Current, "", nil, ""
		}
		if err = a.releases.save(s); err == nil && a.switchRelease(ctx) {
			a.log.Info("switching to another release", "version", u.Version)
			return
		}
	}
	after := before
	if ctx.Err() != nil {
		a.log.Info("update canceled", "version", u.Version)
	} else {
		a.log.Error("update failed", "version", u.Version, "error", err)
		after.Trying, after.Failed = nil, &failure{u, err.Error()}
	}
	if err := a.releases.save(after); err != nil { // the failure is still known in memory
		a.log.Error("store update result failed", "error", err)
	}
	a.mu.Lock()
	a.update.running, a.update.failed = nil, after.Failed
	a.mu.Unlock()
	a.notifyChange()
}

// switchRelease ends this agent for another release, unless the update was canceled meanwhile. It reports whether it did.
func (a *Agent) switchRelease(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	a.end(ErrSwitch)
	return true
}

// prepare fetches, verifies and unpacks a release.
func (a *Agent) prepare(ctx context.Context, u checkin.Update) error {
	if !a.options.Launched {
		return errors.New("this service point cannot be updated because it runs without a launcher")
	}
	if u.Version == a.releases.base {
		return nil
	}
	if err := release.CheckVersion(u.Version); err != nil { // the version names a folder
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	b := backoff{}
	for {
		a.mu.Lock()
		m, now := a.manager, time.Now().Add(a.update.clockOffset)
		a.mu.Unlock()
		source := release.Source{Base: m.base + strings.TrimSuffix(release.Path, "/"), HTTP: m.http, Now: now,
			Cache: filepath.Join(a.releases.dir, documentFolder)}
		err := a.releases.unpack(ctx, u.Version, func(f *os.File) error { return source.Fetch(ctx, u.Version, release.Platform(), f) })
		var unreachable *release.UnreachableError
		if err == nil || !errors.As(err, &unreachable) || !b.pause(ctx) {
			return err
		}
		a.log.Warn("fetch release failed, retrying", "version", u.Version, "error", err)
	}
}

// judgeTrial ends the trial of this release with success when all applications are healthy that were healthy before the update. It is
// called after a check-in that the manager answered.
func (a *Agent) judgeTrial() {
	a.mu.Lock()
	on := a.update.isTrial
	a.mu.Unlock()
	if !on {
		return
	}
	s, err := a.releases.load()
	if err != nil || s.Trying == nil {
		a.log.Error("read release state failed", "error", err)
		return
	}
	waiting := shortenText(a.supervisor.describeUnhealthy(s.Trying.Unwell))
	if waiting == s.Trying.Waiting && waiting != "" {
		return
	}
	if s.Trying.Waiting = waiting; waiting == "" {
		s = releaseState{Base: s.Base, Previous: s.Current, Current: s.Trying.Version}
	}
	if err := a.releases.save(s); err != nil {
		a.log.Error("store release state failed", "error", err)
		return
	}
	if waiting != "" {
		return
	}
	a.log.Info("release healthy", "version", s.Current, "before", s.Previous)
	a.mu.Lock()
	a.update.isTrial, a.update.abandoned = false, ""
	a.mu.Unlock()
	if err := a.releases.tidy(s); err != nil {
		a.log.Warn("remove old releases failed", "error", err)
	}
	a.notifyChange()
}
