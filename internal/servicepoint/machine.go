package servicepoint

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/wire/checkin"

	"github.com/beevik/ntp"
)

// machineEvery is how often the machine is looked at, ntpLimit how long an NTP server may take, mostOffset how far a clock may be off that
// is synchronised: what NTP itself steps over (RFC 5905, section 12).
const (
	machineEvery = 5 * time.Minute
	ntpLimit     = 5 * time.Second
	mostOffset   = 128 * time.Millisecond
)

// machine is what is known of the machine.
type machine struct {
	dir     string
	log     *slog.Logger
	changed func()
	// wake has a token when other NTP servers are to be asked.
	wake chan struct{}

	mu sync.Mutex
	// What follows is guarded by mu. idle and total are the ticks of the processors at the last look.
	servers     []string
	known       checkin.Machine
	idle, total uint64
}

func newMachine(dir string, log *slog.Logger, changed func()) *machine {
	m := &machine{dir: dir, log: log, changed: changed, wake: make(chan struct{}, 1)}
	m.known.Platform = platform()
	return m
}

// now is what is known.
func (m *machine) now() checkin.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// ask takes on which NTP servers are asked.
func (m *machine) ask(servers []string) {
	m.mu.Lock()
	m.servers = servers
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default: // it is about to look
	}
}

// run looks at the machine until ctx ends.
func (m *machine) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.look(ctx)
		timer := time.NewTimer(machineEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.wake:
		}
		timer.Stop()
	}
}

func (m *machine) look(ctx context.Context) {
	m.mu.Lock()
	servers, idle, total := m.servers, m.idle, m.total
	m.mu.Unlock()
	next := m.now()
	next.NTPStatus = m.clock(ctx, servers)
	next.Resources, idle, total = resources(m.dir, idle, total)
	m.mu.Lock()
	moved := m.known != next
	m.known, m.idle, m.total = next, idle, total
	m.mu.Unlock()
	if moved {
		m.changed()
	}
}

// clock asks the servers, one after the other until one answers; with none the kernel says whether something keeps its clock.
func (m *machine) clock(ctx context.Context, servers []string) checkin.NTPStatus {
	for _, server := range servers {
		if ctx.Err() != nil {
			break
		}
		answer, err := ntp.QueryWithOptions(server, ntp.QueryOptions{Timeout: ntpLimit, Dialer: func(_, remote string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: ntpLimit}).DialContext(ctx, "udp", remote)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() }) // whoever ends does not wait for it
			}
			return conn, err
		}})
		if err == nil {
			err = answer.Validate()
		}
		if err != nil {
			m.log.Warn("an NTP server does not answer", "server", server, "reason", err)
			continue
		}
		return checkin.NTPStatus{Stratum: strconv.Itoa(int(answer.Stratum)), Synchronized: answer.ClockOffset.Abs() <= mostOffset,
			OffsetMillis: answer.ClockOffset.Round(50 * time.Millisecond).Milliseconds()} // so that it seldom changes
	}
	return checkin.NTPStatus{Synchronized: len(servers) == 0 && clockSynchronized()}
}

// rough rounds a figure so that it seldom changes.
func rough(n, to int) int { return (n + to/2) / to * to }

// resources reads what the machine has. idle and total are the ticks of the processors before and now.
func resources(dir string, idle, total uint64) (r checkin.Resources, idleNow, totalNow uint64) {
	r.CPU.Cores = runtime.NumCPU()
	r.CPU.FrequencyMHz = int(figure("/proc/cpuinfo", "cpu MHz"))
	idleNow, totalNow = ticks()
	if totalNow > total {
		r.CPU.IdlePercent = rough(int((idleNow-idle)*100/(totalNow-total)), 10) //nolint:gosec // up to 100
	}
	r.Memory.TotalMB = int(figure("/proc/meminfo", "MemTotal") / 1024)
	r.Memory.FreeMB = rough(int(figure("/proc/meminfo", "MemAvailable")/1024), max(1, r.Memory.TotalMB/20))
	r.Disk.VarTotalMB, r.Disk.VarFreeMB = disk(dir)
	r.Disk.VarFreeMB = rough(r.Disk.VarFreeMB, max(1, r.Disk.VarTotalMB/50))
	return r, idleNow, totalNow
}

// figure gives the first number behind a name in a file of the kernel; 0 where there is none.
func figure(path, name string) float64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			value, _, _ := strings.Cut(strings.TrimLeft(rest, " \t:"), " ")
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

// ticks gives for how long the processors have done nothing, and have been there, since the start; zeros where that is not known.
func ticks() (idle, total uint64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			continue // its name
		}
		total += n
		if i == 4 {
			idle = n
		}
	}
	return idle, total
}
