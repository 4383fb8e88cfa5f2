package servicepoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portolan/internal/wire/checkin"
)

// TestGroupOf checks that the group of a service point is the one that started it, or the parent if the service point is already in its
// own group.
func TestGroupOf(t *testing.T) {
	const mounts = "24 1 0:22 / /sys rw - sysfs sysfs rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ mounts, own, want string }{
		{mounts, "0::/system.slice/portolan-agent.service\n", "/sys/fs/cgroup/system.slice/portolan-agent.service"},
		{mounts, "9:memory:/x\n0::/system.slice/p.service/portolan-agent\n", "/sys/fs/cgroup/system.slice/p.service"},
		{mounts, "0::/\n", "/sys/fs/cgroup"},
		{mounts, "9:memory:/x\n", ""},
		{mounts, "0::/../outside\n", ""},
		{"24 1 0:22 / /sys rw - sysfs sysfs rw\n", "0::/x\n", ""},
	} {
		if got, err := startGroup([]byte(c.mounts), []byte(c.own)); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q of %q is %q, %v", c.own, c.mounts, got, err)
		}
	}
}

// TestLimitsOfAGroup checks that a group gets the limits of its application for the available controllers.
func TestLimitsOfAGroup(t *testing.T) {
	g := &groups{dir: t.TempDir(), controllers: []string{"memory", "cpu", "pids"}}
	f, err := g.create("a", checkin.Limits{MemoryMiB: 100, CPUPercent: 250})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for file, want := range map[string]string{"memory.max": "104857600", "memory.oom.group": "1", "cpu.max": "250000 100000",
		"pids.max": "4096"} {
		if got, err := os.ReadFile(filepath.Join(g.dir, "application-a", file)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", file, got, err)
		}
	}
	if g.oomKills("a") != 0 {
		t.Error("it was starved at once")
	}
	if err := write(filepath.Join(g.dir, "application-a", "memory.events"), "low 0\noom 3\noom_kill 2\n"); err != nil {
		t.Fatal(err)
	}
	if n := g.oomKills("a"); n != 2 {
		t.Errorf("it was starved %d times", n)
	}
	s := &supervisor{}
	if got := strings.Join(s.limitEnvironment(checkin.Limits{CPUPercent: 150}, false), " "); got != "GOMEMLIMIT=460MiB GOMAXPROCS=2" {
		t.Errorf("without groups the environment of the runtime is %s", got)
	}
	s.groups = g
	if got := strings.Join(s.limitEnvironment(checkin.Limits{MemoryMiB: 100, CPUPercent: 150}, true), " "); got != "GOMEMLIMIT=90MiB" {
		t.Errorf("with groups the environment of the runtime is %s", got)
	}
}

// TestProcessGroup checks that a process starts in the group of its application, if this machine permits groups.
func TestProcessGroup(t *testing.T) {
	mount, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := startGroup(mount, own)
	if err != nil {
		t.Skip(err)
	}
	dir, err = os.MkdirTemp(dir, "portolan-test-")
	if err != nil {
		t.Skipf("no group of our own: %v", err)
	}
	defer func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}()
	g := &groups{dir: dir}
	f, err := g.create("a", checkin.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	c := exec.Command("cat", "/proc/self/cgroup")
	confinements()[len(confinements())-1](c)
	g.startIn(c, f)
	if out, err := c.Output(); err != nil || !strings.Contains(string(out), filepath.Base(dir)+"/application-a") {
		t.Errorf("it began in %s, %v", out, err)
	}
	if err := g.remove("a"); err != nil {
		t.Error(err)
	}
}
