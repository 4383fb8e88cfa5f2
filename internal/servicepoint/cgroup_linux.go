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

// groups are control groups (cgroup v2, kernel document admin-guide/cgroup-v2). Below the group that started this service point there is
// one group for the service point itself and one for each application. Nil means that control groups are not available.
type groups struct {
	dir         string
	controllers []string
}

// agentGroup is the group of the service point itself. It is needed because a group with child groups cannot contain processes. A systemd
// unit names it in DelegateSubgroup=.
const agentGroup = "portolan-agent"

// maxProcesses is the maximum number of processes and threads of an application.
const maxProcesses = 4096

// ownGroups returns the control groups of this service point, or an error that explains why they are not available.
func ownGroups() (*groups, error) {
	mount, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	dir, err := startGroup(mount, own)
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
	return g, g.delegate()
}

// startGroup returns the folder of the group that started the service point.
func startGroup(mountinfo, own []byte) (string, error) {
	at := ""
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		// Fields: number, parent, device, root, mount point and others; after a hyphen the type of the file system.
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

// delegate moves the service point into its own group and enables the controllers for child groups. It returns an error if the group
// contains other processes.
func (g *groups) delegate() error {
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	inside := strings.Fields(string(text))
	mine := []string{strconv.Itoa(os.Getpid())}
	if os.Getenv(ReleaseVariable) != "" { // a launcher started this process
		mine = append(mine, strconv.Itoa(os.Getppid()))
	}
	if i := slices.IndexFunc(inside, func(pid string) bool { return !slices.Contains(mine, pid) }); i >= 0 {
		return fmt.Errorf("%s also contains other processes, such as process %s", g.dir, inside[i])
	}
	leaf := filepath.Join(g.dir, agentGroup)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the mode that the kernel uses
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

// write writes a file of the kernel.
func write(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) } //nolint:gosec // of cgroupfs

func (g *groups) folder(id string) string { return filepath.Join(g.dir, "application-"+id) }

// create creates the group of an application, sets its limits and returns its open folder. It returns nil if control groups are not
// available.
func (g *groups) create(id string, l checkin.Limits) (*os.File, error) {
	if g == nil {
		return nil, nil
	}
	folder := g.folder(id)
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the mode that the kernel uses
		return nil, err
	}
	cpu := "max 100000"
	if l.CPUPercent > 0 {
		cpu = fmt.Sprintf("%d 100000", l.CPUPercent*1000)
	}
	for _, one := range []struct{ controller, file, value string }{
		{"memory", "memory.max", strconv.Itoa(memoryOf(l) << 20)}, {"memory", "memory.oom.group", "1"},
		{"cpu", "cpu.max", cpu}, {"pids", "pids.max", strconv.Itoa(maxProcesses)}} {
		if !slices.Contains(g.controllers, one.controller) {
			continue
		}
		if err := write(filepath.Join(folder, one.file), one.value); err != nil {
			return nil, err
		}
	}
	return os.Open(folder)
}

// startIn makes a command start in a group.
func (g *groups) startIn(c *exec.Cmd, folder *os.File) {
	if folder != nil {
		c.SysProcAttr.UseCgroupFD, c.SysProcAttr.CgroupFD = true, int(folder.Fd())
	}
}

// hasController reports whether a controller limits the applications.
func (g *groups) hasController(controller string) bool {
	return g != nil && slices.Contains(g.controllers, controller)
}

// oomKills returns how many processes of an application were killed because they exceeded the memory limit.
func (g *groups) oomKills(id string) (times int) {
	if g == nil {
		return 0
	}
	return int(kernelNumber(filepath.Join(g.folder(id), "memory.events"), "oom_kill"))
}

// remove removes the group of an application that has ended.
func (g *groups) remove(id string) error {
	if g == nil {
		return nil
	}
	if err := os.Remove(g.folder(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
