package servicepoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"portolan/internal/base/dirlock"
)

// Launcher runs a service point in the release that it was updated to. It returns to the previous release if a new one does not become
// healthy. The launcher is part of the base, the program that is installed on the machine. Without a release it runs the base's own
// agent, otherwise the agent of the release as its child process.
type Launcher struct {
	// State is the state directory. Version is the version of the base.
	State, Version string
	// Base runs the base's own agent.
	Base func(ctx context.Context) error
	// Args is the command line of the agent without the program.
	Args []string
	// Trial is the time for a new release to become healthy; 0 means DefaultTrial.
	Trial time.Duration
	Log   *slog.Logger
}

// DefaultTrial is the time for a new release to become healthy.
const DefaultTrial = 3 * time.Minute

// The launcher passes these to the release that it starts. The variables contain the version of the release and of the base. The
// descriptor is a pipe that closes when the launcher ends.
const (
	ReleaseVariable    = "PORTOLAN_AGENT_RELEASE"
	BaseVariable       = "PORTOLAN_AGENT_BASE"
	launcherDescriptor = 3
)

// ErrSwitch ends an agent that another release replaces.
var ErrSwitch = errors.New("switch to another release")

// stopGrace is the time between SIGTERM and SIGKILL for a release.
const stopGrace = 20 * time.Second

// Run runs the service point until the context ends.
func (l *Launcher) Run(ctx context.Context) error {
	if l.Trial <= 0 {
		l.Trial = DefaultTrial
	}
	r := newReleases(l.State, l.Version, "")
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("create the state directory: %w", err)
	}
	lock, err := dirlock.Acquire(r.dir, "service point")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	for ctx.Err() == nil {
		s, err := l.nextState(r)
		if err != nil {
			l.Log.Error("store release state failed, running the installed release", "reason", err)
			s = releaseState{Base: l.Version}
		}
		began := time.Now()
		switch {
		case s.Trying != nil:
			err = l.runTrial(ctx, r, s)
		case s.Current != "":
			err = l.runChild(ctx, r, s.Current, nil)
		default:
			err = l.Base(ctx)
		}
		if again, err := l.handleEnd(ctx, r, s, time.Since(began), err); !again {
			return err
		}
	}
	return nil
}

// handleEnd handles the end of a release that ran in state s for the time ran. It reports whether Run must continue with the next
// release.
func (l *Launcher) handleEnd(ctx context.Context, r *releases, s releaseState, ran time.Duration, failed error) (again bool, err error) {
	now, err := r.load()
	switch {
	case ctx.Err() != nil:
		if err == nil && now.Trying != nil && s.Trying != nil { // the context ended it, so the start does not count against the release
			now.Trying.Starts = s.Trying.Starts - 1
			err = r.save(now)
		}
		return false, err
	case errors.Is(failed, ErrSwitch):
		return true, nil
	case err == nil && (now.Current != s.Current || now.Trying != nil || s.Trying != nil):
		return true, nil
	case err != nil || s.Current == "" || failed == nil:
		return false, failed
	}
	// The release was healthy before and failed now. The service manager restarts the launcher; after maxStarts early crashes the previous
	// release runs again.
	if now.Crashes++; ran > l.Trial {
		now.Crashes = 0
	}
	again = errors.Is(failed, errNotStarted) || now.Crashes >= maxStarts
	if again {
		l.Log.Error("release crashed repeatedly, returning to the previous release", "version", s.Current, "before", s.Previous, "error", failed)
		now = releaseState{Base: l.Version, Current: s.Previous, Failed: s.Failed, Left: fmt.Sprintf("version %s crashed repeatedly; "+
			"version %s runs instead: %v", s.Current, cmp.Or(s.Previous, l.Version), failed)}
		failed = nil
	}
	return again, errors.Join(failed, r.save(now))
}

