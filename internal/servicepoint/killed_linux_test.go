package servicepoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// updatesArgument, as the first argument, makes the test program a service point that runs updates.
const updatesArgument = "updates of a test"

// The files in its working directory: its state, the data that the manager serves, and the trusted root.
const (
	stateHere    = "state"
	releasesHere = "releases"
	rootHere     = "root.json"
)

// updatesOf runs updates as an agent and its launcher do: a successful one, a failing one, one to the previous release, and one to the
// base.
func updatesOf(state, served, root string) error {
	if err := TrustRoot(state, root); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	l := Launcher{State: state, Version: "1", Trial: time.Minute, Log: log}
	r := newReleases(state, "1", "")
	asked := int64(0)
	for _, version := range []string{"2", "3", "2", "4", "1"} {
		s, err := r.load()
		if err != nil {
			return err
		}
		if s.Current == version { // it returned to the previous release
			continue
		}
		asked++
		if err := updated(state, served, s.Current, checkin.Update{Version: version, Asked: asked}); err != nil {
			return err
		}
		s, err = l.nextState(r)
		if err != nil {
			return err
		}
		switch version {
		case "1":
		case "3": // this release ends immediately
			if err := l.runTrial(context.Background(), r, s); err != nil {
				return err
			}
		default:
			a := agentOf(state, served, version)
			a.loadUpdates(&checkin.Update{Version: version, Asked: asked})
			a.judgeTrial()
		}
		now, err := r.load()
		if err != nil {
			return err
		}
		if now.Trying != nil || now.Current != map[string]string{"1": "", "2": "2", "3": "2", "4": "4"}[version] {
			return fmt.Errorf("behind the update to %s there is %+v", version, now)
		}
	}
	return nil
}

// agentOf returns an agent of a version without applications. Its manager serves the files in a directory.
func agentOf(state, served, version string) *Agent {
	a := &Agent{options: Options{Version: version, Launched: true}, releases: newReleases(state, "1", version),
		log:     slog.New(slog.DiscardHandler),
		manager: &manager{http: &http.Client{Transport: http.NewFileTransport(http.Dir(served))}}, changed: make(chan struct{}, 1),
		end: func(error) {}, supervisor: &supervisor{processes: map[string]*process{}}}
	return a
}

// updated makes an agent of a version fetch a release; an empty version is the base.
func updated(state, served, from string, u checkin.Update) error {
	if from == "" {
		from = "1"
	}
	a := agentOf(state, served, from)
	a.updateTo(context.Background(), u)
	if a.update.failed != nil {
		return fmt.Errorf("the update to %s failed: %s", u.Version, a.update.failed.Reason)
	}
	return nil
}

// serveReleases writes releases that were signed at a time to a directory that a manager serves. Each release records in a file that it
// ran, and then exits with an error. It returns the root.
func serveReleases(t *testing.T, dir, mark string, at time.Time) (root []byte) {
	t.Helper()
	r, keys := release.Repository{Dir: filepath.Join(dir, release.Path)}, filepath.Join(t.TempDir(), "keys")
	err := errors.Join(os.MkdirAll(r.Dir, 0o700), r.Init(keys, at))
	for _, version := range []string{"2", "3", "4"} {
		// The command is at the end of the file, so an incomplete file does not record that it ran.
		script := fmt.Sprintf("#!/bin/sh\n%s\n[ \"$1\" = version ] && exit 0\necho %s >> %s; exit 7\n", strings.Repeat("# rope\n", 6000),
			version, mark)
		err = errors.Join(err, r.Add(keys, version, release.Platform(), strings.NewReader(script), at))
	}
	if err = errors.Join(err, r.Publish(keys, release.TimestampLife, at)); err != nil {
		t.Fatal(err)
	}
	roots, err := filepath.Glob(filepath.Join(r.Dir, "*", "1.root.json"))
	if err != nil || len(roots) != 1 {
		t.Fatalf("the roots are %q, %v", roots, err)
	}
	if root, err = os.ReadFile(roots[0]); err != nil {
		t.Fatal(err)
	}
	return root
}

// tree is the content of a directory: files and folders by path, with their modes and texts.
type tree map[string]string

func treeOf(dir string) (tree, error) {
	all := tree{}
	return all, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
			return nil
		}
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		var text []byte
		if err == nil && !d.IsDir() {
			text, err = os.ReadFile(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		all[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%04o %t %s", info.Mode().Perm(), d.IsDir(), text)
		return nil
	})
}

