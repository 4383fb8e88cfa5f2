package servicepoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// startOrAdopt starts the application's process or takes over the running one. exited receives the end of a process that was started
// here. A process that was taken over has answered, and only its answers show that it still runs.
func (p *process) startOrAdopt(ctx context.Context, name, version string) (exited chan error, answered bool, err error) {
	exited = make(chan error, 1)
	if now, err := p.getStatus(ctx); err == nil && now.Name == name && now.Version == version && p.pid().Limits == p.limits() {
		p.recordEnd(false, "") // record that it runs, so that its end is reported even if it happens before the next answer
		p.log.Info("running application taken over", "pid", p.pid().ID)
		return exited, true, nil
	}
	p.terminate() // stop any other process of this application
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return nil, false, err
	}
	socket, err := listenIn(p.folder)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = socket.Close() }() // the process has a copy
	out, err := os.OpenFile(filepath.Join(p.folder, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = out.Close() }()
	limits := p.limits()
	c, err := p.launch(name, limits, out, socket)
	if err != nil {
		return nil, false, fmt.Errorf("start the process: %w", err)
	}
	p.log.Info("application started", "pid", c.Process.Pid)
	go func() { exited <- c.Wait() }()
	text, err := json.Marshal(startedProcess{ID: c.Process.Pid, At: startTime(c.Process.Pid), Limits: limits})
	if err == nil {
		err = (state{p.folder}).write(pidFile, text)
	}
	if err != nil { // another agent could not stop the process
		_ = c.Process.Kill()
		return nil, false, fmt.Errorf("store the process id: %w", err)
	}
	return exited, false, nil
}

// launch starts the process with its limits and the fewest privileges that this system allows.
func (p *process) launch(name string, limits checkin.Limits, out, socket *os.File) (c *exec.Cmd, err error) {
	group, err := p.s.groups.create(p.id, limits)
	if err != nil {
		p.log.Warn("create control group failed, limits enforced by the runtime only", "error", err)
	}
	if group != nil {
		defer func() { _ = group.Close() }()
	}
	data, err := p.openData(name)
	if err != nil {
		return nil, err
	}
	if data != nil {
		defer func() { _ = data.Close() }() // the process has a copy
	}
	folders := []*os.File{group}
	if group != nil {
		folders = append(folders, nil) // if the kernel refuses the group, start without it
	}
	for _, folder := range folders {
		further, drives := p.s.driving[name]
		confined := confinements()
		if drives { // only the last confinement drops no privileges
			confined = confined[len(confined)-1:]
		}
		for _, confine := range confined {
			c = exec.Command(p.s.program[0], slices.Concat(p.s.program[1:], []string{name}, further)...)
			c.Stdout, c.Stderr, c.ExtraFiles, c.Dir = out, out, []*os.File{socket}, "/"
			c.Env = slices.Concat([]string{"PATH=/usr/bin:/bin"}, p.s.proxy, p.s.limitEnvironment(limits, folder != nil))
			confine(c)
			if data != nil {
				c.ExtraFiles = append(c.ExtraFiles, data)
				c.Env = append(c.Env, application.DataVariable+"="+strconv.Itoa(application.DataDescriptor))
				if err := ownData(data.Name(), c); err != nil {
					return nil, err
				}
			}
			p.s.groups.startIn(c, folder)
			if err = startWithin(p.s.namespaces[name], c); err == nil {
				return c, nil
			}
			p.log.Warn("process start failed, retrying with fewer restrictions", "inGroup", folder != nil,
				"error", err)
		}
	}
	return nil, err
}

// dataFolder contains a folder for the data of each application that keeps some.
const dataFolder = "data"

// openData opens the folder for the data of the application; nil if it keeps none.
func (p *process) openData(name string) (*os.File, error) {
	if !slices.Contains(p.s.stateful, name) {
		return nil, nil //nolint:nilnil // see above
	}
	dir := filepath.Join(p.s.dir, dataFolder, p.id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.Open(dir)
}

// limits returns the wanted limits.
func (p *process) limits() checkin.Limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desired.Limits
}

// memoryOf returns the memory limit in MiB.
func memoryOf(l checkin.Limits) int { return cmp.Or(l.MemoryMiB, checkin.DefaultMemoryMiB) }

// limitEnvironment returns the environment variables that tell the Go runtime its limits. The runtime frees memory before the kernel
// kills the process, and restricts itself to its processors if no control group does.
func (s *supervisor) limitEnvironment(l checkin.Limits, grouped bool) []string {
	env := []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", memoryOf(l)*9/10)}
	if l.CPUPercent > 0 && !(grouped && s.groups.hasController("cpu")) {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", (l.CPUPercent+99)/100))
	}
	return env
}

// terminate stops the process: first with a stop request, then with a kill.
func (p *process) terminate() {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://application"+application.StopPath, nil); err == nil {
		if rs, err := p.statusHTTP.Do(rq); err == nil {
			_ = rs.Body.Close()
		}
	}
	pid := p.pid()
	for isAlive(pid) && ctx.Err() == nil {
		sleep(ctx, 20*time.Millisecond) // polling interval
	}
	if !isAlive(pid) {
		return
	}
	p.log.Warn("application did not stop, killing it", "pid", pid.ID)
	if err := kill(pid); err != nil {
		p.log.Error("kill application failed", "pid", pid.ID, "error", err)
	}
}

// startedProcess identifies a started process by its id and its start time, because the system reuses process ids.
type startedProcess struct {
	ID int    `json:"pid"`
	At string `json:"at"`
	// Limits are the limits of the process.
	Limits checkin.Limits `json:"limits,omitzero"`
}

// pid reads the process that was started last; the zero value if none is recorded.
func (p *process) pid() (s startedProcess) {
	text, err := os.ReadFile(filepath.Join(p.folder, pidFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Error("read process id failed", "error", err)
	}
	return s
}