// nextState returns the release to run. The start of a release on trial is counted before it happens.
func (l *Launcher) nextState(r *releases) (releaseState, error) {
	s, err := r.load()
	if err != nil {
		l.Log.Error("release state unreadable, running the installed release", "reason", err)
		return s, r.save(s)
	}
	if err := r.tidy(s); err != nil {
		l.Log.Warn("remove old releases failed", "error", err)
	}
	if s.Trying == nil {
		return s, nil
	}
	if s.Trying.Starts >= maxStarts {
		s.failTrial(fmt.Sprintf("it did not become healthy in %d starts", maxStarts))
	} else {
		s.Trying.Starts++
	}
	return s, r.save(s)
}

// errNotStarted reports that a release could not be started.
var errNotStarted = errors.New("it could not be started")

// runTrial runs a release on trial. It stops the release if it does not become healthy within l.Trial, and then returns to the previous
// release.
func (l *Launcher) runTrial(ctx context.Context, r *releases, s releaseState) error {
	version := s.Trying.Version
	l.Log.Info("release trial started", "version", version, "start", s.Trying.Starts, "within", l.Trial.String())
	overdue := func() bool {
		now, err := r.load()
		return err != nil || now.Trying != nil && now.Trying.Update == s.Trying.Update
	}
	err := l.runChild(ctx, r, version, overdue)
	if ctx.Err() != nil {
		return err
	}
	now, e := r.load()
	if e != nil {
		return e
	}
	if now.Trying == nil || now.Trying.Update != s.Trying.Update { // it became healthy, or another update replaced it
		return err
	}
	reason := "it ended before it was healthy"
	switch {
	case errors.Is(err, errOverdue):
		reason = fmt.Sprintf("it was not healthy within %v", l.Trial)
	case err != nil:
		reason = fmt.Sprintf("it ended before it was healthy: %v", err)
	}
	if now.Trying.Waiting != "" {
		reason += ": " + now.Trying.Waiting
	}
	l.Log.Error("release not healthy, returning to the previous release", "version", version, "reason", reason)
	now.failTrial(reason)
	return r.save(now)
}

// signalDelay is the longest delay between the signals to the child and to this process when both must end.
const signalDelay = time.Second

// errOverdue reports that a release did not become healthy in time.
var errOverdue = errors.New("it did not become healthy in time")

// runChild runs the agent of a release until it ends or ctx does. If overdue is not nil, it is called when the trial time has passed; the
// child is killed if it returns true.
func (l *Launcher) runChild(ctx context.Context, r *releases, version string, overdue func() bool) error {
	alive, held, err := os.Pipe() // held is never written; it closes when this process ends for any reason
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	c := exec.Command(r.program(version), l.Args...) //nolint:gosec // it was signed
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, []*os.File{alive}
	c.Env = append(os.Environ(), ReleaseVariable+"="+version, BaseVariable+"="+l.Version)
	err = c.Start()
	_ = alive.Close() // the child has a copy
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	l.Log.Info("release started", "version", version, "pid", c.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var late <-chan time.Time
	if overdue != nil {
		timer := time.NewTimer(l.Trial)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case err := <-ended:
			if err == nil { // the child was asked to end; this process gets the same signal, perhaps a little later
				sleep(ctx, signalDelay)
			}
			return err
		case <-late:
			if !overdue() {
				continue // the release became healthy; the timer does not fire again
			}
			_ = c.Process.Kill() // no SIGTERM, because that would stop its applications
			return errors.Join(errOverdue, <-ended)
		case <-ctx.Done():
			_ = c.Process.Signal(syscall.SIGTERM) // it may have ended already
			select {
			case err := <-ended:
				return err
			case <-time.After(stopGrace):
				_ = c.Process.Kill()
				return <-ended
			}
		}
	}
}

// WithLauncher returns a context that ends with the cause ErrSwitch when the launcher of this release ends. The applications then keep
// running, as they do when an agent is killed.
func WithLauncher(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	syscall.CloseOnExec(launcherDescriptor)
	go func() {
		defer end(ErrSwitch)
		_, _ = os.NewFile(launcherDescriptor, "launcher").Read(make([]byte, 1)) // returns when the launcher's end of the pipe closes
	}()
	return ctx, cancel
}
