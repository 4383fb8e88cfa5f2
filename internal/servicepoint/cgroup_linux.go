package servicepoint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/wire/checkin"
)

// groups are control groups (cgroup v2, the kernel's admin-guide/cgroup-v2): below the one that this service point was started in, one for
// the service point itself and one for each application. Nil stands for none.
type groups struct {
	dir         string
	controllers []string
}

// agentGroup is the group of the service point itself: a group that has groups below it may have no processes. It is what a unit of systemd
// names as DelegateSubgroup=.
const agentGroup = "portolan-agent"

// mostProcesses is how many processes and threads an application may have.
const mostProcesses = 4096

// ownGroups gives the control groups of this service point, or why there are none.
func ownGroups() (*groups, error) {
	mount, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	dir, err := groupOf(mount, own)
	if err != nil {
		return nil, err
	}
	g := &groups{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(string(text)) {
		if name == "memory" || name == "cpu" || name == "pids" {
			g.controllers = append(g.controllers, name)
		}
	}
	if len(g.controllers) == 0 {
		return nil, fmt.Errorf("%s has none of the controllers memory, cpu and pids", dir)
	}
	return g, g.settle()
}

// groupOf gives the folder of the group that the service point was started in.
func groupOf(mountinfo, own []byte) (string, error) {
	at := ""
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		// Number, parent, device, root, mount point and so on; behind a hyphen the type of the file system.
		before, behind, _ := strings.Cut(lines.Text(), " - ")
		cells := strings.Fields(before)
		if strings.HasPrefix(behind, "cgroup2 ") && len(cells) > 4 && cells[3] == "/" {
			at = cells[4]
		}
	}
	if at == "" {
		return "", errors.New("no cgroup2 file system is mounted")
	}
	for line := range strings.Lines(string(own)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok && !strings.Contains(path, "..") {
			if filepath.Base(path) == agentGroup {
				path = filepath.Dir(path)
			}
			return filepath.Join(at, path), nil
		}
	}
	return "", errors.New("this process has no group of cgroup v2")
}

// settle moves the service point into a group of its own, and has the controllers act below. A group that others are in is theirs, too.
func (g *groups) settle() error {
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	inside := strings.Fields(string(text))
	mine := []string{strconv.Itoa(os.Getpid())}
	if os.Getenv(ReleaseVariable) != "" { // a launcher has started this one
		mine = append(mine, strconv.Itoa(os.Getppid()))
	}
	if i := slices.IndexFunc(inside, func(pid string) bool { return !slices.Contains(mine, pid) }); i >= 0 {
		return fmt.Errorf("%s is the group of others, too, such as process %s", g.dir, inside[i])
	}
	leaf := filepath.Join(g.dir, agentGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as the kernel has them
		return err
	}
	for _, pid := range inside {
		if err := write(filepath.Join(leaf, "cgroup.procs"), pid); err != nil {
			return err
		}
	}
	for _, name := range g.controllers {
		if err := write(filepath.Join(g.dir, "cgroup.subtree_control"), "+"+name); err != nil {
			return err
		}
	}
	return nil
}

// write writes a file of the kernel's.
func write(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) } //nolint:gosec // of cgroupfs

func (g *groups) folder(id string) string { return filepath.Join(g.dir, "application-"+id) }

// begin makes the group of an application, with its limits, and gives its folder, open. It gives nil where there are no groups.
func (g *groups) begin(id string, l checkin.Limits) (*os.File, error) {
	if g == nil {
		return nil, nil
	}
	folder := g.folder(id)
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as the kernel has them
		return nil, err
	}
	cpu := "max 100000"
	if l.CPUPercent > 0 {
		cpu = fmt.Sprintf("%d 100000", l.CPUPercent*1000)
	}
	for _, one := range []struct{ controller, file, value string }{
		{"memory", "memory.max", strconv.Itoa(memoryOf(l) << 20)}, {"memory", "memory.oom.group", "1"},
		{"cpu", "cpu.max", cpu}, {"pids", "pids.max", strconv.Itoa(mostProcesses)}} {
		if !slices.Contains(g.controllers, one.controller) {
			continue
		}
		if err := write(filepath.Join(folder, one.file), one.value); err != nil {
			return nil, err
		}
	}
	return os.Open(folder)
}

// place has a program begin in a group.
func (g *groups) place(c *exec.Cmd, folder *os.File) {
	if folder != nil {
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(folder.Fd())
	}
}

// limits reports whether a controller acts on applications.
func (g *groups) limits(controller string) bool {
	return g != nil && slices.Contains(g.controllers, controller)
}

// starved counts how often a process of an application was killed because it wanted more memory than its limit.
func (g *groups) starved(id string) (times int) {
	if g == nil {
		return 0
	}
	return int(figure(filepath.Join(g.folder(id), "memory.events"), "oom_kill"))
}

// end removes the group of an application that has ended.
func (g *groups) end(id string) error {
	if g == nil {
		return nil
	}
	if err := os.Remove(g.folder(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
