package servicepoint

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
)

// soon waits until a condition holds.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) { // polling interval
		if time.Now().After(deadline) {
			t.Fatalf("it is never %s", what)
		}
	}
}

// pier is a state directory whose releases are shell scripts.
type pier struct {
	t     *testing.T
	state string
	r     *releases
	// base counts the runs of the base's own agent.
	base int
}

func newPier(t *testing.T) *pier {
	t.Helper()
	state := t.TempDir()
	return &pier{t: t, state: state, r: newReleases(state, "1", "1")}
}

// release installs a program as a version.
func (p *pier) release(version, script string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.r.program(version)), 0o700); err != nil {
		p.t.Fatal(err)
	}
	// it must be executable
	if err := os.WriteFile(p.r.program(version), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec
		p.t.Fatal(err)
	}
}

func (p *pier) save(s releaseState) {
	p.t.Helper()
	if err := p.r.save(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pier) known() releaseState {
	p.t.Helper()
	s, err := p.r.load()
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// run runs the launcher until the base's own agent runs or the launcher returns. It has no time limit, so that slow machines do not fail
// the test.
func (p *pier) run(version string) error {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	l := Launcher{State: p.state, Version: version, Trial: 2 * time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Base: func(ctx context.Context) error {
			p.base++
			cancel()
			<-ctx.Done()
			return nil
		}}
	return l.Run(ctx)
}

func tried(version string) *trial { return &trial{Update: checkin.Update{Version: version, Asked: 7}} }

func TestFailedTrial(t *testing.T) {
	for script, why := range map[string]string{"exit 3": "it ended before it was healthy: exit status 3",
		"exec sleep 60": "it was not healthy within 2s", "kill -SEGV $$": "segmentation fault"} {
		p := newPier(t)
		p.release("2", script)
		p.save(releaseState{Base: "1", Trying: tried("2")})
		if err := p.run("1"); err != nil || p.base != 1 {
			t.Errorf("%s: the base ran %d times, %v", script, p.base, err)
		}
		s := p.known()
		if s.Trying != nil || s.Current != "" || s.Failed == nil || s.Failed.Asked != 7 || !strings.Contains(s.Failed.Reason, why) {
			t.Errorf("%s: %+v, %+v", script, s, s.Failed)
		}
	}
}

// TestTrialReasons checks that the reason contains what the release waits for, and that a release is not tried again if it cannot
// be started or was started too often.
func TestTrialReasons(t *testing.T) {
	p := newPier(t)
	one := tried("2")
	one.Waiting = "application x is UNHEALTHY"
	p.release("2", "exit 1")
	p.save(releaseState{Base: "1", Trying: one})
	if err := p.run("1"); err != nil || !strings.Contains(p.known().Failed.Reason, "application x is UNHEALTHY") {
		t.Errorf("%v, %+v", err, p.known().Failed)
	}
	p = newPier(t)
	p.save(releaseState{Base: "1", Trying: tried("3")}) // there is no such program
	if err := p.run("1"); err != nil || p.base != 1 || !strings.Contains(p.known().Failed.Reason, "could not be started") {
		t.Errorf("%v, %+v", err, p.known().Failed)
	}
	p = newPier(t)
	one = tried("2")
	one.Starts = maxStarts
	p.release("2", "exec sleep 60")
	p.save(releaseState{Base: "1", Trying: one})
	if err := p.run("1"); err != nil || !strings.Contains(p.known().Failed.Reason, "in 3 starts") {
		t.Errorf("%v, %+v", err, p.known().Failed)
	}
}

// TestCrashingReleaseIsReplaced checks that a healthy release that later crashes repeatedly is replaced by its predecessor, and then
// by the base.
func TestCrashingReleaseIsReplaced(t *testing.T) {
	p := newPier(t)
	p.release("2", "exit 4")
	p.release("3", "exit 5")
	p.save(releaseState{Base: "1", Current: "3", Previous: "2"})
	for range 2 * (maxStarts - 1) { // each crash ends the launcher, which is restarted; the third time it returns to the previous release
		if err := p.run("1"); err == nil || p.base != 0 {
			t.Fatalf("the base ran %d times, %v; %+v", p.base, err, p.known())
		}
	}
	if err := p.run("1"); err != nil || p.base != 1 {
		t.Errorf("the base ran %d times, %v; %+v", p.base, err, p.known())
	}
	s := p.known()
	if s.Current != "" || s.Left != "version 2 crashed repeatedly; version 1 runs instead: exit status 4" {
		t.Errorf("what is known is %+v", s)
	}
	// The release that continues reports it.
	a := &Agent{releases: p.r, log: slog.New(slog.DiscardHandler), options: Options{Version: "1"}, probes: &probes{}, anycast: &announcer{}}
	a.loadUpdates(nil)
	if got := a.conditions(); !slices.Equal(got, []string{s.Left}) {
		t.Errorf("it says %q", got)
	}
}

// TestBaseRunsFirst checks that the base runs after another program was installed or the state was damaged.
func TestBaseRunsFirst(t *testing.T) {
	p := newPier(t)
	p.release("2", "exit 4")
	p.save(releaseState{Base: "1", Current: "2"})
	if err := p.run("9"); err != nil || p.base != 1 {
		t.Errorf("the base ran %d times, %v", p.base, err)
	}
	p = newPier(t)
	p.save(releaseState{Base: "1", Current: "2"})
	if err := os.WriteFile(filepath.Join(p.r.dir, releasesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.run("1"); err != nil || p.base != 1 {
		t.Errorf("the base ran %d times, %v", p.base, err)
	}
}

// TestInterruptedTrial checks that an interrupted trial does not count as a start.
func TestInterruptedTrial(t *testing.T) {
	p := newPier(t)
	started := filepath.Join(p.state, "started")
	p.release("2", "touch '"+started+"'; exec sleep 60")
	p.save(releaseState{Base: "1", Trying: tried("2")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := Launcher{State: p.state, Version: "1", Trial: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Base: func(context.Context) error { return errors.New("the base runs") }}
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	soon(t, "started", func() bool { _, err := os.Stat(started); return err == nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := p.known(); s.Trying == nil || s.Trying.Starts != 0 {
		t.Errorf("what is known is %+v", s)
	}
}

func TestTrustedRoot(t *testing.T) {
	state := t.TempDir()
	bad := filepath.Join(state, "bad.json")
	if err := os.WriteFile(bad, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := TrustRoot(state, bad); err == nil {
		t.Error("an invalid root is trusted")
	}
	if err := TrustRoot(state, filepath.Join(state, "nothing")); err == nil {
		t.Error("a root that is not there is trusted")
	}
}
