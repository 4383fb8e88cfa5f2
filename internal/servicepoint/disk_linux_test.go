package servicepoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/checkin"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a tmpfs with options and returns its directory.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no disk of our own: %v", err)
		}
		t.Skipf("no disk of our own: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills a disk except for left bytes, and returns the file that fills it.
func fill(t *testing.T, dir string, left int64) (ballast string) {
	t.Helper()
	var at unix.Statfs_t
	if err := unix.Statfs(dir, &at); err != nil {
		t.Fatal(err)
	}
	ballast = filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, int64(at.Bavail)*at.Bsize-left), 0o600); err != nil {
		t.Fatal(err)
	}
	return ballast
}

// TestDiskFullDuringAnUpdate checks that a full disk fails an update at any point with that reason. The running release continues, and a
// later update succeeds.
func TestDiskFullDuringAnUpdate(t *testing.T) {
	dir := smallDisk(t, "size=256k")
	served, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	root := filepath.Join(t.TempDir(), "root.json")
	if err := os.WriteFile(root, serveReleases(t, served, mark, time.Now()), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for left := int64(0); left <= 64<<10; left += 4 << 10 { // a release has about 42 KB
		state := filepath.Join(dir, "state")
		if err := errors.Join(os.Mkdir(state, 0o700), TrustRoot(state, root),
			updated(state, served, "", checkin.Update{Version: "2", Asked: 1})); err != nil {
			t.Fatal(err)
		}
		p := &pier{t: t, state: state, r: newReleases(state, "1", "1")}
		p.save(releaseState{Base: "1", Current: "2"})
		ballast := fill(t, dir, left)
		a := agentOf(state, served, "2")
		a.updateTo(t.Context(), checkin.Update{Version: "3", Asked: 2})
		switch now := p.known(); {
		case a.update.failed == nil && now.Trying != nil && now.Trying.Version == "3": // the space was sufficient
		case a.update.failed == nil || !strings.Contains(a.update.failed.Reason, "no space left"):
			t.Errorf("with %d bytes left the update fails as %+v; what is known is %+v", left, a.update.failed, now)
		case now.Current != "2":
			t.Errorf("with %d bytes left what is known is %+v", left, now)
		default:
			failed++
			_ = p.run("1")
			if ran, err := os.ReadFile(mark); err != nil || strings.TrimSpace(string(ran)) != "2" {
				t.Errorf("with %d bytes left %q runs, %v", left, ran, err)
			}
			if err := errors.Join(os.RemoveAll(mark), os.Remove(ballast),
				updated(state, served, "2", checkin.Update{Version: "3", Asked: 3})); err != nil {
				t.Errorf("with room, where %d bytes were left: %v", left, err)
			}
			if now := p.known(); now.Trying == nil || now.Trying.Version != "3" || now.Trying.Asked != 3 {
				t.Errorf("with room, where %d bytes were left, what is known is %+v", left, now)
			}
		}
		if err := errors.Join(os.RemoveAll(state), os.RemoveAll(ballast), os.RemoveAll(mark)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d updates failed", failed)
	if failed < 5 {
		t.Errorf("%d updates failed", failed)
	}
}

// TestDiskFullOfLogs checks that a log is not rotated without space, and is rotated once there is space.
func TestDiskFullOfLogs(t *testing.T) {
	state := smallDisk(t, "size=4m")
	p := &process{id: "a", folder: state, log: agentOf(state, "", "1").log}
	text := []byte(strings.Repeat("a line of a log that is long enough to fill it some day\n", maxLog/56+1))
	path := filepath.Join(state, logFile)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ballast := fill(t, state, 4<<10)
	p.rotate()
	if got, err := os.ReadFile(path); err != nil || len(got) != len(text) {
		t.Errorf("without room the log has %d bytes, %v", len(got), err)
	}
	if tail, err := p.tail(100); err != nil || len(tail) == 0 {
		t.Errorf("its end is %q, %v", tail, err)
	}
	if left, err := filepath.Glob(filepath.Join(state, logFile+".*")); err != nil || len(left) > 0 {
		t.Errorf("without room there are %q, %v", left, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p.rotate()
	if got, err := os.ReadFile(path); err != nil || len(got) != 0 {
		t.Errorf("with room the log has %d bytes, %v", len(got), err)
	}
	if got, err := os.ReadFile(path + ".1"); err != nil || len(got) != len(text) {
		t.Errorf("with room the log before has %d bytes, %v", len(got), err)
	}
}