// put creates a directory from a tree.
func (all tree) put(dir string) error {
	for _, path := range slices.Sorted(maps.Keys(all)) {
		var mode fs.FileMode
		var folder bool
		if _, err := fmt.Sscanf(all[path], "%o %t", &mode, &folder); err != nil {
			return err
		}
		at := filepath.Join(dir, path)
		err := os.MkdirAll(at, mode)
		if !folder {
			_, text, _ := strings.Cut(all[path], " false ")
			err = errors.Join(os.RemoveAll(at), os.WriteFile(at, []byte(text), mode))
		}
		if err = errors.Join(err, os.Chmod(at, mode)); err != nil {
			return err
		}
	}
	return nil
}

// seen runs a program that changes a directory, and stops it at each system call. It returns all states of the directory, which are those
// that a kill could leave.
func seen(t *testing.T, dir string, c *exec.Cmd) (all []tree) {
	t.Helper()
	runtime.LockOSThread() // ptrace belongs to a thread
	defer runtime.UnlockOSThread()
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("tracing is not permitted: %v", err)
		}
		t.Skipf("tracing is not permitted: %v", err)
	}
	pid := c.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		t.Fatalf("it does not stop: %v, %v", status, err)
	}
	// PTRACE_O_EXITKILL; __WNOTHREAD excludes the children of other threads, which other tests started.
	const exitKill, noThread = 0x100000, 0x20000000
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|exitKill); err != nil {
		t.Fatal(err)
	}
	last := tree{}
	for at := pid; ; {
		signal := 0
		if status.Stopped() && status.StopSignal() != syscall.SIGTRAP|0x80 && status.StopSignal() != syscall.SIGTRAP &&
			status.StopSignal() != syscall.SIGSTOP {
			signal = int(status.StopSignal())
		}
		if status.Stopped() {
			if err := syscall.PtraceSyscall(at, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		var err error
		if at, err = syscall.Wait4(-1, &status, syscall.WALL|noThread, nil); err != nil {
			t.Fatal(err)
		}
		if at == pid && (status.Exited() || status.Signaled()) {
			if status.ExitStatus() != 0 {
				t.Fatalf("it ended with %d", status.ExitStatus())
			}
			return all
		}
		now, err := treeOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(now, last) {
			continue
		}
		// Another thread of the program may change something at the same time.
		if again, err := treeOf(dir); err != nil || !maps.Equal(now, again) {
			continue
		}
		last = now
		all = append(all, now)
	}
}

// TestKilledAtEveryLineOfAnUpdate checks that after a kill at any system call of an update, the service point has a working release, old
// or new, and can be updated again.
func TestKilledAtEveryLineOfAnUpdate(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(own, updatesArgument)
	c.Stderr, c.Dir = os.Stderr, t.TempDir()
	state, served, root := filepath.Join(c.Dir, stateHere), filepath.Join(c.Dir, releasesHere), filepath.Join(c.Dir, rootHere)
	if err := errors.Join(os.Mkdir(state, 0o700), os.WriteFile(root, serveReleases(t, served, mark, time.Now()), 0o600)); err != nil {
		t.Fatal(err)
	}
	all := seen(t, state, c)
	t.Logf("it may be killed at %d places", len(all))
	if len(all) < 50 {
		t.Errorf("it was seen at %d places", len(all))
	}
	for i, left := range all {
		dir := t.TempDir()
		if err := left.put(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(mark); err != nil {
			t.Fatal(err)
		}
		p := &pier{t: t, state: dir, r: newReleases(dir, "1", "1")}
		before := p.known()
		err := p.run("1")
		ran, _ := os.ReadFile(mark) // missing if no release ran
		if p.base == 0 && len(ran) == 0 {
			t.Errorf("killed at place %d, with %+v, nothing runs: %v", i, before, err)
		}
		if want := before.Current; want != "" && before.Trying == nil && strings.TrimSpace(string(ran)) != want {
			t.Errorf("killed at place %d, with %+v, %q runs", i, before, ran)
		}
		// Once more.
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(left.put(dir), TrustRoot(dir, root)); err != nil {
			t.Fatal(err)
		}
		for _, version := range []string{"2", "4"} {
			if err := updated(dir, served, before.Current, checkin.Update{Version: version, Asked: 9}); err != nil {
				t.Errorf("killed at place %d: %v", i, err)
			}
			if now := p.known(); now.Trying == nil || now.Trying.Version != version {
				t.Errorf("killed at place %d, and updated again, it has %+v", i, now)
			}
		}
	}
}
