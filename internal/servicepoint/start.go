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
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// begin gives a channel that the process's end comes by. One that is taken over, which has answered, is watched by its answers alone.
func (p *process) begin(ctx context.Context, name, version string) (exited chan error, answered bool, err error) {
	exited = make(chan error, 1)
	if now, err := p.ask(ctx); err == nil && now.Name == name && now.Version == version && p.pid().Limits == p.limits() {
		p.noteEnd(false, "") // it runs: its end is told from here on, also where it comes before the next answer
		p.log.Info("an application that runs is taken over", "pid", p.pid().ID)
		return exited, true, nil
	}
	p.end() // whatever runs there
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return nil, false, err
	}
	socket, err := listenIn(p.folder)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = socket.Close() }() // the process has it
	out, err := os.OpenFile(filepath.Join(p.folder, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = out.Close() }()
	limits := p.limits()
	c, err := p.launch(name, limits, out, socket)
	if err != nil {
		return nil, false, fmt.Errorf("starting it: %w", err)
	}
	p.log.Info("an application was started", "pid", c.Process.Pid)
	go func() { exited <- c.Wait() }()
	text, err := json.Marshal(started{ID: c.Process.Pid, At: birth(c.Process.Pid), Limits: limits})
	if err == nil {
		err = (state{p.folder}).write(pidFile, text)
	}
	if err != nil { // another agent could not end it
		_ = c.Process.Kill()
		return nil, false, fmt.Errorf("noting which process runs: %w", err)
	}
	return exited, false, nil
}

// launch starts the process: with its limits, and with as few privileges as this system lets us.
func (p *process) launch(name string, limits checkin.Limits, out, socket *os.File) (c *exec.Cmd, err error) {
	group, err := p.s.groups.begin(p.id, limits)
	if err != nil {
		p.log.Warn("an application has no control group: its limits are its own affair", "error", err)
	}
	if group != nil {
		defer func() { _ = group.Close() }()
	}
	folders := []*os.File{group}
	if group != nil {
		folders = append(folders, nil) // where the kernel does not let us
	}
	for _, folder := range folders {
		further, drives := p.s.driving[name]
		confined := confinements()
		if drives { // the last one takes nothing away
			confined = confined[len(confined)-1:]
		}
		for _, confine := range confined {
			c = exec.Command(p.s.program[0], slices.Concat(p.s.program[1:], []string{name}, further)...)
			c.Stdout, c.Stderr, c.ExtraFiles, c.Dir = out, out, []*os.File{socket}, "/"
			c.Env = slices.Concat([]string{"PATH=/usr/bin:/bin"}, p.s.proxy, p.s.limited(limits, folder != nil))
			confine(c)
			p.s.groups.place(c, folder)
			if err = c.Start(); err == nil {
				return c, nil
			}
			p.log.Warn("an application could not be started with as few privileges as it should, or in its control group", "inGroup", folder != nil,
				"error", err)
		}
	}
	return nil, err
}

// limits are those that are wanted.
func (p *process) limits() checkin.Limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted.Limits
}

// memoryOf is the limit of memory, in MiB.
func memoryOf(l checkin.Limits) int { return cmp.Or(l.MemoryMiB, checkin.DefaultMemoryMiB) }

// limited words limits for the runtime of an application: it frees memory before the kernel ends it, and uses no more processors than it
// may where the kernel does not see to that.
func (s *supervisor) limited(l checkin.Limits, grouped bool) []string {
	env := []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", memoryOf(l)*9/10)}
	if l.CPUPercent > 0 && !(grouped && s.groups.limits("cpu")) {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", (l.CPUPercent+99)/100))
	}
	return env
}

// end ends the process: kindly at first, and then by force.
func (p *process) end() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://application"+application.StopPath, nil); err == nil {
		if rs, err := p.http.Do(rq); err == nil {
			_ = rs.Body.Close()
		}
	}
	pid := p.pid()
	for alive(pid) && ctx.Err() == nil {
		sleep(ctx, 20*time.Millisecond) // between two looks
	}
	if !alive(pid) {
		return
	}
	p.log.Warn("an application does not end: it is killed", "pid", pid.ID)
	if err := kill(pid); err != nil {
		p.log.Error("killing an application", "pid", pid.ID, "error", err)
	}
}

// started names a process that was started: its number, and when that was, because numbers are given again.
type started struct {
	ID int    `json:"pid"`
	At string `json:"at"`
	// Limits are those that it runs with.
	Limits checkin.Limits `json:"limits,omitzero"`
}

// pid reads which process was started last; the zero value where none is known.
func (p *process) pid() (s started) {
	text, err := os.ReadFile(filepath.Join(p.folder, pidFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Error("reading which process runs", "error", err)
	}
	return s
}
