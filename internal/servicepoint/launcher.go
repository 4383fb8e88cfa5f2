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

// Launcher runs a service point in the release that it was updated to, and goes back to the one before where a new one does not become
// healthy. It is part of the program that is installed on the machine, the base: with no release it runs the base's own agent, else the
// agent of the release as its child.
type Launcher struct {
	// State is the state directory, Version that of the base.
	State, Version string
	// Base runs the base's own agent.
	Base func(ctx context.Context) error
	// Args is the command line of the agent, without the program.
	Args []string
	// Trial is how long a new release has to become healthy; 0 means DefaultTrial.
	Trial time.Duration
	Log   *slog.Logger
}

// DefaultTrial is how long a new release has to become healthy.
const DefaultTrial = 3 * time.Minute

// What a launcher says to the release that it starts: its version, that of the base, and the descriptor of a pipe that is closed when the
// launcher has ended.
const (
	ReleaseVariable    = "PORTOLAN_AGENT_RELEASE"
	BaseVariable       = "PORTOLAN_AGENT_BASE"
	launcherDescriptor = 3
)

// ErrSwitch ends an agent that another release is to take the place of.
var ErrSwitch = errors.New("the service point goes on with another release")

// endTime is how long a release may take to end when it is told to.
const endTime = 20 * time.Second

// Run runs the service point until the context ends.
func (l *Launcher) Run(ctx context.Context) error {
	if l.Trial <= 0 {
		l.Trial = DefaultTrial
	}
	r := newReleases(l.State, l.Version, "")
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	lock, err := dirlock.Take(r.dir, "service point")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	for ctx.Err() == nil {
		s, err := l.next(r)
		if err != nil {
			l.Log.Error("which release runs cannot be noted: the one that was installed does", "reason", err)
			s = releaseState{Base: l.Version}
		}
		began := time.Now()
		switch {
		case s.Trying != nil:
			err = l.try(ctx, r, s)
		case s.Current != "":
			err = l.child(ctx, r, s.Current, nil)
		default:
			err = l.Base(ctx)
		}
		if again, err := l.ended(ctx, r, s, time.Since(began), err); !again {
			return err
		}
	}
	return nil
}

// ended says what follows from the end of a release that ran as s says, for so long: whether to look again what is to run.
func (l *Launcher) ended(ctx context.Context, r *releases, s releaseState, ran time.Duration, failed error) (again bool, err error) {
	now, err := r.load()
	switch {
	case ctx.Err() != nil:
		if err == nil && now.Trying != nil && s.Trying != nil { // it is no fault of the release
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
	// It was well once, and is not any more. Whoever starts this launcher again has it try a few times.
	if now.Crashes++; ran > l.Trial {
		now.Crashes = 0
	}
	again = errors.Is(failed, errNotStarted) || now.Crashes >= mostStarts
	if again {
		l.Log.Error("the release ends again and again: the one before goes on", "version", s.Current, "before", s.Previous, "error", failed)
		now = releaseState{Base: l.Version, Current: s.Previous, Failed: s.Failed, Left: fmt.Sprintf("version %s ended again and again, and "+
			"version %s goes on in its place: %v", s.Current, cmp.Or(s.Previous, l.Version), failed)}
		failed = nil
	}
	return again, errors.Join(failed, r.save(now))
}

// next says what is to run. A release that is tried is counted before it is started.
func (l *Launcher) next(r *releases) (releaseState, error) {
	s, err := r.load()
	if err != nil {
		l.Log.Error("which release ran is forgotten: the one that was installed does", "reason", err)
		return s, r.save(s)
	}
	if err := r.tidy(s); err != nil {
		l.Log.Warn("removing releases", "error", err)
	}
	if s.Trying == nil {
		return s, nil
	}
	if s.Trying.Starts >= mostStarts {
		s.fail(fmt.Sprintf("it did not become healthy in %d starts", mostStarts))
	} else {
		s.Trying.Starts++
	}
	return s, r.save(s)
}

// errNotStarted is a release that could not be started.
var errNotStarted = errors.New("it could not be started")

// try runs a release until it ends, which it may not, or until its time is over and it has not shown that it is well.
func (l *Launcher) try(ctx context.Context, r *releases, s releaseState) error {
	version := s.Trying.Version
	l.Log.Info("a release is tried", "version", version, "start", s.Trying.Starts, "within", l.Trial.String())
	overdue := func() bool {
		now, err := r.load()
		return err != nil || now.Trying != nil && now.Trying.Update == s.Trying.Update
	}
	err := l.child(ctx, r, version, overdue)
	if ctx.Err() != nil {
		return err
	}
	now, e := r.load()
	if e != nil {
		return e
	}
	if now.Trying == nil || now.Trying.Update != s.Trying.Update { // it was well, or is to be followed by another one
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
	l.Log.Error("a release is not well: the one before goes on", "version", version, "reason", reason)
	now.fail(reason)
	return r.save(now)
}

// tellTime is how much later this process may be told to end than a release that it has started, where both are.
const tellTime = time.Second

// errOverdue is a release that has not become healthy in its time.
var errOverdue = errors.New("it did not become healthy in time")

// child runs the agent of a release until it ends or ctx does. overdue, where it is not nil, is asked when the trial's time is over.
func (l *Launcher) child(ctx context.Context, r *releases, version string, overdue func() bool) error {
	alive, held, err := os.Pipe() // held is never written; it is closed when this process ends, however it does
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	c := exec.Command(r.program(version), l.Args...) //nolint:gosec // it was signed
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, []*os.File{alive}
	c.Env = append(os.Environ(), ReleaseVariable+"="+version, BaseVariable+"="+l.Version)
	err = c.Start()
	_ = alive.Close() // the child has it
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStarted, err)
	}
	l.Log.Info("a release was started", "version", version, "pid", c.Process.Pid)
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
			if err == nil { // it was told to: this process is told the same, it may be a little later
				sleep(ctx, tellTime)
			}
			return err
		case <-late:
			if !overdue() {
				continue // and its time is over once
			}
			_ = c.Process.Kill() // not asked to end: it would end its applications
			return errors.Join(errOverdue, <-ended)
		case <-ctx.Done():
			_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
			select {
			case err := <-ended:
				return err
			case <-time.After(endTime):
				_ = c.Process.Kill()
				return <-ended
			}
		}
	}
}

// WithLauncher gives a context that ends when the launcher of this release has, with the cause ErrSwitch: its applications go on, as they
// do where an agent is killed.
func WithLauncher(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	syscall.CloseOnExec(launcherDescriptor)
	go func() {
		defer end(ErrSwitch)
		_, _ = os.NewFile(launcherDescriptor, "launcher").Read(make([]byte, 1)) // returns when the other end is closed
	}()
	return ctx, cancel
}
