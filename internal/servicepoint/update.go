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

// fetchLimit is how long it is tried to fetch a release from a manager that cannot be reached.
const fetchLimit = 30 * time.Minute

// updating is what an agent does about the release that it is to run. It is guarded by Agent.mu.
type updating struct {
	// wanted is the release that the manager asks for; nil where it asks for none.
	wanted *checkin.Update
	// runs is the update under way, failed the last one that failed, and why.
	runs   *checkin.Update
	failed *failure
	// stop ends the update under way, which is called off or is to be another one.
	stop context.CancelFunc
	// left says which release was left for this one, and why; empty where none was.
	left string
	// trial says that this release has yet to show that it is well.
	trial bool
	// ahead is by how much the manager's clock is ahead of this machine's.
	ahead time.Duration
}

// beginUpdates takes on what is known of releases.
func (a *Agent) beginUpdates(wanted *checkin.Update) {
	s, err := a.releases.load()
	if err != nil {
		a.log.Error("what is known of releases is forgotten", "reason", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.update.wanted, a.update.failed, a.update.left = wanted, s.Failed, s.Left
	a.update.trial = s.Trying != nil && s.Trying.Version == a.releases.running
}

// updateReport is what is reported of an update; nil where none is under way and none has failed that is still asked for.
func (a *Agent) updateReport() *checkin.UpdateReport {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := &a.update
	switch {
	case u.wanted == nil:
		return nil
	case u.failed != nil && u.failed.Update == *u.wanted:
		return &checkin.UpdateReport{Update: *u.wanted, Status: checkin.UpdateFailed, Reason: shortened(u.failed.Reason)}
	case u.trial || u.runs != nil && *u.runs == *u.wanted:
		return &checkin.UpdateReport{Update: *u.wanted, Status: checkin.UpdateRunning}
	}
	return nil
}

// updateStatus is how an update goes (spec.md section 3).
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

// shortened bounds a reason, and makes it a text that a manager takes.
func shortened(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), longestCondition)], ""), "\x00", "")
}

// wantUpdate takes on which release is to run.
func (a *Agent) wantUpdate(wanted *checkin.Update) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.update.wanted = wanted
	if a.update.runs != nil && (wanted == nil || *wanted != *a.update.runs) {
		a.update.stop()
	}
}

// startUpdate begins the update that is asked for, where there is one that neither runs nor has failed.
func (a *Agent) startUpdate(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := &a.update
	if u.wanted == nil || u.trial || u.runs != nil || u.wanted.Version == a.options.Version ||
		u.failed != nil && u.failed.Update == *u.wanted {
		return
	}
	runs := *u.wanted
	ctx, u.stop = context.WithCancel(ctx)
	u.runs = &runs
	a.move()
	stop := u.stop
	a.updates.Go(func() {
		defer stop()
		a.updateTo(ctx, runs)
	})
}

// updateTo gets a release and lets it take the place of this one.
func (a *Agent) updateTo(ctx context.Context, u checkin.Update) {
	a.log.Info("an update begins", "from", a.options.Version, "to", u.Version)
	err := a.prepare(ctx, u)
	before, e := a.releases.load()
	if err = errors.Join(err, e); err == nil {
		s := before
		s.Trying, s.Failed = &trial{Update: u, Unwell: a.supervisor.unwell()}, nil
		if u.Version == a.releases.base { // it was well before there was any other
			s.Previous, s.Current, s.Trying, s.Left = s.Current, "", nil, ""
		}
		if err = a.releases.save(s); err == nil && a.switched(ctx) {
			a.log.Info("the service point goes on with another release", "version", u.Version)
			return
		}
	}
	after := before
	if ctx.Err() != nil {
		a.log.Info("an update was called off", "version", u.Version)
	} else {
		a.log.Error("an update failed", "version", u.Version, "error", err)
		after.Trying, after.Failed = nil, &failure{u, err.Error()}
	}
	if err := a.releases.save(after); err != nil { // it is known until this ends
		a.log.Error("noting how an update went", "error", err)
	}
	a.mu.Lock()
	a.update.runs, a.update.failed = nil, after.Failed
	a.mu.Unlock()
	a.move()
}

// switched ends this agent for another release, unless the update was called off meanwhile.
func (a *Agent) switched(ctx context.Context) bool {
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
		return errors.New("this service point runs without a launcher, and cannot be updated")
	}
	if u.Version == a.releases.base {
		return nil
	}
	if err := release.CheckVersion(u.Version); err != nil { // it names a folder
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	b := backoff{}
	for {
		a.mu.Lock()
		m, now := a.manager, time.Now().Add(a.update.ahead)
		a.mu.Unlock()
		source := release.Source{Base: m.base + strings.TrimSuffix(release.Path, "/"), HTTP: m.http, Now: now,
			Cache: filepath.Join(a.releases.dir, documentFolder)}
		err := a.releases.unpack(ctx, u.Version, func(f *os.File) error { return source.Fetch(ctx, u.Version, release.Platform(), f) })
		var unreachable *release.UnreachableError
		if err == nil || !errors.As(err, &unreachable) || !b.pause(ctx) {
			return err
		}
		a.log.Warn("a release cannot be fetched yet", "version", u.Version, "error", err)
	}
}

// judgeTrial looks, behind a check-in that the manager has answered, whether this release is well: it is when the applications are that
// were before. It then takes the place of the one before for good.
func (a *Agent) judgeTrial() {
	a.mu.Lock()
	on := a.update.trial
	a.mu.Unlock()
	if !on {
		return
	}
	s, err := a.releases.load()
	if err != nil || s.Trying == nil {
		a.log.Error("what is known of this release cannot be read", "error", err)
		return
	}
	waiting := shortened(a.supervisor.waiting(s.Trying.Unwell))
	if waiting == s.Trying.Waiting && waiting != "" {
		return
	}
	if s.Trying.Waiting = waiting; waiting == "" {
		s = releaseState{Base: s.Base, Previous: s.Current, Current: s.Trying.Version}
	}
	if err := a.releases.save(s); err != nil {
		a.log.Error("noting how this release is", "error", err)
		return
	}
	if waiting != "" {
		return
	}
	a.log.Info("this release is well", "version", s.Current, "before", s.Previous)
	a.mu.Lock()
	a.update.trial, a.update.left = false, ""
	a.mu.Unlock()
	if err := a.releases.tidy(s); err != nil {
		a.log.Warn("removing releases", "error", err)
	}
	a.move()
}
